"""What is said where a framework is not installed, or the MCP SDK is not the one that is needed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from gopher_mcp_python import AgentError
from gopher_mcp_python.sdk_version import needed_for, trouble
from tests.support import children


@pytest.mark.parametrize(
    ("module", "blocked", "told"),
    [
        ("adk", "google.adk.tools.base_tool", "google-adk is not installed, or too old"),
        ("langchain", "langchain_core.tools", "langchain-core is not installed, or too old"),
    ],
)
def test_the_extra_is_named(module: str, blocked: str, told: str) -> None:
    code = f"""
import sys
sys.modules["{blocked}"] = None
try:
    import gopher_mcp_python.integrations.{module}
except ImportError as error:
    print(error)
"""
    out = children.python(code).check().out
    assert out.startswith(told) and f"pip install 'gopher-mcp-python[{module}]'" in out


def test_callbacks_import_no_sdk_and_no_framework() -> None:
    code = """
import sys
from gopher_mcp_python import elicitation_callback
from gopher_mcp_python.integrations.fastmcp import fastmcp_elicitation_handler
elicitation_callback("cancel"), fastmcp_elicitation_handler("cancel")
print(sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "mcp_types", "fastmcp", "httpx2", "google"}))
"""
    assert children.python(code).check().out == "[]\n"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Versions as the metadata has them; what is left out is not installed."""
    versions: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    yield versions


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("1.28.0", "needs mcp 2.3 or newer; 1.28.0 is installed: pip install -U 'mcp>=2.3'"),
        ("2.2.9", "needs mcp 2.3 or newer; 2.2.9 is installed: pip install -U 'mcp>=2.3'"),
        (None, "needs mcp 2.3 or newer, and none is installed: pip install -U 'mcp>=2.3'"),
        ("2.3.0", None),
        ("2.10.1b2", None),
        ("3.0", None),
    ],
)
def test_which_sdk_is_needed(installed: dict[str, str], version: str | None, told: str | None) -> None:
    if version is not None:
        installed["mcp"] = version
    assert trouble() == told


@pytest.mark.parametrize("missing", ["mcp_types", "mcp.shared.dispatcher", "httpx2"])
def test_an_import_that_fails_for_an_older_sdk(installed: dict[str, str], missing: str) -> None:
    installed["mcp"] = "1.30.0"
    with pytest.raises(AgentError, match=r"^the demo needs mcp 2\.3 or newer; 1\.30\.0 is installed"):
        with needed_for("the demo"):
            raise ModuleNotFoundError("no such module", name=missing)


@pytest.mark.parametrize(("missing", "version"), [("mcp_types", "2.3.0"), ("yaml", "1.30.0"), (None, "1.30.0")])
def test_an_import_that_fails_for_another_reason_is_left_alone(
    installed: dict[str, str], missing: str | None, version: str
) -> None:
    installed["mcp"] = version
    with pytest.raises(ImportError, match="no such module"):
        with needed_for("the demo"):
            raise ImportError("no such module", name=missing)


@pytest.mark.source_tree
def test_the_document_of_frameworks_is_python() -> None:
    """Its pieces need frameworks, which tests/support/frameworks runs; here they are read."""
    text = (children.ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    pieces = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(pieces) >= 8
    for piece in pieces:
        compile(piece, "frameworks.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for module, name in re.findall(r"^from (gopher_mcp_python\S*) import (\w+)", piece, re.MULTILINE):
            source = children.ROOT / "src" / Path(*module.split("."))
            listed = source.with_suffix(".py") if source.with_suffix(".py").exists() else source / "__init__.py"
            assert f'"{name}"' in listed.read_text(encoding="utf-8"), f"{module} has no {name}"
