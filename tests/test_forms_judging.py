"""Random schemas in every version of JSON Schema, judged by us and by the library `jsonschema` (test_forms_judge.py has
Ajv, for whole forms in 2020-12)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from jsonschema import validators

from gopher_mcp_python.forms import FormSchemaError
from gopher_mcp_python.forms.judging import Run, TooDeep, TooMuch
from gopher_mcp_python.forms.vetting import Vetted

VERSIONS = {
    4: validators.Draft4Validator,
    6: validators.Draft6Validator,
    7: validators.Draft7Validator,
    2019: validators.Draft201909Validator,
    2020: validators.Draft202012Validator,
}
VALUES: list[Any] = ["", "a", "ab", "b", 1, 2, 1.5, 0, True, False, ["a"], ["a", "a"], ["a", "b"], []]
CONSTS: list[Any] = [*VALUES, {"a": "a"}, {"a": 1, "b": "b"}]
LEAVES: list[Any] = [
    *({"type": name} for name in "string integer number array object boolean null".split()),
    *({"const": value} for value in CONSTS),
    *({"enum": CONSTS[at : at + 3]} for at in range(0, len(CONSTS), 3)),
    *({name: 1} for name in "minLength maxLength minItems maxItems minProperties maxProperties".split()),
    *({name: 1} for name in "minimum maximum exclusiveMinimum exclusiveMaximum".split()),
    *({"$ref": f"#/$defs/{name}"} for name in "xyz" * 3),
    *({"multipleOf": 2}, {"uniqueItems": True}, {"required": ["a", "b"]}, {"required": ["c"]}, {"pattern": "a"}),
    *({"dependentRequired": {"a": ["b"]}}, {"type": ["string", "integer"]}, True, False, {}),
]
HOLDING = (
    "properties additionalProperties allOf anyOf oneOf not if items contains propertyNames dependentSchemas "
    "dependencies unevaluatedProperties unevaluatedItems prefixItems additionalItems leaf leaf leaf"
).split()
# Not asked of the library: its unevaluatedProperties of 2019-09 takes the keywords in `additionalProperties` for names
# of properties; `dependencies` is minded by us in all versions, as by Ajv; and what is no keyword breaks it.
UNASKED = {
    2019: {"unevaluatedProperties", "unevaluatedItems", "dependencies", "prefixItems"},
    2020: {"dependencies", "additionalItems"},
    **{version: {"prefixItems"} for version in (4, 6, 7)},
}


@pytest.mark.parametrize(("version", "fits"), [(2019, False), (2020, True)])
def test_items_stand_for_the_rest_of_a_list_where_there_are_prefix_items(version: int, fits: bool) -> None:
    schema = {"prefixItems": [{"const": 1}], "items": {"const": "a"}}
    run = Run(Vetted(schema), version)
    assert run.fits(schema, [1, "a"], None) is fits
    assert run.fits(schema, ["a", "a"], None) is not fits
    assert run.fits(schema, [1, 1], None) is False


@pytest.mark.parametrize("source", ["a" * 2_001, ["a"], 7])
def test_a_pattern_deep_inside_is_a_text_of_so_many_characters(source: Any) -> None:
    Vetted({"not": {"not": {"pattern": "a" * 2_000}}})
    with pytest.raises(FormSchemaError, match="the form has a pattern that is no text of at most 2000 characters"):
        Vetted({"not": {"not": {"pattern": source}}})


def some_schema(chance: random.Random, depth: int, version: int) -> Any:
    if depth <= 0 or chance.random() < 0.2:
        return chance.choice(LEAVES)
    schema: dict[str, Any] = {}
    for _ in range(chance.randrange(1, 4)):
        keyword = chance.choice(HOLDING)
        if keyword not in UNASKED[version]:
            schema.update(some_rule(chance, keyword, depth - 1, version))
    return schema


def some_rule(chance: random.Random, keyword: str, depth: int, version: int) -> dict[str, Any]:
    some = [some_schema(chance, depth, version) for _ in range(3)]
    some = [one if version > 4 or isinstance(one, dict) else {} for one in some]  # draft 4 has no true and false
    if keyword == "leaf":
        leaf = chance.choice(LEAVES)
        return leaf if isinstance(leaf, dict) else {}
    if keyword in ("properties", "dependentSchemas"):
        return {keyword: dict(zip(chance.sample("abc", 2), some, strict=False))}
    if keyword == "dependencies":
        return {keyword: {"a": chance.choice([["b"], some[0]])}}
    if keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        return {keyword: some[: chance.randrange(1, 4)]}
    if keyword == "items":
        return {keyword: some[0] if version == 2020 or chance.random() < 0.6 else some[:1]}
    if keyword == "if":
        return {"if": some[0], chance.choice(["then", "x"]): some[1], chance.choice(["else", "x"]): some[2]}
    if keyword == "contains":
        return {keyword: some[0], chance.choice(["minContains", "maxContains", "x"]): chance.randrange(3)}
    return {keyword: some[0]}


@pytest.mark.parametrize("version", VERSIONS)
def test_we_and_the_library_say_the_same(version: int) -> None:
    chance = random.Random(version)
    seen: Counter[bool] = Counter()
    for _ in range(250):
        schema = some_schema(chance, 3, version)
        if not isinstance(schema, dict):
            continue
        schema = {**schema, "$defs": {name: some_schema(chance, 1, version) for name in "xyz"}}
        vetted = Vetted(schema)
        for _ in range(4):
            answer = {name: chance.choice(VALUES) for name in "abcd" if chance.random() < 0.5}
            run = Run(vetted, version)
            try:
                ours = run.fits(vetted.schema, answer, None)
                library = VERSIONS[version](schema).is_valid(answer)
            except (TooMuch, TooDeep, RecursionError):  # a $ref to itself, which one of both came across
                continue
            assert ours == library, (schema, answer)
            assert ours == (not run.found)
            seen[ours] += 1
    assert min(seen[True], seen[False]) > 100
