#!/bin/sh
# Runs the suite in a Debian 13 (Python 3.13, OpenSSL 3.5, PostgreSQL 17) that it bootstraps into a folder.
#
#   debian13.sh DIR [pytest arguments...]     no arguments: the whole suite. The folder is kept and used again.
#   MIRROR=http://... debian13.sh DIR         another Debian mirror (default: deb.debian.org)
#   REVISION=HEAD~3 debian13.sh DIR           another commit than the last one; JOBS=1: one test at a time
#
# Needs root and debootstrap. It runs what `make test` runs; the log is DIR/suite.log, with the reason of every skip.
# The vendor's library and a browser can be had there, so without them tests fail rather than skip.
# All of it runs in namespaces of its own: whatever it mounts and starts ends with it, however it ends.
set -eu
dir=${1:?usage: debian13.sh DIR [pytest arguments...]}
shift
here=$(cd "$(dirname "$0")/../../.." && pwd)
fail() { echo "debian13.sh: $1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "needs root, for chroot"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
command -v unshare >/dev/null && command -v setpriv >/dev/null ||
    fail "unshare or setpriv is missing: apt-get install util-linux"
mirror=${MIRROR:-http://deb.debian.org/debian}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
export root="$dir/root" certificates=/etc/ssl/certs/ca-certificates.crt

exec 9> "$dir/.lock"
flock --nonblock 9 || fail "another run uses $dir"

child=
trap '[ -z "$child" ] || kill -KILL "$child" || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# apart COMMAND [ARGUMENTS...]: with mounts and processes of its own, which end with it. It runs in the background,
# since a shell that waits for a command in the foreground answers no signal.
apart() {
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$@" < /dev/null &
    child=$!
    status=0; wait "$child" || status=$?
    child=
    return $status
}

# inside COMMAND [ARGUMENTS...]: in the Debian, in the folder of the source. The first process remains a shell, which
# takes care of orphans. Of this environment it sees only how package sources are reached, and JOBS.
inside() {
    apart sh -c '
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
            mount -t tmpfs tmpfs "$root/dev/shm" || exit
        chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            GOPHER_MCP_REQUIRE_BROWSER=1 NODE_EXTRA_CA_CERTS="$certificates" PIP_CERT="$certificates" VENV=/venv \
            PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            ${no_proxy:+no_proxy="$no_proxy"} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} \
            ${npm_config_registry:+npm_config_registry="$npm_config_registry"} ${JOBS:+JOBS="$JOBS"} \
            sh -c '\''cd /src && "$@"; exit'\'' sh "$@"
        exit' sh "$@"
}

if [ ! -f "$root/.bootstrapped" ]; then
    echo "== bootstrapping Debian 13"
    # What an interrupted run left is no start; debootstrap's own mounts were gone with that run.
    rm -rf --one-file-system "$root"
    apart debootstrap --variant=minbase --include=ca-certificates,git trixie "$root" "$mirror" \
        > "$dir/debootstrap.log" 2>&1 ||
        { tail -5 "$dir/debootstrap.log" >&2; exit 1; }
    cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io"  # a folder to throw away: dpkg needn't sync each file
    touch "$root/.bootstrapped"
fi
# Certificates and settings of the machine, without which a proxy can't be passed.
[ ! -f "$certificates" ] || cp -L "$certificates" "$root$certificates"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/pip.conf"
find "$root/src" "$root/tmp" -xdev -mindepth 1 -delete 2>/dev/null || true
git -c safe.directory='*' clone -q "$here" "$root/src"
git -C "$root/src" -c advice.detachedHead=false checkout -q --detach "${REVISION:-HEAD}"

echo "== installing"
# The first command takes up what an interrupted run left half installed.
inside sh -c 'export DEBIAN_FRONTEND=noninteractive; dpkg --configure -a && apt-get -qq update &&
    apt-get -qq install -y --no-install-recommends make gcc libc6-dev python3 python3-venv python3-dev &&
    tests/support/system.sh python3 --install' \
    > "$dir/install.log" 2>&1 || { tail -5 "$dir/install.log" >&2; exit 1; }
echo "== $(git -C "$root/src" log -1 --format='commit %h, %cs')"
inside sh -c 'python3 --version; openssl version; tmux -V
    /usr/lib/postgresql/*/bin/postgres --version; chromium --version 2>/dev/null'
inside make build > "$dir/build.log" 2>&1 || { tail -20 "$dir/build.log" >&2; exit 1; }
started=$(date +%s) status=0
if [ $# -gt 0 ]; then
    native=0; [ "$(uname -m)" != x86_64 ] || native=1
    inside env GOPHER_MCP_REQUIRE_NATIVE=$native /venv/bin/python -m pytest "$@" > "$dir/suite.log" 2>&1 || status=$?
else
    inside make test QT_ARGS=-rs PYTEST_ARGS='-q -rs --durations=15' > "$dir/suite.log" 2>&1 || status=$?
fi
tail -5 "$dir/suite.log"
echo "== $((($(date +%s) - started) / 60)) minutes; the log is $dir/suite.log"
exit $status
