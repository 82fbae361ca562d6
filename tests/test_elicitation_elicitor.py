"""The elicitor: whose handler runs when, on which thread, and what its failures and limits mean."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    non_blocking,
)
from gopher_mcp_python import elicitation_runtime as runtime
from gopher_mcp_python.elicitation_runtime import Elicitor
from gopher_mcp_python.elicitor import ask_now

ACCEPT, DECLINE, CANCEL = 1, 2, 3
URL = "https://provider.test/authorize"


class Asked:
    """A pending request whose server we are."""

    def __init__(self, identity: str | None = None, *, limit: float | None = None, **fields: Any) -> None:
        given = {"mode": "url", "url": URL, **fields}
        self.request = GopherAgentElicitationRequest(given.pop("mode"), identity, **given)
        self.answers: list[tuple[int | str, Any]] = []
        self.withdrawn = False
        self._end = None if limit is None else time.monotonic() + limit

    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool:
        counts = self.is_open()
        self.answers.append((action, content))
        return counts

    def is_open(self) -> bool:
        return not self.answers and not self.withdrawn and self.remaining_ms() != 0

    def remaining_ms(self) -> int | None:
        return None if self._end is None else max(0, round((self._end - time.monotonic()) * 1000))


def elicitor(handler: Any = None, **options: Any) -> Elicitor:
    return Elicitor(GopherAgentElicitationOptions(handler, **options))


def answer(handler: Any, **fields: Any) -> tuple[int | str, Any]:
    asked = Asked(**fields)
    elicitor(handler).answer(asked)
    (given,) = asked.answers
    return given


# ---- what it tells the engine ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "mode", "modes", "helper"),
    [
        ({}, "handed_over", {"url", "form"}, False),
        ({"timeout_ms": 5}, "handed_over", {"url", "form"}, False),
        ({"modes": "url"}, "handed_over", {"url"}, False),
        ({"handler": lambda r: "accept"}, "handed_over", {"url", "form"}, False),
        ({"handler": lambda r: "accept", "timeout_ms": 5}, "handed_over", {"url", "form"}, True),
        ({"handler": lambda r: "accept", "modes": "url"}, "handed_over", {"url"}, False),
        ({"handler": non_blocking(lambda r: "accept")}, "inline", {"url", "form"}, False),
        ({"handler": non_blocking(lambda r: "accept"), "timeout_ms": 5}, "inline", {"url", "form"}, False),
        ({"handler": "cancel"}, "fixed", {"url"}, False),
        ({"handler": "decline", "timeout_ms": 5}, "fixed", {"url"}, False),
        ({"enabled": False}, "fixed", {"url"}, False),
    ],
)
def test_modes(options: Any, mode: str, modes: set[str], helper: bool) -> None:
    made = elicitor(**options)
    assert (made.mode, made.modes, made.needs_helper) == (mode, modes, helper)
    assert made.timeout_ms == options.get("timeout_ms", 0)
    assert made.enabled is options.get("enabled", True)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "\x01https://a.test/", "https://", None])
def test_a_page_that_must_not_be_opened_reaches_no_handler(url: str | None) -> None:
    assert answer(lambda request: pytest.fail("nobody is asked"), url=url) == (2, None)


@pytest.mark.parametrize(("handler", "action", "code"), [("cancel", "cancel", 3), ("decline", "decline", 2)])
def test_fixed_answers(handler: str, action: str, code: int) -> None:
    made = elicitor(handler)
    assert made.fixed_action == action
    assert made.inline_answer(Asked().request) == code
    assert answer(handler) == (code, None)


def test_options_that_were_spoilt_after_they_were_built_are_refused() -> None:
    options = GopherAgentElicitationOptions()

    async def later(request: Any) -> str:
        return "accept"

    options.handler = later
    with pytest.raises(ValueError, match="must not be async"):
        Elicitor(options)


# ---- answers --------------------------------------------------------------------------------------------------------

Response = GopherAgentElicitationResponse


@pytest.mark.parametrize(
    ("handler", "code"),
    [
        (lambda r: "accept", ACCEPT),
        (lambda r: "decline", DECLINE),
        (lambda r: "cancel", CANCEL),
        (lambda r: Response("accept"), ACCEPT),
        (lambda r: Response("decline"), DECLINE),
        (lambda r: Response("accept", {"never": "sent with a page"}), ACCEPT),
    ],
)
def test_every_way_to_answer(handler: Any, code: int) -> None:
    assert answer(handler) == (code, None)
    assert elicitor(non_blocking(handler)).inline_answer(Asked().request) == code
    assert elicitor(handler).inline_answer(Asked().request) == code


def spoilt() -> Response:
    response = Response("accept")
    response.action = "maybe"
    return response


async def coroutine() -> str:
    return "accept"


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (lambda: None, TypeError),
        (lambda: 1, TypeError),
        (lambda: True, TypeError),
        (lambda: {"action": "accept"}, TypeError),
        (lambda: ["accept"], TypeError),
        (lambda: "ACCEPT", ValueError),
        (lambda: "", ValueError),
        (spoilt, ValueError),
        (coroutine, TypeError),
    ],
    ids=["none", "number", "bool", "mapping", "list", "upper", "empty", "spoilt", "coroutine"],
)
@pytest.mark.parametrize("inline", [True, False])
def test_wrong_results_cancel_with_a_clear_cause(
    result: Callable[[], Any], kind: type[Exception], inline: bool
) -> None:
    def handler(request: Any) -> Any:
        return result()

    made = elicitor(non_blocking(handler) if inline else handler)
    if inline:
        assert made.inline_answer(Asked().request) == CANCEL
    else:
        asked = Asked()
        made.answer(asked)
        assert asked.answers == [(CANCEL, None)]
    cause = made.take_cause()
    assert type(cause) is kind
    assert "elicitation" in str(cause)
    assert made.take_cause() is None


def test_a_returned_future_is_cancelled() -> None:
    loop = asyncio.new_event_loop()
    try:
        future = loop.create_future()
        assert answer(lambda r: future) == (CANCEL, None)
        assert future.cancelled()
    finally:
        loop.close()


@pytest.mark.parametrize("inline", [True, False])
def test_a_handlers_exception_cancels_and_its_cause_is_kept_and_logged_redacted(
    inline: bool, canary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    url = canary.authorization_url()

    def handler(request: Any) -> str:
        raise LookupError(f"no account for {request.url}")

    made = elicitor(non_blocking(handler) if inline else handler)
    asked = Asked(url=url)
    with caplog.at_level(logging.DEBUG, "gopher_mcp_python"):
        if inline:
            assert made.inline_answer(asked.request) == CANCEL
        else:
            made.answer(asked)
            assert asked.answers == [(CANCEL, None)]
    assert type(made.take_cause()) is LookupError
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "LookupError: no account for https://accounts.example.test" in record.getMessage()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_cancel_and_are_raised_again(kind: type[BaseException]) -> None:
    def handler(request: Any) -> str:
        raise kind

    asked = Asked()
    made = elicitor(handler)
    with pytest.raises(kind):
        made.answer(asked)
    assert asked.answers == [(CANCEL, None)]
    inline = elicitor(non_blocking(handler))
    assert inline.inline_answer(asked.request) == CANCEL
    with pytest.raises(kind):
        inline.raise_interrupt()
    inline.raise_interrupt()


# ---- forms ----------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Response("accept", {"name": "Ada"}), (ACCEPT, {"name": "Ada"})),
        (Response("decline", {"name": "Ada"}), (DECLINE, None)),
        (Response("cancel", {"name": "Ada"}), (CANCEL, None)),
        (Response("accept"), (CANCEL, None)),
        (Response("accept", {}), (CANCEL, None)),
        ("accept", (CANCEL, None)),
    ],
)
def test_form_content_goes_with_accept_only_and_is_never_invented(given: Any, expected: Any) -> None:
    assert answer(lambda r: given, mode="form", url=None, requested_schema=SCHEMA) == expected


def test_a_form_without_fields_is_a_confirmation() -> None:
    assert answer(lambda r: "accept", mode="form", url=None, requested_schema={"properties": {}}) == (ACCEPT, {})


def test_what_a_handler_does_not_serve_is_declined_without_calling_it() -> None:
    asked = Asked(mode="form", url=None)
    elicitor(lambda r: pytest.fail("called"), modes="url").answer(asked)
    assert asked.answers == [(DECLINE, None)]
    assert answer(None, mode="form", url=None) == (DECLINE, None)


# ---- nothing is asked twice -----------------------------------------------------------------------------------------


class Counting:
    def __init__(self, *answers: str, seconds: float = 0) -> None:
        self.answers, self.seconds, self.calls = list(answers), seconds, 0

    def __call__(self, request: Any) -> str:
        self.calls += 1
        time.sleep(self.seconds)
        return self.answers[min(self.calls, len(self.answers)) - 1]


def test_a_repeated_id_gets_the_same_answer() -> None:
    handler = Counting("decline", "accept")
    made = elicitor(handler)
    asked = [Asked("id-1") for _ in range(3)]
    for one in asked:
        made.answer(one)
    assert [one.answers for one in asked] == [[(DECLINE, None)]] * 3
    assert handler.calls == 1


def test_other_ids_urls_servers_and_missing_ids_are_other_requests() -> None:
    handler = Counting("accept")
    made = elicitor(handler)
    for one in (Asked("a"), Asked("b"), Asked("a", url=URL + "2"), Asked("a", server="s"), Asked(), Asked()):
        made.answer(one)
    assert handler.calls == 6


def test_a_new_run_may_ask_again_after_a_refusal_but_not_after_an_accept() -> None:
    handler = Counting("cancel", "accept", "decline")
    made = elicitor(handler)
    results = []
    for _ in range(3):
        with made.during_run():
            asked = Asked("id-1")
            made.answer(asked)
            results.append(asked.answers)
    assert results == [[(CANCEL, None)], [(ACCEPT, None)], [(ACCEPT, None)]]
    assert handler.calls == 2


def test_a_run_that_begins_beside_another_forgets_nothing_of_it() -> None:
    handler = Counting("cancel", "accept")
    made = elicitor(handler)
    with made.during_run():
        made.answer(Asked("id-1"))
        with made.during_run():
            again = Asked("id-1")
            made.answer(again)
    assert again.answers == [(CANCEL, None)]
    assert handler.calls == 1


def test_a_completion_notice_before_the_page_was_shown_ends_nothing(terminal: Any) -> None:
    made = elicitor()
    seen: list[bool] = []

    def line(limit: Any) -> str:
        seen.append(made._finished == set())
        made.completed("id-1")
        made.completed("other")
        seen.append(made._finished == {(None, "id-1")})
        return "cancel"

    terminal(line)
    made.completed("id-1")
    asked = Asked("id-1")
    made.answer(asked)
    assert seen == [True, True]
    assert asked.answers == [(CANCEL, None)]
    assert (made._finished, made._prompted) == (set(), [])


def test_a_completion_notice_while_the_page_is_shown_ends_its_prompt() -> None:
    made, seen = elicitor(), []

    class Asking:
        def ask(self, request: Any, watch: Any) -> tuple[GopherAgentElicitationResponse, bool]:
            made.completed("id-1")
            watch.on_shown()
            seen.append(watch.is_finished())
            made.completed("id-2")
            seen.append(watch.is_finished())
            made.completed("id-1")
            seen.append(watch.is_finished())
            return GopherAgentElicitationResponse("accept"), False

    made._person = Asking()  # type: ignore[assignment]
    asked = Asked("id-1")
    made.answer(asked)
    assert seen == [False, False, True]
    assert asked.answers == [(ACCEPT, None)]


@pytest.mark.parametrize(
    ("held", "finished", "code"),
    [(True, False, CANCEL), (True, True, ACCEPT), (True, None, ACCEPT), (False, False, ACCEPT)],
)
def test_a_page_that_is_to_be_finished_first_is_cancelled_when_it_was_not(
    held: bool, finished: bool | None, code: int
) -> None:
    asked = Asked()
    asked.held = held  # type: ignore[attr-defined]
    elicitor(lambda request: GopherAgentElicitationResponse("accept", finished=lambda: finished)).answer(asked)
    assert asked.answers == [(code, None)]


def test_what_is_no_exception_is_a_failure_too() -> None:
    for kind in (asyncio.CancelledError, GeneratorExit):

        def handler(request: Any, kind: type[BaseException] = kind) -> str:
            raise kind

        made, asked = elicitor(handler), Asked()
        made.answer(asked)
        assert asked.answers == [(CANCEL, None)]
        assert type(made.take_cause()) is kind
        assert elicitor(non_blocking(handler)).inline_answer(asked.request) == CANCEL


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_without_a_text_cancels_like_any_other() -> None:
    failure = Unspeakable()

    def handler(request: GopherAgentElicitationRequest) -> str:
        raise failure

    one, asked = elicitor(handler), Asked()
    one.answer(asked)
    assert asked.answers == [(CANCEL, None)]
    assert one.take_cause() is failure


def test_an_answer_gets_through_though_the_programs_log_filter_fails(caplog: pytest.LogCaptureFixture) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError("filter")

    log, asked = logging.getLogger("gopher_mcp_python.elicitation"), Asked()
    caplog.set_level(logging.DEBUG, log.name)
    log.addFilter(broken)
    try:
        elicitor(lambda request: "accept").answer(asked)
    finally:
        log.removeFilter(broken)
    assert asked.answers == [(ACCEPT, None)]


def test_repeats_at_the_same_time_wait_for_the_one_answer() -> None:
    handler = Counting("accept", "decline", seconds=0.2)
    made = elicitor(handler)
    asked = [Asked("same") for _ in range(8)]
    threads = [made.answer_on_helper(one) for one in asked]
    for thread in threads:
        thread.join(10)
    assert [one.answers for one in asked] == [[(ACCEPT, None)]] * 8
    assert handler.calls == 1


def test_an_answer_that_came_too_late_is_not_remembered() -> None:
    made = elicitor(Counting("accept", "decline"))
    late = Asked("id-1")

    def withdraw(request: Any) -> str:
        late.withdrawn = True
        return "accept"

    made._custom = withdraw
    made.answer(late)
    made._custom = lambda request: "decline"
    again = Asked("id-1")
    made.answer(again)
    assert again.answers == [(DECLINE, None)]


# ---- helper threads -------------------------------------------------------------------------------------------------

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def test_a_helper_sees_the_callers_context_and_keeps_interrupts() -> None:
    seen: list[Any] = []

    def handler(request: Any) -> str:
        seen.append((COLOUR.get(), threading.current_thread().name, threading.current_thread().daemon))
        raise KeyboardInterrupt

    made = elicitor(handler, timeout_ms=1000)
    token = COLOUR.set("green")
    try:
        asked = Asked()
        made.answer_on_helper(asked).join(10)
    finally:
        COLOUR.reset(token)
    assert seen == [("green", "gopher-mcp-elicitation", True)]
    assert asked.answers == [(CANCEL, None)]
    with pytest.raises(KeyboardInterrupt):
        made.raise_interrupt()


def test_an_interrupt_of_a_helper_that_asks_for_ourselves_reaches_the_caller() -> None:
    def interrupted(request: Any) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_now(elicitor(interrupted, timeout_ms=5000), Asked().request, lambda: True)


@pytest.mark.parametrize("handler", [None, lambda request: "decline"])
def test_one_request_without_an_engine_is_answered_by_the_same_rules(handler: Any) -> None:
    """What the native engine calls where a handler is not one for the fast path."""
    made = elicitor(handler)
    assert made.inline_answer(Asked(url="javascript:x").request) == DECLINE
    assert handler is None or made.inline_answer(Asked().request) == DECLINE


def test_asking_for_ourselves_has_the_same_limit() -> None:
    release = threading.Event()

    def slow(request: Any) -> str:
        release.wait(10)
        return "accept"

    begin = time.monotonic()
    request = Asked().request
    assert ask_now(elicitor(slow, timeout_ms=200), request, lambda: True) == "cancel"
    assert 0.15 < time.monotonic() - begin < 1.5
    release.set()
    assert ask_now(elicitor(lambda r: "accept", timeout_ms=2000), request, lambda: True) == "accept"
    assert ask_now(elicitor(lambda r: "accept"), request, lambda: True) == "accept"
    assert ask_now(elicitor(lambda r: "accept"), request, lambda: False) == "cancel"


# ---- the terminal's turn --------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lines for the prompt from a test; the real terminal is in test_elicitation_terminal.py."""
    monkeypatch.setattr(runtime, "open_authorization_url", lambda url, choice: {"opened": True, "url": url})
    yield runtime.set_elicitation_input_for_test
    runtime.set_elicitation_input_for_test(None)


def test_two_agents_share_the_terminal_in_order(terminal: Any, capsys: Any) -> None:
    active, order = [0, 0], []

    def line(limit: Any) -> str:
        active[0] += 1
        active[1] = max(active)
        time.sleep(0.05)
        active[0] -= 1
        return ""

    terminal(line)
    asked = [Asked(f"id-{n}", message=f"number {n}", url=f"{URL}?n={n}") for n in range(6)]
    elicitors = [elicitor(), elicitor()]
    threads = []
    for n, one in enumerate(asked):
        threads.append(elicitors[n % 2].answer_on_helper(one))
        time.sleep(0.01)
    for thread in threads:
        thread.join(10)
    assert active[1] == 1
    assert [one.answers for one in asked] == [[(ACCEPT, None)]] * 6
    order = [line for line in capsys.readouterr().err.splitlines() if "number" in line]
    assert order == [f"  | number {n}" for n in range(6)]


def test_a_request_that_is_withdrawn_while_it_waits_is_never_shown(terminal: Any, capsys: Any) -> None:
    go = threading.Event()

    def line(limit: Any) -> str:
        go.wait(10)
        return ""

    terminal(line)
    made = elicitor()
    first, second = Asked(message="first"), Asked(message="second")
    threads = [made.answer_on_helper(first)]
    time.sleep(0.05)
    threads.append(made.answer_on_helper(second))
    time.sleep(0.05)
    second.withdrawn = True
    threads[1].join(5)
    assert not threads[1].is_alive()
    go.set()
    threads[0].join(5)
    assert first.answers == [(ACCEPT, None)]
    shown = capsys.readouterr().err
    assert "first" in shown
    assert "second" not in shown


def test_the_default_handlers_failure_is_a_cancel_with_a_cause(terminal: Any) -> None:
    def broken(limit: Any) -> str:
        raise OSError("gone")

    terminal(broken)
    made = elicitor()
    asked = Asked()
    made.answer(asked)
    assert asked.answers == [(CANCEL, None)]
    assert isinstance(made.take_cause(), OSError)


def test_the_debug_log_holds_no_secret(terminal: Any, canary: Any, caplog: pytest.LogCaptureFixture) -> None:
    terminal(lambda limit: "")
    url = canary.authorization_url(userinfo=True)
    canary.allow_shown(url)
    with caplog.at_level(logging.DEBUG, "gopher_mcp_python"):
        elicitor("cancel").answer(Asked("id", url=url))
        elicitor(lambda r: "accept").answer(Asked("id", url=url))
    messages = [record.getMessage() for record in caplog.records if record.name == "gopher_mcp_python.elicitation"]
    assert len(messages) == 4
    assert "accounts.example.test" in messages[0]
