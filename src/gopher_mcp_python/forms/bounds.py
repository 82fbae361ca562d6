"""The first look at a schema: is it JSON, and small enough to be read at all?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from . import limits
from .errors import FormSchemaError

_NUMBER_BOUND = 10**limits.MAX_DIGITS


def check_bounds(schema: Any) -> None:
    """Raises FormSchemaError for what is no JSON, or is beyond the limits of limits.py. Never recurses."""
    values = characters = 0
    stack: list[tuple[Any, int]] = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        values += 1
        if values + len(stack) > limits.MAX_VALUES:
            raise FormSchemaError(f"the form holds too much: more than {limits.MAX_VALUES} values are not read")
        if isinstance(value, str):
            characters += _characters(value)
        elif isinstance(value, (dict, list, tuple, Mapping)):
            if depth >= limits.MAX_DEPTH:
                raise FormSchemaError(f"the form is nested too deeply: at most {limits.MAX_DEPTH} levels are read")
            if len(value) > limits.MAX_VALUES:
                raise FormSchemaError(f"the form holds too much: more than {limits.MAX_VALUES} values are not read")
            if isinstance(value, Mapping):
                characters += sum(map(_characters, value))
            stack.extend((inner, depth + 1) for inner in _inside(value))
        else:
            _check_plain(value)
        if characters > limits.MAX_CHARACTERS:
            raise FormSchemaError(f"the form holds too much text: more than {limits.MAX_CHARACTERS} characters")


def is_unsendable(text: str) -> bool:
    """Whether a text holds half a character (a lone surrogate), which has no UTF-8 form."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def is_number(value: Any) -> bool:
    """A number of JSON's: no boolean, no NaN, no infinity, and not of endless length."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and -_NUMBER_BOUND < value < _NUMBER_BOUND


def _inside(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, Mapping) else value)


def _characters(text: Any) -> int:
    if not isinstance(text, str):
        raise FormSchemaError(f"the form is no JSON: it has a name of type {type(text).__name__}")
    if is_unsendable(text):
        raise FormSchemaError("the form holds half a character (a lone surrogate)")
    return len(text)


def _check_plain(value: Any) -> None:
    if value is None or isinstance(value, bool) or is_number(value):
        return
    if isinstance(value, (int, float)):
        raise FormSchemaError(
            f"the form holds a number that JSON does not have (NaN, infinity), or of over {limits.MAX_DIGITS} digits"
        )
    raise FormSchemaError(f"the form is no JSON: it holds a {type(value).__name__}")
