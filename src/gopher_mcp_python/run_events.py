"""Who is told what happens during the runs of one agent, in which order, and what a run's end means for it."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .asking import Asking
from .copying import copied
from .errors import TimeoutError
from .events import EventHandler, GopherAgentEvent
from .redaction import log_failure, redacted_error
from .stopping import called_off

if TYPE_CHECKING:
    from .elicitation import GopherAgentElicitationRequest

__all__ = ["COMPLETED", "AgentEvents", "RunEvents", "Sink"]

COMPLETED = "completed"  # the status of a run that ended well
Sink = Callable[[GopherAgentEvent], object]
_log = logging.getLogger("gopher_mcp_python.events")


class RunEvents:
    """The events of one run: numbered as they come, nothing after the end. Any thread may tell.

    `sink` takes them in their order and must come back at once; `on_event` is the program's own and is called on the
    thread that tells.
    """

    def __init__(self, on_event: EventHandler | None, sink: Sink | None = None) -> None:
        self._on_event, self._sink = on_event, sink
        self.lock = threading.RLock()  # what is done under it and told comes before whatever is told next
        self._began = time.monotonic()
        self._numbers = itertools.count(1)
        self._calls: list[tuple[object, str]] = []  # tools at work: name, call id
        self._call_numbers, self._asking_numbers = itertools.count(1), itertools.count(1)
        self._asked: list[Asking] = []
        self._run_id = self._iteration = 0
        self._completed = self._over = False

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return not self._over and (self._sink is not None or self._on_event is not None)

    def begin(self) -> None:
        """The engine begins to carry it out: also for the second time, after a sign-in page that came as text."""
        self._completed = False

    def tell(self, kind: str, run_id: int, iteration: int, data: dict[str, Any]) -> None:
        """For engines: one event of theirs."""
        if not self.heard:
            return
        with self.lock:
            if self._over:  # since the look above
                return
            self._run_id, self._iteration = run_id or self._run_id, iteration
            self._completed = self._completed or kind == "run_completed"
            event = self._event(kind, data, self._call_id(kind, data))
        self.call(event)

    def tell_asking(self, kind: str, data: dict[str, Any], call_id: str) -> None:
        event = self.enqueue_asking(kind, data, call_id)
        if event is not None:
            self.call(event)

    def enqueue_asking(self, kind: str, data: dict[str, Any], call_id: str) -> GopherAgentEvent | None:
        """The first half of `tell_asking`, for who holds the lock; `on_event` is called without it."""
        with self.lock:
            return self._event(kind, data, call_id) if self.heard else None

    def ask(self, asking: Asking) -> str:
        """Keeps a question until it is answered. Returns its call id."""
        with self.lock:
            self._asked = [one for one in self._asked if not one.told]
            self._asked.append(asking)
            return f"elicitation_{next(self._asking_numbers)}"

    def only_tool(self) -> str | None:
        """The tool at work, where it is just one: the vendor's library does not say which one asks."""
        with self.lock:
            return str(self._calls[0][0]) if len(self._calls) == 1 else None

    def end(self, status: str, text: str = "", iterations: int = 0, error: str | None = None) -> None:
        """Nothing is told after it. Where the engine has not told how the run ended, that is told now."""
        for asking in self._asked:
            asking.end_if_gone()
        if self.heard and not self._completed:
            told = {"status": status, "error": error, "final_answer": text, "iteration_count": iterations}
            self.tell("run_completed", self._run_id, self._iteration, told)
        with self.lock:
            self._over = True
            self._asked, self._sink = [], None

    def late(self, kind: str, data: dict[str, Any], call_id: str) -> None:
        """A question of the session's own stream that outlives the run: for the program's callback alone."""
        if self._on_event is not None:
            self.call(GopherAgentEvent(kind, self._run_id, self._iteration, data, call_id=call_id))

    @property
    def over(self) -> bool:
        return self._over

    def _event(self, kind: str, data: dict[str, Any], call_id: str | None) -> GopherAgentEvent:
        """`data` is copied for each who hears it: changing it changes neither what is done nor what others hear."""
        seconds, own = time.monotonic() - self._began, copied(data)
        event = GopherAgentEvent(kind, self._run_id, self._iteration, own, next(self._numbers), seconds, call_id)
        if self._sink is not None:
            self._sink(event)
        return event if self._sink is None or self._on_event is None else replace(event, data=copied(data))

    def _call_id(self, kind: str, data: dict[str, Any]) -> str | None:
        """The engine's id for a tool call, else one made up in order; a result belongs to its tool's oldest call."""
        if kind not in ("tool_dispatched", "tool_result"):
            return None
        given, tool = data.get("tool_call_id"), data.get("tool")
        if kind == "tool_dispatched":
            call_id = given if isinstance(given, str) and given else f"call_{next(self._call_numbers)}"
            self._calls.append((tool, call_id))
            return call_id
        found = next((one for one in self._calls if one[1] == given), None) or next(
            (one for one in self._calls if one[0] == tool), None
        )
        if found is not None:
            self._calls.remove(found)
            return found[1]
        return given if isinstance(given, str) else None

    def call(self, event: GopherAgentEvent) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # an observer's failure is not the run's
            log_failure(_log, f"on_event failed for {event.kind}", error)


class AgentEvents:
    """One agent's: knows the program's callback and the run that has its turn, which is the one that asks.

    Attributes:
        heard: whether anybody listens now; an attribute, since each inline answer looks at it.
    """

    def __init__(self) -> None:
        self._on_event: EventHandler | None = None
        self._lock = threading.RLock()  # a run may end while the next one has its turn already
        self._turn: RunEvents | None = None
        self.heard = False

    def listen(self, on_event: EventHandler | None) -> None:
        """The program's callback, for all that comes."""
        self._on_event = on_event
        self.heard = on_event is not None

    @contextmanager
    def run(self, sink: Sink | None = None) -> Iterator[RunEvents]:
        """A run, from waiting for its turn to its end, and how it ended."""
        run = RunEvents(self._on_event, sink)
        token = _current.set((self, run))
        try:
            yield run
        except BaseException as error:
            status, told = _how(error)
            run.end(status, error=told)
            raise
        finally:
            with self._lock:
                if self._turn is run:
                    self._turn, self.heard = None, self._on_event is not None
            run.end(COMPLETED)
            _current.reset(token)

    def turn(self) -> RunEvents:
        """For engines, in the context of who called run(): its turn has come."""
        owner, run = _current.get()
        if run is None or owner is not self or run.over:  # an engine's agent that is used without a GopherAgent
            run = RunEvents(self._on_event)
        run.begin()
        with self._lock:
            self._turn, self.heard = run, run.heard
        return run

    def asking(self, request: GopherAgentElicitationRequest, pending: Any) -> Asking:
        """A question that is about to be put to its handler: told from here to its end."""
        owner, run = _current.get()
        if owner is not self:  # it came on a session's own stream
            run = self._turn
        return Asking(run if run is not None and not run.over else RunEvents(self._on_event), request, pending)


_Current = tuple["AgentEvents | None", "RunEvents | None"]
_current: ContextVar[_Current] = ContextVar("gopher_mcp_events", default=(None, None))


def _how(error: BaseException) -> tuple[str, str]:
    if not isinstance(error, Exception) or called_off():
        return "cancelled", type(error).__name__
    return ("timeout" if isinstance(error, TimeoutError) else "error"), redacted_error(error)
