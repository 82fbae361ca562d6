"""Compiles the bridge's C code for every platform that wheels are built for, on one machine, with Zig's C compiler.

    pip install ziglang && python scripts/cross_compile.py [TARGET ...]

Warnings are errors. Nothing is linked or run: this tells of a missing header or a wrong name long before the public CI
does. The Cython module is left out, since it needs the platform's own Python headers. Exit code 1 when a file fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (
    "x86_64-linux-gnu.2.28", "aarch64-linux-gnu.2.28", "x86_64-linux-musl", "aarch64-linux-musl",
    "x86_64-macos.11.0", "aarch64-macos.11.0", "x86_64-windows-gnu", "aarch64-windows-gnu",
)  # fmt: skip
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-I{ROOT / 'csrc'}"]


def failures(target: str, folder: Path) -> list[str]:
    """The compiler's words on each file that it refused."""
    found = []
    for file in sorted((ROOT / "csrc").glob("*.c")):
        made = folder / f"{file.stem}.o"
        argv = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS, "-c", str(file), "-o", str(made)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            found.append(done.stderr)
    return found


def main(targets: list[str]) -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for target in targets or TARGETS:
            found = failures(target, Path(folder))
            wrong += len(found)
            print(f"{target}: {'ok' if not found else ''.join(found)}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
