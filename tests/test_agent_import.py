"""`import gopher_mcp_python` is light, and its public names are complete."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gopher_mcp_python
from tests.support import children

PUBLISHED = """
GopherAgent GopherAgentConfig GopherAgentConfigBuilder GopherAgentCreateOptions GopherAgentElicitationAction
GopherAgentElicitationHandler GopherAgentElicitationOptions GopherAgentElicitationRequest
GopherAgentElicitationResponse GopherAgentOAuthOptions GopherAgentRuntimeOptions GopherAgentTokenRecord
GopherAgentTokenStore AgentResult AgentResultStatus AgentResultBuilder ServerConfig ServerConfigRoute
AgentError ApiKeyError ConnectionError TimeoutError
""".split()


def loaded_by(code: str) -> set[str]:
    done = children.python(f"import json, sys; {code}; print(json.dumps(sorted(sys.modules)))").check()
    return set(json.loads(done.out))


def test_the_import_brings_nothing_heavy() -> None:
    bare = loaded_by("pass")
    more = loaded_by("import gopher_mcp_python") - bare
    assert {name for name in more if name.startswith("gopher_mcp_python.")} <= {
        "gopher_mcp_python.native", "gopher_mcp_python.native.quick", "gopher_mcp_python.native.names",
        "gopher_mcp_python.native.packages", "gopher_mcp_python.lazily",
    }  # fmt: skip
    heavy = {"asyncio", "ctypes", "typing", "dataclasses", "inspect", "threading", "logging", "json", "mcp", "socket"}
    assert not more & heavy


def test_the_agent_itself_needs_neither_the_sdk_nor_an_event_loop() -> None:
    more = loaded_by("import gopher_mcp_python as g; g.GopherAgent")
    assert not more & {"asyncio", "mcp", "anyio", "httpx", "httpx2", "pydantic", "anthropic", "openai", "ctypes"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_names_are_there(name: str) -> None:
    assert name in gopher_mcp_python.__all__
    assert getattr(gopher_mcp_python, name) is not None


def test_a_star_import_gives_all_of_them() -> None:
    done = children.python("from gopher_mcp_python import *; import json; print(json.dumps(sorted(globals())))").check()
    names = set(json.loads(done.out))
    assert set(PUBLISHED) <= names


def test_published_modules_are_attributes() -> None:
    code = (
        "import gopher_mcp_python as g; print(g.elicitation_runtime.redact_elicitation_url('https://a.test/?code=1'))"
    )
    assert "redacted" in children.python(code).check().out


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gopher_mcp_python.nothing  # noqa: B018
    assert not hasattr(gopher_mcp_python, "GopherAuth")


def test_the_import_takes_little_time() -> None:
    """Source of the figure: 83 ms of the published package; here processor time, the best of a few, on a
    machine that may be busy."""
    code = "import time; t = time.process_time(); import gopher_mcp_python; print((time.process_time() - t) * 1000)"
    best = min(
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=children.environment()
            ).stdout
        )
        for _ in range(5)
    )
    assert best <= 30
