"""The default handler on a real terminal (a pty): what the person sees and types."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import children
from tests.support.terminal import Terminal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="ptys are a thing of POSIX systems")
URL = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"
ACCEPT, DECLINE, CANCEL = 1, 2, 3
READY = "Complete the OAuth flow in the browser, then press Enter to continue"


def asking(**given: Any) -> Terminal:
    return Terminal.python("-m", "tests.support.asking", json.dumps({"url": URL, **given}))


def result(terminal: Terminal) -> tuple[dict[str, Any], str]:
    """What the program found, and what was shown before it."""
    shown = terminal.expect(r"RESULT \{.*\}")
    code, _ = terminal.end()
    assert code == 0
    before, _, line = shown.partition("RESULT ")
    facts: dict[str, Any] = json.loads(line)
    return facts, before


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("", ACCEPT), ("done", ACCEPT), ("cancel", CANCEL), (" Cancel ", CANCEL), ("no", DECLINE)],
)
def test_a_line_answers(typed: str, answer: int) -> None:
    with asking(server="mail.test", message="Sign in, please") as terminal:
        shown = terminal.expect(READY)
        assert "mail.test asks you to open a page" in shown
        assert "Host: provider.test" in shown
        assert f"\r\n{URL}\r\n" in shown
        terminal.line(typed)
        facts, _ = result(terminal)
    assert facts["answers"] == [[answer]]
    assert facts["restored"]


def test_ctrl_d_cancels() -> None:
    with asking() as terminal:
        terminal.expect(READY)
        terminal.send("\x04")
        facts, shown = result(terminal)
    assert (facts["answers"], facts["interrupted"]) == ([[CANCEL]], False)
    assert "The input has ended" in shown


def test_ctrl_d_after_some_text_waits_for_the_line() -> None:
    with asking() as terminal:
        terminal.expect(READY)
        terminal.send("can\x04")
        time.sleep(0.2)
        terminal.line("cel")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]


def test_ctrl_c_cancels_and_reaches_the_program() -> None:
    with asking() as terminal:
        terminal.expect(READY)
        terminal.interrupt()
        facts, _ = result(terminal)
    assert (facts["answers"], facts["interrupted"], facts["restored"]) == ([[CANCEL]], True, True)


def test_a_line_that_is_no_answer_is_asked_again() -> None:
    with asking() as terminal:
        terminal.expect(READY)
        terminal.line("cacnel")
        terminal.expect("That is no answer")
        terminal.line("cancel")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]


def test_an_enter_that_was_pasted_along_is_no_answer() -> None:
    with asking() as terminal:
        terminal.expect(READY)
        terminal.send("some\n\ntext\n")
        terminal.expect("That is no answer")
        terminal.line("cancel")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]


def test_what_a_servers_text_continues_with_below_passes_for_no_line_of_ours() -> None:
    fake = "Host: accounts.example.com"
    message = f"Please sign in {'-' * 60} {fake} {'.' * 52} {fake}"
    for tool in (None, f"{'t' * 60} {fake} {'.' * 60} {fake}"):
        given = json.dumps({"url": URL, "message": message, "server": "mail.test", "tool": tool})
        with Terminal.python("-m", "tests.support.asking", given, size=(24, 80)) as terminal:
            shown = terminal.expect(READY)
            terminal.line("cancel")
            assert result(terminal)[0]["answers"] == [[CANCEL]]
        rows = [row[at : at + 80] for row in shown.split("\r\n") for at in range(0, max(1, len(row)), 80)]
        assert [row for row in rows if row.startswith("Host:")] == ["Host: provider.test"]


def test_the_time_limit_cancels() -> None:
    begin = time.monotonic()
    with asking(options={"open_browser": False, "timeout_ms": 700}) as terminal:
        terminal.expect("Time left: 1 s")
        facts, shown = result(terminal)
    assert facts["answers"] == [[CANCEL]]
    assert "The time is up" in shown
    assert time.monotonic() - begin < 20


def test_the_engines_limit_is_shown_and_running_out_is_told() -> None:
    with asking(limit=10.6) as terminal:
        terminal.expect("Time left: 11 s")
        terminal.expect("Time left: 10 s", timeout=5)
        terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[ACCEPT]]
    with asking(limit=114.9) as terminal:
        terminal.expect("Time left: 1 min 55 s")
        terminal.line()
        assert result(terminal)[0]["answers"] == [[ACCEPT]]


def test_a_withdrawn_request_is_noticed_within_100_ms() -> None:
    with asking(withdraw_after=0.6) as terminal:
        facts, shown = result(terminal)
    assert "the request was withdrawn" in shown
    assert facts["noticed_after"] < 0.1 + 0.1  # the machine may be busy
    assert facts["restored"]


def test_an_end_before_its_time_is_not_called_the_end_of_the_time() -> None:
    with asking(withdraw_after=0.6, limit=30, options={"timeout_ms": 30_000, "open_browser": False}) as terminal:
        _, shown = result(terminal)
    assert "the request was withdrawn" in shown
    assert "time is up" not in shown


def test_a_terminal_in_raw_mode_shows_whole_lines() -> None:
    with asking(raw=True, message="Sign in") as terminal:
        shown = terminal.expect(READY)
        terminal.line()
        facts, _ = result(terminal)
    assert f"Open this URL to continue:\r\n{URL}\r\n" in shown
    assert facts["answers"] == [[ACCEPT]] and facts["restored"]


def test_half_a_line_does_not_become_the_programs_next_input() -> None:
    with asking(withdraw_after=1.0, read_line=True) as terminal:
        terminal.expect(READY)
        terminal.send("canc")
        terminal.expect("the request was withdrawn")
        time.sleep(0.2)
        terminal.line("for the program")
        facts, _ = result(terminal)
    assert facts["line"] == "for the program\n"


def test_completion_ends_the_prompt_with_accept_within_100_ms() -> None:
    with asking(complete_after=0.6) as terminal:
        facts, shown = result(terminal)
    assert facts["answers"] == [[ACCEPT]]
    assert "The server says that you have finished" in shown
    assert facts["noticed_after"] < 0.1 + 0.1


def test_a_raw_terminal_is_made_usable_and_given_back_raw() -> None:
    with asking(raw=True) as terminal:
        terminal.expect(READY)
        terminal.send("cancel\r")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]
    assert facts["restored"]


def test_a_background_thread_can_ask() -> None:
    with asking(thread=True) as terminal:
        terminal.expect(READY)
        terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[ACCEPT]]


def test_two_requests_at_once_are_asked_one_after_another() -> None:
    with asking(count=2) as terminal:
        shown = terminal.expect(READY)
        assert "number 0" in shown
        with pytest.raises(terminal.timed_out):
            terminal.expect("number 1", timeout=0.5)
        terminal.line("cancel")
        assert "number 1" in terminal.expect(READY)
        terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL], [ACCEPT]]


def test_what_was_typed_before_the_question_is_no_answer() -> None:
    with asking(before=1.5) as terminal:
        time.sleep(0.3)
        terminal.line()
        terminal.expect(READY)
        with pytest.raises(terminal.timed_out):
            terminal.expect("RESULT", timeout=0.7)
        terminal.line("cancel")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]


def test_a_url_of_5000_characters_is_one_unbroken_line() -> None:
    url = URL + "&x=" + "y" * 5000
    with asking(url=url) as terminal:
        assert f"\r\n{url}\r\n" in terminal.expect(READY)
        terminal.line()
        assert result(terminal)[0]["answers"] == [[ACCEPT]]


def test_a_servers_text_can_not_drive_the_terminal() -> None:
    message = (
        "Hi\x1b[2J\x1b]0;t\x07\x1b]8;;http://evil.test\x1b\\x\x1b]52;c;eA==\x07\r\u202e\u200b\u2066\x9b2J\nHost: a.test"
    )
    with asking(message=message, server="s\x1b[31m") as terminal:
        shown = terminal.expect(READY)
        terminal.line()
        assert result(terminal)[0]["answers"] == [[ACCEPT]]
    assert set(re.findall(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown)) == {"\r", "\n"}
    assert "\r" not in shown.replace("\r\n", "")
    assert re.findall(r"^Host: .*$", shown.replace("\r", ""), re.M) == ["Host: provider.test"]


def test_a_hung_up_terminal_cancels(tmp_path: Path) -> None:
    out = tmp_path / "result"
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "tests.support.asking", json.dumps({"url": URL, "result": str(out)})]
    process = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=children.ROOT, env=children.environment(),
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while READY.encode() not in shown:
        assert select.select([ours], [], [], 30)[0]
        shown += os.read(ours, 4096)
    os.close(ours)
    assert process.wait(20) == 0
    assert json.loads(out.read_text().removeprefix("RESULT "))["answers"] == [[CANCEL]]


# ---- where stdin is not the terminal --------------------------------------------------------------------------------


def shell(line: str, **given: Any) -> Terminal:
    """A command line on a terminal; {asking} stands for the program."""
    argument = json.dumps({"url": URL, "read_stdin": True, **given}).replace('"', '\\"')
    return Terminal(
        ["/bin/sh", "-c", line.replace("{asking}", f'{sys.executable} -m tests.support.asking "{argument}"')]
    )


def test_a_piped_stdin_is_the_programs_and_the_terminal_still_answers() -> None:
    with shell("printf 'one\\ntwo\\n' | {asking}") as terminal:
        terminal.expect(READY)
        terminal.line("cancel")
        facts, _ = result(terminal)
    assert facts["answers"] == [[CANCEL]]
    assert facts["stdin"] == "one\ntwo\n"


def test_a_redirected_stderr_gets_the_url_and_the_person_still_sees_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with shell(f"{{asking}} 2>{log} </dev/null") as terminal:
        assert f"\r\n{URL}\r\n" in terminal.expect(READY)
        terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[ACCEPT]]
    assert f"\n{URL}\n" in log.read_text()


def test_in_the_background_of_a_terminal_nobody_is_asked() -> None:
    with shell("set -m; {asking} & wait", read_stdin=False) as terminal:
        shown = terminal.expect("in the background of its terminal")
        facts, _ = result(terminal)
    assert f"\r\n{URL}\r\n" in shown
    assert facts["answers"] == [[CANCEL]]


def test_without_a_terminal_the_url_and_the_reason_are_printed() -> None:
    argv = [sys.executable, "-m", "tests.support.asking", json.dumps({"url": URL, "read_stdin": True, "options": {}})]
    done = subprocess.run(
        argv, input="data\n", capture_output=True, text=True, env=children.environment({"DISPLAY": ":9"}),
        cwd=children.ROOT, start_new_session=True, timeout=60, check=True,
    )  # fmt: skip
    facts = json.loads(done.stdout.removeprefix("RESULT "))
    assert facts["answers"] == [[CANCEL]]
    assert facts["stdin"] == "data\n"
    assert f"\n{URL}\n" in done.stderr
    assert "Nobody can be asked: there is no terminal to answer on. The request is cancelled." in done.stderr
    assert "browser now" not in done.stderr


def test_a_stderr_that_knows_no_unicode_is_no_obstacle() -> None:
    argv = [sys.executable, "-m", "tests.support.asking", json.dumps({"url": URL, "message": "Anmelden für Zoë 👍"})]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, cwd=children.ROOT, start_new_session=True, timeout=60,
        check=True, env=children.environment({"PYTHONIOENCODING": "ascii:strict"}),
    )  # fmt: skip
    assert b"Anmelden f\\xfcr Zo\\xeb" in done.stderr
