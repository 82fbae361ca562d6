"""The plots of docs/benchmarks.md, from results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from typing import Any

from benchmarks import _drawing
from benchmarks._drawing import COLOURS, DASHES, Axis, Curve, Mark, Row

Results = Mapping[str, Mapping[str, Any]]
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
CALLBACKS = (
    ("same_thread_ns", "caller's thread"),
    ("foreign_thread_ns", "foreign thread"),
    ("handed_over_ns", "handed over"),
)


# ---- What the page reads from results, too --------------------------------------------------------------------------


def records(results: Results) -> Iterator[Mapping[str, Any]]:
    """Everything that stands against something, or for itself, in the results' order."""
    for result in results.values():
        yield from result["compared"]


def is_published(record: Mapping[str, Any]) -> bool:
    """Whether it stands against the published package."""
    return str(record["against"]).startswith("the published package")


def is_alone(record: Mapping[str, Any]) -> bool:
    """Whether its own figure is judged, or stands for itself."""
    return not record["against"] or any(target["of"] == "ours" for target in record["targets"])


def figure(value: float | None, unit: str) -> str:
    """Three digits, times in the unit that suits them."""
    if value is None:
        return "not measured"
    if unit in _SECONDS and value > 0:
        seconds = value * _SECONDS[unit]
        unit = next((name for name, size in reversed(_SECONDS.items()) if seconds >= size * 0.9995), "ns")
        value = seconds / _SECONDS[unit]
    return f"{digits(value)} {unit}".strip()


def digits(value: float) -> str:
    """Three of them."""
    shown = float(f"{value:.3g}")
    return f"{shown:,.0f}" if abs(shown) >= 100 else f"{shown:.3g}"


def share(ratio: float, kind: str) -> float:
    """A ratio of any kind as a multiple of what ours stands against."""
    return {"share": ratio, "speedup": 1 / ratio, "added": 1 + ratio}[kind]


# ---- The plots ------------------------------------------------------------------------------------------------------


def pictures(results: Results) -> dict[str, str]:
    """File name -> SVG, for all that the results have something for."""
    compared = [one for one in records(results) if one["ratio"]]
    published = [one for one in compared if is_published(one)]
    others = [one for one in compared if not is_published(one)]
    alone = [one for one in records(results) if is_alone(one) and one["ours"]]
    made = {}
    if published:
        title = "Against the published package (1: the same)"
        made["benchmarks-published.svg"] = _shares(published, title, "time, as a multiple of the published package's")
    if others:
        title = "Against doing without us, or with others (1: the same)"
        made["benchmarks-baselines.svg"] = _shares(others, title, "as a multiple of what it stands against")
    if alone:
        made["benchmarks-limits.svg"] = _limits(alone)
    if results.get("builds", {}).get("builds"):
        made["benchmarks-builds.svg"] = _builds(results)
    if results.get("threads", {}).get("threads"):
        made["benchmarks-threads.svg"] = _threads(results["threads"])
    return made


def _shares(some: Sequence[Mapping[str, Any]], title: str, label: str) -> str:
    rows = []
    for one in some:
        bound = [target for target in one["targets"] if target["of"] == "ratio"]
        rows.append(
            Row(
                one["what"],
                [Mark(share(one["ratio"], one["kind"]))],
                [share(target["limit"], one["kind"]) for target in bound],
                [share(target["goal"], one["kind"]) for target in bound if "goal" in target],
                _pair(one),
                base=1.0,
                missed=any(target["met"] is False for target in bound),
            )
        )
    axis = _axis(rows, label, lambda value: f"{value:g}", strong=(1.0,))
    return _drawing.rows(rows, axis, title=title, words="here / there")


def _pair(one: Mapping[str, Any]) -> str:
    """Both figures; a unit that is no time stands once."""
    ours, other = (figure(one[key], one["unit"]) for key in ("ours", "other"))
    return f"{ours if one['unit'] in _SECONDS else ours.removesuffix(one['unit']).strip()} / {other}"


def _limits(some: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for one in some:
        size = _SECONDS[one["unit"]]
        bound = [target for target in one["targets"] if target["of"] == "ours"]
        limits = [target["limit"] * size for target in bound]
        text = figure(one["ours"], one["unit"])
        text += f" of {figure(bound[0]['limit'], one['unit'])}" if bound else ""
        missed = any(target["met"] is False for target in bound)
        rows.append(Row(one["what"], [Mark(one["ours"] * size)], limits, text=text, missed=missed))
    axis = _axis(rows, "time", lambda value: figure(value, "s"))
    return _drawing.rows(rows, axis, title="Times and their limits", words="time of limit")


def _builds(results: Results) -> str:
    targets = results.get("callback", {}).get("targets", {})
    rows = []
    for build in results["builds"]["builds"]:
        marks = [Mark(build[key] * 1e-9, at) for at, (key, _) in enumerate(CALLBACKS) if build.get(key)]
        text = ", ".join(figure(build[key], "ns") for key, _ in CALLBACKS if build.get(key))
        rows.append(Row(_build(build), marks, text=text))
    limits = [targets[key]["limit"] * 1e-9 for key, _ in CALLBACKS if key in targets]
    rows = [Row(row.label, row.marks, limits, text=row.text) for row in rows]
    axis = _axis(rows, "time of one callback; lines: what each kind has to reach", lambda value: figure(value, "s"))
    names = [name for _, name in CALLBACKS]
    return _drawing.rows(rows, axis, title="A callback in each build", words="in this order", series=names)


def _build(build: Mapping[str, Any]) -> str:
    return f"{build['name']} on CPython {build['python']}" + (" free-threaded" if build["free_threaded"] else "")


def threads_of(entry: Mapping[str, Any]) -> list[int]:
    """The numbers of threads that were measured."""
    return sorted(int(key.split("_")[1]) for key in entry if key.startswith("own_") and key.endswith("_ratio"))


def _threads(result: Mapping[str, Any]) -> str:
    entries, cores = result["threads"], result["measured"]["cores"]
    counts = threads_of(entries[0])
    some = [Curve(f"as many times, up to {cores} cores", [(n, min(n, cores)) for n in counts], "#7f7f7f", "2 3")]
    for number, entry in enumerate(entries):
        name = f"{entry['name']}, {'GIL' if entry.get('gil', True) else 'no GIL'}"
        colour = COLOURS[number % len(COLOURS)]
        for kind, dash, words in (("own", "", "an agent each"), ("shared", DASHES[1], "one agent")):
            at = [(n, entry[f"{kind}_{n}_ratio"]) for n in counts]
            some.append(Curve(f"{name}, {words}", at, colour, dash, points=True))
    most = max([1.0, *(value for curve in some for _, value in curve.at)])
    top = floor(most * 2 + 1) / 2
    y = Axis("callbacks a second, one thread is 1", 0, top,
             [(half / 2, f"{half / 2:g}") for half in range(floor(top * 2) + 1)], log=False, strong=(1.0,))  # fmt: skip
    x = Axis("native threads that call at once", counts[0], counts[-1], [(n, str(n)) for n in counts])
    return _drawing.curves(some, x, y, title="Callbacks over threads")


def _axis(rows: Sequence[Row], label: str, word: Any, strong: Sequence[float] = ()) -> Axis:
    """A logarithmic axis that holds everything, with its ends at 1, 2 or 5 times a power of ten."""
    values = [mark.value for row in rows for mark in row.marks]
    values += [value for row in rows for value in (*row.targets, *row.goals)] + list(strong)
    steps = [float(f"{one}e{power}") for power in range(floor(log10(min(values))) - 1, floor(log10(max(values))) + 2)
             for one in (1, 2, 5)]  # fmt: skip
    first = max(at for at, step in enumerate(steps) if step <= min(values) * 1.0001)
    last = min(at for at, step in enumerate(steps) if step >= max(values) * 0.9999)
    if first == last:
        last += 1
    shown = steps[first : last + 1]
    ticks = shown if len(shown) <= 8 else [step for step in shown if f"{step:e}".startswith("1")]
    return Axis(f"{label} (logarithmic)", shown[0], shown[-1], [(step, word(step)) for step in ticks], strong=strong)
