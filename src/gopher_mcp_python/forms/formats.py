"""`format` of JSON Schema, for the four that elicitation forms have (MCP specification, 2025-06-18 and later).

What is fine here is fine for Ajv's full formats too. Refused here and taken by Ajv are:
- email: local parts over 64 characters, labels over 63, addresses over 254 (RFC 5321 4.5.3.1);
- uri: one-letter schemes (a Windows drive), `host.name:80/x` (its scheme is missing), http, https, ws, wss, ftp, ftps,
  sftp and ssh without a host, URNs that RFC 8141 does not know, ports over 65535, zeros before the digits of an IPv4
  address within an IPv6 address;
- date-time: a blank for the T, offsets without a colon, a leap second on a day that has none (RFC 3339 5.6, 5.7).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv6Address

__all__ = ["FORMATS", "check_format"]

# ---- email: dot-atom @ domain (RFC 5321 4.1.2 without quotes and address literals; HTML's e-mail state; two labels)
_MAX_EMAIL = 254  # RFC 5321 4.5.3.1.3: a path of 256 with its angle brackets
_MAX_LOCAL = 64
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@{_LABEL}(?:\.{_LABEL})+")

# ---- uri: RFC 3986 appendix A
_PCHARS = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_REST = rf"(?:{_PCHARS}|[/?])*"
_URI = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):"
    rf"(?://(?P<authority>[^/?#]*)(?:/{_PCHARS}*)*|/(?:{_PCHARS}+(?:/{_PCHARS}*)*)?|{_PCHARS}+(?:/{_PCHARS}*)*)"
    rf"(?:\?{_REST})?(?:#{_REST})?"
)
_AUTHORITY = re.compile(
    r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?P<host>\[(?P<address>[^\[\]]*)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::(?P<port>[0-9]*))?"
)
_FUTURE_ADDRESS = re.compile(r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+")
_WITH_HOST = frozenset(("http", "https", "ws", "wss", "ftp", "ftps", "sftp", "ssh"))
_HOST_AND_PORT = re.compile(r"(?:localhost|[A-Za-z0-9.-]+\.[A-Za-z0-9-]+):[0-9]{1,5}(?:[/?#].*)?", re.DOTALL)
_URN = re.compile(r"urn:[A-Za-z0-9][A-Za-z0-9-]{0,30}[A-Za-z0-9]:.+", re.IGNORECASE)  # RFC 8141

# ---- date, date-time: RFC 3339 5.6
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))")
_NO_OFFSET = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY_MINUTES = 24 * 60

_BE_EMAIL = "must be an email address such as name@example.com"
_BE_URI = "must be a complete address (URI) such as https://example.com/page"
_BE_DATE = "must be a date written as year-month-day, such as 2026-01-31"
_BE_DATE_TIME = (
    "must be a date and time with its offset from UTC, such as 2026-01-31T09:30:00Z or 2026-01-31T10:30:00+01:00"
)


def check_format(name: str, value: str) -> str | None:
    """Whether a text has a format. None: it has, or the format is not one that is checked.

    Otherwise the reason, as the rest of a sentence that begins with the field's name ("must be an email address such
    as name@example.com"). It never holds the value.
    """
    check = FORMATS.get(name)
    return None if check is None else check(value)


def _email(value: str) -> str | None:
    if len(value) > _MAX_EMAIL:
        return f"{_BE_EMAIL}, of at most {_MAX_EMAIL} characters"
    found = _EMAIL.fullmatch(value)
    if found is None or len(found[1]) > _MAX_LOCAL:
        return _BE_EMAIL
    return None


def _uri(value: str) -> str | None:
    if any(character.isspace() for character in value):
        return f"{_BE_URI}, without blanks (a blank is written %20)"
    if _HOST_AND_PORT.fullmatch(value):
        return f"{_BE_URI}, with https:// or another scheme at its beginning"
    found = _URI.fullmatch(value)
    if found is None or len(found["scheme"]) == 1:
        return _BE_URI
    scheme = found["scheme"].lower()
    if scheme == "urn":
        return None if _URN.fullmatch(value) else f"{_BE_URI}; a URN is written like urn:isbn:0451450523"
    if found["authority"] is None:
        return f"{_BE_URI}, with // and a host behind the scheme" if scheme in _WITH_HOST else None
    return _authority(found["authority"], needs_host=scheme in _WITH_HOST)


def _authority(text: str, *, needs_host: bool) -> str | None:
    """What stands between `//` and the path."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or (found["address"] is not None and not _is_address(found["address"])):
        return f"{_BE_URI}; its host is not written as one"
    if needs_host and not found["host"]:
        return f"{_BE_URI}, with a host behind the //"
    if len(found["port"] or "") > 5 or int(found["port"] or 0) > 65535:
        return f"{_BE_URI}, with a port of at most 65535"
    return None


def _is_address(text: str) -> bool:
    """What may stand in brackets: an IPv6 address without a zone, or one of a future version."""
    try:
        return "%" not in text and bool(IPv6Address(text))
    except AddressValueError:
        return _FUTURE_ADDRESS.fullmatch(text) is not None


def _date(value: str) -> str | None:
    found = _DATE.fullmatch(value)
    if found is None:
        return _BE_DATE
    year, month, day = map(int, found.groups())
    return None if _is_day(year, month, day) else f"{_BE_DATE}, and a day that the calendar has"


def _is_day(year: int, month: int, day: int) -> bool:
    """Whether the (proleptic Gregorian) calendar has the day. RFC 3339 knows the year 0000, `datetime` does not."""
    return 1 <= month <= 12 and 1 <= day <= _last_day(year, month)


def _last_day(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _DAYS[month - 1]


def _date_time(value: str) -> str | None:
    day, mark, time = value[:10], value[10:11], value[11:]
    if _date(day) is not None or mark not in ("T", "t"):
        return _BE_DATE_TIME
    if _NO_OFFSET.fullmatch(time):
        return f"{_BE_DATE_TIME}; the Z or the offset at its end is missing"
    found = _TIME.fullmatch(time)
    if found is None:
        return _BE_DATE_TIME
    hour, minute, second, offset_hour, offset_minute = (int(found[index] or 0) for index in (1, 2, 3, 5, 6))
    if hour > 23 or minute > 59 or second > 60 or offset_hour > 23 or offset_minute > 59:
        return f"{_BE_DATE_TIME}, and a time that the clock has"
    offset = (offset_hour * 60 + offset_minute) * (-1 if found[4] == "-" else 1)
    if second == 60 and not _may_leap(day, hour * 60 + minute - offset):
        return f"{_BE_DATE_TIME}; second 60 is only at 23:59:60 UTC on June 30 or December 31"
    return None


def _may_leap(day: str, minutes: int) -> bool:
    """Whether a leap second may follow the minute, counted from the beginning of the day, in UTC (RFC 3339 5.7)."""
    if minutes % _DAY_MINUTES != _DAY_MINUTES - 1:
        return False
    shift = minutes // _DAY_MINUTES  # the day of UTC: one before, the same, or one after
    return {-1: ("07-01", "01-01"), 0: ("06-30", "12-31"), 1: ("06-29", "12-30")}[shift].count(day[5:]) == 1


FORMATS: dict[str, Callable[[str], str | None]] = {
    "email": _email,
    "uri": _uri,
    "date": _date,
    "date-time": _date_time,
}
