"""Extracts the table of published native versions from the wheels themselves.

    python scripts/native_versions.py            # download all, rewrite src/gopher_mcp_python/native/versions.json
    python scripts/native_versions.py --check    # the same, but compare and exit 1 on a difference

Wheels are kept under GOPHER_MCP_TEST_CACHE (default ~/.cache/gopher-mcp-python-tests), so that a second run needs no
network. Nothing is typed in: the list of versions comes from the package index.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from gopher_mcp_python.native import elf, names, versions  # noqa: E402

DISTRIBUTION = "gopher-mcp-python-native-linux-x64"
PLATFORM = names.Platform("linux", "x64")
ELICITATION_TEXT = b"No MCP elicitation callback configured"  # what the library answers a server without a callback


def cache_folder() -> Path:
    root = os.environ.get("GOPHER_MCP_TEST_CACHE") or Path.home() / ".cache" / "gopher-mcp-python-tests"
    return Path(root)


def published_versions() -> list[str]:
    """Every version that the package index offers, oldest first."""
    text = subprocess.run(
        [sys.executable, "-m", "pip", "index", "versions", DISTRIBUTION], check=True, capture_output=True, text=True
    ).stdout
    listed = re.search(r"^Available versions: (.+)$", text, re.MULTILINE)
    if listed is None:
        raise SystemExit(f"pip index names no version of {DISTRIBUTION}:\n{text}")
    return sorted((version.strip() for version in listed[1].split(",")), key=names.version_key)


def wheel(version: str) -> Path:
    """The wheel of one version, downloaded unless it is cached."""
    folder = cache_folder() / "wheels"
    pattern = f"{DISTRIBUTION.replace('-', '_')}-{version}-*.whl"
    found = sorted(folder.glob(pattern))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:  # a broken download never looks like a wheel
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "--dest",
                    scratch,
                    f"{DISTRIBUTION}=={version}",
                ],
                check=True,
            )
            for path in Path(scratch).glob(pattern):
                path.replace(folder / path.name)
        found = sorted(folder.glob(pattern))
    if not found:
        raise SystemExit(f"pip downloaded no wheel {pattern}")
    return found[0]


def unpack(version: str) -> Path:
    """The folder into which the wheel is unpacked: what a pip install would put into site-packages."""
    target = cache_folder() / "native" / version
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            with zipfile.ZipFile(wheel(version)) as archive:
                archive.extractall(Path(scratch) / "tree")
            try:
                (Path(scratch) / "tree").rename(target)
            except OSError:  # another process was faster
                if not target.is_dir():
                    raise
    return target


def extract(version: str) -> dict[str, Any]:
    """One row of the table, from the unpacked wheel."""
    folder = unpack(version) / DISTRIBUTION.replace("-", "_") / "lib"
    files = {path.name: elf.read(str(path)) for path in sorted(folder.iterdir())}
    name = names.best_in_folder(list(files), PLATFORM)[0]
    library, path = files[name], folder / name
    shipped = {file.soname or key for key, file in files.items()} | set(files)
    needed = {soname for file in files.values() for soname in file.needed}
    return {
        "file_version": names.version_in_name(name, PLATFORM),
        "build_id": library.build_id,
        "size": path.stat().st_size,
        "wheel_size": wheel(version).stat().st_size,
        "soname": library.soname,
        "symbols": library.exports("gopher_orch_"),
        "needed": library.needed,
        "from_host": sorted(needed - shipped),
        "ships": sorted({file.soname or key for key, file in files.items() if not key.startswith("libgopher-")}),
        "elicitation_text": ELICITATION_TEXT in path.read_bytes(),
    }


def build(wanted: list[str]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    before: set[str] = set()
    for version in wanted:
        row = extract(version)
        symbols = set(row.pop("symbols"))
        rows[version] = {**row, "symbols_added": sorted(symbols - before), "symbols_dropped": sorted(before - symbols)}
        before = symbols
    return {"distribution": DISTRIBUTION, "versions": rows}


def render(table: dict[str, Any]) -> str:
    """One line per version: compact, and still a diff that can be read."""
    rows = ",\n".join(
        f"  {json.dumps(key)}: {json.dumps(row, separators=(',', ':'))}" for key, row in table["versions"].items()
    )
    return f'{{"distribution": {json.dumps(table["distribution"])}, "versions": {{\n{rows}\n}}}}\n'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the table in the tree, change nothing")
    options = parser.parse_args(arguments)
    text = render(build(published_versions()))
    target = Path(versions.TABLE)
    if not options.check:
        target.write_text(text, encoding="utf-8")
        print(f"{target.name}: {len(json.loads(text)['versions'])} versions")
        return 0
    present = target.read_text(encoding="utf-8") if target.exists() else ""
    if present == text:
        print(f"{target.name} is what the published wheels say")
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(present.splitlines(True), text.splitlines(True), "in the tree", "published")
    )
    print("Next: python scripts/native_versions.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
