"""diagnose() and `gopher-mcp doctor`: the whole report, for programs and for people, in every state of a machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.native import names, versions
from tests.support import children, vendor
from tests.support.compiled import functions, shared_library

PATH, OPENSSL = names.PATH_VARIABLES[0], "GOPHER_MCP_OPENSSL11_PATH"
PACKAGE = "gopher-mcp-python-native-linux-x64"


def with_package(version: str = vendor.NEWEST, **variables: str) -> dict[str, str]:
    """Variables of a process that has the vendor's package of that version installed."""
    return {
        "PYTHONPATH": os.pathsep.join([str(vendor.package(version)), children.environment()["PYTHONPATH"]]),
        **variables,
    }


def doctor(*arguments: str, env: dict[str, str] | None = None) -> children.Ended:
    return children.run([sys.executable, "-W", "ignore", "-m", "gopher_mcp_python", "doctor", *arguments], env=env)


def report(env: dict[str, str] | None = None, *, code: int = 0) -> dict[str, Any]:
    done = doctor("--json", env=env)
    assert done.code == code, done.out + done.err
    assert done.err == ""
    result: dict[str, Any] = json.loads(done.out)
    return result


def unwrapped(text: str) -> str:
    return " ".join(text.split())


# ---- A machine without a native library -----------------------------------------------------------------------------


def test_without_a_native_library_the_main_job_runs() -> None:
    found = report()
    assert found["ok"] and found["engine"] == "embedded" and found["requested"] == "auto"
    assert found["why"] == "no native library is installed"
    assert found["remedy"] is None
    assert not found["native"]["opened"] and found["native"]["path"] is None
    assert [place["reason"] for place in found["native"]["attempts"]] == [
        "not set", "not set", "not installed", "the system's loader knows no such library"]  # fmt: skip


def test_the_report_knows_python_the_extension_and_the_sdk() -> None:
    import platform
    from importlib.metadata import version

    from gopher_mcp_python import __version__

    found = report()
    assert found["python"]["version"] == platform.python_version() and found["python"]["executable"] == sys.executable
    assert found["package"]["version"] == __version__ and "_bridge" in found["package"]["extension"]
    assert found["package"]["struct_sizes"] == {
        "gopher_orch_agent_options_t": 64, "gopher_orch_elicitation_request_t": 56, "gopher_orch_event_t": 56,
        "gopher_orch_header_t": 16, "gopher_orch_server_options_t": 48}  # fmt: skip
    assert found["embedded"] == {"usable": True, "mcp": version("mcp"), "reason": None}
    assert found["providers"]["DirectProvider"]["available"]


def test_a_missing_sdk_of_a_model_names_its_extra() -> None:
    code = """
import importlib.util, json
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("anthropic", "openai") else real(name, *rest)
from gopher_mcp_python import diagnose
print(json.dumps(diagnose().providers))
"""
    providers = json.loads(children.python(code).check().out)
    assert providers["AnthropicProvider"] == {
        "available": False,
        "version": None,
        "remedy": "pip install 'gopher-mcp-python[anthropic]'",
    }
    assert providers["OpenAIProvider"]["remedy"] == "pip install 'gopher-mcp-python[openai]'"


# ---- A native library that works ------------------------------------------------------------------------------------


def test_a_working_package_is_reported_in_full(vendor_library: Path, openssl11: Path) -> None:
    found = report(with_package(**{OPENSSL: str(openssl11)}))
    native = found["native"]
    assert found["ok"] and found["engine"] == "native" and found["remedy"] is None
    assert f"libgopher-orch 0.1.39 ({native['path']})" in found["why"]
    assert native["opened"] and native["error"] is None
    assert (native["version"], native["version_source"], native["found_via"]) == ("0.1.39", "file name", "package")
    assert (native["package"], native["package_version"]) == (PACKAGE, "0.1.39")
    assert (native["elicitation"], native["retry_fix"], native["events"]) == (True, True, True)
    assert {name for name, there in native["symbols"].items() if there} == set(versions.table()["0.1.39"].symbols)
    assert native["symbols"]["gopher_orch_agent_options_supports_elicitation"] is False
    assert native["verdict"]["status"] == "good" and native["missing"] == []
    assert native["openssl11"][-1]["path"] == str(openssl11)
    assert "libcurl.so.4" in {clash["soname"] for clash in native["clashes"]} or native["clashes"] == []


def test_asking_leaves_the_calling_process_as_it_is(native_environment: dict[str, str]) -> None:
    code = """
import gopher_mcp_python
found = gopher_mcp_python.diagnose()
assert found.native["opened"] and found.engine == "native"
with open("/proc/self/maps") as maps:
    print(any("gopher-orch" in line for line in maps))
"""
    assert children.python(code, env=native_environment).check().out == "False\n"


def test_a_process_that_has_it_open_is_told_of_its_own(native_environment: dict[str, str], tmp_path: Path) -> None:
    code = """
import os, sys
import gopher_mcp_python
from gopher_mcp_python import native
native.load()
sys.executable = "/nonexistent/python"   # a child process could not even be started
found = gopher_mcp_python.diagnose()
print(found.engine, found.native["opened"], found.native["version"], found.as_dict()["ok"])
"""
    assert children.python(code, env=native_environment).check().out == "native True 0.1.39 True\n"


# ---- A native library that does not ---------------------------------------------------------------------------------


def test_without_openssl_it_says_what_is_missing_and_what_to_type(vendor_library: Path, tmp_path: Path) -> None:
    found = report(with_package(**{OPENSSL: str(tmp_path)}))
    assert found["ok"] and found["engine"] == "embedded"
    assert found["why"].startswith("the installed native library can't be used here: libcrypto.so.1.1: cannot open")
    assert found["native"]["missing"] == ["libcrypto.so.1.1", "libssl.so.1.1"]
    assert found["native"]["version"] == "0.1.39" and found["native"]["elicitation"] is True
    assert found["remedy"]


@pytest.mark.parametrize(
    ("engine", "ok", "runs"), [("auto", True, "embedded"), ("embedded", True, "embedded"), ("native", False, None)]
)
def test_the_requested_engine_decides(
    vendor_library: Path, tmp_path: Path, engine: str, ok: bool, runs: str | None
) -> None:
    variables = with_package(**{OPENSSL: str(tmp_path), "GOPHER_MCP_ENGINE": engine})
    found = report(variables, code=0 if ok else 1)
    assert (found["ok"], found["engine"], found["requested"]) == (ok, runs, engine)
    if engine == "embedded":
        assert found["why"] == "asked for by GOPHER_MCP_ENGINE" and found["remedy"] is None


def test_an_engine_of_another_name_is_no_engine() -> None:
    found = report({"GOPHER_MCP_ENGINE": "steam"}, code=1)
    assert not found["ok"] and "must be auto, native or embedded" in found["why"]
    assert found["remedy"] == "unset GOPHER_MCP_ENGINE"


def test_native_asked_for_and_not_installed() -> None:
    found = report({"GOPHER_MCP_ENGINE": "native"}, code=1)
    assert found["why"] == "No usable libgopher-orch was found."
    assert found["remedy"] == "unset GOPHER_MCP_ENGINE"


def test_an_old_library_gives_the_embedded_engine_and_says_why(openssl11: Path, vendor_library_of: Any) -> None:
    vendor_library_of("0.1.34")
    found = report(with_package("0.1.34", **{OPENSSL: str(openssl11)}))
    assert found["engine"] == "embedded" and "no elicitation support" in found["why"]
    assert found["native"]["verdict"]["status"] == "too_old" and found["native"]["elicitation"] is False
    assert found["remedy"] == f"pip install --upgrade '{PACKAGE}>=0.1.38'"


def test_a_package_without_its_extension_module_says_so(tmp_path: Path) -> None:
    import gopher_mcp_python

    source = Path(gopher_mcp_python.__file__).parent
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("_bridge*.so", "__pycache__"))
    found = report({"PYTHONPATH": str(tmp_path)}, code=1)
    assert found["package"]["extension"] is None and "_bridge" in found["package"]["extension_error"]
    assert not found["ok"] and "the extension module can't be imported" in found["why"]
    assert found["remedy"] == "pip install --force-reinstall --no-deps gopher-mcp-python"
    text = unwrapped(doctor(env={"PYTHONPATH": str(tmp_path)}).out)
    assert "agents can't run here" in text and "extension module can't be imported" in text


def test_without_the_mcp_package_no_engine_is_left() -> None:
    code = """
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "mcp" else real(name, *rest)
from gopher_mcp_python import diagnose
found = diagnose()
print(found.ok, found.engine, found.remedy, found.why, sep="|")
"""
    assert children.python(code).check().out == (
        "False|None|pip install --upgrade gopher-mcp-python|no native library is installed; "
        "the built-in engine can't run: the package mcp is not installed\n"
    )


def test_a_library_that_kills_its_process_is_survived(tmp_path: Path) -> None:
    source = functions("x") + "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }\n"
    path = shared_library(tmp_path, "libgopher-orch.so.0.1.40", source)
    found = report({PATH: str(path)}, code=1)
    assert found["engine"] is None and not found["native"]["opened"]
    assert "the process that opened it was killed by signal 6" in found["why"]
    assert found["native"]["path"] == str(path) and found["remedy"] == "export GOPHER_MCP_ENGINE=embedded"
    found = report({PATH: str(path), "GOPHER_MCP_ENGINE": "embedded"})
    assert found["engine"] == "embedded" and found["remedy"] is None


def test_without_child_processes_it_judges_by_the_files(native_environment: dict[str, str]) -> None:
    code = """
import sys
sys.executable = "/nonexistent/python"
from gopher_mcp_python import diagnose
found = diagnose()
print(found.engine, found.native["opened"], found.native["verdict"]["status"], found.why)
"""
    out = children.python(code, env=native_environment).check().out
    assert out.startswith(
        "native False good judged by the files alone, the native library could not be tried in a child"
    )


def test_a_variable_that_names_nothing(tmp_path: Path) -> None:
    found = report({PATH: str(tmp_path / "nowhere")})
    assert found["engine"] == "embedded" and found["remedy"] == f"unset {PATH}"
    assert found["native"]["attempts"][0]["reason"] == "no such file or folder"
    assert found["why"] == f"{PATH} names no library that can be used ({tmp_path / 'nowhere'}: no such file or folder)"


@pytest.mark.skipif(sys.platform != "linux", reason="the package of this test is for Linux")
def test_an_installed_package_without_its_library_is_told_of(tmp_path: Path) -> None:
    lib = tmp_path / PACKAGE.replace("-", "_") / "lib"
    lib.mkdir(parents=True)
    (lib.parent / "__init__.py").touch()
    found = report({"PYTHONPATH": os.pathsep.join([str(tmp_path), children.environment()["PYTHONPATH"]])})
    assert found["engine"] == "embedded"
    assert found["why"].startswith(f"{PACKAGE} holds no library that can be used ({lib}: no libgopher-orch.so")


# ---- For people -----------------------------------------------------------------------------------------------------


def lines_that_are_too_wide(text: str) -> list[str]:
    """Wider than 80 columns, other than by one word (a path) that can't be broken."""
    return [line for line in text.splitlines() if len(line) > 80 and len(line.split()) > 1]


def test_a_good_machine_reads_well(vendor_library: Path, openssl11: Path) -> None:
    done = doctor(env=with_package(**{OPENSSL: str(openssl11)})).check()
    assert lines_that_are_too_wide(done.out) == []
    sections = [line for line in done.out.splitlines() if line and not line.startswith(" ")]
    assert sections[:4] == ["Verdict", "Python", "Native library", "Places tried"] and sections[-1] == "Built-in engine"
    text = unwrapped(done.out)
    assert "Verdict agents run, on the native library why: libgopher-orch 0.1.39" in text
    assert "opens: yes" in text
    assert "elicitation: yes, version 0.1.39 (file name)" in text
    assert "retry after sign-in: yes; run events: yes" in text
    assert "functions: 24 of 25; missing: gopher_orch_agent_options_supports_elicitation" in text
    assert f"OpenSSL 1.1 {openssl11} (found via {OPENSSL})" in text
    assert "next:" not in text


def test_a_machine_without_openssl_reads_well(vendor_library: Path, tmp_path: Path) -> None:
    done = doctor(env=with_package(**{OPENSSL: str(tmp_path)})).check()
    assert lines_that_are_too_wide(done.out) == []
    text = unwrapped(done.out)
    assert "agents run, on the built-in (embedded) engine why: the installed native library can't be used here:" in text
    assert "next: " in text
    assert "opens: no, libcrypto.so.1.1: cannot open shared object file" in text
    assert "shared libraries missing: libcrypto.so.1.1, libssl.so.1.1" in text
    assert f"not found in: {tmp_path} - no libcrypto.so.1.1" in text
    assert "GOPHER_MCP_OPENSSL11_PATH (a file or a folder) names one elsewhere" in text


def test_a_machine_that_can_not_run_says_so_and_exits_with_1() -> None:
    done = doctor(env={"GOPHER_MCP_ENGINE": "native"})
    assert done.code == 1
    text = unwrapped(done.out)
    assert text.startswith(
        "Verdict agents can't run here why: No usable libgopher-orch was found. GOPHER_MCP_ENGINE=native "
        "next: unset GOPHER_MCP_ENGINE"
    )
    assert f"package: {names.current().distribution} - not installed" in text


def test_a_machine_without_anything_native_is_short() -> None:
    text = unwrapped(doctor().check().out)
    assert "why: no native library is installed" in text
    assert "Native library not installed Places tried" in text
    assert "OpenSSL" not in text and "Shared names" not in text
    assert "DirectProvider: available" in text
