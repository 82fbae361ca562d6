/* See testkit.h. POSIX only: tests run there. */
#define _GNU_SOURCE 1
#include "testkit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct agent {
    struct agent *next;
    int references;
    bool running;
    gopher_orch_elicitation_callback_t callback;
    void *user_data;
    gopher_orch_event_callback_t events[8]; /* by kind */
    void *event_data[8];
} agent_t;

typedef struct {
    agent_t *agent;
    char *text; /* the result, grows */
    const char *status;
    char *error; /* of run_completed */
    bool quiet, null;
    uint64_t id;
} run_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER;
static bool blocking = true;
static agent_t *agents;
static char seen[65536];
static atomic_llong agent_count, run_count, thread_count, callback_count, string_count, misuse_count, last_answer;
static atomic_ullong run_ids;

static _Thread_local gopher_orch_error_info_t last;
static _Thread_local char last_text[512];

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_ms(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void fail(int32_t code, const char *text) {
    snprintf(last_text, sizeof last_text, "%s", text);
    last = (gopher_orch_error_info_t){code, last_text, "scripted", "testkit.c", 1};
}

static char *given(const char *text) {
    atomic_fetch_add(&string_count, 1);
    return strdup(text);
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

static const gopher_orch_elicitation_request_t plain = {
    "7", "elic-7", "url", "Sign in to the test provider", "https://provider.example.test/authorize?state=s7",
    "{\"id\":7,\"method\":\"elicitation/create\"}", "{\"mode\":\"url\"}"};

/* The vendor's library is C++, whose frames can't be unwound by the end of a thread: neither can these. */
static void must_return(const bool *inside) {
    if (*inside)
        abort();
}

static int ask(agent_t *agent, const gopher_orch_elicitation_request_t *request) {
    if (!agent->callback)
        return 0;
    atomic_fetch_add(&callback_count, 1);
    bool inside __attribute__((cleanup(must_return))) = true;
    int answer = agent->callback(request, agent->user_data);
    inside = false;
    atomic_store(&last_answer, now_ns());
    atomic_fetch_sub(&callback_count, 1);
    return answer;
}

static int ask_big(agent_t *agent, size_t bytes) {
    char *message = malloc(bytes + 1);
    memset(message, 'm', bytes);
    message[bytes] = 0;
    gopher_orch_elicitation_request_t request = plain;
    request.message = message;
    int answer = ask(agent, &request);
    free(message);
    return answer;
}

static int ask_odd(agent_t *agent) {
    gopher_orch_elicitation_request_t request = {NULL, "\xff\xfe id", NULL, "caf\xe9 \xf0\x9f", NULL, "\xc0\x80", NULL};
    return ask(agent, &request);
}

/* ---- threads of the library's own --------------------------------------------------------------------------- */

typedef struct {
    agent_t *agent;
    gopher_orch_elicitation_callback_t callback;
    void *user_data;
    long times, wait_ms;
    int answers[64];
    double nanoseconds;
} job_t;

static void *ask_often(void *argument) {
    job_t *job = argument;
    int64_t begin = now_ns();
    for (long i = 0; i < job->times; i++) {
        int answer = ask(job->agent, &plain);
        if (i < 64)
            job->answers[i] = answer;
    }
    job->nanoseconds = (double)(now_ns() - begin) / (double)(job->times ? job->times : 1);
    atomic_fetch_sub(&thread_count, 1);
    return NULL;
}

/* The agent may be gone by then: only the callback and its user_data are used, as a GET stream that ends late would. */
static void *ask_late(void *argument) {
    job_t *job = argument;
    do
        pause_ms(job->wait_ms);
    while (job->callback && job->callback(&plain, job->user_data) != GOPHER_ORCH_ELICITATION_CANCEL);
    free(job);
    atomic_fetch_sub(&thread_count, 1);
    return NULL;
}

static pthread_t start(void *(*body)(void *), job_t *job) {
    pthread_t thread;
    atomic_fetch_add(&thread_count, 1);
    if (pthread_create(&thread, NULL, body, job))
        abort();
    return thread;
}

/* ---- events ------------------------------------------------------------------------------------------------- */

static void tell(agent_t *agent, int kind, uint64_t run, uint64_t iteration, const char *json) {
    pthread_mutex_lock(&lock);
    gopher_orch_event_callback_t callback = agent->events[kind];
    void *data = agent->event_data[kind];
    pthread_mutex_unlock(&lock);
    if (!callback)
        return;
    gopher_orch_event_t event = {1, kind, run, iteration, NULL, json, strlen(json), (uint64_t)now_ns()};
    callback(&event, data);
}

/* ---- the script --------------------------------------------------------------------------------------------- */

static void add(run_t *run, const char *text) {
    size_t length = run->text ? strlen(run->text) : 0;
    run->text = realloc(run->text, length + strlen(text) + 2);
    sprintf(run->text + length, "%s%s", length ? " " : "", text);
}

static void add_number(run_t *run, double number) {
    char text[64];
    snprintf(text, sizeof text, number == (double)(long)number ? "%.0f" : "%.1f", number);
    add(run, text);
}

static void foreign(run_t *run, long times) {
    job_t job = {.agent = run->agent, .times = times};
    pthread_join(start(ask_often, &job), NULL);
    for (long i = 0; i < times && i < 64; i++)
        add_number(run, job.answers[i]);
}

static void parallel(run_t *run) {
    job_t job = {.agent = run->agent, .times = 1};
    pthread_t thread = start(ask_often, &job);
    int mine = ask(run->agent, &plain);
    pthread_join(thread, NULL);
    add_number(run, mine);
    add_number(run, job.answers[0]);
}

static void many(run_t *run, long threads, long times) {
    job_t *jobs = calloc((size_t)threads, sizeof *jobs);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (long i = 0; i < threads; i++) {
        jobs[i] = (job_t){.agent = run->agent, .times = times};
        ids[i] = start(ask_often, &jobs[i]);
    }
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    add_number(run, jobs[0].answers[0]);
    free(jobs);
    free(ids);
}

static void late(run_t *run, long milliseconds) {
    job_t *job = calloc(1, sizeof *job);
    job->callback = run->agent->callback;
    job->user_data = run->agent->user_data;
    job->wait_ms = milliseconds;
    pthread_detach(start(ask_late, job));
}

static void bench(run_t *run, long threads, long times) {
    job_t job = {.agent = run->agent, .times = times};
    if (threads) {
        pthread_join(start(ask_often, &job), NULL);
    } else {
        atomic_fetch_add(&thread_count, 1);
        ask_often(&job);
    }
    add_number(run, job.answers[0] == 1 ? job.nanoseconds : -1);
}

static void block(void) {
    pthread_mutex_lock(&lock);
    while (blocking)
        pthread_cond_wait(&unblocked, &lock);
    blocking = true;
    pthread_mutex_unlock(&lock);
}

static void step(run_t *run, char *words) {
    char verb[16] = "", *rest;
    int used = 0;
    sscanf(words, " %15s%n", verb, &used);
    rest = words + used + (words[used] == ' ');
    long first = 1, second = 1;
    int numbers = sscanf(rest, "%ld %ld", &first, &second);
    (void)numbers;
    if (!strcmp(verb, "say")) {
        add(run, rest);
    } else if (!strcmp(verb, "sleep")) {
        pause_ms(first);
    } else if (!strcmp(verb, "elicit")) {
        for (long i = 0; i < first; i++)
            add_number(run, ask(run->agent, &plain));
    } else if (!strcmp(verb, "foreign")) {
        foreign(run, first);
    } else if (!strcmp(verb, "parallel")) {
        parallel(run);
    } else if (!strcmp(verb, "many")) {
        many(run, first, second);
    } else if (!strcmp(verb, "late")) {
        late(run, first);
    } else if (!strcmp(verb, "big")) {
        add_number(run, ask_big(run->agent, (size_t)first));
    } else if (!strcmp(verb, "odd")) {
        add_number(run, ask_odd(run->agent));
    } else if (!strcmp(verb, "bench")) {
        bench(run, first, second);
    } else if (!strcmp(verb, "event") && first >= 1 && first <= 7) {
        tell(run->agent, (int)first, run->id, 1, strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "{}");
    } else if (!strcmp(verb, "error")) {
        add(run, "Error:");
        add(run, rest);
        run->status = "error";
        run->error = strdup(rest);
    } else if (!strcmp(verb, "status")) {
        char *error = strchr(rest, ' ');
        if (error)
            *error++ = 0;
        run->status = strcmp(rest, "error") ? "completed" : "error";
        run->error = error ? strdup(error) : NULL;
    } else if (!strcmp(verb, "null")) {
        fail((int32_t)first, strchr(rest, ' ') ? strchr(rest, ' ') + 1 : "");
        run->null = true;
    } else if (!strcmp(verb, "quiet")) {
        run->quiet = true;
    } else if (!strcmp(verb, "block")) {
        block();
    } else if (*verb) {
        add(run, words);
    }
}

static void play(run_t *run, const char *script) {
    char *copy = strdup(script), *place = NULL;
    for (char *words = strtok_r(copy, ";", &place); words; words = strtok_r(NULL, ";", &place))
        step(run, words);
    free(copy);
}

/* ---- agents ------------------------------------------------------------------------------------------------- */

static void misuse(const char *what) {
    atomic_fetch_add(&misuse_count, 1);
    fprintf(stderr, "testkit: %s\n", what);
}

/* Under lock. */
static agent_t *known(void *handle) {
    for (agent_t *agent = agents; agent; agent = agent->next)
        if (agent == handle)
            return agent;
    return NULL;
}

static void note(const char *name, const char *value) {
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof seen - used, "%s=%s\n", name, value ? value : "(null)");
}

static gopher_orch_agent_t make(const char *factory, const char *provider, const char *model, const char *key,
                                const char *target, const gopher_orch_agent_options_t *options) {
    pthread_mutex_lock(&lock);
    seen[0] = 0;
    note("factory", factory);
    note("provider", provider);
    note("model", model);
    note("api_key", key);
    note("target", target);
    note("options", options ? "yes" : "no");
    agent_t *agent = calloc(1, sizeof *agent);
    agent->references = 1;
    if (options) {
        note("access_token", options->access_token);
        for (size_t i = 0; i < options->header_count; i++)
            note(options->headers[i].name, options->headers[i].value);
        for (size_t i = 0; i < options->server_option_count; i++) {
            note("server", options->server_options[i].url);
            note("server_token", options->server_options[i].access_token);
        }
#ifdef TESTKIT_ELICITATION
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)options->elicitation_timeout_ms);
        note("elicitation_timeout_ms", number);
        note("callback", options->elicitation_callback ? "yes" : "no");
        agent->callback = options->elicitation_callback;
        agent->user_data = options->elicitation_user_data;
#endif
    }
    pthread_mutex_unlock(&lock);
    run_t run = {.agent = agent};
    if (model && !strncmp(model, "script:", 7))
        play(&run, model + 7);
    free(run.text);
    free(run.error);
    if (run.null) {
        free(agent);
        return NULL;
    }
    atomic_fetch_add(&agent_count, 1);
    pthread_mutex_lock(&lock);
    agent->next = agents;
    agents = agent;
    pthread_mutex_unlock(&lock);
    return agent;
}

/* Under lock: one reference goes; the memory too when it was the last. */
static void drop(agent_t *agent) {
    if (--agent->references)
        return;
    if (agent->running)
        misuse("an agent was freed during its run");
    for (agent_t **link = &agents; *link; link = &(*link)->next)
        if (*link == agent) {
            *link = agent->next;
            break;
        }
    memset(agent, 0x5a, sizeof *agent);
    free(agent);
    atomic_fetch_sub(&agent_count, 1);
}

static char *completed_json(const run_t *run) {
    char *json = malloc((run->error ? strlen(run->error) : 0) + 128);
    if (run->error)
        sprintf(json, "{\"status\":\"%s\",\"error\":\"%s\"}", run->status, run->error);
    else
        sprintf(json, "{\"status\":\"%s\"}", run->status);
    return json;
}

/* ---- the ABI ------------------------------------------------------------------------------------------------ */

#define PLAIN(name)                                                                                                    \
    TESTKIT_API gopher_orch_agent_t gopher_orch_agent_create_by_##name(const char *provider, const char *model,        \
                                                                       const char *target) {                           \
        return make(#name, provider, model, NULL, target, NULL);                                                       \
    }
PLAIN(json)
PLAIN(api_key)

#ifdef TESTKIT_OPTIONS
#define WITH_OPTIONS(name)                                                                                             \
    TESTKIT_API gopher_orch_agent_t gopher_orch_agent_create_by_##name##_with_options(                                 \
        const char *provider, const char *model, const char *target, const gopher_orch_agent_options_t *options) {     \
        return make(#name, provider, model, NULL, target, options);                                                    \
    }
#define ROUTED(name)                                                                                                   \
    TESTKIT_API gopher_orch_agent_t gopher_orch_agent_create_by_##name(const char *provider, const char *model,        \
                                                                       const char *key, const char *route) {           \
        return make(#name, provider, model, key, route, NULL);                                                         \
    }                                                                                                                  \
    TESTKIT_API gopher_orch_agent_t gopher_orch_agent_create_by_##name##_with_options(                                 \
        const char *provider, const char *model, const char *key, const char *route,                                   \
        const gopher_orch_agent_options_t *options) {                                                                  \
        return make(#name, provider, model, key, route, options);                                                      \
    }
PLAIN(url)
WITH_OPTIONS(json)
WITH_OPTIONS(api_key)
WITH_OPTIONS(url)
ROUTED(server_id)
ROUTED(server_name)
ROUTED(gateway_id)
ROUTED(gateway_name)
#endif

TESTKIT_API char *gopher_orch_agent_run(gopher_orch_agent_t handle, const char *query, int64_t timeout_ms) {
    (void)timeout_ms;
    pthread_mutex_lock(&lock);
    agent_t *agent = known(handle);
    bool busy = agent && agent->running;
    if (agent)
        agent->running = true;
    pthread_mutex_unlock(&lock);
    if (!agent) {
        misuse("run on a dead handle");
        fail(GOPHER_ORCH_ERROR_INVALID_HANDLE, "not an agent");
        return NULL;
    }
    if (busy)
        return given("Error: Agent is already running");
    atomic_fetch_add(&run_count, 1);
    run_t run = {.agent = agent, .status = "completed", .id = atomic_fetch_add(&run_ids, 1) + 1};
    tell(agent, GOPHER_ORCH_EVENT_ITERATION_START, run.id, 1, "{}");
    play(&run, query);
    if (!run.quiet) {
        char *json = completed_json(&run);
        tell(agent, GOPHER_ORCH_EVENT_RUN_COMPLETED, run.id, 1, json);
        free(json);
    }
    pthread_mutex_lock(&lock);
    if (known(agent))
        agent->running = false;
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&run_count, 1);
    char *text = run.null ? NULL : given(run.text ? run.text : "");
    free(run.text);
    free(run.error);
    return text;
}

TESTKIT_API void gopher_orch_agent_add_ref(gopher_orch_agent_t handle) {
    pthread_mutex_lock(&lock);
    agent_t *agent = known(handle);
    if (agent)
        agent->references++;
    else
        misuse("add_ref on a dead handle");
    pthread_mutex_unlock(&lock);
}

TESTKIT_API void gopher_orch_agent_release(gopher_orch_agent_t handle) {
    pthread_mutex_lock(&lock);
    agent_t *agent = known(handle);
    if (agent)
        drop(agent);
    else
        misuse("release of a dead handle");
    pthread_mutex_unlock(&lock);
}

#ifdef TESTKIT_EVENTS
TESTKIT_API int32_t gopher_orch_agent_set_event_callback(gopher_orch_agent_t handle, int32_t kind,
                                                         gopher_orch_event_callback_t callback, void *user_data) {
    if (kind < 1 || kind > 7)
        return GOPHER_ORCH_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    agent_t *agent = known(handle);
    if (agent) {
        agent->events[kind] = callback;
        agent->event_data[kind] = user_data;
    }
    pthread_mutex_unlock(&lock);
    return agent ? 0 : GOPHER_ORCH_ERROR_INVALID_HANDLE;
}

TESTKIT_API int32_t gopher_orch_agent_set_event_callback_all(gopher_orch_agent_t handle,
                                                             gopher_orch_event_callback_t callback, void *user_data) {
    int32_t result = 0;
    for (int32_t kind = 1; kind <= 7 && !result; kind++)
        result = gopher_orch_agent_set_event_callback(handle, kind, callback, user_data);
    return result;
}
#endif

TESTKIT_API char *gopher_orch_api_fetch_servers(const char *api_key) {
    if (!api_key || !*api_key) {
        fail(GOPHER_ORCH_ERROR_INVALID_ARGUMENT, "no key");
        return NULL;
    }
    return given("{\"servers\":[]}");
}

TESTKIT_API const gopher_orch_error_info_t *gopher_orch_last_error(void) { return last.code ? &last : NULL; }

TESTKIT_API void gopher_orch_clear_error(void) { last.code = 0; }

TESTKIT_API void gopher_orch_free(void *pointer) {
    if (pointer)
        atomic_fetch_sub(&string_count, 1);
    free(pointer);
}

TESTKIT_API void gopher_orch_set_log_level(int32_t level) {
    pthread_mutex_lock(&lock);
    seen[0] = 0;
    char number[16];
    snprintf(number, sizeof number, "%d", level);
    note("log_level", number);
    pthread_mutex_unlock(&lock);
}

/* ---- for tests ---------------------------------------------------------------------------------------------- */

TESTKIT_API void testkit_counts(testkit_counts_t *counts) {
    *counts = (testkit_counts_t){agent_count,  run_count,    thread_count, callback_count,
                                 string_count, misuse_count, last_answer};
}

TESTKIT_API void testkit_unblock(void) {
    pthread_mutex_lock(&lock);
    blocking = false;
    pthread_cond_broadcast(&unblocked);
    pthread_mutex_unlock(&lock);
}

TESTKIT_API const char *testkit_seen(void) { return seen; }
