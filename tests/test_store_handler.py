"""StoreElicitationHandler in one process: what is stored for whom, what its end means, and what is left of it when the
one who asked has gone."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import (
    ElicitationPolicy,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    HandlerChain,
)
from gopher_mcp_python.answers import ACCEPT, CANCEL, DECLINE
from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.forms import FormContentError
from gopher_mcp_python.handlers import elsewhere
from gopher_mcp_python.handlers.watch import Watch, deadline_after
from gopher_mcp_python.lone import LoneRequest
from gopher_mcp_python.policy import PolicyRule
from gopher_mcp_python.store import (
    ElicitationNotFound,
    FileKeys,
    RateLimited,
    SqliteBackend,
    Store,
    StoredElicitation,
    StoreElicitationHandler,
    StoreError,
)
from gopher_mcp_python.toolset.handling import asker_for
from tests.support.canary import secret
from tests.support.store_places import MemoryPlace

SECONDS = 30.0
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
USER: ContextVar[str] = ContextVar("user", default="nobody")
Asked = Callable[[StoredElicitation], object]


def form(schema: Any = NAME) -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("form", message="Who?", requested_schema=schema, server="crm", tool="add")


def page(url: str = "https://mail.example/sign-in?state=x") -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("url", "e1", "Sign in.", url, server="mail")


ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


@pytest.fixture
def place() -> Iterator[MemoryPlace]:
    place = MemoryPlace()
    yield place
    place.close()


@pytest.fixture
def store(place: MemoryPlace) -> Store:
    return place.open()


def answering(store: Store, response: Any) -> Asked:
    """Answers before anybody waits."""
    return lambda one: store.respond(one.caller, one.id, response)


class Asking:
    """A handler that waits on a thread of its own. `one`: what it has stored, once it has."""

    def __init__(self, store: Store, request: GopherAgentElicitationRequest, watch: Watch | None = None) -> None:
        self._stored = threading.Event()
        self._request, self._watch = request, watch or Watch()
        self._handler = StoreElicitationHandler(store, caller="ada", on_created=self._created)
        self.outcome: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._stored.wait(SECONDS)

    def _created(self, one: StoredElicitation) -> None:
        self.one = one
        self._stored.set()

    def _run(self) -> None:
        try:
            self.outcome = self._handler.gopher_prompt.ask(self._request, self._watch)
        except Exception as error:
            self.outcome = error

    def end(self) -> Any:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "it still waits"
        return self.outcome


def elicited(handler: Any, request: GopherAgentElicitationRequest, timeout_ms: int = 0) -> tuple[LoneRequest, Any]:
    """How an agent's engine gets its answer, and the cause that its run's result would have."""
    elicitor, lone = Elicitor(GopherAgentElicitationOptions(handler, timeout_ms)), LoneRequest(request, timeout_ms)
    elicitor.answer(lone)
    return lone, elicitor.take_cause()


# ---- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "response", "action", "content"),
    [
        (form(), ACCEPTED, "accept", {"name": "Ada"}),
        (form(), {"action": "decline"}, "decline", None),
        (page(), {"action": "accept"}, "accept", None),
        (page(), {"action": "decline"}, "decline", None),
    ],
)
def test_what_is_answered_elsewhere_is_the_answer(
    store: Store, request_: GopherAgentElicitationRequest, response: Any, action: str, content: Any
) -> None:
    asking = Asking(store, request_)
    (listed,) = store.pending("ada")
    assert (listed.id, listed.mode, listed.message) == (asking.one.id, request_.mode, request_.message)
    assert (listed.server, listed.tool) == (request_.server, request_.tool)
    assert not store.pending("bob")
    assert store.respond("ada", listed.id, response, by="grace").kind == "recorded"
    answer = asking.end()
    assert (answer.action, answer.content, answer.whole_server) == (action, content, None)


def test_an_answer_that_comes_before_it_is_waited_for_is_not_lost(store: Store) -> None:
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, ACCEPTED))
    answer = handler(form())
    assert isinstance(answer, GopherAgentElicitationResponse)
    assert (answer.action, answer.content) == ("accept", {"name": "Ada"})


@pytest.mark.parametrize("end", ["cancelled", "validation_failed"])
def test_other_ends_are_cancel(store: Store, end: str) -> None:
    asking = Asking(store, form())
    if end == "cancelled":
        store.cancel("ada", asking.one.id)
    else:
        kinds = [store.respond("ada", asking.one.id, {"action": "accept", "content": {}}).kind for _ in range(3)]
        assert kinds == ["invalid", "invalid", "validation_failed"]
    assert asking.end().action == "cancel" and store.get("ada", asking.one.id).status == end


def test_an_answer_is_judged_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored came from another program, perhaps of another version."""
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, ACCEPTED))
    for given in ({"action": "accept", "content": {"name": 7}}, {"action": "accept"}, {"action": "maybe"}, ["accept"]):
        monkeypatch.setattr(store, "result", lambda *_, given=given: given)
        lone, cause = elicited(handler, form())
        assert lone.code == CANCEL and isinstance(cause, ValueError), given
    monkeypatch.setattr(store, "result", lambda *_: {"action": "accept", "content": {"name": 7}})
    with pytest.raises(FormContentError):
        handler(form())


def test_what_nobody_should_see_is_declined_and_not_stored(store: Store) -> None:
    unreadable = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    handler = StoreElicitationHandler(store, caller="ada")
    for request in (form(unreadable), page("javascript:alert(1)")):
        assert handler(request).action == "decline"
        assert asyncio.run(handler.handle_async(request)).action == "decline"
    lone, cause = elicited(handler, GopherAgentElicitationRequest("zebra", message="?"))
    assert lone.code == CANCEL and isinstance(cause, ValueError)
    assert not store.pending("ada")


# ---- whose question it is, and who is told ---------------------------------------------------------------------------


def test_the_caller_is_known_where_the_call_was_made(store: Store) -> None:
    seen: list[StoredElicitation] = []

    def created(one: StoredElicitation) -> None:
        seen.append(one)
        store.respond(one.caller, one.id, ACCEPTED)

    handler = StoreElicitationHandler(store, caller=lambda request: USER.get(), on_created=created)

    async def with_toolset(user: str) -> str:
        USER.set(user)
        asker = asker_for(handler)
        assert asker is not None
        return (await asker.ask(form())).action

    def with_agent(user: str) -> None:
        USER.set(user)
        assert elicited(handler, form())[0].code == ACCEPT  # on this thread
        elicitor, lone = Elicitor(GopherAgentElicitationOptions(handler, 30_000)), LoneRequest(form(), 30_000)
        elicitor.answer_on_helper(lone).join(SECONDS)  # as with a limit
        assert lone.code == ACCEPT

    assert asyncio.run(with_toolset("ada")) == "accept"
    thread = threading.Thread(target=with_agent, args=("bob",))
    thread.start()
    thread.join(SECONDS)
    assert [one.caller for one in seen] == ["ada", "bob", "bob"]


@pytest.mark.parametrize("kind", ["sync", "async", "behind a policy"])
def test_nobody_waits_for_what_somebody_else_was_asked(store: Store, kind: str) -> None:
    """One toolset for many users, none of whom is named with a call: each has their own list."""
    created: list[StoredElicitation] = []
    mine = StoreElicitationHandler(store, caller=lambda request: USER.get(), on_created=created.append)
    asker = asker_for(
        {"sync": mine, "async": mine.handle_async, "behind a policy": ElicitationPolicy().around(mine)}[kind]
    )
    assert asker is not None

    async def ask(user: str) -> GopherAgentElicitationResponse:
        USER.set(user)
        return await asker.ask(form())

    async def work() -> None:
        tasks = {user: asyncio.ensure_future(ask(user)) for user in ("ada", "bob", "eve")}
        while len(created) < 3:
            await asyncio.sleep(0.01)
        for one in reversed(created):
            store.respond(one.caller, one.id, {"action": "accept", "content": {"name": one.caller}})
        assert {user: (await task).content for user, task in tasks.items()} == {
            user: {"name": user} for user in tasks
        }

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_what_a_caller_function_does_to_the_request_changes_nothing(store: Store) -> None:
    def caller(request: GopherAgentElicitationRequest) -> str:
        assert request.requested_schema is not None
        request.requested_schema["properties"].clear()
        return "ada"

    handler = StoreElicitationHandler(store, caller=caller, on_created=answering(store, ACCEPTED))
    assert handler(form()).content == {"name": "Ada"}


@pytest.mark.parametrize("where", ["caller", "on_created"])
def test_what_the_programs_functions_raise_ends_the_question(store: Store, where: str) -> None:
    told: list[StoredElicitation] = []

    def fails(given: Any) -> str:
        if isinstance(given, StoredElicitation):
            told.append(given)
        raise LookupError("no address")

    functions: dict[str, Any] = {"caller": "ada", where: fails}
    handler = StoreElicitationHandler(store, **functions)
    lone, cause = elicited(handler, form())
    assert lone.code == CANCEL and isinstance(cause, LookupError)
    with pytest.raises(LookupError):
        asyncio.run(handler.handle_async(form()))
    for one in told:
        assert _ended(store, one) == "cancelled"
    assert len(told) == (2 if where == "on_created" else 0) and not store.pending("ada")


def test_wrong_arguments_are_refused(store: Store) -> None:
    async def later(given: Any) -> str:
        return "ada"

    for timeout in (0, 0.5, 1801, -1, True, "60", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout_s"):
            StoreElicitationHandler(store, caller="ada", timeout_s=timeout)  # type: ignore[arg-type]
    for caller in ("", None, 7, later):
        with pytest.raises(ValueError, match="caller"):
            StoreElicitationHandler(store, caller=caller)  # type: ignore[arg-type]
    for function in ("mail", later):
        with pytest.raises(ValueError, match="on_created"):
            StoreElicitationHandler(store, caller="ada", on_created=function)  # type: ignore[arg-type]


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine_ms", "limit_ms", "timeout_s", "life"),
    [
        (None, None, None, 1800),
        (None, None, 45, 45),
        (115_000, None, None, 114),
        (115_000, 20_000, None, 19),
        (115_000, 20_000, 5.5, 5.5),
        (2_000, None, None, 1.8),
        (300, None, None, 1),  # the shortest there is; the engine's end cancels it
    ],
)
def test_the_question_ends_a_little_before_the_nearest_limit(
    store: Store, engine_ms: int | None, limit_ms: int | None, timeout_s: float | None, life: float
) -> None:
    lives: list[float] = []

    def created(one: StoredElicitation) -> None:
        lives.append((one.expires_at - one.created_at).total_seconds())
        store.cancel(one.caller, one.id)

    handler = StoreElicitationHandler(store, caller="ada", timeout_s=timeout_s, on_created=created)
    watch = Watch(engine_limit_ms=lambda: engine_ms, deadline=deadline_after(limit_ms), limit_ms=limit_ms)
    assert handler.gopher_prompt.ask(form(), watch).action == "cancel"
    # The deadline's clock has run on since it was made: by less than a minute of a slow machine.
    assert life - 60 < lives[0] <= life if limit_ms else lives == [life]


def test_no_time_left_stores_nothing(store: Store) -> None:
    handler = StoreElicitationHandler(store, caller="ada", on_created=lambda one: pytest.fail("stored"))
    watch = Watch(engine_limit_ms=lambda: 0)
    assert handler.gopher_prompt.ask(form(), watch).action == "cancel"


def test_too_old_is_cancel_and_counts_as_time_that_was_up(place: MemoryPlace, store: Store) -> None:
    watch = Watch()
    asking = Asking(store, form(), watch)
    assert not watch.ran_out()
    place.pass_time(1801)
    assert asking.end().action == "cancel" and watch.ran_out()
    assert store.get("ada", asking.one.id).status == "expired"


# ---- nobody waits any more -------------------------------------------------------------------------------------------


def _ended(store: Store, one: StoredElicitation) -> str:
    return store.wait(one.caller, one.id, timeout_s=SECONDS).status.value


def test_a_withdrawn_request_is_cancelled_where_it_is_stored(store: Store) -> None:
    withdrawn = threading.Event()
    asking = Asking(store, form(), Watch(is_open=lambda: not withdrawn.is_set()))
    withdrawn.set()
    assert asking.end().action == "cancel"
    assert store.get("ada", asking.one.id).status == "cancelled"
    assert store.respond("ada", asking.one.id, ACCEPTED).kind == "conflict"


def test_an_answer_just_before_the_withdrawal_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    withdrawn = threading.Event()
    asking = Asking(store, form(), Watch(is_open=lambda: not withdrawn.is_set()))
    cancel = store.cancel

    def answered_before(caller: str, id: str, **more: Any) -> Any:
        assert store.respond(caller, id, ACCEPTED).kind == "recorded"
        return cancel(caller, id, **more)

    monkeypatch.setattr(store, "cancel", answered_before)
    withdrawn.set()
    assert asking.end().content == {"name": "Ada"}


@pytest.mark.parametrize("handler", ["sync", "async"])
def test_a_toolset_that_withdraws_cancels_the_stored_one(store: Store, handler: str) -> None:
    created: list[StoredElicitation] = []
    mine = StoreElicitationHandler(store, caller="ada", on_created=created.append)
    asker = asker_for(mine if handler == "sync" else mine.handle_async)
    assert asker is not None

    async def work() -> None:
        task = asyncio.ensure_future(asker.ask(form()))
        while not created:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(_ended, store, created[0]) == "cancelled"

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_ctrl_c_cancels_the_stored_one(store: Store) -> None:
    created: list[StoredElicitation] = []

    def interrupted(one: StoredElicitation) -> None:
        created.append(one)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StoreElicitationHandler(store, caller="ada", on_created=interrupted)(form())
    assert store.get("ada", created[0].id).status == "cancelled"


def test_a_completed_page_is_accepted_and_the_stored_one_ends(store: Store) -> None:
    elicitor_box: list[Elicitor] = []
    created: list[StoredElicitation] = []

    def notice(one: StoredElicitation) -> None:
        created.append(one)
        elicitor_box[0].completed("e1")  # at once, before anybody waits

    handler = StoreElicitationHandler(store, caller="ada", on_created=notice)
    elicitor_box.append(Elicitor(GopherAgentElicitationOptions(handler)))
    lone = LoneRequest(page(), 0)
    elicitor_box[0].answer(lone)
    assert lone.code == ACCEPT
    assert store.result("ada", created[0].id) == {"action": "accept"}
    assert store.respond("ada", created[0].id, {"action": "accept"}).kind == "already_recorded"  # they may still say so


def test_a_completion_of_another_page_ends_nothing(store: Store) -> None:
    finished = threading.Event()
    asking = Asking(store, page(), Watch(is_finished=finished.is_set))
    store.respond("ada", asking.one.id, {"action": "decline"})
    finished.set()  # too late: they have answered
    assert asking.end().action == "decline"


# ---- a store that fails ----------------------------------------------------------------------------------------------


def test_without_a_store_the_request_is_cancelled_with_its_cause(store: Store) -> None:
    handler = StoreElicitationHandler(store, caller="ada")
    store.close()
    lone, cause = elicited(handler, form())
    assert lone.code == CANCEL and isinstance(cause, StoreError)
    asker = asker_for(handler)
    assert asker is not None
    with pytest.raises(StoreError):
        asyncio.run(asker.ask(form()))
    with pytest.raises(StoreError):
        asyncio.run(handler.handle_async(form()))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_store_that_is_closed_ends_the_wait(store: Store, kind: str) -> None:
    if kind == "sync":
        asking = Asking(store, form())
        store.close()
        assert isinstance(asking.end(), StoreError)
        return
    created: list[StoredElicitation] = []
    handler = StoreElicitationHandler(store, caller="ada", on_created=created.append)

    async def work() -> None:
        task = asyncio.ensure_future(handler.handle_async(form()))
        while not created:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(store.close)
        with pytest.raises(StoreError):
            await task

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def _sqlite(folder: Path) -> Store:
    return Store(SqliteBackend(folder / "el.db"), FileKeys(folder / "keys"), rate=None)


def _move(folder: Path, source: str, target: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        if (folder / (source + suffix)).exists():
            os.rename(folder / (source + suffix), folder / (target + suffix))


class _Failures(logging.Handler):
    """Is set when the handler has met a failing store."""

    def __init__(self) -> None:
        super().__init__()
        self.met = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "the store fails" in record.getMessage():
            self.met.set()


@pytest.fixture
def failures() -> Iterator[_Failures]:
    handler, logger = _Failures(), logging.getLogger("gopher_mcp_python.elicitation")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_store_that_comes_back_in_time_loses_nothing(tmp_path: Path, failures: _Failures, kind: str) -> None:
    with _sqlite(tmp_path) as store:
        created: list[StoredElicitation] = []
        stored = threading.Event()
        handler = StoreElicitationHandler(
            store, caller="ada", on_created=lambda one: (created.append(one), stored.set())
        )
        answers: list[Any] = []

        def ask() -> None:
            answers.append(handler(form()) if kind == "sync" else asyncio.run(handler.handle_async(form())))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        assert stored.wait(SECONDS)
        _move(tmp_path, "el.db", "away.db")
        assert failures.met.wait(SECONDS)
        _move(tmp_path, "away.db", "el.db")
        with _sqlite(tmp_path) as other:
            assert other.respond("ada", created[0].id, ACCEPTED).kind == "recorded"
        thread.join(SECONDS)
        assert [answer.content for answer in answers] == [{"name": "Ada"}]


def test_a_store_that_stays_away_ends_the_wait_with_its_error(
    tmp_path: Path, failures: _Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_PATIENCE_S", 0.6)
    with _sqlite(tmp_path) as store:
        asking = Asking(store, form())
        _move(tmp_path, "el.db", "away.db")
        assert isinstance(asking.end(), StoreError)
        assert failures.met.is_set()
        _move(tmp_path, "away.db", "el.db")


def test_a_store_that_fails_is_not_tried_for_a_request_that_was_withdrawn(tmp_path: Path, failures: _Failures) -> None:
    withdrawn = threading.Event()
    with _sqlite(tmp_path) as store:
        asking = Asking(store, form(), Watch(is_open=lambda: not withdrawn.is_set()))
        withdrawn.set()
        _move(tmp_path, "el.db", "away.db")
        outcome = asking.end()
        assert isinstance(outcome, StoreError) or outcome.action == "cancel"
        _move(tmp_path, "away.db", "el.db")


def test_a_question_that_is_gone_is_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise ElicitationNotFound

    monkeypatch.setattr(store, "wait", gone)
    lone, cause = elicited(StoreElicitationHandler(store, caller="ada"), form())
    assert lone.code == CANCEL and isinstance(cause, ElicitationNotFound)


def test_a_caller_who_asks_too_much_is_told(place: MemoryPlace) -> None:
    store = place.open(rate=(1, 60.0))
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, ACCEPTED))
    assert elicited(handler, form())[0].code == ACCEPT
    lone, cause = elicited(handler, form())
    assert lone.code == CANCEL and isinstance(cause, RateLimited) and cause.retry_after_s > 0


# ---- among the other handlers ----------------------------------------------------------------------------------------


def test_the_end_of_a_chain(store: Store) -> None:
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, ACCEPTED))
    chain = HandlerChain(("qt", "notebook"), store=handler)
    assert elicited(chain, form())[0].code == ACCEPT
    assert chain(form()).content == {"name": "Ada"}


def test_behind_a_policy_what_it_decides_is_not_stored(store: Store) -> None:
    created: list[StoredElicitation] = []

    def decline(one: StoredElicitation) -> None:
        created.append(one)
        store.respond(one.caller, one.id, {"action": "decline"})

    policy = ElicitationPolicy([PolicyRule("block", server="mail")])
    handler = policy.around(StoreElicitationHandler(store, caller="ada", on_created=decline))
    assert [elicited(handler, request)[0].code for request in (form(), page())] == [DECLINE, DECLINE]
    assert [one.mode for one in created] == ["form"]


# ---- for event loops -------------------------------------------------------------------------------------------------


def test_many_wait_without_a_thread_each(store: Store) -> None:
    created: list[StoredElicitation] = []
    handler = StoreElicitationHandler(store, caller="ada", on_created=created.append)

    async def work() -> list[Any]:
        tasks = [asyncio.ensure_future(handler.handle_async(form())) for _ in range(200)]
        while len(created) < 200:
            await asyncio.sleep(0.01)
        while threading.active_count() > 50:  # those that stored them end
            await asyncio.sleep(0.01)
        for number, one in enumerate(created):
            content = {"name": f"n{number}"}
            await asyncio.to_thread(store.respond, "ada", one.id, {"action": "accept", "content": content})
        return await asyncio.gather(*tasks)

    answers = asyncio.run(asyncio.wait_for(work(), 60))
    assert {answer.content["name"] for answer in answers} == {f"n{number}" for number in range(200)}


def test_under_trio(store: Store) -> None:
    trio = pytest.importorskip("trio")
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, ACCEPTED))
    assert trio.run(handler.handle_async, form()).content == {"name": "Ada"}

    created: list[StoredElicitation] = []
    waits = StoreElicitationHandler(store, caller="ada", on_created=created.append)

    async def called_off() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits.handle_async, form())
            while not created:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()

    trio.run(called_off)
    assert _ended(store, created[0]) == "cancelled"


def test_nothing_that_is_asked_or_answered_is_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = {"action": "accept", "content": {"name": secret("answer")}}
    handler = StoreElicitationHandler(store, caller="ada", on_created=answering(store, answer))
    asked = GopherAgentElicitationRequest("form", message=secret("message"), requested_schema=NAME)
    assert handler(asked).content == answer["content"]
    assert secret("message") not in repr(handler) + caplog.text and secret("answer") not in caplog.text


def test_where_there_is_no_window_notebook_or_terminal_the_chain_comes_to_the_store() -> None:
    from tests.support import children

    code = """
from gopher_mcp_python import GopherAgentElicitationRequest, HandlerChain
from gopher_mcp_python.store import KeyRing, MemoryBackend, Store, StoreElicitationHandler

with Store(MemoryBackend(), KeyRing.generate()) as store:
    def answer(one):
        store.respond("ada", one.id, {"action": "accept"})
    chain = HandlerChain(store=StoreElicitationHandler(store, caller="ada", on_created=answer))
    print(chain(GopherAgentElicitationRequest("url", "e", "Sign in.", "https://mail.example/")).action)
"""
    ended = children.python("import os; os.setsid()" + code)
    assert (ended.check().out, ended.err) == ("accept\n", "")
