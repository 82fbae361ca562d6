"""A thread with a connection of its own that hears what other replicas change.

A notification carries an id and nothing else. What was said while no connection was there is lost, so every new
connection is reported too (with None): who waits then looks for itself.
"""

from __future__ import annotations

import logging
import random
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..threads import started
from .connecting import Limits, connect, translated

if TYPE_CHECKING:
    import psycopg

__all__ = ["CHANNEL", "Listener"]

CHANNEL = "gopher_mcp_elicitations"

_logger = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_PROBE_S = 30.0  # an idle connection is asked that often whether it is still there
_LONGEST_ID = 200


class Listener:
    """Calls `heard(id)` for each notification, and `heard(None)` once it listens (again). `heard` never raises."""

    def __init__(self, dsn: str, heard: Callable[[str | None], None], *, limits: Limits) -> None:
        self._dsn = dsn
        self._heard = heard
        self._limits = limits
        self._stopping = threading.Event()
        self._tried = threading.Event()
        self._stop_read, self._stop_write = socket.socketpair()
        try:
            self._thread = started("gopher-mcp-store-listener", self._run)
        except BaseException:
            self._stop_read.close()
            self._stop_write.close()
            raise

    def wait_until_tried(self) -> None:
        """Returns when it listens, or when the first connection could not be made."""
        self._tried.wait(self._limits.connect_s + self._limits.answer_s)

    def close(self) -> None:
        """Ends the thread and waits for it (a connection that is being made takes up to `connect_s`)."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with suppress(BrokenPipeError):  # the thread may have seen it, and ended, already
            self._stop_write.send(b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join(self._limits.connect_s + self._limits.answer_s)
        self._stop_write.close()

    def _run(self) -> None:
        pause, lost = _FIRST_PAUSE_S, False
        with self._stop_read:
            while not self._stopping.is_set():
                try:
                    with connect(self._dsn, self._limits) as connection:
                        # While a statement runs, psycopg takes what comes, and would throw it away.
                        connection.add_notify_handler(lambda notified: self._pass_on(notified.payload))
                        with translated():
                            connection.execute(f"LISTEN {CHANNEL}")
                        if lost:
                            _logger.info("the store hears notifications again")
                        pause, lost = _FIRST_PAUSE_S, False
                        self._tried.set()
                        self._heard(None)
                        self._hear(connection)
                except Exception as why:  # whatever it is: the poll goes on, and this must too
                    if not lost:
                        told = str(why) if isinstance(why, StoreError) else type(why).__name__
                        _logger.warning("the store hears no notifications for now and polls: %s", told)
                    lost = True
                finally:
                    self._tried.set()
                # Replicas that lost their server together must not all come back in the same moment.
                self._stopping.wait(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        """Returns when the listener is closed. Raises StoreError when the connection breaks."""
        with ExitStack() as stack:
            stack.enter_context(translated())
            ready = stack.enter_context(selectors.DefaultSelector())
            ready.register(connection.fileno(), selectors.EVENT_READ)
            ready.register(self._stop_read, selectors.EVENT_READ)
            while not self._stopping.is_set():
                while (notified := connection.pgconn.notifies()) is not None:
                    self._pass_on(notified.extra.decode("utf-8", "replace"))
                if not ready.select(_PROBE_S):
                    connection.execute("SELECT 1")
                connection.pgconn.consume_input()

    def _pass_on(self, payload: str) -> None:
        # Every user of the database may notify: what comes is a hint to look, and never more.
        if len(payload) <= _LONGEST_ID:
            self._heard(payload)
