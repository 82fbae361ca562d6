/* What may block or must not happen just anywhere: native releases and the end of host objects, on a thread of their own.
 *
 * A native release may join a thread of the library's, so it must never happen on a callback's thread; a host object may
 * run any code of a program's when it goes. The queue is made of nodes inside the agents and calls: nothing here can run
 * out of memory. First in, first out: a run's own reference goes before the agent's last one.
 *
 * The thread is started when it is first needed, is never joined and does nothing more once the gate is closed: what is
 * still there then goes with the process. That a release in progress counts as being inside the gate makes the drain at
 * exit wait for it, within its bounds.
 */
#include "internal.h"

#define SHORTEST_REST_MS 1
#define LONGEST_REST_MS 64

static struct {
    gb_agent *first_agent, *last_agent;
    gb_call *first_run, *last_run;
    bool running, ready;
    gb_cond filled;
} reaper; /* under gb_lock */

/* ---- the thread --------------------------------------------------------------------------------------------- */

static bool release_handle(const gb_api *api, gopher_orch_agent_t handle) {
    uint32_t epoch = gb_epoch_load();
    if (!handle || !gb_gate_enter())
        return false;
    api->agent_release(handle);
    gb_gate_leave_since(epoch);
    return true;
}

static bool drop_host(void *host) {
    const gb_hooks *hooks = gb_hooks_get();
    uint32_t epoch = gb_epoch_load();
    if (!host || !hooks->drop || !gb_gate_enter())
        return false;
    hooks->drop(host);
    gb_gate_leave_since(epoch);
    return true;
}

static void end_agent(gb_agent *agent) {
    bool released = release_handle(agent->api, agent->handle);
    bool dropped = drop_host(gb_agent_host(agent));
    if (agent->epoch != gb_epoch_load()) /* a destructor forked, and this is the child */
        return;
    gb_enter_lock();
    agent->handle = NULL;
    gb_count.released_handles += released;
    gb_count.dropped_hosts += dropped;
    gb_agent_recycle(agent);
    gb_leave_lock();
}

static void end_run(gb_call *call) {
    release_handle(call->api, call->run_handle);
    gb_call_drop(call);
}

static gb_call *take_run(void) {
    gb_call *call = reaper.first_run;
    if (call) {
        reaper.first_run = call->next_to_reap;
        if (!reaper.first_run)
            reaper.last_run = NULL;
    }
    return call;
}

/* The first that no inline callback is in. As many are passed over as there are announcements, at most. */
static gb_agent *take_agent(void) {
    gb_agent *before = NULL, *agent = reaper.first_agent;
    for (; agent && gb_inline_busy(agent); agent = agent->next)
        before = agent;
    if (!agent)
        return NULL;
    if (before)
        before->next = agent->next;
    else
        reaper.first_agent = agent->next;
    if (reaper.last_agent == agent)
        reaper.last_agent = before;
    return agent;
}

/* The end of an inline callback wakes nobody, which it could not afford: look again soon, then less and less often. */
static void rest(int64_t *patience_ms) {
    bool busy = reaper.first_agent != NULL;
    gb_cond_wait_until(&reaper.filled, &gb_lock, busy ? gb_after_ms(gb_now_ns(), *patience_ms) : GB_FOREVER);
    if (busy && *patience_ms < LONGEST_REST_MS)
        *patience_ms *= 2;
}

static void put_agent(gb_agent *agent) {
    agent->next = NULL;
    if (reaper.last_agent)
        reaper.last_agent->next = agent;
    else
        reaper.first_agent = agent;
    reaper.last_agent = agent;
}

/* Runs first: an agent is queued only after all of its runs are. Ends in the child of a fork that a destructor made: the
 * child has forgotten this thread and starts one of its own when it needs it. */
static void reap(void *unused) {
    (void)unused;
    uint32_t epoch = gb_epoch_load();
    int64_t patience_ms = SHORTEST_REST_MS;
    while (epoch == gb_epoch_load()) {
        gb_enter_lock();
        gb_call *call = take_run();
        gb_agent *agent = call ? NULL : take_agent();
        if (!call && !agent)
            rest(&patience_ms);
        else
            patience_ms = SHORTEST_REST_MS;
        gb_leave_lock();
        if (call)
            end_run(call);
        else if (agent)
            end_agent(agent);
    }
}

/* ---- everybody else ----------------------------------------------------------------------------------------- */

/* Under gb_lock. True: the caller starts the thread, after it has given up the lock. */
static bool wake(void) {
    if (!reaper.ready)
        reaper.ready = gb_cond_init(&reaper.filled);
    if (reaper.running) {
        gb_cond_broadcast(&reaper.filled);
        return false;
    }
    return reaper.running = reaper.ready;
}

/* No thread to be had: the queue stays, the next one to come tries again. */
static void start(void) {
    if (gb_thread_start(reap, NULL))
        return;
    gb_enter_lock();
    reaper.running = false;
    gb_leave_lock();
}

void gb_reap_agent(gb_agent *agent) {
    gb_enter_lock();
    put_agent(agent);
    bool must_start = wake();
    gb_leave_lock();
    if (must_start)
        start();
}

void gb_reap_run(gb_call *call) {
    gb_enter_lock();
    call->next_to_reap = NULL;
    if (reaper.last_run)
        reaper.last_run->next_to_reap = call;
    else
        reaper.first_run = call;
    reaper.last_run = call;
    bool must_start = wake();
    gb_leave_lock();
    if (must_start)
        start();
}

void gb_reaper_forget(void) { memset(&reaper, 0, sizeof reaper); }
