#!/bin/sh
# Builds CPython 3.14 from Debian's own source package into a folder, twice: with the GIL and free-threaded.
#
#   python314.sh DIR [gil] [free]      neither named: both. Results: DIR/gil/bin/python3.14, DIR/free/bin/python3.14t
#   SUITE=sid python314.sh DIR         another Debian suite (default: forky)
#   VERSION=3.14.7-1 python314.sh DIR  this version from the mirror's pool, where its lists name one that it no longer has;
#                                      the files are checked against the .dsc, whose signature is not
#   MIRROR=http://...                  another Debian mirror (default: the machine's, else deb.debian.org)
#   JOBS=4                             that many compilers at a time (default: 2)
#
# Needs apt-get, dpkg-dev, xz-utils, gcc, make and the headers of OpenSSL, zlib, libffi, SQLite, bzip2 and readline; no root rights.
# Without Debian's patches: with them a free-threaded Python's virtual environments find none of their packages.
# No profile-guided optimisation, so its speed says nothing about a released Python's. An apt root of its own is used:
# the system's package lists and settings are left alone. Some minutes on two processors.
set -eu
dir=${1:?usage: python314.sh DIR [gil] [free]}
shift
[ $# -gt 0 ] || set -- gil free
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
suite=${SUITE:-forky}
for tool in apt-get dpkg-source xz cc make; do
    command -v "$tool" >/dev/null || { echo "python314.sh: $tool is missing (apt-get install dpkg-dev xz-utils gcc make)" >&2; exit 1; }
done
missing=
for pair in openssl/ssl.h:libssl-dev zlib.h:zlib1g-dev ffi.h:libffi-dev sqlite3.h:libsqlite3-dev bzlib.h:libbz2-dev \
        readline/readline.h:libreadline-dev; do
    echo "#include <stdio.h>
#include <${pair%%:*}>" | cc -E -x c - >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -z "$missing" ] || { echo "python314.sh: headers are missing: apt-get install$missing" >&2; exit 1; }

mirror_of_machine() {
    cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null |
        sed -n -e 's/^URIs: *//p' -e 's/^deb *\(\[[^]]*\]\)\{0,1\} *\([^ ]*\).*/\2/p' | tr ' ' '\n' | grep '/debian/*$' |
        head -1
}
mirror=${MIRROR:-$(mirror_of_machine)}
mirror=${mirror:-http://deb.debian.org/debian}

fetch_version() {
    command -v curl >/dev/null || { echo "python314.sh: VERSION needs curl" >&2; exit 1; }
    for file in "python3.14_$VERSION.dsc" "python3.14_${VERSION%-*}.orig.tar.xz" "python3.14_$VERSION.debian.tar.xz"; do
        curl -fsSL -o "$dir/$file" "${mirror%/}/pool/main/p/python3.14/$file"
    done
}

fetch_listed() {
    root=$(mktemp -d); trap 'rm -rf "$root"' EXIT
    mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/apt/preferences.d" "$root/etc/apt/sources.list.d" \
        "$root/var/lib/apt/lists/partial" "$root/var/cache/apt/archives/partial" "$root/var/lib/dpkg"
    : > "$root/var/lib/dpkg/status"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
        > "$root/etc/apt/sources.list"
    # A mirror may be a frozen copy, whose Release file has run out; its signature is checked all the same.
    printf 'Dir "%s";\nDir::State::status "%s/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n%s\n' "$root" "$root" \
        'Acquire::Check-Valid-Until "false";' > "$root/apt.conf"
    cat /etc/apt/apt.conf.d/*proxy* >> "$root/apt.conf" 2>/dev/null || true
    (export APT_CONFIG="$root/apt.conf"; cd "$dir" && apt-get -qq update >&2 &&
        apt-get -qq source --download-only python3.14 >&2)
}

fetch() {
    if [ -n "${VERSION:-}" ]; then fetch_version; else fetch_listed; fi
    dpkg-source --skip-patches -x "$dir"/python3.14_*.dsc "$dir/source" >/dev/null
}

[ -d "$dir/source" ] || fetch
for kind in "$@"; do
    case $kind in
    gil) option= name=python3.14 ;;
    free) option=--disable-gil name=python3.14t ;;
    *) echo "python314.sh: gil or free, not $kind" >&2; exit 2 ;;
    esac
    [ ! -x "$dir/$kind/bin/$name" ] || { echo "$dir/$kind/bin/$name"; continue; }
    mkdir -p "$dir/build-$kind"
    (cd "$dir/build-$kind" &&
        "$dir/source/configure" --prefix="$dir/$kind" --with-ensurepip=install $option &&
        make -j"${JOBS:-2}" && make install) > "$dir/$kind.log" 2>&1 ||
        { tail -20 "$dir/$kind.log" >&2; echo "python314.sh: the build failed; all of it: $dir/$kind.log" >&2; exit 1; }
    echo "$dir/$kind/bin/$name"
done
