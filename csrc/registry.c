/* Token -> agent, lock-free.
 *
 * Two ways to hold an agent. A reference is counted in the slot's state word. An inline callback, whose whole life is some
 * 300 ns, does not even wait for that word to come from memory: it announces its token in a record of its thread's own
 * (a hazard), starts to fetch the slot, and looks at it when the host is entered and the request decoded. Until then a bit
 * a slot, 125 KB for a million agents and so always near, turns away what is closed. The reaper leaves an agent alone as
 * long as its token is announced.
 *
 * Slots lie in chunks that are never freed, so a look-up may read any slot at any time; whether it is the right one is
 * decided by the generation in the slot's state word, in the same step that takes the reference. A slot whose generation
 * is used up is left aside for good: no token ever comes back.
 */
#include "internal.h"

#ifndef CHUNK_BITS /* fuzzing has fewer and smaller ones, so that it comes to their ends */
#define CHUNK_BITS 17
#define CHUNK_COUNT 1024
#endif
#define CHUNK_SLOTS (UINT32_C(1) << CHUNK_BITS) /* 2 MB of hot halves: one huge page */
#define SLOT_LIMIT (CHUNK_SLOTS * CHUNK_COUNT)
/* A small process never pays for a huge page: the first chunk becomes one when this many slots are in use. */
#define FIRST_HUGE_AT 4096
#define LAST_GENERATION UINT32_MAX

_Static_assert(sizeof(gb_slot) == 16, "four slots a cache line");
_Static_assert(sizeof(struct gb_agent) == 64, "one cache line");

static _Atomic(gb_slot *) hot_chunks[CHUNK_COUNT];
static _Atomic(gb_agent *) cold_chunks[CHUNK_COUNT];

/* One bit a slot: it may be answered inline (live, mode inline, not retired). */
typedef _Atomic(uint64_t) inline_word;
static _Atomic(inline_word *) inline_chunks[CHUNK_COUNT];

/* Tokens of the inline callbacks in progress, each in a cache line of its own; 0 is free. When all are taken the counted
 * reference does it. */
#define HAZARD_COUNT 64
#define HAZARD_TRIES 4
static struct {
    _Alignas(64) gb_hazard token;
} hazards[HAZARD_COUNT];

/* Slots below it belong to a process that forked this one. */
static _Atomic(uint32_t) first_slot;
/* Under gb_lock. */
static uint32_t next_slot;
static gb_agent *free_agents;

static inline uint32_t slot_of(gb_token token) { return (uint32_t)token - 1; }
static inline uint32_t generation_of(uint64_t state_or_token) { return (uint32_t)(state_or_token >> 32); }

static inline gb_slot *find(gb_token token) {
    uint32_t slot = slot_of(token);
    if (slot >= SLOT_LIMIT || slot < atomic_load_explicit(&first_slot, memory_order_relaxed))
        return NULL;
    gb_slot *chunk = atomic_load_explicit(&hot_chunks[slot >> CHUNK_BITS], memory_order_acquire);
    return chunk ? &chunk[slot & (CHUNK_SLOTS - 1)] : NULL;
}

static inline gb_agent *cold(uint32_t slot) {
    return &atomic_load_explicit(&cold_chunks[slot >> CHUNK_BITS], memory_order_acquire)[slot & (CHUNK_SLOTS - 1)];
}

static inline inline_word *inline_bit(uint32_t slot, uint64_t *bit) {
    inline_word *chunk = atomic_load_explicit(&inline_chunks[slot >> CHUNK_BITS], memory_order_acquire);
    *bit = UINT64_C(1) << (slot & 63);
    return chunk ? &chunk[(slot & (CHUNK_SLOTS - 1)) >> 6] : NULL;
}

/* ---- inline callbacks --------------------------------------------------------------------------------------- */

/* Threads start looking at different records: their stacks lie in different pages. */
static gb_hazard *announce(gb_token token) {
    uint64_t here = (uint64_t)(uintptr_t)&here >> 12;
    uint32_t at = (uint32_t)(here * UINT64_C(0x9E3779B97F4A7C15) >> 58);
    for (uint32_t i = 0; i < HAZARD_TRIES; i++) {
        gb_hazard *hazard = &hazards[(at + i) % HAZARD_COUNT].token;
        gb_token expected = 0;
        if (atomic_compare_exchange_strong_explicit(hazard, &expected, token, memory_order_seq_cst, memory_order_relaxed))
            return hazard;
    }
    return NULL;
}

gb_hazard *gb_inline_begin(gb_token token) {
    uint32_t slot = slot_of(token);
    uint64_t bit;
    if (slot >= SLOT_LIMIT || slot < atomic_load_explicit(&first_slot, memory_order_relaxed))
        return NULL;
    inline_word *word = inline_bit(slot, &bit);
    if (!word)
        return NULL;
    GB_PREFETCH(find(token));
    return atomic_load_explicit(word, memory_order_relaxed) & bit ? announce(token) : NULL;
}

void gb_inline_end(gb_hazard *hazard) { atomic_store_explicit(hazard, 0, memory_order_release); }

/* Sequentially consistent against the close: either this sees the life gone, or the reaper sees the hazard. */
void *gb_inline_host(gb_token token) {
    gb_slot *slot = find(token);
    uint64_t state = slot ? atomic_load_explicit(&slot->state, memory_order_seq_cst) : 0;
    bool right = generation_of(state) == generation_of(token) && (state & GB_STATE_LIVE) &&
                 !(state & GB_STATE_RETIRED) && GB_STATE_MODE(state) == GB_ANSWER_INLINE;
    return right ? slot->host : NULL;
}

bool gb_inline_busy(const gb_agent *agent) {
    uint64_t state = atomic_load_explicit(&agent->hot->state, memory_order_relaxed);
    gb_token token = (uint64_t)generation_of(state) << 32 | (agent->slot + UINT64_C(1));
    for (uint32_t i = 0; i < HAZARD_COUNT; i++)
        if (atomic_load_explicit(&hazards[i].token, memory_order_seq_cst) == token)
            return true;
    return false;
}

static void set_inline(const gb_agent *agent, bool on) {
    uint64_t bit;
    inline_word *word = inline_bit(agent->slot, &bit);
    if (on)
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

/* ---- look-up ------------------------------------------------------------------------------------------------ */

gb_slot *gb_slot_acquire(gb_token token, uint64_t *state_out) {
    gb_slot *slot = find(token);
    if (!slot)
        return NULL;
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    do {
        if (generation_of(state) != generation_of(token) || !(state & GB_STATE_LIVE) ||
            (state & GB_STATE_REFERENCES) == GB_STATE_REFERENCES)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &state, state + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    *state_out = state;
    return slot;
}

gb_agent *gb_slot_agent(gb_token token) { return cold(slot_of(token)); }

/* The owner's reference lasts as long as the live bit, so the count reaches zero once, after the close. */
void gb_slot_release(gb_slot *slot, gb_token token) {
    uint64_t before = atomic_fetch_sub_explicit(&slot->state, 1, memory_order_acq_rel);
    if ((before & GB_STATE_REFERENCES) == 1)
        gb_reap_agent(cold(slot_of(token)));
}

gb_agent *gb_agent_acquire(gb_token token) {
    uint64_t state;
    return gb_slot_acquire(token, &state) ? cold(slot_of(token)) : NULL;
}

void gb_agent_release(gb_agent *agent) {
    if (agent && agent->epoch == gb_epoch_load())
        gb_slot_release(agent->hot, agent->slot + UINT64_C(1));
}

/* ---- open and close ----------------------------------------------------------------------------------------- */

/* Under gb_lock. The memory of a chunk comes before the first slot in it is given out. */
static bool grow(void) {
    uint32_t chunk = next_slot >> CHUNK_BITS;
    if (atomic_load_explicit(&hot_chunks[chunk], memory_order_relaxed))
        return true;
    const size_t hot_size = sizeof(gb_slot) * CHUNK_SLOTS, cold_size = sizeof(gb_agent) * CHUNK_SLOTS;
    inline_word *bits = gb_alloc_zeroed(CHUNK_SLOTS / 8);
    gb_slot *hot = bits ? gb_pages_alloc(hot_size) : NULL;
    gb_agent *agents = hot ? gb_pages_alloc(cold_size) : NULL;
    if (!agents) {
        free(bits);
        if (hot)
            gb_pages_free(hot, hot_size);
        return false;
    }
    if (chunk > 0)
        gb_pages_huge(hot, hot_size);
    atomic_store_explicit(&inline_chunks[chunk], bits, memory_order_release);
    atomic_store_explicit(&cold_chunks[chunk], agents, memory_order_release);
    atomic_store_explicit(&hot_chunks[chunk], hot, memory_order_release);
    return true;
}

/* Under gb_lock. */
static gb_agent *unused(void) {
    gb_agent *agent = free_agents;
    if (agent) {
        free_agents = agent->next;
        return agent;
    }
    if (next_slot >= SLOT_LIMIT || !grow())
        return NULL;
    if (next_slot == FIRST_HUGE_AT)
        gb_pages_huge(atomic_load(&hot_chunks[0]), sizeof(gb_slot) * CHUNK_SLOTS);
    agent = cold(next_slot);
    agent->slot = next_slot;
    agent->hot = find(next_slot + UINT64_C(1));
    atomic_store_explicit(&agent->hot->state, UINT64_C(1) << 32, memory_order_relaxed);
    next_slot++;
    return agent;
}

static uint64_t first_state(uint64_t old, const gb_agent_config *config) {
    return (uint64_t)generation_of(old) << 32 | GB_STATE_LIVE | (uint64_t)config->mode << GB_STATE_MODE_SHIFT |
           (uint64_t)gb_valid_action(config->fixed_action) << GB_STATE_ACTION_SHIFT |
           (config->wants_events ? GB_STATE_EVENTS : 0) | 1;
}

gb_token gb_agent_open(const gb_api *api, const gb_agent_config *config) {
    gb_init();
    gb_enter_lock();
    gb_agent *agent = unused();
    gb_token token = 0;
    if (agent) {
        agent->api = api;
        agent->handle = NULL;
        agent->running = NULL;
        agent->limit_ms = config->limit_ms;
        agent->next = NULL;
        agent->epoch = gb_epoch_load();
        agent->closed = agent->retired = false;
        agent->hot->host = config->host;
        uint64_t state = first_state(atomic_load_explicit(&agent->hot->state, memory_order_relaxed), config);
        atomic_store_explicit(&agent->hot->state, state, memory_order_release);
        set_inline(agent, config->mode == GB_ANSWER_INLINE);
        token = (uint64_t)generation_of(state) << 32 | (agent->slot + UINT64_C(1));
        gb_count.live_agents++;
    }
    gb_leave_lock();
    return token;
}

/* Takes the live bit away; false when it was gone or the token is another's. */
static bool take_life(gb_slot *slot, gb_token token) {
    uint64_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    do {
        if (generation_of(state) != generation_of(token) || !(state & GB_STATE_LIVE))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &state, state & ~GB_STATE_LIVE, memory_order_seq_cst,
                                                    memory_order_relaxed));
    return true;
}

void gb_agent_close(gb_token token) {
    gb_slot *slot = find(token);
    if (!slot || !take_life(slot, token))
        return;
    gb_agent *agent = cold(slot_of(token)); /* the owner's reference, now ours, keeps it */
    set_inline(agent, false);
    gb_enter_lock();
    agent->closed = true;
    gb_queue_cancel(agent);
    if (agent->running)
        gb_calls_closed(agent->running);
    gb_leave_lock();
    gb_slot_release(slot, token);
}

/* ---- the rest ----------------------------------------------------------------------------------------------- */

void *gb_agent_host(gb_agent *agent) { return agent->hot->host; }

bool gb_agent_can_run(gb_agent *agent) {
    if (!agent || agent->epoch != gb_epoch_load())
        return false;
    gb_enter_lock();
    bool can = agent->handle && !agent->closed && !agent->retired;
    gb_leave_lock();
    return can;
}

void gb_agent_retire(gb_agent *agent) {
    agent->retired = true;
    set_inline(agent, false);
    atomic_fetch_or_explicit(&agent->hot->state, GB_STATE_RETIRED, memory_order_relaxed);
}

void gb_agent_recycle(gb_agent *agent) {
    uint32_t generation = generation_of(atomic_load_explicit(&agent->hot->state, memory_order_relaxed));
    agent->hot->host = NULL;
    gb_count.live_agents--;
    if (generation == LAST_GENERATION) /* its state is dead and stays so */
        return;
    atomic_store_explicit(&agent->hot->state, (uint64_t)(generation + 1) << 32, memory_order_relaxed);
    agent->next = free_agents;
    free_agents = agent;
}

/* The child of a fork goes on with fresh slots, so that no inherited token names one of its own. */
void gb_registry_forget(void) {
    for (uint32_t i = 0; i < HAZARD_COUNT; i++)
        atomic_store(&hazards[i].token, 0);
    atomic_store(&first_slot, next_slot);
    free_agents = NULL;
}
