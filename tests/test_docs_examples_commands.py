"""The commands in the documents: each block is run by a shell, with ports, addresses and places of this test put in."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import local_wheel
from tests.support.examples import ROOT, each, example, replaced, text_of
from tests.support.examples.scratch import CLICK, Scratch, commands
from tests.support.scripted_llm import ScriptedModel
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.source_tree, pytest.mark.skipif(os.name == "nt", reason="the blocks are for a POSIX shell")]
FIRST = "docs/index.md: The first five minutes"


# ---- installing ----------------------------------------------------------------------------------------------------

INSTALLING = [
    "README.md: Two commands: 2", "docs/desktop.md: In a desktop program: 1", "docs/frameworks.md: Google ADK: 1",
    "docs/frameworks.md: LangChain: 1", "docs/native-library.md: The native library: 1",
]  # fmt: skip


@pytest.fixture
def newcomer(scratch: Scratch) -> Scratch:
    """Who begins with nothing but a Python. pip takes this package from a wheel made of the code under test, and what
    that requires from the environment of the tests: nothing is downloaded here."""
    folder = scratch.folder
    shutil.rmtree(folder / ".venv")
    (folder / "wheels").mkdir()
    local_wheel.build(folder / "wheels", code=True)
    found = [path for path in sys.path if path.endswith("-packages")]
    (folder / "dependencies.pth").write_text("\n".join(found) + "\n")
    scratch.command("bin/python3", "")
    (folder / "bin" / "browser").write_text(f"#!/bin/sh\nexec {folder}/.venv/bin/python -c '{CLICK}' \"$1\"\n")
    scratch.command("pip", "-m pip --python .venv/bin/python")
    scratch.env |= {
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "wheels"), "PIP_NO_DEPS": "1", "PIP_IGNORE_INSTALLED": "1",
        "PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore",
        "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip
    return scratch


@example(f"{FIRST}: 1", f"{FIRST}: 2", f"{FIRST}: 3", f"{FIRST}: 4", *INSTALLING)
def test_the_first_five_minutes(newcomer: Scratch) -> None:
    """A virtual environment, the package from a wheel, the demo, and a program of one's own against its server."""
    # Without pip, whose installation takes longer than all the rest: the environment of the tests has one.
    begin = replaced(text_of(f"{FIRST}: 1"), {"-m venv .venv": "-m venv --without-pip .venv\n"
                     "cp dependencies.pth .venv/lib/python3.*/site-packages/\ncp pip .venv/bin/"})  # fmt: skip
    assert "ada@mail.example" in newcomer.sh(begin).check().out
    with newcomer.server(replaced(text_of(f"{FIRST}: 2"), {"8808": "0"})) as server:
        program = replaced(text_of(f"{FIRST}: 3"), {"http://127.0.0.1:8808/mcp": server.url})
        (newcomer.folder / "first.py").write_text(program)
        here = {**newcomer.env, "BROWSER": str(newcomer.folder / "bin" / "browser")}
        with Terminal(["sh", "-c", f"cd {newcomer.folder}; {text_of(f'{FIRST}: 4')}"], env=here) as terminal:
            terminal.expect('"emailAddress": "ada@mail.example"')
            assert terminal.end()[0] == 0

    # Every other `pip install` names extras: they are collected, and pip is asked about all of them at once.
    (newcomer.folder / "bin" / "pip").write_text(f'#!/bin/sh\nshift\necho "$@" >> {newcomer.folder}/wanted.txt\n')
    (newcomer.folder / "bin" / "pip").chmod(0o755)
    for name in INSTALLING:
        newcomer.sh(text_of(name)).check()
    assert len((newcomer.folder / "wanted.txt").read_text().splitlines()) == len(INSTALLING)
    ended = newcomer.sh(".venv/bin/pip install --dry-run -r wanted.txt").check()
    assert "Would install gopher-mcp-python" in ended.out
    assert "does not provide the extra" not in ended.out + ended.err


# ---- commands that end ---------------------------------------------------------------------------------------------


@pytest.fixture
def account(scratch: Scratch, scenario_url: str) -> Iterator[dict[str, str]]:
    """The service that knows an account's servers, with the scenario server in it."""
    (scratch.folder / "v1").mkdir()
    (scratch.folder / "v1" / "mcp-servers").write_text(json.dumps({"servers": [{"name": "mail", "url": scenario_url}]}))
    with scratch.server("python -um http.server 0 --bind 127.0.0.1") as server:
        yield {"GOPHER_API_ROOT": server.url.rstrip("/")}


@example("docs/command-line.md: run: 1")
def test_run(scratch: Scratch, scenario_url: str, scripted_model: ScriptedModel, account: dict[str, str]) -> None:
    (scratch.folder / "servers.json").write_text(json.dumps({"servers": [{"name": "mail", "url": scenario_url}]}))
    script = replaced(text_of("docs/command-line.md: run: 1"), {
        "https://mcp.example.com/mcp": scenario_url, 'search_mail {"query"': 'plain {"text"',
        "what is new?": "what is new? (the scripted model calls: plain)",
    })  # fmt: skip
    ended = scratch.sh(script, {**scripted_model.environment(), **account}).check()
    direct, model, as_json, by_name = ended.out.splitlines()
    assert direct == "plain: from:ada"
    assert model == "FINAL: plain: ok"
    assert json.loads(as_json)["answer"] == "plain: ok"
    assert "Authorization was not given: cancel" in by_name


@example("README.md: In a program: 2")
def test_run_and_doctor(scratch: Scratch, scenario_url: str) -> None:
    script = replaced(text_of("README.md: In a program: 2"), {"https://mcp.example.com/mcp": scenario_url})
    ended = scratch.sh(script).check()
    assert "Authorization was not given: cancel" in ended.out and "engine" in ended.out


@example("docs/command-line.md: logout: 1")
def test_logout(scratch: Scratch) -> None:
    assert scratch.sh(text_of("docs/command-line.md: logout: 1")).check().out.count("nothing is stored") == 2


@example("docs/command-line.md: completion: 1")
def test_completion(scratch: Scratch) -> None:
    scratch.sh(text_of("docs/command-line.md: completion: 1")).check()
    written = {".local/share/bash-completion/completions/gopher-mcp", ".zfunc/_gopher-mcp",
               ".config/fish/completions/gopher-mcp.fish"}  # fmt: skip
    assert all("gopher-mcp" in (scratch.folder / name).read_text() for name in written)


def waiting(scratch: Scratch) -> str:
    """Stores a call that waits for a person, where the commands will look; its id."""
    from gopher_mcp_python.serve.opening import open_store

    keys = scratch.folder / "data" / "gopher-mcp" / "store-keys"
    store = open_store(f"sqlite:{scratch.folder / 'elicitations.db'}", keys)
    asked = store.create_confirmation("ada", tool="delete", arguments={"path": "a.txt"})
    store.close()
    return asked.id


@example("docs/store.md: The audit: 2")
def test_audit(scratch: Scratch) -> None:
    waiting(scratch)
    ended = scratch.sh(text_of("docs/store.md: The audit: 2")).check()
    assert "1 record" in ended.out and "the audit is whole" in ended.out
    assert (scratch.folder / "audit.anchor").read_text()


@example("docs/native-library.md: A shared library is missing: 1")
def test_openssl_is_named(scratch: Scratch, native_environment: dict[str, str]) -> None:
    folder = native_environment["GOPHER_MCP_OPENSSL11_PATH"]
    export = replaced(text_of("docs/native-library.md: A shared library is missing: 1"),
                      {"/path/to/usr/lib/x86_64-linux-gnu": folder})  # fmt: skip
    library = {"GOPHER_MCP_PYTHON_LIBRARY_PATH": native_environment["GOPHER_MCP_PYTHON_LIBRARY_PATH"]}
    ended = scratch.sh(f"{export}\ngopher-mcp doctor --json", library).check()
    assert json.loads(ended.out)["engine"] == "native"


@example("docs/live-smoke-test.md: Live smoke test: 1")
def test_the_live_test_by_hand(scratch: Scratch, scenario_url: str, scripted_model: ScriptedModel) -> None:
    """With a server and a model that need no account."""
    (scratch.folder / "examples").symlink_to(ROOT / "examples")
    script = replaced(text_of("docs/live-smoke-test.md: Live smoke test: 1"), {
        "https://your-gateway.example/mcp": scenario_url,
    })  # fmt: skip
    ended = scratch.sh(script, {**scripted_model.environment(), "PYTHON": sys.executable}).check()
    assert "Authorization was not given: cancel" in ended.out


# ---- servers -------------------------------------------------------------------------------------------------------


def call(url: str, token: str, body: Any = None) -> Any:
    """One request to REST, with JSON either way."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as reply:
        return json.loads(reply.read())


@each(["README.md: Somebody who answers elsewhere: 1", "docs/serve.md: Answering on a page or over REST: 1"])
def test_a_token_and_the_page(name: str, scratch: Scratch) -> None:
    add, serve = commands(text_of(name))
    token = scratch.sh(add).check().out.strip()
    with scratch.server(replaced(serve, {"elicitations.db": "elicitations.db --port 0"})) as server:
        assert call(f"{server.url}v1/mcp/elicitations", token) == {"elicitations": [], "next": None}


@example("docs/serve.md: REST: 1")
@pytest.mark.skipif(shutil.which("curl") is None, reason="the block is for curl")
def test_rest(scratch: Scratch) -> None:
    token = scratch.sh("gopher-mcp token add ada --scope answer").check().out.strip()
    asked = waiting(scratch)
    with scratch.server("gopher-mcp serve --store sqlite:elicitations.db --port 0") as server:
        script = replaced(text_of("docs/serve.md: REST: 1"), {
            "curl": "curl -s --noproxy '*'", "http://127.0.0.1:8123/": server.url, "el_...": asked,
        })  # fmt: skip
        told = scratch.sh(script.replace("\ncurl", "\necho; curl"), {"TOKEN": token}).check().out.splitlines()
    assert json.loads(told[0])["elicitations"][0]["id"] == asked
    assert json.loads(told[1])["status"] == "responded"


@example("docs/gateway.md: A gateway that asks before anything is destroyed: 1")
def test_a_gateway_and_its_page(scratch: Scratch, scenario_url: str) -> None:
    """A call through the gateway is held, confirmed on the other server, and runs then."""
    name = "docs/gateway.md: A gateway that asks before anything is destroyed: 1"
    for_calls, for_answers, gateway, serve = commands(text_of(name))
    calling, answering = (scratch.sh(one).check().out.strip() for one in (for_calls, for_answers))
    files = "python -m tests.support.mcp_server --stdio"
    gateway = replaced(gateway, {
        "https://mail.example.com/mcp": scenario_url, "npx server-files /srv": files,
        "--trust": "--port 0 --trust",
    })  # fmt: skip
    with scratch.server(gateway) as front, scratch.server(f"{serve.partition('#')[0]} --port 0") as page:
        run = f"gopher-mcp run {front.url} mail_plain --token - --elicitation off"  # off: nobody to ask in the call
        first = scratch.sh(f"echo {calling} | {run}")
        held = call(f"{page.url}v1/mcp/elicitations", answering)["elicitations"]
        assert len(held) == 1, first
        call(f"{page.url}v1/mcp/elicitations/{held[0]['id']}/respond", answering, {"response": {"confirmed": True}})
        assert scratch.sh(f"echo {calling} | {run}").check().out == "plain: ok\n"


@example("docs/contributing.md: A provider to sign in to: 1")
def test_a_provider_to_sign_in_to(scratch: Scratch) -> None:
    provider, run = commands(text_of("docs/contributing.md: A provider to sign in to: 1"))
    from tests.support.browsing import browser_file

    with scratch.server(provider) as server:
        url = json.loads(server.said)["url"]
        script = replaced(run, {"http://127.0.0.1:PORT/mcp": url})
        ended = scratch.sh(script, {"BROWSER": str(browser_file(scratch.folder))}).check()
    assert "ada" in ended.out
