#!/bin/bash
# Tests the wheel of DIST in a fresh environment, outside the source tree, with the tests out of the sdist.
# usage: outside.sh PYTHON DIST [pytest arguments]
set -euo pipefail
python=$1 dist=$(cd "$2" && pwd); shift 2
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
echo "== the wheel, outside the source tree"
"$python" -m venv "$folder/venv"
wheel=$(ls "$dist"/*.whl)
"$folder/venv/bin/python" -m pip --disable-pip-version-check -qq install "$wheel[test]"
mkdir "$folder/sdist" && tar -xzf "$dist"/*.tar.gz -C "$folder/sdist" --strip-components=1
rm -rf "$folder/sdist/src" # what is tested is what was installed
cd "$folder/sdist"
if [ "$(uname -sm)" = "Linux x86_64" ]; then export GOPHER_MCP_REQUIRE_NATIVE=${GOPHER_MCP_REQUIRE_NATIVE:-1}; fi
"$folder/venv/bin/python" -m pytest -m "not source_tree" "$@"
