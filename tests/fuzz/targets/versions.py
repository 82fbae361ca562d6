"""Any facts about a native library: the verdict about it, the order of versions, names of files, the table.

Input: {"library": ..., "extension": ..., "package": ..., "symbols": [...], "published": "0.1.30", "answer": ...,
"text": ..., "names": [...]}
"""

from __future__ import annotations

from typing import Any

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import compat, names, versions
from gopher_mcp_python.native.compat import HEADER_VERSION, verdict
from gopher_mcp_python.native.names import Platform, best_in_folder, version_in_name, version_key
from gopher_mcp_python.native.versions import first_version_with, table, version_of_build

from ..reading import document

LARGEST = 3_000
SYMBOLS = tuple(symbol.name for symbol in _bridge.symbol_table())
REQUIRED = tuple(symbol.name for symbol in _bridge.symbol_table() if symbol.required)
WORDS: tuple[Any, ...] = (
    "library", "extension", "package", "symbols", "published", "answer", "text", "names", "0.1.30", "0.1.34", "0.1.35",
    "0.1.38", "0.1.39", "0.1.40", "0.1.9", "1.0", "0.1.2.1", "latest", "0..1", "libgopher-orch.so.0.1.39", "\u0663",
    "libgopher-orch.so", "libgopher-orch.0.1.39.dylib", "gopher-orch.dll", "gopher-orch-0.1.39.dll",
    *SYMBOLS, *table(),
)  # fmt: skip
PLATFORMS = [Platform(system, "x64") for system in ("linux", "darwin", "win32", "plan9")]


def one_input(data: bytes) -> None:
    told = document(data)
    if told is None:
        return
    check_names([one for one in _listed(told, "names") if isinstance(one, str)])
    published = told.get("published")
    entry = table().get(published) if isinstance(published, str) else None
    symbols = set(entry.symbols) if entry else {one for one in _listed(told, "symbols") if isinstance(one, str)}
    check_verdict(
        _text(told, "library"), _text(told, "extension"), _text(told, "package"), symbols, _flag(told, "answer"),
        _flag(told, "text"),
    )  # fmt: skip
    if entry is not None:
        check_published(entry)


def _listed(told: dict[str, Any], name: str) -> list[Any]:
    found = told.get(name)
    return found[:200] if isinstance(found, list) else []


def _text(told: dict[str, Any], name: str) -> str | None:
    found = told.get(name)
    return found if isinstance(found, str) and found else None


def _flag(told: dict[str, Any], name: str) -> bool | None:
    found = told.get(name)
    return found if isinstance(found, bool) else None


def check_verdict(
    library: str | None,
    extension: str | None,
    package: str | None,
    symbols: set[str],
    answer: bool | None,
    text: bool | None,
) -> None:
    def judged(**more: Any) -> compat.Verdict:
        facts: dict[str, Any] = {"symbols": symbols, "required": REQUIRED, "supports_elicitation": answer,
                                 "elicitation_text": text} | more  # fmt: skip
        return verdict(HEADER_VERSION, facts.pop("library", library), extension, package, **facts)

    found = judged()
    assert found == judged(symbols=sorted(symbols)), "the same facts give the same verdict"
    assert found.usable == set(REQUIRED).issubset(symbols) == (found.status != "unusable")
    assert all(name in found.summary for name in set(REQUIRED) - symbols) or found.usable
    assert (found.remedy is None) == (found.status == "good")
    if found.status == "good":
        assert found.elicitation and found.certain and found.retry_fix and library is not None
        assert version_key(library) >= (0, 1, 38)
    if found.usable and not any(name.endswith("_with_options") for name in symbols) and answer is None:
        assert not found.elicitation or any(name.endswith("_supports_elicitation") for name in symbols)
    newer = judged(library="0.1.39")
    assert not (found.elicitation and found.certain and not newer.elicitation), "a newer one can't do less"


def check_published(entry: versions.Published) -> None:
    """What the bridge's table says of a version is what that version's library exports."""
    for symbol in _bridge.symbol_table():
        since = bool(symbol.since) and version_key(symbol.since) <= version_key(entry.package_version)
        assert (symbol.name in entry.symbols) == since, (symbol, entry.package_version)
        assert (first_version_with(symbol.name) or "") == symbol.since
    assert version_of_build(entry.build_id) == entry.file_version


def check_names(given: list[str]) -> None:
    for platform in PLATFORMS:
        best = best_in_folder(given, platform)
        assert sorted(best) == sorted(name for name in given if names.is_library_name(name, platform))
        keys = [version_key(version_in_name(name, platform)) for name in best]
        assert keys == sorted(keys, reverse=True)
