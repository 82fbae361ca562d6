"""What puts a server's token on each request, and gets another one when the server refuses it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import httpx2

from ..toolset.connection import is_answer, is_notification
from ..toolset.record import current_record
from .challenge import read_challenge
from .errors import SignInError, Unreachable
from .signin import MOST_TRIES, Attempt

if TYPE_CHECKING:
    from ..toolset.connection import HttpConnection
    from .grants import Grant
    from .signin import ServerSignIn

__all__ = ["BearerAuth", "auth_for"]


def auth_for(connection: HttpConnection, sign_in: ServerSignIn) -> BearerAuth:
    """The sign-in of a connection's server as that connection needs it."""
    return BearerAuth(sign_in, asks_for_streams=connection.transport == "sse")


class BearerAuth(httpx2.Auth):
    """The sign-in of one server as the HTTP client's `auth`.

    A refused request (401, 403 insufficient_scope) has not begun, so it may be made again. Where there is no token to
    be had the refusal is passed on and the reason kept on the record of the call: an exception here would end the whole
    session.

    Args:
        sign_in: of the server that the requests go to.
        asks_for_streams: whether a person may be asked for a GET too, which opens a session only with the older SSE
            transport. A stream that was dropped and is opened anew is nothing to ask a person for.
    """

    def __init__(self, sign_in: ServerSignIn, *, asks_for_streams: bool = False) -> None:
        self._sign_in = sign_in
        self._asks_for_streams = asks_for_streams

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        await request.aread()  # one that follows a redirect is not read yet
        leaving = request.method == "DELETE"  # nobody needs a new token to say goodbye
        attempt = Attempt(interactive=self._may_ask(request))
        grant, failure = None, None
        try:
            grant = await self._sign_in.current(renew=not leaving)
        except SignInError as error:
            failure = error
        for tries in range(MOST_TRIES + 1):
            _put(request, grant)
            response = yield request
            challenge = read_challenge(response)
            if challenge is None or leaving or tries == MOST_TRIES or _failed():
                return
            # It matters only now: a server that wants no token has nothing to do with it.
            if failure is not None and not (isinstance(failure, Unreachable) and attempt.interactive):
                _note(failure, request)
                return
            try:
                rejected = grant.token if grant is not None else None
                grant = await self._sign_in.renewed(rejected, challenge, attempt)
            except SignInError as error:
                _note(error, request)
                return
            if grant is None:
                if is_answer(request):
                    _note(SignInError("The server wants a token for an answer that it had asked for"), request)
                return

    def _may_ask(self, request: httpx2.Request) -> bool:
        """Whether a person may be asked for it. Nobody waits for a notification, which may be of a run that is over."""
        if request.method == "GET":
            return self._asks_for_streams
        return not is_notification(request)


def _put(request: httpx2.Request, grant: Grant | None) -> None:
    if grant is not None and grant.token:
        request.headers["Authorization"] = f"Bearer {grant.token}"
    else:
        request.headers.pop("Authorization", None)


def _note(error: SignInError, request: httpx2.Request) -> None:
    record = current_record()
    if record is None:
        return
    if is_answer(request):  # the server waits for it in vain, and the call for the server
        record.give_up(error)
    else:
        record.failure = error


def _failed() -> bool:
    record = current_record()
    return record is not None and record.failure is not None
