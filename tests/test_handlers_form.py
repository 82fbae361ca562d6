"""The form model: what each field holds, what is wrong with it, and the answer, without any user interface."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python.forms import MISSING, FormContentError, FormSchemaError, read_form
from gopher_mcp_python.handlers.form import Entry, FormModel

STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
FRUIT: dict[str, Any] = {"type": "array", "items": {"enum": ["apple", "banana", "cherry"]}}


def model(*required: str, **properties: Any) -> FormModel:
    return FormModel({"type": "object", "properties": properties, "required": list(required)})


def entry(schema: dict[str, Any], *, required: bool = False, name: str = "field") -> Entry:
    (only,) = model(*([name] if required else []), **{name: schema}).entries
    return only


# ---- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("firstName", "First name"), ("user_id", "User id"), ("HTTPPort2", "HTTP port 2"), ("due-date", "Due date"),
        ("a.b", "A b"), ("", '""'), ("__proto__", '"__proto__"'), ("naïve", '"naïve"'), ("x\x1b[1m", '"x\\\\x1b[1m"'),
    ],
)  # fmt: skip
def test_a_field_without_a_title_is_named_by_its_key(name: str, label: str) -> None:
    assert entry(STRING, name=name).label == label
    assert entry({**STRING, "title": "Wanted"}, name=name).label == "Wanted"


def test_fields_that_would_look_the_same_are_told_apart() -> None:
    made = model(**{"a.b": STRING, "a_b": STRING, "c": {**STRING, "title": "T"}, "d": {**STRING, "title": "t"}})
    assert [each.label for each in made.entries] == ['A b ("a.b")', 'A b ("a_b")', 'T ("c")', 't ("d")']


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        (STRING, ""),
        ({**STRING, "minLength": 3}, "at least 3 characters"),
        ({**STRING, "minLength": 1}, "at least 1 character"),
        ({**STRING, "maxLength": 1}, "at most 1 character"),
        ({**STRING, "minLength": 3, "maxLength": 10}, "3 to 10 characters"),
        ({**STRING, "minLength": 4, "maxLength": 4}, "exactly 4 characters"),
        ({**STRING, "format": "email"}, "an email address such as name@example.com"),
        ({**STRING, "format": "date", "minLength": 2}, "a date such as 2026-01-31, at least 2 characters"),
        ({**STRING, "format": "odd\u202e"}, "format: odd\\u202e"),
        ({**STRING, "pattern": "^a\x1b"}, 'like the pattern "^a\\x1b"'),
        (NUMBER, "a number"),
        ({"type": "integer", "minimum": 1, "maximum": 10}, "a whole number, 1 to 10"),
        ({**NUMBER, "minimum": 0.5}, "a number, 0.5 or more"),
        ({**NUMBER, "exclusiveMinimum": 0, "maximum": 5}, "a number, 5 or less, more than 0"),
        ({**NUMBER, "exclusiveMaximum": 5, "multipleOf": 0.5}, "a number, less than 5, a multiple of 0.5"),
        ({"type": "boolean"}, "yes or no"),
        ({"const": True}, "only yes"),
        ({"enum": ["a", "b"]}, "choose one"),
        (FRUIT, "choose any number"),
        ({**FRUIT, "minItems": 1}, "choose 1 or more"),
        ({**FRUIT, "minItems": 1, "maxItems": 2}, "choose 1 to 2"),
        ({**FRUIT, "minItems": 2, "maxItems": 2}, "choose exactly 2"),
        ({**FRUIT, "maxItems": 2}, "choose at most 2"),
        ({"type": "array", "items": STRING}, "give any number of texts, with commas between them"),
    ],
)
def test_a_hint_says_what_an_answer_has_to_be(schema: dict[str, Any], hint: str) -> None:
    assert entry(schema).hint == hint


def test_what_else_an_entry_tells() -> None:
    made = entry({**STRING, "description": " Why \x1b ", "default": "x"}, name="apiKey", required=True)
    assert (made.name, made.description, made.required, made.default) == ("apiKey", "Why \x1b", True, "x")
    assert made.is_secret_named
    choice = entry({"oneOf": [{"const": "s", "title": "small"}, {"const": "m"}], "default": "s"})
    assert [option.title for option in choice.options] == ["small", "m"]
    assert choice.text == "small"
    assert entry({"type": "boolean", "default": False}).text == "no"
    assert entry({**FRUIT, "default": ["apple", "cherry"]}).text == "apple, cherry"
    assert entry(STRING).text == ""


# ---- four states -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "default"),
    [({"type": "boolean"}, False), (NUMBER, 0), (STRING, ""), ({"enum": ["a", "b"]}, "b"), (FRUIT, [])],
)
def test_defaults_are_filled_in_also_when_they_are_false(schema: dict[str, Any], default: Any) -> None:
    made = model(field={**schema, "default": default})
    assert (made["field"].state, made["field"].value) == ("default", default)
    assert made.content() == {"field": default}
    assert not made.changed


def test_what_was_left_alone_is_left_out() -> None:
    made = model(a=STRING, b=NUMBER, c={"type": "boolean"}, d={**FRUIT, "minItems": 1})
    assert {each.state for each in made.entries} == {"omitted"}
    assert made.content() == {}


@pytest.mark.parametrize(("schema", "empty"), [(STRING, ""), (FRUIT, [])])
@pytest.mark.parametrize("required", [True, False])
def test_empty_is_something_else_than_left_out(schema: dict[str, Any], empty: Any, required: bool) -> None:
    made = model(*(["field"] if required else []), field=schema)
    assert made["field"].set_text('""') is None
    assert (made["field"].state, made.content()) == ("empty", {"field": empty})
    assert made.changed
    made["field"].reset()
    assert (made["field"].state, made.changed) == ("omitted", False)


def test_a_value_can_be_given_changed_left_out_and_taken_back() -> None:
    made = model(n={"type": "integer", "default": 3})
    one = made["n"]
    assert one.set_text(" 1 000 ") is None
    assert (one.state, one.value, made.changed) == ("value", 1000, True)
    assert one.omit() is None
    assert (one.state, made.content(), made.changed) == ("omitted", {}, True)
    assert one.set_value(3.0) is None
    assert (made.content(), made.changed) == ({"n": 3}, False)
    assert one.set_value(None) is None
    assert made.content() == {}
    one.reset()
    assert (one.state, one.value) == ("default", 3)


def test_none_leaves_out_what_may_be_null_and_null_is_never_sent() -> None:
    made = model(t={"anyOf": [STRING, {"type": "null"}], "default": "x"}, n=NUMBER)
    assert made["t"].set_text("none") is None and made["n"].set_text("none") is None
    assert made.content() == {}


# ---- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "typed", "problem"),
    [
        ({**STRING, "minLength": 5}, "abc", "needs 2 more characters (at least 5)"),
        ({**STRING, "minLength": 4}, "abc", "needs 1 more character (at least 4)"),
        ({**STRING, "minLength": 4}, '""', "needs 4 more characters (at least 4)"),
        ({**STRING, "maxLength": 2}, "abcd", "has 2 characters too many (at most 2)"),
        ({**FRUIT, "minItems": 1, "maxItems": 2}, "1,2,3", "has 1 too many: choose 1 to 2"),
        ({**FRUIT, "minItems": 2}, "banana", "needs 1 more: choose 2 or more"),
        ({**FRUIT, "minItems": 2}, '""', "needs 2 more: choose 2 or more"),
        (FRUIT, "melon", "must be an option of the list: its number (1 to 3) or its title"),
        ({"type": "array", "items": {**STRING, "maxLength": 2}}, "abc", "holds an item that must be at most 2"),
        ({"type": "integer"}, "abc", "must be a whole number"),
        ({**NUMBER, "maximum": 5}, "6", "must be 5 or less"),
        ({**STRING, "format": "date"}, "20260131", "must be a date written as year-month-day"),
        ({**STRING, "pattern": "^a"}, "b", 'must match the pattern "^a"'),
        ({"type": "boolean"}, "maybe", "must be yes or no"),
    ],
)
def test_a_problem_says_what_to_do_and_the_value_stays(schema: dict[str, Any], typed: str, problem: str) -> None:
    made = model(field=schema)
    one = made["field"]
    told = one.set_text(typed)
    assert told is not None and told.startswith(problem)
    assert (one.problem, one.state, one.value) == (told, "omitted", MISSING)
    assert made.problems() == ({"field": told}, [])
    with pytest.raises(FormContentError, match=r"^Field "):
        made.content()
    assert made.changed
    one.discard()
    assert made.content() == {}


def test_how_long_a_secret_is_stays_untold() -> None:
    told = entry({**STRING, "minLength": 8}, name="password").set_text("abc")
    assert told == "must be at least 8 characters long"


def test_missing_and_wrong_answers_keep_the_form_from_being_accepted() -> None:
    made = model("a", "c", a=STRING, b=STRING, c={**NUMBER, "default": 9, "maximum": 5})
    assert made.missing == (made["a"],)
    assert made.problems() == ({"a": "needs an answer", "c": "must be 5 or less"}, [])
    with pytest.raises(FormContentError) as caught:
        made.content()
    assert caught.value.errors == {"a": "A needs an answer", "c": "C must be 5 or less"}
    assert made["a"].omit() == "needs an answer"
    assert made["a"].set_text("x") is None and made["c"].set_text("4") is None
    assert made.missing == ()
    assert made.content() == {"a": "x", "c": 4}


def test_rules_for_the_form_as_a_whole_are_told_at_the_end() -> None:
    schema = {"type": "object", "properties": {"a": STRING, "b": STRING}, "minProperties": 1}
    made = FormModel(schema)
    rules, general = made.problems()
    assert rules == {} and len(general) == 1 and general[0].startswith("The answers together ")
    made["b"].set_text("x")
    assert made.problems() == ({}, [])
    dependent = FormModel({**schema, "dependentRequired": {"b": ["a"]}})
    dependent["b"].set_text("x")
    with pytest.raises(FormContentError):
        dependent.content()


@pytest.mark.parametrize("items", [["a, b", 'c"d', "e\\f"], [" x "], ["", "y"], ["plain", "words"]])
def test_a_list_can_be_typed_on_as_it_stands(items: list[str]) -> None:
    one = entry({"type": "array", "items": STRING, "default": items})
    assert one.set_text(one.typed) is None and one.value == items


def test_whether_empty_is_an_answer_of_its_own() -> None:
    schemas = (STRING, {**STRING, "minLength": 1}, FRUIT, {**FRUIT, "minItems": 1}, NUMBER, {"enum": ["", "x"]})
    assert [entry(schema).can_be_empty for schema in schemas] == [True, False, True, False, False, False]
    assert entry({**STRING, "format": "email"}).can_be_empty is False


# ---- the model as a whole --------------------------------------------------------------------------------------------


def test_every_key_comes_back() -> None:
    names = ("__proto__", "__class__", "class", "", "a b", "a.b", "0")
    made = model(**dict.fromkeys(names, STRING))
    for each in made.entries:
        assert each.set_value(each.name + "!") is None
    assert made.content() == {name: name + "!" for name in names}


def test_a_form_can_be_given_read_and_nothing_shows_values() -> None:
    made = FormModel(read_form({"type": "object", "properties": {"a": STRING}}))
    made["a"].set_text("hunter2")
    assert "hunter2" not in repr(made) + repr(made["a"])
    with pytest.raises(FormSchemaError):
        FormModel({"type": "array"})
    assert FormModel({"type": "object", "properties": {}}).content() == {}
