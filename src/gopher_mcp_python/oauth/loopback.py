"""The listener on this machine to which the authorization server sends the browser back (RFC 8252 7.3).

It takes one thing: a GET of the redirect URI's path, on a loopback name, with the state of the sign-in that waits. All
else gets a small page that says that nothing was done, and changes nothing: the right one may still come. The browser
that brought the right one waits for its page until the program knows how the sign-in ended, so that the page is true.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType

from . import pages
from .debug import debug
from .errors import SignInError
from .incoming import Connection, Request
from .redirect import NOT_TAKEN, STRAYS, Redirect, is_address_of, pasted_query, read_redirect
from .sockets import Address, bind, parse_address

__all__ = ["Callback", "Redirect"]

_HOLD_SECONDS = 20.0  # a browser that waits longer for its page is told to go on in the program
_CLOSE_SECONDS = 1.0  # in which the last page may be read
_BACKLOG = 256  # connections that the system keeps until they are looked at; what is dropped comes back a second later
_ACCEPTING_STEPS = 3  # of the loop, until a connection that was accepted just before is one of ours
_MANY = 64  # connections; above it, idle ones give way to new ones
_IDLE_SECONDS = 0.2  # a connection that said nothing for so long is idle


class Callback:
    """Made by `listen`. Belongs to the event loop that it was made on; only `feed` may be called from other threads.

    Use it as an async context manager, or call `finish` (or `close`) whatever happens.
    """

    def __init__(self, address: Address, redirect_uri: str, port: int) -> None:
        self.redirect_uri = redirect_uri
        self._address = address
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # around `_redirect`, which comes from the browser or from another thread
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._held: Connection | None = None
        self._state: str | None = None
        self._redirect: Redirect | None = None
        # Futures without results: asyncio's debug log shows results.
        self._waiters: set[asyncio.Future[None]] = set()
        self._emptied: asyncio.Future[None] | None = None
        self._notify: Callable[[], None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"Callback({self.redirect_uri.partition('?')[0]!r})"

    @classmethod
    async def listen(cls, redirect_uri: str | None = None) -> Callback:
        """Listens on a redirect URI of this machine.

        Args:
            redirect_uri: None: http://127.0.0.1:<a free port>/callback. With a port: that one; without: a free one. For
                "localhost" both 127.0.0.1 and ::1 are bound.

        Raises:
            SignInError: "misconfigured": the port is taken, or the URI is none that a program here can listen on.
        """
        address = parse_address(redirect_uri)
        sockets = bind(address)
        port = sockets[0].getsockname()[1]
        made = cls(address, address.with_port(port), port)
        try:
            await made._serve(sockets)
        except BaseException:
            made.close()
            for one in sockets:
                one.close()
            raise
        debug("listening for the browser", uri=made.redirect_uri, addresses=len(sockets))
        return made

    async def _serve(self, sockets: list[socket.socket]) -> None:
        loop = self._loop
        for one in sockets:
            # Not started by create_server: cancelled there, nobody would have the server to close it.
            server = await loop.create_server(
                lambda: Connection(self, loop), sock=one, backlog=_BACKLOG, start_serving=False
            )
            self._servers.append(server)
            await server.start_serving()

    def expect(self, state: str) -> None:
        """From now on the redirect with this state is taken, whether or not somebody waits for it already."""
        with self._lock:
            if state == self._state:
                return
            self._state, self._redirect = state, None
        held, self._held = self._held, None
        if held is not None:  # by an attempt before this one, whose end nobody will tell
            held.answer(HTTPStatus.OK, pages.pending())

    @property
    def redirect(self) -> Redirect | None:
        """The redirect that was taken."""
        return self._redirect

    def notify(self, call: Callable[[], None] | None) -> None:
        """Has `call` called on the loop when a redirect is there, or the listener was closed; None: no more."""
        self._notify = call
        if call is not None and (self._redirect is not None or self._closed):
            self._loop.call_soon(self._wake)

    async def wait(self, state: str) -> Redirect:
        """Waits for the redirect with this state, from the browser or from `feed`; without a time limit.

        Raises:
            SignInError: "cancelled": the listener was closed meanwhile.
        """
        self.expect(state)
        while self._redirect is None:
            if self._closed:
                raise SignInError("The sign-in was ended before the browser came back.", "cancelled")
            waiter = self._loop.create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)
        return self._redirect

    def feed(self, pasted: str, *, sign_in_url: str | None = None) -> str | None:
        """Takes the address on which the browser ended, or its query, from a person. Any thread.

        Returns None when it was taken, else why not, as a sentence for people without anything of what was pasted.
        `sign_in_url` is the page where the sign-in began, which people paste by mistake.
        """
        state = self._state
        if self._closed or state is None:
            return "No sign-in is waiting."
        if sign_in_url is not None and is_address_of(pasted, sign_in_url):
            return f"That is the page where the sign-in begins; the browser ends on {self.redirect_uri}..."
        found = read_redirect(pasted_query(pasted), state)
        if isinstance(found, Redirect) and found.code is None and found.error is None:
            found = "nothing"  # the end of an address, perhaps
        if isinstance(found, Redirect):
            if self._take(found, state):
                return None
            if self._state == state:
                return "The browser has come back already."
            found = "other"  # a new attempt has begun meanwhile
        debug("a pasted address was not taken", why=found)
        return NOT_TAKEN[found].format(uri=self.redirect_uri)

    async def finish(self, ok: bool, text: str) -> None:
        """Answers the browser that waits, with the truth, and closes everything. Only the first call counts.

        Args:
            ok: Whether the token is there.
            text: For the page: what the person is signed in to, or why not.
        """
        if self._closed:
            return
        try:
            self._closed = True
            await self._stop_accepting()
            self._stop_listening()
            if self._held is not None:
                self._held.answer(HTTPStatus.OK, pages.signed_in(text) if ok else pages.failed(text))
            for connection in self._connections - {self._held}:
                connection.abort()
            if self._connections:
                self._emptied = self._loop.create_future()
                await asyncio.wait({self._emptied}, timeout=_CLOSE_SECONDS)
        finally:
            self.close()

    def close(self) -> None:
        """Closes everything now; a browser that waits gets no page. For when there is no time for `finish`."""
        self._stop_listening()
        for connection in list(self._connections):
            connection.abort()

    async def __aenter__(self) -> Callback:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.finish(False, "The sign-in was not finished.")

    # ---- What connections call ----

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        if self._closed:
            connection.abort()
        elif len(self._connections) > _MANY:
            limit = self._loop.time() - _IDLE_SECONDS
            idle = [one for one in self._connections if not one.is_read and one.since < limit]
            if idle:
                min(idle, key=lambda one: one.since).abort()

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._held is connection:
            self._held = None
        if self._emptied is not None and not self._emptied.done() and not self._connections:
            self._emptied.set_result(None)

    def requested(self, connection: Connection, request: Request) -> None:
        path, _, query = request.target.partition("?")
        if request.method != "GET":
            page = pages.stray("Only a browser that is sent back from a sign-in is answered here.")
            head_only = request.method == "HEAD"
            connection.answer(HTTPStatus.METHOD_NOT_ALLOWED, page, head_only=head_only, allow="GET")
        elif not self._address.is_host(request.hosts, self._port):
            connection.answer(HTTPStatus.BAD_REQUEST, pages.stray("This host name is none of this computer's own."))
        elif not self._address.is_path(path):
            connection.answer(HTTPStatus.NOT_FOUND, pages.stray("There is no page at this address."))
        else:
            self._came(connection, query)

    def _came(self, connection: Connection, query: str) -> None:
        state = self._state
        found = "other" if state is None else read_redirect(query, state)
        if not isinstance(found, Redirect):
            debug("a request of no sign-in that waits", why=found)
            connection.answer(HTTPStatus.BAD_REQUEST, pages.stray(STRAYS[found]))
        elif self._take(found, state) or self._held is None:
            # Also when the same page is loaded again by a browser that has no page yet.
            self._held = connection
            connection.hold(_HOLD_SECONDS)
        else:
            text = "The browser has been here with this sign-in before. The program says how it ends."
            connection.answer(HTTPStatus.BAD_REQUEST, pages.stray(text))

    # ---- Ends ----

    def _take(self, redirect: Redirect, state: str | None) -> bool:
        """Whether it was taken: it is the first one with the state that is expected now."""
        with self._lock:
            if self._redirect is not None or state != self._state:
                return False
            self._redirect = redirect
        debug("the browser came back", has_code=redirect.code is not None, has_error=redirect.error is not None)
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed meanwhile
            pass
        return True

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._notify is not None:
            self._notify()

    async def _stop_accepting(self) -> None:
        """Lets connections that are being accepted arrive: asyncio loses them when their server closes meanwhile."""
        for listening in [one for server in self._servers for one in server.sockets]:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # loops that accept in another way
                self._loop.remove_reader(listening)
        for _ in range(_ACCEPTING_STEPS):
            await asyncio.sleep(0)

    def _stop_listening(self) -> None:
        self._closed = True
        for server in self._servers:
            server.close()
        self._servers.clear()
        if not self._loop.is_closed():
            self._wake()
