"""What a person sees of a sign-in to the MCP server, and does: on a real terminal (a pty), and where there is none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from gopher_mcp_python.handlers.console import StderrConsole
from gopher_mcp_python.oauth import person, prompt
from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.loopback import Callback, Redirect
from gopher_mcp_python.oauth.person import ask_to_sign_in
from tests.support import children
from tests.support.canary import Canary, secret
from tests.support.terminal import Terminal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="ptys are a thing of POSIX systems")
STATE, CODE = secret("state"), secret("code")
PAGE = "https://accounts.example.test/authorize"
READY = r'type "cancel" and press Enter\.'
RIGHT = f"code={CODE}&state={STATE}"


@pytest.fixture(autouse=True)
def _the_url_is_shown(canary: Canary) -> None:
    """The sign-in's URL is shown, whole, on a line of its own; nothing else may show its state."""
    canary.allow_shown(PAGE, exact=False)


def arguments(**given: Any) -> list[str]:
    return ["-m", "tests.support.signing_in", json.dumps({"state": STATE, "code": CODE, **given})]


def signing_in(*, env: dict[str, str] | None = None, **given: Any) -> Terminal:
    terminal = Terminal.python(*arguments(**given), env=env)
    terminal.child.setecho(True)  # as people have it: what the program does not switch off is shown, and scanned
    return terminal


def result(terminal: Terminal) -> dict[str, Any]:
    """What the program found; it must have given everything back."""
    line = terminal.expect(r"RESULT \{.*\}").partition("RESULT ")[2]
    assert terminal.end()[0] == 0
    return clean(json.loads(line))


def clean(facts: dict[str, Any]) -> dict[str, Any]:
    assert facts.pop("restored", True), "the terminal was not given back as it was"
    assert (facts.pop("descriptors"), facts.pop("threads")) == (0, [])
    return facts


def one_end(facts: dict[str, Any]) -> dict[str, Any]:
    (end,) = facts["ends"]
    return dict(end)


def url_of(shown: str) -> str:
    (line,) = (line for line in shown.splitlines() if line.startswith(PAGE.partition("//")[0]))
    return line


def way_back(shown: str) -> str:
    return parse_qs(urlsplit(url_of(shown)).query)["redirect_uri"][0]


def browse(shown: str, query: str = RIGHT) -> str:
    return httpx2.get(f"{way_back(shown)}?{query}", timeout=10, headers={"User-Agent": "Mozilla/5.0"}).text


# ---- On a terminal --------------------------------------------------------------------------------------------------


def test_the_browser_comes_back_and_the_prompt_ends_by_itself() -> None:
    with signing_in(read_line=True) as terminal:
        shown = terminal.expect(READY)
        first = shown.strip().splitlines()[0]
        assert first == "mail.example.com wants you to sign in. This sign-in is to the MCP server itself."
        assert "Host: accounts.example.test   (belongs to: example.test)" in shown
        assert "You need not press anything here" in shown
        assert url_of(shown).endswith(f"&state={STATE}"), "the URL must stand on one line, whole"
        assert "Time left: 1 min." in terminal.expect("Time left.*\n")
        terminal.send("half a li")
        time.sleep(0.1)
        page = browse(shown)
        assert "<h1>Signed in</h1><p>You are signed in to mail.example.com.</p>" in page
        terminal.expect("The browser has come back. Finishing the sign-in.")
        time.sleep(0.3)
        terminal.line("next input")
        facts = result(terminal)
    assert one_end(facts)["code"] is True
    assert facts["line"] == "next input\n", "what was typed for the prompt became the program's input"


def test_strays_and_refused_answers_are_passed_over() -> None:
    with signing_in() as terminal:
        shown = terminal.expect(READY)
        assert "Nothing was done" in browse(shown, f"error=access_denied&state={secret('other')}")
        assert "Signed in" in browse(shown)
        assert one_end(result(terminal))["code"] is True


def paste(terminal: Terminal, text: str) -> dict[str, Any]:
    terminal.send(text)
    terminal.expect("The address was taken. Finishing the sign-in.")
    return one_end(result(terminal))


@pytest.mark.parametrize(
    "form",
    [
        "{uri}?{right}\r",
        "<{uri}?{right}>\r",
        "\x1b[200~{uri}?{right}\x1b[201~\r",
        "  {short}?{right}  \r",
        "?{right}\r",
        "{uri}?{right}&x={long}\r",
        "{uri}?x={long}&{right}\r",
    ],
    ids=["plain", "brackets", "bracketed paste", "no scheme", "query", "20 kB", "20 kB before"],
)
def test_the_address_on_which_the_browser_ended_may_be_pasted(form: str) -> None:
    """Longer than a line of a terminal (4,095 bytes), too; nothing of the code or the state is shown."""
    with signing_in() as terminal:
        uri = way_back(terminal.expect(READY))
        short = uri.removeprefix("http://")
        text = form.format(uri=uri, short=short, right=RIGHT, long="y" * 20000)
        assert paste(terminal, text)["code"] is True


@pytest.mark.parametrize("end", ["\r", ""])
def test_an_address_with_line_breaks_in_it(end: str) -> None:
    """As terminals copy it that break long lines. Without an end of the last line, it waits for Enter."""
    with signing_in() as terminal:
        text = f"{way_back(terminal.expect(READY))}?state={STATE}&code={CODE}"
        pieces = [text[:30], text[30:45], text[45:-5], text[-5:]]
        terminal.send("\r".join(pieces) + end)
        if not end:
            time.sleep(0.5)
            terminal.send("\r")
        shown = terminal.expect("The address was taken")
        assert "Not taken" not in shown
        assert one_end(result(terminal))["code"] is True


@pytest.mark.parametrize("places", [(40, 50), (35, -4), (-30, -2)])
def test_an_address_that_comes_in_pieces(places: tuple[int, int]) -> None:
    """Line by line, each pasted for itself: what was said about the first ones does not matter."""
    with signing_in() as terminal:
        text = f"{way_back(terminal.expect(READY))}?{RIGHT}"
        one, other = places
        for piece in (text[:one], text[one:other]):
            terminal.line(piece)
            terminal.expect("Not taken: .*cancel")
        terminal.line(text[other:])
        terminal.expect("The address was taken")
        assert one_end(result(terminal))["code"] is True


def test_a_line_can_be_edited() -> None:
    with signing_in() as terminal:
        terminal.expect(READY)
        terminal.send("no such \x15canä\x7fcex\x08l\x1b[D\r")
        assert one_end(result(terminal))["reason"] == "cancelled"


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("", "The browser has not come back yet"),
        ("hello", "That is not the address of the page on which the browser ended; it begins with http://127.0.0.1:"),
        (CODE, "That is not the address"),
        (f"http://127.0.0.1/callback?code={CODE}", "That is only a part of the address"),
        (f"http://127.0.0.1/callback?code={CODE}&state={secret('wrong')}", "That address belongs to another sign-in"),
        (f"{PAGE}?state={STATE}", "That is the page where the sign-in begins"),
    ],
)
def test_a_line_that_does_not_help_is_answered_and_the_sign_in_goes_on(typed: str, why: str) -> None:
    with signing_in() as terminal:
        shown = terminal.expect(READY)
        terminal.line(typed)
        terminal.expect(why)
        browse(shown)
        assert one_end(result(terminal))["code"] is True


def test_a_pasted_denial_counts() -> None:
    with signing_in() as terminal:
        terminal.expect(READY)
        terminal.line(f"http://127.0.0.1/callback?error=access_denied&error_description=not+today&state={STATE}")
        end = one_end(result(terminal))
    assert end["reason"] == "denied"
    assert end["text"] == (
        'The sign-in to mail.example.com was denied (access_denied: "not today"). Run it again and allow the access.'
    )


@pytest.mark.parametrize("typed", ["cancel\r", " Cancel \r", "q\r", "no\r", "\x04"])
def test_cancelling(typed: str) -> None:
    with signing_in() as terminal:
        terminal.expect(READY)
        terminal.send(typed)
        terminal.expect("ancelled")
        end = one_end(result(terminal))
    assert (end["reason"], end["text"]) == (
        "cancelled", "The sign-in to mail.example.com was cancelled. Run it again to sign in."
    )  # fmt: skip


def test_ctrl_c_reaches_the_program_and_everything_is_given_back() -> None:
    with signing_in() as terminal:
        terminal.expect(READY)
        terminal.interrupt()
        assert result(terminal) == {"interrupted": True}


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1, 0.4])
def test_cancelled_by_the_program_at_any_moment(seconds: float, tmp_path: Path) -> None:
    """A browser that takes its time to start is waited for by nobody."""
    slow = script(tmp_path, "slow-browser", "time.sleep(0.6)")
    options = {"open_browser": None}
    with signing_in(cancel_after=seconds, options=options, env={"BROWSER": str(slow)}) as terminal:
        assert result(terminal) == {"ends": [{"raised": "CancelledError"}]}


def test_the_time_is_up() -> None:
    with signing_in(options={"timeout": 0.6}) as terminal:
        terminal.expect("The time is up")
        end = one_end(result(terminal))
    assert end["reason"] == "timeout"
    assert "Nobody finished the sign-in to mail.example.com within 1 s." in end["text"]


def test_two_at_a_time_are_asked_one_after_the_other() -> None:
    with signing_in(count=2, options={"timeout": 20}) as terminal:
        first = terminal.expect(READY)
        assert first.count("wants you to sign in") == 1
        browse(first)
        second = terminal.expect(READY)
        assert second.count("wants you to sign in") == 1 and way_back(second) != way_back(first)
        browse(second)
        assert [end["code"] for end in result(terminal)["ends"]] == [True, True]


def test_debug_logs_tell_no_secret() -> None:
    """Everything that is shown, with asyncio's debug log and ours, goes through the canary's scan."""
    with signing_in(debug=True, env={"GOPHER_MCP_OAUTH_DEBUG": "1"}) as terminal:
        shown = terminal.expect(READY)
        terminal.line(f"code={CODE}")
        terminal.expect("only a part")
        browse(shown)
        rest = terminal.expect("has_code=True")
        assert "gopher_mcp_python.oauth" in shown + rest
        assert one_end(result(terminal))["code"] is True


def test_a_terminal_that_goes_away_cancels() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments(hang_up=True)], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        cwd=children.ROOT, env=children.environment(), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"Time left" not in shown:
        assert select.select([ours], [], [], 30)[0]
        shown += os.read(ours, 4096)
    os.close(ours)
    facts = json.loads(process.communicate(timeout=30)[0].removeprefix("RESULT "))
    assert facts["ends"][0]["reason"] == "cancelled" and facts["threads"] == []


# ---- The browser ----------------------------------------------------------------------------------------------------


def script(folder: Path, name: str, body: str) -> Path:
    """A program for BROWSER; `body` sees the page's URL as `url`."""
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport sys, time\nurl = sys.argv[-1]\n{body}\n")
    file.chmod(0o755)
    return file


def browser(folder: Path, query: str = RIGHT) -> Path:
    """A browser in which somebody signs in at once."""
    return script(folder, "browser", f"""
from urllib.parse import parse_qs, urlsplit
from urllib.request import ProxyHandler, build_opener
uri = parse_qs(urlsplit(url).query)["redirect_uri"][0]
page = build_opener(ProxyHandler({{}})).open(uri + "?" + {query!r}, timeout=20).read().decode()
open({str(folder / "page.html")!r}, "w").write(page)
open({str(folder / "url.txt")!r}, "w").write(url)""")  # fmt: skip


def test_the_page_is_opened_in_the_browser_and_printed_too(tmp_path: Path) -> None:
    with signing_in(options={"open_browser": None}, env={"BROWSER": str(browser(tmp_path))}) as terminal:
        shown = terminal.expect("The browser has come back")
        assert one_end(result(terminal))["code"] is True
    until = time.monotonic() + 10
    while not (tmp_path / "url.txt").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "url.txt").read_text() == url_of(shown)
    assert "<h1>Signed in</h1>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("pass", "It was opened in your browser; if you see nothing, open the URL yourself."),
        ("sys.exit(3)", r"No browser was opened: opener found no browser \(exit code 3\). Open the URL yourself."),
    ],
)
def test_an_opener_that_shows_nothing_is_no_dead_end(tmp_path: Path, body: str, said: str) -> None:
    opener = script(tmp_path, "opener", body)
    with signing_in(options={"open_browser": True}, env={"BROWSER": str(opener)}) as terminal:
        shown = terminal.expect(said) + terminal.expect(READY)
        assert paste(terminal, f"{way_back(shown)}?{RIGHT}\r")["code"] is True


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({}, "there is no display"),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, "this is an SSH session"),
        ({"DISPLAY": ":0", "WSL_DISTRO_NAME": "Debian"}, "this is WSL"),
        ({"DISPLAY": ":0", "BROWSER": "lynx"}, "BROWSER is lynx, a text browser"),
    ],
)
def test_without_a_browser_the_address_is_pasted(env: dict[str, str], why: str, tmp_path: Path) -> None:
    """Whatever would be launched leaves a file: nothing is."""
    for name in ("lynx", "xdg-open", "wslview"):
        script(tmp_path, name, f"open({str(tmp_path / 'launched')!r}, 'w')")
    env = {**env, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    with signing_in(options={"open_browser": None}, env=env) as terminal:
        shown = terminal.expect(f"No browser was opened: {why}") + terminal.expect(READY)
        assert paste(terminal, f"{way_back(shown)}?{RIGHT}\r")["code"] is True
    assert not (tmp_path / "launched").exists()


@pytest.mark.parametrize(("typed", "opened"), [("\r", True), ("n\r", False)])
def test_a_page_that_looks_like_another_one_is_opened_only_when_the_person_says_so(
    typed: str, opened: bool, tmp_path: Path, canary: Canary
) -> None:
    page = "https://accounts.example.com.evil.test/authorize"
    canary.allow_shown(page, exact=False)
    seen = tmp_path / "seen"
    opener = script(tmp_path, "opener", f"open({str(seen)!r}, 'w')")
    with signing_in(page=page, options={"open_browser": None}, env={"BROWSER": str(opener)}) as terminal:
        shown = terminal.expect("Open it in your browser now")
        assert "WARNING: The name begins like accounts.example.com, but the page belongs to evil.test." in shown
        assert not seen.exists()
        terminal.send(typed)
        terminal.expect(READY)
        terminal.line("cancel")
        assert one_end(result(terminal))["reason"] == "cancelled"
    assert seen.exists() is opened


# ---- Where there is no terminal -------------------------------------------------------------------------------------


@pytest.fixture
def without_terminal() -> Callable[..., subprocess.Popen[str]]:
    """Starts the program in a session of its own, which has no terminal; its stderr is a pipe."""

    def start(*, env: dict[str, str] | None = None, **given: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments(**given)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=children.ROOT, env=children.environment(env), start_new_session=True,
        )  # fmt: skip

    return start


def ended(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    out, err = process.communicate(timeout=60)
    return one_end(clean(json.loads(out.removeprefix("RESULT ")))), err


def test_nobody_here_to_sign_in_is_said_at_once(without_terminal: Callable[..., subprocess.Popen[str]]) -> None:
    end, err = ended(without_terminal(options={"open_browser": None}))
    assert end["reason"] == "unavailable"
    assert "there is no terminal to answer on, and no browser was opened (there is no display)" in end["text"]
    assert "Sign in once from a terminal" in end["text"] and "redirect_uri" in end["text"]
    assert url_of(err).startswith(f"{PAGE}?response_type=code&client_id=app&redirect_uri=")
    assert READY.replace("\\", "") not in err, "a prompt that nobody can answer"


def test_a_look_alike_is_not_opened_where_nobody_can_be_asked(
    without_terminal: Callable[..., subprocess.Popen[str]], tmp_path: Path, canary: Canary
) -> None:
    page = "https://accounts.example.com.evil.test/authorize"
    canary.allow_shown(page, exact=False)
    opener = script(tmp_path, "opener", f"open({str(tmp_path / 'seen')!r}, 'w')")
    end, err = ended(without_terminal(page=page, options={"open_browser": None}, env={"BROWSER": str(opener)}))
    assert end["reason"] == "unavailable" and "its address looks like another one" in end["text"]
    assert "WARNING: " in err and not (tmp_path / "seen").exists()


def test_a_browser_is_enough(without_terminal: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = without_terminal(options={"open_browser": None}, env={"BROWSER": str(browser(tmp_path))})
    assert ended(process)[0]["code"] is True


def test_a_denial_in_the_browser(without_terminal: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    denying = browser(tmp_path, f"error=access_denied&state={STATE}")
    end, _ = ended(without_terminal(options={"open_browser": None}, env={"BROWSER": str(denying)}))
    assert end["reason"] == "denied" and "(access_denied)" in end["text"]


@pytest.mark.parametrize("options", [{"open_browser": False}, {"open_browser": None, "elsewhere": True}])
def test_a_browser_elsewhere_is_waited_for(
    without_terminal: Callable[..., subprocess.Popen[str]], options: dict[str, Any]
) -> None:
    process = without_terminal(options=options)
    assert process.stderr is not None
    shown = ""
    while "continues by itself" not in shown:
        line = process.stderr.readline()
        assert line, shown
        shown += line
    assert "Signed in" in browse(shown)
    assert ended(process)[0]["code"] is True


# ---- Answers of the authorization server ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "reason", "said"),
    [
        (Redirect(error="access_denied"), "denied", "was denied (access_denied)"),
        (Redirect(error="login_required"), "denied", "was denied (login_required)"),
        (Redirect(error="temporarily_unavailable"), "unavailable", "can't sign anybody in now"),
        (Redirect(error="server_error", code=CODE), "unavailable", "can't sign anybody in now (server_error)"),
        (Redirect(error="invalid_scope", error_description="no such one"), "refused", 'invalid_scope: "no such one"'),
        (Redirect(error="\x1b[2Jx" * 50), "refused", "\\x1b[2Jx"),
        (Redirect(error="x", error_description=f"state={STATE}"), "refused", "state=<redacted>"),
        (Redirect(), "refused", "neither a code nor an error"),
    ],
)
def test_errors_are_told_apart(found: Redirect, reason: str, said: str) -> None:
    with pytest.raises(SignInError, match=re.escape(said)) as error:
        person._judged(found, "mail.example.com", "the state")
    assert error.value.reason == reason and "mail.example.com" in str(error.value)
    assert len(str(error.value)) < 600 and "\x1b" not in str(error.value)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https:///x", f"file:///x?state={STATE}", "https://a b/x"])
def test_a_url_that_must_not_be_opened_is_refused(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            await ask_to_sign_in(
                url, callback, STATE, server="mail.test", open_browser=None, timeout=5, elsewhere=False
            )

    with pytest.raises(SignInError, match=r"The sign-in page that mail\.test names is not opened") as error:
        asyncio.run(main())
    assert error.value.reason == "misconfigured" and capfd.readouterr().err == ""


# ---- In the program's own loop --------------------------------------------------------------------------------------


@pytest.fixture
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests on a terminal is not asked."""
    monkeypatch.setattr(prompt, "open_console", lambda **_: contextlib.nullcontext(StderrConsole("there is none")))


def ask(callback: Callback, **options: Any) -> Coroutine[Any, Any, Redirect]:
    options = {"server": "mail.test", "open_browser": False, "timeout": 60, "elsewhere": False} | options
    return ask_to_sign_in(f"{PAGE}?state={STATE}", callback, STATE, **options)


def test_a_pasted_address_of_another_kind_of_prompt_ends_it(
    no_terminal: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """`feed` is there for dialogs and pages, too."""

    async def main() -> Redirect:
        async with await Callback.listen() as callback:
            asking = asyncio.ensure_future(ask(callback))
            await asyncio.sleep(0.05)
            assert callback.feed(RIGHT) is None
            return await asking

    assert asyncio.run(main()).code == CODE
    assert "Time left" not in capfd.readouterr().err


def test_a_listener_that_is_closed_ends_it(no_terminal: None) -> None:
    async def main() -> None:
        callback = await Callback.listen()
        asking = asyncio.ensure_future(ask(callback))
        await asyncio.sleep(0.02)
        await callback.finish(False, "")
        await asking

    with pytest.raises(SignInError, match="was cancelled") as error:
        asyncio.run(main())
    assert error.value.reason == "cancelled"


@pytest.mark.parametrize("steps", range(5))
def test_cancelled_at_every_step_it_leaves_nothing(no_terminal: None, steps: int) -> None:
    """Threads and pipes that were left would be found by the leak guard (tests/support/guards.py)."""

    async def main() -> None:
        async with await Callback.listen() as callback:
            asking = asyncio.ensure_future(ask(callback))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert not [one for one in threading.enumerate() if one.name == "sign-in prompt"]

    asyncio.run(main())


def test_a_coroutine_that_is_dropped_gives_everything_back(no_terminal: None) -> None:
    """Nobody resumes it: its loop is closed before."""
    loop = asyncio.new_event_loop()
    callback = loop.run_until_complete(Callback.listen())

    async def begin() -> Coroutine[Any, Any, Redirect]:
        asking = ask(callback)
        asking.send(None)
        return asking

    asking = loop.run_until_complete(begin())
    loop.run_until_complete(callback.finish(False, ""))
    loop.close()
    asking.close()
    assert not [one for one in threading.enumerate() if one.name == "sign-in prompt"]


def test_where_no_thread_can_be_had(no_terminal: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's limit on threads can't be reached in a test without harm to others."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        async with await Callback.listen() as callback:
            monkeypatch.setattr(threading.Thread, "start", start)
            try:
                await ask(callback)
            finally:
                monkeypatch.undo()

    with pytest.raises(SignInError, match="no thread could be started") as error:
        asyncio.run(main())
    assert error.value.reason == "unavailable"
