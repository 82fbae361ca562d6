"""A schema before it is judged as a whole (judge.py): every part of it is one that the judge understands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import limits
from .bounds import is_number
from .errors import FormSchemaError
from .flatten import TYPES, said
from .refs import resolve

if TYPE_CHECKING:
    from .pattern import Pattern

_MAPS = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMAS = frozenset(
    "items not if then else additionalProperties additionalItems contains propertyNames unevaluatedItems "
    "unevaluatedProperties contentSchema".split()
)
_REFUSED = tuple("patternProperties $dynamicRef $recursiveRef $anchor $dynamicAnchor $recursiveAnchor $id id".split())


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _is_bound(value: Any) -> bool:
    return isinstance(value, bool) or is_number(value)  # draft 4 says true and false


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return all(isinstance(name, str) and name in TYPES for name in names)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_demands(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


_COUNTS = tuple("minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split())
_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(_COUNTS, (_is_count, "whole number of 0 or more")),
    **dict.fromkeys(("minimum", "maximum"), (is_number, "number for it")),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), (_is_bound, "number for it")),
    "multipleOf": (lambda value: is_number(value) and value > 0, "number for it"),
    "type": (_is_type, "type of JSON Schema"),
    "enum": (lambda value: isinstance(value, list), "list"),
    # `required: true` is draft 3's way of saying it, and demands nothing in any later one
    "required": (lambda value: isinstance(value, bool) or _is_names(value), "list of names"),
    "dependentRequired": (_is_demands, "object with lists of names"),
    "format": (lambda value: isinstance(value, str), "text"),
}


class Vetted:
    """A schema that the judge can be trusted with.

    Attributes:
        schema: as plain dicts and lists, without its $id.
        targets: what each `$ref` leads to.
        patterns: compiled, by their text.
        keywords: all that stand anywhere in it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises FormSchemaError for a part that can't be judged."""
        self.schema = {keyword: value for keyword, value in _plain(schema).items() if keyword not in ("$id", "id")}
        self.targets: dict[str, Any] = {}
        self.patterns: dict[str, Pattern] = {}
        self.keywords: set[str] = set()
        self._characters = 0
        self._root = {**self.schema, "$id": schema["$id"]} if "$id" in schema else self.schema
        visited: set[int] = set()
        stack: list[Any] = [self.schema]
        while stack:
            part = stack.pop()
            if isinstance(part, bool) or id(part) in visited:
                continue
            if not isinstance(part, dict):
                raise FormSchemaError(f"the form has a rule that is no schema but a {type(part).__name__}")
            visited.add(id(part))
            stack.extend(self._look_at(said(part)))

    def _look_at(self, part: Mapping[str, Any]) -> Iterator[Any]:
        """Checks one schema, and gives the schemas right below it."""
        self.keywords.update(part)
        refused = next((keyword for keyword in _REFUSED if isinstance(part.get(keyword), (str, dict))), None)
        if refused is not None:
            raise FormSchemaError(f"the form uses {refused}, which is not understood here")
        for keyword in part.keys() & _SHAPES.keys():
            fits, what = _SHAPES[keyword]
            if not fits(part[keyword]):
                raise FormSchemaError(f"the form has a {keyword} that is no {what}")
        if "pattern" in part:
            self._compile(part["pattern"])
        if "$ref" in part:
            target = resolve(self._root, part["$ref"], "the form")
            self.targets[part["$ref"]] = self.schema if target is self._root else target
            yield self.targets[part["$ref"]]
        yield from _inside(part)

    def _compile(self, source: Any) -> None:
        from .pattern import PatternError, compile_pattern

        if not isinstance(source, str) or len(source) > limits.MAX_PATTERN:
            raise FormSchemaError(f"the form has a pattern that is no text of at most {limits.MAX_PATTERN} characters")
        if source in self.patterns:
            return
        self._characters += len(source)
        if self._characters > limits.MAX_ALL_PATTERNS:
            raise FormSchemaError(f"the form has patterns of more than {limits.MAX_ALL_PATTERNS} characters")
        try:
            self.patterns[source] = compile_pattern(source)
        except PatternError as error:
            raise FormSchemaError(f"the form has a pattern that can't be used: {error}") from None


def _plain(value: Any) -> Any:
    """Copies; the depth is bounded (bounds.py)."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


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
            yield from (inner for inner in _values(value, keyword) if not _is_names(inner))


def _values(value: Any, keyword: str) -> list[Any]:
    if not isinstance(value, dict):
        raise FormSchemaError(f"the form's {keyword} is no object")
    return list(value.values())
