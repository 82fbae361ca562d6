-- What works across callers: finding what has expired or is old, and taking payloads away.
--
-- Functions, and not a second login or a role to switch to: a role could do whatever its rights allow to every row, at
-- any time, for whoever gets to speak SQL as the application. A function does one thing. These give out no sealed
-- column, lock only rows that are due by this server's clock, and run as a role that can write nothing but NULL into a
-- payload.
GRANT SELECT, UPDATE (question, response) ON gopher_mcp.mcp_elicitations TO gopher_mcp_keeper;
CREATE POLICY mcp_keeper_reads ON gopher_mcp.mcp_elicitations FOR SELECT TO gopher_mcp_keeper USING (true);
CREATE POLICY mcp_keeper_clears ON gopher_mcp.mcp_elicitations FOR UPDATE TO gopher_mcp_keeper
    USING (true) WITH CHECK (question IS NULL AND response IS NULL);

-- One row without its payload.
CREATE FUNCTION gopher_mcp.mcp_known(wanted text) RETURNS SETOF gopher_mcp.mcp_elicitations
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id, caller, mode, type, status, server, tool, NULL::bytea, binding_mac, created_at, expires_at, NULL::bytea,
           response_mac, confirmed, retries, ended_at, consumed_at, completed_at
    FROM gopher_mcp.mcp_elicitations WHERE id = wanted
$$;

-- Pending rows whose time is up, locked; rows that another transaction has locked are being answered or expired there.
CREATE FUNCTION gopher_mcp.mcp_expired(at_most integer) RETURNS SETOF gopher_mcp.mcp_elicitations
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id, caller, mode, type, status, server, tool, NULL::bytea, binding_mac, created_at, expires_at, NULL::bytea,
           response_mac, confirmed, retries, ended_at, consumed_at, completed_at
    FROM gopher_mcp.mcp_elicitations WHERE status = 'pending' AND expires_at <= now()
    ORDER BY expires_at LIMIT at_most FOR UPDATE SKIP LOCKED
$$;

-- The same, only looked at.
CREATE FUNCTION gopher_mcp.mcp_overdue(at_most integer) RETURNS SETOF gopher_mcp.mcp_elicitations
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id, caller, mode, type, status, server, tool, NULL::bytea, binding_mac, created_at, expires_at, NULL::bytea,
           response_mac, confirmed, retries, ended_at, consumed_at, completed_at
    FROM gopher_mcp.mcp_elicitations WHERE status = 'pending' AND expires_at <= now()
    ORDER BY expires_at LIMIT at_most
$$;

-- Ended rows that still have a payload, locked.
CREATE FUNCTION gopher_mcp.mcp_prunable(before timestamptz, at_most integer) RETURNS SETOF gopher_mcp.mcp_elicitations
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id, caller, mode, type, status, server, tool, NULL::bytea, binding_mac, created_at, expires_at, NULL::bytea,
           response_mac, confirmed, retries, ended_at, consumed_at, completed_at
    FROM gopher_mcp.mcp_elicitations
    WHERE ended_at < least(before, now()) AND (question IS NOT NULL OR response IS NOT NULL)
    ORDER BY ended_at LIMIT at_most FOR UPDATE SKIP LOCKED
$$;

-- Takes the payload of one ended row away.
CREATE FUNCTION gopher_mcp.mcp_clear(wanted text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE gopher_mcp.mcp_elicitations SET question = NULL, response = NULL WHERE id = wanted AND ended_at IS NOT NULL
$$;

-- Which of these rows have ended, or should have by now.
CREATE FUNCTION gopher_mcp.mcp_due(wanted text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT id FROM gopher_mcp.mcp_elicitations WHERE id = ANY (wanted) AND (status <> 'pending' OR expires_at <= now())
$$;

REVOKE ALL ON FUNCTION gopher_mcp.mcp_known(text), gopher_mcp.mcp_expired(integer), gopher_mcp.mcp_overdue(integer),
    gopher_mcp.mcp_prunable(timestamptz, integer), gopher_mcp.mcp_clear(text), gopher_mcp.mcp_due(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gopher_mcp.mcp_known(text), gopher_mcp.mcp_expired(integer), gopher_mcp.mcp_overdue(integer),
    gopher_mcp.mcp_prunable(timestamptz, integer), gopher_mcp.mcp_clear(text), gopher_mcp.mcp_due(text[])
    TO gopher_mcp_app;

-- Who gives a function away must be a member of the role that gets it, and that role must be able to create here: both
-- for this moment only.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'gopher_mcp_keeper', 'USAGE') THEN
        EXECUTE format('GRANT gopher_mcp_keeper TO %I', current_user);
        PERFORM set_config('gopher.lent', 'yes', true);
    END IF;
END
$$;
GRANT CREATE ON SCHEMA gopher_mcp TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_append_audit(text) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_known(text) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_expired(integer) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_overdue(integer) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_prunable(timestamptz, integer) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_clear(text) OWNER TO gopher_mcp_keeper;
ALTER FUNCTION gopher_mcp.mcp_due(text[]) OWNER TO gopher_mcp_keeper;
REVOKE CREATE ON SCHEMA gopher_mcp FROM gopher_mcp_keeper;
DO $$
BEGIN
    IF current_setting('gopher.lent', true) = 'yes' THEN
        EXECUTE format('REVOKE gopher_mcp_keeper FROM %I', current_user);
    END IF;
END
$$;
