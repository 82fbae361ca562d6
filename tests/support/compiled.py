"""Small shared libraries that a test compiles for itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def shared_library(folder: Path, name: str, source: str, *, needs: tuple[Path, ...] = ()) -> Path:
    """Compiles C into `folder/name` with that SONAME; `needs` become DT_NEEDED, found beside it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "these tests compile small libraries: apt-get install gcc"
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / f"{name}.c"
    code.write_text(source)
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-o",
            str(folder / name),
            str(code),
            f"-Wl,-soname,{name}",
            "-Wl,-rpath,$ORIGIN",
            "-Wl,--enable-new-dtags",
            "-Wl,--no-as-needed",
            *map(str, needs),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / name


def functions(*defined: str, calls: tuple[str, ...] = ()) -> str:
    """C source of functions, the first of which calls `calls`."""
    declared = "".join(f"int {name}(void);\n" for name in calls)
    called = "".join(f" + {name}()" for name in calls)
    return declared + "".join(
        f"int {name}(void) {{ return 1{called if index == 0 else ''}; }}\n" for index, name in enumerate(defined)
    )
