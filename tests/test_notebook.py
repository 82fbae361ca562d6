"""Asking in a notebook: a real kernel, and a person who answers below its cells."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.handlers.notebook import NotebookElicitationHandler, NotebookPrompt
from tests.support import children
from tests.support.kernel import Kernel, kernel_environment
from tests.support.servers import McpServer

PRELUDE = """
import asyncio, json, os, threading, warnings
from gopher_mcp_python import GopherAgent, GopherAgentCreateOptions, McpToolset
from gopher_mcp_python import GopherAgentElicitationRequest as Request
from gopher_mcp_python.handlers.notebook import NotebookElicitationHandler, NotebookPrompt
from gopher_mcp_python.handlers.watch import Watch

prompt = NotebookPrompt()

def page(url="https://login.example.com/x?state=s3cret&a=%C3%A9", message="Please sign in", **more):
    return Request("url", "id-1", message, url, server="mail.test", **more)

def form(properties, *required, message="Who are you?", **more):
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return Request("form", message=message, requested_schema=schema, server="mail.test")

def ask(request, watch=None):
    answer = prompt.ask(request, watch or Watch())
    print("answer:", answer.action, json.dumps(answer.content))

def agent_for(url, **elicitation):
    elicitation = {"handler": NotebookElicitationHandler(), **elicitation}
    return GopherAgent.create_with_url("DirectProvider", "m", url, GopherAgentCreateOptions(elicitation=elicitation))
"""
LINK = "https://login.example.com/x?state=s3cret&a=%C3%A9"
TAKEN_OUT = "(taken out of the notebook"
SEND = "Enter sends them"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Kernel]]:
    started = [Kernel(tmp_path_factory.mktemp("kernel"))]
    started[0].run(PRELUDE)
    yield started
    started[0].close()


@pytest.fixture
def kernel(kernels: list[Kernel], tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """One for all tests; a new one when a test that failed has left a cell that waits."""
    if kernels[0].is_busy:
        kernels.pop().close()
        kernels.append(Kernel(tmp_path_factory.mktemp("kernel")))
        kernels[0].run(PRELUDE)
    return kernels[0]


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_is_a_link_until_it_is_answered(kernel: Kernel) -> None:
    cell = kernel.begin("ask(page())")
    asked = cell.question()
    cell.shows("Open this URL")
    assert "mail.test asks you to open a page in your browser.\n  | Please sign in\n" in cell.text
    assert f"\nHost: login.example.com   (belongs to: example.com)\nOpen this URL to continue:\n{LINK}\n" in cell.text
    assert cell.html_text.split("\n") == cell.text.split("\n")
    assert [(tag, attributes) for tag, attributes in elements(cell.html) if tag == "a"] == [
        ("a", {"href": LINK, "target": "_blank", "rel": "noopener noreferrer", "referrerpolicy": "no-referrer"})
    ]
    cell.reply("", asked)
    assert "answer: accept null" in cell.end().streams and "is still there" not in cell.text
    assert TAKEN_OUT in cell.text and "s3cret" not in cell.text + cell.html  # notebooks are saved and shared


@pytest.mark.parametrize(
    ("typed", "action"), [("done", "accept"), ("decline", "decline"), ("cancel", "cancel"), ("\x04", "cancel")]
)
def test_a_page_is_answered_with_the_words_of_the_terminal(kernel: Kernel, typed: str, action: str) -> None:
    assert f"answer: {action} null" in kernel.run("ask(page())", "what?", typed).streams


def test_a_page_that_must_not_be_opened_is_no_link(kernel: Kernel) -> None:
    cell = kernel.run("ask(page('javascript:alert(1)'))")
    assert "answer: decline" in cell.streams and "It was refused: only http and https" in cell.text
    assert {tag for tag, _ in elements(cell.html)} == {"pre"}


def test_warnings_of_a_page_that_looks_like_another(kernel: Kernel) -> None:
    cell = kernel.begin("ask(page('https://accounts.google.com@evil.example/x'))")
    cell.answer("decline")
    assert "Host: evil.example" in cell.end().text
    assert "WARNING: There is text before an @ sign" in cell.text


# ---- forms -----------------------------------------------------------------------------------------------------------

EVERY_KIND = {
    "name": {"type": "string", "minLength": 2}, "count": {"type": "integer", "minimum": 1},
    "ratio": {"type": "number"}, "agreed": {"type": "boolean", "default": False},
    "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "m", "title": "Medium"}]},
    "fruit": {"type": "array", "items": {"enum": ["apple", "banana", "cherry"]}, "maxItems": 2},
    "mail": {"type": "string", "format": "email"}, "note": {"type": "string", "default": "hello"},
}  # fmt: skip


def test_a_form_of_all_kinds_from_run(kernel: Kernel, server: McpServer) -> None:
    params = {
        "mode": "form", "message": "Fill it in",
        "requestedSchema": {"type": "object", "properties": EVERY_KIND, "required": ["name"]},
    }  # fmt: skip
    query = f"raw_elicit {json.dumps({'params': params})}"
    cell = kernel.begin(f"with agent_for({server.url!r}) as agent:\n    print(agent.run({query!r}))")
    for prompt, line in (
        ("Name", "A"), ("Name", "Ada"), ("Count", "3"), ("Ratio", "1.5"), ("Agreed [no]", "y"), ("Size", "medium"),
        ("Fruit", "1,3"), ("Mail", "back"), ("Fruit", ""), ("Mail", ""), ("Note [hello]", ""),
        (SEND, "1"), ("Name [Ada]", "Bob"), (SEND, "what?"), (SEND, ""),
    ):  # fmt: skip
        cell.answer(line, to=prompt)
    cell.end()
    content = {
        "name": "Bob", "count": 3, "ratio": 1.5, "agreed": True, "size": "m", "fruit": ["apple", "cherry"],
        "note": "hello",
    }  # fmt: skip
    assert json.loads(cell.streams) == {"action": "accept", "content": content}
    for text in (
        "asks you to fill in 8 fields", "(1 of 8, required) Name\n  at least 2 characters",
        "Name needs 1 more character",
        "  1  Small\n  2  Medium", "5  Size: Medium", "  7  (left out) Mail\n  8  (default) Note: hello",
        "That is no answer. The fields are 1 to 8.",
    ):  # fmt: skip
        assert text in cell.text
    assert cell.html_text.split("\n") == cell.text.split("\n")


def test_a_form_can_be_declined_and_cancelled(kernel: Kernel) -> None:
    for typed, action in (("decline", "decline"), ("cancel", "cancel"), ("\x04", "cancel")):
        cell = kernel.begin("ask(form({'a': {'type': 'string'}}))")
        cell.answer(typed, to="A (Enter: leave out):")
        assert f"answer: {action} null" in cell.end().streams
    assert "answer: accept {}" in kernel.run("ask(form({}))", "maybe", "y").streams


def test_what_looks_like_a_secret_is_masked_and_shown_nowhere(kernel: Kernel) -> None:
    cell = kernel.begin("ask(form({'apiToken': {'type': 'string'}, 'b': {'type': 'string'}}))")
    cell.answer("hush-hush", to="Api token", hidden=True)
    cell.answer("", to="B")
    cell.answer("1", to=SEND)
    cell.answer("hush-two", to="[not shown]", hidden=True)
    cell.question()
    cell.shows("(not shown)")
    assert "WARNING: this looks like a secret" in cell.text
    assert "hush" not in cell.text + cell.html + cell.streams + json.dumps([one["content"] for one in cell.asked])
    cell.reply("decline", cell.asked[-1])
    cell.end()


# ---- hostile texts ---------------------------------------------------------------------------------------------------

HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href='https://evil.example'>",
    "\u202emoc.elpmaxe\u2066\u200b\x1b]8;;https://evil.example\x07\x08\r\x00",
    r"$\href{javascript:alert(1)}{x}$ &lt;b&gt; [x](javascript:alert(1)) <!-- ",
    "line\nOpen this URL to continue:\nhttps://login.example.com/x?state=s3cret&a=%C3%A9",
)


@pytest.mark.parametrize("text", HOSTILE, ids=["elements", "control", "typeset", "copied"])
def test_text_of_servers_stays_text(kernel: Kernel, text: str) -> None:
    properties = {
        "f": {"type": "string", "title": text, "description": text, "default": text},
        "g": {"oneOf": [{"const": "1", "title": text}, {"const": "2", "title": "two"}]},
    }
    kernel.run(f"text, properties = {text!r}, {properties!r}")
    for code in ("ask(page(message=text + chr(0xD800), tool=text))", "ask(form(properties, message=text, title=text))"):
        cell = kernel.begin(code)
        asked = cell.question()
        cell.shows("(1 of 2)" if "form" in code else "Open this URL to continue:\n")
        check_harmless(cell, asked)
        if "form" in code:
            cell.reply("", asked)
            cell.answer("1", to="Enter: leave out")
            asked = cell.question()
            cell.shows("Your answers")
            check_harmless(cell, asked)
        cell.reply("cancel", asked)
        cell.end()


def check_harmless(cell: Any, asked: dict[str, Any]) -> None:
    shown = cell.text + cell.html + asked["content"]["prompt"]
    assert not [character for character in shown if character != "\n" and not character.isprintable()]
    assert {tag for tag, _ in elements(cell.html)} <= {"pre", "a"}
    assert [attributes["href"] for tag, attributes in elements(cell.html) if tag == "a"] in ([], [LINK])
    outside = "".join(text for place, text in texts(cell.html) if "pre" not in place)
    assert not outside.strip(), "text where frontends typeset formulas"


# ---- when nobody answers ---------------------------------------------------------------------------------------------


def test_an_interrupt_of_run_cancels(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(f"with agent_for({server.url!r}) as agent:\n    agent.run('decline_aware')")
    cell.question()
    kernel.interrupt()
    cell.end(error="KeyboardInterrupt")
    assert TAKEN_OUT in cell.text


def test_an_interrupt_of_a_cell_that_awaits_cancels(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(toolset_of(server, "await toolset.call_tool('decline_aware', {})"))
    cell.question()
    kernel.interrupt()
    cell.end(error="CancelledError")
    kernel.run(NOBODY_ASKS)


def test_an_interrupt_is_noticed_by_a_cell_in_which_nothing_else_happens(kernel: Kernel) -> None:
    cell = kernel.begin("await asyncio.to_thread(prompt.ask, page(), Watch())")
    cell.question()
    kernel.interrupt()
    cell.end(error="CancelledError")
    kernel.run("ask(form({}))", "y")


def test_an_interrupt_reaches_whoever_asks_directly(kernel: Kernel) -> None:
    cell = kernel.begin("ask(page())")
    cell.question()
    kernel.interrupt()
    cell.end(error="KeyboardInterrupt")
    assert TAKEN_OUT in cell.text


def test_a_limit_ends_the_wait(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(f"with agent_for({server.url!r}, timeout_ms=700) as agent: print(agent.run('decline_aware'))")
    cell.question()
    assert "action: cancel" in cell.end().streams
    kernel.run(NOBODY_ASKS)


def test_time_that_runs_out_is_told_without_asking_twice(kernel: Kernel) -> None:
    cell = kernel.begin("ask(page(), Watch.for_limit(11_500))")
    asked = cell.question()
    cell.shows("Time left: 10 s.")
    cell.reply("", asked)
    assert "answer: accept" in cell.end().streams
    assert len(cell.asked) == 1


def test_a_late_answer_that_names_its_question_is_dropped(kernel: Kernel) -> None:
    cell = kernel.begin(WITHDRAWN)
    late = cell.question()
    assert "answer: cancel" in cell.end().streams
    assert "No answer is needed any more: the request was withdrawn." in cell.text
    assert "The input field of this question is still there: press Enter in it." in cell.text
    cell = kernel.begin("ask(page())")
    asked = cell.question()
    cell.reply("", late)
    cell.reply("decline", asked)
    assert "answer: decline" in cell.end().streams


def test_a_late_answer_that_names_none_is_not_taken_for_the_next_one(kernel: Kernel) -> None:
    cell = kernel.begin(FORGOTTEN + WITHDRAWN)
    cell.question()
    cell.end()
    cell = kernel.begin("ask(page())")
    cell.question()
    cell.reply("", None)  # Enter, meant for the page before: accepts nothing
    cell.answer("decline", named=False)
    assert "answer: decline" in cell.end().streams
    assert "This may have been an answer to an earlier question: please give it again." in cell.text


def test_an_answer_that_came_when_nothing_was_asked_counts_for_nothing(kernel: Kernel) -> None:
    cell = kernel.begin(FORGOTTEN + WITHDRAWN)
    cell.question()
    cell.end().reply("", None)
    cell = kernel.begin("assert get_ipython().kernel.stdin_socket.poll(30_000)\nask(page())")
    cell.answer("decline", named=False)
    assert "answer: decline" in cell.end().streams
    assert len(cell.asked) == 1


def test_the_servers_word_that_a_page_is_done_ends_the_wait(kernel: Kernel) -> None:
    cell = kernel.begin("done = threading.Event()\nask(page(), Watch(is_finished=done.is_set, on_shown=done.set))")
    assert "answer: accept" in cell.end().streams
    assert "The server says that you have finished." in cell.text


def test_the_end_of_the_cell_ends_the_wait(kernel: Kernel) -> None:
    cell = kernel.begin(
        "asked = threading.Event()\nthread = threading.Thread(target=ask, args=(page(), Watch(on_shown=asked.set)))\n"
        "thread.start(); assert asked.wait(30)"
    )
    cell.end()
    assert "answer: cancel" in kernel.run("thread.join(30); assert not thread.is_alive()").streams + cell.streams


def test_everything_of_a_server_can_be_declined(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(
        toolset_of(server, "for tool in ('form_tool', 'decline_aware'): print(await toolset.call_tool(tool, {}))")
    )
    cell.answer("decline all", to="Reason")
    cell.end()
    assert "form: decline" in cell.streams and "action: decline" in cell.streams and len(cell.asked) == 1
    assert 'To decline everything that this server asks: "decline all" for this session.' in cell.text
    cell = kernel.begin("print(prompt.ask(page(), Watch(lasting=('session', 'always'))).whole_server)")
    cell.answer("decline always")
    assert "always" in cell.end().streams


# ---- where it asks ---------------------------------------------------------------------------------------------------


def test_a_tool_that_is_awaited_asks_in_its_cell(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(toolset_of(server, "print(await toolset.call_tool('decline_aware', {}))"))
    cell.answer("", to='Enter when you have finished, "decline" or "cancel":')
    assert "action: accept" in cell.end().streams
    assert "decline_aware) asks you to open a page" in cell.text and "Host: 127.0.0.1\n" in cell.text
    assert server.actions() == ["accept"]


def test_a_session_of_an_earlier_cell_asks_in_the_one_that_calls(kernel: Kernel, server: McpServer) -> None:
    kernel.run(
        f"toolset = McpToolset({server.url!r}, elicitation_handler=NotebookElicitationHandler())\n"
        "await toolset.__aenter__()\n"
        "async def later():\n    await calls.wait(); return await asyncio.to_thread(prompt.ask, page(), Watch())\n"
        "calls = asyncio.Event(); task = asyncio.create_task(later())"
    )
    cell = kernel.begin("print(await toolset.call_tool('decline_aware', {}))")
    cell.answer("decline")
    assert "action: decline" in cell.end().streams
    cell = kernel.begin("calls.set(); print((await task).action)")  # in the context of the cell before
    cell.answer("decline")
    cell.end()
    assert "mail.test asks you to open a page" in cell.text
    kernel.run("await toolset.aclose()")


def test_an_agent_that_is_awaited_asks_in_its_cell(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(
        f"async with agent_for({server.url!r}) as agent:\n    print(await agent.run_async('form_tool'))"
    )
    cell.answer("to test", to="Reason")
    cell.answer("", to="Urgent [no]")
    cell.answer("", to=SEND)
    assert 'form: accept {"reason": "to test", "urgent": false}' in cell.end().streams


def test_two_at_once_are_asked_one_after_the_other(kernel: Kernel) -> None:
    cell = kernel.begin(
        "print([answer.action for answer in await asyncio.gather(*("
        "asyncio.to_thread(prompt.ask, page(message=text), Watch()) for text in ('first', 'second')))])"
    )
    first = cell.question()
    cell.shows("Open this URL")
    assert ("  | first" in cell.text) != ("  | second" in cell.text)
    came = ["first", "second"] if "  | first" in cell.text else ["second", "first"]
    cell.reply("decline", first)
    second = cell.question()
    cell.shows(f"  | {came[1]}").reply("", second)
    answers = dict(zip(came, ("decline", "accept"), strict=True))
    assert f"['{answers['first']}', '{answers['second']}']" in cell.end().streams


def test_a_subshell_asks_in_its_own_cell(kernel: Kernel) -> None:
    name = kernel.subshell()
    waiting = kernel.begin("ask(page(message='main'))")
    first = waiting.question()
    busy = kernel.begin("seen = prompt.unusable(); print('unusable:', seen)", subshell=name)
    assert "unusable: None" in busy.end().streams
    waiting.reply("decline", first)
    assert "answer: decline" in waiting.end().streams
    cell = kernel.begin("ask(page(message='sub'))", subshell=name)
    cell.answer("")
    assert "answer: accept" in cell.end().streams and "sub" in cell.text


@pytest.mark.parametrize(
    ("code", "options", "reason"),
    [
        ("print(prompt.unusable())", {"allow_stdin": False}, "takes no input (allow_stdin is off)"),
        ("%%capture kept\nseen = prompt.unusable()", {}, "what this cell displays is captured"),
        ("read, write = os.pipe()\nwarnings.simplefilter('ignore')\nif not os.fork():\n"
         "    os.write(write, prompt.unusable().encode()); os._exit(0)\n"
         "print(os.read(read, 999).decode())", {}, "a copy of a notebook's kernel"),
    ],
    ids=["no stdin", "captured", "forked"],
)  # fmt: skip
def test_where_nobody_can_be_asked_it_says_why(kernel: Kernel, code: str, options: Any, reason: str) -> None:
    cell = kernel.begin(code, **options).end()
    if not cell.streams:
        cell = kernel.run("print(seen)")
    assert reason in cell.streams


def test_between_two_cells_nobody_can_be_asked(kernel: Kernel, tmp_path: Path) -> None:
    told = tmp_path / "told"
    kernel.run(
        "import pathlib, time\ndef look():\n    while (why := prompt.unusable()) is None: time.sleep(0.02)\n"
        f"    pathlib.Path({str(told)!r}).write_text(why)\nthreading.Thread(target=look).start()"
    )
    while not (told.exists() and told.read_text()):
        time.sleep(0.02)
    assert told.read_text() == "no cell is being executed that could show a question"


def test_a_frontend_without_a_channel_for_input_cancels(kernel: Kernel) -> None:
    with kernel.other_frontend(stdin=False):
        cell = kernel.begin("ask(page())").end()
    assert "answer: cancel" in cell.streams and "The notebook's frontend can't be asked: cancelled." in cell.text


def test_an_agent_in_a_notebook_that_takes_no_input(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(
        f"with agent_for({server.url!r}) as agent: print(agent.run('decline_aware'))", allow_stdin=False
    )
    assert "action: cancel" in cell.end().streams


def test_the_prompt_of_agents_without_a_handler(kernel: Kernel, server: McpServer) -> None:
    cell = kernel.begin(f"with agent_for({server.url!r}, handler=None) as agent: print(agent.run('decline_aware'))")
    cell.answer("decline", to='Enter when you have finished, "decline" or "cancel":')
    assert "action: decline" in cell.end().streams


def test_a_notebook_that_is_executed_by_nbclient(kernel: Kernel, tmp_path: Path) -> None:
    from nbclient import NotebookClient

    v4: Any = importlib.import_module("nbformat.v4")
    notebook = v4.new_notebook(cells=[v4.new_code_cell(PRELUDE), v4.new_code_cell("print(prompt.unusable())")])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(children.ROOT)}}).execute(
        env=kernel_environment(tmp_path)
    )
    assert "takes no input (allow_stdin is off)" in notebook.cells[1].outputs[0]["text"]


def test_a_program_that_is_no_kernel_has_no_notebook() -> None:
    assert NotebookPrompt().unusable() == "this process is no notebook's kernel"
    assert isinstance(NotebookElicitationHandler().gopher_prompt, NotebookPrompt)


def test_a_kernel_that_is_shut_down_does_not_wait_for_an_answer(kernel: Kernel, tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    try:
        kernel.run(PRELUDE)
        cell = kernel.begin(
            "threading.Thread(target=ask, args=(page(),), daemon=True).start()\nawait asyncio.Event().wait()"
        )
        cell.question()
        kernel.client.shutdown()
        kernel.wait_for_its_end()
    finally:
        kernel.close()


# ---- the pieces ------------------------------------------------------------------------------------------------------

#: Asks until nobody wants the answer any more.
WITHDRAWN = """
gone = threading.Event()
ask(page(), Watch(is_open=lambda: not gone.is_set(), on_shown=lambda: threading.Timer(0.5, gone.set).start()))
"""
#: As if no earlier test had left a question behind.
FORGOTTEN = "from gopher_mcp_python.handlers import notebook_input; notebook_input._given_up.clear()\n"
NOBODY_ASKS = """
for thread in threading.enumerate():
    if thread.name == "gopher-mcp-elicitation":
        thread.join(30)
        assert not thread.is_alive()
"""


def toolset_of(server: McpServer, code: str) -> str:
    handler = "NotebookElicitationHandler()"
    return f"async with McpToolset({server.url!r}, elicitation_handler={handler}) as toolset:\n    {code}"


def elements(source: str) -> list[tuple[str, dict[str, Any]]]:
    return _Read(source).elements


def texts(source: str) -> list[tuple[tuple[str, ...], str]]:
    return _Read(source).texts


class _Read(HTMLParser):
    """What a browser would make of it: elements with their attributes, and texts with the elements around them."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")
