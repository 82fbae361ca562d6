"""From a factory's arguments to an engine's agent: one way for all eight factories."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import first_step, sdk_import, sdk_version, stopping
from .elicitation import GopherAgentElicitationOptions
from .elicitor import Elicitor
from .engines import Choice, choose
from .engines.base import CreateSpec, EngineAgent, Factory
from .errors import AgentError, ApiKeyError
from .runtime_options import CreateOptionsInput, GopherAgentCreateOptions, checked_headers, normalize_create_options
from .server_config import named_root

if TYPE_CHECKING:
    from .config import GopherAgentConfig

__all__ = ["Made", "factory_of", "is_sendable", "make", "options_for_agent"]

_ROUTE_KEYS: dict[Factory, str | None] = {
    "api_key": None,
    "server_id": "serverId",
    "server_name": "serverName",
    "gateway_id": "gatewayId",
    "gateway_name": "gatewayName",
}


#: What the embedded engine consists of, the transport that most servers need included.
_EMBEDDED = ("gopher_mcp_python.engines.embedded", "mcp.client.streamable_http")


@dataclass(frozen=True, slots=True)
class Made:
    """A new agent of an engine, with what answers for it."""

    engine: EngineAgent
    elicitor: Elicitor
    server: str
    why: str


def make(
    factory: Factory, provider: str, model: str, target: str, api_key: str | None, runtime_options: CreateOptionsInput
) -> Made:
    """Normalises, chooses the engine, signs in where needed, creates. Raises ValueError for options of the wrong kind,
    AgentError and its kinds for everything else."""
    _check_texts(provider=provider, model=model, **{_TARGET_NAMES.get(factory, "api_key"): target or api_key})
    objects = list(_objects(target)) if factory == "json" else []
    _check_headers(objects)
    options = options_for_agent(runtime_options)
    wanted = options.elicitation
    choice = choose(
        options.engine,
        explicit_elicitation=wanted.explicit,
        elicitation_enabled=wanted.enabled,
        embedded_only=_embedded_only(provider, objects),
    )
    server = _label(factory, target)
    sign_ins = first_step.sign_ins(options)
    known_servers = None
    # The library fetches by itself, but from its own service alone; otherwise only the sign-ins need to know.
    needed = choice.engine == "embedded" or bool(named_root())
    if factory in _ROUTE_KEYS and (needed or sign_ins is not None):
        if choice.engine == "embedded":
            sdk_import.load_meanwhile(*_EMBEDDED)
        known_servers = _servers_of(factory, api_key or "", target, needed=needed)
        if needed:
            factory, target = "json", known_servers or ""
    stopping.check("the creation of the agent")  # what came before it can't be ended, and may have taken long
    elicitor = Elicitor(wanted if choice.elicitation else GopherAgentElicitationOptions(enabled=False))
    spec = CreateSpec(factory, provider, model, target, api_key, options, elicitor, server, sign_ins, known_servers)
    engine = _create(choice, spec)
    return Made(engine, elicitor, server, choice.why)


def _embedded_only(provider: str, objects: list[dict[str, Any]]) -> str | None:
    """What of this agent the native library can't do at all."""
    if provider == "DirectProvider":
        return "DirectProvider exists only in the embedded engine"
    if any(isinstance(item.get("command"), str) and not item.get("url") for item in objects):
        return "local servers (a command instead of a URL) run only in the embedded engine"
    return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every object in a server configuration, however deep; nothing where the engine will say that it is no JSON."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _check_headers(objects: list[dict[str, Any]]) -> None:
    """Headers that stand in a configuration go by the same rules as those of the options. Raises ValueError."""
    for item in objects:
        if isinstance(item.get("headers"), dict):
            checked_headers(item["headers"])


def options_for_agent(options: CreateOptionsInput) -> GopherAgentCreateOptions:
    """Create options that are never None and whose elicitation is enabled unless the caller switched it off.

    A token in GOPHER_ACCESS_TOKEN counts where they bring none: the native library sends it anyway.
    """
    given = normalize_create_options(options) or GopherAgentCreateOptions()
    token = os.environ.get("GOPHER_ACCESS_TOKEN", "").strip()
    return given.with_token(token) if token and not given.has_authorization else given


def factory_of(config: GopherAgentConfig) -> tuple[Factory, str, str | None]:
    """Factory, target and API key of a configuration; the API key counts when both are there. Raises AgentError when
    neither is, ValueError when it is no configuration."""
    if not hasattr(config, "has_api_key"):
        raise ValueError(
            f"create takes a GopherAgentConfig, not {type(config).__name__}; JSON is for create_with_server_config"
        )
    if config.has_api_key():
        return "api_key", "", config.api_key
    if not config.has_server_config():
        raise AgentError("Failed to create agent: the configuration has neither api_key nor server_config")
    return "json", config.server_config or "", None


_TARGET_NAMES: dict[Factory, str] = {
    "json": "server_config",
    "url": "url",
    "server_id": "server_id",
    "server_name": "server_name",
    "gateway_id": "gateway_id",
    "gateway_name": "gateway_name",
}


def _check_texts(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, str) or not value.strip():
            raise AgentError(f"Failed to create agent: {name} must be a non-empty string")
        if not is_sendable(value):
            raise AgentError(f"Failed to create agent: {name} holds a NUL character or half of a surrogate pair")


def is_sendable(text: str) -> bool:
    """Whether a text can go to an engine: no NUL (C strings end there), and representable in UTF-8."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _create(choice: Choice, spec: CreateSpec) -> EngineAgent:
    if choice.engine == "native":
        from .engines.native import create as create_native

        return create_native(spec)
    with sdk_version.needed_for("the embedded engine"):
        sdk_import.load(*_EMBEDDED)
        from .engines.embedded import create as create_embedded

    return create_embedded(spec)


def _servers_of(factory: Factory, api_key: str, target: str, *, needed: bool) -> str | None:
    """The configuration behind a factory of the Gopher service. Where it is not needed, None lets the native library
    say what is wrong; a refused key is told right away."""
    from .server_config import ServerConfig, ServerConfigRoute

    key = _ROUTE_KEYS[factory]
    try:
        return ServerConfig.fetch(api_key, None if key is None else ServerConfigRoute(key, target))
    except ApiKeyError:
        raise
    except AgentError:
        if needed:
            raise
        return None


def _label(factory: Factory, target: str) -> str:
    """What people see as the asker: the host of a URL, the only server's name, the name or id that was given."""
    if factory == "url":
        from urllib.parse import urlsplit

        try:
            return urlsplit(target).hostname or "MCP server"
        except ValueError:
            return "MCP server"
    if factory == "json":
        return _only_server(target) or "MCP server"
    return target or "MCP server"


def _only_server(text: str) -> str | None:
    try:
        value = json.loads(text)
        servers = value.get("servers") or value.get("data", {}).get("servers")
        (server,) = servers
        name = server.get("name")
    except (ValueError, AttributeError, TypeError):
        return None  # the engine reads it properly and says what is wrong with it
    return name if isinstance(name, str) and name else None
