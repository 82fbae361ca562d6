"""The sdist, and for each CPython of this machine a wheel: built from the sdist, repaired, checked, tested elsewhere.

    python -m tests.support.wheels DIST PYTHON

Fills the folder DIST. The wheel of PYTHON is left to tests/support/outside.sh, which runs more tests; each other one is
installed in a fresh environment and passes tests/support/installed.py and a choice of the tests, run from the unpacked
sdist without its `src`. Interpreters are those of PATH and of pyenv. What is missing is said; where
GOPHER_MCP_REQUIRE_PYTHONS names versions ("3.10 3.13", or "all"), they must be there. Linux wheels are repaired by
auditwheel, which needs patchelf: the tag then says what the wheel supports. Wheels are for one version of Python each
(docs/wheels.md says why), so there is nothing for abi3audit.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support import contents, vendor

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")
# One agent run on each engine with each kind of provider, and all that a callback can meet.
QUICK = ["tests/test_bridge_callbacks.py", "tests/scenarios/test_answers.py", "-k", "bridge or completes_the_run"]
NEEDED = ["pytest>=8.3", "pytest-timeout>=2.3"]  # with the extras below, all that those tests import
EXTRAS = "anthropic,openai,keyring,serve"
# The version, with a t without the GIL, if it is a CPython that can make environments and build extension modules.
_PROBE = """
import ensurepip, os, sys, sysconfig, venv
there = os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print("%d.%d" % sys.version_info[:2] + free if there and sys.implementation.name == "cpython" else "")
"""


class Failed(Exception):
    """A step that went wrong; the text has the end of its output."""


def run(argv: Iterable[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The output of a program that must succeed within ten minutes."""
    listed = [str(word) for word in argv]
    done = subprocess.run(listed, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600, check=False)  # fmt: skip
    if done.returncode:
        raise Failed(f"{' '.join(listed)[:300]}: exit code {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def interpreters(first: str) -> dict[str, str]:
    """Version -> interpreter with headers and venv. `first` is taken for its own version, whichever that is."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    tried = [first]
    for version in SUPPORTED:
        tried += filter(None, [shutil.which(f"python{version}")])
        tried += sorted(glob.glob(f"{pyenv}/versions/{version}.*/bin/python{version}"), reverse=True)
    found: dict[str, str] = {}
    for python in tried:
        try:
            version = run([python, "-c", _PROBE]).strip()
        except (Failed, OSError):
            continue  # a shim of pyenv's whose version is not chosen, or one without venv
        if version:
            found.setdefault(version, python)
    return found


def required(found: dict[str, str]) -> None:
    """Says which versions are missing; raises Failed where one of them must be there."""
    missing = [version for version in SUPPORTED if version not in found]
    if missing:
        print(f"   not tested, no such CPython with headers and venv here: {', '.join(missing)}", flush=True)
    wanted = os.environ.get("GOPHER_MCP_REQUIRE_PYTHONS", "").replace(",", " ").replace("all", " ".join(SUPPORTED))
    lacking = [version for version in wanted.split() if version not in found]
    if lacking:
        raise Failed(f"GOPHER_MCP_REQUIRE_PYTHONS wants CPython {', '.join(lacking)}, which is not here")


def build_wheel(python: str, sdist: Path, dist: Path, folder: Path) -> tuple[Path, Path]:
    """The interpreter of a fresh environment, and the repaired and checked wheel in `dist`."""
    run([python, "-m", "venv", folder / "venv"])
    inside = folder / "venv" / "bin" / "python"
    run([inside, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder / "raw", sdist])
    (raw,) = (folder / "raw").glob("*.whl")
    if sys.platform == "linux":
        run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder / "repaired", raw])
        (raw,) = (folder / "repaired").glob("*.whl")
    wrong = contents.problems(raw)
    if wrong:
        raise Failed(f"{raw.name}:\n  " + "\n  ".join(wrong))
    return inside, raw.replace(dist / raw.name)


def test(python: Path, wheel: Path, tests: Path, library: dict[str, str]) -> str:
    """Installs the wheel in the fresh environment and runs the quick checks. The last line of the tests' output."""
    run([python, "-m", "pip", "install", "-q", f"{wheel}[{EXTRAS}]", *NEEDED])
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run([python, tests / "tests" / "support" / "installed.py"], cwd=tests.parent, env={**clean, **library})
    required = {"GOPHER_MCP_REQUIRE_NATIVE": "1"} if library else {}
    argv = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not source_tree", *QUICK]
    return run(argv, cwd=tests, env={**clean, **required}).strip().splitlines()[-1]


def unpacked(sdist: Path, folder: Path) -> Path:
    """The sdist's tree without `src`: what is tested from there is what was installed."""
    run(["tar", "-xzf", sdist, "-C", folder])
    tests = (folder / sdist.name.removesuffix(".tar.gz")).rename(folder / "sdist")
    shutil.rmtree(tests / "src")
    return tests


def vendor_environment() -> dict[str, str]:
    """Variables under which the vendor's library is found; empty where it can't be had and need not be."""
    try:
        return vendor.environment() if os.uname()[::4] == ("Linux", "x86_64") else {}
    except vendor.Unavailable as why:
        if os.environ.get("GOPHER_MCP_REQUIRE_NATIVE") == "0":
            return {}
        raise Failed(f"the vendor's library can't be had (GOPHER_MCP_REQUIRE_NATIVE=0 does without): {why}") from None


def make(dist: Path, python: str, folder: Path) -> None:
    """Fills `dist`, with `folder` for what is on the way. A line of output for each archive."""
    run([sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT])
    (sdist,) = dist.glob("*.tar.gz")
    print(f"   {sdist.name}: {sdist.stat().st_size:,} bytes", flush=True)
    found = interpreters(python)
    required(found)
    own = next((version for version, path in found.items() if path == python), None)
    if own is None:
        raise Failed(f"{python} is no CPython that can build extension modules (headers, venv)")
    library, tests = vendor_environment(), unpacked(sdist, folder)

    def each(version: str) -> str:
        here = folder / version
        here.mkdir()
        inside, wheel = build_wheel(found[version], sdist, dist, here)
        said = "" if version == own else ", " + test(inside, wheel, tests, library)
        shutil.rmtree(here)
        return f"   {wheel.name}: {wheel.stat().st_size:,} bytes{said}"

    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(each, [own, *(version for version in found if version != own)]):
            print(line, flush=True)


def main(dist: Path, python: str) -> int:
    shutil.rmtree(dist, ignore_errors=True)
    begin = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            make(dist, python, Path(folder))
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    print(f"   {time.monotonic() - begin:.0f} s in all", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
