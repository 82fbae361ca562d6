"""One connection to Postgres, made the same way everywhere, on which nothing can wait for ever.

Three limits stand one behind the other: the server ends a statement or a wait for a lock that takes too long, the
kernel ends a connection whose other side is gone, and `BoundedConnection` gives up on a server that neither answers
nor closes (a stopped process, a dead disk).
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import StoreError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Limits", "connect", "driver", "failure", "translated"]

# PostgreSQL error codes, Appendix A of its manual.
_NO_RIGHT, _NO_SCHEMA, _NO_TABLE, _NO_FUNCTION = "42501", "3F000", "42P01", "42883"
_UNREACHABLE = ("08", "53", "57", "58")  # connection, resources, operator's intervention (shutdown), system
_IS_BUSY = ("40", "55")  # serialisation and deadlock; a lock that could not be had
_INSTALL = 'pip install -U "gopher-mcp-python[postgres]"'
_OLDEST = (3, 2, 12)  # before, its waiting in C did not return before the socket was ready
MIGRATE = "run python -m gopher_mcp_python.store.postgres DSN, with the owner's login"
_NO_RIGHTS = "Postgres refuses: give the login of the store the role gopher_mcp_app, and only that one"
_PUT_RIGHT = "; check that the server runs, and address, user and password in the DSN"


@dataclass(frozen=True)
class Limits:
    """How long what may take, in seconds. `answer_s` must be the longest of them: it is the last line."""

    connect_s: int = 3  # psycopg takes no less than 2
    statement_s: float = 5.0
    lock_s: float = 4.0
    idle_s: float = 10.0  # in an open transaction: a caller that was stopped must not hold its rows for ever
    answer_s: float = 6.0

    def options(self) -> str:
        """The server's settings, as libpq's `options` takes them (whole milliseconds)."""
        settings = {
            "statement_timeout": self.statement_s,
            "lock_timeout": self.lock_s,
            "idle_in_transaction_session_timeout": self.idle_s,
        }
        return " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in settings.items()) + " -c timezone=UTC"


@functools.cache
def driver() -> Any:
    """The module `psycopg`. Raises StoreError that names the extra when it is missing or too old."""
    try:
        import psycopg
    except ImportError as why:
        raise StoreError(f"the Postgres store needs an extra: {_INSTALL} ({type(why).__name__})") from None
    if tuple(map(int, re.findall(r"\d+", psycopg.__version__)[:3])) < _OLDEST:
        raise StoreError(f"psycopg {psycopg.__version__} can't give up on a server that is stuck: {_INSTALL}")
    return psycopg


def connect(dsn: str, limits: Limits, **settings: Any) -> psycopg.Connection[Any]:
    """A connection in autocommit mode. Raises StoreError, which never tells the DSN."""
    psycopg = driver()
    fixed = {
        "connect_timeout": limits.connect_s,
        "application_name": "gopher-mcp",
        "client_encoding": "utf8",
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": int(limits.answer_s * 1000),
    }
    with translated():
        given = psycopg.conninfo.conninfo_to_dict(dsn)
        options = " ".join(filter(None, (str(given.get("options") or ""), limits.options())))
        # What the DSN says about the connection itself wins; our limits on statements come last and win.
        made = fixed | given | {"options": options}
        connection = _bounded().connect(**made, autocommit=True, **settings)
    connection.answer_s = limits.answer_s
    return connection  # type: ignore[no-any-return]


@functools.cache
def _bounded() -> Any:
    """The connection class, made on first use: psycopg is not imported before."""
    psycopg = driver()

    class BoundedConnection(psycopg.Connection):  # type: ignore[misc, name-defined]
        """Gives up, and closes itself, when the server has said nothing for `answer_s` seconds."""

        answer_s = 0.0  # no limit: while connecting (psycopg has its own then) and while listening

        def wait(self, gen: Any, interval: float = 0.1, **more: Any) -> Any:
            if not self.answer_s:
                return super().wait(gen, interval, **more)
            return super().wait(_until(time.monotonic() + self.answer_s, gen, self.close), interval, **more)

    return BoundedConnection


def _until(end: float, gen: Generator[Any, Any, Any], give_up: Callable[[], None]) -> Generator[Any, Any, Any]:
    """`gen`, ended at `end`. What waits for the socket sends 0 each interval in which nothing came."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                give_up()
                raise StoreError("Postgres does not answer; check the server, or restart it")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


class translated:
    """Turns what psycopg raises into StoreError or ValueError without its text: a server quotes values in its errors.

    No context is kept either: the exception of psycopg holds the server's text, and a traceback could print it. It is
    around every statement, so it is no generator.
    """

    __slots__ = ("_no_right",)

    def __init__(self, no_right: str = _NO_RIGHTS) -> None:
        self._no_right = no_right

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        if isinstance(error, UnicodeEncodeError):  # it holds the text
            raised: Exception = ValueError("text that is not valid Unicode can't be stored: it holds a lone surrogate")
        elif not isinstance(error, driver().Error):
            return
        else:
            no_right = getattr(error, "sqlstate", None) == _NO_RIGHT
            raised = StoreError(self._no_right) if no_right else failure(error)
        try:
            raise raised from None
        finally:
            raised.__context__ = None


def failure(why: Any) -> Exception:
    """What is wrong and what to do about it, from a psycopg error: its class and its SQLSTATE."""
    psycopg = driver()
    code = str(getattr(why, "sqlstate", None) or "")
    if isinstance(why, psycopg.DataError):
        return ValueError(f"Postgres can't store this text or number ({_named(why, code)}); text must not hold NUL")
    if code in (_NO_SCHEMA, _NO_TABLE, _NO_FUNCTION):
        return StoreError(f"the store's tables are not in this database: {MIGRATE}")
    if code.startswith("28"):
        return StoreError(f"Postgres refuses the login ({_named(why, code)}): check user and password in the DSN")
    if code.startswith(_IS_BUSY) or code == "57014":
        return StoreError(f"Postgres is too busy ({_named(why, code)}): try again")
    if not code or code.startswith(_UNREACHABLE):
        return StoreError(f"Postgres can't be reached, or refuses the login ({_named(why, code)}){_PUT_RIGHT}")
    return StoreError(f"Postgres refused what the store asked ({_named(why, code)})")


def _named(why: Any, code: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(why).__name__).lower()
    return f"{words}, SQLSTATE {code}" if code else words
