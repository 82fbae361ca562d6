"""GopherAgent: made by one of eight factories, runs queries, is disposed of exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING

from .authorization_text import url_to_ask_for
from .elicitation import GopherAgentElicitationRequest
from .elicitor import ask_now
from .errors import AgentError, TimeoutError
from .exiting import stand_still
from .lifetime import Life
from .making import Made, factory_of, is_sendable, make
from .result import AgentResult, AgentResultStatus

if TYPE_CHECKING:
    from .config import GopherAgentConfig
    from .engines.base import EngineName, Factory, RunOutcome
    from .runtime_options import CreateOptionsInput

__all__ = ["GopherAgent"]

_DEFAULT_TIMEOUT_MS = 60000
_LONGEST_MS = 10**15  # more than any clock of an engine takes
_initialized = False


class _Run:
    """A run in progress, as its handlers and events see it through their context. It lets go of the agent at its end:
    contexts live on in what a run has started, and would keep a dropped agent from being released."""

    __slots__ = ("agent",)

    def __init__(self, agent: GopherAgent) -> None:
        self.agent: GopherAgent | None = agent


_runs: ContextVar[tuple[_Run, ...]] = ContextVar("gopher_mcp_runs", default=())


class GopherAgent:
    """An agent that works on MCP servers and asks you, or your handler, what they ask of their user.

    Made by `create` or one of the `create_with_*`, which all take `runtime_options`: a GopherAgentCreateOptions, a
    GopherAgentRuntimeOptions, or a mapping. Elicitation is enabled in all of them unless switched off there.
    Each raises ValueError for options of the wrong kind and AgentError (ApiKeyError, ConnectionError, TimeoutError)
    when the agent can't be made.

    Use it in a `with` statement or call `dispose()`. It may be used by several threads: runs of one agent are done one
    after another, in the order in which they came.
    """

    def __init__(self, made: Made) -> None:
        """For the factories; call one of those. Raises TypeError for anybody else."""
        global _initialized
        if not isinstance(made, Made):
            raise TypeError("a GopherAgent is made by GopherAgent.create or one of the create_with_* functions")
        self._life = Life(made.engine, made.server)
        self._life.watch(self)
        self._engine_name: EngineName = made.engine.name
        self._why = made.why
        self._elicitor = made.elicitor
        self._server = made.server
        _initialized = True

    # -- factories ---------------------------------------------------------------------------------------------------

    @staticmethod
    def create(config: GopherAgentConfig) -> GopherAgent:
        """From a GopherAgentConfig."""
        factory, target, api_key = factory_of(config)
        return _made(factory, config.provider, config.model, target, api_key, config.runtime_options)

    @staticmethod
    def create_with_api_key(
        provider: str, model: str, api_key: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On all servers that belong to an API key of the Gopher service."""
        return _made("api_key", provider, model, "", api_key, runtime_options)

    @staticmethod
    def create_with_server_config(
        provider: str, model: str, server_config: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On the servers of a JSON configuration (its text)."""
        return _made("json", provider, model, server_config, None, runtime_options)

    @staticmethod
    def create_with_server_id(
        provider: str, model: str, api_key: str, server_id: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On one server of the Gopher service, by its id."""
        return _made("server_id", provider, model, server_id, api_key, runtime_options)

    @staticmethod
    def create_with_server_name(
        provider: str, model: str, api_key: str, server_name: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On one server of the Gopher service, by its name."""
        return _made("server_name", provider, model, server_name, api_key, runtime_options)

    @staticmethod
    def create_with_gateway_id(
        provider: str, model: str, api_key: str, gateway_id: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On the servers of a gateway, by its id."""
        return _made("gateway_id", provider, model, gateway_id, api_key, runtime_options)

    @staticmethod
    def create_with_gateway_name(
        provider: str, model: str, api_key: str, gateway_name: str, runtime_options: CreateOptionsInput = None
    ) -> GopherAgent:
        """On the servers of a gateway, by its name."""
        return _made("gateway_name", provider, model, gateway_name, api_key, runtime_options)

    @staticmethod
    def create_with_url(provider: str, model: str, url: str, runtime_options: CreateOptionsInput = None) -> GopherAgent:
        """On one MCP server, by its URL."""
        return _made("url", provider, model, url, None, runtime_options)

    # -- runs --------------------------------------------------------------------------------------------------------

    def run(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> str:
        """Runs a query and returns the answer.

        `timeout_ms` limits the run (in milliseconds; 0: no limit); the time in which a person is asked does not count.
        Raises AgentError when the run fails, TimeoutError when its time is up; KeyboardInterrupt, also that of a
        handler, passes and cancels what is being asked.
        """
        return self._run(query, timeout_ms).text

    def run_detailed(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> AgentResult:
        """Like `run`, but failures come back as a result and not as an exception."""
        try:
            outcome = self._run(query, timeout_ms)
        except AgentError as error:
            timed_out = isinstance(error, TimeoutError)
            status = AgentResultStatus.TIMEOUT if timed_out else AgentResultStatus.ERROR
            return AgentResult("", status, error_message=error.message, elicitation_cause=error.elicitation_cause)
        return AgentResult(
            outcome.text,
            AgentResultStatus.SUCCESS,
            outcome.iterations,
            outcome.tokens,
            elicitation_cause=outcome.elicitation_cause,
        )

    def _run(self, query: str, timeout_ms: int) -> RunOutcome:
        try:
            return self._run_and_tell(query, timeout_ms)
        finally:
            stand_still()

    def _run_and_tell(self, query: str, timeout_ms: int) -> RunOutcome:
        limit = _checked_run(query, timeout_ms)
        with self._running(), self._elicitor.during_run():
            try:
                outcome = self._run_and_ask(query, limit)
            except AgentError as error:
                error.elicitation_cause = error.elicitation_cause or self._elicitor.take_cause()
                raise
            cause = self._elicitor.take_cause()
        if self._life.over:  # what it came to then came of answers that nobody gave
            raise AgentError("Agent has been disposed while the run was under way")
        return outcome if outcome.elicitation_cause or cause is None else _with_cause(outcome, cause)

    def _run_and_ask(self, query: str, timeout_ms: int) -> RunOutcome:
        """The run, and once more where a tool gave nothing but a sign-in page and the person went there."""
        began = time.monotonic()
        outcome = self._life.engine().run(query, timeout_ms)
        url = url_to_ask_for(outcome) if self._elicitor.enabled else None
        if url is None:
            return outcome
        spent = round((time.monotonic() - began) * 1000)
        request = GopherAgentElicitationRequest(
            "url",
            message="A tool needs you to sign in with its provider.",
            url=url,
            server=self._server,
            tool=outcome.tools_called[0],
        )
        if ask_now(self._elicitor, request, lambda: not self._life.over) != "accept":
            return outcome
        return self._life.engine().run(query, max(1, timeout_ms - spent) if timeout_ms else 0)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Marks the context, so that a handler of this run can't start a run that would wait for it."""
        outer = _runs.get()
        if any(run.agent is self for run in outer):
            raise AgentError(
                "An elicitation handler or event callback can't run its own agent: that run would wait for this one. "
                "Use another agent, or run it after this run has ended"
            )
        self._life.engine()  # refuses disposed and inherited agents before anything else happens
        run = _Run(self)
        token = _runs.set((*outer, run))
        try:
            yield
        finally:
            run.agent = None
            _runs.reset(token)

    # -- life --------------------------------------------------------------------------------------------------------

    @property
    def engine(self) -> EngineName:
        """The engine that runs this agent: "native" or "embedded"."""
        return self._engine_name

    @property
    def engine_reason(self) -> str:
        """Why it is that engine, as a sentence for people."""
        return self._why

    def dispose(self) -> None:
        """Lets the agent go. Never blocks; may be called again, from any thread, from a handler and during a run, which
        then ends with AgentError while its open elicitations are answered with cancel."""
        self._life.end()

    def is_disposed(self) -> bool:
        return self._life.over

    def __enter__(self) -> GopherAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.dispose()

    def __repr__(self) -> str:
        state = ", disposed" if self.is_disposed() else ""
        return f"<GopherAgent on {self._server}, {self._engine_name} engine{state}>"

    # -- the library as a whole --------------------------------------------------------------------------------------

    @staticmethod
    def init() -> None:
        """Makes sure that an engine can run: loads the native library where it is the one to use. The factories do it
        by themselves. Raises AgentError when GOPHER_MCP_ENGINE asks for an engine that can't run."""
        global _initialized
        from .engines import choose

        choose(None, explicit_elicitation=False, elicitation_enabled=True)
        _initialized = True

    @staticmethod
    def shutdown() -> None:
        """Ends what `init` began. Agents that exist go on working until they are disposed of."""
        global _initialized
        _initialized = False

    @staticmethod
    def is_initialized() -> bool:
        return _initialized


def _made(
    factory: Factory, provider: str, model: str, target: str, api_key: str | None, options: CreateOptionsInput
) -> GopherAgent:
    return GopherAgent(make(factory, provider, model, target, api_key, options))


def _checked_run(query: object, timeout_ms: object) -> int:
    if not isinstance(query, str):
        raise AgentError(f"Query execution failed: the query must be a string, not {type(query).__name__}")
    if not is_sendable(query):
        raise AgentError("Query execution failed: the query holds a NUL character or half of a surrogate pair")
    if timeout_ms is None:
        return 0
    if not isinstance(timeout_ms, (int, float)) or (isinstance(timeout_ms, float) and not isfinite(timeout_ms)):
        raise AgentError("Query execution failed: timeout_ms must be a number of milliseconds; 0 means no limit")
    return max(0, int(min(timeout_ms, _LONGEST_MS))) or int(timeout_ms > 0)


def _with_cause(outcome: RunOutcome, cause: BaseException) -> RunOutcome:
    from dataclasses import replace

    return replace(outcome, elicitation_cause=cause)
