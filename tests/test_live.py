"""A smoke test against a live server and a live model, for who has the credentials (docs/live-smoke-test.md).

It is the only test that may be skipped: it needs accounts that no machine has by itself. With GOPHER_LIVE_URL set it
runs `examples/api/create_by_url_run.sh` as a person would, in a terminal, and expects that the run completes after the
provider's sign-in. Whoever starts it signs in at the page that opens; Enter is pressed after GOPHER_LIVE_WAIT seconds
(default 120) unless the prompt has ended by itself. With GOPHER_LIVE_PROFILE set, the answer must hold that text.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.support.children import ROOT
from tests.support.terminal import Terminal

QUERY = "get mail profile, using get_gmail_users_get_profile"
KEPT = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOPHER_ACCESS_TOKEN", "GOPHER_MCP_ENGINE", "GOPHER_MCP_PROVIDER",
        "GOPHER_MCP_MODEL", "GOPHER_MCP_PYTHON_LIBRARY_PATH", "GOPHER_MCP_OPENSSL11_PATH", "HTTPS_PROXY", "https_proxy",
        "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # fmt: skip


@pytest.mark.live
@pytest.mark.source_tree
@pytest.mark.timeout(900)
@pytest.mark.skipif(not os.environ.get("GOPHER_LIVE_URL"), reason="no GOPHER_LIVE_URL (docs/live-smoke-test.md)")
def test_create_by_url_completes_after_provider_authorization() -> None:
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"GOPHER_MCP_URL": os.environ["GOPHER_LIVE_URL"], "PYTHON": sys.executable}
    script = str(ROOT / "examples" / "api" / "create_by_url_run.sh")
    with Terminal(["sh", script, QUERY], env=environment, timeout=300) as shown:
        shown.expect("press Enter to continue")
        wait = float(os.environ.get("GOPHER_LIVE_WAIT", "120"))
        if shown.child.expect([r"\S+@\S+", shown.eof, shown.timed_out], timeout=wait) == 2:
            shown.line()
        code, rest = shown.end(timeout=300)
        text = str(shown.child.before) + str(shown.child.after) + rest
    assert code == 0, text
    assert os.environ.get("GOPHER_LIVE_PROFILE", "") in text
