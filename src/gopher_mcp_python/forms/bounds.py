"""The first look at a schema: is it JSON, and small enough to be read at all? And what a text and a number may be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from . import limits
from .errors import FormSchemaError

_NUMBER_BOUND = 10**limits.MAX_DIGITS
_CONTAINERS = (dict, list, tuple)
_TOO_DEEP = f"the form is nested too deeply: at most {limits.MAX_DEPTH} levels are read"


def check_bounds(schema: dict[str, Any]) -> None:
    """Raises FormSchemaError for what is no JSON (of dicts, lists and tuples), or is beyond the limits of
    limits.py. Never recurses."""
    _check_size(schema)
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False, check_circular=False)
    except TypeError:
        raise FormSchemaError("the form is no JSON: it holds something that JSON does not have") from None
    except ValueError:
        raise FormSchemaError("the form holds a number that JSON does not have (NaN, infinity ...)") from None
    except RecursionError:
        raise FormSchemaError(_TOO_DEEP) from None
    if len(text) > limits.MAX_CHARACTERS:
        raise FormSchemaError(f"the form holds too much text: at most {limits.MAX_CHARACTERS} characters are read")
    if is_unsendable(text):
        raise FormSchemaError("the form holds half a character (a lone surrogate)")


def _check_size(schema: dict[str, Any]) -> None:
    """The number of values and the depth, level by level."""
    values, level = 1, [schema]
    for _ in range(limits.MAX_DEPTH):
        inside: list[Any] = []
        for container in level:
            values += len(container)
            if values > limits.MAX_VALUES:
                raise FormSchemaError(f"the form holds too much: at most {limits.MAX_VALUES} values are read")
            members: Iterable[Any] = container
            if isinstance(container, dict):
                members = container.values()
                if not all(issubclass(kind, str) for kind in set(map(type, container))):
                    raise FormSchemaError("the form is no JSON: it has a name that is no text")
            inside += [value for value in members if isinstance(value, _CONTAINERS)]
            if any(isinstance(value, int) and not -_NUMBER_BOUND < value < _NUMBER_BOUND for value in members):
                raise FormSchemaError(f"the form holds a number of more than {limits.MAX_DIGITS} digits")
        if not inside:
            return
        level = inside
    raise FormSchemaError(_TOO_DEEP)


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
