"""The same windows for who awaits them: on an event loop that takes turns with Qt's in the GUI thread, or elsewhere."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import mcp_types
import pytest
from PySide6.QtTest import QTest

from gopher_mcp_python import GopherAgentElicitationOptions, McpToolset
from gopher_mcp_python.handlers.qt import AsyncQtElicitationHandler, QtElicitationHandler, QtPromptUnavailable, vigil
from gopher_mcp_python.policy import ElicitationPolicy
from gopher_mcp_python.toolset import handling
from tests.support import children, desk
from tests.support.desk import Asking, form, page
from tests.support.small_server import SmallServer

pytestmark = pytest.mark.usefixtures("warm_qt", "desktop")


def in_turns(body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs a coroutine in the GUI thread, asyncio and Qt in turns, as qasync does it in one loop."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.wait_for(body(), desk.LONG))
    try:
        while not task.done():
            loop.call_soon(loop.stop)
            loop.run_forever()
            QTest.qWait(1)
        return task.result()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def until(true: Callable[[], Any]) -> Any:
    while not (found := true()):
        await asyncio.sleep(0.005)
    return found


async def the_prompt(count: int = 1) -> Any:
    await until(lambda: len(desk.prompts()) == count)
    return desk.prompts()[0]


# ---- in the GUI thread -----------------------------------------------------------------------------------------------


def test_in_the_gui_thread_it_awaits_and_does_not_block() -> None:
    async def body() -> Any:
        asking = asyncio.ensure_future(AsyncQtElicitationHandler()(form()))
        desk.send_name(await the_prompt(), "Ada")
        return await asking

    response = in_turns(body)
    assert (response.action, dict(response.content)) == ("accept", {"name": "Ada"})


def test_cancelling_the_await_closes_the_window() -> None:
    async def body() -> None:
        asking = asyncio.ensure_future(AsyncQtElicitationHandler()(form()))
        desk.fill(await the_prompt(), "Name", "Ada")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: not desk.prompts())

    in_turns(body)


def test_what_is_cancelled_before_it_came_up_is_never_shown() -> None:
    async def body() -> None:
        asking = asyncio.ensure_future(AsyncQtElicitationHandler()(form()))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        for _ in range(10):
            await asyncio.sleep(0.002)
            assert not desk.prompts()

    in_turns(body)


def test_its_time_limit_cancels() -> None:
    async def body() -> Any:
        asking = asyncio.ensure_future(AsyncQtElicitationHandler(timeout_s=1.2)(form()))
        dialog = await the_prompt()
        await until(lambda: "Time left: 1 s." in desk.labels_of(dialog))
        return await asking

    assert in_turns(body).action == "cancel"
    desk.wait_until(lambda: not desk.prompts())


def test_several_at_once_in_any_order() -> None:
    async def body() -> list[Any]:
        handler = AsyncQtElicitationHandler()
        names = ("one", "two", "three")
        asked = {name: asyncio.ensure_future(handler(form(name))) for name in names}
        await the_prompt(3)
        for name in ("three", "one", "two"):
            desk.send_name(next(one for one in desk.prompts() if desk.message_of(one) == name), name)
            assert (await asked[name]).content == {"name": name}
        return list(asked)

    assert len(in_turns(body)) == 3


# ---- in another thread -----------------------------------------------------------------------------------------------


def elsewhere(body: Callable[[], Coroutine[Any, Any, Any]]) -> Asking:
    return Asking(lambda: asyncio.run(body()))


def test_on_a_loop_of_another_thread() -> None:
    async def body() -> Any:
        return await AsyncQtElicitationHandler()(page())

    asking = elsewhere(body)
    desk.press(desk.wait_for()[0], "I finished")
    assert asking.outcome().action == "accept"


def test_a_loop_of_another_thread_that_is_cancelled() -> None:
    cancelled = threading.Event()

    async def body() -> None:
        task = asyncio.ensure_future(AsyncQtElicitationHandler()(form()))
        await asyncio.to_thread(cancelled.wait, desk.LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asking = elsewhere(body)
    desk.wait_for()
    cancelled.set()
    asking.outcome()
    desk.wait_until(lambda: not desk.prompts())


def test_no_event_loop_of_qt_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio alone in the GUI thread: nothing serves the window."""
    monkeypatch.setattr(vigil, "NO_LOOP_AFTER", 0.2)

    async def body() -> Any:
        return await AsyncQtElicitationHandler()(form())

    with pytest.raises(QtPromptUnavailable, match="no Qt event loop is running"):
        asyncio.run(body())


def test_agents_refuse_it_when_their_options_are_made() -> None:
    with pytest.raises(ValueError, match="must not be async"):
        GopherAgentElicitationOptions(handler=AsyncQtElicitationHandler())


# ---- a toolset -------------------------------------------------------------------------------------------------------

both = pytest.mark.parametrize("kind", [QtElicitationHandler, AsyncQtElicitationHandler])


async def asked_by_a_tool(handler: Any, answer: Callable[[Any], object], tool: str = "ask", **arguments: Any) -> Any:
    async with McpToolset(SmallServer().sdk, elicitation_handler=handler, name="small.test") as toolset:
        call = asyncio.ensure_future(toolset.call_tool(tool, arguments))
        answer(await the_prompt())
        return (await call)["output"]["result"]


@both
def test_a_tool_asks_with_a_form(kind: Any) -> None:
    told = in_turns(lambda: asked_by_a_tool(kind(), lambda dialog: desk.send_name(dialog, "Ada")))
    assert told == "accept Ada"


@both
def test_a_tool_asks_for_a_page(kind: Any) -> None:
    answer: Callable[[Any], object] = lambda dialog: desk.press(dialog, "Decline")  # noqa: E731
    told = in_turns(lambda: asked_by_a_tool(kind(), answer, "page", url="https://provider.test/x"))
    assert told == "decline"


@both
def test_behind_a_policy(kind: Any) -> None:
    async def body() -> Any:
        handler = ElicitationPolicy(rules=[{"mode": "url", "decision": "decline"}]).around(kind())
        async with McpToolset(SmallServer().sdk, elicitation_handler=handler, name="small.test") as toolset:
            declined = await toolset.call_tool("page", {"url": "https://provider.test/x"})
            call = asyncio.ensure_future(toolset.call_tool("ask"))
            desk.send_name(await the_prompt(), "Ada")
            return declined["output"]["result"], (await call)["output"]["result"]

    assert in_turns(body) == ("decline", "accept Ada")


@both
def test_a_call_that_is_cancelled_takes_its_window_along(kind: Any) -> None:
    async def body() -> None:
        async with McpToolset(SmallServer().sdk, elicitation_handler=kind(), name="small.test") as toolset:
            call = asyncio.ensure_future(toolset.call_tool("ask"))
            await the_prompt()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: not desk.prompts())

    in_turns(body)


@both
def test_a_page_that_the_server_calls_complete_closes_its_window(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's word counts from when the person has the page before them."""
    told: list[bool] = []
    shown = handling._Question.shown
    monkeypatch.setattr(handling._Question, "shown", lambda question: (shown(question), told.append(True)))

    async def body() -> Any:
        server = SmallServer()
        async with McpToolset(server.sdk, elicitation_handler=kind(), name="small.test") as toolset:
            arguments = {"url": "https://provider.test/x", "complete": True}
            call = asyncio.ensure_future(toolset.call_tool("page", arguments))
            await the_prompt()
            await until(lambda: told)
            server.gates["complete"].set()
            return (await call)["output"]["result"]

    assert in_turns(body) == "accept"
    desk.wait_until(lambda: not desk.prompts())


# ---- the recipe without an agent -------------------------------------------------------------------------------------


@pytest.fixture
def operator() -> Any:
    """The class of docs/desktop.md."""
    text = (children.ROOT / "docs" / "desktop.md").read_text(encoding="utf-8")
    source = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "class Operator" in block)
    names: dict[str, Any] = {}
    exec(compile("from __future__ import annotations\n" + source, "docs/desktop.md", "exec"), names)
    return names["Operator"]()


PARAMS = mcp_types.ElicitRequestFormParams(message="Who?", requested_schema=desk.FORM)


@pytest.mark.source_tree
def test_the_documented_recipe_answers(operator: Any) -> None:
    asking = elsewhere(lambda: operator.ask(PARAMS))
    desk.send_name(desk.wait_for()[0], "Ada")
    assert asking.outcome() == mcp_types.ElicitResult(action="accept", content={"name": "Ada"})


@pytest.mark.source_tree
def test_the_documented_recipe_takes_an_abandoned_question_off_the_screen(operator: Any) -> None:
    cancelled = threading.Event()

    async def body() -> None:
        task = asyncio.ensure_future(operator.ask(PARAMS))
        await asyncio.to_thread(cancelled.wait, desk.LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asking = elsewhere(body)
    desk.wait_for()
    cancelled.set()
    asking.outcome()
    desk.wait_until(lambda: not desk.prompts())
