"""The bridge's C (csrc) under its own tests in tests/c: plain, under ASan with UBSan, and under TSan.

They are C programs because the sanitizers can't watch a Python process in which another build of the code runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "c" / "run.sh"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell script")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("variant", ["plain", "asan", "tsan"])
def test_c_programs(variant: str, tmp_path: Path) -> None:
    environment = {**os.environ, "BUILD": str(tmp_path)}
    environment.pop("LD_PRELOAD", None)
    argv = [str(SCRIPT), variant]
    done = subprocess.run(
        argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=580
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{variant}: "), done.stdout
