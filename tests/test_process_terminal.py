"""A person at a real terminal (a pty): the prompt, Enter, "cancel", Ctrl-D and Ctrl-C, on both engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.canary import Canary
from tests.support.servers import McpServer
from tests.support.terminal import Terminal
from tests.support.variants import EMBEDDED, Variant, on_both

Environment = Callable[[Variant], dict[str, str]]

PROGRAM = """
import sys
from gopher_mcp_python import GopherAgent
engine, provider, url, query = sys.argv[1:]
options = {"engine": engine, "elicitation": {"open_browser": False}}
with GopherAgent.create_with_url(provider, "scripted", url, options) as agent:
    try:
        print("RESULT", agent.run(query))
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
        print("AGAIN", agent.run("plain"))
"""
SLEEPING = """
import sys, time
from gopher_mcp_python import GopherAgent
engine, provider, url, query = sys.argv[1:]
def handler(request):
    print("HANDLER", flush=True)
    time.sleep(60)
options = {"engine": engine, "elicitation": {"handler": handler}}
with GopherAgent.create_with_url(provider, "scripted", url, options) as agent:
    print("CREATED", flush=True)
    agent.run(query)
"""
PROMPT = "then press Enter to continue"


@pytest.fixture
def terminal(server: McpServer, environment_for: Environment, canary: Canary) -> Callable[..., Terminal]:
    """Starts a program in a terminal. The prompt shows the provider's URL: that line alone may hold its secrets."""
    canary.allow_shown(server.provider, exact=False)

    def start(variant: Variant, query: str, program: str = PROGRAM) -> Terminal:
        arguments = ["-c", program, variant.engine, variant.provider, server.url, query]
        return Terminal.python(*arguments, env={**environment_for(variant), "GOPHER_MCP_PLAIN": "1"})

    return start


@on_both
@pytest.mark.parametrize(("typed", "action"), [("\r", "accept"), ("cancel\r", "cancel"), ("\x04", "cancel")])
def test_what_is_typed_is_what_is_answered(
    terminal: Callable[..., Terminal], server: McpServer, variant: Variant, typed: str, action: str
) -> None:
    with terminal(variant, "decline_aware") as shown:
        text = shown.expect(PROMPT)
        assert server.provider in text and "127.0.0.1" in text and "Sign in to Gmail to continue." in text
        shown.send(typed)
        shown.expect(f"RESULT .*action: {action}")
        assert shown.end()[0] == 0
    assert server.actions() == [action]


def test_a_form_is_filled_in_at_the_prompt(terminal: Callable[..., Terminal], server: McpServer) -> None:
    """The embedded engine only: the native library has no forms."""
    with terminal(EMBEDDED, "form_tool") as shown:
        text = shown.expect(r"Reason: ")
        assert "Why is this needed?" in text and "(1 of 2, required) Reason" in text
        shown.line("audit")
        shown.expect(r"Urgent \[no\] \(y/n, back, skip\): ")
        shown.line("back")
        shown.expect(r"Reason \[audit\]: ")
        shown.line("audit of mail")
        shown.expect(r"Urgent .*: ")
        shown.line()
        shown.expect("Enter sends them")
        shown.line()
        shown.expect("RESULT form: accept")
        assert shown.end()[0] == 0
    (answer,) = server.wait_for("answer")
    assert answer["content"] == {"reason": "audit of mail", "urgent": False}


def test_ctrl_c_in_a_form_cancels_and_the_agent_lives_on(
    terminal: Callable[..., Terminal], server: McpServer
) -> None:
    with terminal(EMBEDDED, "form_tool") as shown:
        shown.expect(r"Reason: ")
        shown.interrupt()
        shown.expect("INTERRUPTED", timeout=3)
        shown.expect("AGAIN .*plain: ok")
        assert shown.end()[0] == 0
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_both
def test_ctrl_c_at_the_prompt_cancels_and_the_agent_lives_on(
    terminal: Callable[..., Terminal], server: McpServer, variant: Variant
) -> None:
    with terminal(variant, "decline_aware") as shown:
        shown.expect(PROMPT)
        shown.interrupt()
        shown.expect("INTERRUPTED", timeout=3)
        shown.expect("AGAIN .*plain: ok")
        assert shown.end()[0] == 0
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_both
def test_ctrl_c_while_a_tool_is_busy(terminal: Callable[..., Terminal], server: McpServer, variant: Variant) -> None:
    with terminal(variant, 'slow {"seconds": 30}') as shown:
        server.wait_for("run", seconds=20)
        shown.interrupt()
        shown.expect("INTERRUPTED", timeout=3)
        shown.expect("AGAIN .*plain: ok")
        code, rest = shown.end(timeout=10)
        assert code == 0 and "Traceback" not in rest, rest


@on_both
def test_ctrl_c_in_a_programs_own_handler(
    terminal: Callable[..., Terminal], server: McpServer, variant: Variant
) -> None:
    with terminal(variant, "decline_aware", SLEEPING) as shown:
        shown.expect("HANDLER")
        shown.interrupt()
        code, rest = shown.end(timeout=10)
    assert code in (130, -2, 1) and "KeyboardInterrupt" in rest
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_both
def test_an_uncaught_ctrl_c_ends_the_process_at_once(
    terminal: Callable[..., Terminal], server: McpServer, variant: Variant
) -> None:
    with terminal(variant, 'slow {"seconds": 30}', SLEEPING) as shown:
        shown.expect("CREATED")
        server.wait_for("run", seconds=20)
        shown.interrupt()
        code, rest = shown.end(timeout=10)
    assert code in (130, -2) and "KeyboardInterrupt" in rest and "Fatal" not in rest
