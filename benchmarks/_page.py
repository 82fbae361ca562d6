"""docs/benchmarks.md: its tables between marks and its plots are made from benchmarks/results, nothing by hand."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _results
from benchmarks._marks import fill, table
from benchmarks._plots import (
    CALLBACKS,
    Results,
    digits,
    figure,
    is_alone,
    is_published,
    pictures,
    records,
    threads_of,
)

PAGE, IMAGES = _results.ROOT / "docs" / "benchmarks.md", _results.ROOT / "docs" / "images"
_RATIOS = {"share": "{}", "speedup": "{} times less", "added": "{} on top"}
_BUILD = (*CALLBACKS, ("handed_over_foreign_ns", "handed over, from a foreign thread"))


def keep(made: Path, names: Sequence[str]) -> Iterator[str]:
    """Takes the results in `made` to those that are kept, then brings page and plots up to date. A line for each step.

    Raises:
        BadResult: A result is missing in both places, or is none. Then nothing was changed.
    """
    new = [name for name in names if (made / f"{name}.json").exists()]
    found = {
        name: _results.read((made if name in new else _results.KEPT) / f"{name}.json") for name in names
    }
    text, plots = filled(PAGE.read_text(encoding="utf-8"), found), pictures(found)
    _results.KEPT.mkdir(parents=True, exist_ok=True)
    for name in new:
        shutil.copyfile(made / f"{name}.json", _results.KEPT / f"{name}.json")
    PAGE.write_text(text, encoding="utf-8")
    for name, svg in plots.items():
        (IMAGES / name).write_text(svg, encoding="utf-8")
    old = [name for name in names if name not in new]
    yield f"new results: {', '.join(new) or 'none'}; as before: {', '.join(old) or 'none'}"
    yield f"{PAGE.relative_to(_results.ROOT)} and {len(plots)} plots are made of them"


def filled(page: str, results: Results) -> str:
    """The page with its tables made anew."""
    made = {
        "missed": _missed(results),
        "published": _compared([one for one in records(results) if is_published(one)], "the published package"),
        "baselines": _compared([one for one in records(results) if one["against"] and not is_published(one)], ""),
        "limits": _limits([one for one in records(results) if is_alone(one)]),
        "builds": _builds(results["builds"]["builds"]),
        "threads": _threads(results["threads"]["threads"]),
        "measured": _measured(results),
    }
    return fill(page, made)


def _ratio(value: float | None, kind: str) -> str:
    return "not measured" if value is None else _RATIOS[kind].format(digits(value))


def _bounds(record: Mapping[str, Any], of: str, key: str = "limit") -> str:
    """What is asked of the ratio or of our own figure, in words."""
    shown = [
        f"{target['sense']} {figure(target[key], record['unit']) if of == 'ours' else digits(target[key])}"
        for target in record["targets"]
        if target["of"] == of and key in target
    ]
    return ", ".join(shown)


def _verdict(record: Mapping[str, Any], of: str) -> str:
    met = [target["met"] for target in record["targets"] if target["of"] == of]
    return "" if not met else "**missed**" if False in met else "not measured" if None in met else "reached"


def _compared(some: Sequence[Mapping[str, Any]], peer: str) -> str:
    """Ratios. Without `peer`, each row says what it stands against."""
    rows = []
    for one in some:
        other = figure(one["other"], one["unit"])
        row = [one["what"], figure(one["ours"], one["unit"]), other if peer else f"{one['against']}: {other}"]
        rows.append([*row, _ratio(one["ratio"], one["kind"]), _bounds(one, "ratio"), _verdict(one, "ratio")])
    return table(("", "here", peer or "against", "ratio", "to be reached", ""), rows)


def _limits(some: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (one["what"], figure(one["ours"], one["unit"]), _bounds(one, "ours"), _verdict(one, "ours")) for one in some
    ]
    return table(("", "time", "to be reached", ""), rows)


def _missed(results: Results) -> str:
    """What is missed, also of what was aimed at first."""
    rows = []
    for one in records(results):
        for target in one["targets"]:
            of_ratio = target["of"] == "ratio"
            value = one["ratio"] if of_ratio else one["ours"]
            below = "goal" in target and value is not None and not _reaches(value, target["sense"], target["goal"])
            if target["met"] is False or below:
                shown = _ratio(value, one["kind"]) if of_ratio else figure(value, one["unit"])
                of = target["of"]
                against = f", against {one['against']}" if of_ratio else ""
                rows.append((f"{one['what']}{against}", shown, _bounds(one, of), _bounds(one, of, "goal"),
                             "**missed**" if target["met"] is False else "reached"))  # fmt: skip
    if not rows:
        return "Nothing."
    return table(("", "measured", "to be reached", "aimed at first", ""), rows)


def _reaches(value: float, sense: str, limit: float) -> bool:
    return value <= limit if sense == "<=" else value >= limit


def _builds(some: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for build in some:
        name = f"{build['name']}, free-threaded" if build["free_threaded"] else build["name"]
        size = build.get("wheel_bytes")
        weight = f"{size / 1000:,.0f} kB" if size else "not measured"
        times = [figure(build.get(key), "ns") for key, _ in _BUILD]
        rows.append((name, build["python"], weight, figure(build.get("import_ms"), "ms"), *times))
    head = ("build", "CPython", "wheel", "import with the bridge", *(words for _, words in _BUILD))
    return table(head, rows)


def _threads(some: Sequence[Mapping[str, Any]]) -> str:
    counts = threads_of(some[0])
    rows = []
    for entry in some:
        for kind, words in (("own", "an agent each"), ("shared", "one agent")):
            lock = "GIL" if entry.get("gil", True) else "no GIL"
            cells = [
                f"{digits(entry[f'{kind}_{n}_per_s'] / 1e6)} million ({digits(entry[f'{kind}_{n}_ratio'])})"
                for n in counts
            ]
            rows.append((f"{entry['name']} (CPython {entry['python']}, {lock}), {words}", *cells))
    return table(("callbacks a second", *(f"{n} thread{'s' * (n > 1)}" for n in counts)), rows)


def _measured(results: Results) -> str:
    rows = []
    for name, result in results.items():
        of = result["measured"]
        took = f"{of['seconds']:,.0f} s" + (", few rounds (`--quick`)" if of["quick"] else "")
        versions = ", ".join(f"{what} {number}" for what, number in of["versions"].items() if number)
        load = "not known" if of["load_before"] is None else f"{of['load_before']:.1f}"
        rows.append((name, of["date"], f"{of['machine']}, {of['cores']} cores", load, took, versions))
    return table(("benchmark", "date", "machine", "load before", "took", "versions"), rows)
