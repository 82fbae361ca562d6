"""The keywords of JSON Schema, drafts 4 to 2020-12, as the judge sees them: each a function that says whether a value
keeps the rule. Their arguments have the right shape (vetting.py); a rule about another type of value always holds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sized
from functools import lru_cache
from typing import Any

from . import keywords_inside as inside
from . import numbers
from .judging import Run, Spot

Check = Callable[[Run, Any, Spot], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


# ---- rules of one value ---------------------------------------------------------------------------------------------


def _type(run: Run, argument: Any, spot: Spot) -> bool:
    names = [argument] if isinstance(argument, str) else argument
    run.charge(len(names))
    return any(_KINDS[name](spot.value) for name in names)


def _const(run: Run, argument: Any, spot: Spot) -> bool:
    return run.equal(argument, spot.value)


def _enum(run: Run, argument: list[Any], spot: Spot) -> bool:
    return any(run.equal(each, spot.value) for each in argument)


def _size(kind: type[Sized], holds: Callable[[Any, Any], bool]) -> Check:
    return lambda run, argument, spot: not isinstance(spot.value, kind) or holds(len(spot.value), argument)


def _bound(
    holds: Callable[[Any, Any], bool], exclusive: str = "", otherwise: Callable[[Any, Any], bool] | None = None
) -> Check:
    """`exclusive` is the keyword that, as true, makes it the bound `otherwise` (draft 4)."""

    def check(run: Run, argument: Any, spot: Spot) -> bool:
        if not _is_number(spot.value) or isinstance(argument, bool):
            return True
        draft_4 = otherwise is not None and spot.schema.get(exclusive) is True
        return (otherwise if draft_4 and otherwise else holds)(spot.value, argument)

    return check


def _multiple_of(run: Run, argument: Any, spot: Spot) -> bool:
    run.charge(20)
    return not _is_number(spot.value) or numbers.is_multiple(spot.value, numbers.exact(argument))


def _pattern(run: Run, argument: str, spot: Spot) -> bool:
    return not isinstance(spot.value, str) or run.search(argument, spot.value)


def _format(run: Run, argument: str, spot: Spot) -> bool:
    from .formats import check_format

    if not isinstance(spot.value, str):
        return True
    run.charge(10 + len(spot.value) // 5)
    return check_format(argument, spot.value) is None


def _unique_items(run: Run, argument: Any, spot: Spot) -> bool:
    if argument is not True or not isinstance(spot.value, list):
        return True
    run.charge(len(spot.value))
    return len(set(map(numbers.key, spot.value))) == len(spot.value)  # an answer's lists hold texts


# ---- which version has which ----------------------------------------------------------------------------------------

_CHECKS: dict[str, Check] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "minLength": _size(str, operator.ge),
    "maxLength": _size(str, operator.le),
    "minItems": _size(list, operator.ge),
    "maxItems": _size(list, operator.le),
    "minProperties": _size(dict, operator.ge),
    "maxProperties": _size(dict, operator.le),
    "minimum": _bound(operator.ge, "exclusiveMinimum", operator.gt),
    "maximum": _bound(operator.le, "exclusiveMaximum", operator.lt),
    "exclusiveMinimum": _bound(operator.gt),
    "exclusiveMaximum": _bound(operator.lt),
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "format": _format,
    "uniqueItems": _unique_items,
    "$ref": inside.ref,
    "allOf": inside.all_of,
    "anyOf": inside.any_of,
    "oneOf": inside.one_of,
    "not": inside.not_,
    "if": inside.if_,
    "required": inside.required,
    "dependentRequired": inside.depend,
    "dependentSchemas": inside.depend,
    "dependencies": inside.depend,
    "properties": inside.properties,
    "additionalProperties": inside.additional,
    "unevaluatedProperties": inside.unevaluated,
    "propertyNames": inside.property_names,
    "items": inside.items,
    "prefixItems": inside.prefix_items,
    "additionalItems": inside.additional_items,
    "contains": inside.contains,
    "unevaluatedItems": inside.unevaluated_items,
}
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames", "exclusiveMinimum", "exclusiveMaximum"), 6),
    "if": 7,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"), 2019),
    "prefixItems": 2020,
}
# `dependencies` is none since 2019-09, but many writers leave $schema out, and Ajv minds it in every version.
_UNTIL = {"additionalItems": 2019}


@lru_cache
def checks_of(version: int) -> dict[str, Check]:
    """The keywords of a version: 4, 6, 7, 2019 (-09) or 2020 (-12)."""
    return {
        keyword: check
        for keyword, check in _CHECKS.items()
        if _SINCE.get(keyword, 0) <= version <= _UNTIL.get(keyword, version)
    }
