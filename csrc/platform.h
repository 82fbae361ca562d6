/* Threads, locks, a monotonic clock and page allocation: the little that differs between POSIX and Windows.
 *
 * Included before any system header (it sets the feature macro). All times are nanoseconds of a monotonic clock;
 * GB_FOREVER stands for "no deadline". Locks and conditions can be reset without being destroyed, which is what the child
 * of a fork needs when another thread held them.
 */
#ifndef GOPHER_PLATFORM_H
#define GOPHER_PLATFORM_H

#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GB_FOREVER INT64_MAX
#define GB_NS_PER_MS INT64_C(1000000)
#define GB_NS_PER_S INT64_C(1000000000)
/* A native call runs C++ of the vendor's and, at the end of an agent, the host's destructors: give it what a main thread
 * has. Only the part that is touched costs memory. */
#define GB_STACK_BYTES ((size_t)8 * 1024 * 1024)

#if defined(__GNUC__) || defined(__clang__)
#define GB_PREFETCH_WRITE(address) __builtin_prefetch((address), 1)
#define GB_PREFETCH(address) __builtin_prefetch((address), 0)
#define GB_LIKELY(x) __builtin_expect(!!(x), 1)
#else
#define GB_PREFETCH_WRITE(address) ((void)(address))
#define GB_PREFETCH(address) ((void)(address))
#define GB_LIKELY(x) (x)
#endif

typedef void (*gb_thread_body)(void *argument);

#if defined(_WIN32)
/* ---- Windows ------------------------------------------------------------------------------------------------ */
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#include <process.h>

typedef SRWLOCK gb_mutex;
typedef CONDITION_VARIABLE gb_cond;
#define GB_MUTEX_INIT SRWLOCK_INIT

static inline void gb_mutex_reset(gb_mutex *mutex) { InitializeSRWLock(mutex); }
static inline void gb_mutex_lock(gb_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static inline void gb_mutex_unlock(gb_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }

static inline bool gb_cond_init(gb_cond *cond) {
    InitializeConditionVariable(cond);
    return true;
}
static inline void gb_cond_destroy(gb_cond *cond) { (void)cond; }
static inline void gb_cond_broadcast(gb_cond *cond) { WakeAllConditionVariable(cond); }

static inline int64_t gb_now_ns(void) {
    LARGE_INTEGER count, frequency; /* the frequency is fixed at boot */
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    return count.QuadPart / frequency.QuadPart * GB_NS_PER_S +
           count.QuadPart % frequency.QuadPart * GB_NS_PER_S / frequency.QuadPart;
}

/* Returns at the deadline, at a wake-up, or for no reason: the caller looks at its condition and at the clock again. */
static inline void gb_cond_wait_until(gb_cond *cond, gb_mutex *mutex, int64_t deadline_ns) {
    DWORD milliseconds = INFINITE;
    if (deadline_ns != GB_FOREVER) {
        int64_t left = deadline_ns - gb_now_ns();
        if (left <= 0)
            return;
        left = (left + GB_NS_PER_MS - 1) / GB_NS_PER_MS;
        milliseconds = left > 0x7ffffff ? 0x7ffffff : (DWORD)left;
    }
    SleepConditionVariableSRW(cond, mutex, milliseconds, 0);
}

static inline void gb_sleep_ms(unsigned milliseconds) { Sleep(milliseconds); }

typedef struct {
    gb_thread_body body;
    void *argument;
} gb_thread_start_record;

static inline unsigned __stdcall gb_thread_entry(void *pointer) {
    gb_thread_start_record record = *(gb_thread_start_record *)pointer;
    free(pointer);
    record.body(record.argument);
    return 0;
}

/* Starts a thread that nobody joins. */
static inline bool gb_thread_start(gb_thread_body body, void *argument) {
    gb_thread_start_record *record = malloc(sizeof *record);
    if (!record)
        return false;
    record->body = body;
    record->argument = argument;
    uintptr_t handle = _beginthreadex(NULL, (unsigned)GB_STACK_BYTES, gb_thread_entry, record,
                                      STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!handle) {
        free(record);
        return false;
    }
    CloseHandle((HANDLE)handle);
    return true;
}

static inline void *gb_pages_alloc(size_t size) {
    return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
static inline void gb_pages_free(void *pages, size_t size) {
    (void)size;
    VirtualFree(pages, 0, MEM_RELEASE);
}
static inline void gb_pages_huge(void *pages, size_t size) { (void)pages, (void)size; }

#else
/* ---- POSIX -------------------------------------------------------------------------------------------------- */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef pthread_mutex_t gb_mutex;
typedef pthread_cond_t gb_cond;
#define GB_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER

static inline void gb_mutex_reset(gb_mutex *mutex) { pthread_mutex_init(mutex, NULL); }
static inline void gb_mutex_lock(gb_mutex *mutex) { pthread_mutex_lock(mutex); }
static inline void gb_mutex_unlock(gb_mutex *mutex) { pthread_mutex_unlock(mutex); }

static inline bool gb_cond_init(gb_cond *cond) {
#if defined(__APPLE__)
    return pthread_cond_init(cond, NULL) == 0;
#else
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(cond, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return done;
#endif
}
static inline void gb_cond_destroy(gb_cond *cond) { pthread_cond_destroy(cond); }
static inline void gb_cond_broadcast(gb_cond *cond) { pthread_cond_broadcast(cond); }

static inline int64_t gb_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * GB_NS_PER_S + (int64_t)now.tv_nsec;
}

/* Returns at the deadline, at a wake-up, or for no reason: the caller looks at its condition and at the clock again. */
static inline void gb_cond_wait_until(gb_cond *cond, gb_mutex *mutex, int64_t deadline_ns) {
    if (deadline_ns == GB_FOREVER) {
        pthread_cond_wait(cond, mutex);
        return;
    }
#if defined(__APPLE__)
    int64_t left = deadline_ns - gb_now_ns();
    if (left <= 0)
        return;
    struct timespec span = {.tv_sec = (time_t)(left / GB_NS_PER_S), .tv_nsec = (long)(left % GB_NS_PER_S)};
    pthread_cond_timedwait_relative_np(cond, mutex, &span);
#else
    struct timespec moment = {.tv_sec = (time_t)(deadline_ns / GB_NS_PER_S),
                              .tv_nsec = (long)(deadline_ns % GB_NS_PER_S)};
    pthread_cond_timedwait(cond, mutex, &moment);
#endif
}

static inline void gb_sleep_ms(unsigned milliseconds) {
    struct timespec span = {.tv_sec = (time_t)(milliseconds / 1000),
                            .tv_nsec = (long)(milliseconds % 1000) * (long)GB_NS_PER_MS};
    nanosleep(&span, NULL);
}

typedef struct {
    gb_thread_body body;
    void *argument;
} gb_thread_start_record;

static inline void *gb_thread_entry(void *pointer) {
    gb_thread_start_record record = *(gb_thread_start_record *)pointer;
    free(pointer);
    record.body(record.argument);
    return NULL;
}

/* Every signal that is sent to the process goes elsewhere (Ctrl-C belongs to the host's main thread); the ones that a
 * fault raises on this very thread stay open, so that a crash handler of the host's still gets to run. */
static inline void gb_signals_of_threads(sigset_t *set) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

/* Starts a thread that nobody joins, with all signals blocked from its first instruction on. */
static inline bool gb_thread_start(gb_thread_body body, void *argument) {
    gb_thread_start_record *record = malloc(sizeof *record);
    pthread_attr_t attributes;
    if (!record)
        return false;
    record->body = body;
    record->argument = argument;
    if (pthread_attr_init(&attributes) != 0) {
        free(record);
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, GB_STACK_BYTES); /* refused: the system's default will do */
    sigset_t blocked, before;
    gb_signals_of_threads(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_t thread;
    bool started = pthread_create(&thread, &attributes, gb_thread_entry, record) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!started)
        free(record);
    return started;
}

/* Zeroed memory that starts at a multiple of 2 MB, the size of a huge page. */
static inline void *gb_pages_alloc(size_t size) {
    const size_t align = (size_t)2 * 1024 * 1024;
    char *start = mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char *)MAP_FAILED)
        return NULL;
    size_t before = (align - (uintptr_t)start % align) % align;
    if (before)
        munmap(start, before);
    munmap(start + before + size, align - before);
    return start + before;
}
static inline void gb_pages_free(void *pages, size_t size) { munmap(pages, size); }

/* Asks for huge pages: a look-up among a million entries then misses no TLB. A refusal costs only speed. */
static inline void gb_pages_huge(void *pages, size_t size) {
#if defined(MADV_HUGEPAGE)
    madvise(pages, size, MADV_HUGEPAGE);
#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
    madvise(pages, size, MADV_COLLAPSE);
#else
    (void)pages, (void)size;
#endif
}
#endif

/* `from_ns` plus a span in milliseconds, GB_FOREVER when that is past any clock. */
static inline int64_t gb_after_ms(int64_t from_ns, int64_t milliseconds) {
    if (milliseconds >= (GB_FOREVER - from_ns) / GB_NS_PER_MS)
        return GB_FOREVER;
    return from_ns + milliseconds * GB_NS_PER_MS;
}

#endif
