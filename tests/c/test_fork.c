/* A process that forks with agents, calls and requests of every kind in being, and with threads that hold the lock at any
 * moment: the child can do nothing to what it inherited, must not hang, and lives on with agents of its own. */
#include "check.h"

#include <sys/wait.h>

static const gb_api *api;
static int host;
static _Atomic(gb_request *) unattended;
static void to_helper(void *which, gb_request *request) {
    CHECK(which == &host);
    atomic_store(&unattended, request);
}
static pid_t forked_inside;
static int32_t fork_inside(gb_token token, const gopher_orch_elicitation_request_t *request) {
    CHECK(gb_inline_host(token) == &host && request);
    forked_inside = fork();
    return 1;
}
static _Atomic(int) hosts_dropped;
static _Atomic(bool) fork_at_drop;
static _Atomic(pid_t) forked_at_drop;
static void dropped(void *which) {
    CHECK(which == &host);
    if (atomic_exchange(&fork_at_drop, false))
        atomic_store(&forked_at_drop, fork());
    atomic_fetch_add(&hosts_dropped, 1);
}
static const gb_hooks hooks = {.unattended = to_helper, .inline_answer = fork_inside, .drop = dropped};
static const gb_agent_config handed_over = {.mode = GB_ANSWER_HANDED_OVER, .host = &host};
static const gb_agent_config policy = {.mode = GB_ANSWER_INLINE, .host = &host};

static _Atomic(bool) hold;
static char *wait_while_held(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    while (atomic_load(&hold))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return fake_text(query);
}

static void child_ended_well(pid_t child) {
    int status = -1;
    int64_t start = gb_now_ns();
    pid_t seen;
    while ((seen = waitpid(child, &status, WNOHANG)) == 0 && ms_since(start) < 20000)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK(seen == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A whole life of an agent of the child's own. */
static void live_in_child(void) {
    CHECK(gb_gate_is_open() && gb_gate_drain(0));
    gb_token token = agent_made(api, handed_over);
    asking ask;
    ask_start(&ask, token);
    EVENTUALLY(atomic_load(&unattended) != NULL, 5000);
    gb_request *request = atomic_exchange(&unattended, NULL);
    CHECK(gb_request_answer(request, 2) && ask_join(&ask) == 2);
    gb_request_release(request);
    gb_agent_close(token);
    check_nothing_left();
    CHECK(counts_now().released_handles == 1);
}

static void what_is_inherited(void) {
    gb_token idle = agent_made(api, handed_over), busy = agent_made(api, handed_over), fast = agent_made(api, policy);
    atomic_store(&hold, true);
    fake_on_run = wait_while_held;
    gb_call *call = gb_call_run(busy, "q", 0);
    asking ask[2];
    ask_start(&ask[0], busy);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *taken = gb_call_take(call);
    ask_start(&ask[1], idle);
    EVENTUALLY(atomic_load(&unattended) != NULL, 5000);
    gb_request *waiting = atomic_exchange(&unattended, NULL);
    gb_agent *held = gb_agent_acquire(idle);
    CHECK(gb_gate_enter());
    uint32_t epoch = gb_epoch();
    uint64_t released = fake_count_now().references_released;

    pid_t child = fork();
    if (child == 0) {
        CHECK(gb_epoch() == epoch + 1);
        const gb_token tokens[] = {idle, busy, fast};
        for (int i = 0; i < 3; i++) {
            CHECK(gb_agent_acquire(tokens[i]) == NULL && gb_call_run(tokens[i], "q", 0) == NULL);
            CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)tokens[i]) == 3);
            gb_agent_close(tokens[i]);
        }
        CHECK(!gb_agent_can_run(held));
        gb_agent_release(held);
        gb_gate_leave();
        CHECK(gb_call_wait(call, 5000) == GB_WAKE_CLOSED && gb_call_take(call) == NULL);
        gb_outcome outcome;
        gb_call_outcome(call, &outcome);
        CHECK(!outcome.ok && !outcome.text);
        gb_call_set_timeout(call, 1);
        gb_call_leave(call);
        CHECK(!gb_request_is_open(taken) && gb_request_remaining_ms(taken) == 0 && !gb_request_answer(taken, 1));
        CHECK(strcmp(gb_request_fields(taken)->mode, "url") == 0);
        gb_request_release(taken);
        gb_request_release(waiting);
        gb_counts counts = counts_now();
        CHECK(!counts.live_agents && !counts.live_calls && !counts.live_requests && !counts.threads);
        live_in_child();
        CHECK(fake_count_now().references_released == released + 1); /* its own and no other */
        _exit(0);
    }
    child_ended_well(child);
    gb_gate_leave();
    CHECK(gb_epoch() == epoch);
    CHECK(gb_request_answer(taken, 1) && ask_join(&ask[0]) == 1);
    CHECK(gb_request_answer(waiting, 2) && ask_join(&ask[1]) == 2);
    gb_request_release(taken);
    gb_request_release(waiting);
    gb_agent_release(held);
    atomic_store(&hold, false);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    gb_call_leave(call);
    gb_agent_close(idle);
    gb_agent_close(busy);
    gb_agent_close(fast);
    check_nothing_left();
}

/* The handler itself forks: the child comes back out of the callback as if nothing had been. */
static void forked_by_a_handler(void) {
    gb_token token = agent_made(api, policy);
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 1);
    if (forked_inside == 0) {
        CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 3);
        live_in_child();
        _exit(0);
    }
    child_ended_well(forked_inside);
    gb_agent_close(token);
    check_nothing_left();
}

/* A destructor forks, on the reaper's thread. The child has that thread alone, and nothing for it to do: it ends. */
static void forked_by_a_destructor(void) {
    atomic_store(&fork_at_drop, true);
    gb_agent_close(agent_made(api, policy));
    EVENTUALLY(atomic_load(&forked_at_drop) > 0, 5000);
    child_ended_well(atomic_load(&forked_at_drop));
    gb_agent_close(agent_made(api, policy));
    check_nothing_left();
}

/* Generations of processes: each refuses the tokens of all before it. */
static void grandchildren(void) {
    gb_token first = agent_made(api, handed_over);
    pid_t child = fork();
    if (child == 0) {
        gb_token second = agent_made(api, handed_over);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            gb_token third = agent_made(api, handed_over);
            CHECK(third != first && third != second);
            CHECK(!gb_agent_acquire(first) && !gb_agent_acquire(second));
            gb_agent_close(third);
            check_nothing_left();
            _exit(0);
        }
        child_ended_well(grandchild);
        CHECK(!gb_agent_acquire(first));
        gb_agent_close(second);
        check_nothing_left();
        _exit(0);
    }
    child_ended_well(child);
    gb_agent_close(first);
    check_nothing_left();
}

/* Threads take and give the lock as fast as they can while the process forks. */
static _Atomic(bool) stop;
static void *keep_busy(void *unused) {
    while (!atomic_load(&stop)) {
        gb_token token = gb_agent_open(api, &handed_over);
        gb_agent_close(token);
        if (counts_now().live_agents > 100) /* the reaper is behind: many pages make a fork slow */
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return unused;
}
static void forks_under_load(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = thread_run(keep_busy, NULL);
    for (int i = 0; i < ROUNDS(100); i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(counts_now().live_agents == 0);
            gb_token token = gb_agent_open(api, &handed_over);
            CHECK(token != 0);
            gb_agent *agent = gb_agent_acquire(token);
            CHECK(agent != NULL);
            gb_agent_release(agent);
            gb_agent_close(token);
            EVENTUALLY(counts_now().live_agents == 0, 10000);
            _exit(0);
        }
        child_ended_well(child);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        thread_join(threads[i]);
    check_nothing_left();
}

int main(void) {
    api = fake_api();
    gb_set_hooks(&hooks);
    what_is_inherited();
    forked_by_a_handler();
    forked_by_a_destructor();
    grandchildren();
    forks_under_load();
    return report("fork");
}
