"""A run of an agent, as its context sees it, and what is checked before it and added after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from .errors import AgentError, TimeoutError
from .making import is_sendable
from .result import AgentResult, AgentResultStatus

if TYPE_CHECKING:
    from .agent import GopherAgent
    from .engines.base import RunOutcome

__all__ = ["checked_run", "failed_result", "is_inside", "result_of", "running", "with_cause"]

_LONGEST_MS = 10**15  # more than any clock of an engine takes


class _Run:
    """A run in progress, as its handlers and events see it through their context. It lets go of the agent at its end:
    contexts live on in what a run has started, and would keep a dropped agent from being released."""

    __slots__ = ("agent",)

    def __init__(self, agent: GopherAgent) -> None:
        self.agent: GopherAgent | None = agent


_runs: ContextVar[tuple[_Run, ...]] = ContextVar("gopher_mcp_runs", default=())


def is_inside(agent: GopherAgent) -> bool:
    """Whether this context is that of a run of this agent, as a handler's is."""
    return any(run.agent is agent for run in _runs.get())


@contextmanager
def running(agent: GopherAgent, refuse: Callable[[], object]) -> Iterator[None]:
    """Marks the context, so that a handler of this run can't start a run that would wait for it. `refuse` raises for
    disposed and inherited agents before anything else happens."""
    if is_inside(agent):
        raise AgentError(
            "An elicitation handler or event callback can't run its own agent: that run would wait for this one. "
            "Use another agent, or run it after this run has ended"
        )
    refuse()
    run = _Run(agent)
    token = _runs.set((*_runs.get(), run))
    try:
        yield
    finally:
        run.agent = None
        _runs.reset(token)


def checked_run(query: object, timeout_ms: object) -> int:
    """The limit that an engine takes (milliseconds; 0: none). Raises AgentError for what can't be run."""
    if not isinstance(query, str):
        raise AgentError(f"Query execution failed: the query must be a string, not {type(query).__name__}")
    if not is_sendable(query):
        raise AgentError("Query execution failed: the query holds a NUL character or half of a surrogate pair")
    if timeout_ms is None:
        return 0
    if not isinstance(timeout_ms, (int, float)) or (isinstance(timeout_ms, float) and not isfinite(timeout_ms)):
        raise AgentError("Query execution failed: timeout_ms must be a number of milliseconds; 0 means no limit")
    return max(0, int(min(timeout_ms, _LONGEST_MS))) or int(timeout_ms > 0)


def result_of(outcome: RunOutcome) -> AgentResult:
    """What `run_detailed` returns for a run that ended well."""
    return AgentResult(
        outcome.text,
        AgentResultStatus.SUCCESS,
        outcome.iterations,
        outcome.tokens,
        elicitation_cause=outcome.elicitation_cause,
    )


def failed_result(error: AgentError) -> AgentResult:
    """What `run_detailed` returns for one that failed."""
    status = AgentResultStatus.TIMEOUT if isinstance(error, TimeoutError) else AgentResultStatus.ERROR
    return AgentResult("", status, error_message=error.message, elicitation_cause=error.elicitation_cause)


def with_cause(outcome: RunOutcome, cause: BaseException) -> RunOutcome:
    return replace(outcome, elicitation_cause=cause)
