"""The pages that the browser shows at the end of a sign-in: one HTML text each, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from http import HTTPStatus

__all__ = ["failed", "pending", "response", "signed_in", "stray"]

_STYLE = """
:root { color-scheme: light dark; --bg:#eef1f6; --card:#fff; --ink:#1b2330; --soft:#5b6675; --line:#dde3ec;
  --ok:#1a7f4b; --no:#b3382c; --mid:#1f6feb; }
@media (prefers-color-scheme: dark) { :root { --bg:#0e131b; --card:#171e29; --ink:#e8edf5; --soft:#9aa7b8;
  --line:#2a3443; --ok:#4fc48a; --no:#f0786c; --mid:#4c8dff; } }
* { box-sizing: border-box; }
body { margin:0; min-height:100vh; display:grid; place-items:center; padding:24px; background:var(--bg);
  color:var(--ink); font:16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { width:100%; max-width:460px; background:var(--card); border:1px solid var(--line); border-radius:16px;
  padding:32px; box-shadow:0 8px 30px rgb(10 20 40 / .08); overflow-wrap:anywhere; }
svg { display:block; margin-bottom:16px; }
h1 { font-size:22px; line-height:1.3; margin:0 0 8px; letter-spacing:-.01em; }
p { margin:0; color:var(--soft); white-space:pre-line; }
.ok { color:var(--ok); } .no { color:var(--no); } .mid { color:var(--mid); }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# The page may load nothing, run nothing, be framed by nobody; its own style is known by its hash.
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_STROKES = {
    "ok": "m7.5 12.3 3 3 6-6.4",
    "no": "m8.5 8.5 7 7m0-7-7 7",
    "mid": "M12 7v6m0 3.4v.1",
}


def signed_in(text: str) -> bytes:
    """The token is there; `text` says for what."""
    return _page("ok", "Signed in", text or "You can close this page and go back to the program.")


def failed(text: str) -> bytes:
    """There is no token; `text` says why."""
    return _page("no", "Not signed in", text or "The sign-in did not succeed. The program says more.")


def pending() -> bytes:
    """The browser has come back, and the program takes its time."""
    return _page("mid", "Go back to the program", "The sign-in is not finished yet. The program says how it ends.")


def stray(text: str) -> bytes:
    """A request that belongs to no sign-in that waits."""
    return _page("mid", "Nothing was done", text)


def response(status: HTTPStatus, page: bytes, *, head_only: bool = False, allow: str | None = None) -> bytes:
    """A whole HTTP/1.1 response that ends its connection."""
    headers = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(page)}",
        "Connection: close",
        "Cache-Control: no-store",
        # The address of this page holds the code: no other page may be told of it.
        "Referrer-Policy: no-referrer",
        f"Content-Security-Policy: {_POLICY}",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cross-Origin-Opener-Policy: same-origin",
    ]
    if allow:
        headers.append(f"Allow: {allow}")
    head = "\r\n".join([*headers, "", ""]).encode("ascii")
    return head if head_only else head + page


def _page(kind: str, title: str, text: str) -> bytes:
    sign = (
        f'<svg class="{kind}" width="44" height="44" viewBox="0 0 24 24" fill="none" stroke="currentColor" '
        'stroke-width="1.8" stroke-linecap="round" aria-hidden="true"><circle cx="12" cy="12" r="9.5"/>'
        f'<path d="{_STROKES[kind]}"/></svg>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n"
        f'<body><main>{sign}<h1>{escape(title)}</h1><p>{escape(text)}</p></main></body></html>\n'
    ).encode("utf-8", "replace")
