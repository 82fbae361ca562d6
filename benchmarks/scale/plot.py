"""Curves on two logarithmic scales, as SVG. No library: a few lines and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

_WIDTH, _HEIGHT = 870, 470
_LEFT, _TOP, _RIGHT, _BOTTOM = 96, 40, 590, 410
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#882255")
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_LOW, _HIGH = 1e-3, 1e4
"""What is shown of use: 0.1 % to 10,000 times the limit."""


def curves(points: Mapping[str, Sequence[tuple[float, float]]], *, title: str) -> str:
    """The picture. `points` by label: users, and use as a share of the limit."""
    users = [one for some in points.values() for one, _ in some]
    first, last = log10(min(users)), log10(max(users))

    def x(value: float) -> float:
        return _LEFT + (log10(value) - first) / (last - first) * (_RIGHT - _LEFT)

    def y(value: float) -> float:
        shown = min(max(value, _LOW), _HIGH)
        return _BOTTOM - (log10(shown) - log10(_LOW)) / (log10(_HIGH) - log10(_LOW)) * (_BOTTOM - _TOP)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="13" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="bold">{title}</text>',
    ]
    for power in range(round(first), round(last) + 1):
        place = x(10.0**power)
        lines.append(f'<path d="M{place:.1f} {_TOP}V{_BOTTOM}" stroke="#dddddd"/>')
        lines.append(f'<text x="{place:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{10**power:,}</text>')
    for power in range(round(log10(_LOW)), round(log10(_HIGH)) + 1):
        place, value = y(10.0**power), 10.0**power
        text = f"{value * 100:g} %" if value <= 1 else f"{value:,.0f} times"
        full = 'stroke="#555555" stroke-width="2"' if power == 0 else 'stroke="#dddddd"'
        lines.append(f'<path d="M{_LEFT} {place:.1f}H{_RIGHT}" {full}/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{text}</text>')
    lines.append(f'<text x="{(_LEFT + _RIGHT) / 2:.0f}" y="{_HEIGHT - 18}" text-anchor="middle">users at once</text>')
    for place, (label, some) in enumerate(points.items()):
        colour, dash = _COLOURS[place % len(_COLOURS)], _DASHES[place % len(_DASHES)]
        style = f'stroke="{colour}" stroke-width="2.2" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")
        path = "L".join(f"{x(one):.1f} {y(value):.1f}" for one, value in some)
        row = _TOP + 20 + place * 24
        lines.append(f'<path d="M{path}" {style}/>')
        lines.append(f'<path d="M{_RIGHT + 20} {row}h34" {style}/>')
        lines.append(f'<text x="{_RIGHT + 62}" y="{row + 4}">{label}</text>')
    return "\n".join([*lines, "</svg>", ""])
