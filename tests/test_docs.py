"""The documents: links lead somewhere, Python in them runs (or compiles), every message has its section, and no place
is named that only exists on one machine."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.support import children

pytestmark = pytest.mark.source_tree

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A snippet that creates an agent or runs one needs a server: those are only compiled.
_NEEDS_SERVER = re.compile(r"\bcreate_with_|GopherAgent\.create\b|\.run\(")


def _names() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def _snippets(language: str) -> list[object]:
    found = []
    for path in DOCUMENTS:
        for number, (kind, _, text) in enumerate(_FENCE.findall(path.read_text(encoding="utf-8"))):
            if kind == language:
                found.append(pytest.param(text, id=f"{path.relative_to(ROOT)}:{number}"))
    return found


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


@pytest.mark.parametrize("source", _snippets("python"))
def test_python_in_documents_compiles_and_runs(source: str) -> None:
    ast.parse(source)
    if not _NEEDS_SERVER.search(source):
        children.python(source).check()


@pytest.mark.parametrize("source", _snippets("python"))
def test_what_documents_import_exists(source: str) -> None:
    lines = [line for line in ast.walk(ast.parse(source)) if isinstance(line, (ast.Import, ast.ImportFrom))]
    children.python("\n".join(ast.unparse(line) for line in lines)).check()


@pytest.mark.parametrize("source", _snippets("sh"))
def test_commands_in_documents_are_commands(source: str) -> None:
    children.run(["sh", "-n", "-c", source]).check()


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
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"\bGOPHER_[A-Z0-9_]+\b", sources))
    assert read, "the source names no variable any more"
    missing = sorted(name for name in read if name not in text)
    assert not missing, f"in no document: {missing}"


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


# ---- the site ------------------------------------------------------------------------------------------------------

# What other modules raise on purpose for their own callers: each is caught inside the package, or never leaves it.
_INTERNAL = {
    "BadLibrary", "Broken", "Damaged", "HandlerInterrupted", "InputLost", "InvalidElicitation", "Lost", "NotBegun",
    "NothingOffered", "PatternError", "PatternTimeout", "Problem", "PropertyUnknownHere", "RefreshRefused", "Refused",
    "TooDeep", "TooMany", "TooMuch", "TooNew", "Unavailable", "Unreachable", "Unsuitable", "UsageError", "WrongKey",
}  # fmt: skip
_RAISED = re.compile(r"^class ([A-Z]\w*)\(\w*(?:Error|Exception|Warning|Unavailable)\b", re.MULTILINE)


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_reference_has_every_public_name() -> None:
    listed = set(re.findall(r"^\.\. auto\w+:: (\S+)$", _text("reference.md"), re.MULTILINE))
    packages = re.findall(r"^## (\S+)$", _text("reference.md"), re.MULTILINE)
    sources = ROOT / "src"
    for path in sources.rglob("__init__.py"):
        exported = re.search(r"^__all__ = (\[.*?\])$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        package = ".".join(path.parent.relative_to(sources).parts)
        if exported and package in packages:
            elsewhere = set(re.findall(r"^- `(\w+)` is that of", _text("reference.md"), re.MULTILINE))
            missing = {name for name in ast.literal_eval(exported[1]) if f"{package}.{name}" not in listed} - elsewhere
            assert not missing, f"{package}: not in the reference: {sorted(missing)}"
    assert len(packages) >= 9 and len(listed) >= 100


def test_every_error_that_people_meet_is_in_the_catalogue() -> None:
    raised = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in _RAISED.findall(path.read_text(encoding="utf-8"))
    }
    described = set(re.findall(r"^\| `(\w+)` \|", _text("errors.md"), re.MULTILINE))
    assert raised - _INTERNAL == described


def test_every_cell_of_the_protocol_table_names_a_test() -> None:
    cells = re.findall(r"`([\w/]+\.py)::(\w+)`", _text("protocol.md"))
    assert len(cells) >= 30
    for file, test in cells:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file} has no {test}"


def test_every_page_is_in_the_contents() -> None:
    entries = re.findall(r"^([a-z-]+)$", _text("index.md"), re.MULTILINE)
    assert sorted(entries) == sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index")


def test_the_program_of_the_first_page_asks_for_the_sign_in(tmp_path: Path) -> None:
    from gopher_mcp_python.demo.child import DemoServer

    program = tmp_path / "first.py"
    program.write_text(next(text for kind, _, text in _FENCE.findall(_text("index.md")) if kind == "python"))
    with DemoServer() as server:
        ended = children.run([sys.executable, str(program), server.url], env={"GOPHER_MCP_ENGINE": "embedded"})
    assert "/provider/authorize?" in ended.err and "Traceback" not in ended.err
