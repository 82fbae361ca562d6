"""A flat schema (flatten.py) as a Field: its kind, its texts, its rules, its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import limits
from .bounds import is_number
from .choices import Option, read_options
from .errors import FormSchemaError
from .fields import MISSING, Field, FieldKind, Place
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

    def read(self, name: str, schema: Any, required: bool) -> Field | None:
        """One field; None for one that can be nothing but null, and so can be left out. Raises FormSchemaError, with
        its name."""
        where = Place(name)
        flat = self._flattener.flat(schema, where)
        if not required and _is_only_null(flat):
            self._flattener.judged = True
            return None
        self._flattener.judged |= not JUDGED.isdisjoint(flat)
        options = self._options_of(flat, where)
        kind = _kind(flat, options, where)
        rules = self._list_rules(flat, name) if kind == "choices" else self._rules(flat, kind, where)
        if options is not None and (kind != "boolean" or len(options) == 1):
            rules["options"] = options
        if "default" in flat:
            rules["default"] = _default(kind, rules.get("options", ()), flat["default"])
        return Field(
            name,
            kind,
            _text(flat, "title", limits.MAX_TITLE, where),
            _text(flat, "description", limits.MAX_DESCRIPTION, where),
            required,
            nullable=flat.get("nullable") is True or "null" in flat.get("type", ()),
            write_only=flat.get("writeOnly") is True,
            **rules,
        )

    def _options_of(self, flat: Mapping[str, Any], where: object) -> tuple[Option, ...] | None:
        options = read_options(flat, where, self._flattener)
        self._options += len(options or ())
        if self._options > limits.MAX_ALL_OPTIONS:
            raise FormSchemaError(f"the form offers more than {limits.MAX_ALL_OPTIONS} options, at {where}")
        return options

    def _rules(self, flat: Mapping[str, Any], kind: FieldKind, where: object) -> dict[str, Any]:
        """The rules for one text or number; a choice may be of both."""
        rules: dict[str, Any] = {}
        if kind in ("number", "integer", "choice"):
            rules |= {_BOUNDS[keyword]: _number(flat, keyword, where) for keyword in flat.keys() & _BOUNDS.keys()}
            _old_exclusive(flat, rules)
            if "multiple_of" in rules and rules["multiple_of"] <= 0:
                raise FormSchemaError(f"{where} has a multipleOf that is not more than 0")
        if kind in ("string", "choice"):
            rules |= {_COUNTS[keyword]: _counted(flat, keyword, where) for keyword in flat.keys() & _COUNTS.keys()}
            if "format" in flat:
                rules["format"] = _string(flat, "format", where)
            if "pattern" in flat:
                rules["pattern"] = _string(flat, "pattern", where)
                rules["compiled"] = self._compiled(rules["pattern"], where)
        return rules

    def _compiled(self, source: str, where: object) -> Pattern:
        if source in self._patterns:
            return self._patterns[source]
        from .pattern import PatternError, compile_pattern

        self._pattern_characters += len(source)
        if len(source) > limits.MAX_PATTERN:
            raise FormSchemaError(f"{where} has a pattern of more than {limits.MAX_PATTERN} characters")
        if self._pattern_characters > limits.MAX_ALL_PATTERNS:
            raise FormSchemaError(f"the form has patterns of over {limits.MAX_ALL_PATTERNS} characters, at {where}")
        try:
            pattern = self._patterns[source] = compile_pattern(source)
        except PatternError as error:
            raise FormSchemaError(f"{where} has a pattern that can't be used: {error}") from None
        return pattern

    def _list_rules(self, flat: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The rules of a list of texts, and those of each of its items."""
        where = Place(name, "each item of ")
        items = self._flattener.flat(flat.get("items", True), where)
        self._flattener.judged |= not JUDGED.isdisjoint(items)
        options = self._options_of(items, where)
        kind = _kind(items, options, where)
        if kind not in ("string", "choice") or not all(isinstance(option.value, str) for option in options or ()):
            raise FormSchemaError(f"{Place(name)} is a list of something else than texts; a form has no such lists")
        rules = self._rules(items, "string", where)
        rules |= {_ITEM_COUNTS[key]: _counted(flat, key, where) for key in flat.keys() & _ITEM_COUNTS.keys()}
        return {**rules, "options": options or (), "unique_items": flat.get("uniqueItems") is True}


def _is_only_null(flat: Mapping[str, Any]) -> bool:
    types = flat.get("type")
    return types == {"null"} or ("const" in flat and flat["const"] is None and (types is None or "null" in types))


def _kind(flat: Mapping[str, Any], options: tuple[Option, ...] | None, where: object) -> FieldKind:
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


def _default(kind: FieldKind, options: tuple[Option, ...], default: Any) -> Any:
    """The default, if it is of the field's kind; it may still break a rule, which the person will be told."""
    if default is None:
        return MISSING
    try:
        return cleaned(Field("", kind, options=options), default, Watch())
    except Broken:
        return MISSING


def _text(flat: Mapping[str, Any], keyword: str, most: int, where: object) -> str | None:
    value = flat.get(keyword)
    if not isinstance(value, str):
        return None
    if len(value) > most:
        raise FormSchemaError(f"{where} has a {keyword} of more than {most} characters")
    return value


def _string(flat: Mapping[str, Any], keyword: str, where: object) -> str:
    value = flat[keyword]
    if not isinstance(value, str):
        raise FormSchemaError(f"{where} has a {keyword} that is no text")
    return value


def _counted(flat: Mapping[str, Any], keyword: str, where: object) -> int:
    value = flat[keyword]
    if not is_number(value) or value < 0 or value != int(value):
        raise FormSchemaError(f"{where} has a {keyword} that is no whole number of 0 or more")
    return int(value)


def _number(flat: Mapping[str, Any], keyword: str, where: object) -> Any:
    value = flat[keyword]
    if not is_number(value) and not (keyword.startswith("exclusive") and isinstance(value, bool)):
        raise FormSchemaError(f"{where} has {article(keyword)} {keyword} that is no number")
    return value


def _old_exclusive(flat: Mapping[str, Any], rules: dict[str, Any]) -> None:
    """`exclusiveMinimum: true` beside `minimum`, as in JSON Schema draft 4 and OpenAPI 3.0."""
    for exclusive, bound in (("exclusive_minimum", "minimum"), ("exclusive_maximum", "maximum")):
        if isinstance(rules.get(exclusive), bool):
            if rules.pop(exclusive) and bound in rules:
                rules[exclusive] = rules.pop(bound)
