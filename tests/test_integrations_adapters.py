"""langchain-mcp-adapters, and this package beside mcp 1.x."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import frameworks

pytestmark = [pytest.mark.source_tree, pytest.mark.timeout(600)]  # pip, the first time


def test_langchain_mcp_adapters(tmp_path: Path) -> None:
    frameworks.cases("adapters", ["adapters"], tmp_path)
