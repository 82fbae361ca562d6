"""Where a held call is confirmed: the address that the gateway was given is told with the confirmation's id."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from gopher_mcp_python.gateway.held import META_KEY
from tests.support import children
from tests.support.gateways import House, Person, Vault, id_of, run, status_of
from tests.support.hosting import Hosted

PAGE = "https://confirm.example/requests"
BOTH = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
VARIABLE = "GOPHER_MCP_CONFIRM_AT"


def names(result: Any, page: str) -> bool:
    """Whether a result names the page and the confirmation in its text, for programs, and in the structured content."""
    (block,) = result.content
    facts = result.meta[META_KEY]
    assert result.structured_content == {META_KEY: facts}
    return page in block.text and id_of(result) in block.text and facts.get("confirmAt") == page


@BOTH
def test_what_is_held_says_where_it_is_confirmed(modern: bool) -> None:
    house = House(confirm_at=PAGE)

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", {})
            assert status_of(held) == "held" and names(held, PAGE)
            house.store.respond("local", id_of(held), {"confirmed": False})
            declined = await client.call_tool("erase", {})
            assert status_of(declined) == "declined" and "confirmAt" not in declined.meta[META_KEY]

    run(body())


def test_a_client_that_fails_to_ask_is_told_too() -> None:
    house = House(confirm_at=PAGE)

    class Fails(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            raise RuntimeError("no screen")

    async def body() -> None:
        async with house.client(Fails()) as client:
            assert names(await client.call_tool("erase", {}), PAGE)

    run(body())


def test_without_an_address_none_is_told() -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("erase", {})
            assert "confirmAt" not in held.meta[META_KEY] and "http" not in held.content[0].text

    run(body())


@pytest.mark.parametrize(
    "url",
    ["", "confirm.example", "ftp://confirm.example/", "javascript:alert(1)", "https:///x", " https://confirm.example/",
     "https://s3cr3t@confirm.example/", "https://ada:s3cr3t@confirm.example/", "https://confirm.example/\x1b[2J"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from gopher_mcp_python.cli import main

    with pytest.raises(ValueError, match="the address of the page") as refused:
        House(confirm_at=url)
    assert "s3cr3t" not in str(refused.value)
    argv = ["gateway", "--upstream", "a=http://127.0.0.1:1/mcp", "--store", "memory", "--anonymous", "--port", "0"]
    assert main([*argv, "--tokens", str(tmp_path / "tokens"), "--confirm-at", url]) == 2
    told = capsys.readouterr().err
    assert "--confirm-at: " in told and "s3cr3t" not in told


@pytest.mark.parametrize(
    ("option", "variable"),
    [(PAGE, ""), ("", PAGE), (PAGE, "https://other.example/")],
    ids=["option", "variable", "both"],
)
def test_the_command_is_told_by_an_option_or_a_variable(option: str, variable: str, tmp_path: Path) -> None:
    behind = Hosted(Vault().sdk.streamable_http_app(), "vault")
    argv = ["-m", "gopher_mcp_python", "gateway", "--stdio", "--upstream", f"vault={behind.base}/mcp",
            "--store", f"sqlite:{tmp_path / 'store.db'}", "--keys", str(tmp_path / "keys")]  # fmt: skip
    argv += ["--confirm-at", option] if option else []
    environment = {**children.environment(), **({VARIABLE: variable} if variable else {})}

    async def body() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=argv, env=environment)
        async with Client(stdio_client(parameters), mode="legacy") as client:
            assert names(await client.call_tool("erase", {}), PAGE)

    try:
        run(body())
    finally:
        behind.close()
