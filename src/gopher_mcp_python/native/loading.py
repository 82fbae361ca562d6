"""Opens the vendor's library: the search, what must be opened before it, the verdict, the remembered result."""

from __future__ import annotations

import logging
import mmap
import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import clashes, compat, elf, failure, names, needs, openssl11, search
from .ldcache import Resolver
from .report import Attempt, Clash, Report

if TYPE_CHECKING:
    from ..ffi._bridge import Library

_log = logging.getLogger("gopher_mcp_python.native")
_ELICITATION_TEXT = b"No MCP elicitation callback configured"
LOG_LEVELS = {
    "trace": 0,
    "debug": 1,
    "info": 2,
    "warning": 3,
    "warn": 3,
    "error": 4,
    "critical": 5,
    "off": 8,
    "silent": 8,
}
ERRORS_ONLY = 4  # the vendor's scale: 0 everything, 8 silent; debug levels print queries, arguments and results


@dataclass(frozen=True, slots=True)
class LoadedLibrary:
    """The opened library and what can be relied on."""

    library: Library
    version: str | None
    supports_elicitation: bool
    supports_events: bool
    retry_fix: bool
    report: Report
    verdict: compat.Verdict


_lock = threading.Lock()
if hasattr(os, "register_at_fork"):  # another thread may have been loading when this child was made
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))
_loaded: LoadedLibrary | None = None
_failed: Report | None = None


def load() -> LoadedLibrary:
    """Opens the library, once a process; later calls give the same object or raise the same error.

    An interrupted load (Ctrl-C) is not remembered.

    Raises:
        AgentError: no usable library. The text lists each place tried with its reason and ends with the next command.
    """
    from ..errors import AgentError

    library, report, error = attempt()
    if library is None:
        raise AgentError(error or failure.text(report))
    return library


def attempt() -> tuple[LoadedLibrary | None, Report, str | None]:
    """What `load` does, for those who want the report of a failure: library or None, report, the failure's text."""
    global _loaded, _failed
    with _lock:
        if _loaded is None and _failed is None:
            report = search.find()
            _loaded = _open_first_usable(report)
            if _loaded is None:
                _failed = report
        if _loaded is not None:
            return _loaded, _loaded.report, None
        assert _failed is not None
        return None, _failed, failure.text(_failed)


def loaded() -> LoadedLibrary | None:
    """The library if it is open already; opens nothing."""
    return _loaded


def forget() -> None:
    """Forgets a failed load, so that the next one tries again (after the environment was changed)."""
    global _failed
    with _lock:
        _failed = None


def _open_first_usable(report: Report) -> LoadedLibrary | None:
    for index, place in enumerate(report.attempts):
        if not place.usable:
            continue
        try:
            return _open(place, report)
        except OSError as error:
            report.attempts[index] = place.failed(failure.reason(error, report))
    return None


def _open(place: Attempt, report: Report) -> LoadedLibrary:
    from ..ffi import _bridge

    prepare(place, report, _bridge.preload)
    if report.damaged:  # the loader dies of a file that was cut short
        raise OSError(f"a library that it needs is damaged: {report.damaged[0]}")
    library = _bridge.Library.open(place.path)
    result = judge(
        place,
        {name for name, there in library.symbols().items() if there},
        [symbol.name for symbol in _bridge.symbol_table() if symbol.required],
    )
    library.set_log_level(log_level(os.environ))
    if not result.certain:
        _log.warning("%s: %s. Next: %s", place.path, result.summary, result.remedy)
    _log.debug("libgopher-orch %s opened (found via %s): %s", place.version, place.found_via, result.summary)
    return LoadedLibrary(
        library, place.version, result.elicitation, result.events, bool(result.retry_fix), report, result
    )


def prepare(place: Attempt, report: Report, preload: Callable[[str], None] | None = None) -> None:
    """Fills in what the library needs and, given `preload`, opens it first: the host's clashing libraries, OpenSSL 1.1.

    Where something is missing nothing is opened: the library won't open, and the process stays as it was. Nothing that
    fails here is an error: the loader's own verdict on the library itself counts.
    """
    platform = names.current()
    needed = _needs(place.path, platform)
    report.missing, report.damaged = needed.missing, needed.damaged
    wanted = [name for name in openssl11.library_names(platform) if name in needed.seen]
    folder = None
    if wanted and (set(wanted) & set(report.missing) or os.environ.get(openssl11.VARIABLE)):
        report.openssl11 = openssl11.find(platform, package_lib=os.path.dirname(place.path))
        folder = openssl11.folder_of(report.openssl11)
        if folder is not None:
            report.missing = [soname for soname in report.missing if soname not in wanted]
    report.clashes = clashes.find(place.path, platform)
    if preload is not None and not report.missing and not report.damaged:
        _add_dll_folders(os.path.dirname(os.path.abspath(place.path)), folder)
        system = Resolver(platform.arch)
        report.clashes = [_open_clash(clash, system, preload) for clash in report.clashes]
        if folder is not None:
            _open_openssl(folder, platform, report, preload)


def _add_dll_folders(*folders: str | None) -> None:
    """Windows: what the library loads by itself later is found in these, too."""
    add = getattr(os, "add_dll_directory", None)
    for folder in folders:
        if add is not None and folder is not None and os.path.isdir(folder):
            add(folder)  # for good: the library stays open until the process ends


def _needs(path: str, platform: names.Platform) -> needs.Needs:
    try:
        return needs.find(path, platform)
    except (elf.BadLibrary, OSError):
        return needs.Needs()  # it was read a moment ago: the loader says it better


def _open_clash(clash: Clash, system: Resolver, preload: Callable[[str], None]) -> Clash:
    if not clash.opened_first:
        return clash
    # By name where the loader finds it by itself: a copy that is in the process already is then not opened twice.
    name = clash.soname if system.find(clash.soname) == clash.host_path else clash.host_path
    try:
        preload(name)
    except OSError as error:
        return Clash(clash.soname, clash.host_path, False, f"the host's copy could not be opened: {error}")
    return clash


def _open_openssl(folder: str, platform: names.Platform, report: Report, preload: Callable[[str], None]) -> None:
    left = list(openssl11.library_names(platform))
    try:
        while left:
            preload(os.path.join(folder, left[0]))
            del left[0]
    except OSError as error:
        report.missing += left
        report.openssl11 = [
            attempt.failed(f"could not be opened: {error}") if attempt.usable else attempt
            for attempt in report.openssl11
        ]


def judge(place: Attempt, symbols: set[str], required: Collection[str] = ()) -> compat.Verdict:
    """The verdict on the library of `place`, from its exported symbols."""
    from .. import __version__ as package

    text = None if place.version else _has_elicitation_text(place.path)
    return compat.verdict(
        compat.HEADER_VERSION,
        place.version,
        _extension_version(),
        package,
        symbols=symbols,
        source=place.version_source,
        required=required,
        elicitation_text=text,
        distribution=names.current().distribution,
    )


def _extension_version() -> str | None:
    from ..ffi import _bridge

    return getattr(_bridge, "__version__", None)


def _has_elicitation_text(path: str) -> bool | None:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(_ELICITATION_TEXT) >= 0
    except (OSError, ValueError):
        return None


def log_level(environ: Mapping[str, str]) -> int:
    """The vendor's log level: ``GOPHER_MCP_LOG_LEVEL`` (0 to 8, or a name), else debug with DEBUG, else errors."""
    value = environ.get("GOPHER_MCP_LOG_LEVEL", "").strip().lower()
    if value.isdigit():
        return min(int(value), 8)
    if value in LOG_LEVELS:
        return LOG_LEVELS[value]
    if value:
        _log.warning("GOPHER_MCP_LOG_LEVEL: %r is neither 0 to 8 nor one of %s", value, ", ".join(LOG_LEVELS))
    return LOG_LEVELS["debug"] if environ.get("DEBUG", "").lower() not in ("", "0", "false", "no") else ERRORS_ONLY
