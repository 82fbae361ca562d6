#!/bin/sh
# Builds the C tests of csrc and runs them three times: plain, under AddressSanitizer with UndefinedBehaviorSanitizer, and
# under ThreadSanitizer. One line a variant; the output of a test that fails; exit code 1 when one did.
#
#   tests/c/run.sh [plain] [asan] [tsan]      no variant named: all three
#   CC=clang tests/c/run.sh                   another compiler
#   BUILD=folder tests/c/run.sh               where to build (default: a temporary folder, removed afterwards)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cc=${CC:-cc}
warnings="-Wall -Wextra -Werror -Wconversion -Wshadow -Wpedantic"
if [ -z "${BUILD:-}" ]; then
    BUILD=$(mktemp -d)
    trap 'rm -rf "$BUILD"' EXIT INT TERM
fi
[ $# -gt 0 ] || set -- plain asan tsan

# name and words of each program; gate ends its process, so it has three
programs="api registry queue calls reaper trampoline gate gate:crowd gate:exit fork memory"

build() { # variant, flags
    out=$BUILD/$1
    mkdir -p "$out"
    flags="-std=c11 -O2 -g -pthread -fno-omit-frame-pointer $2 -I$root/include -I$root/csrc -I$here"
    $cc $flags -fPIC -shared "$here/fake_library.c" -o "$out/libfake.so"
    $cc $flags -fPIC -shared -DFAKE_OLD "$here/fake_library.c" -o "$out/libfake_old.so"
    echo "int nothing_of_ours;" > "$out/other.c"
    $cc -fPIC -shared "$out/other.c" -o "$out/libother.so"
    for name in api gate registry queue calls reaper trampoline; do
        $cc $flags $warnings -c "$root/csrc/$name.c" -o "$out/$name.o"
    done
    for name in api registry queue calls reaper trampoline gate fork memory; do
        parts=$(for part in api gate registry queue calls reaper trampoline; do echo "$out/$part.o"; done)
        # memory replaces the allocator, so it compiles the bridge anew
        [ $name != memory ] || parts="-DGB_TEST_ALLOC $(ls "$root"/csrc/*.c)"
        $cc $flags -Wall -Wextra -Werror -DFAKE_LIBRARY="\"$out/libfake.so\"" \
            -DFAKE_OLD_LIBRARY="\"$out/libfake_old.so\"" -DOTHER_LIBRARY="\"$out/libother.so\"" \
            "$here/test_$name.c" $parts -o "$out/test_$name" -L"$out" -lfake -Wl,-rpath,"$out" -ldl
    done
}

run() { # variant
    failed=
    count=0
    for program in $programs; do
        name=${program%%:*}
        word=$(echo "$program" | cut -s -d: -f2)
        # ThreadSanitizer can't follow a child that starts threads ("dup thread with used id"). AddressSanitizer's locks
        # (before GCC 14) stay as the parent's other threads held them, so that a child hangs now and then.
        [ "$1:$name" != tsan:fork ] && [ "$1:$name" != asan:fork ] || continue
        count=$((count + 1))
        if ! timeout 120 "$BUILD/$1/test_$name" $word > "$BUILD/$1/$name.out" 2>&1; then
            failed="$failed $program"
            sed "s/^/    /" "$BUILD/$1/$name.out"
        fi
    done
    if [ -n "$failed" ]; then
        echo "$1: FAILED:$failed"
        return 1
    fi
    echo "$1: $count programs, all well"
}

export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
status=0
for variant in "$@"; do
    case $variant in
    plain) build plain "" ;;
    asan) build asan "-fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
    tsan) build tsan "-fsanitize=thread" ;;
    *) echo "unknown variant $variant (plain, asan, tsan)" >&2; exit 2 ;;
    esac
    run "$variant" || status=1
done
exit $status
