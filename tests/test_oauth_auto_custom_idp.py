"""The whole job with nothing configured: a tool wants its provider's OAuth, the page opens, the person presses Enter.

Everything is real: the program on a terminal, the command that BROWSER names (a script that presses Allow on the page,
as a person does), the provider's page, the MCP server, on both engines.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import children
from tests.support.servers import McpServer
from tests.support.terminal import Terminal
from tests.support.variants import Variant, on_both

QUERY = "get mail profile, using get_gmail_users_get_profile"
PROGRAM = """
import json, sys
import gopher_mcp_python as gopher
provider, url, options, query = json.loads(sys.argv[1])
with gopher.GopherAgent.create_with_url(provider, "scripted", url, options) as agent:
    print("RESULT", agent.run(query))
"""
READY = "Complete the OAuth flow in the browser, then press Enter to continue"
PAGE = r"\r\n(http://127\.0\.0\.1:\d+/authorize\?\S+)\r\n"


@pytest.fixture(scope="module")
def patient_server() -> Iterator[McpServer]:
    """A server whose tool goes on only after Allow was pressed, and which does not tell when that was."""
    server = McpServer("--need-allow", "--no-complete")
    yield server
    server.close()


@pytest.fixture
def provider(patient_server: McpServer, canary: Any) -> McpServer:
    canary.allow_shown(patient_server.provider, exact=False)
    return patient_server.clear()


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """A browser whose user presses Allow."""
    file = tmp_path / "browser"
    lines = [
        f"#!{sys.executable}",
        "import sys",
        f"sys.path.insert(0, {str(children.ROOT)!r})",
        "from tests.support.servers import click_allow",
        "click_allow(sys.argv[1])",
        f"open({str(tmp_path / 'clicked')!r}, 'w').write('yes')",
    ]
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def program(environment_for: Callable[[Variant], dict[str, str]]) -> Callable[..., Terminal]:
    def start(variant: Variant, url: str, **environment: str) -> Terminal:
        argument = json.dumps([variant.provider, url, {"engine": variant.engine}, QUERY])
        return Terminal.python("-c", PROGRAM, argument, env={**environment_for(variant), **environment}, timeout=60)

    return start


@on_both
def test_the_browser_opens_and_enter_resumes(
    variant: Variant, provider: McpServer, browser: Path, program: Callable[..., Terminal]
) -> None:
    with program(variant, provider.url, BROWSER=str(browser)) as terminal:
        shown = terminal.expect(READY)
        assert "It was opened in your browser" in shown
        end = time.monotonic() + 30
        while not (browser.parent / "clicked").exists():
            assert time.monotonic() < end, "Allow was not pressed"
            time.sleep(0.05)
        terminal.line()
        terminal.expect("RESULT .*ada@example.com")
        assert terminal.end()[0] == 0
    assert provider.actions() == ["accept"]


@on_both
def test_without_a_browser_the_url_is_there_to_be_opened_elsewhere(
    variant: Variant, provider: McpServer, program: Callable[..., Terminal]
) -> None:
    from tests.support.servers import click_allow

    with program(variant, provider.url, BROWSER="lynx") as terminal:
        terminal.child.expect(PAGE)
        url = str(terminal.child.match[1])
        assert "lynx, a text browser" in terminal.expect(READY)
        click_allow(url)
        terminal.line()
        terminal.expect("RESULT .*ada@example.com")
        assert terminal.end()[0] == 0
    assert provider.actions() == ["accept"]


@on_both
def test_cancel_ends_the_tool_call_and_the_run_goes_on(
    variant: Variant, provider: McpServer, program: Callable[..., Terminal]
) -> None:
    with program(variant, provider.url) as terminal:
        terminal.expect(READY)
        terminal.line("cancel")
        terminal.expect("RESULT")
        assert terminal.end()[0] == 0
    assert provider.actions() == ["cancel"]
