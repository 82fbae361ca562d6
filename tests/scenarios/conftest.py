"""Variants of engine and provider, and the function that runs a scenario in a child process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import children
from tests.support.scripted_llm import ScriptedModel
from tests.support.servers import McpServer


@dataclass(frozen=True)
class Variant:
    """An engine with the provider that decides for it."""

    engine: str
    provider: str

    @property
    def native(self) -> bool:
        return self.engine == "native"

    def __str__(self) -> str:
        return f"{self.engine}-{self.provider.removesuffix('Provider').lower()}"


NATIVE = Variant("native", "OpenAIProvider")
EMBEDDED = Variant("embedded", "DirectProvider")
BOTH = [NATIVE, EMBEDDED]
ALL = [*BOTH, *(Variant(engine, p) for engine, p in (("native", "AnthropicProvider"),
       ("embedded", "OpenAIProvider"), ("embedded", "AnthropicProvider")))]  # fmt: skip

on_both = pytest.mark.parametrize("variant", BOTH, ids=str)
on_all = pytest.mark.parametrize("variant", ALL, ids=str)


@dataclass(frozen=True)
class Played:
    """A scenario's facts and what its process wrote to stderr."""

    facts: dict[str, Any]
    err: str
    seconds: float

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


@pytest.fixture(scope="session")
def shared_server() -> Iterator[McpServer]:
    server = McpServer()
    yield server
    server.close()


@pytest.fixture
def server(shared_server: McpServer) -> McpServer:
    """The scenario server with an empty log."""
    return shared_server.clear()


@pytest.fixture
def server_with() -> Iterator[Callable[..., McpServer]]:
    """Starts servers with options of their own."""
    started: list[McpServer] = []

    def start(*options: str) -> McpServer:
        started.append(McpServer(*options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def play(scripted_model: ScriptedModel, request: pytest.FixtureRequest) -> Callable[..., Played]:
    """Plays a scenario: `play("answer", variant, server.url, query=..., env=...)`."""

    def run(
        name: str, variant: Variant, url: str, *, env: dict[str, str] | None = None, limit: float = 90, **given: Any
    ) -> Played:
        settings = dict(scripted_model.environment())
        if variant.native:
            settings |= request.getfixturevalue("native_environment")
        argument = {"scenario": name, "engine": variant.engine, "provider": variant.provider, "url": url, **given}
        argv = [sys.executable, "-W", "error", "-m", "tests.scenarios.driver", json.dumps(argument)]
        ended = children.run(argv, env={**settings, **(env or {})}, timeout=limit).check()
        return Played(json.loads(ended.out.splitlines()[-1]), ended.err, ended.seconds)

    return run
