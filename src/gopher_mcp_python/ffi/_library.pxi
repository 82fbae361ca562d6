# The opened library, its symbols, and the options of a create call as C structs.
# Part of _bridge.pyx.

from typing import NamedTuple


class Symbol(NamedTuple):
    """One function of the vendor's library: its name, the version that brought it, whether loading needs it."""

    name: str
    since: str
    required: bool


def symbol_table():
    """Every function that the bridge knows of, as csrc/api_table.h lists them."""
    cdef size_t index = 0
    cdef const gb_symbol *symbol = gb_api_symbol(0)
    table = []
    while symbol != NULL:
        table.append(Symbol(symbol.name.decode(), symbol.since.decode(), bool(symbol.required)))
        index += 1
        symbol = gb_api_symbol(index)
    return table


def struct_sizes():
    """Sizes in bytes of the structs that cross the ABI, as the compiler laid them out."""
    return {
        "gopher_orch_agent_options_t": sizeof(gopher_orch_agent_options_t),
        "gopher_orch_elicitation_request_t": sizeof(gopher_orch_elicitation_request_t),
        "gopher_orch_event_t": sizeof(gopher_orch_event_t),
        "gopher_orch_header_t": sizeof(gopher_orch_header_t),
        "gopher_orch_server_options_t": sizeof(gopher_orch_server_options_t),
    }


def preload(str path not None, bint global_=False):
    """Opens a shared library by absolute path or loader name and keeps it open, so that a later one finds it.

    Raises:
        OSError: the loader's own text.
    """
    cdef char error[1024]
    cdef bytes encoded = _path_bytes(path)
    cdef const char *name = encoded
    cdef bint opened
    with nogil:
        opened = gb_preload(name, global_, error, sizeof(error))
    if not opened:
        raise OSError((<bytes>error).decode("utf-8", "replace"))


cdef class Library:
    """An opened libgopher-orch. It stays open until the process ends."""

    cdef const gb_api *api          # owned by csrc/api.c, never freed
    cdef readonly str path          # as it was asked for
    cdef object __weakref__

    def __init__(self):
        raise TypeError("use Library.open(path)")

    @staticmethod
    def open(str path not None):
        """Opens the library at ``path``, or by the loader's own search when it has no slash.

        Raises:
            OSError: it can't be loaded, or lacks a required function; the text says which.
        """
        cdef char error[1024]
        cdef bytes encoded = _path_bytes(path)
        cdef const char *name = encoded
        cdef const gb_api *api
        with nogil:
            api = gb_api_open(name, error, sizeof(error))
        if api == NULL:
            raise OSError((<bytes>error).decode("utf-8", "replace"))
        cdef Library library = Library.__new__(Library)
        library.api = api
        library.path = path
        return library

    cdef const gb_api *checked(self) except NULL:
        if self.api == NULL:
            raise ValueError("this Library was never opened: use Library.open(path)")
        return self.api

    def has(self, str name not None):
        """Whether the library exports this function."""
        return bool(gb_api_has(self.checked(), name.encode()))

    def symbols(self):
        """Every known function: whether the library exports it."""
        return {symbol.name: self.has(symbol.name) for symbol in symbol_table()}

    def set_log_level(self, int level):
        """0 (everything) to 8 (silent), process-wide; 4 is errors only."""
        gb_api_set_log_level(self.checked(), level)

    def fetch_servers(self, str api_key not None):
        """Starts the library's look-up of an API key's servers; the outcome's text is their JSON."""
        cdef bytes key = _wire_text(api_key, "api_key")
        cdef const char *key_text = key
        cdef const gb_api *api = self.checked()
        cdef gb_call *call
        with nogil:
            call = gb_call_fetch(api, key_text)
        return _new_call(call, NULL, None)

    def __repr__(self):
        return f"Library({self.path!r})"


class ServerOptions:
    """Token and headers for one server of a configuration, found by id, then name, then URL."""

    __slots__ = ("server_id", "server_name", "url", "access_token", "headers")

    def __init__(self, server_id=None, server_name=None, url=None, access_token=None, headers=None):
        self.server_id = server_id
        self.server_name = server_name
        self.url = url
        self.access_token = access_token
        self.headers = dict(headers or {})

    def __repr__(self):
        return f"ServerOptions(server_id={self.server_id!r}, server_name={self.server_name!r}, ...)"


class NativeOptions:
    """What a create call with options is given. ``elicitation_timeout_ms`` in milliseconds; 0 is the library's own."""

    __slots__ = ("access_token", "headers", "servers", "elicitation", "elicitation_timeout_ms")

    def __init__(self, access_token=None, headers=None, servers=(), elicitation=True, elicitation_timeout_ms=0):
        self.access_token = access_token
        self.headers = dict(headers or {})
        self.servers = tuple(servers)
        self.elicitation = bool(elicitation)
        self.elicitation_timeout_ms = elicitation_timeout_ms

    def __repr__(self):
        return f"NativeOptions(elicitation={self.elicitation}, servers={len(self.servers)}, ...)"


cdef bytes _path_bytes(str path):
    import os
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise OSError("a library path can't hold a NUL character")
    return encoded


cdef bytes _c_text(object value, str what):
    """UTF-8 for C. What can't be a C string is refused by name, never with its value."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    try:
        encoded = (<str>value).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds a lone surrogate, which is not Unicode text") from None
    if memchr(PyBytes_AS_STRING(encoded), 0, PyBytes_GET_SIZE(encoded)) != NULL:
        raise ValueError(f"{what} holds a NUL character")
    return encoded


cdef bytes _wire_text(object value, str what):
    """Text that goes into an HTTP header: the library would send a line break as it is, and with it another header."""
    encoded = _c_text(value, what)
    if b"\r" in encoded or b"\n" in encoded:
        raise ValueError(f"{what} holds a line break; remove it (a token read from a file often ends in one)")
    return encoded


@cython.final
@cython.internal
cdef class _OptionsMemory:
    """gopher_orch_agent_options_t with everything it points to, for the length of one create call."""

    cdef gopher_orch_agent_options_t options
    cdef gopher_orch_header_t *headers           # owned: header arrays of the agent and of every server, one block
    cdef gopher_orch_server_options_t *servers   # owned
    cdef size_t headers_used
    cdef list strings                            # keeps the bytes objects alive

    def __cinit__(self, options):
        cdef size_t index
        cdef gopher_orch_server_options_t *server
        self.strings = []
        total = len(options.headers) + sum(len(one.headers) for one in options.servers)
        self.headers = <gopher_orch_header_t *>calloc(total + 1, sizeof(gopher_orch_header_t))
        self.servers = <gopher_orch_server_options_t *>calloc(
            len(options.servers) + 1, sizeof(gopher_orch_server_options_t))
        if self.headers == NULL or self.servers == NULL:
            raise MemoryError()
        self.options.access_token = self.text(options.access_token, "access_token")
        self.options.header_count = len(options.headers)
        self.options.headers = self.header_array(options.headers)
        for index, one in enumerate(options.servers):
            server = &self.servers[index]
            server.server_id = self.text(one.server_id, "server_id")
            server.server_name = self.text(one.server_name, "server_name")
            server.url = self.text(one.url, "server url")
            server.access_token = self.text(one.access_token, "server access_token")
            server.header_count = len(one.headers)
            server.headers = self.header_array(one.headers)
        self.options.server_option_count = len(options.servers)
        self.options.server_options = self.servers if options.servers else NULL
        self.options.elicitation_timeout_ms = options.elicitation_timeout_ms

    def __dealloc__(self):
        free(self.headers)
        free(self.servers)

    cdef const char *text(self, object value, str what) except? NULL:
        if value is None:
            return NULL
        encoded = _wire_text(value, what)
        self.strings.append(encoded)
        return PyBytes_AS_STRING(encoded)

    cdef const gopher_orch_header_t *header_array(self, object headers) except? NULL:
        cdef const gopher_orch_header_t *first = &self.headers[self.headers_used]
        for name, value in headers.items():
            self.headers[self.headers_used].name = self.text(name, "header name")
            self.headers[self.headers_used].value = self.text(value, "header value")
            self.headers_used += 1
        return first if headers else NULL
