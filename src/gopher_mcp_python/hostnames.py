"""What can be told about a host name without asking a network: its ASCII form, the registered part, look-alikes.

The registered part ("site") is a rule of thumb, not the public suffix list: the last two labels, or three under the
two-letter domains' usual second levels (co.uk) and under well-known hosting domains (github.io). It is used to make a
part of the name stand out, never to decide that a host is trusted.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import ip_address

__all__ = [
    "ascii_host",
    "is_foreign_address",
    "is_ip_address",
    "is_local",
    "is_shared_hosting",
    "look_alike_warnings",
    "site_of",
]

_SECOND_LEVELS = frozenset("ac asso co com ed edu go gob gov gouv ltd me mil ne net nhs nom or org plc sch".split())
_SHARED_HOSTING = frozenset(
    "amazonaws.com appspot.com azurewebsites.net blogspot.com cloudfront.net firebaseapp.com github.io gitlab.io "
    "herokuapp.com netlify.app ngrok-free.app ngrok.io onrender.com pages.dev run.app trycloudflare.com vercel.app "
    "web.app workers.dev".split()
)
_FAMILIAR_ENDINGS = frozenset(("com", "edu", "gov", "net", "org"))
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*\Z")


def is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def ascii_host(host: str) -> str:
    """The lower-case ASCII (IDNA) form of a host name. Raises ValueError when it has none."""
    name = host.lower()
    if not name.isascii():
        name = _idna(name)
    labels = name.rstrip(".").split(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        raise ValueError("not a host name")
    if _NUMERIC.match(labels[-1]) and (len(labels) > 4 or not all(map(_NUMERIC.match, labels))):
        raise ValueError("not a host name")  # a browser takes what ends in a number for an address
    return name


def site_of(host: str) -> str:
    """The part of an ASCII host name that somebody registered, by the rule of thumb above; addresses stay whole."""
    if host.startswith("[") or is_ip_address(host):
        return host
    labels = host.rstrip(".").split(".")
    if _NUMERIC.match(labels[-1]):
        return host
    take = 2
    if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVELS:
        take = 3
    elif ".".join(labels[-2:]) in _SHARED_HOSTING:
        take = 3
    return ".".join(labels[-take:])


def is_shared_hosting(host: str) -> bool:
    """Whether an ASCII host name belongs to a hosting service that is known to give names to strangers."""
    return ".".join(host.rstrip(".").split(".")[-2:]) in _SHARED_HOSTING


def is_local(host: str) -> bool:
    """Whether a host (ASCII, IPv6 in brackets) is this machine."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    bare = host.strip("[]")
    return is_ip_address(bare) and ip_address(bare).is_loopback


def is_foreign_address(host: str) -> bool:
    """Whether a host is an IP address of another machine."""
    return is_ip_address(host.strip("[]")) and not is_local(host)


def look_alike_warnings(host: str, shown: str) -> list[str]:
    """Sentences about a host (ASCII form, and as the server wrote it) that could be taken for another one."""
    is_address = is_ip_address(host.strip("[]"))
    if is_address and shown.isascii():
        return []
    if is_address or _NUMERIC.match(host.rstrip(".")):
        return ["The address is a number in an unusual spelling, which is often used to mislead."]
    found = []
    if "xn--" in host or not shown.isascii():
        found.append(_unicode_warning(host))
    imitated = _imitated(host)
    if imitated:
        found.append(f"The name begins like {imitated}, but the page belongs to {site_of(host)}.")
    return found


def _idna(name: str) -> str:
    try:
        import idna
    except ImportError:
        return name.encode("idna").decode("ascii")  # UnicodeError is a ValueError
    return idna.encode(name, uts46=True).decode("ascii")


def _unicode_warning(host: str) -> str:
    text = ".".join(_decoded(label) for label in host.split("."))
    scripts = sorted({script for label in text.split(".") for script in _scripts(label)})
    mixed = any(len(_scripts(label)) > 1 for label in text.split("."))
    spelling = f"mixes {' and '.join(scripts)} letters" if mixed else "is written with letters beyond a to z"
    return f"The host name {spelling} and can look like another one: {_inert(text)} is really {host}."


def _decoded(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _scripts(label: str) -> set[str]:
    """Scripts of a label's letters, by the first word of their Unicode names (LATIN, CYRILLIC, GREEK, ...)."""
    return {unicodedata.name(letter, "UNKNOWN").split()[0].capitalize() for letter in label if letter.isalpha()}


def _inert(text: str) -> str:
    from .display import safe_text

    return safe_text(text)


def _imitated(host: str) -> str | None:
    """A complete name in front of the registered part: login.example.com in login.example.com.evil.test, and in
    login.example.com-sign-in.evil.test."""
    site = site_of(host)
    front = host.rstrip(".")[: -len(site) - 1].split(".") if len(host.rstrip(".")) > len(site) else []
    for index in range(len(front) - 1, 0, -1):
        ending = front[index].partition("-")[0]
        if ending in _FAMILIAR_ENDINGS:
            return ".".join([*front[:index], ending])
    return None
