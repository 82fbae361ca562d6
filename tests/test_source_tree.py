"""Rules over the source itself: four layers in one direction, each vendor symbol once, nothing of one machine."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from tests.support.children import ROOT

pytestmark = pytest.mark.source_tree

PACKAGE = ROOT / "src" / "gopher_mcp_python"
HEADER = ROOT / "include" / "gopher_orch" / "gopher_orch.h"
TABLE = ROOT / "csrc" / "api_table.h"
TEXT = {".c", ".h", ".py", ".pyi", ".pyx", ".pxd", ".pxi", ".md", ".toml", ".txt", ".sh", ".json", ".html", ".cfg", ""}


def files() -> list[Path]:
    """What the repository holds; without git, what an sdist holds."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        found = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        made = re.compile(r"(^|/)(\.(?!ci|gitignore)[^/]*|build|dist|__pycache__)(/|$)")
        found = [path for path in ROOT.rglob("*") if not made.search(path.relative_to(ROOT).as_posix())]
    return [path for path in found if path.is_file() and path.suffix in TEXT]


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def without_comments(source: str) -> str:
    """C source without comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.S)


def struct_fields(source: str) -> dict[str, list[str]]:
    """Field names of each typedef'd struct of the C header."""
    found: dict[str, list[str]] = {}
    for body, name in re.findall(r"typedef\s+struct\s*\{(.*?)\}\s*(\w+)\s*;", without_comments(source), re.S):
        fields = found[name] = []
        for declaration in filter(str.strip, body.split(";")):
            pointer = re.search(r"\(\*\s*(\w+)\)", declaration)
            several = [pointer[1]] if pointer else re.findall(r"(\w+)\s*(?=,|$)", declaration)
            fields += several
    return found


def pxd_fields(source: str) -> dict[str, list[str]]:
    """Field names of each struct that the .pxd declares."""
    found: dict[str, list[str]] = {}
    name = None
    for line in source.splitlines():
        bare = line.split("#")[0].rstrip()
        if start := re.match(r"\s+(?:ctypedef\s+)?struct\s+(\w+):", bare):
            name = start[1]
            found[name] = []
        elif name and re.match(r" {8}\S", bare) and bare.strip() != "pass":
            pointer = re.search(r"\(\*\s*(\w+)\)", bare)
            found[name].append(pointer[1] if pointer else re.findall(r"(\w+)\s*$", bare)[0])
        elif bare:
            name = None
    return found


# ---- Four layers in one direction -----------------------------------------------------------------------------------


def test_the_header_includes_nothing_of_ours() -> None:
    for header in (ROOT / "include").rglob("*.h"):
        included = re.findall(r'#\s*include\s*([<"][^>"]+[>"])', text(header))
        assert set(included) <= {"<stddef.h>", "<stdint.h>"}, header


def test_c_sources_know_no_python() -> None:
    sources = [path for path in (ROOT / "csrc").rglob("*") if path.suffix in (".c", ".h")]
    assert len(sources) >= 8
    for path in sources:
        code = without_comments(text(path))
        assert "Python.h" not in code and not re.search(r"\bPy[A-Z]\w+\s*\(", code), path


def test_only_the_bridge_module_reaches_into_c() -> None:
    """Above the Cython seam nobody opens a shared library; ctypes is left to a few look-ups that load nothing."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(text(path))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"cffi", "_ctypes"}, path
        if "ctypes" in imported:
            called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert not called & {"CDLL", "PyDLL", "LoadLibrary", "CFUNCTYPE", "dlopen"}, path


def test_cython_is_in_one_place() -> None:
    seam = [path for path in files() if path.suffix in (".pyx", ".pxd", ".pxi")]
    assert seam and {path.parent for path in seam} == {PACKAGE / "ffi"}


def _imports_at_load(path: Path) -> set[str]:
    """Absolute names of the package's modules that importing this file imports."""
    inside = path.relative_to(PACKAGE.parent).with_suffix("").parts
    package = inside[:-1]
    found = set()
    for node in ast.parse(text(path)).body:
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            found.add(".".join(part for part in (base, node.module or "") if part))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_lower_layers_do_not_import_higher_ones() -> None:
    """Vocabulary below, engines above it, the agent above those, the command line on top."""
    order = ["errors", "events", "elicitation", "runtime_options", "elicitation_runtime", "engines", "agent", "cli"]
    for at, layer in enumerate(order):
        above = {f"gopher_mcp_python.{name}" for name in order[at + 1 :]}
        module = PACKAGE / layer
        for path in module.rglob("*.py") if module.is_dir() else [module.with_suffix(".py")]:
            wrong = {name for name in _imports_at_load(path) if any(f"{name}.".startswith(f"{a}.") for a in above)}
            assert not wrong, f"{path.name} imports {wrong}"


def test_heavy_modules_are_imported_where_they_are_used() -> None:
    """The modules that `import gopher_mcp_python` and a native run need bring neither asyncio nor the SDK."""
    heavy = ("mcp", "asyncio", "anyio", "httpx", "httpx2", "pydantic", "starlette", "uvicorn", "openai", "anthropic")
    names = ("__init__", "errors", "elicitation", "runtime_options", "agent", "result")
    light = [PACKAGE / f"{name}.py" for name in names]
    light += [PACKAGE / "engines" / "native.py", PACKAGE / "engines" / "__init__.py"]
    for path in light:
        wrong = {name for name in _imports_at_load(path) if name.split(".")[0] in heavy}
        assert not wrong, f"{path} imports {wrong} when it is imported"


# ---- Each vendor symbol once ----------------------------------------------------------------------------------------


def table_symbols() -> list[str]:
    return re.findall(r'^X\(\s*\w+,\s*"(\w+)"', text(TABLE), re.M)


def test_no_vendor_function_is_named_outside_the_table() -> None:
    symbols = table_symbols()
    assert len(symbols) >= 24 and len(symbols) == len(set(symbols))
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, symbols)) + r")\b")
    # The testkit exports these names, a generated table and the documentation list them.
    allowed = {TABLE, HEADER}
    for path in files():
        if path in allowed or path.suffix in (".md", ".json") or "tests" in path.parts or "testkit" in path.parts:
            continue
        assert not pattern.search(text(path)), f"{path.relative_to(ROOT)} names a vendor function"


def test_table_and_header_agree() -> None:
    types = re.findall(r"^X\(.*?,\s*(gopher_orch_\w+_fn)\)", text(TABLE), re.M | re.S)
    declared = set(re.findall(r"\b(gopher_orch_\w+_fn)\s*\(", text(HEADER)))
    assert len(types) == len(table_symbols()) and set(types) == declared


def test_table_gives_a_version_and_a_need_for_each() -> None:
    rows = re.findall(r'^X\(\w+,\s*"(\w+)",\s*"([\d.]*)",\s*(\w+),', text(TABLE), re.M)
    assert len(rows) == len(table_symbols())
    assert {need for _, _, need in rows} == {"REQUIRED", "OPTIONAL"}
    assert [name for name, since, _ in rows if not since] == ["gopher_orch_agent_options_supports_elicitation"]


def test_header_and_pxd_agree_on_every_struct() -> None:
    pxd = pxd_fields(text(PACKAGE / "ffi" / "bridge.pxd"))
    headers = struct_fields(text(HEADER)) | struct_fields(text(ROOT / "csrc" / "bridge.h"))
    compared = {name: fields for name, fields in pxd.items() if fields}
    assert {"gopher_orch_elicitation_request_t", "gopher_orch_agent_options_t", "gopher_orch_event_t"} <= set(compared)
    for name, fields in compared.items():
        assert headers[name] == fields, name


def test_every_struct_field_states_its_offset() -> None:
    """Offsets in the header's comments rise with the fields and end inside the size that the comment names."""
    for body, name in re.findall(r"typedef\s+struct\s*\{(.*?)\}\s*(\w+)\s*;", text(HEADER), re.S):
        offsets = [int(found) for found in re.findall(r"@(\d+)", body)]
        assert len(offsets) == len(struct_fields(text(HEADER))[name]), name
        assert offsets == sorted(set(offsets)) and offsets[0] == 0, name


# ---- The public surface ---------------------------------------------------------------------------------------------


def test_all_is_sorted_and_complete() -> None:
    import gopher_mcp_python as package

    assert list(package.__all__) == sorted(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert set(package.__all__) <= set(dir(package))


def test_every_module_exports_what_it_says() -> None:
    import importlib

    for path in PACKAGE.glob("*.py"):
        if path.stem in ("__init__", "__main__"):
            continue
        module = importlib.import_module(f"gopher_mcp_python.{path.stem}")
        missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
        assert not missing, f"{path.name}: {missing}"


def test_public_classes_say_what_they_are() -> None:
    import gopher_mcp_python as package

    silent = [name for name in package.__all__ if isinstance(getattr(package, name), type)]
    assert [name for name in silent if not (getattr(package, name).__doc__ or "").strip()] == []


# ---- Nothing of one machine -----------------------------------------------------------------------------------------


def test_no_path_of_a_machine_and_no_private_host() -> None:
    home = os.path.expanduser("~")
    patterns = [r"/root/", r"/work/", r"/tmp/w\b", r"/Users/\w+", r"C:\\\\Users"]
    patterns += [r"/home/(?!you\b|user\b|me\b|ada\b|linuxbrew\b)\w+"]
    patterns += [re.escape(home + "/")] if home not in ("/", "/root") else []
    pattern = re.compile("|".join(patterns))
    for path in files():
        if path == Path(__file__):
            continue
        found = pattern.search(text(path))
        assert not found, f"{path.relative_to(ROOT)}: {found[0]}"


def test_no_left_over_notes() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for path in files():
        if path != Path(__file__) and path.suffix in (".c", ".h", ".py", ".pyx", ".pxi", ".md"):
            assert not pattern.search(text(path)), path.relative_to(ROOT)


def test_modules_stay_readable() -> None:
    """70 to 250 lines is the aim; only a file that wants to be read whole may be longer."""
    for path in PACKAGE.rglob("*.py"):
        lines = text(path).count("\n")
        assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"


def test_python_sources_parse_as_the_oldest_supported_version() -> None:
    for path in files():
        if path.suffix in (".py", ".pyi"):
            ast.parse(text(path), str(path), feature_version=(3, 10))


def test_lines_are_at_most_120_characters() -> None:
    for path in files():
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h"):
            long = [at for at, line in enumerate(text(path).splitlines(), 1) if len(line) > 125]
            assert not long, f"{path.relative_to(ROOT)}: {long}"


def test_scripts_are_executable_and_start_with_a_shebang() -> None:
    scripts = [path for path in files() if path.suffix == ".sh" or path == ROOT / ".ci" / "run"]
    assert scripts
    for path in scripts:
        assert os.access(path, os.X_OK) and text(path).startswith("#!"), path.relative_to(ROOT)


def test_every_python_file_can_be_tokenized_as_utf8() -> None:
    for path in files():
        if path.suffix == ".py":
            with path.open("rb") as opened:
                assert tokenize.detect_encoding(opened.readline)[0] in ("utf-8", "utf-8-sig"), path


def test_this_test_sees_the_real_tree() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {"pyproject.toml", "csrc/bridge.h", "src/gopher_mcp_python/__init__.py"} <= names
    assert sys.version_info >= (3, 10)
