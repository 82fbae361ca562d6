"""A real Chromium for the tests of the page, driven by playwright-core on Node.

with Browser() as browser:
    tab = browser.tab(width=390, height=844, dark=True)
    tab.go(url)
    tab.click("role=button[name='Send']")
    assert tab.faults() == []          # errors of scripts, violations of the policy, requests to other hosts
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import npm
from tests.support.node import Lines

_HERE = Path(__file__).resolve().parent
_SCRIPT = Path("node_modules/playwright-core/index.js")
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _absent(reason: str) -> Any:
    if os.environ.get("GOPHER_MCP_REQUIRE_BROWSER", "") not in ("", "0"):
        pytest.fail(f"a browser is required here (GOPHER_MCP_REQUIRE_BROWSER=1): {reason}", pytrace=False)
    pytest.skip(f"needs a browser: {reason}")


class Browser:
    """A headless Chromium without anything stored. Skips the test where there is none."""

    def __init__(self) -> None:
        chromium = next((found for name in _NAMES if (found := shutil.which(name))), None)
        if chromium is None:
            _absent("Chromium is missing: apt-get install chromium")
        try:
            installed = npm.installed(_HERE, "page-driver", _SCRIPT, what="playwright-core")
        except npm.Unusable as why:
            _absent(str(why))
        module = str(installed.folder / "node_modules" / "playwright-core")
        self._lines = Lines(installed.node, str(_HERE / "driver.cjs"), module, str(chromium))
        self._tabs = 0

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tab(self, *, width: int = 1100, height: int = 800, dark: bool = False, touch: bool = False) -> Tab:
        """A tab of a window of its own, with nothing of the others'."""
        self._tabs += 1
        self.do("open", tab=self._tabs, width=width, height=height, dark=dark, touch=touch)
        return Tab(self, self._tabs)

    def do(self, what: str, **how: Any) -> Any:
        """One command of driver.cjs. Raises AssertionError with what the browser says."""
        reply = self._lines.exchange({"do": what, **how})
        assert "error" not in reply, f"{what} {how}: {reply.get('error')}"
        return reply.get("value")

    def close(self) -> None:
        self._lines.close()


class Tab:
    """One page. Selectors are Playwright's: CSS, `text=...`, `role=button[name='Send']`. Everything waits until it can
    be done, up to 15 s."""

    def __init__(self, browser: Browser, number: int) -> None:
        self._browser, self._number = browser, number

    def _do(self, what: str, **how: Any) -> Any:
        return self._browser.do(what, tab=self._number, **how)

    def go(self, url: str) -> None:
        self._do("go", url=url)

    def click(self, selector: str) -> None:
        self._do("click", selector=selector)

    def fill(self, selector: str, text: str) -> None:
        self._do("fill", selector=selector, text=text)

    def choose(self, selector: str, value: str) -> None:
        """Picks from a list, by what is shown."""
        self._do("choose", selector=selector, value=value)

    def type(self, text: str) -> None:
        """Keys, wherever the focus is."""
        self._do("type", text=text)

    def press(self, *keys: str) -> None:
        """Keys by name: Tab, Enter, Shift+Tab."""
        for key in keys:
            self._do("press", key=key)

    def upload(self, selector: str, path: Path) -> None:
        self._do("upload", selector=selector, path=str(path))

    def wait(self, selector: str, state: str = "visible") -> None:
        """Until it is "visible", "hidden", "attached" or "detached"."""
        self._do("wait", selector=selector, state=state)

    def until(self, expression: str) -> None:
        """Until JavaScript says so."""
        self._do("until", expression=expression)

    def text(self, selector: str) -> str:
        """What is shown of one element."""
        return str(self._do("text", selector=selector))

    def texts(self, selector: str) -> list[str]:
        return list(self._do("texts", selector=selector))

    def value(self, selector: str) -> str:
        """What is typed into a field."""
        return str(self._do("value", selector=selector))

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self._do("run", expression=expression)

    def focused(self) -> str:
        """What has the focus, as somebody who can't see hears it: its name."""
        return str(self._do("focused"))

    def tree(self) -> str:
        """The page as assistive technology gets it (ARIA snapshot)."""
        return str(self._do("tree"))

    def popups(self) -> list[str]:
        """Addresses of tabs that this one opened."""
        return list(self._do("popups"))

    def faults(self) -> list[str]:
        """What must not happen on any page: errors of scripts, violations of the policy, dialogs, other hosts."""
        return list(self._do("faults"))

    def hold(self, pattern: str) -> None:
        """Requests whose address fits the pattern (Playwright's: ** and *) wait for `release`, as on a slow network."""
        self._do("hold", pattern=pattern)

    def held(self, pattern: str) -> int:
        """How many of them wait."""
        return int(self._do("held", pattern=pattern))

    def release(self, pattern: str, *, broken: bool = False) -> None:
        """They go on, or fail as when the connection breaks. Later ones are not held."""
        self._do("release", pattern=pattern, answer="broken" if broken else "")

    def reload(self) -> None:
        self._do("reload")

    def back(self) -> None:
        """The browser's own "back"."""
        self._do("back")

    def offline(self, is_offline: bool) -> None:
        self._do("offline", is_offline=is_offline)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        self._do("picture", path=str(path), whole=whole)

    def close(self) -> None:
        self._do("close")
