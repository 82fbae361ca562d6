"""The default handler and the published functions around it, with lines that do not come from a terminal."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
)
from gopher_mcp_python import elicitation_runtime as runtime

Options = GopherAgentElicitationOptions
URL = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"
INSTRUCTION = (
    'Complete the OAuth flow in the browser, then press Enter to continue. Type "cancel" and press Enter to cancel.'
)


def request(mode: str = "url", url: str | None = URL, **fields: Any) -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest(mode, url=url, **fields)


class Lines:
    """Lines for the prompt; remembers how often it was asked and with which limit."""

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)
        self.limits: list[int | None] = []

    def __call__(self, timeout_ms: int | None) -> str | None:
        self.limits.append(timeout_ms)
        return self.lines.pop(0)


@pytest.fixture
def lines() -> Iterator[Any]:
    def use(*texts: str | None) -> Lines:
        source = Lines(*texts)
        runtime.set_elicitation_input_for_test(source)
        return source

    yield use
    runtime.set_elicitation_input_for_test(None)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What would have been opened in a browser; the place of the real one, which no test may start."""
    calls: list[tuple[str, Any]] = []

    def open_authorization_url(url: str, open_browser: Any = None) -> dict[str, Any]:
        calls.append((url, open_browser))
        return {"opened": open_browser is not False, "url": url}

    monkeypatch.setattr(runtime, "open_authorization_url", open_authorization_url)
    return calls


def ask(options: Options | None = None, **fields: Any) -> str:
    response = runtime.default_url_elicitation_handler(options)(request(**fields))
    assert isinstance(response, GopherAgentElicitationResponse)
    return response.action


# ---- the default handler --------------------------------------------------------------------------------------------


def test_opens_the_browser_and_accepts_after_enter(lines: Any, opened: Any, capsys: Any) -> None:
    source = lines("")
    assert ask(Options(timeout_ms=5000), message="Sign in, please", server="mail.test") == "accept"
    assert opened == [(URL, None)]
    assert source.limits == [5000]
    shown = capsys.readouterr()
    assert shown.out == ""
    for text in ("mail.test", "Sign in, please", "Host: provider.test", f"\n{URL}\n", INSTRUCTION):
        assert text in shown.err
    assert shown.err.index(URL) < shown.err.index("opened in your browser") < shown.err.index(INSTRUCTION)


def test_manual_fallback_prints_the_url(lines: Any, opened: Any, capsys: Any) -> None:
    lines("")
    assert ask(Options(open_browser=False)) == "accept"
    assert opened == []
    assert f"\n{URL}\n" in capsys.readouterr().err


def test_a_browser_that_does_not_open_is_told_and_the_url_stands(
    lines: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        runtime, "open_authorization_url", lambda url, choice: {"opened": False, "reason": "no display"}
    )
    lines("")
    assert ask() == "accept"
    shown = capsys.readouterr().err
    assert f"\n{URL}\n" in shown
    assert "No browser was opened: no display" in shown


def test_an_opener_that_raises_does_not_end_the_prompt(
    lines: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, canary: Any
) -> None:
    url = canary.authorization_url()
    canary.allow_shown(url)

    def broken(url: str, choice: Any) -> dict[str, Any]:
        raise RuntimeError(f"can't open {url}")

    monkeypatch.setattr(runtime, "open_authorization_url", broken)
    lines("")
    assert ask(url=url) == "accept"
    assert "RuntimeError" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["cancel", " CANCEL ", "cancel\n", "c", "q", "quit"])
def test_typed_cancel(line: str, lines: Any, opened: Any) -> None:
    lines(line)
    assert ask() == "cancel"


@pytest.mark.parametrize("line", ["", "\n", "  ", "done", "finished", "yes", "OK"])
def test_enter_and_its_words_accept(line: str, lines: Any, opened: Any) -> None:
    lines(line)
    assert ask() == "accept"


@pytest.mark.parametrize("line", ["no", "N", "decline"])
def test_no_declines(line: str, lines: Any, opened: Any) -> None:
    lines(line)
    assert ask() == "decline"


def test_a_line_that_is_no_answer_is_asked_again(lines: Any, opened: Any, capsys: Any) -> None:
    source = lines("cacnel", "what?", "cancel")
    assert ask() == "cancel"
    assert len(source.limits) == 3
    assert capsys.readouterr().err.count("That is no answer") == 2


def test_lines_that_are_never_an_answer_end_with_cancel(lines: Any, opened: Any) -> None:
    lines(*["?"] * 50)
    assert ask() == "cancel"


def test_nobody_there_cancels_and_says_so(lines: Any, opened: Any, capsys: Any) -> None:
    lines(None)
    assert ask() == "cancel"
    assert "canceling provider authorization" in capsys.readouterr().err


def test_end_of_input_cancels(opened: Any) -> None:
    def ended(timeout_ms: int | None) -> str:
        raise EOFError

    runtime.set_elicitation_input_for_test(ended)
    try:
        assert ask() == "cancel"
    finally:
        runtime.set_elicitation_input_for_test(None)


@pytest.mark.parametrize(
    ("mode", "url"), [("form", None), ("", URL), ("URL", URL), ("voice", URL), ("url", None), ("url", "")]
)
def test_unsupported_modes_are_declined_without_a_word(
    mode: str, url: Any, lines: Any, opened: Any, capsys: Any
) -> None:
    lines()
    assert ask(mode=mode, url=url) == "decline"
    assert (opened, capsys.readouterr().err) == ([], "")


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", " https://a.test/", "data:text/html,\x1b[2J"]
)
def test_unsafe_urls_are_declined_and_shown_inert(url: str, lines: Any, opened: Any, capsys: Any) -> None:
    lines()
    assert ask(url=url) == "decline"
    shown = capsys.readouterr().err
    assert opened == []
    assert "It was refused:" in shown
    assert "\x1b" not in shown


def test_ask_opens_only_after_a_yes(lines: Any, opened: Any) -> None:
    lines("", "")
    assert ask(Options(open_browser="ask")) == "accept"
    assert [url for url, _ in opened] == [URL]
    opened.clear()
    lines("n", "")
    assert ask(Options(open_browser="ask")) == "accept"
    assert opened == []
    lines("cancel")
    assert ask(Options(open_browser="ask")) == "cancel"
    assert opened == []


@pytest.mark.parametrize(
    "url",
    [
        "https://accounts.google.com@evil.example/x",
        "https://xn--pple-43d.com/",
        "https://\u0430pple.com/",
        "https://login.example.com.evil.test/",
    ],
)
def test_misleading_hosts_are_warned_of_and_never_opened_without_asking(
    url: str, lines: Any, opened: Any, capsys: Any
) -> None:
    lines("n", "")
    assert ask(url=url) == "accept"
    shown = capsys.readouterr().err
    assert opened == []
    assert "WARNING:" in shown
    host_line = next(line for line in shown.splitlines() if line.startswith("Host: "))
    assert "google" not in host_line


def test_server_text_can_not_pass_for_ours(lines: Any, opened: Any, capsys: Any) -> None:
    lines("")
    message = "Hello\x1b[2J\x1b]52;c;eA==\x07\rWARNING gone\nHost: bank.test\u202e\u200b\u2066"
    ask(message=message, server="evil\x1b]0;x\x07\nHost: bank.test", tool="t\u202e")
    shown = capsys.readouterr().err
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert [line for line in shown.splitlines() if line.startswith("Host:")] == ["Host: provider.test"]


def test_no_stderr_at_all_cancels_when_no_browser_opens(lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr(runtime, "open_authorization_url", lambda url, choice: {"opened": False})
    source = lines("")
    assert ask() == "cancel"
    assert source.limits == []


# ---- the functions around it ----------------------------------------------------------------------------------------


def resolve(handler: Any) -> str:
    return runtime.resolve_elicitation_action_sync(Options(handler=handler), request())


@pytest.mark.parametrize(
    ("handler", "action"),
    [
        (lambda r: "accept", "accept"),
        (lambda r: GopherAgentElicitationResponse("decline"), "decline"),
        ("cancel", "cancel"),
        ("decline", "decline"),
    ],
)
def test_resolve(handler: Any, action: str) -> None:
    assert resolve(handler) == action


def test_resolve_lets_the_handlers_error_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        resolve(lambda r: 1 / 0)
    for wrong in (3, None, "zz"):
        with pytest.raises(ValueError, match="unsupported MCP elicitation action"):
            resolve(functools.partial(lambda answer, r: answer, wrong))


def test_resolve_refuses_an_awaitable_and_closes_it() -> None:
    async def later() -> str:
        return "accept"

    coroutines: list[Any] = []

    def sneaky(r: Any) -> Any:
        coroutines.append(later())
        return coroutines[0]

    with pytest.raises(RuntimeError, match="Async MCP elicitation handlers are not supported"):
        resolve(sneaky)
    assert coroutines[0].cr_frame is None


def test_resolve_uses_the_default_handler(lines: Any, opened: Any) -> None:
    lines("")
    assert runtime.resolve_elicitation_action_sync(Options(), request()) == "accept"
    lines("cancel")
    assert runtime.resolve_elicitation_action_sync(None, request()) == "cancel"


@pytest.mark.parametrize(("action", "number"), [("accept", 1), ("decline", 2), ("cancel", 3)])
def test_numbers(action: str, number: int) -> None:
    assert runtime.native_action_from_elicitation_action(action) == number
    assert getattr(runtime, f"ELICITATION_ACTION_{action.upper()}") == number


@pytest.mark.parametrize("action", ["x", None, 1])
def test_only_three_actions_have_numbers(action: Any) -> None:
    with pytest.raises(ValueError, match="unsupported MCP elicitation action"):
        runtime.native_action_from_elicitation_action(action)


def test_requests_from_mappings() -> None:
    made = runtime.to_elicitation_request({"mode": "url", "elicitationId": "1", "elicitation_id": "2", "rawJson": "{}"})
    assert (made.mode, made.elicitation_id, made.raw_json, made.url) == ("url", "2", "{}", None)
    assert runtime.to_elicitation_request({}).mode == ""


def test_waiting_only(lines: Any, capsys: Any) -> None:
    source = lines("", "cancel")
    assert runtime.wait_for_oauth_completion_sync(7) == "accept"
    assert runtime.wait_for_oauth_completion_sync() == "cancel"
    assert source.limits == [7, None]
    assert capsys.readouterr().err.count(INSTRUCTION) == 2
