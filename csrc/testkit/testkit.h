/* A library with the vendor's ABI whose behaviour is scripted: for tests, fuzzing and benchmarks of the bridge. It is a
 * test tool and never an engine; nothing measured with it is reported as the vendor's.
 *
 * Built several times, so that old and new symbol sets can be loaded:
 *   libgopher-testkit-new.so      everything that 0.1.39 exports
 *   libgopher-testkit-headers.so  options without elicitation (40 bytes are read), no events: like 0.1.34
 *   libgopher-testkit-old.so      plain functions only: like 0.1.1
 *
 * The script is the query of a run, or the model of a create when it begins with "script:". Steps are separated by ";":
 *   say TEXT          the result is TEXT
 *   sleep MS          the native call takes its time
 *   elicit [N]        N elicitations (default 1) on this thread, in turn; the result lists the answers: "1 3 2"
 *   foreign [N]       the same on a thread of the library's own, waited for
 *   parallel          one on this thread and one on a foreign thread at once
 *   many T N          T foreign threads with N elicitations each
 *   late MS           a foreign thread elicits MS milliseconds later, and again until the answer is 3; not waited for
 *   big BYTES         an elicitation whose message has that many bytes
 *   odd               an elicitation with NULLs and invalid UTF-8
 *   bench T N         N elicitations on this thread (T=0) or a foreign one (T=1); the result is nanoseconds each
 *   event KIND JSON   an event on this thread
 *   error TEXT        the vendor's way to fail: text "Error: TEXT", run_completed with status "error"
 *   status S E        run_completed with that status and error, the text unchanged (E to the end of the step)
 *   null CODE TEXT    no result; last_error tells
 *   quiet             no run_completed event
 *   block             until testkit_unblock() is called
 */
#ifndef GOPHER_TESTKIT_H
#define GOPHER_TESTKIT_H

#include <stdint.h>

#include "gopher_orch/gopher_orch.h"

#if defined(_WIN32)
#define TESTKIT_API __declspec(dllexport)
#else
#define TESTKIT_API __attribute__((visibility("default")))
#endif

typedef struct {
    int64_t agents;        /* made and not freed */
    int64_t runs;          /* in progress */
    int64_t threads;       /* of the library's own, alive */
    int64_t callbacks;     /* in progress */
    int64_t strings;       /* given out and not freed */
    int64_t misuses;       /* freed during a run, double release, dead handle: 0 unless the bridge is wrong */
    int64_t last_answer_ns;/* CLOCK_MONOTONIC when the last callback returned */
} testkit_counts_t;

TESTKIT_API void testkit_counts(testkit_counts_t *counts);
TESTKIT_API void testkit_unblock(void);
/* What the last create was given, as lines "name=value"; belongs to the library until the next create. */
TESTKIT_API const char *testkit_seen(void);

#endif
