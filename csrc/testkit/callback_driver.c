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

#define MOST_THREADS 64

struct start {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int ready, open;
};

struct one_of_many {
    struct job job;
    struct start *start;
};

static void *on_one_of_many(void *argument) {
    struct one_of_many *one = argument;
    struct start *start = one->start;
    pthread_mutex_lock(&start->lock);
    start->ready++;
    pthread_cond_broadcast(&start->opened);
    while (!start->open)
        pthread_cond_wait(&start->opened, &start->lock);
    pthread_mutex_unlock(&start->lock);
    return on_thread(&one->job);
}

/* On `threads` such threads at once, each with a token of its own (`count` 1: all with the same one). All are started
 * before the first call. Gives the nanoseconds from then until the last one is done, for each of all the calls. */
DRIVER_API double driver_threads(gopher_orch_elicitation_callback_t callback, const uint64_t *tokens, long count,
                                 long calls, int threads) {
    struct start start = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    struct one_of_many all[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    int started = 0, good = threads >= 1 && threads <= MOST_THREADS && count >= 1;
    for (; good && started < threads; started++) {
        struct job job = {callback, tokens + started % count, 1, calls, -1};
        all[started] = (struct one_of_many){job, &start};
        if (pthread_create(&ids[started], NULL, on_one_of_many, &all[started]))
            break;
    }
    pthread_mutex_lock(&start.lock);
    while (start.ready < started)
        pthread_cond_wait(&start.opened, &start.lock);
    start.open = 1;
    double begin = now_ns();
    pthread_cond_broadcast(&start.opened);
    pthread_mutex_unlock(&start.lock);
    for (int i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        good = good && all[i].job.result >= 0;
    }
    double end = now_ns();
    return good && started == threads ? (end - begin) / ((double)calls * threads) : -1;
}
