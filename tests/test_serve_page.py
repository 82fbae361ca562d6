"""The page in a real Chromium: everything is answered on it, by mouse, by keys and on a phone; nothing breaks out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.store import model
from tests.support.page import Browser, Tab
from tests.support.serving import BASE, Serving, one_for_many_tests

EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"&lt;{{7*7}}\u202egnp.exe\u200b\x1b[2J'
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 40},
        "count": {"type": "integer", "title": "Count", "minimum": 1, "default": 3},
        "agree": {"type": "boolean", "title": "Agree"},
        "color": {"enum": ["red", "green"], "title": "Color"},
        "tags": {"type": "array", "title": "Tags", "items": {"enum": ["a", "b", "c"]}},
    },
    "required": ["name"],
}
NAME = "role=textbox[name=/Your name/]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as running:
        running.tab().close()  # it is there before any test is
        yield running


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Serving]:
    with one_for_many_tests(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture
def serving(_running: Serving) -> Serving:
    return _running.clear()


@pytest.fixture
def open_tab(browser: Browser, serving: Serving) -> Iterator[Any]:
    """Opens tabs that are signed in; no fault may have happened on one."""
    opened: list[Tab] = []

    def begin(token: str | None = None, **how: Any) -> Tab:
        tab = browser.tab(**how)
        opened.append(tab)
        tab.go(f"{serving.url}/")
        tab.fill("#token", token or serving.answer)
        tab.press("Enter")
        tab.wait("#work")
        tab.wait("#link.live >> text=Live")
        return tab

    yield begin
    faults = [fault for tab in opened for fault in tab.faults()]
    for tab in opened:
        tab.close()
    assert faults == []


def form(schema: dict[str, Any] = FORM, **more: Any) -> model.NewElicitation:
    told = {"message": "Who are you?", "server": "mail", **more}
    return model.mcp_form(GopherAgentElicitationRequest("form", requested_schema=schema, **told))


def page(url: str, **more: Any) -> model.NewElicitation:
    told = {"elicitation_id": "e-1", "message": "Sign in", "server": "mail", **more}
    return model.mcp_url(GopherAgentElicitationRequest("url", url=url, **told))


def button(name: str) -> str:
    return f"role=button[name='{name}']"


def done(tab: Tab, words: str) -> None:
    tab.wait(f".notice.shown >> text={words}")


# ---- Everything is answered ------------------------------------------------------------------------------------------


def test_a_form_is_filled_in_and_sent(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", form())
    tab = open_tab()
    tab.click(".row")
    assert "Never give a password" in tab.text(".panel .warning")
    tab.click(button("Send"))
    tab.wait(".summary >> text=1 field needs attention")
    assert tab.focused().startswith("Your name")
    tab.fill(NAME, "Ada")
    tab.fill("role=textbox[name='Count']", "90071992547409910")
    tab.click("text=Yes")
    tab.click("text=green")
    tab.click("role=checkbox[name='c']")
    tab.click(button("Send"))
    done(tab, "Sent.")
    content = {"name": "Ada", "count": 90071992547409910, "agree": True, "color": "green", "tags": ["c"]}
    assert serving.store.result("ada", asked.id) == {"action": "accept", "content": content}


def test_untouched_fields_are_sent_as_the_server_has_them(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", form())
    tab = open_tab()
    tab.click(".row")
    tab.fill(NAME, "Ada")
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", asked.id)["content"] == {"name": "Ada", "count": 3}


def test_fields_are_judged_while_they_are_typed(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", form())
    tab = open_tab()
    tab.click(".row")
    tab.fill("role=textbox[name='Count']", "many")
    tab.wait(".field.wrong .problem >> text=/^Count .*whole number/")
    assert tab.texts(".field.wrong label") == ["Count"], "untouched fields are not complained of"
    tab.click(button("Leave out: Count"))
    tab.wait(".field.wrong", "detached")
    tab.fill(NAME, "Ada")
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", asked.id)["content"] == {"name": "Ada"}
    assert serving.store.get("ada", asked.id).retries == 0


def test_a_call_is_approved_with_its_arguments_in_full(serving: Serving, open_tab: Any) -> None:
    arguments = {"id": 90071992547409910, "paths": [f"/srv/file-{n}" for n in range(300)], "note": "two\nlines"}
    yes, no = (
        serving.store.create_confirmation("ada", tool="wipe", arguments=arguments, server="disk") for _ in range(2)
    )
    tab = open_tab()
    for asked, name in ((yes, "Approve"), (no, "Reject")):
        tab.click(".row >> nth=0")
        assert json.loads(tab.text(".block.arguments")) == arguments
        assert tab.text(".panel h2") == "Allow wipe?" and tab.text(".lead .name") == "wipe"
        tab.click(button(name))
        done(tab, {"Approve": "Approved.", "Reject": "Rejected."}[name])
        assert serving.store.result("ada", asked.id) == {"confirmed": name == "Approve"}


def test_the_fixed_types_are_answered(serving: Serving, open_tab: Any) -> None:
    store = serving.store
    text = store.create("ada", model.string_input("Which branch?", min_length=2, max_length=3))
    one = store.create("ada", model.single_choice("Where?", ["here", "there"]))
    some = store.create("ada", model.multi_choice("What?", ["x", "y", "z"], min_items=2))
    gone = store.create("ada", model.string_input("Anything?"))
    tab = open_tab()
    tab.click(".row >> nth=0")
    tab.fill("textarea", "\U0001f600")
    tab.click(button("Send"))
    assert "1 characters" in tab.text(".field .problem")
    tab.fill("textarea", "\U0001f600\U0001f600")
    tab.click(button("Send"))
    done(tab, "Sent.")
    tab.click(".row >> nth=0")
    tab.click("role=radio[name='there']")
    tab.click(button("Send"))
    done(tab, "Sent.")
    tab.click(".row >> nth=0")
    tab.click("role=checkbox[name='z']")
    tab.click(button("Send"))
    assert tab.text(".field .problem") == "Please choose 2 to 3."
    tab.click("role=checkbox[name='x']")
    tab.click(button("Send"))
    done(tab, "Sent.")
    tab.click(".row >> nth=0")
    tab.click(button("Cancel"))
    done(tab, "Cancelled.")
    assert store.result("ada", text.id) == {"value": "\U0001f600\U0001f600"}
    assert store.result("ada", one.id) == {"choice": "there"}
    assert store.result("ada", some.id) == {"choices": ["x", "z"]}
    assert store.get("ada", gone.id).status == "cancelled"
    assert [store.get("ada", asked.id).retries for asked in (text, one, some)] == [0, 0, 0]
    tab.wait("#nothing")


def test_a_file_is_sent(serving: Serving, open_tab: Any, tmp_path: Path) -> None:
    asked = serving.store.create("ada", model.file_upload("The log?", media_types=["text/plain"]))
    wrong, right = tmp_path / "fake.txt", tmp_path / "l\u00f6g \U0001f600.txt"
    wrong.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    right.write_text("all went well\n" * 1000)
    tab = open_tab()
    tab.click(".row")
    tab.upload("input[type=file]", wrong)
    tab.click(button("Send the file"))
    tab.wait(".summary >> text=not text/plain")
    tab.upload("input[type=file]", right)
    tab.click(button("Send the file"))
    done(tab, "Sent.")
    result = serving.store.result("ada", asked.id)
    assert (result["name"], result["size"]) == (right.name, right.stat().st_size)
    assert serving.uploads.path(result["file_id"]).read_bytes() == right.read_bytes()
    assert [one.name for one in serving.uploads.folder.glob("file_*[!n]")] == [result["file_id"]]


def test_a_page_is_opened_by_a_click_only(serving: Serving, open_tab: Any) -> None:
    url = f"{serving.url}/health?state=" + "s" * 5000
    asked = serving.store.create("ada", page(url))
    tab = open_tab()
    tab.click(".row")
    assert tab.text(".block.url") == url and tab.text(".host .name") == "127.0.0.1"
    assert tab.popups() == []
    tab.click(button("Copy the address"))
    assert tab.run("navigator.clipboard.readText()") == url
    tab.click("text=Open the page")
    tab.until("document.hasFocus() !== null")
    assert tab.run("document.querySelector('a.button').rel") == "noopener noreferrer"
    assert tab.popups() == [] or tab.popups() == [url]  # without an opener it may not count as a popup
    tab.click(button("I finished"))
    done(tab, "Sent: you finished.")
    assert serving.store.result("ada", asked.id) == {"action": "accept"}


def test_odd_addresses_have_no_link(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", page("https://accounts.google.com@evil.example/x"))
    refused = serving.store.create("ada", page("javascript:window.hacked=1"))
    tab = open_tab()
    tab.click(".row >> nth=0")
    assert "evil.example" in tab.text(".warning.strong") and tab.text(".host") == "Host\nevil.example"
    assert tab.run("document.querySelectorAll('.panel a[href]').length") == 0
    tab.click("role=checkbox")
    assert tab.run("document.querySelector('.panel a').href") == "https://accounts.google.com@evil.example/x"
    tab.click(".row >> nth=1")
    assert "not opened" in tab.text(".panel .problem") and tab.run("document.querySelectorAll('.panel a').length") == 0
    tab.click(button("Decline"))
    done(tab, "Declined.")
    assert serving.store.result("ada", refused.id) == {"action": "decline"}


# ---- Live ------------------------------------------------------------------------------------------------------------


def test_requests_come_and_go_and_a_draft_stays(serving: Serving, open_tab: Any) -> None:
    first = serving.store.create("ada", form())
    tab = open_tab()
    tab.click(".row")
    tab.fill(NAME, "A draft")
    second = serving.store.create("ada", model.string_input("And this?"))
    tab.wait(".row >> text=And this?")
    assert tab.focused().startswith("Your name"), "a new request takes no focus"
    tab.wait("#news >> text=New request", "attached")
    assert tab.run("document.title") == "(2) Requests"
    tab.click(".row >> text=And this?")
    tab.fill("textarea", "another")
    tab.click(".row >> text=Who are you?")
    assert tab.value(NAME) == "A draft"
    serving.store.cancel("ada", second.id)
    tab.wait(".row >> text=It was cancelled elsewhere.")
    assert tab.value(NAME) == "A draft"
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", first.id)["content"]["name"] == "A draft"


def test_two_tabs_and_one_answer(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create_confirmation("ada", tool="t", arguments={}, server="s")
    one, two = open_tab(), open_tab()
    for tab in (one, two):
        tab.click(".row")
        tab.wait(button("Approve"))
    one.click(button("Reject"))
    done(one, "Rejected.")
    done(two, "It was answered elsewhere.")
    assert two.run("document.querySelectorAll('.panel .buttons button').length") == 0
    assert serving.store.result("ada", asked.id) == {"confirmed": False}
    for tab in (one, two):
        tab.wait("#nothing")


def test_the_answer_that_comes_second_is_told_so(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create_confirmation("ada", tool="t", arguments={}, server="s")
    tab = open_tab()
    serving.app.state.feed.tell, told = lambda *_: None, serving.app.state.feed.tell  # this tab hears of nothing
    try:
        tab.click(".row")
        tab.wait(button("Approve"))
        serving.store.respond("ada", asked.id, {"confirmed": False})
        tab.click(button("Approve"))
        done(tab, "It was answered elsewhere.")
    finally:
        serving.app.state.feed.tell = told
    assert serving.store.result("ada", asked.id) == {"confirmed": False}


def test_without_the_feed_it_looks_by_itself(serving: Serving, browser: Browser) -> None:
    feed = serving.app.state.feed
    before, feed._per_caller = feed._per_caller, 0
    tab = browser.tab()
    try:
        tab.go(f"{serving.url}/")
        tab.fill("#token", serving.answer)
        tab.press("Enter")
        tab.wait("#nothing")
        serving.store.create("ada", model.string_input("Seen without a feed?"))
        tab.wait(".row >> text=Seen without a feed?")
        assert tab.faults() == []
    finally:
        feed._per_caller = before
        tab.close()


def test_a_broken_connection_loses_nothing(serving: Serving, open_tab: Any) -> None:
    asked = serving.store.create("ada", model.string_input("Which?"))
    tab = open_tab()
    tab.click(".row")
    tab.fill("textarea", "typed before")
    tab.offline(True)
    tab.click(button("Send"))
    tab.wait(".summary >> text=Nothing was lost")
    tab.offline(False)
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", asked.id) == {"value": "typed before"}


# ---- Who is signed in ------------------------------------------------------------------------------------------------


def test_signing_in_and_out(serving: Serving, browser: Browser) -> None:
    serving.store.create("ada", model.string_input("Secret of ada"))
    tab = browser.tab()
    tab.go(f"{serving.url}/")
    for token, words in (
        (serving.call, "may call tools, not answer"),
        ("gmt_wrong", "does not know"),
        ("a b", "no token"),
    ):
        tab.fill("#token", token)
        tab.press("Enter")
        tab.wait(f"#sign-in-problem >> text={words}")
    tab.fill("#token", serving.other)
    tab.press("Enter")
    tab.wait("#nothing")
    assert "Secret of ada" not in tab.tree()
    assert tab.run("document.cookie") == "" and tab.run("localStorage.length") == 0
    assert serving.other not in tab.run("location.href + document.documentElement.outerHTML")
    tab.click(button("Sign out"))
    tab.wait("#token")
    assert tab.run("sessionStorage.length") == 0
    assert tab.faults() == []
    tab.close()


def test_a_revoked_token_ends_it_and_a_draft_stays(serving: Serving, open_tab: Any) -> None:
    token = serving.tokens.add("ada", ["answer"], name="lost phone")
    asked = serving.store.create("ada", model.string_input("Which?"))
    tab = open_tab(token)
    tab.click(".row")
    tab.fill("textarea", "typed before")
    (entry,) = (one for one in serving.tokens.entries() if one.name == "lost phone")
    serving.tokens.revoke(entry.id)
    tab.click(button("Send"))
    tab.wait("#sign-in-problem >> text=does not know")
    tab.fill("#token", serving.answer)
    tab.press("Enter")
    tab.wait("#work")
    assert tab.run("document.querySelector('textarea').value") == "typed before"
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", asked.id) == {"value": "typed before"}


def test_a_draft_is_only_for_who_wrote_it(serving: Serving, open_tab: Any) -> None:
    token = serving.tokens.add("ada", ["answer"], name="old phone")
    serving.store.create("ada", model.string_input("Secret of ada"))
    tab = open_tab(token)
    tab.click(".row")
    tab.fill("textarea", "typed by ada")
    (entry,) = (one for one in serving.tokens.entries() if one.name == "old phone")
    serving.tokens.revoke(entry.id)
    tab.click(button("Send"))
    tab.wait("#sign-in-problem >> text=does not know")
    tab.fill("#token", serving.other)
    tab.press("Enter")
    tab.wait("#nothing")
    assert tab.run("document.querySelectorAll('textarea, .row').length") == 0
    assert "Secret of ada" not in tab.run("document.documentElement.outerHTML")


# ---- By keyboard, on a phone -----------------------------------------------------------------------------------------


def test_by_keyboard_alone(serving: Serving, browser: Browser) -> None:
    form_id = serving.store.create("ada", form()).id
    call_id = serving.store.create_confirmation("ada", tool="wipe", arguments={"id": 1}, server="disk").id
    tab = browser.tab()
    tab.go(f"{serving.url}/")
    tab.wait("#token")
    tab.type(serving.answer)
    tab.press("Enter")
    tab.wait(".row >> nth=1")
    _tab_to(tab, "mail asks you to fill in")
    tab.press("Enter")
    tab.wait(".panel")
    assert tab.focused() == "mail asks you to fill in 5 fields"
    _tab_to(tab, "Your name")
    tab.type("Ada")
    _tab_to(tab, "Leave out", whole=True)  # the radio buttons of "Agree"
    tab.press("ArrowDown")
    _tab_to(tab, "Send")
    tab.press("Enter")
    done(tab, "Sent.")
    assert serving.store.result("ada", form_id)["content"] == {"name": "Ada", "count": 3, "agree": True}
    tab.press("Escape")
    assert tab.focused().startswith("Allow wipe?")
    tab.press("Enter")
    tab.wait(button("Approve"))
    tab.press("Tab", "Tab")
    assert tab.focused() == "The arguments in full", "a long text can be scrolled by keys"
    _tab_to(tab, "Reject")
    tab.press("Space")
    done(tab, "Rejected.")
    assert serving.store.result("ada", call_id) == {"confirmed": False}
    assert tab.faults() == []
    tab.close()


def _tab_to(tab: Tab, name: str, *, whole: bool = False) -> None:
    for _ in range(40):
        tab.press("Tab")
        focused = tab.focused()
        if focused == name or (focused.startswith(name) and not whole):
            return
    raise AssertionError(f"the Tab key does not reach {name!r}")


def test_what_a_screen_reader_gets(serving: Serving, open_tab: Any) -> None:
    serving.store.create("ada", form())
    tab = open_tab()
    tab.click(".row")
    tab.click(button("Send"))
    tab.wait(".summary >> text=attention")
    tree = tab.tree()
    for line in (
        'heading "Requests" [level=1]', 'navigation "Waiting for you"', 'article "mail asks you to fill in 5 fields"',
        'textbox "Your name required"', 'group "Agree"', 'radio "Yes"', 'group "Tags"', 'checkbox "c"', "alert:",
        'button "Send"', 'button "Decline"', 'button "Cancel"',
    ):  # fmt: skip
        assert line in tree, line
    described = tab.run("document.activeElement.getAttribute('aria-describedby').split(' ')"
                        ".map((id) => document.getElementById(id).textContent).join(' ')")  # fmt: skip
    assert "2 to 40 characters" in described and "needs an answer" in described
    assert tab.run("document.activeElement.getAttribute('aria-invalid')") == "true"


def test_on_a_phone(serving: Serving, open_tab: Any) -> None:
    long = "word " * 50 + "x" * 400
    serving.store.create("ada", form({**FORM, "title": long}, message=long, server="s" * 300, tool="t" * 300))
    serving.store.create_confirmation("ada", tool="w" * 200, arguments={"a" * 300: "b" * 3000}, server="disk")
    serving.store.create("ada", page("https://" + ".".join(["label" * 8] * 5) + ".example/" + "p" * 5000))
    tab = open_tab(width=360, height=640, touch=True)
    for number in range(3):
        _fits(tab)
        tab.click(f".row >> nth={number}")
        tab.wait(".panel")
        assert not tab.run("document.querySelector('#side').checkVisibility()")
        _fits(tab)
        sizes = tab.run("[...document.querySelectorAll('.panel .buttons button')].map((b) => b.offsetHeight)")
        assert sizes and min(sizes) >= 44, "large enough for a finger (WCAG 2.5.5)"
        tab.click(button("\u2039 All requests"))
    assert tab.run("document.querySelector('#side').checkVisibility()")


def _fits(tab: Tab) -> None:
    assert tab.run("document.documentElement.scrollWidth - innerWidth") <= 0, "the page scrolls to the side"


# ---- Nothing breaks out ----------------------------------------------------------------------------------------------


def test_texts_of_servers_stay_texts(serving: Serving, open_tab: Any) -> None:
    properties: dict[str, Any] = {
        EVIL: {"type": "string", "description": EVIL, "default": EVIL},
        "titled": {"type": "number", "title": EVIL},
        "choice": {"oneOf": [{"const": EVIL, "title": EVIL}, {"const": "b", "title": "B"}], "title": EVIL + "2"},
        "many": {"enum": [f"{EVIL}{n}" for n in range(9)]},
        "list": {"type": "array", "items": {"enum": [EVIL, "x"]}},
        "__proto__": {"type": "string"}, "constructor": {"type": "boolean"}, "": {"type": "string"},
    }  # fmt: skip
    told = {"message": EVIL, "server": EVIL, "tool": EVIL}
    schema = {"type": "object", "title": EVIL, "description": EVIL, "properties": properties, "required": ["titled"]}
    asked = serving.store.create("ada", form(schema, **told))
    store = serving.store
    store.create("ada", page("https://evil.example/?" + EVIL.replace("\x1b", ""), **told))
    store.create("ada", page(EVIL, **told))
    store.create_confirmation("ada", tool=EVIL, arguments={EVIL: [EVIL]}, server=EVIL, message=EVIL)
    store.create("ada", model.single_choice(EVIL, [EVIL, "b"], server=EVIL))
    store.create("ada", model.multi_choice(EVIL, [EVIL, "b"], server=EVIL))
    store.create("ada", model.string_input(EVIL, server=EVIL))
    store.create("ada", model.file_upload(EVIL, server=EVIL, tool=EVIL))
    tab = open_tab()
    for number in range(8):
        tab.click(f".row >> nth={number}")
        tab.wait(".panel")
        assert tab.run("document.querySelectorAll('main img, main script, main iframe').length") == 0
        shown = tab.text(".panel .message")
        assert "<img src=x" in shown and "\\u202egnp.exe\\u200b\\x1b[2J" in shown
        seen = tab.run("document.body.innerText")
        assert not {"\u202e", "\u200b", "\x1b"} & set(seen)
    tab.click(".row >> nth=0")
    tab.click(button("Send"))
    tab.wait(".summary >> text=1 field needs attention")
    tab.fill(".field.wrong input", "1")
    tab.click(button("Send"))
    done(tab, "Sent.")
    assert serving.store.result("ada", asked.id)["content"] == {EVIL: EVIL, "titled": 1}
    assert tab.run("window.hacked") is None


def test_the_policy_holds(serving: Serving, browser: Browser) -> None:
    """What the other tests would notice: markup made of texts, scripts in the page, other hosts."""
    tab = browser.tab()
    tab.go(f"{serving.url}/")
    for attempt in (
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}))",
        "document.body.setAttribute('style', 'color:red')",
    ):
        tab.run(f"(() => {{ try {{ {attempt}; }} catch {{ }} }})()")
    tab.until("true")
    faults = " ".join(tab.faults())
    assert "require-trusted-types-for" in faults and "img-src" in faults and "style-src-attr" in faults
    assert serving.get(BASE, token=None).headers["content-security-policy"].startswith("default-src 'none'")
    tab.close()
