#!/bin/sh
# Unpacks libssl1.1 (which the published libgopher-orch needs) into DIR without installing it, and prints the folder of
# the libraries.   usage: openssl11.sh DIR
#
# Debian 11 and Ubuntu 20.04 were the last to have it. The machine's own package source is used, with the suite changed,
# in an apt root of its own: the system's package lists and settings are left alone, and no root rights are needed.
set -eu
dir=${1:?usage: openssl11.sh DIR}
mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
found=$(find "$dir" -name libcrypto.so.1.1 2>/dev/null | head -1)
if [ -z "$found" ]; then
    command -v apt-get >/dev/null || { echo "openssl11.sh: needs apt-get (Debian or Ubuntu)" >&2; exit 1; }
    uris=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list /etc/apt/sources.list 2>/dev/null |
        sed -n -e 's/^URIs: *//p' -e 's/^deb *\(\[[^]]*\]\)\{0,1\} *\([^ ]*\).*/\2/p' | tr ' ' '\n')
    uri=$(echo "$uris" | grep '/debian/*$' | head -1 || true)
    suite=bullseye keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    if [ -z "$uri" ]; then
        uri=$(echo "$uris" | grep '/ubuntu/*$' | head -1 || true)
        suite=focal keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    fi
    [ -n "$uri" ] || { echo "openssl11.sh: no Debian or Ubuntu package source on this machine" >&2; exit 1; }
    root=$(mktemp -d); trap 'rm -rf "$root"' EXIT
    mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/apt/preferences.d" "$root/etc/apt/sources.list.d" \
        "$root/var/lib/apt/lists/partial" "$root/var/cache/apt/archives/partial" "$root/var/lib/dpkg"
    : > "$root/var/lib/dpkg/status"
    echo "deb [signed-by=$keyring] $uri $suite main" > "$root/etc/apt/sources.list"
    printf 'Dir "%s";\nDir::State::status "%s/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n' "$root" "$root" \
        > "$root/apt.conf"
    # Settings of the machine (a proxy, say) are needed to reach its own source.
    cat /etc/apt/apt.conf.d/*proxy* >> "$root/apt.conf" 2>/dev/null || true
    (export APT_CONFIG="$root/apt.conf"; cd "$dir" && apt-get -qq update >&2 && apt-get -qq download libssl1.1 >&2)
    dpkg -x "$dir"/libssl1.1_*.deb "$dir"
    found=$(find "$dir" -name libcrypto.so.1.1 | head -1)
fi
dirname "$found"
