"""Notices what other processes commit to a SQLite file."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..redaction import log_failure
from .listeners import Listeners
from .threads import started

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteWatch"]

_log = logging.getLogger("gopher_mcp_python.store")
_PULSE_S = 0.02
_AFTER_FAILURE_S = 1.0
_MOST = 1_000  # changes that are told one by one


class SqliteWatch:
    """Asks whether anything was committed (a few microseconds, without a lock), and reads from the audit what it was.
    Its thread runs until `close`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], listeners: Listeners) -> None:
        self._connect = connect
        self._listeners = listeners
        self._stop = threading.Event()
        self._connection: sqlite3.Connection | None = connect()
        self._version = -1
        self._seen = self._head()
        try:
            self._thread = started("gopher-mcp-sqlite-watch", self._run)
        except BaseException:
            self._drop()
            raise

    def close(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _run(self) -> None:
        pause = _PULSE_S
        while not self._stop.wait(pause):
            try:
                self._look()
                pause = _PULSE_S
            except Exception as error:
                if pause == _PULSE_S:
                    log_failure(_log, "the SQLite file can't be watched; trying again", error)
                self._drop()
                pause = _AFTER_FAILURE_S
                self._listeners.tell([None])
        self._drop()

    def _look(self) -> None:
        if self._connection is None:
            self._connection, self._version = self._connect(), -1
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return
        self._version = version
        rows = self._connection.execute("SELECT seq, text FROM audit WHERE seq > ? LIMIT ?", (self._seen, _MOST + 1))
        found = rows.fetchall()
        if len(found) > _MOST:
            self._seen = self._head()
            self._listeners.tell([None])
        elif found:
            self._seen = found[-1][0]
            ids = (_named(text) for _, text in found)
            self._listeners.tell(id for id in ids if id is not None)

    def _head(self) -> int:
        assert self._connection is not None
        (seq,) = self._connection.execute("SELECT max(seq) FROM audit").fetchone()
        return seq or 0

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _named(text: str) -> str | None:
    told = json.loads(text).get("elicitation")
    return told if isinstance(told, str) else None
