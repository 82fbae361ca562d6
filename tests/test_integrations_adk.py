"""Google ADK: the callback in its McpToolset, and our toolset as one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import frameworks

pytestmark = [pytest.mark.source_tree, pytest.mark.timeout(600)]  # pip, the first time


def test_google_adk(tmp_path: Path) -> None:
    frameworks.cases("adk", ["adk"], tmp_path)
