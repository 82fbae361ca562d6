/* The C ABI of libgopher-orch, as this project relies on it.
 *
 * The vendor publishes no header. This one is this project's own account of the exported functions and of the memory
 * layouts that they take and give, found by experiment with 0.1.39 and checked against every published version
 * (tests/test_native_versions.py). Nothing here is ever linked against: every function is looked up at run time.
 *
 * All strings are NUL-terminated UTF-8. Unless it is said otherwise a string or struct that is passed in stays the
 * caller's, is read during the call only and may be NULL where "optional" stands; one that is passed to a callback stays
 * the library's and is valid during that callback only.
 */
#ifndef GOPHER_ORCH_GOPHER_ORCH_H
#define GOPHER_ORCH_GOPHER_ORCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An agent. Opaque, reference counted; a garbage or dead handle gives error -1, never a crash, except where a function
 * says otherwise. */
typedef void *gopher_orch_agent_t;

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* What went wrong in the last failing call of this thread. 40 bytes. Owned by the library, thread-local, valid until the
 * thread's next call; never freed by the caller. Since 0.1.1. */
typedef struct {
    int32_t code;        /* @0   GOPHER_ORCH_ERROR_* */
    const char *message; /* @8   may be NULL */
    const char *details; /* @16  may be NULL */
    const char *file;    /* @24  the library's source file, may be NULL */
    int32_t line;        /* @32 */
} gopher_orch_error_info_t;

#define GOPHER_ORCH_ERROR_INVALID_HANDLE (-1)    /* a handle that is not (or no longer) an agent */
#define GOPHER_ORCH_ERROR_INVALID_ARGUMENT (-2)  /* unknown provider, missing model key, bad event kind */
#define GOPHER_ORCH_ERROR_NULL_ARGUMENT (-3)     /* a required pointer was NULL */
#define GOPHER_ORCH_ERROR_CONNECTION (-20)       /* server not reached, or it answered 401 or 403 */
#define GOPHER_ORCH_ERROR_TIMEOUT (-22)          /* create took too long */

/* ---- Elicitation -------------------------------------------------------------------------------------------- */

/* The only values that an elicitation callback may return; any other makes the library answer the server with
 * JSON-RPC -32000. Since 0.1.35. */
#define GOPHER_ORCH_ELICITATION_ACCEPT 1
#define GOPHER_ORCH_ELICITATION_DECLINE 2
#define GOPHER_ORCH_ELICITATION_CANCEL 3

/* What a server asks of its user. 56 bytes, seven pointers, each may be NULL; UTF-8 is not guaranteed. Owned by the
 * library, valid during the callback only. Since 0.1.35. */
typedef struct {
    const char *request_id_json; /* @0   the JSON-RPC id as JSON; "null" when it stems from error -32042 */
    const char *elicitation_id;  /* @8   */
    const char *mode;            /* @16  "url" (no other mode reaches the callback with 0.1.39) */
    const char *message;         /* @24  "" when the server sent none */
    const char *url;             /* @32  any scheme; not checked by the library */
    const char *raw_json;        /* @40  the whole request, or the -32042 error object */
    const char *raw_params_json; /* @48  its params */
} gopher_orch_elicitation_request_t;

/* Answers an elicitation: one of GOPHER_ORCH_ELICITATION_*. Called on the thread inside agent_run() or on a thread of the
 * library's own (GET stream; also before the create call has returned); two calls for one agent may overlap. The library
 * waits for the answer, but gives the tool call up after 120 s whatever elicitation_timeout_ms says. */
typedef int32_t (*gopher_orch_elicitation_callback_t)(const gopher_orch_elicitation_request_t *request, void *user_data);

/* ---- Options ------------------------------------------------------------------------------------------------ */

/* One HTTP header. 16 bytes. CR and LF are not refused by the library: the caller must. Since 0.1.30. */
typedef struct {
    const char *name;  /* @0 */
    const char *value; /* @8 */
} gopher_orch_header_t;

/* Token and headers for one server of a configuration; matched by id, then name, then url. 48 bytes. Since 0.1.30. */
typedef struct {
    const char *server_id;               /* @0   optional */
    const char *server_name;             /* @8   optional: "name" of the JSON configuration */
    const char *url;                     /* @16  optional */
    const char *access_token;            /* @24  optional: sent as "Authorization: Bearer <token>" */
    const gopher_orch_header_t *headers; /* @32  optional */
    size_t header_count;                 /* @40 */
} gopher_orch_server_options_t;

/* Options of the *_with_options factories. 64 bytes. Copied during create, except elicitation_user_data, which is handed
 * back as it is until the agent's last callback has returned. The three elicitation fields since 0.1.35; an older
 * library reads 40 bytes. */
typedef struct {
    const char *access_token;                                /* @0   optional; an Authorization header wins over it */
    const gopher_orch_header_t *headers;                     /* @8   optional */
    size_t header_count;                                     /* @16 */
    const gopher_orch_server_options_t *server_options;      /* @24  optional */
    size_t server_option_count;                              /* @32 */
    gopher_orch_elicitation_callback_t elicitation_callback; /* @40  NULL: no capability is declared */
    void *elicitation_user_data;                             /* @48  passed back untouched; a token, not a pointer */
    uint64_t elicitation_timeout_ms;                         /* @56  milliseconds; 0 means 300,000; never enforced */
} gopher_orch_agent_options_t;

/* ---- Run events --------------------------------------------------------------------------------------------- */

#define GOPHER_ORCH_EVENT_RUN_COMPLETED 1   /* JSON: "status", and "error" when it failed */
#define GOPHER_ORCH_EVENT_LLM_REQUEST 2
#define GOPHER_ORCH_EVENT_LLM_RESPONSE 3
#define GOPHER_ORCH_EVENT_TOOL_DISPATCHED 4
#define GOPHER_ORCH_EVENT_TOOL_RESULT 5     /* on a worker thread when no elicitation callback is set */
#define GOPHER_ORCH_EVENT_ITERATION_START 6
#define GOPHER_ORCH_EVENT_ITERATION_END 7

/* One event of a run. 56 bytes. Owned by the library, valid during the callback only. Since 0.1.34. */
typedef struct {
    int32_t version;        /* @0   1 */
    int32_t kind;           /* @4   GOPHER_ORCH_EVENT_* */
    uint64_t run_id;        /* @8 */
    uint64_t iteration;     /* @16  counts from 1 within a run */
    const char *reserved;   /* @24  always NULL so far */
    const char *json;       /* @32  payload, json_length bytes; may be NULL */
    size_t json_length;     /* @40 */
    uint64_t timestamp_ns;  /* @48  nanoseconds of a monotonic clock */
} gopher_orch_event_t;

typedef void (*gopher_orch_event_callback_t)(const gopher_orch_event_t *event, void *user_data);

/* ---- Functions ---------------------------------------------------------------------------------------------- */
/* Each name here stands once more in csrc/api_table.h, with its since-version; tests/test_abi_table.py compares them.
 * Prototypes are function types, since nothing is linked. */

/* Create: NULL on failure, then last_error() of the same thread tells why. May call the elicitation callback before it
 * returns. The model's key is read from the environment by the _by_json and _by_url factories. */
typedef gopher_orch_agent_t gopher_orch_create_fn(const char *provider, const char *model, const char *target);
typedef gopher_orch_agent_t gopher_orch_create_with_options_fn(const char *provider, const char *model,
                                                               const char *target,
                                                               const gopher_orch_agent_options_t *options);
typedef gopher_orch_agent_t gopher_orch_create_routed_fn(const char *provider, const char *model, const char *api_key,
                                                         const char *route);
typedef gopher_orch_agent_t gopher_orch_create_routed_with_options_fn(const char *provider, const char *model,
                                                                      const char *api_key, const char *route,
                                                                      const gopher_orch_agent_options_t *options);

/* Runs a query. Returns a string of the caller's (gopher_orch_free) or NULL. timeout_ms is not read by the library; a
 * failure is an ordinary string "Error: ...", told from an answer only by the run_completed event. One run per agent. */
typedef char *gopher_orch_agent_run_fn(gopher_orch_agent_t agent, const char *query, int64_t timeout_ms);

/* References. A release that drops the last one frees the agent; a run in progress holds none of its own. */
typedef void gopher_orch_agent_add_ref_fn(gopher_orch_agent_t agent);
typedef void gopher_orch_agent_release_fn(gopher_orch_agent_t agent);

/* Sets the callback of one event kind, or of all; NULL clears it. 0, or -1 bad handle, -2 bad kind. */
typedef int32_t gopher_orch_agent_set_event_callback_fn(gopher_orch_agent_t agent, int32_t kind,
                                                        gopher_orch_event_callback_t callback, void *user_data);
typedef int32_t gopher_orch_agent_set_event_callback_all_fn(gopher_orch_agent_t agent,
                                                            gopher_orch_event_callback_t callback, void *user_data);

/* The servers of an API key as JSON; the caller's string (gopher_orch_free), or NULL. */
typedef char *gopher_orch_api_fetch_servers_fn(const char *api_key);

typedef const gopher_orch_error_info_t *gopher_orch_last_error_fn(void);
typedef void gopher_orch_clear_error_fn(void);
typedef void gopher_orch_free_fn(void *pointer);

/* Process-wide, 0 (everything) to 8 (silent), clamped; 4 is errors only. At debug levels queries, tool arguments and
 * results are printed to stderr as they are. */
typedef void gopher_orch_set_log_level_fn(int32_t level);

/* Non-zero when agent options take an elicitation callback. Named by the vendor's documents, exported by no published
 * version up to 0.1.39. */
typedef int32_t gopher_orch_agent_options_supports_elicitation_fn(void);

#ifdef __cplusplus
}
#endif
#endif
