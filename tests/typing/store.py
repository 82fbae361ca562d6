"""The store where type checkers know what is taken; checked by `mypy --strict` and never run."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import assert_type

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.store import (
    AsyncStore,
    Change,
    FileAnchor,
    FileKeys,
    Housekeeping,
    KeyProvider,
    KeyRing,
    MemoryBackend,
    Outcome,
    SqliteBackend,
    Store,
    StoredElicitation,
    Verification,
    confirmation,
    keys_from_environment,
    mcp_form,
    multi_choice,
)


class KeyService:
    def current(self) -> tuple[str, bytes]:
        return "key-1", bytes(32)

    def find(self, key_id: str) -> bytes | None:
        return None


def hear(change: Change) -> None:
    assert_type(change.id, "str | None")


def use(request: GopherAgentElicitationRequest) -> None:
    keys: KeyProvider = keys_from_environment() or KeyService()
    with Store(SqliteBackend("store.db"), keys, rate=None, anchor=FileAnchor("anchor")) as store:
        asked = store.create("ada", mcp_form(request), timeout_s=1.5)
        assert_type(asked, StoredElicitation)
        outcome = store.respond("ada", asked.id, {"action": "decline"}, by="grace")
        assert_type(outcome, Outcome)
        assert_type(
            outcome.kind, Literal["recorded", "invalid", "validation_failed", "already_recorded", "conflict"]
        )
        assert_type(store.wait("ada", asked.id, timeout_s=3, still_wanted=lambda: True), StoredElicitation)
        if store.consume("ada", asked.id, tool="t", arguments={}) == "consumed":
            store.complete("ada", asked.id)
        listed: list[StoredElicitation] = store.pending("ada", limit=5, after=asked.id)
        assert_type((listed, store.pending("ada").next), tuple[list[StoredElicitation], str | None])
        assert_type(store.verify(), Verification)
        end = store.subscribe(hear)
        with Housekeeping(store, keep_days=7):
            end()
    Store(MemoryBackend(), KeyRing.generate())
    Store(MemoryBackend(), FileKeys("keys"))
    Store(MemoryBackend(), "key")  # type: ignore[arg-type]
    multi_choice("Which?", ["a", 1])  # type: ignore[list-item]
    confirmation("Really?", arguments=[1])  # type: ignore[arg-type]


async def use_awaited(store: Store) -> None:
    awaited = AsyncStore(store)
    asked = await awaited.create_confirmation("ada", tool="t", arguments={"n": 1})
    assert_type(await awaited.wait("ada", asked.id), StoredElicitation)
    answer: Any = await awaited.result("ada", asked.id)
    assert_type(await awaited.is_confirmed("ada", asked.id), bool)
    print(answer is None)
