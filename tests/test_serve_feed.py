"""The feed of changes: one's own only, picked up again after a break, bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.serve import feed as feed_module
from gopher_mcp_python.serve.feed import Feed, Subscription, TooMany
from gopher_mcp_python.store import model
from tests.support.serving import BASE, Serving, starting


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    with starting(tmp_path) as begin:
        yield begin


def test_changes_of_ones_own_come_at_once(start: Callable[..., Serving]) -> None:
    serving = start()
    with serving.feed() as mine, serving.feed(serving.other) as theirs:
        assert serving.request("HEAD", f"{BASE}/events").headers["content-type"].startswith("text/event-stream")
        assert mine.next()["event"] == theirs.next()["event"] == "ready"
        asked = serving.store.create("ada", model.string_input("A secret question"))
        assert json.loads(mine.next()["data"]) == {"id": asked.id, "status": "pending"}
        serving.respond(asked.id, {"value": "x"})
        assert json.loads(mine.next()["data"]) == {"id": asked.id, "status": "responded"}
        other = serving.store.create("bob", model.string_input("?"))
        assert json.loads(theirs.next()["data"])["id"] == other.id, "nothing of ada's came before"


def test_after_a_break_what_was_missed_comes(start: Callable[..., Serving]) -> None:
    serving = start()
    with serving.feed() as feed:
        feed.next()
        first = serving.store.create("ada", model.string_input("?"))
        last = feed.next()["id"]
    second = serving.store.create("ada", model.string_input("?"))
    serving.store.create("bob", model.string_input("?"))
    serving.store.cancel("ada", first.id)
    with serving.feed(last=last) as feed:
        got = [json.loads(feed.next()["data"]) for _ in range(2)]
    assert [(one["id"], one["status"]) for one in got] == [(second.id, "pending"), (first.id, "cancelled")]
    for unknown in ("x", "deadbeef-1", last.split("-")[0] + "-999999", last.split("-")[0] + "-x"):
        with serving.feed(last=unknown) as feed:
            assert feed.next()["event"] == "reset", unknown


def test_heartbeats_and_revoked_tokens(start: Callable[..., Serving]) -> None:
    serving = start(heartbeat_s=0.05)
    token = serving.tokens.add("ada", ["answer"], name="gone")
    with serving.feed(token) as feed:
        assert feed.next()["event"] == "ready"
        assert feed.next(heartbeats=True)["event"] == "heartbeat"
        (entry,) = (one for one in serving.tokens.entries() if one.name == "gone")
        serving.tokens.revoke(entry.id)
        while (event := feed.next(heartbeats=True))["event"] == "heartbeat":
            pass
        assert event == {"event": "end"}


def test_a_revoked_token_hears_no_more_however_much_happens(start: Callable[..., Serving]) -> None:
    serving = start(heartbeat_s=0.3)
    token = serving.tokens.add("ada", ["answer"], name="gone")
    with serving.feed(token) as feed:
        assert feed.next()["event"] == "ready"
        (entry,) = (one for one in serving.tokens.entries() if one.name == "gone")
        serving.tokens.revoke(entry.id)
        for _ in range(5_000):  # never is there a pause as long as a heartbeat
            serving.store.create("ada", model.string_input("?"))
            if (event := feed.next())["event"] != "change":
                break
        assert event == {"event": "end"}


def test_bounded_subscribers_who_give_their_place_back(start: Callable[..., Serving]) -> None:
    serving = start()
    serving.app.state.feed._per_caller = 1
    with serving.feed() as feed:
        feed.next()
        full = serving.get(f"{BASE}/events")
        assert full.status == 429 and full.headers["retry-after"] == "10"
        with serving.feed(serving.other) as other:
            assert other.next()["event"] == "ready"
    for _ in range(2000):
        if not serving.app.state.feed._subscribers:
            break
        assert serving.get("/health").status == 200
    with serving.feed() as feed:
        assert feed.next()["event"] == "ready"


# ---- The feed by itself ----------------------------------------------------------------------------------------------


def run(step: Callable[[Feed], Any]) -> None:
    async def main() -> None:
        feed = Feed(per_caller=3)
        feed.open()
        await step(feed)
        feed.close()

    asyncio.run(main())


async def _texts(subscription: Subscription, count: int) -> list[str]:
    async def yes() -> bool:
        return True

    found: list[str] = []
    async for chunk in subscription.chunks(20, yes):
        found.append(chunk.decode())
        if len(found) > count:
            break
    return found[1:]


def test_a_slow_reader_is_told_to_read_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "QUEUE", 3)

    async def step(feed: Feed) -> None:
        slow = feed.subscribe("ada", None)
        for number in range(10):
            feed._add("ada", f'{{"id": "{number}"}}')
        (first,) = await _texts(slow, 1)
        assert "event: reset" in first and first.startswith("id: ") and "-10\n" in first
        feed._add("ada", '{"id": "11"}')
        assert '{"id": "11"}' in (await _texts(slow, 1))[0]

    run(step)


def test_what_the_store_missed_resets_everybody() -> None:
    async def step(feed: Feed) -> None:
        one, two = feed.subscribe("ada", None), feed.subscribe("bob", None)
        feed._add("ada", "{}")
        last = f"{feed._boot}-1"
        feed.tell_missed()
        await asyncio.sleep(0)
        for subscription in (one, two):
            assert "event: reset" in (await _texts(subscription, 1))[0]
        assert b"event: reset" in b"".join(feed._missed("ada", last)), "also who comes back later"
        assert feed._missed("ada", f"{feed._boot}-{feed._number}") == []

    run(step)


def test_places_are_counted_and_given_back() -> None:
    async def step(feed: Feed) -> None:
        taken = [feed.subscribe("ada", None) for _ in range(3)]
        with pytest.raises(TooMany):
            feed.subscribe("ada", None)
        taken[0].close()
        taken[0].close()
        feed.subscribe("ada", None)
        feed.subscribe("bob", None)

    run(step)


def test_a_change_after_the_end_is_nothing() -> None:
    feed = Feed()
    feed.tell("ada", "el", "pending")

    async def main() -> None:
        feed.open()

    asyncio.run(main())
    feed.tell("ada", "el", "pending")
