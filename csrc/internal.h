/* What the files of the bridge share among themselves. First include of each of them; never of the host's module.
 *
 * Locking. One lock, gb_lock, guards everything that is not lock-free: agents' cold fields, requests, calls, the reaper's
 * queue, the counters. It is held for a few instructions, never across a call of the vendor's or of the host's. Requests
 * and calls bring a condition of their own, so a wake-up reaches the thread that it is meant for. The look-up of a token
 * and the gate use atomics only.
 *
 * Forks. Nothing is locked around a fork. The child resets gb_lock, forgets every list (the memory stays, as a copy of
 * the parent's) and counts the epoch up. Agents, requests and calls carry the epoch that they were made in; a function
 * that meets another epoch's does nothing and answers "over".
 */
#ifndef GOPHER_INTERNAL_H
#define GOPHER_INTERNAL_H

#include "platform.h"

#include <stdatomic.h>

#include "bridge.h"

_Static_assert(sizeof(void *) == 8 && sizeof(gb_token) == 8, "a token travels as a pointer: 64-bit hosts only");

/* Tests replace it to make allocations fail. */
#if defined(GB_TEST_ALLOC)
void *gb_alloc(size_t size);
#else
static inline void *gb_alloc(size_t size) { return malloc(size); }
#endif

static inline void *gb_alloc_zeroed(size_t size) {
    void *memory = gb_alloc(size);
    return memory ? memset(memory, 0, size) : NULL;
}

/* ---- api.c -------------------------------------------------------------------------------------------------- */

struct gb_api {
#define X(field, symbol, since, need, type) type *field;
#include "api_table.h"
#undef X
    void *library;
    struct gb_api *next;
};

/* ---- gate.c ------------------------------------------------------------------------------------------------- */

extern gb_mutex gb_lock;
extern gb_counts gb_count; /* under gb_lock, except `threads` */
extern _Atomic(uint64_t) gb_thread_count;
extern _Atomic(uint32_t) gb_epoch_now;

void gb_init(void); /* once per process: the fork handler */
/* As gb_gate_leave, for one who entered in `epoch`: the child of a fork made in between has nothing to leave. */
void gb_gate_leave_since(uint32_t epoch);

static inline uint32_t gb_epoch_load(void) { return atomic_load_explicit(&gb_epoch_now, memory_order_relaxed); }
static inline void gb_enter_lock(void) { gb_mutex_lock(&gb_lock); }
static inline void gb_leave_lock(void) { gb_mutex_unlock(&gb_lock); }

extern _Atomic(const gb_hooks *) gb_hooks_now;
const gb_hooks *gb_hooks_get(void); /* never NULL; members may be */

/* ---- registry.c --------------------------------------------------------------------------------------------- */

/* A slot's hot half: all that a fixed or inline answer needs, a quarter of a cache line.
 *   state  63..32 generation | 31 live | 30 retired | 29..28 mode | 27..26 fixed action | 25 wants events | 24..0 refs */
typedef struct {
    _Atomic(uint64_t) state;
    void *host;
} gb_slot;

#define GB_STATE_LIVE (UINT64_C(1) << 31)
#define GB_STATE_RETIRED (UINT64_C(1) << 30)
#define GB_STATE_MODE_SHIFT 28
#define GB_STATE_ACTION_SHIFT 26
#define GB_STATE_EVENTS (UINT64_C(1) << 25)
#define GB_STATE_REFERENCES (GB_STATE_EVENTS - 1)
#define GB_STATE_MODE(state) ((gb_answer_mode)((state) >> GB_STATE_MODE_SHIFT & 3))
#define GB_STATE_ACTION(state) ((int32_t)((state) >> GB_STATE_ACTION_SHIFT & 3))

/* The cold half, one cache line, in an array of the same shape: never freed, so a stale pointer still points at an agent
 * and can be told from a live one. All fields under gb_lock, except those that gb_agent_open sets once for the life of
 * the entry: api, limit_ns, slot, epoch, host_slot. */
struct gb_agent {
    const gb_api *api;
    gopher_orch_agent_t handle; /* set by the create call, taken by the reaper */
    gb_call *running;           /* the native call in progress, whether or not somebody waits for it */
    gb_slot *hot;
    int64_t limit_ms;
    gb_agent *next; /* free list or reaper's queue */
    uint32_t slot, epoch;
    bool closed;  /* disposed: look-ups fail, requests are cancelled */
    bool retired; /* a call was left before its end: no further run, requests are cancelled */
};

typedef _Atomic(gb_token) gb_hazard;
/* An inline callback comes in and goes. NULL: not now (closed, another mode, all records taken); ask gb_slot_acquire. */
gb_hazard *gb_inline_begin(gb_token token);
void gb_inline_end(gb_hazard *hazard);
bool gb_inline_busy(const gb_agent *agent); /* is such a callback in there? */

gb_slot *gb_slot_acquire(gb_token token, uint64_t *state);
gb_agent *gb_slot_agent(gb_token token);
void gb_slot_release(gb_slot *slot, gb_token token);
void gb_agent_retire(gb_agent *agent);  /* under gb_lock */
void gb_agent_recycle(gb_agent *agent); /* under gb_lock; the reaper is done with it */
void gb_registry_forget(void);

/* ---- queue.c ------------------------------------------------------------------------------------------------ */

typedef enum { GB_REQUEST_OPEN, GB_REQUEST_ANSWERED, GB_REQUEST_ENDED } gb_request_state;

struct gb_request {
    gopher_orch_elicitation_request_t fields; /* the strings follow the struct in one allocation */
    _Atomic(int) state;                       /* written under gb_lock */
    uint32_t epoch;
    uint32_t references; /* under gb_lock, as all that follows */
    int32_t action;
    int64_t deadline_ns; /* GB_FOREVER: none; never changes */
    bool ownerless;      /* nobody attached will take it: the callback's thread must find a helper */
    bool queued;         /* in call's queue, not taken yet */
    gb_agent *agent;     /* while open; the callback's reference keeps it */
    gb_call *call;       /* whose clock stands still because of it */
    gb_request *previous, *next; /* all open requests */
    gb_request *next_queued;
    gb_cond changed;
};

/* Copies the request, waits for an answer; always 1, 2 or 3. Called with a reference of the agent held. */
int32_t gb_queue_ask(gb_agent *agent, const gopher_orch_elicitation_request_t *request);
/* Under gb_lock: ends with cancel every open request of an agent, or of all agents when it is NULL. */
void gb_queue_cancel(const gb_agent *agent);
/* Under gb_lock: a call is over; its requests go on without it. */
void gb_queue_orphan(gb_call *call);
void gb_queue_forget(void);

/* ---- calls.c ------------------------------------------------------------------------------------------------ */

typedef enum { GB_CALL_CREATE, GB_CALL_RUN, GB_CALL_FETCH } gb_call_kind;

/* A copied argument: a chain that lives as long as the native call, wiped when it goes (tokens and keys are in it). */
typedef struct gb_kept {
    struct gb_kept *next;
    size_t size;
} gb_kept;

struct gb_call {
    /* Fixed before the thread starts. */
    uint32_t epoch;
    gb_call_kind kind;
    gb_factory factory;
    const gb_api *api;
    gb_agent *agent; /* a reference, until the native call has returned; NULL for fetch */
    gb_token token;
    const char *provider, *model, *api_key, *target, *query;
    gopher_orch_agent_options_t *options;
    int64_t native_timeout_ms;
    gb_kept *kept;
    bool out_of_memory;
    /* Under gb_lock. */
    uint32_t references; /* waiter, thread, reaper */
    bool done, closed, left;
    gb_request *first, *last; /* not taken yet */
    uint32_t open;            /* requests that stop the clock */
    int64_t started_ns, timeout_ms, paused_ns, paused_since_ns;
    gb_call *previous, *next; /* all calls that somebody waits for or that run */
    gb_call *next_to_reap;
    gopher_orch_agent_t run_handle; /* the reference that add_ref took */
    gb_cond changed;
    /* Outcome: written by the call's thread before `done`, and by an event under gb_lock. */
    bool ok;
    char *text; /* the library's, freed with its free */
    char *completed_json;
    int32_t error_code;
    char *error_message, *error_details;
    uint64_t run_id, iterations;
};

/* All under gb_lock. */
bool gb_call_attended(const gb_call *call);
void gb_call_enqueue(gb_call *call, gb_request *request);
void gb_call_dequeue(gb_call *call, gb_request *request); /* answered, ended or orphaned: the clock may go on */
void gb_calls_closed(gb_call *call);                      /* NULL: all */

void gb_call_drop(gb_call *call); /* one reference; not under gb_lock */
void gb_calls_completed(gb_agent *agent, const gopher_orch_event_t *event);
void gb_calls_forget(void);

/* ---- reaper.c ----------------------------------------------------------------------------------------------- */

void gb_reap_agent(gb_agent *agent); /* the last reference has gone */
void gb_reap_run(gb_call *call);     /* gives back run_handle; takes over one reference of the call */
void gb_reaper_forget(void);

/* ---- all ---------------------------------------------------------------------------------------------------- */

/* Anything but the three answers makes the library answer the server with an error: cancel instead. */
static inline int32_t gb_valid_action(int32_t action) {
    return action >= GOPHER_ORCH_ELICITATION_ACCEPT && action <= GOPHER_ORCH_ELICITATION_CANCEL
               ? action
               : GOPHER_ORCH_ELICITATION_CANCEL;
}

#endif
