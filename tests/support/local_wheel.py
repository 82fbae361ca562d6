"""A wheel of this package made on the spot from the code under test, for pip: nothing is compiled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import gopher_mcp_python
from tests.support import requirements

_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build(folder: Path, *, code: bool) -> Path:
    """Writes it. Without `code` it has a name, a version, requirements and extras: all that pip resolves by."""
    version = gopher_mcp_python.__version__
    info = f"gopher_mcp_python-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", "Name: gopher-mcp-python", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requirements.of_package()]
    lines += [f"Provides-Extra: {name}" for name in requirements.extras()]
    path = folder / f"gopher_mcp_python-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        if code:
            source = Path(gopher_mcp_python.__file__).parent
            for file in sorted(source.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    wheel.write(file, str(file.relative_to(source.parent)))
            wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\ngopher-mcp = gopher_mcp_python.cli:main\n")
        wheel.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{info}/WHEEL", _WHEEL)
        wheel.writestr(f"{info}/RECORD", "")
    return path
