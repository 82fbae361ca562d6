/* trampoline.c: elicitations and events of several agents on eight threads at once, while agents come and go. */
#include "check.h"

#define THREADS 8
#define AGENTS 4

/* A host is alive from open until drop: whatever a callback is handed must be. */
typedef struct {
    _Atomic(int) alive;
    _Atomic(uint64_t) asked, told;
} host;

static _Atomic(uint64_t) tokens[AGENTS];
static _Atomic(bool) stop;
static _Atomic(uint64_t) accepted, cancelled, told, dropped;

static int32_t inline_answer(gb_token token, const gopher_orch_elicitation_request_t *request) {
    host *mine = gb_inline_host(token);
    if (!mine) return GOPHER_ORCH_ELICITATION_CANCEL;
    CHECK(atomic_load(&mine->alive) == 1 && request == &sample_request);
    atomic_fetch_add(&mine->asked, 1);
    return GOPHER_ORCH_ELICITATION_ACCEPT;
}
static void event(void *of_agent, const gopher_orch_event_t *what) {
    host *mine = of_agent;
    CHECK(atomic_load(&mine->alive) == 1 && what->kind == GOPHER_ORCH_EVENT_RUN_COMPLETED + 1);
    atomic_fetch_add(&mine->told, 1);
    atomic_fetch_add(&told, 1);
}
static void drop(void *of_agent) {
    host *mine = of_agent;
    CHECK(atomic_exchange(&mine->alive, 0) == 1); /* once */
    atomic_fetch_add(&dropped, 1);
    free(mine);
}
static const gb_hooks hooks = {.inline_answer = inline_answer, .event = event, .drop = drop};

static gb_token opened(const gb_api *api) {
    host *mine = calloc(1, sizeof *mine);
    CHECK(mine != NULL);
    atomic_store(&mine->alive, 1);
    gb_token token =
        gb_agent_open(api, &(gb_agent_config){.mode = GB_ANSWER_INLINE, .wants_events = true, .host = mine});
    CHECK(token != 0);
    return token;
}

static void *call_back(void *first) {
    const gopher_orch_event_t what = {.version = 1, .kind = GOPHER_ORCH_EVENT_RUN_COMPLETED + 1};
    for (size_t i = (size_t)(uintptr_t)first; !atomic_load(&stop); i++) {
        void *token = (void *)(uintptr_t)atomic_load(&tokens[i % AGENTS]);
        int32_t action = gb_elicitation_trampoline(&sample_request, token);
        CHECK(action == GOPHER_ORCH_ELICITATION_ACCEPT || action == GOPHER_ORCH_ELICITATION_CANCEL);
        atomic_fetch_add(action == GOPHER_ORCH_ELICITATION_ACCEPT ? &accepted : &cancelled, 1);
        gb_event_trampoline(&what, token);
    }
    return NULL;
}

static void eight_threads_and_agents_that_go(void) {
    const gb_api *api = fake_api();
    const uint64_t rounds = ROUNDS(20000);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < AGENTS; i++) atomic_store(&tokens[i], opened(api));
    for (size_t i = 0; i < THREADS; i++) threads[i] = thread_run(call_back, (void *)(uintptr_t)i);
    EVENTUALLY(atomic_load(&accepted) > 0 && atomic_load(&told) > 0, 20000);
    for (uint64_t round = 0; round < rounds; round++) {
        gb_token before = atomic_exchange(&tokens[round % AGENTS], opened(api));
        gb_agent_close(before);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
    for (size_t i = 0; i < AGENTS; i++) gb_agent_close(atomic_load(&tokens[i]));
    check_nothing_left();
    EVENTUALLY(atomic_load(&dropped) == rounds + AGENTS, 20000);
}

int main(void) {
    gb_set_hooks(&hooks);
    eight_threads_and_agents_that_go();
    return report("trampoline");
}
