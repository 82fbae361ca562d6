"""Numbers as JSON Schema sees them: 1.0 is a whole number, 1 and 1.0 are equal, True is none, 0.3 is three tenths."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

_SHOWN = 30  # digits of a number in a sentence


def exact(value: float) -> Fraction:
    """The decimal number that is written in JSON, exactly: 0.1 is one tenth, not the double next to it."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def is_multiple(value: float, of: Fraction) -> bool:
    """`multipleOf`, in decimals: 0.07 is a multiple of 0.01 (in binary it is not)."""
    return exact(value) % of == 0


def key(value: Any) -> tuple[str, Any]:
    """Equal for values that JSON Schema calls equal: 1 and 1.0, but not 1 and True."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, str):
        return "string", value
    return "number", value


def shown(value: Any) -> str:
    """A number in a sentence: of a few hundred digits, only how large it is."""
    text = plain(value)
    return text if len(text) <= _SHOWN else f"about {Decimal(value):.3e}"


def plain(value: Any) -> str:
    """A number for people: 5 rather than 5.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
