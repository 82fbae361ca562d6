"""What the documents show: terminals, messages and files are compared with what is really shown, read and written."""

from __future__ import annotations

import fnmatch
import http.client
import json
import os
import re
import shutil
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import children
from tests.support.examples import ROOT, example, replaced, text_of
from tests.support.examples.scratch import Scratch
from tests.support.hosting import closed_port
from tests.support.kernel import Kernel
from tests.support.postgres import PASSWORD, Postgres
from tests.support.scripted_llm import ScriptedModel, certificates
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.source_tree, pytest.mark.skipif(os.name == "nt", reason="ptys are a thing of POSIX systems")]


def assert_shown(block: str, shown: str, **varying: str) -> None:
    """The block is what was shown, line by line; of empty lines in a row one counts. `varying`: a text of the block
    and the pattern that may stand for it; "..." in a block stands for anything in its line."""
    # A line that says what is being waited for is erased again (ESC [ K), and whatever stood before it.
    lines = [re.sub(r".*\x1b\[K", "", line).rstrip() for line in shown.replace("\r", "").split("\n")]
    told = "\n".join(lines)
    told, block = (re.sub(r"\n{3,}", "\n\n", text) for text in (told, block))
    pattern = re.escape("\n".join(line.rstrip() for line in block.strip("\n").splitlines()))
    for text, allowed in {"...": r".*", **varying}.items():
        assert text == "..." or re.escape(text) in pattern, f"{text!r} is not in the block"
        pattern = pattern.replace(re.escape(text), allowed)
    assert re.search(pattern, told), f"shown is\n{told}\nand not\n{block}"


def quiet_browser(scratch: Scratch) -> dict[str, str]:
    """A browser in which nobody does anything."""
    scratch.command("bin/quiet", "-c pass")
    return {"BROWSER": str(scratch.folder / "bin" / "quiet")}


# ---- terminals -----------------------------------------------------------------------------------------------------


@example("README.md: What it looks like: 1")
def test_the_demo_in_a_terminal(scratch: Scratch) -> None:
    from gopher_mcp_python.demo.click import click

    with Terminal.python("-m", "gopher_mcp_python", "demo", env=quiet_browser(scratch), size=(40, 120)) as terminal:
        shown = terminal.expect(r"To decline everything.*\n")
        url = re.search(r"http://127\.0\.0\.1:\d+/provider/\S+", shown)
        assert url
        click(url[0])
        code, rest = terminal.end()
    first, _, block = text_of("README.md: What it looks like: 1").partition("\n")
    assert first == "$ gopher-mcp demo" and code == 0
    assert_shown(block, shown + rest, **{"32813": r"\d+"})


@example("README.md: In a program: 1")
def test_a_program_in_a_terminal(scratch: Scratch, demo_url: str, scripted_model: ScriptedModel) -> None:
    """As it stands, with a model and a person whose browser signs in."""
    program = scratch.folder / "program.py"
    source = replaced(text_of("README.md: In a program: 1"), {"https://mcp.example.com/mcp": demo_url})
    program.write_text(source, encoding="utf-8")
    env = {**scratch.env, **scripted_model.environment(), "BROWSER": str(scratch.folder / "bin" / "browser")}
    with Terminal.python(str(program), env=env) as terminal:
        terminal.expect("FINAL: .*ada@mail.example")
        assert terminal.end()[0] == 0


TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "firstName": {"type": "string", "minLength": 2},
        "seat": {"type": "string", "enum": ["window", "aisle"], "default": "aisle"},
        "meals": {"type": "array", "items": {"enum": ["vegan", "fish"]}},
        "age": {"type": "integer", "minimum": 18},
        "newsletter": {"type": "boolean", "default": False},
    },
    "required": ["firstName"],
}


@example("docs/elicitation.md: Forms: 1")
def test_a_form_on_the_screen() -> None:
    from tests.support.screen import Screen

    with Screen.asking(TRIP, (92, 24), message="Who is travelling?", limit_ms=240_000) as screen:
        screen.until("F1 help")
        for keys in ("Ada\t", "\t", " \t", "7"):
            screen.keys(keys)
        shown = screen.until("must be 18 or more")  # on more lines than the document has: some are empty
    block = text_of("docs/elicitation.md: Forms: 1")
    (status,) = (line for line in block.splitlines() if "Time left" in line)
    assert_shown(block, shown, **{status: r"1 not right +Time left: \d min(?: \d+ s)?"})


@example("docs/elicitation.md: Forms: 2")
def test_a_form_line_by_line() -> None:
    names = ("firstName", "seat", "age")
    schema = {**TRIP, "properties": {name: TRIP["properties"][name] for name in names}}
    asking = {"form": schema, "server": "mail.test", "message": "Who is travelling?"}
    argv = ("-m", "tests.support.asking", json.dumps(asking))
    with Terminal.python(*argv, env={"GOPHER_MCP_PLAIN": "1"}, size=(60, 100)) as terminal:
        terminal.child.setecho(True)
        shown = ""
        for question, answer in (("First name: ", "Ada"), ("skip\\): ", "1"), ("back\\): ", ""), ('"decline": ', "")):
            shown += terminal.expect(question)
            terminal.line(answer)
        terminal.expect("RESULT")
        assert terminal.end()[0] == 0
    assert_shown(text_of("docs/elicitation.md: Forms: 2"), shown)


@example("docs/oauth.md: What the person sees: 1")
def test_a_sign_in(scratch: Scratch) -> None:
    options = {"server": "mail.example.com", "timeout": 600, "open_browser": True}
    given = {"state": "a-state", "page": "https://accounts.example.com/authorize", "options": options}
    argv = ("-m", "tests.support.signing_in", json.dumps(given))
    with Terminal.python(*argv, env=quiet_browser(scratch), size=(40, 120)) as terminal:
        shown = terminal.expect(r"Time left: .*\n")
        terminal.line("cancel")
        terminal.expect("RESULT")
    assert_shown(text_of("docs/oauth.md: What the person sees: 1"), shown,
                 **{"client_id=": "client_id=app", "49152": r"\d+", "10 min.": r"\d+ min.*"})  # fmt: skip


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    running = Kernel(tmp_path_factory.mktemp("kernel"))
    yield running
    running.close()


@example("docs/notebook.md: In a notebook: 1")
def test_cells_of_a_notebook(kernel: Kernel, demo_url: str, scripted_model: ScriptedModel) -> None:
    kernel.run(f"import os; os.environ.update({scripted_model.environment()!r})")
    cell = replaced(text_of("docs/notebook.md: In a notebook: 1"), {"https://mcp.example.com/mcp": demo_url})
    assert len(kernel.run(cell, "decline", "decline").asked) == 2
    kernel.run("agent.dispose()")


# ---- messages and files --------------------------------------------------------------------------------------------


@example("docs/command-line.md: When it fails: 1")
def test_a_failure_on_one_line(scratch: Scratch) -> None:
    block = text_of("docs/command-line.md: When it fails: 1")
    ended = scratch.sh("gopher-mcp doctor --jsn")
    assert (ended.code, ended.err) == (2, block)


@example("docs/frameworks.md: langchain-mcp-adapters: 2")
def test_an_sdk_that_is_too_old(tmp_path: Path) -> None:
    from tests.support import frameworks

    source = "try:\n    from gopher_mcp_python import McpToolset\nexcept Exception as error:\n    print(error)\n"
    ended = frameworks.run("adapters", tmp_path, ["-c", source]).check()
    assert_shown(text_of("docs/frameworks.md: langchain-mcp-adapters: 2"), ended.out, **{"1.30.0": r"1\.\d+\.\d+"})


@example("docs/contributing.md: Layout: 1")
def test_the_layout() -> None:
    """Every folder that is named is there, at its place."""
    above: list[str] = []
    found = 0
    for line in text_of("docs/contributing.md: Layout: 1").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in re.findall(r"(?:^|\s{2,})([\w./-]+/)(?=\s|$)", line):
            path = ROOT.joinpath(*above[:depth], name)
            assert path.is_dir(), f"{path} is not there"
            found += 1
        above = [*above[:depth], line.split()[0]]
    assert found == 14


@example("docs/gateway.md: What is held: 1")
def test_rules_of_a_gateway(tmp_path: Path) -> None:
    from gopher_mcp_python.gateway import Rules

    file = tmp_path / "rules.json"
    file.write_text(text_of("docs/gateway.md: What is held: 1"))
    rules = Rules.read(file)
    select = {"sql": "SELECT 1"}

    def decided(server: str, tool: str, arguments: dict[str, Any] | None = None) -> str:
        return rules.judge(server, tool, arguments or {}, {})

    assert decided("files", "read_x") == "allow" and decided("mail", "send_as") == "deny"
    assert decided("a", "big_purge") == "hold"
    assert decided("db", "query", select) == "allow"
    assert decided("db", "query", {"sql": "SELECT 1; DROP TABLE t"}) == "hold"
    assert decided("hub", "call_tool", {"name": "erase_and_purge"}) == "hold"


@example("docs/gateway.md: How a call is confirmed: 1")
def test_what_a_held_call_is_told() -> None:
    from tests.support.gateways import House, run

    house = House()
    house.vault.sdk.name = "files"

    async def call() -> Any:
        async with house.client() as client:
            return await client.call_tool("erase", {"name": "a"})

    told, block = run(call()).meta, json.loads(text_of("docs/gateway.md: How a call is confirmed: 1"))
    house.store.close()
    (shown,), (real,) = block.values(), told.values()
    assert block.keys() == told.keys() and shown.keys() == real.keys()
    assert all(fnmatch.fnmatch(real[key], shown[key].replace("...", "*")) for key in shown if key != "server"), real


# ---- Postgres ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


SETUP = "docs/store-postgres.md: Setting it up"
PUBLIC = "docs/serve.md: Reaching it from another machine: 1"


@example(f"{SETUP}: 1", f"{SETUP}: 2", f"{SETUP}: 3", f"{SETUP}: 4", PUBLIC)
def test_a_database_is_set_up_and_used(scratch: Scratch, postgres: Postgres) -> None:
    host = {"host=db.example": f"host=127.0.0.1 port={postgres.port}"}
    scratch.env["PGPASSWORD"] = PASSWORD

    def as_superuser(name: str) -> None:
        import psycopg

        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            for statement in replaced(text_of(name), {"'...'": f"'{PASSWORD}'"}).split(";\n"):
                connection.execute(statement)

    as_superuser(f"{SETUP}: 1")
    scratch.sh(replaced(text_of(f"{SETUP}: 2"), host)).check()
    as_superuser(f"{SETUP}: 3")
    use = '\nwith open_store() as store:\n    print(store.create_confirmation("ada", tool="t", arguments={}).status)\n'
    (scratch.folder / "use.py").write_text(replaced(text_of(f"{SETUP}: 4"), host) + use)
    assert scratch.sh("python use.py").check().out == "pending\n"

    certificates(scratch.folder)
    port = closed_port()
    serve = replaced(text_of(PUBLIC), {
        "postgresql://...": f"postgresql://store_app@127.0.0.1:{postgres.port}/store", "443": str(port),
        "cert.pem": "leaf.pem", "key.pem": "leaf.key",
    })  # fmt: skip
    with scratch.server(serve) as server:
        assert server.url == "https://approve.example.com/"
        context = ssl.create_default_context(cafile=str(scratch.folder / "ca.pem"))
        context.check_hostname = False
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        connection.request("GET", "/ready", headers={"Host": "approve.example.com"})
        status = connection.getresponse().status
        connection.close()
    assert status == 200


@example("docs/contributing.md: Conformance: 1")
@pytest.mark.skipif(shutil.which("npm") is None, reason="the conformance suite is installed by npm")
def test_one_scenario_of_the_conformance_suite() -> None:
    command = replaced(text_of("docs/contributing.md: Conformance: 1"), {".venv/bin/python": sys.executable})
    ended = children.run(["sh", "-ec", command]).check()
    assert "1 of 1 scenarios passed" in ended.out
