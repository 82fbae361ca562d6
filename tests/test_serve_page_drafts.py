"""The page in a real Chromium: nothing that was typed is lost without a word; what was chosen is what is shown."""

# ruff: noqa: F811 (a test's parameter is the fixture of that name)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.store import model
from tests.support.page import Browser
from tests.support.serving import Serving, starting
from tests.test_serve_page import (  # the fixtures among them: one browser and one server for this file, too
    NAME,
    _fits,
    _running,  # noqa: F401
    _tab_to,
    browser,  # noqa: F401
    button,
    done,
    form,
    open_tab,  # noqa: F401
    serving,  # noqa: F401
)

SECRET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "api_key": {"type": "string", "title": "API key"},
        "color": {"enum": ["red", "green"], "title": "Color"},
        "tags": {"type": "array", "title": "Tags", "items": {"enum": ["a", "b", "c"]}},
        "count": {"type": "integer", "title": "Count", "default": 3},
    },
}


def row(words: str) -> str:
    return f".row >> text={words}"


# ---- What was typed --------------------------------------------------------------------------------------------------


def test_a_reload_keeps_what_was_typed_but_for_masked_fields(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", form(SECRET))
    tab = open_tab()
    tab.click(".row")
    tab.fill(NAME, "Ada")
    tab.fill("role=textbox[name=/API key/]", "hunter2")
    tab.click("text=green")
    tab.click("role=checkbox[name='b']")
    tab.click(button("Leave out: Count"))
    assert "hunter2" not in tab.run("JSON.stringify(sessionStorage)")
    tab.reload()
    tab.wait(".panel")
    assert tab.value(NAME) == "Ada" and tab.value("role=textbox[name=/API key/]") == ""
    tab.click(button("Send"))
    done(tab, "Sent.")
    content = {"name": "Ada", "color": "green", "tags": ["b"]}
    assert serving.store.result("ada", asked.id)["content"] == content
    assert "Ada" not in tab.run("JSON.stringify(sessionStorage)"), "what was sent is not kept"


def test_a_reload_keeps_the_fixed_types_too_and_signing_out_keeps_nothing(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("Which branch?"))
    serving.store.create("ada", model.multi_choice("What?", ["x", "y", "z"]))
    tab = open_tab()
    tab.click(row("Which branch?"))
    tab.fill("textarea", "main")
    tab.click(row("What?"))
    tab.click("role=checkbox[name='z']")
    tab.reload()
    tab.wait("role=checkbox[name='z']")
    assert tab.run("[...document.querySelectorAll('.panel input')].map((one) => one.checked)") == [False, False, True]
    tab.click(row("Which branch?"))
    tab.wait("textarea")
    assert tab.value("textarea") == "main"
    tab.click(button("Sign out"))
    tab.wait("#token")
    assert tab.run("sessionStorage.length") == 0


def test_what_ends_elsewhere_while_it_is_filled_in_can_still_be_read(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", model.string_input("Which?", max_length=5000))
    tab = open_tab(height=400)
    tab.click(".row")
    tab.fill("textarea", "a long thought\n" * 60)
    serving.store.cancel("ada", asked.id)
    done(tab, "It was cancelled elsewhere. Nothing of yours was sent.")
    assert tab.run("document.activeElement.matches('textarea[readonly]')"), "the keyboard is where it was"
    top = tab.run("document.querySelector('.notice').getBoundingClientRect().top")
    assert 0 <= top < 400, "who has scrolled down sees it, too"
    tab.press("Control+a")
    assert tab.run("String(document.activeElement.selectionEnd)") == "900"


def test_the_focus_is_not_lost_with_the_button_that_had_it(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create_confirmation("ada", tool="wipe", arguments={}, server="disk")
    tab = open_tab()
    tab.click(".row")
    tab.wait(".panel")
    _tab_to(tab, "Approve")
    serving.store.cancel("ada", asked.id)
    done(tab, "It was cancelled elsewhere.")
    assert tab.focused() == "It was cancelled elsewhere."


def test_a_draft_that_is_not_looked_at_stays_on_the_list_when_its_request_ends(serving: Serving, open_tab: Any) -> None:
    first = serving.store.create("ada", model.string_input("Which?"))
    serving.store.create("ada", model.string_input("And this?"))
    tab = open_tab()
    tab.click(row("Which?"))
    tab.fill("textarea", "half of it")
    tab.click(row("And this?"))
    tab.wait(".panel >> text=And this?")
    serving.store.cancel("ada", first.id)
    tab.wait(".row >> text=It was cancelled elsewhere.")
    assert tab.run("document.title") == "(1) Requests"
    tab.click(row("Which?"))
    assert tab.value("textarea") == "half of it"
    tab.click(row("And this?"))
    tab.wait(row("Which?"), "detached")


def test_a_server_that_starts_anew_with_nothing_is_told_of(browser: Browser, tmp_path: Path) -> None:
    with starting(tmp_path) as begin:
        first = begin()
        first.store.create("ada", model.string_input("Which?"))
        tab = browser.tab()
        tab.go(f"{first.url}/")
        tab.fill("#token", first.answer)
        tab.press("Enter")
        tab.click(".row")
        tab.fill("textarea", "half of it")
        first.close()
        begin(port=first.port)  # with a store of its own
        done(tab, "The server does not have it any more. Nothing of yours was sent.")
        assert tab.value("textarea") == "half of it"
        tab.wait("#link.live >> text=Live")
        tab.close()


# ---- A slow network --------------------------------------------------------------------------------------------------


def test_what_was_clicked_last_is_shown_however_late_the_first_comes(serving: Serving, open_tab: Any) -> None:
    slow = serving.store.create_confirmation("ada", tool="wipe", arguments={"all": True}, server="disk")
    serving.store.create_confirmation("ada", tool="look", arguments={}, server="disk")
    tab = open_tab()
    pattern = f"**/elicitations/{slow.id}"
    tab.hold(pattern)
    tab.click(row("Allow wipe?"))
    tab.wait("#choose >> text=One moment")
    tab.click(row("Allow look?"))
    tab.wait(".panel >> text=Allow look?")
    answered = tab.run("performance.getEntriesByType('resource').length")
    tab.release(pattern)
    tab.until(f"performance.getEntriesByType('resource').length > {answered}")
    tab.run("new Promise((done) => setTimeout(done))")  # a turn of the page after the answer
    assert tab.text(".panel h2") == "Allow look?"


def test_a_request_that_cannot_be_shown_is_told_on_a_phone_too(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", model.string_input("Which?"))
    tab = open_tab(width=360, height=640, touch=True)
    pattern = f"**/elicitations/{asked.id}"
    tab.hold(pattern)
    tab.click(".row")
    tab.until("document.querySelector('.row[aria-current]')")
    tab.release(pattern, broken=True)
    tab.wait("#trouble >> text=be reached. Try again.")
    assert "Which?" in tab.focused(), "Enter tries again"
    tab.press("Enter")
    tab.wait("textarea")
    assert tab.run("document.querySelector('#trouble').textContent") == ""


def test_who_sends_by_keyboard_stays_on_the_button_when_it_fails(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create_confirmation("ada", tool="wipe", arguments={}, server="disk")
    tab = open_tab()
    tab.click(".row")
    tab.wait(".panel")
    _tab_to(tab, "Reject")
    pattern = "**/respond"
    tab.hold(pattern)
    tab.press("Enter")
    tab.wait(".panel >> text=Sending")
    tab.press("Enter", "Enter")
    tab.until("document.querySelector('.buttons button').matches('[aria-disabled=true]')")
    tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # focus is lost then
    assert tab.held(pattern) == 1, "it is sent once"
    tab.release(pattern, broken=True)
    tab.wait(".summary >> text=Nothing was lost")
    assert tab.focused() == "Reject"
    tab.press("Enter")
    done(tab, "Rejected.")
    assert serving.store.result("ada", asked.id) == {"confirmed": False}


def test_a_reload_while_the_server_is_away_needs_no_new_token(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("Which?"))
    tab = open_tab()
    tab.hold("**/v1/whoami")
    tab.reload()
    tab.until("document.readyState === 'complete'")
    tab.release("**/v1/whoami", broken=True)
    tab.wait("#sign-in-problem >> text=Trying again")
    tab.wait(row("Which?"))


def test_many_changes_are_not_read_many_times_at_once(serving: Serving, open_tab: Any) -> None:
    tab = open_tab()
    tab.run("performance.setResourceTimingBufferSize(5000)")
    for number in range(200):
        serving.store.create("ada", model.string_input(f"Which of {number}?"))
    tab.until("document.querySelectorAll('.row').length === 200")
    overlaps = tab.run("""(() => {
      const lists = performance.getEntriesByType('resource').filter((one) => /elicitations(\\?|$)/.test(one.name));
      lists.sort((one, other) => one.startTime - other.startTime);
      return lists.filter((one, index) => index && one.startTime < lists[index - 1].responseEnd - 1).length;
    })()""")
    assert overlaps == 0
    tab.click(".row >> nth=199")
    tab.wait(".panel >> text=Which of 199?")
    tab.press("Escape")
    assert "Which of 199?" in tab.focused(), "back where it was, in a list of 200"


# ---- Going back, clocks, other scripts -------------------------------------------------------------------------------


def test_back_leads_to_the_list_and_keeps_the_draft(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("Which?"))
    serving.store.create("ada", model.string_input("And this?"))
    tab = open_tab(width=360, height=640, touch=True)
    tab.click(row("Which?"))
    tab.fill("textarea", "half of it")
    tab.back()
    tab.wait("#list")
    assert "Which?" in tab.focused()
    tab.click(row("And this?"))
    tab.click(button("\u2039 All requests"))
    tab.click(row("Which?"))
    assert tab.value("textarea") == "half of it"
    tab.back()
    tab.wait("#list")
    assert tab.run("location.pathname") == "/"


@pytest.mark.parametrize("ahead", [-3600, 7200])
def test_a_browser_whose_clock_is_wrong_counts_right(serving: Serving, open_tab: Any, ahead: int) -> None:
    serving.store.create("ada", model.string_input("Which?"), timeout_s=600)
    tab = open_tab()
    tab.run(f"(() => {{ const right = Date.now; window.right = right; Date.now = () => right() + {ahead}e3; }})()")
    tab.click(".row")
    tab.wait(".panel")
    tab.until("document.querySelector('.panel .time').textContent === '10 min left'")
    tab.run("(() => { Date.now = window.right; })()")  # somebody sets the clock
    tab.fill("textarea", "x")
    serving.store.create("ada", model.string_input("And this?"), timeout_s=600)
    tab.wait(".row >> nth=1")
    tab.until("[...document.querySelectorAll('.time')].every((one) => /^(9|10) min left$/.test(one.textContent))")


def test_somebody_is_told_before_the_time_is_up(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("Which?"), timeout_s=600)
    tab = open_tab()
    tab.click(".row")
    tab.wait(".panel .time >> text=10 min left")
    tab.run("(() => { const right = Date.now; Date.now = () => right() + 555e3; })()")
    tab.wait("#news >> text=to answer this", "attached")
    tab.wait(".panel .time.soon")


def test_a_name_from_right_to_left_does_not_turn_the_sentence_around(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("\u05e9\u05dc\u05d5\u05dd?", server="\u05d0\u05d1\u05d2 7"))
    tab = open_tab(width=320, height=640, touch=True)
    _fits(tab)
    left = """(() => { const what = document.querySelector('%s'), name = what.querySelector('bdi');
      return name.getBoundingClientRect().left - what.getBoundingClientRect().left; })()"""
    assert tab.run(left % ".row .what") < 2, "the name is where the sentence begins"
    tab.click(".row")
    tab.wait(".panel")
    assert tab.run(left % ".panel h2") < 2
    _fits(tab)


# ---- What there is to read -------------------------------------------------------------------------------------------


def test_a_field_is_read_out_with_its_explanation_and_state(serving: Serving, open_tab: Any) -> None:
    count = {"type": "integer", "title": "Count", "description": "How many seats.", "default": 3}
    serving.store.create("ada", form({"type": "object", "properties": {"count": count}}))
    tab = open_tab()
    tab.click(".row")
    tab.wait("role=textbox")
    described = tab.run("document.querySelector('.field input').getAttribute('aria-describedby').split(' ')"
                        ".map((id) => document.getElementById(id).textContent).join(' ')")  # fmt: skip
    assert "How many seats." in described and "default" in described


def test_a_complaint_goes_when_it_is_seen_to(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", model.string_input("Which?", min_length=3))
    tab = open_tab()
    tab.click(".row")
    tab.fill("textarea", "x")
    tab.click(button("Send"))
    tab.wait("textarea[aria-invalid=true]")
    tab.press("End")
    tab.type("yz")
    tab.wait("textarea:not([aria-invalid])")
    assert tab.run("document.querySelector('.field .problem').textContent") == ""


def test_arguments_of_a_megabyte_say_how_much_there_is(serving: Serving, open_tab: Any) -> None:
    arguments = {"text": "x \U0001f600" * 60_000 + "\n", "more": [f"line {n}" for n in range(1000)]}
    serving.store.create_confirmation("ada", tool="t" * 128, arguments=arguments, server="disk")
    tab = open_tab(width=320, height=640, touch=True)
    tab.click(".row")
    tab.wait(".panel >> text=/characters in 1,00. lines: scroll to read all of it/")
    _fits(tab)
    assert json.loads(tab.text(".block.arguments")) == arguments, "in parts, and yet as it is"
    tab.click(button("Approve"))
    done(tab, "Approved.")
