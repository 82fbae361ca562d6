"""Kinds, states and the shapes of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.forms import FormSchemaError
from gopher_mcp_python.store import (
    MAX_RETRIES,
    ElicitationStatus,
    ElicitationType,
    NewElicitation,
    Store,
    confirmation,
    file_upload,
    mcp_form,
    mcp_url,
    multi_choice,
    response_schema,
    single_choice,
    string_input,
    validate_response,
)
from tests.support.canary import secret
from tests.support.children import python

ROOT = Path(__file__).resolve().parents[1]
FILE = {"file_id": "f1", "name": "a.csv", "size": 10, "sha256": "ab" * 32, "media_type": "text/csv"}


def errors(new: NewElicitation, answer: Any) -> set[str]:
    """The names of the fields with a fault; jsonschema must agree on whether there is one."""
    found, kept = validate_response(new.type or new.mode, new.params, answer)
    schema = response_schema(new.type or new.mode, new.params)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(answer) is (not found)
    assert found or kept == answer
    return set(found)


def test_type_and_status_have_exactly_five_variants() -> None:
    assert [one.value for one in ElicitationType] == [
        "string_input", "single_choice", "multi_choice", "confirmation", "file_upload",
    ]  # fmt: skip
    assert [one.value for one in ElicitationStatus] == [
        "pending", "responded", "expired", "cancelled", "validation_failed",
    ]  # fmt: skip
    assert MAX_RETRIES == 3
    assert f"{ElicitationType.STRING_INPUT} {ElicitationStatus.PENDING}" == "string_input pending"


def test_confirmation_schema_requires_confirmed_boolean() -> None:
    assert response_schema(ElicitationType.CONFIRMATION) == {
        "type": "object",
        "properties": {"confirmed": {"type": "boolean"}},
        "required": ["confirmed"],
        "additionalProperties": False,
    }


def test_validate_confirmation_accepts_bool_rejects_missing() -> None:
    new = confirmation("Really?")
    assert errors(new, {"confirmed": True}) == errors(new, {"confirmed": False}) == set()
    assert errors(new, {}) == {"confirmed"}
    for wrong in (1, 0, "true", "yes", None, [True], {"confirmed": True}):
        assert errors(new, {"confirmed": wrong}) == {"confirmed"}
    assert errors(new, {"confirmed": True, "Confirmed": True}) == {"Confirmed"}
    for wrong in (True, "true", None, [], [True]):
        assert errors(new, wrong) == {""}


def test_validate_string_and_choice_types() -> None:
    text = string_input("?", min_length=2, max_length=4)
    assert [errors(text, {"value": value}) for value in ("ab", "abcd", "𝄞𝄞")] == [set()] * 3
    for wrong in ("a", "abcde", 12, None, ["ab"], True):
        assert errors(text, {"value": wrong}) == {"value"}
    assert errors(text, {"text": "ab"}) == {"value", "text"}
    one = single_choice("?", ["a", "B ", "é"])
    assert [errors(one, {"choice": value}) for value in ("a", "B ", "é")] == [set()] * 3
    for wrong in ("A", "B", " a", "e\u0301", "", 0, None, ["a"], {"a": 1}):
        assert errors(one, {"choice": wrong}) == {"choice"}
    some = multi_choice("?", ["a", "b", "c"], min_items=1, max_items=2)
    assert errors(some, {"choices": ["c"]}) == errors(some, {"choices": ["b", "a"]}) == set()
    for several in ([], ["a", "b", "c"], ["a", "a"], ["a", "A"], "a", {"a": 1}, [["a"]], [1], None):
        assert errors(some, {"choices": several}) == {"choices"}
    assert errors(multi_choice("?", ["a"]), {"choices": []}) == set()


def test_validate_file_uploads() -> None:
    new = file_upload("?", media_types=["text/csv", "image/*"], max_bytes=100)
    kinds = ("text/csv", "TEXT/CSV; charset=utf-8", "image/png")
    assert all(not validate_response("file_upload", new.params, {**FILE, "media_type": kind})[0] for kind in kinds)
    for name, wrong in (
        ("size", 101), ("size", -1), ("size", True), ("size", "1"), ("sha256", "AB" * 32), ("sha256", "ab"),
        ("media_type", "text/html"), ("media_type", "image"), ("media_type", "imageX/png"), ("file_id", ""),
        ("name", "x" * 1001), ("name", None), ("name", "\ud800"),
    ):  # fmt: skip
        assert set(validate_response("file_upload", new.params, {**FILE, name: wrong})[0]) == {name}
    assert errors(file_upload("?"), FILE) == set()
    assert errors(file_upload("?"), {}) == set(FILE)


def test_validate_what_servers_ask() -> None:
    form = mcp_form(GopherAgentElicitationRequest("form", requested_schema={"properties": {"n": {"type": "integer"}}}))
    assert errors(form, {"action": "accept", "content": {"n": 1}}) == errors(form, {"action": "decline"}) == set()
    assert set(validate_response("form", form.params, {"action": "decline", "content": {}})[0]) == {"content"}
    assert errors(form, {"action": "cancel"}) == errors(form, {}) == {"action"}
    assert errors(form, {"action": "accept", "content": [1]}) == {"content"}
    assert set(validate_response("form", form.params, {"action": "accept", "content": {"n": "x"}})[0]) == {"n"}
    linked = {"$defs": {"n": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/n"}}}
    form = mcp_form(GopherAgentElicitationRequest("form", requested_schema=linked))
    assert errors(form, {"action": "accept", "content": {"n": 1}}) == set()
    assert errors(form, {"action": "accept", "content": {"n": "1"}}) == {"n"}
    page = mcp_url(GopherAgentElicitationRequest("url", url="https://x.test/"))
    assert errors(page, {"action": "accept"}) == errors(page, {"action": "decline"}) == set()
    assert errors(page, {"action": "accept", "content": {}}) == {"content"}


def test_errors_hold_no_value() -> None:
    word = secret("answer")
    for new in (string_input("?", max_length=3), single_choice("?", ["a"]), multi_choice("?", ["a"]), file_upload("?")):
        for answer in ({"value": word, "choice": word, "choices": [word], "size": word, "sha256": word}, word, [word]):
            assert word not in str(validate_response(new.type or "", new.params, answer)[0])


def test_requests_are_kept_as_they_came() -> None:
    raw = '{"message": "Sign in", "mode": "url", "url": "https://x.test/", "elicitationId": "e1", "_meta": {"a": [1]}}'
    request = GopherAgentElicitationRequest(
        "url", "e1", "Sign in", "https://x.test/", raw_params_json=raw, server="s", tool="t"
    )
    new = mcp_url(request)
    assert new.params["_meta"] == {"a": [1]} and new.params["elicitationId"] == "e1"
    assert (new.mode, new.type, new.message, new.server, new.tool) == ("url", None, "Sign in", "s", "t")
    for broken in ("{", "[" * 10_000, "[1]", "null"):
        request = GopherAgentElicitationRequest("url", url="https://x.test/", raw_params_json=broken)
        assert mcp_url(request).params == {"mode": "url", "message": "", "url": "https://x.test/"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: string_input(""),
        lambda: string_input(" \n"),
        lambda: string_input("x" * 20_001),
        lambda: string_input(None),  # type: ignore[arg-type]
        lambda: string_input("?", min_length=5, max_length=4),
        lambda: string_input("?", max_length=100_001),
        lambda: string_input("?", min_length=True),
        lambda: single_choice("?", []),
        lambda: single_choice("?", ["a", "a"]),
        lambda: single_choice("?", ["a", ""]),
        lambda: single_choice("?", "ab"),
        lambda: single_choice("?", ["a", 1]),  # type: ignore[list-item]
        lambda: multi_choice("?", ["a"], min_items=2),
        lambda: multi_choice("?", ["a"], max_items=0),
        lambda: confirmation("?", arguments={}),
        lambda: confirmation("?", tool="t\0", arguments={}),
        lambda: confirmation("?", tool="", arguments={}),
        lambda: confirmation("?", tool="t", arguments=[1]),  # type: ignore[arg-type]
        lambda: file_upload("?", max_bytes=0),
        lambda: file_upload("?", media_types=["csv"]),
        lambda: file_upload("?", media_types=["text/csv, x/y"]),
        lambda: string_input("?", server="\ud800"),
        lambda: mcp_form(GopherAgentElicitationRequest("url", url="https://x.test/")),
        lambda: mcp_url(GopherAgentElicitationRequest("url")),
    ],
)
def test_questions_that_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        make()


def test_names_of_fields_that_nobody_asked_for_can_be_sent_back() -> None:
    params = {"requestedSchema": {"properties": {"n": {"type": "integer"}}, "additionalProperties": False}}
    for name in ("\ud800", "x" * 10_000, "\x1b[2J\u202e", "ü"):
        for kind, answer in (("form", {"action": "accept", "content": {name: 1}}), ("confirmation", {name: 1})):
            found = validate_response(kind, params, answer)[0]
            assert found and len(json.dumps(found, ensure_ascii=False).encode()) < 3_000


def test_a_stored_form_that_can_not_be_read_any_more_can_be_declined() -> None:
    params = {"requestedSchema": {"type": "array"}}
    assert set(validate_response("form", params, {"action": "accept", "content": {}})[0]) == {""}
    assert not validate_response("form", params, {"action": "decline"})[0]


def test_a_form_that_can_not_be_read_is_refused_at_once() -> None:
    for schema in (None, {"type": "array"}, {"properties": 7}):
        with pytest.raises(FormSchemaError):
            mcp_form(GopherAgentElicitationRequest("form", requested_schema=schema))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no elicitation of that kind"):
        response_schema("nothing")


def test_the_store_is_imported_when_it_is_used_and_its_heavy_parts_later() -> None:
    code = """
import sys
import gopher_mcp_python.store as store
assert not [name for name in sys.modules if name.startswith("gopher_mcp_python.store.")]
missing = [name for name in store.__all__ if name != "PostgresBackend" and not hasattr(store, name)]
assert not missing and set(store.__all__) <= set(dir(store)), missing
heavy = {"cryptography", "sqlite3", "psycopg", "keyring", "mcp", "anyio", "starlette"} & set(sys.modules)
assert not heavy, heavy
"""
    python(code).check()


@pytest.mark.source_tree
def test_out_of_scope_lists_what_is_not_shipped_and_nothing_claims_it() -> None:
    """What the documents say that there is not, and no other place speaks of; what was once put off is there."""
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    missing = page.partition("## What there is not\n")[2].partition("\n## ")[0]
    shipped = page.replace(missing, "")
    claims = [page for page in ROOT.glob("docs/*.md") if page.name != "store.md"]
    claims += [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("examples/**/*.*"), *ROOT.glob("src/**/*.py")]
    for name in ("NATS", "S3"):
        told = re.compile(rf"\b{name}\b")
        assert len(told.findall(missing)) == 1 and not told.search(shipped), name
        assert not [str(place) for place in claims if told.search(place.read_text(encoding="utf-8"))], name
    for claimed, there in (
        ("RateLimited", Store.create), ("The sweeper expires", Store.sweep), ("After 30 days", Store.prune),
        ("store.subscribe", Store.subscribe),
    ):  # fmt: skip
        assert claimed in page and callable(there), claimed
