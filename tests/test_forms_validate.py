"""Answers: what is sent, what is refused and in which words; what a person types, read as a value."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gopher_mcp_python.answers import ACCEPT, CANCEL, DECLINE, answer_of
from gopher_mcp_python.elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from gopher_mcp_python.forms import MISSING, Field, FormContentError, limits, read_form
from gopher_mcp_python.toolset.elicitation import InvalidElicitation, read_request, wire_answer
from tests.support import children
from tests.support.servers import McpServer
from tests.support.toolset import ToldAsker, text_of, with_toolset

SECRET = "hunter2-value"


def form_of(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def field_of(schema: Any, *, required: bool = False) -> Field:
    return read_form(form_of(("x",) if required else (), x=schema)).fields[0]


def faults(schema: dict[str, Any], content: Any) -> FormContentError:
    with pytest.raises(FormContentError) as caught:
        read_form(schema).validate(content)
    assert SECRET not in str(caught.value) + repr(caught.value)
    return caught.value


CHOICE = {"enum": ["a", "b"]}
MULTI = {"type": "array", "items": CHOICE}


# ---- what is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "sent"),
    [
        ({"type": "string"}, "", ""),
        ({"type": "string"}, "none", "none"),
        ({"type": "string", "maxLength": 3}, "😀😀😀", "😀😀😀"),
        ({"type": "string", "pattern": "b"}, "abc", "abc"),
        ({"type": "integer"}, 90071992547409910, 90071992547409910),
        ({"type": "integer"}, 1.0, 1),
        ({"type": "integer"}, -0.0, 0),
        ({"type": "integer"}, 1e22, 10**22),
        ({"type": "number"}, 1.5, 1.5),
        ({"type": "number"}, 1.0, 1.0),
        ({"type": "number"}, 3, 3),
        ({"type": "number", "multipleOf": 0.01}, 0.07, 0.07),
        ({"type": "number", "multipleOf": 0.01}, 1e300, 1e300),
        ({"type": "number", "multipleOf": 1e-300}, 1e300, 1e300),
        ({"type": "number", "exclusiveMaximum": 0.3}, 0.29999999999999993, 0.29999999999999993),
        ({"type": "boolean"}, False, False),
        (CHOICE, "b", "b"),
        ({"enum": [1, 2.0]}, 1.0, 1),
        ({"enum": [1, 2.0]}, 2, 2.0),
        ({"type": "integer", "enum": [2.0]}, 2, 2),
        ({"enum": [True, 0]}, True, True),
        (MULTI, ["a", "b"], ["a", "b"]),
        (MULTI, ("b",), ["b"]),
        (MULTI, [], []),
        (MULTI, ["a", "a"], ["a", "a"]),
    ],
)
def test_values_are_sent_as_they_are_meant(schema: Any, value: Any, sent: Any) -> None:
    content = read_form(form_of(x=schema)).validate({"x": value})
    assert content == {"x": sent} and type(content["x"]) is type(sent)


def test_members_of_enums_are_sent_as_their_values() -> None:
    class Text(str, enum.Enum):
        A = "a"

    class Number(enum.IntEnum):
        ONE = 1

    class Half(float):
        pass

    schema = form_of(s={"type": "string"}, c=CHOICE, i={"type": "integer"}, n={"type": "number"}, m=MULTI)
    content = read_form(schema).validate({"s": Text.A, "c": Text.A, "i": Number.ONE, "n": Half(0.5), "m": [Text.A]})
    assert content == {"s": "a", "c": "a", "i": 1, "n": 0.5, "m": ["a"]}
    assert [type(value) for value in content.values()] == [str, str, int, float, list] and type(content["m"][0]) is str


@pytest.mark.parametrize(
    "name", ["__proto__", "__class__", "constructor", "class", "", "a b", "a.b", "ü", "$ref", "type"]
)
def test_every_key_comes_back(name: str) -> None:
    form = read_form(form_of((name,), **{name: {"type": "string", "minLength": 2}}))
    assert form.validate({name: "ab"}) == {name: "ab"}
    for wrong in ({}, {name: "a"}):
        with pytest.raises(FormContentError) as caught:
            form.validate(wrong)
        assert list(caught.value.errors) == [name]


def test_what_is_left_alone_is_left_out() -> None:
    form = read_form(
        form_of(s={"type": "string"}, n={"type": "number"}, b={"type": "boolean"}, m={**MULTI, "minItems": 1})
    )
    assert form.validate({}) == {}
    assert form.validate(dict.fromkeys("snbm")) == {}  # null is never sent


def test_defaults_are_for_the_person_and_never_filled_in() -> None:
    assert read_form(form_of(b={"type": "boolean", "default": True}, n={"default": 0})).validate({}) == {}


def test_answers_beside_the_fields() -> None:
    assert read_form(form_of()).validate({"x": 1, "y": ["a"], "z": None}) == {"x": 1, "y": ["a"]}
    closed = {**form_of(a={}), "additionalProperties": False}
    assert faults(closed, {"a": "v", "x": SECRET}).errors == {"x": '"x" is no field of this form'}
    assert faults(form_of(), {"x": {"a": SECRET}}).errors == {"x": '"x" must be text'}
    assert faults(form_of(), {"\ud800": SECRET}).errors.keys() == {"\ud800"}
    assert faults(form_of(), {5: SECRET}).general


@pytest.mark.parametrize("content", [None, [], "text", 5])
def test_answers_are_a_mapping(content: Any) -> None:
    assert "mapping" in str(faults(form_of(), content))


def test_validating_touches_neither_answers_nor_form() -> None:
    answers = {"m": ["a"], "n": None}
    form = read_form(form_of(m=MULTI, n={"type": "number"}))
    content = form.validate(answers)
    content["m"].append("b")
    assert answers == {"m": ["a"], "n": None} and form.validate(answers) == {"m": ["a"]}


# ---- what is refused, in which words --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"type": "string"}, 5, "must be text"),
        ({"type": "string"}, True, "must be text"),
        ({"type": "string", "minLength": 3}, "ab", "must be at least 3 characters long"),
        ({"type": "string", "minLength": 1}, "", "must be at least 1 character long"),
        ({"type": "string", "maxLength": 2}, "😀😀😀", "must be at most 2 characters long"),
        ({"type": "string", "pattern": "^abc$"}, "abc\n", 'must match the pattern "^abc$"'),
        ({"type": "string", "format": "email"}, "ada", "must be an email address such as name@example.com"),
        (
            {"type": "string", "format": "date"},
            "20260131",
            "must be a date written as year-month-day, such as 2026-01-31",
        ),
        ({"type": "string", "format": "date-time"}, "2026-01-31", "must be a date and time"),
        ({"type": "string", "format": "uri"}, "a b:c", "must be a complete address"),
        ({"type": "string"}, "\ud800", "must not hold half a character"),
        ({"type": "string"}, "x" * (limits.MAX_TEXT + 1), "must not be longer than 1000000 characters"),
        ({"type": "number"}, "5", "must be a number"),
        ({"type": "number"}, True, "must be a number"),
        ({"type": "number"}, float("nan"), "not NaN or infinity"),
        ({"type": "number"}, float("inf"), "not NaN or infinity"),
        ({"type": "integer"}, float("-inf"), "not NaN or infinity"),
        ({"type": "integer"}, 1.5, "must be a whole number"),
        ({"type": "integer"}, False, "must be a whole number"),
        ({"type": "integer"}, 10**500, "must not have more than 400 digits"),
        ({"type": "number", "minimum": 18}, 17, "must be 18 or more"),
        ({"type": "number", "maximum": 18.0}, 19, "must be 18 or less"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "must be more than 0"),
        ({"type": "number", "exclusiveMaximum": 0.5}, 0.5, "must be less than 0.5"),
        ({"type": "number", "multipleOf": 0.25}, 0.3, "must be a multiple of 0.25"),
        ({"type": "integer", "maximum": 2**53}, 2**53 + 1, "must be 9007199254740992 or less"),
        ({"type": "boolean"}, 1, "must be yes or no"),
        ({"type": "boolean"}, "yes", "must be yes or no"),
        ({"type": "boolean", "const": True}, False, "must be yes"),
        (CHOICE, "c", 'must be "a" or "b"'),
        (CHOICE, ["a"], 'must be "a" or "b"'),
        (CHOICE, {}, 'must be "a" or "b"'),
        ({"oneOf": [{"const": "a", "title": "Ay"}]}, "b", 'must be "Ay"'),
        ({"enum": list("abcdef")}, "g", "must be one of the 6 options"),
        ({"enum": [1]}, True, 'must be "1"'),
        ({"enum": [0]}, float("nan"), 'must be "0"'),
        (MULTI, "a", "must be a list of options"),
        (MULTI, ["c"], "must hold nothing but options of the list"),
        (MULTI, [None], "must hold nothing but texts"),
        ({**MULTI, "minItems": 1}, [], "needs at least 1 item chosen"),
        ({**MULTI, "maxItems": 1}, ["a", "b"], "takes at most 1 item chosen"),
        ({**MULTI, "uniqueItems": True}, ["a", "a"], "must not hold the same item twice"),
        (
            {"type": "array", "items": {"type": "string", "minLength": 2}},
            ["a"],
            "holds an item that must be at least 2",
        ),
        (MULTI, ["a"] * (limits.MAX_CHOSEN + 1), "must not have more than 10000 items"),
        ({"type": "string"}, b"bytes", "must be text"),
    ],
)
def test_each_rule_in_plain_words(schema: Any, value: Any, says: str) -> None:
    reason = field_of(schema).check(value)
    assert reason is not None and says in reason
    assert faults(form_of(x={**schema, "title": "The thing"}), {"x": value}).errors == {"x": f"The thing {reason}"}


def test_an_error_names_all_faults_and_no_value() -> None:
    schema = form_of(("a", "b"), a={"title": "First"}, b={}, c={"type": "integer"}, d={"format": "email"}, e=CHOICE)
    error = faults(schema, {"b": None, "c": SECRET, "d": SECRET, "e": SECRET})
    assert error.errors["a"] == "First is required" and error.errors["b"] == '"b" is required'
    assert list(error.errors) == ["a", "b", "c", "d", "e"] and error.general == ()
    assert isinstance(error, ValueError) and str(error).startswith('First is required; "b" is required; "c" must be')
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.errors, again.general) == (str(error), error.errors, error.general)


def test_many_faults_make_no_endless_text() -> None:
    error = faults(form_of(**{f"f{i}": {"type": "integer"} for i in range(1000)}), {f"f{i}": "x" for i in range(1000)})
    assert len(error.errors) == 1000 and str(error).endswith("and 995 more") and len(str(error)) < 500


def test_null_for_a_required_field_that_may_be_null() -> None:
    schema = form_of(("x",), x={"type": ["string", "null"]})
    assert faults(schema, {"x": None}).errors["x"] == '"x" needs an answer (null can\'t be sent in a form)'


# ---- rules for the form as a whole ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "content", "errors", "general"),
    [
        ({"minProperties": 1}, {}, {}, ("The answers together are too few: at least 1 are needed",)),
        ({"maxProperties": 1}, {"a": "1", "b": "2"}, {}, ("The answers together are too many: at most 1 are allowed",)),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": "1"},
            {"b": '"b" is required beside the other answers'},
            (),
        ),
        (
            {"if": {"required": ["a"]}, "then": {"required": ["a", "b", "c"]}},
            {"a": "1"},
            {name: f'"{name}" is required beside the other answers' for name in "bc"},
            (),
        ),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
            {},
            {},
            ('The answers together need "a" or "b" with "c"',),
        ),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a": "1", "b": "1"},
            {},
            ('The answers together need "a" or "b", and only one of them',),
        ),
        ({"not": {"required": ["a"]}}, {"a": "1"}, {}, ('The answers together must not hold "a"',)),
        (
            {"not": {"required": ["a", "b"]}},
            {"a": "1", "b": "2"},
            {},
            ('The answers together must not hold "a" with "b" together',),
        ),
        ({"not": {"minProperties": 1}}, {"a": "1"}, {}, ("The answers together do not meet a rule of the form (not)",)),
        (
            {"additionalProperties": True, "allOf": [{"properties": {"a": False}}]},
            {"a": "1"},
            {"a": '"a" does not meet a rule of the form (properties)'},
            (),
        ),
        ({"dependencies": {"a": ["b"]}}, {"a": "1"}, {"b": '"b" is required beside the other answers'}, ()),
        (
            {"allOf": [{"properties": {"a": {"minLength": 9}}}]},
            {"a": SECRET[:3]},
            {"a": '"a" does not meet a rule of the form (minLength)'},
            (),
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"minProperties": 2}}},
            {"a": "1"},
            {},
            ("The answers together are too few: at least 2 are needed",),
        ),
        (
            {"additionalProperties": {"type": "number"}},
            {"z": SECRET},
            {"z": '"z" does not meet a rule of the form (type)'},
            (),
        ),
        (
            {"allOf": [{"properties": {"a": {"pattern": r"^\p{L}$"}}}]},
            {"a": "1"},
            {"a": '"a" does not meet a rule of the form (pattern)'},
            (),
        ),
        (
            {"allOf": [{"properties": {"a": {"format": "email"}}}]},
            {"a": SECRET},
            {"a": '"a" does not meet a rule of the form (format)'},
            (),
        ),
    ],
)
def test_rules_for_the_whole_are_kept(rule: Any, content: Any, errors: Any, general: Any) -> None:
    error = faults({**form_of(a={"type": "string"}, b={"type": "string"}), **rule}, content)
    assert (error.errors, error.general) == (errors, general)


def test_decimals_are_exact_for_the_judge_too() -> None:
    form = read_form({**form_of(n={"type": "number"}), "allOf": [{"properties": {"n": {"multipleOf": 0.01}}}]})
    assert form.validate({"n": 0.07}) == {"n": 0.07}
    with pytest.raises(FormContentError):
        form.validate({"n": 0.075})


def chained(steps: int, link: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Definitions of which each refers to the next one as `link` says."""
    return {**{f"d{i}": link(f"#/$defs/d{i + 1}") for i in range(steps)}, f"d{steps}": {}}


def twice(keyword: str) -> Callable[[str], dict[str, Any]]:
    return lambda ref: {keyword: [{"$ref": ref}, {"$ref": ref}]}


WIDE = {"enum": [f"value{i:06}" for i in range(40_000)] + ["v"]}
MANY_NAMES = {f"p{i}": "v" for i in range(9_000)}
# Each would take minutes or for ever, were its work not counted as it is done.
ENDLESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "bomb": (
        {
            "allOf": [{"$ref": "#/$defs/d0"}],
            "$defs": chained(8, lambda ref: {"allOf": [{"$ref": ref}] * 20}),
        },
        {"a": "v"},
    ),
    "unevaluatedProperties, doubling": (
        {
            "unevaluatedProperties": False,
            "if": {},
            "then": {"$ref": "#/$defs/d0"},
            "$defs": chained(30, lambda ref: {"if": {}, "then": {"$ref": ref}, "$ref": ref}),
        },
        {"a": "v"},
    ),
    **{
        f"unevaluatedProperties, {keyword}": (
            {"unevaluatedProperties": False, "allOf": [{"$ref": "#/$defs/d0"}], "$defs": chained(25, twice(keyword))},
            {"a": "v"},
        )
        for keyword in ("allOf", "anyOf")
    },
    "unevaluatedItems": (
        {
            "properties": {"a": {"items": {"type": "string"}}},
            "allOf": [{"properties": {"a": {"unevaluatedItems": False, "$ref": "#/$defs/d0"}}}],
            "$defs": chained(25, twice("allOf")),
        },
        {"a": ["v"]},
    ),
    "unevaluatedProperties inside each other": (
        {
            "allOf": [{"$ref": "#/$defs/d0"}],
            "$defs": chained(25, lambda ref: {**twice("allOf")(ref), "unevaluatedProperties": True}),
        },
        {"a": "v"},
    ),
    "another $schema inside": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [{"$ref": "#/$defs/d0"}],
            "$defs": chained(
                25, lambda ref: {**twice("allOf")(ref), "$schema": "http://json-schema.org/draft-07/schema#"}
            ),
        },
        {"a": "v"},
    ),
    "a wide enum": (
        {"allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 300, "$defs": {"d": WIDE}},
        {"a": "v"},
    ),
    "a wide required": (
        {"allOf": [{"$ref": "#/$defs/d"}] * 300, "$defs": {"d": {"required": ["a"] * 40_000}}},
        {"a": "v"},
    ),
    "a wide dependentRequired": (
        {"allOf": [{"$ref": "#/$defs/d"}] * 300, "$defs": {"d": {"dependentRequired": {"a": ["a"] * 40_000}}}},
        {"a": "v"},
    ),
    "a wide schema": (
        {"allOf": [{"$ref": "#/$defs/d"}] * 300, "$defs": {"d": {f"x-{i}": 1 for i in range(40_000)}}},
        {"a": "v"},
    ),
    "a wide const": (
        {
            "allOf": [{"properties": {"a": {"not": {"$ref": "#/$defs/d"}}}}] * 300,
            "$defs": {"d": {"const": ["v"] * 9_999 + ["w"]}},
            "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        },
        {"a": ["v"] * 10_000},
    ),
    "wide properties": (
        {"allOf": [{"$ref": "#/$defs/d"}] * 300, "$defs": {"d": {"properties": dict.fromkeys(MANY_NAMES, True)}}},
        MANY_NAMES,
    ),
    **{
        f"many answers, {keyword}": (
            {"allOf": [{"$ref": "#/$defs/d"}] * 300, "$defs": {"d": {keyword: {}}}},
            MANY_NAMES,
        )
        for keyword in ("additionalProperties", "propertyNames", "unevaluatedProperties")
    },
    **{
        f"many items, {keyword}": (
            {
                "allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 900,
                "$defs": {"d": {keyword: argument}},
                "properties": {"a": {"type": "array", "items": {"type": "string"}}},
            },
            {"a": [str(i) for i in range(10_000)]},
        )
        for keyword, argument in (("items", {}), ("contains", {}), ("uniqueItems", True), ("unevaluatedItems", {}))
    },
    "a long text": (
        {"allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 900, "$defs": {"d": {"format": "uri"}}},
        {"a": "x:" + "a" * 900_000},
    ),
    "a long text, not ASCII": (
        {"allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 900, "$defs": {"d": {"pattern": "^\\-*"}}},
        {"a": "\U0001f600" * 900_000},
    ),
    "a long const": (
        {"allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 900, "$defs": {"d": {"const": "v" * 900_000}}},
        {"a": "v" * 900_000},
    ),
}


@pytest.mark.timeout(20)  # far more than the second that judging may take
@pytest.mark.parametrize("name", ENDLESS)
def test_rules_that_never_end_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, answer = ENDLESS[name]
    if name not in ("bomb", "unevaluatedProperties, doubling"):
        monkeypatch.setattr(limits, "MAX_CHECKS", 50_000)  # the same, sooner
    error = faults({**form_of(a={"type": "string"} if isinstance(answer.get("a", ""), str) else {}), **rule}, answer)
    assert any(str(limits.MAX_CHECKS) in text for text in error.general), error


@pytest.mark.parametrize(
    "rule",
    [
        {"not": {"$ref": "#"}},
        {"allOf": [{"$ref": "#"}]},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"allOf": [{"$ref": "#/$defs/d0"}], "$defs": chained(200, lambda ref: {"$ref": ref})},
    ],
)
def test_rules_that_go_round_in_a_circle_end(rule: Any) -> None:
    assert any(str(limits.MAX_NESTED) in text for text in faults({**form_of(a={}), **rule}, {"a": "v"}).general)


def test_a_large_form_with_a_rule_for_the_whole_is_judged() -> None:
    """Far from the limit on the work: 2,000 fields, and 15,000 options that all have to be looked at."""
    options = [{"const": f"o{i}", "title": f"Option {i}"} for i in range(100)]
    choices = {f"c{i}": {"type": "string", "oneOf": options} for i in range(150)}
    texts = {
        f"t{i}": {"type": "string", "title": "T", "minLength": 1, "pattern": "^v", "maxLength": 9} for i in range(1_850)
    }
    schema = {**form_of((*choices, *texts), **choices, **texts), "minProperties": 2_000, "unevaluatedProperties": False}
    answers = {**dict.fromkeys(choices, "o99"), **dict.fromkeys(texts, "v")}
    assert read_form(schema).validate(answers) == answers


@pytest.mark.parametrize(
    "rule", [{}, {"minProperties": 1}, {"not": {"required": ["b"], "properties": {"a": {"pattern": "^b"}}}}]
)
def test_forms_can_be_copied_pickled_and_shared_by_threads(rule: Any) -> None:
    form = read_form({**form_of(a={"type": "string", "pattern": "^a"}), **rule})
    for same in (form, copy.copy(form), copy.deepcopy(form), pickle.loads(pickle.dumps(form))):
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(same.validate, [{"a": "ab"}] * 20)) == [{"a": "ab"}] * 20
        with pytest.raises(FormContentError):
            same.validate({"a": "b"})


def test_threads_do_not_spend_each_others_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each judgement has all the steps: two that need most of them can run at once."""
    monkeypatch.setattr(limits, "MAX_CHECKS", 100_000)
    form = read_form(
        {
            **form_of(a={"type": "string"}),
            "allOf": [{"properties": {"a": {"$ref": "#/$defs/d"}}}] * 2,
            "$defs": {"d": WIDE},
        }
    )
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(form.validate, [{"a": "v"}] * 4)) == [{"a": "v"}] * 4


def test_long_numbers_are_not_written_out() -> None:
    for schema, value in (
        ({"type": "string", "minLength": 10**399}, "a"),
        ({"type": "integer", "minimum": 10**399}, 1),
        ({"type": "integer", "multipleOf": 10**399 + 1}, 1),
    ):
        assert "about 1.000e+399" in str(field_of(schema).check(value))
    assert faults({**form_of(), "minProperties": 10**399}, {}).general == (
        "The answers together are too few: at least about 1.000e+399 are needed",
    )


# ---- patterns that never end ----------------------------------------------------------------------------------------

SLOW = {"type": "string", "pattern": "^(a+)+$"}


@pytest.mark.timeout(30)
def test_one_slow_pattern_is_stopped_and_said() -> None:
    reason = field_of(SLOW).check("a" * 5000 + "b")
    assert reason is not None and "can't be checked: its pattern needs more than" in reason


@pytest.mark.timeout(60)
def test_many_slow_patterns_have_one_limit() -> None:
    schema = form_of(**{f"f{i}": {**SLOW, "pattern": f"^(a+)+{i}$"} for i in range(500)})
    error = faults(schema, {f"f{i}": "a" * 5000 + "b" for i in range(500)})
    assert len(error.errors) == 500 and str(limits.PATTERN_STEPS) in error.errors["f499"]


@pytest.mark.timeout(60)
def test_a_form_of_a_thousand_fields() -> None:
    fields = {f"f{i}": {"type": "string", "minLength": 1, "pattern": "^a", "title": f"F {i}"} for i in range(900)}
    more = {f"n{i}": {"type": "integer", "minimum": i} for i in range(100)}
    answers = {**dict.fromkeys(fields, "abc"), **{f"n{i}": i for i in range(100)}}
    form = read_form(form_of((*fields, *more), **fields, **more))
    assert form.validate(answers) == answers
    assert len(faults(form_of((*fields, *more), **fields, **more), {}).errors) == 1000


def test_ordinary_forms_need_no_library() -> None:
    program = (
        "import sys; from gopher_mcp_python.forms import read_form;"
        "properties = {'a': {'$ref': '#/$defs/a'}, 'b': {'enum': ['x']}};"
        "form = read_form({'properties': properties, '$defs': {'a': {'minLength': 2}}, 'additionalProperties': False});"
        "form.validate({'a': 'ab', 'b': 'x'});"
        "print([name for name in ('jsonschema', 'referencing', 'regex', 'mcp') if name in sys.modules])"
    )
    assert children.python(program).check().out.strip() == "[]"


# ---- what is typed --------------------------------------------------------------------------------------------------

COLOURS = {
    "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green, light"}, {"const": "7", "title": "Seven"}]
}
COLOUR_LIST = {"type": "array", "items": {"anyOf": COLOURS["oneOf"]}}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "Ada", "Ada"),
        ({"type": "string"}, " Ada ", " Ada "),
        ({"type": "string"}, '""', ""),
        ({"type": "string"}, "none", "none"),
        ({"type": ["string", "null"]}, "none", MISSING),
        ({"type": "string"}, "", MISSING),
        ({"type": "string"}, "  ", MISSING),
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "integer"}, "90071992547409910", 90071992547409910),
        ({"type": "number"}, "90071992547409910.0", 90071992547409910),
        ({"type": "integer"}, "1.0", 1),
        ({"type": "integer"}, "1e3", 1000),
        ({"type": "integer"}, "-5", -5),
        ({"type": "integer"}, "- 5", -5),
        ({"type": "integer"}, "+5", 5),
        ({"type": "integer"}, "1 000 000", 1000000),
        ({"type": "integer"}, "none", MISSING),
        ({"type": "number"}, "1 . 5", 1.5),
        ({"type": "number"}, ".5", 0.5),
        ({"type": "number"}, "5.", 5),
        ({"type": "number"}, "1.5E-3", 0.0015),
        ({"type": "number"}, "0.0", 0),
        ({"type": "number"}, "0e99999", 0),
        ({"type": "number"}, "-1.50000000000000000000000", -1.5),
        ({"type": "number"}, "5e-324", 5e-324),
        ({"type": "number"}, "0.30000000000000004", 0.30000000000000004),
        ({"type": "number"}, "\u22125", -5),  # the minus of word processors
        ({"type": "number"}, "\uff11\uff12\uff0e\uff15", 12.5),  # full-width
        ({"type": "string", "format": "email"}, "ada@b.example ", "ada@b.example"),
        ({"type": "string", "format": "uri"}, " https://b.example/\t", "https://b.example/"),
        ({"type": "string", "format": "date"}, " 2026-01-31", "2026-01-31"),
        ({"type": "string", "format": "date-time"}, "2026-01-31T09:30:00Z\u00a0", "2026-01-31T09:30:00Z"),
        ({"type": "string", "format": "uuid"}, " a ", "a"),
        ({"type": "string", "format": "password"}, " a ", " a "),
        ({"type": "string", "format": "regex"}, " a ", " a "),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "boolean"}, "TRUE", True),
        ({"type": "boolean"}, "false", False),
        (COLOURS, "1", "r"),
        (COLOURS, "#2", "g"),
        (COLOURS, "Red", "r"),
        (COLOURS, "green, LIGHT", "g"),
        (COLOURS, "r", "r"),
        (COLOURS, "7", "7"),
        (COLOURS, "3", "7"),
        (COLOURS, '"Seven"', "7"),
        (COLOURS, "none", MISSING),
        ({"enum": ["none", "all"]}, "none", "none"),
        ({"enum": [10, 20]}, "20", 20),
        ({"enum": [10, 20]}, "2", 20),
        ({"enum": ["2", "1"]}, '"1"', "1"),
        ({"enum": ["2", "1"]}, "#1", "2"),
        ({"enum": ["a", "A"]}, "A", "A"),
        ({"enum": ["a", "1"], "enumNames": ["1", "3"]}, '"1"', "a"),  # a title in quotes goes before a value
        ({"enum": ["a", "1"], "enumNames": ["1", "3"]}, '"3"', "1"),
        ({"enum": ["a", "1"], "enumNames": ["1", "3"]}, "#2", "1"),
        (COLOUR_LIST, "1, 3", ["r", "7"]),
        (COLOUR_LIST, "Green, light", ["g"]),
        (COLOUR_LIST, '"Green, light", red', ["g", "r"]),
        (COLOUR_LIST, "r,r,1", ["r"]),
        (COLOUR_LIST, "", MISSING),
        (COLOUR_LIST, " , ", []),
        ({"type": "array", "items": {"type": "string"}}, 'a, "b, c" ,d', ["a", "b, c", "d"]),
        ({"type": "array", "items": {"type": "string"}}, r'"say \"hi\""', ['say "hi"']),
    ],
)
def test_what_is_typed_is_understood(schema: Any, text: str, value: Any) -> None:
    found = field_of(schema).parse(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "says"),
    [
        ({"type": "integer"}, "abc", "must be a whole number"),
        ({"type": "integer"}, "1.5", "must be a whole number"),
        ({"type": "integer"}, "1 2", "must be a whole number"),
        ({"type": "integer"}, "0x10", "must be a whole number"),
        ({"type": "integer"}, "1_000", "must be a whole number"),
        ({"type": "integer"}, "١٢", "must be a whole number"),
        ({"type": "number"}, "1,5", "must be a number, with a point before the decimals"),
        ({"type": "number"}, "1e-399", "too close to 0"),
        ({"type": "number"}, "-1e-999", "too close to 0"),
        ({"type": "number"}, "1.00000000000000000001", "too many digits"),
        ({"type": "number"}, "123456789012345678901234567890.5", "too many digits"),
        ({"type": "number"}, "1\u00b2", "must be a number"),
        ({"type": "number"}, "nan", "must be a number"),
        ({"type": "number"}, "inf", "must be a number"),
        ({"type": "number"}, "-Infinity", "must be a number"),
        ({"type": "number"}, "1e999999", "400 digits"),
        ({"type": "number"}, "1e400", "400 digits"),
        ({"type": "integer"}, "9" * 5000, "400 digits"),
        ({"type": "number"}, "1e9999999999", "must be a number"),
        ({"type": "integer", "minimum": 5}, "4", "must be 5 or more"),
        ({"type": "boolean"}, "maybe", "must be yes or no"),
        (COLOURS, "4", "its number (1 to 3) or its title"),
        (COLOURS, "0", "its number (1 to 3) or its title"),
        (COLOURS, "#7", "its number (1 to 3) or its title"),
        (COLOURS, "blue", "its number (1 to 3) or its title"),
        ({"enum": ["2", "1"]}, "1", "more than one option"),
        ({"enum": ["ab", "AB"]}, "Ab", "more than one option"),
        ({"enum": ["a", "1"], "enumNames": ["1", "3"]}, "1", 'write its number as "#1", or its title in quotes'),
        ({"enum": ["a", "b"], "enumNames": ["T", "T"]}, '"T"', "more than one option; write its number"),
        (COLOUR_LIST, "1, blue", "its number (1 to 3) or its title"),
        ({**COLOUR_LIST, "maxItems": 1}, "1,2", "takes at most 1 item chosen"),
        ({"type": "string", "format": "date"}, "20260131", "must be a date"),
        ({"type": "string"}, "x" * (limits.MAX_TEXT + 1), "must not be longer"),
    ],
)
def test_what_is_typed_wrongly_is_refused_in_plain_words(schema: Any, text: str, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        field_of(schema).parse(text)
    assert says in str(caught.value) and text not in str(caught.value).replace("#1", "")


@pytest.mark.parametrize("text", ["", "  ", "none"])
def test_a_required_field_needs_an_answer(text: str) -> None:
    for schema in (
        {"type": "integer"},
        COLOURS,
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {**MULTI, "minItems": 1},
    ):
        with pytest.raises(ValueError, match="needs an answer"):
            field_of(schema, required=True).parse(text)
    assert field_of(MULTI, required=True).parse(text) == []


def test_a_required_text_can_be_empty_if_that_is_said() -> None:
    field = field_of({"type": "string"}, required=True)
    with pytest.raises(ValueError, match='"" stands for an empty text'):
        field.parse("")
    assert field.parse('""') == "" and field.parse("none") == "none"


# ---- handlers and servers -------------------------------------------------------------------------------------------


def request_of(schema: Any) -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("form", None, "m", None, "1", "{}", "{}", requested_schema=schema)


AGE = form_of(("age",), age={"type": "integer", "minimum": 18, "title": "Age"}, note={"type": "string"})


def test_a_handlers_content_is_made_ready() -> None:
    answer = GopherAgentElicitationResponse("accept", {"age": 20.0, "note": None})
    assert answer_of(answer, request_of(AGE)) == (ACCEPT, {"age": 20})
    assert wire_answer(request_of(AGE), answer) == {"action": "accept", "content": {"age": 20}}


@pytest.mark.parametrize(
    ("content", "says"), [(None, "Age is required"), ({"age": 17}, "18 or more"), ({"age": SECRET}, "whole")]
)
def test_content_that_the_form_does_not_allow_is_an_error_of_the_handler(content: Any, says: str) -> None:
    answer = GopherAgentElicitationResponse("accept", content)
    for use in (lambda: answer_of(answer, request_of(AGE)), lambda: wire_answer(request_of(AGE), answer)):
        with pytest.raises(ValueError) as caught:
            use()
        assert says in str(caught.value) and "Age" in str(caught.value) and SECRET not in repr(caught.value)


@pytest.mark.parametrize(("action", "code"), [("decline", DECLINE), ("cancel", CANCEL)])
def test_content_of_no_accept_is_neither_checked_nor_sent(action: str, code: int) -> None:
    answer = GopherAgentElicitationResponse(action, {"age": SECRET})
    assert answer_of(answer, request_of(AGE)) == (code, None)
    assert wire_answer(request_of(AGE), answer) == {"action": action}


def test_a_form_that_can_not_be_read_is_the_servers_error() -> None:
    params = {"message": "m", "requestedSchema": form_of(x={"type": "object"})}
    with pytest.raises(InvalidElicitation, match='the field "x" is an object'):
        read_request(
            params, modes=frozenset(("form",)), version="2025-11-25", request_id=1, raw={}, server="s", tool=None
        )


def test_a_server_is_told_why_its_form_can_not_be_used(server: McpServer) -> None:
    asker = ToldAsker("accept", "form")
    params = {"mode": "form", "message": "m", "requestedSchema": form_of(x={"$ref": "https://evil.example/s.json"})}
    text = with_toolset(server.url, asker, lambda toolset: text_of(toolset, "raw_elicit", {"params": params}))
    assert text.startswith("error -32602") and "nothing is fetched" in text and not asker.requests


def test_a_form_goes_to_a_server_and_back(server: McpServer) -> None:
    content = {"__proto__": "a", "": 90071992547409910, "a.b": ["x"], "left": None}
    schema = form_of(
        ("",),
        **{
            "__proto__": {"type": "string"},
            "": {"type": "integer"},
            "a.b": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "left": {"type": "number"},
        },
    )
    asker = ToldAsker(GopherAgentElicitationResponse("accept", content), "form")
    params = {"mode": "form", "message": "m", "requestedSchema": schema}
    text = with_toolset(server.url, asker, lambda toolset: text_of(toolset, "raw_elicit", {"params": params}))
    sent = json.loads(text)["content"]
    assert sent == {"__proto__": "a", "": 90071992547409910, "a.b": ["x"]}
