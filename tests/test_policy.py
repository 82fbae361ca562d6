"""The policy in front of handlers: what is answered at once, remembered; nothing is accepted by chance."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gopher_mcp_python import (
    ElicitationPolicy,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    elicitation_callback,
)
from gopher_mcp_python.elicitation import is_async_handler
from gopher_mcp_python.elicitation_runtime import resolve_elicitation_action_sync, set_elicitation_input_for_test
from gopher_mcp_python.policy import PolicyRule, PolicyStoreError, RememberedResponse, limits, memory
from gopher_mcp_python.policy.asked import identity_of
from gopher_mcp_python.toolset.connection import HttpConnection, StdioConnection
from gopher_mcp_python.toolset.handling import asker_for

MAIL = "https://mail.example.com/mcp"
NAME = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
APPROVAL: dict[str, Any] = {"type": "object", "properties": {}}


def page(url: str | None = "https://accounts.example.com/x?code=s3cret", server: str | None = "mail") -> Any:
    return GopherAgentElicitationRequest("url", "e1", "Sign in.", url, server=server)


def form(schema: Any = NAME, server: str | None = "mail") -> Any:
    return GopherAgentElicitationRequest("form", message="Who?", requested_schema=schema, server=server)


def never(request: Any) -> str:
    raise AssertionError("the handler was asked")


def action(policy: ElicitationPolicy, request: Any, handler: Callable[..., Any] = never) -> str:
    answer = policy.around(handler)(request)
    return answer if isinstance(answer, str) else str(answer.action)


def policy(*rules: Any, **more: Any) -> ElicitationPolicy:
    return ElicitationPolicy(rules, **more)


# ---- rules ---------------------------------------------------------------------------------------------------------


def test_without_rules_the_handler_is_asked_and_its_answer_passes() -> None:
    answer = GopherAgentElicitationResponse("accept", {"name": "Ada"})
    assert policy().around(lambda request: answer)(form()) is answer
    assert policy().explain(form()).decision == "ask"


@pytest.mark.parametrize("given", ["decline", "cancel"])
def test_a_fixed_answer_can_stand_behind_a_policy(given: str) -> None:
    assert policy().around(given)(page()) == given


def test_the_first_rule_about_the_request_decides() -> None:
    made = policy(PolicyRule("ask", server="mail"), PolicyRule("decline", mode="url"), {"decision": "decline"})
    assert action(made, page(), lambda request: "cancel") == "cancel"
    assert action(made, page(server="other")) == "decline"
    assert made.explain(page(server="other")).rule == "rule 2: decline url"
    assert made.explain(form(server="other")).rule == "rule 3: decline"


def test_a_block_holds_before_every_other_rule() -> None:
    made = policy(PolicyRule("allow", host="accounts.example.com"), PolicyRule("block", server="mail"))
    assert action(made, page()) == "decline"
    assert made.explain(page()).decision == "block"
    assert action(made, page(server="other")) == "accept"


def test_an_approval_form_and_a_policy_that_denies() -> None:
    assert action(policy(default="decline"), form(APPROVAL)) == "decline"
    assert action(policy(PolicyRule("decline", mode="form"), answers={}), form(APPROVAL)) == "decline"


@pytest.mark.parametrize("mode", ["", "URL", "form ", "other", "Form"])
@pytest.mark.parametrize("made", [policy(), policy(PolicyRule("ask")), policy(answers={"name": "Ada"})])
def test_an_unknown_mode_is_declined(mode: str, made: ElicitationPolicy) -> None:
    request = GopherAgentElicitationRequest(mode, url="https://accounts.example.com/", requested_schema=NAME)
    assert action(made, request) == "decline"
    assert "unknown" in made.explain(request).rule


def test_a_rule_of_ones_own_decides_and_gets_a_request_of_its_own() -> None:
    seen = []

    def rule(request: Any) -> Any:
        seen.append((request.server, request.mode))
        request.url = "https://good.example/"
        request.requested_schema = None
        return PolicyRule("allow", host="good.example") if request.mode == "url" else None

    request = page("https://bad.example/")
    assert action(policy(rule, default="decline"), request) == "decline"
    assert request.url == "https://bad.example/"
    assert action(policy(rule, default="decline"), page("https://good.example/")) == "accept"
    assert action(policy(rule, answers={"name": "Ada"}), form()) == "accept"
    assert seen == [("mail", "url")] * 2 + [("mail", "form")]


def _raises(request: Any) -> Any:
    raise OSError("disk s3cret")


@pytest.mark.parametrize("said", ["allow", "accept", True, 1, ["ask"], GopherAgentElicitationResponse("accept")])
@pytest.mark.parametrize("request_", [page(), form()])
def test_a_rule_that_says_what_no_rule_may_is_a_refusal(said: Any, request_: Any) -> None:
    assert action(policy(lambda request: said, answers={"name": "Ada"}), request_) == "decline"


def test_a_rule_that_raises_is_a_refusal() -> None:
    made = policy(_raises, PolicyRule("allow", host="accounts.example.com"))
    assert action(made, page()) == "decline"
    assert made.explain(page()).rule == "rule 1 raised OSError"


def test_an_awaitable_of_a_rule_is_closed_and_refused() -> None:
    async def later() -> str:
        return "ask"

    assert action(policy(lambda request: later()), page()) == "decline"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"decision": "accept"}, "decision"),
        ({"decision": ["allow"]}, "decision"),
        ({"decision": "allow"}, "host="),
        ({"decision": "allow", "mode": "url"}, "host="),
        ({"decision": "allow", "server": "mail"}, "host="),
        ({"decision": "ask", "mode": "both"}, "mode"),
        ({"decision": "ask", "server": 5}, "server"),
        ({"decision": "allow", "host": "https://x.example/"}, "host"),
        ({"decision": "allow", "host": "x.example:443"}, "host"),
        ({"decision": "allow", "host": "a@x.example"}, "host"),
        ({"decision": "allow", "host": ""}, "host"),
        ({"decision": "allow", "host": "0x7f.1"}, "host"),
        ({"decision": "allow", "host": 5}, "host"),
        ({"decision": "allow", "site": "com"}, "site"),
        ({"decision": "allow", "site": "login.example.com"}, "site"),
        ({"decision": "allow", "site": "127.0.0.1"}, "site"),
        ({"decision": "allow", "site": "someone.github.io"}, "host="),
        ({"decision": "allow", "site": "s3.amazonaws.com"}, "host="),
        ({"decision": "decline", "answers": {}}, "allow"),
        ({"decision": "allow", "answers": {}, "host": "x.example"}, "two rules"),
        ({"decision": "allow", "answers": {}, "mode": "url"}, "two rules"),
        ({"decision": "allow", "host": "x.example", "mode": "form"}, "two rules"),
        ({"decision": "allow", "answers": ["s3cret"]}, "answers"),
        ({"decision": "allow", "confirm": "yes"}, "confirm"),
    ],
)
def test_a_rule_that_can_mean_nothing_is_refused_when_it_is_made(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        PolicyRule(**fields)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ValueError, match=r"rule 2"):
        policy(PolicyRule("ask"), fields)


@pytest.mark.parametrize(
    "more",
    [
        {"rules": "ask"},
        {"rules": PolicyRule("ask")},
        {"rules": 5},
        {"rules": [5]},
        {"rules": [{"server": "x"}]},
        {"rules": [asyncio.sleep]},
        {"rules": [PolicyRule("ask")] * 1001},
        {"default": "allow"},
        {"default": None},
        {"answers": [("a", 1)]},
        {"answers": {1: 2}},
        {"servers": ["mail"]},
        {"servers": {"mail": 5}},
        {"servers": {"mail": "ftp://s3cret@x/"}},
        {"store": 5},
        {"store": ""},
        {"max_waiting": 0},
        {"max_waiting": True},
        {"rate": 5},
        {"rate": (0, 1)},
        {"rate": (1, 0)},
        {"rate": (1, float("nan"))},
    ],
)
def test_arguments_that_can_mean_nothing_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        ElicitationPolicy(**more)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("handler", [5, "accept", GopherAgentElicitationOptions()])
def test_what_is_no_handler_is_refused(handler: Any) -> None:
    with pytest.raises(ValueError, match="handler"):
        policy().around(handler)


# ---- pages ---------------------------------------------------------------------------------------------------------

HOST = PolicyRule("allow", host="accounts.example.com")
SITE = PolicyRule("allow", site="example.com")


@pytest.mark.parametrize(
    ("url", "by_host", "by_site"),
    [
        ("https://accounts.example.com/x", True, True),
        ("https://ACCOUNTS.example.com:8443/x", True, True),
        ("https://login.example.com/x", False, True),
        ("https://example.com/x", False, True),
        ("http://accounts.example.com/x", False, False),
        ("https://accounts.example.com@evil.test/x", False, False),
        ("https://evil.test@accounts.example.com/x", False, False),
        ("https://@accounts.example.com/x", False, False),
        ("https://accounts.example.com.evil.test/x", False, False),
        ("https://accounts-example.com/x", False, False),
        ("https://notexample.com/x", False, False),
        ("https://xn--ccounts-1fg.example.com/x", False, False),
        ("https://\u0430ccounts.example.com/x", False, False),
        ("https://accounts.google.com.example.com/x", False, False),
        ("https://evil.test/accounts.example.com", False, False),
        ("https://evil.test\\@accounts.example.com/", False, False),
        ("https://evil.test#@accounts.example.com/", False, False),
        (" https://accounts.example.com/", False, False),
        ("javascript://accounts.example.com/%0aalert(1)", False, False),
        ("https://accounts.example.com%2eevil.test/", False, False),
        ("", False, False),
        (None, False, False),
    ],
)
def test_a_page_is_accepted_only_for_that_very_host(url: str | None, by_host: bool, by_site: bool) -> None:
    assert (action(policy(HOST, default="decline"), page(url)) == "accept") is by_host
    assert (action(policy(SITE, default="decline"), page(url)) == "accept") is by_site


def test_a_page_on_this_machine_may_be_http() -> None:
    assert action(policy(PolicyRule("allow", host="127.0.0.1")), page("http://127.0.0.1:8000/")) == "accept"
    made = policy(PolicyRule("allow", host="10.0.0.1"), default="decline")
    assert action(made, page("http://10.0.0.1/")) == "decline"


def test_a_rule_may_name_a_host_in_other_letters() -> None:
    made = policy(PolicyRule("allow", host="b\u00fccher.example"), default="decline")
    assert action(made, page("https://b\u00fccher.example/")) == "accept"
    assert action(made, page("https://xn--bcher-kva.example/")) == "accept"
    assert action(made, page("https://bucher.example/")) == "decline"


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ({"host": "evil.test"}, "https://user@evil.test/"),
        ({"host": "evil.test"}, "https://EVIL.test./"),
        ({"site": "evil.test"}, "http://a.b.evil.test./"),
        ({"host": "::1"}, "http://[0:0:0:0:0:0:0:1]/"),
        ({"host": "127.0.0.1"}, "http://0x7f.1/"),
        ({"host": "127.0.0.1"}, "http://2130706433/"),
        ({"host": "xn--ccounts-1fg.test"}, "https://\u0430ccounts.test/"),
    ],
)
def test_a_refusal_is_not_got_round_by_spelling(rule: dict[str, str], url: str) -> None:
    assert action(policy(PolicyRule("decline", **rule)), page(url)) == "decline"  # type: ignore[arg-type]
    assert action(policy(PolicyRule("block", **rule)), page(url)) == "decline"  # type: ignore[arg-type]


def test_an_address_that_must_not_be_opened_never_reaches_the_handler() -> None:
    assert action(policy(PolicyRule("ask")), page("file:///etc/passwd")) == "decline"


# ---- forms ---------------------------------------------------------------------------------------------------------


def test_answers_are_those_that_the_form_asks_for() -> None:
    answers = {"name": "Ada", "age": 36, "other": "s3cret"}
    made = policy(answers=answers)
    answers["name"] = "changed later"
    answer = made.around(never)(form())
    assert (answer.action, answer.content) == ("accept", {"name": "Ada", "age": 36})
    assert "Ada" not in repr(made.explain(form())) + repr(made) + repr(PolicyRule("allow", answers=answers))


@pytest.mark.parametrize(
    "answers",
    [{}, {"age": 3}, {"name": None}, {"name": 5}, {"name": "Ada", "age": "old"}, {"Name": "Ada"}, {"name": ["Ada"]}],
)
def test_what_a_form_does_not_take_is_declined(answers: dict[str, Any]) -> None:
    assert action(policy(answers=answers), form()) == "decline"
    assert action(policy(PolicyRule("allow", answers=answers, confirm=True)), form()) == "decline"


def approval(raw: str) -> Any:
    return GopherAgentElicitationRequest("form", None, "Delete it?", None, "1", "{}", raw, server="mail",
                                         requested_schema=APPROVAL)  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        '{"_meta": {"gopher-mcp/confirmation": {"id": "1"}}}', '{"gopher-mcp/confirmation": ',
        r'{"_meta": {"gopher-mcp\/confirmation": {}}}', r'{"\u005fmeta": {"gopher\u002dmcp/confirmation": {}}}',
    ],
)  # fmt: skip
def test_nothing_but_a_person_approves_a_call(raw: str) -> None:
    """A gateway asks so before it lets a tool destroy something."""
    automatic = policy({"decision": "allow", "mode": "form", "confirm": True}, answers={"confirmed": True})
    decision = automatic.explain(approval(raw))
    assert (decision.decision, decision.action) == ("ask", None)
    assert "only a person can" in decision.rule
    assert automatic.around(lambda request: "decline")(approval(raw)) == "decline"
    assert automatic.explain(approval('{"_meta": {"other": "gopher-mcp/confirmation"}}')).action == "accept"


@pytest.mark.parametrize("schema", [None, 5, [], {"type": "array"}, {"properties": {"a": {"type": "object"}}}])
def test_a_form_that_cannot_be_read_is_declined(schema: Any) -> None:
    assert action(policy(PolicyRule("allow", answers={"name": "Ada"}, confirm=True)), form(schema)) == "decline"


def test_a_plain_confirmation_needs_a_rule_that_confirms() -> None:
    assert action(policy(answers={"name": "Ada"}), form(APPROVAL)) == "decline"
    assert action(policy(PolicyRule("allow", answers={})), form(APPROVAL)) == "decline"
    answer = policy(PolicyRule("allow", server="mail", confirm=True)).around(never)(form(APPROVAL))
    assert (answer.action, answer.content) == ("accept", {})


def test_answers_never_answer_for_a_page() -> None:
    both = page()
    both.requested_schema = NAME
    rule = PolicyRule("allow", answers={"name": "Ada"}, confirm=True)
    made = policy(rule, answers={"name": "Ada"}, default="decline")
    assert action(made, both) == "decline"


def test_rules_and_what_was_remembered_come_before_answers() -> None:
    made = policy(PolicyRule("ask", server="asked"), answers={"name": "Ada"})
    assert action(made, form(server="asked"), lambda request: "cancel") == "cancel"
    made.remember(form(), "decline")
    assert action(made, form()) == "decline"


# ---- never an invented accept --------------------------------------------------------------------------------------

_TEXTS = st.text(max_size=5)
_VALUES = st.none() | st.booleans() | st.integers(-5, 5) | _TEXTS | st.lists(_TEXTS, max_size=2)
_NAMES = st.sampled_from(["name", "age", "ok", "", "a.b", "__proto__"])
_FIELD = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3},
        {"type": "integer", "default": 1},
        {"type": "boolean", "default": True},
        {"enum": ["a", "b"], "default": "a"},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object"},
        {},
    ]
)
_SCHEMAS = st.none() | st.builds(
    lambda fields, required: {"type": "object", "properties": fields, "required": required},
    st.dictionaries(_NAMES, _FIELD, max_size=4),
    st.lists(_NAMES, max_size=2, unique=True),
)
_HOSTS = st.sampled_from(["good.example.com", "example.com", "evil.test", "good.example.com.evil.test", "[::1]"])
_URLS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["https://", "http://", "javascript://", "https:", " https://", "https://good.example.com@"]),
    _HOSTS,
    st.sampled_from(["", ".", ":8443", "\\", "@evil.test", "%2e"]),
    st.sampled_from(["", "/x?next=https://good.example.com", "#@good.example.com"]),
)
_REQUESTS = st.builds(
    GopherAgentElicitationRequest,
    st.sampled_from(["url", "form", "", "other"]),
    url=st.none() | _URLS,
    requested_schema=_SCHEMAS,
    server=st.sampled_from([None, "mail", "spam"]),
)
_ANSWERS = st.none() | st.dictionaries(_NAMES, _VALUES, max_size=4)


@settings(max_examples=200, deadline=None)
@given(_REQUESTS, _ANSWERS, st.sampled_from(["ask", "decline"]))
def test_no_accept_is_invented_for_a_form(request: Any, answers: Any, default: Any) -> None:
    """Without a rule for pages, accepted is only a form, with answers that were given and all that it requires."""
    made = ElicitationPolicy(answers=answers, default=default)
    answer = made.around("cancel")(request)
    if answer == "cancel" or answer.action != "accept":
        assert answer == "cancel" or (answer.action, answer.content) == ("decline", None)
        return
    assert request.mode == "form" and answer.content
    assert all(answers[name] == value for name, value in answer.content.items())
    assert answer.content.keys() <= request.requested_schema["properties"].keys()
    assert answer.content.keys() >= set(request.requested_schema["required"])


@settings(max_examples=200, deadline=None)
@given(_REQUESTS, st.sampled_from([{"host": "good.example.com"}, {"site": "example.com"}]))
def test_no_accept_is_invented_for_a_page(request: Any, where: Any) -> None:
    answer = policy(PolicyRule("allow", **where), default="decline").around(never)(request)
    if answer.action == "accept":
        parts = urlsplit(request.url)
        site = {"good.example.com", "good.example.com.", "example.com", "example.com."}
        assert (request.mode, answer.content, parts.scheme) == ("url", None, "https")
        assert "@" not in parts.netloc and "\\" not in parts.netloc
        assert parts.hostname in ({"good.example.com"} if "host" in where else site)


@settings(max_examples=100, deadline=None)
@given(_REQUESTS, _ANSWERS)
def test_a_policy_that_denies_accepts_nothing(request: Any, answers: Any) -> None:
    made = policy(PolicyRule("decline"), HOST, PolicyRule("allow", answers=answers, confirm=True), answers=answers)
    assert action(made, request) == "decline"


# ---- remembered ----------------------------------------------------------------------------------------------------


def test_a_page_is_remembered_for_its_very_host() -> None:
    made = policy(servers={"mail": MAIL})
    accept = RememberedResponse("accept", lasts="session")
    assert action(made, page(), lambda request: accept) == "accept"
    assert action(made, page("https://accounts.example.com/other")) == "accept"
    for other in ("https://login.example.com/", "http://accounts.example.com/", "https://a@accounts.example.com/"):
        assert made.explain(page(other)).decision == "ask"
    assert made.explain(page(server="other")).decision == "ask"
    assert made.explain(form()).decision == "ask"


def test_refusals_are_remembered_for_the_host_for_forms_and_for_all() -> None:
    made = policy(servers={"mail": MAIL})
    no = RememberedResponse("decline", lasts="session")
    action(made, page(), lambda request: no)
    assert action(made, page()) == "decline"
    assert made.explain(page("https://x.example/")).decision == "ask"
    action(made, form(), lambda request: no)
    assert action(made, form(APPROVAL)) == "decline"
    everything = RememberedResponse("decline", lasts="session", whole_server=True)
    action(made, page("https://x.example/"), lambda request: everything)
    assert action(made, page("https://y.example/")) == "decline"
    assert made.explain(page("https://y.example/")).decision == "block"
    assert made.explain(form(server="other")).decision == "ask"
    assert made.forget("other") == 0 and made.forget("mail") == 3 and made.remembered() == []


def test_an_accepted_form_is_never_remembered() -> None:
    made = policy(servers={"mail": MAIL})
    yes = RememberedResponse("accept", {"name": "Ada"}, lasts="session")
    assert made.around(lambda request: yes)(form()).content == {"name": "Ada"}
    assert made.remembered() == [] and made.explain(form()).decision == "ask"
    with pytest.raises(ValueError, match="answers="):
        made.remember(form(), "allow")


@pytest.mark.parametrize(
    ("request_", "decision", "lasts", "named"),
    [
        (page(), "ask", "session", "allow"),
        (page(), "allow", "ever", "lasts"),
        (page(), "allow", "always", "store"),
        (page(None), "decline", "session", "block"),
        (page("http://x.example/"), "allow", "session", "unseen"),
        (page("https://a@x.example/"), "allow", "session", "unseen"),
        (page(server=None), "allow", "session", "name="),
    ],
)
def test_what_cannot_be_remembered_says_why(request_: Any, decision: Any, lasts: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        policy().remember(request_, decision, lasts=lasts)


@pytest.mark.parametrize(
    "more", [{"action": "cancel"}, {"lasts": "ever"}, {"action": "accept", "whole_server": True}, {"action": "yes"}]
)
def test_a_response_that_cannot_be_remembered(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RememberedResponse(**{"action": "decline", "lasts": "session", **more})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "made" / "decisions.json"


def test_always_outlives_the_process_and_ends_with_the_servers_identity(store: Path) -> None:
    first = policy(servers={"mail": MAIL}, store=store)
    first.remember(page(), "allow", lasts="always")
    first.remember(form(), "decline", lasts="always")
    again = policy(servers={"mail": MAIL}, store=str(store))
    assert action(again, page()) == "accept" and action(again, form()) == "decline"
    assert [one.decision for one in again.remembered()] == ["allow", "decline"]
    other = policy(servers={"mail": MAIL + "?tenant=2"}, store=store)
    assert other.explain(page()).decision == "ask"
    assert len(other.remembered()) == 2  # explaining drops nothing
    assert action(other, page(), lambda request: "cancel") == "cancel"
    assert other.remembered() == []
    assert action(again, page(), lambda request: "cancel") == "cancel"


def test_another_name_is_another_server(store: Path) -> None:
    made = policy(servers={"mail": MAIL, "post": MAIL}, store=store)
    made.remember(page(), "allow", lasts="always")
    assert made.explain(page(server="post")).decision == "ask"
    action(made, page(server="post"), lambda request: "cancel")
    assert action(made, page()) == "accept"


def test_where_it_is_not_known_which_server_asks_only_refusals_hold(store: Path) -> None:
    made = policy(servers={"mail": MAIL}, store=store)
    made.remember(page(), "allow", lasts="always")
    made.remember(form(), "decline", lasts="always")
    unknown = policy(store=store)
    assert unknown.explain(page()).decision == "ask"
    assert action(unknown, form()) == "decline"
    with pytest.raises(ValueError, match="servers="):
        unknown.remember(page(), "decline", lasts="always")


def test_around_can_name_the_server(store: Path) -> None:
    made = policy(store=store)
    accept = RememberedResponse("accept", lasts="always")
    nameless = page(server=None)
    made.around(lambda request: accept, name="mail", server=MAIL)(nameless)
    assert made.around(never, name="mail", server=HttpConnection(MAIL))(nameless).action == "accept"
    assert made.explain(nameless).decision == "ask"
    assert made.explain(nameless, name="mail", server="https://other.example/").decision == "ask"
    with pytest.raises(ValueError, match="name"):
        made.around(never, name=5)  # type: ignore[arg-type]


def test_the_file_is_private_and_holds_no_url_and_no_secret(store: Path) -> None:
    secret = "https://user:s3cret@mail.example.com:8443/s3cret?token=s3cret"
    made = policy(servers={"mail": secret, "tool": ["/opt/s3cret/run", "--token=s3cret"]}, store=store)
    made.remember(page("https://accounts.example.com/s3cret?state=s3cret"), "allow", lasts="always")
    made.remember(form(server="tool"), "block", lasts="always")
    text = store.read_text()
    assert "s3cret" not in text
    assert [one["address"] for one in json.loads(text)["decisions"]] == ["https://mail.example.com:8443", "run"]
    if os.name == "posix":
        assert store.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"null",
        b'{"version": 1}',
        b'{"version": 2, "decisions": []}',
        b'{"version": 1, "decisions": {}}',
        b'{"version": 1, "decisions": [{}]}',
        b"[" * 100_000,
    ],
)
def test_a_store_that_cannot_be_read_declines_everything(store: Path, content: bytes) -> None:
    store.parent.mkdir()
    store.write_bytes(content)
    store.chmod(0o600)
    made = policy(HOST, PolicyRule("ask"), answers={"name": "Ada"}, store=store)
    assert action(made, page()) == "decline" and action(made, form()) == "decline"
    assert str(store) in made.explain(page()).rule
    for broken in (made.remembered, made.forget, partial(made.remember, page(), "allow", lasts="always", server=MAIL)):
        with pytest.raises(PolicyStoreError, match="decisions"):
            broken()
    assert store.read_bytes() == content


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "accept"},
        {"decision": "block"},
        {"mode": "form"},
        {"mode": None},
        {"host": None},
        {"digest": None},
        {"server": None},
        {"more": 1},
    ],
)
def test_an_entry_that_was_never_written_so_declines_everything(store: Path, change: dict[str, Any]) -> None:
    made = policy(servers={"mail": MAIL}, store=store)
    made.remember(page(), "allow", lasts="always")
    found = json.loads(store.read_text())
    found["decisions"][0].update(change)
    store.write_text(json.dumps(found))
    assert action(made, page()) == "decline"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_store_that_others_can_read_declines_everything_and_says_what_to_do(store: Path) -> None:
    policy(servers={"mail": MAIL}, store=store).remember(page(), "allow", lasts="always")
    store.chmod(0o644)
    made = policy(servers={"mail": MAIL}, store=store)
    assert action(made, page()) == "decline"
    assert "chmod 600" in made.explain(page()).rule and "token" not in made.explain(page()).rule


def test_an_answer_that_cannot_be_stored_stands_and_holds_for_the_session(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.parent.mkdir()
    made = policy(servers={"mail": MAIL}, store=store)
    accept = RememberedResponse("accept", lasts="always")
    store.with_name(store.name + ".lock").mkdir()
    with caplog.at_level(logging.WARNING, "gopher_mcp_python.elicitation"):
        assert action(made, page(), lambda request: accept) == "accept"
    assert "session only" in caplog.text and "store=" in caplog.text
    assert action(made, page()) == "accept" and not store.exists()


def test_what_is_remembered_is_bounded(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_REMEMBERED", 3)
    monkeypatch.setattr("gopher_mcp_python.policy.store.MAX_STORED", 2)
    made = policy(servers={"mail": MAIL}, store=store)
    for number in range(5):
        made.remember(page(f"https://h{number}.example/"), "decline", lasts="always")
        made.remember(page(f"https://s{number}.example/"), "decline")
    hosts = [one.host for one in made.remembered()]
    assert hosts == ["h3.example", "h4.example", "s2.example", "s3.example", "s4.example"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("https://X.example/mcp", {"url": "https://x.example/mcp"}, True),
        ("https://x.example/mcp", HttpConnection("https://x.example/mcp", name="n"), True),
        ("https://x.example/mcp", "http://x.example/mcp", False),
        ("https://x.example/mcp", "https://x.example/mcp?a=1", False),
        ("https://x.example/mcp", "https://u@x.example/mcp", False),
        (["run", "a"], StdioConnection("run", ["a"]), True),
        ("run", {"command": "run", "args": []}, True),
        (["run", "a"], ["run", "b"], False),
        (["run", "a"], {"command": "run", "args": ["a"], "cwd": "/x"}, False),
        (["run", "a b"], ["run", "a", "b"], False),
    ],
)
def test_a_servers_identity(one: Any, other: Any, equal: bool) -> None:
    assert (identity_of(one) == identity_of(other)) is equal


@pytest.mark.parametrize("server", [5, {}, [], [""], {"command": "s3cret", "args": 5}, ["s3cret", 5], "https://", b"x"])
def test_what_is_no_server(server: Any) -> None:
    with pytest.raises(ValueError, match="URL") as caught:
        identity_of(server)
    assert "s3cret" not in str(caught.value)


# ---- bounds --------------------------------------------------------------------------------------------------------


def test_more_prompts_than_may_wait_are_declined_until_one_is_over() -> None:
    made = policy(max_waiting=2)
    asked, release = threading.Semaphore(0), threading.Event()

    def handler(request: Any) -> str:
        asked.release()
        release.wait(20)
        return "accept"

    guard = made.around(handler)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(guard(page()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert asked.acquire(timeout=20)
    assert guard(page()).action == "decline"
    assert "waiting prompts" in made.explain(page()).rule
    assert made.explain(page(server="other")).decision == "ask"
    release.set()
    for thread in threads:
        thread.join(20)
    assert answers == ["accept", "accept"] and made.explain(page()).decision == "ask"


def test_a_handler_that_raises_leaves_its_place() -> None:
    def broken(request: Any) -> str:
        raise ValueError("mine")

    async def broken_later(request: Any) -> str:
        raise ValueError("mine")

    made = policy(max_waiting=1)
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            made.around(broken)(page())
        with pytest.raises(ValueError, match="mine"):
            asyncio.run(made.around(broken_later)(page()))
    assert made.explain(page()).decision == "ask"


def test_more_prompts_in_a_time_than_the_rate_are_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    made = policy(HOST, rate=(2, 10.0))
    guard = made.around("cancel")
    other = page("https://x.example/")
    assert [guard(other), guard(other)] == ["cancel", "cancel"]
    assert guard(other).action == "decline" and "in 10 s" in made.explain(other).rule
    assert guard(page()).action == "accept"  # what the policy answers itself does not count
    assert guard(page("https://x.example/", server="other")) == "cancel"
    now[0] = 110.0
    assert guard(other) == "cancel"


def test_servers_that_are_kept_count_of_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(limits, "MAX_SERVERS", 3)
    gate = limits.Gate(1, (1, 10.0))
    assert [gate.enter(name) for name in "abc"] == [None] * 3
    assert "servers" in (gate.enter("d") or "") and "servers" in (gate.look("d") or "")
    gate.leave("b")
    assert gate.enter("d")  # its rate still counts
    now[0] = 111.0
    assert gate.look("d") is None and gate.enter("d") is None
    assert gate.enter("a") and gate.enter("e")


def test_many_threads_lose_no_count_and_no_decision(store: Path) -> None:
    made = policy(servers={f"s{number}": MAIL for number in range(4)}, store=store, max_waiting=100, rate=None)

    def work(number: int) -> None:
        answer = RememberedResponse("decline", lasts="always" if number % 2 else "session")
        for host in range(3):
            action(made, page(f"https://h{host}.example/", server=f"s{number}"), lambda request: answer)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made.remembered()) == 12
    assert all(server.waiting == 0 for server in made._gate._servers.values())


# ---- handlers ------------------------------------------------------------------------------------------------------


def test_sync_stays_sync_and_async_stays_async(store: Path) -> None:
    async def handler(request: Any) -> Any:
        await asyncio.sleep(0)
        return RememberedResponse("accept", lasts="always")

    made = policy(servers={"mail": MAIL}, store=store)
    assert not is_async_handler(made.around(never))
    guard = made.around(handler)
    assert is_async_handler(guard) and is_async_handler(made.around(partial(handler)))
    assert asyncio.run(guard(page())).action == "accept"
    assert asyncio.run(made.around(handler)(form(server="other"))).action == "accept"
    assert action(made, page()) == "accept"


def test_an_async_function_that_does_not_look_like_one() -> None:
    async def handler(request: Any) -> Any:
        return RememberedResponse("decline", lasts="session")

    made = policy(max_waiting=1)

    async def twice() -> list[Any]:
        guard = made.around(lambda request: handler(request))
        first = guard(page())
        second = guard(page("https://x.example/"))
        return [(await first).action, second.action]

    assert asyncio.run(twice()) == ["decline", "decline"]
    assert action(made, page()) == "decline" and made.explain(page("https://x.example/")).decision == "ask"
    made.around(lambda request: handler(request))(page("https://x.example/")).close()
    assert made.explain(page("https://x.example/")).decision == "ask"


def test_a_cancelled_task_leaves_its_place(store: Path) -> None:
    made = policy(store=store, max_waiting=1)

    async def cancelled() -> None:
        asked = asyncio.Event()

        async def handler(request: Any) -> str:
            asked.set()
            await asyncio.sleep(600)
            return "accept"

        task = asyncio.ensure_future(made.around(handler)(page()))
        await asyncio.wait_for(asked.wait(), 20)
        assert made.explain(page()).decision == "decline"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert made.explain(page()).decision == "ask"


def test_it_serves_agents_toolsets_and_callbacks() -> None:
    made = policy(HOST, PolicyRule("decline", mode="form", server="spam"), answers={"name": "Ada"})
    guard = made.around(never)
    assert resolve_elicitation_action_sync(GopherAgentElicitationOptions(handler=guard), page()) == "accept"

    async def handler(request: Any) -> str:
        return never(request)

    for each in (guard, made.around(handler)):
        asker = asker_for(each)
        assert asker is not None and asker.modes == {"url", "form"}
        answer = asyncio.run(asker.ask(form()))
        assert (answer.action, answer.content) == ("accept", {"name": "Ada"})
        assert asyncio.run(asker.ask(form(server="spam"))).action == "decline"
        elicitation_callback(each, server="mail")


def test_in_a_toolset_those_in_line_count_and_the_policy_answers_before_it(store: Path) -> None:
    made = policy(HOST, servers={"mail": MAIL}, store=store, max_waiting=2)

    async def work() -> list[str]:
        release = asyncio.Event()
        asked = asyncio.Semaphore(0)

        async def handler(request: Any) -> Any:
            asked.release()
            await release.wait()
            return RememberedResponse("decline", lasts="always")

        asker = asker_for(made.around(handler))
        assert asker is not None
        pages = [page(f"https://h{number}.example/") for number in range(2)]
        waiting = [asyncio.ensure_future(asker.ask(each)) for each in pages]
        await asyncio.wait_for(asked.acquire(), 20)
        while made.explain(page("https://x.example/")).decision == "ask":
            await asyncio.sleep(0.01)  # the second one is on its way to the line
        answers = [await asker.ask(page("https://x.example/")), await asker.ask(page())]
        release.set()
        answers += await asyncio.gather(*waiting)
        return [answer.action for answer in answers]

    assert asyncio.run(asyncio.wait_for(work(), 60)) == ["decline", "accept", "decline", "decline"]
    assert [one.host for one in made.remembered()] == ["h0.example", "h1.example"]
    assert made.explain(page("https://x.example/")).decision == "ask"


def test_a_failing_or_late_handler_of_a_toolset_leaves_its_place() -> None:
    made = policy(max_waiting=1)

    async def work() -> None:
        async def handler(request: Any) -> str:
            if request.mode == "form":
                raise ValueError("mine")
            await asyncio.sleep(600)
            return "accept"

        asker = asker_for(made.around(handler), timeout_ms=20)
        assert asker is not None
        with pytest.raises(ValueError, match="mine"):
            await asker.ask(form())
        assert (await asker.ask(page())).action == "cancel"

    asyncio.run(asyncio.wait_for(work(), 60))
    assert made.explain(page()).decision == "ask"


def test_none_is_the_prompt_of_the_terminal() -> None:
    set_elicitation_input_for_test(lambda limit: "cancel")
    try:
        made = policy(PolicyRule("allow", host="other.example"))
        assert action(made, page(), None) == "cancel"  # type: ignore[arg-type]
        asker = asker_for(made.around(None))
        assert asker is not None and asyncio.run(asker.ask(page())).action == "cancel"
    finally:
        set_elicitation_input_for_test(None)


def test_the_log_tells_the_rule_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    made = policy(HOST, _raises, answers={"name": "s3cret"})
    with caplog.at_level(logging.DEBUG, "gopher_mcp_python.elicitation"):
        action(made, page())
        action(made, form(server="ma\x1b[2Jil"))
    assert "allow (rule 1: allow url host accounts.example.com), asked by mail, page on accounts" in caplog.text
    assert "decline (rule 2 raised OSError)" in caplog.text
    assert "s3cret" not in caplog.text and "\x1b" not in caplog.text


def test_a_filter_that_raises_changes_no_answer() -> None:
    log = logging.getLogger("gopher_mcp_python.elicitation")
    level, log.level = log.level, logging.DEBUG

    def broken(record: Any) -> bool:
        raise OSError("full")

    log.addFilter(broken)
    try:
        assert action(policy(HOST), page()) == "accept"
    finally:
        log.removeFilter(broken)
        log.setLevel(level)
