/* calls.c: create and run on threads of the bridge; who waits, for how long, and what is left behind. */
#include "check.h"

#include <signal.h>

static const gb_api *api, *old_api;
static int host;
static _Atomic(gb_request *) unattended;
static void to_helper(void *which, gb_request *request) {
    CHECK(which == &host);
    atomic_store(&unattended, request);
}
static _Atomic(int) events_seen;
static void event_seen(void *which, const gopher_orch_event_t *event) {
    CHECK(which == &host && event->kind != GOPHER_ORCH_EVENT_RUN_COMPLETED);
    atomic_fetch_add(&events_seen, 1);
}
static const gb_hooks hooks = {.unattended = to_helper, .event = event_seen};
static const gb_agent_config handed_over = {.mode = GB_ANSWER_HANDED_OVER, .host = &host};

static gb_outcome outcome_of(gb_call *call) {
    gb_outcome outcome;
    gb_call_outcome(call, &outcome);
    return outcome;
}
static gb_call *started(gb_token token, const char *query, int64_t timeout_ms) {
    gb_call *call = gb_call_run(token, query, timeout_ms);
    CHECK(call != NULL);
    return call;
}
static void closed_and_gone(gb_token token) {
    gb_agent_close(token);
    check_nothing_left();
    fake_counts counts = fake_count_now();
    CHECK(counts.created == counts.gone && counts.misused == 0);
    CHECK(counts.references_released == counts.references_added + counts.created);
    fake_on_create = NULL;
    fake_on_run = NULL;
}

/* ---- create ------------------------------------------------------------------------------------------------- */

static const char *expected_factory, *expected_key;
static bool looks_right(const fake_create_arguments *got) {
    CHECK(strcmp(got->factory, expected_factory) == 0);
    CHECK(strcmp(got->provider, "AnthropicProvider") == 0 && strcmp(got->model, "model-1") == 0);
    CHECK(strcmp(got->target, "the target") == 0);
    CHECK(expected_key ? strcmp(got->api_key, expected_key) == 0 : got->api_key == NULL);
    return true;
}

static void every_factory(void) {
    const char *names[] = {"json", "api_key", "url", "server_id", "server_name", "gateway_id", "gateway_name"};
    for (int with = 0; with <= 1; with++)
        for (int i = 0; i < 7; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", names[i], with ? "_with_options" : "");
            expected_factory = name;
            expected_key = i >= 3 ? "the key" : NULL;
            fake_on_create = looks_right;
            gb_token token = gb_agent_open(api, &handed_over);
            gopher_orch_agent_options_t options = {0};
            gb_call *call = gb_call_create(token, (gb_factory)i, "AnthropicProvider", "model-1", "the key",
                                           "the target", with ? &options : NULL, false);
            CHECK(call && gb_call_wait(call, 5000) == GB_WAKE_DONE && outcome_of(call).ok);
            gb_agent *agent = gb_agent_acquire(token);
            CHECK(gb_agent_can_run(agent));
            gb_agent_release(agent);
            gb_call_leave(call);
            closed_and_gone(token);
        }
}

static gb_token options_token;
static bool options_look_right(const fake_create_arguments *got) {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* the caller's are gone by now */
    const gopher_orch_agent_options_t *options = got->options;
    CHECK(strcmp(options->access_token, "token") == 0);
    CHECK(options->header_count == 2 && strcmp(options->headers[1].name, "X-B") == 0);
    CHECK(strcmp(options->headers[0].value, "1") == 0 && options->headers[1].value == NULL);
    CHECK(options->server_option_count == 1 && strcmp(options->server_options[0].server_name, "mail") == 0);
    CHECK(options->server_options[0].url == NULL && options->server_options[0].header_count == 1);
    CHECK(strcmp(options->server_options[0].headers[0].value, "2") == 0);
    CHECK(options->elicitation_callback == gb_elicitation_trampoline);
    CHECK((uintptr_t)options->elicitation_user_data == options_token);
    CHECK(options->elicitation_timeout_ms == 2500);
    return true;
}

static void options_are_copied(void) {
    fake_on_create = options_look_right;
    gb_token token = options_token = gb_agent_open(api, &handed_over);
    char secret[] = "token", one[] = "1", two[] = "2", name[] = "mail";
    gopher_orch_header_t headers[] = {{"X-A", one}, {"X-B", NULL}}, own[] = {{"X-C", two}};
    gopher_orch_server_options_t server = {.server_name = name, .headers = own, .header_count = 1};
    gopher_orch_agent_options_t options = {.access_token = secret, .headers = headers, .header_count = 2,
                                           .server_options = &server, .server_option_count = 1,
                                           .elicitation_timeout_ms = 2500};
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", NULL, "u", &options, true);
    memset(secret, 'x', 5), memset(name, 'x', 4), one[0] = two[0] = 'x';
    memset(headers, 0, sizeof headers), memset(own, 0, sizeof own), memset(&server, 0, sizeof server);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && outcome_of(call).ok);
    gb_call_leave(call);
    closed_and_gone(token);
}

static bool refuse(const fake_create_arguments *got) {
    (void)got;
    return false;
}
static void a_failed_create(void) {
    fake_on_create = refuse;
    gb_token token = gb_agent_open(api, &handed_over);
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", NULL, "u", NULL, true);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    gb_outcome outcome = outcome_of(call);
    CHECK(!outcome.ok && outcome.error_code == GOPHER_ORCH_ERROR_CONNECTION);
    CHECK(strcmp(outcome.error_message, "no server there") == 0 && strcmp(outcome.error_details, "details of it") == 0);
    gb_call_leave(call);
    CHECK(gb_call_run(token, "q", 0) == NULL); /* no handle */
    uint64_t released = counts_now().released_handles;
    closed_and_gone(token);
    CHECK(counts_now().released_handles == released);
}

static void a_function_that_is_missing(void) {
    gb_token token = gb_agent_open(old_api, &handed_over);
    gb_call *call = gb_call_create(token, GB_BY_GATEWAY_NAME, "p", "m", "k", "g", NULL, true);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    gb_outcome outcome = outcome_of(call);
    CHECK(!outcome.ok && outcome.error_code == GB_ERROR_NO_FUNCTION);
    CHECK(strstr(outcome.error_message, "gopher_orch_agent_create_by_gateway_name_with_options"));
    gb_call_leave(call);
    closed_and_gone(token);
}

static _Atomic(gb_token) asking_token;
static bool asks_during_create(const fake_create_arguments *got) {
    asking ask;
    ask_start(&ask, (uintptr_t)got->options->elicitation_user_data); /* on a foreign thread, as for the GET stream */
    return ask_join(&ask) == 1;
}
static void a_request_during_create(void) {
    fake_on_create = asks_during_create;
    gb_token token = gb_agent_open(api, &handed_over);
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", NULL, "u", NULL, true);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *request = gb_call_take(call);
    CHECK(request && gb_call_take(call) == NULL);
    CHECK(gb_call_wait(call, 20) == GB_WAKE_TICK);
    CHECK(gb_request_answer(request, 1));
    gb_request_release(request);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && outcome_of(call).ok);
    CHECK(outcome_of(call).paused_seconds >= 0.02);
    gb_call_leave(call);
    closed_and_gone(token);
}

/* ---- run ---------------------------------------------------------------------------------------------------- */

static _Atomic(bool) hold;
static char *wait_while_held(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    while (atomic_load(&hold))
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    return fake_text(query);
}
static int32_t asked_answer;
static char *ask_in_run(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    asked_answer = gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)atomic_load(&asking_token));
    return fake_text(query);
}

static char *fail_to_run(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)query, (void)timeout_ms;
    return NULL;
}
static void outcomes_of_runs(void) {
    gb_token token = agent_made(api, handed_over);
    gb_call *call = started(token, "hello", 0);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && gb_call_wait(call, 0) == GB_WAKE_DONE);
    gb_outcome outcome = outcome_of(call);
    CHECK(outcome.ok && strcmp(outcome.text, "hello") == 0 && !outcome.completed_json && !outcome.error_code);
    gb_call_leave(call);
    fake_on_run = fail_to_run;
    call = started(token, "hello", 0);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    outcome = outcome_of(call);
    CHECK(!outcome.ok && !outcome.text && outcome.error_code == -1 && strcmp(outcome.error_message, "it did not run") == 0);
    gb_call_leave(call);
    closed_and_gone(token);
    CHECK(fake_count_now().freed_strings == 1);
}

/* The payload has a length and no end of its own; the second event of a run wins. */
static char *send_events(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)timeout_ms;
    fake_send_event(agent, 6, 5, 1, NULL, 0);
    fake_send_event(agent, 4, 5, 1, "{}", 2);
    if (strcmp(query, "twice") == 0)
        fake_send_event(agent, 1, 4, 9, "{\"status\":\"early\"}", 18);
    fake_send_event(agent, 1, 5, 2, "{\"status\":\"ok\"}####", 15);
    return fake_text("done");
}
static void events_of_runs(void) {
    for (int wants = 0; wants <= 1; wants++) {
        gb_agent_config config = handed_over;
        config.wants_events = wants != 0;
        atomic_store(&events_seen, 0);
        gb_token token = agent_made(api, config);
        fake_on_run = send_events;
        for (int i = 0; i < 2; i++) {
            gb_call *call = started(token, i ? "twice" : "once", 0);
            CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
            gb_outcome outcome = outcome_of(call);
            CHECK(strcmp(outcome.completed_json, "{\"status\":\"ok\"}") == 0);
            CHECK(outcome.run_id == 5 && outcome.iterations == 2);
            gb_call_leave(call);
        }
        CHECK(atomic_load(&events_seen) == (wants ? 4 : 0));
        closed_and_gone(token);
    }
    gb_event_trampoline(NULL, NULL);
    gb_event_trampoline(&(gopher_orch_event_t){.kind = 1}, (void *)(uintptr_t)12345);
}

static void a_library_without_events(void) {
    gb_token token = gb_agent_open(old_api, &handed_over);
    gb_call *call = gb_call_create(token, GB_BY_URL, "p", "m", NULL, "u", NULL, true);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && outcome_of(call).ok);
    gb_call_leave(call);
    call = started(token, "q", 0);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && outcome_of(call).ok && !outcome_of(call).completed_json);
    gb_call_leave(call);
    gb_agent_close(token);
    check_nothing_left();
}

static void timeouts(void) {
    gb_token token = agent_made(api, handed_over);
    fake_on_run = wait_while_held;
    atomic_store(&hold, true);
    int64_t start = gb_now_ns();
    gb_call *call = started(token, "q", 300);
    CHECK(gb_call_wait(call, 20) == GB_WAKE_TICK && ms_since(start) >= 20);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_TIMEOUT);
    CHECK(ms_since(start) >= 300 && ms_since(start) <= 300 + LATE_MS);
    gb_call_set_timeout(call, 0);
    CHECK(gb_call_wait(call, 5) == GB_WAKE_TICK);
    gb_call_set_timeout(call, 400);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_TIMEOUT && ms_since(start) >= 400);
    gb_call_leave(call);
    CHECK(gb_call_run(token, "again", 0) == NULL); /* the library would give it the late result */
    CHECK(counts_now().threads == 1);
    gb_agent_close(token);
    CHECK(fake_count_now().gone + 1 == fake_count_now().created); /* the call behind still uses it */
    atomic_store(&hold, false);
    closed_and_gone(token);
}

static void the_clock_stands_still(void) {
    gb_token token = agent_made(api, handed_over);
    atomic_store(&asking_token, token);
    fake_on_run = ask_in_run;
    gb_call *call = started(token, "q", 250);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *first = gb_call_take(call);
    asking foreign;
    ask_start(&foreign, token);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *second = gb_call_take(call);
    CHECK(gb_call_wait(call, 300) == GB_WAKE_TICK); /* more than its time */
    CHECK(gb_request_answer(second, 2) && ask_join(&foreign) == 2);
    CHECK(gb_call_wait(call, 200) == GB_WAKE_TICK); /* one is still open */
    CHECK(gb_request_answer(first, 1));
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && asked_answer == 1);
    double paused = outcome_of(call).paused_seconds;
    CHECK(paused >= 0.5 && paused < 0.5 + 2 * LATE_MS / 1000.0);
    gb_request_release(first);
    gb_request_release(second);
    gb_call_leave(call);
    closed_and_gone(token);
}

/* The time before and after a question counts, the time of the question does not. */
static char *ask_then_wait(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    free(ask_in_run(agent, query, timeout_ms));
    return wait_while_held(agent, query, timeout_ms);
}
static void the_clock_goes_on(void) {
    gb_token token = agent_made(api, handed_over);
    atomic_store(&asking_token, token);
    atomic_store(&hold, true);
    fake_on_run = ask_then_wait;
    gb_call *call = started(token, "q", 300);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *request = gb_call_take(call);
    CHECK(gb_call_wait(call, 400) == GB_WAKE_TICK);
    int64_t resumed = gb_now_ns();
    CHECK(gb_request_answer(request, 1));
    gb_request_release(request);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_TIMEOUT);
    CHECK(ms_since(resumed) >= 50 && ms_since(resumed) <= 300 + LATE_MS);
    gb_call_leave(call);
    atomic_store(&hold, false);
    closed_and_gone(token);
}

static void leave_cancels(void) {
    gb_token token = agent_made(api, handed_over);
    atomic_store(&asking_token, token);
    fake_on_run = ask_in_run;
    asked_answer = 0;
    gb_call *call = started(token, "q", 0);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *taken = gb_call_take(call);
    asking foreign;
    ask_start(&foreign, token);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_call_leave(call);
    CHECK(ask_join(&foreign) == 3 && !gb_request_answer(taken, 1));
    gb_request_release(taken);
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 3); /* later ones too */
    EVENTUALLY(counts_now().threads == 0, 5000);
    CHECK(asked_answer == 3);
    CHECK(gb_call_run(token, "again", 0) == NULL);
    closed_and_gone(token);
}

static void closed_while_waiting(void) {
    gb_token token = agent_made(api, handed_over);
    atomic_store(&hold, true);
    fake_on_run = wait_while_held;
    gb_call *call = started(token, "q", 0);
    CHECK(gb_call_run(token, "second", 0) == NULL); /* one at a time */
    CHECK(gb_call_create(token, GB_BY_URL, "p", "m", NULL, "u", NULL, true) == NULL);
    int64_t start = gb_now_ns();
    gb_agent_close(token);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_CLOSED && ms_since(start) <= LATE_MS);
    CHECK(gb_call_run(token, "third", 0) == NULL);
    CHECK(gb_call_take(call) == NULL);
    gb_call_leave(call);
    atomic_store(&hold, false);
    closed_and_gone(token);
}

/* A foreign thread asks, the run ends, and the waiter goes without having taken the question: a helper gets it. */
static void a_question_outlives_its_call(void) {
    gb_token token = agent_made(api, handed_over);
    atomic_store(&hold, true);
    fake_on_run = wait_while_held;
    gb_call *call = started(token, "q", 0);
    asking first, second;
    ask_start(&first, token);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    gb_request *taken = gb_call_take(call);
    ask_start(&second, token);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_REQUEST);
    atomic_store(&hold, false);
    EVENTUALLY(gb_call_wait(call, 0) == GB_WAKE_DONE, 5000);
    gb_call_leave(call);
    EVENTUALLY(atomic_load(&unattended) != NULL, 5000);
    gb_request *helped = atomic_exchange(&unattended, NULL);
    CHECK(helped != taken && gb_request_answer(helped, 2) && ask_join(&second) == 2);
    CHECK(gb_request_is_open(taken) && gb_request_answer(taken, 1) && ask_join(&first) == 1);
    gb_request_release(helped);
    gb_request_release(taken);
    closed_and_gone(token);
}

static void fetch(void) {
    gb_call *call = gb_call_fetch(api, "key");
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && strcmp(outcome_of(call).text, "[]") == 0);
    gb_call_leave(call);
    call = gb_call_fetch(api, NULL);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE && !outcome_of(call).ok && outcome_of(call).error_code == -3);
    CHECK(!outcome_of(call).error_message);
    gb_call_leave(call);
    check_nothing_left();
}

/* Ctrl-C is the main thread's: a thread of ours takes none, but a crash on it can still be told. */
static sigset_t mask_in_run;
static char *look_at_signals(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)agent, (void)timeout_ms;
    pthread_sigmask(SIG_BLOCK, NULL, &mask_in_run);
    return fake_text(query);
}
static void signals(void) {
    gb_token token = agent_made(api, handed_over);
    fake_on_run = look_at_signals;
    gb_call *call = started(token, "q", 0);
    CHECK(gb_call_wait(call, 5000) == GB_WAKE_DONE);
    gb_call_leave(call);
    CHECK(sigismember(&mask_in_run, SIGINT) == 1 && sigismember(&mask_in_run, SIGTERM) == 1);
    CHECK(sigismember(&mask_in_run, SIGALRM) == 1 && sigismember(&mask_in_run, SIGSEGV) == 0);
    sigset_t own;
    pthread_sigmask(SIG_BLOCK, NULL, &own);
    CHECK(sigismember(&own, SIGINT) == 0);
    closed_and_gone(token);
}

/* ---- many --------------------------------------------------------------------------------------------------- */

typedef struct {
    unsigned seed;
    pthread_t thread;
} worker;

/* Agents come and go on several threads, every way at once: answered, left, closed in mid-run, closed by another. */
static void *live_a_while(void *argument) {
    worker *self = argument;
    uint64_t asked = 0;
    for (int i = 0; i < ROUNDS(300); i++) {
        gb_token token = agent_made(api, handed_over);
        gb_call *call = started(token, "q", 0);
        unsigned choice = (unsigned)rand_r(&self->seed) % 4;
        if (choice == 0)
            gb_agent_close(token);
        if (choice == 1)
            gb_call_wait(call, 0);
        while (choice >= 2) {
            gb_wake wake = gb_call_wait(call, 1000);
            if (wake != GB_WAKE_REQUEST)
                break;
            gb_request *request = gb_call_take(call);
            asked += request != NULL;
            if (choice == 3)
                gb_agent_close(token);
            if (request) /* another moment and it was cancelled */
                gb_request_answer(request, 1);
            gb_request_release(request);
        }
        gb_call_leave(call);
        gb_agent_close(token);
    }
    CHECK(asked > 0);
    return NULL;
}
static char *run_and_ask(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms) {
    (void)timeout_ms;
    gb_elicitation_trampoline(&sample_request, fake_user_data(agent));
    fake_send_event(agent, 1, 1, 1, "{}", 2);
    return fake_text(query);
}
static void no_helper(void *which, gb_request *request) {
    (void)which;
    gb_request_answer(request, 3);
    gb_request_release(request);
}
static const gb_hooks busy_hooks = {.unattended = no_helper};

static void stress(void) {
    gb_set_hooks(&busy_hooks);
    fake_on_run = run_and_ask;
    worker workers[4];
    for (unsigned i = 0; i < 4; i++) {
        workers[i].seed = i + 1;
        workers[i].thread = thread_run(live_a_while, &workers[i]);
    }
    for (int i = 0; i < 4; i++)
        thread_join(workers[i].thread);
    closed_and_gone(0);
    gb_set_hooks(&hooks);
}

int main(void) {
    api = fake_api();
    char error[256];
    old_api = gb_api_open(FAKE_OLD_LIBRARY, error, sizeof error);
    CHECK(old_api != NULL);
    gb_set_hooks(&hooks);
    every_factory();
    options_are_copied();
    a_failed_create();
    a_function_that_is_missing();
    a_request_during_create();
    outcomes_of_runs();
    events_of_runs();
    a_library_without_events();
    timeouts();
    the_clock_stands_still();
    the_clock_goes_on();
    leave_cancels();
    closed_while_waiting();
    a_question_outlives_its_call();
    fetch();
    signals();
    stress();
    return report("calls");
}
