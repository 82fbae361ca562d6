"""A handler with a policy in front of it: sync stays sync, async stays async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Protocol

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse, is_async_handler
from .asked import Asked
from .decisions import Lasting, RememberedResponse

__all__ = ["Door", "Guard", "guarded"]


class Door(Protocol):
    """The policy as a guard sees it."""

    reads_files: bool

    def asked(self, request: GopherAgentElicitationRequest) -> Asked: ...

    def admit(self, asked: Asked) -> GopherAgentElicitationResponse | None: ...

    def keep(self, asked: Asked, result: object) -> None: ...

    def refuses(self, asked: Asked) -> bool: ...

    def lasting(self, asked: Asked) -> tuple[Lasting, ...]: ...

    def over(self, asked: Asked) -> None: ...


def guarded(door: Door, handler: Any) -> Callable[..., Any]:
    """`handler` behind the door. Raises ValueError when it is none."""
    inner = _handler_of(handler)
    made = _async_guard(door, inner) if is_async_handler(inner) else _guard(door, inner)
    made.gopher_guard = Guard(door, None if handler is None else inner)  # type: ignore[attr-defined]
    return made


class Guard:
    """Door and handler apart, for who keeps people in a line: what waits there has passed the door already.

    Attributes:
        inner: the handler; None: the default one.
    """

    def __init__(self, door: Door, inner: Callable[..., Any] | None) -> None:
        self._door = door
        self.inner = inner

    async def ask(
        self,
        request: GopherAgentElicitationRequest,
        further: Callable[[], Awaitable[GopherAgentElicitationResponse]],
    ) -> GopherAgentElicitationResponse:
        """The policy's answer, or that of `further`, which lines up and asks the handler."""
        asked = self._door.asked(request)
        answer = await _admitted(self._door, asked)
        if answer is not None:
            return answer
        try:
            return await further()
        finally:
            self._door.over(asked)

    def ask_here(
        self, request: GopherAgentElicitationRequest, further: Callable[[], GopherAgentElicitationResponse]
    ) -> GopherAgentElicitationResponse:
        """The policy's answer, or that of `further`, which asks the handler: for a thread that may wait."""
        asked = self._door.asked(request)
        answer = self._door.admit(asked)
        if answer is not None:
            return answer
        try:
            result = further()
            self._door.keep(asked, result)
            return result
        finally:
            self._door.over(asked)

    def refuses(self, request: GopherAgentElicitationRequest) -> bool:
        """Whether it would be declined now, whatever was said when it came."""
        return self._door.refuses(self._door.asked(request))

    def lasting(self, request: GopherAgentElicitationRequest) -> tuple[Lasting, ...]:
        """How long a refusal of everything of this server can hold."""
        return self._door.lasting(self._door.asked(request))

    async def keep(self, request: GopherAgentElicitationRequest, result: object) -> None:
        """Remembers what the handler's result says is to be remembered."""
        await _kept(self._door, self._door.asked(request), result)


def _handler_of(handler: Any) -> Callable[..., Any]:
    if handler is None:
        return _default
    if isinstance(handler, str) and handler in ("cancel", "decline"):
        return lambda request: handler
    if not callable(handler):
        raise ValueError('the handler of a policy must be a function, "cancel", "decline", or None for the usual ways')
    return handler  # type: ignore[no-any-return]


def _default(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    from ..handlers.chain import HandlerChain

    return HandlerChain()(request)


def _guard(door: Door, inner: Callable[..., Any]) -> Callable[..., Any]:
    def policy_handler(request: GopherAgentElicitationRequest) -> Any:
        asked = door.asked(request)
        answer = door.admit(asked)
        if answer is not None:
            return answer
        later = False
        try:
            result = inner(request)
            later = hasattr(type(result), "__await__")  # an async function that does not look like one
            if later:
                return _Later(door, asked, result)
            door.keep(asked, result)
            return result
        finally:
            if not later:
                door.over(asked)

    return policy_handler


def _async_guard(door: Door, inner: Callable[..., Any]) -> Callable[..., Any]:
    async def policy_handler(request: GopherAgentElicitationRequest) -> Any:
        asked = door.asked(request)
        answer = await _admitted(door, asked)
        if answer is not None:
            return answer
        try:
            result = await inner(request)
            await _kept(door, asked, result)
            return result
        finally:
            door.over(asked)

    return policy_handler


async def _admitted(door: Door, asked: Asked) -> GopherAgentElicitationResponse | None:
    if not door.reads_files:
        return door.admit(asked)
    from ..awaiting import on_a_thread

    def undo(answer: GopherAgentElicitationResponse | None) -> None:
        if answer is None:
            door.over(asked)

    return await on_a_thread(lambda: door.admit(asked), discard=undo)


async def _kept(door: Door, asked: Asked, result: object) -> None:
    if not door.reads_files or not isinstance(result, RememberedResponse):
        return door.keep(asked, result)
    from ..awaiting import on_a_thread

    await on_a_thread(lambda: door.keep(asked, result))


class _Later:
    """An answer that is to be awaited. The prompt is over when it came, or when nobody wants it any more."""

    def __init__(self, door: Door, asked: Asked, result: Any) -> None:
        self._door = door
        self._asked = asked
        self._result = result
        self._is_open = True

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            result = yield from self._result.__await__()
            self._door.keep(self._asked, result)
            return result
        finally:
            self._over()

    def close(self) -> None:
        from ..answers import dispose_awaitable

        dispose_awaitable(self._result)
        self._over()

    def _over(self) -> None:
        if self._is_open:
            self._is_open = False
            self._door.over(self._asked)

    def __del__(self) -> None:
        with suppress(Exception):
            self._over()
