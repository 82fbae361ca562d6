"""Handlers of a program with an event loop: sync and async, limits, one prompt at a time, what their failures mean."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    non_blocking,
)
from gopher_mcp_python.elicitation_runtime import set_elicitation_input_for_test
from gopher_mcp_python.handlers.lines import line_of
from gopher_mcp_python.toolset.elicitation import Occasion, Prompt
from gopher_mcp_python.toolset.errors import ElicitationRequiredError
from gopher_mcp_python.toolset.handling import HandlerAsker, asker_for
from gopher_mcp_python.toolset.required import read_required

HELD = Occasion(held=True)
USER: ContextVar[str] = ContextVar("user", default="nobody")


def page(identity: str | None = "e1") -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("url", identity, "Sign in.", "https://x.example/", server="s", tool="t")


def form() -> GopherAgentElicitationRequest:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return GopherAgentElicitationRequest("form", message="Who?", requested_schema=schema)


def asker(handler: Any, complete: Any = None, **more: Any) -> HandlerAsker:
    made = asker_for(handler, complete, **more)
    assert made is not None
    return made


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work(), 20)

    return asyncio.run(bounded())


def ask(handler: Any, request: GopherAgentElicitationRequest, occasion: Occasion = HELD, **more: Any) -> Any:
    return run(lambda: asker(handler, **more).ask(request, occasion))


# ---- what a handler may be -------------------------------------------------------------------------------------------


async def _async(request: Any) -> str:
    return "decline"


class _Callable:
    async def __call__(self, request: Any) -> str:
        return "decline"


@pytest.mark.parametrize(
    "handler",
    [
        _async,
        _Callable(),
        lambda request: "decline",
        lambda request: _async(request),
        lambda request: GopherAgentElicitationResponse("decline"),
        non_blocking(lambda request: "decline"),
        "decline",
        GopherAgentElicitationOptions("decline"),
        GopherAgentElicitationOptions(lambda request: "decline"),
        {"handler": "decline"},
        {"handler": _async},
    ],
)
def test_what_a_handler_may_be(handler: Any) -> None:
    made = asker(handler)
    assert made.modes == {"url", "form"}
    assert run(lambda: made.ask(page())).action == "decline"


def test_nothing_is_declared_without_a_handler() -> None:
    assert asker_for(None) is None
    assert asker_for(False) is None
    assert asker_for({"enabled": False}) is None
    assert asker_for(GopherAgentElicitationOptions(enabled=False)) is None


def test_fewer_modes_can_be_declared() -> None:
    assert asker(_async, modes="form").modes == {"form"}
    assert asker({"handler": _async, "modes": ["url"]}).modes == {"url"}
    assert asker({"modes": ["url"]}, modes="form").modes == {"form"}


def test_the_callers_options_stay_as_they_are() -> None:
    given = {"handler": _async, "timeout_ms": 5}
    asker(given)
    assert given == {"handler": _async, "timeout_ms": 5}


def test_a_sync_handler_runs_on_a_thread_of_its_own_and_an_async_one_on_the_loop() -> None:
    seen: list[tuple[int, str]] = []

    def handler(request: Any) -> str:
        seen.append((threading.get_ident(), USER.get()))
        return "accept"

    async def on_loop(request: Any) -> str:
        return handler(request)

    async def work() -> None:
        USER.set("ada")
        for each in (handler, on_loop, non_blocking(lambda request: handler(request))):
            assert (await asker(each).ask(page())).action == "accept"

    run(work)
    here = threading.get_ident()
    assert [thread == here for thread, _ in seen] == [False, True, True]
    assert {user for _, user in seen} == {"ada"}


def test_a_handler_sees_the_context_of_the_call() -> None:
    seen: list[str] = []

    async def work() -> None:
        from contextvars import copy_context

        USER.set("ada")
        context = copy_context()
        USER.set("bob")
        prompt = Prompt(page(), asker(lambda request: seen.append(USER.get()) or "accept"), context=context)
        await prompt.answer()

    run(work)
    assert seen == ["ada"]


# ---- what its results and failures mean ------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, 7, "yes", ["accept"], {"action": "accept"}, True])
def test_what_is_no_answer_is_an_error(result: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        ask(lambda request: result, page())


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("y"), OSError("z")])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_a_handler_raises_is_raised(error: Exception, kind: str) -> None:
    def fails(request: Any) -> str:
        raise error

    async def fails_later(request: Any) -> str:
        raise error

    with pytest.raises(type(error)):
        ask(fails if kind == "sync" else fails_later, page())


def test_stop_iteration_is_an_error_like_any_other() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        ask(lambda request: next(iter(())), page())


def test_content_is_for_an_accepted_form_and_must_fit_it() -> None:
    answer = GopherAgentElicitationResponse
    assert ask(lambda request: answer("accept", {"name": "Ada"}), form()).content == {"name": "Ada"}
    assert ask(lambda request: answer("decline", {"name": "Ada"}), form()).content is None
    assert ask(lambda request: answer("accept", {"name": "Ada"}), page()).content is None
    with pytest.raises(ValueError, match="name"):
        ask(lambda request: answer("accept", {}), form())


def test_a_limit_ends_in_cancel_whatever_the_handler_does() -> None:
    release = threading.Event()

    def waits(request: Any) -> str:
        release.wait(20)
        return "accept"

    async def never(request: Any) -> str:
        await asyncio.Event().wait()
        return "accept"

    try:
        for handler in (waits, never):
            assert ask(handler, page(), timeout_ms=30).action == "cancel"
    finally:
        release.set()


def test_a_withdrawn_question_cancels_an_async_handler_and_leaves_a_sync_one_behind() -> None:
    release, cancelled = threading.Event(), []

    def waits(request: Any) -> str:
        release.wait(20)
        return "accept"

    async def never(request: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "accept"

    async def work() -> None:
        for handler in (waits, never):
            task = asyncio.ensure_future(asker(handler).ask(page()))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    try:
        run(work)
    finally:
        release.set()
    assert cancelled == [True]


# ---- one prompt at a time --------------------------------------------------------------------------------------------


class Desk:
    """A handler that counts how many prompts are open, and the order in which they came."""

    def __init__(self) -> None:
        self.open = self.most = 0
        self.order: list[str] = []

    async def __call__(self, request: GopherAgentElicitationRequest) -> str:
        self.open += 1
        self.most = max(self.most, self.open)
        self.order.append(request.elicitation_id or "")
        await asyncio.sleep(0.002)
        self.open -= 1
        return "accept"


def test_one_person_has_one_prompt_at_a_time_first_come_first_served() -> None:
    desk = Desk()
    made = asker(desk)

    async def work() -> None:
        await asyncio.gather(*(made.ask(page(str(number))) for number in range(20)))

    run(work)
    assert desk.most == 1 and desk.order == [str(number) for number in range(20)]


def test_several_toolsets_of_one_person_share_the_line_and_two_people_have_two() -> None:
    desk = Desk()

    async def work(people: list[str]) -> int:
        desk.most = 0
        await asyncio.gather(*(asker(desk, person=person).ask(page()) for person in people))
        return desk.most

    assert run(lambda: work(["ada"] * 5)) == 1
    assert run(lambda: work(["ada", "ada", "bob", "bob"])) == 2
    assert line_of("ada") is not line_of("bob")


def test_who_is_asked_can_be_said_with_each_call() -> None:
    desk = Desk()
    made = asker(desk)

    async def work() -> None:
        await asyncio.gather(*(made.ask(page(), Occasion(person=person)) for person in ("ada", "bob", "ada")))

    run(work)
    assert desk.most == 2


def test_one_id_that_comes_twice_at_once_is_one_question() -> None:
    desk = Desk()
    made = asker(desk)

    async def work() -> list[str]:
        answers = await asyncio.gather(*(made.ask(page("same")) for _ in range(3)), made.ask(page("other")))
        await made.ask(page("same"))
        return [answer.action for answer in answers]

    assert run(work) == ["accept"] * 4
    assert desk.order == ["same", "other", "same"]


def test_a_question_whose_twin_was_withdrawn_is_asked_itself() -> None:
    desk = Desk()
    made = asker(desk)

    async def work() -> str:
        first, second = (asyncio.ensure_future(made.ask(page("same"))) for _ in range(2))
        await asyncio.sleep(0.001)
        first.cancel()
        return (await second).action

    assert run(work) == "accept"
    assert desk.order == ["same", "same"]


def test_what_a_handler_asks_of_its_own_person_does_not_wait_for_that_handler() -> None:
    async def asks_again(request: GopherAgentElicitationRequest) -> str:
        if request.elicitation_id == "inner":
            return "decline"
        return (await asyncio.ensure_future(asker(asks_again, person="ada").ask(page("inner")))).action

    assert run(lambda: asker(asks_again, person="ada").ask(page("outer"))).action == "decline"


def test_whoever_leaves_the_line_holds_nobody_up() -> None:
    desk = Desk()
    made = asker(desk)

    async def work() -> None:
        tasks = [asyncio.ensure_future(made.ask(page(str(number)))) for number in range(4)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(work)
    assert desk.order[-2:] == ["2", "3"]


def test_a_loop_that_ended_leaves_no_place_in_the_line() -> None:
    async def stands() -> None:
        async with line_of("eve").turn():
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    line = line_of("eve")
    tasks = [loop.create_task(stands()) for _ in range(2)]
    loop.run_until_complete(asyncio.sleep(0.01))
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()
    assert not line._places


def test_a_loop_that_stands_still_holds_up_nobody() -> None:
    """Somebody's loop has the turn and is not run any more; nor is that of whoever comes next."""

    async def stands() -> None:
        async with line_of("adam").turn():
            await asyncio.Event().wait()

    line = line_of("adam")
    loops = [asyncio.new_event_loop() for _ in range(2)]
    tasks = []
    for loop in loops:
        tasks.append(loop.create_task(stands()))
        loop.run_until_complete(asyncio.sleep(0.01))
    assert run(lambda: asker(_async, person="adam").ask(page())).action == "decline"
    for loop, task in zip(loops, tasks, strict=True):
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
    assert not line._places


def test_the_limit_covers_the_wait_for_the_turn() -> None:
    async def never(request: Any) -> str:
        await asyncio.Event().wait()
        return "accept"

    async def work() -> list[str]:
        made = asker(never, timeout_ms=40)
        answers = await asyncio.gather(made.ask(page("1")), made.ask(page("2")))
        return [answer.action for answer in answers]

    assert run(work) == ["cancel", "cancel"]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "data:,x", " https://a.test/", "vscode://x", "https://", None]
)
def test_a_page_that_must_not_be_opened_reaches_no_handler(url: str | None) -> None:
    def handler(request: Any) -> str:
        raise AssertionError("nobody is asked")

    request = GopherAgentElicitationRequest("url", "e1", "Open.", url)
    assert ask(handler, request).action == "decline"


def test_two_forms_are_two_questions_whatever_ids_they_carry() -> None:
    seen: list[str | None] = []

    def handler(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        seen.append(request.message)
        return GopherAgentElicitationResponse("accept", {})

    async def work() -> None:
        made = asker(handler)
        questions = [
            GopherAgentElicitationRequest("form", "1", message, requested_schema={"properties": {}})
            for message in ("show A?", "delete B?")
        ]
        await asyncio.gather(*(made.ask(question) for question in questions))

    run(work)
    assert seen == ["show A?", "delete B?"]


def test_a_refusal_that_lists_thousands_of_pages_is_no_list_to_ask() -> None:
    pages = [{"mode": "url", "elicitationId": f"e{n}", "url": f"https://x.example/{n}"} for n in range(5000)]
    error = {"code": -32042, "message": "m", "data": {"elicitations": pages}}
    with pytest.raises(ElicitationRequiredError, match="lists 5000 pages; 20 at most"):
        read_required(error, server="s", tool="t", modes=frozenset(("url",)))
    error["data"] = {"elicitations": pages[:20]}
    assert len(read_required(error, server="s", tool="t", modes=frozenset(("url",)))) == 20


# ---- pages that are accepted before they are finished ----------------------------------------------------------------


def accepting(finished: Callable[[], Any]) -> Callable[[Any], GopherAgentElicitationResponse]:
    return lambda request: GopherAgentElicitationResponse("accept", finished=finished)


async def _nothing() -> None:
    pass


async def _gave_up() -> bool:
    return False


@pytest.mark.parametrize(
    ("finished", "action"),
    [
        (lambda: None, "accept"),
        (lambda: True, "accept"),
        (_nothing, "accept"),
        (lambda: False, "cancel"),
        (_gave_up, "cancel"),
    ],
)
def test_a_held_page_waits_for_the_person(finished: Any, action: str) -> None:
    assert ask(accepting(finished), page()).action == action


def test_a_page_that_is_not_held_is_answered_at_once() -> None:
    def finished() -> bool:
        raise AssertionError("nobody waits for it")

    assert ask(accepting(finished), page(), Occasion()).action == "accept"


def test_the_servers_word_ends_the_wait() -> None:
    told: list[str] = []

    async def work() -> str:
        reached = asyncio.Event()

        async def finished() -> None:
            reached.set()
            await asyncio.Event().wait()

        made = asker(accepting(finished), told.append)
        task = asyncio.ensure_future(made.ask(page(), HELD))
        await reached.wait()
        made.completed("another")
        made.completed("e1")
        return (await task).action

    assert run(work) == "accept"
    assert told == ["another", "e1"]


def test_what_the_wait_raises_is_raised() -> None:
    def broken() -> None:
        raise LookupError("window is gone")

    with pytest.raises(LookupError):
        ask(accepting(broken), page())


def test_the_wait_is_part_of_the_limit() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    assert ask(accepting(never), page(), timeout_ms=30).action == "cancel"


def test_a_completion_handler_that_fails_is_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    def fails(identity: str) -> None:
        raise ValueError("https://x.example/?code=abc123def")

    async def work() -> None:
        made = asker("cancel", fails)
        made.completed("e1")
        while not caplog.records:
            await asyncio.sleep(0.01)

    run(work)
    assert "elicitation_complete_handler failed: ValueError" in caplog.text
    assert "abc123def" not in caplog.text


# ---- the terminal ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "action"), [("", "accept"), ("cancel", "cancel"), ("n", "decline")])
def test_empty_options_are_the_prompt_on_the_terminal(
    typed: str, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = asker({"open_browser": False})
    assert made.modes == {"url", "form"}
    set_elicitation_input_for_test(lambda *_: typed)
    try:
        assert run(lambda: made.ask(page(), HELD)).action == action
    finally:
        set_elicitation_input_for_test(None)
    assert "https://x.example/" in capsys.readouterr().err


@pytest.mark.parametrize("finished", ["yes", 7, True])
def test_how_to_wait_must_be_a_function(finished: Any) -> None:
    with pytest.raises(ValueError, match="finished must be a function"):
        GopherAgentElicitationResponse("accept", finished=finished)
