"""FastMCP's client, pydantic-ai, and our toolset as tools of LangChain, in one environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import frameworks

pytestmark = [pytest.mark.source_tree, pytest.mark.timeout(600)]  # pip, the first time


def test_fastmcp_pydantic_ai_and_langchain(tmp_path: Path) -> None:
    frameworks.cases("fastmcp", ["fastmcp", "pydantic_ai", "langchain"], tmp_path)
