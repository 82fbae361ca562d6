/* reaper.c: each native reference and each host object goes exactly once, on the reaper's thread, after the last user. */
#include "check.h"

static const gb_api *api;
static _Atomic(int) hosts_dropped;
static _Atomic(bool) in_callback;
static pthread_t reaper_thread;
static _Atomic(bool) reaper_known;

/* Always the same thread, and never one that the library might join. */
static void on_the_reaper(void) {
    if (!atomic_load(&reaper_known)) {
        reaper_thread = pthread_self();
        atomic_store(&reaper_known, true);
    }
    CHECK(pthread_equal(pthread_self(), reaper_thread));
}
static void released(gopher_orch_agent_t agent, bool last) {
    (void)agent, (void)last;
    on_the_reaper();
}
static void dropped(void *host) {
    CHECK(host != NULL);
    on_the_reaper();
    atomic_fetch_add(&hosts_dropped, 1);
}

static _Atomic(bool) hold_inline;
static int host;
static int32_t inline_answer(gb_token token, const gopher_orch_elicitation_request_t *request) {
    if (gb_inline_host(token) != &host) /* closed already */
        return 3;
    CHECK(request != NULL);
    atomic_store(&in_callback, true);
    while (atomic_load(&hold_inline))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return 1;
}
static _Atomic(gb_request *) unattended;
static void to_helper(void *host, gb_request *request) {
    CHECK(host != NULL);
    atomic_store(&unattended, request);
}
static const gb_hooks hooks = {.drop = dropped, .inline_answer = inline_answer, .unattended = to_helper};

static void nothing_left(void) {
    check_nothing_left();
    fake_counts counts = fake_count_now();
    CHECK(counts.created == counts.gone && counts.misused == 0);
    CHECK(counts_now().released_handles == counts.gone);
}

static void each_once(void) {
    int before = atomic_load(&hosts_dropped);
    enum { AGENTS = 50 };
    for (int i = 0; i < AGENTS; i++) {
        gb_token token = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_FIXED, .fixed_action = 3, .host = &host});
        gb_call *call = gb_call_run(token, "q", 0);
        gb_call_wait(call, 5000);
        gb_call_leave(call);
        gb_agent_close(token);
        gb_agent_close(token);
    }
    nothing_left();
    CHECK(atomic_load(&hosts_dropped) == before + AGENTS);
    CHECK(fake_count_now().references_added >= AGENTS);
}

/* The last to leave is a callback, inline or waiting; the agent goes after it and not on its thread. */
static void after_the_last_callback(gb_answer_mode mode) {
    int before = atomic_load(&hosts_dropped);
    gb_token token = agent_made(api, (gb_agent_config){.mode = mode, .host = &host});
    atomic_store(&hold_inline, true);
    atomic_store(&in_callback, false);
    asking ask;
    ask_start(&ask, token);
    if (mode == GB_ANSWER_INLINE)
        EVENTUALLY(atomic_load(&in_callback), 5000);
    else
        EVENTUALLY(atomic_load(&unattended) != NULL, 5000);
    gb_agent *held = mode == GB_ANSWER_INLINE ? NULL : gb_agent_acquire(token);
    gb_agent_close(token);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(atomic_load(&hosts_dropped) == before && fake_count_now().gone + 1 == fake_count_now().created);
    atomic_store(&hold_inline, false);
    gb_agent_release(held);
    gb_request_release(atomic_exchange(&unattended, NULL));
    CHECK(ask_join(&ask) == (mode == GB_ANSWER_INLINE ? 1 : 3));
    nothing_left();
    CHECK(atomic_load(&hosts_dropped) == before + 1);
}

/* A callback that is inside does not hold up the end of other agents. */
static void one_does_not_hold_up_the_others(void) {
    gb_token busy = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_INLINE, .host = &host});
    atomic_store(&hold_inline, true);
    atomic_store(&in_callback, false);
    asking ask;
    ask_start(&ask, busy);
    EVENTUALLY(atomic_load(&in_callback), 5000);
    gb_agent_close(busy);
    int before = atomic_load(&hosts_dropped);
    for (int i = 0; i < 20; i++)
        gb_agent_close(agent_made(api, (gb_agent_config){.mode = GB_ANSWER_FIXED, .host = &host}));
    EVENTUALLY(atomic_load(&hosts_dropped) == before + 20, 2000);
    CHECK(counts_now().live_agents == 1);
    atomic_store(&hold_inline, false);
    ask_join(&ask);
    nothing_left();
}

/* More callbacks at once than there are announcements: the counted reference does it as well. */
static void crowded(void) {
    enum { CROWD = 150 };
    asking asks[CROWD];
    gb_token token = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_INLINE, .host = &host});
    atomic_store(&hold_inline, true);
    for (int i = 0; i < CROWD; i++)
        ask_start(&asks[i], token);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    gb_agent_close(token);
    int before = atomic_load(&hosts_dropped);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    CHECK(atomic_load(&hosts_dropped) == before);
    atomic_store(&hold_inline, false);
    int accepted = 0;
    for (int i = 0; i < CROWD; i++)
        accepted += ask_join(&asks[i]) == 1;
    CHECK(accepted > 64);
    nothing_left();
    CHECK(atomic_load(&hosts_dropped) == before + 1);
}

/* Run, callback and dispose in every order. */
static char *run_and_ask(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)timeout_ms;
    gb_elicitation_trampoline(&sample_request, fake_user_data(agent));
    return fake_text(query);
}
static void *close_soon(void *token) {
    gb_agent_close((gb_token)(uintptr_t)token);
    return NULL;
}
static void dispose_during_run(void) {
    fake_on_run = run_and_ask;
    int before = atomic_load(&hosts_dropped), rounds = ROUNDS(1000);
    for (int i = 0; i < rounds; i++) {
        gb_token token = agent_made(
            api, (gb_agent_config){.mode = i % 2 ? GB_ANSWER_INLINE : GB_ANSWER_FIXED, .fixed_action = 1, .host = &host});
        gb_call *call = gb_call_run(token, "q", 0);
        pthread_t closer = thread_run(close_soon, (void *)(uintptr_t)token);
        while (gb_call_wait(call, 1000) == GB_WAKE_TICK) {
        }
        gb_call_leave(call);
        thread_join(closer);
    }
    nothing_left();
    CHECK(atomic_load(&hosts_dropped) == before + rounds);
    fake_on_run = NULL;
}

int main(void) {
    api = fake_api();
    fake_on_release = released;
    gb_set_hooks(&hooks);
    each_once();
    after_the_last_callback(GB_ANSWER_INLINE);
    after_the_last_callback(GB_ANSWER_HANDED_OVER);
    one_does_not_hold_up_the_others();
    crowded();
    dispose_during_run();
    return report("reaper");
}
