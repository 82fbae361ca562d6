/* queue.c: requests that wait for somebody: one answer counts, the limit holds, dispose and a missing helper end it. */
#include "check.h"

static const gb_api *api;
static int host;
static _Atomic(gb_request *) unattended;
static void (*on_unattended)(gb_request *request);
static void keep_for_helper(void *which, gb_request *request) {
    CHECK(which == &host);
    if (on_unattended)
        on_unattended(request);
    else
        atomic_store(&unattended, request);
}
static const gb_hooks hooks = {.unattended = keep_for_helper};

static gb_token opened(int64_t limit_ms) {
    gb_token token =
        gb_agent_open(api, &(gb_agent_config){.mode = GB_ANSWER_HANDED_OVER, .limit_ms = limit_ms, .host = &host});
    CHECK(token != 0);
    return token;
}
static gb_request *given(void) {
    EVENTUALLY(atomic_load(&unattended) != NULL, 5000);
    return atomic_exchange(&unattended, NULL);
}

static void first_answer_counts(void) {
    for (int32_t action = 1; action <= 3; action++) {
        gb_token token = opened(0);
        asking ask;
        ask_start(&ask, token);
        gb_request *request = given();
        CHECK(gb_request_is_open(request) && gb_request_remaining_ms(request) == -1);
        CHECK(gb_request_answer(request, action));
        CHECK(!gb_request_answer(request, 1) && !gb_request_is_open(request));
        CHECK(gb_request_remaining_ms(request) == 0);
        CHECK(ask_join(&ask) == action);
        gb_request_release(request);
        gb_agent_close(token);
        check_nothing_left();
    }
}

static void odd_answers_are_cancel(void) {
    const int32_t odd[] = {0, 4, -1, 99, INT32_MIN, INT32_MAX};
    gb_token token = opened(0);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        asking ask;
        ask_start(&ask, token);
        gb_request *request = given();
        CHECK(gb_request_answer(request, odd[i]));
        CHECK(ask_join(&ask) == 3);
        gb_request_release(request);
    }
    gb_agent_close(token);
}

static void fields_are_copies(void) {
    size_t huge_size = (size_t)10 * 1024 * 1024;
    char *huge = malloc(huge_size + 1);
    memset(huge, 'u', huge_size);
    huge[huge_size] = '\0';
    char bytes[] = "\xff\xfe not UTF-8";
    const gopher_orch_elicitation_request_t odd = {.url = huge, .message = bytes, .raw_json = ""};
    gb_token token = opened(0);
    asking ask = {.token = token, .request = &odd};
    ask.thread = thread_run(ask_body, &ask);
    gb_request *request = given();
    const gopher_orch_elicitation_request_t *fields = gb_request_fields(request);
    CHECK(fields->url != huge && strcmp(fields->url, huge) == 0);
    CHECK(strcmp(fields->message, bytes) == 0 && fields->message != bytes);
    CHECK(fields->raw_json && !*fields->raw_json);
    CHECK(!fields->mode && !fields->elicitation_id && !fields->request_id_json && !fields->raw_params_json);
    gb_request_answer(request, 1);
    CHECK(ask_join(&ask) == 1);
    CHECK(strlen(fields->url) == huge_size); /* whoever took it may still read */
    gb_request_release(request);
    gb_agent_close(token);
    free(huge);
}

static void the_limit_holds(void) {
    enum { LIMIT_MS = 300 };
    int64_t best_ms = INT64_MAX;
    gb_token token = opened(LIMIT_MS);
    for (int i = 0; i < 4; i++) {
        asking ask;
        ask_start(&ask, token);
        gb_request *request = given();
        int64_t left = gb_request_remaining_ms(request);
        CHECK(left > 0 && left <= LIMIT_MS);
        CHECK(ask_join(&ask) == 3);
        CHECK(ask.took_ms >= LIMIT_MS && ask.took_ms <= LIMIT_MS + LATE_MS);
        best_ms = ask.took_ms < best_ms ? ask.took_ms : best_ms;
        CHECK(!gb_request_is_open(request) && gb_request_remaining_ms(request) == 0);
        CHECK(!gb_request_answer(request, 1));
        gb_request_release(request);
    }
    CHECK(best_ms <= LIMIT_MS + 50);
    gb_agent_close(token);
    token = opened(INT64_MAX); /* so long that the clock can't tell it */
    asking ask;
    ask_start(&ask, token);
    gb_request *request = given();
    CHECK(gb_request_remaining_ms(request) == -1 && gb_request_answer(request, 2) && ask_join(&ask) == 2);
    gb_request_release(request);
    gb_agent_close(token);
}

static void close_ends_the_wait(void) {
    gb_token token = opened(0), other = opened(0);
    asking ask[3], elsewhere;
    gb_request *request[3];
    for (int i = 0; i < 3; i++) {
        ask_start(&ask[i], token);
        request[i] = given();
    }
    ask_start(&elsewhere, other);
    gb_request *open = given();
    int64_t start = gb_now_ns();
    gb_agent_close(token);
    for (int i = 0; i < 3; i++) {
        CHECK(ask_join(&ask[i]) == 3);
        CHECK(!gb_request_answer(request[i], 1));
        gb_request_release(request[i]);
    }
    CHECK(ms_since(start) <= LATE_MS);
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 3);
    CHECK(gb_request_is_open(open) && gb_request_answer(open, 1) && ask_join(&elsewhere) == 1);
    gb_request_release(open);
    gb_agent_close(other);
    check_nothing_left();
}

/* From inside the hook, that is on the callback's own thread, everything may be done as well. */
static gb_token closing;
static void answers_at_once(gb_request *request) {
    CHECK(gb_request_answer(request, 2));
    gb_request_release(request);
}
static void closes_the_agent(gb_request *request) {
    gb_agent_close(closing);
    CHECK(!gb_request_answer(request, 1));
    gb_request_release(request);
}
static void on_the_callbacks_thread(void) {
    gb_token token = closing = opened(0);
    on_unattended = answers_at_once;
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 2);
    on_unattended = closes_the_agent;
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 3);
    on_unattended = NULL;
    check_nothing_left();
}

static void nobody_to_ask(void) {
    gb_set_hooks(NULL);
    gb_token token = opened(0);
    CHECK(gb_elicitation_trampoline(&sample_request, (void *)(uintptr_t)token) == 3);
    CHECK(gb_elicitation_trampoline(NULL, (void *)(uintptr_t)token) == 3);
    gb_agent_close(token);
    gb_set_hooks(&hooks);
    check_nothing_left();
}

/* ---- races -------------------------------------------------------------------------------------------------- */

static _Atomic(int) winners;
static void *answer_it(void *request) {
    atomic_fetch_add(&winners, gb_request_answer(request, 1));
    return NULL;
}

static void one_winner(void) {
    gb_token token = opened(2);
    for (int i = 0; i < ROUNDS(300); i++) {
        asking ask;
        ask_start(&ask, token);
        gb_request *request = given();
        if (i % 3 == 0) /* into the deadline */
            nanosleep(&(struct timespec){.tv_nsec = 1900000}, NULL);
        atomic_store(&winners, 0);
        pthread_t one = thread_run(answer_it, request), two = thread_run(answer_it, request);
        thread_join(one);
        thread_join(two);
        CHECK(ask_join(&ask) == (atomic_load(&winners) ? 1 : 3));
        CHECK(atomic_load(&winners) <= 1);
        gb_request_release(request);
    }
    gb_agent_close(token);
    check_nothing_left();
}

static void close_against_answer(void) {
    for (int i = 0; i < ROUNDS(500); i++) {
        gb_token token = opened(0);
        asking ask;
        ask_start(&ask, token);
        gb_request *request = i % 2 ? given() : NULL;
        if (request) {
            atomic_store(&winners, 0);
            pthread_t other = thread_run(answer_it, request);
            gb_agent_close(token);
            thread_join(other);
            CHECK(ask_join(&ask) == (atomic_load(&winners) ? 1 : 3));
        } else {
            gb_agent_close(token);
            CHECK(ask_join(&ask) == 3);
            request = atomic_exchange(&unattended, NULL);
        }
        gb_request_release(request);
    }
    check_nothing_left();
}

int main(void) {
    api = fake_api();
    gb_set_hooks(&hooks);
    first_answer_counts();
    odd_answers_are_cancel();
    fields_are_copies();
    the_limit_holds();
    close_ends_the_wait();
    on_the_callbacks_thread();
    nobody_to_ask();
    one_winner();
    close_against_answer();
    return report("queue");
}
