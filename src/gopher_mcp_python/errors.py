"""What can go wrong, as types: every error of this package is an `AgentError`, every warning a category of its own."""

from __future__ import annotations

__all__ = [
    "AgentError",
    "ApiKeyError",
    "ConnectionError",
    "ElicitationWarning",
    "NativeMismatchWarning",
    "TimeoutError",
    "UnsafeUrlError",
]


class AgentError(Exception):
    """An agent could not be made or could not finish a run. `message` says what failed and what to do about it.

    `elicitation_cause` is the exception of an elicitation handler that failed during the same run, if one did. It is an
    attribute and not the error's `__cause__`: its text is the handler's own and may hold a URL, so no traceback
    prints it.
    """

    elicitation_cause: BaseException | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ApiKeyError(AgentError):
    """The API key of a model provider or of the Gopher service is missing or was refused."""

    def __init__(self, message: str = "Invalid or missing API key") -> None:
        super().__init__(message)


class ConnectionError(AgentError):
    """A server could not be reached, or the connection broke."""

    def __init__(self, message: str = "Connection failed") -> None:
        super().__init__(message)


class TimeoutError(AgentError):
    """The time given to a run or a creation was up. Time in which a person was asked does not count."""

    def __init__(self, message: str = "Operation timed out") -> None:
        super().__init__(message)


class UnsafeUrlError(ValueError):
    """A URL that must not be shown as a link or handed to a browser. The text gives the reason, never the URL."""


class NativeMismatchWarning(RuntimeWarning):
    """A native package is installed but can't be used here. Said once a process, with the reason and the remedy."""


class ElicitationWarning(RuntimeWarning):
    """An elicitation option can't be honoured exactly on the engine that runs (a time limit that had to be lowered)."""
