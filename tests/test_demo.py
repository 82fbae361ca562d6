"""`gopher-mcp demo` as people meet it: in a terminal with a person, and without either."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gopher_mcp_python.demo.click import click
from tests.support import children
from tests.support.scripted_llm import ScriptedModel
from tests.support.terminal import Terminal

DEMO = ("-m", "gopher_mcp_python", "demo")
_LINK = r"http://127\.0\.0\.1:\d+/provider/authorize\?\S+"


def _headless(*arguments: str, env: dict[str, str] | None = None) -> children.Ended:
    return children.run([sys.executable, *DEMO, *arguments], env=env)


def _link(shown: str) -> str:
    found = re.search(_LINK, shown)
    assert found, shown
    return found[0]


def test_without_a_terminal_it_clicks_itself_and_says_so() -> None:
    ended = _headless().check()
    assert ended.err == ""
    assert "there is no terminal here" in ended.out and "presses Allow itself" in ended.out
    assert re.search(r"^  engine +embedded, because \S", ended.out, re.MULTILINE)
    assert re.search(r'^  result +\{"emailAddress": "ada@mail\.example"', ended.out, re.MULTILINE)
    assert "What happened: " in ended.out


def test_the_first_screen_tells_the_whole_story() -> None:
    lines = _headless().check().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 120


def test_a_denied_sign_in_is_told_and_is_no_success() -> None:
    ended = _headless("--click", "deny")
    assert ended.code == 1
    assert "access was denied on the provider's page" in ended.out and "Traceback" not in ended.err


@pytest.mark.parametrize("arguments", [("--elicitation", "decline"), ("--elicitation", "off")])
def test_nobody_is_asked_where_that_was_wished(arguments: tuple[str, ...]) -> None:
    ended = _headless(*arguments)
    assert ended.code == 1 and "Not signed in" in ended.out
    assert ended.err == ""


def test_a_proxy_of_the_environment_does_not_get_in_the_way() -> None:
    dead = "http://127.0.0.1:9"
    _headless(env={"HTTP_PROXY": dead, "http_proxy": dead, "NO_PROXY": "", "no_proxy": ""}).check()


def test_the_same_on_the_vendors_library(native_environment: dict[str, str], scripted_model: ScriptedModel) -> None:
    env = {**native_environment, **scripted_model.environment(), "GOPHER_MCP_ENGINE": "native"}
    ended = _headless("--provider", "OpenAIProvider", "--model", "scripted", env=env).check()
    assert re.search(r"^  engine +native, because .*libgopher-orch 0\.1\.39", ended.out, re.MULTILINE)
    assert "ada@mail.example" in ended.out and "went on to its result" in " ".join(ended.out.split())
    assert ended.err == ""


def test_the_installed_command_is_there() -> None:
    command = Path(sys.executable).with_name("gopher-mcp")
    if not command.exists():  # the package is used from its source tree
        command = Path(sys.executable)
        children.run([str(command), "-m", "gopher_mcp_python", "--version"]).check()
        return
    assert children.run([str(command), "--version"]).check().out.startswith("gopher-mcp ")


def test_a_person_reads_clicks_and_presses_enter() -> None:
    """The page is finished but the server's notice is not waited for: Enter is what goes on."""
    with Terminal.python(*DEMO, "--no-browser") as terminal:
        shown = terminal.expect('Type "cancel" and press Enter to cancel')
        assert "Demo Mail needs your permission" in shown and "Host: 127.0.0.1" in shown
        terminal.line()
        time.sleep(0.5)  # the tool waits for the page, though the request has been accepted
        click(_link(shown))
        terminal.expect('"emailAddress": "ada@mail.example"')
        code, rest = terminal.end()
    assert code == 0 and "You answered on that page" in rest


def test_the_prompt_ends_by_itself_when_the_page_is_done() -> None:
    with Terminal.python(*DEMO, "--no-browser") as terminal:
        shown = terminal.expect('Type "cancel" and press Enter to cancel')
        click(_link(shown))
        terminal.expect("The server says that you have finished")
        terminal.expect('"emailAddress": "ada@mail.example"')
        assert terminal.end()[0] == 0


def test_the_browser_is_given_the_link_after_it_was_shown(tmp_path: Path) -> None:
    """A browser that is a script: it opens the page and presses Allow, as a person would."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\nimport sys\nfrom gopher_mcp_python.demo.click import click\n"
        f"open({str(seen)!r}, 'w').write(sys.argv[1])\nclick(sys.argv[1])\n"
    )
    browser.chmod(0o755)
    with Terminal.python(*DEMO, env={"BROWSER": str(browser)}) as terminal:
        shown = terminal.expect("opened in your browser")
        terminal.expect('"emailAddress": "ada@mail.example"')
        assert terminal.end()[0] == 0
    assert seen.read_text() == _link(shown)


def test_cancel_is_told_and_is_no_success() -> None:
    with Terminal.python(*DEMO, "--no-browser") as terminal:
        terminal.expect('Type "cancel" and press Enter to cancel')
        terminal.line("cancel")
        code, rest = terminal.end()
    assert code == 1 and "answered with 'cancel'" in rest and "Traceback" not in rest


def test_ctrl_c_at_the_prompt_ends_at_once_and_leaves_no_server() -> None:
    with Terminal.python(*DEMO, "--no-browser") as terminal:
        shown = terminal.expect('Type "cancel" and press Enter to cancel')
        begin = time.monotonic()
        terminal.interrupt()
        code, rest = terminal.end(20)
    assert code == 130 and "Traceback" not in rest
    assert time.monotonic() - begin < 8
    with pytest.raises(OSError):
        click(_link(shown))


def test_where_no_browser_can_open_a_way_out_is_named() -> None:
    with Terminal.python(*DEMO) as terminal:
        shown = terminal.expect('Type "cancel" and press Enter to cancel')
        assert "gopher-mcp demo --click" in shown
        terminal.line("cancel")
        terminal.end()


def test_serve_keeps_the_server_for_other_programs() -> None:
    with subprocess.Popen(
        [sys.executable, *DEMO, "--serve"], stdout=subprocess.PIPE, text=True, env=children.environment()
    ) as serving:
        assert serving.stdout is not None
        try:
            url = serving.stdout.readline().split()[2]
            ended = children.run(
                [sys.executable, "-m", "gopher_mcp_python", "run", url, "use get_gmail_users_get_profile",
                 "--elicitation", "decline", "--engine", "embedded", "--json"]
            )  # fmt: skip
        finally:
            serving.terminate()
            serving.wait(20)
    assert '"engine": "embedded"' in ended.out and "'decline'" in ended.out
