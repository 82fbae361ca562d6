"""The form on a full terminal: how it ends, what it leaves behind, sizes and hostile texts. On ptys."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.handlers.screen.look import columns_of
from gopher_mcp_python.handlers.watch import Watch

if os.name == "nt":
    pytest.skip("ptys are a thing of POSIX systems", allow_module_level=True)

import pty
import termios

from tests.support import children
from tests.support.screen import Here, Screen, set_size
from tests.support.terminal import Terminal

STRING: dict[str, Any] = {"type": "string"}
NAME: dict[str, Any] = {"type": "object", "properties": {"name": STRING}}
CLEAN = {"threads": 0, "descriptors": 0, "signals": True, "restored": True}
READY, REVIEW = "F1 help", "Your answers, not sent yet:"
DOWN, F2, F10, ENTER, ESC = "\x1b[B", "\x1bOQ", "\x1b[21~", "\r", "\x1b"
ON, OFF = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture(autouse=True)
def _unicode(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")
    yield


def left_alone(raw: str) -> bool:
    """Whether everything that was switched on is off again, in the right order."""
    pairs = ((ON, OFF), ("\x1b[?2004h", "\x1b[?2004l"), ("\x1b[?7l", "\x1b[?7h"), ("\x1b[?25l", "\x1b[?25h"))
    in_order = all(0 <= raw.rfind(first) < raw.rfind(last) for first, last in pairs)
    return in_order and not re.search(r"\x1b\[\?100[0-36]h", raw)  # no mouse


def fill(screen: Screen) -> dict[str, Any]:
    """Answers the form with one field."""
    screen.until(READY)
    screen.keys("Ada", F10).until(REVIEW)
    screen.keys(ENTER)
    return screen.answered()


# ---- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [{}, {"loop": True}, {"inside": True}, {"raw": True}], ids=str)
def test_nothing_is_left_behind_on_any_thread_and_beside_any_loop(where: dict[str, Any]) -> None:
    with Screen.asking(NAME, **where) as screen:
        facts = fill(screen)
    assert facts == {"action": "accept", "content": {"name": "Ada"}, "whole_server": None, **CLEAN}
    assert left_alone(screen.raw)
    assert "\r\nSent to mail.test: 1 field.\r\n" in screen.raw.rpartition(OFF)[2]


def test_ctrl_c_cancels_and_reaches_the_program() -> None:
    with Screen.asking(NAME) as screen:
        screen.until(READY)
        screen.keys("x", "\x03")
        assert screen.answered() == {"interrupted": True, **CLEAN}
    assert left_alone(screen.raw) and "\r\nCancelled.\r\n" in screen.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_gives_the_terminal_back(number: int) -> None:
    with Screen.asking(NAME) as screen:
        before = termios.tcgetattr(screen.child.child_fd)
        screen.until(READY)
        os.kill(screen.child.pid, number)
        screen.ended()
        assert termios.tcgetattr(screen.child.child_fd) == before
        assert screen.child.signalstatus == number
    assert left_alone(screen.raw)


def test_what_a_program_does_about_signals_stays_its_own() -> None:
    code = """
import signal
signal.signal(signal.SIGTERM, lambda *_: print("mine"))
from gopher_mcp_python.handlers.told_to_end import giving_back
before = signal.getsignal(signal.SIGHUP)
with giving_back(lambda: print("given back")):
    assert signal.getsignal(signal.SIGHUP) is not before
    signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
with giving_back(lambda: print("given back")):
    signal.raise_signal(signal.SIGHUP)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=children.environment({})
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine\n", "")


def test_a_second_ctrl_c_while_it_is_given_back_leaves_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    from gopher_mcp_python.handlers.screen.owning import OwnTerminal

    write, interrupts = OwnTerminal.write, [True]

    def interrupted(self: OwnTerminal, text: str) -> None:
        if OFF in text and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        write(self, text)

    with Here(NAME) as screen:
        screen.until(READY)
        monkeypatch.setattr(OwnTerminal, "write", interrupted)
        screen.keys("\x04")
        with pytest.raises(KeyboardInterrupt):
            screen.answer()
    assert left_alone(screen.raw)


def test_ctrl_z_and_ctrl_backslash_stop_nothing() -> None:
    with Screen.asking(NAME) as screen:
        screen.until(READY)
        screen.keys("\x1a\x1c\x11")
        assert fill(screen)["content"] == {"name": "Ada"}


def test_withdrawal_ends_it_and_what_was_typed_is_nobodys(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with Screen.asking(NAME, withdrawn=str(gone), read_line=True) as screen:
        screen.until(READY)
        screen.keys("half").until("filled in Name")
        gone.touch()
        screen.until("the request was withdrawn")
        screen.until(lambda seen: termios.tcgetattr(seen.child.child_fd)[3] & termios.ICANON)
        screen.child.sendline("for the program")
        facts = screen.answered()
    assert facts == {"action": "cancel", "content": None, "whole_server": None, "line": "for the program\n", **CLEAN}
    assert left_alone(screen.raw)


def test_the_time_limit_is_shown_and_cancels() -> None:
    left = [90_000]
    with Here(NAME, watch=Watch(engine_limit_ms=lambda: left[0])) as screen:
        screen.until("Time left: 1 min 30 s$")
        left[0] = 59_000
        screen.until("Time left: 59 s$")
        left[0] = 0
        assert screen.answer().action == "cancel"
    assert screen.raw.endswith("\r\nThe time is up: cancelled.\r\n")


def test_a_hung_up_terminal_cancels(tmp_path: Path) -> None:
    out = tmp_path / "result"
    ours, theirs = pty.openpty()
    set_size(theirs, 80, 24)
    given = json.dumps({"form": NAME, "result": str(out)})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.screen", given], stdin=theirs, stdout=theirs, stderr=theirs,
        cwd=children.ROOT, env=children.environment({"TERM": "xterm"}), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"credentials in a form" not in shown:
        assert select.select([ours], [], [], 40)[0]
        shown += os.read(ours, 4096)
    os.close(ours)
    assert process.wait(40) == 0
    assert json.loads(out.read_text().removeprefix("RESULT "))["action"] == "cancel"


def test_a_program_that_ends_meanwhile_gives_the_terminal_back(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"""
import os, time
from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.elicitation_runtime import Elicitor
from gopher_mcp_python.lone import LoneRequest
request = GopherAgentElicitationRequest("form", requested_schema={NAME!r})
Elicitor().answer_on_helper(LoneRequest(request, 0))
while not os.path.exists({str(seen)!r}):
    time.sleep(0.01)
"""
    with Screen([sys.executable, "-c", code]) as screen:
        before = termios.tcgetattr(screen.child.child_fd)
        screen.until(READY)
        assert not termios.tcgetattr(screen.child.child_fd)[3] & (termios.ECHO | termios.ICANON)
        seen.touch()
        screen.ended()
        after = termios.tcgetattr(screen.child.child_fd)
    assert after[3] & termios.ICANON and after[3] == before[3]
    assert left_alone(screen.raw)


def test_what_raises_in_the_form_gives_the_terminal_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from gopher_mcp_python.handlers.screen.filling import Filling

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    with Here(NAME) as screen:
        screen.until(READY)
        monkeypatch.setattr(Filling, "press", broken)
        screen.keys("x")
        with pytest.raises(RuntimeError, match="broken"):
            screen.answer()
    assert left_alone(screen.raw)


def test_a_stopped_program_that_goes_on_draws_again() -> None:
    with Screen.asking(NAME) as screen:
        screen.until(READY)
        attributes = termios.tcgetattr(screen.child.child_fd)
        attributes[3] |= termios.ICANON | termios.ECHO  # as a shell does when a program is stopped
        termios.tcsetattr(screen.child.child_fd, termios.TCSANOW, attributes)
        screen.until(lambda _: not termios.tcgetattr(screen.child.child_fd)[3] & termios.ICANON)
        screen.until("Tab next")
        assert fill(screen)["action"] == "accept"


# ---- where the terminal is -------------------------------------------------------------------------------------------


def shell(line: str, **given: Any) -> Screen:
    """A command line on a terminal; {asking} stands for the program."""
    argument = json.dumps({"form": NAME, "server": "mail.test", **given}).replace('"', '\\"')
    return Screen(["/bin/sh", "-c", line.replace("{asking}", f'{sys.executable} -m tests.support.screen "{argument}"')])


def test_a_piped_stdin_and_a_redirected_stderr_are_no_obstacle(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with shell(f"printf 'data\\n' | {{asking}} 2>{log}", read_line=True) as screen:
        facts = fill(screen)
    assert (facts["content"], facts["line"]) == ({"name": "Ada"}, "data\n")
    assert log.read_text() == "Sent to mail.test: 1 field.\n"
    assert left_alone(screen.raw)


def test_in_the_background_nobody_is_asked() -> None:
    with shell("set -m; {asking} & wait") as screen:
        shown = screen.until("Nobody can be asked: this process is in the background of its terminal")
        assert screen.answered()["action"] == "cancel"
    assert ON not in screen.raw and "skip" not in shown


@pytest.mark.parametrize(
    ("env", "size"),
    [({"GOPHER_MCP_PLAIN": "1"}, (80, 24)), ({"TERM": "dumb"}, (80, 24)), ({}, (39, 24)), ({}, (80, 11))],
    ids=str,
)  # fmt: skip
def test_line_by_line_where_no_screen_can_be(env: dict[str, str], size: tuple[int, int]) -> None:
    with Screen.asking(NAME, size, env) as screen:
        screen.until("leave out")
        screen.child.sendline("Ada")
        screen.until("Enter sends them")
        screen.child.sendline("")
        assert screen.answered()["content"] == {"name": "Ada"}
    assert "\x1b" not in screen.raw


def test_without_prompt_toolkit_line_by_line() -> None:
    code = "import sys, runpy; sys.modules['prompt_toolkit'] = None; runpy.run_module(sys.argv[2], run_name='__main__')"
    with Screen([sys.executable, "-c", code, json.dumps({"form": NAME}), "tests.support.screen"]) as screen:
        screen.until("leave out")
        screen.child.sendline("")
        screen.until("Enter sends them")
        screen.child.sendline("")
        assert screen.answered()["content"] == {}
    assert ON not in screen.raw


def test_two_forms_take_turns() -> None:
    what = json.dumps({"form": NAME, "count": 2})
    with Screen([sys.executable, "-m", "tests.support.asking", what]) as screen:
        for number in range(2):
            screen.until(f"number {number}")
            screen.keys(f"n{number}", F10).until(REVIEW)
            screen.keys(ENTER)
        assert screen.answered()["answers"] == [[1], [1]]


# ---- sizes -----------------------------------------------------------------------------------------------------------

MANY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {**STRING, "description": "What you are called. " * 20},
        "fruit": {"type": "array", "items": {"enum": [f"fruit {n}" for n in range(40)]}, "description": "Pick some"},
        **{f"f{number}": STRING for number in range(38)},
    },
    "required": ["name"],
}


def fits(screen: Any, columns: int, lines: int) -> bool:
    """Whether a whole screen is there: who asks, the warning, the keys."""
    text = screen.lines
    parts = text[0].startswith(" mail.test asks") and "credentials in a form" in " ".join(text)
    return len(text) == lines and parts and "F1 help" in text[-1] and max(map(len, text)) < columns


def test_at_40_columns_of_12_lines_everything_that_counts_is_visible() -> None:
    with Here(MANY, (40, 12), message="Please. " * 300) as screen:
        screen.until(READY)
        assert fits(screen, 40, 12) and "F10 review" in screen.lines[-1] and "^X decline" in screen.lines[-1]
        assert "F2" in screen.text and "\n    ›\n" in screen.text
        screen.keys("Ada", "\t").until("\\[ \\] fruit 0")
        screen.keys(*[DOWN] * 20, " ").until("\\[×\\] fruit 20")
        screen.keys("\t").until("▸ left out  F 0")
        assert fits(screen, 40, 12)
        screen.keys("\x1b[1;5F", "last").until("▸ filled in F 37\n +› last")
        screen.keys(F10).until(REVIEW)
        screen.keys("\x1b[F").until("▸ filled in F 37: last")
        assert "F1 help" in screen.lines[-1]
        screen.keys(ENTER)
        assert screen.answer().content == {"name": "Ada", "fruit": ["fruit 20"], "f37": "last"}


def test_a_resize_is_followed_on_a_thread_without_signals() -> None:
    with Here(MANY, (80, 24)) as screen:
        screen.until(READY)
        screen.keys("Ada").until("filled in Name")
        for size in ((40, 12), (200, 50), (24, 7), (100, 30)):
            screen.resize(*size)
            screen.until(lambda seen, size=size: len(seen.lines) == size[1] and "F1 help" in seen.lines[-1])
            screen.until("› Ada")
        assert fits(screen, 100, 30)
        screen.keys("!", F10).until("Name: Ada!")
        screen.keys(ENTER)
        assert screen.answer().content == {"name": "Ada!"}


def test_of_many_fields_only_the_visible_ones_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.asking.REPAINT_EVERY", 3600.0)
    schema = {"type": "object", "properties": {f"f{number}": STRING for number in range(500)}}
    with Here(schema) as screen:
        screen.until(READY)
        assert "F 300" not in screen.raw
        screen.keys("\x1b[1;5F").until("▸ left out  F 499")
        assert "F 300" not in screen.raw
        before = len(screen.raw)
        screen.keys("x").until("▸ filled in F 499")
        assert len(screen.raw) - before < 600  # bytes: lines that did not change are not written again


# ---- texts -----------------------------------------------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]52;c;aGk=\x07\x9b2J\u202e\u2066\u200b\r\n  filled in Fake: yes\x1b[?1049l\t漢字e" + "\u0300" * 9


def test_text_of_servers_drives_no_terminal_and_passes_for_nothing() -> None:
    field = {**STRING, "title": HOSTILE, "description": HOSTILE, "default": HOSTILE, "format": HOSTILE}
    option = {"oneOf": [{"const": HOSTILE, "title": HOSTILE}, {"const": "b"}]}
    properties = {"a": field, HOSTILE: option, "c": {**STRING, "default": HOSTILE}}
    schema = {"type": "object", "title": HOSTILE, "properties": properties}
    with Here(schema, (100, 40), message=HOSTILE, server=HOSTILE, tool=HOSTILE) as screen:
        screen.until("▸ default ")
        fakes = re.compile(r"^(?!▸ |  (default|left out|filled in) )\s*filled in", re.M)
        assert not fakes.search(screen.text)
        screen.keys("\t", DOWN, " ").until("\\(•\\) ")
        screen.keys(F2).until("About this field")
        screen.keys("q", F10).until(REVIEW)
        assert not fakes.search(screen.text)
        screen.keys(ENTER)
        assert screen.answer().content == {"a": HOSTILE, HOSTILE: HOSTILE, "c": HOSTILE}
    rest = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\[0 q", "", screen.raw)  # what a screen is drawn with
    odd = {one for one in rest if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co")}
    assert odd == {"\r", "\n"} and rest.count("\n") == 2  # only around the last line
    assert screen.raw.count("\x1b[2J") <= 2 and screen.raw.count(OFF) == 1 and "\x1b]" not in screen.raw


def test_wide_and_combining_signs_keep_columns_right() -> None:
    schema = {"type": "object", "properties": {"a": {**STRING, "title": "漢字" * 30}, "b": STRING}}
    with Here(schema, (60, 20)) as screen:
        screen.until(READY)
        screen.keys("漢e\u0301x").until("› 漢")
        screen.until(lambda seen: seen.cursor[1] == 4 + 2 + 2 + 1 + 1)
        screen.keys("字" * 40).until(lambda seen: 50 <= seen.cursor[1] <= 59)
        screen.keys("\x1b[H").until(lambda seen: seen.cursor[1] == 6)
        assert max(map(columns_of, screen.lines)) == 59 and len(screen.lines) == 20
        assert "\n    › 漢e\u0301x字" in screen.text or "\n    › 漢\u00e9x字" in screen.text


@pytest.mark.parametrize("env", [{}, {"PYTHONIOENCODING": "latin-1"}], ids=["C", "latin-1"])
def test_terminals_without_unicode(env: dict[str, str]) -> None:
    schema = {"type": "object", "properties": {"name": {**STRING, "title": "Größe 漢", "default": "ü"}}}
    with Terminal.python(
        "-m", "tests.support.screen", json.dumps({"form": schema}), env={"LC_ALL": "C", **env}, size=(24, 80)
    ) as terminal:
        shown = terminal.expect("other credentials in a form")
        terminal.send(F10)
        shown += terminal.expect(REVIEW)
        terminal.send(ENTER)
        shown += terminal.expect("RESULT .*}")
    assert "> " in shown and not set(shown) & set("▸│─›•×…")
    assert ("\\u6f22" in shown) == ("PYTHONIOENCODING" in env)
    assert json.loads(re.findall(r"RESULT (.*})", shown)[0])["content"] == {"name": "ü"}


def test_no_color_is_respected() -> None:
    schema = {**NAME, "required": ["name"]}
    for env, colours in (({"NO_COLOR": "1"}, False), ({}, True)):
        with Screen.asking(schema, env=env) as screen:
            screen.until(READY)
            screen.keys("\x04")
            assert screen.answered()["action"] == "cancel"
        assert bool(re.search(r"\x1b\[[0-9;]*3[1-7][;m]", screen.raw)) is colours


def test_signals_of_the_program_stay_its_own() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGWINCH, lambda number, _: seen.append(number))
    try:
        with Here(NAME) as screen:
            screen.until(READY)
            os.kill(os.getpid(), signal.SIGWINCH)
            screen.keys("\x04")
            assert screen.answer().action == "cancel"
        assert seen == [signal.SIGWINCH]
    finally:
        signal.signal(signal.SIGWINCH, before)


def test_a_long_paste_that_the_terminal_does_not_mark_is_taken_at_once() -> None:
    with Here(NAME) as screen:
        screen.until(READY)
        screen.keys("x" * 30_000, "END").until("xEND")
        screen.keys(F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"name": "x" * 30_000 + "END"}


# ---- a real terminal program -----------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux_the_persons_own_screen_comes_back() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path has to be short
        _in_tmux(folder)


def _in_tmux(folder: str) -> None:
    given = shlex.quote(json.dumps({"form": {**MANY, "required": []}, "server": "mail.test"}))
    command = f"echo my own line; {sys.executable} -m tests.support.screen {given}; exec sleep 100"
    env = children.environment({"LC_ALL": "C.UTF-8", "TMUX": "", "TMUX_TMPDIR": folder})

    def tmux(*arguments: str) -> str:
        argv = ["tmux", "-f", "/dev/null", *arguments]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60).stdout

    def until(pattern: str) -> str:
        end = time.monotonic() + 40
        while not re.search(pattern, shown := tmux("capture-pane", "-p", "-t", "form"), re.M):
            assert time.monotonic() < end, f"not shown: {pattern}\n{shown}"
            time.sleep(0.05)
        return shown

    tmux("new-session", "-d", "-s", "form", "-x", "80", "-y", "24", "-c", str(children.ROOT), command)
    try:
        assert "my own line" not in until(READY)
        tmux("send-keys", "-t", "form", "Ada", "Tab")
        until("▸ left out  Fruit")
        for columns, lines in ((40, 12), (120, 40)):
            tmux("resize-window", "-t", "form", "-x", str(columns), "-y", str(lines))
            until(f"(?m)^ mail.test asks(.*\n){{{lines - 1}}}.*{READY}")
        tmux("send-keys", "-t", "form", "F10")
        until(REVIEW)
        tmux("send-keys", "-t", "form", "Enter")
        shown = until("RESULT")
        assert shown.startswith("my own line\n\nSent to mail.test: 1 field.\n")
        flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}"
        assert tmux("display-message", "-p", "-t", "form", flags) == "0 0 1\n"
    finally:
        tmux("kill-server")
