#!/bin/sh
# Says which system packages are missing and how to install them; exit code 1 when the build can't work without them.
# usage: system.sh PYTHON [--install]     --install: apt-get installs what is missing (root, Debian or Ubuntu)
set -u
python=${1:?usage: system.sh PYTHON [--install]}
needed="" wanted=""

command -v cc >/dev/null || needed="$needed gcc libc6-dev"
command -v make >/dev/null || needed="$needed make"
if ! command -v "$python" >/dev/null; then
    needed="$needed python3 python3-venv python3-dev"
else
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
        echo "$python is older than 3.10: name a newer one with PYTHON=python3.12 make ..." >&2; exit 1; }
    "$python" -c 'import ensurepip, venv' 2>/dev/null || needed="$needed python3-venv"
    header=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h
    [ -f "$header" ] || needed="$needed python3-dev"
fi
command -v openssl >/dev/null || wanted="$wanted openssl"
command -v tmux >/dev/null || wanted="$wanted tmux"
command -v npm >/dev/null || wanted="$wanted npm"
for shell in zsh fish; do command -v "$shell" >/dev/null || wanted="$wanted $shell"; done
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || wanted="$wanted postgresql"
ls /usr/lib/*/libpq.so.5 /usr/lib/libpq.so.5 2>/dev/null | grep -q . || wanted="$wanted libpq5"
# A library that the vendor brings an old copy of: the tests open the machine's own beside it.
ls /usr/lib/*/libcurl.so.4 /usr/lib/libcurl.so.4 2>/dev/null | grep -q . || wanted="$wanted libcurl4"
# What one old version of the vendor's needs.
ls /usr/lib/*/libevent-2.1.so.7 /usr/lib/libevent-2.1.so.7 2>/dev/null | grep -q . || wanted="$wanted libevent-2.1-7"
[ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || [ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ] ||
    wanted="$wanted debian-archive-keyring"
# Ubuntu's chromium is a snap, which apt-get alone does not install; there the one test with a real browser is skipped.
if grep -qs '^ID=debian' /etc/os-release; then command -v chromium >/dev/null || wanted="$wanted chromium"; fi
ls /usr/lib/*/libglib-2.0.so.0 2>/dev/null | grep -q . || wanted="$wanted libglib2.0-0"
# What Qt needs to draw and to open real windows, a display without a screen, and who types there.
if [ -r /etc/debian_version ]; then
    for package in xvfb xdotool openbox libegl1 libgl1 libxkbcommon0 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 \
            libxcb-image0 libxcb-keysyms1 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 libfontconfig1 libdbus-1-3 \
            fonts-dejavu-core; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || wanted="$wanted $package"
    done
fi
# The sanitizers' runtimes come with the compiler on Debian and Ubuntu; elsewhere the tests say what they miss.

[ -n "$needed$wanted" ] || exit 0
if [ "${2:-}" = --install ]; then
    echo "== installing:$needed$wanted"
    export DEBIAN_FRONTEND=noninteractive
    # Debian's postgresql package would start a cluster of its own, which no test uses.
    mkdir -p /etc/postgresql-common
    [ -f /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
    apt-get -qq update && apt-get -qq install -y --no-install-recommends $needed $wanted >/dev/null
    exit
fi
[ -z "$needed" ] || echo "missing, nothing works without:$needed" >&2
[ -z "$wanted" ] || echo "missing, some tests fail without:$wanted" >&2
echo "install with:  sudo apt-get install$needed$wanted" >&2
[ -z "$needed" ]
