/* May a foreign thread enter the host now, and who is inside? Also the fork handler and what all files share.
 *
 * Asking the host whether it is going away is a race; this flag is the bridge's own. One word holds it and the number of
 * those inside, so "is it open" and "I am in" are one step.
 */
#include "internal.h"

#include <stdio.h>

#define CLOSED (UINT64_C(1) << 63)

gb_mutex gb_lock = GB_MUTEX_INIT;
gb_counts gb_count;
_Atomic(uint64_t) gb_thread_count;
_Atomic(uint32_t) gb_epoch_now;
_Atomic(const gb_hooks *) gb_hooks_now;

static _Atomic(uint64_t) gate; /* CLOSED | number inside */

bool gb_gate_enter(void) {
    if (atomic_load_explicit(&gate, memory_order_relaxed) & CLOSED)
        return false; /* without being counted: callbacks at full rate would keep the drain waiting */
    uint64_t before = atomic_fetch_add_explicit(&gate, 1, memory_order_seq_cst);
    if (GB_LIKELY(!(before & CLOSED)))
        return true;
    gb_gate_leave();
    return false;
}

/* Never below zero: in the child of a fork a thread may leave that entered in the parent. */
void gb_gate_leave(void) {
    uint64_t state = atomic_load_explicit(&gate, memory_order_relaxed);
    while (state & ~CLOSED)
        if (atomic_compare_exchange_weak_explicit(&gate, &state, state - 1, memory_order_release, memory_order_relaxed))
            return;
}

void gb_gate_leave_since(uint32_t epoch) {
    if (GB_LIKELY(epoch == gb_epoch_load()))
        atomic_fetch_sub_explicit(&gate, 1, memory_order_release);
}

bool gb_gate_is_open(void) { return !(atomic_load_explicit(&gate, memory_order_acquire) & CLOSED); }

/* A native call can't be cancelled, so one may still be under way when the process runs its exit handlers. These take down
 * what it stands on (OpenSSL frees its locks), and the process would end with a segmentation fault. So the first of them
 * to run, which is the one registered last, ends the process at once where a thread is left in the library. What exit owes
 * a program has happened by then or happens here: the host's own end is over, streams are flushed, the exit code is kept.
 * Only glibc tells a handler the code. */
#if defined(__GLIBC__)
static void leave_at_once(int status, void *unused) {
    (void)unused;
    if (!atomic_load(&gb_thread_count) && !(atomic_load(&gate) & ~CLOSED))
        return;
    fflush(NULL);
    _exit(status);
}

static void watch_exit(void) { on_exit(leave_at_once, NULL); }
#endif

void gb_gate_close(void) {
#if defined(__GLIBC__)
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_exit);
#endif
    atomic_fetch_or_explicit(&gate, CLOSED, memory_order_seq_cst);
    gb_enter_lock(); /* whoever queues from now on sees the closed gate under this lock */
    gb_queue_cancel(NULL);
    gb_calls_closed(NULL);
    gb_leave_lock();
}

bool gb_gate_drain(int64_t milliseconds) {
    int64_t deadline = gb_after_ms(gb_now_ns(), milliseconds > 0 ? milliseconds : 0);
    while (atomic_load_explicit(&gate, memory_order_acquire) & ~CLOSED) {
        if (gb_now_ns() >= deadline)
            return false;
        gb_sleep_ms(1);
    }
    return true;
}

uint32_t gb_epoch(void) { return gb_epoch_load(); }

/* ---- fork --------------------------------------------------------------------------------------------------- */

#if defined(_WIN32)
void gb_init(void) {}
#else
/* In the child, on its only thread. Another thread may have been anywhere, also half-way through a list: nothing that
 * was under the lock is looked at again. The gate opens for agents of the child's own. */
static void in_child(void) {
    gb_mutex_reset(&gb_lock);
    atomic_fetch_add(&gb_epoch_now, 1);
    atomic_store(&gate, 0);
    atomic_store(&gb_thread_count, 0);
    memset(&gb_count, 0, sizeof gb_count);
    gb_registry_forget();
    gb_queue_forget();
    gb_calls_forget();
    gb_reaper_forget();
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

void gb_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}
#endif

/* ---- hooks and counters ------------------------------------------------------------------------------------- */

const gb_hooks *gb_hooks_get(void) {
    static const gb_hooks none;
    const gb_hooks *hooks = atomic_load_explicit(&gb_hooks_now, memory_order_acquire);
    return hooks ? hooks : &none;
}

void gb_get_counts(gb_counts *counts) {
    gb_enter_lock();
    *counts = gb_count;
    gb_leave_lock();
    counts->threads = atomic_load(&gb_thread_count);
}
