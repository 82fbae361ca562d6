/* How a thread enters Python: the one shape of every hook of the bridge.
 *
 * Part of the Cython module (csrc knows no Python). A thread that Python knows takes the GIL with PyGILState_Ensure and
 * gives it back. A foreign thread would pay for a new thread state each time (5 us), so the first entry's state is kept:
 *
 *   first entry    PyGILState_Ensure, a record is made ... PyEval_SaveThread
 *   later entries  PyEval_RestoreThread ................... PyEval_SaveThread
 *   thread ends    its TLS destructor flags the record and touches nothing else: it must not take the GIL
 *   later          gpy_collect(), which holds the GIL, clears and deletes the states of flagged records
 *   after a fork   gpy_forget_others(): the child's Python has deleted the states itself
 *
 * The list of records is lock-free and never relies on the GIL, so free-threaded builds need nothing else. Callers have
 * passed the bridge's gate, which is why no entry can happen while the interpreter goes away.
 */
#ifndef GOPHER_FFI_THREADS_H
#define GOPHER_FFI_THREADS_H

#include <Python.h>
#include <stdatomic.h>
#include <stdlib.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#endif

#include "bridge.h"

typedef struct gpy_record {
    PyThreadState *state;    /* ours from the first entry until gpy_collect() */
    int inside;              /* 1 between enter and leave; of this thread alone */
    atomic_int ended;        /* set once, by the thread's TLS destructor */
    struct gpy_record *next; /* in gpy_records */
} gpy_record;

static _Thread_local gpy_record *gpy_mine;     /* this thread's record, or NULL */
static _Atomic(gpy_record *) gpy_records;      /* every record that was not collected */
static atomic_long gpy_kept;                   /* how many those are */
static atomic_long gpy_ended;                  /* how many of them are flagged: lets gpy_collect() skip the walk */

static void gpy_thread_ended(void *value) {
    gpy_record *record = value;
    if (!record) return;
    gpy_mine = NULL;
    atomic_fetch_add(&gpy_ended, 1);
    atomic_store(&record->ended, 1); /* last: from here on the collector may free it */
}

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

static void gpy_push(gpy_record *record) {
    record->next = atomic_load(&gpy_records);
    while (!atomic_compare_exchange_weak(&gpy_records, &record->next, record)) {}
}

/* With the GIL: frees the states of threads that have ended. */
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

/* In a forked child, with the GIL: only the thread that forked exists, the other states are Python's to delete. */
static void gpy_forget_others(void) {
    gpy_record *record = atomic_exchange(&gpy_records, NULL);
    atomic_store(&gpy_kept, 0);
    atomic_store(&gpy_ended, 0);
    while (record) {
        gpy_record *next = record->next;
        if (record == gpy_mine) {
            gpy_push(record);
            atomic_store(&gpy_kept, 1);
        } else {
            free(record);
        }
        record = next;
    }
}

static inline PyThreadState *gpy_attached(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

typedef struct {
    gpy_record *record;    /* non-NULL: leave with PyEval_SaveThread */
    PyGILState_STATE gil;  /* else: leave with PyGILState_Release */
} gpy_entry;

/* A thread of nobody's enters for the first time: keep what PyGILState_Ensure makes. */
static gpy_record *gpy_adopt(void) {
    gpy_record *record = calloc(1, sizeof *record);
    if (!record || gpy_watch_thread(record)) {
        free(record);
        return NULL;
    }
    return record;
}

static inline void gpy_enter(gpy_entry *entry) {
    gpy_record *record = gpy_mine;
    entry->record = NULL;
    if (record && !record->inside && gpy_attached() != record->state) {
        PyEval_RestoreThread(record->state);
    } else if (!record && !PyGILState_GetThisThreadState() && (record = gpy_adopt())) {
        PyGILState_Ensure();
        record->state = PyThreadState_Get();
        gpy_collect();
        gpy_push(gpy_mine = record);
        atomic_fetch_add(&gpy_kept, 1);
    } else {
        entry->gil = PyGILState_Ensure();
        return;
    }
    record->inside = 1;
    entry->record = record;
}

static inline void gpy_leave(gpy_entry *entry) {
    if (entry->record) {
        entry->record->inside = 0;
        PyEval_SaveThread();
    } else {
        PyGILState_Release(entry->gil);
    }
}

/* ---- The hooks. Their Python bodies (Cython, GIL held, never raising) are installed at import. -------------------- */

static gb_hooks gpy_bodies;

static int32_t gpy_inline_answer(void *host, const gopher_orch_elicitation_request_t *request) {
    gpy_entry entry;
    gpy_enter(&entry);
    int32_t action = gpy_bodies.inline_answer(host, request);
    gpy_leave(&entry);
    return action;
}

static void gpy_event(void *host, const gopher_orch_event_t *event) {
    gpy_entry entry;
    gpy_enter(&entry);
    gpy_bodies.event(host, event);
    gpy_leave(&entry);
}

static void gpy_unattended(void *host, gb_request *request) {
    gpy_entry entry;
    gpy_enter(&entry);
    gpy_bodies.unattended(host, request);
    gpy_leave(&entry);
}

static void gpy_drop(void *host) {
    gpy_entry entry;
    gpy_enter(&entry);
    gpy_bodies.drop(host);
    gpy_leave(&entry);
}

static int gpy_install(const gb_hooks *bodies) {
    static const gb_hooks hooks = {gpy_inline_answer, gpy_event, gpy_unattended, gpy_drop};
    gpy_bodies = *bodies;
    if (gpy_init_key()) return -1;
    gb_set_hooks(&hooks);
    return 0;
}

#endif
