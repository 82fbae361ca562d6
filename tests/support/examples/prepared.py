"""What the Python blocks of the documents need to run, and how it shows that they did what they say.

A block without an entry runs as it stands, and its own assertions are what it is held to. In the texts below DEMO_URL,
SCENARIO_URL and PROTECTED_URL become the addresses of real servers: the demo's, that of tests/support/mcp_server.py,
and one that wants a sign-in (tests/support/idp.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MODEL, WINDOWS, PERSON, KEYRING = "model", "windows", "person", "keyring"  # for `Prepared.needs`


@dataclass(frozen=True)
class Prepared:
    """How one block is run.

    Attributes:
        replace: what a reader puts in; each has to be in the block.
        before, after: code around it: what a fragment takes for granted, and its use.
        shows: what the program must print for it to count as run.
        needs: the scripted model; Qt without a display; somebody who signs in at the browser; a keyring.
    """

    replace: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    after: str = ""
    shows: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


# ---- pieces --------------------------------------------------------------------------------------------------------

GMAIL = "get_gmail_users_get_profile"
SERVER = {"https://mcp.example.com/mcp": "SCENARIO_URL"}
PROFILE = {'"get_profile", {"user": "me"}': f'"{GMAIL}"'}
CANCELLED = "Authorization was not given: cancel"
ADA = "ada@example.com"
RUN_WITH_OPTIONS = f"""
from gopher_mcp_python import GopherAgent
with GopherAgent.create_with_url("DirectProvider", "direct", "SCENARIO_URL", options) as agent:
    print(agent.engine, agent.run("get mail profile, using {GMAIL}"))
"""
APPLICATION = """
from PySide6.QtWidgets import QApplication
from tests.support import desk
app = QApplication([])
"""
ANSWERS = 'def ask_my_user(request):\n    return "accept"\n\n\nurl = "SCENARIO_URL"\n'
SIGN_IN = {"https://mcp.example.com/mcp": "PROTECTED_URL"}

# ---- the blocks ----------------------------------------------------------------------------------------------------

PREPARED: dict[str, Prepared] = {
    # README
    "README.md: A host where nobody sits at a terminal: 1": Prepared(after=RUN_WITH_OPTIONS, shows=(ADA,)),
    "README.md: Servers that want a sign-in first: 1": Prepared(
        after=RUN_WITH_OPTIONS.replace("SCENARIO_URL", "PROTECTED_URL").replace(GMAIL, "whoami")
        + "import keyring\nprint(len(keyring.get_keyring().entries()) > 0)",
        shows=("ada", "True"), needs=(PERSON, KEYRING),
    ),
    "README.md: In another agent framework, or none: 1": Prepared(
        PROFILE, after='import asyncio\nprint(asyncio.run(profile("SCENARIO_URL")), callback.on_message)',
        shows=(CANCELLED,),
    ),
    # desktop
    "docs/desktop.md: In a desktop program: 2": Prepared(
        after=f"{APPLICATION}print(type(options_for(QWidget()).elicitation.handler).__name__)",
        shows=("QtElicitationHandler",), needs=(WINDOWS,),
    ),
    "docs/desktop.md: Where the agent may run: 1": Prepared(
        after=f"""{APPLICATION}
worker, told = Worker(), []
worker.finished.connect(told.append)
worker.start("SCENARIO_URL", "{GMAIL}")
print(desk.wait_until(lambda: told))  # without a display there is no window: the page is printed, and cancelled
""",
        shows=(CANCELLED,), needs=(WINDOWS,),
    ),
    "docs/desktop.md: Where the agent may run: 2": Prepared(
        after=f"""{APPLICATION}
import asyncio
asking = desk.Asking(lambda: asyncio.run(profile("SCENARIO_URL")))
desk.press(desk.wait_for()[0], "Decline")
print(asking.outcome())
""",
        shows=("not given: decline",), needs=(WINDOWS,),
    ),
    "docs/desktop.md: Ctrl-C: 1": Prepared(
        after="""
import os
app = QApplication([])
awake = quit_on_ctrl_c(app)
QTimer.singleShot(0, lambda: os.kill(os.getpid(), signal.SIGINT))
print("ended with", app.exec())
""",
        shows=("ended with 0",), needs=(WINDOWS,),
    ),
    "docs/desktop.md: A dialog without an agent: 1": Prepared(
        after=f"""{APPLICATION}
import asyncio
from mcp.types import ElicitRequestFormParams
operator = Operator()
form = ElicitRequestFormParams(message="Who is it?", requested_schema=desk.FORM)
asking = desk.Asking(lambda: asyncio.run(operator.ask(form)))
desk.send_name(desk.wait_for()[0], "Ada")
answer = asking.outcome()
print(answer.action, answer.content)
""",
        shows=("accept {'name': 'Ada'}",), needs=(WINDOWS,),
    ),
    # what is asked
    "docs/elicitation.md: Where a person is asked: 1": Prepared(
        after='options = {"elicitation": {"handler": HandlerChain(store=ask_elsewhere)}}\n' + RUN_WITH_OPTIONS,
        shows=(CANCELLED,),
    ),
    "docs/elicitation.md: Choices: 1": Prepared(
        after=f'options = GopherAgentCreateOptions(elicitation={{"handler": "decline"}})\n{RUN_WITH_OPTIONS}',
        shows=("not given: decline",),
    ),
    "docs/elicitation.md: A handler of your own: 1": Prepared(after=RUN_WITH_OPTIONS, shows=(ADA,)),
    "docs/engines.md: Which one runs: 1": Prepared(after=RUN_WITH_OPTIONS, shows=("embedded",)),
    "docs/headless.md: Without a terminal: 1": Prepared(after=RUN_WITH_OPTIONS, shows=("not given: decline",)),
    "docs/events.md: Events: 1": Prepared(
        {"https://mcp.example/mcp": "DEMO_URL"}, needs=(MODEL,),
        shows=(f"calling {GMAIL}", "somebody has to answer: Demo Mail needs your permission", "FINAL: "),
    ),
    "docs/native-library.md: The native library: 2": Prepared(shows=("True",)),
    # signing in
    "docs/oauth.md: Signing in to MCP servers: 1": Prepared(SIGN_IN, shows=("ada",), needs=(PERSON,)),
    # the store and the servers in front of it
    "docs/gateway.md: A gateway that asks before anything is destroyed: 2": Prepared(
        {"https://mail.example.com/mcp": "SCENARIO_URL", "store.close()": """
import asyncio
from gopher_mcp_python import McpToolset
from tests.support.hosting import Hosted
async def call(url):
    async with McpToolset(url) as toolset:
        return await toolset.call_tool("plain")
hosted = Hosted(app, "the gateway")
print(asyncio.run(call(hosted.base + "/mcp")))
hosted.close()
store.close()
"""},
        shows=("gopher-mcp/confirmation", "'status': 'held'"),
    ),
    "docs/serve.md: In a program of yours: 1": Prepared(
        {"store.close()": """
import urllib.request
from tests.support.hosting import Hosted
store.create_confirmation("ada", tool="delete", arguments={"path": "a.txt"})
hosted = Hosted(app, "the page")
headers = {"Authorization": f"Bearer {token}", "Host": "localhost:8000"}
request = urllib.request.Request(hosted.base + "/v1/mcp/elicitations", headers=headers)
print(urllib.request.urlopen(request).read().decode())
hosted.close()
store.close()
"""},
        shows=('"tool":"delete"',),
    ),
    # the toolset
    "docs/toolset.md: The toolset: 1": Prepared(
        {"https://mcp.example.com/mcp": "DEMO_URL", **PROFILE},
        shows=(f"asks in {GMAIL}: Demo Mail needs", f"{GMAIL} {{", "Not signed in"),
    ),
    "docs/toolset.md: Pages: 1": Prepared(
        {'print("please open", request.url)': 'print("please open", request.url, sep="\\n")'},  # as the canary wants it
        after="""
from gopher_mcp_python import McpToolset
async def main():
    async with McpToolset("SCENARIO_URL", elicitation_handler=ask) as toolset:
        asyncio.get_running_loop().call_later(0.1, done.set)
        print(await toolset.call_tool("error_32042"))
asyncio.run(main())
""",
        shows=("please open\nhttp", "'output'"),
    ),
    "docs/frameworks.md: Anything else: 1": Prepared(
        {"...  # the model chooses": f'chosen, arguments = "{GMAIL}", {{}}'},
        before=f"from gopher_mcp_python import McpToolset\n{ANSWERS}",
        after='print(len(functions), response)', shows=(ADA,),
    ),
    "docs/frameworks.md: What the callback does: 1": Prepared(
        before=ANSWERS,
        after=f"""
from mcp import Client
async with Client("SCENARIO_URL", elicitation_callback=callback, mode="legacy") as client:
    print((await client.call_tool("{GMAIL}")).content)
""",
        shows=(ADA,),
    ),
    "docs/frameworks.md: The MCP SDK's own client: 1": Prepared(
        {"...": f'print((await client.call_tool("{GMAIL}")).content)'},
        before='from mcp import Client\nfrom gopher_mcp_python import elicitation_callback\nurl = "SCENARIO_URL"\n',
        shows=(CANCELLED,),
    ),
}  # fmt: skip

# ---- other frameworks, each in its environment (tests/support/frameworks) -------------------------------------------

FRAMEWORKS: dict[str, dict[str, Prepared]] = {
    "adk": {
        "docs/frameworks.md: Google ADK: 2": Prepared(
            SERVER,
            before=f"from google.adk.agents import LlmAgent\n{ANSWERS}",
            after=f"""
found = {{tool.name: tool for tool in await agent.canonical_tools()}}
print(await found["{GMAIL}"].run_async(args={{}}, tool_context=None))
await toolset.aclose()
""",
            shows=(ADA,),
        ),
        "docs/frameworks.md: Google ADK: 3": Prepared(
            {"McpToolset(": "toolset = McpToolset(", "...": "StreamableHTTPConnectionParams(url=url)"},
            before="from google.adk.tools.mcp_tool import McpToolset\n"
            "from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams\n" + ANSWERS,
            after="""
print("plain" in [tool.name for tool in await toolset.get_tools()])
await toolset.close()
""",
            shows=("True",),
        ),
    },
    "fastmcp": {
        "docs/frameworks.md: LangChain: 2": Prepared(
            SERVER,
            # The package langchain is no part of the environment; below is what its agent does when a model calls.
            before=f"{ANSWERS}model = None\n\n\ndef create_agent(model, tools):\n"
            "    return {tool.name: tool for tool in tools}\n\n\n",
            after=f"""
    call = {{"type": "tool_call", "name": "{GMAIL}", "args": {{}}, "id": "1"}}
    print(await agent["{GMAIL}"].ainvoke(call))
""",
            shows=(ADA,),
        ),
        "docs/frameworks.md: FastMCP: 1": Prepared(
            before=f"from fastmcp import Client\n{ANSWERS}",
            after=f'async with client:\n    print((await client.call_tool("{GMAIL}")).content)\n', shows=(ADA,),
        ),
        "docs/frameworks.md: pydantic-ai: 1": Prepared(
            before="from pydantic_ai import Agent\nfrom pydantic_ai.mcp import MCPToolset\n"
            f"from pydantic_ai.models.test import TestModel\n{ANSWERS}model = TestModel(call_tools=['{GMAIL}'])\n",
            after='print((await agent.run("my profile")).output)\n', shows=(ADA,),
        ),
    },
    "adapters": {
        "docs/frameworks.md: langchain-mcp-adapters: 1": Prepared(
            before="from langchain_mcp_adapters.callbacks import Callbacks\n"
            "from langchain_mcp_adapters.client import MultiServerMCPClient\n" + ANSWERS
            + 'servers = {"mail": {"transport": "streamable_http", "url": url}}\n',
            after=f"""
tools = {{tool.name: tool for tool in await client.get_tools()}}
print(await tools["{GMAIL}"].ainvoke({{}}))
""",
            shows=(ADA,),
        ),
    },
}  # fmt: skip
