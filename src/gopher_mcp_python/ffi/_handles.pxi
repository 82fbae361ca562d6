# Agents, calls in progress and requests that wait for an answer.
# Part of _bridge.pyx.

WAKE_TICK = <int>GB_WAKE_TICK
WAKE_REQUEST = <int>GB_WAKE_REQUEST
WAKE_DONE = <int>GB_WAKE_DONE
WAKE_TIMEOUT = <int>GB_WAKE_TIMEOUT
WAKE_CLOSED = <int>GB_WAKE_CLOSED

cdef dict _FACTORIES = {
    "json": <int>GB_BY_JSON, "api_key": <int>GB_BY_API_KEY, "url": <int>GB_BY_URL, "server_id": <int>GB_BY_SERVER_ID,
    "server_name": <int>GB_BY_SERVER_NAME, "gateway_id": <int>GB_BY_GATEWAY_ID,
    "gateway_name": <int>GB_BY_GATEWAY_NAME,
}
cdef dict _ANSWER_MODES = {
    "fixed": <int>GB_ANSWER_FIXED, "inline": <int>GB_ANSWER_INLINE, "handed_over": <int>GB_ANSWER_HANDED_OVER,
}


cdef int32_t _action_code(object action) except -1:
    code = _ACTIONS.get(action) if isinstance(action, str) else action
    if isinstance(code, bool) or not isinstance(code, int) or not 1 <= code <= 3:
        raise ValueError("an elicitation is answered with accept, decline or cancel")
    return <int32_t>code


cdef class PendingRequest:
    """A request whose callback waits in C. Dropped without an answer, it is answered with cancel."""

    cdef gb_request *raw            # owned: one reference
    cdef object server              # label of the agent, str | None
    cdef ElicitationRequest decoded
    cdef object __weakref__

    def __init__(self):
        raise TypeError("pending requests are made by the bridge")

    def __dealloc__(self):
        if self.raw != NULL:
            gb_request_answer(self.raw, GOPHER_ORCH_ELICITATION_CANCEL)
            gb_request_release(self.raw)

    @property
    def request(self):
        with cython.critical_section(self):
            if self.decoded is None:
                self.decoded = _decode(gb_request_fields(self.raw), self.server)
            return self.decoded

    def answer(self, action, content=None):
        """Answers with 1, 2, 3 or their names. True when this answer counted, False when the wait had ended.

        ``content`` is for engines with form mode; this one has none.
        """
        return bool(gb_request_answer(self.raw, _action_code(action)))

    def is_open(self):
        return bool(gb_request_is_open(self.raw))

    def remaining_ms(self):
        """Milliseconds until the bridge answers cancel; None when there is no limit."""
        cdef int64_t left = gb_request_remaining_ms(self.raw)
        return None if left < 0 else left


cdef PendingRequest _filled_pending(PendingRequest pending, gb_request *raw, object server):
    """Takes over one reference of `raw`."""
    pending.raw = raw
    pending.server = server
    return pending


class Outcome(NamedTuple):
    """How a native call ended. ``paused_seconds``: how long requests were open (in seconds)."""

    ok: bool
    text: object = None
    completed_json: object = None
    error_code: int = 0
    error_message: object = None
    error_details: object = None
    run_id: int = 0
    iterations: int = 0
    paused_seconds: float = 0.0

    def __repr__(self):
        return f"Outcome(ok={self.ok}, error_code={self.error_code}, iterations={self.iterations})"


cdef class Call:
    """A native create, run or fetch on a thread of the bridge, and the caller's place to wait for it. One waiter."""

    cdef gb_call *raw               # owned until leave()
    cdef gpy_host *host             # owned reference until leave(); NULL for fetch
    cdef object context             # contextvars of who made the call, seen by inline handlers and events
    cdef bint busy                  # somebody is inside wait()
    cdef object __weakref__

    def __init__(self):
        raise TypeError("calls are made by AgentHandle.create() and .run()")

    def __dealloc__(self):
        if self.raw != NULL:
            gb_call_leave(self.raw)
        gpy_host_release(self.host)

    cdef gb_call *begin(self) except NULL:
        """The call, which nobody can leave before end()."""
        with cython.critical_section(self):
            if self.raw == NULL:
                raise RuntimeError("this call was left")
            if self.busy:
                raise RuntimeError("another thread waits on this call")
            self.busy = True
            return self.raw

    cdef void end(self) noexcept:
        with cython.critical_section(self):
            self.busy = False

    def wait(self, int64_t slice_ms):
        """Waits at most ``slice_ms`` milliseconds without the GIL, then runs signal handlers. One of WAKE_*."""
        cdef gb_call *raw = self.begin()
        cdef gb_wake wake
        with nogil:
            wake = gb_call_wait(raw, slice_ms)
        self.end()
        PyErr_CheckSignals()
        return <int>wake

    def set_timeout(self, int64_t timeout_ms):
        """Milliseconds from the call's start, without the time in which a request is open. 0: none."""
        gb_call_set_timeout(self.begin(), timeout_ms)
        self.end()

    def take(self):
        """The oldest request that nobody has taken, or None."""
        cdef gb_call *raw = self.begin()
        cdef gb_request *request
        try:
            pending = PendingRequest.__new__(PendingRequest)  # first: nothing can fail once the request is ours
            request = gb_call_take(raw)
            if request == NULL:
                return None
            gpy_host_count(self.host)  # only an agent's calls have requests
            return _filled_pending(pending, request, <object>self.host.server)
        finally:
            self.end()

    def leave(self):
        """Gives the call up; idempotent. Before its end: its requests are cancelled and the agent is retired."""
        cdef gb_call *raw = NULL
        cdef gpy_host *host = NULL
        with cython.critical_section(self):
            if self.busy:
                raise RuntimeError("another thread waits on this call")
            if self.raw != NULL:
                raw = self.raw
                host = self.host
                self.raw = NULL
                self.host = NULL
        if raw == NULL:
            return
        with nogil:
            gb_call_leave(raw)
        if host != NULL:
            gpy_host_end_context(host, self.context)
            gpy_host_release(host)  # now: what it refers to may refer to this call, and the collector can't see that

    def outcome(self):
        """After WAKE_DONE: what the library gave."""
        cdef gb_outcome raw
        cdef gb_call *call = self.begin()
        try:
            gb_call_outcome(call, &raw)
            return Outcome(bool(raw.ok), gpy_text(raw.text), gpy_text(raw.completed_json), raw.error_code,
                           gpy_text(raw.error_message), gpy_text(raw.error_details), raw.run_id, raw.iterations,
                           raw.paused_seconds)
        finally:
            self.end()


cdef Call _new_call(gb_call *raw, gpy_host *host, object context):
    if raw == NULL:
        raise RuntimeError("the native call could not be started: the agent is gone or no thread could be made")
    cdef Call call
    try:
        call = Call.__new__(Call)
    except MemoryError:
        gb_call_leave(raw)
        raise
    call.raw = raw
    call.host = NULL if host == NULL else gpy_host_retain(host)
    call.context = context
    return call


cdef class AgentHandle:
    """One native agent: registered before its create call, released after its last callback has left.

    Args:
        host: has ``inline_answer(request) -> int``, ``event(kind, run_id, iteration, json_text)`` and
            ``unattended(pending)``. The bridge keeps it alive; it must not hold this handle, or neither is ever freed.
        answer: "fixed" (``fixed_action``, no Python), "inline" (``host.inline_answer`` in the callback), "handed_over"
            (the callback waits in C for whoever waits on the call, at most ``limit_ms`` milliseconds; 0: no limit).
        wants_events: events go to ``host.event``.
        server: label put on every request.
    """

    cdef readonly gb_token token
    cdef readonly bint closed
    cdef Library library
    cdef gpy_host *state            # owned reference until close(); csrc holds one of its own
    cdef object last_asked          # what asked was at close()
    cdef uint32_t epoch
    cdef object __weakref__

    def __cinit__(self, Library library not None, host, *, str answer not None, fixed_action=3,
                  int64_t limit_ms=0, bint wants_events=False, server=None):
        cdef gb_agent_config config
        if answer not in _ANSWER_MODES:
            raise ValueError("answer must be 'fixed', 'inline' or 'handed_over'")
        gpy_collect()
        self.closed = True
        self.library = library
        self.state = _made_host(host, server)
        config.mode = <gb_answer_mode><int>_ANSWER_MODES[answer]
        config.fixed_action = _action_code(fixed_action)
        config.limit_ms = limit_ms
        config.wants_events = wants_events
        config.host = gpy_host_retain(self.state)
        self.token = gb_agent_open(library.checked(), &config)
        if self.token == 0:
            gpy_host_release(self.state)
            raise MemoryError("no room for another agent")
        self.epoch = gb_epoch()
        self.closed = False

    def __dealloc__(self):
        if not self.closed:
            gb_agent_close(self.token)
        gpy_host_release(self.state)

    @property
    def inherited(self):
        """True in a forked child, where the agent belongs to the parent and can't be used."""
        return self.epoch != gb_epoch()

    @property
    def asked(self):
        """How many requests have reached Python; fixed answers do not."""
        with cython.critical_section(self):
            return self.last_asked if self.state == NULL else gpy_host_asked(self.state)

    @property
    def can_run(self):
        """Whether a create call has succeeded, the agent was not closed, and no call of it was left before its end."""
        cdef gb_agent *agent = gb_agent_acquire(self.token)
        if agent == NULL:
            return False
        can = bool(gb_agent_can_run(agent))
        gb_agent_release(agent)
        return can

    def create(self, str factory not None, str provider not None, str model not None, api_key, str target not None,
               options=None):
        """Starts the library's create. ``options`` None: by the plain function, without elicitation.

        Raises:
            ValueError: unknown factory, or a text that can't be a C string (named, never shown).
            RuntimeError: the agent is gone, or no thread could be made.
        """
        cdef bytes provider_b = _c_text(provider, "provider")
        cdef bytes model_b = _c_text(model, "model")
        cdef bytes target_b = _c_text(target, "target")
        cdef bytes key_b = None if api_key is None else _wire_text(api_key, "api_key")
        cdef _OptionsMemory memory = None if options is None else _OptionsMemory(options)
        if factory not in _FACTORIES:
            raise ValueError(f"unknown factory {factory!r}: one of {', '.join(_FACTORIES)}")
        cdef gb_factory kind = <gb_factory><int>_FACTORIES[factory]
        cdef bint elicitation = options is not None and options.elicitation
        cdef const char *provider_c = provider_b
        cdef const char *model_c = model_b
        cdef const char *target_c = target_b
        cdef const char *key_c = NULL if key_b is None else PyBytes_AS_STRING(key_b)
        cdef const gopher_orch_agent_options_t *options_c = NULL if memory is None else &memory.options
        cdef gb_call *raw
        cdef gpy_host *host = self._begin()
        try:
            context = gpy_host_context(host)
            with nogil:
                raw = gb_call_create(self.token, kind, provider_c, model_c, key_c, target_c, options_c, elicitation)
            return _new_call(raw, host, context)
        finally:
            gpy_host_release(host)

    def run(self, str query not None, int64_t timeout_ms=0):
        """Starts the library's run. ``timeout_ms`` (milliseconds) is handed to the library, which ignores it.

        Raises:
            ValueError: the query can't be a C string.
            RuntimeError: the agent is gone or was never created, or no thread could be made.
        """
        cdef bytes query_b = _c_text(query, "query")
        cdef const char *query_c = query_b
        cdef gb_call *raw
        gpy_collect()
        cdef gpy_host *host = self._begin()
        try:
            context = gpy_host_context(host)
            with nogil:
                raw = gb_call_run(self.token, query_c, timeout_ms)
            return _new_call(raw, host, context)
        finally:
            gpy_host_release(host)

    cdef gpy_host *_begin(self) except NULL:
        """A call begins in the caller's context. A reference to the host."""
        context = _captured_context()
        with cython.critical_section(self):
            if self.state == NULL:
                raise RuntimeError("this agent was closed")
            gpy_host_set_context(self.state, context)
            return gpy_host_retain(self.state)

    def close(self):
        """Disposes of the agent: never blocks, idempotent, any thread. Waits for this agent end with cancel."""
        cdef gpy_host *host
        with cython.critical_section(self):
            if self.closed:
                return
            self.closed = True
            self.last_asked = gpy_host_asked(self.state)
            host = self.state
            self.state = NULL
        with nogil:
            gb_agent_close(self.token)
        gpy_host_release(host)

    def __repr__(self):
        return f"AgentHandle(token={self.token:#x}, closed={self.closed})"
