"""The command line: what it accepts, what it says when something is wrong, and its exit codes."""

from __future__ import annotations

import argparse
import errno
import json
import sys
from pathlib import Path

import pytest

from gopher_mcp_python.cli import main, options
from gopher_mcp_python.cli.failures import UsageError, explain
from gopher_mcp_python.errors import AgentError, ApiKeyError, ConnectionError, TimeoutError
from tests.support import children
from tests.support.canary import Canary

URL = "http://127.0.0.1:9/mcp"


def command(*arguments: str, **more: object) -> children.Ended:
    return children.run([sys.executable, "-m", "gopher_mcp_python", *arguments], **more)  # type: ignore[arg-type]


def _parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add_model(parser)
    options.add_credentials(parser)
    options.add_elicitation(parser)
    return parser.parse_args(arguments)


# ---- what it accepts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((), None),
        (("--no-browser",), {"open_browser": False}),
        (("--ask-browser",), {"open_browser": "ask"}),
        (("--elicitation", "decline"), {"handler": "decline"}),
        (("--elicitation", "cancel"), {"handler": "cancel"}),
        (("--elicitation", "off"), False),
        (("--elicitation-timeout", "1.5"), {"timeout_ms": 1500}),
        (("--elicitation-timeout", "3", "--no-browser"), {"open_browser": False, "timeout_ms": 3000}),
    ],
)
def test_elicitation_options_are_given_only_where_they_were_chosen(arguments: tuple[str, ...], wanted: object) -> None:
    assert options.elicitation(_parsed(*arguments)) == wanted


def test_the_timeout_is_in_seconds() -> None:
    assert options.timeout_ms(_parsed()) == 60_000
    assert options.timeout_ms(_parsed("--timeout", "0")) == 0
    assert options.timeout_ms(_parsed("--timeout", "0.25")) == 250


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", "1e9"])
def test_a_timeout_that_is_none_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _parsed("--timeout", value)
    assert ended.value.code == 2
    assert "--timeout" in capsys.readouterr().err


def test_credentials_come_from_variables(monkeypatch: pytest.MonkeyPatch, canary: Canary) -> None:
    monkeypatch.setenv("MY_TOKEN", canary.secret("token"))
    monkeypatch.setenv("MY_KEY", canary.secret("header"))
    args = _parsed("--token-env", "MY_TOKEN", "--header", "X-A: 1:2", "--header-env", "X-Key: MY_KEY")
    assert options.token(args) == canary.secret("token")
    assert options.headers(args) == {"X-A": "1:2", "X-Key": canary.secret("header")}


def test_a_token_that_is_no_utf8_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "never-shown-\udcff")
    ended = command("run", URL, "q", "--token-env", "MY_TOKEN")
    assert ended.code == 1 and "access_token" in ended.err and "never-shown" not in ended.err + ended.out


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(UsageError, match=r"--token-env: .*'NO_SUCH_TOKEN'"):
        options.token(_parsed("--token-env", "NO_SUCH_TOKEN"))


@pytest.mark.parametrize("option", ["--token-env", "--client-secret-env"])
def test_a_value_where_a_variable_is_named_is_not_shown(option: str, canary: Canary) -> None:
    ended = command("run", URL, "q", option, canary.secret("token"))
    assert ended.code == 2 and "takes the name of a variable" in ended.err
    assert canary.secret("token") not in ended.err + ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--config", "-", "q"), "--config -: nothing came from standard input"),
        (("http://127.0.0.1:99999/mcp", "q"), "port"),
        (("http://127.0.0.1:x/mcp", "q"), "port"),
        (("http:///mcp", "q"), "has no host"),
        ((URL, ""), "the query is empty"),
    ],
)
def test_what_run_can_not_use_is_named(arguments: tuple[str, ...], said: str) -> None:
    ended = command("run", *arguments)
    assert ended.code == 2 and said in ended.err, ended.err


def test_a_configuration_of_nobodys_standard_input() -> None:
    ended = children.run(["sh", "-c", f"exec {sys.executable} -m gopher_mcp_python run --config - q <&-"])
    assert ended.code == 2 and "--config -: nothing came from standard input" in ended.err


def test_an_empty_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.json").touch()
    ended = command("run", "--config", str(tmp_path / "empty.json"), "q")
    assert ended.code == 2 and "empty.json: it is empty" in ended.err


def test_a_header_without_a_colon_is_not_repeated_in_the_message(canary: Canary) -> None:
    with pytest.raises(UsageError, match="--header: expected 'Name: value'"):
        options.headers(_parsed("--header", canary.secret("header")))


def test_only_the_direct_provider_does_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOPHER_MCP_MODEL", raising=False)
    assert options.model(_parsed("--provider", "DirectProvider")) == "direct"
    assert options.model(_parsed("--provider", "OpenAIProvider", "--model", "m")) == "m"
    with pytest.raises(UsageError, match="OpenAIProvider needs --model"):
        options.model(_parsed("--provider", "OpenAIProvider"))


# ---- what it says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "first", "remedy"),
    [
        (TimeoutError("the run took longer"), "the run took longer", "--timeout"),
        (ApiKeyError("the key was refused."), "the key was refused", "OPENAI_API_KEY"),
        (ApiKeyError("set the environment variable X"), "set the environment variable X", None),
        (ConnectionError("it answered with HTTP status 401"), "it answered with HTTP status 401", "--token-env"),
        (ConnectionError("no answer"), "no answer", "gopher-mcp run --debug"),
        (TimeoutError("connecting to x took too long"), "connecting to x took too long", "an MCP server answers"),
        (ConnectionError("no answer. Is the server running?"), "no answer. Is the server running?", None),
        (AgentError("no such provider"), "no such provider", "gopher-mcp run --debug"),
        (AgentError("missing; pip install x"), "missing; pip install x", None),
        (AgentError("no folder x: make it, or name another file"), "no folder x: make it, or name another file", None),
        (AgentError("k is not in the ring: put it back"), "k is not in the ring: put it back", None),
        (AgentError("the sign-in was denied. Run it again"), "the sign-in was denied. Run it again", None),
        (AgentError("it must be auto, native or embedded"), "it must be auto, native or embedded", None),
        (AgentError("the makers put it there"), "the makers put it there", "gopher-mcp run --debug"),
        (ValueError("access_token holds a line break"), "access_token holds a line break", "gopher-mcp run --help"),
        (PermissionError(errno.EACCES, "Permission denied", "a.db"), "a.db: Permission denied", "this user may read"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device", "make room"),
        (UsageError("there is no such thing"), "there is no such thing", "gopher-mcp run --help"),
    ],
)
def test_expected_failures_are_told_with_their_remedy(error: Exception, first: str, remedy: str | None) -> None:
    told, mark, advice = str(explain(error, "run")).partition(" - next: ")
    assert told == f"gopher-mcp run: {first}"
    assert (remedy is None) == (mark == "")
    assert remedy is None or remedy in advice


def test_a_message_of_many_lines_becomes_its_first_and_its_advice() -> None:
    places = "\n".join(f"  - /opt/{number}: no such file" for number in range(30))
    text = f"No usable libgopher-orch was found. Places tried:\n{places}\nNext: pip install something"
    assert explain(AgentError(text), "run") == (
        "gopher-mcp run: No usable libgopher-orch was found - next: pip install something"
    )


def test_what_cannot_be_loaded_has_such_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nothing = {"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(tmp_path / "none.so"), "OPENAI_API_KEY": "unused"}
    words = ("run", URL, "query", "--engine", "native", "--provider", "OpenAIProvider", "--model", "m")
    ended = command(*words, env=nothing)
    assert ended.code == 1 and ended.err.count("\n") == 1
    assert " - next: unset GOPHER_MCP_PYTHON_LIBRARY_PATH" in ended.err


def test_a_servers_text_stays_on_the_line_and_drives_no_terminal() -> None:
    told = explain(AgentError("it said \x1b[2J\ngopher-mcp: all is well\u202e"))
    assert told is not None and "\n" not in told and "\x1b" not in told and "\u202e" not in told


def test_a_failure_of_our_own_keeps_its_traceback() -> None:
    assert explain(KeyError("x")) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", URL), "expected URL QUERY"),
        (("run", URL, ""), "the query is empty"),
        (("run", URL, "two", "words"), "expected URL QUERY"),
        (("run", "a query", URL), "not an http or https address"),
        (("run", "ftp://host/mcp", "query"), "not an http or https address"),
        (("run", "--config", "/no/such/file.json", "query"), "/no/such/file.json"),
        (("run", "--server-name", "mail", "query"), "GOPHER_API_KEY"),
        (("run", URL, "query", "--provider", "OpenAIProvider"), "--model"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOPHER_API_KEY", "GOPHER_MCP_MODEL", "GOPHER_MCP_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1 and " - next: gopher-mcp run --help" in err


@pytest.mark.parametrize("arguments", [(), ("walk",), ("run",), ("run", URL, "q", "--engine", "steam")])
def test_argparse_agrees_on_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("name", [(), ("run",), ("doctor",), ("demo",)])
def test_help_fits_a_terminal(name: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: gopher-mcp")
    assert max(len(line) for line in out.splitlines()) <= 120


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    import gopher_mcp_python

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"gopher-mcp {gopher_mcp_python.__version__}\n"


def test_the_help_needs_nothing_heavy() -> None:
    program = (
        "import sys\nfrom gopher_mcp_python.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = sorted({'mcp', 'pydantic', 'anthropic', 'openai', 'asyncio', 'starlette'} & set(sys.modules))\n"
        "raise SystemExit(f'imported: {heavy}' if heavy else 0)"
    )
    children.python(program).check()


# ---- whole processes ------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_one_message_and_code_1() -> None:
    ended = command("run", URL, "plain", "--engine", "embedded", "--quiet")
    assert ended.code == 1 and ended.out == ""
    assert ended.err.startswith("gopher-mcp run: ") and ended.err.count("\n") == 1
    assert "Is the server running" in ended.err


def test_json_tells_failures_too() -> None:
    ended = command("run", URL, "plain", "--engine", "embedded", "--json")
    told = json.loads(ended.out)
    assert ended.code == 1
    assert told["ok"] is False and told["answer"] is None and told["error"]["type"] == "ConnectionError"


def test_doctor_prints_json_for_programs() -> None:
    ended = command("doctor", "--json")
    assert isinstance(json.loads(ended.out), dict)
    assert ended.code in (0, 1) and "Traceback" not in ended.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"{sys.executable} -m gopher_mcp_python doctor --json | true"
    ended = children.run(["sh", "-c", program])
    assert ended.code == 0
    assert ended.err == ""
