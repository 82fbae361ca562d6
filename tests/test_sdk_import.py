"""The SDK's client is imported without its server, and a program notices nothing of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tests.support import children

LOAD = (
    "import gc, json, pickle, sys, threading, importlib, types\n"
    "from gopher_mcp_python.sdk_import import load\n"
    "before = list(sys.meta_path)\n"
    "load('gopher_mcp_python.engines.embedded', 'mcp.client.streamable_http')\n"
)


def told(code: str, **options: Any) -> Any:
    """What a program prints last, as JSON."""
    return json.loads(children.python(code, **options).check().out.splitlines()[-1])


def test_neither_the_server_nor_the_packages_are_imported() -> None:
    names = set(told(LOAD + "print(json.dumps(sorted(sys.modules)))"))
    assert {"mcp.client.session", "mcp.client.streamable_http", "gopher_mcp_python.engines.embedded"} <= names
    assert not [name for name in names if name.startswith(("mcp.server", "starlette", "uvicorn"))]
    assert not {"mcp", "mcp.client"} & names


@pytest.mark.parametrize("state", ["enable", "disable"])
def test_the_collector_is_as_it_was(state: str) -> None:
    begin = f"import gc; gc.{state}()\n"
    assert told(begin + LOAD + "print(json.dumps(gc.isenabled()))") is (state == "enable")
    failing = "\ntry: load('mcp.client.nothing')\nexcept ModuleNotFoundError: print(json.dumps(gc.isenabled()))"
    assert told(begin + LOAD + failing) is (state == "enable")


def test_garbage_of_a_program_is_still_found_and_what_it_has_frozen_stays_so() -> None:
    begin = "import gc, weakref\nclass Own: pass\none = Own(); one.itself = one; seen = weakref.ref(one); del one\n"
    end = "counted = gc.get_freeze_count(); gc.collect(); print(json.dumps([counted, seen() is None]))"
    assert told(begin + LOAD + end) == [0, True]
    frozen = "gc.collect(); gc.freeze(); known = gc.get_freeze_count()\n"
    end = "print(json.dumps([known > 0, abs(gc.get_freeze_count() - known) < known / 2]))"
    assert told(begin + frozen + LOAD + end) == [True, True]


# What a program does with the SDK; run with and without us before it.
USE = """
import importlib, json, pickle, sys, types
import mcp
import mcp.server
from mcp import ClientSession, types as aliased
from mcp.client import session as by_package
import mcp.client.session as by_path
from mcp.client import *
from mcp.shared.exceptions import MCPError
facts = {
    "kinds": [type(mcp) is types.ModuleType, type(mcp.client) is types.ModuleType],
    "names": [sorted(dir(mcp)), sorted(vars(mcp)), sorted(mcp.__all__), sorted(set(dir(mcp.client)))],
    "same": [
        by_package is by_path is sys.modules["mcp.client.session"] is mcp.client.session,
        ClientSession is by_path.ClientSession is mcp.client.ClientSession,
        mcp.MCPError is MCPError, mcp.client.client.ClientSession is ClientSession, aliased is mcp.types,
        Client is mcp.Client,
    ],
    "loaders": [type(one).__name__ for one in (mcp.__loader__, mcp.__spec__.loader, mcp.client.__loader__)],
    "files": [mcp.__file__, mcp.__spec__.origin, list(mcp.__path__), mcp.client.__file__],
    "pickled": pickle.loads(pickle.dumps(ClientSession)) is ClientSession,
    "reloaded": [importlib.reload(one) is one for one in (mcp, mcp.client)] + [mcp.ClientSession is ClientSession],
    "finders": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
}
print(json.dumps(facts))
"""


def test_a_program_that_uses_the_sdk_afterwards_finds_what_it_would_have_found() -> None:
    loaded_only = (
        "import importlib\nfor name in ('mcp', 'gopher_mcp_python.engines.embedded', 'mcp.client.streamable_http'):\n"
        "    importlib.import_module(name)\n"
    )
    assert told(LOAD + USE) == told(loaded_only + USE)


def test_a_program_that_has_imported_the_sdk_keeps_it() -> None:
    begin = "import mcp, sys; real, known = mcp, dict(sys.modules)\n"
    end = (
        "print(json.dumps([mcp is real, sys.modules['mcp'] is real, before == sys.meta_path,\n"
        "    all(sys.modules[name] is known[name] for name in known)]))"
    )
    assert told(begin + LOAD + end) == [True] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children of one warm process, for speed")
def test_any_part_of_the_sdk_can_be_imported_first_afterwards() -> None:
    parts = (
        "mcp.client.session_group mcp.client.stdio mcp.client.auth mcp.server.mcpserver mcp.types mcp.shared.memory"
    ).split()
    code = (
        LOAD + "import os\n"
        f"failed = []\nfor name in {parts!r}:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            importlib.import_module(name); import mcp.server, mcp.client\n"
        "            code = 0 if mcp.client.session and mcp.server and mcp.ClientSessionGroup else 1\n"
        "        except BaseException as error:\n"
        "            print(name, repr(error), file=sys.stderr); code = 1\n"
        "        os._exit(code)\n"
        "    if os.waitpid(child, 0)[1]: failed.append(name)\n"
        "print(json.dumps(failed))"
    )
    assert told(code) == []


def with_helper(folder: Path, source: str, code: str) -> Any:
    """Runs code that may import the module `helper`."""
    (folder / "helper.py").write_text(source)
    return told(f"import sys; sys.path.insert(0, {str(folder)!r})\n" + code)


def test_a_thread_that_imports_the_sdk_meanwhile_gets_the_real_one(tmp_path: Path) -> None:
    helper = """
import threading
found, has_it = {}, threading.Event()
def other():
    import mcp
    from mcp import client
    has_it.set()
    found["class"], found["inner"] = mcp.ClientSession, client.Client
    found["server"] = mcp.server.Server
    import mcp.client.session_group
thread = threading.Thread(target=other)
thread.start()
has_it.wait(30)
"""
    code = (
        "import json; from gopher_mcp_python.sdk_import import load\n"
        "load('helper', 'mcp.client.session')\n"
        "import helper; helper.thread.join(60)\n"
        "import mcp, mcp.server\n"
        "found = helper.found\n"
        "print(json.dumps([found['class'] is mcp.ClientSession, found['inner'] is mcp.client.Client,\n"
        "    found['server'] is mcp.server.Server]))"
    )
    assert with_helper(tmp_path, helper, code) == [True] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_meanwhile_can_load_by_itself(tmp_path: Path) -> None:
    helper = """
import os, sys, threading
from gopher_mcp_python import sdk_import
codes = []
def other():
    child = os.fork()
    if not child:
        sdk_import.load("mcp.client.session")
        import mcp
        os._exit(0 if mcp.client.session.ClientSession is mcp.ClientSession and len(sys.meta_path) == known else 1)
    codes.append(os.waitpid(child, 0)[1])
known = len(sys.meta_path) - 1
thread = threading.Thread(target=other)
thread.start()
thread.join()
"""
    code = (
        "import json; from gopher_mcp_python.sdk_import import load\n"
        "load('helper', 'mcp.client.session'); import helper, mcp; print(json.dumps([helper.codes, bool(mcp.Client)]))"
    )
    assert with_helper(tmp_path, helper, code) == [[0], True]


def test_the_engine_is_imported_while_the_service_is_waited_for() -> None:
    code = (
        "import json, sys, time\n"
        "from gopher_mcp_python import AgentError, GopherAgent, ServerConfig\n"
        "seen = []\n"
        "def fetch(key, route=None):\n"
        "    end = time.monotonic() + 60\n"
        "    while 'mcp.client.streamable_http' not in sys.modules and time.monotonic() < end: time.sleep(0.01)\n"
        "    seen.append('mcp.client.streamable_http' in sys.modules)\n"
        "    return json.dumps({'servers': [{'name': 'a', 'url': 'http://127.0.0.1:9/mcp'}]})\n"
        "ServerConfig.fetch = staticmethod(fetch)\n"
        "try: GopherAgent.create_with_server_id('DirectProvider', 'm', 'key', 'id', {'oauth': {'mode': 'disabled'}})\n"
        "except AgentError as error: seen.append(type(error).__name__)\n"
        "print(json.dumps([seen, 'mcp.server' in sys.modules]))"
    )
    assert told(code) == [[True, "ConnectionError"], False]


def test_an_sdk_that_needs_its_packages_is_imported_the_usual_way(tmp_path: Path) -> None:
    code = (
        "import gc, json; from gopher_mcp_python.sdk_import import load\n"
        "load('helper'); import helper, mcp\n"
        "print(json.dumps([helper.taken is mcp.ClientSession, gc.isenabled()]))"
    )
    assert with_helper(tmp_path, "import mcp; taken = mcp.ClientSession", code) == [True, True]


def test_a_hook_on_the_import_of_the_sdk_still_gets_its_turn(tmp_path: Path) -> None:
    """As tracing tools install one."""
    helper = """
import importlib.util, sys
seen, asking = [], []
class Hook:
    @staticmethod
    def find_spec(name, path, target=None):
        if name != "mcp" or asking:
            return None
        asking.append(name)
        spec = importlib.util.find_spec(name)
        asking.clear()
        run = spec.loader.exec_module
        class Loader:
            create_module = staticmethod(spec.loader.create_module)
            @staticmethod
            def exec_module(module):
                run(module)
                seen.append(hasattr(module, "ClientSession"))
        spec.loader = Loader
        return spec
sys.meta_path.insert(0, Hook)
"""
    code = "import json, helper\n" + LOAD + "import mcp; print(json.dumps([helper.seen, bool(mcp.client.session)]))"
    assert with_helper(tmp_path, helper, code) == [[True], True]


def test_models_are_built_when_they_are_needed_by_whatever_thread() -> None:
    code = (
        LOAD + "import pydantic, mcp_types, mcp_types.methods as methods, mcp_types._wire_base as base\n"
        "deferred = [one for one in base.WireModel.__subclasses__() if not one.__pydantic_complete__]\n"
        "known = mcp_types._types.MCPModel.__subclasses__()\n"
        "public = [one.__name__ for one in known if not one.__pydantic_complete__]\n"
        "class Own(base.WireModel): x: int\n"
        "found, start = [], threading.Barrier(8)\n"
        "result = {'content': [{'type': 'text', 'text': 'x'}]}\n"
        "def use():\n"
        "    start.wait()\n"
        "    for version in ('2025-06-18', '2025-11-25'):\n"
        "        found.append(methods.parse_server_result('tools/call', version, result).content[0].text)\n"
        "    try: methods.validate_server_result('tools/call', '2025-11-25', {'content': 5})\n"
        "    except pydantic.ValidationError: found.append('refused')\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(json.dumps([bool(deferred), public, Own.__pydantic_complete__, sorted(found), 'defer_build' in "
        "base.WireModel.model_config]))"
    )
    lazily, public, own, found, left = told(code)
    assert (own, left) == (True, False)
    assert public == told(
        "import json, mcp_types\n"
        "known = mcp_types._types.MCPModel.__subclasses__()\n"
        "print(json.dumps([one.__name__ for one in known if not one.__pydantic_complete__]))"
    )
    assert found == ["refused"] * 8 + ["x"] * 16
    assert lazily is (tuple(map(int, pydantic.VERSION.split(".")[:2])) >= (2, 14))
