"""`tools/call`: judged on every call by the server's tools as they are now, held where it may destroy something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from ..store.errors import RateLimited, StoreError
from ..toolset.errors import INVALID_PARAMS, URL_ELICITATION_REQUIRED
from .approvals import Approvals
from .held import (
    META_KEY,
    HeldCall,
    Pending,
    Unsuitable,
    held,
    refused,
    told,
    unavailable,
    unsuitable,
)
from .inbound import Inbound
from .link import Link, Lost, NotBegun
from .rounds import input_required
from .rules import Rules, Verdict

__all__ = ["ToolCalls"]


class ToolCalls:
    """The calls of a gateway.

    Args:
        rules: what is held.
        approvals: where confirmations are.
        ask_clients: whether a client that can show a form is asked at once; else all answers come from elsewhere.
        confirm_at: the page where people confirm what is held, for the callers; "": none is named.
    """

    def __init__(self, rules: Rules, approvals: Approvals, *, ask_clients: bool = True, confirm_at: str = "") -> None:
        self._rules = rules
        self._approvals = approvals
        self._ask_clients = ask_clients
        self._confirm_at = confirm_at

    async def call(self, inbound: Inbound) -> dict[str, Any]:
        """Raises MCPError: the server's own, or that there is no such tool."""
        shown, arguments = str(inbound.params["name"]), inbound.params.get("arguments") or {}
        found = inbound.front.upstreams.find(shown)
        if found is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {shown}")
        upstream, tool = found
        if (going_on := await inbound.next_round()) is not None:
            return going_on
        link = inbound.front.link(upstream)
        inbound.passage.tool = tool
        verdict, listed = await self._judge(link, tool, arguments)
        call = HeldCall(
            inbound.client.caller, upstream.name, tool, shown, arguments, plain="outputSchema" not in (listed or {})
        )
        if verdict == "deny":
            return self._result(inbound, told(call, "denied", f"The gateway's rules deny {shown}. It was not run."))
        if listed is not None or verdict == "hold":
            inbound.mirror(listed or {})
        if verdict == "allow":
            params = inbound.onward(name=tool)
            return await inbound.deliver(link, lambda: inbound.passed(link, params))
        try:
            return await self._held(inbound, link, call)
        except (StoreError, RateLimited) as error:
            return self._result(inbound, unavailable(call, error))
        except Unsuitable:
            return self._result(inbound, unsuitable(call))

    async def _judge(
        self, link: Link, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[Verdict, Mapping[str, Any] | None]:
        """What is to be done, and the tool as the server lists it, where that was needed."""
        server = link.upstream.name
        if not self._rules.needs_tools(server, tool, arguments):
            verdict = self._rules.judge(server, tool, arguments, {})
            if verdict != "hold":
                return verdict, None
        tools = await link.tools_now()
        if tool not in tools and self._rules.needs_tools(server, tool, arguments):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {tool}")
        return self._rules.judge(server, tool, arguments, tools), tools.get(tool)

    @staticmethod
    def _result(inbound: Inbound, result: dict[str, Any]) -> dict[str, Any]:
        return {**result, "resultType": "complete"} if inbound.client.modern else result

    # ---- held ------------------------------------------------------------------------------------------------------

    async def _held(self, inbound: Inbound, link: Link, call: HeldCall) -> dict[str, Any]:
        state = inbound.state or {}
        if "approval" in state:
            if not self._approvals.goes_on(state["approval"], state["round_token"]):
                return self._result(inbound, refused(call, "unknown"))
            return await self._confirmed(inbound, link, call, state["approval"], resumed=True)
        if "confirm" in state:
            responses = inbound.params.get("inputResponses")
            answer = responses.get(META_KEY) if isinstance(responses, Mapping) else None
            if not await self._recorded(call, state["confirm"], answer):
                return self._result(inbound, refused(call, "declined"))
            return await self._confirmed(inbound, link, call, state["confirm"])
        found, what = await self._approvals.find_or_ask(call)
        if found in ("approved", "unspent"):
            return await self._confirmed(inbound, link, call, what)
        if found == "declined":
            return self._result(inbound, refused(call, found))
        if found == "unknown" or not self._ask_clients or not inbound.client.takes_forms:
            return self._result(inbound, held(call, what, self._confirm_at))
        return await self._asked(inbound, link, call, what)

    async def _asked(self, inbound: Inbound, link: Link, call: HeldCall, pending: Pending) -> dict[str, Any]:
        """Asks the client's person at once."""
        params: dict[str, Any] = {
            "mode": "form",
            "message": call.question(pending.before),
            "requestedSchema": {"type": "object", "properties": {}},
            "_meta": {META_KEY: {"id": pending.id, "tool": call.tool, "server": call.server}},
        }
        if inbound.client.modern:
            question = {META_KEY: {"method": "elicitation/create", "params": params}}
            return input_required(question, inbound.states.seal({"confirm": pending.id}, inbound.whose))
        try:
            answer = await inbound.channel.request("elicitation/create", params)
        except MCPError:  # it could not ask; somebody else may be
            return held(call, pending, self._confirm_at)
        if not await self._recorded(call, pending.id, answer):
            return refused(call, "declined")
        return await self._confirmed(inbound, link, call, pending.id)

    async def _recorded(self, call: HeldCall, id: str, answer: Any) -> bool:
        """Stores what the client's person answered; only "accept" is a yes."""
        action = answer.get("action") if isinstance(answer, Mapping) else None
        if action == "accept":
            await self._approvals.answer(call, id, True, "client")
        elif action == "decline":
            await self._approvals.answer(call, id, False, "client")
        else:
            await self._approvals.withdraw(call, id, "client")
        return action == "accept"

    async def _confirmed(
        self, inbound: Inbound, link: Link, call: HeldCall, id: str, *, resumed: bool = False
    ) -> dict[str, Any]:
        """Runs a call by its approval, which is used up before the server hears of the call."""
        await link.session()  # a server that can't be reached costs no approval

        async def work() -> dict[str, Any]:
            params = inbound.onward(name=call.tool)
            if not resumed:  # what was confirmed begins here: answers to questions that nobody asked are none
                params = {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")}
            return await self._run(inbound, link, call, id, params)

        async def all_of_it() -> dict[str, Any]:
            state, result = await self._approvals.run(call, id, work, resumed=resumed)
            return result if result is not None else self._result(inbound, refused(call, state))

        return await inbound.deliver(link, all_of_it)

    async def _run(
        self, inbound: Inbound, link: Link, call: HeldCall, id: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        try:
            result = await inbound.forward(link, params)
        except Lost:
            return self._result(inbound, refused(call, "unknown"))
        except MCPError as error:
            if isinstance(error, NotBegun) or error.error.code == URL_ELICITATION_REQUIRED:
                self._approvals.keep(id)
            else:
                await self._approvals.complete(call, id)
            raise
        if result.get("resultType") == "input_required":
            state = {"approval": id, "round_token": self._approvals.park(id), "inner": result.get("requestState")}
            return {**result, "requestState": inbound.states.seal(state, inbound.whose)}
        await self._approvals.complete(call, id)
        return result
