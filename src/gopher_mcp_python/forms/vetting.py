"""A schema before it is judged as a whole (judge.py): every part of it is one that the judge can be trusted with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import limits
from .bounds import is_number
from .errors import FormSchemaError
from .refs import resolve

_MAPS = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMAS = frozenset(
    "items not if then else additionalProperties additionalItems contains propertyNames unevaluatedItems "
    "unevaluatedProperties contentSchema".split()
)
_COUNTS = frozenset("minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split())
_NUMBERS = frozenset(("minimum", "maximum", "multipleOf"))
_REFUSED = tuple("patternProperties $dynamicRef $recursiveRef $anchor $dynamicAnchor $recursiveAnchor $id id".split())


def vet(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as plain dicts and lists, without its $id. Raises FormSchemaError for a part that can't be judged."""
    plain = {keyword: value for keyword, value in _plain(schema).items() if keyword not in ("$id", "id")}
    root = {**plain, "$id": schema["$id"]} if "$id" in schema else plain
    patterns: set[str] = set()
    visited: set[int] = set()
    stack: list[Any] = [plain]
    while stack:
        part = stack.pop()
        if isinstance(part, bool) or id(part) in visited:
            continue
        if not isinstance(part, dict):
            raise FormSchemaError(f"the form has a rule that is no schema but a {type(part).__name__}")
        visited.add(id(part))
        _check(part, patterns)
        if "$ref" in part:
            stack.append(resolve(root, part["$ref"], "the form"))
            part["$ref"] = "#" + part["$ref"].partition("#")[2]
        stack.extend(_inside(part))
    return plain


def _plain(value: Any) -> Any:
    """Copies; the depth is bounded (bounds.py)."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _check(part: dict[str, Any], patterns: set[str]) -> None:
    refused = next((keyword for keyword in _REFUSED if isinstance(part.get(keyword), (str, dict))), None)
    if refused is not None:
        raise FormSchemaError(f"the form uses {refused}, which is not understood here")
    for keyword in part.keys() & _COUNTS:
        if not is_number(part[keyword]) or part[keyword] < 0 or part[keyword] != int(part[keyword]):
            raise FormSchemaError(f"the form has a {keyword} that is no whole number of 0 or more")
    for keyword in part.keys() & _NUMBERS:
        if not is_number(part[keyword]) or (keyword == "multipleOf" and part[keyword] <= 0):
            raise FormSchemaError(f"the form has a {keyword} that is no number for it")
    if "pattern" in part:
        _check_pattern(part["pattern"], patterns)


def _check_pattern(source: Any, seen: set[str]) -> None:
    from .pattern import PatternError, compile_pattern

    if not isinstance(source, str) or len(source) > limits.MAX_PATTERN:
        raise FormSchemaError(f"the form has a pattern that is no text of at most {limits.MAX_PATTERN} characters")
    if source in seen:
        return
    seen.add(source)
    if sum(map(len, seen)) > limits.MAX_ALL_PATTERNS:
        raise FormSchemaError(f"the form has patterns of more than {limits.MAX_ALL_PATTERNS} characters")
    try:
        compile_pattern(source)
    except PatternError as error:
        raise FormSchemaError(f"the form has a pattern that can't be used: {error}") from None


def _inside(part: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas right below a schema."""
    for keyword, value in part.items():
        if keyword in _MAPS:
            yield from _values(value, keyword)
        elif keyword in _LISTS or (keyword == "items" and isinstance(value, list)):
            if not isinstance(value, list) or not value:
                raise FormSchemaError(f"the form has {keyword} without a list of schemas")
            yield from value
        elif keyword in _SCHEMAS:
            yield value
        elif keyword == "dependencies":
            yield from (inner for inner in _values(value, keyword) if not isinstance(inner, list))


def _values(value: Any, keyword: str) -> list[Any]:
    if not isinstance(value, dict):
        raise FormSchemaError(f"the form's {keyword} is no object")
    return list(value.values())
