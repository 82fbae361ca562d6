"""The gateway's confirmations by themselves: what stands how long, what is used up, what a cancelled call leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest

from gopher_mcp_python.gateway import approvals as module
from gopher_mcp_python.gateway.approvals import Approvals
from gopher_mcp_python.gateway.held import HeldCall
from gopher_mcp_python.store.errors import StoreError
from tests.support.gateways import memory_store, run

CALL = HeldCall("ada", "vault", "erase", "erase", {"path": "/a"})
NOWHERE = "el_" + "A" * 22


class Made:
    """A store, its approvals, and how often the work was done."""

    def __init__(self, **options: Any) -> None:
        self.store = memory_store()
        self.approvals = Approvals(self.store, **options)
        self.worked = 0

    async def asked(self) -> str:
        return (await self.approvals.create(CALL)).id

    async def confirmed(self) -> str:
        id = await self.asked()
        await self.approvals.answer(CALL, id, True, "laptop")
        return id

    async def work(self) -> str:
        self.worked += 1
        return "done"


def test_a_confirmation_waits_five_minutes_for_its_answer() -> None:
    made = Made()

    async def body() -> None:
        stored = made.store.get("ada", await made.asked())
        assert stored.expires_at - stored.created_at == timedelta(seconds=300)

    run(body())


@pytest.mark.parametrize(("decline_s", "found"), [(60.0, "declined"), (0.0, "none")])
def test_a_refusal_stands_for_its_time(decline_s: float, found: str) -> None:
    made = Made(decline_s=decline_s)

    async def body() -> None:
        id = await made.asked()
        await made.approvals.answer(CALL, id, False, "laptop")
        assert await made.approvals.find(CALL) == (found, id if found == "declined" else None)

    run(body())


def test_who_turns_away_withdraws_the_question() -> None:
    made = Made()

    async def body() -> None:
        id = await made.asked()
        await made.approvals.withdraw(CALL, id, "laptop")
        assert made.store.get("ada", id).status == "cancelled"
        await made.approvals.withdraw(CALL, id, "laptop")
        await made.approvals.withdraw(CALL, NOWHERE, "laptop")
        assert await made.approvals.find(CALL) == ("none", None)

    run(body())


def test_an_answer_to_what_is_gone_is_an_error() -> None:
    made = Made()

    async def body() -> None:
        with pytest.raises(StoreError, match="no longer in the store"):
            await made.approvals.answer(CALL, NOWHERE, True, "laptop")

    run(body())


def test_a_call_that_was_cancelled_before_anything_was_sent_leaves_nothing_unknown() -> None:
    made = Made()

    async def body() -> None:
        id = await made.confirmed()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await made.approvals.run(CALL, id, made.work)
        assert scope.cancelled_caught and made.worked == 0
        assert made.store.confirmation_state("ada", id) == "used"
        assert await made.approvals.find(CALL) == ("none", None), "it was used, and its outcome is known"

    run(body())


def test_the_outcome_is_recorded_though_the_call_is_cancelled() -> None:
    made = Made()

    async def body() -> None:
        id = await made.confirmed()
        assert await made.approvals.run(CALL, id, made.work) == ("ran", "done")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await made.approvals.complete(CALL, id)
        assert await made.approvals.find(CALL) == ("none", None)

    run(body())


def test_an_approval_whose_call_never_began_stands_for_one_more() -> None:
    made = Made()

    async def body() -> None:
        id = await made.confirmed()
        assert await made.approvals.run(CALL, id, made.work) == ("ran", "done")
        assert await made.approvals.run(CALL, id, made.work) == ("unknown", None), "nobody said what came of it"
        made.approvals.keep(id)
        assert await made.approvals.find(CALL) == ("unspent", id)
        assert await made.approvals.run(CALL, id, made.work) == ("ran", "done")
        assert await made.approvals.find(CALL) == ("unknown", id), "it stood once"
        assert await made.approvals.run(CALL, id, made.work) == ("unknown", None)
        assert await made.approvals.run(CALL, id, made.work, resumed=True) == ("ran", "done")
        assert made.worked == 3

    run(body())


def test_it_stands_for_its_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()

    async def body() -> None:
        id = await made.confirmed()
        await made.approvals.run(CALL, id, made.work)
        monkeypatch.setattr(module, "UNSPENT_SECONDS", -1.0)
        made.approvals.keep(id)
        assert await made.approvals.find(CALL) == ("none", None)
        assert await made.approvals.run(CALL, id, made.work) == ("used", None), "that nothing ran is recorded"

    run(body())


def test_of_many_that_wait_for_their_next_round_the_oldest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_GOING", 2)
    waiting = Approvals(memory_store())
    tokens = {id: waiting.park(id) for id in ("a", "b", "c")}
    assert not waiting.goes_on("a", tokens["a"])
    assert not waiting.goes_on("b", tokens["c"])
    for id in ("b", "c"):
        assert waiting.goes_on(id, tokens[id])
        assert not waiting.goes_on(id, tokens[id]), "no round is made twice"


def test_an_outcome_that_cannot_be_recorded_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = Made()

    async def body() -> None:
        id = await made.confirmed()
        made.store.close()
        await made.approvals.complete(CALL, id)
        assert f"The outcome of the confirmed call {id} could not be recorded" in caplog.text

    run(body())
