"""Results as files: one JSON object for each benchmark, `NAME.json`.

`make bench` writes them to build/benchmarks; those that docs/benchmarks.md shows are kept in benchmarks/results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MADE, KEPT = ROOT / "build" / "benchmarks", ROOT / "benchmarks" / "results"
_MEASURED = {"date": str, "machine": str, "cores": int, "load_before": (int, float, type(None)), "versions": dict,
             "seconds": (int, float), "quick": bool}  # fmt: skip
_FIGURE = (int, float, type(None))
_COMPARED = {"what": str, "unit": str, "ours": _FIGURE, "other": _FIGURE, "against": str, "ratio": _FIGURE,
             "kind": str, "targets": list}  # fmt: skip
_TARGET = {"sense": str, "limit": (int, float), "met": (bool, type(None)), "of": str}
_SERIES = {"name": str, "python": str, "free_threaded": bool}
"""What the page reads of each entry of `builds` and of `threads`, beside its figures."""


class BadResult(Exception):
    """A file that is missing, or is no result of that benchmark. The text is one line with what to do."""


def write(folder: Path, result: Mapping[str, Any]) -> Path:
    """Writes one result; the same result gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['benchmark']}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def load(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The results by name. Raises BadResult for the first one that can't be used."""
    return {name: read(folder / f"{name}.json") for name in names}


def read(path: Path) -> dict[str, Any]:
    """One result, checked.

    Raises:
        BadResult: It is missing, no JSON, or lacks what a result has.
    """
    shown = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    advice = f"`python -m benchmarks {path.stem}` measures it anew, `python -m benchmarks --page` keeps it"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadResult(f"{shown} is missing: {advice}") from None
    except (OSError, ValueError) as why:
        raise BadResult(f"{shown} can't be read ({' '.join(str(why).split())}): {advice}") from None
    wrong = _wrong(found, path.stem)
    if wrong:
        raise BadResult(f"{shown}: {wrong}: {advice}")
    return dict(found)


def _wrong(found: Any, name: str) -> str:
    """What a result lacks; empty when it is one."""
    if not isinstance(found, dict) or found.get("benchmark") != name:
        return f"this is no result of {name}"
    if wrong := _lacks(found, {"measured": dict, "compared": list, "targets": dict}):
        return wrong
    if wrong := _lacks(found["measured"], _MEASURED):
        return f"measured: {wrong}"
    checked: list[tuple[str, Mapping[str, Any], Any]] = [("compared", _COMPARED, found["compared"])]
    checked += [
        (f"compared[{at}].targets", _TARGET, one["targets"])
        for at, one in enumerate(found["compared"])
        if isinstance(one, dict) and isinstance(one.get("targets"), list)
    ]
    checked += [(key, _SERIES, found[key]) for key in ("builds", "threads") if isinstance(found.get(key), list)]
    for place, fields, entries in checked:
        for at, one in enumerate(entries):
            if wrong := _lacks(one, fields):
                return f"{place}[{at}]: {wrong}"
    return ""


def _lacks(entry: Any, fields: Mapping[str, Any]) -> str:
    if not isinstance(entry, dict):
        return "this is no object"
    for name, kinds in fields.items():
        if name not in entry:
            return f'"{name}" is missing'
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(entry[name], allowed) or (isinstance(entry[name], bool) and bool not in allowed):
            return f'"{name}" is of the wrong kind'
    return ""
