"""Random forms and random answers, with Ajv (full formats, draft 2020-12) as the judge.

What is said to be valid must be valid for Ajv, as it is sent; what is refused must be invalid for Ajv. Where we differ
on purpose, the difference is one of those listed below, each with a test of its own.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gopher_mcp_python.forms import Form, FormContentError, FormSchemaError, read_form
from tests.support.judge import Judge

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
AT_A_TIME = 10  # forms for each round trip to Node
# 5,000 forms with eight answers each; one Hypothesis example is a batch of forms.
SETTINGS = settings(
    max_examples=20_000 // AT_A_TIME if LONG else 5_000 // AT_A_TIME,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ANSWERS = 8


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    made = Judge()
    yield made
    made.close()


# ---- random schemas -------------------------------------------------------------------------------------------------

PATTERNS = [
    "b",
    "^abc$",
    "^a",
    "c$",
    r"^\p{L}+$",
    r"^\p{Lu}",
    r"\d",
    r"^\d{1,3}$",
    r"\w",
    r"^\W$",
    r"\bab",
    r"^[^a]*$",
    "^.$",
    "^..?$",
    r"^\s+$",
    "(a|b)+1",
    "^(?:a|ab)(?:c|bcd)?$",
    "(?=a)ab",
    "(?!a)b",
    "(?<=a)b",
    "(?<!a)b",
    r"(a)\1",
    r"(?<n>a)b\k<n>",
    "[😀]",
    r"\u{1F600}",
    r"^[\p{L}\d]+$",
    "^$",
    "a{2,}",
    "a*?b",
    r"^[a-z]+[0-9]$",
    r"\/",
    r"^\S*$",
    r"[\s\S]",
    "[^]",
    "[]",
]
FORMATS = {
    "email": [
        "a@b.example",
        "first.last+tag@sub.example.com",
        "a@b",
        "@b.example",
        "a b@c.example",
        "",
        "a@b..example",
    ],
    "uri": [
        "https://x.example/",
        "http://x.example:8080/a?b=c#d",
        "mailto:a@b.example",
        "urn:isbn:0451450523",
        "x",
        "",
        "//x.example/",
        "http://x.example/a b",
        "/path",
        "http://[::1]/",
    ],
    "date": [
        "2026-01-31",
        "2024-02-29",
        "2023-02-29",
        "2026-13-01",
        "20260131",
        "2026-1-31",
        "",
        "2026-01-31T00:00:00Z",
    ],
    "date-time": [
        "2026-01-31T09:30:00Z",
        "2026-01-31T09:30:00.123+01:00",
        "2026-01-31",
        "2026-01-31T09:30:00",
        "2026-01-31T25:00:00Z",
        "2026-02-30T00:00:00Z",
        "",
        "2026-01-31T09:30Z",
    ],
}
INTEGERS = st.one_of(st.integers(-12, 12), st.sampled_from([2**31, -(2**31), 2**53 - 1, -(2**53) + 1, 10**15]))
NUMBERS = st.one_of(
    INTEGERS, st.sampled_from([0.5, 1.0, -2.5, 0.25, 3.0, 1e15, -0.0, 2.75, 1e-7]), st.floats(-9, 9, width=16)
)
STEPS = [1, 2, 3, 0.5, 0.25, 1.0, 5]  # exact in binary; decimal steps have a test of their own
# Not "", "__proto__" and "toString", with which Ajv is not at ease (test_forms_schema.py has them).
NAMES = ["a", "b", "a b", "a.b", "class", "ü", "a/b~c", "1"]
OPTIONS = st.sampled_from(["a", "b", "c", "abc", "", "1", "ä", 1, 2.0, 0, True, False, None, 1.5])
TEXT_OPTIONS = st.sampled_from(["a", "b", "c", "abc", "", "1", "ä"])
ANNOTATED = st.sampled_from(
    [{}, {}, {"title": "T"}, {"description": "D"}, {"default": "a"}, {"default": None}, {"x-hint": 1}]
)


@st.composite
def texts(draw: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    choice = draw(st.integers(0, 7))
    if choice & 1:
        schema["minLength"] = draw(st.integers(0, 4))
    if choice & 2:
        schema["maxLength"] = draw(st.integers(0, 5))
    if choice & 4:
        schema["pattern"] = draw(st.sampled_from(PATTERNS))
    elif choice == 0:
        schema["format"] = draw(st.sampled_from(sorted(FORMATS)))
    return schema


@st.composite
def numbers(draw: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["number", "integer"]))}
    for keyword in draw(
        st.sets(st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), max_size=2)
    ):
        schema[keyword] = draw(NUMBERS)
    if draw(st.integers(0, 2)) == 0:
        schema["multipleOf"] = draw(st.sampled_from(STEPS))
    return schema


def titled(values: list[Any]) -> list[dict[str, Any]]:
    return [{"const": value, "title": f"title of {value}"} for value in values]


@st.composite
def choices(draw: Any) -> dict[str, Any]:
    values = draw(st.lists(OPTIONS, min_size=1, max_size=4))
    shape = draw(st.sampled_from(["enum", "enumNames", "oneOf", "anyOf", "const", "typed", "enum and rules"]))
    if shape == "enum":
        return {"enum": values}
    if shape == "enumNames":
        return {"type": "string", "enum": values, "enumNames": [str(value) for value in values]}
    if shape in ("oneOf", "anyOf"):
        return {shape: titled(values)}
    if shape == "const":
        return {"const": values[0]}
    if shape == "typed":
        return {"type": draw(st.sampled_from(["string", "integer", "number", "boolean"])), "oneOf": titled(values)}
    return {"enum": values, **draw(st.one_of(texts(), numbers()))}


@st.composite
def lists(draw: Any) -> dict[str, Any]:
    values = draw(st.lists(TEXT_OPTIONS, min_size=1, max_size=4))
    items = draw(
        st.sampled_from(
            [
                {"enum": values},
                {"type": "string", "enum": values},
                {"anyOf": titled(values)},
                {"oneOf": titled(values)},
                {"type": "string"},
                {"type": "string", "minLength": 2},
                {"type": "string", "not": {"maxLength": 1}},
                {"enum": values, "maxLength": 1},
            ]
        )
    )
    schema: dict[str, Any] = {"type": "array", "items": items}
    for keyword in draw(st.sets(st.sampled_from(["minItems", "maxItems"]))):
        schema[keyword] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["uniqueItems"] = draw(st.booleans())
    return schema


SIMPLE = st.one_of(texts(), numbers(), choices(), lists(), st.just({"type": "boolean"}))


@st.composite
def fields(draw: Any, defs: dict[str, Any]) -> dict[str, Any]:
    schema = {**draw(SIMPLE), **draw(ANNOTATED)}
    odd = draw(st.integers(0, 19))
    if odd == 0:
        defs[f"d{len(defs)}"] = schema
        return {"$ref": f"#/$defs/d{len(defs) - 1}", **draw(ANNOTATED)}
    if odd == 1:
        defs[f"d{len(defs)}"] = schema
        defs[f"d{len(defs)}"] = {"$ref": f"#/$defs/d{len(defs) - 1}"}
        return {"$ref": f"#/$defs/d{len(defs) - 1}", "minLength": draw(st.integers(0, 3))}
    if odd == 2:
        return {draw(st.sampled_from(["anyOf", "oneOf"])): [schema, {"type": "null"}]}
    if odd == 3 and isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    if odd == 4:
        return {"allOf": [schema, {"minLength": 2, "minimum": 1, "minItems": 1, "title": "inner"}]}
    if odd == 5:
        return {**schema, "not": draw(st.sampled_from([{"const": "a"}, {"minimum": 3}, {"maxLength": 1}, {}]))}
    if odd == 6:
        rules = [{"minLength": 2}, {"minimum": 1}, {"maxItems": 1}, {"const": True}]
        kinds = ["string", "number", "array", "boolean"]
        return {**schema, "anyOf": [{"type": kind, **rule} for kind, rule in zip(kinds, rules, strict=True)]}
    if odd == 7:
        schema.pop("type", None)
    if odd == 8:  # says the same keywords twice, differently
        return {**schema, "allOf": [draw(SIMPLE), {"type": ["string", "integer", "array", "boolean"]}]}
    if odd == 9:
        defs[f"d{len(defs)}"] = draw(SIMPLE)
        return {**schema, "$ref": f"#/$defs/d{len(defs) - 1}"}
    if odd == 10:
        return {
            "oneOf": [
                {"const": "a", "minLength": 2},
                {"const": "abc", "type": "string"},
                {"const": 1, "type": "string"},
            ]
        }
    if odd == 11:
        return {**schema, "enum": ["a", "abc", 1, 2.0, True], "const": draw(OPTIONS)}
    if odd == 12:
        beside = [
            {"contains": {"const": "a"}},
            {"prefixItems": [{"const": "a"}]},
            {"if": {"minLength": 2}, "then": False},
        ]
        return {**schema, **draw(st.sampled_from(beside))}
    if odd == 13:
        return {"anyOf": [schema, {"type": "null"}], "oneOf": [draw(SIMPLE), {"const": None}]}
    return schema


@st.composite
def whole_rules(draw: Any, names: list[str]) -> dict[str, Any]:
    """Keywords that MCP's forms don't have and JSON Schema does."""
    one, other = names[0], names[-1]
    return draw(  # type: ignore[no-any-return]
        st.sampled_from(
            [
                {"additionalProperties": False},
                {"additionalProperties": True},
                {"additionalProperties": {"type": "string"}},
                {"minProperties": 1},
                {"maxProperties": 1},
                {"dependentRequired": {one: [other]}},
                {"dependentSchemas": {one: {"required": [other]}}},
                {"not": {"required": [one]}},
                {"if": {"required": [one]}, "then": {"required": [other]}},
                {"propertyNames": {"maxLength": 1}},
                {
                    "if": {"properties": {one: {"const": "a"}}},
                    "then": {"minProperties": 2},
                    "else": {"maxProperties": 3},
                },
                {"allOf": [{"properties": {one: {"minLength": 2}}}]},
                {"anyOf": [{"required": [one]}, {"required": [other]}]},
                {"oneOf": [{"required": [one]}, {"required": [other]}]},
                {"unevaluatedProperties": False},
                {"allOf": [{"$ref": "#/$defs/rule"}], "$defs": {"rule": {"required": [one]}}},
                {"const": {}},
                {"enum": [{}, {one: "a"}]},
            ]
        )
    )


@st.composite
def forms(draw: Any) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    defs: dict[str, Any] = {}
    schema: dict[str, Any] = {"type": "object", "properties": {name: draw(fields(defs)) for name in names}}
    if draw(st.booleans()):
        schema["required"] = names[: draw(st.integers(0, len(names)))]
    if draw(st.integers(0, 5)) == 0:
        schema |= draw(whole_rules(names))
    if defs:
        schema["$defs"] = {**schema.get("$defs", {}), **defs}
    return schema


# ---- random answers -------------------------------------------------------------------------------------------------

# Drawn by a seed from these, as eight answers for each form would take Hypothesis most of the time.
SOME_TEXTS = [
    "",
    "a",
    "abc",
    "abc\n",
    "Ab1",
    "ä",
    "日本",
    "😀",
    "😀😀😀",
    "a b",
    "12",
    "0",
    "true",
    "null",
    "x" * 30,
    "b1",
    "aa",
    "ab",
    "a1",
    "ÄB",
    "1",
    "b",
    "c",
    "ab1",
    "\n",
    " ",
    "éé",
    "a/b",
    "abb",
]
SOME_NUMBERS = [
    *range(-13, 14),
    2**31,
    2**53 - 1,
    -(2**53) + 1,
    10**15,
    0.5,
    1.0,
    -2.5,
    0.25,
    3.0,
    1e15,
    -0.0,
    2.75,
    1e-7,
    4.5,
]
SOME_LISTS = [
    [],
    ["a"],
    ["b"],
    ["a", "b"],
    ["a", "a"],
    ["a", "b", "c"],
    ["abc", ""],
    ["1", "ä"],
    ["x"],
    ["a", "b", "c", "1"],
    [""],
]
SOME_FORMATTED = [text for texts in FORMATS.values() for text in texts]
SOME_OPTIONS = ["a", "b", "c", "abc", "", "1", "ä", 1, 2, 2.0, 0, True, False, None, 1.5]
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
JUNK = [None, {}, [[]], [1], [None], "Title", True, False, {"a": 1}]
EVERYTHING = [*SOME_TEXTS, *SOME_NUMBERS, *SOME_LISTS, *SOME_FORMATTED, *JUNK]


def named(schema: Any, keyword: str) -> list[Any]:
    """All values of a keyword in a schema, wherever it stands."""
    if isinstance(schema, list):
        return [value for inner in schema for value in named(inner, keyword)]
    if not isinstance(schema, dict):
        return []
    own = [schema[keyword]] if keyword in schema else []
    return own + [value for inner in schema.values() for value in named(inner, keyword)]


def likely_values(schema: dict[str, Any]) -> list[list[Any]]:
    """Pools of what may be an answer to a field; which one is chosen is left to chance."""
    text = json.dumps(schema)
    bounds = [bound for keyword in BOUNDS for bound in named(schema, keyword) if isinstance(bound, (int, float))]
    options = [*named(schema, "const"), *(value for values in named(schema, "enum") for value in values)]
    pools = [[True, False]] if '"boolean"' in text else []
    pools += [SOME_NUMBERS, bounds or SOME_NUMBERS] if '"number"' in text or '"integer"' in text else []
    pools += [SOME_LISTS] if '"array"' in text or '"items"' in text else []
    pools += [SOME_FORMATTED] if '"format"' in text else []
    pools += [SOME_OPTIONS, options, options] if options else []
    return [*pools, SOME_TEXTS] if '"string"' in text or not pools else pools


def answers_to(schema: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    pools = likely_values(schema)
    found = []
    for _ in range(ANSWERS):
        names = [name for name in schema["properties"] if chance.random() < 0.8]
        names += ["extra"] if chance.random() < 0.1 else []
        found.append(
            {name: chance.choice(chance.choice(pools) if chance.random() < 0.9 else EVERYTHING) for name in names}
        )
    return found


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    schema = draw(forms())
    return schema, answers_to(schema, draw(st.integers(0, 2**32)))


# ---- the comparison -------------------------------------------------------------------------------------------------

# Why a random schema may be no form though it is JSON Schema: nobody could answer it, or not in MCP's terms.
NO_FORM = ("nothing to choose from", "several kinds", "nothing but null", "list of something else")


def read(schema: dict[str, Any]) -> Form | None:
    try:
        return read_form(schema)
    except FormSchemaError as error:
        said = str(error)
    assert any(reason in said for reason in NO_FORM), (schema, said)
    return None


def differs(form: Form, schema: dict[str, Any], answer: dict[str, Any], errors: FormContentError) -> bool:
    """Whether a refusal of ours, of what Ajv takes, is a difference that is meant. Each has a test below."""
    for name in errors.errors:
        value = answer.get(name)
        if name not in form.by_name:
            return not isinstance(value, (str, int, float)) and not is_texts(value)  # what MCP can't carry
        if not says_type(schema["properties"][name], schema.get("$defs", {})):
            return True  # a field whose type is not said has one for us
    return False


def says_type(schema: dict[str, Any], defs: dict[str, Any]) -> bool:
    if schema.keys() & {"type", "enum", "const"}:
        return True
    if "$ref" in schema and says_type(defs[schema["$ref"].removeprefix("#/$defs/")], defs):
        return True
    if any(says_type(part, defs) for part in schema.get("allOf", ())):
        return True
    return any(all(says_type(part, defs) for part in schema[one]) for one in ("anyOf", "oneOf") if one in schema)


def as_javascript(content: dict[str, Any]) -> str:
    """Content as JavaScript prints it: 1.0 is 1, and true is not."""
    whole = {key: int(one) if isinstance(one, float) and one.is_integer() else one for key, one in content.items()}
    return json.dumps(whole)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


@pytest.mark.timeout(900)
@given(st.lists(cases(), min_size=AT_A_TIME, max_size=AT_A_TIME))
@SETTINGS
def test_random_forms_and_answers(judge: Judge, batch: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    compare(judge, batch)


def compare(judge: Judge, batch: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    """Asserts that Ajv and we say the same of every answer, but for the differences that are meant."""
    asked, expected = [], []
    for schema, answers in batch:
        form = read(schema)
        if form is None:
            continue
        sent, verdicts = [], []
        for answer in answers:
            bare = {name: value for name, value in answer.items() if value is not None}
            try:
                sent.append(form.validate(answer))
                verdicts.append((bare, None))
            except FormContentError as error:
                sent.append(bare)
                verdicts.append((bare, error))
        asked.append((schema, sent))
        expected.append((form, schema, sent, verdicts))
    for verdict, (form, schema, sent, verdicts) in zip(judge.ask(asked), expected, strict=True):
        assert verdict.refused is None, (schema, verdict.refused)
        for ajv, content, (bare, error) in zip(verdict.valid, sent, verdicts, strict=True):
            if error is None:
                assert ajv, f"sent though Ajv refuses it: {schema} {content}"
                assert as_javascript(content) == as_javascript(bare)
            elif ajv:
                assert differs(form, schema, bare, error), f"refused ({error}) though Ajv takes it: {schema} {bare}"


# ---- the differences ------------------------------------------------------------------------------------------------

# what, schema of the field x, its answer, what we say, what Ajv says
DIFFERENCES: list[tuple[str, dict[str, Any], Any, bool, bool]] = [
    (
        "decimals are decimals, in binary 0.07 is no multiple of 0.01",
        {"type": "number", "multipleOf": 0.01},
        0.07,
        True,
        False,
    ),
    (
        "decimals are decimals, also where binary forgives",
        {"type": "number", "multipleOf": 0.1},
        10**16 + 0.0,
        True,
        True,
    ),
    ("whole numbers are exact, JavaScript rounds them", {"type": "integer", "maximum": 2**53}, 2**53 + 1, False, True),
    ("whole numbers are exact, in options too", {"enum": [2**53]}, 2**53 + 1, False, True),
    ("formats that MCP does not have are not checked", {"type": "string", "format": "ipv4"}, "no address", True, False),
    ("an email address is not endless", {"type": "string", "format": "email"}, "a" * 65 + "@b.example", False, True),
    ("a URI has a host where its scheme needs one", {"type": "string", "format": "uri"}, "http:///x", False, True),
    (
        "a date and time is written with a T",
        {"type": "string", "format": "date-time"},
        "2026-01-31 09:30:00Z",
        False,
        True,
    ),
    ("a field without a type is a text", {}, 5, False, True),
    ("a field without a type is what its rules are about", {"minimum": 2}, "abc", False, True),
    ("a field without a type is a list if it has items", {"items": {"enum": ["a"]}}, "abc", False, True),
    ("a list holds texts", {"items": {}}, [1], False, True),
    (
        "OpenAPI's and draft 4's exclusiveMinimum",
        {"type": "number", "minimum": 5, "exclusiveMinimum": False},
        5,
        True,
        True,
    ),
]


@pytest.mark.parametrize(
    ("schema", "answer", "ours", "ajv"), [pytest.param(*case[1:], id=case[0]) for case in DIFFERENCES]
)
def test_differences_that_are_meant(judge: Judge, schema: dict[str, Any], answer: Any, ours: bool, ajv: bool) -> None:
    form = {"type": "object", "properties": {"x": schema}}
    if isinstance(schema.get("exclusiveMinimum"), bool):  # which Ajv refuses as a whole
        assert judge.ask([(form, [{"x": answer}])])[0].refused
    else:
        assert judge.ask([(form, [{"x": answer}])])[0].valid == (ajv,)
    assert (read_form(form).by_name["x"].check(answer) is None) == ours


def test_dependencies_are_minded_as_ajv_minds_them(judge: Judge) -> None:
    """Though they are no keyword of 2020-12; who writes them leaves $schema out."""
    form: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"]}}
    answers: list[dict[str, Any]] = [{"a": "v"}, {"a": "v", "b": "v"}, {"b": "v"}, {}]
    assert judge.ask([(form, answers)])[0].valid == (False, True, True, True)
    for answer in answers[1:]:
        assert read_form(form).validate(answer) == answer
    with pytest.raises(FormContentError, match='"b" is required'):
        read_form(form).validate(answers[0])


def test_null_is_no_answer_rather_than_a_wrong_one(judge: Judge) -> None:
    form = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": ["string", "null"]}}}
    assert judge.ask([(form, [{"x": None}, {"y": None}, {}])])[0].valid == (False, True, True)
    assert read_form(form).validate({"x": None, "y": None}) == {}


def test_patterns_that_are_no_unicode_patterns_are_read_without_the_flag(judge: Judge) -> None:
    form = {"type": "object", "properties": {"x": {"type": "string", "pattern": r"^\d{3}\-\d{4}$"}}}
    assert judge.ask([(form, [])])[0].refused
    assert read_form(form).validate({"x": "123-4567"}) == {"x": "123-4567"}


@pytest.mark.parametrize("extra", [{"a": 1}, [1], [["a"]], b"x"])
def test_extra_answers_are_what_mcp_can_carry(judge: Judge, extra: Any) -> None:
    form: dict[str, Any] = {"type": "object", "properties": {}}
    with pytest.raises(FormContentError):
        read_form(form).validate({"x": extra})
    assert isinstance(extra, bytes) or judge.ask([(form, [{"x": extra}])])[0].valid == (True,)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"patternProperties": {"^x": {}}}, "patternProperties"),
        ({"not": {"$dynamicRef": "#x"}}, "$dynamicRef"),
        ({"not": {"$id": "u:v"}}, "$id"),
        ({"not": {"$anchor": "a"}}, "$anchor"),
        ({"not": {"$ref": "https://x.example/s"}}, "nothing is fetched"),
        ({"not": {"$ref": "#/nowhere"}}, "not there"),
        ({"not": {"pattern": "(["}}, "pattern"),
        ({"not": {"minLength": -1}}, "minLength"),
        ({"not": {"multipleOf": 0}}, "multipleOf"),
        ({"not": 5}, "no schema"),
        ({"allOf": {}}, "allOf"),
        ({"dependentSchemas": []}, "dependentSchemas"),
    ],
)
def test_rules_that_can_not_be_judged_are_refused(rule: dict[str, Any], says: str) -> None:
    with pytest.raises(FormSchemaError, match=re.escape(says)):
        read_form({"type": "object", "properties": {}, **rule})


def test_ajv_can_tell_right_from_wrong(judge: Judge) -> None:
    """The judge itself: were it to take or refuse everything, the random test would prove nothing."""
    form = {"type": "object", "properties": {"x": {"type": "string", "format": "email"}}, "required": ["x"]}
    verdict = judge.ask([(form, [{"x": "a@b.example"}, {"x": "a"}, {}]), ({"type": 5}, [])])
    assert verdict[0].valid == (True, False, False) and verdict[1].refused
