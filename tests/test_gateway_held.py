"""Destructive calls through the gateway: held, confirmed, run once; and everything that is no confirmation."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from gopher_mcp_python.gateway import Gateway, Rules, Upstream
from gopher_mcp_python.gateway.held import META_KEY
from gopher_mcp_python.toolset.connection import MemoryConnection
from tests.support.gateways import House, Person, Vault, id_of, memory_store, run, soon, status_of, text_of

BOTH = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
WHOLE = {"path": "/srv", "note": "x" * 5000, "deep": {"list": [1, 2.5, None, True, "é"]}}


@BOTH
def test_destructive_tool_without_confirmation_is_held(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", {"path": "/a"})
            assert status_of(held) == "held" and house.vault.runs == []
            again = await client.call_tool("erase", {"path": "/a"})
            assert id_of(again) == id_of(held) and house.vault.runs == []  # the one confirmation, not another

            house.store.respond("local", id_of(held), {"confirmed": True})
            assert text_of(await client.call_tool("erase", {"path": "/a"})) == "erase done"
            assert house.vault.runs == [("erase", {"path": "/a"})]

            other = await client.call_tool("erase", {"path": "/b"})
            house.store.respond("local", id_of(other), {"confirmed": False})
            assert status_of(await client.call_tool("erase", {"path": "/b"})) == "declined"
            assert len(house.vault.runs) == 1

    run(body())


@BOTH
def test_what_is_held_says_so_for_people_and_programs(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", {"path": "/a"})
        facts = held.meta[META_KEY]
        assert {"id", "status", "tool", "server", "expiresAt"} == facts.keys()
        assert held.structured_content == {META_KEY: facts}
        assert facts["id"] in held.content[0].text and "exactly the same arguments" in held.content[0].text
        (stored,) = house.store.pending("local")
        assert (stored.id, stored.tool, stored.server) == (facts["id"], "erase", "vault")
        assert stored.params["arguments"] == {"path": "/a"}

    run(body())


@BOTH
@pytest.mark.parametrize(("answer", "status"), [("accept", ""), ("decline", "declined"), ("cancel", "declined")])
def test_a_client_that_can_be_asked_is_asked_at_once(modern: bool, answer: str, status: str) -> None:
    house, person = House(), Person(answer)

    async def body() -> None:
        async with house.client(person, modern=modern) as client:
            result = await client.call_tool("erase", WHOLE)
        assert text_of(result) == "erase done" if not status else status_of(result) == status
        assert house.vault.runs == ([("erase", WHOLE)] if answer == "accept" else [])

    run(body())
    (asked,) = person.asked
    assert asked.mode == "form" and asked.requested_schema["properties"] == {}
    assert "erase" in asked.message and "vault" in asked.message
    assert WHOLE["note"] in asked.message and "é" in asked.message  # in full


def test_what_drives_a_screen_is_shown_inert() -> None:
    house, person = House(), Person("decline")

    async def body() -> None:
        async with house.client(person) as client:
            await client.call_tool("erase", {"path": "a\x1b[2J\u202eb\u200b", "\u2066": 1})

    run(body())
    message = person.asked[0].message
    assert not any(character in message for character in "\x1b\u202e\u200b\u2066")
    assert "\\u202e" in message and "\\u200b" in message


@BOTH
def test_an_approval_is_used_once(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            first = await client.call_tool("erase", {"path": "/a"})
            house.store.respond("local", id_of(first), {"confirmed": True})
            results = await asyncio.gather(*(client.call_tool("erase", {"path": "/a"}) for _ in range(4)))
            assert sum(not result.is_error for result in results) == 1
            assert house.vault.runs == [("erase", {"path": "/a"})]
            later = await client.call_tool("erase", {"path": "/a"})
            assert status_of(later) in ("held", "unknown") and id_of(later) != id_of(first)
            assert len(house.vault.runs) == 1

    run(body())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("erase", {"path": "/b"}),
        ("erase", {"path": "/a", "confirmed": True}),
        ("erase", {"path": "/a", "n": 1.0}),
        ("erase", {"path": "/a", "n": True}),
        ("erase", {"path": "/a", "n": "1"}),
        ("erase", {}),
        ("bare", {"path": "/a", "n": 1}),
    ],
)
def test_an_approval_is_for_its_call_only(tool: str, arguments: dict[str, Any]) -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("erase", {"path": "/a", "n": 1})
            house.store.respond("local", id_of(held), {"confirmed": True})
            assert status_of(await client.call_tool(tool, arguments)) == "held"
            assert house.vault.runs == []
            assert text_of(await client.call_tool("erase", {"n": 1, "path": "/a"})) == "erase done"  # an order is none

    run(body())


@BOTH
def test_the_same_call_at_the_same_time_is_asked_about_once(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            results = await asyncio.gather(*(client.call_tool("erase", {"path": "/a"}) for _ in range(6)))
            assert len({id_of(result) for result in results}) == 1 == len(house.store.pending("local"))
            house.store.respond("local", id_of(results[0]), {"confirmed": True})
            results = await asyncio.gather(*(client.call_tool("erase", {"path": "/a"}) for _ in range(6)))
            assert [result.is_error for result in results].count(False) == 1

    run(body())
    assert len(house.vault.runs) == 1


def test_an_approval_is_its_callers_only() -> None:
    store, vault = memory_store(), Vault()
    ada, bob = House(vault, store=store, caller="ada"), House(vault, store=store, caller="bob")

    async def body() -> None:
        async with ada.client() as of_ada, bob.client() as of_bob:
            held = await of_ada.call_tool("erase", {})
            store.respond("ada", id_of(held), {"confirmed": True})
            assert status_of(await of_bob.call_tool("erase", {})) == "held" and vault.runs == []
            assert text_of(await of_ada.call_tool("erase", {})) == "erase done"

    run(body())


def test_an_approval_is_for_one_server_only() -> None:
    house = House(Vault("one"), Vault("two"))

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("one_erase", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            assert status_of(await client.call_tool("two_erase", {})) == "held"
            assert text_of(await client.call_tool("one_erase", {})) == "erase done"

    run(body())
    assert [len(vault.runs) for vault in house.vaults] == [1, 0]


@BOTH
def test_an_approval_expires(modern: bool) -> None:
    house = House(store=memory_store(approval_s=0.05))

    async def body() -> None:
        async with house.client(modern=modern) as client:
            held = await client.call_tool("erase", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            await soon(lambda: house.store.confirmation_state("local", id_of(held)) == "expired")
            again = await client.call_tool("erase", {})
            assert status_of(again) == "held" and id_of(again) != id_of(held) and house.vault.runs == []

    run(body())


@BOTH
@pytest.mark.parametrize("person", [None, Person()], ids=["elsewhere", "asked"])
def test_without_the_store_nothing_runs(modern: bool, person: Person | None) -> None:
    house = House()
    house.store.close()

    async def body() -> None:
        async with house.client(person, modern=modern) as client:
            result = await client.call_tool("erase", {})
            assert status_of(result) == "unavailable" and "was not run" in result.content[0].text
            assert text_of(await client.call_tool("peek", {})) == "peek done"  # needs no confirmation

    run(body())
    assert [tool for tool, _ in house.vault.runs] == ["peek"]


def test_a_store_that_goes_down_after_the_yes_runs_nothing() -> None:
    house = House()

    class Closes(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            house.store.close()
            return await super().__call__(context, params)

    async def body() -> None:
        async with house.client(Closes()) as client:
            assert status_of(await client.call_tool("erase", {})) == "unavailable"

    run(body())
    assert house.vault.runs == []


def test_too_many_confirmations_are_refused() -> None:
    house = House(store=memory_store(rate=(2, 3600.0)))

    async def body() -> None:
        async with house.client() as client:
            results = [await client.call_tool("erase", {"n": n}) for n in range(3)]
        assert [status_of(result) for result in results] == ["held", "held", "rate_limited"]
        assert results[2].meta[META_KEY]["retryAfter"] >= 1

    run(body())


@BOTH
def test_a_tool_that_became_destructive_after_the_list_is_held(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            await client.list_tools()
            assert text_of(await client.call_tool("peek", {})) == "peek done"
            house.vault.hints["peek"] = None
            assert status_of(await client.call_tool("peek", {})) == "held"
            del house.vault.hints["peek"]
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("peek", {})
            assert unknown.value.error.code == -32602

    run(body())
    assert len(house.vault.runs) == 1


def test_who_is_believed() -> None:
    async def held(**options: Any) -> list[str]:
        house = House(rules=Rules(**options))
        async with house.client() as client:
            names = ["erase", "peek", "look", "both", "bare"]
            results = {name: await client.call_tool(name, {}) for name in names}
        return [name for name, result in results.items() if result.is_error]

    async def body() -> None:
        assert await held() == ["erase", "look", "both", "bare"]
        assert await held(trusted=("vault",)) == ["erase", "both", "bare"]
        assert await held(trusted=("other",)) == ["erase", "look", "both", "bare"]
        assert await held(allow=("vault:*",), hold=("*:peek",)) == ["peek"]

    run(body())


def test_what_is_denied_is_not_shown_and_not_run() -> None:
    house = House(rules=Rules(deny=("vault:erase",), allow=("vault:erase",)))

    async def body() -> None:
        async with house.client(Person()) as client:
            listed = await client.list_tools()
            assert "erase" not in [tool.name for tool in listed.tools]
            assert status_of(await client.call_tool("erase", {})) == "denied"

    run(body())
    assert house.vault.runs == []


def test_what_is_denied_of_several_servers_is_not_shown() -> None:
    house = House(Vault("one"), Vault("two"), rules=Rules(deny=("one:erase",)))

    async def body() -> None:
        async with house.client() as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "one_erase" not in names and {"two_erase", "one_peek"} <= set(names)
            assert status_of(await client.call_tool("one_erase", {})) == "denied"
            assert status_of(await client.call_tool("two_erase", {})) == "held"

    run(body())


def test_a_client_that_fails_to_ask_leaves_the_call_held() -> None:
    house = House()

    class Fails(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            raise RuntimeError("no screen")

    async def body() -> None:
        async with house.client(Fails()) as client:
            held = await client.call_tool("erase", {})
            assert status_of(held) == "held"
            house.store.respond("local", id_of(held), {"confirmed": True})
            assert text_of(await client.call_tool("erase", {})) == "erase done"

    run(body())


@BOTH
def test_where_clients_are_not_asked(modern: bool) -> None:
    house, person = House(ask_clients=False), Person()

    async def body() -> None:
        async with house.client(person, modern=modern) as client:
            assert status_of(await client.call_tool("erase", {})) == "held"

    run(body())
    assert person.asked == [] and house.vault.runs == []


def test_an_answer_that_came_from_elsewhere_first_stands() -> None:
    house = House()

    class Late(Person):
        async def __call__(self, context: Any, params: Any) -> Any:
            house.store.respond("local", params.meta[META_KEY]["id"], {"confirmed": False})
            return await super().__call__(context, params)

    async def body() -> None:
        async with house.client(Late("accept")) as client:
            assert status_of(await client.call_tool("erase", {})) == "declined"

    run(body())
    assert house.vault.runs == []


def test_a_refusal_before_the_call_began_costs_no_approval() -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("guarded", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            with pytest.raises(MCPError) as refused:
                await client.call_tool("guarded", {})
            assert refused.value.error.code == -32042
            assert refused.value.error.data["elicitations"][0]["url"] == "https://login.example/"
            assert text_of(await client.call_tool("guarded", {})) == "guarded done"
            assert status_of(await client.call_tool("guarded", {})) == "held"

    run(body())
    assert len(house.vault.runs) == 1


def test_what_a_refusal_has_left_does_not_stand_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.gateway.approvals.UNSPENT_SECONDS", -1.0)
    house = House()

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("guarded", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            with pytest.raises(MCPError):
                await client.call_tool("guarded", {})
            again = await client.call_tool("guarded", {})
            assert status_of(again) == "held" and id_of(again) != id_of(held)

    run(body())
    assert house.vault.runs == []


@BOTH
def test_a_tool_that_is_listed_twice_is_held(modern: bool) -> None:
    class Twice(Vault):
        async def _list_tools(self, ctx: Any, params: Any) -> Any:
            found = await super()._list_tools(ctx, params)
            harmless = types.ToolAnnotations(destructive_hint=False)
            found.tools.append(types.Tool(name="erase", input_schema={"type": "object"}, annotations=harmless))
            return found

    house = House(Twice())

    async def body() -> None:
        async with house.client(modern=modern) as client:
            assert status_of(await client.call_tool("erase", {})) == "held"
            assert text_of(await client.call_tool("peek", {})) == "peek done"

    run(body())


def test_a_call_that_was_given_up_is_unknown() -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            held = await client.call_tool("erase", {"wait": "never"})
            house.store.respond("local", id_of(held), {"confirmed": True})
            calling = asyncio.ensure_future(client.call_tool("erase", {"wait": "never"}))
            await house.vault.gates["ran"].wait()
            calling.cancel()
            await asyncio.wait((calling,))
            unknown = await client.call_tool("erase", {"wait": "never"})
            assert status_of(unknown) == "unknown" and "may have run" in unknown.content[0].text
            assert len(house.vault.runs) == 1
            house.vault.gates["never"].set()
            assert status_of(await client.call_tool("erase", {"wait": "never"})) == "unknown"
            house.store.respond("local", id_of(unknown), {"confirmed": True})  # a person says: once more
            assert text_of(await client.call_tool("erase", {"wait": "never"})) == "erase done"

    run(body())
    assert len(house.vault.runs) == 2


def test_one_confirmation_is_for_all_rounds_of_a_call() -> None:
    house, person = House(), Person()

    async def body() -> None:
        async with house.client(person, modern=True) as client:
            assert text_of(await client.call_tool("rounds", {})) == "vault's own: accept Bob"

    run(body())
    assert len(person.confirmations) == 1 and len(person.asked) == 2
    assert house.vault.runs == [("rounds", {})]


def test_a_round_of_another_call_or_caller_is_none() -> None:
    store, vault = memory_store(), Vault()
    ada, bob = House(vault, store=store, caller="ada"), House(vault, store=store, caller="bob")

    async def body() -> None:
        async with ada.client(Person(), modern=True) as of_ada, bob.client(Person(), modern=True) as of_bob:
            asked = await of_ada.session.call_tool("erase", {"path": "/a"}, allow_input_required=True)
            answers = {META_KEY: {"action": "accept", "content": {}}}
            more = {"input_responses": answers, "request_state": asked.request_state, "allow_input_required": True}
            for client, path in ((of_ada, "/b"), (of_bob, "/a")):
                with pytest.raises(MCPError, match="for another call"):
                    await client.session.call_tool("erase", {"path": path}, **more)
            assert vault.runs == []
            assert text_of(await of_ada.session.call_tool("erase", {"path": "/a"}, **more)) == "erase done"
            replayed = await of_ada.session.call_tool("erase", {"path": "/a"}, **more)
            assert vault.runs == [("erase", {"path": "/a"})], replayed

    run(body())


def test_a_confirmation_may_be_answered_at_another_gateway() -> None:
    store, vault = memory_store(), Vault()
    one, two = (House(vault, store=store, state_key=b"shared") for _ in range(2))

    async def body() -> None:
        async with one.client(Person(), modern=True) as first, two.client(Person(), modern=True) as second:
            asked = await first.session.call_tool("erase", {}, allow_input_required=True)
            answers = {META_KEY: {"action": "accept", "content": {}}}
            result = await second.session.call_tool(
                "erase", {}, input_responses=answers, request_state=asked.request_state, allow_input_required=True
            )
            assert text_of(result) == "erase done"

    run(body())
    assert vault.runs == [("erase", {})]


def test_no_round_of_a_confirmed_call_is_made_twice() -> None:
    house = House()

    async def body() -> None:
        async with house.client(Person(), modern=True) as client:
            call = client.session.call_tool
            asked = await call("rounds", {}, allow_input_required=True)
            confirmed = {META_KEY: {"action": "accept", "content": {}}}
            question = await call(
                "rounds", {}, input_responses=confirmed, request_state=asked.request_state, allow_input_required=True
            )
            assert list(question.input_requests) == ["which"] and question.request_state != "vault's own"
            answers = {"which": {"action": "accept", "content": {"name": "x"}}}
            more = {"input_responses": answers, "request_state": question.request_state, "allow_input_required": True}
            results = await asyncio.gather(*(call("rounds", {}, **more) for _ in range(3)))
            assert [result.is_error for result in results].count(False) == 1
            assert {status_of(result) for result in results if result.is_error} == {"unknown"}

    run(body())
    assert house.vault.runs == [("rounds", {})]


def test_a_confirmed_call_begins_without_answers_that_nobody_asked_for() -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=True) as client:
            held = await client.call_tool("rounds", {})
            house.store.respond("local", id_of(held), {"confirmed": True})
            answers = {"which": {"action": "accept", "content": {"name": "x"}}}
            asked = await client.session.call_tool(
                "rounds", {}, input_responses=answers, request_state="vault's own", allow_input_required=True
            )
            assert list(asked.input_requests) == ["which"] and house.vault.runs == []

    run(body())


def test_arguments_too_large_to_be_confirmed_are_not_run() -> None:
    house = House()

    async def body() -> None:
        async with house.client(Person()) as client:
            assert status_of(await client.call_tool("erase", {"data": "x" * 1_200_000})) == "unsuitable"

    run(body())
    assert house.vault.runs == []


def test_a_gateway_behind_a_gateway_asks_through_it() -> None:
    inner, person = House(caller="inner"), Person()
    upstream = Upstream("inner", MemoryConnection(inner.gateway.server))
    outer = Gateway([upstream], memory_store(), rules=Rules(allow=("inner:*",)))

    async def body() -> None:
        async with Client(outer.server, mode="auto", elicitation_callback=person) as client:
            assert text_of(await client.call_tool("erase", {})) == "erase done"
            assert text_of(await client.call_tool("rounds", {})) == "vault's own: accept Bob"

    run(body())
    assert inner.vault.runs == [("erase", {}), ("rounds", {})] and len(person.confirmations) == 2
