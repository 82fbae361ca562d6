/* A library with the vendor's ABI whose every move a test decides. It stands in for libgopher-orch because the C tests
 * need exact control of threads and of moments; the real library is used by the tests in Python. */
#ifndef GOPHER_TESTS_FAKE_LIBRARY_H
#define GOPHER_TESTS_FAKE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gopher_orch/gopher_orch.h"

typedef struct {
    const char *factory; /* the exported function's name after "create_by_" */
    const char *provider, *model, *api_key, *target;
    const gopher_orch_agent_options_t *options;
} fake_create_arguments;

/* What a create does beyond making a handle; false makes it fail with last_error -20. */
typedef bool fake_create_hook(const fake_create_arguments *arguments);
/* What a run does; the result goes through malloc, NULL makes it fail with last_error -1. */
typedef char *fake_run_hook(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms);
/* On the thread that gives a reference back; `last` when the agent goes with it. */
typedef void fake_release_hook(gopher_orch_agent_t agent, bool last);

#if !defined(FAKE_OLD) /* the old one has no hooks */
extern fake_create_hook *fake_on_create;
extern fake_run_hook *fake_on_run;
extern fake_release_hook *fake_on_release;
#endif

typedef struct {
    uint64_t created, gone, references_added, references_released, misused, runs, freed_strings;
} fake_counts;
fake_counts fake_count_now(void);

/* Sends an event to whoever listens to its kind on this agent. */
void fake_send_event(gopher_orch_agent_t agent, int32_t kind, uint64_t run_id, uint64_t iteration, const char *json,
                     size_t length);
/* The callback registered for a kind, NULL when there is none. */
gopher_orch_event_callback_t fake_listener(gopher_orch_agent_t agent, int32_t kind);
void *fake_user_data(gopher_orch_agent_t agent); /* what came with the callback of kind 1: the agent's token */
char *fake_text(const char *text); /* a string as agent_run gives it */

#endif
