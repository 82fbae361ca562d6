"""Sign-in of whole programs: a process of its own, the browser that BROWSER names, both engines, stores on disk."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import children
from tests.support.browsing import browser_file
from tests.support.idp import IdentityProvider
from tests.support.protected import ProtectedServer
from tests.support.terminal import Terminal
from tests.support.variants import EMBEDDED, Variant, on_both

PROGRAM = """
import json, sys
import gopher_mcp_python as gopher
provider, url, options, *queries = json.loads(sys.argv[1])
try:
    create = gopher.GopherAgent.create_with_url if url[0] == "h" else gopher.GopherAgent.create_with_server_config
    with create(provider, "scripted", url, options) as agent:
        for query in queries:
            print("RESULT", agent.run(query))
except gopher.AgentError as error:
    print("ERROR", type(error).__name__, error)
"""
Run = Callable[..., children.Ended]


@pytest.fixture
def idp(identity_provider: IdentityProvider, canary: Any) -> IdentityProvider:
    canary.allow_shown(f"{identity_provider.base}/authorize", exact=False)
    return identity_provider.reset()


@pytest.fixture
def server(protected_server: ProtectedServer, idp: IdentityProvider) -> ProtectedServer:
    return protected_server.reset()


def homes(folder: Path) -> dict[str, str]:
    """Variables under which a program keeps what it keeps in this folder."""
    named = {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"}
    return {"HOME": str(folder), **{name: str(folder / what) for name, what in named.items()}}


@pytest.fixture
def run(environment_for: Callable[[Variant], dict[str, str]], server: ProtectedServer, tmp_path: Path) -> Run:
    """Runs the program with queries; its home, and with it its token file, is the test's folder."""
    browser = browser_file(tmp_path)

    def go(
        variant: Variant, *queries: str, options: dict[str, Any] | None = None, config: Any = None, **environment: str
    ) -> Any:
        target = server.url if config is None else json.dumps(config)
        given = [variant.provider, target, {"engine": variant.engine, **(options or {})}, *queries]
        env = {**environment_for(variant), **homes(tmp_path), "BROWSER": str(browser), **environment}
        return children.run([sys.executable, "-c", PROGRAM, json.dumps(given)], env=env, timeout=90)

    return go


@on_both
def test_a_program_signs_in_and_keeps_its_token_on_disk(variant: Variant, run: Run, idp: IdentityProvider) -> None:
    for _ in range(2):
        ended = run(variant, "tell me, using whoami", GOPHER_MCP_TOKEN_STORE="file").check()
        assert '"subject": "ada"' in ended.out.replace("\\", "")
    assert idp.count("authorize") == 1, "the second process has the token"


@on_both
def test_a_stored_token_that_ended_is_refreshed_without_a_browser(
    variant: Variant, run: Run, idp: IdentityProvider
) -> None:
    run(variant, "using plain", GOPHER_MCP_TOKEN_STORE="file").check()
    idp.expire_access_tokens()
    assert "plain: ok" in run(variant, "using plain", GOPHER_MCP_TOKEN_STORE="file").check().out
    assert idp.count("authorize") == 1 and idp.count("refresh") == 1


@on_both
def test_a_token_that_ends_between_two_runs(
    variant: Variant, run: Run, server: ProtectedServer, idp: IdentityProvider
) -> None:
    idp.settings.access_lifetime = 3
    ended = run(variant, 'using slow {"seconds": 3.5}', "using plain").check()
    assert "slow: 3.5" in ended.out and "plain: ok" in ended.out
    assert idp.count("authorize") == 1 and idp.count("refresh") >= 1


@on_both
def test_a_token_that_is_refused_before_its_time(
    variant: Variant, run: Run, server: ProtectedServer, idp: IdentityProvider
) -> None:
    """The native library tells only that a tool failed; the next run begins with a token that is good."""
    server.before("plain", idp.expire_access_tokens)
    ended = run(variant, "using plain", "using plain", "using whoami", options={"elicitation": False}).check()
    assert "plain: ok" in ended.out and "ada" in ended.out
    assert idp.count("authorize") == 1 and idp.count("refresh") == 1


@pytest.mark.parametrize("names", [("mail", "notes"), ("mail", "mail")], ids=["two names", "one name"])
@on_both
def test_two_servers_with_two_issuers(
    variant: Variant, run: Run, server: ProtectedServer, idp: IdentityProvider, canary: Any, names: tuple[str, str]
) -> None:
    with IdentityProvider(subject="grace") as other, ProtectedServer(other, suffix="_b") as second:
        canary.allow_shown(other.authorize_url, exact=False)
        listed = [
            {"serverId": one.base[-5:], "name": name, "transport": "http_sse", "config": {"url": one.url}}
            for name, one in zip(names, (server, second), strict=True)
        ]
        config = {"succeeded": True, "data": {"servers": listed}}
        ended = run(variant, "using whoami", "using whoami_b", config=config).check()
        assert ended.out.index("ada") < ended.out.index("grace")
        assert [idp.count("authorize"), other.count("authorize")] == [1, 1]
        refused = [*server.events("unauthorized"), *second.events("unauthorized")]
        assert not any(one["presented"] for one in refused), "one server was sent the other's token"
        assert [one for one, _ in (*server.calls(), *second.calls())] == ["whoami", "whoami"]


@on_both
def test_a_denial_is_an_error_in_words(variant: Variant, run: Run, idp: IdentityProvider) -> None:
    idp.settings.consent = "deny"
    ended = run(variant, "using plain").check()
    assert ended.out.startswith("ERROR SignInError") and "Traceback" not in ended.err


@on_both
def test_sign_in_and_elicitation_in_one_program(variant: Variant, run: Run, server: ProtectedServer) -> None:
    ended = run(variant, "using ask", options={"elicitation": {"handler": "decline"}}).check()
    assert "action: decline" in ended.out


def test_nothing_is_printed_when_a_refresh_is_refused(run: Run, idp: IdentityProvider) -> None:
    """The SDK's own warnings are for its developers."""
    run(EMBEDDED, "using plain", GOPHER_MCP_TOKEN_STORE="file").check()
    idp.revoke_grants()
    ended = run(EMBEDDED, "using plain", GOPHER_MCP_TOKEN_STORE="file").check()
    assert "plain: ok" in ended.out and "refresh" not in ended.err and "WARNING" not in ended.err


def test_two_processes_at_once_with_a_rotating_token(run: Run, idp: IdentityProvider, server: ProtectedServer) -> None:
    """Both find the token expired and share a store. A refresh token that comes twice would revoke the whole grant."""
    run(EMBEDDED, "using plain", GOPHER_MCP_TOKEN_STORE="file").check()
    idp.expire_access_tokens()
    hold, ended = idp.hold("refresh"), []

    def one() -> None:
        ended.append(run(EMBEDDED, "using plain", GOPHER_MCP_TOKEN_STORE="file"))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    hold.wait_reached(60)
    wait = threading.Event().wait
    while server.refusals() < 3:  # that of the sign-in, and one of each process
        assert not wait(0.02)
    for _ in range(50):  # so that the other process has time to come here too, if it does
        if hold.count == 2 or wait(0.02):
            break
    hold.release()
    for thread in threads:
        thread.join(90)
    assert ["plain: ok" in one.check().out for one in ended] == [True, True]
    assert idp.count("reuse") == 0 and idp.count("authorize") == 1


LEAVING = """
import pathlib, sys, threading, time
import gopher_mcp_python as gopher
url, flag = sys.argv[1:]
create = gopher.GopherAgent.create_with_url
threading.Thread(target=create, args=("DirectProvider", "m", url, {"engine": "embedded"}), daemon=True).start()
while not pathlib.Path(flag).exists():
    time.sleep(0.01)
"""


def test_a_program_that_ends_during_a_refresh_keeps_the_new_token(
    run: Run, idp: IdentityProvider, server: ProtectedServer, tmp_path: Path
) -> None:
    """The old one is worth nothing any more; threads of an executor could not store the new one by then."""
    store = {"GOPHER_MCP_TOKEN_STORE": "file"}
    run(EMBEDDED, "using plain", **store).check()
    idp.expire_access_tokens()
    hold, flag, ended = idp.hold("refresh"), tmp_path / "leave", []
    command = [sys.executable, "-c", LEAVING, server.url, str(flag)]
    thread = threading.Thread(target=lambda: ended.append(children.run(command, env={**homes(tmp_path), **store})))
    thread.start()
    hold.wait_reached(60)
    flag.touch()
    threading.Event().wait(0.3)  # for the program to be on its way out
    hold.release()
    thread.join(60)
    ended[0].check()
    assert "plain: ok" in run(EMBEDDED, "using plain", **store).check().out
    assert idp.count("authorize") == 1 and idp.count("reuse") == 0


def test_logout_forgets_the_token(run: Run, server: ProtectedServer, idp: IdentityProvider, tmp_path: Path) -> None:
    store = {"GOPHER_MCP_TOKEN_STORE": "file"}
    run(EMBEDDED, "using plain", **store).check()
    argv = [sys.executable, "-m", "gopher_mcp_python", "logout", server.url, "--token-store", "file"]
    homes = {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    children.run(argv, env=homes).check()
    run(EMBEDDED, "using plain", **store).check()
    assert idp.count("authorize") == 2


def test_the_command_line_signs_in(server: ProtectedServer, idp: IdentityProvider, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "gopher_mcp_python", "run", server.url, "whoami", "--token-store", "memory"]
    ended = children.run(argv, env={"BROWSER": str(browser_file(tmp_path)), "HOME": str(tmp_path)}).check()
    assert json.loads(ended.out)["subject"] == "ada"


@on_both
def test_ctrl_c_ends_a_sign_in(
    variant: Variant, environment_for: Callable[[Variant], dict[str, str]], server: ProtectedServer, tmp_path: Path
) -> None:
    """The person does nothing and presses Ctrl-C in the terminal: the program ends as Python programs do."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f"#!/bin/sh\necho yes > {opened}\n")
    browser.chmod(0o755)
    given = json.dumps([variant.provider, server.url, {"engine": variant.engine}, "using plain"])
    env = {**environment_for(variant), **homes(tmp_path), "BROWSER": str(browser)}
    with Terminal.python("-c", PROGRAM, given, env=env) as terminal:
        terminal.expect("wants you to sign in")
        while not opened.exists():
            time.sleep(0.02)
        terminal.interrupt()
        code, shown = terminal.end(timeout=20)
    assert code == -2 and "\nKeyboardInterrupt" in shown and "ERROR" not in shown
