"""`gopher-mcp run` against a real server: the answer, the status line, prompts, Ctrl-C."""

from __future__ import annotations

import argparse
import json
import re
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from gopher_mcp_python.cli import run as run_command
from gopher_mcp_python.cli.failures import UsageError
from tests.support import children
from tests.support.canary import Canary
from tests.support.scripted_llm import certificates
from tests.support.servers import McpServer, click_allow
from tests.support.terminal import Terminal

RUN = ("-m", "gopher_mcp_python", "run")
EMBEDDED = ("--engine", "embedded")
PROMPT = "press Enter to cancel"


@pytest.fixture(scope="module")
def module_server() -> Iterator[McpServer]:
    server = McpServer()
    yield server
    server.close()


@pytest.fixture
def server(module_server: McpServer) -> McpServer:
    return module_server.clear()


def run(*arguments: str, **more: str) -> children.Ended:
    return children.run([sys.executable, *RUN, *arguments, *EMBEDDED], **more)  # type: ignore[arg-type]


def test_the_answer_alone_is_on_standard_output(server: McpServer) -> None:
    ended = run(server.url, 'plain {"text": "hello"}').check()
    assert ended.out == "plain: hello\n"
    assert ended.err == ""


def test_json_is_one_object_with_the_facts(server: McpServer) -> None:
    told = json.loads(run(server.url, "plain", "--json").check().out)
    assert told["ok"] is True and told["error"] is None
    assert told["answer"] == "plain: ok" and told["engine"] == "embedded"
    assert told["iterations"] >= 1 and 0 < told["seconds"] < 60


def test_a_configuration_file_and_standard_input(server: McpServer) -> None:
    config = json.dumps({"servers": [{"name": "scenario", "url": server.url}]})
    assert run("--config", "-", "plain", stdin=config).check().out == "plain: ok\n"


def test_a_run_that_takes_too_long_is_told_with_the_way_out(server: McpServer) -> None:
    ended = run(server.url, 'slow {"seconds": 20}', "--timeout", "0.5")
    assert ended.code == 1 and ended.out == ""
    assert " - next: --timeout SECONDS" in ended.err and ended.err.count("\n") == 1
    assert ended.seconds < 15


def test_elicitation_is_answered_as_the_option_says(server: McpServer) -> None:
    for option in ("decline", "cancel"):
        run(server.clear().url, "decline_aware", "--elicitation", option)
        assert server.actions() == [option]


def test_without_a_terminal_the_link_is_shown_and_cancel_is_sent(server: McpServer, canary: Canary) -> None:
    canary.allow_shown("http://127.0.0.1:", exact=False)
    ended = run(server.url, "get_gmail_users_get_profile")
    assert server.actions() == ["cancel"]
    assert "/authorize?" in ended.err and "Nobody can be asked" in ended.err


def test_the_token_comes_from_standard_input_and_stays_secret(canary: Canary) -> None:
    protected = McpServer("--token", canary.secret("token"))
    try:
        assert (
            run(protected.url, "plain", "--token", "-", stdin=canary.secret("token") + "\n").check().out
            == "plain: ok\n"
        )
        refused = run(protected.url, "plain", "--token", "-", stdin="wrong\n")
        assert refused.code == 1 and "401" in refused.err
    finally:
        protected.close()


def test_a_certificate_of_nobodys_is_told_with_the_variable_that_helps(tmp_path: Path) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who breaks the handshake off is expected
        server.socket = certificates(tmp_path).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        ended = run(f"https://localhost:{server.server_address[1]}/mcp", "plain")
        server.shutdown()
    assert ended.code == 1 and ended.err.count("\n") == 1
    assert "the server's certificate was not accepted. SSL_CERT_FILE=FILE names" in ended.err


# ---- in a terminal --------------------------------------------------------------------------------------------------


def test_a_wait_is_shown_and_the_line_goes_away(server: McpServer) -> None:
    with Terminal.python(*RUN, server.url, 'slow {"seconds": 3}', *EMBEDDED) as terminal:
        shown = terminal.expect(r"waiting for slow \.\.\. 1 s")
        shown += terminal.expect(r"waiting for slow \.\.\. 2 s")
        code, rest = terminal.end()
    assert code == 0
    assert "\n" not in shown, "one line, kept up to date"
    assert re.search(r"\r\x1b\[K\S", rest), "the answer stands where the status was"


def test_an_answer_can_not_drive_the_terminal(server: McpServer) -> None:
    text = "\x1b]52;c;aGk=\x07\x1b[2Jred\u202e"
    query = "plain " + json.dumps({"text": text})
    assert text in run(server.url, query).check().out, "a program gets the text as it is"
    with Terminal.python(*RUN, server.url, query, *EMBEDDED, "--quiet") as terminal:
        code, shown = terminal.end()
    assert code == 0 and "plain: \\x1b]52" in shown and "\x1b" not in shown and "\u202e" not in shown


def test_a_prompt_is_not_disturbed(server: McpServer, canary: Canary) -> None:
    canary.allow_shown("http://127.0.0.1:", exact=False)
    with Terminal.python(*RUN, server.url, "get_gmail_users_get_profile", "--no-browser", *EMBEDDED) as terminal:
        shown = terminal.expect(PROMPT)
        assert terminal.child.expect([pexpect.TIMEOUT, r"\.\.\. \d+ s"], timeout=2.5) == 0, "a status in the prompt"
        link = re.search(r"http://127\.0\.0\.1:\d+/authorize\?\S+", shown)
        assert link
        click_allow(link[0])
        terminal.expect("ada@example.com")
        assert terminal.end()[0] == 0
    assert server.actions() == ["accept"]


def test_ctrl_c_ends_a_wait_at_once(server: McpServer) -> None:
    with Terminal.python(*RUN, server.url, 'slow {"seconds": 30}', *EMBEDDED) as terminal:
        terminal.expect("waiting for slow")
        begin = time.monotonic()
        terminal.interrupt()
        code, rest = terminal.end(20)
    assert code == 130 and "ended with Ctrl-C" in rest and "Traceback" not in rest
    assert time.monotonic() - begin < 5


# A status that is due ten times a second: what is written, and where to, does not depend on it.
_STATUS = """
import sys, time
from gopher_mcp_python.cli import status
status.FIRST_SECONDS = status.EVERY_SECONDS = 0.1
"""
_WAIT = """
with status.waiting("connecting to mail.example") as shown:
    shown.detail("7 of 9")
    time.sleep(1)
"""


def test_pipes_and_logs_get_no_status() -> None:
    ended = children.python(_STATUS + _WAIT).check()
    assert (ended.out, ended.err) == ("", "")


def test_a_terminal_gets_one_and_how_far_it_is() -> None:
    with Terminal.python("-c", _STATUS + _WAIT) as terminal:
        code, shown = terminal.end()
    assert code == 0 and re.search(r"connecting to mail\.example \.\.\. \d s, 7 of 9", shown)
    assert shown.endswith("\r\x1b[K"), "the line is taken away"


def test_a_dumb_terminal_gets_none() -> None:
    with Terminal.python("-c", _STATUS + _WAIT, env={"TERM": "dumb"}) as terminal:
        assert terminal.end() == (0, "")


def test_a_status_on_a_terminal_that_went_away_is_no_error() -> None:
    program = (
        _STATUS
        + """
import os, pty
ours, theirs = pty.openpty()
stream = os.fdopen(theirs, "w", 1)
os.close(ours)  # every write fails from now on
with status.Status(stream=stream) as shown:
    shown.waiting("nobody")
    time.sleep(0.5)
os._exit(0)
"""
    )
    ended = children.python(program).check()
    assert ended.err == ""


# ---- signing in to the server itself ---------------------------------------------------------------------------------


def _oauth(*arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    run_command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["run", "https://host.test/mcp", "query", "--token-store", "memory", *arguments])
    return run_command._create_options(args, lambda event: None).oauth


def test_a_sign_in_is_left_to_the_server_unless_something_is_said() -> None:
    oauth = _oauth()
    given = {name for name, value in vars(oauth).items() if value is not None}
    assert given == {"grant", "token_store"}


def test_each_option_of_a_sign_in_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    words = "--no-sign-in --scope mail --scope notes --client-id me --client-secret-env MY_SECRET --no-browser"
    oauth = _oauth(*words.split(), "--redirect-uri", "http://localhost:8123/cb", "--sign-in-timeout", "2.5")
    assert (oauth.mode, oauth.scopes, oauth.client_id, oauth.client_secret) == (
        "disabled",
        ["mail", "notes"],
        "me",
        "s3cret",
    )
    assert (oauth.redirect_uri, oauth.timeout_ms, oauth.open_browser) == ("http://localhost:8123/cb", 2500, False)


def test_a_client_secret_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"--client-secret-env.*NO_SUCH_SECRET"):
        _oauth("--client-id", "me", "--client-secret-env", "NO_SUCH_SECRET")
