"""The browser of the conformance runs: follows the redirects of one page, up to the program that waits for the last.

The suite's authorization server asks nobody anything, so a GET is all that a person would do there. Like the commands
that open a real browser it ends at once and leaves the rest to a process of its own.
"""

from __future__ import annotations

import os
import sys
import urllib.request

SECONDS = 20

if os.fork() == 0:
    os.setsid()
    # No proxy: the suite and the program are on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(sys.argv[1], timeout=SECONDS) as page:
        page.read()
