"""The vendor's real library for the tests: fetched once by pip, with the OpenSSL 1.1 that it needs, kept in a cache.

The cache is `GOPHER_MCP_TEST_CACHE` (default `~/.cache/gopher-mcp-python-tests`):

    native/<version>/gopher_mcp_python_native_linux_x64/lib/libgopher-orch.so.<version>
    openssl11/usr/lib/x86_64-linux-gnu/libcrypto.so.1.1

`python -m tests.support.vendor [VERSION ...]` fills it. With `GOPHER_MCP_REQUIRE_NATIVE=1` (set by `make test` and
`.ci/run` on Linux x86-64) a library that can't be had is a failure, elsewhere it is a skip with the reason.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

NEWEST = "0.1.39"
WITHOUT_ELICITATION = "0.1.34"
DISTRIBUTION = "gopher-mcp-python-native-linux-x64"
FOLDER = "gopher_mcp_python_native_linux_x64"


class Unavailable(Exception):
    """The vendor's library can't be had here; the text says why."""


def cache() -> Path:
    """The folder that keeps downloads between test runs."""
    named = os.environ.get("GOPHER_MCP_TEST_CACHE")
    folder = Path(named) if named else Path.home() / ".cache" / "gopher-mcp-python-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def required() -> bool:
    """True where a missing vendor library is a failure rather than a skip."""
    return os.environ.get("GOPHER_MCP_REQUIRE_NATIVE", "") not in ("", "0")


def absent(reason: str) -> NoReturn:
    """Fails or skips the test for want of the vendor's library."""
    if required():
        pytest.fail(f"the vendor's library is required here (GOPHER_MCP_REQUIRE_NATIVE=1): {reason}", pytrace=False)
    pytest.skip(f"needs the vendor's library: {reason}")


@contextmanager
def locked(name: str) -> Iterator[None]:
    with open(cache() / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_machine() -> None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Unavailable(f"it is fetched for Linux x86-64 only, this is {sys.platform} {platform.machine()}")


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise Unavailable(f"{' '.join(argv[:6])} ...: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def wheel(version: str = NEWEST) -> Path:
    """The downloaded wheel of one published version."""
    _check_machine()
    return wheel_of(DISTRIBUTION, version)


def wheel_of(distribution: str, version: str = NEWEST) -> Path:
    """The wheel of any of the vendor's packages: all are tagged for every platform, so pip gives them anywhere."""
    folder, name = cache() / "wheels", distribution.replace("-", "_")
    with locked("wheels"):
        found = sorted(folder.glob(f"{name}-{version}-*.whl"))
        if not found:
            with tempfile.TemporaryDirectory(dir=cache()) as fresh:
                _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                      "--disable-pip-version-check", "--dest", fresh, f"{distribution}=={version}"])  # fmt: skip
                folder.mkdir(exist_ok=True)
                for file in Path(fresh).glob("*.whl"):
                    file.replace(folder / file.name)
            found = sorted(folder.glob(f"{name}-{version}-*.whl"))
    if not found:
        raise Unavailable(f"pip gave no wheel of {distribution} {version}")
    return found[0]


def package(version: str = NEWEST) -> Path:
    """The unpacked wheel: a folder that can be put on `sys.path`."""
    archive = wheel(version)
    folder = cache() / "native" / version
    with locked(f"native-{version}"):
        if not folder.is_dir():
            fresh = folder.with_name(f"{version}.part")
            shutil.rmtree(fresh, ignore_errors=True)
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(fresh)
            fresh.replace(folder)
    return folder


def library(version: str = NEWEST) -> Path:
    """The file libgopher-orch of one published version."""
    folder = package(version) / FOLDER / "lib"
    named = [file for file in folder.glob("libgopher-orch.so*") if not file.is_symlink()]
    exact = [file for file in named if file.name.endswith(version)]
    if not named:
        raise Unavailable(f"no libgopher-orch in {folder}")
    return (exact or sorted(named))[0]


def openssl11() -> Path:
    """The folder with libcrypto.so.1.1 and libssl.so.1.1."""
    _check_machine()
    script = Path(__file__).with_name("openssl11.sh")
    with locked("openssl11"):
        return Path(_run(["sh", str(script), str(cache() / "openssl11")]).splitlines()[-1])


def environment(version: str = NEWEST) -> dict[str, str]:
    """Variables under which a child process finds and opens this version."""
    return {"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library(version)), "GOPHER_MCP_OPENSSL11_PATH": str(openssl11())}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [NEWEST]:
        print(library(wanted), openssl11())
