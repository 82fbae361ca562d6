"""The `elicitation_callback` of the MCP SDK's client, which most frameworks take as it is.

    callback = elicitation_callback(ask_my_user, server="mail.example.com")

    Client(url, elicitation_callback=callback, message_handler=callback.on_message)        # mcp 2.x
    ClientSession(read, write, elicitation_callback=callback)                              # mcp 1.x and 2.x
    McpToolset(connection_params=..., elicitation_callback=callback)                       # Google ADK
    MultiServerMCPClient(..., callbacks=Callbacks(on_elicitation=callback))                # langchain-mcp-adapters

The same rules as everywhere in this package; the SDK does the sending.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, Literal, Union
from weakref import WeakKeyDictionary

from ..elicitation import GopherAgentElicitationOptions
from ..redaction import log_failure
from ..toolset.elicitation import (
    NO_ID_SINCE,
    HandlerInterrupted,
    InvalidElicitation,
    Occasion,
    Prompt,
    key_of,
    read_request,
    wire_answer,
)
from ..toolset.errors import INTERNAL_ERROR, INVALID_PARAMS
from ..toolset.handling import Handler, HandlerAsker, asker_for
from .sdk_types import completed_id, protocol_version, types_of, wire_params

__all__ = ["CallbackInput", "ElicitationCallback", "RefusedElicitation", "elicitation_callback"]

CallbackInput = Union[GopherAgentElicitationOptions, Mapping[str, Any], Handler, Literal["cancel", "decline"], None]
MAX_REMEMBERED = 1000  # pages of one session
_Key = tuple[Any, ...]
_log = logging.getLogger("gopher_mcp_python.elicitation")


def elicitation_callback(
    options: CallbackInput = None,
    *,
    complete: Callable[[str], Any] | None = None,
    server: str | None = None,
    modes: Any = None,
    timeout_ms: float | None = None,
    person: Hashable = None,
) -> ElicitationCallback:
    """The callback `async (context, params) -> ElicitResult | ErrorData` that MCP clients take.

    Args:
        options: who answers: None, the prompt on the terminal; elicitation options or a mapping of them; a sync or
            async function that takes a GopherAgentElicitationRequest; "cancel" or "decline".
        complete: a sync or async function that is told the id of each page that was asked for here and that the server
            calls complete. The framework has to pass its messages to the callback's `on_message`.
        server: the server's name for people and policies. A server's own word for itself is not used.
        modes: "url", "form" or both, in place of what the options say. The SDK declares both to servers whatever is
            given here; the other one is answered with error -32602.
        timeout_ms: limit for one answer, in milliseconds, in place of what the options say; then it is "cancel".
        person: who is asked, any hashable: one prompt at a time for each person, also over several callbacks. None: one
            person for this callback.

    Raises:
        ValueError: options of the wrong kind, or with `enabled` False: give the framework no callback then.
    """
    given = GopherAgentElicitationOptions() if options is None else options
    asker = asker_for(given, complete, modes=modes, timeout_ms=timeout_ms, person=person)
    if asker is None:
        raise ValueError(
            "elicitation is switched off in these options (enabled is False), so there is nothing to call back: leave "
            "the framework's own elicitation argument out"
        )
    return ElicitationCallback(asker, server)


class RefusedElicitation(Exception):
    """What is answered with a JSON-RPC error. The text is for the server.

    Attributes:
        code: the JSON-RPC error code.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ElicitationCallback:
    """Made by `elicitation_callback`. Takes any number of sessions, at the same time and on several event loops."""

    def __init__(self, asker: HandlerAsker, server: str | None) -> None:
        self._asker = asker
        self._server = server
        self._lock = threading.Lock()  # sessions may live on several loops
        self._sessions: WeakKeyDictionary[Any, _Asked] = WeakKeyDictionary()

    async def __call__(self, context: Any, params: Any, call: Any = None) -> Any:
        """Answers one request in the types of the SDK that asks.

        Args:
            context, params: as the SDK gives them.
            call: what knows the call that is under way, by `server_name` and `tool_name` (langchain-mcp-adapters gives
                its CallbackContext here).
        """
        types = types_of(params)
        try:
            answer = await self.answer(context, params, call)
        except RefusedElicitation as refused:
            return types.ErrorData(code=refused.code, message=str(refused))
        return types.ElicitResult.model_validate(answer)

    async def answer(self, context: Any, params: Any, call: Any = None) -> dict[str, Any]:
        """Answers one request as it goes over the wire. Raises RefusedElicitation."""
        version, request_id, came = protocol_version(context), getattr(context, "request_id", None), wire_params(params)
        try:
            request = read_request(
                came,
                modes=self._asker.modes,
                version=version,
                request_id=request_id,
                raw={"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": came},
                server=self._server or getattr(call, "server_name", None) or None,
                tool=getattr(call, "tool_name", None),
            )
        except InvalidElicitation as error:
            raise RefusedElicitation(INVALID_PARAMS, str(error)) from None
        # The SDK makes the call again by itself after the answers of a round.
        asked = self._asked_in(getattr(context, "session", None))
        occasion = Occasion(held=version >= NO_ID_SINCE, source=asked)
        prompt = asked.prompt(key_of(request), lambda: Prompt(request, self._asker, occasion=occasion))
        action = None
        try:
            answer = await prompt.answer()
            action = answer.action
            return wire_answer(request, answer)
        except HandlerInterrupted as stop:
            raise stop.interrupt from None
        except Exception as error:
            log_failure(_log, "The elicitation handler failed", error)
            raise RefusedElicitation(INTERNAL_ERROR, "the client's elicitation handler failed") from None
        finally:
            asked.answered(key_of(request), action)

    async def on_message(self, message: Any) -> None:
        """What a session's `message_handler` is told: a page that was asked for here, was not refused and is now called
        complete ends its prompt, and is told to the completion handler. All else is ignored.

        The SDK does not say on which session a message came. Where several have asked under one id, no notice counts;
        servers that must not speak for each other get a callback each, with the same `person`.
        """
        elicitation_id = completed_id(message)
        # Not `values`: before Python 3.14 they can't be looked through while another thread drops a session.
        sessions = [reference() for reference in self._sessions.keyrefs()]
        found = [self._sessions.get(session) for session in sessions if session is not None]
        known = [asked for asked in found if asked is not None and elicitation_id in asked.to_complete]
        if elicitation_id is not None and len(known) == 1:
            known[0].to_complete.discard(elicitation_id)
            self._asker.completed(elicitation_id, known[0])

    def _asked_in(self, session: Any) -> _Asked:
        with self._lock:
            known = self._sessions.get(session) if session is not None else None
            if known is None:
                known = _Asked()
                with suppress(TypeError):  # a stand-in without weak references: nothing is remembered
                    self._sessions[session] = known
        return known

    def __copy__(self) -> ElicitationCallback:
        return self

    def __deepcopy__(self, memo: Any) -> ElicitationCallback:
        """Frameworks copy their agents; whoever is asked stays the same."""
        return self

    def __repr__(self) -> str:
        return f"<elicitation callback for {'a server' if self._server is None else repr(self._server)}>"


class _Asked:
    """The pages that one session has asked for, by id. A repetition gets the answer of the first while that is asked
    and once it is accepted; what was refused may be asked again, as the SDK does not say in which call.

    Attributes:
        to_complete: ids of those that a completion notice may come for.
    """

    def __init__(self) -> None:
        self._prompts: OrderedDict[_Key, Prompt] = OrderedDict()  # open or accepted
        self.to_complete: set[str] = set()

    def prompt(self, key: _Key, begin: Callable[[], Prompt]) -> Prompt:
        known = self._prompts.get(key)
        if known is None:
            known = begin()
            if key[0] is not None:
                self._prompts[key] = known
                self.to_complete.add(key[0])
                self._forget_old()
        return known

    def answered(self, key: _Key, action: str | None) -> None:
        """`action`: None where there is no answer."""
        if action != "accept" and self._prompts.pop(key, None) is not None:
            self.to_complete.discard(key[0])

    def _forget_old(self) -> None:
        while len(self._prompts) > MAX_REMEMBERED:
            key, _ = self._prompts.popitem(last=False)
            self.to_complete.discard(key[0])
