"""The published package 0.1.39 with its native library, in an environment of its own, to measure against.

Made once by pip (and apt for OpenSSL 1.1, which its library needs) and kept in the cache of the tests:
`GOPHER_MCP_TEST_CACHE`, default `~/.cache/gopher-mcp-python-tests`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from benchmarks._report import note
from tests.support import vendor

VERSION = "0.1.39"
NAME = f"the published package {VERSION}"


def python() -> Path:
    """The interpreter of the peer's environment: this interpreter's version, with nothing but the peer in it.

    Raises:
        vendor.Unavailable: The packages can't be had here; the text says why.
    """
    folder = vendor.cache() / f"peer-{VERSION}-py{sys.version_info[0]}{sys.version_info[1]}"
    found = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        note(f"installing the published package {VERSION} into {folder.name}")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        wanted = [f"gopher-mcp-python=={VERSION}", f"{vendor.DISTRIBUTION}=={VERSION}"]
        done = subprocess.run(
            [found, "-m", "pip", "--disable-pip-version-check", "install", "-q", *wanted],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise vendor.Unavailable(f"pip could not install the peer: {done.stderr.strip()[-400:]}")
        (folder / ".ready").touch()
    return found


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a peer process: it finds OpenSSL 1.1 only through the loader's path, and nothing of ours."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "DEBUG")}
    return {**kept, "LD_LIBRARY_PATH": str(vendor.openssl11()), **(extra or {})}
