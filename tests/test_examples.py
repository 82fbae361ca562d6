"""The examples: each is run, as a person would run it, against a real server."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import children
from tests.support.children import ROOT

pytestmark = pytest.mark.source_tree

EXAMPLES = ROOT / "examples"
FACTORIES = (
    "json", "api_key", "server_config", "server_id", "server_name", "gateway_id", "gateway_name", "url",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo_url() -> Iterator[str]:
    """The demo's server, as `gopher-mcp demo --serve` starts it."""
    from gopher_mcp_python.demo.child import DemoServer

    with DemoServer() as server:
        yield server.url


def _example(name: str, *arguments: str, env: dict[str, str] | None = None) -> children.Ended:
    return children.run([sys.executable, str(EXAMPLES / name), *arguments], env=env)


def test_there_is_one_for_each_factory() -> None:
    assert {path.stem for path in (EXAMPLES / "api").glob("*.py")} == {f"create_by_{name}" for name in FACTORIES}
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in [*(EXAMPLES / "api").glob("*.*"), *EXAMPLES.glob("*.py")]:
        assert path.name in readme


@pytest.mark.parametrize("name", ["create_by_url.py", "create_by_url_run.sh"])
def test_the_url_example_needs_no_word_about_elicitation(name: str) -> None:
    source = (EXAMPLES / "api" / name).read_text(encoding="utf-8")
    assert not re.search("elicit|handler|open_browser|timeout_ms", source, re.IGNORECASE)


@pytest.mark.parametrize("name", [f"create_by_{name}.py" for name in FACTORIES if name not in ("url", "json")])
def test_without_arguments_it_says_what_it_needs(name: str) -> None:
    ended = _example(f"api/{name}")
    assert ended.code == 2
    assert ended.err.startswith("usage: ") and name in ended.err
    assert ended.out == ""


def test_by_url_without_a_terminal_shows_the_link_and_goes_on(demo_url: str) -> None:
    """Nobody can press Enter: the request is cancelled, the tool says so, the program ends normally."""
    ended = _example("api/create_by_url.py", env={"GOPHER_MCP_URL": demo_url, "GOPHER_MCP_ENGINE": "embedded"})
    assert "/provider/authorize?" in ended.err
    assert "cancel" in ended.out + ended.err
    assert "Traceback" not in ended.err


def test_the_shell_script_passes_the_query(demo_url: str) -> None:
    env = {"GOPHER_MCP_URL": demo_url, "GOPHER_MCP_ENGINE": "embedded", "PYTHON": sys.executable}
    ended = children.run([str(EXAMPLES / "api/create_by_url_run.sh"), "call no_such_tool please"], env=env)
    assert ended.code == 1
    assert "create_by_url: " in ended.err and "Traceback" not in ended.err


@pytest.mark.parametrize("name", ["create_by_json.py", "create_by_server_config.py"])
def test_servers_from_json(name: str, demo_url: str, tmp_path: Path) -> None:
    source = (EXAMPLES / "api" / "create_by_json.py").read_text(encoding="utf-8")
    assert "http://127.0.0.1:8808/mcp" in source
    servers = runpy.run_path(str(EXAMPLES / "api" / "create_by_json.py"))["SERVERS"]
    text = json.dumps(servers).replace("http://127.0.0.1:8808/mcp", demo_url)
    config = tmp_path / "servers.json"
    config.write_text(text, encoding="utf-8")
    arguments = [str(config)] if name == "create_by_server_config.py" else []
    env = {"GOPHER_MCP_CONFIG": str(config), "GOPHER_MCP_ENGINE": "embedded"}
    ended = _example(f"api/{name}", *arguments, env=env)
    assert "/provider/authorize?" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("answer", ["done", "cancel"])
@pytest.mark.parametrize("name", ["custom_handler.py", "async_agent.py", "toolset.py"])
def test_the_custom_handler_takes_its_answer_from_elsewhere(name: str, answer: str, demo_url: str) -> None:
    from gopher_mcp_python.demo.click import click

    program = [sys.executable, str(EXAMPLES / name), demo_url]
    env = children.environment({"GOPHER_MCP_ENGINE": "embedded"})
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        asked = process.stdout.readline()
        assert asked.startswith("PLEASE OPEN http://127.0.0.1:")
        if answer == "done":
            click(asked.split()[-1])
        out, err = process.communicate(f"{answer}\n", timeout=60)
    assert ("ada@mail.example" in out) == (answer == "done"), out + err
    assert "Traceback" not in err


def test_the_async_example_gives_up_in_time(demo_url: str) -> None:
    program = [sys.executable, str(EXAMPLES / "async_agent.py"), demo_url, "5"]
    env = children.environment({"GOPHER_MCP_ENGINE": "embedded"})
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.wait(60) == 1  # while its input is open and silent
        out, err = process.communicate()
    assert out.startswith("PLEASE OPEN http://127.0.0.1:")
    assert err == "async_agent: nobody signed in within 5 s\n"


def test_the_link_only_example_opens_no_browser(demo_url: str, tmp_path: Path) -> None:
    seen = tmp_path / "opened"
    browser = tmp_path / "browser.sh"
    browser.write_text(f"#!/bin/sh\necho opened > {seen}\n")
    browser.chmod(0o755)
    env = {"BROWSER": str(browser), "GOPHER_MCP_ENGINE": "embedded"}
    ended = _example("print_link_only.py", demo_url, env=env)
    assert "/provider/authorize?" in ended.err
    assert not seen.exists()


def test_the_client_of_the_sdk(demo_url: str) -> None:
    """The other frameworks' examples run where these are installed (tests/support/frameworks)."""
    ended = _example("frameworks_mcp_sdk.py", demo_url)
    assert "/provider/authorize?" in ended.check().err
    assert "cancel" in ended.out
