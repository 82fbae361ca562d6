"""Errors as types, old libraries, debugging, and what else runs in the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import vendor
from tests.support.canary import Canary, secret
from tests.support.postgres import Postgres
from tests.support.servers import McpServer
from tests.support.variants import Variant, on_both, with_model

from .conftest import Played

Play = Callable[..., Played]
OLD = Variant("native", "OpenAIProvider")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@with_model
def test_a_models_401_is_an_api_key_error(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("run_failure", variant, server.url, model="status-401")
    assert played["error"] == "ApiKeyError" and "AgentError" in played["kinds"], played.facts
    assert played["status"] == "error" and played["error_message"]
    assert server.tools_run() == []


@with_model
def test_a_models_500_is_an_agent_error_that_says_so(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("run_failure", variant, server.url, model="status-500")
    assert "AgentError" in played["kinds"] and "ApiKeyError" not in played["kinds"]
    assert "500" in played["message"] or "scripted failure" in played["message"]


@with_model
def test_a_model_that_talks_of_errors_has_not_failed(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("answer", variant, server.url, model="say:Error: this is what the mail said")
    assert played["success"] and played["text"] == "Error: this is what the mail said"


@on_both
def test_a_server_that_is_down_is_a_connection_error(play: Play, variant: Variant) -> None:
    played = play("create_failure", variant, "http://127.0.0.1:9/mcp")
    assert played["error"] == "ConnectionError" and "AgentError" in played["kinds"]
    assert "127.0.0.1" in played["message"]


@on_both
def test_token_and_headers_reach_the_server(
    play: Play, server_with: Callable[..., McpServer], variant: Variant
) -> None:
    token = secret("token")
    server = server_with("--token", token)
    options = {"access_token": token, "headers": {"X-Test": "a b"}}
    played = play("answer", variant, server.url, options=options)
    assert played["success"] and server.actions() == ["accept"]
    (run,) = server.log("run")
    assert run["headers"]["authorization"] == f"Bearer {token}" and run["headers"]["x-test"] == "a b"


# ---- A vendor library without elicitation ---------------------------------------------------------------------------


@pytest.fixture
def old_environment(vendor_library_of: Callable[[str], Any], openssl11: Any) -> dict[str, str]:
    library = vendor_library_of(vendor.WITHOUT_ELICITATION)
    return {"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(library), "GOPHER_MCP_OPENSSL11_PATH": str(openssl11)}


def test_auto_takes_the_embedded_engine_and_says_why(
    play: Play, server: McpServer, old_environment: dict[str, str]
) -> None:
    variant = Variant("auto", "OpenAIProvider")
    played = play("old_library", variant, server.url, env=old_environment)
    assert played["text"] == "embedded" and "plain: ok" in played["plain"]["text"]
    ((category, text),) = played["warnings"]
    assert category == "NativeMismatchWarning"
    assert "0.1.34" in text and "0.1.35" in text


def test_explicit_native_with_default_elicitation_goes_without(
    play: Play, server: McpServer, old_environment: dict[str, str]
) -> None:
    played = play("old_library", OLD, server.url, env=old_environment)
    assert played["text"] == "native" and "plain: ok" in played["plain"]["text"], played.facts
    assert all("elicitation" not in (hello["capabilities"] or {}) for hello in server.log("hello"))


@pytest.mark.parametrize("elicitation", [{"timeout_ms": 5000}, {"open_browser": False}], ids=["limit", "browser"])
def test_explicit_native_and_explicit_elicitation_fail_clearly(
    play: Play, server: McpServer, old_environment: dict[str, str], elicitation: dict[str, Any]
) -> None:
    played = play("old_library", OLD, server.url, env=old_environment, more={"elicitation": elicitation})
    assert played["error"] == "AgentError"
    for part in ("0.1.34", "0.1.35", "0.1.38"):
        assert part in played["message"]


def test_the_newest_library_is_chosen_by_itself(
    play: Play, server: McpServer, native_environment: dict[str, str]
) -> None:
    played = play("answer", Variant("auto", "OpenAIProvider"), server.url, env=native_environment)
    assert played["engine"] == "native"


# ---- The process around ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("implementation", ["binary", "python"])
@on_both
def test_sqlite3_and_libpq_work_after_loading(
    play: Play, server: McpServer, variant: Variant, postgres: Postgres, implementation: str
) -> None:
    more = {"dsn": postgres.dsn(), "implementation": implementation}
    played = play("libraries_after", variant, server.url, more=more)
    assert played["sqlite"] == 42 and played["serialize"]
    assert played["libpq"] == 42 and played["implementation"] == implementation
    assert "plain: ok" in played["text"]


@pytest.mark.parametrize(
    "settings", [{"DEBUG": "1"}, {"GOPHER_MCP_LOG_LEVEL": "debug"}, {}], ids=["DEBUG", "level", "none"]
)
@on_both
def test_debug_output_holds_no_secret(
    play: Play, server: McpServer, variant: Variant, settings: dict[str, str], canary: Canary
) -> None:
    canary.allow_shown(server.provider, exact=False)  # the prompt itself; all else goes through the scan
    options = {"access_token": secret("token"), "headers": {"X-Key": secret("header")}}
    played = play("quiet_default", variant, server.url, env=settings, options=options)
    assert server.actions() == ["cancel"], "nobody was there to ask"
    assert server.provider in played.err, "the URL is printed all the same"
    if variant.native:  # what the library itself prints; our own goes through logging
        assert ("Capping agent timeout" in played.err) == bool(settings), "debug output is on exactly when asked for"
