# What the bridge keeps for an agent on Python's side, and the bodies of the hooks.
# Part of _bridge.pyx; the host itself is in hosts.h. Bodies run with the GIL, on any thread, and never raise: what goes
# wrong is told to sys.unraisablehook and the server gets "cancel".

cdef dict _ACTIONS = {
    "accept": <int>GOPHER_ORCH_ELICITATION_ACCEPT, "decline": <int>GOPHER_ORCH_ELICITATION_DECLINE,
    "cancel": <int>GOPHER_ORCH_ELICITATION_CANCEL,
}


@cython.final
cdef class InlineAnswer:
    """A handler that can't block, called right in the callback: request -> 1, 2 or 3.

    Takes "accept", "decline", "cancel" or a ``response_type`` whose ``action`` is one of them; whatever else comes out
    is for ``otherwise(result, error, request) -> int``. In Python this would cost as much as taking the GIL.
    """

    cdef object handler        # (request) -> response or word
    cdef object otherwise      # (result, error, request) -> int
    cdef type response_type

    def __init__(self, handler, otherwise, type response_type not None):
        self.handler = handler
        self.otherwise = otherwise
        self.response_type = response_type

    def __call__(self, request):
        return self.decide(request)

    cdef object decide(self, object request):
        try:
            result = self.handler(request)
        except BaseException as error:
            return self.otherwise(None, error, request)
        action = result.action if type(result) is self.response_type else result
        code = _ACTIONS.get(action) if type(action) is str else None
        return self.otherwise(result, None, request) if code is None else code


# The context that was captured last, weakly: it holds whatever its variables hold. Who captures the very same variables
# gets this one, so that agents by the million do not bring one each: two more cache lines in every callback.
cdef object _captured = None
cdef object _NOTHING = object()


cdef object _captured_context():
    """The variables of the current context, for callbacks. Never entered itself: each callback enters a copy, so what a
    handler sets is seen by no other callback."""
    global _captured
    context = PyContext_CopyCurrent()
    with cython.critical_section(_NOTHING):  # free-threaded builds: the reference that is taken here must not be the last
        last = _captured
    before = None if last is None else last()
    if before is not None and _same_variables(context, before):
        return before
    last = PyWeakref_NewRef(context, None)
    with cython.critical_section(_NOTHING):
        last, _captured = _captured, last
    return context


cdef bint _same_variables(object one, object other) except -1:
    """By identity: an equal value may be another's, and comparing it may run any code."""
    if len(one) != len(other):
        return False
    for variable, value in one.items():
        if other.get(variable, _NOTHING) is not value:
            return False
    return True


cdef gpy_host *_made_host(object host, object server) except NULL:
    cdef gpy_host *made = gpy_host_new(host.inline_answer, host.event, host.unattended, server, _captured_context())
    if made == NULL:
        raise MemoryError("no room for another agent")
    return made


cdef inline ElicitationRequest _decoded(const gopher_orch_elicitation_request_t *raw):
    cdef ElicitationRequest request = ElicitationRequest.__new__(ElicitationRequest)
    if raw.mode == NULL:
        request.mode = ""
    elif strcmp(raw.mode, "url") == 0:
        request.mode = "url"
    else:
        request.mode = gpy_text(raw.mode)
    request.elicitation_id = gpy_text(raw.elicitation_id)
    request.message = gpy_text(raw.message)
    request.url = gpy_text(raw.url)
    request.request_id_json = gpy_text(raw.request_id_json)
    request.raw_json = gpy_text(raw.raw_json)
    request.raw_params_json = gpy_text(raw.raw_params_json)
    return request


cdef ElicitationRequest _decode(const gopher_orch_elicitation_request_t *raw, object server):
    cdef ElicitationRequest request = _decoded(raw)
    request.server = server
    return request


cdef int32_t _answer(gb_token token, const gopher_orch_elicitation_request_t *raw) except -1:
    # Slot and host come last: among a million agents they are on their way from memory while text is decoded.
    cdef ElicitationRequest request = _decoded(raw)
    cdef gpy_host *host = <gpy_host *>gb_inline_host(token)
    if host == NULL:
        return GOPHER_ORCH_ELICITATION_CANCEL
    context = gpy_host_context(host)
    request.server = <object>host.server
    gpy_host_count(host)
    answer = <object>host.answer
    context = gpy_context_enter(context)
    try:
        if type(answer) is InlineAnswer:
            result = (<InlineAnswer>answer).decide(request)
        else:
            result = answer(request)
    finally:
        PyContext_Exit(context)
    cdef long action = <long>result if type(result) is int else 0
    if not 1 <= action <= 3:
        raise TypeError(f"an elicitation is answered with 1, 2 or 3, not with {type(result).__name__}")
    return <int32_t>action


cdef int32_t _inline_body(gb_token token, const gopher_orch_elicitation_request_t *raw) noexcept:
    try:
        return _answer(token, raw)
    except BaseException as error:
        _report(error, "elicitation callback")
        return GOPHER_ORCH_ELICITATION_CANCEL


cdef void _event_body(void *raw_host, const gopher_orch_event_t *event) noexcept:
    cdef gpy_host *host = <gpy_host *>raw_host
    cdef object text = None
    try:
        if event.json != NULL:
            text = gpy_text_of(event.json, event.json_length)
        context = gpy_context_enter(gpy_host_context(host))
        try:
            (<object>host.event)(event.kind, event.run_id, event.iteration, text)
        finally:
            PyContext_Exit(context)
    except BaseException as error:
        _report(error, "event callback")


cdef void _unattended_body(void *raw_host, gb_request *raw) noexcept:
    cdef gpy_host *host = <gpy_host *>raw_host
    cdef PendingRequest pending = None
    try:
        pending = _filled_pending(PendingRequest.__new__(PendingRequest), raw, <object>host.server)
        gpy_host_count(host)
        context = gpy_context_enter(gpy_host_context(host))
        try:
            (<object>host.unattended)(pending)
        finally:
            PyContext_Exit(context)
    except BaseException as error:
        gb_request_answer(raw, GOPHER_ORCH_ELICITATION_CANCEL)
        if pending is None:  # no memory for it: the reference is still ours
            gb_request_release(raw)
        _report(error, "unattended elicitation")


cdef void _drop_body(void *host) noexcept:
    gpy_host_release(<gpy_host *>host)


cdef void _report(object error, str where) noexcept:
    """A callback on a thread that we don't own has nobody to raise to: sys.unraisablehook gets it."""
    import sys
    try:
        sys.unraisablehook(_Unraisable(type(error), error, error.__traceback__, f"Exception ignored in {where}", None))
    except BaseException:
        pass  # a broken hook must not cross the ABI


class _Unraisable(NamedTuple):
    """What sys.unraisablehook takes: the fields of sys.UnraisableHookArgs, which can't be made from Python."""

    exc_type: type
    exc_value: object
    exc_traceback: object
    err_msg: object
    object: object


cdef int _install_hooks() except -1:
    cdef gb_hooks bodies
    # Called by threads.h with the GIL held; declared nogil only because csrc knows no GIL.
    bodies.inline_answer = <int32_t (*)(gb_token, const gopher_orch_elicitation_request_t *) noexcept nogil>(
        <void *>_inline_body)
    bodies.event = <void (*)(void *, const gopher_orch_event_t *) noexcept nogil>(<void *>_event_body)
    bodies.unattended = <void (*)(void *, gb_request *) noexcept nogil>(<void *>_unattended_body)
    bodies.drop = <void (*)(void *) noexcept nogil>(<void *>_drop_body)
    if gpy_install(&bodies):
        raise ImportError("the bridge could not make a thread-local key")
    return 0


_install_hooks()
