"""Builds of this package, each installed in an environment of its own: the wheels that `make dist` has left in dist/.

A wheel is measured where its CPython is on this machine: the one that runs this, one of PATH or pyenv, or one that
`make freethreaded` has built. Environments are kept in the cache of the tests (`GOPHER_MCP_TEST_CACHE`); they have the
wheel alone, since an import and a native run with inline handlers need nothing else.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._report import BadArgument, NotHere, note
from tests.support import vendor
from tests.support.children import ROOT

DIST = ROOT / "dist"
_TAG = re.compile(r"-cp3(\d+)-(cp3\d+(t?)|abi3)-([^-]+)\.whl$")
_PROBE = """
import sys, sysconfig, venv
print(sys.implementation.name, "%d.%d" % sys.version_info[:2], int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""
_ABOUT = """
import platform, sysconfig
print(platform.python_version(), int(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


@dataclass(frozen=True)
class Build:
    """An interpreter that has one build installed. `name` is the wheel's ABI tag, as "cp311" or "cp314t"."""

    name: str
    interpreter: str
    python: str
    free_threaded: bool
    wheel_bytes: int | None = None

    def entry(self) -> dict[str, str | bool | int | None]:
        """What a result says about it."""
        return {"name": self.name, "python": self.python, "free_threaded": self.free_threaded}


def running() -> Build:
    """The build that the running interpreter has."""
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    name = f"cp{sys.version_info[0]}{sys.version_info[1]}{'t' if free else ''}"
    return Build(name, sys.executable, platform.python_version(), free)


def named(words: Sequence[str]) -> list[Build]:
    """Those that a command line names, as NAME=PYTHON. Raises BadArgument for an interpreter that does not run."""
    found = []
    for word in words:
        name, _, python = word.partition("=")
        try:
            version, free = _output(python, "-c", _ABOUT).split()
        except (OSError, ValueError, subprocess.SubprocessError):
            raise BadArgument(f"{word}: NAME=PYTHON names an interpreter that has the build installed") from None
        found.append(Build(name, python, version, free == "1"))
    return found


def chosen(words: Sequence[str]) -> list[Build]:
    """The wheels of dist/, and beside them those that the words name. Raises NotHere when there is none at all."""
    mine = named(words)
    try:
        wheels = installed()
    except NotHere:
        if not mine:
            raise
        wheels = []
    names = {build.name for build in mine}
    return [*(build for build in wheels if build.name not in names), *mine]


def installed() -> list[Build]:
    """The wheels of dist/ for this machine whose CPython is here, oldest version first. A line for each that is not.

    Raises:
        NotHere: There is none.
    """
    found = [build for wheel in _wheels() if (build := _install(wheel))]
    if not found:
        raise NotHere("dist/ has no wheel for this machine: `make dist` makes them")
    return found


def _wheels() -> list[Path]:
    system = {"linux": "linux", "darwin": "macosx", "win32": "win"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    fitting = [
        path
        for path in DIST.glob("*.whl")
        if (tag := _TAG.search(path.name)) and system in tag[4] and tag[4].endswith(machine)
    ]
    return sorted(fitting, key=lambda path: (int(_parts(path)[0]), path.name))


def _parts(wheel: Path) -> tuple[str, str, str]:
    """Minor version, name, and "t" for a free-threaded one."""
    tag = _TAG.search(wheel.name)
    assert tag
    return tag[1], tag[2] if tag[2] != "abi3" else f"abi3 on 3.{tag[1]}", tag[3] or ""


def _install(wheel: Path) -> Build | None:
    minor, name, free = _parts(wheel)
    python = next(_interpreters(f"3.{minor}", free), None)
    if python is None:
        note(f"{wheel.name}: no CPython 3.{minor}{free} here")
        return None
    kept = f"build-{re.sub('[^a-z0-9]+', '-', name)}-"
    folder = vendor.cache() / f"{kept}{hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}"
    inside = str(folder / "bin" / "python")
    if not (folder / ".ready").exists():
        note(f"installing {wheel.name}")
        for old in vendor.cache().glob(f"{kept}*"):
            shutil.rmtree(old, ignore_errors=True)
        try:
            _output(python, "-m", "venv", str(folder))
            _output(inside, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", str(wheel))
        except subprocess.SubprocessError as why:
            told = getattr(why, "stderr", None) or str(why)
            note(f"{wheel.name} can't be installed: {' '.join(str(told).split())[-300:]}")
            return None
        (folder / ".ready").touch()
    return Build(name, inside, _output(inside, "-c", _ABOUT).split()[0], bool(free), wheel.stat().st_size)


def _interpreters(version: str, free: str) -> Iterator[str]:
    """Those of this version that are here: "t" for a free-threaded one."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    tried = [sys.executable, shutil.which(f"python{version}{free}")]
    tried += [str(path) for path in sorted(pyenv.glob(f"{version}.*{free}/bin/python{version}{free}"), reverse=True)]
    tried += [str(path) for path in (ROOT / "build").glob(f"python{version}/*/bin/python{version}{free}")]
    for python in filter(None, tried):
        try:
            if _output(python, "-c", _PROBE).split() == ["cpython", version, "1" if free else "0"]:
                yield python
        except (OSError, subprocess.SubprocessError):
            continue  # a shim of pyenv's whose version is not chosen, or one without venv


def _output(*argv: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(argv, env=env, cwd=ROOT.parent if ROOT.parent.is_dir() else None, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, check=True).stdout  # fmt: skip
