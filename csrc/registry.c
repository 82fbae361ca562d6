/* Token -> agent, lock-free.
 *
 * Slots lie in chunks that are never freed, so a look-up may read any slot at any time; whether it is the right one is
 * decided by the generation in the slot's state word, in the same step that takes the reference. A slot whose generation
 * is used up is left aside for good: no token ever comes back.
 */
#include "internal.h"

#define CHUNK_BITS 17
#define CHUNK_SLOTS (UINT32_C(1) << CHUNK_BITS) /* 2 MB of hot halves: one huge page */
#define CHUNK_COUNT 1024
#define SLOT_LIMIT (CHUNK_SLOTS * CHUNK_COUNT)
/* A small process never pays for a huge page: the first chunk becomes one when this many slots are in use. */
#define FIRST_HUGE_AT 4096
#define LAST_GENERATION UINT32_MAX

_Static_assert(sizeof(gb_slot) == 16, "four slots a cache line");
_Static_assert(sizeof(struct gb_agent) == 64, "one cache line");

static _Atomic(gb_slot *) hot_chunks[CHUNK_COUNT];
static _Atomic(gb_agent *) cold_chunks[CHUNK_COUNT];

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
    gb_slot *hot = gb_pages_alloc(hot_size);
    gb_agent *agents = hot ? gb_pages_alloc(cold_size) : NULL;
    if (!agents) {
        if (hot)
            gb_pages_free(hot, hot_size);
        return false;
    }
    if (chunk > 0)
        gb_pages_huge(hot, hot_size);
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
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &state, state & ~GB_STATE_LIVE, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return true;
}

void gb_agent_close(gb_token token) {
    gb_slot *slot = find(token);
    if (!slot || !take_life(slot, token))
        return;
    gb_agent *agent = cold(slot_of(token)); /* the owner's reference, now ours, keeps it */
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

bool gb_agent_has_handle(gb_agent *agent) {
    if (!agent || agent->epoch != gb_epoch_load())
        return false;
    gb_enter_lock();
    bool has = agent->handle != NULL;
    gb_leave_lock();
    return has;
}

void gb_agent_retire(gb_agent *agent) {
    agent->retired = true;
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
    atomic_store(&first_slot, next_slot);
    free_agents = NULL;
}
