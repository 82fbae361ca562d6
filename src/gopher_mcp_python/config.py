"""The configuration that `GopherAgent.create` takes, and its builder."""

from __future__ import annotations

from collections.abc import Mapping

from .runtime_options import (
    CreateOptionsInput,
    GopherAgentCreateOptions,
    bearer,
    normalize_create_options,
)

__all__ = ["GopherAgentConfig", "GopherAgentConfigBuilder"]


class GopherAgentConfig:
    """Provider and model, and where the servers come from: an API key of the Gopher service or a JSON configuration."""

    def __init__(
        self,
        provider: str,
        model: str,
        api_key: str | None = None,
        server_config: str | None = None,
        runtime_options: CreateOptionsInput = None,
    ) -> None:
        """Raises ValueError when an option is of the wrong kind. A configuration without any source of servers can be
        made, as it always could; `GopherAgent.create` refuses it."""
        self._provider = provider
        self._model = model
        self._api_key = api_key
        self._server_config = server_config
        self._runtime_options = normalize_create_options(runtime_options)

    @property
    def provider(self) -> str:
        """The provider's name, such as "AnthropicProvider"."""
        return self._provider

    @property
    def model(self) -> str:
        """The model's name, as its vendor has it."""
        return self._model

    @property
    def api_key(self) -> str | None:
        """The key of the Gopher service; None: the servers come from `server_config`."""
        return self._api_key

    @property
    def server_config(self) -> str | None:
        """The servers as JSON; None: they come from the service."""
        return self._server_config

    @property
    def runtime_options(self) -> GopherAgentCreateOptions | None:
        """The further options, normalised; None: the defaults."""
        return self._runtime_options

    def has_api_key(self) -> bool:
        """Whether the servers come from the Gopher service."""
        return self._api_key is not None

    def has_server_config(self) -> bool:
        """Whether the servers are given as JSON."""
        return self._server_config is not None

    @staticmethod
    def builder() -> GopherAgentConfigBuilder:
        """A builder, which can check what is missing."""
        return GopherAgentConfigBuilder()

    def __repr__(self) -> str:
        source = "api_key=<redacted>" if self.has_api_key() else "server_config=<json>"
        return f"GopherAgentConfig(provider={self._provider!r}, model={self._model!r}, {source})"


class GopherAgentConfigBuilder:
    """Builds a GopherAgentConfig step by step; each method returns the builder. The order of the calls is free:
    a token and headers given here are added to `runtime_options`, whatever came first."""

    def __init__(self) -> None:
        self._provider: str | None = None
        self._model: str | None = None
        self._api_key: str | None = None
        self._server_config: str | None = None
        self._options: GopherAgentCreateOptions | None = None
        self._access_token: str | None = None
        self._headers: dict[str, str] | None = None

    def provider(self, provider: str) -> GopherAgentConfigBuilder:
        """Sets the provider's name."""
        self._provider = provider
        return self

    def model(self, model: str) -> GopherAgentConfigBuilder:
        """Sets the model's name."""
        self._model = model
        return self

    def api_key(self, api_key: str) -> GopherAgentConfigBuilder:
        """Sets the key of the Gopher service."""
        self._api_key = api_key
        return self

    def server_config(self, server_config: str) -> GopherAgentConfigBuilder:
        """Sets the servers, as JSON."""
        self._server_config = server_config
        return self

    def access_token(self, access_token: str) -> GopherAgentConfigBuilder:
        """Sets the token that goes to the servers."""
        self._access_token = access_token
        return self

    def headers(self, headers: Mapping[str, str]) -> GopherAgentConfigBuilder:
        """Raises ValueError when `headers` are no mapping."""
        if not isinstance(headers, Mapping):
            raise ValueError("headers must be a string mapping")
        self._headers = dict(headers)
        return self

    def runtime_options(self, options: CreateOptionsInput) -> GopherAgentConfigBuilder:
        """Raises ValueError when `options` are of the wrong kind."""
        self._options = normalize_create_options(options)
        return self

    def build(self) -> GopherAgentConfig:
        """Raises ValueError when provider, model or the source of servers is missing, or both sources are given."""
        if not self._provider:
            raise ValueError("Provider is required")
        if not self._model:
            raise ValueError("Model is required")
        if self._api_key is None and self._server_config is None:
            raise ValueError("Either api_key or server_config is required")
        if self._api_key is not None and self._server_config is not None:
            raise ValueError("Cannot specify both api_key and server_config")
        return GopherAgentConfig(
            self._provider, self._model, self._api_key, self._server_config, self._merged_options()
        )

    def _merged_options(self) -> GopherAgentCreateOptions | None:
        if self._access_token is None and self._headers is None:
            return self._options
        base = self._options or GopherAgentCreateOptions()
        token = self._access_token if self._access_token is not None else base.access_token
        headers = {name: value for name, value in base.headers.items() if not _is_token_header(base, name, value)}
        headers.update(self._headers or {})
        return GopherAgentCreateOptions(
            token, headers, base.oauth, base.elicitation, engine=base.engine, on_event=base.on_event
        )


def _is_token_header(options: GopherAgentCreateOptions, name: str, value: str) -> bool:
    """Whether a header was made from the token; it is made again from the token that counts."""
    return name == "Authorization" and value == bearer(options.access_token or "")
