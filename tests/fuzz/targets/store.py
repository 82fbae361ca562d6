"""The store: questions of every kind, whatever is answered, in any order, against a model of what must come of it.

Input: {"steps": [["ask", kind, {...}], ["mcp", {...}], ["respond", number, answer], ["cancel", number],
["consume", number, tool, arguments], ["complete", number], ["look", number], ["judge", kind, params, answer]]}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.store import model
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import ElicitationNotFound, NoAnswer
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend
from gopher_mcp_python.store.model import MAX_RETRIES, NewElicitation, StoredElicitation
from gopher_mcp_python.store.responses import response_schema, validate_response

from ..reading import document

LARGEST = 4_000
CANARY = "kAnArY-7f3e"
MOST_STEPS = 30
KINDS: dict[str, Callable[..., NewElicitation]] = {
    "string_input": model.string_input,
    "single_choice": model.single_choice,
    "multi_choice": model.multi_choice,
    "confirmation": model.confirmation,
    "file_upload": model.file_upload,
}
FORM = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
WORDS: tuple[Any, ...] = (
    CANARY, "steps", "ask", "mcp", "respond", "cancel", "consume", "complete", "look", "judge", *KINDS, "form", "url",
    "value", "choice", "choices", "confirmed", "action", "accept", "decline", "content", "message", "server", "tool",
    "arguments", "min_length", "max_length", "min_items", "max_items", "media_types", "max_bytes", "requestedSchema",
    "mode", "elicitationId", "raw", "file_id", "name", "size", "sha256", "media_type", "0" * 64, "text/csv", "text/*",
    "a", "b", {"value": CANARY}, {"choice": "a"}, {"choices": ["a", "b"]}, {"confirmed": True}, {"confirmed": False},
    {"action": "accept", "content": {"a": "x"}}, {"action": "decline"}, {"action": "accept"}, FORM,
    ["respond", 0, {"confirmed": True}], ["respond", 0, {"choice": "a"}], ["respond", 0, {"value": CANARY}],
    ["cancel", 0], ["consume", 0, "drop", {"id": 7}], ["complete", 0], ["look", 0],
    ["ask", "confirmation", {"message": "Sure?", "tool": "drop", "arguments": {"id": 7}}],
    ["ask", "single_choice", {"message": "Where?", "choices": ["a", "b"]}],
    {"file_id": "f", "name": "n", "size": 1, "sha256": "0" * 64, "media_type": "text/csv"},
)  # fmt: skip


def one_input(data: bytes) -> None:
    told = document(data)
    steps = told.get("steps") if told else None
    if not isinstance(steps, list):
        return
    with Store(MemoryBackend(), KeyRing.generate(), rate=None) as store:
        life = Life(store)
        for step in steps[:MOST_STEPS]:
            if isinstance(step, list) and step and isinstance(step[0], str):
                life.take(step)
        life.check_all()
        assert store.verify().ok, "the audit's chain is whole"


class Life:
    """What was asked so far, and what must have come of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[StoredElicitation] = []
        self.status: dict[str, str] = {}
        self.bad: dict[str, int] = {}
        self.answers: dict[str, Any] = {}
        self.consumed: set[str] = set()

    def take(self, step: list[Any]) -> None:
        name, *rest = step
        if name in ("ask", "mcp", "judge"):
            getattr(self, name)(*(rest + [None] * 3)[: {"ask": 2, "mcp": 1, "judge": 3}[name]])
        elif name in ("respond", "cancel", "consume", "complete", "look") and self.asked:
            number = rest[0] if rest and type(rest[0]) is int else 0
            getattr(self, name)(self.asked[number % len(self.asked)], rest[1:])

    # ---- asking ----

    def ask(self, kind: Any, how: Any) -> None:
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(how, dict):
            return
        try:
            new = KINDS[kind](how.get("message"), **{name: value for name, value in how.items() if name != "message"})
        except ValueError as refused:
            said = str(refused)
            assert CANARY not in said, said
            return
        except TypeError as wrong:
            said = str(wrong)
            assert "argument" in said, said  # one that this kind has not, or lacks
            return
        self._created(new)

    def mcp(self, how: Any) -> None:
        if not isinstance(how, dict):
            return
        texts = {name: how.get(name) for name in ("message", "url", "server", "tool", "elicitationId")}
        if not all(value is None or isinstance(value, str) for value in texts.values()):
            return
        request = GopherAgentElicitationRequest(
            "url" if how.get("mode") == "url" else "form",
            elicitation_id=texts["elicitationId"],
            message=texts["message"],
            url=texts["url"],
            server=texts["server"],
            tool=texts["tool"],
            raw_params_json=how["raw"] if isinstance(how.get("raw"), str) else None,
            requested_schema=how.get("requestedSchema"),
        )
        try:
            new = model.mcp_form(request) if request.mode == "form" else model.mcp_url(request)
        except ValueError:
            return
        self._created(new)

    def _created(self, new: NewElicitation) -> None:
        one = self.store.create("ada", new)
        assert CANARY not in repr(one) or CANARY in f"{one.server}{one.tool}"
        self.asked.append(one)
        self.status[one.id], self.bad[one.id] = "pending", 0

    # ---- answering ----

    def respond(self, one: StoredElicitation, rest: list[Any]) -> None:
        answer = rest[0] if rest else None
        kind = one.type or one.mode
        errors, kept = validate_response(kind, one.params, answer)
        named = CANARY in json.dumps(one.params) or f'{CANARY}":' in json.dumps(answer)  # a name is no value
        assert named or not any(CANARY in text for text in errors.values()), errors
        outcome = self.store.respond("ada", one.id, answer)
        if self.status[one.id] != "pending":
            assert outcome.kind in ("already_recorded", "conflict") and outcome.status == self.status[one.id]
            if outcome.kind == "already_recorded":
                assert self.answers[one.id][0] == answer
        elif errors:
            self.bad[one.id] += 1
            last = self.bad[one.id] == MAX_RETRIES
            assert outcome.kind == ("validation_failed" if last else "invalid") and outcome.errors == errors
            assert outcome.retries_left == MAX_RETRIES - self.bad[one.id]
            self.status[one.id] = "validation_failed" if last else "pending"
        else:
            assert outcome.kind == "recorded", outcome
            self.status[one.id] = "responded"
            self.answers[one.id] = (json.loads(json.dumps(answer)), kept)
        self.look(one, [])

    def cancel(self, one: StoredElicitation, rest: list[Any]) -> None:
        outcome = self.store.cancel("ada", one.id)
        before = self.status[one.id]
        assert outcome.kind == {"pending": "recorded", "cancelled": "already_recorded"}.get(before, "conflict")
        if before == "pending":
            self.status[one.id] = "cancelled"

    def consume(self, one: StoredElicitation, rest: list[Any]) -> None:
        tool, arguments = [*rest, None, None][:2]
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            return
        try:
            state = self.store.consume("ada", one.id, tool=tool, arguments=arguments, server=one.server)
        except ValueError:
            return
        answered = self.answers.get(one.id, ({}, {}))[1]
        yes = one.type == "confirmation" and answered.get("confirmed") is True
        same = tool == one.tool and _same(arguments, one.params.get("arguments"))
        if state == "consumed":
            assert yes and same and one.id not in self.consumed, "once, and for this call only"
            self.consumed.add(one.id)
        else:
            assert not (yes and same) or one.id in self.consumed, state

    def complete(self, one: StoredElicitation, rest: list[Any]) -> None:
        try:
            self.store.complete("ada", one.id)
        except ValueError:
            assert one.id not in self.consumed
        else:
            assert one.id in self.consumed

    # ---- looking ----

    def look(self, one: StoredElicitation, rest: list[Any]) -> None:
        found = self.store.get("ada", one.id)
        assert found.status == self.status[one.id] and found.params == one.params and found.message == one.message
        try:
            self.store.get("bob", one.id)
        except ElicitationNotFound:
            pass
        else:
            raise AssertionError("another caller's elicitation was shown")
        try:
            kept = self.store.result("ada", one.id)
        except NoAnswer:
            assert found.status != "responded"
        else:
            assert kept == json.loads(json.dumps(self.answers[one.id][1]))

    def check_all(self) -> None:
        pending = [one.id for one in self.store.pending("ada", limit=1000)]
        assert sorted(pending) == sorted(id for id, status in self.status.items() if status == "pending")
        assert self.store.pending("bob") == []
        for one in self.asked:
            self.look(one, [])

    # ---- the rules alone ----

    def judge(self, kind: Any, how: Any, answer: Any) -> None:
        """An answer has no errors where the published schema allows it; but some rules are no schema's."""
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(how, dict):
            return
        try:
            params = KINDS[kind]("?", **how).params
        except (ValueError, TypeError):
            return
        errors, _ = validate_response(kind, params, answer)
        schema = response_schema(kind, params)
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise AssertionError(schema) from error
        allowed = Draft202012Validator(schema).is_valid(answer)
        assert allowed or errors, (kind, params, answer)
        stricter = kind == "file_upload" or any("surrogate" in text or "" == name for name, text in errors.items())
        assert not allowed or not errors or stricter, (kind, params, answer, errors)


def _same(arguments: Any, others: Any) -> bool:
    """As JSON values are: 1 is 1.0 and not true."""
    from gopher_mcp_python.toolset.canonical import canonical_json

    return others is not None and canonical_json(arguments) == canonical_json(others)
