"""Which shared libraries the vendor's library needs and this host lacks, without opening anything."""

from __future__ import annotations

import os

from . import elf
from .ldcache import Resolver, in_process

TYPE_CHECKING = False  # typing is not imported: this module may be read while the package is imported
if TYPE_CHECKING:
    from .names import Platform

_OWN = ("libgopher-", "libcurl.")  # the vendor's files, and the one that needs OpenSSL, too


class Needs:
    """What the loader would not find, and what it must not be given. Sonames, in order of discovery."""

    __slots__ = ("damaged", "missing", "seen")

    def __init__(self) -> None:
        self.seen: set[str | None] = set()  # all that is needed, directly or not
        self.missing: list[str] = []
        self.damaged: list[str] = []  # "name: what is wrong"


def find(path: str, platform: Platform, *, quick: bool = False) -> Needs:
    """What the library at `path` needs and does not find. `quick`: for the check at import, see `of`.

    Raises:
        BadLibrary, OSError: `path` itself can't be read.
    """
    if platform.os == "linux":
        return of(path, Resolver(platform.arch, hurry=quick), deep=not quick)
    from . import needs_elsewhere

    if platform.os == "darwin":
        return needs_elsewhere.of_dylib(path, platform.arch)
    return needs_elsewhere.of_dll(path) if platform.os == "win32" else Needs()


def of(path: str, resolver: Resolver, *, deep: bool = True) -> Needs:
    """What a Linux library and the files beside it need.

    `deep` False follows only the vendor's own files (the import check, which has milliseconds); a file of the system
    is never followed: its package manager has seen to that.

    Raises:
        elf.BadLibrary, OSError: `path` itself can't be read.
    """
    needs = Needs()
    first = elf.read(path)
    here = os.path.dirname(os.path.abspath(path))
    needs.seen |= {os.path.basename(path), first.soname}
    waiting = [first]
    while waiting:
        file = waiting.pop()
        runpath = file.runpath
        for soname in file.needed:
            if soname in needs.seen:
                continue
            needs.seen.add(soname)
            found = resolver.find(soname, runpath) or in_process(soname)
            if found is None:
                needs.missing.append(soname)
            elif os.path.dirname(found) == here and (deep or soname.startswith(_OWN)):
                waiting.extend(_read(found, soname, needs))
    return needs


def _read(path: str, soname: str, needs: Needs) -> list[elf.Elf]:
    try:
        return [elf.read(path)]
    except elf.BadLibrary as error:
        needs.damaged.append(f"{soname}: {str(error).removeprefix(path + ': ')}")
    except OSError as error:
        needs.damaged.append(f"{soname}: can't be read: {error.strerror or error}")
    return []
