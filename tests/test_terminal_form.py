"""Forms on the terminal, line by line: what is shown, what is typed, what is sent; on ptys where it matters."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationOptions, GopherAgentElicitationRequest
from gopher_mcp_python import elicitation_runtime as runtime
from gopher_mcp_python.elicitation_runtime import Elicitor
from gopher_mcp_python.handlers.prompts import CANCELLED
from gopher_mcp_python.handlers.watch import Watch
from gopher_mcp_python.lone import LoneRequest
from gopher_mcp_python.toolset.handling import asker_for
from tests.support import children
from tests.support.choices import FIVE_CHOICES
from tests.support.terminal import Terminal

on_a_pty = pytest.mark.skipif(os.name == "nt", reason="ptys are a thing of POSIX systems")
ACCEPT, DECLINE, CANCEL = 1, 2, 3
STRING: dict[str, Any] = {"type": "string"}
FRUIT: dict[str, Any] = {"type": "array", "items": {"enum": ["apple", "banana", "cherry"]}, "maxItems": 2}
SEND = "Enter sends them"
PLAIN = {"GOPHER_MCP_PLAIN": "1"}  # these terminals could show a screen (tests/test_screen_form.py)


def form(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def request(schema: Any, **fields: Any) -> GopherAgentElicitationRequest:
    fields = {"server": "mail.test", "message": "Who are you?", **fields}
    return GopherAgentElicitationRequest("form", requested_schema=schema, **fields)


@pytest.fixture
def typed() -> Iterator[Callable[..., Any]]:
    """Answers a form with lines that come from no terminal."""

    def answer(schema: Any, *lines: str, **fields: Any) -> tuple[str, Any]:
        left = list(lines)
        runtime.set_elicitation_input_for_test(lambda _: left.pop(0) if left else None)
        answered = runtime.terminal_prompt(None).ask(request(schema, **fields), Watch())
        assert not left, "lines that nobody asked for"
        return answered.action, answered.content

    yield answer
    runtime.set_elicitation_input_for_test(None)


# ---- fields ----------------------------------------------------------------------------------------------------------


def test_a_form_is_shown_filled_in_reviewed_and_sent(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form(
        "firstName", firstName={**STRING, "minLength": 2, "description": "As in your passport"},
        size={"enum": ["s", "m"], "enumNames": ["small", "medium"], "default": "m"}, count={"type": "integer"},
    )  # fmt: skip
    assert typed(schema, "Ada", "", "", "") == ("accept", {"firstName": "Ada", "size": "m"})
    shown = capsys.readouterr()
    assert shown.out == ""
    for text in (
        "mail.test asks you to fill in 3 fields", "  | Who are you?", "Never give a password", '"back" goes',
        "(1 of 3, required) First name", "  | As in your passport", "  at least 2 characters", "(2 of 3) Size",
        "  1  small\n  2  medium\n", "Size [medium] (back, skip): ", "Count (Enter: leave out, back): ",
        "  1  First name: Ada\n  2  (default) Size: medium\n  3  (left out) Count\n", SEND,
    ):  # fmt: skip
        assert text in shown.err


@pytest.mark.parametrize(
    ("schema", "lines", "content"),
    [
        (STRING, ["x"], {"f": "x"}),
        (STRING, [""], {}),
        (STRING, ['""'], {"f": ""}),
        ({**STRING, "default": "a"}, [""], {"f": "a"}),
        ({**STRING, "default": "a"}, ["skip"], {}),
        ({**STRING, "default": ""}, [""], {"f": ""}),
        (STRING, ["skip"], {}),
        (STRING, ['"back"'], {"f": "back"}),
        (STRING, ['"Cancel"'], {"f": "Cancel"}),
        (STRING, ['""decline""'], {"f": '"decline"'}),
        (STRING, ['"skip"'], {"f": "skip"}),
        (STRING, ['"none"'], {"f": "none"}),
        (STRING, ['"other"'], {"f": '"other"'}),
        ({"enum": ["cancel", "go"]}, ['"cancel"'], {"f": "cancel"}),
        ({"enum": ["cancel", "go"]}, ["1"], {"f": "cancel"}),
        ({"type": "boolean", "default": False}, [""], {"f": False}),
        ({"type": "boolean"}, ["y"], {"f": True}),
        ({"type": "number"}, ["none"], {}),
        ({"type": "number"}, ["1 . 5"], {"f": 1.5}),
        ({"type": "integer"}, ["90071992547409910"], {"f": 90071992547409910}),
        (FRUIT, ["1, cherry"], {"f": ["apple", "cherry"]}),
        (FRUIT, ['""'], {"f": []}),
        ({**FRUIT, "minItems": 1}, [""], {}),
        ({"type": "array", "items": STRING}, ['a, "b, c"'], {"f": ["a", "b, c"]}),
        ({**STRING, "maxLength": 3, "default": "long"}, ["", "ok"], {"f": "ok"}),
        ({**STRING, "maxLength": 3, "default": "ok"}, ["long", ""], {"f": "ok"}),
        ({"type": "integer"}, ["abc", "1.5", "7"], {"f": 7}),
        (STRING, ["\x1b[Aup", "up"], {"f": "up"}),
        (STRING, ["x" * 5000, "y"], {"f": "y"}),
        (STRING, ["back", "x"], {"f": "x"}),
    ],
)
def test_lines_and_what_they_send(typed: Any, schema: dict[str, Any], lines: list[str], content: Any) -> None:
    assert typed(form(f=schema), *lines, "") == ("accept", content)


@pytest.mark.parametrize(("lines", "sent"), [(["", "x"], "x"), (['""'], ""), (["skip"], "skip")])
def test_a_required_text_needs_an_answer_and_skip_is_one(typed: Any, lines: list[str], sent: str) -> None:
    assert typed(form("f", f=STRING), *lines, "") == ("accept", {"f": sent})


def test_wrong_input_is_asked_again_with_the_reason(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form(n={"type": "integer", "maximum": 9}, t={**STRING, "minLength": 4})
    assert typed(schema, "ten", "10", "9", "abc", "abcd", "")[1] == {"n": 9, "t": "abcd"}
    shown = capsys.readouterr().err
    for text in ("N must be a whole number.", "N must be 9 or less.", "T needs 1 more character (at least 4)."):
        assert text in shown


def test_back_goes_to_the_field_before_and_keeps_what_it_holds(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form(a=STRING, b={"type": "integer"}, c=STRING)
    assert typed(schema, "1st", "2", "BACK", "back", "new", "", "3", "") == ("accept", {"a": "new", "b": 2, "c": "3"})
    assert "B [2] (back, skip): " in capsys.readouterr().err
    assert typed(schema, "x", "wrong", "back", "", "", "", "") == ("accept", {"a": "x"})


def test_the_review_changes_a_field_by_its_number(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form(a=STRING, b=STRING)
    lines = ["1", "2", "9", "#1", "one", "2", "back", "back", "two", "1", "skip", ""]
    assert typed(schema, *lines) == ("accept", {"b": "two"})
    shown = capsys.readouterr().err
    assert "The fields are 1 to 2" in shown
    assert "  1  A: one\n" in shown and "  1  (left out) A\n  2  B: two\n" in shown


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        (["cancel"], "cancel"), ([" Decline "], "decline"), (["a", "cancel"], "cancel"),
        (["a", "b", "decline"], "decline"), (["a", "b", "c"], "cancel"),
        (["a", "b", "no"], "decline"), (["a", "b", "quit"], "cancel"), (["a"], "cancel"),
    ],
)  # fmt: skip
def test_the_form_ends_at_any_place(typed: Any, lines: list[str], action: str) -> None:
    assert typed(form(a=STRING, b=STRING), *lines) == (action, None)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["y"], ("accept", {})), (["", "YES"], ("accept", {})), (["n"], ("decline", None)),
        (["decline"], ("decline", None)), (["cancel"], ("cancel", None)), (["q"], ("cancel", None)),
        ([], ("cancel", None)),
    ],
)  # fmt: skip
def test_an_empty_form_is_a_confirmation(typed: Any, lines: list[str], answer: Any, capsys: Any) -> None:
    assert typed(form(), *lines) == answer
    shown = capsys.readouterr().err
    assert "mail.test asks you to confirm this." in shown and "Do you agree?" in shown


def test_rules_for_all_answers_are_told_at_the_review(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = {**form(a=STRING, b=STRING), "minProperties": 1}
    assert typed(schema, "", "", "", "2", "x", "") == ("accept", {"b": "x"})
    assert "The answers together " in capsys.readouterr().err
    assert typed({**form(), "minProperties": 1}, "y") == ("cancel", None)


@pytest.mark.parametrize("schema", [None, {"type": "array"}, form(a={"type": "object"})])
def test_what_is_no_form_is_declined_without_asking(typed: Any, schema: Any) -> None:
    assert typed(schema) == ("decline", None)


def test_many_options_are_listed_in_parts(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form(f={"enum": [f"option {number}" for number in range(1, 71)]})
    assert typed(schema, "more", "more", "more", "70", "") == ("accept", {"f": "option 70"})
    shown = capsys.readouterr().err
    assert shown.count("  1  option 1\n") == 2
    assert '  30  option 30\n  ... 40 more: "more" lists them\n' in shown and "  70  option 70\n" in shown


def test_a_script_that_never_answers_ends(typed: Any) -> None:
    for line in ("", "back", "wrong", "1"):
        runtime.set_elicitation_input_for_test(lambda _, line=line: line)
        for schema in (form("f", f={"type": "integer", "maximum": 0}), form("f", f={"enum": ["1", "2"]}), form()):
            assert runtime.terminal_prompt(None).ask(request(schema), Watch()) == CANCELLED


def test_what_nobody_can_see_is_not_accepted(typed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert typed(form(f=STRING)) == ("cancel", None)


# ---- the conformance suite's shapes ----------------------------------------------------------------------------------


def test_the_five_choices_of_the_conformance_suite(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer = typed(form(**FIVE_CHOICES), "option1", "first option", "1", "1,option2", '"Second Option", #1', "")
    assert answer == ("accept", {
        "untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"], "titledMulti": ["value2", "value1"],
    })  # fmt: skip
    assert "  5  Titled multi: Second Option, First Option\n" in capsys.readouterr().err


def test_the_defaults_of_the_conformance_suite(typed: Any) -> None:
    properties = {
        "name": {**STRING, "default": "John Doe"}, "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": True},
        "status": {**STRING, "enum": ["active", "inactive"], "default": "active"},
    }  # fmt: skip
    values = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    assert typed(form(**properties), *[""] * 6) == ("accept", values)
    assert typed(form(*properties, **properties), *[""] * 6) == ("accept", values)


# ---- server text -----------------------------------------------------------------------------------------------------


def test_text_of_servers_drives_no_terminal(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]52;c;aGk=\x07\x9b2J\u202e\r\n(left out) "
    schema = form(
        a={**STRING, "title": bad, "description": bad, "default": bad, "pattern": "", "format": bad},
        **{bad: {"oneOf": [{"const": bad, "title": bad}], "default": bad}},
    )
    answer = typed({**schema, "title": bad, "description": bad}, "", "", "", message=bad, server=bad, tool=bad)
    assert answer == ("accept", {"a": bad, bad: bad})
    shown = capsys.readouterr().err
    assert not [one for one in shown if one != "\n" and (one < " " or one in "\x9b\u202e")]
    assert "\\x1b]52" in shown
    assert not [line for line in shown.split("\n") if line.strip().startswith("(left out)")]


# ---- secrets ---------------------------------------------------------------------------------------------------------


def test_a_secret_is_warned_of_and_never_shown(typed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    schema = form("password", password={**STRING, "default": "from-server"}, apiKey=STRING)
    answer = typed(schema, "hunter2", "k3y", "1", "", "")
    assert answer == ("accept", {"password": "hunter2", "apiKey": "k3y"})
    shown = capsys.readouterr().err
    assert shown.count("WARNING: this looks like a secret") == 3
    assert "  1  (not shown) Password\n  2  (not shown) Api key\n" in shown
    assert "Password [not shown]" in shown
    assert not [text for text in ("hunter2", "k3y", "from-server") if text in shown]


# ---- a real terminal -------------------------------------------------------------------------------------------------


def asking(schema: Any, size: tuple[int, int] = (40, 200), **given: Any) -> Terminal:
    what = json.dumps({"form": schema, "server": "mail.test", **given})
    return Terminal.python("-m", "tests.support.asking", what, size=size, env=PLAIN)


def result(terminal: Terminal) -> tuple[dict[str, Any], str]:
    shown = terminal.expect(r"RESULT \{.*\}")
    assert terminal.end()[0] == 0
    before, _, line = shown.partition("RESULT ")
    facts: dict[str, Any] = json.loads(line)
    return facts, before


@on_a_pty
def test_at_12_lines_of_40_columns() -> None:
    schema = form("name", name=STRING, fruit=FRUIT, **{f"f{number}": STRING for number in range(38)})
    with asking(schema, size=(12, 40)) as terminal:
        intro = terminal.expect("Name: ")
        assert all(len(line) < 40 for line in intro.replace("\r", "").split("\n")[:8])
        terminal.line("Ada")
        terminal.expect(r"Fruit \(Enter: leave out, back\): ")
        terminal.line("1,2")
        for number in range(38):
            terminal.expect(rf"F {number} .*: ")
            terminal.line()
        terminal.expect(SEND)
        terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[ACCEPT]] and facts["restored"]
    assert facts["content"] == {"name": "Ada", "fruit": ["apple", "banana"]}


@on_a_pty
def test_what_is_typed_is_seen_but_for_secrets() -> None:
    with asking(form(name=STRING, token=STRING, more=STRING)) as terminal:
        shown = terminal.expect("Name .*: ")
        for line, following in (("Ada-seen", "Token .*: "), ("s3cr3t", "More .*: "), ("also-seen", SEND)):
            terminal.line(line)
            shown += terminal.expect(following)
        terminal.line()
        facts, rest = result(terminal)
    assert facts["content"] == {"name": "Ada-seen", "token": "s3cr3t", "more": "also-seen"}
    assert facts["restored"]
    assert "Ada-seen" in shown and "also-seen" in shown
    assert "s3cr3t" not in shown + rest


@on_a_pty
@pytest.mark.parametrize("field", ["name", "password"])
@pytest.mark.parametrize(("key", "interrupted"), [("\x03", True), ("\x04", False)], ids=["ctrl-c", "ctrl-d"])
def test_ctrl_c_and_ctrl_d_cancel_and_the_terminal_is_as_before(field: str, key: str, interrupted: bool) -> None:
    with asking(form(**{field: STRING}), raw=True) as terminal:
        terminal.expect("leave out.*: ")
        terminal.send(key)
        facts, _ = result(terminal)
    assert facts == {"answers": [[CANCEL]], "content": None, "interrupted": interrupted, "restored": True}


@on_a_pty
def test_a_program_that_ends_meanwhile_leaves_a_terminal_that_shows_what_is_typed(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"""
import os, time
from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.elicitation_runtime import Elicitor
from gopher_mcp_python.lone import LoneRequest
request = GopherAgentElicitationRequest("form", requested_schema={form(password=STRING)!r})
Elicitor().answer_on_helper(LoneRequest(request, 0))
while not os.path.exists({str(seen)!r}):
    time.sleep(0.01)
"""
    with Terminal.python("-c", code, env=PLAIN) as terminal:
        terminal.expect("leave out.*: ")
        assert not termios.tcgetattr(terminal.child.child_fd)[3] & termios.ECHO
        seen.touch()
        terminal.child.expect(Terminal.eof)
        assert termios.tcgetattr(terminal.child.child_fd)[3] & (termios.ECHO | termios.ECHONL) == termios.ECHO


@on_a_pty
def test_a_form_that_is_withdrawn_ends_and_half_a_line_is_nobodys() -> None:
    with asking(form(password=STRING), withdraw_after=4.0, read_line=True) as terminal:
        terminal.expect("leave out.*: ")
        terminal.send("half-a-secret")
        terminal.expect("the request was withdrawn")
        time.sleep(0.2)
        terminal.line("for the program")
        facts, shown = result(terminal)
    assert (facts["answers"], facts["restored"], facts["line"]) == ([[CANCEL]], True, "for the program\n")
    assert "half-a-secret" not in shown


@on_a_pty
def test_the_time_limit_is_shown_and_cancels() -> None:
    with asking(form(name=STRING), options={"timeout_ms": 3000}) as terminal:
        terminal.expect(r"Time left: \d s")
        facts, shown = result(terminal)
    assert facts["answers"] == [[CANCEL]] and "The time is up" in shown


@on_a_pty
def test_the_prompt_is_shown_again_below_the_time() -> None:
    with asking(form(name=STRING), limit=13) as terminal:
        terminal.expect(r"Time left: 1[123] s")
        terminal.expect("leave out.*: ")
        terminal.expect(r"\r\nTime left: 10 s\.\r\nName .*: ")
        terminal.line("Ada")
        terminal.expect(SEND)
        terminal.line()
        assert result(terminal)[0]["content"] == {"name": "Ada"}


@on_a_pty
def test_lines_that_were_pasted_along_do_not_send_the_form() -> None:
    with asking(form(a=STRING, b=STRING)) as terminal:
        terminal.expect("A .*: ")
        terminal.send("one\ntwo\n\ncancel\n\n")
        terminal.expect(SEND)
        assert terminal.child.expect(["RESULT", Terminal.timed_out], timeout=0.4) == 1
        terminal.line("2")
        terminal.expect("B .two.*: ")
        terminal.send("three\n\n")
        terminal.expect(SEND)
        assert terminal.child.expect(["RESULT", Terminal.timed_out], timeout=0.4) == 1
        terminal.line()
        assert result(terminal)[0]["content"] == {"a": "one", "b": "three"}


@on_a_pty
@pytest.mark.parametrize(
    ("schema", "text"), [(form(a=STRING), "some\n\n"), (form(), "some\ny\n")], ids=["review", "question"]
)
def test_an_answer_that_was_pasted_along_is_none(schema: dict[str, Any], text: str) -> None:
    with asking(schema) as terminal:
        if schema["properties"]:
            terminal.expect("leave out.*: ")
            terminal.line()
            terminal.expect(SEND)
        else:
            terminal.expect("Do you agree")
        terminal.send(text)
        terminal.expect("That is no answer")
        terminal.line("cancel")
        assert result(terminal)[0]["answers"] == [[CANCEL]]


def test_what_is_wrapped_passes_for_no_line_of_ours(typed: Any, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.terminal_texts.columns", lambda: 80)
    fake = ("x" * 79 + " Never give a password") * 3
    field = {**STRING, "title": fake[:200], "description": fake, "default": fake, "minLength": 1}
    schema = {**form(f=field, o={"enum": ["a"], "enumNames": [fake]}), "title": fake}
    assert typed(schema, "", "1", "", message=fake)[0] == "accept"
    rows = [row[at : at + 80] for row in capsys.readouterr().err.split("\n") for at in range(0, max(1, len(row)), 80)]
    ours = "Never give a password, a key or other credentials in a form."
    assert [row for row in rows if row.startswith("Never")] == [ours]


@on_a_pty
def test_two_forms_take_turns() -> None:
    with asking(form(name=STRING), count=2) as terminal:
        for number in range(2):
            assert f"number {number}" in terminal.expect("Name .*: ")
            terminal.line(f"n{number}")
            terminal.expect(SEND)
            terminal.line()
        facts, _ = result(terminal)
    assert facts["answers"] == [[ACCEPT], [ACCEPT]]


def test_without_a_terminal_nobody_is_asked() -> None:
    given = json.dumps({"form": form(name=STRING), "server": "mail.test", "read_stdin": True})
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.asking", given], input="data\n", capture_output=True, text=True,
        env=children.environment(), cwd=children.ROOT, start_new_session=True, timeout=60, check=True,
    )  # fmt: skip
    facts = json.loads(done.stdout.removeprefix("RESULT "))
    assert (facts["answers"], facts["content"], facts["stdin"]) == ([[CANCEL]], None, "data\n")
    assert "mail.test asks you to fill in 1 field." in done.stderr
    assert "Nobody can be asked: there is no terminal to answer on. The request is cancelled." in done.stderr


# ---- the ways to it --------------------------------------------------------------------------------------------------


def test_the_default_handler_of_agents_and_of_toolsets_answers_forms(typed: Any) -> None:
    schema = form("name", name=STRING)
    elicitor = Elicitor(GopherAgentElicitationOptions())
    lines = ["Ada", "", "Eve", ""]
    runtime.set_elicitation_input_for_test(lambda _: lines.pop(0))
    lone = LoneRequest(request(schema), 0)
    elicitor.answer(lone)
    assert (lone.code, lone.content) == (ACCEPT, {"name": "Ada"})
    asker = asker_for({})
    assert asker is not None
    answer = asyncio.run(asker.ask(request(schema)))
    assert (answer.action, answer.content) == ("accept", {"name": "Eve"})


def test_a_broken_terminal_cancels_and_the_cause_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no terminal today")

    monkeypatch.setattr(runtime, "terminal_prompt", broken)
    elicitor = Elicitor(GopherAgentElicitationOptions())
    lone = LoneRequest(request(form(name=STRING)), 0)
    elicitor.answer(lone)
    assert (lone.code, lone.content) == (CANCEL, None)
    assert isinstance(elicitor.take_cause(), OSError)
