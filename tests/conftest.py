"""Fixtures of the whole suite, and the guards that every test runs under."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import canary as canary_plugin
from tests.support import guards, vendor
from tests.support.examples import plugin as examples_plugin
from tests.support.oauth_fixtures import browser, identity_provider, protected_server, world  # noqa: F401
from tests.support.scripted_llm import ScriptedModel
from tests.support.servers import McpServer
from tests.support.stores import limited_keyring, token_home  # noqa: F401  # fixtures
from tests.support.variants import Variant

# The product must behave as on a machine without any of its variables set; tests set what they need.
for _name in ("GOPHER_MCP_ENGINE", "GOPHER_MCP_PYTHON_LIBRARY_PATH", "GOPHER_ORCH_LIBRARY_PATH", "GOPHER_ACCESS_TOKEN",
              "GOPHER_MCP_OPENSSL11_PATH", "GOPHER_MCP_LOG_LEVEL", "DEBUG", "BROWSER", "DISPLAY",
              "WAYLAND_DISPLAY", "GOPHER_MCP_DEBUG", "NO_COLOR", "FORCE_COLOR"):  # fmt: skip
    os.environ.pop(_name, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long (make test-long)")


def pytest_configure(config: pytest.Config) -> None:
    faulthandler.enable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background; its children would ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup, and its children would ignore hang-ups
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.pluginmanager.register(canary_plugin.Plugin(), "canary-plugin")
    config.pluginmanager.register(examples_plugin, "examples-plugin")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out, rather than skips, what belongs to another run."""
    unwanted = [] if config.getoption("--long") else [item for item in items if item.get_closest_marker("long")]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]


@pytest.fixture(autouse=True)
def _leak_guard(request: pytest.FixtureRequest) -> Iterator[None]:
    before = guards.Snapshot.take()
    yield
    if request.node.get_closest_marker("leaves_open"):
        return
    surplus = guards.settled(before)
    assert not surplus, "this test left behind: " + ", ".join(surplus)


# ---- Real peers -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def vendor_library_of() -> Callable[[str], Path]:
    """Gives the file of a published version of the vendor's library; fails or skips when it can't be had."""

    def get(version: str) -> Path:
        try:
            return vendor.library(version)
        except vendor.Unavailable as why:
            vendor.absent(str(why))

    return get


@pytest.fixture(scope="session")
def vendor_library(vendor_library_of: Callable[[str], Path]) -> Path:
    """The newest published libgopher-orch."""
    return vendor_library_of(vendor.NEWEST)


@pytest.fixture(scope="session")
def openssl11() -> Path:
    """The folder with OpenSSL 1.1's libraries."""
    try:
        return vendor.openssl11()
    except vendor.Unavailable as why:
        vendor.absent(str(why))


@pytest.fixture(scope="session")
def native_environment(vendor_library: Path, openssl11: Path) -> dict[str, str]:
    """Variables under which a child process finds and opens the newest vendor library."""
    return {"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(vendor_library), "GOPHER_MCP_OPENSSL11_PATH": str(openssl11)}


@pytest.fixture(scope="session")
def scripted_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedModel]:
    """The scripted model (tests/support/scripted_llm.py)."""
    assert shutil.which("openssl"), "the scripted model needs the openssl command: apt-get install openssl"
    model = ScriptedModel(tmp_path_factory.mktemp("model"))
    yield model
    model.close()


@pytest.fixture(scope="session")
def environment_for(
    scripted_model: ScriptedModel, request: pytest.FixtureRequest
) -> Callable[[Variant], dict[str, str]]:
    """Gives the variables of a child process for a variant: the scripted model, and the library if it is native."""

    def get(variant: Variant) -> dict[str, str]:
        native = request.getfixturevalue("native_environment") if variant.native else {}
        return {**scripted_model.environment(), **native}

    return get


@pytest.fixture(scope="session")
def _shared_server() -> Iterator[McpServer]:
    server = McpServer()
    yield server
    server.close()


@pytest.fixture
def server(_shared_server: McpServer) -> McpServer:
    """The scenario MCP server (tests/support/mcp_server.py) with an empty log."""
    return _shared_server.clear()


@pytest.fixture
def server_with() -> Iterator[Callable[..., McpServer]]:
    """Starts scenario servers with options of their own."""
    started: list[McpServer] = []

    def start(*options: str) -> McpServer:
        started.append(McpServer(*options))
        return started[-1]

    yield start
    for one in started:
        one.close()
