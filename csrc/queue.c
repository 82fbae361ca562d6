/* Requests that wait for a person: copied, queued, waited for outside the host until somebody answers or nobody can any
 * more. Whoever ends a request first (answer, deadline, dispose, exit, a call that was left) decides; the rest is told
 * that it came late.
 */
#include "internal.h"

static gb_request *open_requests; /* under gb_lock */

/* ---- the copy ----------------------------------------------------------------------------------------------- */

/* The seven fields are nothing but pointers, so both structs are read as arrays of them. */
enum { FIELDS = sizeof(gopher_orch_elicitation_request_t) / sizeof(const char *) };
_Static_assert(FIELDS == 7, "seven strings");

static size_t measure(const char *const source[FIELDS], size_t lengths[FIELDS]) {
    size_t total = 0;
    for (int i = 0; i < FIELDS; i++) {
        lengths[i] = source[i] ? strlen(source[i]) + 1 : 0;
        total += lengths[i];
    }
    return total;
}

static void copy_fields(gb_request *request, const char *const source[FIELDS], const size_t lengths[FIELDS]) {
    const char *copied[FIELDS];
    char *at = (char *)(request + 1);
    for (int i = 0; i < FIELDS; i++) {
        copied[i] = source[i] ? memcpy(at, source[i], lengths[i]) : NULL;
        at += lengths[i];
    }
    memcpy(&request->fields, copied, sizeof copied);
}

static gb_request *copy_of(const gopher_orch_elicitation_request_t *original, int64_t limit_ms, int64_t now_ns) {
    const char *source[FIELDS];
    size_t lengths[FIELDS];
    memcpy(source, original, sizeof source);
    size_t total = measure(source, lengths);
    gb_request *request = gb_alloc(sizeof *request + total);
    if (!request)
        return NULL;
    memset(request, 0, sizeof *request);
    if (!gb_cond_init(&request->changed)) {
        free(request);
        return NULL;
    }
    copy_fields(request, source, lengths);
    request->epoch = gb_epoch_load();
    request->references = 1;
    request->action = GOPHER_ORCH_ELICITATION_CANCEL;
    request->deadline_ns = limit_ms > 0 ? gb_after_ms(now_ns, limit_ms) : GB_FOREVER;
    return request;
}

static bool inherited(const gb_request *request) { return request->epoch != gb_epoch_load(); }

static gb_request_state state_of(const gb_request *request) {
    return (gb_request_state)atomic_load_explicit(&request->state, memory_order_acquire);
}

/* ---- open and over, under gb_lock --------------------------------------------------------------------------- */

static void link_open(gb_request *request, gb_agent *agent) {
    request->agent = agent;
    request->next = open_requests;
    if (open_requests)
        open_requests->previous = request;
    open_requests = request;
}

static void unlink_open(gb_request *request) {
    if (request->previous)
        request->previous->next = request->next;
    else
        open_requests = request->next;
    if (request->next)
        request->next->previous = request->previous;
    request->previous = request->next = NULL;
    request->agent = NULL;
}

static bool finish(gb_request *request, gb_request_state state, int32_t action) {
    if (state_of(request) != GB_REQUEST_OPEN)
        return false;
    if (request->call)
        gb_call_dequeue(request->call, request);
    unlink_open(request);
    request->action = gb_valid_action(action);
    atomic_store_explicit(&request->state, (int)state, memory_order_release);
    gb_cond_broadcast(&request->changed);
    return true;
}

static void cancel(gb_request *request) { finish(request, GB_REQUEST_ENDED, GOPHER_ORCH_ELICITATION_CANCEL); }

void gb_queue_cancel(const gb_agent *agent) {
    for (gb_request *request = open_requests, *next; request; request = next) {
        next = request->next;
        if (!agent || request->agent == agent)
            cancel(request);
    }
}

void gb_queue_orphan(gb_call *call) {
    for (gb_request *request = open_requests; request; request = request->next) {
        if (request->call != call)
            continue;
        request->ownerless = request->queued; /* a taken one has somebody who answers it */
        gb_call_dequeue(call, request);
        gb_cond_broadcast(&request->changed);
    }
}

/* ---- the callback's thread ---------------------------------------------------------------------------------- */

/* Nobody is attached: the host starts a helper. Under gb_lock, which is given up for the call. */
static void find_helper(gb_request *request, void *host) {
    request->ownerless = false;
    request->references++; /* the helper's */
    gb_leave_lock();
    const gb_hooks *hooks = gb_hooks_get();
    uint32_t epoch = gb_epoch_load();
    bool asked = hooks->unattended && gb_gate_enter();
    if (asked) {
        hooks->unattended(host, request);
        gb_gate_leave_since(epoch);
    } else {
        gb_request_answer(request, GOPHER_ORCH_ELICITATION_CANCEL);
        gb_request_release(request);
    }
    gb_enter_lock();
}

static void wait_for_end(gb_request *request, void *host) {
    while (state_of(request) == GB_REQUEST_OPEN && !inherited(request)) {
        if (request->ownerless)
            find_helper(request, host);
        else if (gb_now_ns() >= request->deadline_ns)
            cancel(request);
        else
            gb_cond_wait_until(&request->changed, &gb_lock, request->deadline_ns);
    }
}

int32_t gb_queue_ask(gb_agent *agent, const gopher_orch_elicitation_request_t *original) {
    gb_request *request = copy_of(original, agent->limit_ms, gb_now_ns());
    if (!request)
        return GOPHER_ORCH_ELICITATION_CANCEL;
    gb_enter_lock();
    gb_count.live_requests++;
    if (!agent->closed && !agent->retired && gb_gate_is_open()) {
        link_open(request, agent);
        if (gb_call_attended(agent->running))
            gb_call_enqueue(agent->running, request);
        else
            request->ownerless = true;
        wait_for_end(request, gb_agent_host(agent));
    }
    int32_t action = request->action;
    gb_leave_lock();
    gb_request_release(request);
    return action;
}

/* ---- whoever answers ---------------------------------------------------------------------------------------- */

const gopher_orch_elicitation_request_t *gb_request_fields(const gb_request *request) { return &request->fields; }

bool gb_request_answer(gb_request *request, int32_t action) {
    if (inherited(request))
        return false;
    gb_enter_lock();
    if (gb_now_ns() >= request->deadline_ns) /* the callback's thread is about to say so */
        cancel(request);
    bool counted = finish(request, GB_REQUEST_ANSWERED, action);
    gb_leave_lock();
    return counted;
}

bool gb_request_is_open(const gb_request *request) {
    return !inherited(request) && state_of(request) == GB_REQUEST_OPEN && gb_now_ns() < request->deadline_ns;
}

int64_t gb_request_remaining_ms(const gb_request *request) {
    if (inherited(request) || state_of(request) != GB_REQUEST_OPEN)
        return 0;
    if (request->deadline_ns == GB_FOREVER)
        return -1;
    int64_t left = request->deadline_ns - gb_now_ns();
    return left > 0 ? (left + GB_NS_PER_MS - 1) / GB_NS_PER_MS : 0;
}

void gb_request_release(gb_request *request) {
    if (!request || inherited(request))
        return;
    gb_enter_lock();
    bool last = --request->references == 0;
    if (last)
        gb_count.live_requests--;
    gb_leave_lock();
    if (last) {
        gb_cond_destroy(&request->changed);
        free(request);
    }
}

void gb_queue_forget(void) { open_requests = NULL; }
