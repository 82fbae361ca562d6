/* No memory and no threads to be had: everything says no or cancel, nothing crashes and nothing is left behind.
 * Built with GB_TEST_ALLOC: the n-th allocation of the bridge fails. */
#include "check.h"

#include <sys/resource.h>

static _Atomic(int) until_failure = -1; /* -1: never */
void *gb_alloc(size_t size) {
    if (atomic_load(&until_failure) >= 0 && atomic_fetch_sub(&until_failure, 1) == 0)
        return NULL;
    return malloc(size);
}

static int host;
static void answer_it(void *which, gb_request *request) {
    CHECK(which == &host);
    gb_request_answer(request, 1);
    gb_request_release(request);
}
static const gb_hooks hooks = {.unattended = answer_it};
static const gb_agent_config handed_over = {.mode = GB_ANSWER_HANDED_OVER, .host = &host};

static char *run_with_event(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)timeout_ms;
    fake_send_event(agent, 1, 1, 1, "{\"status\":\"ok\"}", 15);
    return strcmp(query, "fail") ? fake_text(query) : NULL;
}

/* True when all went well, that is when nothing was left to fail. */
static bool whole_life(const gb_api *api) {
    gopher_orch_header_t headers[] = {{"X-A", "1"}, {"X-B", "2"}};
    gopher_orch_server_options_t servers[] = {{.url = "u", .headers = headers, .header_count = 2}};
    gopher_orch_agent_options_t options = {.access_token = "t", .headers = headers, .header_count = 2,
                                           .server_options = servers, .server_option_count = 1};
    bool well = true;
    gb_token token = gb_agent_open(api, &handed_over);
    if (!token)
        return false;
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", "k", "u", &options, true);
    if (call)
        CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    well = call != NULL;
    gb_call_leave(call);
    if (well) {
        int32_t action = gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token);
        CHECK(action == 1 || action == 3);
        well = action == 1;
    }
    for (int i = 0; well && i < 2; i++) {
        call = gb_call_run(token, i ? "fail" : "q", 0);
        if ((well = call != NULL)) {
            CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
            gb_outcome outcome;
            gb_call_outcome(call, &outcome);
            CHECK(outcome.ok == !i && (i ? outcome.error_code == -1 : strcmp(outcome.text, "q") == 0));
            well = outcome.completed_json && (!i || outcome.error_message);
            gb_call_leave(call);
        }
    }
    gb_agent_close(token);
    return well;
}

static void no_memory(const gb_api *api) {
    int failures = 0;
    for (;; failures++) {
        atomic_store(&until_failure, failures);
        bool well = whole_life(api);
        bool all_used = atomic_load(&until_failure) < 0;
        atomic_store(&until_failure, -1);
        check_nothing_left();
        CHECK(well != all_used);
        if (well)
            break;
    }
    CHECK(failures > 20);
    CHECK(fake_count_now().created == fake_count_now().gone && fake_count_now().misused == 0);
    atomic_store(&until_failure, 0);
    char error[64];
    CHECK(gb_api_open(FAKE_LIBRARY, error, sizeof error) == NULL && strcmp(error, "out of memory") == 0);
    atomic_store(&until_failure, -1);
}

static _Atomic(bool) hold;
static char *wait_while_held(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    while (atomic_load(&hold))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return fake_text(query);
}

/* No room for another stack: a run that can't have a thread is refused, and all is well again when there is room. */
static void no_threads(const gb_api *api) {
    enum { AGENTS = 40 };
    gb_token tokens[AGENTS];
    gb_call *calls[AGENTS];
    for (int i = 0; i < AGENTS; i++)
        tokens[i] = agent_made(api, handed_over);
    fake_on_run = wait_while_held;
    atomic_store(&hold, true);
    struct rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 1 << 20;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    int refused = 0;
    for (int i = 0; i < AGENTS; i++) { /* the stacks of threads that have ended are used up first */
        calls[i] = gb_call_run(tokens[i], "q", 0);
        refused += calls[i] == NULL;
    }
    setrlimit(RLIMIT_AS, &before);
    CHECK(refused > 0);
    for (int i = 0; i < AGENTS; i++)
        if (!calls[i])
            CHECK((calls[i] = gb_call_run(tokens[i], "q", 0)) != NULL);
    atomic_store(&hold, false);
    for (int i = 0; i < AGENTS; i++) {
        CHECK(gb_call_wait(calls[i], 5000) == GB_WAKE_DONE);
        gb_call_leave(calls[i]);
        gb_agent_close(tokens[i]);
    }
    check_nothing_left();
}

int main(void) {
    const gb_api *api = fake_api();
    gb_set_hooks(&hooks);
    fake_on_run = run_with_event;
    no_memory(api);
    if (!SANITIZED) /* they need address space themselves */
        no_threads(api);
    return report("memory");
}
