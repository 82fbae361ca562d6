/* Every function of the vendor's library, once: field, exported name, first published version that exports it (read from
 * the symbol tables of all twelve; "" when none does), required or optional, function type. Included with X defined; the
 * loader, the messages and the tests all read this table.
 *
 * Required is what no agent can live without. Whatever else is missing has a stated fallback (see docs) or fails the one
 * call that needs it, by name.
 */
X(create_by_json, "gopher_orch_agent_create_by_json", "0.1.1", REQUIRED, gopher_orch_create_fn)
X(create_by_api_key, "gopher_orch_agent_create_by_api_key", "0.1.1", REQUIRED, gopher_orch_create_fn)
X(create_by_url, "gopher_orch_agent_create_by_url", "0.1.23", OPTIONAL, gopher_orch_create_fn)
X(create_by_server_id, "gopher_orch_agent_create_by_server_id", "0.1.23", OPTIONAL, gopher_orch_create_routed_fn)
X(create_by_server_name, "gopher_orch_agent_create_by_server_name", "0.1.23", OPTIONAL, gopher_orch_create_routed_fn)
X(create_by_gateway_id, "gopher_orch_agent_create_by_gateway_id", "0.1.23", OPTIONAL, gopher_orch_create_routed_fn)
X(create_by_gateway_name, "gopher_orch_agent_create_by_gateway_name", "0.1.23", OPTIONAL, gopher_orch_create_routed_fn)
X(create_by_json_with_options, "gopher_orch_agent_create_by_json_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_with_options_fn)
X(create_by_api_key_with_options, "gopher_orch_agent_create_by_api_key_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_with_options_fn)
X(create_by_url_with_options, "gopher_orch_agent_create_by_url_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_with_options_fn)
X(create_by_server_id_with_options, "gopher_orch_agent_create_by_server_id_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_routed_with_options_fn)
X(create_by_server_name_with_options, "gopher_orch_agent_create_by_server_name_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_routed_with_options_fn)
X(create_by_gateway_id_with_options, "gopher_orch_agent_create_by_gateway_id_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_routed_with_options_fn)
X(create_by_gateway_name_with_options, "gopher_orch_agent_create_by_gateway_name_with_options", "0.1.30", OPTIONAL,
  gopher_orch_create_routed_with_options_fn)
X(agent_run, "gopher_orch_agent_run", "0.1.1", REQUIRED, gopher_orch_agent_run_fn)
X(agent_add_ref, "gopher_orch_agent_add_ref", "0.1.1", OPTIONAL, gopher_orch_agent_add_ref_fn)
X(agent_release, "gopher_orch_agent_release", "0.1.1", REQUIRED, gopher_orch_agent_release_fn)
X(agent_set_event_callback, "gopher_orch_agent_set_event_callback", "0.1.34", OPTIONAL,
  gopher_orch_agent_set_event_callback_fn)
X(agent_set_event_callback_all, "gopher_orch_agent_set_event_callback_all", "0.1.34", OPTIONAL,
  gopher_orch_agent_set_event_callback_all_fn)
X(api_fetch_servers, "gopher_orch_api_fetch_servers", "0.1.1", OPTIONAL, gopher_orch_api_fetch_servers_fn)
X(last_error, "gopher_orch_last_error", "0.1.1", REQUIRED, gopher_orch_last_error_fn)
X(clear_error, "gopher_orch_clear_error", "0.1.1", OPTIONAL, gopher_orch_clear_error_fn)
X(free_string, "gopher_orch_free", "0.1.1", REQUIRED, gopher_orch_free_fn)
X(set_log_level, "gopher_orch_set_log_level", "0.1.1", OPTIONAL, gopher_orch_set_log_level_fn)
X(options_supports_elicitation, "gopher_orch_agent_options_supports_elicitation", "", OPTIONAL,
  gopher_orch_agent_options_supports_elicitation_fn)
