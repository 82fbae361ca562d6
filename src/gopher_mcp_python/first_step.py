"""First-step OAuth: signing in to the MCP server itself, before any tool runs. Separate from elicitation in every way.

Each factory calls `resolve` between normalising its options and creating the engine's agent. It returns options that
may carry a token and always the same elicitation.
"""

from __future__ import annotations

from collections.abc import Callable

from .engines.base import Factory
from .runtime_options import GopherAgentCreateOptions

__all__ = ["Resolver", "is_skipped", "resolve", "resolver"]

#: Takes the factory, its target (a URL or a server configuration) and the options; returns an access token or None.
Resolver = Callable[[Factory, str, GopherAgentCreateOptions], "str | None"]

#: Who signs in. None: nobody does, and a protected server answers 401.
resolver: Resolver | None = None


def is_skipped(options: GopherAgentCreateOptions) -> bool:
    """Whether the sign-in is left out: it was disabled, or the caller brings an Authorization of their own."""
    return (options.oauth is not None and options.oauth.mode == "disabled") or options.has_authorization


def resolve(factory: Factory, target: str, options: GopherAgentCreateOptions) -> GopherAgentCreateOptions:
    """Options with the access token of a sign-in where one was needed; elicitation, engine and headers as they were."""
    if is_skipped(options) or resolver is None:
        return options
    token = resolver(factory, target, options)
    return options if token is None else options.with_token(token)
