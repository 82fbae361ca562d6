"""The demo: a mail server that needs a sign-in in the middle of a tool call, and an agent that gets through it.

`gopher-mcp demo` shows it, `python -m gopher_mcp_python.demo.server` is the server alone. Everything stays on the
loopback interface; the account, the provider and the mail are made up.
"""

from __future__ import annotations

QUERY = "get mail profile, using get_gmail_users_get_profile"
"""What the demo asks: the query of the published smoke test."""

ACCOUNT = "ada@mail.example"
"""The made-up account that signs in."""
