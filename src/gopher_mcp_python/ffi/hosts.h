/* What Python keeps for an agent: one cache line each, in slabs of huge pages.
 *
 * An inline callback among a million agents finds none of this in a cache. As a Python object it would cost two lines
 * and a walk of the page tables; like this it is one line, fetched while the request is decoded.
 *
 * References: csrc's (until hooks.drop), the AgentHandle's, one of each Call. All but the counts is touched with the
 * GIL held (free-threaded builds: `lock` around the context, which is the only thing that changes).
 */
#ifndef GOPHER_FFI_HOSTS_H
#define GOPHER_FFI_HOSTS_H

#include "platform.h"

#include "bridge.h"

#include <Python.h>
#include <stdatomic.h>

typedef struct gpy_host {
    PyObject *answer;         /* owned: host.inline_answer */
    PyObject *run_context;    /* owned: contextvars of who runs the agent now; often shared with others */
    PyObject *server;         /* owned: label put on each request; str or None */
    PyObject *event;          /* owned: host.event */
    PyObject *unattended;     /* owned: host.unattended; in a free entry: the next one */
    PyObject *base_context;   /* owned: contextvars of who created the agent */
    atomic_ullong asked;      /* requests that reached Python */
    atomic_int references;
    atomic_uint lock;         /* free-threaded builds: the holder's epoch + 1; 0 is free */
} gpy_host;

_Static_assert(sizeof(gpy_host) == 64, "one cache line");

#define GPY_SLAB_BYTES ((size_t)2 * 1024 * 1024)
#define GPY_SLAB_HOSTS (GPY_SLAB_BYTES / sizeof(gpy_host))
#define GPY_SLAB_COUNT 4096 /* 134 million hosts, as many as csrc has slots */

static gb_mutex gpy_slab_lock = GB_MUTEX_INIT; /* for a few instructions, never across anything of Python's */
static gpy_host *gpy_free_hosts;
static size_t gpy_hosts_made; /* all that were ever given out, in order */
static _Atomic(gpy_host *) gpy_slabs[GPY_SLAB_COUNT];

/* A small process never pays for a huge page: the first slab stays as it is. Slabs are never given back. */
static gpy_host *gpy_host_room(void) {
    gb_mutex_lock(&gpy_slab_lock);
    gpy_host *host = gpy_free_hosts;
    if (host) {
        gpy_free_hosts = (gpy_host *)host->unattended;
    } else if (gpy_hosts_made < GPY_SLAB_COUNT * GPY_SLAB_HOSTS) {
        size_t slab = gpy_hosts_made / GPY_SLAB_HOSTS;
        host = atomic_load(&gpy_slabs[slab]);
        if (!host && (host = gb_pages_alloc(GPY_SLAB_BYTES))) {
            if (slab) gb_pages_huge(host, GPY_SLAB_BYTES);
            atomic_store(&gpy_slabs[slab], host);
        }
        if (host) host += gpy_hosts_made++ % GPY_SLAB_HOSTS;
    }
    gb_mutex_unlock(&gpy_slab_lock);
    return host;
}

/* Fetches the host that a token probably has: slots and hosts are given out in the same order, so the slot's number is
 * the host's until their free lists part. A wrong guess costs nothing but its use; a right one spares the callback to
 * wait for the slot first and then for what the slot points to. */
static inline void gpy_host_prefetch(gb_token token) {
    uint32_t number = (uint32_t)token - 1;
    if (number / GPY_SLAB_HOSTS >= GPY_SLAB_COUNT) return;
    gpy_host *slab = atomic_load_explicit(&gpy_slabs[number / GPY_SLAB_HOSTS], memory_order_relaxed);
    if (slab) GB_PREFETCH_WRITE(&slab[number % GPY_SLAB_HOSTS]);
}

/* NULL: no memory. */
static gpy_host *gpy_host_new(PyObject *answer, PyObject *event, PyObject *unattended, PyObject *server,
                              PyObject *context) {
    gpy_host *host = gpy_host_room();
    if (!host) return NULL;
    host->answer = Py_NewRef(answer);
    host->event = Py_NewRef(event);
    host->unattended = Py_NewRef(unattended);
    host->server = Py_NewRef(server);
    host->base_context = Py_NewRef(context);
    host->run_context = Py_NewRef(context);
    atomic_init(&host->asked, 0);
    atomic_init(&host->references, 1);
    atomic_init(&host->lock, 0);
    return host;
}

static gpy_host *gpy_host_retain(gpy_host *host) {
    atomic_fetch_add(&host->references, 1);
    return host;
}

static void gpy_host_release(gpy_host *host) {
    if (!host || atomic_fetch_sub(&host->references, 1) != 1) return;
    PyObject *owned[] = {host->answer, host->event,        host->unattended,
                         host->server, host->base_context, host->run_context};
    gb_mutex_lock(&gpy_slab_lock);
    host->unattended = (PyObject *)gpy_free_hosts;
    gpy_free_hosts = host;
    gb_mutex_unlock(&gpy_slab_lock);
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) Py_DECREF(owned[i]); /* last: it may run anything */
}

static void gpy_hosts_after_fork(void) { gb_mutex_reset(&gpy_slab_lock); }

static inline void gpy_host_count(gpy_host *host) {
#ifdef Py_GIL_DISABLED
    atomic_fetch_add_explicit(&host->asked, 1, memory_order_relaxed);
#else /* a locked instruction would wait for the line */
    atomic_store_explicit(&host->asked, atomic_load_explicit(&host->asked, memory_order_relaxed) + 1,
                          memory_order_relaxed);
#endif
}
static inline unsigned long long gpy_host_asked(const gpy_host *host) {
    return atomic_load_explicit(&((gpy_host *)host)->asked, memory_order_relaxed);
}

#ifdef Py_GIL_DISABLED
/* Held for a few instructions. A holder of another epoch was left behind by a fork: its lock is free. */
static inline void gpy_host_lock(gpy_host *host) {
    unsigned mine = gb_epoch() + 1, holder = 0;
    while (!atomic_compare_exchange_weak_explicit(&host->lock, &holder, mine, memory_order_acquire,
                                                  memory_order_relaxed)) {
        if (holder == mine) holder = 0;
    }
}
static inline void gpy_host_unlock(gpy_host *host) {
    atomic_store_explicit(&host->lock, 0, memory_order_release);
}
#else
static inline void gpy_host_lock(gpy_host *host) { (void)host; }
static inline void gpy_host_unlock(gpy_host *host) { (void)host; }
#endif

/* A new reference. */
static inline PyObject *gpy_host_context(gpy_host *host) {
    gpy_host_lock(host);
    PyObject *context = Py_NewRef(host->run_context);
    gpy_host_unlock(host);
    return context;
}

static void gpy_host_set_context(gpy_host *host, PyObject *context) {
    gpy_host_lock(host);
    PyObject *before = host->run_context;
    host->run_context = Py_NewRef(context);
    gpy_host_unlock(host);
    Py_DECREF(before);
}

/* A run is over: callbacks see the creator's variables again, unless the next run has begun. */
static void gpy_host_end_context(gpy_host *host, PyObject *context) {
    gpy_host_lock(host);
    PyObject *before = host->run_context == context ? host->run_context : NULL;
    if (before) host->run_context = Py_NewRef(host->base_context);
    gpy_host_unlock(host);
    Py_XDECREF(before);
}

#endif
