"""The store asked from the event loop: on a thread, and its refusals as those of HTTP."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool

from ..store.errors import ElicitationNotFound, RateLimited, StoreError
from .problems import Problem

__all__ = ["ask"]

P = ParamSpec("P")
T = TypeVar("T")


async def ask(question: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """A call of the store. Raises Problem: 404, 429, 503."""
    try:
        return await run_in_threadpool(question, *arguments, **named)
    except ElicitationNotFound:
        raise Problem(404, "there is no such elicitation") from None
    except RateLimited as limited:
        seconds = str(max(1, math.ceil(limited.retry_after_s)))
        raise Problem(429, f"too many: wait {seconds} s", headers={"retry-after": seconds}) from None
    except StoreError:
        raise Problem(503, "the store can't be reached", headers={"retry-after": "5"}) from None
