"""Programs written for the published 0.1.39 run unchanged: the same source, run by both packages, says the same.

The published package is installed into an environment of its own (benchmarks/_peer.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import children, vendor

pytestmark = pytest.mark.source_tree  # benchmarks/ is not in the wheel

# Every public class of the published package that is about agents, with its methods' parameters.
SIGNATURES = """
import inspect, json
import gopher_mcp_python as package
names = '''GopherAgent GopherAgentConfig GopherAgentConfigBuilder GopherAgentCreateOptions GopherAgentElicitationOptions
GopherAgentElicitationResponse GopherAgentOAuthOptions GopherAgentRuntimeOptions GopherAgentTokenRecord AgentResult
AgentResultStatus AgentResultBuilder ServerConfig ServerConfigRoute AgentError ApiKeyError ConnectionError
TimeoutError'''.split()
found = {}
for name in names:
    kind = getattr(package, name)
    for member in dir(kind):
        if member.startswith("_") and member != "__init__":
            continue
        if name == "GopherAgent" and member == "__init__" or issubclass(kind, Exception) and member in dir(Exception):
            continue
        value = getattr(kind, member)
        if not callable(value) or isinstance(inspect.getattr_static(kind, member), property):
            found[f"{name}.{member}"] = "attribute"
            continue
        try:
            parameters = inspect.signature(value).parameters.values()
        except (TypeError, ValueError):
            continue
        found[f"{name}.{member}"] = [
            [p.name, None if p.default is p.empty else repr(p.default)] for p in parameters if p.name != "self"
        ]
for name in names:
    found[name] = [base.__name__ for base in getattr(package, name).__mro__ if not base.__name__.startswith("_")]
print(json.dumps(found))
"""

# What a program may do with them, each line on its own; the result or the kind of error is printed.
PROGRAM = '''
import json
from gopher_mcp_python import *
from gopher_mcp_python import elicitation, elicitation_runtime, oauth_browser, runtime_options
Options, Request = GopherAgentElicitationOptions, GopherAgentElicitationRequest
def builder():
    return GopherAgentConfig.builder().provider("p").model("m").api_key("k")
lines = """
GopherAgentCreateOptions(access_token="t", headers={"X-A": "b"}).headers
GopherAgentCreateOptions(access_token="t", headers={"Authorization": "Basic x"}).headers
GopherAgentCreateOptions(access_token="").access_token
GopherAgentCreateOptions().headers
GopherAgentCreateOptions().oauth
GopherAgentCreateOptions(headers={"a": 1})
GopherAgentCreateOptions(headers=[("a", "b")])
GopherAgentCreateOptions(oauth={"mode": "disabled", "clientName": "c", "redirectUri": "r"}).oauth.client_name
GopherAgentCreateOptions(oauth={"openBrowser": False}).oauth.open_browser
GopherAgentCreateOptions(oauth={"mode": "disabled"}).elicitation.timeout_ms
GopherAgentCreateOptions(elicitation={"timeoutMs": 5, "openBrowser": False}).elicitation.timeout_ms
GopherAgentCreateOptions(elicitation={"timeout_ms": 7, "timeoutMs": 5}).elicitation.timeout_ms
GopherAgentCreateOptions(elicitation={"openBrowser": False}).elicitation.open_browser
GopherAgentElicitationOptions().handler
GopherAgentElicitationOptions(timeout_ms=-5).timeout_ms
GopherAgentElicitationOptions(timeout_ms=1.9).timeout_ms
GopherAgentElicitationOptions(timeout_ms="1")
GopherAgentElicitationOptions(timeout_ms=float("inf"))
GopherAgentElicitationOptions(open_browser=1)
GopherAgentElicitationOptions(handler=5)
GopherAgentElicitationRequest("url", "id", "m", "https://a.example/").url
GopherAgentElicitationRequest(mode="url", elicitation_id="id", request_id_json="1", raw_json="{}").raw_params_json
GopherAgentElicitationRequest("url", url=5)
GopherAgentElicitationRequest(None)
GopherAgentElicitationResponse("accept").action
GopherAgentElicitationResponse(action="yes")
elicitation.normalize_elicitation_action("decline")
elicitation.normalize_elicitation_action(GopherAgentElicitationResponse("cancel"))
elicitation.normalize_elicitation_action("maybe")
elicitation.normalize_elicitation_options(None).handler
elicitation.normalize_elicitation_options([])
elicitation_runtime.native_action_from_elicitation_action("accept")
elicitation_runtime.native_action_from_elicitation_action("x")
elicitation_runtime.to_elicitation_request({"mode": None, "url": "https://a.example/"}).mode
elicitation_runtime.resolve_elicitation_action_sync(Options(handler=lambda r: "accept"), Request("url"))
elicitation_runtime.default_url_elicitation_handler()(Request("form")).action
oauth_browser.open_authorization_url("https://a.example/", open_browser=False)["opened"]
oauth_browser.open_authorization_url("https://a.example/", opener=lambda url: True)["opened"]
oauth_browser.open_authorization_url("https://a.example/", opener=lambda url: False)["opened"]
runtime_options.normalize_create_options(None)
runtime_options.normalize_create_options({})
runtime_options.normalize_create_options({"unknown": 1})
runtime_options.normalize_create_options({"elicitation": None}).elicitation.handler
runtime_options.normalize_create_options("x")
runtime_options.normalize_runtime_options({})
runtime_options.normalize_runtime_options({"access_token": "t"}).headers
runtime_options.normalize_oauth_options(None)
GopherAgentOAuthOptions(mode="x")
GopherAgentOAuthOptions(scopes="a b")
GopherAgentOAuthOptions(scopes=["a"]).scopes
GopherAgentTokenRecord("")
GopherAgentTokenRecord("t", token_type="")
GopherAgentTokenRecord("t", expires_at=5).expires_at
GopherAgentTokenRecord("t", expires_at="5")
GopherAgentTokenRecord("t", refresh_token=5)
GopherAgentConfig.builder().build()
GopherAgentConfig.builder().provider("p").build()
GopherAgentConfig.builder().provider("p").model("m").build()
GopherAgentConfig.builder().provider("p").model("m").api_key("k").server_config("{}").build()
GopherAgentConfig.builder().provider("p").model("m").api_key("k").build().has_server_config()
builder().access_token("t").headers({"x": "y"}).build().runtime_options.headers
builder().runtime_options({"elicitation": {"timeoutMs": 3}}).headers({}).build().runtime_options.elicitation.timeout_ms
GopherAgentConfig("p", "m", api_key="k").runtime_options
AgentResult.success("r").iteration_count
AgentResult.timeout().error_message
AgentResult.error("e").response
AgentResult.builder().response("r").tokens_used(3).build().is_success()
AgentResultStatus.TIMEOUT.value
ServerConfig.fetch("")
AgentError("m").message
ApiKeyError().message
ConnectionError().message
TimeoutError().message
GopherAgent.create_with_url("OpenAIProvider", "m", "http://127.0.0.1:9/mcp", "x")
GopherAgent.is_initialized()
"""
told = []
for line in lines.strip().splitlines():
    try:
        result = eval(line)
        told.append([line, result if isinstance(result, (str, int, float, bool, dict, list, type(None))) else "object"])
    except Exception as error:
        told.append([line, "raises " + type(error).__name__])
print(json.dumps(told))
'''


@pytest.fixture(scope="module")
def peer() -> Path:
    from benchmarks import _peer

    try:
        return _peer.python()
    except vendor.Unavailable as why:
        vendor.absent(str(why))


def _both(peer: Path, program: str, tmp_path: Path) -> tuple[Any, Any]:
    """What the published package and this one print for the same source."""
    from benchmarks import _peer

    theirs = subprocess.run(
        [peer, "-c", program], cwd=tmp_path, env=_peer.environment(), capture_output=True, text=True, check=True
    )
    ours = children.run([sys.executable, "-c", program]).check()
    return json.loads(theirs.stdout), json.loads(ours.out)


def test_every_name_and_parameter_is_there(peer: Path, tmp_path: Path) -> None:
    theirs, ours = _both(peer, SIGNATURES, tmp_path)
    assert len(theirs) > 80
    for name, wanted in theirs.items():
        assert name in ours, name
        if isinstance(wanted, list):
            # More may follow, never come before: positional calls keep their meaning.
            same = ours[name][: len(wanted)] == wanted if "." in name else set(wanted) <= set(ours[name])
            assert same, (name, wanted, ours[name])


def test_the_same_lines_say_the_same(peer: Path, tmp_path: Path) -> None:
    theirs, ours = _both(peer, PROGRAM, tmp_path)
    assert len(theirs) > 70
    different = [(line, was, now) for (line, was), (_, now) in zip(theirs, ours, strict=True) if was != now]
    assert different == []
