"""What a person typed into a field, as a value. Every ValueError holds a sentence for people, without the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from . import limits
from .choices import Option
from .fields import MISSING, Field
from .rules import Broken, Watch, cleaned

_YES = frozenset(("yes", "y", "true", "on", "1"))
_NO = frozenset(("no", "n", "false", "off", "0"))
_NONE = "none"
_SIGNS = {0x2212: "-", 0xFF0B: "+", 0xFF0D: "-", 0xFF0E: ".", **{0xFF10 + digit: str(digit) for digit in range(10)}}
# Formats whose texts neither begin nor end with a blank: one that was pasted along goes unseen.
_WITHOUT_BLANKS = frozenset(
    "email idn-email uri uri-reference iri iri-reference date date-time time duration uuid hostname idn-hostname ipv4 "
    "ipv6".split()
)
_AROUND = re.compile(r"\s*([.+\-eE])\s*")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:\s[0-9]{3})+(?:\.[0-9]+)?\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?\Z")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\Z', re.DOTALL)
_PIECE = re.compile(r'\s*("(?:[^"\\]|\\.)*"(?=\s*(?:,|\Z))|[^,]*)\s*(?:,|\Z)')


def parse(field: Field, text: str) -> Any:
    """See Field.parse."""
    if len(text) > limits.MAX_TEXT:
        raise ValueError(f"must not be longer than {limits.MAX_TEXT} characters")
    bare = text.strip()
    if not bare or (bare.casefold() == _NONE and _none_is_no_answer(field)):
        return _nothing(field)
    value = _value(field, text, bare)
    try:
        return cleaned(field, value, Watch())
    except Broken as broken:
        raise ValueError(str(broken)) from None


def _none_is_no_answer(field: Field) -> bool:
    """Whether "none" means "no answer". An option of that name can be chosen; a text "none" can be sent."""
    if any(_NONE in (option.title.casefold(), str(option.value).casefold()) for option in field.options):
        return False
    return field.kind != "string" or field.nullable


def _nothing(field: Field) -> Any:
    if not field.required:
        return MISSING
    if field.kind == "choices" and not field.min_items:
        return []
    if field.kind == "string" and not field.nullable:
        raise ValueError('needs an answer ("" stands for an empty text)')
    raise ValueError("needs an answer")


def _value(field: Field, text: str, bare: str) -> Any:
    if field.kind == "choices":
        return _several(field, bare)
    if field.kind == "choice":
        return _option(field.options, bare)
    if field.kind == "boolean":
        return _boolean(bare)
    if field.kind in ("number", "integer"):
        return _number(bare, whole=field.kind == "integer")
    if bare == '""':
        return ""
    return bare if field.format in _WITHOUT_BLANKS else text


def _boolean(bare: str) -> bool:
    word = bare.casefold()
    if word not in _YES | _NO:
        raise ValueError("must be yes or no")
    return word in _YES


def _number(bare: str, *, whole: bool) -> float:
    must = "must be a whole number" if whole else "must be a number"
    if len(bare) > limits.MAX_DIGITS + 10:
        raise ValueError(f"must not have more than {limits.MAX_DIGITS} digits")
    plain = _AROUND.sub(r"\1", bare.translate(_SIGNS))
    if _GROUPED.match(plain):
        plain = "".join(plain.split())
    if not _NUMBER.match(plain):
        hint = ", with a point before the decimals" if "," in plain and not whole else ""
        raise ValueError(f"{must}{hint}")
    number = Decimal(plain)
    if number.adjusted() > limits.MAX_DIGITS or not number:
        return _zero_or_too_long(number)
    if number.adjusted() >= -limits.MAX_DIGITS and number == number.to_integral_value():
        return int(number)
    if whole:
        raise ValueError(must)
    return _decimal(number)


def _decimal(number: Decimal) -> float:
    """A number with decimals as it is sent. Raises ValueError where that would be another one than was typed."""
    sent = float(number)
    if Decimal(repr(sent)) == number:
        return sent
    if not sent:
        raise ValueError("is too close to 0 to be sent; 0 itself can be")
    raise ValueError("has too many digits to be sent exactly: with decimals, up to 15 can always be")


def _zero_or_too_long(number: Decimal) -> int:
    if number:
        raise ValueError(f"must not have more than {limits.MAX_DIGITS} digits")
    return 0


def _several(field: Field, bare: str) -> list[Any]:
    """Items between commas; quotes keep a comma inside one. A title that has a comma may stand alone without quotes."""
    if not field.options:
        return [_unquoted(piece) for piece in _pieces(bare)]
    if bare.casefold() in {option.title.casefold() for option in field.options}:
        return [_option(field.options, bare)]
    chosen = [_option(field.options, piece) for piece in _pieces(bare)]
    return list(dict.fromkeys(chosen))


def _pieces(bare: str) -> Iterator[str]:
    at = 0
    while at < len(bare):
        found = _PIECE.match(bare, at)
        assert found is not None
        at = found.end()
        if found[1].strip():
            yield found[1].strip()


def _unquoted(piece: str) -> str:
    quoted = _QUOTED.match(piece)
    return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL) if quoted else piece


def _option(options: tuple[Option, ...], piece: str) -> Any:
    """The option that a number, a title or a value names. Raises ValueError when it is none, or might be two."""
    text = _unquoted(piece)
    quoted = text != piece
    named = (_titled(options, text) if quoted else []) or _named(options, text)
    numbered = [] if quoted else _numbered(options, piece)
    if piece.startswith("#") and numbered:
        named = []
    found = {id(option): option for option in (*named, *numbered)}
    if len(found) == 1:
        return next(iter(found.values())).value
    if found:
        otherwise = "" if quoted else ", or its title in quotes"
        raise ValueError(f'could be more than one option; write its number as "#1"{otherwise}')
    raise ValueError(f"must be an option of the list: its number (1 to {len(options)}) or its title")


def _named(options: tuple[Option, ...], text: str) -> list[Option]:
    """Options of that title or value; the letters' case counts only if there are several."""
    exact = [option for option in options if text in (option.title, str(option.value))]
    folded = text.casefold()
    return exact or [one for one in options if folded in (one.title.casefold(), str(one.value).casefold())]


def _titled(options: tuple[Option, ...], text: str) -> list[Option]:
    """Options of that title, which in quotes goes before another one's value."""
    exact = [option for option in options if option.title == text]
    return exact or [option for option in options if option.title.casefold() == text.casefold()]


def _numbered(options: tuple[Option, ...], piece: str) -> list[Option]:
    digits = piece.removeprefix("#")
    if not re.fullmatch("[0-9]{1,6}", digits) or not 1 <= int(digits) <= len(options):
        return []
    return [options[int(digits) - 1]]
