"""The example of answering elsewhere, run as a person would, with the page's server beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import children
from tests.support.answering import SECONDS, answering

pytestmark = pytest.mark.source_tree
EXAMPLE = children.ROOT / "examples" / "answer_elsewhere.py"


def test_the_example_is_answered_on_the_page(tmp_path: Path) -> None:
    from gopher_mcp_python.demo.child import DemoServer
    from gopher_mcp_python.demo.click import click

    store = f"sqlite:{tmp_path / 'elicitations.db'}"
    env = children.environment({"GOPHER_MCP_ENGINE": "embedded"})
    with DemoServer() as demo, answering(tmp_path, store) as elsewhere:
        argv = [sys.executable, str(EXAMPLE), demo.url, str(tmp_path)]
        with subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        ) as process:
            assert process.stdout is not None
            word, caller, id = process.stdout.readline().split()
            assert (word, caller) == ("ASKED", "ada")
            click(elsewhere.show(id)["question"]["href"])
            assert elsewhere.respond(id, {"action": "accept"}) == 200
            out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert "ada@mail.example" in out, out + err
    assert "Traceback" not in err


def test_it_says_what_it_needs() -> None:
    ended = children.run([sys.executable, str(EXAMPLE)])
    assert (ended.code, ended.out) == (2, "") and ended.err.startswith("usage: ")
