"""Lines that a person types below a notebook's cell.

A kernel's own `input()` can't be given up: once it waits, only the person or an interrupt ends it. Here the same
message (`input_request` of the Jupyter protocol, on the kernel's stdin socket) is sent, and the wait is our own.

What was asked can't be taken back from the frontend, so a later answer to it has to be told from one to what is asked
next: by its parent header, which names the request. Frontends that send none (Jupyter's clients in Python) get a
question again when an earlier one was given up: the first answer may have been meant for that, and counts for nothing.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .notebook_kernel import Cell

__all__ = ["InputLost", "Question"]

_END_OF_INPUT = "\x04"  # what kernels take for it
_given_up: dict[bytes, int] = {}  # by frontend: questions whose answers may still come, without saying whose they are


class InputLost(Exception):
    """The frontend, or the kernel's end of the channel to it, is gone."""


@dataclass(frozen=True)
class _Reply:
    """A message from a frontend. `to`: the id of the message that it answers, as far as it says."""

    frontend: bytes
    to: str
    value: str | None = field(repr=False)


class Question:
    """One line asked for: an `input_request`, and the wait for its answer. For one thread at a time."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._socket = cell.kernel.stdin_socket
        self._frontend = b"".join(cell.frontend)
        self._request: str | None = None  # its message's id, while it is open

    @property
    def is_open(self) -> bool:
        return self._request is not None

    def put(self, prompt: str, *, secret: bool) -> None:
        """Sends it to the frontend. Raises InputLost when that is not there."""
        import zmq

        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # none, or a broken one
                stream.flush()
        content = {"prompt": prompt, "password": secret}
        try:
            while (old := self._receive()) is not None:
                self._came_late(old)
            self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # else what can't be delivered is dropped in silence
            try:
                sent = self._cell.send(self._socket, "input_request", content)
            finally:
                self._socket.setsockopt(zmq.ROUTER_MANDATORY, 0)
        except zmq.ZMQError as error:
            raise InputLost from error
        self._request = sent["header"]["msg_id"]

    def wait(self, seconds: float, wakes: int | None) -> str | None:
        """The answer, or None when none came in that time or `wakes` became readable. Raises EOFError when the person
        ended the input, InputLost. It is closed afterwards, without an answer, when what came may have been meant for
        an earlier question."""
        import zmq

        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        if wakes is not None:
            poller.register(wakes, zmq.POLLIN)
        try:
            poller.poll(round(seconds * 1000))
            reply = self._receive()
        except zmq.ZMQError as error:
            raise InputLost from error
        return None if reply is None else self._answer(reply)

    def give_up(self) -> None:
        """Nobody waits for the answer any more. Idempotent."""
        if self._request is not None:
            self._request = None
            _given_up[self._frontend] = _given_up.get(self._frontend, 0) + 1

    def _answer(self, reply: _Reply) -> str | None:
        if reply.value is None or reply.frontend != self._frontend:
            return None
        if reply.to and reply.to not in (self._request, self._cell.identity):
            return None  # to a question that was given up, or to one of the program's own
        if reply.to != self._request and self._came_late(reply):
            self._request = None
            return None
        self._request = None
        if reply.value == _END_OF_INPUT:
            raise EOFError
        return reply.value

    def _came_late(self, reply: _Reply) -> bool:
        """Whether it may be an answer to a question that was given up; then that one has been answered now."""
        waiting = _given_up.get(reply.frontend, 0)
        if reply.value is not None and waiting:
            _given_up[reply.frontend] = waiting - 1
        return bool(waiting)

    def _receive(self) -> _Reply | None:
        """What has come, whatever it is; None when nothing has."""
        import zmq

        try:
            frontend, message = self._cell.kernel.session.recv(self._socket)
        except zmq.ZMQError:
            raise
        except Exception:  # not signed with the kernel's key, or no message of the protocol
            return _Reply(b"", "", None)
        if message is None:
            return None
        value: Any = message.get("content", {}).get("value") if message.get("msg_type") == "input_reply" else None
        to = str(message.get("parent_header", {}).get("msg_id", ""))
        return _Reply(b"".join(frontend), to, value if isinstance(value, str) else None)
