"""The policy where type checkers know what is taken; checked by `mypy --strict` and never run."""

from __future__ import annotations

from typing_extensions import assert_type

from gopher_mcp_python import (
    ElicitationPolicy,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    McpToolset,
    elicitation_callback,
)
from gopher_mcp_python.policy import PolicyDecision, PolicyRule, PolicyStoreError, Remembered, RememberedResponse


def rule(request: GopherAgentElicitationRequest) -> PolicyRule | None:
    return PolicyRule("allow", host="accounts.example.com") if request.server == "mail" else None


async def later(request: GopherAgentElicitationRequest) -> RememberedResponse:
    return RememberedResponse("decline", lasts="always", whole_server=True)


def use(request: GopherAgentElicitationRequest) -> None:
    policy = ElicitationPolicy(
        [rule, PolicyRule("allow", answers={"name": "Ada"}), {"decision": "ask"}],
        default="decline",
        servers={"mail": "https://mail.example.com/mcp"},
        store=True,
        max_waiting=None,
        rate=(10, 60),
    )
    GopherAgentElicitationOptions(handler=policy.around())
    McpToolset("https://mail.example.com/mcp", elicitation_handler=policy.around(later))
    elicitation_callback(policy.around("cancel", name="mail", server=["run"]))
    assert_type(policy.explain(request), PolicyDecision)
    assert_type(policy.explain(request).action, str | None)
    try:
        policy.remember(request, "block", lasts="always")
        assert_type(policy.remembered(), list[Remembered])
        assert_type(policy.forget("mail"), int)
    except PolicyStoreError:
        pass
