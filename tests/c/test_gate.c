/* gate.c: who may enter the host, and how everything ends when it goes away. Closing is for good, so it comes last. */
#include "check.h"

#include <sys/wait.h>

static const gb_api *api;
static _Atomic(int) hosts_dropped;
static void dropped(void *host) {
    (void)host;
    atomic_fetch_add(&hosts_dropped, 1);
}
static _Atomic(bool) inside, hold_inside;
static int32_t inline_answer(gb_token token, const gopher_orch_elicitation_request_t *request) {
    (void)token, (void)request;
    atomic_store(&inside, true);
    while (atomic_load(&hold_inside))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return 1;
}
static _Atomic(int) helpers_asked;
static void to_helper(void *host, gb_request *request) {
    (void)host;
    gb_request_release(request); /* nobody will ever answer */
    atomic_fetch_add(&helpers_asked, 1);
}
static _Atomic(int) events_seen;
static void event_seen(void *host, const gopher_orch_event_t *event) {
    (void)host, (void)event;
    atomic_fetch_add(&events_seen, 1);
}
static const gb_hooks hooks = {
    .drop = dropped, .inline_answer = inline_answer, .unattended = to_helper, .event = event_seen};
static int host;

static _Atomic(bool) hold_run;
static char *wait_while_held(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    while (atomic_load(&hold_run))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return fake_text(query);
}

static void enter_and_leave(void) {
    CHECK(gb_gate_is_open() && gb_gate_enter());
    CHECK(!gb_gate_drain(20));
    gb_gate_leave();
    CHECK(gb_gate_drain(0));
    gb_gate_leave(); /* one too many (the child of a fork may) */
    CHECK(gb_gate_drain(0) && gb_gate_enter());
    gb_gate_leave();
}

static void closing(void) {
    gb_token idle = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_HANDED_OVER, .host = &host});
    gb_token busy = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_HANDED_OVER, .host = &host});
    gb_token policy = agent_made(
        api, (gb_agent_config){.mode = GB_ANSWER_INLINE, .host = &host, .wants_events = true});
    asking unattended, attended, in_host;
    ask_start(&unattended, idle);
    EVENTUALLY(atomic_load(&helpers_asked) == 1, 5000);
    atomic_store(&hold_run, true);
    fake_on_run = wait_while_held;
    gb_call *call = gb_call_run(busy, "q", 0);
    ask_start(&attended, busy);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    atomic_store(&hold_inside, true);
    ask_start(&in_host, policy);
    EVENTUALLY(atomic_load(&inside), 5000);

    int64_t start = gb_now_ns();
    gb_gate_close();
    CHECK(ask_join(&unattended) == 3 && ask_join(&attended) == 3);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_CLOSED && ms_since(start) <= LATE_MS);
    CHECK(!gb_gate_is_open() && !gb_gate_enter());

    start = gb_now_ns();
    CHECK(!gb_gate_drain(50) && ms_since(start) >= 50 && ms_since(start) <= 50 + LATE_MS); /* one is still inside */
    atomic_store(&hold_inside, false);
    CHECK(gb_gate_drain(5000));
    CHECK(ask_join(&in_host) == 1);
    gb_call_leave(call);

    /* Whatever comes after that: cancel, and nobody enters the host. */
    asking late[3];
    const gb_token tokens[] = {idle, busy, policy};
    atomic_store(&inside, false);
    for (int i = 0; i < 3; i++) {
        ask_start(&late[i], tokens[i]);
        CHECK(ask_join(&late[i]) == 3);
        CHECK(gb_call_run(tokens[i], "q", 0) == NULL);
    }
    gb_event_trampoline(&(gopher_orch_event_t){.version = 1, .kind = 2}, (void *)(uintptr_t)policy);
    CHECK(!atomic_load(&inside) && atomic_load(&helpers_asked) == 1 && atomic_load(&events_seen) == 0);
    CHECK(gb_call_fetch(api, "key") == NULL);

    /* Agents that are closed now go with the process: no native release, no host object's end. */
    fake_counts before = fake_count_now();
    for (int i = 0; i < 3; i++)
        gb_agent_close(tokens[i]);
    atomic_store(&hold_run, false);
    EVENTUALLY(counts_now().live_agents == 0 && counts_now().threads == 0, 5000);
    CHECK(fake_count_now().references_released == before.references_released);
    CHECK(atomic_load(&hosts_dropped) == 0 && counts_now().released_handles == 0);
    gb_gate_close();
    CHECK(gb_gate_drain(0));
}

/* The gate closes while many are asking: each comes back, in time and with one of the answers. */
static void *ask_all_the_time(void *token) {
    int64_t asked = 0;
    while (gb_gate_is_open()) {
        int32_t action = gb_elicitation_trampoline(&sample_request, token);
        CHECK(action == 1 || action == 3);
        asked++;
    }
    CHECK(asked > 0);
    return NULL;
}
static void closing_in_the_crowd(void) {
    gb_token policy = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_INLINE, .host = &host});
    gb_token waits = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_HANDED_OVER, .limit_ms = 1, .host = &host});
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = thread_run(ask_all_the_time, (void *)(uintptr_t)(i % 2 ? policy : waits));
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    gb_gate_close();
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    CHECK(gb_gate_drain(1000));
    gb_agent_close(policy);
    gb_agent_close(waits);
    check_nothing_left();
}

/* ---- the end of the process: it must not take down what a native call still stands on ------------------------- */
#if defined(__GLIBC__)
enum { HANDLERS_RAN = 99, CODE = 7 };
static void end_of_a_library(void) { _exit(HANDLERS_RAN); } /* what comes later in exit() than the gate's own */

static void exits(bool busy) {
    atexit(end_of_a_library);
    gb_token token = agent_made(api, (gb_agent_config){.mode = GB_ANSWER_FIXED, .host = &host});
    if (busy) {
        atomic_store(&hold_run, true);
        fake_on_run = wait_while_held;
        gb_call *call = gb_call_run(token, "q", 0);
        CHECK(call && gb_call_wait(call, 1) == GB_WAKE_TICK);
    }
    gb_gate_close();
    EVENTUALLY(counts_now().threads == (busy ? 1 : 0), 5000);
    printf("said");
    exit(CODE);
}

/* The code that a process of this program, told this word, ends with; what it said is left in `said`. */
static int code_of(const char *program, const char *word, char said[8]) {
    int output[2], status;
    CHECK(pipe(output) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(output[1], STDOUT_FILENO);
        execl(program, program, word, (char *)NULL);
        _exit(1);
    }
    close(output[1]);
    ssize_t length = read(output[0], said, 7);
    said[length > 0 ? length : 0] = '\0';
    close(output[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void ending(const char *program) {
    char said[8];
    CHECK(code_of(program, "exit-busy", said) == CODE && strcmp(said, "said") == 0);
    CHECK(code_of(program, "exit-idle", said) == HANDLERS_RAN);
}
#else
static void exits(bool busy) { (void)busy; }
static void ending(const char *program) { (void)program; }
#endif

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "exit") == 0) {
        ending(argv[0]);
        return report("gate");
    }
    api = fake_api();
    gb_set_hooks(&hooks);
    if (strncmp(word, "exit-", 5) == 0)
        exits(strcmp(word, "exit-busy") == 0);
    enter_and_leave();
    if (*word)
        closing_in_the_crowd();
    else
        closing();
    return report("gate");
}
