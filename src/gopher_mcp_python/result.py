"""What `run_detailed` returns: text, status, counts, and what went wrong if something did."""

from __future__ import annotations

from enum import Enum

__all__ = ["AgentResult", "AgentResultBuilder", "AgentResultStatus"]


class AgentResultStatus(Enum):
    """How a run ended."""

    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"


class AgentResult:
    """The result of one run. `elicitation_cause` is the exception of an elicitation handler that failed meanwhile."""

    def __init__(
        self,
        response: str,
        status: AgentResultStatus,
        iteration_count: int = 0,
        tokens_used: int = 0,
        error_message: str | None = None,
        *,
        elicitation_cause: BaseException | None = None,
    ) -> None:
        self._response = response
        self._status = status
        self._iteration_count = iteration_count
        self._tokens_used = tokens_used
        self._error_message = error_message
        self._elicitation_cause = elicitation_cause

    @property
    def response(self) -> str:
        """The answer; empty when there is none."""
        return self._response

    @property
    def status(self) -> AgentResultStatus:
        """How the run ended."""
        return self._status

    @property
    def iteration_count(self) -> int:
        """How many turns the model took."""
        return self._iteration_count

    @property
    def tokens_used(self) -> int:
        """The model's tokens, in and out together; 0 when nobody told."""
        return self._tokens_used

    @property
    def error_message(self) -> str | None:
        """What failed, as a sentence; None after a success."""
        return self._error_message

    @property
    def elicitation_cause(self) -> BaseException | None:
        """The exception of an elicitation handler that failed meanwhile; None when none did."""
        return self._elicitation_cause

    def is_success(self) -> bool:
        """Whether there is an answer."""
        return self._status is AgentResultStatus.SUCCESS

    def is_error(self) -> bool:
        """Whether the run failed."""
        return self._status is AgentResultStatus.ERROR

    def is_timeout(self) -> bool:
        """Whether its time was up."""
        return self._status is AgentResultStatus.TIMEOUT

    @staticmethod
    def success(response: str, iteration_count: int = 1, tokens_used: int = 0) -> AgentResult:
        """A result with an answer."""
        return AgentResult(response, AgentResultStatus.SUCCESS, iteration_count, tokens_used)

    @staticmethod
    def error(message: str) -> AgentResult:
        """A result of a run that failed."""
        return AgentResult("", AgentResultStatus.ERROR, error_message=message)

    @staticmethod
    def timeout(message: str = "Operation timed out") -> AgentResult:
        """A result of a run whose time was up."""
        return AgentResult("", AgentResultStatus.TIMEOUT, error_message=message)

    @staticmethod
    def builder() -> AgentResultBuilder:
        """A builder, for what has more than these."""
        return AgentResultBuilder()

    def __repr__(self) -> str:
        status = getattr(self._status, "value", self._status)
        return (
            f"AgentResult(status={status!r}, response=<{len(str(self._response))} characters>, "
            f"iteration_count={self._iteration_count}, tokens_used={self._tokens_used})"
        )


class AgentResultBuilder:
    """Builds an AgentResult step by step; each method returns the builder."""

    def __init__(self) -> None:
        self._response = ""
        self._status = AgentResultStatus.SUCCESS
        self._iteration_count = 0
        self._tokens_used = 0
        self._error_message: str | None = None

    def response(self, response: str) -> AgentResultBuilder:
        """Sets the answer."""
        self._response = response
        return self

    def status(self, status: AgentResultStatus) -> AgentResultBuilder:
        """Sets how the run ended; without it, as a success."""
        self._status = status
        return self

    def iteration_count(self, count: int) -> AgentResultBuilder:
        """Sets how many turns the model took."""
        self._iteration_count = count
        return self

    def tokens_used(self, tokens: int) -> AgentResultBuilder:
        """Sets how many tokens the model used."""
        self._tokens_used = tokens
        return self

    def error_message(self, message: str) -> AgentResultBuilder:
        """Sets what failed."""
        self._error_message = message
        return self

    def build(self) -> AgentResult:
        """The result."""
        return AgentResult(self._response, self._status, self._iteration_count, self._tokens_used, self._error_message)
