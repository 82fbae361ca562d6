"""Which shared libraries a Linux library needs and this host lacks, without opening anything."""

from __future__ import annotations

import os

from . import elf
from .ldcache import Resolver


def missing_libraries(path: str, resolver: Resolver, *, deep: bool = True) -> list[str]:
    """Sonames that the loader would not find for `path` or for what lies beside it, in order of discovery.

    `deep` False follows only the vendor's own files (the import check, which has milliseconds); a file of the system
    is never followed: its package manager has seen to that.

    Raises:
        elf.BadLibrary, OSError: `path` itself can't be read; damaged files beside it are left to the loader.
    """
    first = elf.read(path)
    here = os.path.dirname(os.path.abspath(path))
    seen, missing = {os.path.basename(path), first.soname}, []
    waiting = [first]
    while waiting:
        file = waiting.pop()
        runpath = file.runpath
        for soname in file.needed:
            if soname in seen:
                continue
            seen.add(soname)
            found = resolver.find(soname, runpath)
            if found is None:
                missing.append(soname)
            elif os.path.dirname(found) == here and (deep or soname.startswith(("libgopher-", "libcurl."))):
                waiting.extend(_read_quietly(found))
    return missing


def _read_quietly(path: str) -> list[elf.Elf]:
    try:
        return [elf.read(path)]
    except (elf.BadLibrary, OSError):
        return []
