"""Which engine runs: the native library where it is installed and can do what is asked, else the embedded one.

A native library that is there but can't be used is never passed over in silence (`mismatch.warn_once`).
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import AgentError
from ..mismatch import warn_once

if TYPE_CHECKING:
    from ..native import LoadedLibrary
    from .base import EngineName

__all__ = ["ENGINE_VARIABLE", "Choice", "choose"]

ENGINE_VARIABLE = "GOPHER_MCP_ENGINE"
ELICITATION_SINCE, RETRY_FIX_SINCE = "0.1.35", "0.1.38"
_log = logging.getLogger("gopher_mcp_python.engines")


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine, why it is this one (a sentence for people), the opened library (native only), and whether the engine
    can be given a handler: False only for an old library with nothing explicit asked of it."""

    engine: EngineName
    why: str
    library: LoadedLibrary | None = None
    elicitation: bool = True


def choose(
    requested: str | None,
    *,
    explicit_elicitation: bool,
    elicitation_enabled: bool,
    embedded_only: str | None = None,
) -> Choice:
    """The engine for a new agent. `requested`: "auto", "native", "embedded", or None for GOPHER_MCP_ENGINE, else
    "auto". `embedded_only`: what is asked for that the native library has nothing of, as a sentence for people.

    Raises AgentError when an engine was asked for by name and can't do what is asked, or the name is unknown.
    """
    name, source = _requested(requested)
    if name == "embedded":
        return Choice("embedded", f"asked for by {source}")
    if embedded_only is not None and name == "auto":
        return Choice("embedded", embedded_only)
    if embedded_only is not None and name == "native":
        raise AgentError(f'The native engine is asked for by {source}, but {embedded_only}. Use engine="embedded"')
    if name == "native":
        return _native(source, explicit_elicitation, elicitation_enabled)
    if name == "auto":
        return _automatic(elicitation_enabled)
    raise AgentError(f"{source} is {name!r}; it must be auto, native or embedded")


def _requested(requested: str | None) -> tuple[str, str]:
    if requested is not None:
        return requested, "the engine option"
    return os.environ.get(ENGINE_VARIABLE, "").strip().lower() or "auto", ENGINE_VARIABLE


def _native(source: str, explicit_elicitation: bool, elicitation_enabled: bool) -> Choice:
    from ..native import load

    library = load()
    why = f"asked for by {source}, {_described(library)}"
    if library.supports_elicitation or not elicitation_enabled:
        return Choice("native", why, library)
    if explicit_elicitation:
        raise AgentError(
            f"Elicitation options were given, but {_described(library)} has no elicitation support: "
            f"{ELICITATION_SINCE} is needed, {RETRY_FIX_SINCE} for retries after a sign-in over streamable HTTP. "
            "Upgrade it (pip install --upgrade 'gopher-mcp-python[native]') or use engine=\"embedded\""
        )
    _log.debug("%s has no elicitation support; the agent is made without it", _described(library))
    return Choice("native", f"{why}, without elicitation", library, elicitation=False)


def _automatic(elicitation_enabled: bool) -> Choice:
    from ..native import load

    try:
        library = load()
    except AgentError as error:
        if not _is_installed():
            return Choice("embedded", "no native library is installed")
        warn_once(
            "A native library is installed but can't be used, so the embedded engine runs "
            f"({ENGINE_VARIABLE}=embedded silences this).\n{error.message}"
        )
        return Choice("embedded", "the installed native library can't be used here (gopher-mcp doctor says why)")
    if library.supports_elicitation or not elicitation_enabled:
        return Choice("native", _described(library), library)
    warn_once(
        f"{_described(library)} has no elicitation support ({ELICITATION_SINCE} or newer has), so the embedded engine "
        f"runs. Next: pip install --upgrade 'gopher-mcp-python[native]', or {ENGINE_VARIABLE}=embedded silences this"
    )
    return Choice("embedded", f"{_described(library)} has no elicitation support")


def _is_installed() -> bool:
    """Whether there is a native library that somebody could expect to be used."""
    from ..native.search import find

    report = find()
    named = report.package is not None or report.overridden_by is not None
    return named or any(os.path.isabs(attempt.path) for attempt in report.attempts)


def _described(library: LoadedLibrary) -> str:
    version = library.version or "of unknown version"
    return f"libgopher-orch {version} ({library.library.path})"
