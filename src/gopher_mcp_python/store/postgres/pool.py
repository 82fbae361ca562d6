"""A bounded set of connections, made by who needs one.

Not psycopg_pool: there a caller waits for worker threads, which try again later and later while the server is away.
Here the caller connects itself, so that it learns at once that the server is down, and the first call after the server
is back finds it. There is no thread, and a forked child never uses its parent's connections.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from .connecting import Limits, connect

if TYPE_CHECKING:
    import psycopg

__all__ = ["Pool"]


class Pool:
    """At most `size` connections in use at once; the one used last is given first. Each new one goes to `prepare`."""

    def __init__(
        self,
        dsn: str,
        *,
        size: int,
        wait_s: float,
        limits: Limits,
        prepare: Callable[[psycopg.Connection[Any]], None] = lambda connection: None,
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool needs a size of at least 1, not {size}")
        self._dsn = dsn
        self._size = size
        self._wait_s = wait_s
        self._limits = limits
        self._prepare = prepare
        self._lock = threading.Lock()
        self._places = threading.Semaphore(size)
        self._idle: list[psycopg.Connection[Any]] = []
        self._pid = os.getpid()
        self._closed = False

    def __repr__(self) -> str:
        return f"<Pool of {self._size}>"

    def take(self) -> tuple[psycopg.Connection[Any], bool]:
        """A connection, and whether it was used before (the server may have closed it since).

        Raises StoreError when the server can't be reached or all connections stay busy for `wait_s` seconds.
        """
        self.check()
        if not self._places.acquire(timeout=self._wait_s):
            raise StoreError(
                f"all {self._size} connections to Postgres were busy for {self._wait_s:g} s; "
                "give the backend a larger pool_size"
            )
        try:
            self.check()
            with self._lock:
                used = self._idle.pop() if self._idle else None
            return (used, True) if used is not None else (self._connect(), False)
        except BaseException:
            self._places.release()
            raise

    def again(self, connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        """A new connection in the place of one that turned out to be closed.

        Raises StoreError; the closed one is still to be given back then.
        """
        connection.close()
        return self._connect()

    def give(self, connection: psycopg.Connection[Any]) -> None:
        """Takes a connection back; one that is broken or in the middle of something is closed."""
        idle = not connection.closed and connection.pgconn.transaction_status == 0
        with self._lock:
            keep = idle and not self._closed and self._pid == os.getpid()
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._places.release()

    def close(self) -> None:
        """Closes what is idle; what is in use is closed when it comes back. Can be called twice."""
        self._closed = True
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._dsn, self._limits)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def check(self) -> None:
        """Raises StoreError when this process can't use it."""
        if self._closed:
            raise StoreError("the store is closed")
        if self._pid != os.getpid():
            raise StoreError("this store was opened before a fork: open one in each process")
