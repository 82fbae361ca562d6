"""What a server asks of its user: read strictly, asked once, withdrawn when nobody waits for the answer any more."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Protocol

from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from .canonical import canonical_json
from .clock import PausableClock

# Versions before this one require `elicitationId` in URL mode; this one has none.
NO_ID_SINCE = "2026-07-28"


@dataclass(frozen=True)
class Occasion:
    """What is known of a question beside its own words.

    Attributes:
        held: the call is made again after the answer, so an accepted page is to be finished before (DESIGN: an answer
            of accept is held until the person says "finished" or the server says complete).
        outside_call: it came on the session's own stream and belongs to no call.
        person: who is asked, where the caller said so.
        source: the session that it came on; only that one's completion notices are about it.
    """

    held: bool = False
    outside_call: bool = False
    person: Hashable = None
    source: object = None


IN_A_CALL = Occasion()


class Asker(Protocol):
    """Who answers: the embedded engine, or a program of the caller's own.

    Attributes:
        modes: what is declared to servers, a subset of {"url", "form"}; another mode is answered with -32602.
    """

    modes: frozenset[str]

    async def ask(
        self, request: GopherAgentElicitationRequest, occasion: Occasion = IN_A_CALL
    ) -> GopherAgentElicitationResponse:
        """Answers one request. Cancelled when the request is withdrawn."""

    def completed(self, elicitation_id: str, source: object = None) -> None:
        """The server says that the page of this one, which was asked and not refused, was completed.

        Args:
            source: as of the occasion on which it was asked.
        """


class InvalidElicitation(ValueError):
    """The request breaks the protocol or names a mode that was not declared. The text is for the server."""


def read_request(
    params: Any, *, modes: frozenset[str], version: str, request_id: Any, raw: Any, server: str | None, tool: str | None
) -> GopherAgentElicitationRequest:
    """Turns the parameters of `elicitation/create` into a request.

    Raises InvalidElicitation.
    """
    if not isinstance(params, Mapping):
        raise InvalidElicitation("elicitation parameters are not an object")
    mode = params.get("mode", "form")  # the protocol's default
    if mode not in ("url", "form") or mode not in modes:
        raise InvalidElicitation(f"elicitation mode {_name(mode)} was not declared by this client")
    message = params.get("message")
    if not isinstance(message, str):
        raise InvalidElicitation("elicitation without a message")
    url = schema = None
    elicitation_id = params.get("elicitationId")
    if mode == "url":
        url = params.get("url")
        _check_url(url, elicitation_id, version)
    else:
        schema = params.get("requestedSchema")
        _check_form(schema)
    return GopherAgentElicitationRequest(
        mode,
        elicitation_id if isinstance(elicitation_id, str) else None,
        message,
        url,
        canonical_json(request_id),
        canonical_json(raw),
        canonical_json(params),
        server=server,
        tool=tool,
        requested_schema=schema,
    )


def _check_form(schema: Any) -> None:
    if not isinstance(schema, Mapping):
        raise InvalidElicitation("form elicitation without a requestedSchema object")
    from ..forms import FormSchemaError, read_form

    try:
        read_form(schema)
    except FormSchemaError as error:
        raise InvalidElicitation(f"requestedSchema can't be used: {error}") from None


def _check_url(url: Any, elicitation_id: Any, version: str) -> None:
    if not isinstance(url, str) or not url.strip():
        raise InvalidElicitation("URL elicitation without a url")
    if elicitation_id is not None and not isinstance(elicitation_id, str):
        raise InvalidElicitation("elicitationId is not a string")
    if version < NO_ID_SINCE and not (elicitation_id or "").strip():
        raise InvalidElicitation(f"URL elicitation without an elicitationId (required at {version})")


def _name(mode: Any) -> str:
    return repr(mode[:40]) if isinstance(mode, str) else f"of type {type(mode).__name__}"


def wire_answer(request: GopherAgentElicitationRequest, answer: GopherAgentElicitationResponse) -> dict[str, Any]:
    """The answer as it goes to the server: content only for an accepted form, validated, without nulls.

    Raises forms.FormContentError (a ValueError) for content that the form does not allow.
    """
    result: dict[str, Any] = {"action": answer.action}
    if answer.action == "accept" and request.mode == "form":
        from ..forms import read_form

        result["content"] = read_form(request.requested_schema or {}).validate(answer.content or {})
    return result


def key_of(request: GopherAgentElicitationRequest) -> tuple[str | None, str | None, str]:
    """What makes two requests one and the same. Without an id (2026-07-28) and for forms, whose ids mean nothing, it is
    the request itself."""
    if request.elicitation_id and request.mode == "url":
        return request.elicitation_id, request.url, request.mode
    return None, request.raw_json, request.mode


class HandlerInterrupted(Exception):
    """A handler raised KeyboardInterrupt or SystemExit, which go to the program once the server has its "cancel".

    Attributes:
        interrupt: what it raised.
    """

    def __init__(self, interrupt: BaseException) -> None:
        super().__init__(type(interrupt).__name__)
        self.interrupt = interrupt


class Prompt:
    """One question to a person. Whoever needs the answer waits in `answer`; the question is asked once.

    Clocks stand still from the beginning to the end of the question. `context` is the one of whoever made the call, for
    the handler to see.
    """

    def __init__(
        self,
        request: GopherAgentElicitationRequest,
        asker: Asker,
        clocks: Iterable[PausableClock] = (),
        occasion: Occasion = IN_A_CALL,
        context: Context | None = None,
    ) -> None:
        self.request = request
        self._clocks = tuple(clocks)
        self._waiting = 0
        for clock in self._clocks:
            clock.pause()
        self._task = (copy_context() if context is None else context).run(_begin, asker, request, occasion)
        self._task.add_done_callback(self._ended)

    @property
    def open(self) -> bool:
        return not self._task.done()

    def withdraw(self) -> None:
        """Nobody waits for the answer any more: the handler is cancelled, waiters get "cancel"."""
        self._task.cancel()

    async def answer(self) -> GopherAgentElicitationResponse:
        """The answer, or "cancel" after a withdrawal. Raises what the handler raised."""
        self._waiting += 1
        try:
            await asyncio.wait((self._task,))
        except asyncio.CancelledError:
            if self._waiting == 1:  # the server took its request back
                self._task.cancel()
            raise
        finally:
            self._waiting -= 1
        if self._task.cancelled():
            return GopherAgentElicitationResponse("cancel")
        return self._task.result()

    def _ended(self, task: asyncio.Future[Any]) -> None:
        for clock in self._clocks:
            clock.resume()
        if not task.cancelled():
            task.exception()  # seen here; waiters get it too


def _begin(
    asker: Asker, request: GopherAgentElicitationRequest, occasion: Occasion
) -> asyncio.Future[GopherAgentElicitationResponse]:
    return asyncio.ensure_future(asker.ask(request, occasion))
