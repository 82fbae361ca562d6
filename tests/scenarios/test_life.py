"""Agents that begin and end: concurrently, in the middle of things, again and again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.servers import McpServer
from tests.support.variants import Variant, on_both

from .conftest import Played

Play = Callable[..., Played]


@on_both
def test_four_concurrent_runs_on_two_agents(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("concurrent", variant, server.url)
    assert all(f"plain: run-{at}" in text for at, text in enumerate(played["texts"]))
    assert ["accept" in text for text in played["asked"]] == [True, False, True, False]
    assert ["decline" in text for text in played["asked"]] == [False, True, False, True]
    assert played["requests"] == [2, 2]
    assert sorted(server.actions()) == ["accept", "accept", "decline", "decline"]


@on_both
@pytest.mark.timeout(300)
def test_dispose_during_run_two_hundred_times(play: Play, server: McpServer, variant: Variant) -> None:
    played = play("dispose_during_run", variant, server.url, limit=280, more={"times": 200})
    outcomes = played["outcomes"]
    assert sum(outcomes.values()) == 200
    assert set(outcomes) <= {"AgentError", "None"}, outcomes
    assert outcomes["AgentError"] >= 150, "most runs were really under way"


@pytest.mark.long
@on_both
@pytest.mark.timeout(1800)
def test_dispose_during_run_two_thousand_times(play: Play, server: McpServer, variant: Variant) -> None:
    outcomes = play("dispose_during_run", variant, server.url, limit=1700, more={"times": 2000})["outcomes"]
    assert set(outcomes) <= {"AgentError", "None"}, outcomes


@on_both
def test_an_elicitation_at_create_time_is_answered(
    play: Play, server_with: Callable[..., McpServer], variant: Variant
) -> None:
    server = server_with("--elicit-at-start")
    played = play("create_time", variant, server.url)
    assert "plain: ok" in played["text"]
    assert len(played["requests"]) == 1 and server.actions() == ["accept"]


@on_both
def test_the_same_work_three_times_leaves_nothing_more_behind(
    play: Play, server: McpServer, variant: Variant
) -> None:
    rounds = play("leak", variant, server.url)["rounds"]
    assert not any(rounds[0]["counts"].values()), rounds
    assert rounds[0] == rounds[1] == rounds[2]
