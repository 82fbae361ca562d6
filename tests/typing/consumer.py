"""A program of somebody else's against the installed wheel; checked by `mypy --strict` and never run.

Without the package's py.typed every name here would be Any, and without the .pyi of the bridge its module unknown.
"""

from __future__ import annotations

from typing_extensions import assert_type

from gopher_mcp_python import GopherAgent, GopherAgentElicitationRequest
from gopher_mcp_python.ffi import _bridge


def handler(request: GopherAgentElicitationRequest) -> str:
    assert_type(request.url, str | None)
    return "accept" if request.url is not None and request.url.startswith("https:") else "cancel"


def ask(url: str, query: str) -> str:
    with GopherAgent.create_with_url("DirectProvider", "direct", url, {"elicitation": {"handler": handler}}) as agent:
        assert_type(agent, GopherAgent)
        return assert_type(agent.run(query), str)


def about_the_bridge() -> dict[str, int]:
    assert_type(_bridge.gate_is_open(), bool)
    _bridge.decode_request("no address")  # type: ignore[arg-type]
    return assert_type(_bridge.struct_sizes(), dict[str, int])
