"""Anything at all as a schema, as an answer, as what is typed: there are two outcomes, and no third."""

from __future__ import annotations

import os
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gopher_mcp_python.forms import MISSING, Form, FormContentError, FormSchemaError, read_form

EXAMPLES = 20_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 1_000
COUNTS, BOUNDS = [0, 1, 2, 3.0], [1, 0.1, 2**60, True]
RULE = [{"minLength": 2}, {"const": "a"}, {"required": ["a"]}, {"$ref": "#/$defs/a"}, True, False]
# Keywords with what they should hold; sometimes they get something else.
KEYWORDS: dict[str, list[Any]] = {
    "type": ["string", "number", "integer", "boolean", "array", ["string", "null"]],
    "items": [{"enum": ["a", "b"]}, {"type": "string"}, {"$ref": "#/$defs/a"}],
    "enum": [["a", "b"], [1, 2.0, None], [True]],
    "const": ["a", 1, None],
    "oneOf": [[{"const": "a", "title": "A"}, {"const": 1}], [{"type": "string"}, {"type": "null"}], RULE],
    "anyOf": [[{"const": "a", "title": "A"}, {"const": "a"}], [{"type": "number"}, {"type": "null"}], RULE],
    "allOf": [RULE[:2], [{"$ref": "#/$defs/a"}]],
    "$ref": ["#/$defs/a", "#/properties/a", "https://x.example/"],
    "default": ["a", 0, False, ["a"]],
    "title": ["A", "Password"],
    "enumNames": [["A", "B"]],
    "pattern": ["^a", "b$", "\\p{L}"],
    "format": ["email", "uri", "date", "date-time", "ipv4"],
    **dict.fromkeys("minLength maxLength minItems maxItems minProperties maxProperties minContains".split(), COUNTS),
    **dict.fromkeys("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(), BOUNDS),
    **dict.fromkeys("not if then else additionalProperties contains unevaluatedItems propertyNames".split(), RULE),
    "unevaluatedProperties": RULE,
    "prefixItems": [RULE],
    "dependentRequired": [{"a": ["b"]}],
    "dependentSchemas": [{"a": {"required": ["b"]}}],
    "dependencies": [{"a": ["b"]}],
    "patternProperties": [{"^a": {}}],
    "uniqueItems": [True],
    "nullable": [True],
    "$id": ["https://x.example/"],
    "$anchor": ["a"],
    "$dynamicRef": ["#a"],
    "$schema": ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"],
    "x-hint": [1],
}
OFTEN = [key for key in KEYWORDS if key not in ("$id", "$anchor", "$dynamicRef", "patternProperties", "$ref")]
LEAVES: list[Any] = [
    "string", "number", "integer", "boolean", "array", "object", "null", "", "a", "#", "#/$defs/a", "#/properties/a",
    "https://x.example/", "email", "uri", "^a", "(", "\\p{L}", "__proto__", 0, 1, -1, 2.5, 1e308, 10**30,
    True, False, None,
    "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#",
]  # fmt: skip
NO_JSON: list[Any] = ["\ud800", float("nan"), b"x", {5: 1}, 10**500]
NAMES = ["a", "b", "__proto__", "", "type", "$ref"]
TYPED = [
    "",
    " ",
    "none",
    "1",
    "#1",
    '"a"',
    "a,b",
    '"a',
    "yes",
    "1 . 5",
    "1e5",
    ",",
    '""',
    "\\",
    "nan",
    "9" * 500,
    "a" * 50,
]


def some_value(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if kind < 0.003:
        return chance.choice(NO_JSON)
    if depth <= 0 or kind < 0.35:
        return chance.choice(LEAVES)
    if kind < 0.5:
        return [some_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return some_schema(chance, depth - 1)


def some_schema(chance: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(chance.randrange(4)):
        keyword = chance.choice(OFTEN if chance.random() < 0.9 else list(KEYWORDS))
        schema[keyword] = chance.choice(KEYWORDS[keyword]) if chance.random() < 0.93 else some_value(chance, depth)
    return schema


def some_form(chance: random.Random) -> dict[str, Any]:
    form: dict[str, Any] = some_schema(chance, 3) if chance.random() < 0.4 else {}
    form["properties"] = {name: some_schema(chance, 3) for name in chance.sample(NAMES, chance.randrange(1, 4))}
    form["$defs"] = {"a": some_schema(chance, 2)}
    form["type"] = "object"
    if chance.random() < 0.8:
        form["required"] = [name for name in form["properties"] if chance.random() < 0.5]
    return form


def use(form: Form, chance: random.Random) -> None:
    for _ in range(4):
        answer = {name: some_value(chance, 2) for name in NAMES if chance.random() < 0.5}
        faults, sent = validated(form, answer)
        assert faults or (None not in sent.values() and sent.keys() <= answer.keys())
    for field in form.fields:
        assert field.label and repr(field) and field.is_secret_named in (True, False)
        for text in TYPED:
            try:
                value = field.parse(text)
            except ValueError:
                continue
            assert value is MISSING or field.check(value) is None


def validated(form: Form, answer: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    try:
        return [], form.validate(answer)
    except FormContentError as error:
        return [*error.errors.values(), *error.general], {}


def read(schema: dict[str, Any]) -> Form | str:
    try:
        return read_form(schema)
    except FormSchemaError as error:
        return str(error)


@given(st.integers(0, 2**64))
@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_server_sends_is_a_form_or_an_error(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        form = read(some_form(chance))
        if isinstance(form, Form):
            use(form, chance)
        else:
            assert 10 < len(form) < 500
