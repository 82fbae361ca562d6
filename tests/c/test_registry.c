/* registry.c: tokens that are stale, reused, forged or many; look-ups that race with closing. */
#include "check.h"

static const gb_api *api;
static _Atomic(uint64_t) dropped;
static void drop(void *host) {
    (void)host;
    atomic_fetch_add(&dropped, 1);
}
static int host;
static int32_t accept(gb_token token) {
    void *of_token = gb_inline_host(token);
    CHECK(!of_token || of_token == &host);
    return of_token ? GOPHER_ORCH_ELICITATION_ACCEPT : GOPHER_ORCH_ELICITATION_CANCEL;
}
static int32_t accept_inline(gb_token token, const gopher_orch_elicitation_request_t *request) {
    (void)request;
    return accept(token);
}
/* As a host does it: some 250 ns of taking its lock and decoding, then the agent. */
static _Atomic(uint64_t) work_done;
static int32_t accept_late(gb_token token, const gopher_orch_elicitation_request_t *request) {
    for (int i = 0; i < 50; i++)
        atomic_fetch_add(&work_done, strlen(request->url));
    return accept(token);
}
static const gb_hooks hooks = {.drop = drop, .inline_answer = accept_inline};
static const gb_hooks late_hooks = {.drop = drop, .inline_answer = accept_late};

static gb_token opened(gb_answer_mode mode) {
    gb_token token = gb_agent_open(api, &(gb_agent_config){.mode = mode, .fixed_action = 1, .host = &host});
    CHECK(token != 0);
    return token;
}

static void one_life(void) {
    gb_token token = opened(GB_ANSWER_INLINE);
    gb_agent *agent = gb_agent_acquire(token);
    CHECK(agent && gb_agent_host(agent) == &host && !gb_agent_can_run(agent));
    gb_agent_close(token);
    CHECK(gb_agent_acquire(token) == NULL);
    CHECK(gb_agent_host(agent) == &host); /* the reference keeps it */
    CHECK(counts_now().live_agents == 1);
    uint64_t before = atomic_load(&dropped);
    gb_agent_close(token); /* once more: nothing */
    gb_agent_release(agent);
    EVENTUALLY(counts_now().live_agents == 0, 2000);
    CHECK(atomic_load(&dropped) == before + 1);
    gb_agent_close(token);
    gb_agent_release(NULL);
}

static void forged_tokens(void) {
    gb_token token = opened(GB_ANSWER_FIXED);
    const gb_token forged[] = {0, 1, UINT64_MAX, token + 1, token + (UINT64_C(1) << 32), token - (UINT64_C(1) << 32),
                               UINT64_C(1) << 32, UINT64_C(1) << 32 | UINT32_MAX, (gb_token)(uintptr_t)&token};
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        CHECK(gb_agent_acquire(forged[i]) == NULL);
        CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)forged[i]) == 3);
        gb_agent_close(forged[i]);
    }
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 1);
    gb_agent_close(token);
    check_nothing_left();
}

/* A slot is used again with the next generation; its old tokens stay dead, whatever lives there now. */
static void generations(gb_answer_mode mode) {
    gb_token before = 0;
    for (int i = 0; i < 300; i++) {
        gb_token token = opened(mode);
        CHECK(token != before && (uint32_t)token == 1);
        CHECK(gb_agent_acquire(before) == NULL);
        CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)before) == 3);
        CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 1);
        gb_agent_close(before);
        CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 1);
        gb_agent_close(token);
        EVENTUALLY(counts_now().live_agents == 0, 2000);
        before = token;
    }
}

/* The last generation of a slot: it is left aside, no token ever comes back. */
static void generation_used_up(void) {
    gb_token token = opened(GB_ANSWER_FIXED);
    uint32_t slot = (uint32_t)token;
    gb_agent_close(token);
    EVENTUALLY(counts_now().live_agents == 0, 2000);
    atomic_store(&gb_slot_agent(token)->hot->state, (uint64_t)UINT32_MAX << 32);
    gb_token last = opened(GB_ANSWER_FIXED);
    CHECK(last == ((uint64_t)UINT32_MAX << 32 | slot));
    gb_agent_close(last);
    EVENTUALLY(counts_now().live_agents == 0, 2000);
    gb_token next = opened(GB_ANSWER_FIXED);
    CHECK((uint32_t)next != slot);
    CHECK(gb_agent_acquire(last) == NULL);
    gb_agent_close(next);
    check_nothing_left();
}

/* ---- races -------------------------------------------------------------------------------------------------- */

static _Atomic(uint64_t) shared_token;
static _Atomic(bool) stop;
static _Atomic(uint64_t) answered[4];

static void *call_back(void *unused) {
    while (!atomic_load(&stop)) {
        gb_token token = atomic_load(&shared_token);
        int32_t action = gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token);
        atomic_fetch_add(&answered[action & 3], 1);
        gb_agent *agent = gb_agent_acquire(token);
        if (agent) {
            CHECK(gb_agent_host(agent) == &host);
            gb_agent_release(agent);
        }
    }
    return unused;
}

static void *close_it(void *token) {
    gb_agent_close((gb_token)(uintptr_t)token);
    return NULL;
}

static void races(void) {
    uint64_t before = atomic_load(&dropped), rounds = ROUNDS(20000);
    pthread_t callers[3];
    atomic_store(&stop, false);
    for (int i = 0; i < 3; i++)
        callers[i] = thread_run(call_back, NULL);
    for (uint64_t i = 0; i < rounds; i++) {
        gb_token token = opened(i % 2 ? GB_ANSWER_INLINE : GB_ANSWER_FIXED);
        atomic_store(&shared_token, token);
        if (i % 50 == 0) {
            pthread_t other = thread_run(close_it, (void *)(uintptr_t)token);
            gb_agent_close(token);
            thread_join(other);
        } else {
            gb_agent_close(token);
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        thread_join(callers[i]);
    check_nothing_left();
    CHECK(atomic_load(&dropped) == before + rounds); /* each host once */
    CHECK(atomic_load(&answered[3]) > 0 && atomic_load(&answered[0]) == 0 && atomic_load(&answered[2]) == 0);
}

/* ---- many --------------------------------------------------------------------------------------------------- */

static uint32_t random_state = 12345;
static uint32_t random_next(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 17, random_state ^= random_state << 5;
    return random_state;
}

/* In an order that was drawn before, so that the draw itself costs no cache. */
static double ns_a_callback(const gb_token *tokens, uint32_t count) {
    enum { CALLS = SANITIZED ? 100000 : 1000000 };
    gb_token *drawn = malloc(CALLS * sizeof *drawn);
    for (int i = 0; i < CALLS; i++)
        drawn[i] = tokens[random_next() % count];
    int64_t start = gb_now_ns(), sum = 0;
    for (int i = 0; i < CALLS; i++)
        sum += gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)drawn[i]);
    double each = (double)(gb_now_ns() - start) / CALLS;
    CHECK(sum == CALLS);
    free(drawn);
    return each;
}

static void a_million(void) {
    const uint32_t many = ROUNDS(1000000);
    gb_token *tokens = malloc(many * sizeof *tokens);
    for (uint32_t i = 0; i < 1000; i++)
        tokens[i] = opened(GB_ANSWER_INLINE);
    double few_ns = ns_a_callback(tokens, 1000);
    gb_set_hooks(&late_hooks);
    double few_late_ns = ns_a_callback(tokens, 1000);
    gb_set_hooks(&hooks);
    for (uint32_t i = 1000; i < many; i++)
        tokens[i] = opened(GB_ANSWER_INLINE);
    CHECK(counts_now().live_agents == many);
    double many_ns = ns_a_callback(tokens, many);
    gb_set_hooks(&late_hooks);
    double many_late_ns = ns_a_callback(tokens, many);
    gb_set_hooks(&hooks);
    printf("registry: %.0f ns a callback with 1,000 live entries, %.0f ns with %u; looked up late %.0f and %.0f ns\n",
           few_ns, many_ns, many, few_late_ns, many_late_ns);
    for (uint32_t i = 0; i < many; i++)
        gb_agent_close(tokens[i]);
    EVENTUALLY(counts_now().live_agents == 0, 60000);
    for (uint32_t i = 0; i < many; i += 1000)
        CHECK(gb_agent_acquire(tokens[i]) == NULL);
    free(tokens);
}

int main(void) {
    api = fake_api();
    gb_set_hooks(&hooks);
    one_life();
    forged_tokens();
    generations(GB_ANSWER_FIXED);
    generations(GB_ANSWER_INLINE);
    gb_set_hooks(&late_hooks);
    generations(GB_ANSWER_INLINE);
    gb_set_hooks(&hooks);
    generation_used_up();
    races();
    gb_set_hooks(&late_hooks);
    races();
    gb_set_hooks(&hooks);
    a_million();
    return report("registry");
}
