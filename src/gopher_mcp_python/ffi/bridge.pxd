# csrc/bridge.h and the structs of include/gopher_orch/gopher_orch.h, as the module uses them.
# tests/test_source_tree.py compares names and fields with the headers.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef extern from "gopher_orch/gopher_orch.h" nogil:
    ctypedef struct gopher_orch_elicitation_request_t:
        const char *request_id_json
        const char *elicitation_id
        const char *mode
        const char *message
        const char *url
        const char *raw_json
        const char *raw_params_json

    ctypedef int32_t (*gopher_orch_elicitation_callback_t)(
        const gopher_orch_elicitation_request_t *request, void *user_data) noexcept nogil

    ctypedef struct gopher_orch_header_t:
        const char *name
        const char *value

    ctypedef struct gopher_orch_server_options_t:
        const char *server_id
        const char *server_name
        const char *url
        const char *access_token
        const gopher_orch_header_t *headers
        size_t header_count

    ctypedef struct gopher_orch_agent_options_t:
        const char *access_token
        const gopher_orch_header_t *headers
        size_t header_count
        const gopher_orch_server_options_t *server_options
        size_t server_option_count
        gopher_orch_elicitation_callback_t elicitation_callback
        void *elicitation_user_data
        uint64_t elicitation_timeout_ms

    ctypedef struct gopher_orch_event_t:
        int32_t version
        int32_t kind
        uint64_t run_id
        uint64_t iteration
        const char *reserved
        const char *json
        size_t json_length
        uint64_t timestamp_ns

    enum:
        GOPHER_ORCH_ELICITATION_ACCEPT
        GOPHER_ORCH_ELICITATION_DECLINE
        GOPHER_ORCH_ELICITATION_CANCEL


cdef extern from "bridge.h" nogil:
    ctypedef struct gb_api:
        pass
    const gb_api *gb_api_open(const char *path, char *error, size_t size)
    ctypedef struct gb_symbol:
        const char *name
        const char *since
        bint required
    const gb_symbol *gb_api_symbol(size_t index)
    bint gb_api_has(const gb_api *api, const char *name)
    void gb_api_set_log_level(const gb_api *api, int32_t level)
    bint gb_preload(const char *path, bint is_global, char *error, size_t size)

    void gb_gate_close()
    bint gb_gate_drain(int64_t milliseconds)
    bint gb_gate_is_open()
    uint32_t gb_epoch()

    ctypedef struct gb_agent:
        pass
    ctypedef uint64_t gb_token
    ctypedef enum gb_answer_mode:
        GB_ANSWER_FIXED
        GB_ANSWER_INLINE
        GB_ANSWER_HANDED_OVER
    ctypedef struct gb_agent_config:
        gb_answer_mode mode
        int32_t fixed_action
        int64_t limit_ms
        bint wants_events
        void *host
    gb_token gb_agent_open(const gb_api *api, const gb_agent_config *config)
    gb_agent *gb_agent_acquire(gb_token token)
    void gb_agent_release(gb_agent *agent)
    void gb_agent_close(gb_token token)
    bint gb_agent_can_run(gb_agent *agent)
    ctypedef struct gb_counts:
        uint64_t live_agents
        uint64_t live_calls
        uint64_t live_requests
        uint64_t released_handles
        uint64_t dropped_hosts
        uint64_t threads
    void gb_get_counts(gb_counts *counts)

    ctypedef struct gb_request:
        pass
    const gopher_orch_elicitation_request_t *gb_request_fields(const gb_request *request)
    bint gb_request_answer(gb_request *request, int32_t action)
    bint gb_request_is_open(const gb_request *request)
    int64_t gb_request_remaining_ms(const gb_request *request)
    void gb_request_release(gb_request *request)

    ctypedef enum gb_factory:
        GB_BY_JSON
        GB_BY_API_KEY
        GB_BY_URL
        GB_BY_SERVER_ID
        GB_BY_SERVER_NAME
        GB_BY_GATEWAY_ID
        GB_BY_GATEWAY_NAME
    ctypedef struct gb_call:
        pass
    gb_call *gb_call_create(gb_token token, gb_factory factory, const char *provider, const char *model,
                            const char *api_key, const char *target, const gopher_orch_agent_options_t *options,
                            bint elicitation)
    gb_call *gb_call_run(gb_token token, const char *query, int64_t timeout_ms)
    gb_call *gb_call_fetch(const gb_api *api, const char *api_key)
    ctypedef enum gb_wake:
        GB_WAKE_TICK
        GB_WAKE_REQUEST
        GB_WAKE_DONE
        GB_WAKE_TIMEOUT
        GB_WAKE_CLOSED
    gb_wake gb_call_wait(gb_call *call, int64_t slice_ms)
    void gb_call_set_timeout(gb_call *call, int64_t timeout_ms)
    gb_request *gb_call_take(gb_call *call)
    void gb_call_leave(gb_call *call)
    ctypedef struct gb_outcome:
        bint ok
        const char *text
        const char *completed_json
        int32_t error_code
        const char *error_message
        const char *error_details
        uint64_t run_id
        uint64_t iterations
        double paused_seconds
    void gb_call_outcome(gb_call *call, gb_outcome *outcome)

    ctypedef struct gb_hooks:
        int32_t (*inline_answer)(gb_token token, const gopher_orch_elicitation_request_t *request) noexcept nogil
        void (*event)(void *host, const gopher_orch_event_t *event) noexcept nogil
        void (*unattended)(void *host, gb_request *request) noexcept nogil
        void (*drop)(void *host) noexcept nogil
    void *gb_inline_host(gb_token token)
    int32_t gb_elicitation_trampoline(const gopher_orch_elicitation_request_t *request, void *user_data)
    void gb_event_trampoline(const gopher_orch_event_t *event, void *user_data)
