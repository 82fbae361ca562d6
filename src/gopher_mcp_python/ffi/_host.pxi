# What the bridge keeps for an agent on Python's side, and the bodies of the hooks.
# Part of _bridge.pyx. Bodies run with the GIL, on any thread, and never raise: what goes wrong is told to
# sys.unraisablehook and the server gets "cancel".

@cython.final
@cython.internal
cdef class _Host:
    """One per agent. csrc holds the only reference that counts, until its last callback has left (hooks.drop)."""

    cdef object answer          # bound host.inline_answer
    cdef object event           # bound host.event
    cdef object unattended      # bound host.unattended
    cdef object server          # label put on each request, str | None
    cdef object base_context    # contextvars of who created the agent
    cdef object run_context     # contextvars of who runs it now, or base_context

    def __cinit__(self, host, server):
        self.answer = host.inline_answer
        self.event = host.event
        self.unattended = host.unattended
        self.server = server
        self.base_context = self.run_context = PyContext_CopyCurrent()

    cdef object context(self):
        with cython.critical_section(self):
            return self.run_context

    cdef void set_context(self, object context) noexcept:
        with cython.critical_section(self):
            self.run_context = context

    cdef void end_context(self, object context) noexcept:
        with cython.critical_section(self):
            if self.run_context is context:
                self.run_context = self.base_context


cdef inline object _enter(_Host host):
    """Enters the context of who called run(); a copy of it while another callback is inside. For PyContext_Exit."""
    context = host.context()
    try:
        PyContext_Enter(context)
    except RuntimeError:
        context = PyContext_Copy(context)
        PyContext_Enter(context)
    return context


cdef inline object _text(const char *text):
    """str, or None for NULL. Invalid UTF-8 is replaced, never refused."""
    if text == NULL:
        return None
    return PyUnicode_DecodeUTF8(text, strlen(text), "replace")


cdef inline ElicitationRequest _decode(const gopher_orch_elicitation_request_t *raw, object server):
    cdef ElicitationRequest request = ElicitationRequest.__new__(ElicitationRequest)
    if raw.mode == NULL:
        request.mode = ""
    elif strcmp(raw.mode, "url") == 0:
        request.mode = "url"
    else:
        request.mode = _text(raw.mode)
    request.elicitation_id = _text(raw.elicitation_id)
    request.message = _text(raw.message)
    request.url = _text(raw.url)
    request.request_id_json = _text(raw.request_id_json)
    request.raw_json = _text(raw.raw_json)
    request.raw_params_json = _text(raw.raw_params_json)
    request.server = server
    return request


cdef int32_t _answer(_Host host, const gopher_orch_elicitation_request_t *raw) except -1:
    context = _enter(host)
    try:
        result = host.answer(_decode(raw, host.server))
    finally:
        PyContext_Exit(context)
    if type(result) is not int or not 1 <= result <= 3:
        raise TypeError(f"an elicitation is answered with 1, 2 or 3, not with {type(result).__name__}")
    return <int32_t>result


cdef int32_t _inline_answer_body(void *host, const gopher_orch_elicitation_request_t *raw) noexcept:
    try:
        return _answer(<_Host>host, raw)
    except BaseException as error:
        _report(error, "elicitation callback")
        return GOPHER_ORCH_ELICITATION_CANCEL


cdef void _event_body(void *raw_host, const gopher_orch_event_t *event) noexcept:
    cdef _Host host = <_Host>raw_host
    cdef object text = None
    try:
        if event.json != NULL:
            text = PyUnicode_DecodeUTF8(event.json, <Py_ssize_t>event.json_length, "replace")
        context = _enter(host)
        try:
            host.event(event.kind, event.run_id, event.iteration, text)
        finally:
            PyContext_Exit(context)
    except BaseException as error:
        _report(error, "event callback")


cdef void _unattended_body(void *raw_host, gb_request *raw) noexcept:
    cdef _Host host = <_Host>raw_host
    try:
        pending = _new_pending(raw, host.server)
        context = _enter(host)
        try:
            host.unattended(pending)
        finally:
            PyContext_Exit(context)
    except BaseException as error:
        gb_request_answer(raw, GOPHER_ORCH_ELICITATION_CANCEL)
        _report(error, "unattended elicitation")


cdef void _drop_body(void *host) noexcept:
    Py_DECREF(<object>host)


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
    bodies.inline_answer = <int32_t (*)(void *, const gopher_orch_elicitation_request_t *) noexcept nogil>(
        <void *>_inline_answer_body)
    bodies.event = <void (*)(void *, const gopher_orch_event_t *) noexcept nogil>(<void *>_event_body)
    bodies.unattended = <void (*)(void *, gb_request *) noexcept nogil>(<void *>_unattended_body)
    bodies.drop = <void (*)(void *) noexcept nogil>(<void *>_drop_body)
    if gpy_install(&bodies):
        raise ImportError("the bridge could not make a thread-local key")
    return 0


_install_hooks()
