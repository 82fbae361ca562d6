"""Makes the pictures of docs/serve.md: `python -m tests.support.page.pictures [FOLDER]`, to be looked at."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.store import model
from tests.support.page import Browser, Tab
from tests.support.serving import Serving

_IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"
_FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 80},
        "email": {"type": "string", "format": "email", "title": "Email", "description": "For the receipt only."},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 9, "default": 2},
        "class": {"type": "string", "title": "Class", "enum": ["economy", "business"], "default": "economy"},
        "extras": {"type": "array", "title": "Extras", "items": {"enum": ["meal", "window seat", "bicycle"]}},
        "note": {"type": "string", "title": "Note", "maxLength": 500},
    },
    "required": ["name", "seats"],
}


def ask(serving: Serving) -> None:
    """What is asked in the pictures."""
    store = serving.store
    form = GopherAgentElicitationRequest(
        "form", message="Who travels, and how?", server="rail-booking", tool="book_trip", requested_schema=_FORM
    )
    url = "https://accounts.example.com/o/oauth2/auth?response_type=code&client_id=mail&scope=mail.read&state=p7Qm0c"
    page = GopherAgentElicitationRequest(
        "url", "e-1", "Sign in to your mail account, so that I can read the profile.", url, server="mail"
    )
    odd = GopherAgentElicitationRequest(
        "url", "e-2", "Confirm your account", "https://accounts.google.com@login.evil.example/", server="mail"
    )
    arguments = {"project": "orion", "id": 90071992547409910, "keep_backups": False, "paths": ["/srv/orion", "/srv/x"]}
    store.create_confirmation("ada", tool="delete_project", arguments=arguments, server="projects", timeout_s=900)
    store.create("ada", model.mcp_form(form), timeout_s=600)
    store.create("ada", model.mcp_url(page), timeout_s=600)
    store.create("ada", model.mcp_url(odd))
    store.create("ada", model.single_choice("Deploy where?", ["staging", "production"], server="ci"))
    store.create("ada", model.file_upload("Send the log of the failed run.", media_types=["text/plain"], server="ci"))


def sign_in(tab: Tab, serving: Serving) -> None:
    tab.go(f"{serving.url}/")
    tab.fill("#token", serving.answer)
    tab.press("Enter")
    tab.wait(".row >> nth=5")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Browser() as browser:
        serving = Serving(Path(place))
        try:
            ask(serving)
            wide, phone, dark = browser.tab(), browser.tab(width=390, height=844, touch=True), browser.tab(dark=True)
            for tab in (wide, phone, dark):
                sign_in(tab, serving)
            wide.click(".row >> text=delete_project")
            wide.picture(folder / "page-approve.png")
            phone.picture(folder / "page-phone-list.png")
            phone.click(".row >> text=fill in")
            phone.fill("role=textbox[name=/Your name/]", "A")
            phone.click("role=button[name='Send']")
            phone.wait(".summary >> text=attention")
            phone.picture(folder / "page-phone-form.png", whole=True)
            dark.click(".row >> nth=3")
            dark.picture(folder / "page-url-warning-dark.png")
            dark.click(".row >> nth=2")
            dark.picture(folder / "page-url-dark.png")
            dark.click(".row >> nth=1")
            dark.picture(folder / "page-form-dark.png", whole=True)
        finally:
            serving.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else _IMAGES)
