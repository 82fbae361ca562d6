"""The documents: links lead somewhere, every message has its section, and no place is named that only exists on one
machine. Their examples: test_docs_examples.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import messages

pytestmark = pytest.mark.source_tree

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _names() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def _anchor(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    plain = re.sub(r"[`*_]", "", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def _anchors(path: Path) -> set[str]:
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return {_anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def test_the_documents_that_people_look_for_are_there() -> None:
    wanted = {"README.md", "CHANGELOG.md"} | {
        f"docs/{name}.md"
        for name in (
            "migrating",
            "threads",
            "elicitation",
            "native-library",
            "engines",
            "live-smoke-test",
            "contributing",
        )
    }
    assert wanted <= set(_names())
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", _names())
def test_links_lead_somewhere(name: str) -> None:
    document = ROOT / name
    for pair in _LINK.findall(_FENCE.sub("", document.read_text(encoding="utf-8"))):
        target = pair[0] or pair[1]
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        assert found.exists(), f"{name}: {target} is not there"
        if anchor:
            assert anchor in _anchors(found), f"{name}: {target} has no such heading"


@pytest.mark.parametrize("name", _names())
def test_no_document_holds_a_control_character(name: str) -> None:
    assert not re.findall(r"[\x00-\x09\x0b-\x1f\x7f]", (ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", _names())
def test_no_document_names_a_place_of_one_machine(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:root|tmp|work|home/\w+|Users/\w+)/", text)
    assert "localhost:3000" not in text


def test_every_exported_name_that_configures_something_is_documented() -> None:
    import gopher_mcp_python

    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for name in ("AgentError", "ApiKeyError", "ConnectionError", "TimeoutError", "NativeMismatchWarning",
                 "ElicitationWarning", "non_blocking", "diagnose"):  # fmt: skip
        assert name in gopher_mcp_python.__all__
        assert name in text, f"{name} is in no document"


def test_every_variable_that_the_code_reads_is_documented() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r'"(GOPHER_[A-Z0-9_]+)"', sources)) | set(re.findall(r'environ\.get\("([A-Z_]+)"', sources))
    assert read > {"GOPHER_MCP_ENGINE", "GOPHER_MCP_TOKEN_STORE", "BROWSER"}, "the source names no variable any more"
    cells = re.findall(r"^\| (`[^|]+) \|", _text("environment.md"), re.MULTILINE)
    rows = {name for cell in cells for name in re.findall(r"`([A-Z0-9_]+)`", cell)}
    ours = {"PROCESSOR_ARCHITECTURE", "WT_SESSION"}  # set by Windows itself, for nobody to change
    assert read - rows - ours == set()
    every = {path for top in ("src", "tests", "examples", "benchmarks") for path in (ROOT / top).rglob("*.py")}
    used = "\n".join(path.read_text(encoding="utf-8") for path in every)
    assert {name for name in rows if name.startswith("GOPHER_") and name not in used} == set()


def test_the_changelog_has_this_version_and_the_native_one() -> None:
    import gopher_mcp_python

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{gopher_mcp_python.__version__}]" in text
    assert "0.1.35" in text and "0.1.38" in text


# What diagnosis, warnings and errors about the native library can say, and the section that explains it.
SECTIONS = {
    "limited": "Without the streamable HTTP retry fix",
    "too_old": "Too old for elicitation",
    "unknown": "The version is unknown",
    "unusable": "A function is missing",
    "not installed": "The native library was not found",
    "missing shared libraries": "A shared library is missing",
    "wrong platform": "Built for another platform",
    "no such file or folder": "A path variable names nothing usable",
    "damaged": "A library's file is damaged",
}


def test_every_message_about_the_native_library_has_its_section() -> None:
    from typing import get_args

    from gopher_mcp_python.native.compat import Status

    headings = re.findall(r"^### (.+)$", (ROOT / "docs/native-library.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(get_args(Status)) - {"good"} <= set(SECTIONS)
    assert sorted(headings) == sorted(SECTIONS.values())


def test_the_versions_in_the_documents_are_those_of_the_code() -> None:
    from gopher_mcp_python.native import compat

    for name in ("README.md", "docs/native-library.md", "docs/engines.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert compat.ELICITATION_SINCE in text and compat.RETRY_FIX_SINCE in text, name
    for name in ("README.md", "CHANGELOG.md"):
        assert f"hecked against {compat.HEADER_VERSION}" in (ROOT / name).read_text(encoding="utf-8")


def test_the_versions_and_functions_of_the_native_library_are_those_of_the_table() -> None:
    from gopher_mcp_python.native import compat, names

    rows = re.findall(r'^X\(\w+, "(\w+)", "([\d.]*)", (\w+),', (ROOT / "csrc/api_table.h").read_text(), re.MULTILINE)
    assert len(rows) > 20
    page = _text("native-library.md")
    told = set(re.findall(r"^\| (0\.\d+\.\d+) \|", page, re.MULTILINE))
    since = {version for _, version, _ in rows if version}
    assert told == since | {names.ELICITATION_SINCE, names.RETRY_FIX_SINCE, compat.HEADER_VERSION}
    section = page.partition("## The C interface")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(gopher_orch_\w+)`", section)) == {name for name, _, need in rows if need == "REQUIRED"}


# ---- the site ------------------------------------------------------------------------------------------------------

# Classes that nobody meets, and what becomes of each before it leaves the package.
_INTERNAL = {
    "BadLibrary": "its text stands in a report, or in another error",
    "Broken": "its text is a FormContentError's, or a ValueError's",
    "Damaged": "a TokenStoreError",
    "HandlerInterrupted": "the KeyboardInterrupt or SystemExit that it carries",
    "InputLost": "the notebook's question is cancelled",
    "InvalidElicitation": "JSON-RPC error -32602, or a ToolsetError",
    "Lost": "an error of JSON-RPC, or a tool's result (gateway)",
    "NotBegun": "an error of JSON-RPC, or the call is made anew (gateway)",
    "PatternError": "its text is a FormSchemaError's",
    "PatternTimeout": "a FormContentError",
    "Problem": "an answer of the REST interface",
    "PropertyUnknownHere": "its text is a FormSchemaError's",
    "RefreshRefused": "a new sign-in",
    "TooDeep": "a FormContentError",
    "TooMany": "status 429 of the REST interface",
    "TooMuch": "a FormContentError",
    "TooNew": "a TokenStoreError",
    "Unavailable": "its text says why no browser was opened",
    "Unsuitable": "a tool's result (gateway)",
    "UsageError": "a line of the command line",
    "WrongKey": "a TokenStoreError",
}


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_error_that_people_meet_is_in_the_catalogue() -> None:
    raised = {name for name in messages.error_classes() if not name.startswith("_")}
    described = set(re.findall(r"^\| `(\w+)` \|", _text("errors.md"), re.MULTILINE))
    assert raised - set(_INTERNAL) == described
    assert set(_INTERNAL) <= raised, "of a class that is gone"


def _options() -> set[str]:
    """Every option of every command that `--help` shows."""
    import argparse

    from gopher_mcp_python.cli import parser

    found: set[str] = set()
    left: list[argparse.ArgumentParser] = [parser()]
    while left:
        for action in left.pop()._actions:
            if isinstance(action, argparse._SubParsersAction):
                left += action.choices.values()
            elif action.help != argparse.SUPPRESS:
                found |= set(action.option_strings)
    return found


def test_every_option_is_documented_and_none_that_is_not_there() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS if path.name != "errors.md")
    options = _options()
    assert len(options) > 60
    missing = [option for option in options if not re.search(re.escape(option) + r"(?![\w-])", pages)]
    assert not missing, f"in no document: {sorted(missing)}"
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", _text("command-line.md")))
    assert named - options == {"--jsn"}, "the example of a slip of the pen is the only one that is none"


def test_every_cell_of_the_protocol_table_names_a_test() -> None:
    cells = re.findall(r"`([\w/]+\.py)::(\w+)`", _text("protocol.md"))
    assert len(cells) >= 30
    for file, test in cells:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file} has no {test}"


def test_the_tests_of_the_protocol_table_run_at_the_version_of_their_column() -> None:
    """By the `@at(...)` above each: what it names has to be the column's version."""
    from tests.support.toolset_places import WITH_URLS
    from tests.support.toolset_servers import HANDSHAKE, MODERN, VERSIONS

    meant = {"*VERSIONS": VERSIONS, "*HANDSHAKE": HANDSHAKE, "MODERN": (MODERN,), "WITH_URLS": (WITH_URLS,)}
    header, _, *rows = [line.split("|")[1:-1] for line in _text("protocol.md").splitlines() if line.startswith("|")]
    looked_at = 0
    for row in rows:
        for title, cell in zip(header, row, strict=True):
            for file, test in re.findall(r"`([\w/]+\.py)::(\w+)`", cell):
                source = (ROOT / "tests" / file).read_text(encoding="utf-8")
                above = source.partition(f"\ndef {test}(")[0].rpartition("\n\n\n")[2]
                at = re.search(r"^@at\((.+)\)$", above, re.MULTILINE)
                if at and "embedded" in title:
                    looked_at += 1
                    versions = [version for name in at[1].split(", ") for version in meant[name]]
                    assert title.strip().rpartition(" ")[2] in versions, f"{test} is of {versions}, not of {title}"
    assert looked_at >= 20


def test_every_page_is_in_the_contents() -> None:
    entries = re.findall(r"^([a-z-]+)$", _text("index.md"), re.MULTILINE)
    assert sorted(entries) == sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index")
