"""The callback where type checkers know what is taken; checked by `mypy --strict` and never run."""

from __future__ import annotations

from mcp import Client, ClientSession
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from typing_extensions import assert_type

from gopher_mcp_python import GopherAgentElicitationOptions, GopherAgentElicitationRequest, elicitation_callback
from gopher_mcp_python.integrations.callback import ElicitationCallback
from gopher_mcp_python.integrations.fastmcp import FastMcpElicitationHandler, fastmcp_elicitation_handler


async def ask(request: GopherAgentElicitationRequest) -> str:
    return "accept"


def use(session: ClientSession) -> None:
    callback = assert_type(elicitation_callback(), ElicitationCallback)
    taken: ElicitationFnT = callback
    messages: MessageHandlerFnT = callback.on_message
    Client("https://mcp.example.com/mcp", elicitation_callback=taken, message_handler=messages)
    elicitation_callback(ask, complete=print, server="mail", modes="url", timeout_ms=1000, person=("tenant", 7))
    elicitation_callback({"open_browser": False})
    elicitation_callback(GopherAgentElicitationOptions("decline"))
    elicitation_callback("cancel")
    elicitation_callback("accept")  # type: ignore[arg-type]
    assert_type(fastmcp_elicitation_handler(ask), FastMcpElicitationHandler)
