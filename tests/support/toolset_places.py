"""Where the toolset's protocol tests run: each version, in memory and over HTTP; and a person who answers there."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest, McpToolset
from tests.support.toolset_servers import BOTH, MODERN, VERSIONS, Place

TRANSPORTS = ("memory", "http")
# The handshake version whose servers may ask for URLs.
WITH_URLS = "2025-11-25"


def at(*versions: str, transports: tuple[str, ...] = TRANSPORTS) -> pytest.MarkDecorator:
    """Runs a test at these versions, over these transports. Its module imports the two fixtures below."""
    return pytest.mark.parametrize("place", [(t, v) for t in transports for v in versions], indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def places() -> Iterator[dict[tuple[str, str], Place]]:
    made = {(where, version): Place(where, version) for where in TRANSPORTS for version in (*VERSIONS, BOTH)}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture
def place(request: pytest.FixtureRequest, places: dict[tuple[str, str], Place]) -> Place:
    chosen = places[request.param]
    chosen.scenario.clear()
    return chosen


class Asked:
    """A handler that answers as told: an action, a response, or an async function of the request."""

    def __init__(self, answer: Any = "accept") -> None:
        self.requests: list[GopherAgentElicitationRequest] = []
        self.open = self.most_open = self.withdrawn = 0
        self._answer = answer

    async def __call__(self, request: GopherAgentElicitationRequest) -> Any:
        self.requests.append(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            return await self._answer(request) if callable(self._answer) else self._answer
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        finally:
            self.open -= 1

    @property
    def messages(self) -> list[str | None]:
        return [request.message for request in self.requests]

    async def wait_open(self) -> None:
        while not self.open:
            await asyncio.sleep(0.005)


async def never(request: GopherAgentElicitationRequest) -> str:
    """A person who has gone away."""
    await asyncio.sleep(60)
    return "accept"


def form_tool(place: Place) -> str:
    """The tool that asks with a form, in the way of the place's version."""
    return "input_required_form" if place.version == MODERN else "form_tool"


def url_tool(place: Place) -> str:
    """The tool that asks for a URL, in the way of the place's version."""
    return "input_required" if place.version == MODERN else "decline_aware"


async def a_tool(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    return str((await toolset.call_tool(name, arguments))["output"])


async def a_prompt(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    return str((await toolset.get_prompt(name, texts)).messages[0].content.text)  # type: ignore[union-attr]


async def a_resource(toolset: McpToolset, name: str, arguments: dict[str, Any]) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    uri = f"scenario://{name}?{urllib.parse.urlencode(texts)}"
    return str((await toolset.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]


Way = Callable[[McpToolset, str, dict[str, Any]], Awaitable[str]]
#: A request that may ask, be refused and be made again: all three do so alike.
every_way = pytest.mark.parametrize("way", [a_tool, a_prompt, a_resource])


def get(place: Place, way: Way, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    return place.run(lambda toolset: way(toolset, name, arguments or {}), **options)
