"""The engine that is this package's own: the official MCP SDK for the servers, the vendors' SDKs for the models.

It speaks what the native library does not (forms, stdio servers, 2026-07-28, completion notifications) and needs no
native library. `create` connects and lists the tools at once, so that a wrong address or token is told right there.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import AgentError
from ..providers import make_provider
from ..toolset import configuration
from ..toolset.clock import counting
from ..toolset.connection import StdioConnection, place
from ..toolset.quiet import hush
from ..toolset.session import Protocol
from ..toolset.toolset import Toolset
from ._asker import LoopAsker
from ._call import LoopCall
from ._loop import LoopThread
from ._run import Run, Tools
from .base import CreateSpec, EngineAgent, RunOutcome
from .drive import drive

if TYPE_CHECKING:
    from ..providers import Provider

# Milliseconds that connecting to all servers and listing their tools may take; time in which a person is asked is free.
CREATE_TIMEOUT_MS = 60_000
_run_ids = itertools.count(1)


def create(spec: CreateSpec) -> EngineAgent:
    """Makes an agent: provider, connections, tools.

    Raises ApiKeyError (a key is missing or refused), ConnectionError (a server can't be reached), TimeoutError,
    AgentError (unknown provider, missing extra, a configuration that can't be read), naming what to do.
    """
    provider = make_provider(spec.provider, spec.model)
    connections = _connections(spec)
    agent = EmbeddedAgent(spec, provider, [])
    try:
        agent.connect(connections)
    except BaseException:
        agent.release()
        raise
    return agent


def _connections(spec: CreateSpec) -> list[Any]:
    headers = spec.options.headers
    if spec.factory == "url":
        connections = configuration.from_url(spec.target, headers)
    elif spec.factory == "json":
        connections = configuration.from_json(spec.target, headers)
    else:
        raise AgentError(f"the embedded engine got a factory that it does not know: {spec.factory}")
    return connections if spec.sign_ins is None else [spec.sign_ins.before(one) for one in connections]


def _protocol() -> Protocol:
    """GOPHER_MCP_PROTOCOL: auto (default), handshake, 2026-07-28. Raises AgentError."""
    chosen = os.environ.get("GOPHER_MCP_PROTOCOL", "").strip() or "auto"
    if chosen not in ("auto", "handshake", "2026-07-28"):
        raise AgentError(f"GOPHER_MCP_PROTOCOL is {chosen[:40]!r}; use auto, handshake or 2026-07-28")
    return cast(Protocol, chosen)


class EmbeddedAgent:
    """An agent of this engine; see `EngineAgent`. Runs are carried out one after another, in the order they came."""

    name: Literal["embedded"] = "embedded"

    def __init__(self, spec: CreateSpec, provider: Provider, toolsets: list[Toolset]) -> None:
        hush()
        self._spec = spec
        spec.elicitor.events.listen(spec.options.on_event)
        self._provider = provider
        self._toolsets = toolsets
        self._tools = Tools([])
        self._turn = asyncio.Lock()
        self._asker = LoopAsker(spec.elicitor)
        self._thread = LoopThread("gopher agent loop")  # last: it runs from now on
        self._thread.answering = lambda: any(toolset.answering for toolset in self._toolsets)

    def connect(self, connections: list[Any]) -> None:
        protocol = _protocol()
        asker = self._asker if self._spec.elicitor.enabled else None
        self._toolsets = [Toolset(connection, asker, protocol=protocol) for connection in connections]
        self._thread.has_processes = any(isinstance(connection, StdioConnection) for connection in connections)
        self._wait(self._connect, CREATE_TIMEOUT_MS, f"connecting to {', '.join(map(place, connections))}"[:300])

    def run(self, query: str, timeout_ms: int) -> RunOutcome:
        """See `EngineAgent.run`. AgentError also on the agent's own loop, and in a forked child."""
        run = Run(next(_run_ids), query, self._provider, self._tools)

        async def main(call: LoopCall) -> RunOutcome:
            async with self._turn:
                with self._asker.serving(call), counting(call.clock):
                    self._asker.asked = False
                    call.clock.start()
                    return await run.carry_out(self._asker, self._spec.elicitor.events.turn())

        outcome = self._wait(main, timeout_ms, "the run")
        return cast(RunOutcome, outcome)

    def release(self) -> None:
        self._thread.close(self._close)

    def _wait(self, main: Any, timeout_ms: int, what: str) -> Any:
        self._refuse_if_it_would_hang()
        call = self._thread.start(main)
        call.set_timeout(timeout_ms)
        try:
            drive(call, self._spec.elicitor, what=what)
            return call.outcome()
        except AgentError:
            if self._thread.closed:  # whatever the call failed of then, it failed of that
                raise AgentError(f"Agent has been disposed while {what} was under way") from None
            raise
        finally:
            for pending in call.untaken():
                self._asker.hand_to_helper(pending)
            call.leave()

    def _refuse_if_it_would_hang(self) -> None:
        if self._thread.inherited:
            raise AgentError("this agent was made before the process forked; make a new one in the child")
        if self._thread.closed:
            raise AgentError("Agent has been disposed")
        if self._thread.is_current():  # an event callback in a context that is not its run's
            raise AgentError("a handler or an event callback can't run its own agent: it would wait for itself")

    async def _connect(self, call: LoopCall) -> None:
        with self._asker.serving(call), counting(call.clock):
            call.clock.start()
            await asyncio.gather(*(toolset.connect() for toolset in self._toolsets))
        self._tools = Tools(self._toolsets)

    async def _close(self) -> None:
        closing = (self._provider.aclose(), *(toolset.aclose() for toolset in self._toolsets))
        await asyncio.gather(*closing, return_exceptions=True)
