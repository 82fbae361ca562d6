/* The two functions that the library calls, on whatever thread it likes, in one shape: look the token up and take a
 * reference, pass the gate where the host is needed, come back with one of the three answers. A token that names nobody
 * any more, a closed gate, a missing request: cancel.
 */
#include "internal.h"

/* The table is copied, so that the caller's may go. An earlier copy may be in use and is kept (this happens once). */
void gb_set_hooks(const gb_hooks *hooks) {
    static struct kept {
        gb_hooks hooks;
        struct kept *before;
    } *latest;
    gb_init();
    struct kept *copy = hooks ? gb_alloc(sizeof *copy) : NULL;
    if (copy) {
        copy->hooks = *hooks;
        gb_enter_lock();
        copy->before = latest;
        latest = copy;
        gb_leave_lock();
    }
    atomic_store_explicit(&gb_hooks_now, copy ? &copy->hooks : NULL, memory_order_release);
}

/* The agent is held, by a hazard or by a reference. */
static int32_t answer_inline(gb_token token, const gopher_orch_elicitation_request_t *request, uint32_t epoch) {
    const gb_hooks *hooks = gb_hooks_get();
    if (!request || !hooks->inline_answer || !gb_gate_enter())
        return GOPHER_ORCH_ELICITATION_CANCEL;
    int32_t action = hooks->inline_answer(token, request);
    gb_gate_leave_since(epoch);
    return gb_valid_action(action);
}

static int32_t answer(uint64_t state, gb_token token, const gopher_orch_elicitation_request_t *request,
                      uint32_t epoch) {
    if (state & GB_STATE_RETIRED)
        return GOPHER_ORCH_ELICITATION_CANCEL;
    switch (GB_STATE_MODE(state)) {
    case GB_ANSWER_FIXED:
        return gb_valid_action(GB_STATE_ACTION(state));
    case GB_ANSWER_INLINE:
        return answer_inline(token, request, epoch);
    case GB_ANSWER_HANDED_OVER:
        return request ? gb_queue_ask(gb_slot_agent(token), request) : GOPHER_ORCH_ELICITATION_CANCEL;
    }
    return GOPHER_ORCH_ELICITATION_CANCEL;
}

int32_t gb_elicitation_trampoline(const gopher_orch_elicitation_request_t *request, void *user_data) {
    gb_token token = (uintptr_t)user_data;
    uint32_t epoch = gb_epoch_load();
    gb_hazard *hazard = gb_inline_begin(token);
    if (GB_LIKELY(hazard != NULL)) {
        int32_t action = answer_inline(token, request, epoch);
        if (GB_LIKELY(epoch == gb_epoch_load())) /* else the host forked in there and this is the child */
            gb_inline_end(hazard);
        return action;
    }
    uint64_t state;
    gb_slot *slot = gb_slot_acquire(token, &state);
    if (!slot)
        return GOPHER_ORCH_ELICITATION_CANCEL;
    int32_t action = answer(state, token, request, epoch);
    if (epoch == gb_epoch_load())
        gb_slot_release(slot, token);
    return action;
}

static void tell_host(void *host, const gopher_orch_event_t *event, uint32_t epoch) {
    const gb_hooks *hooks = gb_hooks_get();
    if (!hooks->event || !gb_gate_enter())
        return;
    hooks->event(host, event);
    gb_gate_leave_since(epoch);
}

void gb_event_trampoline(const gopher_orch_event_t *event, void *user_data) {
    gb_token token = (uintptr_t)user_data;
    uint32_t epoch = gb_epoch_load();
    uint64_t state;
    gb_slot *slot = event ? gb_slot_acquire(token, &state) : NULL;
    if (!slot)
        return;
    if (event->kind == GOPHER_ORCH_EVENT_RUN_COMPLETED)
        gb_calls_completed(gb_slot_agent(token), event);
    else if ((state & (GB_STATE_EVENTS | GB_STATE_RETIRED)) == GB_STATE_EVENTS)
        tell_host(slot->host, event, epoch);
    if (GB_LIKELY(epoch == gb_epoch_load()))
        gb_slot_release(slot, token);
}
