"""The terminal as a place where a person is asked: which prompt it takes, the words of both, and real MCP servers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.prompts import DECLINED, PersonAnswer, PersonPrompt
from gopher_mcp_python.handlers.terminal_prompt import TerminalPrompt
from gopher_mcp_python.handlers.watch import Watch
from tests.support import children
from tests.support.screen import Screen
from tests.support.servers import McpServer
from tests.support.terminal import Terminal
from tests.support.variants import EMBEDDED, Variant

on_a_pty = pytest.mark.skipif(os.name == "nt", reason="ptys are a thing of POSIX systems")
URL = "https://provider.test/authorize?scope=mail"
FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
BOTH = Watch(lasting=("session", "always"))
REVIEW, F10, ENTER = "Your answers, not sent yet:", "\x1b[21~", "\r"


class Lines:
    """A prompt whose lines come from a list, and whose browser is one, too."""

    def __init__(self, *lines: str, open_browser: Any = None) -> None:
        self._left = list(lines)
        self.opened: list[str] = []
        self.prompt = TerminalPrompt(open_browser, self._open, lambda _: self._left.pop(0) if self._left else None)

    def _open(self, url: str, open_browser: bool | None) -> dict[str, Any]:
        self.opened.append(url)
        return {"opened": True}

    def page(self, watch: Watch, url: str = URL) -> PersonAnswer:
        return self._answer(GopherAgentElicitationRequest("url", "id", "Sign in", url, server="mail.test"), watch)

    def form(self, watch: Watch, schema: Any = FORM) -> PersonAnswer:
        return self._answer(GopherAgentElicitationRequest("form", requested_schema=schema, server="mail.test"), watch)

    def _answer(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        answer = self.prompt.ask(request, watch)
        assert not self._left, "lines that nobody asked for"
        return answer


# ---- line by line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "lasts"), [("decline all", "session"), (" Decline  ALL ", "session"), ("decline always", "always")]
)
def test_everything_of_a_server_is_declined_with_a_word(word: str, lasts: str, capsys: Any) -> None:
    expected = PersonAnswer("decline", whole_server=lasts)  # type: ignore[arg-type]
    assert Lines(word).page(BOTH) == expected
    assert Lines(word).form(BOTH) == expected
    assert Lines("Ada", word).form(BOTH) == expected
    assert Lines(word).form(BOTH, {"type": "object", "properties": {}}) == expected
    assert Lines(word, open_browser="ask").page(BOTH) == expected
    shown = capsys.readouterr().err
    said = 'To decline everything that this server asks: "decline all" for this session, "decline always" for good.'
    assert shown.replace("\n", " ").count(said) == 4


def test_what_is_not_offered_is_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    session = Watch(lasting=("session",))
    assert Lines("decline always", "no").page(session) == DECLINED
    assert Lines("decline always", "").form(session).content == {"name": "decline always"}
    assert Lines("decline all", "").form(Watch()).content == {"name": "decline all"}
    assert Lines('"decline all"', "").form(BOTH).content == {"name": "decline all"}
    assert Lines("decline all", "").page(Watch()).action == "accept"
    assert '"decline always" for good' in capsys.readouterr().err  # the last but one: it was offered there


def test_open_opens_the_page_again(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("open", "OPEN", "")
    assert lines.page(Watch()).action == "accept"
    assert lines.opened == [URL] * 3
    asked = Lines("n", "open", "done", open_browser="ask")
    assert asked.page(Watch()).action == "accept"
    assert asked.opened == [URL]
    for word in ("open", "o", "yes"):
        at_once = Lines(word, "", open_browser="ask")
        assert at_once.page(Watch()).action == "accept"
        assert at_once.opened == [URL]
    assert capsys.readouterr().err.count('"open" opens the page again') == 5


def test_where_nothing_is_opened_open_is_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("open", "", open_browser=False)
    assert lines.page(Watch()).action == "accept"
    assert lines.opened == []
    shown = capsys.readouterr().err
    assert "That is no answer" in shown and '"open"' not in shown


def test_the_prompt_is_what_engines_expect() -> None:
    prompt: PersonPrompt = Lines().prompt
    assert (prompt.name, prompt.unusable()) == ("terminal", None)
    assert Lines().form(Watch(), {"type": "array"}) == DECLINED
    assert Lines().page(Watch(), "file:///etc/passwd") == DECLINED


def test_without_a_terminal_no_rules_for_typing_are_printed() -> None:
    code = f"""
import sys
from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.terminal_prompt import TerminalPrompt
from gopher_mcp_python.handlers.watch import Watch
prompt = TerminalPrompt()
request = GopherAgentElicitationRequest("form", message="Who?", server="mail.test", requested_schema={FORM!r})
print(prompt.unusable(), prompt.ask(request, Watch(lasting=("session",))).action, "prompt_toolkit" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=children.ROOT,
        env=children.environment(), start_new_session=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "there is no terminal to answer on cancel False\n"
    assert done.stderr == (
        "\nmail.test asks you to fill in 1 field.\n  | Who?\n"
        "Never give a password, a key or other credentials in a form.\n"
        "Nobody can be asked: there is no terminal to answer on. The request is cancelled.\n"
    )


@on_a_pty
def test_a_page_is_asked_for_line_by_line_where_a_form_would_have_a_screen() -> None:
    with Screen.asking(None, (200, 40), url=URL + "&x=" + "y" * 300, lasting=["session"]) as screen:
        screen.until("Enter to continue")
        screen.child.sendline("open")
        screen.until("opened in your browser(.|\n)*opened in your browser")
        screen.child.sendline("decline all")
        facts = screen.answered()
    assert (facts["action"], facts["whole_server"], facts["restored"]) == ("decline", "session", True)
    assert f"\r\n{URL}&x={'y' * 300}\r\n" in screen.raw and "\x1b" not in screen.raw


# ---- real servers ----------------------------------------------------------------------------------------------------

AGENT = """
import sys
from gopher_mcp_python import GopherAgent
provider, url, query = sys.argv[1:]
with GopherAgent.create_with_url(provider, "scripted", url, {"engine": "embedded"}) as agent:
    try:
        print("RESULT", agent.run(query))
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
        print("AGAIN", agent.run("plain"))
"""
TOOLSET = """
import asyncio, sys
from gopher_mcp_python import McpToolset
async def main():
    async with McpToolset(sys.argv[2], elicitation_handler={}) as toolset:
        print("RESULT", (await toolset.call_tool("form_tool", {}))["output"])
asyncio.run(main())
"""


@pytest.fixture
def served(server: McpServer, environment_for: Callable[[Variant], dict[str, str]]) -> Callable[[str], Screen]:
    """Starts a program on a terminal that has a server's form to fill in."""

    def start(program: str) -> Screen:
        arguments = [sys.executable, "-c", program, EMBEDDED.provider, server.url, "form_tool"]
        return Screen(arguments, env=environment_for(EMBEDDED))

    return start


@on_a_pty
@pytest.mark.parametrize("program", [AGENT, TOOLSET], ids=["agent", "toolset"])
def test_a_servers_form_is_filled_in_on_a_screen(served: Any, server: McpServer, program: str) -> None:
    with served(program) as screen:
        shown = screen.until("F1 help")
        assert "Why is this needed?" in shown and "▸ needed    Reason" in shown and "default   Urgent: no" in shown
        screen.keys("audit of mail", "\t", "y").until("▸ filled in Urgent")
        screen.keys(F10).until(REVIEW)
        screen.keys(ENTER).until("RESULT form: accept")
        screen.ended()
    (answer,) = server.wait_for("answer")
    assert answer["content"] == {"reason": "audit of mail", "urgent": True}
    told = screen.raw.rpartition("\x1b[?1049l")[2].partition("RESULT")[0]
    assert re.search(r"\r\nSent to .*: 2 fields\.\r\n", told) and "audit" not in told


@on_a_pty
def test_ctrl_c_in_a_servers_form_cancels_and_the_agent_lives_on(served: Any, server: McpServer) -> None:
    with served(AGENT) as screen:
        screen.until("F1 help")
        screen.keys("half", "\x03").until("INTERRUPTED")
        screen.until("AGAIN .*plain: ok")
        screen.ended()
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_a_pty
def test_the_default_handler_takes_the_screen(server: McpServer) -> None:
    """The same request as tests/test_terminal_form.py asks line by line."""
    with Terminal.python("-m", "tests.support.asking", json.dumps({"form": FORM}), size=(24, 80)) as terminal:
        assert "\x1b[?1049h" in terminal.expect("credentials in a form")
        terminal.send("\x04")
        assert '"answers": [[3]]' in terminal.expect("RESULT .*}")
