"""A flat schema (flatten.py) as a Field: its kind, its texts, its rules, its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import limits
from .bounds import is_number
from .choices import Option, read_options
from .errors import FormSchemaError
from .fields import MISSING, Field, FieldKind, label_of
from .flatten import JUDGED, PRIMITIVES, Flattener, article
from .rules import Broken, Watch, cleaned

if TYPE_CHECKING:
    from .pattern import Pattern

_COUNTS = {"minLength": "min_length", "maxLength": "max_length"}
_ITEM_COUNTS = {"minItems": "min_items", "maxItems": "max_items"}
_BOUNDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
}
_SINGLE: tuple[FieldKind, ...] = ("string", "number", "integer", "boolean")
_OF_TEXT = frozenset(("minLength", "maxLength", "pattern", "format"))
_OF_LISTS = frozenset(("items", "minItems", "maxItems", "uniqueItems"))
_OF_OBJECTS = frozenset(("properties", "required", "additionalProperties", "minProperties", "maxProperties"))


class FieldReader:
    """Reads the fields of one form; what they may cost together is counted here."""

    def __init__(self, flattener: Flattener) -> None:
        self._flattener = flattener
        self._patterns: dict[str, Pattern] = {}
        self._pattern_characters = 0
        self._options = 0

    def read(self, name: str, schema: Any, required: bool) -> Field:
        """One field. Raises FormSchemaError, with its name."""
        where = f"the field {label_of(name)}"
        flat = self._flattener.flat(schema, where)
        self._flattener.judged |= not JUDGED.isdisjoint(flat)
        options = self._options_of(flat, where)
        kind = _kind(flat, options, where)
        read: dict[str, Any] = {
            "name": name,
            "kind": kind,
            "title": _text(flat, "title", limits.MAX_TITLE, where),
            "description": _text(flat, "description", limits.MAX_DESCRIPTION, where),
            "required": required,
            "nullable": flat.get("nullable") is True or "null" in flat.get("type", ()),
            "options": _of_boolean(flat, options or ()) if kind == "boolean" else options or (),
        }
        if kind == "choices":
            read |= self._list_rules(flat, where)
        else:
            read |= self._rules(flat, kind, where)
        field = Field(**read)
        default = _default(field, flat.get("default"))
        return field if default is MISSING else Field(**read, default=default)

    def _options_of(self, flat: Mapping[str, Any], where: str) -> tuple[Option, ...] | None:
        options = read_options(flat, where, self._flattener)
        self._options += len(options or ())
        if self._options > limits.MAX_ALL_OPTIONS:
            raise FormSchemaError(f"the form offers more than {limits.MAX_ALL_OPTIONS} options, at {where}")
        return options

    def _rules(self, flat: Mapping[str, Any], kind: FieldKind, where: str) -> dict[str, Any]:
        """The rules for one text or number; a choice may be of both."""
        rules: dict[str, Any] = {}
        if kind in ("number", "integer", "choice"):
            rules |= {ours: _number(flat, theirs, where) for theirs, ours in _BOUNDS.items()}
            _old_exclusive(flat, rules)
            if rules["multiple_of"] is not None and rules["multiple_of"] <= 0:
                raise FormSchemaError(f"{where} has a multipleOf that is not more than 0")
        if kind in ("string", "choice"):
            rules |= {ours: _counted(flat, theirs, where) for theirs, ours in _COUNTS.items()}
            rules["format"] = _string(flat, "format", where)
            rules |= self._pattern(flat, where)
        return {name: value for name, value in rules.items() if value is not None}

    def _pattern(self, flat: Mapping[str, Any], where: str) -> dict[str, Any]:
        source = _string(flat, "pattern", where)
        return {} if source is None else {"pattern": source, "compiled": self._compiled(source, where)}

    def _compiled(self, source: str, where: str) -> Pattern:
        from .pattern import PatternError, compile_pattern

        if source not in self._patterns:
            self._pattern_characters += len(source)
            if len(source) > limits.MAX_PATTERN:
                raise FormSchemaError(f"{where} has a pattern of more than {limits.MAX_PATTERN} characters")
            if self._pattern_characters > limits.MAX_ALL_PATTERNS:
                raise FormSchemaError(
                    f"the form has patterns of more than {limits.MAX_ALL_PATTERNS} characters, at {where}"
                )
            try:
                self._patterns[source] = compile_pattern(source)
            except PatternError as error:
                raise FormSchemaError(f"{where} has a pattern that can't be used: {error}") from None
        return self._patterns[source]

    def _list_rules(self, flat: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The rules of a list of texts, and those of each of its items."""
        items = self._flattener.flat(flat.get("items", True), f"each item of {where}")
        self._flattener.judged |= not JUDGED.isdisjoint(items)
        options = self._options_of(items, where)
        kind = _kind(items, options, f"each item of {where}")
        if kind not in ("string", "choice") or not all(isinstance(option.value, str) for option in options or ()):
            raise FormSchemaError(f"{where} is a list of something else than texts; a form has lists of texts only")
        rules = self._rules(items, "string", where)
        rules |= {ours: _counted(flat, theirs, where) for theirs, ours in _ITEM_COUNTS.items()}
        return {**rules, "options": options or (), "unique_items": flat.get("uniqueItems") is True}


def _kind(flat: Mapping[str, Any], options: tuple[Option, ...] | None, where: str) -> FieldKind:
    """What to ask for; where the server does not say, what its other keywords are about, else text."""
    types = flat.get("type")
    kinds = (types if types is not None else _guessed(flat, options)) - {"null"}
    if "object" in kinds:
        raise FormSchemaError(f"{where} is an object; a form has texts, numbers, booleans and choices only")
    if options is not None:
        values = {type(option.value) for option in options}
        titled = any(option.title not in ("yes", "no") for option in options)
        return "boolean" if values == {bool} and not titled else "choice"
    if kinds == {"array"}:
        return "choices"
    if kinds == {"integer", "number"}:
        return "number"
    if len(kinds) != 1 or not kinds <= PRIMITIVES:
        raise FormSchemaError(f"{where} {_no_kind(kinds)}")
    return next(kind for kind in _SINGLE if kind in kinds)


def _no_kind(kinds: frozenset[str]) -> str:
    if not kinds:
        return "can be nothing but null, or nothing at all; nobody can answer that"
    return f"may be of several kinds ({', '.join(sorted(kinds))}); a form's field has one"


def _guessed(flat: Mapping[str, Any], options: tuple[Option, ...] | None) -> frozenset[str]:
    if options is not None:
        return frozenset()
    for keywords, kind in ((_OF_LISTS, "array"), (_OF_OBJECTS, "object"), (_OF_TEXT, "string"), (_BOUNDS, "number")):
        if any(keyword in flat for keyword in keywords):
            return frozenset((kind,))
    default = flat.get("default")
    if isinstance(default, bool):
        return frozenset(("boolean",))
    return frozenset(("number" if isinstance(default, (int, float)) else "string",))


def _of_boolean(flat: Mapping[str, Any], options: tuple[Option, ...]) -> tuple[Option, ...]:
    """A boolean has options only if one of its values is not allowed."""
    return options if len(options) == 1 else ()


def _default(field: Field, default: Any) -> Any:
    """The default, if it is of the field's kind; it may still break a rule, which the person will be told."""
    if default is None:
        return MISSING
    bare = Field("", field.kind, options=field.options)
    try:
        return cleaned(bare, default, Watch())
    except Broken:
        return MISSING


def _text(flat: Mapping[str, Any], keyword: str, most: int, where: str) -> str | None:
    value = flat.get(keyword)
    if not isinstance(value, str):
        return None
    if len(value) > most:
        raise FormSchemaError(f"{where} has a {keyword} of more than {most} characters")
    return value


def _string(flat: Mapping[str, Any], keyword: str, where: str) -> str | None:
    value = flat.get(keyword)
    if keyword in flat and not isinstance(value, str):
        raise FormSchemaError(f"{where} has a {keyword} that is no text")
    return value


def _counted(flat: Mapping[str, Any], keyword: str, where: str) -> int | None:
    value: Any = flat.get(keyword)
    if keyword not in flat:
        return None
    if not is_number(value) or value < 0 or value != int(value):
        raise FormSchemaError(f"{where} has a {keyword} that is no whole number of 0 or more")
    return int(value)


def _number(flat: Mapping[str, Any], keyword: str, where: str) -> float | None:
    value: Any = flat.get(keyword)
    if keyword not in flat or (keyword.startswith("exclusive") and isinstance(value, bool)):
        return None
    if not is_number(value):
        raise FormSchemaError(f"{where} has {article(keyword)} {keyword} that is no number")
    return value  # type: ignore[no-any-return]


def _old_exclusive(flat: Mapping[str, Any], rules: dict[str, Any]) -> None:
    """`exclusiveMinimum: true` beside `minimum`, as in JSON Schema draft 4 and OpenAPI 3.0."""
    for keyword, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if flat.get(keyword) is True:
            rules[_BOUNDS[keyword]], rules[bound] = rules[bound], None


