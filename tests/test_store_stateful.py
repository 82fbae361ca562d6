"""Any sequence of acts leads to the same outcomes in memory and in SQLite, and to those of a model of a few lines."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gopher_mcp_python.store import ElicitationNotFound, Store
from tests.support.store_places import MemoryPlace, SqlitePlace

CALLERS = ("ada", "eve")
ARGUMENTS: tuple[dict[str, Any], ...] = ({"n": 1}, {"n": 1.0}, {"n": True})
ANSWERS: tuple[Any, ...] = ({"confirmed": True}, {"confirmed": False}, {"confirmed": 1}, {}, None)
TIMEOUT, APPROVAL = 100, 50


class Model:
    """What is expected of one confirmation."""

    def __init__(self, caller: str, arguments: int, now: float) -> None:
        self.caller, self.arguments, self.ends = caller, arguments, now + TIMEOUT
        self.status, self.retries, self.answer, self.ended_at = "pending", 0, -1, 0.0
        self.consumed = self.completed = False

    def at(self, now: float) -> Model:
        if self.status == "pending" and now >= self.ends:
            self.status = "expired"
        return self

    def respond(self, answer: int, now: float) -> tuple[str, str]:
        if self.at(now).status != "pending":
            same = self.status == "responded" and answer == self.answer
            return ("already_recorded" if same else "conflict", self.status)
        if answer > 1:
            self.retries += 1
            self.status = "validation_failed" if self.retries == 3 else "pending"
            return ("validation_failed" if self.retries == 3 else "invalid", self.status)
        self.status, self.answer, self.ended_at = "responded", answer, now
        return ("recorded", self.status)

    def cancel(self, now: float) -> tuple[str, str]:
        if self.at(now).status != "pending":
            return ("already_recorded" if self.status == "cancelled" else "conflict", self.status)
        self.status = "cancelled"
        return ("recorded", self.status)

    def state(self, now: float) -> str:
        if self.at(now).status != "responded":
            return "failed" if self.status == "validation_failed" else self.status
        if self.answer:
            return "declined"
        if self.consumed:
            return "used"
        return "approved" if now - self.ended_at <= APPROVAL else "expired"

    def consume(self, arguments: int, now: float) -> str:
        if arguments != self.arguments:
            return "mismatch"
        state = self.state(now)
        if state == "used":
            return "used" if self.completed else "unknown"
        if state == "approved":
            self.consumed = True
            return "consumed"
        return state


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.places = (MemoryPlace(still=True), SqlitePlace(self.folder, still=True))
        self.now = 0.0
        self.stores = [place.open(approval_s=APPROVAL) for place in self.places]
        self.models: list[Model] = []
        self.ids: list[tuple[str, ...]] = []

    def teardown(self) -> None:
        for place in self.places:
            place.close()
        shutil.rmtree(self.folder)

    def both(self, act: Any) -> Any:
        """The outcome, which is the same in both."""
        found = [act(store, at) for at, store in enumerate(self.stores)]
        assert found[0] == found[1]
        return found[0]

    def pick(self, data: Any) -> int | None:
        return data.draw(st.integers(0, len(self.models) - 1)) if self.models else None

    @rule(caller=st.sampled_from(CALLERS), arguments=st.integers(0, 2))
    def ask(self, caller: str, arguments: int) -> None:
        made = [
            store.create_confirmation(caller, tool="t", arguments=ARGUMENTS[arguments], timeout_s=TIMEOUT).id
            for store in self.stores
        ]
        self.ids.append(tuple(made))
        self.models.append(Model(caller, arguments, self.now))

    @rule(data=st.data(), answer=st.integers(0, 4), caller=st.sampled_from(CALLERS))
    def respond(self, data: Any, answer: int, caller: str) -> None:
        at = self.pick(data)
        if at is None:
            return
        model = self.models[at]

        def act(store: Store, which: int) -> Any:
            try:
                outcome = store.respond(caller, self.ids[at][which], ANSWERS[answer])
            except ElicitationNotFound:
                return None
            return outcome.kind, outcome.status.value, outcome.retries_left, dict(outcome.errors)

        found = self.both(act)
        assert (found and found[:2]) == (model.respond(answer, self.now) if caller == model.caller else None)

    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        at = self.pick(data)
        if at is not None:
            model = self.models[at]
            outcome = self.both(lambda store, which: store.cancel(model.caller, self.ids[at][which]))
            assert (outcome.kind, outcome.status) == model.cancel(self.now)

    @rule(data=st.data(), arguments=st.integers(0, 2), caller=st.sampled_from(CALLERS))
    def consume(self, data: Any, arguments: int, caller: str) -> None:
        at = self.pick(data)
        if at is not None:
            model = self.models[at]
            call: dict[str, Any] = {"tool": "t", "arguments": ARGUMENTS[arguments]}
            found = self.both(lambda store, which: store.consume(caller, self.ids[at][which], **call))
            assert found == (model.consume(arguments, self.now) if caller == model.caller else "absent")

    @rule(data=st.data())
    def complete(self, data: Any) -> None:
        at = self.pick(data)
        if at is not None and self.models[at].consumed:
            self.both(lambda store, which: store.complete(self.models[at].caller, self.ids[at][which]))
            self.models[at].completed = True

    @rule(seconds=st.sampled_from((10, 49, 60)))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        for place in self.places:
            place.pass_time(seconds)

    @rule()
    def sweep(self) -> None:
        due = sum(model.status == "pending" and self.now >= model.ends for model in self.models)
        assert self.both(lambda store, _: store.sweep()) == due
        for model in self.models:
            model.at(self.now)

    @rule()
    def prune(self) -> None:
        self.both(lambda store, _: store.prune(days=10 / 1440))

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        """Another process with the same rows."""
        self.stores[which] = self.places[which].open(approval_s=APPROVAL)

    @invariant()
    def states_agree(self) -> None:
        for at, model in enumerate(self.models):
            state = self.both(lambda store, which, at=at, model=model: store.confirmation_state(
                model.caller, self.ids[at][which]))  # fmt: skip
            assert state == model.state(self.now)
        for caller in CALLERS:
            mine = [at for at, model in enumerate(self.models) if model.caller == caller and model.status == "pending"]
            for which, store in enumerate(self.stores):
                assert {one.id for one in store.pending(caller)} == {self.ids[at][which] for at in mine}

    @invariant()
    def audits_are_whole(self) -> None:
        found = self.both(lambda store, _: (store.verify().ok, store.verify().records))
        assert found[0]


TestStates = Machine.TestCase
TestStates.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
