"""How `gopher-mcp` ends: each exit code, failures in one line, tracebacks when asked for, output that nobody takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gopher_mcp_python.cli.failures import ExitCode
from tests.support import children
from tests.support.canary import Canary
from tests.support.terminal import Terminal

COMMAND = (sys.executable, "-m", "gopher_mcp_python")
NOBODY = ("run", "http://127.0.0.1:9/mcp", "plain", "--engine", "embedded")
DOCS = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"

# The command with a `doctor` that fails as it is told.
_PROGRAM = """
import sys
from gopher_mcp_python.cli import doctor, main
def run(args):
{body}
doctor.run = run
sys.argv[0] = "gopher-mcp"
sys.exit(main())
"""


def command(*words: str, **more: str) -> children.Ended:
    return children.run([*COMMAND, *words], **more)  # type: ignore[arg-type]


def doctor(body: str, *words: str, env: dict[str, str] | None = None) -> children.Ended:
    indented = "\n".join("    " + line for line in body.splitlines())
    return children.python(_PROGRAM.format(body=indented), *words, "doctor", env=env)


# ---- exit codes -----------------------------------------------------------------------------------------------------


def _interrupted() -> int:
    with Terminal(["env", *COMMAND, "demo", "--serve"]) as terminal:
        terminal.expect("serving on")
        terminal.interrupt()
        code, rest = terminal.end()
    assert "ended with Ctrl-C" in rest and "Traceback" not in rest
    return code


def _without_reader() -> int:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        ended = subprocess.run(
            [*COMMAND, "completion", "bash"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
            text=True, timeout=120, check=False, env=children.environment(),
        )  # fmt: skip
    finally:
        os.close(theirs)
    assert ended.stderr == ""
    return ended.returncode


ENDS: dict[ExitCode, Callable[[], int]] = {
    ExitCode.OK: lambda: command("completion", "bash").code,
    ExitCode.FAILED: lambda: command(*NOBODY).code,
    ExitCode.USAGE: lambda: command("rum").code,
    ExitCode.DEFECT: lambda: doctor("raise KeyError('x')").code,
    ExitCode.INTERRUPTED: _interrupted,
    ExitCode.READER_GONE: _without_reader,
}


@pytest.mark.parametrize("code", ExitCode, ids=lambda code: code.name)
def test_each_exit_code_is_met(code: ExitCode) -> None:
    assert ENDS[code]() == code


@pytest.mark.source_tree
def test_the_documents_have_the_same_table() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    assert sorted(map(int, re.findall(r"^\| (\d+) \|", section, re.MULTILINE))) == sorted(ExitCode)


def test_help_for_a_reader_who_has_gone_is_no_error() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run(
        [*COMMAND, "--help"], stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        env=children.environment(),
    )  # fmt: skip
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (ExitCode.READER_GONE, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", ["--help", "completion bash", "doctor"])
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_full_disk_is_told_once(words: str, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*COMMAND, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
            env=children.environment({"PYTHONUNBUFFERED": unbuffered}),
        )  # fmt: skip
    assert ended.returncode == ExitCode.FAILED
    assert ended.stderr.count("\n") == 1 and "No space left on device - next: make room" in ended.stderr


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("<&- >&- 2>&-", 0)])
def test_streams_that_are_closed_are_no_error(closed: str, code: int) -> None:
    ended = children.run(["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "completion", "zsh"])
    assert (ended.code, ended.err) == (code, "")
    ended = children.run(["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "rum"])
    assert ended.code == ExitCode.USAGE and ended.out == ""


def test_a_terminal_of_few_signs_gets_escapes() -> None:
    ended = doctor("print('caf\\xe9 \\u2713')\nreturn 0", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (ended.code, ended.out) == (0, "caf\\xe9 \\u2713\n")


# ---- failures that nobody foresaw -----------------------------------------------------------------------------------


def test_a_defect_is_one_line_that_asks_for_debug() -> None:
    ended = doctor("raise KeyError('the key')")
    assert ended.code == ExitCode.DEFECT and ended.out == ""
    assert ended.err == (
        "gopher-mcp doctor: a defect of this program: KeyError: 'the key' - next: run it again with --debug "
        "(gopher-mcp doctor --debug ...), and report that\n"
    )


@pytest.mark.parametrize(
    ("words", "env"),
    [(["--debug"], {}), ([], {"GOPHER_MCP_DEBUG": "1"}), ([], {"DEBUG": "1"})],
    ids=["option", "GOPHER_MCP_DEBUG", "DEBUG"],
)
def test_debug_shows_where(words: list[str], env: dict[str, str]) -> None:
    ended = doctor("raise KeyError('the key')", *words, env=env)
    assert ended.code == ExitCode.DEFECT
    assert ended.err.startswith("Traceback (most recent call last):\n") and "in run\n" in ended.err
    assert ended.err.splitlines()[-1] == "gopher-mcp doctor: a defect of this program: KeyError: 'the key'"


@pytest.mark.parametrize("value", ["", "0", "false", "no"])
def test_debug_that_is_off_is_off(value: str) -> None:
    assert "Traceback" not in doctor("raise KeyError('x')", env={"GOPHER_MCP_DEBUG": value, "DEBUG": value}).err


def test_an_expected_failure_has_a_traceback_with_debug_only() -> None:
    assert "Traceback" not in command(*NOBODY).err
    ended = command(*NOBODY, "--debug")
    assert ended.code == ExitCode.FAILED and "Traceback (most recent call last):" in ended.err
    assert "Is the server running" in ended.err.splitlines()[-1]


def test_a_wrong_command_line_never_has_one() -> None:
    assert "Traceback" not in command("run", "no-url", "query", "--debug").err


_LEAKING = """
from gopher_mcp_python.cli import options
import logging
secret = options.variable("MY_SECRET", "--token-env")
logging.getLogger("gopher_mcp_python.x").warning("odd: %s", secret)
try:
    raise OSError("refused <" + secret + ">")
except OSError as cause:
    raise RuntimeError("about " + secret + " and Authorization: Bearer abc.def.ghi") from cause
"""


@pytest.mark.parametrize("words", [(), ("--debug",)], ids=["plain", "debug"])
def test_secrets_of_the_command_line_are_in_neither(words: tuple[str, ...], canary: Canary) -> None:
    """However they stand in a text: redaction by form alone would not see them there."""
    ended = doctor(_LEAKING, *words, env={"MY_SECRET": canary.secret("variable")})
    assert ended.code == ExitCode.DEFECT
    assert "about <redacted>" in ended.err and "abc.def" not in ended.err and canary.secret("variable") not in ended.err
    assert ("refused <<redacted>>" in ended.err) == bool(words)


def test_passwords_of_a_store_are_known_too(canary: Canary) -> None:
    program = """
import sys
from gopher_mcp_python.cli import main
from gopher_mcp_python.serve import opening
def open_backend(spec):
    raise RuntimeError("the password was " + spec.partition("app:")[2].partition("@")[0])
opening.open_backend = open_backend
sys.exit(main())
"""
    store = f"postgresql://app:{canary.secret('dsn')}@db.test/store"
    ended = children.python(program, "audit", "--store", store, "--debug")
    assert ended.code == ExitCode.DEFECT and "Traceback" in ended.err
    assert "the password was <redacted>" in ended.err


# ---- what goes on beside the command --------------------------------------------------------------------------------

_BESIDE = {
    "thread": ("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()\nreturn 0",
               "something failed in the background: ZeroDivisionError: division by zero"),
    "destructor": ("class X:\n    def __del__(self): 1 / 0\nX()\nreturn 0",
                   "something failed in the background: ZeroDivisionError: division by zero"),
    "log": ("import logging\ntry: 1 / 0\nexcept ZeroDivisionError: logging.getLogger('some.library').exception('odd')"
            "\nreturn 0", "odd (ZeroDivisionError: division by zero; --debug shows where)"),
    "task": ("import asyncio, gc\nasync def fail(): 1 / 0\nasync def work():\n    asyncio.create_task(fail())\n"
             "    await asyncio.sleep(0)\n    await asyncio.sleep(0)\nasyncio.run(work())\ngc.collect()\nreturn 0",
             "(ZeroDivisionError: division by zero; --debug shows where)"),
    "warning": ("import warnings\nwarnings.warn('this\\nis odd')\nreturn 0", "gopher-mcp: warning: this is odd"),
}  # fmt: skip


@pytest.mark.parametrize("kind", _BESIDE)
def test_what_fails_beside_the_command_is_one_line(kind: str) -> None:
    body, told = _BESIDE[kind]
    ended = doctor(body)
    assert ended.code == 0 and told in ended.err and "Traceback" not in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("kind", [kind for kind in _BESIDE if kind != "warning"])
def test_and_with_debug_its_traceback(kind: str) -> None:
    ended = doctor(_BESIDE[kind][0], "--debug")
    assert ended.code == 0 and "Traceback (most recent call last)" in ended.err


def test_a_command_that_a_program_calls_leaves_nothing_behind() -> None:
    program = """
import logging, sys, threading, warnings
def now():
    package = logging.getLogger("gopher_mcp_python")
    return (warnings.showwarning, logging.lastResort, threading.excepthook, sys.unraisablehook, package.level,
            list(package.handlers))
before = now()
from gopher_mcp_python.cli import main
assert main(["--debug", "completion", "fish"]) == 0
assert now() == before
"""
    children.python(program).check()


# ---- colours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_on_a_terminal(env: dict[str, str], coloured: bool) -> None:
    with Terminal([*COMMAND, "rum"], env=env) as terminal:
        code, shown = terminal.end()
    assert code == ExitCode.USAGE and ("\x1b[1;31mgopher-mcp:\x1b[0m" in shown) == coloured
    assert coloured or "\x1b" not in shown


@pytest.mark.parametrize(
    ("env", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)]
)
def test_colours_in_a_pipe(env: dict[str, str], coloured: bool) -> None:
    for ended in (command("rum", env=env), command("doctor", env=env)):  # type: ignore[arg-type]
        assert ("\x1b[" in ended.out + ended.err) == coloured
    assert "\x1b" not in command("doctor", "--json", env=env).out  # type: ignore[arg-type]


def test_ctrl_c_while_it_is_being_loaded_has_no_traceback() -> None:
    program = """
import sys
class Late:
    def find_spec(self, name, path=None, target=None):
        if name == "gopher_mcp_python.cli.guarding":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Late())
from gopher_mcp_python.cli import main
sys.exit(main())
"""
    ended = children.python(program, "doctor")
    assert (ended.code, ended.err) == (ExitCode.INTERRUPTED, "\ngopher-mcp: ended with Ctrl-C\n")
