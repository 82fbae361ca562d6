/* Calls an elicitation callback many times and tells the nanoseconds of one: the stop-watch of benchmarks/callback.py.
 *
 * Load it with ctypes.CDLL, which gives the GIL up around the call. Each function returns -1 when an answer was not
 * "accept". The requests are alike; tokens may differ from call to call, so that a large registry is really walked.
 */
#include <pthread.h>
#include <time.h>

#include "gopher_orch/gopher_orch.h"

#if defined(_WIN32)
#define DRIVER_API __declspec(dllexport)
#else
#define DRIVER_API __attribute__((visibility("default")))
#endif

#define SIGN_IN "https://accounts.example.test/o/oauth2/auth?client_id=abc&state=s3cr3t"
#define PARAMS                                                                                                         \
    "{\"elicitationId\":\"elic-1\",\"message\":\"Authorize Gmail access\",\"mode\":\"url\",\"url\":\"" SIGN_IN "\"}"
static const gopher_orch_elicitation_request_t request = {
    "1", "elic-1", "url", "Authorize Gmail access", SIGN_IN,
    "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"elicitation/create\",\"params\":" PARAMS "}", PARAMS};

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* `tokens` are used in turn; one is enough. */
DRIVER_API double driver_same_thread(gopher_orch_elicitation_callback_t callback, const uint64_t *tokens, long count,
                                     long calls) {
    long accepted = 0;
    double begin = now_ns();
    for (long i = 0, next = 0; i < calls; i++) {
        accepted += callback(&request, (void *)(uintptr_t)tokens[next]) == GOPHER_ORCH_ELICITATION_ACCEPT;
        if (++next == count)
            next = 0;
    }
    double end = now_ns();
    return accepted == calls ? (end - begin) / (double)calls : -1;
}

struct job {
    gopher_orch_elicitation_callback_t callback;
    const uint64_t *tokens;
    long count, calls;
    double result;
};

static void *on_thread(void *argument) {
    struct job *job = argument;
    job->result = driver_same_thread(job->callback, job->tokens, job->count, job->calls);
    return NULL;
}

/* On a thread that Python did not start and does not know. */
DRIVER_API double driver_foreign_thread(gopher_orch_elicitation_callback_t callback, const uint64_t *tokens,
                                        long count, long calls) {
    struct job job = {callback, tokens, count, calls, -1};
    pthread_t thread;
    if (pthread_create(&thread, NULL, on_thread, &job))
        return -1;
    pthread_join(thread, NULL);
    return job.result;
}
