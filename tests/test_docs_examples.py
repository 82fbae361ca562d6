"""Every example in README.md, docs/*.md and examples/*.md is run, or stands in `NOT_RUN` with the reason why not."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import children, frameworks, limited_keyring
from tests.support.browsing import browser_file
from tests.support.examples import ROOT, UNRUN_PROPERTY, blocks, each, example, marked, replaced, text_of, told
from tests.support.examples.prepared import FRAMEWORKS, KEYRING, MODEL, PERSON, PREPARED, WINDOWS, Prepared
from tests.support.examples.scratch import Scratch
from tests.support.scripted_llm import ScriptedModel

pytestmark = pytest.mark.source_tree
# Python that another test runs: in a terminal, in a notebook, in another environment, with a database.
ELSEWHERE = {
    "README.md: In a program: 1", "docs/index.md: The first five minutes: 3", "docs/notebook.md: In a notebook: 1",
    "docs/store-postgres.md: Setting it up: 4", *(name for names in FRAMEWORKS.values() for name in names),
}  # fmt: skip


# What no test runs, and why. Each is still held to naming things that exist, below.
NOT_RUN = {
    "README.md: Two commands: 1": "`make test` would run itself; `make demo` is the demo, which other blocks run",
    "docs/fuzzing.md: Fuzzing: 1": "takes from minutes to hours, by intent",
    "docs/mutation.md: Mutation testing: 1": "takes from minutes to hours, by intent",
    "docs/benchmarks.md: Benchmarks: 1": "takes ten minutes, and wants the machine for itself",
    "docs/benchmarks.md: Benchmarks: 2": "changes the page of benchmarks, by figures of that run",
    "docs/live-smoke-test.md: Live smoke test: 2": "needs an account with a mail provider, and somebody at the browser",
}


@pytest.fixture
def addresses(demo_url: str, scenario_url: str, protected_url: str) -> dict[str, str]:
    """What the names in prepared.py stand for."""
    return {"DEMO_URL": demo_url, "SCENARIO_URL": scenario_url, "PROTECTED_URL": protected_url}


def addressed(name: str, prepared: Prepared, addresses: dict[str, str]) -> str:
    """A block's program, with the addresses of this run."""
    source = prepared.before + replaced(text_of(name), dict(prepared.replace)) + prepared.after
    for token, url in addresses.items():
        source = source.replace(token, url)
    return source


def variables(prepared: Prepared, scratch: Scratch, model: ScriptedModel) -> dict[str, str]:
    found: dict[str, str] = {}
    if MODEL in prepared.needs:
        found |= model.environment()
    if WINDOWS in prepared.needs:
        found["QT_QPA_PLATFORM"] = "offscreen"
    if PERSON in prepared.needs:
        found["BROWSER"] = str(browser_file(scratch.folder))
    if KEYRING in prepared.needs:
        found |= limited_keyring.environment(scratch.folder / "keyring.json")
    return found


def shows(prepared: Prepared, ended: children.Ended) -> None:
    for text in prepared.shows:
        assert text in ended.out + ended.err, f"{text!r} is not shown:\n{ended.out}\n{ended.err}"


@each(name for name, block in blocks().items() if block.language == "python" and name not in ELSEWHERE)
def test_python_does_what_it_says(
    name: str, python_scratch: Scratch, addresses: dict[str, str], scripted_model: ScriptedModel
) -> None:
    prepared = PREPARED.get(name, Prepared())
    source = addressed(name, prepared, addresses)
    shows(prepared, python_scratch.python(source, variables(prepared, python_scratch, scripted_model)))


@pytest.mark.parametrize(
    "environment", [pytest.param(one, marks=example(*names)) for one, names in FRAMEWORKS.items()]
)
def test_other_frameworks_are_asked_as_it_says(environment: str, addresses: dict[str, str], tmp_path: Path) -> None:
    if sys.version_info[:2] < frameworks.OLDEST_PYTHON[environment]:
        pytest.skip("this framework needs a newer Python")
    files = []
    for number, (name, prepared) in enumerate(FRAMEWORKS[environment].items()):
        files.append(tmp_path / f"{number}.py")
        files[-1].write_text(addressed(name, prepared, addresses), encoding="utf-8")
    argv = ["-m", "tests.support.examples.program", *map(str, files)]
    ended = frameworks.run(environment, tmp_path, argv).check()
    for prepared in FRAMEWORKS[environment].values():
        shows(prepared, ended)


# ---- all of them ---------------------------------------------------------------------------------------------------


def test_every_example_is_run_or_has_a_reason(record_property: Callable[[str, object], None]) -> None:
    record_property(UNRUN_PROPERTY, len(NOT_RUN))
    run = names_run()
    assert run.isdisjoint(NOT_RUN), "these are run, so the reason is none"
    known = run | NOT_RUN.keys()
    assert known == blocks().keys(), (
        f"neither run nor in NOT_RUN: {sorted(blocks().keys() - known)}; not there: {sorted(known - blocks().keys())}"
    )


def test_the_number_in_the_documents_is_the_real_one() -> None:
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert f"`{told(len(names_run()), len(NOT_RUN))}`" in text


@pytest.mark.parametrize("name", [name for name in NOT_RUN if "make" in text_of(name)])
def test_what_make_is_told_is_known_to_it(name: str) -> None:
    script = re.sub(r"^make ", "make -n ", text_of(name), flags=re.MULTILINE)
    assert "-n" in script
    children.run(["sh", "-ec", script]).check()


def test_the_live_test_reads_what_it_is_given() -> None:
    block = text_of("docs/live-smoke-test.md: Live smoke test: 2")
    (file,) = re.findall(r"tests/\w+\.py", block)
    variables_of_block = re.findall(r"(GOPHER_\w+)=", block)
    assert variables_of_block and all(name in (ROOT / file).read_text() for name in variables_of_block)


def names_run() -> set[str]:
    """The examples that tests run."""
    from tests import test_docs_examples_commands, test_docs_examples_shown

    modules = (sys.modules[__name__], test_docs_examples_commands, test_docs_examples_shown)
    return {name for module in modules for name in marked(module)}
