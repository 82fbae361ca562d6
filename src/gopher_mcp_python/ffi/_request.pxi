# The request that handlers see, and how one is decoded from the library's struct.
# Part of _bridge.pyx.

cdef tuple _REQUEST_FIELDS = ("mode", "elicitation_id", "message", "url", "request_id_json", "raw_json",
                              "raw_params_json")


@cython.freelist(64)
cdef class ElicitationRequest:
    """What an MCP server asks of its user in the middle of a tool call.

    Fields are the server's own words, unchecked; show them only through a handler that makes them harmless.
    The repr tells mode, server and the host of the URL, never the URL itself.

    Raises:
        ValueError: a field is not a string.
    """

    cdef public object mode              # "url" or "form"; "" when the server sent none
    cdef public object elicitation_id    # str | None
    cdef public object message           # str | None
    cdef public object url               # str | None
    cdef public object request_id_json   # str | None: the JSON-RPC id as JSON
    cdef public object raw_json          # str | None: the whole request
    cdef public object raw_params_json   # str | None: its params
    cdef public object server            # str | None: label of the server that asks
    cdef public object tool              # str | None: the tool call that it interrupts
    cdef public object requested_schema  # dict | None: form mode
    cdef object __weakref__

    def __init__(self, mode, elicitation_id=None, message=None, url=None, request_id_json=None, raw_json=None,
                 raw_params_json=None, *, server=None, tool=None, requested_schema=None):
        if not isinstance(mode, str):
            raise ValueError("elicitation mode must be a string")
        self.mode = mode
        self.elicitation_id = _optional_text(elicitation_id, "elicitation_id")
        self.message = _optional_text(message, "message")
        self.url = _optional_text(url, "url")
        self.request_id_json = _optional_text(request_id_json, "request_id_json")
        self.raw_json = _optional_text(raw_json, "raw_json")
        self.raw_params_json = _optional_text(raw_params_json, "raw_params_json")
        self.server = _optional_text(server, "server")
        self.tool = _optional_text(tool, "tool")
        self.requested_schema = requested_schema

    cdef tuple _state(self):
        with cython.critical_section(self):
            return (self.mode, self.elicitation_id, self.message, self.url, self.request_id_json, self.raw_json,
                    self.raw_params_json, self.server, self.tool, self.requested_schema)

    def __eq__(self, other):
        if not isinstance(other, ElicitationRequest):
            return NotImplemented
        return self._state() == (<ElicitationRequest>other)._state()

    def __hash__(self):
        cdef tuple state = self._state()
        return hash((state[4], state[1]))

    def __repr__(self):
        cdef tuple state = self._state()
        return f"{type(self).__name__}(mode={state[0]!r}, server={state[7]!r}, url_host={_host_of(state[3])!r})"

    def __reduce__(self):
        return _restore_request, (type(self), self._state())


def _restore_request(cls, state):
    *fields, server, tool, requested_schema = state
    return cls(*fields, server=server, tool=tool, requested_schema=requested_schema)


cdef object _optional_text(object value, str name):
    if value is not None and not isinstance(value, str):
        raise ValueError(f"elicitation {name} must be a string")
    return value


cdef object _host_of(object url):
    if not isinstance(url, str):
        return None
    from urllib.parse import urlsplit
    try:
        return urlsplit(url).hostname
    except ValueError:
        return "?"
