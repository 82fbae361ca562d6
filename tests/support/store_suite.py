"""What every backend of the store has to do. A test file inherits from StoreSuite and says where the rows are:

    class TestMemory(StoreSuite):
        @pytest.fixture
        def place(self) -> Iterator[Place]:
            yield from closing(MemoryPlace())
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.store import (
    Change,
    ElicitationNotFound,
    ElicitationStatus,
    FileAnchor,
    Housekeeping,
    KeyRing,
    NoAnswer,
    RateLimited,
    SealError,
    Store,
    StoredElicitation,
    StoreError,
    confirmation,
    file_upload,
    mcp_form,
    mcp_url,
    multi_choice,
    single_choice,
    string_input,
)
from gopher_mcp_python.store.audit import EVENTS, verify_chain
from gopher_mcp_python.store.listing import PAGE_BYTES
from gopher_mcp_python.store.payload import ARGUMENTS_BYTES
from tests.support.canary import secret
from tests.support.store_places import Place

WIDE = 60.0  # seconds in which what must happen happens on any machine
CALL = {"server": "files", "tool": "delete", "arguments": {"path": "/a", "depth": 1}}
HOSTILE = "'; DROP TABLE elicitation; -- \" \\ % _ $1 :id {0} \n\t\x1b[2J \u202e ünï ☃ 𝄞"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer"}},
    "required": ["name"],
}


def form_request(schema: Any = SCHEMA) -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("form", message="Who are you?", requested_schema=schema, server="s", tool="t")


def confirm(store: Store, caller: str = "ada", **more: Any) -> StoredElicitation:
    return store.create_confirmation(caller, **{**CALL, **more})


def events(store: Store, id: str | None = None) -> list[str]:
    """The audit's events, of one elicitation or of all."""
    with store._backend.transaction(None, write=False) as tx:
        told = [json.loads(row.text) for row in tx.audit_rows(0, 100_000)]
    return [one["event"] for one in told if id is None or one.get("elicitation") == id]


@contextmanager
def waiting(store: Store, *ids: str) -> Iterator[list[Future[StoredElicitation]]]:
    """Waits for ada's elicitations on threads, which have looked once when this goes on; gives up at the end."""
    over, looked = threading.Event(), [threading.Event() for _ in ids]

    def wanted(event: threading.Event) -> bool:
        event.set()
        return not over.is_set()

    with ThreadPoolExecutor(len(ids)) as pool:
        futures = [
            pool.submit(store.wait, "ada", id, still_wanted=partial(wanted, event))
            for id, event in zip(ids, looked, strict=True)
        ]
        try:
            assert all(event.wait(WIDE) for event in looked)
            yield futures
        finally:
            over.set()


class StoreSuite:
    """Inherited, not collected itself: the name has no "Test" before it."""

    @pytest.fixture
    def place(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def store(self, place: Place) -> Store:
        return place.open()

    # ---- The acceptance criteria that need a store ------------------------------------------------------------------

    def test_confirmation_round_trip_accept_and_decline(self, store: Store) -> None:
        for answer, state, used in ((True, "approved", "consumed"), (False, "declined", "declined")):
            asked = confirm(store)
            assert [one.id for one in store.pending("ada")] == [asked.id]
            outcome = store.respond("ada", asked.id, {"confirmed": answer}, by="grace")
            assert (outcome.kind, outcome.status) == ("recorded", ElicitationStatus.RESPONDED)
            assert store.confirmation_state("ada", asked.id) == state
            assert store.is_confirmed("ada", asked.id) is answer
            assert store.result("ada", asked.id) == {"confirmed": answer}
            ended = store.get("ada", asked.id)
            assert ended.confirmed is answer and ended.ended_at is not None and ended.ended
            assert store.consume("ada", asked.id, **CALL) == used
            assert store.pending("ada") == []

    def test_invalid_responses_retry_then_go_terminal(self, store: Store) -> None:
        asked = store.create("ada", string_input("Name?", max_length=3))
        for left in (2, 1):
            outcome = store.respond("ada", asked.id, {"value": "too long"})
            assert (outcome.kind, outcome.status, outcome.retries_left) == ("invalid", "pending", left)
            assert list(outcome.errors) == ["value"] and "too long" not in str(outcome.errors)
        assert store.get("ada", asked.id).retries == 2
        outcome = store.respond("ada", asked.id, {"value": 1})
        assert (outcome.kind, outcome.status, outcome.retries_left) == ("validation_failed", "validation_failed", 0)
        assert store.respond("ada", asked.id, {"value": "ok"}).kind == "conflict"
        assert store.get("ada", asked.id).retries == 3
        assert events(store, asked.id) == ["requested"] + ["validation_failed"] * 3
        with pytest.raises(NoAnswer, match="validation_failed"):
            store.result("ada", asked.id)

    def test_confirmation_state_reflects_approval_decline_and_absence(self, place: Place, store: Store) -> None:
        yes, no, cancelled, failed, late, other = (confirm(store) for _ in range(6))
        assert store.confirmation_state("ada", yes.id) == "pending"
        store.respond("ada", yes.id, {"confirmed": True})
        store.respond("ada", no.id, {"confirmed": False})
        store.cancel("ada", cancelled.id)
        for _ in range(3):
            store.respond("ada", failed.id, {"confirmed": "true"})
        found = {one.id: store.confirmation_state("ada", one.id) for one in (yes, no, cancelled, failed)}
        assert list(found.values()) == ["approved", "declined", "cancelled", "failed"]
        place.pass_time(299)
        assert store.confirmation_state("ada", late.id) == "pending"
        assert store.confirmation_state("ada", yes.id) == "approved"
        place.pass_time(5)
        assert store.confirmation_state("ada", late.id) == "expired"
        assert store.confirmation_state("ada", yes.id) == "expired", "an approval does not last"
        for absent in ("el_0123456789012345678901", "", "x" * 1000, "\0", "\ud800", HOSTILE):
            assert store.confirmation_state("ada", absent) == "absent"
            assert not store.is_confirmed("ada", absent)
        assert store.confirmation_state("eve", other.id) == "absent"
        assert store.confirmation_state("ada", store.create("ada", string_input("?")).id) == "absent"

    def test_idempotent_resubmit_and_cancel(self, store: Store) -> None:
        asked = confirm(store)
        assert store.respond("ada", asked.id, {"confirmed": True}).kind == "recorded"
        assert store.respond("ada", asked.id, {"confirmed": True}).kind == "already_recorded"
        assert store.respond("ada", asked.id, {"confirmed": False}).kind == "conflict"
        assert store.respond("ada", asked.id, {"confirmed": 1}).kind == "conflict"
        assert store.respond("ada", asked.id, float("nan")).kind == "conflict"
        assert store.cancel("ada", asked.id).kind == "conflict"
        assert store.result("ada", asked.id) == {"confirmed": True}
        assert events(store, asked.id) == ["requested", "responded"]
        asked = confirm(store)
        assert store.cancel("ada", asked.id).kind == "recorded"
        assert store.cancel("ada", asked.id).kind == "already_recorded"
        outcome = store.respond("ada", asked.id, {"confirmed": True})
        assert (outcome.kind, outcome.status) == ("conflict", "cancelled")
        assert events(store, asked.id) == ["requested", "cancelled"]

    # ---- Each kind of question --------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("new", "answer"),
        [
            (string_input("?"), {"value": HOSTILE + "\0"}),
            (single_choice("?", ["a", "A ", HOSTILE]), {"choice": "A "}),
            (multi_choice("?", ["a", "b", HOSTILE]), {"choices": [HOSTILE, "a"]}),
            (confirmation("?"), {"confirmed": False}),
            (
                file_upload("?", media_types=["text/*"]),
                {"file_id": "f", "name": "../x", "size": 0, "sha256": "0" * 64, "media_type": "text/csv"},
            ),
            (mcp_form(form_request()), {"action": "accept", "content": {"name": "Ada", "age": 7}}),
            (mcp_form(form_request()), {"action": "decline"}),
            (mcp_url(GopherAgentElicitationRequest("url", url="https://x.test/?a=b")), {"action": "accept"}),
        ],
        ids=lambda value: value.type or value.mode if hasattr(value, "mode") else "",
    )
    def test_what_is_asked_and_answered_comes_back_as_it_was(self, place: Place, new: Any, answer: Any) -> None:
        asked = place.open().create("ada", new, timeout_s=1800)
        found = place.open().get("ada", asked.id)
        assert found == asked
        assert (found.mode, found.type, found.message, found.params) == (new.mode, new.type, new.message, new.params)
        assert found.expires_at - found.created_at == timedelta(seconds=1800)
        assert place.open().respond("ada", asked.id, answer).kind == "recorded"
        assert place.open().result("ada", asked.id) == answer

    def test_a_form_is_validated_by_its_schema(self, store: Store) -> None:
        asked = store.create("ada", mcp_form(form_request()))
        outcome = store.respond("ada", asked.id, {"action": "accept", "content": {"name": "too long", "age": "x"}})
        assert outcome.kind == "invalid" and set(outcome.errors) == {"name", "age"}
        answer = {"action": "accept", "content": {"name": "Ada", "age": 7.0}}
        assert store.respond("ada", asked.id, answer).kind == "recorded"
        assert store.respond("ada", asked.id, answer).kind == "already_recorded"
        assert store.result("ada", asked.id) == {"action": "accept", "content": {"name": "Ada", "age": 7}}

    def test_hostile_answers_are_invalid_and_nothing_else(self, store: Store) -> None:
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        hostile = [
            None, [], "x", 10**400, 10**10_000, float("nan"), float("inf"), deep, {"value": deep}, {1: 2}, b"x",
            object(),
            {"value": "x" * 300_000}, {"value": "\ud800"}, {"value": "x", "__proto__": {}}, {"__proto__": "x"},
            {"value": {"value": "x"}}, {"value": None}, {"value": True}, {"\ud800": 1}, {"value": ["x"] * 100_000},
        ]  # fmt: skip
        for answer in hostile:
            asked = store.create("ada", string_input("?", max_length=100_000))
            outcome = store.respond("ada", asked.id, answer)
            assert outcome.kind == "invalid" and outcome.errors, str(type(answer))
            assert all(str(name).isascii() and len(name) < 500 for name in outcome.errors)
        asked = store.create("ada", string_input("?", max_length=100_000))
        assert store.respond("ada", asked.id, {"value": "ü" * 100_000}).kind == "recorded"

    def test_arguments_up_to_a_megabyte(self, store: Store) -> None:
        arguments = {"text": "x" * (1024 * 1024 - 100), "__proto__": {"a": None}, "half": "\ud800", "big": 10**399}
        asked = store.create_confirmation("ada", tool="t", arguments={"text": arguments["text"]})
        assert store.get("ada", asked.id).params["arguments"] == {"text": arguments["text"]}
        arguments["text"] = HOSTILE
        asked = store.create_confirmation("ada", tool="t", arguments=arguments)
        assert store.get("ada", asked.id).params["arguments"] == arguments
        store.respond("ada", asked.id, {"confirmed": True})
        assert store.consume("ada", asked.id, tool="t", arguments=arguments) == "consumed"
        for wrong in ({"text": "x" * 1024 * 1024}, {"n": 10**400}, {"n": float("nan")}, {1: 2}, [1], {"n": object()}):
            with pytest.raises(ValueError, match="arguments"):
                store.create_confirmation("ada", tool="t", arguments=wrong)  # type: ignore[arg-type]

    # ---- Callers ----------------------------------------------------------------------------------------------------

    def test_nobody_sees_or_answers_what_is_anothers(self, store: Store) -> None:
        asked = confirm(store)
        store.respond("ada", confirm(store).id, {"confirmed": True})
        for call in (
            lambda id: store.get("eve", id),
            lambda id: store.respond("eve", id, {"confirmed": True}),
            lambda id: store.cancel("eve", id),
            lambda id: store.result("eve", id),
            lambda id: store.complete("eve", id),
            lambda id: store.wait("eve", id, timeout_s=0),
            lambda id: store.pending("eve", after=id),
        ):
            texts = []
            for id in (asked.id, "el_AAAAAAAAAAAAAAAAAAAAAA", HOSTILE, "\0", ""):
                with pytest.raises(ElicitationNotFound) as caught:
                    call(id)
                texts.append(str(caught.value))
            assert len(set(texts)) == 1, "not there and not yours must look the same"
        assert store.consume("eve", asked.id, **CALL) == "absent"
        assert store.pending("eve") == []
        assert store.get("ada", asked.id).status == "pending"
        assert events(store, asked.id) == ["requested"]

    @pytest.mark.parametrize("caller", [HOSTILE, "x" * 256, " ", "ADA", "ada ", "*", "%", "None"])
    def test_callers_are_compared_exactly(self, store: Store, caller: str) -> None:
        mine = confirm(store, caller, server=HOSTILE, tool=HOSTILE[:20], message=HOSTILE)
        theirs = confirm(store)
        assert [one.id for one in store.pending(caller)] == [mine.id]
        assert [one.id for one in store.pending("ada")] == [theirs.id]
        found = store.get(caller, mine.id)
        assert (found.caller, found.server, found.tool, found.message) == (caller, HOSTILE, HOSTILE[:20], HOSTILE)
        assert store.verify().ok

    def test_what_no_caller_can_be_is_refused(self, store: Store) -> None:
        for caller in ("", "x" * 257, "a\0b", "\ud800", None, 7, b"ada"):
            with pytest.raises(ValueError, match="caller"):
                confirm(store, caller)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="caller"):
                store.pending(caller)  # type: ignore[arg-type]

    def test_pending_is_in_order_and_in_pages(self, place: Place, store: Store) -> None:
        ids = []
        for _ in range(7):
            ids.append(confirm(store, timeout_s=60).id)
            place.pass_time(0.001)
        confirm(store, "eve")
        store.cancel("ada", ids[2])
        del ids[2]
        assert [one.id for one in store.pending("ada")] == ids
        first = store.pending("ada", limit=4)
        store.cancel("ada", first[-1].id)
        rest = store.pending("ada", limit=4, after=first[-1].id)
        assert [one.id for one in (*first, *rest)] == ids
        assert (first.next, rest.next) == (ids[3], None)
        assert store.pending("ada", limit=2, after=ids[3]).next is None
        place.pass_time(61)
        assert store.pending("ada") == []

    def test_a_page_is_bounded_in_bytes(self, place: Place, store: Store) -> None:
        """However large the questions are, a list takes no more memory than a few of them."""
        text, ids = "x" * (ARGUMENTS_BYTES - 100), []
        for number in range(10):
            ids.append(confirm(store, arguments={"text": text, "number": number}).id)
            place.pass_time(0.001)
        found, pages, after = [], 0, None
        while pages == 0 or after is not None:
            page = store.pending("ada", limit=1000, after=after)
            assert 0 < len(page) <= PAGE_BYTES // len(text) + 1
            found += [one.id for one in page]
            pages, after = pages + 1, page.next
        assert found == ids and pages == 2
        with store._backend.transaction("ada", write=False) as tx:
            assert [row.id for row in tx.pending(1000, None, 1)] == ids[:1], "no more are read than are kept"

    def test_a_page_of_what_can_not_be_unsealed_hides_nothing_behind_it(self, place: Place, store: Store) -> None:
        lost = place.open(keys=KeyRing.generate())
        for _ in range(3):
            confirm(lost)
            place.pass_time(0.001)
        mine = confirm(store)
        first = store.pending("ada", limit=2)
        assert first == [] and first.next is not None
        assert [one.id for one in store.pending("ada", limit=2, after=first.next)] == [mine.id]

    # ---- Approvals --------------------------------------------------------------------------------------------------

    def test_an_approval_is_for_exactly_this_call_and_once(self, store: Store) -> None:
        asked = confirm(store)
        assert store.consume("ada", asked.id, **CALL) == "pending"
        store.respond("ada", asked.id, {"confirmed": True})
        others: list[dict[str, Any]] = [
            {"arguments": {"path": "/a", "depth": other}} for other in (1.0, True, "1", 2, None, [1])
        ]
        others += [{"arguments": {"path": "/a"}}, {"arguments": {**CALL["arguments"], "confirmed": True}}]
        others += [{"tool": "delete "}, {"tool": "Delete"}, {"server": None}, {"server": "file"}]
        for other in others:
            assert store.consume("ada", asked.id, **{**CALL, **other}) == "mismatch"
        reordered = {"depth": 1, "path": "/a"}
        assert store.consume("ada", asked.id, **{**CALL, "arguments": reordered}) == "consumed"
        assert store.confirmation_state("ada", asked.id) == "used"
        assert store.consume("ada", asked.id, **CALL) == "unknown", "nobody said that the call has its result"
        store.complete("ada", asked.id)
        store.complete("ada", asked.id)
        assert store.consume("ada", asked.id, **CALL) == "used"
        assert not store.is_confirmed("ada", asked.id)
        assert events(store, asked.id) == ["requested", "responded", "consumed", "completed"]

    def test_a_call_is_known_by_its_newest_confirmation(self, place: Place, store: Store) -> None:
        assert store.find_confirmation("ada", **CALL) is None
        older = confirm(store)
        place.pass_time(1)
        newer = confirm(store)
        place.pass_time(1)
        confirm(store, arguments={}), confirm(store, "eve"), confirm(store, server=None), confirm(store, tool="x")
        store.create("ada", string_input("?", tool="delete", server="files"))
        found = store.find_confirmation("ada", **CALL)
        assert found is not None and found.id == newer.id != older.id
        rotated = place.open(keys=place.keys.rotated())  # type: ignore[attr-defined]
        confirm(rotated, arguments={})
        found = rotated.find_confirmation("ada", **CALL)
        assert found is not None and found.id == newer.id
        store.cancel("ada", newer.id)
        found = store.find_confirmation("ada", **{**CALL, "arguments": {"depth": 1, "path": "/a"}})
        assert found is not None and (found.id, found.status) == (newer.id, "cancelled")
        for more in ({"depth": 1.0}, {"depth": True}, {"confirmed": True}):
            assert store.find_confirmation("ada", **{**CALL, "arguments": {**CALL["arguments"], **more}}) is None
        assert place.open(keys=KeyRing.generate()).find_confirmation("ada", **CALL) is None, "nor without the key"
        with pytest.raises(ValueError, match="arguments"):
            store.find_confirmation("ada", tool="delete", arguments={"x": {1, 2}})
        place.pass_time(3 * 86_400)
        assert store.find_confirmation("ada", **CALL) is None

    def test_what_was_not_consumed_is_not_complete(self, store: Store) -> None:
        asked = confirm(store)
        with pytest.raises(ValueError, match="not consumed"):
            store.complete("ada", asked.id)

    def test_a_confirmation_that_is_for_no_call_approves_none(self, store: Store) -> None:
        asked = store.create("ada", confirmation("Really?"))
        store.respond("ada", asked.id, {"confirmed": True})
        assert store.consume("ada", asked.id, tool="", arguments={}) == "mismatch"

    def test_an_approval_ends_and_a_clock_that_was_set_back_revives_none(self, place: Place) -> None:
        store = place.open(approval_s=10)
        old = confirm(store)
        store.respond("ada", old.id, {"confirmed": True})
        place.pass_time(11)
        assert store.consume("ada", old.id, **CALL) == "expired"
        place.pass_time(1000)
        later = confirm(store, timeout_s=1800)
        store.respond("ada", later.id, {"confirmed": True})
        place.pass_time(-900)
        assert store.consume("ada", later.id, **CALL) == "expired", "nobody knows how old it is"
        assert events(store, later.id) == ["requested", "responded"]

    def test_the_yes_that_counts_is_the_sealed_one(self, place: Place, store: Store) -> None:
        """Who can write to the database and has no key approves nothing."""
        yes, no, open_one = confirm(store), confirm(store), confirm(store)
        store.respond("ada", yes.id, {"confirmed": True})
        store.respond("ada", no.id, {"confirmed": False})
        with store._backend.transaction("ada") as tx:
            sealed_yes = tx.get(yes.id)
            assert tx.lock(no.id) and tx.lock(open_one.id) and sealed_yes
            tx.update(no.id, confirmed=True)
            tx.update(open_one.id, confirmed=True, status="responded", ended_at=tx.now(), response=sealed_yes.response)
        assert store.consume("ada", no.id, **CALL) == "declined"
        with pytest.raises(SealError, match=f"response of elicitation {open_one.id}"):
            store.consume("ada", open_one.id, **CALL)

    def test_a_yes_is_to_what_was_shown_and_to_nothing_else(self, place: Place, store: Store) -> None:
        """The hash of a call that nobody approved is put beside the yes to another one."""
        harmless, wanted = confirm(store, tool="list"), confirm(store)
        store.respond("ada", harmless.id, {"confirmed": True})
        with store._backend.transaction("ada", write=False) as tx:
            row = tx.get(wanted.id)
        assert row is not None
        place.write(harmless.id, binding_mac=row.binding_mac)
        for call in (
            lambda: store.consume("ada", harmless.id, **CALL),
            lambda: store.is_confirmed("ada", harmless.id),
            lambda: store.get("ada", harmless.id),
        ):
            with pytest.raises(SealError, match=harmless.id):
                call()
        assert events(store, harmless.id) == ["requested", "responded"]

    @pytest.mark.parametrize("changed", [{"tool": "list"}, {"server": None}, {"type": "string_input"}])
    def test_a_question_whose_call_was_changed_is_not_shown(self, place: Place, store: Store, changed: Any) -> None:
        asked, other = confirm(store), confirm(store)
        place.write(asked.id, **changed)
        assert [one.id for one in store.pending("ada")] == [other.id]
        with pytest.raises(SealError, match=asked.id):
            store.get("ada", asked.id)

    def test_a_question_given_to_another_caller_is_not_theirs(self, place: Place, store: Store) -> None:
        asked = confirm(store)
        place.write(asked.id, caller="eve")
        assert store.pending("eve") == []
        store.respond("eve", asked.id, {"confirmed": True})
        with pytest.raises(SealError, match=asked.id):
            store.is_confirmed("eve", asked.id)

    def test_the_same_call_of_two_callers_looks_like_two(self, place: Place, store: Store) -> None:
        """Who has the rows and no key can't tell that they want the same."""
        seen = set()
        for caller in ("ada", "eve"):
            confirm(store, caller)
            with store._backend.transaction(caller, write=False) as tx:
                ((_, mac),) = tx.bound(CALL["tool"], tx.now() - timedelta(days=1), 9)
            seen.add(mac)
        assert len(seen) == 2

    def test_no_column_makes_a_yes(self, place: Place, store: Store) -> None:
        no, never = confirm(store), confirm(store)
        store.respond("ada", no.id, {"confirmed": False})
        place.write(no.id, confirmed=True)
        place.write(never.id, status="responded", confirmed=True, ended_at=never.created_at)
        for one in (no, never):
            assert store.confirmation_state("ada", one.id) == "declined" and not store.is_confirmed("ada", one.id)
            assert store.consume("ada", one.id, **CALL) == "declined"
            for call in (store.get, store.wait):
                with pytest.raises(SealError, match=one.id):
                    call("ada", one.id)

    # ---- Time -------------------------------------------------------------------------------------------------------

    def test_an_answer_after_the_end_is_a_conflict(self, place: Place, store: Store) -> None:
        answered, cancelled = confirm(store, timeout_s=1), confirm(store, timeout_s=1)
        place.pass_time(2)
        outcome = store.respond("ada", answered.id, {"confirmed": True})
        assert (outcome.kind, outcome.status) == ("conflict", "expired")
        assert store.cancel("ada", cancelled.id).status == "expired"
        assert events(store, answered.id) == ["requested", "timeout"], "written down by who found it"
        assert store.consume("ada", answered.id, **CALL) == "expired"

    @pytest.mark.parametrize("timeout", [0, 0.9, 1801, -1, float("nan"), float("inf"), "5", None])
    def test_timeouts_that_are_refused(self, store: Store, timeout: Any) -> None:
        with pytest.raises(ValueError, match="timeout_s"):
            confirm(store, timeout_s=timeout)

    def test_the_sweeper_expires_what_is_due_once(self, place: Place, store: Store) -> None:
        due = [confirm(store, caller, timeout_s=1).id for caller in ("ada", "eve") for _ in range(60)]
        later = confirm(store, timeout_s=100)
        place.pass_time(2)
        other = place.open()
        with ThreadPoolExecutor(4) as pool:
            swept = sum(pool.map(lambda at: (store, other)[at % 2].sweep(), range(4)))
        swept += store.sweep()
        assert swept == len(due) and store.sweep() == 0
        assert events(store).count("timeout") == len(due)
        assert store.get("ada", later.id).status == "pending" and store.get("ada", due[0]).status == "expired"

    def test_sweep_takes_no_more_than_it_is_told_to(self, place: Place, store: Store) -> None:
        for _ in range(5):
            confirm(store, timeout_s=1)
        place.pass_time(2)
        assert [store.sweep(limit=3), store.sweep(limit=3), store.sweep(limit=3)] == [3, 2, 0]

    def test_prune_removes_questions_and_answers(self, place: Place, store: Store) -> None:
        old, open_one = confirm(store), confirm(store, timeout_s=1800)
        store.respond("ada", old.id, {"confirmed": True})
        place.pass_time(20 * 60)
        assert store.prune(days=1) == 0
        assert store.prune(days=10 / 1440) == 1 and store.prune(days=10 / 1440) == 0
        found = store.get("ada", old.id)
        assert (found.message, found.params, found.confirmed, found.tool) == ("", {}, True, "delete")
        with pytest.raises(NoAnswer, match="removed"):
            store.result("ada", old.id)
        assert store.respond("ada", old.id, {"confirmed": True}).kind == "already_recorded"
        assert store.get("ada", open_one.id).params["arguments"] == CALL["arguments"]
        assert events(store)[-1] == "pruned" and store.verify().ok

    def test_the_rate_is_each_callers_own(self, place: Place) -> None:
        store = place.open(rate=(3, 10))
        for caller in ("ada", "eve"):
            for _ in range(3):
                confirm(store, caller)
        with pytest.raises(RateLimited, match="try again in") as caught:
            confirm(place.open(rate=(3, 10)))
        assert 1 <= caught.value.retry_after_s <= 10
        place.pass_time(-5)
        with pytest.raises(RateLimited) as caught:
            confirm(store)  # the clock was set back: nobody gains by that
        assert 10 < caught.value.retry_after_s <= 15
        place.pass_time(15.5)
        confirm(store)
        place.pass_time(-100_000)
        confirm(store), confirm(store)

    def test_the_rate_holds_against_many_at_once(self, place: Place) -> None:
        stores = [place.open(rate=(5, 60)) for _ in range(2)]

        def create(at: int) -> int:
            try:
                confirm(stores[at % 2])
            except RateLimited:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(create, range(24))) == 5

    # ---- Races ------------------------------------------------------------------------------------------------------

    def test_of_two_answers_one_wins(self, place: Place) -> None:
        stores = [place.open(), place.open()]
        ids = [confirm(stores[0]).id for _ in range(20)]
        start = threading.Barrier(2)

        def answer(at: int) -> list[str]:
            kinds = []
            for id in ids:
                start.wait(WIDE)
                kinds.append(stores[at].respond("ada", id, {"confirmed": bool(at)}).kind)
            return kinds

        with ThreadPoolExecutor(2) as pool:
            no, yes = pool.map(answer, range(2))
        for id, *kinds in zip(ids, no, yes, strict=True):
            assert sorted(kinds) == ["conflict", "recorded"]
            assert stores[0].result("ada", id) == {"confirmed": kinds[1] == "recorded"}
            assert events(stores[0], id) == ["requested", "responded"]

    def test_an_approval_is_consumed_by_one_of_many(self, place: Place) -> None:
        stores = [place.open() for _ in range(4)]
        asked = confirm(stores[0])
        stores[0].respond("ada", asked.id, {"confirmed": True})
        with ThreadPoolExecutor(8) as pool:
            states = Counter(pool.map(lambda at: stores[at % 4].consume("ada", asked.id, **CALL), range(16)))
        assert states == {"consumed": 1, "unknown": 15}

    def test_a_call_that_waits_is_asked_about_once(self, place: Place, store: Store) -> None:
        asked = confirm(store)
        again = confirm(store, once=True, message="Other words?", timeout_s=1)
        assert again == store.get("ada", asked.id), "the one that is there, as it was asked"
        others = [
            confirm(store, once=True, arguments={"path": "b.txt"}),
            confirm(store, once=True, server="elsewhere"),
            confirm(store, "eve", once=True),
            confirm(store),
        ]
        assert len({asked.id, *(one.id for one in others)}) == 5
        newest = others[-1]
        assert confirm(store, once=True).id == newest.id
        store.respond("ada", newest.id, {"confirmed": True})
        after = confirm(store, once=True, timeout_s=2)
        assert after.id not in (asked.id, newest.id), "what was answered does not wait"
        place.pass_time(2.5)
        late = confirm(store, once=True)
        assert late.id != after.id, "what is over does not wait"
        assert events(store, late.id) == ["requested"]

    @pytest.mark.parametrize("rate", [None, (1000, 60.0)])
    def test_a_call_that_waits_is_asked_about_once_by_many(self, place: Place, rate: tuple[int, float] | None) -> None:
        stores = [place.open(rate=rate) for _ in range(4)]
        for number in range(5):
            with ThreadPoolExecutor(8) as pool:
                ask = partial(confirm, arguments={"n": number}, once=True)
                assert len({one.id for one in pool.map(ask, stores * 2)}) == 1

    def test_a_call_that_waits_is_found_beyond_the_rate(self, place: Place) -> None:
        store = place.open(rate=(1, 60.0))
        asked = confirm(store, once=True)
        assert confirm(store, once=True).id == asked.id
        with pytest.raises(RateLimited):
            confirm(store, arguments={}, once=True)

    def test_answer_cancel_and_sweep_at_once_leave_one_end(self, place: Place) -> None:
        stores = [place.open() for _ in range(3)]
        ids = [confirm(stores[0], timeout_s=1).id for _ in range(15)]
        place.pass_time(0.95)

        def end(at: int) -> list[str]:
            if at == 2:
                swept = 0
                place.pass_time(0.2)
                while swept < len(ids) and stores[2].pending("ada"):
                    swept += stores[2].sweep()
                stores[2].sweep()
                return []
            act = stores[at].cancel if at else (lambda caller, id: stores[0].respond(caller, id, {"confirmed": True}))
            return [id for id in ids if act("ada", id).kind == "recorded"]

        with ThreadPoolExecutor(3) as pool:
            answered, cancelled, _ = pool.map(end, range(3))
        assert not set(answered) & set(cancelled)
        for id in ids:
            status = stores[0].get("ada", id).status
            wanted = "responded" if id in answered else "cancelled" if id in cancelled else "expired"
            assert status == wanted
            assert len(events(stores[0], id)) == 2
        assert stores[0].verify().ok

    def test_third_invalid_answers_at_once_count_each_once(self, place: Place) -> None:
        stores = [place.open() for _ in range(2)]
        asked = confirm(stores[0])
        with ThreadPoolExecutor(6) as pool:
            answers = pool.map(lambda at: stores[at % 2].respond("ada", asked.id, {"confirmed": at}).kind, range(6))
            kinds = Counter(answers)
        assert kinds == {"invalid": 2, "validation_failed": 1, "conflict": 3}

    # ---- Waiting ----------------------------------------------------------------------------------------------------

    def test_an_answer_before_the_waiter_looks_is_not_lost(self, store: Store) -> None:
        asked = confirm(store)
        store.respond("ada", asked.id, {"confirmed": True})
        assert store.wait("ada", asked.id, timeout_s=WIDE).confirmed is True

    @pytest.mark.parametrize("end", ["respond", "cancel", "fail", "sweep"])
    def test_a_waiter_wakes_at_every_end(self, place: Place, end: str) -> None:
        here, elsewhere = place.open(), place.open()
        asked = confirm(here)
        with waiting(here, asked.id) as (waiter,):
            if end == "respond":
                elsewhere.respond("ada", asked.id, {"confirmed": True})
            elif end == "cancel":
                elsewhere.cancel("ada", asked.id)
            elif end == "fail":
                for _ in range(3):
                    elsewhere.respond("ada", asked.id, {})
            else:
                place.pass_time(301)
                elsewhere.sweep()
            ends = {"respond": "responded", "cancel": "cancelled", "fail": "validation_failed", "sweep": "expired"}
            assert waiter.result(WIDE).status == ends[end]

    def test_a_waiter_that_is_told_of_nothing_finds_out(self, place: Place) -> None:
        """Behind the notifications is a look at the rows, also at those whose time is up."""
        store = place.open()
        store._waiters._changes = lambda id: None  # type: ignore[method-assign]  # every notification is lost
        asked, late = confirm(store), confirm(store)
        with waiting(store, asked.id, late.id) as waiters:
            place.open().respond("ada", asked.id, {"confirmed": True})
            assert waiters[0].result(WIDE).confirmed is True
            place.pass_time(301)
            assert waiters[1].result(WIDE).status == "expired"

    def test_a_clock_that_was_set_back_prolongs_no_wait(self, place: Place, store: Store) -> None:
        asked = confirm(store, timeout_s=1)
        place.pass_time(-1000)
        assert store.wait("ada", asked.id, timeout_s=WIDE).status == "expired"
        assert store.respond("ada", asked.id, {"confirmed": True}).kind == "conflict"

    def test_a_wait_ends_without_an_answer(self, store: Store) -> None:
        asked = confirm(store)
        assert store.wait("ada", asked.id, timeout_s=0).status == "pending"
        assert store.wait("ada", asked.id, still_wanted=lambda: False).status == "pending"
        answers = iter([True, False])
        assert store.wait("ada", asked.id, still_wanted=lambda: next(answers, False)).status == "pending"
        assert not store._waiters._wakers

    def test_closing_ends_waits_with_an_error(self, store: Store) -> None:
        with waiting(store, confirm(store).id) as (waiter,):
            store.close()
            with pytest.raises(StoreError, match="closed"):
                waiter.result(WIDE)

    def test_a_subscriber_hears_of_every_change_of_every_store(self, place: Place) -> None:
        here, elsewhere = place.open(), place.open()
        heard: list[Change] = []
        done = threading.Event()

        def hear(change: Change) -> None:
            heard.append(change)
            if change.status == "cancelled":
                done.set()

        def broken(change: Change) -> None:
            raise RuntimeError("a subscriber's own failure")

        end_broken, end = here.subscribe(broken), here.subscribe(hear)
        mine, theirs = confirm(here), confirm(elsewhere, "eve")
        here.respond("ada", mine.id, {"confirmed": True})
        elsewhere.cancel("eve", theirs.id)
        assert done.wait(WIDE)
        end(), end(), end_broken()
        told = {(change.id, change.caller) for change in heard if change.id is not None}
        assert {(mine.id, "ada"), (theirs.id, "eve")} >= told >= {(theirs.id, "eve")}
        assert Change(theirs.id, "eve", ElicitationStatus.CANCELLED) in heard

    # ---- The audit --------------------------------------------------------------------------------------------------

    def test_the_audit_tells_who_and_never_what(
        self, place: Place, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "gopher_mcp_python")
        word = secret("payload")
        kept = store.create("ada", string_input(word, server=f"https://u:{word}@h/mcp?token={word}"), timeout_s=30)
        store.respond("ada", kept.id, {"value": word, word: word}, by="grace")
        store.respond("ada", kept.id, {"value": word}, by="grace")
        asked = confirm(store, arguments={"token": word}, message=word, timeout_s=20)
        store.respond("ada", asked.id, {"confirmed": True})
        store.consume("ada", asked.id, **{**CALL, "arguments": {"token": word}})
        store.complete("ada", asked.id)
        store.cancel("ada", confirm(store, timeout_s=20).id)
        confirm(store, timeout_s=1)
        place.pass_time(10)
        store.sweep()
        store.prune(days=0)
        assert set(events(store)) == set(EVENTS)
        with store._backend.transaction(None, write=False) as tx:
            texts = [row.text for row in tx.audit_rows(0, 1000)]
        logged = [record for record in caplog.records if record.name == "gopher_mcp_python.audit"]
        assert [record.getMessage() for record in logged] == texts
        told = [json.loads(text) for text in texts]
        assert [one["by"] for one in told if one["event"] == "responded" and "by" in one] == ["grace"]
        assert word not in caplog.text and word not in "".join(texts) and all(text.isascii() for text in texts)
        for value in (kept, store.get("ada", kept.id), asked, store, mcp_form(form_request())):
            assert word not in repr(value)

    def test_nothing_of_a_transaction_that_fails_stays(self, store: Store) -> None:
        asked = confirm(store)
        before = events(store)

        def fail() -> None:
            with store._backend.transaction("ada") as tx:
                assert tx.lock(asked.id)
                tx.update(asked.id, status="cancelled", ended_at=tx.now())
                tx.append_audit("{}")
                tx.notify(asked.id)
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert store.get("ada", asked.id).status == "pending" and events(store) == before
        store.cancel("ada", asked.id)
        assert store.verify().ok

    def test_the_chain_is_whole_after_many_at_once(self, place: Place) -> None:
        stores = [place.open() for _ in range(3)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda at: stores[at % 3].cancel("ada", confirm(stores[at % 3]).id), range(30)))
        found = stores[0].verify()
        assert found.ok and found.records == 60 and found.head is not None and found.head.seq == 60

    def test_an_anchor_shows_that_the_tail_is_gone(self, place: Place, tmp_path: Path) -> None:
        anchor = FileAnchor(tmp_path / "anchor")
        store = place.open(anchor=anchor)
        assert store.write_anchor() is False and store.verify().ok
        confirm(store)
        assert [store.write_anchor(), store.write_anchor()] == [True, False]
        found = store.verify()
        assert found.ok and found.anchored == 1
        ahead = FileAnchor(tmp_path / "ahead")
        confirm(place.open(anchor=ahead)), confirm(store)
        store.write_anchor()
        with store._backend.transaction(None, write=False) as tx:
            rows = tx.audit_rows(0, 10)
        cut = verify_chain(rows[:1], anchor.read())
        assert [fault.seq for fault in cut.faults] == [2] and "gone" in str(cut.faults[0])

    # ---- Keys -------------------------------------------------------------------------------------------------------

    def test_another_key_opens_nothing(self, place: Place, store: Store) -> None:
        asked = confirm(store)
        store.respond("ada", asked.id, {"confirmed": True})
        still = confirm(store)
        stranger = place.open(keys=KeyRing.generate())
        for call in (stranger.get, stranger.result):
            with pytest.raises(SealError, match=asked.id):
                call("ada", asked.id)
        assert stranger.pending("ada") == [], "left out, so that one row does not keep the others from being seen"
        assert stranger.consume("ada", asked.id, **CALL) == "mismatch"
        assert store.pending("ada")[0].id == still.id

    def test_older_keys_open_what_they_sealed(self, place: Place, store: Store) -> None:
        asked, answered = confirm(store), confirm(store)
        store.respond("ada", answered.id, {"confirmed": True})
        rotated = place.open(keys=place.keys.rotated())  # type: ignore[attr-defined]
        assert rotated.get("ada", asked.id).params == asked.params
        assert rotated.respond("ada", answered.id, {"confirmed": True}).kind == "already_recorded"
        assert rotated.consume("ada", answered.id, **CALL) == "consumed"
        rotated.respond("ada", asked.id, {"confirmed": True})
        with pytest.raises(SealError, match="not in the ring"):
            store.result("ada", asked.id)

    def test_blobs_belong_to_their_row_and_part(self, store: Store) -> None:
        first, second = (store.create("ada", string_input(f"question {at}")) for at in range(2))
        for one in (first, second):
            store.respond("ada", one.id, {"value": one.id})
        with store._backend.transaction("ada", write=False) as tx:
            rows = [tx.get(one.id) for one in (first, second)]
        assert rows[0] is not None and rows[1] is not None and rows[0].response is not None
        own = rows[0].response
        flipped = own[:-1] + bytes([own[-1] ^ 1])
        for blob in (rows[1].response, rows[0].question, flipped, own[:20], own[:-1], b"", b"\1"):
            with store._backend.transaction("ada") as tx:
                tx.lock(first.id)
                tx.update(first.id, response=blob)
            with pytest.raises(SealError, match=f"response of elicitation {first.id}"):
                store.result("ada", first.id)
        assert store.result("ada", second.id) == {"value": second.id}

    # ---- The end ----------------------------------------------------------------------------------------------------

    def test_a_closed_store_says_so(self, store: Store) -> None:
        asked = confirm(store)
        store.close()
        store.close()
        for call in (
            lambda: confirm(store), lambda: store.respond("ada", asked.id, {}), lambda: store.get("ada", asked.id),
            lambda: store.pending("ada"), lambda: store.wait("ada", asked.id), store.sweep, store.prune, store.check,
            lambda: store.confirmation_state("ada", "?"), lambda: store.consume("ada", "?", **CALL),
            lambda: store.subscribe(lambda change: None), store.verify, lambda: store.cancel("ada", ""),
        ):  # fmt: skip
            with pytest.raises(StoreError, match="closed"):
                call()

    def test_housekeeping_does_the_chores(self, place: Place, tmp_path: Path) -> None:
        store = place.open(anchor=FileAnchor(tmp_path / "anchor"))
        asked = confirm(store, timeout_s=1)
        place.pass_time(2)
        done = threading.Event()
        end = store.subscribe(lambda change: done.set() if change.status == "expired" else None)
        with Housekeeping(store, sweep_every_s=0.05, keep_days=0, prune_every_s=0.05, anchor_every_s=0.05):
            assert done.wait(WIDE)
        end()
        assert store.get("ada", asked.id).status == "expired"
        place.pass_time(1)
        store.prune(0), store.write_anchor()
        assert store.verify().ok and store.verify().anchored
