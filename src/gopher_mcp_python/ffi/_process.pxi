# Counts, the gate, fork and exit; addresses for benchmarks and fuzzing.
# Part of _bridge.pyx.

import atexit as _atexit
import os as _os

# Exit waits this long for callbacks that are inside Python (an inline handler that blocks against its promise).
cdef int64_t _DRAIN_MS = 2000


cdef void _forget_dummy_thread(unsigned long thread_id) noexcept:
    """What threading made for a foreign thread that asked for its current_thread() (logging does) stays for ever before
    Python 3.13; it goes with the thread's state."""
    import sys
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            with threading._active_limbo_lock:
                if isinstance(threading._active.get(thread_id), threading._DummyThread):
                    del threading._active[thread_id]
    except BaseException as error:
        _report(error, "the end of a foreign thread")


if __import__("sys").version_info < (3, 13):
    gpy_thread_gone = _forget_dummy_thread


def counts():
    """Live and released things of the bridge, for leak tests and diagnostics."""
    cdef gb_counts raw
    gpy_collect()
    gb_get_counts(&raw)
    return {
        "live_agents": raw.live_agents, "live_calls": raw.live_calls, "live_requests": raw.live_requests,
        "released_handles": raw.released_handles, "dropped_hosts": raw.dropped_hosts, "threads": raw.threads,
        "thread_states": gpy_kept_states(),
    }


def close_gate():
    """No callback enters Python from now on, for good; every wait ends with cancel. What exit does first."""
    with nogil:
        gb_gate_close()


def gate_is_open():
    return bool(gb_gate_is_open())


def trampoline_address():
    """Address of the elicitation callback that every create with options installs."""
    return <uintptr_t>&gb_elicitation_trampoline


def event_trampoline_address():
    """Address of the event callback."""
    return <uintptr_t>&gb_event_trampoline


def decode_request(address):
    """Decodes the gopher_orch_elicitation_request_t at this address, as the callback does."""
    cdef uintptr_t raw = address
    if raw == 0:
        raise ValueError("address must not be 0")
    return _decode(<const gopher_orch_elicitation_request_t *>raw, None)


def _at_exit():
    close_gate()
    with nogil:
        gb_gate_drain(_DRAIN_MS)


def _after_fork_in_child():
    gpy_forget_others()
    gpy_hosts_after_fork()


_atexit.register(_at_exit)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork_in_child)
