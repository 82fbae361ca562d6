"""What is called on a server: a tool, a prompt, a resource. All three may ask, be refused and be made again alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_core import to_jsonable_python

from ..redaction import redact_url
from .errors import UnsendableError

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

__all__ = ["GetPrompt", "Progress", "ReadResource", "ServerRequest", "ToolCall"]

_SURROGATE = "half of a surrogate pair, which has no UTF-8 form"
Progress = Callable[[float, "float | None", "str | None"], Any]


def refuse_unsendable(what: str, value: Any) -> None:
    """What a transport can't write ends its session, and with it every other call; so it is looked at before.

    Raises UnsendableError, without the value.
    """
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False, default=to_jsonable_python).encode()
    except UnicodeEncodeError:
        raise UnsendableError(f"{what} can't be sent: there is {_SURROGATE}") from None
    except (ValueError, TypeError, RecursionError):
        raise UnsendableError(
            f"{what} can't be sent: JSON has texts, numbers except NaN and infinity, true, false, null, lists, and "
            "mappings with texts as keys"
        ) from None


class ServerRequest(Protocol):
    """One request to a server.

    Attributes:
        what: what is called, for messages.
        tool: the tool's name; None for everything else.
    """

    @property
    def what(self) -> str: ...

    @property
    def tool(self) -> str | None: ...

    async def send(self, client: ClientSession, **rounds: Any) -> Any:
        """Sends it; `rounds` is what the SDK takes for another round of questions."""


class ToolCall:
    """`tools/call`."""

    def __init__(self, name: str, arguments: Mapping[str, Any], on_progress: Any = None, meta: Any = None) -> None:
        self.what = self.tool = name
        self._arguments = dict(arguments)
        refuse_unsendable(f"the arguments of {name!r:.60}", self._arguments)
        refuse_unsendable(f"the _meta of a call of {name!r:.60}", meta)
        self._on_progress = on_progress
        self._meta = meta

    async def send(self, client: ClientSession, **rounds: Any) -> Any:
        return await client.call_tool(
            self.tool, self._arguments, progress_callback=self._on_progress, meta=self._meta, **rounds
        )


class GetPrompt:
    """`prompts/get`."""

    tool = None

    def __init__(self, name: str, arguments: Mapping[str, str]) -> None:
        self.what = f"the prompt {name}"
        self._name = name
        self._arguments = dict(arguments)
        refuse_unsendable(f"the arguments of the prompt {name!r:.60}", self._arguments)

    async def send(self, client: ClientSession, **rounds: Any) -> Any:
        return await client.get_prompt(self._name, self._arguments, **rounds)


class ReadResource:
    """`resources/read`."""

    tool = None

    def __init__(self, uri: str) -> None:
        refuse_unsendable("the resource's URI", uri)
        self.what = f"the resource {redact_url(uri)}"
        self._uri = uri

    async def send(self, client: ClientSession, **rounds: Any) -> Any:
        return await client.read_resource(self._uri, **rounds)
