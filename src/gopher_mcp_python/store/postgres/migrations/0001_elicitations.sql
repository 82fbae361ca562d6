-- Elicitations: who was asked what, sealed, and what was answered.
--
-- Roles are the cluster's: they may be there already, from another database, or be made at this moment by another one.
-- gopher_mcp_app     what the store's login is a member of; can't delete, and changes nothing but the answer
-- gopher_mcp_keeper  owns the functions that work across callers; nobody logs in as it
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['gopher_mcp_app', 'gopher_mcp_keeper'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA gopher_mcp FROM PUBLIC;
GRANT USAGE ON SCHEMA gopher_mcp TO gopher_mcp_app, gopher_mcp_keeper;
GRANT SELECT ON gopher_mcp.schema_migrations TO gopher_mcp_app;

CREATE TYPE gopher_mcp.mcp_elicitation_type AS ENUM (
    'string_input', 'single_choice', 'multi_choice', 'confirmation', 'file_upload'
);
CREATE TYPE gopher_mcp.mcp_elicitation_status AS ENUM (
    'pending', 'responded', 'expired', 'cancelled', 'validation_failed'
);

-- In clear is what a list or a rule needs. `question` and `response` are sealed before they come here.
CREATE TABLE gopher_mcp.mcp_elicitations (
    id text PRIMARY KEY,
    caller text NOT NULL CHECK (caller <> ''), -- '' is what the setting is in a session that had one before
    mode text NOT NULL CHECK (mode IN ('fixed', 'form', 'url')),
    type gopher_mcp.mcp_elicitation_type,
    status gopher_mcp.mcp_elicitation_status NOT NULL,
    server text,
    tool text,
    question bytea,
    binding_mac text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    response bytea,
    response_mac text,
    confirmed boolean,
    retries integer NOT NULL CHECK (retries >= 0),
    ended_at timestamptz,
    consumed_at timestamptz,
    completed_at timestamptz,
    CONSTRAINT fixed_has_a_type CHECK ((mode = 'fixed') = (type IS NOT NULL)),
    CONSTRAINT ended_has_a_time CHECK ((status = 'pending') = (ended_at IS NULL)),
    CONSTRAINT only_an_answer_confirms CHECK (confirmed IS NULL OR status = 'responded'),
    CONSTRAINT only_an_approval_is_used CHECK (consumed_at IS NULL OR confirmed IS TRUE),
    CONSTRAINT only_what_was_used_is_complete CHECK (completed_at IS NULL OR consumed_at IS NOT NULL)
);

CREATE INDEX mcp_elicitations_pending_by_caller ON gopher_mcp.mcp_elicitations (caller, created_at, id)
    WHERE status = 'pending';
CREATE INDEX mcp_elicitations_pending_by_expiry ON gopher_mcp.mcp_elicitations (expires_at)
    WHERE status = 'pending';
-- The rate limit, and a call that is made again.
CREATE INDEX mcp_elicitations_by_creation ON gopher_mcp.mcp_elicitations (caller, created_at);
CREATE INDEX mcp_elicitations_to_prune ON gopher_mcp.mcp_elicitations (ended_at)
    WHERE ended_at IS NOT NULL AND (question IS NOT NULL OR response IS NOT NULL);

-- What was recorded stays, whatever the program asks: one end, one answer, one use. A prune may only take away.
CREATE FUNCTION gopher_mcp.mcp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what is recorded in % can not be changed', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER mcp_recorded_stays BEFORE UPDATE ON gopher_mcp.mcp_elicitations FOR EACH ROW WHEN (
    (OLD.status <> 'pending' AND (
        NEW.status <> OLD.status
        OR NEW.ended_at IS DISTINCT FROM OLD.ended_at
        OR NEW.confirmed IS DISTINCT FROM OLD.confirmed
        OR NEW.retries <> OLD.retries
        OR (NEW.response_mac IS NOT NULL AND NEW.response_mac IS DISTINCT FROM OLD.response_mac)
        OR (NEW.response IS NOT NULL AND NEW.response IS DISTINCT FROM OLD.response)
    ))
    OR (NEW.question IS NOT NULL AND NEW.question IS DISTINCT FROM OLD.question)
    OR (OLD.consumed_at IS NOT NULL AND NEW.consumed_at IS DISTINCT FROM OLD.consumed_at)
    OR (OLD.completed_at IS NOT NULL AND NEW.completed_at IS DISTINCT FROM OLD.completed_at)
) EXECUTE FUNCTION gopher_mcp.mcp_refuse();

-- Every row belongs to a caller, who is named once in a transaction. Without a name nothing is visible. FORCE: the
-- owner is no exception (a superuser is one, so the store refuses to work as a superuser).
ALTER TABLE gopher_mcp.mcp_elicitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE gopher_mcp.mcp_elicitations FORCE ROW LEVEL SECURITY;
CREATE POLICY mcp_own_rows ON gopher_mcp.mcp_elicitations FOR ALL TO gopher_mcp_app
    USING (caller = current_setting('gopher.caller', true))
    WITH CHECK (caller = current_setting('gopher.caller', true));

REVOKE ALL ON gopher_mcp.mcp_elicitations FROM PUBLIC, gopher_mcp_app;
GRANT SELECT, INSERT ON gopher_mcp.mcp_elicitations TO gopher_mcp_app;
GRANT UPDATE (status, response, response_mac, confirmed, retries, ended_at, consumed_at, completed_at)
    ON gopher_mcp.mcp_elicitations TO gopher_mcp_app;
