"""python -m tests.mutation.c_gate: changes of csrc/gate.c by hand, each of which a C test should notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .areas import ROOT

# As it is, as it becomes.
MUTANTS = (
    ("if (atomic_load_explicit(&gate, memory_order_relaxed) & CLOSED)", "if (0)"),
    ("if (GB_LIKELY(!(before & CLOSED)))", "if (1)"),
    ("    gb_gate_leave();\n    return false;", "    return false;"),
    ("&gate, &state, state - 1, memory_order_release", "&gate, &state, state, memory_order_release"),
    ("if (GB_LIKELY(epoch == gb_epoch_load()))", "if (1)"),
    ("return !(atomic_load_explicit(&gate, memory_order_acquire) & CLOSED)", "return true"),
    ("atomic_fetch_or_explicit(&gate, CLOSED, memory_order_seq_cst);", ";"),
    ("    gb_queue_cancel(NULL);", "    ;"),
    ("    gb_calls_closed(NULL);", "    ;"),
    ("while (atomic_load_explicit(&gate, memory_order_acquire) & ~CLOSED)", "while (0)"),
    ("if (gb_now_ns() >= deadline)", "if (0)"),
    ("            return false;\n        gb_sleep_ms(1);", "            return true;\n        gb_sleep_ms(1);"),
    ("    atomic_fetch_add(&gb_epoch_now, 1);", "    ;"),
    ("    atomic_store(&gate, 0);", "    ;"),
    ("    memset(&gb_count, 0, sizeof gb_count);", "    ;"),
    ("    gb_registry_forget();", "    ;"),
    ("    gb_queue_forget();", "    ;"),
    ("    gb_mutex_reset(&gb_lock);", "    ;"),
    ("pthread_atfork(NULL, NULL, in_child);", ";"),
    ("return hooks ? hooks : &none;", "return hooks;"),
    ("    _exit(status);", "    ;"),
    ("    pthread_once(&once, watch_exit);", "    ;"),
    ("    fflush(NULL);\n", ""),
    ("counts->threads = atomic_load(&gb_thread_count);", ";"),
)
PROGRAMS = (("gate", ""), ("gate", "crowd"), ("gate", "exit"), ("fork", ""), ("calls", ""), ("queue", ""))
FLAGS = "-std=gnu11 -O1 -g -w -pthread -Iinclude -Icsrc -Itests/c".split()


def main() -> int:
    source = (ROOT / "csrc" / "gate.c").read_text()
    for old, _ in MUTANTS:
        assert source.count(old) == 1, old
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("csrc", "include", "tests/c"):
            shutil.copytree(ROOT / part, folder / part)
        prepare(folder)
        assert noticed(folder) is None, "the tests fail as they are"
        missed = 0
        for old, new in MUTANTS:
            (folder / "csrc" / "gate.c").write_text(source.replace(old, new))
            by = noticed(folder)
            missed += by is None
            print(f"{f'killed by {by}' if by else 'SURVIVED'}: {old.strip()!r} -> {new.strip()!r}", flush=True)
    print(f"csrc/gate.c: {len(MUTANTS) - missed} of {len(MUTANTS)} killed")
    return 0 if missed / len(MUTANTS) <= 0.2 else 1


def prepare(folder: Path) -> None:
    """The libraries that the tests open, and all that no mutant changes."""
    (folder / "other.c").write_text("int nothing_of_ours;\n")
    for name, given in (("fake", []), ("fake_old", ["-DFAKE_OLD"])):
        compiled(folder, "-fPIC", "-shared", *given, "tests/c/fake_library.c", "-o", f"lib{name}.so")
    compiled(folder, "-fPIC", "-shared", "other.c", "-o", "libother.so")
    for part in "api registry queue calls reaper trampoline".split():
        compiled(folder, "-c", f"csrc/{part}.c", "-o", f"{part}.o")
    names = {"FAKE_LIBRARY": "libfake.so", "FAKE_OLD_LIBRARY": "libfake_old.so", "OTHER_LIBRARY": "libother.so"}
    told = [f'-D{name}="{folder / path}"' for name, path in names.items()]
    for program in {name for name, _ in PROGRAMS}:
        compiled(folder, *told, "-c", f"tests/c/test_{program}.c", "-o", f"test_{program}.o")


def compiled(folder: Path, *options: str) -> None:
    subprocess.run(["cc", *FLAGS, *options], cwd=folder, check=True)


def noticed(folder: Path) -> str | None:
    """The first test that fails."""
    objects = [f"{part}.o" for part in "api registry queue calls reaper trampoline gate".split()]
    compiled(folder, "-c", "csrc/gate.c", "-o", "gate.o")
    for program in {name for name, _ in PROGRAMS}:
        libraries = ["-L.", "-lfake", f"-Wl,-rpath,{folder}", "-ldl"]
        compiled(folder, f"test_{program}.o", *objects, "-o", f"test_{program}", *libraries)
    for program, word in PROGRAMS:
        command = [str(folder / f"test_{program}"), *([word] if word else [])]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=90)
        except subprocess.TimeoutExpired:
            return f"{program} (it hangs)"
        if done.returncode:
            return f"{program} {word}".strip()
    return None


if __name__ == "__main__":
    sys.exit(main())
