"""What stands in the middle of the dialog: a form, a page, or why there is neither."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from ...errors import UnsafeUrlError
from ...forms import FormSchemaError
from ...weburl import parse_web_url
from ..form import FormModel
from ..form_texts import what_is_asked
from .asked import Asked
from .blocks import TextBlock
from .form_view import FormView, ScrollBody
from .style import ToneLabel
from .url_view import Opener, UrlView

__all__ = ["Body", "body_of"]


@dataclass
class Body:
    """What is shown of a request.

    Attributes:
        sentence: who asks for what.
        texts: what the server says.
        send: the word on the button that accepts; None where nothing can be accepted.
        widget: what stands between header and buttons; `view` is the same where a person can do something there.
    """

    sentence: str
    texts: list[str]
    send: str | None = None
    widget: QWidget = field(default_factory=QWidget)
    model: FormModel | None = None
    view: FormView | UrlView | None = None


def body_of(asked: Asked, opener: Opener | None) -> Body:
    """What to show of a request. `opener`: see `UrlView`."""
    if asked.is_url:
        return _page(asked, opener)
    if asked.mode != "form":
        return _refused(asked, "This kind of request is not known")
    try:
        model = FormModel(asked.schema if asked.schema is not None else {"type": "null"})
    except FormSchemaError as error:
        return _refused(asked, f"The form can't be shown: {error}")
    return _form(asked, model)


def _form(asked: Asked, model: FormModel) -> Body:
    """An empty form is a confirmation."""
    sentence = f"{asked.asker} asks you to {what_is_asked(len(model.entries))}."
    texts = [asked.message, model.form.title or "", model.form.description or ""]
    if not model.entries:
        return Body(sentence, texts, "A&gree", model=model)
    view = FormView(model)
    return Body(sentence, texts, "&Send", view, model, view)


def _page(asked: Asked, opener: Opener | None) -> Body:
    try:
        page = parse_web_url(asked.url)
    except UnsafeUrlError as reason:
        return _refused(asked, f"The page was refused: {reason}", asked.url[:500])
    view = UrlView(page, opener)
    return Body(_opens(asked), [asked.message], "I &finished", view, None, view)


def _opens(asked: Asked) -> str:
    return f"{asked.asker} asks you to open a page in your browser."


def _refused(asked: Asked, why: str, url: str = "") -> Body:
    """What is shown in place of what can't be answered."""
    body = ScrollBody()
    body.column.addWidget(ToneLabel(f"{why}. You can only decline or cancel.", "error", bold=True))
    if url:
        block = TextBlock(url, name="The refused URL", most=4, fixed_width=True)
        block.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        body.column.addWidget(block)
    body.column.addStretch(1)
    return Body(_opens(asked) if asked.is_url else f"{asked.asker} asks you something.", [asked.message], widget=body)
