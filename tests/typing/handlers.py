"""Places where a person is asked, where type checkers know what is taken; checked by `mypy --strict` and never run."""

from __future__ import annotations

from typing_extensions import assert_type

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    HandlerChain,
    McpToolset,
)


def elsewhere(request: GopherAgentElicitationRequest) -> str:
    return "cancel"


def use(request: GopherAgentElicitationRequest) -> None:
    chain = HandlerChain(["notebook", "terminal"], store=elsewhere, open_browser="ask")
    assert_type(chain(request), GopherAgentElicitationResponse)
    GopherAgentElicitationOptions(handler=chain)
    McpToolset("https://mail.example.com/mcp", elicitation_handler=HandlerChain())
