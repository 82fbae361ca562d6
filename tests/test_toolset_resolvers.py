"""The toolset and servers made with the SDK's own way of asking: MCPServer's resolvers.

Such a tool says what it wants to know, and the SDK asks for it as the protocol version has it: on the way back, or
through results with a sealed requestState.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from mcp.server.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve
from mcp_types import ListRootsResult
from pydantic import BaseModel, Field

from gopher_mcp_python import GopherAgentElicitationRequest, GopherAgentElicitationResponse, McpToolset
from gopher_mcp_python.forms import MISSING, read_form
from tests.support.hosting import Hosted
from tests.support.toolset_servers import using


class Party(BaseModel):
    name: str = Field(min_length=2, description="Whose table it is")
    guests: int = Field(default=2, ge=1, le=10)


class Meal(BaseModel):
    menu: Literal["fish", "vegan"] = "vegan"
    wine: bool = False


class Hour(BaseModel):
    hour: float = Field(ge=17, le=23)


def ask_party() -> Elicit[Party]:
    return Elicit("Who comes?", Party)


def ask_meal() -> Elicit[Meal]:
    return Elicit("What may it be?", Meal)


def ask_hour(party: Annotated[Party, Resolve(ask_party)]) -> Elicit[Hour]:
    return Elicit(f"When do {party.guests} come?", Hour)


def find_roots() -> ListRoots:
    return ListRoots()


def restaurant() -> MCPServer:
    server = MCPServer("restaurant")

    @server.tool()
    async def book(
        note: str,
        context: Context,
        party: Annotated[Party, Resolve(ask_party)],
        meal: Annotated[Meal, Resolve(ask_meal)],
        hour: Annotated[Hour, Resolve(ask_hour)],
    ) -> str:
        version = context.request_context.protocol_version
        return f"{version} {note}: {party.name} {party.guests} {meal.menu} {meal.wine} {hour.hour}"

    @server.tool()
    async def maybe(
        meal: Annotated[
            AcceptedElicitation[Meal] | DeclinedElicitation | CancelledElicitation, Resolve(ask_meal)
        ],
    ) -> str:
        return f"meal: {meal.action}"

    @server.tool()
    async def folders(found: Annotated[ListRootsResult, Resolve(find_roots)]) -> str:
        return " ".join(str(root.uri) for root in found.roots)

    return server


@pytest.fixture(scope="module")
def hosted() -> Iterator[str]:
    host = Hosted(restaurant().streamable_http_app(), "restaurant")
    yield f"{host.base}/mcp"
    host.close()


@pytest.fixture(params=["memory", "http"])
def connection(request: pytest.FixtureRequest, hosted: str) -> Any:
    return restaurant() if request.param == "memory" else hosted


protocols = pytest.mark.parametrize("protocol", ["handshake", "2026-07-28", "auto"])


def call(connection: Any, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    async def body(toolset: McpToolset) -> str:
        return str((await toolset.call_tool(name, arguments))["output"]["result"])

    return using(connection, body, **options)


@protocols
def test_each_question_is_asked_once_whatever_the_version(connection: Any, protocol: str) -> None:
    asked: list[str | None] = []
    more = {"Who comes?": {"name": "Ada", "guests": 7}, "When do 7 come?": {"hour": 18.5}}

    async def fill_in(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        asked.append(request.message)
        fields = read_form(request.requested_schema or {}).fields
        defaults = {field.name: field.default for field in fields if field.default is not MISSING}
        return GopherAgentElicitationResponse("accept", {**defaults, **more.get(request.message or "", {})})

    told = call(connection, "book", {"note": "é 😀"}, protocol=protocol, elicitation_handler=fill_in)
    version = "2026-07-28" if protocol == "2026-07-28" else "2025-11-25"
    assert told == f"{version} é 😀: Ada 7 vegan False 18.5"
    assert sorted(map(str, asked)) == ["What may it be?", "When do 7 come?", "Who comes?"]
    assert asked.index("Who comes?") < asked.index("When do 7 come?")


@protocols
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_is_told_to_the_tool(connection: Any, protocol: str, action: str) -> None:
    assert call(connection, "maybe", protocol=protocol, elicitation_handler=action) == f"meal: {action}"


@protocols
def test_roots_are_given_whichever_way_they_are_asked_for(connection: Any, protocol: str) -> None:
    roots = ["file:///srv/a", "file:///srv/b"]
    told = call(connection, "folders", protocol=protocol, roots=roots, elicitation_handler="cancel")
    assert told == "file:///srv/a file:///srv/b"
