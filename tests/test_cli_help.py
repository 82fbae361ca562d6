"""Each help has examples that the parser takes, fits a terminal, and --debug is everywhere."""

from __future__ import annotations

import shlex

import pytest

from gopher_mcp_python.cli import COMMANDS, main, parser
from gopher_mcp_python.cli.completing import words_of
from gopher_mcp_python.cli.examples import EXAMPLES

PATHS = [level.path for level in words_of(parser())]


def test_every_command_has_examples_and_nothing_else_has() -> None:
    assert set(EXAMPLES) == set(PATHS) and set(COMMANDS) < set(PATHS)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("path", PATHS)
def test_every_help_shows_them_and_fits_a_terminal(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*path.split(), "--help"])
    assert not ended.value.code
    out = capsys.readouterr().out
    assert out.startswith(f"usage: gopher-mcp {path}".rstrip()) and "--debug" in out
    assert max(map(len, out.splitlines())) <= 150
    shown = out.partition("\nexamples:\n")[2]
    for command, what in EXAMPLES[path]:
        assert f"  {command}\n      {what}\n" in shown


@pytest.mark.parametrize("command", [command for found in EXAMPLES.values() for command, _ in found])
def test_every_example_is_a_command_line(command: str) -> None:
    program, *words = shlex.split(command.partition(" > ")[0])
    assert program == "gopher-mcp"
    assert parser().parse_args(words).command == words[0]


def test_options_may_stand_between_the_words() -> None:
    args = parser().parse_args(["run", "https://host/mcp", "--json", "a query", "--quiet"])
    assert args.words == ["https://host/mcp", "a query"] and args.json and args.quiet
    args = parser().parse_args(["run", "https://host/mcp", "--", "--a-query"])
    assert args.words == ["https://host/mcp", "--a-query"]
    args = parser().parse_args(["logout", "https://a/mcp", "--token-store", "file", "https://b/mcp"])
    assert args.urls == ["https://a/mcp", "https://b/mcp"]


@pytest.mark.parametrize("words", [["--debug", "doctor"], ["doctor", "--debug"], ["--debug", "doctor", "--json"]])
def test_debug_stands_before_or_after_the_command(words: list[str]) -> None:
    assert parser().parse_args(words).debug is True
    assert parser().parse_args(["doctor"]).debug is False


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rum"], "gopher-mcp: argument COMMAND: there is no 'rum'; is run meant? - next: gopher-mcp --help"),
        (
            ["doctor", "--jsn"],
            "gopher-mcp doctor: there is no option --jsn; is --json meant? - next: gopher-mcp doctor",
        ),
        (
            ["token", "ad"],
            "gopher-mcp token: argument ACTION: there is no 'ad'; is add meant? - next: gopher-mcp token",
        ),
        (
            ["token", "list", "--xyzzy"],
            "gopher-mcp token list: there is no option --xyzzy - next: gopher-mcp token list",
        ),
        (["run", "u", "q", "--engine", "steam"], "there is no 'steam'; choose auto, native, embedded"),
        (["doctor", "now"], "gopher-mcp doctor: 1 more words than there are arguments"),
    ],
)
def test_a_word_that_nobody_knows_is_told_with_the_one_that_may_be_meant(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    err = capsys.readouterr().err
    assert ended.value.code == 2 and told in err and err.count("\n") == 1


def test_what_may_be_a_secret_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run", "u", "q", "--tokn=hunter2hunter2"], ["doctor", "hunter2hunter2"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "hunter2" not in capsys.readouterr().err
