from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

WAKE_TICK: int
WAKE_REQUEST: int
WAKE_DONE: int
WAKE_TIMEOUT: int
WAKE_CLOSED: int

class ElicitationRequest:
    mode: str
    elicitation_id: str | None
    message: str | None
    url: str | None
    request_id_json: str | None
    raw_json: str | None
    raw_params_json: str | None
    server: str | None
    tool: str | None
    requested_schema: dict[str, Any] | None
    def __init__(
        self,
        mode: str,
        elicitation_id: str | None = None,
        message: str | None = None,
        url: str | None = None,
        request_id_json: str | None = None,
        raw_json: str | None = None,
        raw_params_json: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        requested_schema: dict[str, Any] | None = None,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Symbol(NamedTuple):
    name: str
    since: str
    required: bool

def symbol_table() -> list[Symbol]: ...
def struct_sizes() -> dict[str, int]: ...
def preload(path: str, global_: bool = False) -> None: ...

class Library:
    @property
    def path(self) -> str: ...
    @staticmethod
    def open(path: str) -> Library: ...
    def has(self, name: str) -> bool: ...
    def symbols(self) -> dict[str, bool]: ...
    def set_log_level(self, level: int) -> None: ...
    def fetch_servers(self, api_key: str) -> Call: ...

class ServerOptions:
    server_id: str | None
    server_name: str | None
    url: str | None
    access_token: str | None
    headers: dict[str, str]
    def __init__(
        self,
        server_id: str | None = None,
        server_name: str | None = None,
        url: str | None = None,
        access_token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None: ...

class NativeOptions:
    access_token: str | None
    headers: dict[str, str]
    servers: tuple[ServerOptions, ...]
    elicitation: bool
    elicitation_timeout_ms: int
    def __init__(
        self,
        access_token: str | None = None,
        headers: Mapping[str, str] | None = None,
        servers: Sequence[ServerOptions] = (),
        elicitation: bool = True,
        elicitation_timeout_ms: int = 0,
    ) -> None: ...

class InlineAnswer:
    def __init__(
        self,
        handler: Callable[[Any], object],
        otherwise: Callable[[object, BaseException | None, Any], int],
        response_type: type,
    ) -> None: ...
    def __call__(self, request: ElicitationRequest) -> int: ...

class PendingRequest:
    @property
    def request(self) -> ElicitationRequest: ...
    def answer(self, action: int | str, content: Mapping[str, Any] | None = None) -> bool: ...
    def is_open(self) -> bool: ...
    def remaining_ms(self) -> int | None: ...

class Outcome(NamedTuple):
    ok: bool
    text: str | None = None
    completed_json: str | None = None
    error_code: int = 0
    error_message: str | None = None
    error_details: str | None = None
    run_id: int = 0
    iterations: int = 0
    paused_seconds: float = 0.0

class Call:
    def wait(self, slice_ms: int) -> int: ...
    def set_timeout(self, timeout_ms: int) -> None: ...
    def take(self) -> PendingRequest | None: ...
    def leave(self) -> None: ...
    def outcome(self) -> Outcome: ...

class _AgentHost(Protocol):
    def inline_answer(self, request: ElicitationRequest, /) -> int: ...
    def event(self, kind: int, run_id: int, iteration: int, json_text: str | None, /) -> None: ...
    def unattended(self, pending: PendingRequest, /) -> None: ...

class AgentHandle:
    def __init__(
        self,
        library: Library,
        host: _AgentHost,
        *,
        answer: Literal["fixed", "inline", "handed_over"],
        fixed_action: int | str = 3,
        limit_ms: int = 0,
        wants_events: bool = False,
        server: str | None = None,
    ) -> None: ...
    @property
    def token(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def inherited(self) -> bool: ...
    @property
    def asked(self) -> int: ...
    @property
    def can_run(self) -> bool: ...
    def create(
        self,
        factory: str,
        provider: str,
        model: str,
        api_key: str | None,
        target: str,
        options: NativeOptions | None = None,
    ) -> Call: ...
    def run(self, query: str, timeout_ms: int = 0) -> Call: ...
    def close(self) -> None: ...

def counts() -> dict[str, int]: ...
def close_gate() -> None: ...
def gate_is_open() -> bool: ...
def trampoline_address() -> int: ...
def event_trampoline_address() -> int: ...
def decode_request(address: int) -> ElicitationRequest: ...
