#!/bin/sh
# Runs the suite on Python 3.14 and on the free-threaded 3.14t, which python314.sh builds from Debian's source package.
#
#   freethreaded.sh DIR [gil] [free]     neither named: both. Environments: DIR/venv-gil, DIR/venv-free
#   JOBS=2                               that many tests at a time
#
# gil: `make test`. free: the extension must leave the GIL off; the bridge's tests and those of threads, each in eight threads
# at once (pytest-run-parallel); then the suite without the Qt dialog, as PySide6 has no wheel for 3.14t. Logs: DIR/*.log.
# What python314.sh takes (VERSION, SUITE, MIRROR) is handed on. Needs libpq's headers too (apt-get install libpq-dev).
set -eu
dir=${1:?usage: freethreaded.sh DIR [gil] [free]}
shift
[ $# -gt 0 ] || set -- gil free
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
"$here/python314.sh" "$dir" "$@"
cd "$root"
status=0

run() { # name of the log, command...
    log=$dir/$1.log
    shift
    "$@" > "$log" 2>&1 < /dev/null || { status=1; echo "failed; all of it: $log"; }
    tail -1 "$log"
}

suite_with_gil() {
    echo "== 3.14: make test"
    run suite-gil make test PYTHON="$dir/gil/bin/python3.14" VENV="$dir/venv-gil" PYTEST_ARGS=-q
}

suite_free() {
    python=$dir/venv-free/bin/python
    echo "== 3.14t: environment"
    [ -x "$python" ] || "$dir/free/bin/python3.14t" -m venv "$dir/venv-free"
    "$python" tests/support/requirements.py test > "$dir/requirements.txt"
    run install "$python" -m pip install -q --upgrade pip cmake ninja pytest-run-parallel -r "$dir/requirements.txt"
    run build "$python" -m pip install -q --no-build-isolation --no-deps --force-reinstall -C cmake.define.GOPHER_WERROR=ON .
    # -W error: an extension that needs the GIL turns it on with a warning.
    (cd "$dir" && "$python" -W error -c "import sys, gopher_mcp_python.ffi._bridge
sys.exit('the GIL was turned on' if sys._is_gil_enabled() else 0)")
    echo "== 3.14t: eight threads at once"
    run parallel "$python" -X faulthandler -m pytest -q -n 0 -p no:randomly -o timeout=1800 --parallel-threads=8 \
        --mark-hypothesis-as-unsafe tests/test_bridge_callbacks.py tests/test_bridge_decode.py tests/test_bridge_memory.py \
        tests/test_bridge_waiting.py tests/test_bridge_races.py tests/test_free_threading.py
    echo "== 3.14t: suite"
    run suite-free "$python" -m pytest -q -n "${JOBS:-2}" --dist loadfile -p no:run-parallel --ignore=tests/qt tests
}

for kind in "$@"; do
    case $kind in
    gil) suite_with_gil ;;
    free) suite_free ;;
    esac
done
exit $status
