/* The bridge between libgopher-orch and a host that may only be entered through a gate (CPython behind its GIL).
 *
 * Plain C11, no Python.h: registry, queue, gate, calls and reaper are tested in C under sanitizers (tests/c). The Cython
 * module is the only caller in production and supplies the hooks. Layers, each in a file of its own:
 *
 *   api.c       the vendor's functions, looked up by one table (api_table.h)
 *   gate.c      may a foreign thread enter the host now? who is inside?
 *   registry.c  token -> agent, generation checked, lock-free look-up, reference counted
 *   queue.c     requests that wait for a person, GIL-free, with a deadline
 *   calls.c     native create and run on threads of the bridge; an interruptible wait for them
 *   reaper.c    native releases and host references, dropped on a thread of their own
 *   trampoline.c the two functions that the library calls
 *
 * Nothing here takes the host's lock while it holds a lock of its own.
 */
#ifndef GOPHER_BRIDGE_H
#define GOPHER_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gopher_orch/gopher_orch.h"

/* ---- api.c -------------------------------------------------------------------------------------------------- */

typedef struct gb_api gb_api; /* one field a function of api_table.h, NULL where the library lacks it */

/* Opens `path` (the loader's own search when it has no slash) and fills the table. NULL on failure, with the reason in
 * `error` (always terminated). Missing required functions are a failure that names them. */
const gb_api *gb_api_open(const char *path, char *error, size_t size);

/* The table itself, for messages and tests: name, since-version, whether it is required. NULL past the end. */
typedef struct {
    const char *name, *since;
    bool required;
} gb_symbol;
const gb_symbol *gb_api_symbol(size_t index);
bool gb_api_has(const gb_api *api, const char *name);
/* Process-wide in the library: 0 (everything) to 8 (silent). Nothing where the library lacks it. */
void gb_api_set_log_level(const gb_api *api, int32_t level);

/* Opens a shared library by absolute path or name and keeps it open (OpenSSL 1.1, the host's sqlite3, ...). */
bool gb_preload(const char *path, bool global, char *error, size_t size);

/* ---- gate.c ------------------------------------------------------------------------------------------------- */

/* A foreign thread calls enter before it takes the host's lock and leave after it gave it back. False: the host is going
 * away (exit) or never was ours (forked child before reopen): don't. */
bool gb_gate_enter(void);
void gb_gate_leave(void);
void gb_gate_close(void);                    /* closes for good, ends every wait in queue.c and calls.c with cancel */
bool gb_gate_drain(int64_t milliseconds);    /* waits until nobody is inside; false when the time was up */
bool gb_gate_is_open(void);
uint32_t gb_epoch(void);                     /* counts forks: an agent of another epoch is an inherited one */

/* ---- registry.c --------------------------------------------------------------------------------------------- */

typedef struct gb_agent gb_agent;
typedef uint64_t gb_token; /* generation << 32 | slot; never 0; fits a void* on 64-bit hosts */

typedef enum { GB_ANSWER_FIXED, GB_ANSWER_INLINE, GB_ANSWER_HANDED_OVER } gb_answer_mode;

typedef struct {
    gb_answer_mode mode;
    int32_t fixed_action;  /* GB_ANSWER_FIXED: GOPHER_ORCH_ELICITATION_* */
    int64_t limit_ms;      /* GB_ANSWER_HANDED_OVER: the longest wait for one answer; 0 is none */
    bool wants_events;     /* events other than run_completed go to hooks.event */
    void *host;            /* the host's object for this agent, dropped once through hooks.drop */
} gb_agent_config;

/* Makes a live entry with one reference, the owner's. 0 when out of memory (host is then not taken). */
gb_token gb_agent_open(const gb_api *api, const gb_agent_config *config);
/* Takes a reference; NULL when the token is stale, closed or of another epoch. Lock-free. */
gb_agent *gb_agent_acquire(gb_token token);
void gb_agent_release(gb_agent *agent);
/* Dispose: look-ups fail from now on, waits of this agent end with cancel, the owner's reference goes. The last one to
 * leave hands the native handle and the host object to the reaper. Idempotent; never blocks; any thread. */
void gb_agent_close(gb_token token);
void *gb_agent_host(gb_agent *agent);
bool gb_agent_can_run(gb_agent *agent); /* created, not closed, not retired */

typedef struct {
    uint64_t live_agents, live_calls, live_requests, released_handles, dropped_hosts, threads;
} gb_counts;
void gb_get_counts(gb_counts *counts);

/* ---- queue.c ------------------------------------------------------------------------------------------------ */

/* A copy of a request whose callback waits for the answer. Reference counted: the callback holds one until it has
 * returned, whoever took it holds one. */
typedef struct gb_request gb_request;
const gopher_orch_elicitation_request_t *gb_request_fields(const gb_request *request);
/* True when this answer was the one that counted; false when the wait had ended (deadline, dispose, exit, answered). */
bool gb_request_answer(gb_request *request, int32_t action);
bool gb_request_is_open(const gb_request *request);
int64_t gb_request_remaining_ms(const gb_request *request); /* -1: no limit; 0: over */
void gb_request_release(gb_request *request);

/* ---- calls.c ------------------------------------------------------------------------------------------------ */

typedef enum {
    GB_BY_JSON, GB_BY_API_KEY, GB_BY_URL, GB_BY_SERVER_ID, GB_BY_SERVER_NAME, GB_BY_GATEWAY_ID, GB_BY_GATEWAY_NAME
} gb_factory;

typedef struct gb_call gb_call;

/* Starts a native create on a thread of the bridge. `options` NULL: the plain (non-options) symbol. Everything is copied;
 * the trampoline and the token are put into the copy when `elicitation` is true. NULL: no thread could be made, or the
 * agent is gone. `api_key` is read by the routed factories only. */
gb_call *gb_call_create(gb_token token, gb_factory factory, const char *provider, const char *model,
                        const char *api_key, const char *target, const gopher_orch_agent_options_t *options,
                        bool elicitation);
/* `timeout_ms` is the call's own time, as by gb_call_set_timeout, and is told to the library. NULL also while another run
 * of the agent is in progress, before it has a handle, and after it was retired. */
gb_call *gb_call_run(gb_token token, const char *query, int64_t timeout_ms);
gb_call *gb_call_fetch(const gb_api *api, const char *api_key); /* api_fetch_servers */

typedef enum {
    GB_WAKE_TICK,    /* nothing new within the slice: check signals, come again */
    GB_WAKE_REQUEST, /* a request can be taken */
    GB_WAKE_DONE,    /* the native call has returned */
    GB_WAKE_TIMEOUT, /* the call's own time (set_timeout), without the time in which a request was open, is up */
    GB_WAKE_CLOSED   /* the agent was disposed or the process exits; the native call goes on behind */
} gb_wake;
/* Waits without the host's lock. Order when several hold: DONE, CLOSED, REQUEST, TIMEOUT, TICK. */
gb_wake gb_call_wait(gb_call *call, int64_t slice_ms);
void gb_call_set_timeout(gb_call *call, int64_t timeout_ms); /* from the call's start; 0: none */
/* While somebody is attached, requests wait for take; otherwise hooks.unattended is called from the callback's thread. */
gb_request *gb_call_take(gb_call *call);
/* The waiter leaves (done, timeout, Ctrl-C): open and later requests of this call are cancelled when the call has not
 * ended, the agent is retired (no further run; see gb_agent_close), and the call's reference goes. */
void gb_call_leave(gb_call *call);

/* Error codes of the bridge's own, beside the library's: the library lacks the function that the call needs (the message
 * names it). */
#define GB_ERROR_NO_FUNCTION (-1000)

/* After DONE. Strings belong to the call and live until leave; NULL where the library gave none. */
typedef struct {
    bool ok;                   /* create: a handle came; run, fetch: a string came */
    const char *text;          /* run, fetch */
    const char *completed_json;/* run: payload of the run_completed event */
    int32_t error_code;        /* last_error of the very thread that made the call; 0: none */
    const char *error_message, *error_details;
    uint64_t run_id, iterations;
    double paused_seconds;     /* how long requests were open */
} gb_outcome;
void gb_call_outcome(gb_call *call, gb_outcome *outcome);

/* ---- trampoline.c, hooks ------------------------------------------------------------------------------------ */

/* Supplied by the host, each called with no lock of the bridge held, inside the gate (enter/leave is the bridge's). */
typedef struct {
    /* It asks gb_inline_host(token) for its host itself, as late as it can: the slot is on its way from memory meanwhile,
     * which among a million agents takes as long as the decoding does. */
    int32_t (*inline_answer)(gb_token token, const gopher_orch_elicitation_request_t *request);
    void (*event)(void *host, const gopher_orch_event_t *event);
    void (*unattended)(void *host, gb_request *request); /* start a helper; it owns one reference of request */
    void (*drop)(void *host);
} gb_hooks;
/* The host of the agent that an inline_answer call is for, which holds it until it returns. NULL: closed meanwhile, answer
 * GOPHER_ORCH_ELICITATION_CANCEL. */
void *gb_inline_host(gb_token token);
void gb_set_hooks(const gb_hooks *hooks);

/* What create_*_with_options gets as callback and as user_data; also what benchmarks and fuzzers drive. */
int32_t gb_elicitation_trampoline(const gopher_orch_elicitation_request_t *request, void *user_data);
void gb_event_trampoline(const gopher_orch_event_t *event, void *user_data);

#endif
