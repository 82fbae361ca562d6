"""Run an MCP agent and answer what its servers ask of the user.

    from gopher_mcp_python import GopherAgent

    with GopherAgent.create_with_url("AnthropicProvider", "claude-sonnet-4-5", "https://mcp.example/mcp") as agent:
        print(agent.run("get mail profile"))

Importing this package opens no vendor library, starts no thread and imports none of its heavy parts: every name below
is loaded when it is first used.
"""

from __future__ import annotations

from .lazily import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .agent import GopherAgent
    from .config import GopherAgentConfig, GopherAgentConfigBuilder
    from .diagnostics import diagnose
    from .elicitation import (
        GopherAgentElicitationAction,
        GopherAgentElicitationHandler,
        GopherAgentElicitationOptions,
        GopherAgentElicitationRequest,
        GopherAgentElicitationResponse,
        non_blocking,
    )
    from .errors import (
        AgentError,
        ApiKeyError,
        ConnectionError,
        ElicitationWarning,
        NativeMismatchWarning,
        TimeoutError,
        UnsafeUrlError,
    )
    from .events import GopherAgentEvent
    from .handlers.chain import HandlerChain
    from .integrations.callback import elicitation_callback
    from .mcp_toolset import McpTool, McpToolset
    from .oauth.errors import SignInError
    from .oauth.filestore import FileTokenStore
    from .oauth.keyring_store import KeyringTokenStore
    from .oauth.stores import MemoryTokenStore, TokenStoreError
    from .policy import ElicitationPolicy
    from .result import AgentResult, AgentResultBuilder, AgentResultStatus
    from .runtime_options import (
        GopherAgentCreateOptions,
        GopherAgentOAuthOptions,
        GopherAgentRuntimeOptions,
        GopherAgentTokenRecord,
        GopherAgentTokenStore,
    )
    from .server_config import ServerConfig, ServerConfigRoute
    from .streaming import GopherAgentAsyncStream, GopherAgentStream

__version__ = "0.2.0"

__all__ = [
    "AgentError",
    "AgentResult",
    "AgentResultBuilder",
    "AgentResultStatus",
    "ApiKeyError",
    "ConnectionError",
    "ElicitationPolicy",
    "ElicitationWarning",
    "FileTokenStore",
    "GopherAgent",
    "GopherAgentAsyncStream",
    "GopherAgentConfig",
    "GopherAgentConfigBuilder",
    "GopherAgentCreateOptions",
    "GopherAgentElicitationAction",
    "GopherAgentElicitationHandler",
    "GopherAgentElicitationOptions",
    "GopherAgentElicitationRequest",
    "GopherAgentElicitationResponse",
    "GopherAgentEvent",
    "GopherAgentOAuthOptions",
    "GopherAgentRuntimeOptions",
    "GopherAgentStream",
    "GopherAgentTokenRecord",
    "GopherAgentTokenStore",
    "HandlerChain",
    "KeyringTokenStore",
    "McpTool",
    "McpToolset",
    "MemoryTokenStore",
    "NativeMismatchWarning",
    "ServerConfig",
    "ServerConfigRoute",
    "SignInError",
    "TimeoutError",
    "TokenStoreError",
    "UnsafeUrlError",
    "__version__",
    "diagnose",
    "elicitation_callback",
    "non_blocking",
]

_get, _known = names_of(
    __name__,
    {
        "agent": ("GopherAgent",),
        "config": ("GopherAgentConfig", "GopherAgentConfigBuilder"),
        "diagnostics": ("diagnose",),
        "elicitation": (
            "GopherAgentElicitationAction",
            "GopherAgentElicitationHandler",
            "GopherAgentElicitationOptions",
            "GopherAgentElicitationRequest",
            "GopherAgentElicitationResponse",
            "non_blocking",
        ),
        "errors": (
            "AgentError",
            "ApiKeyError",
            "ConnectionError",
            "ElicitationWarning",
            "NativeMismatchWarning",
            "TimeoutError",
            "UnsafeUrlError",
        ),
        "events": ("GopherAgentEvent",),
        "handlers.chain": ("HandlerChain",),
        "integrations.callback": ("elicitation_callback",),
        "mcp_toolset": ("McpTool", "McpToolset"),
        "oauth.filestore": ("FileTokenStore",),
        "oauth.keyring_store": ("KeyringTokenStore",),
        "oauth.errors": ("SignInError",),
        "oauth.stores": ("MemoryTokenStore", "TokenStoreError"),
        "policy": ("ElicitationPolicy",),
        "result": ("AgentResult", "AgentResultBuilder", "AgentResultStatus"),
        "runtime_options": (
            "GopherAgentCreateOptions",
            "GopherAgentOAuthOptions",
            "GopherAgentRuntimeOptions",
            "GopherAgentTokenRecord",
            "GopherAgentTokenStore",
        ),
        "server_config": ("ServerConfig", "ServerConfigRoute"),
        "streaming": ("GopherAgentAsyncStream", "GopherAgentStream"),
    },
)
#: Modules that the published package imports with itself, so that `gopher_mcp_python.agent` works without an import.
_MODULES = frozenset(
    {
        "agent",
        "config",
        "elicitation",
        "elicitation_runtime",
        "errors",
        "oauth_browser",
        "result",
        "runtime_options",
        "server_config",
    }
)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_known(), *_MODULES})


def _say_mismatch() -> None:
    """Warns once a process when a native package is installed that can't work here; costs no more than a look."""
    import os

    if os.environ.get("GOPHER_MCP_ENGINE", "").strip().lower() == "embedded":
        return
    try:
        from .native import quick_check
    except ImportError:
        return
    reason = quick_check()
    if reason:
        from .mismatch import warn_once

        warn_once(reason)


_say_mismatch()
