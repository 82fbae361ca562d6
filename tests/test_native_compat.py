"""The compatibility rule as a table: every fact that it may be given, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import compat
from gopher_mcp_python.native.compat import Verdict, verdict

REQUIRED = [symbol.name for symbol in _bridge.symbol_table() if symbol.required]
SUPPORT_SYMBOL = "gopher_orch_agent_options_supports_elicitation"
OPTIONS_SYMBOL = "gopher_orch_agent_create_by_json_with_options"
EVENTS_SYMBOL = "gopher_orch_agent_set_event_callback"
ROUTED_SYMBOL = "gopher_orch_agent_create_by_url"

PLAIN = frozenset(REQUIRED)
WITH_URL = PLAIN | {ROUTED_SYMBOL}
WITH_OPTIONS = WITH_URL | {OPTIONS_SYMBOL}
WITH_EVENTS = WITH_OPTIONS | {EVENTS_SYMBOL}
WITH_QUESTION = WITH_EVENTS | {SUPPORT_SYMBOL}


def judge(library: str | None, symbols: frozenset[str], **facts: Any) -> Verdict:
    given = {"symbols": symbols, "required": REQUIRED, **facts}
    return verdict("0.1.39", library, "0.2.0", "0.2.0", **given)


@pytest.mark.parametrize(
    ("library", "symbols", "facts", "status", "elicitation", "certain", "retry_fix"),
    [
        # library   symbols        further facts                     status      elicit certain retry
        ("0.1.1", PLAIN, {}, "too_old", False, True, False),
        ("0.1.23", WITH_URL, {}, "too_old", False, True, False),
        ("0.1.30", WITH_OPTIONS, {}, "too_old", False, True, False),
        ("0.1.34", WITH_EVENTS, {}, "too_old", False, True, False),
        ("0.1.35", WITH_EVENTS, {}, "limited", True, True, False),
        ("0.1.37", WITH_EVENTS, {}, "limited", True, True, False),
        ("0.1.38", WITH_EVENTS, {}, "good", True, True, True),
        ("0.1.39", WITH_EVENTS, {}, "good", True, True, True),
        ("0.1.100", WITH_EVENTS, {}, "good", True, True, True),
        ("0.2", WITH_EVENTS, {}, "good", True, True, True),
        ("1.0.0", WITH_QUESTION, {}, "good", True, True, True),
        # a new number on a file without option functions is no support
        ("0.1.39", WITH_URL, {}, "too_old", False, True, True),
        # the library's own word counts more than any number
        ("0.1.34", WITH_QUESTION, {"supports_elicitation": True}, "limited", True, True, False),
        ("0.1.39", WITH_QUESTION, {"supports_elicitation": False}, "too_old", False, True, True),
        (None, WITH_QUESTION, {}, "limited", True, True, None),
        (None, WITH_QUESTION, {"supports_elicitation": False}, "too_old", False, True, None),
        # nothing tells the version: a guess, and said to be one
        (None, WITH_EVENTS, {}, "unknown", False, False, None),
        (None, WITH_EVENTS, {"elicitation_text": True}, "unknown", True, False, None),
        (None, WITH_EVENTS, {"elicitation_text": False}, "unknown", False, False, None),
        (None, PLAIN, {"elicitation_text": True}, "too_old", False, True, None),
    ],
)
def test_the_rule(
    library: str | None, symbols: frozenset[str], facts: dict[str, bool], status: str, elicitation: bool, certain: bool,
    retry_fix: bool | None,
) -> None:  # fmt: skip
    found = judge(library, symbols, **facts)
    assert (found.status, found.elicitation, found.certain, found.retry_fix) == (
        status,
        elicitation,
        certain,
        retry_fix,
    )
    assert found.usable
    assert found.options == (OPTIONS_SYMBOL in symbols)
    assert found.events == (EVENTS_SYMBOL in symbols)
    assert found.create_by_url == (ROUTED_SYMBOL in symbols)
    assert (found.remedy is None) == (status == "good")
    assert (library or "unknown version") in found.summary


def test_the_rule_is_pure() -> None:
    assert judge("0.1.39", WITH_EVENTS) == judge("0.1.39", WITH_EVENTS)


def test_too_old_names_both_versions_and_the_command() -> None:
    found = judge("0.1.34", WITH_EVENTS, source="file name")
    assert found.summary == (
        "libgopher-orch 0.1.34 is too old for elicitation: 0.1.35 or newer is needed (version 0.1.34 (file name))"
    )
    assert found.remedy == "pip install --upgrade 'gopher-mcp-python-native-linux-x64>=0.1.38'"


def test_without_the_retry_fix_it_says_so() -> None:
    found = judge("0.1.36", WITH_EVENTS)
    assert "lacks the fix for the retry after sign-in over streamable HTTP (0.1.38 or newer)" in found.summary


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"elicitation_text": True}, "probably answers elicitations (a guess: nothing tells its version, and the "
                                     "library's elicitation messages are in it)"),
        ({"elicitation_text": False}, "may not answer elicitations (a guess: nothing tells its version, and the "
                                      "library's elicitation messages are not in it)"),
        ({}, "may not answer elicitations (nothing tells its version)"),
    ],
)  # fmt: skip
def test_a_guess_is_said_to_be_one(facts: dict[str, bool], said: str) -> None:
    found = judge(None, WITH_EVENTS, **facts)
    assert said in found.summary
    assert found.remedy and found.remedy.startswith("name the file with its version (libgopher-orch.so.X.Y.Z)")


@pytest.mark.parametrize("missing", sorted(REQUIRED))
def test_a_missing_required_function_is_named(missing: str) -> None:
    found = judge("0.1.39", WITH_EVENTS - {missing})
    assert (found.status, found.usable, found.elicitation) == ("unusable", False, False)
    assert found.summary == f"this is no usable libgopher-orch: it lacks {missing}"


def test_what_is_required_can_be_told_from_outside() -> None:
    assert judge("0.1.1", PLAIN, required=["gopher_orch_other"]).status == "unusable"
    assert judge("0.1.1", frozenset(), required=[]).usable


@pytest.mark.parametrize(
    ("header", "library", "extension", "package", "said"),
    [
        ("0.1.39", "0.1.39", "0.2.0", "0.2.0", None),
        ("0.1.39", "0.1.40", "0.2.0", "0.2.0", "version 0.1.40 is newer than 0.1.39, the newest that this "
                                               "package was checked against"),
        ("0.1.39", "0.1.39", "0.2.0", "0.3.0", "the extension module was built for 0.2.0 and this is 0.3.0: "
                                               "pip install --force-reinstall --no-deps gopher-mcp-python"),
        ("0.1.39", None, None, "0.3.0", None),
    ],
)  # fmt: skip
def test_other_versions_are_noted(
    header: str, library: str | None, extension: str | None, package: str, said: str | None
) -> None:
    notes = verdict(header, library, extension, package, symbols=WITH_EVENTS).notes
    assert notes == ((said,) if said else ())


def test_the_verdict_is_plain_data() -> None:
    assert judge("0.1.39", WITH_EVENTS).as_dict()["status"] == "good"
    assert compat.HEADER_VERSION == "0.1.39"
