"""What a library of a given version can do for this package: one pure rule, held by a table test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

from .names import ELICITATION_SINCE, RETRY_FIX_SINCE, version_key

HEADER_VERSION = "0.1.39"  # the newest version that include/gopher_orch/ was checked against

# How a capability shows in the exported functions' names; the names themselves stand in the bridge's table alone.
SUPPORT, OPTIONS, EVENTS, BY_URL = "_supports_elicitation", "_with_options", "_set_event_callback", "_create_by_url"

Status = Literal["good", "limited", "too_old", "unknown", "unusable"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be relied on. `certain` is False where elicitation support could only be guessed; `evidence` says how
    it is known. `retry_fix` None: not known."""

    status: Status
    usable: bool
    elicitation: bool
    certain: bool
    retry_fix: bool | None
    options: bool
    events: bool
    create_by_url: bool
    evidence: str
    summary: str
    remedy: str | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def verdict(
    header: str,
    library: str | None,
    extension: str | None,
    package: str | None,
    *,
    symbols: Collection[str],
    source: str | None = None,
    required: Collection[str] = (),
    supports_elicitation: bool | None = None,
    elicitation_text: bool | None = None,
    distribution: str = "gopher-mcp-python-native-linux-x64",
) -> Verdict:
    """The one compatibility rule. Pure: the same facts give the same verdict.

    Args:
        header: newest library version that the C header was checked against.
        library: version of the library, None when nothing tells.
        extension: version of this package for which the extension module was built, None when it can't tell.
        package: version of this package.
        symbols: exported gopher_orch_* functions.
        source: how `library` is known ("file name", "build id", "native package").
        required: functions without which no agent can live, from the bridge's table.
        supports_elicitation: what the library's own function for this answered, None where it was not asked.
        elicitation_text: whether the library's own elicitation messages are in the file; the last resort.
        distribution: name of the native package, for the remedy.
    """
    upgrade = f"pip install --upgrade '{distribution}>={RETRY_FIX_SINCE}'"
    notes = _notes(header, library, extension, package)
    missing = sorted(name for name in required if name not in symbols)
    if missing:
        return Verdict(
            "unusable",
            False,
            False,
            True,
            False,
            False,
            False,
            False,
            "exported functions",
            f"this is no usable libgopher-orch: it lacks {', '.join(missing)}",
            upgrade,
            notes,
        )
    elicitation, certain, evidence = _elicitation(
        library, source, _shows(symbols, SUPPORT), supports_elicitation, _shows(symbols, OPTIONS), elicitation_text
    )
    retry_fix = None if library is None else version_key(library) >= version_key(RETRY_FIX_SINCE)
    status, summary, remedy = _conclusion(library, elicitation, certain, retry_fix, evidence, upgrade)
    return Verdict(
        status,
        True,
        elicitation,
        certain,
        retry_fix,
        _shows(symbols, OPTIONS),
        _shows(symbols, EVENTS),
        _shows(symbols, BY_URL),
        evidence,
        summary,
        remedy,
        notes,
    )


def _shows(symbols: Collection[str], capability: str) -> bool:
    return any(name.endswith(capability) for name in symbols)


def _elicitation(
    library: str | None, source: str | None, has_symbol: bool, answer: bool | None, options: bool, text: bool | None
) -> tuple[bool, bool, str]:
    """(supported, certain, how it is known)."""
    if has_symbol:
        return answer is not False, True, "its own word" + (": no" if answer is False else "")
    if not options:
        return False, True, "it has no functions that take options"
    if library is not None:
        return version_key(library) >= version_key(ELICITATION_SINCE), True, f"version {library} ({source or 'given'})"
    if text is None:
        return False, False, "nothing tells its version"
    found = "are in it" if text else "are not in it"
    return text, False, f"a guess: nothing tells its version, and the library's elicitation messages {found}"


def _conclusion(
    library: str | None, elicitation: bool, certain: bool, retry_fix: bool | None, evidence: str, upgrade: str
) -> tuple[Status, str, str | None]:
    name = f"libgopher-orch {library}" if library else "this libgopher-orch of unknown version"
    if not certain:
        return (
            "unknown",
            f"{name} {'probably answers' if elicitation else 'may not answer'} elicitations ({evidence})",
            "name the file with its version (libgopher-orch.so.X.Y.Z), or: " + upgrade,
        )
    if not elicitation:
        return (
            "too_old",
            f"{name} is too old for elicitation: {ELICITATION_SINCE} or newer is needed ({evidence})",
            upgrade,
        )
    if retry_fix is False:
        fix = f"the fix for the retry after sign-in over streamable HTTP ({RETRY_FIX_SINCE} or newer)"
        return "limited", f"{name} answers elicitations but lacks {fix}", upgrade
    if retry_fix is None:
        return "limited", f"{name} answers elicitations; whether it has the retry fix is not known", upgrade
    return "good", f"{name} answers elicitations and retries the tool call after sign-in", None


def _notes(header: str, library: str | None, extension: str | None, package: str | None) -> tuple[str, ...]:
    notes = []
    if library is not None and version_key(library) > version_key(header):
        notes.append(f"version {library} is newer than {header}, the newest that this package was checked against")
    if extension is not None and package is not None and extension != package:
        notes.append(
            f"the extension module was built for {extension} and this is {package}: "
            "pip install --force-reinstall --no-deps gopher-mcp-python"
        )
    return tuple(notes)
