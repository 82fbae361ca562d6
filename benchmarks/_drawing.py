"""Plots as SVG without any library: lines, words, two kinds of charts. The same input gives the same bytes.

Each picture has a white ground of its own, so that it can be read on a dark page, too. Nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10
from xml.sax.saxutils import escape, quoteattr

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#882255")
"""Told apart by people who see colours differently, too (Okabe and Ito)."""
DASHES = ("", "7 3", "2 3", "9 3 2 3")
_WIDTH = 900
_GRID, _STRONG, _TEXT, _QUIET, _BAD = "#dddddd", "#555555", "#111111", "#555555", "#b00020"


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, with lines and words at `ticks`; what lies outside is shown at the edge. `strong`: ticks
    whose line stands out."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = True
    strong: Sequence[float] = ()

    def place(self, value: float, start: float, end: float) -> float:
        """Where the value is between two places of the picture."""
        value, low, high = min(max(value, self.low), self.high), self.low, self.high
        if self.log:
            value, low, high = log10(value), log10(low), log10(high)
        return start + (value - low) / (high - low) * (end - start)

    def line(self, value: float) -> str:
        """The attributes of a tick's line."""
        return f'stroke="{_STRONG}" stroke-width="2"' if value in self.strong else f'stroke="{_GRID}"'


@dataclass(frozen=True)
class Curve:
    """A line through points. `points` False: the line alone, as for what is only a yardstick."""

    label: str
    at: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""
    points: bool = False


@dataclass(frozen=True)
class Mark:
    """A point in a row: its place in COLOURS and among the shapes is `series`."""

    value: float
    series: int = 0


@dataclass(frozen=True)
class Row:
    """One row: its name, points, what has to be reached (a line) and what was aimed at (a broken line), and words.
    `base`: a bar goes from there to the first point. `missed` is said after the words."""

    label: str
    marks: Sequence[Mark]
    targets: Sequence[float] = ()
    goals: Sequence[float] = ()
    text: str = ""
    base: float | None = None
    missed: bool = False


class Picture:
    """An SVG on its way."""

    def __init__(self, title: str, width: int, height: int) -> None:
        self._lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'font-size="13" fill="{_TEXT}" role="img" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        ]

    def text(self, x: float, y: float, text: str, more: str = "") -> None:
        """Words, with attributes."""
        self._lines.append(f'<text x="{x:.1f}" y="{y:.1f}"{" " * bool(more)}{more}>{escape(text)}</text>')

    def path(self, path: str, more: str) -> None:
        """A line, with attributes."""
        self._lines.append(f'<path d="{path}" {more}/>')

    def shape(self, x: float, y: float, series: int) -> None:
        """A point: circle, square, diamond, triangle."""
        outline = (
            f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
            f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
            f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
            f"M{x:.1f} {y - 6:.1f}l5.5 10h-11z",
        )[series % 4]
        self.path(outline, f'fill="{COLOURS[series % len(COLOURS)]}" stroke="#ffffff"')

    def svg(self) -> str:
        """The picture's text."""
        return "\n".join([*self._lines, "</svg>", ""])


def curves(some: Sequence[Curve], x: Axis, y: Axis, *, title: str) -> str:
    """Lines over two axes, with a legend at the right."""
    left, top, right, bottom = 116, 44, 600, 410
    picture = Picture(title, _WIDTH, 470)
    picture.text(left, 24, title, 'font-size="15" font-weight="bold"')
    for value, word in x.ticks:
        place = x.place(value, left, right)
        picture.path(f"M{place:.1f} {top}V{bottom}", x.line(value))
        picture.text(place, bottom + 20, word, 'text-anchor="middle"')
    for value, word in y.ticks:
        place = y.place(value, bottom, top)
        picture.path(f"M{left} {place:.1f}H{right}", y.line(value))
        picture.text(left - 8, place + 4, word, 'text-anchor="end"')
    picture.text((left + right) / 2, 452, x.label, 'text-anchor="middle"')
    middle = (top + bottom) / 2
    picture.text(20, middle, y.label, f'text-anchor="middle" transform="rotate(-90 20 {middle:.1f})"')
    for number, curve in enumerate(some):
        dash = f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
        style = f'stroke="{curve.colour}" stroke-width="2.2" fill="none"{dash}'
        places = [(x.place(one, left, right), y.place(value, bottom, top)) for one, value in curve.at]
        picture.path("M" + "L".join(f"{one:.1f} {other:.1f}" for one, other in places), style)
        row = top + 20 + number * 24
        picture.path(f"M{right + 20} {row}h34", style)
        for one, other in [*places, (right + 37, row)] if curve.points else []:
            picture.path(f"M{one - 4:.1f} {other:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", f'fill="{curve.colour}"')
        picture.text(right + 62, row + 4, curve.label)
    return picture.svg()


def rows(some: Sequence[Row], axis: Axis, *, title: str, words: str, series: Sequence[str] = ()) -> str:
    """A row for each: points over one axis, with words at the right, whose head is `words`. `series` names the points'
    shapes."""
    left, right, top, step = 350, 662, 50, 26
    bottom = top + step * len(some)
    picture = Picture(title, _WIDTH, bottom + 84)
    picture.text(16, 24, title, 'font-size="15" font-weight="bold"')
    picture.text(right + 12, 40, words, f'font-size="12" fill="{_QUIET}"')
    for value, word in axis.ticks:
        place = axis.place(value, left, right)
        picture.path(f"M{place:.1f} {top}V{bottom}", axis.line(value))
        picture.text(place, bottom + 18, word, f'text-anchor="middle" font-size="12" fill="{_QUIET}"')
    picture.text((left + right) / 2, bottom + 40, axis.label, 'text-anchor="middle"')
    for number, row in enumerate(some):
        _row(picture, row, top + step * (number + 0.5), lambda value: axis.place(value, left, right), left, right)
    _legend(picture, series, bottom + 68, any(row.targets for row in some), any(row.goals for row in some))
    return picture.svg()


def _row(picture: Picture, row: Row, y: float, place: Callable[[float], float], left: int, right: int) -> None:
    picture.text(left - 10, y + 4, row.label, 'text-anchor="end" font-size="12"')
    if row.base is not None and row.marks:
        begin, end = sorted((place(row.base), place(row.marks[0].value)))
        picture.path(f"M{begin:.1f} {y - 6:.1f}H{end:.1f}v12H{begin:.1f}z", f'fill="{COLOURS[5]}"')
    for goal in row.goals:
        picture.path(f"M{place(goal):.1f} {y - 11:.1f}v22", f'stroke="{_TEXT}" stroke-width="2" stroke-dasharray="3 3"')
    for target in row.targets:
        picture.path(f"M{place(target):.1f} {y - 11:.1f}v22", f'stroke="{_TEXT}" stroke-width="2.5"')
    for mark in row.marks:
        aside = 0 if len(row.marks) == 1 else (mark.series - 1) * 5  # so that none covers another
        picture.shape(place(mark.value), y + aside, mark.series)
    picture.text(right + 12, y + 4, row.text, 'font-size="12"')
    if row.missed:
        picture.text(_WIDTH - 10, y + 4, "missed", f'text-anchor="end" font-size="12" font-weight="bold" fill="{_BAD}"')


def _legend(picture: Picture, series: Sequence[str], y: float, targets: bool, goals: bool) -> None:
    x = 24.0
    for number, name in enumerate(series):
        picture.shape(x, y - 4, number)
        picture.text(x + 12, y, name, 'font-size="12"')
        x += 40 + 6.6 * len(name)
    for shown, dash, name in ((targets, "", "to be reached"), (goals, ' stroke-dasharray="3 3"', "aimed at first")):
        if shown:
            picture.path(f"M{x:.1f} {y - 15:.1f}v22", f'stroke="{_TEXT}" stroke-width="2.5"{dash}')
            picture.text(x + 12, y, name, 'font-size="12"')
            x += 40 + 6.6 * len(name)
