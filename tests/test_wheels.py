"""How wheels are made: what cibuildwheel would build, the workflows, and that the check of a wheel's contents bites."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gopher_mcp_python.ffi import _bridge
from tests.support import children, contents, wheels

pytestmark = pytest.mark.source_tree

ROOT = children.ROOT
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = ["cp310", "cp311", "cp312", "cp313", "cp314", "cp314t"]
PLATFORMS = {
    ("linux", "x86_64"): ["manylinux_x86_64", "musllinux_x86_64"],
    ("linux", "aarch64"): ["manylinux_aarch64", "musllinux_aarch64"],
    ("macos", "x86_64"): ["macosx_x86_64"],
    ("macos", "arm64"): ["macosx_arm64"],
    ("windows", "AMD64"): ["win_amd64"],
    ("windows", "ARM64"): ["win_arm64"],
}
NAME = "gopher_mcp_python"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"


# ---- cibuildwheel ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info < (3, 11), reason="cibuildwheel itself needs Python 3.11; it builds for 3.10")
@pytest.mark.parametrize(("system", "arch"), PLATFORMS)
def test_what_cibuildwheel_builds(system: str, arch: str) -> None:
    argv = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", system, "--archs", arch]
    listed = children.run([*argv, str(ROOT)]).check().out.split()
    assert sorted(listed) == sorted(f"{python}-{tag}" for python in PYTHONS for tag in PLATFORMS[system, arch])


def test_each_built_version_is_a_supported_one() -> None:
    classifiers = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert classifiers == [version for version in wheels.SUPPORTED if not version.endswith("t")]
    assert {f"cp{version.replace('.', '')}" for version in wheels.SUPPORTED} == set(PYTHONS)


# ---- Workflows ------------------------------------------------------------------------------------------------------


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def test_the_workflows_build_each_platform_on_its_own_machine() -> None:
    (matrix,) = (job["strategy"]["matrix"]["include"] for job in jobs(ROOT / ".github/workflows/wheels.yml").values()
                 if "include" in job.get("strategy", {}).get("matrix", {}))  # fmt: skip
    assert {(row["platform"], row["arch"]) for row in matrix} == set(PLATFORMS)
    arm = [row["arch"] for row in matrix if re.search(r"-arm$|^macos-\d+$", row["runner"])]
    assert sorted(arm) == ["ARM64", "aarch64", "arm64"], "no wheel is built under emulation: each is tested, too"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_runs_is_there(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", name) for name in used), used
    script = "\n".join(step["run"] for step in steps(path) if "run" in step)
    named = re.findall(r"(?<![\w./-])((?:tests|scripts|\.ci)/[\w./-]+)", script)
    assert named and all((ROOT / name).is_file() for name in named), named
    targets = re.findall(r"\bmake (\w[\w-]*)", script)
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(targets) <= set(rules)


def test_only_a_tag_publishes_and_no_secret_is_needed() -> None:
    for path in WORKFLOWS:
        whole = yaml.safe_load(path.read_text())
        assert whole["permissions"] == {"contents": "read"}
        assert "secrets." not in path.read_text()
        for name, job in whole["jobs"].items():
            publishes = any("pypi-publish" in step.get("uses", "") for step in job["steps"])
            assert publishes == (name == "publish") == ("permissions" in job)
            if publishes:
                assert job["permissions"] == {"id-token": "write"}
                assert job["if"] == "startsWith(github.ref, 'refs/tags/v')"
                assert set(job["needs"]) == set(whole["jobs"]) - {name}


# ---- Contents -------------------------------------------------------------------------------------------------------


def extension() -> str:
    return f"{NAME}/ffi/{Path(_bridge.__file__).name}"


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    """Makes a wheel as the build makes it, of this source tree and this environment's extension module."""

    def make(tag: str = "manylinux_2_34_x86_64", without: str = "", extra: dict[str, bytes] | None = None) -> Path:
        source = ROOT / "src" / NAME
        files = {name: source.parent / name for name in contents.package_files()}
        files |= {contents.HEADER: ROOT / "include/gopher_orch/gopher_orch.h", extension(): Path(_bridge.__file__)}
        info = f"{NAME}-9.9.9.dist-info"
        whole = {name: path.read_bytes() for name, path in files.items()}
        whole |= {f"{info}/{name}": b"" for name in contents.METADATA} | (extra or {})
        made = tmp_path / f"{NAME}-9.9.9-{TAG}-{TAG}-{tag}.whl"
        with zipfile.ZipFile(made, "w") as opened:
            for name, content in whole.items():
                if name != without:
                    opened.writestr(name, content)
        return made

    return make


def glibc_tag() -> str:
    return "manylinux_{}_{}_x86_64".format(*contents.glibc(_bridge.__file__))


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads this machine's own extension module, an ELF file")


@linux
def test_a_good_wheel_has_no_problems(wheel: Callable[..., Path]) -> None:
    assert contents.problems(wheel(glibc_tag())) == []


@linux
@pytest.mark.parametrize(
    "name",
    ["py.typed", "ffi/_bridge.pyi", "include/gopher_orch/gopher_orch.h", "native/versions.json", "agent.py"],
)
def test_what_is_missing_is_named(wheel: Callable[..., Path], name: str) -> None:
    assert contents.problems(wheel(glibc_tag(), without=f"{NAME}/{name}")) == [f"missing: {NAME}/{name}"]


@linux
def test_a_missing_licence_is_named(wheel: Callable[..., Path]) -> None:
    name = f"{NAME}-9.9.9.dist-info/licenses/LICENSE"
    assert contents.problems(wheel(glibc_tag(), without=name)) == [f"missing: {name}"]


@linux
@pytest.mark.parametrize(
    "name", ["tests/conftest.py", f"{NAME}/ffi/_bridge.pyx", f"{NAME}/ffi/_bridge.c", "csrc/api.c"]
)
def test_what_does_not_belong_there_is_named(wheel: Callable[..., Path], name: str) -> None:
    assert contents.problems(wheel(glibc_tag(), extra={name: b"x"})) == [f"does not belong there: {name}"]


@linux
def test_a_vendor_library_beside_the_extension_is_refused(wheel: Callable[..., Path]) -> None:
    found = contents.problems(wheel(glibc_tag(), extra={f"{NAME}.libs/libgopher-orch.so": b"x"}))
    assert any(text.startswith("one extension module is wanted") and "libgopher-orch.so" in text for text in found)


@linux
def test_an_extension_that_needs_the_vendors_library_is_refused(wheel: Callable[..., Path], tmp_path: Path) -> None:
    """Linked against a stand-in of that name, by the compiler that builds extension modules."""
    compiler = shutil.which("cc")
    assert compiler
    vendor_like, built = tmp_path / "libgopher-orch.so", tmp_path / Path(_bridge.__file__).name
    (tmp_path / "a.c").write_text("int gopher(void) { return 1; }\n")
    (tmp_path / "b.c").write_text("int gopher(void);\nint other(void) { return gopher(); }\n")
    for argv in (["a.c", "-o", vendor_like], ["b.c", "-Wl,--no-as-needed", vendor_like, "-lc", "-o", built]):
        words = [str(tmp_path / word) if str(word).endswith(".c") else str(word) for word in argv]
        children.run([compiler, "-shared", "-fPIC", *words]).check()
    found = contents.problems(wheel(glibc_tag(), extra={extension(): built.read_bytes()}))
    assert len(found) == 1 and "libgopher-orch.so" in found[0] and " needs " in found[0]


@linux
def test_a_tag_that_promises_too_much_is_refused(wheel: Callable[..., Path]) -> None:
    major, minor = contents.glibc(_bridge.__file__)
    (found,) = contents.problems(wheel(f"manylinux_2_{minor - 1}_x86_64"))
    assert found == f"the tag says glibc 2.{minor - 1}, {Path(_bridge.__file__).name} needs {major}.{minor}"
    (found,) = contents.problems(wheel("linux_x86_64"))
    assert found.startswith("not repaired")


@linux
def test_an_extension_for_another_python_is_refused(wheel: Callable[..., Path]) -> None:
    made = wheel(glibc_tag())
    other = made.rename(made.with_name(made.name.replace(f"{TAG}-{TAG}", "cp39-cp39")))
    assert contents.problems(other) == [f"{extension()} is not for cp39"]


# ---- Interpreters ---------------------------------------------------------------------------------------------------


def test_interpreters_are_found_and_missing_ones_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file() or not importlib.util.find_spec("ensurepip"):
        pytest.skip("this interpreter can't build extension modules: no headers, or no ensurepip")
    free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}{free}"
    assert wheels.interpreters(sys.executable)[here] == sys.executable
    monkeypatch.delenv("GOPHER_MCP_REQUIRE_PYTHONS", raising=False)
    wheels.required({"3.10": "a", "3.12": "b"})
    assert capfd.readouterr().out.rstrip().endswith("3.11, 3.13, 3.14, 3.14t")
    monkeypatch.setenv("GOPHER_MCP_REQUIRE_PYTHONS", "3.10,3.12")
    wheels.required({"3.10": "a", "3.12": "b"})
    monkeypatch.setenv("GOPHER_MCP_REQUIRE_PYTHONS", "all")
    with pytest.raises(wheels.Failed, match=r"wants CPython 3\.11, 3\.13, 3\.14, 3\.14t, which is not here"):
        wheels.required({"3.10": "a", "3.12": "b"})


def test_an_installed_wheel_is_checked_for_what_it_is(tmp_path: Path) -> None:
    """The check that runs after installation refuses the source tree's own package."""
    (tmp_path / "tests" / "support").mkdir(parents=True)
    script = shutil.copy(ROOT / "tests" / "support" / "installed.py", tmp_path / "tests" / "support")
    shutil.copytree(
        Path(_bridge.__file__).parents[1], tmp_path / "src" / NAME, ignore=shutil.ignore_patterns("*cache*")
    )
    ended = children.run([sys.executable, script], env={"PYTHONPATH": str(tmp_path / "src")})
    assert ended.code == 1 and "package is whole: FAILED: this is the source tree's package" in ended.err, ended.err
