"""The elicitation callback as the library sees it: registered, decoded, answered, kept as long as it may be called."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest
from gopher_mcp_python.engines.native import NativeAgent
from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

URL = "https://user:pw@provider.example.test/authorize?state=s3cr3t#frag"


@pytest.mark.parametrize(("word", "code"), [("accept", "1"), ("decline", "2"), ("cancel", "3")])
def test_actions_are_mapped_to_the_librarys_numbers(word: str, code: str) -> None:
    agent = testkit.agent({"handler": lambda request: word})
    assert agent.run("elicit", 0).text == code
    agent.release()


def test_the_handler_gets_every_field() -> None:
    got: list[GopherAgentElicitationRequest] = []
    agent = testkit.agent({"handler": lambda request: got.append(request) or "accept"})
    agent.run("elicit", 0)
    agent.release()
    (request,) = got
    assert isinstance(request, GopherAgentElicitationRequest)
    assert request.mode == "url" and request.elicitation_id == "elic-7" and request.request_id_json == "7"
    assert request.message == "Sign in to the test provider" and request.server == "mcp.example.test"
    assert request.url == "https://provider.example.test/authorize?state=s7"
    assert request.raw_json == '{"id":7,"method":"elicitation/create"}' and request.raw_params_json == '{"mode":"url"}'


def test_the_callback_is_kept_as_long_as_the_library_may_call_it_and_no_longer() -> None:
    class Handler:
        calls = 0

        def __call__(self, request: object) -> str:
            type(self).calls += 1
            return "accept"

    handler = Handler()
    gone = weakref.ref(handler)
    agent = testkit.agent({"handler": handler})
    del handler
    gc.collect()
    assert agent.run("elicit", 0).text == "1" and Handler.calls == 1
    agent.release()
    del agent
    _wait_until(lambda: gone() is None)


def test_a_failed_create_keeps_nothing() -> None:
    class Handler:
        def __call__(self, request: object) -> str:
            return "accept"

    handler = Handler()
    gone = weakref.ref(handler)
    spec = testkit.spec({"handler": handler}, script="null -2 no")
    agent = NativeAgent(testkit.loaded(), spec)
    with pytest.raises(AgentError):
        agent.make_handle(0)
    agent.release()
    del handler, spec, agent
    _wait_until(lambda: gone() is None)


@pytest.mark.parametrize("variant", ["headers", "old"])
def test_explicit_elicitation_needs_a_library_that_has_it(variant: Any) -> None:
    with pytest.raises(AgentError, match=r"0\.1\.35") as caught:
        testkit.agent({"handler": "cancel"}, variant=variant, factory="json")
    assert testkit.loaded(variant).version in str(caught.value) and "pip install" in str(caught.value)


def _wait_until(condition: Any) -> None:
    import time

    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert condition()


# ---- The request as a value -----------------------------------------------------------------------------------------


def request(**more: Any) -> _bridge.ElicitationRequest:
    return _bridge.ElicitationRequest("url", "e", "m", URL, "1", "{}", "{}", **{"server": "s", "tool": "t", **more})


def test_a_request_is_equal_to_its_copies_only() -> None:
    one = request(requested_schema={"type": "object"})
    for twin in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin == one and hash(twin) == hash(one) and twin is not one
    assert one != request(tool="other") and one != "url" and (one == object()) is False
    assert weakref.ref(one)() is one


def test_its_repr_tells_the_host_and_no_secret() -> None:
    text = repr(request())
    assert "provider.example.test" in text and "url" in text
    assert not any(secret in text for secret in ("s3cr3t", "user", "pw", "frag", "authorize"))
    assert "?" in repr(_bridge.ElicitationRequest("url", url="https://[half"))


def test_fields_can_be_written_and_are_checked_at_first() -> None:
    one = request()
    one.url = "https://other.test/"
    assert one.url == "https://other.test/"
    for name in (
        "elicitation_id",
        "message",
        "url",
        "request_id_json",
        "raw_json",
        "raw_params_json",
        "server",
        "tool",
    ):
        with pytest.raises(ValueError, match=name):
            _bridge.ElicitationRequest("url", **{name: 7})
    with pytest.raises(ValueError, match="mode"):
        _bridge.ElicitationRequest(None)  # type: ignore[arg-type]


def test_a_subclass_keeps_its_kind_through_pickle() -> None:
    assert type(pickle.loads(pickle.dumps(Special("form")))) is Special


class Special(_bridge.ElicitationRequest):
    pass
