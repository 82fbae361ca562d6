"""Completion in real shells: what the Tab key gives on a pty in bash and zsh, and what fish would offer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from gopher_mcp_python.cli import parser
from gopher_mcp_python.cli.completing import SCRIPTS, Level, words_of
from tests.support import children

needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed") for name in ("zsh", "fish")
}
TYPED = [
    ("ru\t", "run"),
    ("comp\tzs\t", "completion zsh"),
    ("run --engi\tna\t", "run --engine native"),
    ("run --engine=na\t", "run --engine=native"),
    ("run https://host/mcp --elicitation dec\t--js\t", "run https://host/mcp --elicitation decline --json"),
    ("token ad\t--sc\tan\t", "token add --scope answer"),
    ("token --tokens list ad\tada --nam\t", "token --tokens list add ada --name"),  # a value is no command
    ("run --config ./some\t", "run --config ./some-file.json"),
    ("--deb\tdoc\t--js\t", "--debug doctor --json"),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SCRIPTS:
        ended = children.run([sys.executable, "-m", "gopher_mcp_python", "completion", shell]).check()
        assert ended.err == ""
        (folder / f"gopher-mcp.{shell}").write_text(ended.out, encoding="utf-8")
    (folder / "some-file.json").touch()
    return folder


class Shell:
    """A shell on a pty in which gopher-mcp is a function that tells what it was called with."""

    def __init__(self, argv: list[str], folder: Path, *, begin: str) -> None:
        env = children.environment({"TERM": "dumb", "PS1": "READY> ", "HOME": str(folder)})
        self._child = pexpect.spawn(
            argv[0], argv[1:], env=env, cwd=str(folder), encoding="utf-8", timeout=40, dimensions=(40, 300)
        )
        for line in (begin, 'gopher-mcp() { echo "<$*>"; }', "echo LOA''DED"):
            self._child.sendline(line)
        self._child.expect("LOADED\r\n.*READY> ")

    def complete(self, typed: str) -> str:
        """What is run after this was typed and Enter pressed."""
        self._child.send(f"gopher-mcp {typed}\r")
        self._child.expect(r"<([^>\r\n]*)>")
        assert self._child.match is not None
        called = str(self._child.match[1])
        self._child.expect("READY> ")
        return called

    def close(self) -> None:
        self._child.close(force=True)


@pytest.fixture(scope="module", params=["bash", pytest.param("zsh", marks=needs["zsh"])])
def shell(request: pytest.FixtureRequest, scripts: Path) -> Iterator[Shell]:
    opened = (
        Shell(["bash", "--norc", "-i"], scripts, begin="source ./gopher-mcp.bash")
        if request.param == "bash"
        else Shell(["zsh", "-f", "-i"], scripts, begin="autoload -U compinit; compinit -u -D; source ./gopher-mcp.zsh")
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(("typed", "called"), TYPED)
def test_the_tab_key(shell: Shell, typed: str, called: str) -> None:
    assert shell.complete(typed) == called


@needs["zsh"]
def test_zsh_loads_it_from_fpath(scripts: Path) -> None:
    (scripts / "site").mkdir(exist_ok=True)
    shutil.copy(scripts / "gopher-mcp.zsh", scripts / "site" / "_gopher-mcp")
    opened = Shell(["zsh", "-f", "-i"], scripts, begin="fpath+=$PWD/site; autoload -U compinit; compinit -u -D")
    try:
        assert opened.complete("docto\t--js\t") == "doctor --json"
    finally:
        opened.close()


@needs["fish"]
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ru", {"run"}),
        ("run --engi", {"--engine"}),
        ("run --engine ", {"auto", "native", "embedded"}),
        ("run --engine=n", {"--engine=native"}),
        ("token --tokens list a", {"add"}),
        ("token add --scope ", {"call", "answer"}),
        ("completion ", {"bash", "zsh", "fish"}),
        ("run --config ./some", {"./some-file.json"}),
        ("run -- --engi", set()),
    ],
)
def test_fish_offers(scripts: Path, typed: str, offered: set[str]) -> None:
    program = f"source ./gopher-mcp.fish; complete -C 'gopher-mcp {typed}'"
    ended = subprocess.run(
        ["fish", "--no-config", "-c", program], cwd=scripts, capture_output=True, text=True, timeout=60, check=True,
        env=children.environment({"HOME": str(scripts), "TERM": "xterm"}),
    )  # fmt: skip
    assert {line.partition("\t")[0] for line in ended.stdout.splitlines()} == offered
    assert ended.stderr == ""


@pytest.mark.parametrize("name", ["bash", *(pytest.param(name, marks=mark) for name, mark in needs.items())])
def test_the_scripts_are_the_shells_own_language(scripts: Path, name: str) -> None:
    subprocess.run([name, "-n", str(scripts / f"gopher-mcp.{name}")], check=True, timeout=60, stdin=subprocess.DEVNULL)


def _levels() -> dict[str, Level]:
    return {level.path: level for level in words_of(parser())}


def test_every_option_of_every_command_is_there() -> None:
    levels = _levels()
    assert {"", "run", "token", "token add", "gateway", "completion"} <= set(levels)
    assert {"--help", "--debug", "--version"} <= set(levels[""].options)
    assert {"--config", "--token-env", "--elicitation"} <= set(levels["run"].options)
    for shell, script in SCRIPTS.items():
        text = script(list(levels.values()))
        for level in levels.values():
            for option in level.options:
                assert option in text, f"{shell}: {level.path} {option}"


def test_files_are_known_by_what_an_option_takes() -> None:
    levels = _levels()
    assert levels["run"].takes["--config"] is None and levels["serve"].takes["--uploads"] is None
    assert levels["run"].takes["--engine"] == ("auto", "native", "embedded")
    assert levels["run"].takes["--scope"] == ()
    assert "--json" not in levels["run"].takes
