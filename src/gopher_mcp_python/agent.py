"""GopherAgent: made by one of eight factories, runs queries, is disposed of exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .authorization_text import url_to_ask_for
from .awaiting import as_coroutine, on_a_thread
from .elicitation import GopherAgentElicitationRequest
from .elicitor import ask_now
from .errors import AgentError
from .exiting import stand_still
from .handlers.occupied import occupying
from .lifetime import Life
from .making import Made, factory_of, make
from .run_events import COMPLETED
from .runs import checked_run, failed_result, is_inside, result_of, running, with_cause
from .turns import Line, Place

if TYPE_CHECKING:
    from .config import GopherAgentConfig
    from .engines.base import EngineName, Factory, RunOutcome
    from .result import AgentResult
    from .run_events import Sink
    from .runtime_options import CreateOptionsInput
    from .streaming import GopherAgentAsyncStream, GopherAgentStream

__all__ = ["GopherAgent"]

_DEFAULT_TIMEOUT_MS = 60000
_initialized = False
P = ParamSpec("P")
T = TypeVar("T")


def _awaited(factory: Callable[P, GopherAgent]) -> Callable[P, Coroutine[Any, Any, GopherAgent]]:
    """A factory as a coroutine function. An agent that is made for a task that was cancelled is disposed of."""
    return as_coroutine(factory, discard=lambda agent: agent.dispose())


class GopherAgent:
    """An agent that works on MCP servers and asks you, or your handler, what they ask of their user.

    Made by `create` or one of the `create_with_*`, which all take `runtime_options`: a GopherAgentCreateOptions, a
    GopherAgentRuntimeOptions, or a mapping. Elicitation is enabled in all of them unless switched off there.
    Each raises ValueError for options of the wrong kind and AgentError (ApiKeyError, ConnectionError, TimeoutError)
    when the agent can't be made.

    Use it in a `with` statement or call `dispose()`. It may be used by several threads: runs of one agent are done one
    after another, in the order in which they came.

    In a coroutine, use the same names with `_async` behind them, and `async with`: the work is done on a thread of its
    own, where handlers run too, and the event loop goes on meanwhile. When the awaiting task is cancelled, so is what
    is being asked, and an agent that was about to be made is disposed of.
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
        self._line = Line()
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

    create_async = staticmethod(_awaited(create))
    create_with_api_key_async = staticmethod(_awaited(create_with_api_key))
    create_with_server_config_async = staticmethod(_awaited(create_with_server_config))
    create_with_server_id_async = staticmethod(_awaited(create_with_server_id))
    create_with_server_name_async = staticmethod(_awaited(create_with_server_name))
    create_with_gateway_id_async = staticmethod(_awaited(create_with_gateway_id))
    create_with_gateway_name_async = staticmethod(_awaited(create_with_gateway_name))
    create_with_url_async = staticmethod(_awaited(create_with_url))

    # -- runs --------------------------------------------------------------------------------------------------------

    def run(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> str:
        """Runs a query and returns the answer.

        `timeout_ms` limits the run (in milliseconds; 0: no limit); the time in which a person is asked does not count.
        Raises AgentError when the run fails, TimeoutError when its time is up; KeyboardInterrupt, also that of a
        handler, passes and cancels what is being asked.
        """
        return self._run(query, timeout_ms).text

    def run_detailed(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> AgentResult:
        """Like `run` (`timeout_ms` is in milliseconds there, too), but failures come back as a result and not as an
        exception."""
        try:
            return result_of(self._run(query, timeout_ms))
        except AgentError as error:
            return failed_result(error)

    def run_stream(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> GopherAgentStream:
        """Starts a query and returns an iterator over its events, which ends with `run_completed`.

        The run is carried out on a thread of its own and waits for nobody who iterates. Its failure is raised by the
        iterator, as `run` raises it; `result` and `text` of the iterator are the answer. Leaving it early (`break`,
        `close()`, the end of its `with` statement, Ctrl-C, dropping it) answers what is being asked with cancel and
        ends the run. Handlers run on helper threads. Runs of one agent are done one after another. `timeout_ms` as for
        `run`, in milliseconds.
        """
        from .streaming import GopherAgentStream

        return GopherAgentStream(*self._streamed(query, timeout_ms))

    def run_stream_async(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> GopherAgentAsyncStream:
        """`run_stream` for a task of asyncio or trio: returns an async iterator. A task that is cancelled while it
        waits for an event ends the run. Raises AgentError where no event loop runs."""
        from .streaming import GopherAgentAsyncStream
        from .telling import over_here

        over_here()
        return GopherAgentAsyncStream(*self._streamed(query, timeout_ms))

    def _streamed(self, query: str, timeout_ms: int) -> tuple[Callable[[Sink], RunOutcome], Place]:
        place = self._line.join()

        def in_turn(sink: Sink) -> RunOutcome:
            if not is_inside(self):
                place.wait()
            return self._run(query, timeout_ms, sink)

        return in_turn, place

    async def run_async(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> str:
        """Runs a query on a thread of its own and returns the answer; see `run` for `timeout_ms` and what it raises.

        Runs of one agent are done in the order in which they are awaited. When the awaiting task is cancelled, what is
        being asked is answered with cancel; the agent stays usable.
        """
        return await self._run_in_line(self.run, query, timeout_ms)

    async def run_detailed_async(self, query: str, timeout_ms: int = _DEFAULT_TIMEOUT_MS) -> AgentResult:
        """Like `run_async`, but failures come back as a result and not as an exception."""
        return await self._run_in_line(self.run_detailed, query, timeout_ms)

    async def _run_in_line(self, run: Callable[[str, int], T], query: str, timeout_ms: int) -> T:
        place = self._line.join()

        def in_turn() -> T:
            if not is_inside(self):  # it would wait for the run that it is inside of, and is refused instead
                place.wait()
            return run(query, timeout_ms)

        return await on_a_thread(in_turn, place=place)

    def _run(self, query: str, timeout_ms: int, sink: Sink | None = None) -> RunOutcome:
        try:
            with self._elicitor.events.run(sink) as events:
                outcome = self._run_and_find_cause(query, timeout_ms)
                events.end(COMPLETED, outcome.text, outcome.iterations)
                return outcome
        finally:
            stand_still()

    def _run_and_find_cause(self, query: str, timeout_ms: int) -> RunOutcome:
        limit = checked_run(query, timeout_ms)
        with occupying(), running(self, self._life.engine), self._elicitor.during_run():
            self._elicitor.check_thread()
            try:
                outcome = self._run_and_ask(query, limit)
            except AgentError as error:
                error.elicitation_cause = error.elicitation_cause or self._elicitor.take_cause()
                raise
            cause = self._elicitor.take_cause()
        if self._life.over:  # what it came to then came of answers that nobody gave
            raise AgentError("Agent has been disposed while the run was under way")
        return outcome if outcome.elicitation_cause or cause is None else with_cause(outcome, cause)

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
        """Whether `dispose()` was called, so that no further run can begin."""
        return self._life.over

    def __enter__(self) -> GopherAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.dispose()

    async def __aenter__(self) -> GopherAgent:
        return self

    async def __aexit__(
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
        """Whether an agent was made in this process, or `init()` was called."""
        return _initialized


def _made(
    factory: Factory, provider: str, model: str, target: str, api_key: str | None, options: CreateOptionsInput
) -> GopherAgent:
    with occupying():
        return GopherAgent(make(factory, provider, model, target, api_key, options))
