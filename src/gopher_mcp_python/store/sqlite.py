"""Rows in one SQLite file, for any number of processes of one user on one machine.

Write-ahead log with full sync: what was acknowledged survives a killed process and a power cut. Writers take turns
(BEGIN IMMEDIATE); readers wait for nobody. SQLite has no notifications, so that a process learns of another's commits
by looking at `PRAGMA data_version` 50 times a second, while somebody listens.

Any library from SQLite 3.8 of 2013 on will do: a native agent library may bring an old one.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from .errors import StoreError
from .listeners import Listeners
from .memory import utc_now
from .sqlite_schema import check_library, prepare
from .sqlite_tx import SqliteTx
from .sqlite_watch import SqliteWatch

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteBackend"]

_PATIENCE_S = 10.0  # to wait for other writers; what is done under the lock takes milliseconds
_IDLE = 8  # connections that are kept


class SqliteBackend:
    """A file that is made when it isn't there, for this user only, in a folder that is there."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Callable[[], datetime] = utc_now,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """`patience_s`: how long to wait for other writers. Raises StoreError when the file can't be used: its folder
        is missing, it belongs to others or they may open it, it is no such database, or a later version wrote it."""
        self._path = Path(os.path.abspath(path))
        self.name = f"SQLite file {self._path.name}"
        self._clock = clock
        self._patience_s = patience_s
        self._sqlite3 = check_library()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writing = threading.Lock()  # between threads; fairer than SQLite's own waiting, and without pauses
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._listeners = Listeners()
        self._watch: SqliteWatch | None = None
        self._file = _make_private(self._path)
        connection = self._connect()
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    @contextmanager
    def transaction(self, caller: str | None, *, write: bool = True) -> Iterator[SqliteTx]:
        """See `backend.Backend`. Raises StoreError."""
        connection = self._take()
        try:
            with self._turn() if write else nullcontext():
                with self._failures():
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    tx = SqliteTx(connection, caller, self._clock())
                    yield tx
                    connection.execute("COMMIT")
        finally:
            self._give_back(connection)
        self._listeners.tell(tx.changed)

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        """See `backend.Backend`; what other processes change is noticed a little later. Raises StoreError."""
        with self._lock:
            self._refuse()
            if self._watch is None:
                with self._failures():
                    self._watch = SqliteWatch(self._connect, self._listeners)
            return self._listeners.add(callback)

    def close(self) -> None:
        """Idempotent. In a process that was forked from the one that opened it, nothing."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        self._refuse_after_fork()
        with self._lock:
            self._refuse()
            if self._idle:
                self._same_file()
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with suppress(self._sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            with self._lock:
                if not self._closed and len(self._idle) < _IDLE and not connection.in_transaction:
                    self._idle.append(connection)
                    return
        with suppress(self._sqlite3.Error):
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        self._same_file()
        with self._failures():
            connection: sqlite3.Connection = self._sqlite3.connect(
                str(self._path), timeout=self._patience_s, isolation_level=None, check_same_thread=False
            )
            try:
                for pragma in ("synchronous = FULL", "secure_delete = ON", "trusted_schema = OFF"):
                    connection.execute(f"PRAGMA {pragma}")  # one that an old library doesn't know does nothing
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Changing to the write-ahead log is the one step that doesn't wait for others that open the file too."""
        end = monotonic() + self._patience_s
        while True:
            try:
                with self._failures():
                    return prepare(connection)
            except StoreError as error:
                if "locked" not in str(error) or monotonic() > end:
                    raise
            sleep(0.01)

    def _same_file(self) -> None:
        """A file that vanished is not made anew, nor is one that lives on without a name written to: others would
        use another one."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise StoreError(f"The {self.name} is gone ({error.strerror}): restore it, open it anew") from None
        if (found.st_dev, found.st_ino) != self._file:
            raise StoreError(f"The {self.name} was replaced by another file: open the store anew")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._writing.acquire(timeout=self._patience_s):
            raise StoreError(f"The {self.name} is busy: other transactions took longer than {self._patience_s:g} s")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """SQLite's messages name tables and reasons, never values."""
        try:
            yield
        except self._sqlite3.Error as error:
            raise StoreError(
                f"The {self.name} can't be used ({type(error).__name__}: {error!s:.200}): see to the disk and the file"
            ) from None

    def _refuse(self) -> None:
        if self._closed:
            raise StoreError("The store is closed")

    def _refuse_after_fork(self) -> None:
        if self._pid != os.getpid():
            raise StoreError("This store was opened before a fork; open one in this process")


def _make_private(path: Path) -> tuple[int, int]:
    """Makes an empty file with mode 0600; SQLite gives the same to those beside it, which it believes when they are
    there. Returns what tells the file from others. Raises StoreError for one that others may open or own."""
    try:
        if not path.parent.is_dir():  # a slip of the pen must not become another, empty store
            raise StoreError(f"there is no folder {path.parent}: make it, or name another file")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
        try:
            found = os.fstat(descriptor)
            folder = os.stat(path.parent)
            _refuse_what_others_reach(found, folder, path)
            for beside in (path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")):
                with suppress(FileNotFoundError):  # in a folder like /tmp somebody else may have made them before
                    _refuse_what_others_reach(os.lstat(beside), folder, beside)
            return found.st_dev, found.st_ino
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(
            f"{path} can't be opened ({error.strerror or type(error).__name__}): see that this user may write there"
        ) from None


def _refuse_what_others_reach(found: os.stat_result, folder: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no plain file: move it away, or name another one")
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to another user (number {found.st_uid}): run as that user, or chown it")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise StoreError(f"other users may open {path} (its mode is {mode:04o}): run chmod 600 {path}")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise StoreError(f"every user may replace files in {path.parent}: run chmod o-w {path.parent}")
