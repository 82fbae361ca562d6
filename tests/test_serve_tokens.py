"""Tokens: shown once, hashed at rest, each for one caller and one scope; and the commands that make them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.cli import main
from gopher_mcp_python.serve import TokenFile, TokenFileError
from gopher_mcp_python.serve.tokens import bearer_of
from tests.support import children


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "deep" / "tokens.json")


def test_a_token_says_who_and_what(file: TokenFile) -> None:
    answer = file.add("ada", ["answer"], name="laptop")
    call = file.add("bob", ["call"])
    assert len(answer) >= 47 and answer != call
    who = file.authenticate(f"Bearer {answer}")
    assert who is not None and (who.caller, who.name, who.scopes) == ("ada", "laptop", frozenset({"answer"}))
    other = file.authenticate(f"bearer {call}")
    assert other is not None and (other.caller, other.scopes) == ("bob", frozenset({"call"}))


def test_what_is_no_token(file: TokenFile) -> None:
    token = file.add("ada", ["answer"])
    for header in (None, "", token, f"Basic {token}", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Bearer {token} ",
                   f"Bearer  {token}\n", "Bearer \u00e9", f"Bearer {token},{token}"):  # fmt: skip
        assert file.authenticate(header) is None, header
    assert bearer_of("Bearer abc.def-_~+/==") == "abc.def-_~+/=="


def test_at_rest_there_are_only_hashes(file: TokenFile) -> None:
    token = file.add("ada", ["answer"])
    text = file.path.read_text()
    assert hashlib.sha256(token.encode()).hexdigest() in text
    for form in (token, token.removeprefix("gmt_"), token.encode().hex()):
        assert form not in text
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert token not in repr(file.entries())


def test_a_revoked_token_is_none(file: TokenFile) -> None:
    reader = TokenFile(file.path)
    token, kept = file.add("ada", ["answer"]), file.add("ada", ["answer"])
    assert reader.authenticate(f"Bearer {token}")
    gone = file.revoke(file.entries()[0].id)
    assert gone.caller == "ada" and file.authenticate(f"Bearer {token}") is None
    reader._looked = float("-inf")  # a second has passed
    assert reader.authenticate(f"Bearer {token}") is None and reader.authenticate(f"Bearer {kept}")
    with pytest.raises(TokenFileError, match="no token has the id"):
        file.revoke(gone.id)


def test_a_file_that_others_can_read_lets_nobody_in(file: TokenFile) -> None:
    token = file.add("ada", ["answer"])
    file.path.chmod(0o644)
    assert TokenFile(file.path).authenticate(f"Bearer {token}") is None
    with pytest.raises(TokenFileError, match="chmod 600") as found:
        file.add("ada", ["answer"])
    assert "put the tokens elsewhere" not in str(found.value)


def test_a_damaged_file_lets_nobody_in_and_is_not_written_over(file: TokenFile) -> None:
    token = file.add("ada", ["answer"])
    assert file.authenticate(f"Bearer {token}")
    for text in ("", "[]", '{"tokens": [{"id": "x"}]}', '{"tokens": 1}', "\x00"):
        file.path.write_text(text)
        assert TokenFile(file.path).authenticate(f"Bearer {token}") is None
        file._looked = float("-inf")  # a second has passed
        assert file.authenticate(f"Bearer {token}") is None, "it knew the token before"
        with pytest.raises(TokenFileError, match="is no file of tokens"):
            file.add("ada", ["answer"])
        assert file.path.read_text() == text


@pytest.mark.parametrize(
    ("caller", "scopes", "name"),
    [("", ["answer"], None), (" ", ["answer"], None), ("a\nb", ["answer"], None), ("x" * 201, ["call"], None),
     ("ada", ["call", "answer"], None), ("ada", [], None), ("ada", ["admin"], None), ("ada", ["answer"], "a\x1bb")],
)  # fmt: skip
def test_odd_tokens_are_not_made(file: TokenFile, caller: str, scopes: Any, name: str | None) -> None:
    with pytest.raises(TokenFileError):
        file.add(caller, scopes, name=name)
    assert not file.path.exists()


def test_many_at_once_lose_none(file: TokenFile) -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.append(file.add("ada", ["answer"]))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(file.entries()) == 12 and all(file.authenticate(f"Bearer {token}") for token in made)


# ---- The commands ----------------------------------------------------------------------------------------------------


def test_add_list_revoke(tmp_path: Path, capsys: Any) -> None:
    path = str(tmp_path / "tokens.json")
    assert main(["token", "--tokens", path, "list"]) == 0 and "no tokens" in capsys.readouterr().out
    assert main(["token", "--tokens", path, "add", "ada", "--scope", "answer", "--name", "laptop"]) == 0
    out, err = capsys.readouterr()
    token = out.strip()
    assert TokenFile(path).authenticate(f"Bearer {token}") is not None, "standard output is the token and nothing else"
    assert "ada" in err and token not in err
    assert main(["token", "list", "--tokens", path]) == 0, "the file may be named after the action, too"
    listed = capsys.readouterr().out
    assert "answer" in listed and "ada" in listed and "(laptop)" in listed and token not in listed
    identity = listed.split()[0]
    assert main(["token", "--tokens", path, "revoke", identity]) == 0 and "revoked" in capsys.readouterr().out
    assert main(["token", "--tokens", path, "revoke", identity]) == 1
    assert "no token has the id" in capsys.readouterr().err
    assert main(["token", "--tokens", path, "add", "", "--scope", "call"]) == 1
    assert TokenFile(path).authenticate(f"Bearer {token}") is None


def test_a_token_is_made_without_the_web_framework(tmp_path: Path) -> None:
    code = """
import sys
from gopher_mcp_python.cli import main
assert main(["token", "--tokens", sys.argv[1], "add", "ada", "--scope", "call"]) == 0
assert not {"starlette", "uvicorn", "mcp", "psycopg"} & set(sys.modules), "too much was imported"
"""
    children.python(code, str(tmp_path / "t.json"), env={"PYTHONPATH": os.pathsep.join(_paths())}).check()
    assert json.loads((tmp_path / "t.json").read_text())["tokens"][0]["scopes"] == ["call"]


def _paths() -> list[str]:
    import gopher_mcp_python

    return [str(children.ROOT), str(Path(gopher_mcp_python.__file__).parents[1])]
