"""The vendor's copies of other people's libraries, and which of the host's copies must be opened before them.

The loader knows a library by its SONAME alone: once the vendor's libsqlite3.so.0 is in the process, whatever else asks
for libsqlite3.so.0 gets that copy, however old it is (``import sqlite3``: "undefined symbol: sqlite3_deserialize"). A
host's copy that is opened first serves both sides, since a SONAME promises compatibility to older users. So the host's
copy of a clashing library goes first when that is

- needed: it exports something that the vendor's copy lacks, so a user of it could fail, and
- safe: all that the vendor's remaining files import from it is there, and so are the libraries that it needs itself.

Where it is needed and not safe the vendor's copy stays, and the clash is only reported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from . import elf
from .ldcache import Resolver
from .names import Platform
from .report import Clash

FindHost = Callable[[str], "str | None"]


@dataclass
class _Shipped:
    """What the vendor's folder holds, by SONAME."""

    files: dict[str, elf.Elf] = field(default_factory=dict)

    def users_of(self, soname: str) -> list[elf.Elf]:
        return [file for file in self.files.values() if soname in file.needed]


def find(library: str, platform: Platform, find_host: FindHost | None = None) -> list[Clash]:
    """Every library that both the vendor's folder and the host have, those to be opened first marked, in that order.

    Args:
        library: path of libgopher-orch; what it needs from its own folder counts.
        find_host: soname -> the host's path, for tests.
    """
    if platform.os != "linux":
        return []  # macOS names libraries by path and Windows' library has everything in itself
    shipped = _read_shipped(library)
    find_host = find_host or _host_finder(platform, library)
    host = _Host(find_host, library, sorted(shipped.files))
    needed = {name for name, file in host.files.items() if _names(file) - _names(shipped.files[name])}
    first, refused = _settle(shipped, host, needed)
    return [
        Clash(name, host.files[name].path, name in first, _reason(name, needed, first, refused))
        for name in host.dependencies_first()
    ]


class _Host:
    """The host's copies of what the vendor ships, and which of them bring which along."""

    def __init__(self, find_host: FindHost, library: str, sonames: list[str]) -> None:
        self._find_host = find_host
        self._others: dict[str, list[elf.Elf]] = {}
        self.files = {name: file for name in sonames if (file := _read_host(find_host(name), library))}
        self.brings = {name: self._reached_from(file) for name, file in self.files.items()}

    def _reached_from(self, file: elf.Elf) -> list[str]:
        """The clashing libraries that the file needs, also by way of libraries that the host alone has."""
        reached: list[str] = []
        seen: set[str] = set()
        waiting = [file]
        while waiting:
            for soname in waiting.pop().needed:
                if soname in seen:
                    continue
                seen.add(soname)
                if soname in self.files:
                    reached.append(soname)
                else:
                    waiting.extend(self._other(soname))
        return reached

    def _other(self, soname: str) -> list[elf.Elf]:
        if soname not in self._others:
            path = self._find_host(soname)
            try:
                self._others[soname] = [elf.read(path)] if path else []
            except (elf.BadLibrary, OSError):
                self._others[soname] = []
        return self._others[soname]

    def with_what_they_bring(self, names: set[str]) -> set[str]:
        result: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in result:
                result.add(name)
                waiting.extend(self.brings[name])
        return result

    def dependencies_first(self) -> list[str]:
        """The order in which to open them: each finds what it needs in the process, whatever LD_LIBRARY_PATH says."""
        done: list[str] = []
        on_the_way: set[str] = set()

        def visit(name: str) -> None:
            if name not in on_the_way:
                on_the_way.add(name)
                for needed in self.brings[name]:
                    visit(needed)
                done.append(name)

        for name in self.files:
            visit(name)
        return done


def _settle(shipped: _Shipped, host: _Host, needed: set[str]) -> tuple[set[str], dict[str, str]]:
    """The largest set that is needed and safe; what fell out of it, with the reason.

    Whoever is opened brings its own clashing dependencies along, so those must be safe, too; and whoever falls out
    stays the vendor's and may then need what a host's copy of another lacks. Hence rounds until nothing changes.
    """
    refused: dict[str, str] = {}
    while True:
        first = host.with_what_they_bring({name for name in needed if name not in refused})
        found = {name: why for name in first if (why := _unsafe(name, first, shipped, host, refused))}
        if not found.keys() - refused.keys():
            return first - refused.keys(), refused
        refused.update(found)


def _unsafe(name: str, first: set[str], shipped: _Shipped, host: _Host, refused: dict[str, str]) -> str | None:
    for dependency in host.brings[name]:
        if dependency in refused:
            return f"it needs the host's {dependency}, which can't go first"
    offered, ours = host.files[name].defined, _names(shipped.files[name])
    plain = {symbol for symbol, _ in offered}
    for user in shipped.users_of(name):
        if user.soname in first:
            continue  # replaced by the host's copy as well
        for symbol, version in user.undefined:
            if symbol in ours and not ((symbol, version) in offered or (version is None and symbol in plain)):
                at = f"@{version}" if version else ""
                return f"the host's copy lacks {symbol}{at}, which {user.soname} needs"
    return None


def _reason(name: str, needed: set[str], first: set[str], refused: dict[str, str]) -> str:
    if name in refused:
        return f"the native package's copy is used: {refused[name]}"
    if name in needed:
        return "the host's copy is the newer one"
    if name in first:
        return "another of the host's libraries brings it along"
    return "both copies offer the same: nothing to do"


def _names(file: elf.Elf) -> set[str]:
    return {symbol for symbol, _ in file.defined}


def _read_shipped(library: str) -> _Shipped:
    """The library and what it needs from its own folder, directly or not; each SONAME once."""
    folder = os.path.dirname(os.path.abspath(library))
    shipped = _Shipped()
    waiting, seen = [library], set()
    while waiting:
        path = waiting.pop()
        try:
            file = elf.read(path)
            soname = file.soname or os.path.basename(path)
            shipped.files[soname] = file
            for needed in file.needed:
                beside = os.path.join(folder, needed)
                if needed not in seen and os.path.exists(beside):
                    seen.add(needed)
                    waiting.append(beside)
        except (elf.BadLibrary, OSError):
            continue  # the loader will say it better
    return shipped


def _read_host(path: str | None, library: str) -> elf.Elf | None:
    if path is None or os.path.dirname(os.path.realpath(path)) == os.path.dirname(os.path.realpath(library)):
        return None
    try:
        file = elf.read(path)
        file.defined  # noqa: B018  a damaged table shows here and not later
        return file
    except (elf.BadLibrary, OSError):
        return None


def _host_finder(platform: Platform, library: str) -> FindHost:
    """Where this interpreter's own extension modules would get a library: conda's folder, RUNPATHs, the system.

    An LD_LIBRARY_PATH that leads into the vendor's folder (an old way to make it load) is no answer.
    """
    folders = (
        [os.path.join(sys.base_prefix, "lib")] if os.path.isdir(os.path.join(sys.base_prefix, "conda-meta")) else []
    )
    spec = importlib.util.find_spec("_sqlite3")
    if spec is not None and spec.origin and os.path.isfile(spec.origin):
        try:
            folders += elf.read(spec.origin).runpath
        except (elf.BadLibrary, OSError):
            pass
    resolver = Resolver(platform.arch)
    vendor = os.path.dirname(os.path.realpath(library))

    def find_host(soname: str) -> str | None:
        path = resolver.find(soname, folders)
        if path is not None and os.path.dirname(os.path.realpath(path)) == vendor:
            return resolver.find_on_system(soname)
        return path

    return find_host
