/* How a thread enters Python: the one shape of every hook of the bridge.
 *
 * Part of the Cython module (csrc knows no Python). A thread that Python knows attaches the state that it has (with
 * PyGILState_Ensure when it is attached already). A foreign thread would pay for a new thread state each time (5 us),
 * so the first entry's state is kept:
 *
 *   first entry    PyGILState_Ensure, a record is made ... PyEval_SaveThread
 *   later entries  PyEval_RestoreThread ................... PyEval_SaveThread
 *
 * With the GIL:
 *   thread ends    its TLS destructor flags the record and touches nothing else: it must not take the GIL
 *   later          gpy_collect(), which holds the GIL, clears and deletes the states of flagged records
 *
 * Without it (free-threaded builds) a state can be cleared by its own thread only: counts of the objects that the thread
 * has made, and its free lists, belong to it. Nor is there a GIL to wait for:
 *   thread ends    its TLS destructor attaches the state, clears and deletes it
 *
 *   after a fork   gpy_forget_others(): the child's Python has deleted the states of the other threads itself
 *
 * The list of records is lock-free. Callers have passed the bridge's gate, which is why no entry can happen while the
 * interpreter goes away.
 */
#ifndef GOPHER_FFI_THREADS_H
#define GOPHER_FFI_THREADS_H

#include <Python.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#include <unistd.h>
#endif

#include "hosts.h"

typedef struct gpy_record {
    PyThreadState *state;    /* ours from the first entry until the thread's end, with the GIL until gpy_collect() */
    int inside;              /* 1 between enter and leave; of this thread alone */
#ifndef Py_GIL_DISABLED
    atomic_int ended;        /* set once, by the thread's TLS destructor */
    struct gpy_record *next; /* in gpy_records */
#endif
} gpy_record;

static _Thread_local gpy_record *gpy_mine; /* this thread's record, or NULL */
static atomic_long gpy_kept;               /* how many states are kept */

static void gpy_thread_ended(void *value);

#ifdef _WIN32
static DWORD gpy_key;
static void WINAPI gpy_thread_ended_fls(void *value) { gpy_thread_ended(value); }
static int gpy_init_key(void) { return (gpy_key = FlsAlloc(gpy_thread_ended_fls)) == FLS_OUT_OF_INDEXES ? -1 : 0; }
static int gpy_watch_thread(gpy_record *record) { return FlsSetValue(gpy_key, record) ? 0 : -1; }
#else
static pthread_key_t gpy_key;
static int gpy_init_key(void) { return pthread_key_create(&gpy_key, gpy_thread_ended); }
static int gpy_watch_thread(gpy_record *record) { return pthread_setspecific(gpy_key, record); }
#endif

/* Told, with the GIL, of each foreign thread whose state goes. */
static void (*gpy_thread_gone)(unsigned long thread_id);

#ifdef Py_GIL_DISABLED

static void gpy_thread_ended(void *value) {
    gpy_record *record = value;
    if (!record) return;
    gpy_mine = NULL;
    if (gb_gate_enter()) { /* else the process ends, and whoever attaches now never comes back */
        PyEval_RestoreThread(record->state);
        PyThreadState_Clear(record->state);
        PyThreadState_DeleteCurrent();
        gb_gate_leave();
        atomic_fetch_sub(&gpy_kept, 1);
    }
    free(record);
}

static void gpy_keep(gpy_record *record) {
    (void)record;
    atomic_fetch_add(&gpy_kept, 1);
}

static void gpy_collect(void) {}

static void gpy_forget_others(void) { atomic_store(&gpy_kept, gpy_mine ? 1 : 0); }

#else

static _Atomic(gpy_record *) gpy_records; /* every record that was not collected */
static atomic_long gpy_ended;             /* how many of them are flagged: lets gpy_collect() skip the walk */

static void gpy_thread_ended(void *value) {
    gpy_record *record = value;
    if (!record) return;
    gpy_mine = NULL;
    atomic_fetch_add(&gpy_ended, 1);
    atomic_store(&record->ended, 1); /* last: from here on the collector may free it */
}

static void gpy_push(gpy_record *record) {
    record->next = atomic_load(&gpy_records);
    while (!atomic_compare_exchange_weak(&gpy_records, &record->next, record)) {}
}

static void gpy_keep(gpy_record *record) {
    gpy_push(record);
    atomic_fetch_add(&gpy_kept, 1);
}

/* Frees the states of threads that have ended. */
static void gpy_collect(void) {
    if (!atomic_load(&gpy_ended)) return;
    gpy_record *record = atomic_exchange(&gpy_records, NULL);
    while (record) {
        gpy_record *next = record->next;
        if (!atomic_load(&record->ended)) {
            gpy_push(record);
        } else {
            atomic_fetch_sub(&gpy_ended, 1);
            atomic_fetch_sub(&gpy_kept, 1);
            if (gpy_thread_gone) gpy_thread_gone(record->state->thread_id);
            PyThreadState_Clear(record->state);
#if PY_VERSION_HEX >= 0x030C0000
            /* Since 3.12 deleting a state that is bound to PyGILState unbinds the *calling* thread's. */
            record->state->_status.bound_gilstate = 0;
#endif
            PyThreadState_Delete(record->state);
            free(record);
        }
        record = next;
    }
}

/* In a forked child: only the thread that forked exists, the other states are Python's to delete. */
static void gpy_forget_others(void) {
    gpy_record *record = atomic_exchange(&gpy_records, NULL);
    atomic_store(&gpy_kept, 0);
    atomic_store(&gpy_ended, 0);
    while (record) {
        gpy_record *next = record->next;
        if (record == gpy_mine)
            gpy_keep(record);
        else
            free(record);
        record = next;
    }
}

#endif

static inline PyThreadState *gpy_attached(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

typedef struct {
    gpy_record *record;    /* a foreign thread's, to be marked as outside again */
    bool attached;         /* leave with PyEval_SaveThread, else with PyGILState_Release */
    bool in_python;        /* from before gpy_enter() until after gpy_leave() */
    PyGILState_STATE gil;
} gpy_entry;

/* Until 3.13 Python ends a thread that asks for the GIL during finalisation, as a callback does that outlasts the drain at
 * exit: by pthread_exit(), which with glibc unwinds the stack. Below us are frames of the library's, C++ that may not be
 * left like that: the process would be aborted. So the unwinding ends here, in a cleanup (for which this is compiled with
 * -fexceptions), and the thread stands still until the process is gone, as since 3.14. */
#if defined(__GLIBC__) && PY_VERSION_HEX < 0x030E0000
static inline void gpy_stand_still(gpy_entry *entry) {
    while (entry->in_python) pause();
}
#define GPY_ENTRY(name) gpy_entry name __attribute__((cleanup(gpy_stand_still)))
#else
#define GPY_ENTRY(name) gpy_entry name
#endif

/* A thread of nobody's enters for the first time: keep what PyGILState_Ensure makes. */
static gpy_record *gpy_adopt(void) {
    gpy_record *record = calloc(1, sizeof *record);
    if (!record || gpy_watch_thread(record)) {
        free(record);
        return NULL;
    }
    return record;
}

/* The first entry of a foreign thread, or one of a thread that is attached already. */
static void gpy_enter_slowly(gpy_entry *entry) {
    gpy_record *record = NULL;
    bool foreign = !gpy_mine && !PyGILState_GetThisThreadState() && (record = gpy_adopt());
    entry->gil = PyGILState_Ensure();
    if (!foreign)
        return;
    record->state = PyThreadState_Get();
    gpy_collect();
    gpy_keep(gpy_mine = record);
    entry->record = record;
    entry->attached = true;
    record->inside = 1;
}

static inline void gpy_enter(gpy_entry *entry) {
    gpy_record *record = gpy_mine;
    PyThreadState *state = record ? record->state : PyGILState_GetThisThreadState();
    entry->record = NULL;
    entry->attached = false;
    entry->in_python = true;
    if (!state || (record && record->inside) || gpy_attached() == state) {
        gpy_enter_slowly(entry);
        return;
    }
    PyEval_RestoreThread(state);
    entry->attached = true;
    if (record) {
        record->inside = 1;
        entry->record = record;
    }
}

static inline void gpy_leave(gpy_entry *entry) {
    if (entry->record)
        entry->record->inside = 0;
    if (entry->attached)
        PyEval_SaveThread();
    else
        PyGILState_Release(entry->gil);
    entry->in_python = false;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static inline int gpy_is_ascii(const char *text, size_t length) {
    unsigned char seen = 0;
    for (size_t i = 0; i < length; i++) /* without a way out, so that it becomes vector code */
        seen |= (unsigned char)text[i];
    return seen < 0x80;
}

/* A new reference: str, or None for NULL. Invalid UTF-8 is replaced. ASCII, which nearly all of it is, takes half the
 * time of PyUnicode_DecodeUTF8, which looks at unaligned text byte by byte. */
static inline PyObject *gpy_text_of(const char *text, size_t length) {
    if (length > 1 && gpy_is_ascii(text, length)) {
        PyObject *made = PyUnicode_New((Py_ssize_t)length, 127);
        if (made) memcpy(PyUnicode_1BYTE_DATA(made), text, length);
        return made;
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
}

static inline PyObject *gpy_text(const char *text) {
    if (!text) Py_RETURN_NONE;
    return gpy_text_of(text, strlen(text));
}

/* ---- Context ----------------------------------------------------------------------------------------------------- */

/* Enters a copy of the context of who called run(): two callbacks can be inside at once, and what a handler sets there
 * is its own. The copy, a new reference for PyContext_Exit(), or NULL with an exception. */
static inline PyObject *gpy_context_enter(PyObject *context) {
    PyObject *copy = PyContext_Copy(context);
    if (copy && PyContext_Enter(copy)) Py_CLEAR(copy);
    return copy;
}

/* ---- The hooks. Their Python bodies (Cython, GIL held, never raising) are installed at import. ------------------- */

static gb_hooks gpy_bodies;

static int32_t gpy_inline(gb_token token, const gopher_orch_elicitation_request_t *request) {
    GPY_ENTRY(entry);
    gpy_host_prefetch(token);
    gpy_enter(&entry);
    int32_t action = gpy_bodies.inline_answer(token, request);
    gpy_leave(&entry);
    return action;
}

static void gpy_event(void *host, const gopher_orch_event_t *event) {
    GPY_ENTRY(entry);
    gpy_enter(&entry);
    gpy_bodies.event(host, event);
    gpy_leave(&entry);
}

static void gpy_unattended(void *host, gb_request *request) {
    GPY_ENTRY(entry);
    gpy_enter(&entry);
    gpy_bodies.unattended(host, request);
    gpy_leave(&entry);
}

static void gpy_drop(void *host) {
    GPY_ENTRY(entry);
    gpy_enter(&entry);
    gpy_bodies.drop(host);
    gpy_leave(&entry);
}

static int gpy_install(const gb_hooks *bodies) {
    static const gb_hooks hooks = {
        .inline_answer = gpy_inline, .event = gpy_event, .unattended = gpy_unattended, .drop = gpy_drop};
    gpy_bodies = *bodies;
    if (gpy_init_key()) return -1;
    gb_set_hooks(&hooks);
    return 0;
}

#endif
