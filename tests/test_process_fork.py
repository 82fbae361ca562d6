"""A forked child: it refuses inherited agents, releases none of them, and can make its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from tests.support import children
from tests.support.servers import McpServer
from tests.support.variants import Variant, on_both

FORK = """
import gc, json, os, sys, threading
from gopher_mcp_python import AgentError, GopherAgent
engine, provider, url = sys.argv[1:]

def create():
    options = {"engine": engine, "elicitation": {"handler": "decline"}}
    return GopherAgent.create_with_url(provider, "scripted", url, options)

def in_child(agent):
    facts = {}
    try:
        agent.run("plain", 5000)
    except AgentError as error:
        facts["refused"] = str(error)
    agent.dispose()
    agent.dispose()
    del agent
    gc.collect()
    with create() as own:
        facts["own"] = own.run("decline_aware", 20000)
    return facts

agent = create()
before = agent.run("plain")
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        json.dump(in_child(agent), out)
    os._exit(0)
os.close(writing)
with os.fdopen(reading) as told:
    facts = json.loads(told.read() or "{}")
facts["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
facts["before"], facts["after"] = before, agent.run("decline_aware")
agent.dispose()
print(json.dumps(facts))
"""
DURING_RUN = """
import json, os, sys, threading
from gopher_mcp_python import AgentError, GopherAgent
engine, provider, url = sys.argv[1:]
called, go = threading.Event(), threading.Event()

def handler(request):
    called.set()
    go.wait(30)
    return "accept"

agent = GopherAgent.create_with_url(provider, "scripted", url, {"engine": engine, "elicitation": {"handler": handler}})
texts = []
runner = threading.Thread(target=lambda: texts.append(agent.run("decline_aware")))
runner.start()
assert called.wait(30)
child = os.fork()
if child == 0:
    try:
        agent.run("plain", 2000)
        os._exit(1)
    except AgentError:
        agent.dispose()
        os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go.set()
runner.join(30)
agent.dispose()
print(json.dumps({"child": code, "texts": texts}))
"""


@on_both
def test_a_child_refuses_an_inherited_agent_and_makes_its_own(
    server: McpServer, environment_for: Callable[[Variant], dict[str, str]], variant: Variant
) -> None:
    argv = [sys.executable, "-c", FORK, variant.engine, variant.provider, server.url]
    ended = children.run(argv, env=environment_for(variant), timeout=90).check()
    facts = json.loads(ended.out)
    assert facts["child"] == 0
    assert "fork" in facts["refused"]
    assert "action: decline" in facts["own"]
    assert "plain: ok" in facts["before"] and "action: decline" in facts["after"], "the parent's agent still works"
    assert server.actions() == ["decline", "decline"]


@on_both
def test_a_fork_while_a_prompt_is_open_leaves_the_parent_alone(
    server: McpServer, environment_for: Callable[[Variant], dict[str, str]], variant: Variant
) -> None:
    argv = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", DURING_RUN]
    argv += [variant.engine, variant.provider, server.url]
    ended = children.run(argv, env=environment_for(variant), timeout=90).check()
    facts = json.loads(ended.out)
    assert facts["child"] == 0 and len(facts["texts"]) == 1 and "action: accept" in facts["texts"][0]
    assert server.actions() == ["accept"]
