"""Who may do what: the sender of a request, the scope that it needs, and how often it may ask."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from .bodies import is_simple
from .problems import Problem
from .rates import Rate

if TYPE_CHECKING:
    from starlette.requests import Request

    from .tokens import Authenticator, Principal, Scope

__all__ = ["Access"]

_CHALLENGE = 'Bearer realm="gopher-mcp"'


class Access:
    """Lets requests in.

    Args:
        per_minute: requests of one caller in a minute.
        failures_per_minute: requests without a good token from one address in a minute; good ones don't count.
    """

    def __init__(self, authenticator: Authenticator, *, per_minute: int = 1200, failures_per_minute: int = 60) -> None:
        self._authenticator = authenticator
        self._rate, self._failures = Rate(per_minute, 60.0), Rate(failures_per_minute, 60.0)

    async def admit(self, request: Request, scope: Scope | None = "answer") -> Principal:
        """The sender, who has the scope. Raises Problem: 401, 403, 429."""
        principal = await self._known(request)
        if principal is None:
            self._count(self._failures, request.client.host if request.client else "?")
            if is_simple(request):
                raise Problem(
                    403,
                    "a form, or plain text, without a token of this server is refused: send JSON and a token",
                    code="cross_site",
                )
            raise Problem(
                401,
                "send a token of this server (Authorization: Bearer ...); gopher-mcp token add makes one",
                headers={"www-authenticate": _CHALLENGE},
            )
        self._count(self._rate, principal.caller)
        if scope is not None and not _may(principal, scope):
            lacks = f'this token lacks the scope "{scope}"' if scope not in principal.scopes else "this token can call"
            raise Problem(
                403,
                f"{lacks}: answering needs a token of its own (gopher-mcp token add CALLER --scope {scope})",
                code="scope",
                headers={"www-authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
            )
        return principal

    async def is_still_good(self, request: Request) -> bool:
        """Whether the token of a request that goes on for long may still answer."""
        principal = await self._known(request)
        return principal is not None and _may(principal, "answer")

    async def _known(self, request: Request) -> Principal | None:
        headers = request.headers.getlist("authorization")
        if len(headers) != 1:
            return None
        return await run_in_threadpool(self._authenticator.authenticate, headers[0])

    @staticmethod
    def _count(rate: Rate, key: str) -> None:
        wait = rate.wait_for(key)
        if wait:
            seconds = str(math.ceil(wait))
            raise Problem(429, f"too many requests: wait {seconds} s", headers={"retry-after": seconds})


def _may(principal: Principal, scope: Scope) -> bool:
    """Who calls tools can't approve what is called, whatever else the token says."""
    return scope in principal.scopes and (scope != "answer" or "call" not in principal.scopes)
