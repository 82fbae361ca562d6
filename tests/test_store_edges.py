"""Edges of the store that no other test stands on: limits to the character, what is the same for an odd caller."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python.store import model
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import StoreError
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend
from gopher_mcp_python.store.payload import json_text
from gopher_mcp_python.store.responses import response_schema, validate_response


def made(**options: Any) -> Store:
    return Store(MemoryBackend(), KeyRing.generate(), **options)


def test_a_store_is_closed_behind_its_block() -> None:
    with made() as store:
        store.check()
    with pytest.raises(StoreError, match="closed"):
        store.check()


@pytest.mark.parametrize("caller", [None, "", "a\0b", "a" * 257])
def test_an_odd_caller_is_refused_by_every_method(caller: Any) -> None:
    id = "el_" + "A" * 22
    with made() as store:
        for attempt in (
            lambda: store.create(caller, model.confirmation("Sure?")),
            lambda: store.respond(caller, id, {"confirmed": True}),
            lambda: store.cancel(caller, id),
            lambda: store.get(caller, id),
            lambda: store.pending(caller),
            lambda: store.find_confirmation(caller, tool="drop", arguments={}),
            lambda: store.consume(caller, id, tool="drop", arguments={}),
            lambda: store.complete(caller, id),
        ):
            with pytest.raises(ValueError, match="caller"):
                attempt()


@pytest.mark.parametrize(("length", "fits"), [(1, True), (200, True), (0, False), (201, False)])
def test_a_keys_id_has_1_to_200_characters(length: int, fits: bool) -> None:
    class Keys:
        def current(self) -> tuple[str, bytes]:
            return "k" * length, b"0" * 32

        def find(self, key_id: str) -> bytes | None:
            return b"0" * 32

    with Store(MemoryBackend(), Keys()) as store:
        if fits:
            assert store.create("ada", model.string_input("Name?")).status == "pending"
        else:
            with pytest.raises(StoreError, match="1 to 200 ASCII characters"):
                store.create("ada", model.string_input("Name?"))


def test_limits_of_a_question() -> None:
    assert len(model.single_choice("?", [str(number) for number in range(5_000)]).params["choices"]) == 5_000
    with pytest.raises(ValueError, match="more than 5000 texts"):
        model.single_choice("?", [str(number) for number in range(5_001)])
    assert model.string_input("?", server="s" * 2_000, tool="t" * 1_000).server == "s" * 2_000
    for wrong in ({"server": "s" * 2_001}, {"tool": "t" * 1_001}):
        with pytest.raises(ValueError, match="must be a text of 1 to"):
            model.string_input("?", **wrong)


def test_an_unknown_name_is_told_by_80_characters_of_it() -> None:
    errors, _ = validate_response("confirmation", {}, {"confirmed": True, "x" * 81: 1})
    assert errors == {"x" * 80: "is not a part of this answer"}


def test_the_schema_of_a_question_whose_params_are_gone_asks_for_the_least() -> None:
    schema = response_schema("multi_choice")
    assert schema["properties"] == {
        "choices": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 0}
    }
    assert response_schema("string_input")["properties"] == {
        "value": {"type": "string", "minLength": 0, "maxLength": 10_000}
    }


def test_a_question_keeps_its_parts_out_of_its_repr() -> None:
    new = model.single_choice("s3cret", ["s3cret"])
    with made() as store:
        assert "s3cret" not in repr(new) + repr(store.create("ada", new))


@pytest.mark.parametrize(
    ("value", "told"),
    [(10**401, "a number of more than 400 digits"), (float("nan"), "a number that JSON does not have"),
     ({1}, "something that JSON does not have .a set.")],
)  # fmt: skip
def test_what_can_not_be_stored_is_named(value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=f"the answer holds {told}"):
        json_text([value], "the answer", 1_000_000)
