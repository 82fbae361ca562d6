"""The gateway as processes: killed at every point of a confirmed call, two on one store, and as a command."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from gopher_mcp_python.serve.opening import open_store
from gopher_mcp_python.serve.tokens import TokenFile
from tests.support import children, store_postgres
from tests.support.gateways import Person, id_of, run, started, status_of, text_of
from tests.support.postgres import PASSWORD

COMMAND = [sys.executable, "-m", "gopher_mcp_python", "gateway"]


class Place:
    """A folder with a store, its keys, and what ran on the server."""

    def __init__(self, folder: Path, spec: str = "") -> None:
        self.spec = spec or f"sqlite:{folder / 'store.db'}"
        self.keys = folder / "keys"
        self.runs_file = folder / "runs"
        self.runs_file.touch()
        self.store = open_store(self.spec, self.keys)

    def runs(self) -> list[str]:
        return self.runs_file.read_text().splitlines()

    def confirm(self, held: Any) -> None:
        self.store.respond("local", id_of(held), {"confirmed": True})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.store.close()


async def call(url: str, arguments: dict[str, Any]) -> Any:
    """One call of `erase` by a client that can't be asked; None when the gateway dies over it."""
    try:
        async with Client(url, mode="legacy") as client:
            return await client.call_tool("erase", arguments)
    except BaseException as error:
        if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, AssertionError)):
            raise
        return None


def test_killed_at_any_point_no_call_runs_twice_or_without_its_approval(place: Place) -> None:
    """Each gateway takes over from the one that was killed before, and is killed at the next point itself."""
    points = {
        # (the approval is) stored, not consumed: it is used after the restart
        "before-consume": ("ran", 1),
        # consumed, the server not called: nobody can know that, so it is unknown and does not run
        "after-consume": ("unknown", 0),
        # the server's result is here, not recorded
        "before-complete": ("unknown", 1),
        # recorded, the client not answered: another call needs another approval
        "after-complete": ("held", 1),
    }

    async def body(server: str) -> None:
        killed = ""
        for point in [*points, ""]:
            with started("gateway", "0", server, place.spec, str(place.keys), point) as (process, url):
                if killed:
                    result = await call(url, {"killed": killed})
                    told = "ran" if not result.is_error else status_of(result)
                    assert (told, runs_of(killed)) == points[killed], killed
                if point:
                    place.confirm(await call(url, {"killed": point}))
                    assert await call(url, {"killed": point}) is None
                    assert process.wait(20) == -signal.SIGKILL
                    assert runs_of(point) == (1 if point in ("before-complete", "after-complete") else 0)
                killed = point

    def runs_of(point: str) -> int:
        return place.runs().count(json.dumps(["erase", {"killed": point}]))

    with started("upstream", "0", str(place.runs_file)) as (_, server):
        run(body(server))
    assert len(place.runs()) == 3
    assert place.store.verify().ok


def test_killed_while_the_server_works(place: Place) -> None:
    async def body(server: str) -> None:
        arguments = {"wait": "never"}
        with started("gateway", "0", server, place.spec, str(place.keys)) as (process, url):
            place.confirm(await call(url, arguments))
            calling = asyncio.ensure_future(call(url, arguments))
            while not place.runs():
                await asyncio.sleep(0.01)
            process.kill()
            assert await calling is None
        with started("gateway", "0", server, place.spec, str(place.keys)) as (_, url):
            unknown = await call(url, arguments)
            assert status_of(unknown) == "unknown" and "may have run" in unknown.content[0].text
        assert len(place.runs()) == 1

    with started("upstream", "0", str(place.runs_file)) as (_, server):
        run(body(server))


def test_two_gateways_on_one_file_are_one(place: Place) -> None:
    two_gateways(place)


def test_two_gateways_on_one_postgres_are_one(tmp_path: Path) -> None:
    with store_postgres.running() as server:
        name = store_postgres.database(server).name
        place = Place(
            tmp_path, f"postgresql://{store_postgres.APP}:{PASSWORD}@127.0.0.1:{server.port}/{name}"
        )
        try:
            two_gateways(place)
        finally:
            place.store.close()


def two_gateways(place: Place) -> None:
    async def body(*urls: str) -> None:
        async with Client(urls[0], mode="legacy") as one, Client(urls[1], mode="legacy") as two:
            for n in range(3):
                held = await one.call_tool("erase", {"n": n})
                assert id_of(await two.call_tool("erase", {"n": n})) == id_of(held)
                place.confirm(held)
                calls = (client.call_tool("erase", {"n": n}) for client in (one, two, one, two))
                results = await asyncio.gather(*calls)
                assert sum(not result.is_error for result in results) == 1
        assert len(place.runs()) == 3

    with started("upstream", "0", str(place.runs_file)) as (_, server):
        gateway = ("gateway", "0", server, place.spec, str(place.keys))
        with started(*gateway) as (_, one), started(*gateway) as (_, two):
            run(body(one, two))


def test_the_command_on_stdio(place: Place) -> None:
    person = Person()

    async def body(server: str) -> None:
        argv = [*COMMAND, "--stdio", "--upstream", f"vault={server}", "--store", place.spec, "--keys", str(place.keys)]
        parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=children.environment())
        for mode in ("legacy", "auto"):
            async with Client(stdio_client(parameters), mode=mode, elicitation_callback=person) as client:
                assert text_of(await client.call_tool("erase", {"mode": mode})) == "erase done"

    with started("upstream", "0", str(place.runs_file)) as (_, server):
        run(body(server))
    assert len(place.runs()) == len(person.confirmations) == 2


def test_the_command_over_http(place: Place, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token = tokens.add("ada", ["call"])
    rules = tmp_path / "rules.json"
    rules.write_text('{"deny": ["vault:bare"]}')

    async def body(url: str) -> None:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
            async with Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
                assert status_of(await client.call_tool("erase", {})) == "held"
                assert status_of(await client.call_tool("bare", {})) == "denied"
                assert text_of(await client.call_tool("look", {})) == "look done"
        assert len(place.store.pending("ada")) == 1

    with started("upstream", "0", str(place.runs_file)) as (_, server):
        argv = [*COMMAND, "--upstream", f"vault={server}", "--store", place.spec, "--keys", str(place.keys), "--port",
                "0", "--tokens", str(tokens.path), "--rules", str(rules), "--trust", "vault"]  # fmt: skip
        process = subprocess.Popen(argv, env=children.environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], 60)[0]
            found = re.search(r"http://\S+/mcp", process.stdout.readline())
            assert found is not None
            run(body(found.group()))
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--store", "memory"], "--upstream"),
        (["--store", "memory", "--upstream", "nourl"], "NAME=URL"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--elsewhere"], "others reach too"),
        (["--store", "memory", "--upstream", "a_b=http://127.0.0.1:1/mcp"], "name of a server"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/", "--upstream", "a=http://127.0.0.1:2/"], "two"),
        (["--store", "what", "--upstream", "a=http://127.0.0.1:1/mcp"], "memory, sqlite:PATH"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--trust", "b"], "'b'"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--deny", "x"], "server:tool"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--jwks", "https://x/"], "go together"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--jwt-leeway", "nan"], "0 to 300"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--jwks", "http://idp.example/",
          "--jwt-issuer", "i", "--jwt-audience", "a"], "key set must be https"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--host", "0.0.0.0", "--anonymous"],
         "loopback"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--host", "0.0.0.0"], "say --public"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--host", "0.0.0.0", "--public"],
         "--allowed-host"),
        (["--store", "memory", "--upstream", "a=http://127.0.0.1:1/mcp", "--tls-cert", "nowhere.pem", "--tls-key", "x"],
         "nowhere.pem"),
    ],
)  # fmt: skip
def test_wrong_command_lines_say_what_is_wrong(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gopher_mcp_python.cli import main

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["gateway", *argv, "--port", "0"]) == 2
    assert told in capsys.readouterr().err
    assert os.environ["HOME"] == str(tmp_path)
