"""The vendor's native library as an engine, through the bridge.

A native handle may be retired: the library can't cancel a run and would hand its late result to the next one. After a
timeout or Ctrl-C the handle is closed, drains and is released behind, and the next run makes a fresh one from the same
specification.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from .. import native as _native
from ..errors import AgentError, ElicitationWarning, TimeoutError
from ..ffi import _bridge
from .base import CreateSpec, Factory, RunOutcome
from .drive import drive
from .native_config import native_form, own_credentials
from .native_events import Recorder
from .native_failures import completed_data, create_failure, run_failure
from .native_tokens import NativeTokens, tokens_for
from .native_turns import Turns

if TYPE_CHECKING:
    from ..elicitor import Elicitor
    from ..native import LoadedLibrary

__all__ = ["ELICITATION_LIMIT_MS", "NativeAgent", "create"]

#: The library gives a tool call up after 120 s, whatever it is configured to (milliseconds). Answering cancel shortly
#: before lets the tool tell so.
ELICITATION_LIMIT_MS = 115_000
_log = logging.getLogger("gopher_mcp_python.native")


def create(spec: CreateSpec) -> NativeAgent:
    """Makes an agent; elicitations that come meanwhile are answered on this thread.

    Raises:
        AgentError: no usable library, or the library refused; ApiKeyError, ConnectionError, TimeoutError where it is
            known to be one.
        ValueError: a token, header or other text that must not be sent, named and not shown.
    """
    agent = NativeAgent(_native.load(), spec)
    try:
        agent.make_handle(0)
    except BaseException:
        agent.release()
        raise
    return agent


class NativeAgent:
    """An agent of the native library; see `EngineAgent`."""

    name: Literal["native"] = "native"

    def __init__(self, loaded: LoadedLibrary, spec: CreateSpec) -> None:
        self._loaded = loaded
        self._spec = spec
        self._elicitor: Elicitor = spec.elicitor
        self._tokens = tokens_for(spec)
        self._suspect = False  # whether the last run may have failed of a token
        self._options: _bridge.NativeOptions | None = None
        self._limit_ms = _limit(spec.elicitor, loaded.supports_elicitation)
        self._turns = Turns()
        self._pid = os.getpid()
        self._released = False
        self._handle: _bridge.AgentHandle | None = None  # none before the first and after a retired one
        self._host = Recorder(spec.elicitor)
        spec.elicitor.events.listen(spec.options.on_event)

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self, query: str, timeout_ms: int) -> RunOutcome:
        """See `EngineAgent.run`. Its time begins when it is this run's turn."""
        self._refuse_unusable()
        with self._turns.turn():
            self._refuse_unusable()
            return self._run(query, timeout_ms)

    def _run(self, query: str, timeout_ms: int) -> RunOutcome:
        left_ms = timeout_ms
        if self._tokens is not None and self._tokens.renew(self._refuse_unusable, suspect=self._suspect):
            self._retire()  # the library keeps the token that it was made with
        if self._handle is None or not self._handle.can_run:  # Ctrl-C between a call's start and the wait for it
            self._retire()
            left_ms = self.make_handle(timeout_ms)
        handle, host = self._current()
        host.begin()
        self._suspect = True  # until it is known to have gone well
        asked_before = handle.asked
        outcome = self._carry_out(self._started(handle.run, query, timeout_ms), left_ms, "the run")
        data = completed_data(outcome)
        if data is not None:
            host.tell("run_completed", outcome.run_id, outcome.iterations, data)
        failure = run_failure(outcome, data, has_events=self._loaded.supports_events)
        if failure is not None:
            if isinstance(failure, TimeoutError):
                self._retire()  # the library may still be at it
            failure.elicitation_cause = self._elicitor.take_cause()
            raise failure
        self._suspect = host.tool_failed  # the library does not say why
        return host.result(outcome, data, elicited=handle.asked > asked_before)

    def _carry_out(self, call: _bridge.Call, timeout_ms: int, what: str) -> _bridge.Outcome:
        """Waits for a call and answers what it asks. Whatever ends the wait early retires the handle."""
        call.set_timeout(timeout_ms)
        try:
            drive(call, self._elicitor, what=what)
            return call.outcome()
        except BaseException as error:
            self._retire()
            if isinstance(error, AgentError):
                error.elicitation_cause = self._elicitor.take_cause()
            raise
        finally:
            call.leave()

    # -- handles -----------------------------------------------------------------------------------------------------

    def make_handle(self, timeout_ms: int) -> int:
        """Creates the native agent. Returns what is left of `timeout_ms` (0: no limit) after it."""
        spec = self._spec
        if self._tokens is not None and not self._tokens.known:
            self._tokens.obtain(self._refuse_unusable)
        self._options = _native_options(self._loaded, spec, self._tokens)
        began = time.monotonic()
        self._host = Recorder(self._elicitor)
        elicitation = self._options is not None and self._options.elicitation
        handle = _bridge.AgentHandle(
            self._loaded.library,
            self._host,
            answer=_answer_mode(self._elicitor) if elicitation else "fixed",
            fixed_action=self._elicitor.fixed_action or "cancel",
            limit_ms=self._limit_ms,
            wants_events=True,  # a stream may be opened later
            server=spec.server,
        )
        self._handle = handle
        if self._released:  # disposed of at this very moment
            handle.close()
        factory, target = _factory_and_target(spec, self._tokens)
        call = self._started(handle.create, factory, spec.provider, spec.model, spec.api_key, target, self._options)
        outcome = self._carry_out(call, timeout_ms, "the creation of the agent")
        if not outcome.ok:
            self._retire()
            raise create_failure(outcome, spec.server)
        spent = round((time.monotonic() - began - outcome.paused_seconds) * 1000)
        return max(1, timeout_ms - spent) if timeout_ms else 0

    def _current(self) -> tuple[_bridge.AgentHandle, Recorder]:
        handle = self._handle
        if handle is None:
            raise AgentError("Agent has been disposed")
        return handle, self._host

    def _started(self, start: Callable[..., _bridge.Call], *arguments: object) -> _bridge.Call:
        try:
            return start(*arguments)
        except RuntimeError as error:
            self._retire()
            if self._released:
                raise AgentError("Agent has been disposed") from None
            raise AgentError(f"The native call could not be started: {error}") from error

    def _retire(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    # -- life --------------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """See `EngineAgent.release`. The native release happens on a thread of the bridge, after the last callback."""
        if self._pid != os.getpid():
            return
        self._released = True
        handle = self._handle
        if handle is not None:
            handle.close()
        self._turns.close()

    def _refuse_unusable(self) -> None:
        if self._pid != os.getpid():
            raise AgentError(
                "This agent was created before a fork and belongs to the parent process; create one in this process"
            )
        if self._released:
            raise AgentError("Agent has been disposed")


def _factory_and_target(spec: CreateSpec, tokens: NativeTokens | None) -> tuple[Factory, str]:
    """The factory and its third argument. Servers of the Gopher service that need tokens are given as a configuration,
    which says whose token is whose; the api_key factory takes the key as its target."""
    if spec.known_servers is not None and tokens is not None and tokens.servers:
        return "json", native_form(spec.known_servers)
    if spec.factory == "json":
        return "json", native_form(spec.target)
    return spec.factory, spec.api_key or "" if spec.factory == "api_key" else spec.target


def _native_options(
    loaded: LoadedLibrary, spec: CreateSpec, tokens: NativeTokens | None
) -> _bridge.NativeOptions | None:
    """None when there is nothing to say: then the plain functions are used, which every version has."""
    elicitation = spec.elicitor.enabled and loaded.supports_elicitation
    if spec.elicitor.enabled and not loaded.supports_elicitation:
        _refuse_or_tell(loaded, spec)
    headers = spec.options.headers
    servers = () if tokens is None else tokens.servers
    if spec.factory == "json" or servers:
        servers += own_credentials(spec.known_servers or spec.target)
    only = servers[0].access_token if spec.factory == "url" and servers else None
    if not elicitation and not headers and not servers:
        return None
    return _bridge.NativeOptions(
        access_token=only or spec.options.access_token,
        headers=headers,
        servers=() if only else servers,
        elicitation=elicitation,
        elicitation_timeout_ms=spec.elicitor.timeout_ms,
    )


def _refuse_or_tell(loaded: LoadedLibrary, spec: CreateSpec) -> None:
    if spec.elicitor.explicit:
        raise AgentError(
            f"Elicitation options were given, but libgopher-orch {loaded.version or 'of unknown version'} "
            f"({loaded.library.path}) has no elicitation support: 0.1.35 is needed (0.1.38 for retries after a sign-in "
            "over streamable HTTP). Upgrade it (pip install --upgrade 'gopher-mcp-python[native]') or use "
            'engine="embedded"'
        )
    _log.debug("libgopher-orch %s has no elicitation support; the agent is made without it", loaded.version)


def _answer_mode(elicitor: Elicitor) -> Literal["inline", "handed_over"]:
    """A fixed answer goes through Python, too: it is told like any other."""
    return "handed_over" if elicitor.mode == "handed_over" else "inline"


def _limit(elicitor: Elicitor, supports_elicitation: bool) -> int:
    wanted = elicitor.timeout_ms
    if elicitor.enabled and supports_elicitation and wanted > ELICITATION_LIMIT_MS:
        warnings.warn(
            f"elicitation timeout_ms={wanted} was lowered to {ELICITATION_LIMIT_MS}: the native library gives a tool "
            'call up after 120 s; engine="embedded" has no such limit',
            ElicitationWarning,
            stacklevel=2,
        )
    return min(wanted or ELICITATION_LIMIT_MS, ELICITATION_LIMIT_MS)
