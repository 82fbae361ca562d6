"""What makes two calls the same call: the arguments as the server gets them, told apart down to the last bit."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from gopher_mcp_python.gateway import Rule, Rules
from gopher_mcp_python.gateway.held import META_KEY
from tests.support.gateways import House, OverHttp, Person, id_of, memory_store, run, status_of, text_of

BOTH = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Wire:
    """A client that sends JSON texts of its own making, which no library writes anew."""

    def __init__(self, house: OverHttp) -> None:
        self.house = house
        self._http = httpx2.Client(timeout=60)
        opened = self._post("initialize", json.dumps(INITIALIZE))
        self._http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        self._http.headers["mcp-protocol-version"] = "2025-11-25"

    def _post(self, method: str, params: str) -> httpx2.Response:
        text = f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}'
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return self._http.post(self.house.url, content=text.encode(), headers=headers)

    def call(self, arguments: str | None, tool: str = "erase") -> dict[str, Any]:
        """The result of a call with this text as its arguments; None: without any."""
        told = f', "arguments": {arguments}' if arguments is not None else ""
        reply = self._post("tools/call", f'{{"name": "{tool}"{told}}}')
        (line,) = [line for line in reply.text.splitlines() if line.startswith("data: {")]
        result: dict[str, Any] = json.loads(line[6:])["result"]
        return result

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    house = OverHttp()
    made = Wire(house)
    yield made
    made.close()
    house.close()


def state(result: dict[str, Any]) -> str:
    return str(result["_meta"][META_KEY]["status"]) if result.get("isError") else "ran"


# One call, written in two ways; and what the server gets.
SAME: dict[str, tuple[str | None, str | None, Any]] = {
    "order of names": ('{"a": 1, "b": {"c": 2, "d": 3}}', '{"b": {"d": 3, "c": 2}, "a": 1}', None),
    "spaces": ('{ "a" : [ 1 ] }', '{"a":[1]}', None),
    "escapes": ('{"a": "\\u00e9\\/"}', '{"a": "é/"}', None),
    "ways to write a fraction": ('{"n": 1.0}', '{"n": 1e0}', {"n": 1.0}),
    "digits that no float has": ('{"n": 0.1}', '{"n": 0.1000000000000000055511151231257827}', None),
    "minus no integer": ('{"n": 0}', '{"n": -0}', None),
    "a name twice: the last counts": ('{"n": 2}', '{"n": 1, "n": 2}', {"n": 2}),
    "none and empty": ("{}", None, {}),
    "null and empty": ("{}", "null", {}),
}
# Two calls, of which only the first was confirmed.
OTHER = {
    "1 and 1.0": ('{"n": 1}', '{"n": 1.0}'),
    "1 and 1e0": ('{"n": 1}', '{"n": 1e0}'),
    "1 and true": ('{"n": 1}', '{"n": true}'),
    "0.0 and -0.0": ('{"n": 0.0}', '{"n": -0.0}'),
    "integers beyond 53 bits": ('{"n": 9007199254740992}', '{"n": 9007199254740993}'),
    "integers beyond 64 bits": ('{"n": 36893488147419103232}', '{"n": 36893488147419103233}'),
    "an integer and its float": ('{"n": 10000000000000000}', '{"n": 1e16}'),
    "the last bit of a float": ('{"n": 0.1}', '{"n": 0.10000000000000002}'),
    "normal forms of a text": ('{"a": "\\u00e9"}', '{"a": "e\\u0301"}'),
    "normal forms of a name": ('{"\\u00e9": 1}', '{"e\\u0301": 1}'),
    "look-alikes": ('{"a": "a"}', '{"a": "\\u0430"}'),
    "capitals": ('{"a": "x"}', '{"A": "x"}'),
    "a space at the end": ('{"a": "x"}', '{"a": "x "}'),
    "null and absent": ('{"o": {}}', '{"o": {"x": null}}'),
    "null and empty": ('{"o": null}', '{"o": ""}'),
    "list and object": ('{"o": []}', '{"o": {}}'),
    "order of a list": ('{"o": [1, 2]}', '{"o": [2, 1]}'),
    "the first of a name that is there twice": ('{"n": 1}', '{"n": 1, "n": 2}'),
    "text that looks like JSON": ('{"o": {"a": 1}}', '{"o": "{\\"a\\":1}"}'),
    "an escape and what it stands for": ('{"a": "\\u0000"}', '{"a": "\\\\u0000"}'),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_call_in_other_words(wire: Wire, case: str) -> None:
    confirmed, called, gets = SAME[case]
    held = wire.call(confirmed)
    assert state(held) == "held"
    wire.house.store.respond("local", held["_meta"][META_KEY]["id"], {"confirmed": True})
    assert state(wire.call(called)) == "ran"
    expected = gets if gets is not None else json.loads(str(confirmed))
    ((_, arguments),) = wire.house.vault.runs
    assert json.dumps(arguments, sort_keys=True) == json.dumps(expected, sort_keys=True)


@pytest.mark.parametrize("case", OTHER)
def test_a_call_that_only_looks_the_same(wire: Wire, case: str) -> None:
    confirmed, called = OTHER[case]
    held = wire.call(confirmed)
    wire.house.store.respond("local", held["_meta"][META_KEY]["id"], {"confirmed": True})
    assert state(wire.call(called)) == "held" and wire.house.vault.runs == []
    assert state(wire.call(confirmed)) == "ran"
    ((_, arguments),) = wire.house.vault.runs
    assert repr(arguments) == repr(json.loads(confirmed)), "what runs is what was confirmed"


@pytest.mark.parametrize(
    "number", ["NaN", "1e400", "9" * 401, "[" * 80 + "]" * 80], ids=["no number", "infinite", "401 digits", "80 levels"]
)
def test_what_can_not_be_confirmed_is_not_run(wire: Wire, number: str) -> None:
    assert state(wire.call(f'{{"n": {number}}}')) == "unsuitable"
    assert wire.house.vault.runs == [] and wire.house.store.pending("local") == []


# ---- which tool ------------------------------------------------------------------------------------------------------


@BOTH
def test_a_tool_that_was_renamed_is_another_one(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            house.vault.hints["wipe"] = house.vault.hints.pop("erase")
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("erase", {})
            assert status_of(await client.call_tool("wipe", {})) == "held" and house.vault.runs == []
            house.vault.hints["erase"] = house.vault.hints.pop("wipe")
            assert text_of(await client.call_tool("erase", {})) == "erase done"  # the approval was not used up

    run(body())


@BOTH
def test_a_dispatching_tool_is_judged_by_what_it_runs_now(modern: bool) -> None:
    house = House(rules=Rules(rules=(Rule("vault:dispatch", calls="name", arguments="arguments"),)))

    async def body() -> None:
        async with house.client(modern=modern) as client:
            assert text_of(await client.call_tool("dispatch", {"name": "peek"})) == "dispatch done"
            assert status_of(await client.call_tool("dispatch", {"name": "erase"})) == "held"
            assert status_of(await client.call_tool("dispatch", {})) == "held"
            house.vault.hints["peek"] = None  # since the client listed it, or called it
            again = await client.call_tool("dispatch", {"name": "peek"})
            assert status_of(again) == "held"
            house.store.respond("local", id_of(again), {"confirmed": True})
            assert status_of(await client.call_tool("dispatch", {"name": "peek", "arguments": {}})) == "held"
            assert text_of(await client.call_tool("dispatch", {"name": "peek"})) == "dispatch done"

    run(body())
    assert [arguments for _, arguments in house.vault.runs] == [{"name": "peek"}] * 2


# ---- once ------------------------------------------------------------------------------------------------------------


class _Together:
    """A store in which the first two who come to use an approval wait for each other: both have seen it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._both = threading.Barrier(2)
        self._places = iter((True, True))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        if next(self._places, False):
            self._both.wait(60)
        return self._store.consume(*args, **kwargs)


@BOTH
def test_two_that_see_one_approval_do_not_both_use_it(modern: bool) -> None:
    house = House(store=_Together(memory_store()))
    arguments = {"wait": "go"}

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", arguments)
            house.store.respond("local", id_of(held), {"confirmed": True})
            calls = {asyncio.ensure_future(client.call_tool("erase", arguments)) for _ in range(2)}
            await house.vault.gates["ran"].wait()
            done, (running,) = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            assert status_of(done.pop().result()) == "unknown"
            house.vault.gates["go"].set()
            assert text_of(await running) == "erase done"

    run(body())
    assert house.vault.runs == [("erase", arguments)]


# ---- what passes through a call that was confirmed -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modern", "tool", "answer"), [(False, "ask", "accept Bob"), (True, "rounds", "vault's own: accept Bob")]
)
def test_a_confirmed_call_asks_and_is_answered(modern: bool, tool: str, answer: str) -> None:
    """The server's own question in the middle of it is another one than the confirmation, and goes to the client."""
    house, person = House(rules=Rules(hold=("vault:ask",))), Person()

    async def body() -> None:
        async with house.client(person, modern=modern) as client:
            assert text_of(await client.call_tool(tool, {})) == answer

    run(body())
    assert len(person.confirmations) == 1 and len(person.asked) == 2


@BOTH
def test_a_confirmed_call_passes_meta_and_progress(modern: bool) -> None:
    house, seen = House(rules=Rules(hold=("vault:meta", "vault:progress"))), []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async def body() -> None:
        meta: Any = {"test/a": {"deep": [1, 2.5, None]}}
        async with house.client(Person(), modern=modern) as client:
            result = await client.call_tool("meta", {}, meta=meta)
            assert result.meta["test/echo"] == meta
            assert text_of(await client.call_tool("progress", {}, progress_callback=on_progress)) == "done"
            assert [at for at, _ in seen] == [1, 2, 3]

    run(body())
