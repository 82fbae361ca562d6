"""What reaches the library: options in its own layout, the right function of every factory."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from gopher_mcp_python.engines.base import Factory
from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

FACTORIES = get_args(Factory)
SECRET = "bearer-value"


def made(factory: str, options: _bridge.NativeOptions | None, variant: Any = "new") -> dict[str, str]:
    """What the library was given by a create through the bridge."""
    handle = _bridge.AgentHandle(testkit.library(variant), testkit.Host(), answer="fixed")
    key = "the-key" if factory not in ("json", "url", "api_key") else None
    assert testkit.finish(handle.create(factory, "Provider", "model", key, "target", options)).ok
    handle.close()
    return testkit.seen(variant)


@pytest.mark.parametrize("factory", FACTORIES)
def test_every_factory_without_options_uses_the_plain_function(factory: str) -> None:
    seen = made(factory, None)
    assert (seen["factory"], seen["options"]) == (factory, "no")
    assert (seen["provider"], seen["model"], seen["target"]) == ("Provider", "model", "target")
    assert seen["api_key"] == ("(null)" if factory in ("json", "url", "api_key") else "the-key")


@pytest.mark.parametrize("factory", FACTORIES)
def test_every_factory_with_options_gives_all_of_them(factory: str) -> None:
    options = _bridge.NativeOptions(
        "tok", {"X-One": "1", "X-Two": "zwei ü"}, [_bridge.ServerOptions(url="https://s.test/", access_token="st")],
        elicitation_timeout_ms=1234,
    )  # fmt: skip
    seen = made(factory, options)
    assert (seen["factory"], seen["options"], seen["access_token"]) == (factory, "yes", "tok")
    assert (seen["X-One"], seen["X-Two"]) == ("1", "zwei ü")
    assert (seen["server"], seen["server_token"]) == ("https://s.test/", "st")
    assert (seen["callback"], seen["elicitation_timeout_ms"]) == ("yes", "1234")


def test_without_elicitation_no_callback_is_given() -> None:
    assert made("url", _bridge.NativeOptions(headers={"X": "1"}, elicitation=False))["callback"] == "no"


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_engine_gives_default_elicitation_through_every_factory(factory: Any) -> None:
    testkit.agent(None, factory=factory).release()
    seen = testkit.seen()
    assert (seen["factory"], seen["options"], seen["callback"]) == (factory, "yes", "yes")
    if factory == "api_key":
        assert seen["target"] == "key"


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_engine_uses_plain_functions_when_there_is_nothing_to_say(factory: Any) -> None:
    testkit.agent(False, factory=factory).release()
    assert testkit.seen()["options"] == "no"


def test_a_token_or_an_authorization_header_never_switches_elicitation_off() -> None:
    for options in ({"access_token": SECRET}, {"headers": {"Authorization": f"Bearer {SECRET}"}},
                    {"access_token": SECRET, "oauth": {"mode": "disabled"}}):  # fmt: skip
        testkit.agent(None, **options).release()
        seen = testkit.seen()
        assert seen["callback"] == "yes" and seen["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("bad", ["a\rb", "a\nb", "a\0b", "a\r\nX-Other: 1", "\ud800"])
def test_line_breaks_and_nul_are_refused_by_name_and_never_shown(bad: str) -> None:
    cases = {
        "access_token": _bridge.NativeOptions(access_token=bad + SECRET),
        "header name": _bridge.NativeOptions(headers={bad + SECRET: "x"}),
        "header value": _bridge.NativeOptions(headers={"X": bad + SECRET}),
        "server access_token": _bridge.NativeOptions(servers=[_bridge.ServerOptions(access_token=bad + SECRET)]),
    }
    handle = _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="fixed")
    for name, options in cases.items():
        with pytest.raises(ValueError, match=name) as caught:
            handle.create("url", "P", "m", None, "t", options)
        assert SECRET not in repr(caught.value) and caught.value.__cause__ is None
    with pytest.raises(ValueError, match="api_key"):
        handle.create("server_id", "P", "m", bad, "t", None)
    handle.close()


@pytest.mark.parametrize("argument", ["provider", "model", "target"])
def test_texts_that_no_c_string_can_hold_are_refused(argument: str) -> None:
    handle = _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="fixed")
    texts = {"provider": "P", "model": "m", "target": "t", argument: "x\0y"}
    with pytest.raises(ValueError, match=argument):
        handle.create("url", texts["provider"], texts["model"], None, texts["target"], None)
    handle.close()
    ready = testkit.handle()
    with pytest.raises(ValueError, match="query"):
        ready.run("a\0b")
    ready.close()


def test_unknown_factory_and_answer_are_refused() -> None:
    with pytest.raises(ValueError, match="answer"):
        _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="perhaps")  # type: ignore[arg-type]
    handle = _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="fixed")
    with pytest.raises(ValueError, match="unknown factory"):
        handle.create("by_magic", "P", "m", None, "t", None)
    handle.close()


# ---- Old libraries --------------------------------------------------------------------------------------------------


def test_old_libraries_need_no_new_functions_when_nothing_new_is_asked_for() -> None:
    assert made("json", None, "old")["factory"] == "json"
    agent = testkit.agent(None, variant="old", factory="json")  # default elicitation: made without it
    assert agent.run("say old", 0).text == "old"
    agent.release()


def test_a_missing_function_is_named_with_the_remedy() -> None:
    with pytest.raises(AgentError, match=r"create_by_url.*[Uu]pgrade"):
        testkit.agent(False, variant="old")
    with pytest.raises(AgentError, match=r"create_by_json_with_options.*[Uu]pgrade"):
        testkit.agent(False, variant="old", factory="json", headers={"X": "1"})


def test_headers_reach_a_library_that_knows_nothing_of_elicitation() -> None:
    agent = testkit.agent(None, variant="headers", headers={"X-A": "b"})
    agent.release()
    assert testkit.seen("headers")["X-A"] == "b"


# ---- The library and its table --------------------------------------------------------------------------------------


def test_symbols_of_each_variant_and_the_table() -> None:
    table = _bridge.symbol_table()
    assert len({symbol.name for symbol in table}) == len(table) == 25
    assert all(re.fullmatch(r"(0\.\d+\.\d+(\.\d+)?)?", symbol.since) for symbol in table)
    for variant in testkit.VARIANTS:
        symbols = testkit.library(variant).symbols()
        assert all(symbols[symbol.name] for symbol in table if symbol.required)
        assert symbols["gopher_orch_agent_set_event_callback_all"] == (variant == "new")
        assert symbols["gopher_orch_agent_create_by_url_with_options"] == (variant != "old")
        assert not testkit.library(variant).has("gopher_orch_no_such_function")


def test_a_library_that_can_not_be_opened_says_why(tmp_path: Any) -> None:
    broken = tmp_path / "libgopher-orch.so"
    broken.write_bytes(b"not a library")
    for path, reason in (
        (str(broken), "header|short|invalid"),
        (str(tmp_path / "none.so"), "no such|cannot open|No such"),
    ):
        with pytest.raises(OSError, match=reason):
            _bridge.Library.open(path)
        with pytest.raises(OSError, match=reason):
            _bridge.preload(path)
    with pytest.raises(OSError, match="NUL"):
        _bridge.Library.open("a\0b")


def test_a_library_that_lacks_what_is_required_is_named() -> None:
    driver = str(testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so")
    with pytest.raises(OSError, match="lacks gopher_orch_agent_create_by_json"):
        _bridge.Library.open(driver)


def test_log_level_and_fetch() -> None:
    library = testkit.library()
    library.set_log_level(4)
    assert testkit.seen() == {"log_level": "4"}
    outcome = testkit.finish(library.fetch_servers("key"))
    assert outcome.ok and outcome.text == '{"servers":[]}'
    failed = testkit.finish(library.fetch_servers(""))
    assert not failed.ok and failed.error_code == -2 and failed.error_message == "no key"
