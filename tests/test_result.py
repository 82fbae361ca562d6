"""Results and their builder: what a program written for the published package relies on."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    AgentResult,
    AgentResultStatus,
    ApiKeyError,
    ConnectionError,
    TimeoutError,
)


def facts(result: AgentResult) -> tuple[object, ...]:
    return (result.response, result.status.value, result.iteration_count, result.tokens_used, result.error_message)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (AgentResult.success("x"), ("x", "success", 1, 0, None)),
        (AgentResult.success("x", 3, 7), ("x", "success", 3, 7, None)),
        (AgentResult.error("boo"), ("", "error", 0, 0, "boo")),
        (AgentResult.timeout(), ("", "timeout", 0, 0, "Operation timed out")),
        (AgentResult.timeout("late"), ("", "timeout", 0, 0, "late")),
        (AgentResult("r", AgentResultStatus.ERROR), ("r", "error", 0, 0, None)),
        (AgentResult.builder().build(), ("", "success", 0, 0, None)),
    ],
)
def test_shapes(result: AgentResult, expected: tuple[object, ...]) -> None:
    assert facts(result) == expected
    kinds = [result.is_success(), result.is_error(), result.is_timeout()]
    assert kinds == [expected[1] == kind for kind in ("success", "error", "timeout")]


def test_builder_sets_every_field_and_returns_itself() -> None:
    builder = AgentResult.builder()
    same = builder.response("x").status(AgentResultStatus.ERROR).iteration_count(2).tokens_used(3).error_message("e")
    assert same is builder
    assert facts(builder.build()) == ("x", "error", 2, 3, "e")


def test_fields_are_read_only() -> None:
    with pytest.raises(AttributeError):
        AgentResult.success("x").response = "y"  # type: ignore[misc]


def test_repr_keeps_the_response_to_itself() -> None:
    assert "secret answer" not in repr(AgentResult.success("secret answer"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ApiKeyError, "Invalid or missing API key"),
        (ConnectionError, "Connection failed"),
        (TimeoutError, "Operation timed out"),
    ],
)
def test_errors_have_default_texts_and_are_agent_errors(kind: type[AgentError], text: str) -> None:
    error = kind()
    assert (str(error), error.message, error.args) == (text, text, (text,))
    assert isinstance(error, AgentError)
    assert str(kind("other")) == "other"


def test_agent_error_needs_a_message() -> None:
    with pytest.raises(TypeError):
        AgentError()  # type: ignore[call-arg]


def test_errors_survive_pickling() -> None:
    copy = pickle.loads(pickle.dumps(TimeoutError("late")))
    assert isinstance(copy, TimeoutError)
    assert copy.message == "late"


def test_a_repr_never_fails() -> None:
    odd: Any = AgentResult
    assert repr(odd(None, "done")) == (
        "AgentResult(status='done', response=<4 characters>, iteration_count=0, tokens_used=0)"
    )
