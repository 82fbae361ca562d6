"""The error catalogue: every message of the source has its row, and no row is of a message that is gone."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support import messages
from tests.support.messages import PLACE, Message

pytestmark = pytest.mark.source_tree

PAGE = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
_CSRC = Path(__file__).resolve().parents[1] / "csrc"
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_FEWEST = 3  # words; what is shorter ("is required") says too little to be looked for

# What nobody reads: the file and a part of the message ("": all of the file's), and why not.
NO_USERS = {
    ("demo/show.py", ""): "the story that the demo tells, no failure",
    ("providers/anthropic.py", "a tool's input is not an object"): "caught: an answer that is none of a model's",
    ("providers/openai.py", "only functions were offered"): "caught: an answer that is none of a model's",
}
# Files that say things without raising or logging: texts of them that people read are here, too.
SPEAKING = (
    "gateway/held.py", "native/quick.py", "native/failure.py", "oauth/redirect.py", "oauth/loopback.py",
    "engines/native_failures.py", "hostnames.py", "weburl.py", "store/responses.py", "handlers/screen/opening.py",
    "toolset/explain.py", "toolset/required.py", "oauth/refusals.py", "native/compat.py", "oauth_browser.py",
    "handlers/notebook_kernel.py", "forms/formats.py", "forms/judge.py", "native/binary.py", "native/elf.py",
    "native/search.py", "cli/failures.py", "store/audit.py",
)  # fmt: skip
# Texts of those files that are no message.
NO_MESSAGES = re.compile(
    r"No confirmation can be|\(\?|\\[bdw]|Run <|It may change or delete something\.|Tool: |Arguments:|^Next: $"
    r"|answers elicitations and retries|Failed to parse|Unexpected content type|Server returned an error response"
    r"|server answered a request with 202|does not match expected|Error: Agent (execution timed|is already running)"
    r"|the browser came back|listening for the browser|a pasted address was not taken"
    r"|a request of no sign-in that waits"
    r"|amazonaws\.com|ac asso co com|lynx w3m|authorization response"
    r"|SELECT |\.schema_migrations|^An MCP server$|WebUrl\("
)


@cache
def _rows() -> tuple[str, ...]:
    """The messages of the catalogue, with PLACE for what stands in < >."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if line.startswith("|") and len(cells) >= 5 and not line.startswith("|---"):
            texts = [text.replace("\\|", "|").strip() for _, text in _CODE.findall(cells[1])]
            found += [re.sub(r"<[a-z]+>", PLACE, text) for text in texts]
    return tuple(found)


def _is_internal(message: Message) -> bool:
    file = message.place.partition(":")[0]
    return message.kind in ("AttributeError", "AssertionError") or any(
        file == of and part in message.template for of, part in NO_USERS
    )


def _said() -> list[Message]:
    return [message for message in messages.messages() if not _is_internal(message)]


def _is_read(template: str) -> bool:
    return " " in template.strip() and messages.words(template) >= _FEWEST


def test_every_message_has_its_row() -> None:
    said = [message for message in _said() if _is_read(message.template)]
    assert len(said) > 600, "the source is not read any more"
    missing = [
        f"{message.place} {message.template.replace(PLACE, '<>')}" for message in said if not _has_row(message.template)
    ]
    assert not missing, "in no row of docs/errors.md:\n" + "\n".join(missing)


def test_what_the_bridge_says_has_its_row() -> None:
    """Its C part, where a library is opened and a function is missing."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(_CSRC.glob("*.c")))
    found = re.findall(r'(?:say|fail|snprintf)\((?:[^";]*, )"((?:[^"\\]|\\.)+)"', code)
    said = [re.sub("%[a-z]+", PLACE, text) for text in found if _is_read(re.sub("%[a-z]+", PLACE, text))]
    assert len(said) >= 5
    assert [text for text in said if not _has_row(text)] == []


def _has_row(template: str) -> bool:
    """A sentence that goes on behind it is a row's, too."""
    open_end = template.rstrip().endswith((":", "."))
    return any(messages.pattern(template + PLACE * open_end).fullmatch(row) for row in _rows())


def test_what_a_message_can_hold_is_told_too() -> None:
    """Reasons, and advice, that another function puts into a message."""
    page = " ".join(PAGE.read_text(encoding="utf-8").replace("\\|", "|").split())
    missing = set()
    for message in _said():
        for text in map(messages.told, message.fragments):
            if _is_read(text) and not NO_MESSAGES.search(text) and not _stands(text, page):
                missing.add(f"{message.place} {text}")
    for file in SPEAKING:
        for text, line in messages.constants(file).items():
            if _is_read(text) and not NO_MESSAGES.search(text) and not _stands(text, page):
                missing.add(f"{file}:{line} {text}")
    assert not missing, "not in docs/errors.md:\n" + "\n".join(sorted(missing))


def _stands(text: str, page: str) -> bool:
    text = re.sub(r"\{\w*\}", PLACE, text)
    return text in page or any(messages.pattern(text).search(row) for row in _rows())


def test_no_row_is_of_a_message_that_is_gone() -> None:
    """Each row has words that the source says: a row that nothing says any more misleads who looks for it."""
    texts = _source()
    known = [messages.pattern(message.template) for message in _said() if _is_read(message.template)]
    rows = [row for row in _rows() if row not in messages.error_classes()]
    rest = [row for row in rows if not any(one.fullmatch(row) for one in known)]
    gone = [row.replace(PLACE, "<>") for row in rest if not _is_said(row, texts)]
    assert not gone, "nothing says any more:\n" + "\n".join(gone)


@cache
def _source() -> str:
    """All texts of the source, whatever they are joined with."""
    files = sorted(messages.SOURCE.rglob("*.py"))
    found = [text for file in files for text in messages.constants(file.relative_to(messages.SOURCE).as_posix())]
    others = [*messages.SOURCE.rglob("*.js"), *messages.SOURCE.rglob("*.p[xy][xi]"), *_CSRC.glob("*.c")]
    return (
        "\n".join([*found, *(path.read_text(encoding="utf-8") for path in sorted(others))])
        .replace("\\u2019", "\u2019")
        .replace("\\u2026", "\u2026")
    )


def _is_said(row: str, texts: str) -> bool:
    """Whether most of it is in the source: three words of it that follow each other, and the next three ..."""
    parts = [part.split() for part in row.split(PLACE)]
    wanted = [" ".join(part[at : at + 3]) for part in parts for at in range(max(1, len(part) - 2)) if part]
    return 2 * sum(three in texts for three in wanted) >= len(wanted)


def test_a_message_without_a_row_would_be_noticed() -> None:
    """The check can fail: a template that is in no row matches none."""
    unknown = messages.pattern(f"the moon of {PLACE} is not where it was")
    assert not any(unknown.fullmatch(row) for row in _rows())
    known = messages.pattern(f"there is no tool {PLACE}; there are: {PLACE}")
    assert any(known.fullmatch(row) for row in _rows())
    assert not _is_said("the moon of <> is not where it was", _source())
