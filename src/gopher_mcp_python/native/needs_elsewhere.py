"""Which shared libraries the vendor's library needs and this host lacks, on macOS and Windows; see needs.py.

macOS names libraries by path: the published packages bring all but the system's own, and look for it beside
themselves (`@loader_path`). Windows names them by file name: the published packages hold libgopher-orch.dll alone, so
what it imports must come from somewhere else.
"""

from __future__ import annotations

import os
import sys

from . import imports
from .filebytes import BadLibrary
from .needs import Needs

TYPE_CHECKING = False  # typing is not imported: this module may be read while the package is imported
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MACOS = ("/usr/lib/", "/System/Library/")  # in dyld's shared cache: since macOS 11 there are no such files
_API_SETS = ("api-ms-win-", "ext-ms-")  # names that Windows itself maps to its own libraries


def of_dylib(path: str, arch: str, environ: Mapping[str, str] | None = None) -> Needs:
    """What a dylib and the files beside it need. One that must lie beside it and does not is damage, not a need.

    Raises:
        BadLibrary, OSError: `path` itself can't be read.
    """
    environ = os.environ if environ is None else environ
    overriding, fallback = (environ.get(f"DYLD_{kind}LIBRARY_PATH", "").split(":") for kind in ("", "FALLBACK_"))
    extra = [*filter(None, overriding), *filter(None, fallback), "/usr/local/lib"]
    needs, here = Needs(), os.path.dirname(os.path.abspath(path))
    needs.seen.add(os.path.basename(path))
    waiting = [(path, imports.of_dylib(path, arch))]
    while waiting:
        file, found = waiting.pop()
        for name in found.libraries:
            leaf = os.path.basename(name)
            if leaf in needs.seen:
                continue
            needs.seen.add(leaf)
            if name.startswith(_MACOS):
                continue
            place = _first([*_places(name, file, found.rpaths), *(os.path.join(folder, leaf) for folder in extra)])
            if place is None and name == f"@loader_path/{leaf}":
                needs.damaged.append(f"{leaf}: not in {os.path.dirname(os.path.abspath(file))}")
            elif place is None:
                needs.missing.append(leaf)
            elif os.path.dirname(place) == here:
                try:
                    waiting.append((place, imports.of_dylib(place, arch)))
                except (BadLibrary, OSError) as error:
                    needs.damaged.append(f"{leaf}: {str(error).removeprefix(place + ': ')}")
    return needs


def of_dll(path: str, environ: Mapping[str, str] | None = None) -> Needs:
    """What a DLL and the files beside it import. Names are in small letters where Windows' case does not matter.

    Raises:
        BadLibrary, OSError: `path` itself can't be read.
    """
    environ = os.environ if environ is None else environ
    here = os.path.dirname(os.path.abspath(path))
    root = environ.get("SystemRoot", r"C:\Windows")
    folders = [os.path.join(root, "System32"), root, os.path.dirname(sys.executable)]
    folders += filter(None, environ.get("PATH", "").split(os.pathsep))
    needs = Needs()
    needs.seen.add(os.path.basename(path).lower())
    waiting = [imports.of_dll(path)]
    while waiting:
        for name in map(str.lower, waiting.pop()):
            if name in needs.seen:
                continue
            needs.seen.add(name)
            beside = os.path.join(here, name)
            if os.path.exists(beside):
                try:
                    waiting.append(imports.of_dll(beside))
                except (BadLibrary, OSError) as error:
                    needs.damaged.append(f"{name}: {str(error).removeprefix(beside + ': ')}")
            elif not name.startswith(_API_SETS) and not _first(os.path.join(folder, name) for folder in folders):
                needs.missing.append(name)
    return needs


def _places(name: str, file: str, rpaths: list[str]) -> list[str]:
    """Where dyld looks for a library that `file` names."""
    prefix, _, rest = name.partition("/")
    if prefix != "@rpath":
        return [_resolved(name, file)]
    return [os.path.join(_resolved(rpath, file), rest) for rpath in rpaths]


def _resolved(name: str, file: str) -> str:
    origins = {"@loader_path": file, "@executable_path": sys.executable}
    prefix, _, rest = name.partition("/")
    if prefix not in origins:
        return name
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(origins[prefix])), rest))


def _first(paths: Iterable[str]) -> str | None:
    return next(filter(os.path.exists, paths), None)
