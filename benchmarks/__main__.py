"""Runs every benchmark in a process of its own, prints one table, and keeps each result with its plots in a folder.

Exit code 1 when a target is missed or a benchmark failed; the others run all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import _results
from benchmarks._report import missed, note, table

MODULES = (
    "callback", "startup", "signin", "toolcall", "toolset", "forms", "prompts", "registry", "store", "gateway",
    "builds", "threads",
)  # fmt: skip
LIMIT_S = 300.0  # for one benchmark; the longest takes some two minutes on an idle machine


def main() -> int:
    """Run the named benchmarks, all when none is named; or make the page of what was measured."""
    args = _arguments()
    if args.page:
        from benchmarks import _page

        try:
            for line in _page.keep(args.out, MODULES):
                note(line)
        except _results.BadResult as why:
            print(f"error: {why}", file=sys.stderr)
            return 1
        return 0
    results, trouble, failed = [], [], False
    for module in args.modules or MODULES:
        note(f"{module} ...")
        (args.out / f"{module}.json").unlink(missing_ok=True)  # so that nothing older is taken for this
        found = measured(module, quick=args.quick, builds=args.build)
        if "failed" in found:
            failed = True
            trouble.append(f"failed: {module}: {found['failed']}")
        elif "not_here" in found:
            trouble.append(f"not measured: {module}: {found['not_here']}")
        else:
            results.append(found)
            _results.write(args.out, found)
    print(json.dumps(results) if args.json else table(results))
    for line in [*(f"missed: {key}" for key in missed(results)), *trouble, *_drawn(args.out)]:
        print(line, file=sys.stderr)
    return 1 if failed or missed(results) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"any of {', '.join(MODULES)}")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of the table")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that all of it works")
    parser.add_argument("--build", action="append", default=[], metavar="NAME=PYTHON",
                        help="an environment with a build: for builds and threads, beside dist/")  # fmt: skip
    parser.add_argument("--out", type=Path, default=_results.MADE, metavar="FOLDER",
                        help="where results and plots go (build/benchmarks)")  # fmt: skip
    page = "measure nothing: keep the folder's results, and make docs/benchmarks.md of them"
    parser.add_argument("--page", action="store_true", help=page)
    return parser.parse_args()


def measured(
    module: str, *, quick: bool = False, builds: Sequence[str] = (), limit_s: float = LIMIT_S
) -> dict[str, Any]:
    """The result of one benchmark; or what went wrong, under "failed", or what is lacking, under "not_here"."""
    argv = [sys.executable, "-m", "benchmarks._child", module, *(["--quick"] if quick else []), *builds]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=_results.ROOT,
                               start_new_session=True)  # fmt: skip
    try:
        out, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return {"failed": f"it took more than {limit_s:g} s"}
    finally:
        _end(process)
    try:
        found = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        found = None
    if process.returncode or not isinstance(found, dict):
        return {"failed": f"it ended with code {process.returncode}" + (" and gave no result" if not found else "")}
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """What a benchmark that was interrupted has left: its servers are in its group."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def _drawn(folder: Path) -> list[str]:
    """Draws the plots of the folder's results, beside them. A line about it, or what is wrong with a result."""
    from benchmarks import _plots

    there = [name for name in MODULES if (folder / f"{name}.json").exists()]
    try:
        pictures = _plots.pictures(_results.load(folder, there))
    except _results.BadResult as why:
        return [f"no plots: {why}"]
    for name, svg in pictures.items():
        (folder / name).write_text(svg, encoding="utf-8")
    shown = folder.relative_to(_results.ROOT) if folder.is_relative_to(_results.ROOT) else folder
    return [f"plots in {shown}: {', '.join(pictures)}"] if pictures else []


if __name__ == "__main__":
    raise SystemExit(main())
