"""What every benchmark shares: medians, targets, comparisons, the JSON object, the table.

A benchmark module has `measure`, which returns a flat mapping of figures and ratios, `TARGETS`, and `COMPARED`: which
figures of it stand against each other. `QUICK` names its constants with the values that `--quick` gives them: few
rounds, to see that it works.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks import _machine

Sense = Literal["<=", ">="]
Kind = Literal["share", "speedup", "added"]
_UNITS = {"ns": "ns", "us": "µs", "ms": "ms", "s": "a second"}
_NO_FIGURES = ("benchmark", "measured", "compared", "targets")


class NotHere(Exception):
    """What this machine lacks for the whole benchmark. It is said, and is no failure."""


class BadArgument(Exception):
    """Something that the command line names is not there. The text is one line."""


@dataclass(frozen=True)
class Target:
    """What a figure has to reach. `goal` is what was aimed at, where that is more than what is asked for now."""

    key: str
    sense: Sense
    limit: float
    what: str
    goal: float | None = None

    def met(self, figures: Mapping[str, Any]) -> bool | None:
        """Whether it is reached; None when this machine could not measure it."""
        return reached(figures.get(self.key), self.sense, self.limit)


@dataclass(frozen=True)
class Compared:
    """Two figures of one run. `kind` says what the ratio of them is: ours / other ("share"), other / ours ("speedup"),
    or ours / other - 1 ("added"). Without `other`, a figure that stands for itself. A `unit` is named where the figures
    are no times, as rates and ratios of other comparisons, whose targets are judged there."""

    what: str
    ours: str
    other: str | None = None
    ratio: str | None = None
    against: str = ""
    kind: Kind = "share"
    unit: str = ""

    def record(self, figures: Mapping[str, Any], targets: Sequence[Target]) -> dict[str, Any]:
        """What the JSON says about it."""
        bound = [
            {**_judged(target, figures), "of": "ratio" if target.key == self.ratio else "ours"}
            for target in targets
            if target.key == self.ratio or (target.key == self.ours and not self.unit)
        ]
        return {
            "what": self.what,
            "unit": self.unit or _UNITS[self.ours.rpartition("_")[2]],
            "ours": figures.get(self.ours),
            "other": figures.get(self.other) if self.other else None,
            "against": self.against,
            "ratio": figures.get(self.ratio) if self.ratio else None,
            "kind": self.kind,
            "targets": bound,
        }


def reached(value: float | None, sense: Sense, limit: float) -> bool | None:
    """Whether the value is on the right side of the limit; None when there is no value."""
    if value is None:
        return None
    return bool(value <= limit) if sense == "<=" else bool(value >= limit)


def median(values: Sequence[float]) -> float:
    """The middle value: one slow turn does not move it."""
    return statistics.median(values)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """`digits` significant digits; more are noise."""
    return None if value is None else float(f"{value:.{digits}g}")


def describe(
    name: str, figures: Mapping[str, Any], targets: Sequence[Target], compared: Sequence[Compared] = ()
) -> dict[str, Any]:
    """The JSON object of one benchmark: its figures, what stands against what, then how they stand to the targets."""
    judged = {target.key: {**_judged(target, figures), "what": target.what} for target in targets}
    records = [one.record(figures, targets) for one in compared]
    return {"benchmark": name, **figures, "compared": records, "targets": judged}


def _judged(target: Target, figures: Mapping[str, Any]) -> dict[str, Any]:
    found = {"sense": target.sense, "limit": target.limit, "met": target.met(figures)}
    return found if target.goal is None else {**found, "goal": target.goal}


def run(name: str, module: Any, *, quick: bool = False, named: Sequence[str] = ()) -> dict[str, Any]:
    """Measures: the JSON object, with when and on what kind of machine. `module` has what the text above says; one that
    has NAMED, which builds to measure, gets `named` there.

    Raises:
        NotHere: What the benchmark needs is not on this machine.
    """
    if quick:
        for constant, value in getattr(module, "QUICK", {}).items():
            setattr(module, constant, value)
    if hasattr(module, "NAMED"):
        module.NAMED = tuple(named)
    about, begin = _machine.about(), time.monotonic()
    found = describe(name, module.measure(), module.TARGETS, getattr(module, "COMPARED", ()))
    measured = {**about, "seconds": round(time.monotonic() - begin), "quick": quick}
    return {"benchmark": name, "measured": measured, **found}


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """All figures with units in their names, and beside them the targets."""
    rows = [("benchmark", "figure", "value", "target", "")]
    for result in results:
        for key, value in _flat(result):
            target = result["targets"].get(key)
            wanted = f"{target['sense']} {target['limit']:g}" if target else ""
            verdict = "" if not target else {True: "ok", False: "MISSED", None: "not measured"}[target["met"]]
            rows.append((str(result["benchmark"]), key, _text(value), wanted, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _flat(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Figures one by one; what is measured for several builds comes with the build's name."""
    for key, value in result.items():
        if key in _NO_FIGURES:
            continue
        if isinstance(value, list):
            for one in value:
                yield from ((f"{one['name']} {inner}", figure) for inner, figure in one.items() if inner != "name")
        else:
            yield key, value


def missed(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures that miss their target."""
    return [
        f"{result['benchmark']}.{key}"
        for result in results
        for key, target in result["targets"].items()
        if target["met"] is False
    ]


def main(name: str, named: str = "") -> int:
    """Entry point of one benchmark: `--json` for programs, else the table. Exit code 1 when a target is missed.

    With `named` the command line takes words of that kind, which `run` is given.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    if named:
        parser.add_argument("named", nargs="*", metavar=named)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it works")
    args = parser.parse_args()
    words = args.named if named else ()
    try:
        result = run(name.rpartition(".")[2], sys.modules["__main__"], quick=args.quick, named=words)
    except NotHere as why:
        print(f"not measured: {why}", file=sys.stderr)
        return 0
    except BadArgument as why:
        print(f"error: {why}", file=sys.stderr)
        return 2
    print(json.dumps(result) if args.json else table([result]), flush=True)
    return 1 if missed([result]) else 0


def note(text: str) -> None:
    """Says on standard error what is going on; standard output is for the result."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else "-" if value is None else str(value)


def _aligned(row: tuple[str, ...], widths: Sequence[int]) -> list[str]:
    return [
        text.rjust(width) if column == 2 else text.ljust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
