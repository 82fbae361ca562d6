# cython: language_level=3, freethreading_compatible=True, binding=True
"""The seam between the C bridge (csrc) and Python. Importing it opens no vendor library and starts no thread.

Everything that the library calls goes through csrc/trampoline.c to the hooks in threads.h, whose Python bodies are in
_host.pxi. The parts are included so that there is one extension module and calls between them cost nothing.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.contextvars cimport PyContext_CopyCurrent, PyContext_Exit
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, strcmp

from .bridge cimport *

cdef extern from "threads.h":
    """
    static int gpy_is_main_interpreter(void) { return PyInterpreterState_Get() == PyInterpreterState_Main(); }
    static long gpy_kept_states(void) { return atomic_load(&gpy_kept); }
    """
    int gpy_install(const gb_hooks *bodies)
    void gpy_collect()
    void (*gpy_thread_gone)(unsigned long thread_id) noexcept
    void gpy_forget_others()
    int gpy_is_main_interpreter()
    long gpy_kept_states()
    object gpy_text(const char *text)
    object gpy_text_of(const char *text, size_t length)
    object gpy_context_enter(object context)

cdef extern from "hosts.h":
    ctypedef struct gpy_host:
        PyObject *answer
        PyObject *server
        PyObject *event
        PyObject *unattended
    gpy_host *gpy_host_new(object answer, object event, object unattended, object server, object context)
    gpy_host *gpy_host_retain(gpy_host *host)
    void gpy_host_release(gpy_host *host)
    void gpy_hosts_after_fork()
    void gpy_host_count(gpy_host *host)
    unsigned long long gpy_host_asked(const gpy_host *host)
    object gpy_host_context(gpy_host *host)
    void gpy_host_set_context(gpy_host *host, object context)
    void gpy_host_end_context(gpy_host *host, object context)

if not gpy_is_main_interpreter():
    raise ImportError(
        "gopher_mcp_python.ffi._bridge works in the main interpreter only: the native library calls back on threads of "
        "its own, which always enter the main interpreter. Run the agent there, or in a process of its own.")

include "_request.pxi"
include "_library.pxi"
include "_host.pxi"
include "_handles.pxi"
include "_process.pxi"
