"""Real windows on a display, with a window manager: what is typed, clicked and closed there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import children
from tests.support.children import ROOT
from tests.support.servers import McpServer
from tests.support.variants import BOTH, EMBEDDED, NATIVE, Variant
from tests.support.xvfb import Display, Program, until

pytestmark = pytest.mark.skipif(os.name == "nt" or shutil.which("Xvfb") is None, reason="needs Xvfb")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
URL = "https://provider.test/authorize?state=1"


@pytest.fixture(scope="module")
def display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Display]:
    with Display(tmp_path_factory.mktemp("display")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A "browser" that writes down what it was given, and nothing else."""
    folder = tmp_path_factory.mktemp("browser")
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\ncd {folder} && printf "%s\\n" "$@" > part && mv part opened\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def environment(browser: Path, environment_for: Callable[[Variant], dict[str, str]]) -> dict[str, str]:
    """Of a program that can have agents on both engines."""
    return {**environment_for(NATIVE), "BROWSER": str(browser)}


@pytest.fixture(scope="module")
def shared_program(display: Display, environment: dict[str, str]) -> Iterator[Program]:
    with Program(display, ["-m", "tests.support.desktop"], environment) as found:
        found.hear("ready")
        yield found


@pytest.fixture
def program(shared_program: Program, display: Display, browser: Path) -> Iterator[Program]:
    """A program without open requests."""
    (browser.parent / "opened").unlink(missing_ok=True)
    yield shared_program
    shared_program.tell(close_all=True)  # those of a test that failed
    display.wait_for(0)
    when_keys_count(shared_program)
    shared_program.forget()


def shown(display: Display, program: Program, message: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Has something asked; the window that came, and where its buttons are."""
    program.tell(ask=message, **({"form": FORM} | more))
    facts = program.hear("shown", shown=message)
    return facts["window"], facts["buttons"]


def focused(display: Display, program: Program, message: str, **more: Any) -> str:
    window, _ = shown(display, program, message, **more)
    display.wait_for_active(window)
    return window


def when_keys_count(program: Program) -> None:
    """A window that came up just now, or of which another one was answered, takes neither keys nor clicks."""
    program.tell(say="now")
    program.hear("said")


# ---- the keyboard ----------------------------------------------------------------------------------------------------


def test_a_form_is_filled_in_by_the_keyboard_alone(display: Display, program: Program) -> None:
    focused(display, program, "Who?")
    display.type("Ada")
    display.key("Return")  # on to the next field; nothing is sent
    display.type("36")
    display.key("ctrl+Return")
    answer = program.hear("answer")
    assert (answer["action"], answer["content"]) == ("accept", {"name": "Ada", "age": 36})
    display.wait_for(0)


def test_tab_reaches_the_buttons_and_space_presses(display: Display, program: Program) -> None:
    focused(display, program, "Who?")
    display.type("Ada")
    display.key("Return", "Return", "Tab", "space")  # the next field, Send, Decline
    answer = program.hear("answer")
    assert (answer["action"], answer["content"]) == ("decline", None)


def test_what_is_not_right_yet_is_not_sent(display: Display, program: Program) -> None:
    window = focused(display, program, "Who?")
    display.key("ctrl+Return")  # the name is required
    display.type("Ada")
    assert display.windows() == [window]
    display.key("ctrl+Return")
    assert program.hear("answer")["content"] == {"name": "Ada"}


def test_one_escape_does_not_throw_a_half_filled_form_away(display: Display, program: Program) -> None:
    window = focused(display, program, "Who?")
    display.type("Ad")
    display.key("Escape")
    display.type("a")
    display.key("ctrl+Return")
    assert program.hear("answer")["content"] == {"name": "Ada"}
    window = focused(display, program, "Who again?")
    display.type("Ad")
    display.key("Escape", "Escape")
    assert program.hear("answer")["action"] == "cancel"
    until(lambda: window not in display.windows(), "the window is gone")


def test_an_untouched_form_goes_with_one_escape(display: Display, program: Program) -> None:
    focused(display, program, "Who?")
    display.key("Escape")
    assert program.hear("answer")["action"] == "cancel"


def test_the_window_managers_close_is_a_cancel(display: Display, program: Program) -> None:
    focused(display, program, "Who?")
    display.type("Ada")
    display.key("alt+F4")
    answer = program.hear("answer")
    assert (answer["action"], answer["content"]) == ("cancel", None)


# ---- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_is_opened_by_a_click_and_only_by_one(display: Display, program: Program, browser: Path) -> None:
    opened = browser.parent / "opened"
    window, buttons = shown(display, program, "Sign in.", url=URL)
    display.wait_for_active(window)
    display.key("Return", "space")  # whoever typed on when the window came up
    assert not opened.exists()
    display.click(*buttons["Open in the browser"])
    until(opened.exists, "the browser was started")
    assert opened.read_text() == f"{URL}\n"
    display.click(*buttons["I finished"])
    answer = program.hear("answer")
    assert (answer["action"], answer["content"]) == ("accept", None)


def test_a_page_that_was_declined_was_never_opened(display: Display, program: Program, browser: Path) -> None:
    _, buttons = shown(display, program, "Sign in.", url=URL)
    display.click(*buttons["Decline"])
    assert program.hear("answer")["action"] == "decline"
    assert not (browser.parent / "opened").exists()


# ---- several ---------------------------------------------------------------------------------------------------------


def test_a_second_prompt_does_not_take_the_keyboard_from_the_first(display: Display, program: Program) -> None:
    first = focused(display, program, "one")
    display.type("Ad")
    second, _ = shown(display, program, "two")
    assert len(display.wait_for(2)) == 2
    assert display.active == first
    display.type("a")
    display.key("ctrl+Return")
    assert program.hear("answer", answer="one")["content"] == {"name": "Ada"}
    assert display.wait_for(1) == [second]
    display.activate(second)
    when_keys_count(program)
    display.type("Eve")
    display.key("ctrl+Return")
    assert program.hear("answer", answer="two")["content"] == {"name": "Eve"}


def test_windows_stand_beside_each_other(display: Display, program: Program) -> None:
    for number in range(4):
        shown(display, program, f"number {number}")
    places = [display.place(window)[:2] for window in display.wait_for(4)]
    assert all(
        abs(x - a) >= 18 or abs(y - b) >= 18 for place, (x, y) in enumerate(places) for a, b in places[:place]
    ), places
    for window in display.windows():
        display.activate(window)
        when_keys_count(program)
        display.key("Escape")
        assert program.hear("answer")["action"] == "cancel"


# ---- the program -----------------------------------------------------------------------------------------------------


def test_a_program_that_quits_with_open_prompts_ends_well(display: Display, environment: dict[str, str]) -> None:
    with Program(display, ["-m", "tests.support.desktop"], environment) as program:
        program.hear("ready")
        focused(display, program, "Who?")
        display.type("Ada")
        shown(display, program, "And who else?")
        program.tell(quit=True)
        assert {program.hear("answer")["action"] for _ in range(2)} == {"cancel"}
        program.end()


def test_the_time_limit_takes_the_window_away(display: Display, program: Program) -> None:
    shown(display, program, "Who?", timeout_s=1)
    assert program.hear("answer")["action"] == "cancel"
    display.wait_for(0)


@pytest.mark.parametrize("variant", BOTH, ids=str)
def test_agents_are_answered_in_a_window(
    variant: Variant, display: Display, program: Program, server: McpServer
) -> None:
    agent = {"engine": variant.engine, "provider": variant.provider, "url": server.url}
    program.tell(agent={**agent, "query": "get it, using decline_aware"})
    display.activate(display.wait_for(1)[0])
    when_keys_count(program)
    display.key("alt+f")  # "I finished"
    result = program.hear("result")
    assert result["engine"] == variant.engine and "action: accept" in result["result"]
    assert server.actions() == ["accept"]


def test_an_agents_form_is_answered_in_a_window(display: Display, program: Program, server: McpServer) -> None:
    agent = {"engine": "embedded", "provider": EMBEDDED.provider, "url": server.url}
    program.tell(agent={**agent, "query": "form_tool"})
    display.activate(display.wait_for(1)[0])
    when_keys_count(program)
    display.type("tidy")
    display.key("ctrl+Return")
    assert 'form: accept {"reason": "tidy"' in program.hear("result")["result"]


def test_without_any_handler_a_desktop_program_asks_in_a_window(
    display: Display, program: Program, server: McpServer
) -> None:
    agent = {"engine": "embedded", "provider": EMBEDDED.provider, "url": server.url, "by_default": True}
    program.tell(agent={**agent, "query": "form_tool"})
    display.activate(display.wait_for(1)[0])
    when_keys_count(program)
    display.key("alt+d")
    assert "form: decline" in program.hear("result")["result"]


def test_an_agent_on_the_gui_thread_is_refused_at_once(display: Display, program: Program, server: McpServer) -> None:
    """Before any server hears of it."""
    agent = {"engine": "embedded", "provider": EMBEDDED.provider, "url": server.url, "query": "form_tool"}
    program.tell(here=agent)
    error = program.hear("result")["error"]
    assert error.startswith("Nobody can be asked by a window: this is the GUI thread")
    assert "run_async" in error and "worker thread" in error
    assert display.windows() == [] and "form_tool" not in server.tools_run()


def test_by_default_an_agent_on_the_gui_thread_asks_elsewhere(
    display: Display, program: Program, server: McpServer
) -> None:
    """That one has no terminal either: the server gets its answer, and the run ends."""
    agent = {"engine": "embedded", "provider": EMBEDDED.provider, "url": server.url, "query": "form_tool"}
    program.tell(here={**agent, "by_default": True})
    assert "form: cancel" in program.hear("result")["result"]
    assert display.windows() == []


# ---- the example -----------------------------------------------------------------------------------------------------


@pytest.fixture
def example(display: Display, browser: Path, server: McpServer) -> Iterator[Program]:
    """The example, run by a person as far as to the first request."""
    env = {"BROWSER": str(browser), "GOPHER_MCP_ENGINE": "embedded"}
    with Program(display, [str(ROOT / "examples" / "desktop.py"), server.url], env) as found:
        display.activate(display.wait_for(1, "^Desktop example")[0])
        display.key("alt+r")
        display.wait_for(1)
        yield found


@pytest.mark.source_tree
def test_the_example(display: Display, example: Program, server: McpServer) -> None:
    display.activate(display.wait_for(1)[0])
    # A window that came up just now takes no key, and this program does not say when it does.
    until(lambda: display.key("alt+f") or not display.windows(), "the request was answered")
    server.wait_for("answer")
    assert server.actions() == ["accept"]
    display.activate(display.wait_for(1, "^Desktop example")[0])
    display.key("alt+F4")
    example.end()


@pytest.mark.source_tree
@pytest.mark.parametrize("end", ["its window is closed", "Ctrl-C"])
def test_the_example_ends_with_an_open_request(end: str, display: Display, example: Program, server: McpServer) -> None:
    if end == "Ctrl-C":
        example.interrupt()
    else:
        display.activate(display.wait_for(1, "^Desktop example")[0])
        display.key("alt+F4")
    example.end()
    assert server.actions() in (["cancel"], [])  # the connection may be gone before the answer is


def test_the_example_says_what_it_needs() -> None:
    ended = children.run([sys.executable, str(ROOT / "examples" / "desktop.py")])
    assert (ended.code, ended.err) == (2, "usage: desktop.py URL [QUERY]\n")
