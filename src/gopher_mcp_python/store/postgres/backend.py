"""The backend: transactions on a pool, notifications on a connection of their own.

READ COMMITTED with row locks, not SERIALIZABLE: every rule reads the row it is about under a lock, so there is nothing
to be tried again, and a waiter sees the winner's answer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..listeners import Listeners
from .connecting import Limits, driver, translated
from .listening import CHANNEL, Listener
from .migrating import KEEPER_ROLE, SCHEMA, check_version
from .pool import Pool
from .tx import PostgresTx

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresBackend"]

_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# The caller's name comes in hexadecimal digits: many statements in one go take no parameters. `true`: for this
# transaction only.
_OPEN = "{begin}; SELECT set_config('gopher.caller', convert_from(decode('{caller}', 'hex'), 'UTF8'), true), now()"

# Whether this login could pass row-level security by, or take it away; also the one behind a SET ROLE.
_TOO_MIGHTY = f"""
SELECT bool_or(role.rolsuper OR role.rolbypassrls),
       bool_or(pg_has_role(role.oid, rows.relowner, 'MEMBER') OR pg_has_role(role.oid, '{KEEPER_ROLE}', 'MEMBER')),
       bool_and(rows.relrowsecurity AND rows.relforcerowsecurity)
FROM pg_roles AS role, pg_class AS rows
WHERE role.rolname IN (current_user, session_user) AND rows.oid = '{SCHEMA}.mcp_elicitations'::regclass"""

# Where somebody has turned it off, the use of an approval, though acknowledged, could be gone after a crash of the
# server, and the call be made again.
_DURABLE = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"""

_TRANSLATED = translated()


class PostgresBackend:
    """Rows in the schema `gopher_mcp` of one database, which `migrate` has made.

    Args:
        dsn: a connection string or URI of libpq. Its login must be a member of `gopher_mcp_app`; logins that
            row-level security does not bind (superusers, the owner) are refused.
        pool_size: how many transactions may run at once; one more connection listens.
        wait_s: how long a transaction waits for a free connection, in seconds.
        limits: how long connecting, a statement, a lock may take.

    Nothing is connected before it is needed, and a server that was away is used again as soon as it is back.
    """

    def __init__(self, dsn: str, *, pool_size: int = 10, wait_s: float = 5.0, limits: Limits | None = None) -> None:
        self.name = _place(dsn)
        self._dsn = dsn
        self._limits = limits or Limits()
        self._pool = Pool(dsn, size=pool_size, wait_s=wait_s, limits=self._limits, prepare=_check)
        self._lock = threading.Lock()
        self._listeners = Listeners()
        self._listener: Listener | None = None
        self._closed = False
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<PostgresBackend {self.name}>"

    @contextmanager
    def transaction(self, caller: str | None, *, write: bool = True) -> Iterator[PostgresTx]:
        """See `backend.Backend`. Raises StoreError."""
        if caller == "":
            raise ValueError("a caller needs a name: it is empty")
        with _TRANSLATED:
            connection, now = self._begin(caller, write)
        tx = PostgresTx(connection, caller, now, write=write)
        try:
            yield tx
            with _TRANSLATED:
                _commit(connection, tx.changed)
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            self._pool.give(connection)

    def listen(self, callback: Callable[[str | None], None]) -> Callable[[], None]:
        """See `backend.Backend`. Returns once notifications are heard, or can't be for now. Raises StoreError when
        it is closed."""
        self._pool.check()
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed")
            if self._listener is None:
                self._listener = Listener(self._dsn, lambda id: self._listeners.tell([id]), limits=self._limits)
            listener, end = self._listener, self._listeners.add(callback)
        listener.wait_until_tried()
        return end

    def close(self) -> None:
        """See `backend.Backend`. In a forked child it does nothing: what is open is the parent's."""
        if self._pid != os.getpid():  # before the lock, which a thread of the parent may have held
            return
        with self._lock:
            self._closed = True
            listener, self._listener = self._listener, None
        self._pool.close()
        if listener is not None:
            listener.close()

    def _begin(self, caller: str | None, write: bool) -> tuple[psycopg.Connection[Any], datetime]:
        """A connection in a transaction, and the server's time. One that the server has closed since is replaced."""
        opening = _OPEN.format(begin=_WRITING if write else _READING, caller=(caller or "").encode().hex())
        psycopg = driver()
        connection, used = self._pool.take()
        try:
            try:
                return connection, _open(connection, opening)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if not used or not connection.closed:
                    raise
            connection = self._pool.again(connection)
            return connection, _open(connection, opening)
        except BaseException:
            self._pool.give(connection)
            raise


def _open(connection: psycopg.Connection[Any], opening: str) -> datetime:
    cursor = connection.execute(opening.encode("ascii"), prepare=False)
    cursor.nextset()
    now: datetime = cursor.fetchall()[0][1]
    return now


def _commit(connection: psycopg.Connection[Any], changed: dict[str, None]) -> None:
    """The ids go with the commit, in one message to the server; digits again, for the same reason."""
    ids = "".join(
        f"SELECT pg_notify('{CHANNEL}', convert_from(decode('{id.encode().hex()}', 'hex'), 'UTF8'));" for id in changed
    )
    done = connection.execute(f"{ids} COMMIT".encode("ascii"), prepare=False)
    # A transaction in which a statement has failed answers a COMMIT with a ROLLBACK, and no error.
    if not changed and done.statusmessage != "COMMIT":
        raise StoreError("nothing was recorded: a statement of this transaction had failed")


def _roll_back(connection: psycopg.Connection[Any]) -> None:
    """A connection on which that fails is closed, and the server rolls back by itself."""
    try:
        connection.rollback()
    except driver().Error:
        connection.close()


def _check(connection: psycopg.Connection[Any]) -> None:
    """Raises StoreError when the login can pass row-level security by, or the tables are not ours."""
    check_version(connection)
    connection.execute(_DURABLE)
    found = connection.execute(_TOO_MIGHTY).fetchone()
    mighty, owner, forced = found if found is not None else (True, True, False)
    if mighty or owner or not forced:
        why = "is a superuser or may bypass row-level security" if mighty else "owns the tables or keeps house in them"
        raise StoreError(
            f"the login of the Postgres store {why}: use one that is only a member of gopher_mcp_app"
            if mighty or owner
            else "row-level security was taken off the store's table: run ALTER TABLE gopher_mcp.mcp_elicitations "
            "ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )


def _place(dsn: str) -> str:
    """Where it is, without login and password. Raises ValueError for a DSN that can't be read, and never tells it."""
    psycopg = driver()
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        given = None
    if given is None:
        raise ValueError("the DSN of the Postgres store can't be read: it is neither key=value pairs nor a URI")
    where, name = given.get("host") or given.get("hostaddr") or "the default host", given.get("dbname")
    # A password with "@" or "/" in it that was not escaped in a URI is read as a part of what comes behind it.
    shown = [str(text).rpartition("@")[2] for text in (name or "of the login", where)]
    return f"Postgres database {shown[0]!r} at {shown[1]}"
