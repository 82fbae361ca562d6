-- The audit: a chain of links that can only grow.
CREATE TABLE gopher_mcp.mcp_elicitation_audit (
    seq bigint PRIMARY KEY CHECK (seq > 0),
    text text NOT NULL,
    previous text NOT NULL CHECK (length(previous) = 64),
    hash text NOT NULL CHECK (length(hash) = 64)
);

-- The owner is bound too. Who removes the trigger still breaks the chain, or its anchor.
CREATE TRIGGER mcp_audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON gopher_mcp.mcp_elicitation_audit
    FOR EACH STATEMENT EXECUTE FUNCTION gopher_mcp.mcp_refuse();

-- Nobody inserts a link of their own making: this function is the only way, and it takes the text and nothing else.
-- The lock (an arbitrary constant, "goph") is held until the transaction ends, so links are committed in their order;
-- each statement in here sees what was committed before it began, that is, after the lock was had. The caller computes
-- the hash again and compares.
CREATE FUNCTION gopher_mcp.mcp_append_audit(told text, OUT seq bigint, OUT previous text, OUT hash text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1735356520, 1);
    SELECT a.seq + 1, a.hash INTO seq, previous FROM gopher_mcp.mcp_elicitation_audit a ORDER BY a.seq DESC LIMIT 1;
    IF seq IS NULL THEN
        seq := 1;
        previous := repeat('0', 64);
    END IF;
    hash := encode(sha256(convert_to(seq || E'\n' || previous || E'\n' || told, 'UTF8')), 'hex');
    INSERT INTO gopher_mcp.mcp_elicitation_audit VALUES (seq, told, previous, hash);
END
$$;

-- Reading: the chain can only be checked by who sees all of it. It holds no payload.
REVOKE ALL ON gopher_mcp.mcp_elicitation_audit FROM PUBLIC, gopher_mcp_app;
GRANT SELECT ON gopher_mcp.mcp_elicitation_audit TO gopher_mcp_app;
GRANT SELECT, INSERT ON gopher_mcp.mcp_elicitation_audit TO gopher_mcp_keeper;
REVOKE ALL ON FUNCTION gopher_mcp.mcp_append_audit(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gopher_mcp.mcp_append_audit(text) TO gopher_mcp_app;
