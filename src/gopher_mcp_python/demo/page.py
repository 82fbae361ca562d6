"""The provider's pages: one HTML file each, no script, no outside assets, light and dark."""

from __future__ import annotations

import secrets
from html import escape

from starlette.responses import HTMLResponse

_STYLE = """
:root { color-scheme: light dark; --bg:#eef1f6; --card:#fff; --ink:#1b2330; --soft:#5b6675; --line:#dde3ec;
  --main:#1f6feb; --main-ink:#fff; --ok:#1a7f4b; --no:#b3382c; }
@media (prefers-color-scheme: dark) { :root { --bg:#0e131b; --card:#171e29; --ink:#e8edf5; --soft:#9aa7b8;
  --line:#2a3443; --main:#4c8dff; --main-ink:#08101d; --ok:#4fc48a; --no:#f0786c; } }
* { box-sizing: border-box; }
body { margin:0; min-height:100vh; display:grid; place-items:center; padding:24px; background:var(--bg);
  color:var(--ink); font:16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { width:100%; max-width:440px; background:var(--card); border:1px solid var(--line); border-radius:16px;
  padding:32px; box-shadow:0 8px 30px rgb(10 20 40 / .08); }
.brand { display:flex; align-items:center; gap:10px; color:var(--soft); font-size:14px; margin-bottom:20px; }
.brand svg, .sign svg { display:block; }
h1 { font-size:22px; line-height:1.3; margin:0 0 8px; letter-spacing:-.01em; }
p { margin:0 0 16px; color:var(--soft); }
.who { display:flex; align-items:center; gap:12px; border:1px solid var(--line); border-radius:12px;
  padding:12px 14px; }
.face { flex:none; width:36px; height:36px; border-radius:50%; background:var(--main); color:var(--main-ink);
  display:grid; place-items:center; font-weight:600; }
.who small { display:block; color:var(--soft); }
ul { list-style:none; padding:0; margin:20px 0; }
li { padding:10px 0; border-top:1px solid var(--line); }
li:last-child { border-bottom:1px solid var(--line); }
form { display:flex; gap:12px; }
button { flex:1; font:inherit; font-weight:600; padding:12px 16px; border-radius:10px; cursor:pointer;
  border:1px solid var(--line); background:transparent; color:var(--ink); }
button.allow { background:var(--main); border-color:var(--main); color:var(--main-ink); }
button:hover { filter:brightness(1.06); }
button:focus-visible { outline:3px solid var(--main); outline-offset:2px; }
.note { font-size:13px; margin:20px 0 0; }
.sign { margin-bottom:16px; }
.ok { color:var(--ok); } .no { color:var(--no); }
"""

_ENVELOPE = (
    '<svg width="22" height="22" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" '
    'aria-hidden="true"><rect x="3" y="5" width="18" height="14" rx="2.5"/><path d="m3.5 7 8.5 6 8.5-6"/></svg>'
)
_TICK = (
    '<svg width="44" height="44" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" '
    'aria-hidden="true"><circle cx="12" cy="12" r="9.5"/><path d="m7.5 12.3 3 3 6-6.4"/></svg>'
)
_CROSS = (
    '<svg width="44" height="44" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" '
    'aria-hidden="true"><circle cx="12" cy="12" r="9.5"/><path d="m8.5 8.5 7 7m0-7-7 7"/></svg>'
)


def consent(account: str, client: str, state: str, proof: str) -> HTMLResponse:
    """The page with Allow and Deny; `proof` ties the form to the cookie that came with the page."""
    return _page(
        "Allow access to your mail profile?",
        f"""<h1>Allow <b>{escape(client)}</b> to see your mail profile?</h1>
<p>It asked for this in the middle of a tool call and is waiting for you.</p>
<div class="who"><span class="face" aria-hidden="true">{escape(account[:1].upper())}</span>
<span>{escape(account)}<small>signed in with a made-up account</small></span></div>
<ul><li>See your mail address</li><li>See how many messages and threads you have</li></ul>
<form method="post" action="/provider/decision">
<input type="hidden" name="state" value="{escape(state)}"><input type="hidden" name="proof" value="{escape(proof)}">
<button name="decision" value="deny">Deny</button>
<button class="allow" name="decision" value="allow">Allow</button></form>
<p class="note">A demo: this page comes from your own computer, and nothing here is a real account.</p>""",
    )


def notice(title: str, text: str, *, good: bool, status: int = 200) -> HTMLResponse:
    """A page that says how it went, or why it can't go on."""
    sign = f'<div class="sign {"ok" if good else "no"}">{_TICK if good else _CROSS}</div>'
    return _page(title, f"{sign}<h1>{escape(title)}</h1><p>{escape(text)}</p>", status)


def _page(title: str, body: str, status: int = 200) -> HTMLResponse:
    nonce = secrets.token_urlsafe(16)
    html = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style nonce="{nonce}">{_STYLE}</style></head>
<body><main><div class="brand">{_ENVELOPE}<span>Demo Mail &middot; sign-in</span></div>
{body}</main></body></html>"""
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        # Not no-referrer: browsers would then send "Origin: null" with the form, and the origin is checked.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(html, status_code=status, headers=headers)
