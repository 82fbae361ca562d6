"""Server text on a terminal: shown, never obeyed."""

from __future__ import annotations

import unicodedata

import pytest

from gopher_mcp_python.display import quoted_block, rows_of, safe_line, safe_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve, 日本語, 👍", "plain text, naïve, 日本語, 👍"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        (
            "\x1b]8;;https://evil.test\x1b\\click\x1b]8;;\x1b\\",
            "\\x1b]8;;https://evil.test\\x1b\\click\\x1b]8;;\\x1b\\",
        ),
        ("\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07"),
        ("over\rwritten", "over\\x0dwritten"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("x\u202egnp.exe", "x\\u202egnp.exe"),
        ("a\u2066b\u2069c", "a\\u2066b\\u2069c"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("tab\there", "tab here"),
        ("two\r\nlines\nthree", "two\nlines\nthree"),
    ],
)
def test_what_drives_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_nothing_of_any_control_category_survives() -> None:
    everything = "".join(chr(code) for code in range(0x110000))
    shown = safe_text(everything, limit=len(everything)).replace("\n", "")
    bad = {character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")}
    assert bad == set()


def test_long_texts_are_cut_and_say_so() -> None:
    assert safe_text("x" * 30, limit=10) == "x" * 10 + " ... (20 more characters)"
    assert safe_line("a\n b\t c") == "a b c"


def test_every_line_of_a_block_is_marked() -> None:
    block = quoted_block("Real question\nHost: bank.example\nOpen this URL to continue:", mark="> ")
    assert block.split("\n") == ["> Real question", "> Host: bank.example", "> Open this URL to continue:"]
    assert quoted_block("\n".join("x" * 30), mark="> ", max_lines=3).endswith("> ... (27 more lines)")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("e\u0301te\u0301", "e\u0301te\u0301"),
        ("\u05e9\u05c1\u05b8", "\u05e9\u05c1\u05b8"),
        ("\u0301x", "\\u0301x"),
        ("a\n\u0301", "a\n\\u0301"),
        ("z" + "\u0301" * 6, "z" + "\u0301" * 4 + "\\u0301" * 2),
    ],
)
def test_marks_stay_on_their_letters(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@pytest.mark.parametrize(
    "text", ["", "   ", "word " * 40, "x" * 200, f"  begin {'y' * 50} end", "漢字" * 40, "a 漢" * 30, "e\u0301" * 60]
)
def test_rows_hold_the_whole_text_and_are_never_wider(text: str) -> None:
    rows = rows_of(text, 21)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")
    assert all(sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in row) <= 21 for row in rows)


def test_what_a_terminal_would_continue_below_is_marked_too() -> None:
    fake = "Please sign in. " + "-" * 61 + " Host: accounts.example.com " + "." * 52 + " Time left: 1 s."
    lines = quoted_block(fake, columns=80).split("\n")
    assert len(lines) > 2 and all(line.startswith("  | ") and len(line) < 80 for line in lines)
    assert quoted_block(fake).count("\n") == 0
