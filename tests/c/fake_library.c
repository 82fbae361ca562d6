#include "fake_library.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define ALIVE UINT64_C(0x6167656e74203a29)

typedef struct {
    gopher_orch_event_callback_t callback;
    void *user_data;
} listener;

/* Never freed, so that a use after the last release is counted and not a crash. */
typedef struct fake_agent {
    uint64_t state;
    int64_t references;
    listener listeners[8];
    struct fake_agent *next; /* keeps the leak checker content */
} fake_agent;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_counts counts;
static fake_agent *agents;

#if defined(FAKE_OLD)
#define HOOK static
#else
#define HOOK EXPORT
#endif
HOOK fake_create_hook *fake_on_create;
HOOK fake_run_hook *fake_on_run;
HOOK fake_release_hook *fake_on_release;

static _Thread_local gopher_orch_error_info_t error;

EXPORT fake_counts fake_count_now(void) {
    pthread_mutex_lock(&lock);
    fake_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

EXPORT char *fake_text(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    return strcpy(copy, text);
}

static void fail(int32_t code, const char *message, const char *details) {
    error = (gopher_orch_error_info_t){.code = code, .message = message, .details = details};
}

/* Under the lock. */
static bool alive(const fake_agent *agent) {
    bool is = agent && agent->state == ALIVE;
    counts.misused += !is;
    return is;
}

static gopher_orch_agent_t create(fake_create_arguments arguments) {
    if (fake_on_create && !fake_on_create(&arguments)) {
        fail(GOPHER_ORCH_ERROR_CONNECTION, "no server there", "details of it");
        return NULL;
    }
    fake_agent *agent = calloc(1, sizeof *agent);
    pthread_mutex_lock(&lock);
    agent->state = ALIVE;
    agent->references = 1;
    agent->next = agents;
    agents = agent;
    counts.created++;
    pthread_mutex_unlock(&lock);
    return agent;
}

#define PLAIN(name)                                                                                                    \
    EXPORT gopher_orch_agent_t gopher_orch_agent_create_by_##name(const char *provider, const char *model,             \
                                                                  const char *target) {                                \
        return create((fake_create_arguments){#name, provider, model, NULL, target, NULL});                            \
    }                                                                                                                  \
    EXPORT gopher_orch_agent_t gopher_orch_agent_create_by_##name##_with_options(                                      \
        const char *provider, const char *model, const char *target, const gopher_orch_agent_options_t *options) {     \
        return create((fake_create_arguments){#name "_with_options", provider, model, NULL, target, options});         \
    }
#define ROUTED(name)                                                                                                   \
    EXPORT gopher_orch_agent_t gopher_orch_agent_create_by_##name(const char *provider, const char *model,             \
                                                                  const char *api_key, const char *route) {            \
        return create((fake_create_arguments){#name, provider, model, api_key, route, NULL});                          \
    }                                                                                                                  \
    EXPORT gopher_orch_agent_t gopher_orch_agent_create_by_##name##_with_options(                                      \
        const char *provider, const char *model, const char *api_key, const char *route,                               \
        const gopher_orch_agent_options_t *options) {                                                                  \
        return create((fake_create_arguments){#name "_with_options", provider, model, api_key, route, options});       \
    }
PLAIN(json)
PLAIN(api_key)
PLAIN(url)
ROUTED(server_id)
ROUTED(server_name)
ROUTED(gateway_id)
#if !defined(FAKE_OLD) /* an older library lacks this pair, and the events */
ROUTED(gateway_name)
#endif

EXPORT char *gopher_orch_agent_run(gopher_orch_agent_t handle, const char *query, int64_t timeout_ms) {
    fake_agent *agent = handle;
    pthread_mutex_lock(&lock);
    bool is = alive(agent);
    counts.runs++;
    pthread_mutex_unlock(&lock);
    char *text = !is ? NULL : fake_on_run ? fake_on_run(handle, query, timeout_ms) : fake_text(query);
    if (!text)
        fail(GOPHER_ORCH_ERROR_INVALID_HANDLE, "it did not run", NULL);
    pthread_mutex_lock(&lock);
    alive(agent); /* a run whose agent went away under it */
    pthread_mutex_unlock(&lock);
    return text;
}

EXPORT void gopher_orch_agent_add_ref(gopher_orch_agent_t handle) {
    fake_agent *agent = handle;
    pthread_mutex_lock(&lock);
    if (alive(agent))
        agent->references++;
    counts.references_added++;
    pthread_mutex_unlock(&lock);
}

EXPORT void gopher_orch_agent_release(gopher_orch_agent_t handle) {
    fake_agent *agent = handle;
    pthread_mutex_lock(&lock);
    bool last = alive(agent) && --agent->references == 0;
    counts.references_released++;
    if (last) {
        agent->state = 0;
        counts.gone++;
    }
    pthread_mutex_unlock(&lock);
    if (fake_on_release)
        fake_on_release(handle, last);
}

#if !defined(FAKE_OLD)
EXPORT int32_t gopher_orch_agent_set_event_callback(gopher_orch_agent_t handle, int32_t kind,
                                                    gopher_orch_event_callback_t callback, void *user_data) {
    fake_agent *agent = handle;
    if (kind < 1 || kind > 7)
        return GOPHER_ORCH_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    if (alive(agent))
        agent->listeners[kind] = (listener){callback, user_data};
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int32_t gopher_orch_agent_set_event_callback_all(gopher_orch_agent_t handle,
                                                        gopher_orch_event_callback_t callback, void *user_data) {
    for (int32_t kind = 1; kind <= 7; kind++)
        gopher_orch_agent_set_event_callback(handle, kind, callback, user_data);
    return 0;
}
#endif

EXPORT gopher_orch_event_callback_t fake_listener(gopher_orch_agent_t handle, int32_t kind) {
    fake_agent *agent = handle;
    pthread_mutex_lock(&lock);
    gopher_orch_event_callback_t callback = agent->listeners[kind].callback;
    pthread_mutex_unlock(&lock);
    return callback;
}

EXPORT void *fake_user_data(gopher_orch_agent_t handle) {
    fake_agent *agent = handle;
    pthread_mutex_lock(&lock);
    void *user_data = agent->listeners[1].user_data;
    pthread_mutex_unlock(&lock);
    return user_data;
}

EXPORT void fake_send_event(gopher_orch_agent_t handle, int32_t kind, uint64_t run_id, uint64_t iteration,
                            const char *json, size_t length) {
    fake_agent *agent = handle;
    gopher_orch_event_t event = {.version = 1, .kind = kind, .run_id = run_id, .iteration = iteration,
                                 .json = json, .json_length = length};
    pthread_mutex_lock(&lock);
    listener to = agent->listeners[kind];
    pthread_mutex_unlock(&lock);
    if (to.callback)
        to.callback(&event, to.user_data);
}

EXPORT char *gopher_orch_api_fetch_servers(const char *api_key) {
    if (!api_key) {
        fail(GOPHER_ORCH_ERROR_NULL_ARGUMENT, NULL, NULL);
        return NULL;
    }
    return fake_text("[]");
}

EXPORT const gopher_orch_error_info_t *gopher_orch_last_error(void) { return error.code ? &error : NULL; }
EXPORT void gopher_orch_clear_error(void) { error = (gopher_orch_error_info_t){0}; }

EXPORT void gopher_orch_free(void *pointer) {
    pthread_mutex_lock(&lock);
    counts.freed_strings++;
    pthread_mutex_unlock(&lock);
    free(pointer);
}

EXPORT void gopher_orch_set_log_level(int32_t level) { (void)level; }
EXPORT int32_t gopher_orch_agent_options_supports_elicitation(void) { return 1; }
