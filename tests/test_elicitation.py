"""The vocabulary of elicitation: requests, responses, options and what they refuse."""

from __future__ import annotations

import copy
import functools
import math
import pickle
import weakref
from typing import Any
from unittest.mock import AsyncMock

import pytest

from gopher_mcp_python import (
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    non_blocking,
)
from gopher_mcp_python.elicitation import normalize_elicitation_action, normalize_elicitation_options

Options = GopherAgentElicitationOptions


def accept(request: GopherAgentElicitationRequest) -> str:
    return "accept"


async def later(request: GopherAgentElicitationRequest) -> str:
    return "accept"


class AsyncCall:
    async def __call__(self, request: GopherAgentElicitationRequest) -> str:
        return "accept"

    async def method(self, request: GopherAgentElicitationRequest) -> str:
        return "accept"


class InheritedAsyncCall(AsyncCall):
    pass


async def generator(request: GopherAgentElicitationRequest) -> Any:
    yield "accept"


# ---- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, {}, {"handler": None}, {"timeoutMs": None}, Options()])
def test_omitted_means_enabled_and_not_explicit(given: Any) -> None:
    options = normalize_elicitation_options(given)
    assert options.enabled
    assert not options.explicit
    assert (options.handler, options.timeout_ms, options.open_browser) == (None, None, None)


def test_false_switches_off() -> None:
    assert normalize_elicitation_options(False).enabled is False


@pytest.mark.parametrize("given", [True, 3, "cancel", [("handler", accept)]])
def test_other_things_are_no_options(given: Any) -> None:
    with pytest.raises(ValueError, match="must be a GopherAgentElicitationOptions instance or mapping"):
        normalize_elicitation_options(given)


def test_explicit_choices_are_kept() -> None:
    options = normalize_elicitation_options({"handler": accept, "timeout_ms": 2500, "open_browser": False})
    assert (options.handler, options.timeout_ms, options.open_browser) == (accept, 2500, False)
    assert options.explicit
    assert normalize_elicitation_options(options) is options


def test_camel_case_keys_work_and_snake_case_wins() -> None:
    options = normalize_elicitation_options({"timeoutMs": 3, "openBrowser": True})
    assert (options.timeout_ms, options.open_browser) == (3, True)
    both = normalize_elicitation_options({"timeout_ms": 4, "timeoutMs": 3, "open_browser": None, "openBrowser": True})
    assert (both.timeout_ms, both.open_browser) == (4, None)


@pytest.mark.parametrize(("given", "kept"), [(None, None), (0, 0), (1.9, 1), (-1, 0), (-0.5, 0), (10**12, 10**12)])
def test_timeouts(given: Any, kept: Any) -> None:
    assert Options(timeout_ms=given).timeout_ms == kept


@pytest.mark.parametrize("given", ["5", math.nan, math.inf, -math.inf, [], object()])
def test_a_timeout_is_a_finite_number(given: Any) -> None:
    with pytest.raises(ValueError, match="timeout_ms must be a finite number"):
        Options(timeout_ms=given)


@pytest.mark.parametrize("given", [True, False, None, "ask"])
def test_browser_choices(given: Any) -> None:
    assert Options(open_browser=given).open_browser is given


@pytest.mark.parametrize("given", ["x", 1, 0, [], "ASK"])
def test_other_browser_choices_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="open_browser must be a boolean"):
        Options(open_browser=given)


@pytest.mark.parametrize("given", [3, "accept", "later", [], object()])
def test_a_handler_is_callable_or_a_refusal(given: Any) -> None:
    with pytest.raises(ValueError, match="handler must be callable"):
        Options(handler=given)


@pytest.mark.parametrize("given", ["cancel", "decline"])
def test_refusals_by_name(given: Any) -> None:
    assert Options(handler=given).handler == given


@pytest.mark.parametrize(
    "handler",
    [
        later,
        functools.partial(later),
        functools.partial(functools.partial(later)),
        AsyncCall(),
        functools.partial(AsyncCall()),
        InheritedAsyncCall(),
        AsyncCall().method,
        functools.partial(AsyncCall().method),
        AsyncMock(),
        generator,
    ],
    ids=lambda handler: type(handler).__name__,
)
def test_async_handlers_are_refused_when_options_are_built(handler: Any) -> None:
    with pytest.raises(ValueError, match="must not be async"):
        Options(handler=handler)


def test_sync_handlers_of_every_kind_are_taken() -> None:
    class Callable_:
        def __call__(self, request: Any) -> str:
            return "accept"

    for handler in (accept, lambda request: "accept", functools.partial(accept), Callable_(), print, Callable_):
        assert Options(handler=handler).handler is handler


@pytest.mark.parametrize(("given", "kept"), [(None, None), ("url", {"url"}), (["url", "form"], {"url", "form"})])
def test_modes(given: Any, kept: Any) -> None:
    assert Options(modes=given).modes == kept


@pytest.mark.parametrize("given", [[], "voice", ["url", "voice"]])
def test_unknown_modes_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="modes must be"):
        Options(modes=given)


def test_options_can_be_changed_like_the_published_ones() -> None:
    options = Options()
    options.handler, options.timeout_ms, options.open_browser = accept, 7, False
    options.note = "mine"  # type: ignore[attr-defined]
    assert (options.handler, options.timeout_ms, options.open_browser) == (accept, 7, False)


def test_repr_names_no_handler() -> None:
    assert "accept" not in repr(Options(handler=accept))


def test_non_blocking_marks_and_returns_the_handler() -> None:
    def handler(request: Any) -> str:
        return "accept"

    assert non_blocking(handler) is handler
    assert handler.gopher_non_blocking is True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="wrap it"):
        non_blocking(print)


# ---- responses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_actions(action: str) -> None:
    response = GopherAgentElicitationResponse(action)
    assert (response.action, response.content) == (action, None)
    assert normalize_elicitation_action(response) == normalize_elicitation_action(action) == action


@pytest.mark.parametrize("action", ["ACCEPT", "", "maybe", None, 1, True, {"action": "accept"}, ["accept"]])
def test_other_actions_are_refused(action: Any) -> None:
    for function in (GopherAgentElicitationResponse, normalize_elicitation_action):
        with pytest.raises(ValueError, match="unsupported MCP elicitation action"):
            function(action)


def test_a_changed_response_is_checked_again() -> None:
    response = GopherAgentElicitationResponse("accept")
    response.action = "maybe"
    with pytest.raises(ValueError, match="unsupported MCP elicitation action: maybe"):
        normalize_elicitation_action(response)


def test_content_is_a_mapping_and_stays_out_of_the_repr(canary: Any) -> None:
    response = GopherAgentElicitationResponse("accept", {"field": canary.secret("content")})
    canary.check("repr", repr(response))
    assert response.content == {"field": canary.secret("content")}
    with pytest.raises(ValueError, match="content must be a mapping"):
        GopherAgentElicitationResponse("accept", ["x"])  # type: ignore[arg-type]


@pytest.mark.parametrize("finished", [5, "wait", False])
def test_finished_is_a_function_or_nothing(finished: Any) -> None:
    with pytest.raises(ValueError, match="finished must be a function"):
        GopherAgentElicitationResponse("accept", finished=finished)
    wait = lambda: True  # noqa: E731
    assert GopherAgentElicitationResponse("accept", finished=wait).finished is wait
    assert GopherAgentElicitationResponse("accept", finished=None).finished is None


@pytest.mark.parametrize(
    ("action", "told"),
    [(None, "None"), (7, "7"), (2.5, "2.5"), (True, "True"), (["secret"], "a list"), ({"k": "secret"}, "a dict"),
     ("x" * 40, "x" * 40), ("x" * 41, "x" * 40 + "...")],
)  # fmt: skip
def test_a_wrong_action_is_told_in_short(action: Any, told: str) -> None:
    with pytest.raises(ValueError) as raised:
        GopherAgentElicitationResponse(action)
    assert str(raised.value) == f"unsupported MCP elicitation action: {told}"


# ---- requests -------------------------------------------------------------------------------------------------------


def test_request_fields_and_defaults() -> None:
    request = GopherAgentElicitationRequest("url", "id", "message", "https://a.test/", "1", "{}", "[]")
    fields = ("mode", "elicitation_id", "message", "url", "request_id_json", "raw_json", "raw_params_json")
    assert [getattr(request, name) for name in fields] == ["url", "id", "message", "https://a.test/", "1", "{}", "[]"]
    empty = GopherAgentElicitationRequest("anything")
    assert [getattr(empty, name) for name in fields] == ["anything", *[None] * 6]


def test_request_fields_are_checked_and_can_be_changed() -> None:
    with pytest.raises(ValueError, match="elicitation mode must be a string"):
        GopherAgentElicitationRequest(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="elicitation url must be a string"):
        GopherAgentElicitationRequest("url", url=3)  # type: ignore[arg-type]
    request = GopherAgentElicitationRequest("url")
    request.url = "https://a.test/"
    assert request.url == "https://a.test/"


def test_requests_copy_pickle_compare_and_hide_the_url(canary: Any) -> None:
    request = GopherAgentElicitationRequest("url", "id", url=canary.authorization_url(userinfo=True), server="s")
    for same in (copy.copy(request), copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
        assert same == request
    assert request != GopherAgentElicitationRequest("url", "other")
    assert weakref.ref(request)() is request
    canary.check("repr", repr(request))
    assert "accounts.example.test" in repr(request)


def test_the_action_type_is_a_string_as_published() -> None:
    from gopher_mcp_python import GopherAgentElicitationAction

    assert isinstance("accept", GopherAgentElicitationAction)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"modes": 1}, "modes"),
        ({"modes": [[]]}, "modes"),
        ({"enabled": "false"}, "enabled"),
        ({"enabled": 0}, "enabled"),
        ({"timeout_ms": 10**400}, "timeout_ms is too large; None means no limit"),
    ],
)
def test_a_wrong_value_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        GopherAgentElicitationOptions(**wrong)
    with pytest.raises(ValueError, match=named):
        normalize_elicitation_options(wrong)


def test_a_part_of_a_millisecond_is_a_limit() -> None:
    assert GopherAgentElicitationOptions(timeout_ms=0.5).timeout_ms == 1
