"""FastMCP's client, pydantic-ai, and our toolset as tools of LangChain, in one environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import frameworks

pytestmark = [pytest.mark.source_tree, pytest.mark.timeout(600)]  # pip, the first time


@pytest.mark.parametrize("framework", ["fastmcp", "pydantic_ai", "langchain"])
def test_framework(framework: str, tmp_path: Path) -> None:
    with frameworks.servers() as servers:
        frameworks.cases("fastmcp", framework, servers, tmp_path)
