"""The REST interface of `gopher-mcp serve` on a real server over a real store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.serve import Principal
from gopher_mcp_python.store import model
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.errors import StoreError
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend
from tests.support.serving import BASE, Serving, one_for_many_tests, starting

NOWHERE = "el_" + "A" * 22
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "count": {"type": "integer", "minimum": 1},
        "agree": {"type": "boolean", "default": False},
        "color": {"enum": ["red", "green"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1},
        "__proto__": {"type": "string", "default": ""},
    },
    "required": ["name"],
}


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with one_for_many_tests(tmp_path_factory.mktemp("serving")) as running:
        yield running


@pytest.fixture
def serving(_running: Serving) -> Serving:
    """A server on which nothing is pending."""
    return _running.clear()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    """Starts a server with options of its own."""
    with starting(tmp_path) as begin:
        yield begin


def form(schema: dict[str, Any] = FORM, message: str = "Who are you?") -> model.NewElicitation:
    request = GopherAgentElicitationRequest("form", message=message, server="mail", requested_schema=schema)
    return model.mcp_form(request)


def page(url: str) -> model.NewElicitation:
    return model.mcp_url(GopherAgentElicitationRequest("url", "e-1", "Sign in", url, server="mail"))


# ---- Asked, answered, not found --------------------------------------------------------------------------------------


def test_elicitation_poll_respond_validate_and_404(serving: Serving) -> None:
    asked = serving.store.create_confirmation("ada", tool="delete_project", arguments={"id": 7}, server="projects")
    (listed,) = serving.get().json["elicitations"]
    assert (listed["id"], listed["type"], listed["status"]) == (asked.id, "confirmation", "pending")

    invalid = serving.respond(asked.id, {"confirmed": "yes"})
    assert invalid.status == 422 and invalid.error["code"] == "invalid"
    assert list(invalid.error["fields"]) == ["confirmed"] and invalid.error["retries_left"] == 2
    assert serving.store.confirmation_state("ada", asked.id) == "pending"

    recorded = serving.respond(asked.id, {"confirmed": True})
    assert (recorded.status, recorded.json["outcome"]) == (200, "recorded")
    assert serving.store.confirmation_state("ada", asked.id) == "approved"
    assert serving.get().json == {"elicitations": [], "next": None}

    assert serving.respond(NOWHERE, {"confirmed": True}).status == 404
    assert serving.get(f"{BASE}/{NOWHERE}").status == 404
    assert serving.post(f"{BASE}/{NOWHERE}/cancel").status == 404


def test_the_third_invalid_answer_ends_it(serving: Serving) -> None:
    asked = serving.store.create("ada", model.single_choice("Where?", ["here", "there"]))
    left = [serving.respond(asked.id, {"choice": "Here"}).error["retries_left"] for _ in range(2)]
    last = serving.respond(asked.id, {"choice": "here "})
    assert left == [2, 1] and (last.status, last.error["code"]) == (422, "validation_failed")
    late = serving.respond(asked.id, {"choice": "here"})
    assert (late.status, late.error["status"]) == (409, "validation_failed")


def test_the_same_answer_again_is_fine_and_another_one_is_a_conflict(serving: Serving) -> None:
    asked = serving.store.create("ada", model.string_input("Which branch?"))
    first, again = (serving.respond(asked.id, {"value": "main"}) for _ in range(2))
    assert (first.json["outcome"], again.json["outcome"]) == ("recorded", "already_recorded")
    other = serving.respond(asked.id, {"value": "next"})
    assert (other.status, other.error["code"], other.error["status"]) == (409, "conflict", "responded")
    assert serving.store.result("ada", asked.id) == {"value": "main"}


def test_of_two_different_answers_at_once_one_wins(serving: Serving) -> None:
    for _ in range(10):
        asked = serving.store.create_confirmation("ada", tool="t", arguments={})
        gate = threading.Barrier(2)
        found: dict[bool, int] = {}

        def answer(yes: bool, identity: str = asked.id, gate: threading.Barrier = gate, into: Any = found) -> None:
            gate.wait(20)
            into[yes] = serving.respond(identity, {"confirmed": yes}).status

        threads = [threading.Thread(target=answer, args=(yes,)) for yes in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(found.values()) == [200, 409]
        assert serving.store.result("ada", asked.id) == {"confirmed": found[True] == 200}


def test_cancelled_once(serving: Serving) -> None:
    asked = serving.store.create("ada", model.string_input("?"))
    assert serving.request("POST", f"{BASE}/{asked.id}/cancel").json["outcome"] == "recorded"
    assert serving.post(f"{BASE}/{asked.id}/cancel").json["outcome"] == "already_recorded"
    late = serving.respond(asked.id, {"value": "x"})
    assert (late.status, late.error["status"]) == (409, "cancelled")


def test_what_is_too_late_is_a_conflict(tmp_path: Path, start: Callable[..., Serving]) -> None:
    moment = [datetime(2026, 1, 31, tzinfo=timezone.utc)]
    store = Store(MemoryBackend(clock=lambda: moment[0]), KeyRing.generate())
    serving = start(store=store)
    asked = store.create("ada", model.string_input("?"), timeout_s=60)
    moment[0] += timedelta(seconds=61)
    late = serving.respond(asked.id, {"value": "x"})
    assert (late.status, late.error["status"]) == (409, "expired")


# ---- Whose it is -----------------------------------------------------------------------------------------------------


def test_not_yours_looks_like_not_there(serving: Serving) -> None:
    asked = serving.store.create("ada", model.file_upload("?"))
    for method, path, body in (
        ("GET", "", None),
        ("POST", "/respond", {"response": {"value": "x"}}),
        ("POST", "/cancel", {}),
        ("POST", "/check", {"fields": []}),
        ("POST", "/file", b"data"),
    ):
        mine = serving.request(method, f"{BASE}/{NOWHERE}{path}", body)
        theirs = serving.request(method, f"{BASE}/{asked.id}{path}", body, token=serving.other)
        assert (theirs.status, theirs.data) == (404, mine.data), path
    assert serving.get(token=serving.other).json["elicitations"] == []
    after = serving.get(f"{BASE}?after={asked.id}", token=serving.other)
    assert after.status == 404 and after.data == serving.get(f"{BASE}?after={NOWHERE}").data


def test_who_calls_can_not_answer(serving: Serving) -> None:
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    path = f"{BASE}/{asked.id}"
    requests: list[tuple[str, str, Any]] = [
        ("GET", BASE, None), ("GET", path, None), ("GET", f"{BASE}/events", None),
        ("POST", f"{path}/respond", {"response": {"confirmed": True}}), ("POST", f"{path}/cancel", {}),
        ("POST", f"{path}/check", {"fields": []}), ("POST", f"{path}/file", b"x"),
    ]  # fmt: skip
    for method, where, body in requests:
        refused = serving.request(method, where, body, token=serving.call)
        assert (refused.status, refused.error["code"]) == (403, "scope"), where
        assert 'scope="answer"' in refused.headers["www-authenticate"]
        typed = {"Content-Type": "image/png"} if isinstance(body, bytes) else None  # without, it may be a form's
        unknown = serving.request(method, where, body, token=None, headers=typed)
        assert unknown.status == 401 and unknown.headers["www-authenticate"].startswith("Bearer")
    assert serving.get("/v1/whoami", token=serving.call).json["scopes"] == ["call"]
    assert serving.store.confirmation_state("ada", asked.id) == "pending"


def test_who_may_both_call_and_answer_can_not_answer(
    start: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of somebody else's making (a JWT) may say so."""
    serving = start()
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    both = Principal("ada", "both", frozenset({"call", "answer"}))
    monkeypatch.setattr(serving.tokens, "authenticate", lambda authorization: both)
    refused = serving.respond(asked.id, {"confirmed": True})
    assert (refused.status, refused.error["code"]) == (403, "scope") and "own" in refused.error["message"]
    assert serving.get(f"{BASE}/events").status == 403
    assert serving.store.confirmation_state("ada", asked.id) == "pending"


NO_GOOD_TOKEN: list[Any] = ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer é", "bearer x" + "y" * 5000]


def test_no_good_token(serving: Serving) -> None:
    for value in NO_GOOD_TOKEN:
        refused = serving.request("GET", BASE, token=None, headers={"Authorization": value})
        assert refused.status == 401


def test_two_tokens_are_none(serving: Serving) -> None:
    with serving.raw() as connection:
        line = f"Authorization: Bearer {serving.answer}\r\n"
        connection.sendall(
            f"GET {BASE} HTTP/1.1\r\nHost: {serving.host}\r\n{line}{line}Connection: close\r\n\r\n".encode()
        )
        assert connection.makefile("rb").readline().split()[1] == b"401"


# ---- Lists -----------------------------------------------------------------------------------------------------------


def test_pages_of_a_list(serving: Serving) -> None:
    asked = [serving.store.create("ada", model.string_input(f"Question {n}")).id for n in range(7)]
    found, after = [], ""
    for size in (3, 3, 1):
        page = serving.get(f"{BASE}?limit=3{after}").json
        assert len(page["elicitations"]) == size
        found += [one["id"] for one in page["elicitations"]]
        after = f"&after={page['next']}"
    assert found == asked and page["next"] is None


ODD_PAGES: list[Any] = ["limit=0", "limit=101", "limit=x", "limit=-1", "limit=1&limit=2", "after=x", "page=2"]


def test_odd_pages(serving: Serving) -> None:
    for query in ODD_PAGES:
        refused = serving.get(f"{BASE}?{query}")
        assert (refused.status, refused.error["code"]) == (422, "malformed")


# ---- What is shown ---------------------------------------------------------------------------------------------------


def test_a_call_is_shown_with_all_its_arguments(serving: Serving) -> None:
    arguments = {"id": 90071992547409910, "path": "/srv/" + "x" * 30_000, "confirmed": True, "note": "\u202eevil\ud800"}
    asked = serving.store.create_confirmation("ada", tool="wipe", arguments=arguments, server="disk")
    shown = serving.get(f"{BASE}/{asked.id}").json
    assert shown["question"]["tool"] == "wipe" and shown["tool"] == "wipe"
    assert json.loads(shown["question"]["arguments_text"]) == arguments
    assert "90071992547409910" in shown["question"]["arguments_text"]


def test_a_form_is_shown_field_by_field(serving: Serving) -> None:
    asked = serving.store.create("ada", form())
    fields = serving.get(f"{BASE}/{asked.id}").json["question"]["fields"]
    assert [field["name"] for field in fields] == ["name", "count", "agree", "color", "tags", "__proto__"]
    by_name = {field["name"]: field for field in fields}
    assert by_name["name"]["label"] == "Your name" and by_name["name"]["required"]
    assert (by_name["agree"]["state"], by_name["agree"]["picked"]) == ("default", [1])
    assert (by_name["tags"]["options"], by_name["tags"]["state"]) == (["a", "b", "c"], "omitted")
    assert by_name["__proto__"]["state"] == "default" and by_name["__proto__"]["can_be_empty"]


@pytest.mark.parametrize(
    ("url", "host", "misleading"),
    [
        ("https://accounts.google.com@evil.example/x", "evil.example", True),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", True),
        ("https://login.example.com.evil.test/", "login.example.com.evil.test", True),
        ("http://mail.example/?state=abc", "mail.example", False),
    ],
)
def test_a_page_is_shown_with_its_host_and_warnings(serving: Serving, url: str, host: str, misleading: bool) -> None:
    asked = serving.store.create("ada", page(url))
    shown = serving.get(f"{BASE}/{asked.id}").json["question"]
    assert (shown["host"], shown["is_misleading"], shown["refused"]) == (host, misleading, None)
    assert shown["warnings"]


AN_UNSAFE_PAGE_HAS_NO_LINK: list[Any] = [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "\u0001http://a/",
    " http://a/",
]


def test_an_unsafe_page_has_no_link(serving: Serving) -> None:
    for url in AN_UNSAFE_PAGE_HAS_NO_LINK:
        asked = serving.store.create("ada", page(url))
        shown = serving.get(f"{BASE}/{asked.id}").json["question"]
        assert shown["href"] is None and shown["refused"] and shown["given"] == url


# ---- Forms as they are typed -----------------------------------------------------------------------------------------


def test_a_form_is_checked_without_using_up_a_try(serving: Serving) -> None:
    asked = serving.store.create("ada", form())
    for _ in range(5):
        judged = serving.post(f"{BASE}/{asked.id}/check", {"fields": [{"name": "name", "text": "A"}]}).json
        (name,) = (field for field in judged["fields"] if field["name"] == "name")
        assert not judged["is_complete"] and name["problem"] == "Your name needs 1 more character (at least 2)."
        refused = serving.post(f"{BASE}/{asked.id}/respond", {"fields": [{"name": "count", "text": "0"}]})
        assert refused.status == 422 and refused.error["code"] == "incomplete"
        assert set(refused.error["fields"]) == {"name", "count"}
    assert serving.store.get("ada", asked.id).retries == 0


def test_a_form_is_answered_as_typed(serving: Serving) -> None:
    asked = serving.store.create("ada", form())
    typed = [
        {"name": "name", "text": "Ada"}, {"name": "count", "text": " 90071992547409910 "},
        {"name": "agree", "picked": [0]}, {"name": "color", "state": "omitted"}, {"name": "tags", "picked": [0, 2]},
        {"name": "__proto__", "state": "empty"},
    ]  # fmt: skip
    assert serving.post(f"{BASE}/{asked.id}/check", {"fields": typed}).json["is_complete"]
    assert serving.post(f"{BASE}/{asked.id}/respond", {"fields": typed}).status == 200
    content = {"name": "Ada", "count": 90071992547409910, "agree": True, "tags": ["a", "c"], "__proto__": ""}
    assert serving.store.result("ada", asked.id) == {"action": "accept", "content": content}


def test_three_optional_fields_untouched_are_an_empty_answer(serving: Serving) -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "boolean"}}
    asked = serving.store.create("ada", form({"type": "object", "properties": properties}))
    assert serving.post(f"{BASE}/{asked.id}/respond", {"fields": []}).status == 200
    assert serving.store.result("ada", asked.id) == {"action": "accept", "content": {}}


DRAFTS_THAT_ARE_NONE: list[Any] = [
        {}, "x", [1], [{"name": "name"}], [{"name": "nobody", "text": "x"}], [{"name": "name", "text": 1}],
        [{"name": "name", "text": "x"}, {"name": "name", "text": "y"}], [{"name": "tags", "picked": [9]}],
        [{"name": "tags", "picked": [0, 0]}], [{"name": "color", "picked": [0, 1]}],
        [{"name": "color", "picked": [True]}], [{"name": "count", "state": "empty"}],
        [{"name": "name", "text": "x", "state": "default"}],
    ]  # fmt: skip


def test_drafts_that_are_none(serving: Serving) -> None:
    for fields in DRAFTS_THAT_ARE_NONE:
        asked = serving.store.create("ada", form())
        for action in ("check", "respond"):
            refused = serving.post(f"{BASE}/{asked.id}/{action}", {"fields": fields})
            assert (refused.status, refused.error["code"]) == (422, "malformed"), action
        assert serving.store.get("ada", asked.id).retries == 0


# ---- Bodies ----------------------------------------------------------------------------------------------------------


BODIES_THAT_ARE_NO_ANSWER: list[Any] = [
        b"", b"[]", b"null", b"{", b'{"response": {"value": NaN}}', b'{"response": {"value": Infinity}}',
        b'{"response": {"confirmed": false}, "response": {"confirmed": true}}',
        b'{"response": {"confirmed": false, "confirmed": true}}', b'{"response": "x"}', b'{"answer": {}}',
        b"\xff\xfe{}", b'{"response": {"value": "\\ud800"}}', b"[" * 100_000,
        b'{"response": {"value": ' + b"9" * 5000 + b"}}",
        b'{"response": {}, "fields": []}',
    ]  # fmt: skip


def test_bodies_that_are_no_answer(serving: Serving) -> None:
    for body in BODIES_THAT_ARE_NO_ANSWER:
        asked = serving.store.create("ada", model.string_input("?"))
        refused = serving.request(
            "POST", f"{BASE}/{asked.id}/respond", body, headers={"Content-Type": "application/json"}
        )
        assert (refused.status, refused.error["code"]) == (422, "malformed")
        assert serving.store.get("ada", asked.id).retries == 0


JSON_ONLY: list[Any] = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""]


def test_json_only(serving: Serving) -> None:
    for kind in JSON_ONLY:
        asked = serving.store.create_confirmation("ada", tool="t", arguments={})
        headers = {"Content-Type": kind} if kind else {}
        for action in ("respond", "cancel", "check"):
            body = b'{"response": {"confirmed": true}}' if action != "cancel" else b"{}"
            refused = serving.request("POST", f"{BASE}/{asked.id}/{action}", body, headers=headers)
            assert refused.status == 415, action
        assert serving.store.confirmation_state("ada", asked.id) == "pending"


def test_large_bodies(serving: Serving) -> None:
    asked = serving.store.create("ada", model.string_input("?"))
    path = f"{BASE}/{asked.id}/respond"
    with serving.raw() as connection:  # said to be large, and never sent
        head = f"POST {path} HTTP/1.1\r\nHost: {serving.host}\r\nAuthorization: Bearer {serving.answer}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"413"
    with serving.raw() as connection:  # large and not said to be
        connection.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            for _ in range(64):
                connection.sendall(piece)
        except OSError:
            pass  # it was refused before all of it had gone
        assert connection.makefile("rb").readline().split()[1:2] in ([b"413"], [])
    assert serving.store.get("ada", asked.id).retries == 0


def test_paths_and_methods_that_are_not_there(serving: Serving) -> None:
    assert serving.get("/v1/nothing").error["code"] == "not_found"
    for identity in ("x", "el_", "el_" + "A" * 23, "el_" + "%2e" * 22, "..%2f..%2fetc"):
        assert serving.get(f"{BASE}/{identity}").status == 404
    refused = serving.request("DELETE", f"{BASE}/{NOWHERE}")
    assert (refused.status, refused.error["code"]) == (405, "method_not_allowed") and "GET" in refused.headers["allow"]


def test_health_and_readiness(start: Callable[..., Serving]) -> None:
    serving = start()
    assert serving.get("/health", token=None).json == {"status": "ok"}
    assert [serving.get("/ready", token=None).json for _ in range(2)] == [{"status": "ok"}] * 2


def test_a_store_that_is_away(start: Callable[..., Serving]) -> None:
    serving = start()
    serving.store.close()
    assert serving.get("/health", token=None).status == 200
    for path in ("/ready", BASE, f"{BASE}/{NOWHERE}"):
        gone = serving.get(path)
        assert gone.status == 503 and gone.headers["retry-after"] == "5"


def test_a_store_that_is_away_is_not_asked_by_everybody(
    start: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gopher_mcp_python.serve.app._READY_FOR", 1000.0)
    serving, asked = start(), []

    def away() -> None:
        asked.append(1)
        raise StoreError("away")

    monkeypatch.setattr(serving.store, "check", away)
    assert {serving.get("/ready", token=None).status for _ in range(5)} == {503} and len(asked) == 1


def test_too_many_requests(start: Callable[..., Serving]) -> None:
    serving = start(requests_per_minute=3, failures_per_minute=2)
    assert [serving.get().status for _ in range(4)] == [200, 200, 200, 429]
    late = serving.get()
    assert 1 <= int(late.headers["retry-after"]) <= 60
    assert serving.get(token=serving.other).status == 200, "one caller's haste is no other's"
    assert [serving.get(token="gmt_wrong").status for _ in range(3)] == [401, 401, 429]
    assert serving.get(token=serving.other).status == 200, "who has a token is not kept out by who guesses"


def test_the_store_says_wait(tmp_path: Path) -> None:
    from gopher_mcp_python.serve.problems import Problem
    from gopher_mcp_python.serve.talk import ask
    from gopher_mcp_python.store.errors import RateLimited

    def limited() -> None:
        raise RateLimited(17)

    async def asked() -> None:
        with pytest.raises(Problem) as found:
            await ask(limited)
        assert (found.value.status, found.value.headers) == (429, {"retry-after": "17"})

    import asyncio

    asyncio.run(asked())
