"""The form on a full terminal: every key, what is shown, what is sent. Asked by a thread, on a real pty."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from gopher_mcp_python.handlers.watch import Watch
from tests.support.choices import FIVE_CHOICES

if os.name == "nt":
    pytest.skip("ptys are a thing of POSIX systems", allow_module_level=True)

from tests.support.screen import Here

STRING: dict[str, Any] = {"type": "string"}
FRUIT: dict[str, Any] = {"type": "array", "items": {"enum": ["apple", "banana", "cherry"]}, "maxItems": 2}
REVIEW = "Your answers, not sent yet:"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
PAGE_UP, PAGE_DOWN, HOME, END, BACK_TAB = "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F", "\x1b[Z"
F1, F2, F10, ESC, ENTER = "\x1bOP", "\x1bOQ", "\x1b[21~", "\x1b", "\r"
BACKSPACE, DELETE, C_A, C_D, C_E, C_K, C_L, C_O, C_R, C_T, C_U, C_W, C_X = (
    "\x7f", "\x1b[3~", "\x01", "\x04", "\x05", "\x0b", "\x0c", "\x0f", "\x12", "\x14", "\x15", "\x17", "\x18",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _unicode(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.deciding.HELD_FOR", 0.0)
    yield


def form(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def sent(schema: Any, *keys: str, **more: Any) -> Any:
    """What a form sends after some keys and the review."""
    with Here(schema, **more) as screen:
        screen.until("F1 help")
        screen.keys(*keys, F10).until(REVIEW)
        screen.keys(ENTER)
        answer = screen.answer()
    assert answer.action == "accept"
    return dict(answer.content)


# ---- the whole of it -------------------------------------------------------------------------------------------------


def test_a_form_is_shown_filled_in_reviewed_and_sent() -> None:
    schema = form(
        "firstName", firstName={**STRING, "minLength": 2, "description": "As in your passport"},
        size={"enum": ["s", "m"], "enumNames": ["small", "medium"], "default": "m"}, count={"type": "integer"},
    )  # fmt: skip
    with Here(schema) as screen:
        first = screen.until("F1 help")
        for line in (
            "^ mail.test asks you to fill in 3 fields", "^│ Who are you\\?", "^Never give a password",
            "^▸ needed    First name", "^    │ As in your passport", "^    at least 2 characters", "^    ›",
            "^  default   Size: medium",
            "^  left out  Count", "^1 of 3 still needed", "Tab next  F10 review .*\\^X decline",
        ):  # fmt: skip
            assert re.search(line, first, re.M), line
        screen.keys("A").until("✗ needs 1 more character \\(at least 2\\)")
        assert "▸ not right First name" in screen.text
        screen.keys("da").until("▸ filled in First name")
        screen.keys("\t").until("▸ default   Size\n    choose one\n      *\\( \\) small\n      *\\(•\\) medium")
        screen.keys("\t\t").until(REVIEW)
        review = screen.text
        assert "  filled in First name: Ada\n  default   Size: medium\n  left out  Count\n" in review
        screen.keys(ENTER)
        answer = screen.answer()
    assert (answer.action, answer.content) == ("accept", {"firstName": "Ada", "size": "m"})
    assert screen.raw.endswith("\r\nSent to mail.test: 2 fields.\r\n")


@pytest.mark.parametrize(
    ("schema", "keys", "content"),
    [
        (STRING, "", {}),
        (STRING, "x", {"f": "x"}),
        (STRING, "x" + BACKSPACE, {}),
        (STRING, C_T, {"f": ""}),
        (STRING, '""', {"f": ""}),
        (STRING, "cancel", {"f": "cancel"}),
        ({**STRING, "default": "ab"}, "", {"f": "ab"}),
        ({**STRING, "default": "ab"}, C_O, {}),
        ({**STRING, "default": "ab"}, C_O + "x", {"f": "x"}),
        ({**STRING, "default": "ab"}, C_T, {"f": ""}),
        ({**STRING, "default": "ab"}, "c" + C_R, {"f": "ab"}),
        ({**STRING, "default": "ab"}, LEFT + "-", {"f": "a-b"}),
        ({**STRING, "default": "ab"}, HOME + "-" + END + "+", {"f": "-ab+"}),
        ({**STRING, "default": "ab"}, C_A + DELETE, {"f": "b"}),
        ({**STRING, "default": "ab cd"}, C_W + "x", {"f": "ab x"}),
        ({**STRING, "default": "ab cd"}, C_U + "x", {"f": "x"}),
        ({**STRING, "default": "ab cd"}, C_A + RIGHT + C_K + C_E + "!", {"f": "a!"}),
        ({**STRING, "default": "ab cd"}, "\x1b[1;5D-", {"f": "ab -cd"}),
        ({**STRING, "default": ""}, "", {"f": ""}),
        (STRING, "\x1b[200~one\r\ntwo\r\n\x1b[201~", {"f": "one\ntwo"}),
        (STRING, "\x1b[200~a\x1b[31m\x07b\x1b[201~", {"f": "a[31mb"}),
        (STRING, "Zoë 漢字 👍", {"f": "Zoë 漢字 👍"}),
        (STRING, "a\x1bxb\x1b[Ic", {"f": "abc"}),
        ({"type": "integer"}, "90071992547409910", {"f": 90071992547409910}),
        ({"type": "number"}, "1 . 5", {"f": 1.5}),
        ({"type": "number"}, "none", {}),
        ({"type": "number", "default": 0}, "", {"f": 0}),
        ({"type": "boolean"}, "y", {"f": True}),
        ({"type": "boolean"}, "n", {"f": False}),
        ({"type": "boolean"}, " ", {"f": True}),
        ({"type": "boolean", "default": True}, " ", {"f": False}),
        ({"type": "boolean", "default": False}, "", {"f": False}),
        ({"type": "boolean", "default": True}, "n" + C_R, {"f": True}),
        ({"type": "boolean"}, "y" + C_O, {}),
        ({"enum": ["a", "b", "c"]}, DOWN + DOWN + " ", {"f": "b"}),
        ({"enum": ["a", "b", "c"]}, DOWN + DOWN + UP + " ", {"f": "a"}),
        ({"enum": ["a", "b", "c"]}, "b ", {"f": "b"}),
        ({"enum": ["a", "b", "c"]}, "B ", {"f": "b"}),
        ({"enum": ["a", "b", "c"]}, "x" + BACKSPACE + "c ", {"f": "c"}),
        ({"enum": ["a", "b", "c"], "default": "b"}, "", {"f": "b"}),
        ({"enum": ["a", "b", "c"], "default": "b"}, DOWN + " ", {"f": "c"}),
        ({"enum": ["a", "b", "c"], "default": "b"}, C_O, {}),
        ({"enum": ["a", "b", "c"]}, " ", {}),
        (FRUIT, " " + DOWN + DOWN + " ", {"f": ["apple", "cherry"]}),
        (FRUIT, " " + " ", {}),
        (FRUIT, "ban ", {"f": ["banana"]}),
        (FRUIT, C_T, {"f": []}),
        ({**FRUIT, "minItems": 1}, "", {}),
        ({**FRUIT, "default": ["banana"]}, UP + " ", {"f": ["apple", "banana"]}),
        ({"type": "array", "items": STRING}, 'a, "b, c"', {"f": ["a", "b, c"]}),
        ({"type": "array", "items": STRING, "default": ["b, c"]}, ", d", {"f": ["b, c", "d"]}),
    ],
)
def test_keys_and_what_they_send(schema: dict[str, Any], keys: str, content: Any) -> None:
    assert sent(form(f=schema), *([keys] if keys else [])) == content


def test_enter_takes_the_option_under_the_cursor_and_goes_on() -> None:
    schema = form(f={"enum": ["a", "b"]}, g={"enum": ["c", "d"]}, h=STRING)
    assert sent(schema, DOWN + ENTER + ENTER + "x") == {"f": "a", "h": "x"}


def test_arrows_leave_a_list_at_its_ends() -> None:
    schema = form(a=STRING, f={"enum": ["x", "y"]}, z=STRING)
    assert sent(schema, "\t" + DOWN * 3 + "last" + UP + UP * 4 + "first") == {"a": "first", "z": "last"}


def test_tab_and_its_like_move() -> None:
    schema = form(**dict.fromkeys("abcdef", STRING))
    keys = "1\t2" + ENTER + "3" + DOWN + "4" + BACK_TAB + "x" + UP + "y" + "\x1b[1;5F" + "6" + "\x1b[1;5H" + "z"
    assert sent(schema, keys) == {"a": "1z", "b": "2y", "c": "3x", "d": "4", "f": "6"}


def test_page_keys_move_over_several_fields() -> None:
    schema = form(**{f"f{number}": STRING for number in range(40)})
    with Here(schema) as screen:
        screen.until("▸ left out  F 0")
        screen.keys(PAGE_DOWN).until("▸ left out  F [1-9]")
        screen.keys(PAGE_DOWN, PAGE_DOWN, PAGE_DOWN, PAGE_DOWN, PAGE_DOWN, PAGE_DOWN).until("▸ left out  F 39")
        screen.keys(PAGE_UP).until("▸ left out  F 3[0-8]")


# ---- what is wrong ---------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_told_as_it_is_typed_and_keeps_the_form() -> None:
    schema = form("name", name=STRING, n={"type": "integer", "maximum": 9}, fruit={**FRUIT, "minItems": 1})
    with Here(schema) as screen:
        screen.until("F1 help")
        screen.keys("\t", "ten").until("✗ must be a whole number")
        screen.keys(UP).until("  not right N: ten\n +✗ must be a whole number")
        screen.keys(F10).until("^2 fields need another answer")
        assert "▸ needed    Name" in screen.text and "✗ needs an answer" in screen.text
        screen.keys("Ada\t" + C_U + "10").until("✗ must be 9 or less")
        screen.keys(BACKSPACE, "\t").until("choose 1 to 2")
        screen.keys(" ", DOWN, " ", DOWN, " ").until("✗ has 1 too many: choose 1 to 2")
        assert screen.text.count("[×]") == 3
        screen.keys(" ").until("\\(2 chosen\\)")
        screen.keys(F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"name": "Ada", "n": 1, "fruit": ["apple", "banana"]}


def test_a_default_against_the_rules_is_told_at_the_review() -> None:
    with Here(form(f={**STRING, "maxLength": 3, "default": "long"})) as screen:
        screen.until("F1 help")
        screen.keys(F10).until("✗ has 1 character too many")
        screen.keys(BACKSPACE, F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"f": "lon"}


def test_rules_for_all_answers_are_told_at_the_review() -> None:
    with Here({**form(a=STRING, b=STRING), "minProperties": 1}) as screen:
        screen.until("F1 help")
        screen.keys(F10).until("^The answers together")
        screen.keys("x", F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"a": "x"}


def test_what_can_not_be_empty_says_so() -> None:
    with Here(form(n={"type": "integer"}, s={**STRING, "minLength": 1}, r=STRING)) as screen:
        screen.until("F1 help")
        screen.keys(C_T).until("^Only texts and lists can be empty")
        screen.keys("\t", C_T).until("✗ needs 1 more character")


# ---- the review ------------------------------------------------------------------------------------------------------


def test_the_review_goes_back_and_changes_a_field() -> None:
    with Here(form(a=STRING, b=STRING)) as screen:
        screen.until("F1 help")
        screen.keys("one", "\t", "two", F10).until(REVIEW)
        screen.keys(ESC).until("▸ filled in B")
        screen.keys("!", F10).until("filled in B: two!")
        screen.keys(DOWN).until("▸ filled in A: one")
        screen.keys("c").until("▸ filled in A$")
        screen.keys("!", F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"a": "one!", "b": "two!"}


def test_a_paste_that_the_terminal_does_not_mark_sends_nothing() -> None:
    with Here(form(a=STRING, b=STRING)) as screen:
        screen.until("F1 help")
        screen.keys("one\rtwo\r\r\r\r").until(REVIEW)
        screen.keys("\r\r", "x").until(lambda seen: REVIEW in seen.text)
        screen.keys(ESC).until("▸ filled in B")
        screen.keys(F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {"a": "one", "b": "two"}


def test_a_marked_paste_never_presses_enter() -> None:
    with Here(form(a={"enum": ["x", "y"]}, b={"type": "boolean"}, c=STRING)) as screen:
        screen.until("F1 help")
        paste = "\x1b[200~y\ry\r\r\x1b[201~"
        screen.keys(paste, "\t", paste, "\t", paste).until("▸ filled in C")
        screen.keys(F10).until("left out  A\n  left out  B\n  filled in C: y y")
        screen.keys(paste, DOWN).until("▸ left out  A")
        screen.keys(ENTER)
        assert screen.answer().content == {"c": "y\ny"}


# ---- keys that nobody meant as an answer -----------------------------------------------------------------------------


def test_enter_that_is_held_down_does_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.keys.HELD", 3600.0)
    with Here(form(a=STRING, b=STRING)) as screen:
        screen.until("F1 help")
        screen.keys(ENTER).until("▸ left out  B")
        screen.keys(ENTER).until(REVIEW)
        screen.keys(ENTER).until("Enter once more sends them")
        screen.keys(DOWN).until("▸ left out  A")
        screen.keys(ENTER)
        assert screen.answer().content == {}


def test_an_unmarked_paste_in_several_parts_does_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.keys.HELD", 3600.0)
    with Here(form(a=STRING)) as screen:
        screen.until("F1 help")
        screen.keys(F10).until(REVIEW)
        screen.keys("x", ENTER).until("Enter once more sends them")
        screen.keys(ESC).until("▸ left out  A")
        screen.keys(F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {}


@pytest.mark.parametrize(("key", "action"), [("y", "accept"), ("n", "decline")])
def test_a_key_that_was_on_its_way_confirms_nothing(monkeypatch: pytest.MonkeyPatch, key: str, action: str) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.deciding.HELD_FOR", 3600.0)
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.keys.HELD", 3600.0)
    with Here(form()) as screen:
        screen.until("Do you agree")
        screen.keys(key).until("too soon")
        monkeypatch.setattr("gopher_mcp_python.handlers.screen.deciding.HELD_FOR", 0.0)
        screen.keys(F1).until("^Help")
        screen.keys(ESC).until("Do you agree")
        screen.keys(key)
        assert screen.answer().action == action


def test_a_key_that_is_held_down_confirms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Here(form()) as screen:
        screen.until("Do you agree")
        monkeypatch.setattr("gopher_mcp_python.handlers.screen.deciding.HELD_FOR", 3600.0)
        screen.keys("y").until("too soon")
        monkeypatch.setattr("gopher_mcp_python.handlers.screen.deciding.HELD_FOR", 0.0)
        monkeypatch.setattr("gopher_mcp_python.handlers.screen.keys.HELD", 3600.0)
        screen.keys("y", F1).until("^Help")
        screen.keys(ESC).until("Do you agree")
        screen.keys("n")
        assert screen.answer().action == "decline"


def test_letters_of_a_paste_are_no_other_answer() -> None:
    with Here(form(a=STRING), watch=Watch(lasting=("session", "always"))) as screen:
        screen.until("F1 help")
        screen.keys(C_X).until("Decline this request")
        screen.keys("what a word", ESC).until("▸ left out  A")
        screen.keys(C_D)
        assert screen.answer().whole_server is None


# ---- other answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "action", "whole"),
    [
        ([C_X, "d"], "decline", None), ([C_X, ENTER], "decline", None), ([C_X, "a"], "decline", "session"),
        ([C_X, "w"], "decline", "always"), ([C_X, DOWN, ENTER], "decline", "session"), ([C_X, "c"], "cancel", None),
        ([C_X, UP, ENTER], "cancel", None), ([C_D], "cancel", None), (["x", C_D], "cancel", None),
        ([ESC + ESC], "cancel", None), (["x", C_X, ESC, C_X, "d"], "decline", None),
    ],
)  # fmt: skip
def test_the_form_ends_in_other_ways(keys: list[str], action: str, whole: str | None) -> None:
    with Here(form(a=STRING), watch=Watch(lasting=("session", "always"))) as screen:
        screen.until("F1 help")
        for key in keys[:-1]:
            screen.keys(key)
            marked = {UP: "Cancel, without an answer", DOWN: "Decline everything of this server, for this session"}
            screen.until({C_X: "d  Decline this", ESC: "Tab next"}.get(key, "F1 help"))
            screen.until(lambda seen, key=key, marked=marked: key not in marked or marked[key] in seen.marked())
        screen.keys(keys[-1])
        answer = screen.answer()
    assert (answer.action, answer.content, answer.whole_server) == (action, None, whole)
    last = screen.raw.strip().splitlines()[-1]
    assert last.startswith(f"{'Cancelled' if action == 'cancel' else 'Declined'}: nothing was sent to mail.test.")


def test_what_does_not_last_is_not_offered() -> None:
    with Here(form(a=STRING), watch=Watch(lasting=("session",))) as screen:
        screen.until("F1 help")
        assert "always" not in screen.keys(C_X).until("for this session")
        screen.keys("w", F1).until("^Help")
        screen.keys(ESC).until("Decline this request")
        screen.keys("d")
        assert screen.answer().whole_server is None
    with Here(form(a=STRING)) as screen:
        screen.until("F1 help")
        assert "everything" not in screen.keys(C_X).until("Decline this request")
        screen.keys("a", F1).until("^Help")
        screen.keys(ESC).until("Decline this request")
        screen.keys("c")
        assert screen.answer().action == "cancel"


def test_one_esc_only_tells_what_a_second_would_do() -> None:
    with Here(form(a=STRING)) as screen:
        screen.until("F1 help")
        screen.keys(ESC).until("^Esc again cancels: nothing is sent")
        screen.keys("x").until(lambda seen: "Esc again" not in seen.text)
        screen.keys(ESC).until("^Esc again cancels: what you filled in is lost")
        screen.keys(ESC)
        assert screen.answer().action == "cancel"


@pytest.mark.parametrize(
    ("keys", "answer"),
    [("y", ("accept", {})), ("N", ("decline", None)), (C_D, ("cancel", None)), (ESC + ESC, ("cancel", None))],
)
def test_an_empty_form_is_a_confirmation(keys: str, answer: Any) -> None:
    with Here(form(), message="Delete 3 files?") as screen:
        shown = screen.until("Do you agree\\?")
        assert "mail.test asks you to confirm this" in shown and "│ Delete 3 files?" in shown
        screen.keys(ENTER + " ", "\x1b[200~y\x1b[201~", F1).until("^Help")
        screen.keys(ESC).until("Do you agree")
        screen.keys(keys)
        given = screen.answer()
    assert (given.action, given.content) == answer


def test_a_confirmation_that_can_not_be_sent() -> None:
    with Here({**form(), "minProperties": 1}) as screen:
        screen.until("Do you agree")
        screen.keys("y").until("It can't be sent")
        screen.keys(F1).until("^Help")
        screen.keys(ESC).until("Do you agree")
        screen.keys("n")
        assert screen.answer().action == "decline"


# ---- reading ---------------------------------------------------------------------------------------------------------


def test_help_and_the_whole_text_of_the_server_can_be_read() -> None:
    long = "\n".join(f"message line {number}" for number in range(60))
    about = "\n".join(f"about line {number}" for number in range(30))
    with Here(form(a={**STRING, "description": about}), message=long) as screen:
        shown = screen.until("F1 help")
        assert "message line 0" in shown and "message line 59" not in shown and "F2 shows all" in shown
        screen.keys(F1).until("Shift-Tab, Up: field before")
        screen.keys(ESC).until("▸ left out  A")
        screen.keys(F2).until("message line 8")
        screen.keys(DOWN * 3, PAGE_DOWN).until("message line 20")
        screen.keys(END).until("about line 29")
        screen.keys(HOME).until("mail.test says")
        screen.keys("q").until("▸ left out  A")
        screen.keys(F2, C_X).until("Decline this request")
        screen.keys("d")
        assert screen.answer().action == "decline"


def test_log_lines_of_the_program_do_not_cover_the_form_for_long() -> None:
    with Here(form(a=STRING)) as screen:
        screen.until("F1 help")
        os.write(screen.theirs, b"noise\r\n" * 99)
        screen.until(lambda seen: "noise" in seen.raw)
        screen.until(lambda seen: "noise" not in seen.text and "▸ left out  A" in seen.text)
        assert screen.text.startswith(" mail.test asks") and "F1 help" in screen.lines[-1]


def test_lost_drawings_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.handlers.screen.asking.REPAINT_EVERY", 3600.0)
    with Here(form(a=STRING)) as screen:
        screen.until("F1 help")
        os.write(screen.theirs, b"\x1b[2J\x1b[Hnoise")
        screen.until(lambda seen: seen.text.startswith("noise"))
        screen.keys(C_L).until("^▸ left out  A")


# ---- the conformance suite's shapes ----------------------------------------------------------------------------------


def test_the_five_choices_of_the_conformance_suite() -> None:
    keys = ["option1 \t", "first \t", "one \t", " " + DOWN + " \t", "second " + BACKSPACE * 6 + "first "]
    assert sent(form(**FIVE_CHOICES), *keys) == {
        "untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"], "titledMulti": ["value1", "value2"],
    }  # fmt: skip


def test_the_defaults_of_the_conformance_suite() -> None:
    properties = {
        "name": {**STRING, "default": "John Doe"}, "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": True},
        "status": {**STRING, "enum": ["active", "inactive"], "default": "active"},
    }  # fmt: skip
    values = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    assert sent(form(**properties)) == values
    assert sent(form(*properties, **properties), *["\t"] * 4) == values


# ---- inputs that broke other clients ---------------------------------------------------------------------------------


def test_odd_schemas_are_forms_like_others() -> None:
    names = ("__proto__", "__class__", "class", "", "a b", "a.b")
    assert sent(form(**dict.fromkeys(names, STRING)), *"".join(f"{n}\t" for n in range(6))) == {
        name: str(number) for number, name in enumerate(names)
    }
    schema = {
        **form("p", "e", p={"$ref": "#/$defs/P"}, e=STRING, o={"oneOf": [{"const": 1, "title": "One"}]},
               n={"anyOf": [STRING, {"type": "null"}]}, m={"type": "number"},
               z={"type": "array", "items": {"enum": ["a", "b"]}}),
        "$defs": {"P": {"enum": ["low", "high"]}},
    }  # fmt: skip
    keys = ["high \t", C_T, "\t", "one \t", "none", "\t", "none", "\t", "b "]
    assert sent(schema, *keys) == {"p": "high", "e": "", "o": 1, "z": ["b"]}
    assert sent(form(a=STRING, b={"type": "integer"}, c={"type": "boolean"}, d={**FRUIT, "minItems": 1})) == {}


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ({**STRING, "format": "date"}, "20260131", "✗ must be .*date"),
        ({**STRING, "format": "date-time"}, "2026-01-31", "✗ must be .*date"),
        ({**STRING, "format": "uri"}, "a b", "✗ must be .*address"),
        ({"type": "number"}, "nan", "✗ must be a number"),
        ({**STRING, "pattern": "^\\p{L}+$"}, "1", "✗ "),
    ],
)
def test_what_is_refused_says_why(field: dict[str, Any], typed: str, told: str) -> None:
    with Here(form(f=field)) as screen:
        screen.until("F1 help")
        screen.keys(typed).until(told)
        screen.keys(C_O, F10).until(REVIEW)
        screen.keys(ENTER)
        assert screen.answer().content == {}


# ---- secrets ---------------------------------------------------------------------------------------------------------


def test_a_secret_is_warned_of_and_never_shown() -> None:
    password = {**STRING, "default": "from-server"}
    schema = form("password", password=password, apiKey=STRING, pin={**STRING, "minLength": 99})
    with Here(schema) as screen:
        shown = screen.until("WARNING: this looks like a secret")
        assert "▸ default   Password" in shown and "left out  Api key" in shown
        screen.keys("hunter2").until("▸ filled in Password")
        screen.keys("\t", "\x1b[200~k3y-pasted\x1b[201~", LEFT, "x").until("▸ filled in Api key")
        screen.keys("\t", "wr0ng").until("✗ ")
        screen.keys(C_O).until("▸ left out  Pin")
        screen.keys(F10).until("  not shown Password\n  not shown Api key\n  left out  Pin")
        screen.keys(ENTER)
        assert screen.answer().content == {"password": "hunter2", "apiKey": "k3y-pastedx"}
    for secret in ("hunter2", "k3y", "wr0ng", "from-server", "h" + "unter"):
        assert secret not in screen.raw
    assert set(re.findall("•+", screen.raw)) == {"•" * 8}  # however long it is
