"""An engine that remembers what it was given to make and answers runs as a test says.

It stands in for both engines in tests of what lies above them: which options reach an engine from each of the eight
factories, what a run's result becomes. What engines do with it is tested on the real ones (tests/scenarios).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import pytest

from gopher_mcp_python.engines.base import CreateSpec, RunOutcome

Answer = Callable[[str, int], RunOutcome]


class RecordingAgent:
    name: Literal["embedded"] = "embedded"

    def __init__(self, engine: RecordingEngine, spec: CreateSpec) -> None:
        self.spec = spec
        self.released = 0
        self._engine = engine

    def run(self, query: str, timeout_ms: int) -> RunOutcome:
        self._engine.runs.append((query, timeout_ms))
        return self._engine.answer(query, timeout_ms)

    def release(self) -> None:
        self.released += 1


class RecordingEngine:
    """`create` is what an engine module has."""

    def __init__(self) -> None:
        self.agents: list[RecordingAgent] = []
        self.runs: list[tuple[str, int]] = []
        self.answer: Answer = lambda query, timeout_ms: RunOutcome("done")
        self.create_seconds = 0.0

    @classmethod
    def instead_of_ours(cls, monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
        """A new one, which makes all agents of this test."""
        from gopher_mcp_python.engines import embedded

        made = cls()
        monkeypatch.setenv("GOPHER_MCP_ENGINE", "embedded")
        monkeypatch.setattr(embedded, "create", made.create)
        return made

    def create(self, spec: CreateSpec) -> RecordingAgent:
        time.sleep(self.create_seconds)
        self.agents.append(RecordingAgent(self, spec))
        return self.agents[-1]

    @property
    def spec(self) -> CreateSpec:
        """Of the only agent."""
        (agent,) = self.agents
        return agent.spec
