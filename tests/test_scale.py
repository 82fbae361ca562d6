"""docs/scale.md: its tables and its picture are what was measured and simulated; the simulation does as queues do."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import model, page
from benchmarks.scale.__main__ import MEASURED, SIMULATED, _rounded
from benchmarks.scale.queues import Log, Place, Process, Simulation

pytestmark = pytest.mark.source_tree


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    return dict(json.loads(MEASURED.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return dict(json.loads(SIMULATED.read_text(encoding="utf-8")))


# ---- the page -------------------------------------------------------------------------------------------------------


def test_the_page_says_what_was_found(measured: dict[str, Any], simulated: dict[str, Any]) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.filled(text, measured, simulated)
    assert text.count("<!-- table: ") == text.count("<!-- end -->") == 9
    assert page.PLOT.read_text(encoding="utf-8") == page.plot(simulated)


def test_what_was_simulated_follows_from_what_was_measured(measured: dict[str, Any], simulated: dict[str, Any]) -> None:
    found = {
        "full_at": {
            "shipped": model.full_at(measured, model.SHIPPED),
            "remedied": model.full_at(measured, model.REMEDIED),
        },
        "checked": [model.closed(measured, point["connections"]) for point in measured["pairs"]],
    }
    assert _rounded(found) == {name: simulated[name] for name in found}


def test_the_page_names_day_and_machine(measured: dict[str, Any]) -> None:
    of = measured["machine"]
    assert {"date", "kind", "cores", "python", "postgres", "load_before"} <= of.keys()
    assert str(of["date"]) in page.PAGE.read_text(encoding="utf-8")


def test_limits_of_the_page_are_those_of_the_program() -> None:
    from gopher_mcp_python.serve import feed

    assert model.FEEDS == feed.ALL
    script = (Path(feed.__file__).parent / "page" / "page.js").read_text(encoding="utf-8")
    assert f"POLL_BESIDE_FEED = {model.POLL_S * 1000:.0f};" in script


# ---- arithmetic -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", model.USERS)
@pytest.mark.parametrize("design", [model.SHIPPED, model.REMEDIED], ids=["shipped", "remedied"])
def test_as_few_databases_as_do(measured: dict[str, Any], users: int, design: model.Design) -> None:
    shards = model.shards_for(measured, users, design)
    assert model._worst(measured, users, design, shards) <= model.FILL
    assert shards == 1 or model._worst(measured, users, design, shards - 1) > model.FILL


def test_a_part_is_full_where_it_is_said_to_be(measured: dict[str, Any]) -> None:
    full = model.full_at(measured, model.SHIPPED)
    for name in ("feeds", "audit_chain", "writes"):
        assert model.busy(measured, full[name] * 0.99, model.SHIPPED)[name] < 1
        assert model.busy(measured, full[name] * 1.01, model.SHIPPED)[name] >= 1


# ---- queues ---------------------------------------------------------------------------------------------------------


def test_one_place_serves_one_after_the_other() -> None:
    simulation, place, ended = Simulation(), Place(1), []

    def use(name: str) -> Process:
        yield "take", place
        yield "pass", 2.0
        yield "give", place
        ended.append((simulation.now, name))

    for name in "abc":
        simulation.start(use(name))
    simulation.run(10.0)
    assert ended == [(2.0, "a"), (4.0, "b"), (6.0, "c")]
    place.count(simulation.now, 0)
    assert place.busy == 6.0 and place.taken == 0 and not place.queue


def test_who_comes_during_a_flush_shares_the_next_one() -> None:
    simulation, ended = Simulation(), []
    log = Log(lambda: 1.0)

    def commit(name: str, at: float) -> Process:
        yield "pass", at
        yield "flush", log
        ended.append((simulation.now, name))

    for name, at in (("a", 0.0), ("b", 0.2), ("c", 0.9)):
        simulation.start(commit(name, at))
    simulation.run(10.0)
    assert ended == [(1.0, "a"), (2.0, "b"), (2.0, "c")]
    assert log.busy == 2.0


def test_a_queue_waits_as_long_as_the_books_say() -> None:
    """M/M/1 at 0.7: the mean time in the system is 1 / (service rate - arrival rate)."""
    simulation, place, chance = Simulation(), Place(1), random.Random(7)
    times: list[float] = []

    def use() -> Process:
        begin = simulation.now
        yield "take", place
        yield "pass", chance.expovariate(1.0)
        yield "give", place
        times.append(simulation.now - begin)

    def arrive() -> None:
        simulation.start(use())
        simulation.at(simulation.now + chance.expovariate(0.7), arrive)

    simulation.at(0.0, arrive)
    simulation.run(100_000.0)
    assert sum(times) / len(times) == pytest.approx(1 / 0.3, rel=0.05)
    assert place.busy / simulation.now == pytest.approx(0.7, rel=0.02)


def test_writes_pile_up_when_more_come_than_the_chain_takes(measured: dict[str, Any]) -> None:
    few = model.opened(measured, 20.0, model.SHIPPED, replicas=2, writes=2_000)
    many = model.opened(measured, 5_000.0, model.SHIPPED, replicas=2, writes=4_000)
    assert not few["piles_up"] and few["done_per_second"] == pytest.approx(20, rel=0.1)
    assert many["piles_up"] and many["done_per_second"] < 1 / model.flush_s(measured)
