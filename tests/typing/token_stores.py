"""How programs use the token stores, checked by `mypy --strict` and never run (see public_api.py)."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import assert_type

from gopher_mcp_python import (
    AgentError,
    FileTokenStore,
    GopherAgentOAuthOptions,
    GopherAgentTokenRecord,
    GopherAgentTokenStore,
    KeyringTokenStore,
    MemoryTokenStore,
    TokenStoreError,
)

stores: list[GopherAgentTokenStore] = [
    MemoryTokenStore(),
    KeyringTokenStore("my program"),
    FileTokenStore(),
    FileTokenStore(Path("tokens"), key=b"0" * 32),
    FileTokenStore("tokens", key="a passphrase"),
]
FileTokenStore("tokens", "a passphrase")  # type: ignore[call-arg]
FileTokenStore(key=7)  # type: ignore[arg-type]

GopherAgentOAuthOptions(token_store=stores[0])
GopherAgentOAuthOptions(token_store="keyring")
GopherAgentOAuthOptions(token_store="disk")  # type: ignore[arg-type]


async def use(store: FileTokenStore | KeyringTokenStore | MemoryTokenStore) -> None:
    assert_type(await store.get("key"), GopherAgentTokenRecord | None)
    await store.set("key", GopherAgentTokenRecord("token", expires_at=1.5))
    await store.set("key", "token")  # type: ignore[arg-type]
    assert_type(await store.keys(), list[str])
    assert_type(await store.clear(), int)
    assert_type(FileTokenStore().path, Path)


error: AgentError = TokenStoreError("text")
