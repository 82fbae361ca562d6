#!/bin/sh
# Runs the suite in a Debian 13 (Python 3.13, OpenSSL 3.5, PostgreSQL 17) that it bootstraps into a folder.
#
#   debian13.sh DIR [pytest arguments...]     no arguments: the whole suite. The folder is kept and used again.
#   MIRROR=http://... debian13.sh DIR         another Debian mirror (default: deb.debian.org)
#
# Needs root and debootstrap. What is tested is the last commit, as `make test` tests it; the log is DIR/suite.log.
set -eu
dir=${1:?usage: debian13.sh DIR [pytest arguments...]}
shift
here=$(cd "$(dirname "$0")/../../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "debian13.sh: needs root, for chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debian13.sh: debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
mirror=${MIRROR:-http://deb.debian.org/debian}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
root=$dir/root

if [ ! -f "$root/.bootstrapped" ]; then
    debootstrap --variant=minbase --include=ca-certificates,git trixie "$root" "$mirror" > "$dir/debootstrap.log" 2>&1 ||
        { tail -5 "$dir/debootstrap.log" >&2; exit 1; }
    cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
    touch "$root/.bootstrapped"
fi
# Certificates and pip's settings of the machine, without which a proxy can't be passed.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
[ ! -f /etc/pip.conf ] || cp -L /etc/pip.conf "$root/etc/pip.conf"
rm -rf "$root/src"
git -c safe.directory='*' clone -q "$here" "$root/src"

mounted=
leave() { for at in $mounted; do umount "$root/$at" || umount -l "$root/$at"; done; }
trap leave EXIT
trap 'exit 1' INT TERM
for at in proc dev dev/pts dev/shm; do
    case $at in
    proc) mount -t proc proc "$root/$at" ;;
    *) mount --bind "/$at" "$root/$at" ;;
    esac
    mounted="$at $mounted"
done
inside() { chroot "$root" /usr/bin/env HOME=/root LANG=C.UTF-8 ${FORWARDED:-} sh -c "cd /src && $1" sh "$@" < /dev/null; }
inside 'apt-get -qq update && apt-get -qq install -y --no-install-recommends make gcc libc6-dev python3 python3-venv python3-dev &&
    tests/support/system.sh python3 --install' > "$dir/install.log" 2>&1 || { tail -5 "$dir/install.log" >&2; exit 1; }
inside 'python3 --version; openssl version; ls /usr/lib/postgresql'
inside 'make build' > "$dir/build.log" 2>&1 || { tail -20 "$dir/build.log" >&2; exit 1; }
status=0
if [ $# -gt 0 ]; then
    chroot "$root" /usr/bin/env HOME=/root LANG=C.UTF-8 sh -c 'cd /src && exec .venv/bin/python -m pytest "$@"' sh "$@" \
        > "$dir/suite.log" 2>&1 < /dev/null || status=$?
else
    inside 'make test' > "$dir/suite.log" 2>&1 || status=$?
fi
tail -5 "$dir/suite.log"
exit $status
