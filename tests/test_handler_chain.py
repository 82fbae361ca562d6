"""The chain of handlers: the first place where somebody can answer, why it was that one, and who is not asked again."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    ElicitationPolicy,
    GopherAgent,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    HandlerChain,
)
from gopher_mcp_python import elicitation_runtime as runtime
from gopher_mcp_python.answers import ACCEPT, CANCEL, DECLINE
from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.handlers.chain import PromptChain
from gopher_mcp_python.handlers.occupied import is_occupied, occupying
from gopher_mcp_python.handlers.prompts import PersonAnswer, PromptUnavailable
from gopher_mcp_python.handlers.watch import Watch
from gopher_mcp_python.lone import LoneRequest
from gopher_mcp_python.policy import RememberedResponse
from gopher_mcp_python.toolset.handling import asker_for

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
EVERYTHING = PersonAnswer("decline", whole_server="session")


def page(server: str | None = "mail", number: int = 1) -> GopherAgentElicitationRequest:
    url = "https://a.example/?code=s3cret"
    return GopherAgentElicitationRequest("url", f"e{number}", "Sign in.", url, server=server)


def form(server: str | None = "mail") -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("form", message="Who?", requested_schema=NAME, server=server)


class Prompt:
    """Answers as told, and notes what it was asked and what it might have offered."""

    def __init__(self, *answers: PersonAnswer | Exception, name: str = "window", why_not: str | None = None) -> None:
        self.name = name
        self._answers = list(answers)
        self._why_not = why_not
        self.asked: list[tuple[GopherAgentElicitationRequest, tuple[str, ...]]] = []
        self.gopher_prompt = self

    def unusable(self) -> str | None:
        return self._why_not

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        self.asked.append((request, watch.lasting))
        watch.on_shown()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __call__(self, request: GopherAgentElicitationRequest) -> str:
        raise AssertionError("engines ask the prompt, not the handler")


def ask(handler: Any, request: GopherAgentElicitationRequest, **options: Any) -> Any:
    """The answer of an agent's engine."""
    lone = LoneRequest(request, 0)
    Elicitor(GopherAgentElicitationOptions(handler, **options)).answer(lone)
    return lone


@pytest.fixture
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing to type on, also where the tests run in somebody's terminal; what is printed goes to stderr as ever."""
    monkeypatch.setattr("gopher_mcp_python.handlers.console_posix.find_terminal", lambda: "there is no terminal")
    yield


# ---- which one is asked ----------------------------------------------------------------------------------------------


def test_the_first_usable_place_is_asked_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    window = Prompt(name="window", why_not="there is no display")
    gone = Prompt(PromptUnavailable("its loop has ended"), name="gone")
    book = Prompt(PersonAnswer("accept"), name="book")
    last = Prompt(name="last")
    with caplog.at_level(logging.DEBUG, "gopher_mcp_python.elicitation"):
        answer = PromptChain([window, gone, book, last]).ask(page(), Watch())
    assert answer == PersonAnswer("accept")
    assert (window.asked, last.asked) == ([], [])
    assert "elicitation asked by: book (window: there is no display; gone: its loop has ended)" in caplog.messages


def test_the_last_one_is_asked_in_any_case() -> None:
    last = Prompt(PersonAnswer("cancel"), why_not="nobody is here")
    assert PromptChain([Prompt(why_not="no"), last]).ask(page(), Watch()).action == "cancel"
    assert len(last.asked) == 1


def test_a_failing_place_passes_its_failure_on() -> None:
    with pytest.raises(OSError, match="broken"):
        PromptChain([Prompt(OSError("broken")), Prompt(PersonAnswer("accept"))]).ask(page(), Watch())


def test_without_a_terminal_the_store_is_asked(no_terminal: None, caplog: pytest.LogCaptureFixture) -> None:
    def elsewhere(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        return GopherAgentElicitationResponse("accept", {"name": "Ada"})

    with caplog.at_level(logging.DEBUG, "gopher_mcp_python.elicitation"):
        lone = ask(HandlerChain(store=elsewhere), form())
    assert (lone.code, lone.content) == (ACCEPT, {"name": "Ada"})
    (text,) = [message for message in caplog.messages if "asked by" in message]
    # What other tests of this process have imported decides why it is no window.
    assert re.match(
        r"elicitation asked by: store \(qt: the program (does not use PySide6|has no QApp.*); notebook: ", text
    )
    assert "terminal: there is no terminal" in text


def test_without_anybody_it_is_printed_and_cancelled(no_terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(None, page()).code == CANCEL
    shown = capsys.readouterr().err
    assert "https://a.example/?code=s3cret" in shown and "Nobody can be asked" in shown


def test_lines_of_a_test_are_the_terminal() -> None:
    runtime.set_elicitation_input_for_test(lambda _: "decline")
    try:
        assert ask(HandlerChain(), page()).code == DECLINE
    finally:
        runtime.set_elicitation_input_for_test(None)


def test_what_is_no_chain() -> None:
    async def later(request: object) -> str:
        return "accept"

    for wrong in (["window"], [None], [later], [lambda r: "accept", "terminal"]):
        with pytest.raises(ValueError, match="chain"):
            HandlerChain(wrong)
    with pytest.raises(ValueError, match="chain"):
        HandlerChain(store=later)


def test_a_handler_that_cannot_be_withdrawn_does_not_hold_up_a_run() -> None:
    """One with a limit has a thread of its own, which can be left behind, as any handler of a program."""
    assert Elicitor(GopherAgentElicitationOptions(HandlerChain(store=lambda r: "accept"), 1000)).needs_helper
    assert not Elicitor(GopherAgentElicitationOptions(None, 1000)).needs_helper


def test_a_chain_is_a_handler_of_its_own_too() -> None:
    answer = HandlerChain([lambda request: "decline"])(page())
    assert answer.action == "decline"


def test_content_that_the_form_does_not_allow_is_no_answer() -> None:
    wrong = ask(HandlerChain([lambda request: GopherAgentElicitationResponse("accept", {"name": 7})]), form())
    assert wrong.code == CANCEL


# ---- declining everything of a server --------------------------------------------------------------------------------


def test_who_declines_everything_of_a_server_is_not_asked_again() -> None:
    prompt = Prompt(EVERYTHING, PersonAnswer("accept"))
    elicitor = Elicitor(GopherAgentElicitationOptions(prompt))
    codes = []
    for request in (page(), page(number=2), form(), page("calendar", 3)):
        lone = LoneRequest(request, 0)
        elicitor.answer(lone)
        codes.append(lone.code)
    assert codes == [DECLINE, DECLINE, DECLINE, ACCEPT]
    assert [(request.server, lasting) for request, lasting in prompt.asked] == [
        ("mail", ("session",)), ("calendar", ("session",)),
    ]  # fmt: skip


def test_it_is_not_offered_for_a_server_without_a_name() -> None:
    prompt = Prompt(PersonAnswer("decline"))
    ask(prompt, page(None))
    assert prompt.asked[0][1] == ()


def test_a_policy_in_front_remembers_it(tmp_path: Path) -> None:
    prompt = Prompt(PersonAnswer("decline", whole_server="always"), PersonAnswer("accept"))
    policy = ElicitationPolicy(servers={"mail": "https://mail.example.com/mcp"}, store=tmp_path / "decisions.json")
    assert ask(policy.around(prompt), page()).code == DECLINE
    assert ask(policy.around(prompt), form()).code == DECLINE
    assert [asked[1] for asked in prompt.asked] == [("session", "always")]
    again = ElicitationPolicy(servers={"mail": "https://mail.example.com/mcp"}, store=tmp_path / "decisions.json")
    assert again.explain(page()).decision == "block"
    policy.forget("mail")
    assert ask(policy.around(prompt), page()).code == ACCEPT


def test_what_a_policy_answers_is_told_as_such() -> None:
    prompt = Prompt(PersonAnswer("cancel"))
    policy = ElicitationPolicy(default="decline")
    assert ask(policy.around(prompt), page()).code == DECLINE
    assert prompt.asked == []
    assert policy.around(prompt)(page()).action == "decline"


def test_a_toolset_asks_the_prompt_and_remembers_too() -> None:
    prompt = Prompt(EVERYTHING, PersonAnswer("accept", {"name": "Ada"}))
    asker = asker_for(prompt)
    assert asker is not None

    async def answers() -> list[tuple[str, Any]]:
        found = [await asker.ask(request) for request in (page(), form(), form("other"))]
        return [(answer.action, answer.content) for answer in found]

    assert asyncio.run(answers()) == [("decline", None), ("decline", None), ("accept", {"name": "Ada"})]
    assert len(prompt.asked) == 2


@pytest.mark.parametrize("with_policy", [False, True])
def test_what_waits_in_line_is_declined_with_the_rest_of_its_server(with_policy: bool) -> None:
    """The answer comes while others of that server wait for their turn."""
    waiting = threading.Event()

    class Slow(Prompt):
        def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
            assert waiting.wait(30)
            return super().ask(request, watch)

    prompt = Slow(EVERYTHING, PersonAnswer("accept"))
    policy = ElicitationPolicy()
    asker = asker_for(policy.around(prompt) if with_policy else prompt)
    assert asker is not None

    async def answers() -> list[str]:
        requests = [page(), page(number=2), form(), page("other", 3)]
        asked = [asyncio.ensure_future(asker.ask(request)) for request in requests]
        await asyncio.sleep(0)
        waiting.set()
        return [(await one).action for one in asked]

    assert asyncio.run(answers()) == ["decline", "decline", "decline", "accept"]
    assert [request.server for request, _ in prompt.asked] == ["mail", "other"]


def test_a_program_may_answer_so_in_the_chain_too() -> None:
    seen = []

    def handler(request: GopherAgentElicitationRequest) -> RememberedResponse:
        seen.append(request.server)
        return RememberedResponse("decline", lasts="session", whole_server=True)

    elicitor = Elicitor(GopherAgentElicitationOptions(HandlerChain([handler])))
    for number in (1, 2):
        elicitor.answer(LoneRequest(page(number=number), 0))
    assert seen == ["mail"]


def test_an_answer_shows_no_content() -> None:
    assert "Ada" not in repr(PersonAnswer("accept", {"name": "Ada"}))


# ---- threads that are held -------------------------------------------------------------------------------------------


def test_a_thread_is_occupied_as_long_as_a_call_holds_it() -> None:
    me = threading.get_ident()
    with occupying():
        with occupying():
            pass
        assert is_occupied(me)
    assert not is_occupied(me)


def test_making_an_agent_occupies_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def make(*_: object) -> None:
        seen.append(is_occupied(threading.get_ident()))
        raise AgentError("no")

    monkeypatch.setattr("gopher_mcp_python.agent.make", make)
    with pytest.raises(AgentError):
        GopherAgent.create_with_url("DirectProvider", "none", "http://127.0.0.1:9/mcp")
    assert seen == [True]
