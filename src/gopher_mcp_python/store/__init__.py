"""Questions kept until somebody answers them elsewhere: the elicitation store (docs/store.md).

    from gopher_mcp_python.store import FileKeys, SqliteBackend, Store, single_choice

    with Store(SqliteBackend("elicitations.db"), FileKeys("elicitations.keys")) as store:
        asked = store.create("ada", single_choice("Deploy where?", ["staging", "production"]))

Every name below is loaded when it is first used.
"""

from __future__ import annotations

from ..lazily import names_of

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the time that importing typing takes
if TYPE_CHECKING:
    from ..handlers.store import StoreElicitationHandler
    from .aio import AsyncStore
    from .anchors import FileAnchor, UrlAnchor
    from .audit import Verification
    from .core import Store
    from .errors import ElicitationNotFound, NoAnswer, RateLimited, SealError, StoreError
    from .housekeeping import Housekeeping
    from .keys import FileKeys, KeyProvider, KeyRing, keys_from_environment, keys_from_keyring
    from .listing import Page
    from .memory import MemoryBackend
    from .model import (
        MAX_RETRIES,
        ElicitationStatus,
        ElicitationType,
        NewElicitation,
        StoredElicitation,
        confirmation,
        file_upload,
        mcp_form,
        mcp_url,
        multi_choice,
        single_choice,
        string_input,
    )
    from .outcome import Change, Outcome
    from .postgres import PostgresBackend
    from .responses import response_schema, validate_response
    from .sqlite import SqliteBackend

__all__ = [
    "MAX_RETRIES",
    "AsyncStore",
    "Change",
    "ElicitationNotFound",
    "ElicitationStatus",
    "ElicitationType",
    "FileAnchor",
    "FileKeys",
    "Housekeeping",
    "KeyProvider",
    "KeyRing",
    "MemoryBackend",
    "NewElicitation",
    "NoAnswer",
    "Outcome",
    "Page",
    "PostgresBackend",
    "RateLimited",
    "SealError",
    "SqliteBackend",
    "Store",
    "StoreElicitationHandler",
    "StoreError",
    "StoredElicitation",
    "UrlAnchor",
    "Verification",
    "confirmation",
    "file_upload",
    "keys_from_environment",
    "keys_from_keyring",
    "mcp_form",
    "mcp_url",
    "multi_choice",
    "response_schema",
    "single_choice",
    "string_input",
    "validate_response",
]

__getattr__, __dir__ = names_of(__name__, {
    ".handlers.store": ("StoreElicitationHandler",),
    "aio": ("AsyncStore",),
    "anchors": ("FileAnchor", "UrlAnchor"),
    "audit": ("Verification",),
    "core": ("Store",),
    "errors": ("ElicitationNotFound", "NoAnswer", "RateLimited", "SealError", "StoreError"),
    "housekeeping": ("Housekeeping",),
    "keys": ("FileKeys", "KeyProvider", "KeyRing", "keys_from_environment", "keys_from_keyring"),
    "listing": ("Page",),
    "memory": ("MemoryBackend",),
    "model": (
        "MAX_RETRIES", "ElicitationStatus", "ElicitationType", "NewElicitation", "StoredElicitation", "confirmation",
        "file_upload", "mcp_form", "mcp_url", "multi_choice", "single_choice", "string_input",
    ),
    "outcome": ("Change", "Outcome"),
    "postgres": ("PostgresBackend",),
    "responses": ("response_schema", "validate_response"),
    "sqlite": ("SqliteBackend",),
})  # fmt: skip
