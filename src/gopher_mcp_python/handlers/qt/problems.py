"""What keeps a form from being sent: told beside the fields, and summed up above the buttons."""

from __future__ import annotations

from ..form import FormModel
from .form_view import FormView
from .frame import Footer

__all__ = ["Problems"]

_SUMMED_UP = 5  # sentences


class Problems:
    """What was wrong when a person wanted to send the form, until they have corrected it. Goes to the first of it."""

    def __init__(self, model: FormModel, view: object, footer: Footer) -> None:
        self._footer = footer
        rules, general = model.problems()
        self._rows = [view.row(name) for name in rules] if isinstance(view, FormView) else []
        for row, problem in zip(self._rows, rules.values(), strict=False):
            row.judge()
            row.refresh(problem)
        sentences = [f"{model[name].label} {rule}." for name, rule in rules.items()]
        self._sum_up([*sentences, *(f"{text}." for text in general)])
        if self._rows and isinstance(view, FormView):
            view.show_row(self._rows[0])

    def look_again(self) -> None:
        """After a change: what is corrected is told no more."""
        for row in self._rows:
            row.refresh()  # also where the form, not the field, knew what was wrong
        problems = {row: problem for row in self._rows if (problem := row.entry.check()) is not None}
        self._sum_up([f"{row.entry.label} {problem}." for row, problem in problems.items()])

    def _sum_up(self, sentences: list[str]) -> None:
        more = len(sentences) - _SUMMED_UP
        said = [*sentences[:_SUMMED_UP], *([f"... and {more} more."] if more > 0 else [])]
        self._footer.show_summary("\n".join([f"It can't be sent yet. {said[0]}", *said[1:]]) if said else "")
