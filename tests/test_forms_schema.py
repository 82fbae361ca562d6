"""Schemas of servers, read as forms: what is asked for, and what is refused, with which words."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pytest

from gopher_mcp_python.forms import MISSING, Field, Form, FormSchemaError, Option, limits, read_form


def form_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def field_of(schema: Any, **root: Any) -> Field:
    (field,) = read_form({"type": "object", "properties": {"x": schema}, **root}).fields
    return field


def options_of(field: Field) -> list[tuple[Any, str]]:
    return [(option.value, option.title) for option in field.options]


def refused(schema: Any) -> str:
    with pytest.raises(FormSchemaError) as caught:
        read_form(schema)
    text = str(caught.value)
    assert len(text) < 400 and "\n" not in text
    return text


# ---- the shapes of the specification --------------------------------------------------------------------------------


def test_each_primitive_with_all_its_keywords() -> None:
    form = read_form(
        {
            "type": "object",
            "title": "Order",
            "description": "What, and how many",
            "properties": {
                "s": {
                    "type": "string",
                    "title": "Name",
                    "description": "Yours",
                    "minLength": 1,
                    "maxLength": 9,
                    "pattern": "^a",
                    "default": "a",
                },
                "m": {"type": "string", "format": "email"},
                "n": {"type": "number", "minimum": 0.5, "maximum": 9, "default": 1.5},
                "i": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 2},
                "b": {"type": "boolean", "default": False},
            },
            "required": ["s", "b"],
        }
    )
    s, m, n, i, b = form.fields
    assert (form.title, form.description, form.closed) == ("Order", "What, and how many", False)
    assert form.required == {"s", "b"} and [field.required for field in form.fields] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert (s.kind, s.title, s.description, s.min_length, s.max_length, s.pattern, s.default) == (
        "string",
        "Name",
        "Yours",
        1,
        9,
        "^a",
        "a",
    )
    assert (m.kind, m.format, m.title, m.default) == ("string", "email", None, MISSING)
    assert (n.kind, n.minimum, n.maximum, n.default) == ("number", 0.5, 9, 1.5)
    assert (i.kind, i.exclusive_minimum, i.exclusive_maximum, i.multiple_of) == ("integer", 0, 10, 2)
    assert (b.kind, b.default, b.options) == ("boolean", False, ())


TWO = [("r", "Red"), ("g", "Green")]


@pytest.mark.parametrize(
    ("schema", "kind", "options"),
    [
        ({"type": "string", "enum": ["r", "g"]}, "choice", [("r", "r"), ("g", "g")]),
        (
            {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "choice",
            TWO,
        ),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "choice", TWO),
        ({"type": "array", "items": {"type": "string", "enum": ["r", "g"]}}, "choices", [("r", "r"), ("g", "g")]),
        (
            {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}},
            "choices",
            TWO,
        ),
    ],
    ids=["untitled", "titled", "enumNames", "untitled multi", "titled multi"],
)
def test_the_five_enum_shapes(schema: Any, kind: str, options: list[tuple[str, str]]) -> None:
    field = field_of(schema)
    assert (field.kind, options_of(field)) == (kind, options)


def test_a_multi_select_has_its_counts_and_default() -> None:
    items = {"type": "string", "enum": ["a", "b", "c"]}
    field = field_of({"type": "array", "items": items, "minItems": 1, "maxItems": 2, "default": ["c", "a"]})
    assert (field.min_items, field.max_items, field.unique_items, field.default) == (1, 2, False, ["c", "a"])
    assert field_of({"type": "array", "items": items, "uniqueItems": True}).unique_items


# ---- what schema writers make of them -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({}, "string"),
        (True, "string"),
        ({"minLength": 2}, "string"),
        ({"format": "date"}, "string"),
        ({"maximum": 5}, "number"),
        ({"default": 5}, "number"),
        ({"default": True}, "boolean"),
        ({"enum": ["a"]}, "choice"),
        ({"const": "a"}, "choice"),
        ({"const": True}, "boolean"),
        ({"enum": [True, False]}, "boolean"),
        ({"oneOf": [{"const": True, "title": "On"}, {"const": False, "title": "Off"}]}, "choice"),
        ({"items": {"enum": ["apple", "banana", "orange"]}}, "choices"),
        ({"minItems": 1}, "choices"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": ["null", "integer"]}, "integer"),
        ({"type": ["integer", "number"]}, "number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string"),
        ({"oneOf": [{"type": "null"}, {"type": "number"}]}, "number"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"const": None}]}, "choice"),
        ({"type": "string", "nullable": True}, "string"),
        ({"allOf": [{"enum": ["a", "b"]}], "default": "a"}, "choice"),
        ({"anyOf": [{"type": "string", "format": "email"}, {"type": "string", "format": "uri"}]}, "string"),
        ({"type": "array", "items": {"type": "string"}}, "choices"),
        ({"enum": [1, 2, "three"]}, "choice"),
    ],
)
def test_kinds_that_are_not_said_plainly(schema: Any, kind: str) -> None:
    assert field_of(schema).kind == kind


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "string", "nullable": True},
        {"enum": ["a", None], "type": ["string", "null"]},
        {"oneOf": [{"const": "a"}, {"const": None}]},
    ],
)
def test_or_null_is_known(schema: Any) -> None:
    assert field_of(schema).nullable
    assert not field_of({"type": "string"}).nullable


def test_options_are_what_can_be_sent() -> None:
    assert options_of(field_of({"enum": ["a", None, "a", 1, 1.0, True]})) == [("a", "a"), (1, "1"), (True, "yes")]
    assert options_of(field_of({"type": "integer", "enum": ["a", 1, 2.0, 2.5, True]})) == [(1, "1"), (2, "2")]
    assert options_of(field_of({"enum": ["", " "]})) == [("", '""'), (" ", '" "')]
    # of oneOf exactly one may hold, so an option that stands twice can't be chosen
    twice = [{"const": "a"}, {"const": "b"}, {"const": "a", "title": "A"}]
    assert options_of(field_of({"oneOf": twice})) == [("b", "b")]
    assert options_of(field_of({"anyOf": twice})) == [("a", "a"), ("b", "b")]


def test_a_boolean_of_which_one_value_is_left_has_it_as_its_option() -> None:
    assert options_of(field_of({"type": "boolean", "const": True})) == [(True, "yes")]
    assert options_of(field_of({"type": "boolean", "enum": [False, True]})) == []


@pytest.mark.parametrize("names", [["only one"], "no list", None, [1, 2], ["", " "]])
def test_enum_names_that_do_not_fit_are_not_used(names: Any) -> None:
    assert options_of(field_of({"enum": ["a", "b"], "enumNames": names})) == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "boolean", "default": False}, False),
        ({"type": "number", "default": 0}, 0),
        ({"type": "integer", "default": 2.0}, 2),
        ({"type": "string", "default": ""}, ""),
        ({"type": "string", "minLength": 5, "default": "abc"}, "abc"),  # shown, and refused when it is submitted
        ({"type": "string", "default": None}, MISSING),
        ({"type": "string", "default": 5}, MISSING),
        ({"type": "number", "default": "5"}, MISSING),
        ({"type": "boolean", "default": 0}, MISSING),
        ({"enum": ["a", "b"], "default": "c"}, MISSING),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1, "default": []}, []),
        ({"type": "array", "items": {"enum": ["a"]}, "default": ["b"]}, MISSING),
        ({"type": "array", "items": {"enum": ["a"]}, "default": "a"}, MISSING),
    ],
)
def test_defaults_of_the_right_kind_are_kept(schema: Any, default: Any) -> None:
    found = field_of(schema).default
    assert found == default and type(found) is type(default)


@pytest.mark.parametrize(
    "name", ["__proto__", "__class__", "constructor", "toString", "class", "", "a b", "a.b", "ü", "x\ny", "$ref"]
)
def test_any_name_is_a_field(name: str) -> None:
    form = read_form(form_of(**{name: {"type": "string"}}) | {"required": [name]})
    assert form.by_name[name].required and form.validate({name: "v"}) == {name: "v"}


def test_labels_are_titles_or_names_and_harmless() -> None:
    assert field_of({"title": "Your name"}).label == "Your name"
    assert field_of({"title": "  "}).label == '"x"'
    assert field_of({"title": "a\x1b[2J\nb" + "c" * 200}).label.startswith("a\\x1b[2J b")
    assert len(field_of({"title": "c" * 2000}).label) < 120
    (field,) = read_form(form_of(**{"\x07\n": {}})).fields
    assert field.label == '"\\\\x07"'


SECRETS = [
    *"passwords apiKeys api_keys API-Key userpassword dbPassword user_pwd dbpwd pass user_pass passWord 2fa".split(),
    *"pincode sshKey creditCard cardNumber mnemonic bearer access_tokens authtoken client-secret clientsecret".split(),
    *"Passwort Geheimnis contraseña motDePasse mot_de_passe senha wachtwoord hasło новый-пароль".split(),
    *"TOTP 密码 请输入密码 パスワード 비밀번호 ＰＡＳＳＷＯＲＤ Pass-phrase".split(),
    *("pass phrase", "PIN code", "Credit card", "social security number", "Seed phrase", "Recovery code"),
    *("Backup codes", "Mot de passe", "Ihr Passwort", "Private key (PEM)", "One-time code"),
]
NO_SECRETS = [
    *"compass passport passenger boarding-pass passive secretary keyboard cardinal pinned tokenizer codename".split(),
    *"monkeys apis credits socialMedia phrase seed recovery address bypass spins Straße 名前 имя".split(),
]


@pytest.mark.parametrize(
    ("name", "title", "secret"),
    [
        ("password", None, True),
        ("userPassword", None, True),
        ("api_key", None, True),
        ("apiKey", None, True),
        ("PIN", None, True),
        ("x", "Security code", True),
        ("x", "Your access token", True),
        ("one-time-otp", None, True),
        *((name, None, True) for name in SECRETS),
        *(("x", name, True) for name in SECRETS),
        ("x", "Please read this with care. " * 20 + "Your password", True),
        *((name, None, False) for name in NO_SECRETS),
        *(("x", name, False) for name in NO_SECRETS),
        ("name", None, False),
        ("state", None, False),
        ("code", None, False),
        ("pinned", None, False),
        ("tokenizer", None, False),
        ("key", None, False),
    ],
)
def test_fields_that_look_like_a_secret_are_known(name: str, title: str | None, secret: bool) -> None:
    (field,) = read_form(form_of(**{name: {"type": "string", **({"title": title} if title else {})}})).fields
    assert field.is_secret_named is secret


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "password"},
        {"type": "string", "writeOnly": True},
        {"$ref": "#/$defs/S"},
        {"anyOf": [{"type": "string", "format": "password", "writeOnly": True}, {"type": "null"}]},
    ],
)
def test_what_the_server_says_is_a_secret_is_one(schema: Any) -> None:
    """As pydantic's SecretStr and OpenAPI say it."""
    defs = {"$defs": {"S": {"type": "string", "writeOnly": True}}}
    assert field_of(schema, **defs).is_secret_named
    assert not field_of({"type": "string", "writeOnly": False, "format": "email"}).is_secret_named


KEYWORDS = (
    "title description type minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum "
    "multipleOf default enum enumNames oneOf anyOf allOf $ref items minItems maxItems uniqueItems nullable not if then "
    "contains $id"
).split()


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_a_keyword_that_is_null_is_not_there(keyword: str) -> None:
    """As writers of schemas send it that write whatever they have not set as null."""
    schema = {"type": "string", "minLength": 1, keyword: None}
    bare = {name: value for name, value in schema.items() if name != keyword}
    for rule in (
        {},
        {"minProperties": 1},
        {"not": {"properties": {"x": {"const": "b", keyword: None}}, keyword: None}},
    ):
        found, expected = (read_form(form_of(x=x) | rule) for x in (schema, bare))
        assert vars(found.fields[0]) == vars(expected.fields[0])
        assert found.validate({"x": "a"}) == {"x": "a"}
    assert field_of({"type": "array", "items": {"enum": ["a"], keyword: None}}).check(["a"]) is None


@pytest.mark.parametrize(
    "keyword",
    "title description type properties required additionalProperties $schema $id $defs $ref allOf anyOf not if".split(),
)
def test_a_keyword_of_the_form_that_is_null_is_not_there(keyword: str) -> None:
    form = read_form(form_of(x={"type": "string"}) | {keyword: None})
    assert form.validate({"x": "a"}) == {"x": "a"} and not form.closed
    judged = read_form(form_of(x={"type": "string"}) | {"minProperties": 1, keyword: None})
    assert judged.validate({"x": "a"}) == {"x": "a"}


def test_a_const_that_is_null_is_null() -> None:
    assert "nothing to choose" in refused(form_of(x={"const": None}) | {"required": ["x"]})
    judged = read_form(form_of(x={}) | {"allOf": [{"properties": {"x": {"const": None}}}]})
    with pytest.raises(ValueError, match="const"):
        judged.validate({"x": "a"})


@pytest.mark.parametrize(
    "schema", [{"type": "null"}, {"const": None}, {"anyOf": [{"type": "null"}]}, {"type": ["null"]}]
)
def test_an_optional_field_that_can_only_be_null_is_left_out(schema: Any) -> None:
    form = read_form(form_of(x=schema, y={"type": "string"}))
    assert [field.name for field in form.fields] == ["y"]
    assert form.validate({"x": None, "y": "a"}) == {"y": "a"}
    with pytest.raises(ValueError, match='"x"'):
        form.validate({"x": "a"})


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_whole_number_or_a_number_is_a_number(keyword: str) -> None:
    """As pydantic writes Union[int, float]."""
    field = field_of({keyword: [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 1}]})
    assert field.kind == "number"


def test_schemas_of_other_dicts_and_lists_have_the_same_limits() -> None:
    class Items(list[Any]):
        pass

    itself = Items()
    itself.append(itself)
    deep = inner = OrderedDict[str, Any]()
    for _ in range(3_000):
        inner["anyOf"] = [OrderedDict()]
        inner = inner["anyOf"][0]
    assert str(limits.MAX_DEPTH) in refused(form_of(x={"enum": itself}))
    assert str(limits.MAX_DEPTH) in refused(form_of(x=deep))
    assert str(limits.MAX_VALUES) in refused(form_of(x={"examples": Items([Items()] * 200_000)}))
    ordinary = OrderedDict(type="object", properties=OrderedDict(x=OrderedDict(enum=Items(["a"]))), minProperties=1)
    assert read_form(ordinary).validate({"x": "a"}) == {"x": "a"}


@pytest.mark.parametrize(
    "rule",
    [
        {"not": {"type": "strnig"}},
        {"not": {"enum": "a"}},
        {"not": {"required": [1]}},
        {"dependentRequired": {"x": 5}},
        {"dependencies": {"x": 5}},
        {"not": {"format": 5}},
        {"not": {"exclusiveMinimum": "1"}},
    ],
)
def test_rules_that_are_no_json_schema_are_the_servers_error(rule: Any) -> None:
    assert "the form has a" in refused(form_of(x={"type": "string"}) | rule)


def test_draft_3_required_demands_nothing() -> None:
    form = read_form(form_of(x={"type": "string", "required": True}) | {"allOf": [{"required": False}]})
    assert form.validate({}) == {}


def test_many_short_patterns_are_read_at_once() -> None:
    patterns = [f"{chr(0x4E00 + i // 100)}{chr(0x5E00 + i % 100)}" for i in range(12_000)]
    read_form(form_of(x={"type": "string"}) | {"not": {"allOf": [{"pattern": pattern} for pattern in patterns]}})


def test_exclusive_bounds_of_old_drafts() -> None:
    field = field_of(
        {"type": "number", "minimum": 5, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}
    )
    assert (field.minimum, field.exclusive_minimum, field.maximum, field.exclusive_maximum) == (None, 5, 9, None)


@pytest.mark.parametrize("schema", [{}, {"properties": {}}, {"type": "object"}, {"type": ["object"]}, {"required": []}])
def test_a_form_without_fields(schema: Any) -> None:
    form = read_form(schema)
    assert form.fields == () and form.validate({}) == {}


def test_reprs_hold_no_content() -> None:
    form = read_form(form_of(mail={"type": "string", "default": "ada@example.com"}))
    assert repr(form) == "Form(1 fields, 0 required)" and repr(form.fields) == "(Field('mail', 'string'),)"
    assert repr(Option("ada", "Ada")) == "Option('Ada')"


def test_missing_is_one_and_false() -> None:
    assert not MISSING and repr(MISSING) == "MISSING"
    assert copy.deepcopy(MISSING) is MISSING and pickle.loads(pickle.dumps(MISSING)) is MISSING


def test_a_schema_that_is_another_mapping() -> None:
    class Odd(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return {"type": "object", "properties": {"a": {"type": "integer"}}}[key]

        def __iter__(self) -> Any:
            return iter(("type", "properties"))

        def __len__(self) -> int:
            return 2

    assert read_form(Odd()).fields[0].kind == "integer"


# ---- $ref -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "root"),
    [
        ({"$ref": "#/$defs/P"}, {"$defs": {"P": {"enum": ["low", "high"]}}}),
        ({"$ref": "#/definitions/P"}, {"definitions": {"P": {"enum": ["low", "high"]}}}),
        ({"$ref": "#/$defs/Q"}, {"$defs": {"Q": {"$ref": "#/$defs/P"}, "P": {"enum": ["low", "high"]}}}),
        ({"$ref": "#/$defs/a~1b~0c%25"}, {"$defs": {"a/b~c%": {"enum": ["low", "high"]}}}),
        ({"$ref": "#/$defs/L/oneOf/1"}, {"$defs": {"L": {"oneOf": [{}, {"enum": ["low", "high"]}]}}}),
        (
            {"$ref": "https://s.example/f#/$defs/P"},
            {"$id": "https://s.example/f", "$defs": {"P": {"enum": ["low", "high"]}}},
        ),
        (
            {"allOf": [{"$ref": "#/$defs/P"}], "title": "Prio"},
            {"$defs": {"P": {"enum": ["low", "high"], "title": "P"}}},
        ),
        ({"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}, {"$defs": {"P": {"enum": ["low", "high"]}}}),
        ({"oneOf": [{"$ref": "#/$defs/A"}, {"const": "high"}]}, {"$defs": {"A": {"const": "low"}}}),
    ],
)
def test_refs_inside_the_schema_are_followed(schema: Any, root: Any) -> None:
    field = field_of(schema, **root)
    assert field.kind == "choice" and [option.value for option in field.options] == ["low", "high"]


def test_a_ref_in_the_items_of_a_list() -> None:
    field = field_of({"type": "array", "items": {"$ref": "#/$defs/P"}}, **{"$defs": {"P": {"enum": ["a"]}}})
    assert field.kind == "choices" and options_of(field) == [("a", "a")]


def test_what_stands_beside_a_ref_counts_first() -> None:
    field = field_of(
        {"$ref": "#/$defs/S", "title": "Mine", "minLength": 2},
        **{"$defs": {"S": {"type": "string", "title": "Theirs", "description": "D", "maxLength": 5}}},
    )
    assert (field.title, field.description, field.min_length, field.max_length) == ("Mine", "D", 2, 5)


def test_a_ref_at_the_top() -> None:
    form = read_form(
        {"$ref": "#/definitions/F", "definitions": {"F": form_of(a={"type": "string"}) | {"required": ["a"]}}}
    )
    assert [field.name for field in form.fields] == ["a"] and form.required == {"a"}


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("https://evil.example/schema.json", "nothing is fetched"),
        ("other.json#/a", "nothing is fetched"),
        ("file:///etc/passwd", "nothing is fetched"),
        ("#/$defs/Nowhere", "which is not there"),
        ("#/properties/x/type/5", "which is not there"),
        ("#/properties/x", "refers to itself"),
        ("#/$defs/Loop", "refers to itself"),
        ("#anchor", "named place"),
        ("#", "is an object"),
        (5, "no text"),
        ("#/" + "a" * 5000, "more than"),
        ("#/$defs/Based", "$id of its own"),
    ],
)
def test_refs_that_are_not_followed_are_named(ref: Any, says: str) -> None:
    defs = {
        "Loop": {"$ref": "#/$defs/Loop2"},
        "Loop2": {"$ref": "#/$defs/Loop"},
        "Based": {"$id": "https://other.example/", "type": "string"},
    }
    text = refused(form_of(x={"$ref": ref}) | {"$defs": defs})
    assert says in text and '"x"' in text


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(socket, "socket", lambda *a, **k: pytest.fail("a socket was made"))
    for rule in ({"$ref": "http://127.0.0.1:9/s"}, {"not": {"$ref": "http://127.0.0.1:9/s"}}):
        assert "nothing is fetched" in refused(form_of(x=rule))
    judged = {"$schema": "http://127.0.0.1:9/s", **form_of(x={"type": "string"}), "minProperties": 0}
    assert read_form(judged).validate({"x": "a"}) == {"x": "a"}


# ---- what is no form ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ([], "no object"),
        (None, "no object"),
        ({"type": "string"}, '"object"'),
        ({"type": 5}, '"object"'),
        ({"properties": []}, "properties"),
        ({"required": "a"}, "list of names"),
        ({"required": [1]}, "list of names"),
        ({"properties": {}, "required": ["gone"]}, '"gone"'),
        (form_of(x=False), "can't be answered"),
        (form_of(x=None), "can't be answered"),
        (form_of(x=[]), "can't be answered"),
        (form_of(x={"type": "object"}), "is an object"),
        (form_of(x={"properties": {"y": {}}}), "is an object"),
        (form_of(x={"type": "array", "items": {"type": "object"}}), "is an object"),
        (form_of(x={"type": "array", "items": {"type": "array"}}), "list of something else"),
        (form_of(x={"type": "array", "items": {"type": "integer"}}), "list of something else"),
        (form_of(x={"type": "array", "items": {"enum": ["a", 1]}}), "list of something else"),
        (form_of(x={"type": "array", "items": [{"type": "string"}]}), "can't be answered"),
        (form_of(x={"type": "null"}) | {"required": ["x"]}, "nothing but null"),
        (form_of(x={"anyOf": [{"type": "null"}]}) | {"required": ["x"]}, "nothing but null"),
        (form_of(x={"type": "integer", "minimum": 10**4000}), "more than 400 digits"),
        (form_of(x={"type": "integer", "minimum": -(10**5000)}), "more than 400 digits"),
        (form_of(x={"enum": [10**400]}), "more than 400 digits"),
        (form_of(x={"type": "strnig"}), "'strnig'"),
        (form_of(x={"type": []}), "no text"),
        (form_of(x={"type": ["string", "number"]}), "several kinds"),
        (form_of(x={"anyOf": [{"type": "string"}, {"type": "number"}]}), "several kinds"),
        (form_of(x={"allOf": [{"type": "string"}, {"type": "number"}]}), "nothing at all"),
        (form_of(x={"enum": []}), "nothing to choose"),
        (form_of(x={"enum": [None]}), "nothing to choose"),
        (form_of(x={"type": "string", "enum": [1]}), "nothing to choose"),
        (form_of(x={"oneOf": [{"const": "a"}, {"const": "a"}]}), "nothing to choose"),
        (form_of(x={"enum": "ab"}), "no list"),
        (form_of(x={"enum": [{"a": 1}]}), "an object to choose"),
        (form_of(x={"enum": [["a"]]}), "a list to choose"),
        (form_of(x={"oneOf": []}), "empty"),
        (form_of(x={"anyOf": {"a": 1}}), "no list"),
        (form_of(x={"type": "string", "minLength": -1}), "minLength"),
        (form_of(x={"type": "string", "maxLength": "5"}), "maxLength"),
        (form_of(x={"type": "string", "minLength": True}), "minLength"),
        (form_of(x={"type": "string", "pattern": 5}), "pattern"),
        (form_of(x={"type": "string", "pattern": "(["}), "pattern"),
        (form_of(x={"type": "string", "format": 5}), "format"),
        (form_of(x={"type": "number", "minimum": "5"}), "minimum"),
        (form_of(x={"type": "number", "multipleOf": 0}), "multipleOf"),
        (form_of(x={"type": "number", "multipleOf": -1}), "multipleOf"),
        (form_of(x={"minItems": 1.5}), "minItems"),
        (form_of(x={"type": "number", "minimum": float("nan")}), "NaN"),
        (form_of(x={"type": "number", "maximum": float("inf")}), "NaN"),
        (form_of(x={"default": b"bytes"}), "no JSON"),
        (form_of(x={"title": "\ud800"}), "half a character"),
        ({"properties": {5: {}}}, "no JSON"),
    ],
)
def test_what_can_not_be_a_form_is_refused_with_the_reason(schema: Any, says: str) -> None:
    text = refused(schema)
    assert says in text
    about_all = text.startswith(("the form holds", "the form is no JSON"))
    if isinstance(schema, dict) and "x" in schema.get("properties", {}) and not about_all:
        assert '"x"' in text


def test_lengths_that_are_whole_floats_are_whole() -> None:
    assert field_of({"type": "string", "minLength": 2.0}).min_length == 2


# ---- hostile schemas: bounded, and the limit is named ---------------------------------------------------------------


def nested(depth: int, keyword: str = "not") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {keyword: schema}
    return schema


def bomb(keyword: str) -> dict[str, Any]:
    """Each definition names the next one twenty times: 64 million schemas when it is written out."""
    defs: dict[str, Any] = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 20} for i in range(6)}
    defs["d6"] = {"type": "string"}
    return form_of(x={"$ref": "#/$defs/d0"}) | {"$defs": defs}


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    schema["examples"] = [schema]
    return form_of(x=schema)


HOSTILE = {
    "deep": (lambda: form_of(x=nested(100_000)), limits.MAX_DEPTH),
    "cyclic": (cyclic, limits.MAX_DEPTH),
    "many fields": (lambda: form_of(**{f"f{i}": {} for i in range(100_000)}), limits.MAX_FIELDS),
    "many fields behind a ref": (
        lambda: {"$ref": "#/$defs/f", "$defs": {"f": form_of(**{f"f{i}": {} for i in range(50_000)})}},
        limits.MAX_FIELDS,
    ),
    "many options": (lambda: form_of(x={"enum": [str(i) for i in range(10_000)]}), limits.MAX_OPTIONS),
    "many titled options": (
        lambda: form_of(x={"oneOf": [{"const": str(i), "title": "t"} for i in range(10_000)]}),
        limits.MAX_OPTIONS,
    ),
    "many options together": (
        lambda: form_of(**{f"f{i}": {"enum": [str(j) for j in range(4_000)]} for i in range(20)}),
        limits.MAX_ALL_OPTIONS,
    ),
    "many options by refs": (
        lambda: (
            form_of(**{f"f{i}": {"$ref": "#/$defs/e"} for i in range(2_000)})
            | {"$defs": {"e": {"enum": [str(j) for j in range(4_000)]}}}
        ),
        limits.MAX_ALL_OPTIONS,
    ),
    "many values": (lambda: form_of(x={"examples": [[]] * 200_000}), limits.MAX_VALUES),
    "a megabyte of title": (lambda: form_of(x={"title": "t" * 1_000_000}), limits.MAX_TITLE),
    "a megabyte of option": (lambda: form_of(x={"enum": ["t" * 1_000_000]}), limits.MAX_TITLE),
    "a megabyte of option title": (
        lambda: form_of(x={"oneOf": [{"const": 1, "title": "t" * 10**6}]}),
        limits.MAX_TITLE,
    ),
    "a megabyte of description": (lambda: form_of(x={"description": "t" * 1_000_000}), limits.MAX_DESCRIPTION),
    "a megabyte of name": (lambda: form_of(**{"t" * 1_000_000: {}}), limits.MAX_NAME),
    "a megabyte of pattern": (lambda: form_of(x={"pattern": "t" * 1_000_000}), limits.MAX_PATTERN),
    "many patterns": (
        lambda: form_of(**{f"f{i}": {"pattern": "t" * 1_000 + str(i)} for i in range(200)}),
        limits.MAX_ALL_PATTERNS,
    ),
    "a form's long title": (lambda: {"title": "t" * 5_000}, limits.MAX_TITLE),
    "three megabytes": (lambda: form_of(x={"$comment": "t" * 3_000_000}), limits.MAX_CHARACTERS),
    "allOf bomb": (lambda: bomb("allOf"), limits.MAX_STEPS),
    "anyOf bomb": (lambda: bomb("anyOf"), limits.MAX_STEPS),
    "wide refs": (
        lambda: (
            form_of(**{f"f{i}": {"allOf": [{"$ref": "#/$defs/w"}] * 200} for i in range(2_000)})
            | {"$defs": {"w": {f"k{i}": 0 for i in range(20_000)}}}
        ),
        limits.MAX_VALUES,
    ),
    "wide refs in few values": (
        lambda: (
            form_of(**{f"f{i}": {"allOf": [{"$ref": "#/$defs/w"}] * 20} for i in range(1_000)})
            | {"$defs": {"w": {f"k{i}": 0 for i in range(20_000)}}}
        ),
        limits.MAX_STEPS,
    ),
    "long chain": (
        lambda: (
            form_of(x={"$ref": "#/$defs/d0"})
            | {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(1_000)}}
        ),
        limits.MAX_REFS,
    ),
}


@pytest.mark.timeout(20)  # far more than the second or two that reading may take
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end_with_the_limit_that_they_pass(name: str) -> None:
    make, limit = HOSTILE[name]
    assert str(limit) in refused(make())


def test_what_is_within_the_limits_is_read() -> None:
    fields = {f"f{i}": {"type": "string", "title": f"Field {i}", "maxLength": 40} for i in range(1_000)}
    form = read_form(form_of(**fields) | {"required": list(fields)})
    assert len(form.fields) == 1_000
    answers = dict.fromkeys(fields, "an answer")
    assert form.validate(answers) == answers
    assert len(field_of({"enum": [str(i) for i in range(limits.MAX_OPTIONS)]}).options) == limits.MAX_OPTIONS
    assert field_of(nested(limits.MAX_DEPTH - 3, "allOf_is_no_keyword")).kind == "string"


def test_reading_does_not_touch_the_schema() -> None:
    schema = form_of(
        x={"$ref": "#/$defs/a", "title": "T"},
        y={"anyOf": [{"type": "string"}, {"type": "null"}]},
        z={"allOf": [{"enum": ["a"]}]},
    ) | {"$defs": {"a": {"type": "integer"}}, "minProperties": 1, "$id": "u:v"}
    before = copy.deepcopy(schema)
    read_form(schema).validate({"x": 1})
    assert schema == before


def test_a_form_is_the_published_type() -> None:
    assert isinstance(read_form({}), Form)


@pytest.mark.parametrize(
    "branch", [{"const": ["x"], "type": "integer"}, {"allOf": [{"const": ["x"]}, {"type": "integer"}]}]
)
def test_an_option_that_is_a_list_is_refused_whatever_its_branch_says_beside_it(branch: dict[str, Any]) -> None:
    with pytest.raises(FormSchemaError, match='the field "a" offers a list to choose'):
        read_form({"type": "object", "properties": {"a": {"oneOf": [branch, {"const": "y"}]}}})
