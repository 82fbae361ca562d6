/* Native create and run on threads of the bridge, and an interruptible wait for them.
 *
 * The library's calls can be neither cancelled nor interrupted, so they never happen on a thread of the host's. A waiter
 * may leave at any time; the call then ends on its own, behind, and everything that it holds goes after it. A call's
 * clock stands still while a request of it is open: a person's time is nobody's timeout.
 */
#include "internal.h"

#include <stdio.h>

/* The library reads no timeout (0.1.39). One that did would not know of the pauses, so "none" is told as a day. */
#define NATIVE_NO_TIMEOUT_MS INT64_C(86400000)

static gb_call *calls; /* every call in memory; under gb_lock */

static bool inherited(const gb_call *call) { return call->epoch != gb_epoch_load(); }

/* ---- copied arguments --------------------------------------------------------------------------------------- */

static void *keep_bytes(gb_call *call, const void *bytes, size_t size) {
    gb_kept *kept = size <= SIZE_MAX - sizeof(gb_kept) ? gb_alloc(sizeof *kept + size) : NULL;
    if (!kept) {
        call->out_of_memory = true;
        return NULL;
    }
    kept->next = call->kept;
    kept->size = size;
    call->kept = kept;
    return size ? memcpy(kept + 1, bytes, size) : (void *)(kept + 1);
}

static const char *keep(gb_call *call, const char *text) {
    return text ? keep_bytes(call, text, strlen(text) + 1) : NULL;
}

static void *keep_array(gb_call *call, const void *items, size_t count, size_t size) {
    if (!items || !count)
        return NULL;
    if (count > SIZE_MAX / size) {
        call->out_of_memory = true;
        return NULL;
    }
    return keep_bytes(call, items, count * size);
}

static const gopher_orch_header_t *keep_headers(gb_call *call, const gopher_orch_header_t *headers, size_t *count) {
    gopher_orch_header_t *copy = keep_array(call, headers, *count, sizeof *copy);
    *count = copy ? *count : 0;
    for (size_t i = 0; i < *count; i++) {
        copy[i].name = keep(call, headers[i].name);
        copy[i].value = keep(call, headers[i].value);
    }
    return copy;
}

static void keep_server(gb_call *call, gopher_orch_server_options_t *server) {
    server->server_id = keep(call, server->server_id);
    server->server_name = keep(call, server->server_name);
    server->url = keep(call, server->url);
    server->access_token = keep(call, server->access_token);
    server->headers = keep_headers(call, server->headers, &server->header_count);
}

static gopher_orch_agent_options_t *keep_options(gb_call *call, const gopher_orch_agent_options_t *options) {
    gopher_orch_agent_options_t *copy = keep_bytes(call, options, sizeof *options);
    if (!copy)
        return NULL;
    copy->access_token = keep(call, options->access_token);
    copy->headers = keep_headers(call, options->headers, &copy->header_count);
    gopher_orch_server_options_t *servers =
        keep_array(call, options->server_options, options->server_option_count, sizeof *servers);
    copy->server_option_count = servers ? options->server_option_count : 0;
    for (size_t i = 0; i < copy->server_option_count; i++)
        keep_server(call, &servers[i]);
    copy->server_options = servers;
    return copy;
}

/* Through a volatile pointer, or the compiler would see that nobody reads it again. */
static void *(*const volatile wipe)(void *, int, size_t) = memset;

/* Overwritten first: keys, tokens and queries are in there. */
static void forget_arguments(gb_call *call) {
    for (gb_kept *kept = call->kept, *next; kept; kept = next) {
        next = kept->next;
        wipe(kept + 1, 0, kept->size);
        free(kept);
    }
    call->kept = NULL;
    call->provider = call->model = call->api_key = call->target = call->query = NULL;
    call->options = NULL;
}

static char *copy_text(const char *text, size_t length) {
    char *copy = gb_alloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

static char *copy_string(const char *text) { return text ? copy_text(text, strlen(text)) : NULL; }

/* ---- life of a call ----------------------------------------------------------------------------------------- */

static gb_call *call_new(gb_call_kind kind, const gb_api *api, gb_agent *agent, gb_token token) {
    gb_call *call = gb_alloc_zeroed(sizeof *call);
    if (!call)
        return NULL;
    if (!gb_cond_init(&call->changed)) {
        free(call);
        return NULL;
    }
    call->epoch = gb_epoch_load();
    call->kind = kind;
    call->api = api;
    call->agent = agent;
    call->token = token;
    return call;
}

static void call_free(gb_call *call) {
    forget_arguments(call);
    if (call->text)
        call->api->free_string(call->text);
    free(call->completed_json);
    free(call->error_message);
    free(call->error_details);
    gb_cond_destroy(&call->changed);
    free(call);
}

/* Under gb_lock. */
static void link_call(gb_call *call) {
    call->next = calls;
    if (calls)
        calls->previous = call;
    calls = call;
    gb_count.live_calls++;
}

/* Under gb_lock. */
static void unlink_call(gb_call *call) {
    if (call->previous)
        call->previous->next = call->next;
    else
        calls = call->next;
    if (call->next)
        call->next->previous = call->previous;
    gb_count.live_calls--;
}

void gb_call_drop(gb_call *call) {
    if (inherited(call))
        return;
    gb_enter_lock();
    bool last = --call->references == 0;
    if (last)
        unlink_call(call);
    gb_leave_lock();
    if (last)
        call_free(call);
}

/* ---- the clock, under gb_lock ------------------------------------------------------------------------------- */

static int64_t paused_ns(const gb_call *call, int64_t now_ns) {
    return call->paused_ns + (call->open ? now_ns - call->paused_since_ns : 0);
}

/* When the call's time is up if nothing changes; GB_FOREVER while it has none or stands still. */
static int64_t timeout_moment(const gb_call *call) {
    if (call->timeout_ms <= 0 || call->open)
        return GB_FOREVER;
    return gb_after_ms(call->started_ns + call->paused_ns, call->timeout_ms);
}

/* ---- requests, under gb_lock -------------------------------------------------------------------------------- */

bool gb_call_attended(const gb_call *call) { return call && !call->left && !call->done; }

void gb_call_enqueue(gb_call *call, gb_request *request) {
    request->call = call;
    request->queued = true;
    request->next_queued = NULL;
    if (call->last)
        call->last->next_queued = request;
    else
        call->first = request;
    call->last = request;
    if (call->open++ == 0)
        call->paused_since_ns = gb_now_ns();
    gb_cond_broadcast(&call->changed);
}

static void unqueue(gb_call *call, gb_request *request) {
    gb_request *before = NULL;
    for (gb_request *at = call->first; at && at != request; at = at->next_queued)
        before = at;
    if (before)
        before->next_queued = request->next_queued;
    else
        call->first = request->next_queued;
    if (call->last == request)
        call->last = before;
    request->next_queued = NULL;
    request->queued = false;
}

void gb_call_dequeue(gb_call *call, gb_request *request) {
    if (request->queued)
        unqueue(call, request);
    request->call = NULL;
    if (--call->open == 0)
        call->paused_ns += gb_now_ns() - call->paused_since_ns;
    gb_cond_broadcast(&call->changed); /* the waiter's deadline has changed */
}

void gb_calls_closed(gb_call *only) {
    for (gb_call *call = only ? only : calls; call; call = only ? NULL : call->next) {
        call->closed = true;
        gb_cond_broadcast(&call->changed);
    }
}

/* ---- the call's thread -------------------------------------------------------------------------------------- */

static void fail(gb_call *call, int32_t code, const char *message) {
    call->error_code = code;
    call->error_message = copy_string(message);
}

static void fail_without(gb_call *call, const char *field) {
    char message[160];
    snprintf(message, sizeof message, "this libgopher-orch has no function gopher_orch_agent_%s", field);
    fail(call, GB_ERROR_NO_FUNCTION, message);
}

/* On the very thread that made the call: the library keeps one record a thread. */
static void read_error(gb_call *call) {
    const gopher_orch_error_info_t *error = call->api->last_error();
    if (!error)
        return;
    call->error_code = error->code;
    call->error_message = copy_string(error->message);
    call->error_details = copy_string(error->details);
}

#define PLAIN(field)                                                                                                   \
    return api->field ? api->field(call->provider, call->model, call->target) : (fail_without(call, #field), NULL)
#define ROUTED(field)                                                                                                  \
    return api->field ? api->field(call->provider, call->model, call->api_key, call->target)                           \
                      : (fail_without(call, #field), NULL)
#define PLAIN_WITH(field)                                                                                              \
    return api->field ? api->field(call->provider, call->model, call->target, call->options)                           \
                      : (fail_without(call, #field), NULL)
#define ROUTED_WITH(field)                                                                                             \
    return api->field ? api->field(call->provider, call->model, call->api_key, call->target, call->options)            \
                      : (fail_without(call, #field), NULL)

static gopher_orch_agent_t create_plain(gb_call *call) {
    const gb_api *api = call->api;
    switch (call->factory) {
    case GB_BY_JSON: PLAIN(create_by_json);
    case GB_BY_API_KEY: PLAIN(create_by_api_key);
    case GB_BY_URL: PLAIN(create_by_url);
    case GB_BY_SERVER_ID: ROUTED(create_by_server_id);
    case GB_BY_SERVER_NAME: ROUTED(create_by_server_name);
    case GB_BY_GATEWAY_ID: ROUTED(create_by_gateway_id);
    case GB_BY_GATEWAY_NAME: ROUTED(create_by_gateway_name);
    }
    return NULL;
}

static gopher_orch_agent_t create_with_options(gb_call *call) {
    const gb_api *api = call->api;
    switch (call->factory) {
    case GB_BY_JSON: PLAIN_WITH(create_by_json_with_options);
    case GB_BY_API_KEY: PLAIN_WITH(create_by_api_key_with_options);
    case GB_BY_URL: PLAIN_WITH(create_by_url_with_options);
    case GB_BY_SERVER_ID: ROUTED_WITH(create_by_server_id_with_options);
    case GB_BY_SERVER_NAME: ROUTED_WITH(create_by_server_name_with_options);
    case GB_BY_GATEWAY_ID: ROUTED_WITH(create_by_gateway_id_with_options);
    case GB_BY_GATEWAY_NAME: ROUTED_WITH(create_by_gateway_name_with_options);
    }
    return NULL;
}

/* How a run ended is told by an event only, so every agent listens for it; a library without events says nothing. */
static void listen(const gb_call *call, gopher_orch_agent_t handle, bool to_all) {
    const gb_api *api = call->api;
    void *user_data = (void *)(uintptr_t)call->token;
    if (api->agent_set_event_callback_all && (to_all || !api->agent_set_event_callback)) {
        api->agent_set_event_callback_all(handle, gb_event_trampoline, user_data);
        return;
    }
    int32_t last = to_all ? GOPHER_ORCH_EVENT_ITERATION_END : GOPHER_ORCH_EVENT_RUN_COMPLETED;
    for (int32_t kind = GOPHER_ORCH_EVENT_RUN_COMPLETED; api->agent_set_event_callback && kind <= last; kind++)
        api->agent_set_event_callback(handle, kind, gb_event_trampoline, user_data);
}

static void do_create(gb_call *call) {
    gopher_orch_agent_t handle = call->options ? create_with_options(call) : create_plain(call);
    if (!call->error_code)
        read_error(call);
    call->ok = handle != NULL;
    if (!handle)
        return;
    uint64_t state = atomic_load_explicit(&call->agent->hot->state, memory_order_relaxed);
    listen(call, handle, (state & GB_STATE_EVENTS) != 0);
    gb_enter_lock();
    call->agent->handle = handle;
    gb_leave_lock();
}

/* The bridge's own reference keeps the handle alive until add_ref has happened; what it took goes back on the reaper. */
static void do_run(gb_call *call) {
    gopher_orch_agent_t handle = call->agent->handle; /* set before the run could be started, cleared by nobody yet */
    if (call->api->agent_add_ref) {
        call->api->agent_add_ref(handle);
        call->run_handle = handle;
    }
    call->text = call->api->agent_run(handle, call->query, call->native_timeout_ms);
    read_error(call);
    call->ok = call->text != NULL;
}

static void do_fetch(gb_call *call) {
    if (!call->api->api_fetch_servers) {
        fail(call, GB_ERROR_NO_FUNCTION, "this libgopher-orch has no api_fetch_servers");
        return;
    }
    call->text = call->api->api_fetch_servers(call->api_key);
    read_error(call);
    call->ok = call->text != NULL;
}

static void finish(gb_call *call) {
    gb_agent *agent = call->agent;
    forget_arguments(call);
    gb_enter_lock();
    gb_queue_orphan(call);
    call->done = true;
    if (agent)
        agent->running = NULL;
    if (call->run_handle)
        call->references++; /* the reaper's */
    call->agent = NULL;
    gb_cond_broadcast(&call->changed);
    gb_leave_lock();
    if (call->run_handle)
        gb_reap_run(call);
    gb_agent_release(agent);
}

static void body(void *argument) {
    gb_call *call = argument;
    if (call->api->clear_error)
        call->api->clear_error();
    switch (call->kind) {
    case GB_CALL_CREATE: do_create(call); break;
    case GB_CALL_RUN: do_run(call); break;
    case GB_CALL_FETCH: do_fetch(call); break;
    }
    finish(call);
    uint32_t epoch = call->epoch;
    gb_call_drop(call);
    if (epoch == gb_epoch_load())
        atomic_fetch_sub(&gb_thread_count, 1);
}

/* ---- start -------------------------------------------------------------------------------------------------- */

/* May this call begin? Under gb_lock. */
static bool admitted(const gb_call *call) {
    const gb_agent *agent = call->agent;
    if (!gb_gate_is_open() || call->out_of_memory)
        return false;
    if (!agent)
        return true;
    return !agent->closed && !agent->retired && !agent->running && (agent->handle != NULL) == (call->kind == GB_CALL_RUN);
}

/* Takes the call over; gives the agent's reference back when it can't be started. */
static gb_call *start(gb_call *call) {
    gb_agent *agent = call->agent;
    gb_enter_lock();
    bool admit = admitted(call);
    if (admit) {
        call->references = 2; /* the waiter's and the thread's */
        call->started_ns = gb_now_ns();
        if (agent)
            agent->running = call; /* from now on requests find their waiter */
        link_call(call);
    }
    gb_leave_lock();
    if (admit) {
        atomic_fetch_add(&gb_thread_count, 1);
        if (gb_thread_start(body, call))
            return call;
        atomic_fetch_sub(&gb_thread_count, 1);
        gb_enter_lock();
        gb_queue_orphan(call);
        if (agent)
            agent->running = NULL;
        unlink_call(call);
        gb_leave_lock();
    }
    call_free(call);
    gb_agent_release(agent);
    return NULL;
}

static gb_call *call_for_agent(gb_call_kind kind, gb_token token) {
    gb_agent *agent = gb_agent_acquire(token);
    if (!agent)
        return NULL;
    gb_call *call = call_new(kind, agent->api, agent, token);
    if (!call)
        gb_agent_release(agent);
    return call;
}

gb_call *gb_call_create(gb_token token, gb_factory factory, const char *provider, const char *model,
                        const char *api_key, const char *target, const gopher_orch_agent_options_t *options,
                        bool elicitation) {
    static const gopher_orch_agent_options_t no_options;
    gb_call *call = call_for_agent(GB_CALL_CREATE, token);
    if (!call)
        return NULL;
    call->factory = factory;
    call->provider = keep(call, provider);
    call->model = keep(call, model);
    call->api_key = keep(call, api_key);
    call->target = keep(call, target);
    if (options || elicitation)
        call->options = keep_options(call, options ? options : &no_options);
    if (call->options) {
        call->options->elicitation_callback = elicitation ? gb_elicitation_trampoline : NULL;
        call->options->elicitation_user_data = elicitation ? (void *)(uintptr_t)token : NULL;
    }
    return start(call);
}

gb_call *gb_call_run(gb_token token, const char *query, int64_t timeout_ms) {
    gb_call *call = call_for_agent(GB_CALL_RUN, token);
    if (!call)
        return NULL;
    call->query = keep(call, query);
    call->timeout_ms = timeout_ms;
    call->native_timeout_ms = timeout_ms > 0 ? timeout_ms : NATIVE_NO_TIMEOUT_MS;
    return start(call);
}

gb_call *gb_call_fetch(const gb_api *api, const char *api_key) {
    gb_init();
    gb_call *call = call_new(GB_CALL_FETCH, api, NULL, 0);
    if (!call)
        return NULL;
    call->api_key = keep(call, api_key);
    return start(call);
}

/* ---- the waiter --------------------------------------------------------------------------------------------- */

/* Under gb_lock. GB_WAKE_TICK: nothing yet. */
static gb_wake look(const gb_call *call, int64_t now_ns) {
    if (call->done)
        return GB_WAKE_DONE;
    if (call->closed || call->left)
        return GB_WAKE_CLOSED;
    if (call->first)
        return GB_WAKE_REQUEST;
    return now_ns >= timeout_moment(call) ? GB_WAKE_TIMEOUT : GB_WAKE_TICK;
}

gb_wake gb_call_wait(gb_call *call, int64_t slice_ms) {
    if (inherited(call))
        return GB_WAKE_CLOSED;
    gb_enter_lock();
    int64_t now_ns = gb_now_ns(), end_ns = gb_after_ms(now_ns, slice_ms > 0 ? slice_ms : 0);
    gb_wake seen;
    while ((seen = look(call, now_ns)) == GB_WAKE_TICK && now_ns < end_ns) {
        int64_t timeout_ns = timeout_moment(call);
        gb_cond_wait_until(&call->changed, &gb_lock, timeout_ns < end_ns ? timeout_ns : end_ns);
        now_ns = gb_now_ns();
    }
    gb_leave_lock();
    return seen;
}

void gb_call_set_timeout(gb_call *call, int64_t timeout_ms) {
    if (inherited(call))
        return;
    gb_enter_lock();
    call->timeout_ms = timeout_ms;
    gb_cond_broadcast(&call->changed);
    gb_leave_lock();
}

gb_request *gb_call_take(gb_call *call) {
    if (inherited(call))
        return NULL;
    gb_enter_lock();
    gb_request *request = call->left ? NULL : call->first;
    if (request) {
        unqueue(call, request); /* its call stays: the clock goes on when it is answered */
        request->references++;
    }
    gb_leave_lock();
    return request;
}

void gb_call_leave(gb_call *call) {
    if (!call || inherited(call))
        return;
    gb_enter_lock();
    call->left = true;
    if (!call->done && call->agent) {
        gb_agent_retire(call->agent);
        gb_queue_cancel(call->agent);
    }
    gb_leave_lock();
    gb_call_drop(call);
}

void gb_call_outcome(gb_call *call, gb_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    if (inherited(call))
        return;
    gb_enter_lock();
    if (call->done) {
        outcome->ok = call->ok;
        outcome->text = call->text;
        outcome->completed_json = call->completed_json;
        outcome->error_code = call->error_code;
        outcome->error_message = call->error_message;
        outcome->error_details = call->error_details;
        outcome->run_id = call->run_id;
        outcome->iterations = call->iterations;
    }
    outcome->paused_seconds = (double)paused_ns(call, gb_now_ns()) / (double)GB_NS_PER_S;
    gb_leave_lock();
}

/* ---- events ------------------------------------------------------------------------------------------------- */

/* The run_completed event, on whatever thread: kept for the outcome of the run that is in progress. */
void gb_calls_completed(gb_agent *agent, const gopher_orch_event_t *event) {
    const char *json = event->json ? event->json : "";
    const char *end = memchr(json, '\0', event->json ? event->json_length : 0);
    char *copy = copy_text(json, end ? (size_t)(end - json) : event->json ? event->json_length : 0);
    gb_enter_lock();
    gb_call *call = agent->running;
    if (call && call->kind == GB_CALL_RUN) {
        char *before = call->completed_json;
        call->completed_json = copy;
        copy = before;
        call->run_id = event->run_id;
        call->iterations = event->iteration;
    }
    gb_leave_lock();
    free(copy);
}

void gb_calls_forget(void) { calls = NULL; }
