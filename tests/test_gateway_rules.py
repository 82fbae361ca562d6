"""What is held: rules, lists, and what servers say of their tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.gateway import Rule, Rules, Upstream, read_upstream
from gopher_mcp_python.gateway.held import HeldCall
from gopher_mcp_python.gateway.states import States
from gopher_mcp_python.gateway.upstream import Upstreams
from gopher_mcp_python.gateway.welcome import capabilities_of
from gopher_mcp_python.toolset.connection import HttpConnection, StdioConnection

TOOLS: dict[str, Any] = {
    "safe": {"annotations": {"destructiveHint": False}},
    "reads": {"annotations": {"readOnlyHint": True}},
    "both": {"annotations": {"readOnlyHint": True, "destructiveHint": True}},
    "odd": {"annotations": {"destructiveHint": "false", "readOnlyHint": 1}},
    "kills": {"annotations": {"destructiveHint": True}},
    "bare": {},
    "run": {"annotations": {"destructiveHint": True}},
}
DISPATCH = Rule("hub:run", calls="name", arguments="args")
BATCH = Rule("hub:run", calls="items.*.name", arguments="items.*.args")
SELECT = Rule("*:query", when={"sql": r"(?is)\s*select\b[^;]*"}, then="allow")


def judged(rules: Rules, tool: str, arguments: dict[str, Any] | None = None, server: str = "hub") -> str:
    return rules.judge(server, tool, arguments or {}, TOOLS)


@pytest.mark.parametrize(
    ("tool", "untrusted", "trusted"),
    [
        ("safe", "allow", "allow"),
        ("reads", "hold", "allow"),
        ("both", "hold", "hold"),
        ("odd", "hold", "hold"),
        ("kills", "hold", "hold"),
        ("bare", "hold", "hold"),
        ("absent", "hold", "hold"),
    ],
)
def test_annotations(tool: str, untrusted: str, trusted: str) -> None:
    assert judged(Rules(), tool) == untrusted
    assert judged(Rules(trusted=("hub",)), tool) == trusted
    assert judged(Rules(trusted=("other",)), tool) == untrusted


def test_the_strictest_wins() -> None:
    assert judged(Rules(allow=("hub:kills",)), "kills") == "allow"
    assert judged(Rules(allow=("hub:*",), hold=("*:k*",)), "kills") == "hold"
    assert judged(Rules(allow=("hub:*",), hold=("*:k*",), deny=("hub:kill?",)), "kills") == "deny"
    assert judged(Rules(allow=("other:*",)), "kills") == "hold"
    assert judged(Rules(allow=("hub:KILLS",)), "kills") == "hold"  # exactly
    assert judged(Rules(hold=("hub:safe",)), "safe") == "hold"
    rules = [Rule("hub:safe", {"x": ".*"}, verdict) for verdict in ("allow", "hold", "deny")]  # type: ignore[arg-type]
    for ordered in (rules, rules[::-1]):
        assert judged(Rules(rules=ordered), "safe", {"x": ""}) == "deny"
        assert judged(Rules(rules=[one for one in ordered if one.then != "deny"]), "safe", {"x": ""}) == "hold"


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"sql": "SELECT 1"}, "allow"),
        ({"sql": "select 1; drop table x"}, "hold"),
        ({"sql": "delete from x -- select"}, "hold"),
        ({}, "hold"),
        ({"sql": ["select 1"]}, "hold"),
        ({"sql": None}, "hold"),
    ],
)
def test_rules_by_arguments(arguments: dict[str, Any], verdict: str) -> None:
    assert judged(Rules(rules=(SELECT,)), "query", arguments) == verdict
    assert judged(Rules(rules=(SELECT,), deny=("hub:query",)), "query", arguments) == "deny"


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"name": "safe"}, "allow"),
        ({"name": "kills"}, "hold"),
        ({"name": "absent"}, "hold"),
        ({}, "hold"),
        ({"name": 7}, "hold"),
        ({"name": "run"}, "hold"),
        ({"name": "run", "args": {"name": "safe"}}, "allow"),
        ({"name": "run", "args": {"name": "kills"}}, "hold"),
        ({"name": "query", "args": {"sql": "select 1"}}, "allow"),
        ({"name": "query", "sql": "select 1", "args": {"sql": "drop"}}, "hold"),
    ],
)
def test_a_tool_that_runs_tools_is_judged_by_what_it_runs(arguments: dict[str, Any], verdict: str) -> None:
    assert judged(Rules(rules=(DISPATCH, SELECT)), "run", arguments) == verdict


def test_several_at_once() -> None:
    rules = Rules(rules=(BATCH, SELECT), deny=("hub:both",))
    assert judged(rules, "run", {"items": [{"name": "safe"}, {"name": "safe"}]}) == "allow"
    assert judged(rules, "run", {"items": [{"name": "safe"}, {"name": "kills"}]}) == "hold"
    assert judged(rules, "run", {"items": [{"name": "safe"}, {"name": "both"}]}) == "deny"
    assert judged(rules, "run", {"items": []}) == "hold"
    query = {"name": "query", "args": {"sql": "select 1"}}
    assert judged(rules, "run", {"items": [query, query]}) == "allow"
    assert judged(rules, "run", {"items": [query, {"name": "safe"}]}) == "hold"  # whose arguments they are is not told


def test_of_several_values_one_is_enough_to_hold_and_all_have_to_match_to_allow() -> None:
    deny = Rules(rules=(Rule("hub:query", when={"paths.*": "/etc/.*"}, then="deny"),), allow=("hub:query",))
    assert judged(deny, "query", {"paths": ["/tmp/x"]}) == judged(deny, "query", {"paths": []}) == "allow"
    for paths in (["/etc/x"], ["/tmp/x", "/etc/x"], ["/etc/x", 7]):
        assert judged(deny, "query", {"paths": paths}) == "deny", paths
    both = Rules(rules=(Rule("hub:query", when={"a": "x", "b": "y"}, then="deny"),), allow=("hub:query",))
    assert judged(both, "query", {"a": "x"}) == "allow" and judged(both, "query", {"a": "x", "b": "y"}) == "deny"
    allow = Rules(rules=(Rule("hub:query", when={"items.*.sql": "select .*"}, then="allow"),))
    select = {"sql": "select 1"}
    assert judged(allow, "query", {"items": [select, select]}) == "allow"
    for other in ({"sql": "drop"}, {"SQL": "drop"}, {}, "drop", None):
        assert judged(allow, "query", {"items": [select, other]}) == "hold", other
    for items in ([], {"*": select}, select, None):
        assert judged(allow, "query", {"items": items}) == "hold", items


@pytest.mark.parametrize("other", [{"tool": "kills"}, {}, "kills", ["kills"], None, {"name": None}])
def test_no_entry_of_a_batch_is_passed_over(other: Any) -> None:
    assert judged(Rules(rules=(BATCH,)), "run", {"items": [{"name": "safe"}, other]}) == "hold"
    assert judged(Rules(rules=(BATCH,)), "run", {"items": {"*": {"name": "safe"}}}) == "hold"


def test_a_chain_of_tools_that_run_each_other_ends() -> None:
    rule = Rule("hub:run", calls="name", arguments="args")
    arguments: dict[str, Any] = {"name": "safe"}
    for _ in range(3):
        arguments = {"name": "run", "args": arguments}
    assert judged(Rules(rules=(rule,)), "run", arguments) == "allow"
    assert judged(Rules(rules=(rule,)), "run", {"name": "run", "args": arguments}) == "hold"
    for _ in range(50):
        arguments = {"name": "run", "args": arguments}
    assert judged(Rules(rules=(rule,)), "run", arguments) == "hold"


def test_rules_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    told = {
        "trusted": ["a"], "allow": ["a:*"], "hold": ["*:x"], "deny": ["b:y"],
        "rules": [{"tool": "c:q", "when": {"sql": "select.*"}, "then": "allow"}, {"tool": "c:r", "calls": "n"}],
    }  # fmt: skip
    file.write_text(json.dumps(told))
    rules = Rules.read(file)
    assert rules.trusted == ("a",) and rules.deny == ("b:y",)
    assert rules.rules == (Rule("c:q", {"sql": "select.*"}, "allow"), Rule("c:r", calls="n"))


@pytest.mark.parametrize(
    "told",
    [
        "", "[]", '{"alow": []}', '{"allow": "a:b"}', '{"allow": ["b"]}', '{"allow": [1]}', '{"rules": {}}',
        '{"rules": [{"tool": "a:b"}]}', '{"rules": [{"tool": "a:b", "then": "allow"}]}',
        '{"rules": [{"tool": "a:b", "when": {"x": "("}, "then": "allow"}]}',
        '{"rules": [{"tool": "a:b", "when": {"x": "y"}, "then": "maybe"}]}',
        '{"rules": [{"tool": "a:b", "calls": 3}]}', '{"rules": [{"calls": "x"}]}',
        '{"rules": [{"tool": "a:b", "calls": "x", "then": "allow"}]}',
    ],
)  # fmt: skip
def test_rules_that_can_not_be_meant_are_refused(told: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(told)
    with pytest.raises(ValueError):
        Rules.read(file)


@pytest.mark.parametrize("rule", [{"tool": 3, "calls": "n"}, {"tool": "a:b", "when": [], "then": "hold"},
                                  {"tool": "a:b", "when": {"x": 1}, "then": "hold"}])  # fmt: skip
def test_a_rule_of_other_things_than_texts_is_refused_in_words(rule: Any, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": [rule]}))
    with pytest.raises(ValueError, match="a rule's tool is a text and its when an object of texts"):
        Rules.read(file)


def test_servers_and_their_names() -> None:
    assert read_upstream("mail=https://mail.example/mcp").connection == HttpConnection("https://mail.example/mcp")
    files = read_upstream("files=npx 'server files' /srv").connection
    assert isinstance(files, StdioConnection) and (files.command, files.args) == ("npx", ("server files", "/srv"))
    for wrong in ("mail", "=x", "a b=x", "a_b=x", "a=", "a:b=x", "a='x"):
        with pytest.raises(ValueError):
            read_upstream(wrong)
    one, two = (Upstream(name, HttpConnection("http://127.0.0.1/")) for name in ("one", "two"))
    for wrong_list in ([], [one, one]):
        with pytest.raises(ValueError):
            Upstreams(wrong_list)
    both = Upstreams([one, two])
    assert both.shown(one, "a_b") == "one_a_b" and both.find("one_a_b") == (one, "a_b")
    assert [both.find(name) for name in ("a", "one_", "_a", "three_a")] == [None] * 4
    assert Upstreams([one]).shown(one, "a") == "a" and Upstreams([one]).find("two_a") == (one, "two_a")


def test_secrets_are_in_no_repr() -> None:
    call = HeldCall("ada", "s", "t", "t", {"key": "s3cr3t"})
    assert "s3cr3t" not in repr(call) and "s3cr3t" in call.question()


def test_states_are_for_one_call_and_one_key() -> None:
    states = States(b"k")
    state = states.seal({"a": 1}, "mine")
    assert states.open(state, "mine") == {"a": 1} and States(b"k").open(state, "mine") == {"a": 1}
    for wrong in (state + "x", state[:-1], "x" + state, None, 7, "gopher-mcp.", "gopher-mcp.é.é"):
        assert states.open(wrong, "mine") is None
    assert states.open(state, "theirs") is None and States().open(state, "mine") is None


def test_capabilities_together() -> None:
    one = {"capabilities": {"tools": {"listChanged": False}, "experimental": {"x": {}}}}
    two = {"capabilities": {"tools": {"listChanged": True}, "logging": {}}}
    assert capabilities_of({"a": one, "b": two}, 2) == {"tools": {"listChanged": True}, "logging": {}}
    assert capabilities_of({"b": two, "a": one}, 2)["tools"] == {"listChanged": True}
    assert "prompts" in capabilities_of({"a": one}, 2)  # one could not be asked
