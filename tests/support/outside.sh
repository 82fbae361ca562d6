#!/bin/bash
# Tests the wheel of DIST for PYTHON in a fresh environment, outside the source tree, with the tests out of the sdist.
# usage: outside.sh PYTHON DIST MYPY [pytest arguments]      MYPY: a mypy that checks a program against the wheel
set -euo pipefail
python=$1 dist=$(cd "$2" && pwd) mypy=$(realpath "$3"); shift 3
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
echo "== the wheel, outside the source tree"
"$python" -m venv "$folder/venv"
tag=$("$python" -c 'import sys; v = "cp%d%d" % sys.version_info[:2]; print(v + "-" + v + getattr(sys, "abiflags", ""))')
wheel=$(ls "$dist"/*-"$tag"-*.whl)
"$folder/venv/bin/python" -m pip --disable-pip-version-check -qq install "$wheel[test]"
mkdir "$folder/sdist" && tar -xzf "$dist"/*.tar.gz -C "$folder/sdist" --strip-components=1
rm -rf "$folder/sdist/src" # what is tested is what was installed
cd "$folder/sdist"
unset PYTHONPATH
"$folder/venv/bin/python" tests/support/installed.py
# Only the package's own py.typed and .pyi files let a strict checker see its types.
mkdir "$folder/types" && cp tests/typing/*.py "$folder/types"
(cd "$folder/types" && "$mypy" --strict --cache-dir /dev/null --python-executable "$folder/venv/bin/python" \
    consumer.py public_api.py)
if [ "$(uname -sm)" = "Linux x86_64" ]; then export GOPHER_MCP_REQUIRE_NATIVE=${GOPHER_MCP_REQUIRE_NATIVE:-1}; fi
"$folder/venv/bin/python" -m pytest -m "not source_tree" "$@"
