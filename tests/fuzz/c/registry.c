/* Random sequences of what can happen to the registry of agents, against a model that is simple enough to be believed:
 * opening, references, closing, retiring, callbacks and events with live, stale and forged tokens, announcements of
 * inline callbacks, the reaper in any order, generations at their end, memory that runs out, forks.
 *
 * Each byte of the input is a step, the bytes after it are its arguments. The registry and the gate are compiled into
 * this file, so that their state can be put back after each input; chunks are small, so that inputs come to the last
 * slot. The reaper is one of our own: it acts when the input says so, not when a thread comes to it.
 */
#define CHUNK_BITS 8
#define CHUNK_COUNT 2
#include "../../../csrc/gate.c"
#include "../../../csrc/registry.c"

#include "input.h"

#define SLOTS (CHUNK_SLOTS * CHUNK_COUNT)
#define TOKENS 4096
#define HELD 32
#define DEEPEST 3 /* callbacks inside callbacks */
#define MOST_STEPS 4000

typedef struct {
    gb_token token; /* the latest of this slot, 0: none */
    gb_agent_config config;
    uint64_t references;
    bool open;    /* until it is reaped */
    bool live;    /* until it is closed */
    bool retired;
    bool queued;  /* for the reaper */
    bool foreign; /* of a process that forked */
    bool has_handle;
} entry;

static entry model[SLOTS];
static gb_token tokens[TOKENS]; /* all that were given out, or a sample of the latest */
static size_t token_count;
static uint64_t tokens_made;
static struct {
    gb_agent *agent;
    uint32_t slot, epoch;
} held[HELD];
static struct {
    gb_hazard *hazard; /* NULL: a callback's own */
    gb_token token;
} announced[HELD + DEEPEST + 2];
static size_t held_count, announced_count, live_count;
static uint32_t crowd[SLOTS]; /* references that nobody has, to come near the most */
static bool no_memory;
static int depth, steps;
static input in;

/* ---- what stands in for the rest ----------------------------------------------------------------------------- */

void *gb_alloc(size_t size) { return no_memory ? NULL : malloc(size); }

static uint32_t epoch_now(void) { return gb_epoch(); }

void gb_reap_agent(gb_agent *agent) {
    entry *one = &model[agent->slot];
    EXPECT(one->open && !one->live && !one->queued && one->references == 0);
    one->queued = true;
}
void gb_reap_run(gb_call *call) {
    (void)call;
    abort();
}
void gb_reaper_forget(void) {}

/* ---- choosing ------------------------------------------------------------------------------------------------ */

static uint32_t slot_in(gb_token token) { return (uint32_t)token - 1; }

/* The entry that a token names now, NULL when it names none. */
static entry *named(gb_token token) {
    uint32_t slot = slot_in(token);
    return slot < SLOTS && model[slot].token == token && model[slot].open && !model[slot].foreign ? &model[slot] : NULL;
}
static entry *alive(gb_token token) {
    entry *one = named(token);
    return one && one->live ? one : NULL;
}

static gb_token some_token(void) {
    uint8_t how = input_byte(&in);
    if (how >= 250)
        return input_number(&in, 8);
    if (!token_count)
        return how;
    if (how < 200) /* a late one, mostly */
        return tokens[token_count - 1 - how % (token_count < 16 ? token_count : 16)];
    gb_token token = tokens[input_number(&in, 2) % token_count];
    if (how < 230)
        return token;
    return how < 240 ? token + ((uint64_t)(how - 229) << 32) : token ^ UINT64_C(1) << (how - 240);
}

static gb_agent_config some_config(void) {
    uint8_t bits = input_byte(&in);
    return (gb_agent_config){.mode = (gb_answer_mode)(bits % 3),
                             .fixed_action = (int32_t)(bits >> 2 & 7) - 1,
                             .wants_events = bits & 64,
                             .host = &tokens_made + (bits & 128 ? 0 : 1)};
}

/* ---- steps --------------------------------------------------------------------------------------------------- */

static void step(void);

static uint32_t first_free(void) {
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (!model[slot].token)
            return slot;
    return SLOTS;
}

static bool has_recycled(void) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const entry *one = &model[slot];
        if (one->token && !one->open && !one->foreign && generation_of(one->token) != LAST_GENERATION)
            return true;
    }
    return false;
}

static gb_token open_one(void) {
    gb_agent_config config = some_config();
    uint32_t fresh = first_free();
    bool needs_memory = fresh < SLOTS && !atomic_load(&hot_chunks[fresh >> CHUNK_BITS]);
    bool can = has_recycled() || (fresh < SLOTS && !(needs_memory && no_memory));
    gb_token token = gb_agent_open(NULL, &config);
    EXPECT((token != 0) == can);
    if (!token)
        return 0;
    entry *one = &model[slot_in(token)];
    EXPECT(slot_in(token) < SLOTS && !one->open && !one->foreign);
    EXPECT(one->token == 0 || generation_of(token) > generation_of(one->token)); /* no token ever comes back */
    *one = (entry){.token = token, .config = config, .references = 1, .open = true, .live = true};
    tokens[token_count < TOKENS ? token_count++ : tokens_made % TOKENS] = token;
    tokens_made++;
    live_count++;
    return token;
}

static void open_many(void) {
    for (int left = input_byte(&in); left; left--)
        open_one();
}

static void acquire(void) {
    gb_token token = some_token();
    entry *one = alive(token);
    gb_agent *agent = gb_agent_acquire(token);
    EXPECT((agent != NULL) == (one && one->references < GB_STATE_REFERENCES));
    if (!agent)
        return;
    one->references++;
    EXPECT(gb_agent_host(agent) == one->config.host && agent->slot == slot_in(token));
    if (held_count == HELD) {
        one->references--;
        gb_agent_release(agent);
        return;
    }
    held[held_count].agent = agent;
    held[held_count].slot = agent->slot;
    held[held_count++].epoch = epoch_now();
}

static void release(size_t which) {
    gb_agent *agent = held[which].agent;
    entry *one = &model[held[which].slot];
    bool ours = held[which].epoch == epoch_now();
    held[which] = held[--held_count];
    if (ours)
        one->references--;
    gb_agent_release(agent);
    EXPECT(!ours || one->queued == (one->references == 0));
}

static void close_one(gb_token token) {
    entry *one = alive(token);
    if (one) {
        one->live = false;
        one->references--;
    }
    gb_agent_close(token);
    EXPECT(!one || one->queued == (one->references == 0));
}

static void change(size_t which, uint8_t how) {
    gb_agent *agent = held[which].agent;
    entry *one = &model[held[which].slot];
    bool ours = held[which].epoch == epoch_now();
    if (ours && how % 3 == 0) {
        gb_enter_lock();
        gb_agent_retire(agent);
        gb_leave_lock();
        one->retired = true;
    } else if (ours && how % 3 == 1) {
        agent->handle = agent->handle ? NULL : (gopher_orch_agent_t)&model;
        one->has_handle = agent->handle != NULL;
    }
    EXPECT(gb_agent_can_run(agent) == (ours && one->has_handle && one->live && !one->retired));
}

static void crowd_in(gb_token token) {
    entry *one = alive(token);
    uint64_t most = one ? GB_STATE_REFERENCES - one->references : 0, more = most - input_byte(&in) % 4;
    if (!one || more > most)
        return;
    atomic_fetch_add(&find(token)->state, more);
    one->references += more;
    crowd[slot_in(token)] += (uint32_t)more;
}

static void crowd_out(uint32_t slot) {
    entry *one = &model[slot];
    uint32_t less = crowd[slot];
    crowd[slot] = 0;
    if (!less || one->foreign)
        return;
    one->references -= less - 1;
    atomic_fetch_sub(&find(one->token)->state, less - 1);
    one->references--;
    gb_slot_release(find(one->token), one->token); /* the last one as anybody gives it back */
    EXPECT(one->queued == (one->references == 0));
}

static bool is_announced(gb_token token) {
    for (size_t i = 0; i < announced_count; i++)
        if (announced[i].token == token)
            return true;
    return false;
}

static void reap(uint8_t which) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        entry *one = &model[slot];
        if (!one->queued || one->foreign || which-- > 0)
            continue;
        gb_agent *agent = cold(slot);
        bool busy = gb_inline_busy(agent);
        EXPECT(busy == is_announced(one->token));
        if (busy)
            return;
        EXPECT(gb_agent_host(agent) == one->config.host);
        gb_enter_lock();
        gb_agent_recycle(agent);
        gb_leave_lock();
        one->open = one->queued = false;
        live_count--;
        return;
    }
}

static void age(void) {
    gb_agent *agent = free_agents; /* the next to be opened */
    uint64_t generation = UINT32_MAX - (uint64_t)input_byte(&in) % 3;
    if (agent && generation > generation_of(atomic_load(&agent->hot->state)))
        atomic_store(&agent->hot->state, generation << 32);
}

/* Does a slot's bit say that an inline callback may come in? */
static bool bit_is_set(gb_token token) {
    uint32_t slot = slot_in(token);
    entry *one = slot < SLOTS ? &model[slot] : NULL;
    return one && one->live && !one->foreign && !one->retired && one->config.mode == GB_ANSWER_INLINE;
}

static void check_host(gb_token token) {
    entry *one = alive(token);
    bool right = one && !one->retired && one->config.mode == GB_ANSWER_INLINE;
    EXPECT(gb_inline_host(token) == (right ? one->config.host : NULL));
}

static void announce_one(gb_token token) {
    gb_hazard *hazard = gb_inline_begin(token);
    EXPECT(!hazard || bit_is_set(token));
    EXPECT(hazard || !bit_is_set(token) || announced_count >= HAZARD_TRIES);
    check_host(token);
    if (hazard && announced_count < HELD) {
        announced[announced_count].hazard = hazard;
        announced[announced_count++].token = token;
    } else if (hazard) {
        gb_inline_end(hazard);
    }
}

static void end_announcement(size_t which) {
    gb_inline_end(announced[which].hazard);
    announced[which] = announced[--announced_count];
}

/* In the child of a fork: the parent's agents are there and are nobody's. */
static void fork_here(void) {
    in_child();
    announced_count = 0;
    live_count = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (model[slot].token) {
            model[slot].foreign = true;
            model[slot].queued = false;
            crowd[slot] = 0;
        }
}

/* ---- callbacks ----------------------------------------------------------------------------------------------- */

static const gopher_orch_elicitation_request_t request = {
    .mode = "url", .message = "Sign in", .url = "https://provider.example/", .raw_json = "", .request_id_json = "1"};
static int32_t said; /* by the hook that was called last */
static int hook_calls, forbidden_forks;

static void inside(void) {
    depth++;
    for (int left = input_byte(&in) % 4; left && depth <= DEEPEST; left--)
        step();
    depth--;
}

/* What a callback holds while it is in the hook: a reference, as the state says, or else an announcement. */
static entry *enter_hook(gb_token token) {
    entry *one = named(token);
    uint64_t state = atomic_load(&find(token)->state);
    if (one && (state & GB_STATE_REFERENCES) == one->references + 1) {
        one->references++;
        return one;
    }
    EXPECT(!one || (state & GB_STATE_REFERENCES) == one->references);
    announced[announced_count].hazard = NULL;
    announced[announced_count++].token = token;
    return NULL;
}

static void leave_hook(gb_token token, entry *referred) {
    if (referred) {
        referred->references--; /* the release comes next, with nothing in between */
        return;
    }
    for (size_t i = 0; i < announced_count; i++)
        if (!announced[i].hazard && announced[i].token == token) {
            announced[i] = announced[--announced_count];
            return;
        }
    EXPECT(false);
}

/* The agent stays while its callback is in here, whatever happens. */
static int32_t answer_inline(gb_token token, const gopher_orch_elicitation_request_t *asked) {
    EXPECT(asked == &request && gb_gate_is_open());
    uint32_t epoch = epoch_now();
    entry *one = named(token), *referred = enter_hook(token);
    bool there = alive(token) != NULL;
    check_host(token);
    int32_t action = gb_inline_host(token) ? (int32_t)input_byte(&in) - 2 : GOPHER_ORCH_ELICITATION_CANCEL;
    inside();
    if (epoch == epoch_now()) {
        EXPECT(!there || named(token) == one);
        check_host(token);
        leave_hook(token, referred);
    }
    hook_calls++;
    return said = action;
}

static bool answered;
static void unattended(void *host, gb_request *asked) {
    EXPECT(gb_gate_is_open() && gb_request_is_open(asked) && strcmp(gb_request_fields(asked)->url, request.url) == 0);
    EXPECT(!gb_request_fields(asked)->elicitation_id && gb_request_remaining_ms(asked) != 0);
    gb_token token = 0;
    for (uint32_t slot = 0; slot < SLOTS && !token; slot++)
        if (asked->agent == cold(slot))
            token = model[slot].token;
    entry *one = enter_hook(token);
    EXPECT(one && one->config.host == host);
    forbidden_forks++;
    int32_t action = (int32_t)input_byte(&in) - 2;
    inside();
    forbidden_forks--;
    bool open = gb_request_is_open(asked);
    EXPECT(!open || one->live);
    answered = gb_request_answer(asked, action);
    EXPECT(answered == open && !gb_request_answer(asked, GOPHER_ORCH_ELICITATION_ACCEPT));
    gb_request_release(asked);
    leave_hook(token, one);
    hook_calls++;
    said = answered ? action : GOPHER_ORCH_ELICITATION_CANCEL;
}

static void event(void *host, const gopher_orch_event_t *told) {
    gb_token token = 0;
    for (uint32_t slot = 0; slot < SLOTS && !token; slot++)
        if (told->json == (const char *)&model[slot])
            token = model[slot].token;
    uint32_t epoch = epoch_now();
    entry *one = enter_hook(token);
    EXPECT(one && one->config.host == host && gb_gate_is_open());
    inside();
    if (epoch == epoch_now())
        leave_hook(token, one);
    hook_calls++;
}

static bool is_counted(const entry *one) { return one && one->references < GB_STATE_REFERENCES; }

static void callback(gb_token token, const gopher_orch_elicitation_request_t *asked) {
    entry *one = alive(token);
    entry before = one ? *one : (entry){0};
    bool counted = is_counted(one), announces = bit_is_set(token), crowded = announced_count >= HAZARD_TRIES;
    bool open = gb_gate_is_open(), memory = !no_memory;
    int calls = hook_calls;
    int32_t action = gb_elicitation_trampoline(asked, (void *)(uintptr_t)token);
    bool called = hook_calls != calls;
    int32_t expected = called ? gb_valid_action(said) : GOPHER_ORCH_ELICITATION_CANCEL;
    if (called)
        EXPECT(asked && open && (announces || (counted && !before.retired && before.config.mode != GB_ANSWER_FIXED)));
    else if (counted && !before.retired && before.config.mode == GB_ANSWER_FIXED)
        expected = gb_valid_action(before.config.fixed_action);
    else if (asked && open && counted && !before.retired && (memory || before.config.mode == GB_ANSWER_INLINE))
        EXPECT(false); /* the hook was not called */
    else
        EXPECT(!(asked && open && announces) || crowded);
    EXPECT(action == expected);
}

static void tell(gb_token token) {
    entry *one = alive(token);
    bool completed = input_byte(&in) % 4 == 0, open = gb_gate_is_open();
    gopher_orch_event_t told = {.version = 1,
                                .kind = completed ? GOPHER_ORCH_EVENT_RUN_COMPLETED : GOPHER_ORCH_EVENT_LLM_REQUEST,
                                .json = one ? (const char *)one : NULL};
    bool wanted = is_counted(one) && one->config.wants_events && !one->retired && !completed && open;
    int calls = hook_calls;
    gb_event_trampoline(&told, (void *)(uintptr_t)token);
    EXPECT((hook_calls != calls) == wanted);
    gb_event_trampoline(NULL, (void *)(uintptr_t)token);
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

static void step(void) {
    if (!input_has(&in) || ++steps > MOST_STEPS)
        return;
    switch (input_byte(&in) % 20) {
    case 0: case 1: open_one(); break;
    case 2: acquire(); break;
    case 3: if (held_count) release(input_byte(&in) % held_count); break;
    case 4: close_one(some_token()); break;
    case 5: case 6: case 7: callback(some_token(), &request); break;
    case 8: callback(some_token(), NULL); break;
    case 9: tell(some_token()); break;
    case 10: if (held_count) change(input_byte(&in) % held_count, input_byte(&in)); break;
    case 11: announce_one(some_token()); break;
    case 12: {
        size_t which = announced_count ? input_byte(&in) % announced_count : 0;
        if (announced_count && announced[which].hazard) /* the others are the trampoline's to end */
            end_announcement(which);
        break;
    }
    case 13: case 14: reap(input_byte(&in) % 8); break;
    case 15: age(); break;
    case 16: crowd_in(some_token()); break;
    case 17: crowd_out(slot_in(some_token()) % SLOTS); break;
    case 18: no_memory = !no_memory; break;
    case 19: switch (input_byte(&in) % 16) {
        case 0: gb_gate_close(); break;
        case 1: if (!forbidden_forks) fork_here(); break;
        case 2: open_many(); break;
        default: check_host(some_token());
        }
    }
}

/* Everything is given back, and nothing is left. */
static void finish(void) {
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        crowd_out(slot);
    while (announced_count)
        end_announcement(0);
    while (held_count)
        release(0);
    for (uint32_t slot = 0; slot < SLOTS && model[slot].token; slot++)
        close_one(model[slot].token);
    for (size_t left = live_count; left; left--)
        reap(0);
    gb_counts counts;
    gb_get_counts(&counts);
    EXPECT(live_count == 0 && counts.live_agents == 0 && counts.live_requests == 0 && counts.live_calls == 0);
    EXPECT(gb_gate_drain(0));
    for (int i = 0; i < HAZARD_COUNT; i++)
        EXPECT(atomic_load(&hazards[i].token) == 0);
}

/* As if the process had just begun. */
static void reset(void) {
    for (int i = 0; i < CHUNK_COUNT; i++) {
        if (!atomic_load(&hot_chunks[i]))
            continue;
        gb_pages_free(atomic_exchange(&hot_chunks[i], NULL), sizeof(gb_slot) * CHUNK_SLOTS);
        gb_pages_free(atomic_exchange(&cold_chunks[i], NULL), sizeof(gb_agent) * CHUNK_SLOTS);
        free(atomic_exchange(&inline_chunks[i], NULL));
    }
    atomic_store(&first_slot, 0);
    next_slot = 0;
    free_agents = NULL;
    atomic_store(&gate, 0);
    memset(model, 0, sizeof model);
    memset(crowd, 0, sizeof crowd);
    token_count = 0;
    steps = depth = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const gb_hooks hooks = {.inline_answer = answer_inline, .event = event, .unattended = unattended};
    no_memory = false;
    if (!atomic_load(&gb_hooks_now))
        gb_set_hooks(&hooks);
    in = (input){data, data + size};
    while (input_has(&in) && steps < MOST_STEPS) {
        step();
        EXPECT(gb_count.live_agents == live_count);
    }
    no_memory = false;
    finish();
    reset();
    return 0;
}
