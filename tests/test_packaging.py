"""What is shipped: metadata, extras, the files of sdist and wheel, and what an import costs and brings along."""

from __future__ import annotations

import importlib.metadata as metadata
import json
import re
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support import children, contents

ROOT = children.ROOT
PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"]


@pytest.fixture(scope="module")
def distribution() -> metadata.Distribution:
    return metadata.distribution("gopher-mcp-python")


# ---- Metadata -------------------------------------------------------------------------------------------------------


def test_metadata_names_what_it_is(distribution: metadata.Distribution) -> None:
    import gopher_mcp_python

    assert distribution.version == gopher_mcp_python.__version__
    assert distribution.metadata["License-Expression"] == "Apache-2.0"
    assert distribution.metadata["Requires-Python"] == ">=3.10"
    supported = {line.rsplit("::")[-1].strip() for line in distribution.metadata.get_all("Classifier") or []}
    assert {"3.10", "3.11", "3.12", "3.13", "Typed"} <= supported
    described = distribution.metadata.get_payload() or distribution.metadata["Description"]  # the latter: backport
    assert "# " in (described or ""), "the README is the description"


def test_extras(distribution: metadata.Distribution) -> None:
    extras = set(distribution.metadata.get_all("Provides-Extra") or [])
    own = {"native", "anthropic", "openai", "keyring", "qt", "serve", "postgres", "adk", "langchain", "all", "test"}
    assert own | set(PLATFORMS) <= extras


def test_the_native_extra_has_a_marker_for_each_platform(distribution: metadata.Distribution) -> None:
    native = [line for line in distribution.requires or [] if re.search(r"extra == ['\"]native['\"]", line)]
    assert len(native) == len(PLATFORMS)
    for platform in PLATFORMS:
        (line,) = (line for line in native if f"-{platform}>=0.1.35" in line)
        assert "sys_platform" in line and "platform_machine" in line
        alias = f"extra == ['\"]{platform}['\"]"
        assert any(re.search(alias, line) and f"-{platform}>=0.1.35" in line for line in distribution.requires or [])


def test_nothing_heavy_is_required(distribution: metadata.Distribution) -> None:
    required = [re.split(r"[^\w.-]", line)[0] for line in distribution.requires or [] if "extra ==" not in line]
    # mcp brings most of them.
    assert set(required) == {"mcp", "cryptography", "platformdirs", "prompt_toolkit", "regex"}


def test_the_command_is_installed(distribution: metadata.Distribution) -> None:
    scripts = {entry.name: entry.value for entry in distribution.entry_points if entry.group == "console_scripts"}
    assert scripts == {"gopher-mcp": "gopher_mcp_python.cli:main"}
    ended = children.run([str(Path(sys.executable).with_name("gopher-mcp")), "--help"])
    assert ended.check().out and "doctor" in ended.out and "demo" in ended.out


def test_type_information_and_header_are_installed() -> None:
    import gopher_mcp_python

    folder = Path(gopher_mcp_python.__file__).parent
    for name in ("py.typed", "ffi/_bridge.pyi", "include/gopher_orch/gopher_orch.h"):
        assert (folder / name).is_file(), name


# ---- Import ---------------------------------------------------------------------------------------------------------

LOOK = """
import json, sys, threading
before = set(sys.modules)
import gopher_mcp_python
names = sorted(set(sys.modules) - before)
with open("/proc/self/maps") as maps:
    mapped = sorted({line.split()[-1] for line in maps if "/" in line})
print(json.dumps({"modules": names, "mapped": mapped, "threads": threading.active_count()}))
"""


def test_import_is_light(native_environment: dict[str, str]) -> None:
    """Even where a vendor library is there to be found, importing the package opens nothing and starts nothing."""
    facts = json.loads(children.python(LOOK, env=native_environment).check().out)
    tops = {name.split(".")[0] for name in facts["modules"]}
    heavy = {"asyncio", "mcp", "anyio", "httpx", "httpx2", "pydantic", "starlette", "openai", "anthropic"}
    heavy |= {"ssl", "ctypes", "logging", "webbrowser", "subprocess"}
    assert not tops & heavy, sorted(tops & heavy)
    assert facts["threads"] == 1
    assert not [path for path in facts["mapped"] if "gopher-orch" in path or "libcrypto" in path]


def test_a_native_run_does_not_import_the_sdk(native_environment: dict[str, str]) -> None:
    code = """
import sys
from gopher_mcp_python import AgentError, GopherAgent
try:
    GopherAgent.create_with_url("OpenAIProvider", "m", "http://127.0.0.1:9/mcp", {"engine": "native"})
except AgentError:
    print(sorted({name.split(".")[0] for name in sys.modules} & {"mcp", "anyio", "pydantic", "openai"}))
"""
    ended = children.python(code, env={**native_environment, "OPENAI_API_KEY": "x"}).check()
    assert ended.out == "[]\n"


def test_every_public_name_can_be_imported_in_a_fresh_process() -> None:
    code = """
import gopher_mcp_python
from gopher_mcp_python import *
missing = [name for name in gopher_mcp_python.__all__ if name not in globals()]
print(len(gopher_mcp_python.__all__), missing)
"""
    number, missing = children.python(code).check().out.split(maxsplit=1)
    assert int(number) > 25 and missing == "[]\n"


def test_import_and_use_are_clean_under_warnings_as_errors() -> None:
    code = "import gopher_mcp_python as g; [getattr(g, n) for n in g.__all__]"
    ended = children.run([sys.executable, "-X", "dev", "-W", "error", "-c", code])
    assert (ended.code, ended.err) == (0, "")


def test_a_missing_provider_sdk_is_an_error_that_names_the_extra() -> None:
    code = """
import sys
sys.modules[sys.argv[1]] = None
from gopher_mcp_python import AgentError, GopherAgent
try:
    GopherAgent.create_with_url(sys.argv[2], "m", "http://127.0.0.1:9/mcp", {"engine": "embedded"})
except AgentError as error:
    print(error)
"""
    for module, provider in (("openai", "OpenAIProvider"), ("anthropic", "AnthropicProvider")):
        environment = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
        ended = children.python(code, module, provider, env=environment).check()
        assert f"gopher-mcp-python[{module}]" in ended.out, ended.out + ended.err


# ---- Built distributions --------------------------------------------------------------------------------------------

EPOCH = "1700000000"  # a moment, in seconds since 1970


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fresh sdist, and the wheel that is built from it, with this environment's build tools."""
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    children.run(argv, env={"SOURCE_DATE_EPOCH": EPOCH}, timeout=170).check()
    return folder


@pytest.mark.source_tree
@pytest.mark.timeout(200)
def test_the_sdist_holds_all_that_a_build_and_a_test_run_need(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
        sizes = {member.name: member.size for member in opened.getmembers()}
    wanted = ["pyproject.toml", "CMakeLists.txt", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "csrc/bridge.h"]
    wanted += ["include/gopher_orch/gopher_orch.h", "src/gopher_mcp_python/ffi/_bridge.pyx", "tests/conftest.py"]
    wanted += ["tests/support/openssl11.sh", "benchmarks/__init__.py", "examples/api/create_by_url.py"]
    for name in wanted:
        assert name in names, name
    unwanted = [name for name in names if re.search(r"\.(so|pyd|pyc|log)$|__pycache__|^\.venv|^build/|^\.ci", name)]
    assert unwanted == []
    assert max(sizes.values()) < 1_000_000


@pytest.mark.source_tree
@pytest.mark.timeout(200)
def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    """Linux wheels say nothing of their libc before they are repaired; all else is as in those that are published."""
    (archive,) = built.glob("*.whl")
    found = contents.problems(archive)
    if sys.platform == "linux":
        assert found.pop().startswith("not repaired: ")
    assert found == []


@pytest.mark.source_tree
@pytest.mark.timeout(200)
def test_one_commit_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    argv = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    children.run(argv, env={"SOURCE_DATE_EPOCH": EPOCH}, timeout=170).check()
    assert (tmp_path / archive.name).read_bytes() == archive.read_bytes()
