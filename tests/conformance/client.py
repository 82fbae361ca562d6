"""What the conformance suite starts for each scenario: an agent on its server, and one tool call.

usage: python -m tests.conformance.client SERVER_URL
    MCP_CONFORMANCE_SCENARIO    the scenario's name
    MCP_CONFORMANCE_CONTEXT     what it gives to its client beforehand, as JSON: credentials, keys

Everything goes through the public interface, as a program of anybody's would do it; the authorization page is opened by
`BROWSER`, as on a desktop. Ends with exit code 1 when the agent can't be made or its run fails.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentCreateOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    GopherAgentOAuthOptions,
)
from gopher_mcp_python.forms import MISSING, read_form

# A client-ID metadata document that the scenario's authorization server takes for known; nobody fetches it.
METADATA_URL = "https://conformance-test.local/client-metadata.json"
QUERIES = {
    "initialize": None,
    "tools_call": 'add_numbers {"a": 5, "b": 3}',
    "elicitation-sep1034-client-defaults": "test_client_elicitation_defaults",
    "sse-retry": "test_reconnection",
}
AUTH_QUERY = "test-tool"  # the one tool of the servers of all auth scenarios


def accept_as_filled_in(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    """A person who leaves every field of the form as the server filled it in, and takes the first of what has to be
    chosen."""
    form = read_form(request.requested_schema or {})
    content = {field.name: field.default for field in form.fields if field.default is not MISSING}
    for field in form.fields:
        if field.required and field.options and field.default is MISSING:
            first = field.options[0].value
            content[field.name] = [first] if field.kind == "choices" else first
    return GopherAgentElicitationResponse("accept", form.validate(content))


def sign_in(scenario: str, context: dict[str, Any]) -> GopherAgentOAuthOptions:
    """What somebody would configure who was given this context."""
    options: dict[str, Any] = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    if scenario == "auth/basic-cimd":
        options["client_metadata_url"] = METADATA_URL
    if scenario.startswith("auth/client-credentials"):
        options["grant"] = "client_credentials"
    if "idp_token_endpoint" in context:
        options |= {"grant": "jwt_bearer", "assertion": lambda *where: exchanged(context, *where)}
    if "private_key_pem" in context:
        options |= {"token_endpoint_auth_method": "private_key_jwt", "private_key": context["private_key_pem"]}
    return GopherAgentOAuthOptions(**options)


def exchanged(context: dict[str, Any], audience: str, resource: str) -> str:
    """A company's identity provider gives, for its ID token, an assertion for one server (RFC 8693)."""
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": context["idp_id_token"],
        "client_id": context["idp_client_id"],
        "audience": audience,
        "resource": resource,
    }
    with urllib.request.urlopen(context["idp_token_endpoint"], urllib.parse.urlencode(form).encode()) as reply:
        assertion: str = json.load(reply)["access_token"]
    return assertion


def main(url: str) -> int:
    logging.basicConfig(level=logging.DEBUG)  # everybody's: the suite's secrets are looked for in all that is printed
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    os.environ["BROWSER"] = shlex.join([sys.executable, "-I", "-S", str(Path(__file__).with_name("browser.py"))])
    options = GopherAgentCreateOptions(
        oauth=sign_in(scenario, context), elicitation={"handler": accept_as_filled_in}, engine="embedded"
    )
    query = QUERIES.get(scenario, AUTH_QUERY)
    try:
        with GopherAgent.create_with_url("DirectProvider", "none", url, options) as agent:
            if query is not None:
                print(agent.run(query))
    except AgentError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
