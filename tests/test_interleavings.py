"""Steps of two threads in the one order that could do harm: with the GIL it is rare, without it is not."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from gopher_mcp_python import lifetime, mismatch
from gopher_mcp_python.elicitation import GopherAgentElicitationRequest
from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.engines import _loop
from gopher_mcp_python.engines._loop import LoopThread
from gopher_mcp_python.engines.base import RunOutcome
from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.events import GopherAgentEvent
from gopher_mcp_python.handlers.person import Person
from gopher_mcp_python.handlers.prompts import PersonAnswer
from gopher_mcp_python.handlers.watch import Watch
from gopher_mcp_python.lone import LoneRequest
from gopher_mcp_python.oauth import loopback
from gopher_mcp_python.oauth.grants import Grant
from gopher_mcp_python.oauth.loopback import Callback
from gopher_mcp_python.oauth.signin import Attempt, ServerSignIn
from gopher_mcp_python.oauth.stores import MemoryTokenStore, TokenStoreError
from gopher_mcp_python.oauth_options import GopherAgentOAuthOptions, GopherAgentTokenRecord
from gopher_mcp_python.run_events import AgentEvents, RunEvents
from gopher_mcp_python.serve.uploads import Refused, Uploads
from gopher_mcp_python.store import FileKeys, KeyRing, StoreError
from gopher_mcp_python.store import keys as store_keys
from gopher_mcp_python.store.sealing import Sealer
from gopher_mcp_python.streaming import GopherAgentStream
from gopher_mcp_python.turns import Line
from tests.support.interleaving import Elsewhere, SeenLock, in_lockstep

PAGE = GopherAgentElicitationRequest("url", "e1", "Sign in.", "https://accounts.example.com/x", server="mail")


# ---- events --------------------------------------------------------------------------------------------------------


class Halting(AgentEvents):
    """Lets something happen after its `_turn` was looked at."""

    after_look: Callable[[], object] | None = None

    @property  # type: ignore[override]
    def _turn(self) -> RunEvents | None:
        found = self.__dict__.get("has_turn")
        then, self.after_look = self.after_look, None
        if then is not None:
            then()
        return cast("RunEvents | None", found)

    @_turn.setter
    def _turn(self, turn: RunEvents | None) -> None:
        self.__dict__["has_turn"] = turn


def test_a_run_that_ends_does_not_take_the_turn_of_the_next() -> None:
    events = Halting()
    events.listen(lambda event: None)
    lock = SeenLock()
    events._lock = cast(Any, lock)
    begun, over = threading.Event(), threading.Event()

    def next_run() -> None:
        with events.run() as run:
            assert events.turn() is run
            begun.set()
            other.stand()
            assert over.wait(30)

    other = Elsewhere(next_run, lock)
    with events.run() as first:
        events.turn()
        events.after_look = other.go
    try:
        assert other.went and begun.wait(30)
        assert events.heard and events._turn not in (None, first)
    finally:
        over.set()
        other.end()
    assert events._turn is None


class At(SeenLock):
    """A lock before which something happens, once."""

    def __init__(self, before: Callable[[], object]) -> None:
        super().__init__()
        self._before: list[Callable[[], object]] = [before]

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._before:
            self._before.pop()()
        return super().acquire(blocking, timeout)


def test_an_event_that_comes_while_a_run_ends_is_not_told_after_its_end() -> None:
    told: list[str] = []
    run = RunEvents(lambda event: told.append(event.kind))
    run.lock = cast(Any, At(lambda: run.end("completed")))
    run.tell("tool_result", 1, 1, {})
    assert told == ["run_completed"]


def test_an_event_that_a_thread_has_taken_is_not_lost_when_another_comes_to_the_end() -> None:
    def run(sink: Any) -> RunOutcome:
        sink(GopherAgentEvent("iteration_start", 1, 1, {}))
        return RunOutcome("done")

    place = Line().join()
    stream = GopherAgentStream(run, place)
    rest = Elsewhere(lambda: list(stream))
    take = stream._take

    def slowly(item: Any) -> Any:
        if not rest.went:
            rest.go()
        return take(item)

    stream._take = slowly  # type: ignore[method-assign]
    assert [event.kind for event in stream] == ["iteration_start"]
    assert rest.end() == [] and stream.text == "done"


# ---- answers -------------------------------------------------------------------------------------------------------


def test_an_answer_counts_only_where_it_is_also_taken() -> None:
    """It comes while the one that waits for it goes away."""
    taken: list[int] = []

    def wanted() -> bool:
        if threading.current_thread() is threading.main_thread():
            waiter.go()
            return True
        return False

    def wait() -> None:
        lone.wait()
        taken.append(lone.code)

    lone = LoneRequest(PAGE, 0, wanted)
    lock = SeenLock()
    lone._lock = cast(Any, lock)
    waiter = Elsewhere(wait, lock)
    counted = lone.answer("accept")
    waiter.end()
    assert counted == (taken == [1])
    assert not lone.answer("decline")


class OpenDoor:
    """A policy that lets everything pass and remembers nothing."""

    inner = None

    def ask_here(self, request: Any, further: Callable[[], Any]) -> Any:
        return further()

    def lasting(self, request: Any) -> tuple[str, ...]:
        return ("session",)


def test_every_refusal_of_a_server_takes_back_what_of_it_is_open() -> None:
    """One that was begun before another refusal, too."""
    still_open: list[bool] = []

    class Prompt:
        name = "test"

        def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
            return steps[request.message](watch)

    def refuse_after_another(watch: Watch) -> PersonAnswer:
        person.ask(question("refused"), Watch())
        late.go()
        return PersonAnswer("decline", whole_server="session")

    def look_after_the_refusal(watch: Watch) -> PersonAnswer:
        late.stand()
        assert refused.wait(30)
        still_open.append(watch.is_open())
        return PersonAnswer("cancel")

    def question(message: str) -> GopherAgentElicitationRequest:
        return GopherAgentElicitationRequest("form", message=message, server="mail")

    steps: dict[str, Callable[[Watch], PersonAnswer]] = {
        "refused": lambda watch: PersonAnswer("decline", whole_server="session"),
        "refused after it": refuse_after_another,
        "open": look_after_the_refusal,
    }
    refused = threading.Event()
    person = Person(cast(Any, Prompt()), cast(Any, OpenDoor()))
    late = Elsewhere(lambda: person.ask(question("open"), Watch()))
    person.ask(question("refused after it"), Watch())
    refused.set()
    answer, _ = late.end()
    assert still_open == [False] and answer.action == "decline"


def test_a_run_begins_before_the_last_one_has_ended_or_after_it() -> None:
    """What was refused in a run may be asked again in the next: that one must not begin in the middle of the end."""
    elicitor = Elicitor()
    lock = SeenLock()
    elicitor._lock = cast(Any, lock)
    answered = elicitor._answered
    end_run, begin_run = answered.end_run, answered.begin_run
    order: list[str] = []

    def next_run() -> None:
        with elicitor.during_run():
            pass

    def ends() -> None:
        if not other.went:
            other.go()
        order.append("end")
        end_run()

    def begins() -> None:
        order.append("begin")
        begin_run()

    other = Elsewhere(next_run, lock)
    answered.begin_run, answered.end_run = begins, ends  # type: ignore[method-assign]
    with elicitor.during_run():
        pass
    other.end()
    assert order == ["begin", "end"] * 2


# ---- the embedded engine's loop ------------------------------------------------------------------------------------


async def nothing(*_: object) -> None:
    return None


def test_a_call_that_begins_while_the_loop_is_closed_is_refused_like_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = LoopThread("loop under test")
    lock = SeenLock()
    thread._lock = cast(Any, lock)

    def close() -> None:
        thread.close(nothing)
        thread.join(30)

    closer = Elsewhere(close, lock)
    copy_context = _loop.contextvars.copy_context

    def copied() -> Any:
        if not closer.went:
            closer.go()
        return copy_context()

    monkeypatch.setattr(_loop.contextvars, "copy_context", copied)
    call = None
    try:
        with suppress(AgentError):
            call = thread.start(nothing)
    finally:
        closer.end()
    if call is not None:
        call.leave()
    with pytest.raises(AgentError, match="disposed"):
        thread.start(nothing)


def test_threads_that_have_ended_are_forgotten() -> None:
    thread = LoopThread("loop under test")
    assert thread in list(_loop._live)
    thread.close(nothing)
    thread.join(30)
    assert thread not in list(_loop._live)


# ---- once a process ------------------------------------------------------------------------------------------------


def test_a_mismatch_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(warnings, "warn", lambda *told, **more: said.append(told))
    monkeypatch.setattr(mismatch, "_TO_SAY", [True])
    in_lockstep(lambda: mismatch.warn_once("it can't be used"), mismatch.warn_once.__code__)
    assert len(said) == 1


def test_what_is_done_at_exit_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(os, "register_at_fork", lambda **steps: None, raising=False)
    monkeypatch.setattr(lifetime, "_TO_HOOK", [True])
    in_lockstep(lifetime._hook_once, lifetime._hook_once.__code__)
    assert len(registered) == 1


# ---- the store's keys ----------------------------------------------------------------------------------------------


def test_an_older_ring_does_not_replace_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread has read the file; another process makes a new key, and another thread reads that."""
    path = tmp_path / "keys"
    keys, elsewhere = FileKeys(path), FileKeys(path)
    elsewhere.rotate()
    lock = SeenLock()
    keys._lock = cast(Any, lock)
    read_private = store_keys.privatefile.read_private

    def rotated_meanwhile() -> None:
        elsewhere.rotate()
        keys.current()

    other = Elsewhere(rotated_meanwhile, lock)

    def slowly(file: Path) -> bytes | None:
        data = read_private(file)
        if threading.current_thread() is threading.main_thread():
            monkeypatch.undo()
            other.go()
        return data

    monkeypatch.setattr(store_keys.privatefile, "read_private", slowly)
    keys.current()
    other.end()
    assert keys.current() == elsewhere.current()
    assert keys.find(elsewhere.current()[0]) is not None


def test_nothing_is_sealed_with_a_key_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = FileKeys(tmp_path / "keys")
    before = keys.current()

    def no_room(path: Path, data: bytes) -> None:
        assert keys._ring.current() == before  # what another thread seals with at this moment
        raise TokenStoreError("no room")

    monkeypatch.setattr(store_keys.privatefile, "write_private", no_room)
    with pytest.raises(StoreError, match="no room"):
        keys.rotate()
    assert keys.current() == before


def test_a_key_service_is_asked_once_for_each_key() -> None:
    ring, asked = KeyRing.generate(), []

    class Service:
        def current(self) -> tuple[str, bytes]:
            return ring.current()

        def find(self, key_id: str) -> bytes | None:
            asked.append(key_id)
            if not other.went:
                other.go()
            return ring.find(key_id)

    blob = Sealer(ring).seal("row", "question", {"a": 1})
    sealer = Sealer(Service())
    lock = SeenLock()
    sealer._lock = cast(Any, lock)
    other = Elsewhere(lambda: sealer.open("row", "question", blob), lock)
    assert sealer.open("row", "question", blob) == other.end() == {"a": 1}
    assert len(asked) == 1


# ---- files ---------------------------------------------------------------------------------------------------------


def test_a_file_that_becomes_the_answer_is_not_removed_meanwhile(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "files")
    incoming = uploads.begin("ada", "el_1", name="a.txt", media_type="text/plain", limit=None)
    incoming.write(b"hello")
    upload = incoming.finish()
    lock = SeenLock()
    uploads._noting = cast(Any, lock)
    claim = Elsewhere(lambda: uploads.claim(upload), lock)
    read = uploads._read

    def slowly(file_id: str) -> Any:
        found = read(file_id)
        if not claim.went:
            claim.go()
        return found

    uploads._read = slowly  # type: ignore[method-assign]
    uploads.drop("el_1")
    try:
        claimed = claim.end()
    except Refused:
        claimed = False
    there = uploads.path(upload.file_id).exists()
    assert claimed == there == (uploads.find("ada", "el_1", upload.file_id) is not None)


# ---- signing in ----------------------------------------------------------------------------------------------------


def test_a_redirect_of_an_earlier_attempt_is_not_taken_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person pastes an address while a new attempt begins."""

    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect("first")
            read = loopback.read_redirect

            def slowly(query: str, state: str) -> Any:
                found = read(query, state)
                callback.expect("second")
                return found

            monkeypatch.setattr(loopback, "read_redirect", slowly)
            told = callback.feed(f"{callback.redirect_uri}?code=c&state=first")
            assert told is not None and "already" not in told
            assert callback.redirect is None
            monkeypatch.undo()
            assert callback.feed(f"{callback.redirect_uri}?code=c&state=second") is None
            assert (await callback.wait("second")).code == "c"

    asyncio.run(main())


def signing_in(store: MemoryTokenStore) -> ServerSignIn:
    return ServerSignIn("https://mail.example.com/mcp", "mail", GopherAgentOAuthOptions(), store)


def grant(token: str, *, kept: bool = True) -> Grant:
    return Grant(GopherAgentTokenRecord(token, "Bearer", None, None, None), kept=kept)


def test_a_look_into_the_store_does_not_replace_a_token_that_came_meanwhile() -> None:
    """One that the store could not keep would be lost, and somebody be asked to sign in again."""
    fresh = grant("fresh", kept=False)

    class Store(MemoryTokenStore):
        async def get(self, key: str) -> GopherAgentTokenRecord | None:
            found = await super().get(key)
            sign_in._grant = fresh  # as a flight's end does it, on another thread
            return found

    sign_in = signing_in(Store())
    assert asyncio.run(sign_in.current()) is fresh and sign_in._grant is fresh


def test_two_step_ups_and_a_refresh_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in = signing_in(MemoryTokenStore())
    lock = SeenLock()
    sign_in._lock = cast(Any, lock)
    challenge = cast(Any, type("Challenge", (), {"scope": "mail.send", "step_up": True})())

    async def flown(kind: str, main: Any) -> Grant | None:
        return grant("refreshed" if kind == "refresh" else "stepped up")

    def step_up() -> Any:
        return asyncio.run(sign_in._stepped_up("another", challenge, Attempt(interactive=True)))

    class Rejected(str):
        """A token that is compared slowly."""

        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            if not elsewhere.went:
                elsewhere.go()
            return str.__eq__(self, other)

    monkeypatch.setattr(sign_in, "_fly", flown)
    sign_in._given = {"mail.read": "old", "mail.list": "older"}
    elsewhere = Elsewhere(step_up, lock)
    asyncio.run(sign_in._refresh(Rejected("old")))
    elsewhere.end()
    assert sign_in._given == {"mail.read": "refreshed", "mail.list": "older", "mail.send": "stepped up"}
