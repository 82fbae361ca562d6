"""A server's form: read, answered, filled in as on a page. There is the documented error, or it works; nothing else.

Input: {"schema": ..., "answers": [{...}, ...], "typed": ["...", ...], "drafts": [[{"name": ..., "text": ...}], ...]}
"""

from __future__ import annotations

import json
from typing import Any

import gopher_mcp_python.forms.judge  # else it is imported late, and not instrumented
import gopher_mcp_python.forms.validate  # noqa: F401
from gopher_mcp_python.forms import MISSING, Form, FormContentError, FormSchemaError, read_form
from gopher_mcp_python.handlers.form import FormModel
from gopher_mcp_python.serve.drafts import fields_json, fill, states_json
from gopher_mcp_python.serve.problems import Problem

from ..reading import document

LARGEST = 6_000
CANARY = "kAnArY-7f3e"  # an answer's value, which no error may hold
WORDS: tuple[Any, ...] = (
    CANARY, "schema", "answers", "typed", "drafts", "name", "text", "picked", "state", "omitted", "empty", "default",
    "type", "object", "string", "number", "integer", "boolean", "array", "null", "properties", "required", "items",
    "enum", "enumNames", "const", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$ref", "$defs", "#/$defs/a",
    "#/properties/a", "#", "minLength", "maxLength", "pattern", "^a", "(a+)+$", "\\p{L}", "format", "email", "uri",
    "date", "date-time", "time", "ipv4", "ipv6", "hostname", "uuid", "regex", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
    "prefixItems", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "patternProperties",
    "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
    "title", "description", "nullable", "$schema", "$id", "$anchor", "$dynamicRef", "a", "b", "c",
    {"type": "string"}, {"type": "integer", "minimum": 1}, {"type": "boolean"}, {"const": "a", "title": "A"},
    {"type": "array", "items": {"enum": ["a", "b"]}}, {"$ref": "#/$defs/a"}, {"enum": ["a", "b"]},
    {"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, {"a": CANARY}, {"a": 1}, {"name": "a", "text": "1"},
    "a@b.example", "2026-02-30", "23:59:60Z", "::ffff:1.2.3.4", "1e400", "0x10", "١",
)  # fmt: skip


def one_input(data: bytes) -> None:
    told = document(data)
    if told is None:
        return
    schema = told.get("schema")
    try:
        form = read_form(schema)  # type: ignore[arg-type]
    except FormSchemaError as refused:
        said = str(refused)
        assert 10 < len(said) < 500, said
        return
    assert repr(form)
    for answer in _listed(told, "answers"):
        check_answer(form, schema, answer)
    for text in _listed(told, "typed"):
        check_typed(form, text)
    for draft in _listed(told, "drafts"):
        check_draft(form, draft)


def _listed(told: dict[str, Any], name: str) -> list[Any]:
    found = told.get(name)
    return found[:8] if isinstance(found, list) else []


def check_answer(form: Form, schema: Any, answer: Any) -> None:
    try:
        sent = form.validate(answer)
    except FormContentError as refused:
        check_refusal(refused, CANARY in json.dumps(schema) or _is_a_name(answer))
        return
    assert isinstance(answer, dict) and sent.keys() <= answer.keys() and None not in sent.values()
    assert form.validate(sent) == sent, "what was accepted is accepted"
    json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()


def check_refusal(refused: FormContentError, knows_canary: bool) -> None:
    said = [str(refused), *refused.errors.values(), *refused.general]
    assert len(said) > 1 and (knows_canary or not any(CANARY in one for one in said)), said


def _is_a_name(answer: Any) -> bool:
    return isinstance(answer, dict) and any(CANARY in name for name in answer)


def check_typed(form: Form, text: Any) -> None:
    for field in form.fields[:20] if isinstance(text, str) else ():
        assert field.label and repr(field) and field.is_secret_named in (True, False)
        try:
            value = field.parse(text)
        except ValueError:
            continue
        assert value is MISSING or field.check(value) is None, (field, text)


def check_draft(form: Form, draft: Any) -> None:
    model = FormModel(form)
    json.dumps(fields_json(model))
    try:
        fill(model, draft)
    except Problem:
        return
    states = states_json(model)
    json.dumps(states)
    try:
        content = model.content()
    except FormContentError:
        assert not states["is_complete"]
        return
    assert states["is_complete"] and form.validate(content) == content
