/* The little that the C tests share: checks that name their line, a wait for something to come true, threads. */
#ifndef GOPHER_TESTS_CHECK_H
#define GOPHER_TESTS_CHECK_H

#include "internal.h"

#include <pthread.h>
#include <stdio.h>

#include "fake_library.h"

static _Atomic(int) checks_made;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        atomic_fetch_add(&checks_made, 1);                                                                             \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            _Exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Comes true within `ms`, looked at every half millisecond. */
#define EVENTUALLY(condition, ms)                                                                                      \
    do {                                                                                                               \
        int64_t give_up = gb_now_ns() + (int64_t)(ms) * GB_NS_PER_MS;                                                  \
        while (!(condition) && gb_now_ns() < give_up)                                                                  \
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);                                                    \
        CHECK(condition);                                                                                              \
    } while (0)

/* Sanitizers slow everything down: fewer rounds there. Limits of time are wide, since the machine may be busy; where a
 * promise is closer than that, the best of some rounds must keep it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#define ROUNDS(n) (SANITIZED ? (n) / 10 : (n))
#define LATE_MS 1000

static inline int64_t ms_since(int64_t start_ns) { return (gb_now_ns() - start_ns) / GB_NS_PER_MS; }

static inline pthread_t thread_run(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}
static inline void thread_join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

/* One elicitation callback on a thread of its own, as the library makes it. */
typedef struct {
    gb_token token;
    const gopher_orch_elicitation_request_t *request;
    int32_t answer;
    int64_t took_ms;
    pthread_t thread;
    _Atomic(bool) returned;
} asking;

static inline void *ask_body(void *argument) {
    asking *ask = argument;
    int64_t start = gb_now_ns();
    ask->answer = gb_elicitation_trampoline(ask->request, (void *)(uintptr_t)ask->token);
    ask->took_ms = ms_since(start);
    atomic_store(&ask->returned, true);
    return NULL;
}

static const gopher_orch_elicitation_request_t sample_request = {
    .request_id_json = "7",
    .elicitation_id = "e-1",
    .mode = "url",
    .message = "Sign in, please",
    .url = "https://provider.example/authorize",
    .raw_json = "{}",
    .raw_params_json = "{}",
};

static inline void ask_start(asking *ask, gb_token token) {
    *ask = (asking){.token = token, .request = &sample_request};
    ask->thread = thread_run(ask_body, ask);
}
static inline int32_t ask_join(asking *ask) {
    thread_join(ask->thread);
    return ask->answer;
}

static inline const gb_api *fake_api(void) {
    char error[512];
    const gb_api *api = gb_api_open(FAKE_LIBRARY, error, sizeof error);
    if (!api)
        fprintf(stderr, "%s\n", error);
    CHECK(api != NULL);
    return api;
}

static inline gb_counts counts_now(void) {
    gb_counts counts;
    gb_get_counts(&counts);
    return counts;
}

/* An agent with a handle, through a create call like any other. */
static inline gb_token agent_made(const gb_api *api, gb_agent_config config) {
    gb_token token = gb_agent_open(api, &config);
    CHECK(token != 0);
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", NULL, "http://127.0.0.1/", NULL, true);
    CHECK(call != NULL);
    CHECK(gb_call_wait(call, 10000) == GB_WAKE_DONE);
    gb_outcome outcome;
    gb_call_outcome(call, &outcome);
    CHECK(outcome.ok);
    gb_call_leave(call);
    return token;
}

/* Everything that was opened has gone again. */
static inline void check_nothing_left(void) {
    EVENTUALLY(counts_now().live_agents == 0, 20000);
    EVENTUALLY(counts_now().live_calls == 0, 20000);
    EVENTUALLY(counts_now().live_requests == 0, 20000);
    EVENTUALLY(counts_now().threads == 0, 20000);
}

static inline int report(const char *what) {
    printf("%s: %d checks\n", what, atomic_load(&checks_made));
    return 0;
}

#endif
