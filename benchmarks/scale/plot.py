"""The picture of docs/scale.md: curves on two logarithmic scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log10

from benchmarks import _drawing
from benchmarks._drawing import COLOURS, DASHES, Axis, Curve

_LOW, _HIGH = 1e-3, 1e4
"""What is shown of use: 0.1 % to 10,000 times the limit."""


def curves(points: Mapping[str, Sequence[tuple[float, float]]], *, title: str) -> str:
    """The picture. `points` by label: users, and use as a share of the limit."""
    users = [one for some in points.values() for one, _ in some]
    x = Axis("users at once", min(users), max(users), _powers(min(users), max(users), lambda value: f"{value:,.0f}"))
    y = Axis("use, as a share of the limit", _LOW, _HIGH, _powers(_LOW, _HIGH, _share), strong=(1.0,))
    some = [
        Curve(label, at, COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)])
        for place, (label, at) in enumerate(points.items())
    ]
    return _drawing.curves(some, x, y, title=title)


def _powers(low: float, high: float, word: Callable[[float], str]) -> list[tuple[float, str]]:
    return [(10.0**power, word(10.0**power)) for power in range(round(log10(low)), round(log10(high)) + 1)]


def _share(value: float) -> str:
    return f"{value * 100:g} %" if value <= 1 else f"{value:,.0f} times"
