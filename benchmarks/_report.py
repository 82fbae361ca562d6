"""What every benchmark shares: medians, targets, the JSON object, the table.

A benchmark module calls `main(__name__, measure, TARGETS)`; `measure` returns a flat mapping of figures and ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    """What a figure has to reach."""

    key: str
    sense: Literal["<=", ">="]
    limit: float
    what: str

    def met(self, figures: Mapping[str, Any]) -> bool | None:
        """Whether it is reached; None when this machine could not measure it."""
        value = figures.get(self.key)
        if value is None:
            return None
        return bool(value <= self.limit) if self.sense == "<=" else bool(value >= self.limit)


def median(values: Sequence[float]) -> float:
    """The middle value: one slow turn does not move it."""
    return statistics.median(values)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """`digits` significant digits; more are noise."""
    return None if value is None else float(f"{value:.{digits}g}")


def describe(name: str, figures: Mapping[str, Any], targets: Sequence[Target]) -> dict[str, Any]:
    """The JSON object of one benchmark: its figures, then how they stand to the targets."""
    judged = {
        target.key: {"sense": target.sense, "limit": target.limit, "what": target.what, "met": target.met(figures)}
        for target in targets
    }
    return {"benchmark": name, **figures, "targets": judged}


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """All figures with units in their names, and beside them the targets."""
    rows = [("benchmark", "figure", "value", "target", "")]
    for result in results:
        for key, value in result.items():
            if key in ("benchmark", "targets"):
                continue
            target = result["targets"].get(key)
            wanted = f"{target['sense']} {target['limit']:g}" if target else ""
            verdict = "" if not target else {True: "ok", False: "MISSED", None: "not measured"}[target["met"]]
            rows.append((str(result["benchmark"]), key, _text(value), wanted, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def missed(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures that miss their target."""
    return [
        f"{result['benchmark']}.{key}"
        for result in results
        for key, target in result["targets"].items()
        if target["met"] is False
    ]


def main(name: str, measure: Callable[[], Mapping[str, Any]], targets: Sequence[Target]) -> int:
    """Entry point of one benchmark: `--json` for programs, else the table. Exit code 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    result = describe(name.rpartition(".")[2], measure(), targets)
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
