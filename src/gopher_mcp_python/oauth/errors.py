"""What can end a sign-in to the MCP server itself without a token."""

from __future__ import annotations

from typing import Any, Literal

from ..errors import AgentError

__all__ = ["Reason", "SignInError", "Unreachable"]

Reason = Literal["denied", "refused", "unavailable", "timeout", "misconfigured", "cancelled"]


class SignInError(AgentError):
    """The MCP server asks for a sign-in, and there is none. The text says why and what to do.

    `reason` is one of

    - "denied": the person, or the provider in their name, said no;
    - "refused": the authorization server or the MCP server did not take what it was sent;
    - "unavailable": a server could not be reached, or there is nobody who could sign in here;
    - "timeout": the person did not finish within the time;
    - "misconfigured": an option, or what a server says about itself, can't work;
    - "cancelled": the person ended it here, or the program did.
    """

    reason: Reason

    def __init__(self, message: str, reason: Reason = "refused") -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.reason), self.__dict__


class Unreachable(SignInError):
    """An authorization server could not even be connected to. Where it was known from an earlier time it may have
    moved, and the MCP server says where it is now."""
