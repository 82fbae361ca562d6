"""The encrypted token file: what others can read of it, damage, wrong keys, full and read-only disks, two processes."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import stat
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import FileTokenStore, GopherAgentTokenRecord, TokenStoreError
from gopher_mcp_python.oauth import filestore, privatefile
from gopher_mcp_python.redaction import redact_text
from tests.support import children
from tests.support.canary import Canary, secret
from tests.support.stores import KEY, record, run, variables

# As the superuser no permission holds: a child becomes somebody else first, in a folder of its own outside /root.
NOBODY = 65534


@pytest.fixture
def store(token_home: Path) -> FileTokenStore:
    """A store with one record, in the places that are taken when nothing is said."""
    made = FileTokenStore()
    run(made.set(KEY, record()))
    return made


def found(store: FileTokenStore) -> dict[str, object] | None:
    kept = run(store.get(KEY))
    return None if kept is None else vars(kept)


def key_file(token_home: Path) -> Path:
    return token_home / "config" / "gopher-mcp" / "token-key"


def refused(store: FileTokenStore, *words: str) -> None:
    """Every way to use the store is refused with these words, and the file stays as it is."""
    before = store.path.read_bytes() if store.path.is_file() else None
    uses: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lambda: store.get(KEY),
        lambda: store.set(KEY + "2", record()),
        lambda: store.delete(KEY),
        store.keys,
        store.clear,
    ]
    for use in uses:
        with pytest.raises(TokenStoreError) as caught:
            run(use())
        for word in (str(store.path), *words):
            assert word in caught.value.message
        assert redact_text(caught.value.message) == caught.value.message, "a log shows the remedy too"
    assert before is None or store.path.read_bytes() == before


# ---- places and permissions -----------------------------------------------------------------------------------------


def test_nothing_readable_is_in_the_file_and_only_this_user_can_open_it(
    store: FileTokenStore, token_home: Path
) -> None:
    data = store.path.read_bytes()
    for text in (secret("access"), secret("refresh"), "mcp.example.test", "mail.read", "DPoP"):
        assert text.encode() not in data
    for path in (store.path, key_file(token_home)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_looking_makes_no_files(token_home: Path) -> None:
    store = FileTokenStore()

    async def look() -> None:
        assert await store.get(KEY) is None and await store.keys() == []
        await store.delete(KEY)
        assert await store.clear() == 0

    run(look())
    assert list(token_home.iterdir()) == []


def test_the_variable_and_the_argument_say_where_the_file_is(token_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_MCP_TOKEN_FILE", "~/tokens/here")
    assert FileTokenStore().path == token_home / "tokens" / "here"
    run(FileTokenStore().set(KEY, record()))
    assert (token_home / "tokens" / "here").is_file()
    monkeypatch.chdir(token_home)
    relative = FileTokenStore("there")
    monkeypatch.chdir("/")
    assert relative.path == token_home / "there"


def test_whatever_the_umask_the_user_can_read_the_file(token_home: Path) -> None:
    before = os.umask(0o777)
    try:
        os.makedirs(token_home / "data", exist_ok=True)
        os.chmod(token_home / "data", 0o700)
        run(FileTokenStore(token_home / "data" / "tokens", key=bytes(32)).set(KEY, record()))
    finally:
        os.umask(before)
    assert stat.S_IMODE((token_home / "data" / "tokens").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_may_open_is_refused(store: FileTokenStore, mode: int) -> None:
    store.path.chmod(mode)
    refused(store, f"chmod 600 {store.path}", f"{mode:04o}")
    store.path.chmod(0o600)
    assert found(store) == vars(record())


def test_a_key_that_others_may_open_is_refused(store: FileTokenStore, token_home: Path) -> None:
    key_file(token_home).chmod(0o644)
    with pytest.raises(TokenStoreError, match=f"chmod 600 {key_file(token_home)}"):
        run(store.get(KEY))


def test_a_file_of_another_user_is_refused(store: FileTokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(store.path, NOBODY, -1)
    else:  # only the superuser can give files away
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    refused(store, "belongs to another user", "GOPHER_MCP_TOKEN_FILE")


def test_a_folder_in_which_everybody_may_replace_files_is_refused(store: FileTokenStore) -> None:
    store.path.parent.chmod(0o777)
    with pytest.raises(TokenStoreError, match=f"chmod o-w {store.path.parent}"):
        run(store.set(KEY, record()))
    store.path.parent.chmod(0o1777)  # as /tmp: each user's files are their own
    run(store.set(KEY, record()))


def test_what_is_no_plain_file_is_refused_at_once(token_home: Path) -> None:
    os.mkfifo(token_home / "pipe", 0o600)
    refused(FileTokenStore(token_home / "pipe"), "no plain file")
    (token_home / "folder").mkdir()
    refused(FileTokenStore(token_home / "folder"), "no plain file")
    (token_home / "file").touch()
    with pytest.raises(TokenStoreError, match="Not a directory"):
        run(FileTokenStore(token_home / "file" / "below").get(KEY))


def test_a_link_stays_a_link(store: FileTokenStore, token_home: Path) -> None:
    (token_home / "link").symlink_to(store.path)
    linked = FileTokenStore(token_home / "link")
    run(linked.set(KEY + "2", record("other")))
    assert (token_home / "link").is_symlink()
    assert run(store.keys()) == [KEY, KEY + "2"]


def test_without_a_home_the_variables_are_named(token_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.chdir(token_home)
    with pytest.raises(TokenStoreError, match=r"no home folder.*HOME, or GOPHER_MCP_TOKEN_FILE"):
        FileTokenStore()
    store = FileTokenStore(token_home / "tokens")
    with pytest.raises(TokenStoreError, match=r"no home folder.*GOPHER_MCP_TOKEN_KEY"):
        run(store.set(KEY, record()))
    assert [path.name for path in token_home.iterdir() if not path.name.endswith(".lock")] == [], (
        "nothing called ~ is made"
    )
    run(FileTokenStore(token_home / "tokens", key=bytes(range(32))).set(KEY, record()))


# ---- damage ---------------------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused_and_left_alone(store: FileTokenStore) -> None:
    whole = store.path.read_bytes()
    for length in range(1, len(whole), 7):
        store.path.write_bytes(whole[:length])
        with pytest.raises(TokenStoreError, match="is damaged: put a copy of it back, or delete it"):
            run(store.get(KEY))
    refused(store, "is damaged")
    store.path.write_bytes(whole)
    assert found(store) == vars(record())


def test_no_change_of_a_byte_goes_unnoticed(store: FileTokenStore) -> None:
    whole = store.path.read_bytes()
    for place in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[place] ^= 1
        store.path.write_bytes(changed)
        if whole[place : place + 1] in b" =":
            continue  # between two fields, or bits of base64 that nobody reads
        with pytest.raises(TokenStoreError, match=re.escape(str(store.path))):
            run(store.get(KEY))


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"null", b"\xff\xfe", b"tokens", b'{"format": "gopher-mcp sealed tokens"']
)
def test_a_file_of_something_else_is_refused_and_left_alone(store: FileTokenStore, data: bytes) -> None:
    store.path.write_bytes(data)
    refused(store, "is damaged")


def test_an_empty_file_holds_nothing(store: FileTokenStore) -> None:
    store.path.write_bytes(b"")
    assert found(store) is None
    run(store.set(KEY, record()))
    assert found(store) == vars(record())


def test_a_huge_file_is_not_read(store: FileTokenStore) -> None:
    os.truncate(store.path, 1 << 34)  # of holes
    with pytest.raises(TokenStoreError, match="too large"):
        run(store.get(KEY))


def test_a_file_of_a_later_version_is_left_alone(store: FileTokenStore) -> None:
    told = json.loads(store.path.read_bytes())
    store.path.write_text(json.dumps({**told, "version": 2}))
    refused(store, "newer version", "pip install -U")


# ---- keys -----------------------------------------------------------------------------------------------------------

KEYS: dict[str, Callable[[], bytes | str | None]] = {
    "given": lambda: bytes(range(32)),
    "passphrase": lambda: secret("passphrase"),
    "file": lambda: None,
}


@pytest.mark.parametrize("sealed", KEYS)
@pytest.mark.parametrize("opened", KEYS)
def test_each_kind_of_key_opens_its_own_files_only(token_home: Path, sealed: str, opened: str) -> None:
    run(FileTokenStore(key=KEYS[sealed]()).set(KEY, record()))
    store = FileTokenStore(key=KEYS[opened]())
    if sealed == opened:
        assert found(store) == vars(record())
    else:
        remedy = {"given": "give it as key=", "passphrase": "set GOPHER_MCP_TOKEN_KEY", "file": "unset GOPHER_MCP"}
        refused(store, "was sealed with", remedy[sealed])


def test_the_passphrase_comes_from_the_variable(
    token_home: Path, monkeypatch: pytest.MonkeyPatch, canary: Canary
) -> None:
    monkeypatch.setenv("GOPHER_MCP_TOKEN_KEY", canary.secret("passphrase"))
    run(FileTokenStore().set(KEY, record()))
    assert not key_file(token_home).exists()
    assert found(FileTokenStore(key=canary.secret("passphrase"))) == vars(record())
    monkeypatch.setenv("GOPHER_MCP_TOKEN_KEY", canary.secret("another"))
    refused(FileTokenStore(), "another key than the passphrase in GOPHER_MCP_TOKEN_KEY")


def test_a_wrong_key_is_told_from_damage(token_home: Path) -> None:
    run(FileTokenStore(key=bytes(32)).set(KEY, record()))
    refused(FileTokenStore(key=bytes(range(32))), "another key than the key= that was given")


def test_the_key_of_a_passphrase_is_made_once(
    token_home: Path, monkeypatch: pytest.MonkeyPatch, canary: Canary
) -> None:
    made = []

    def counted(passphrase: str, salt: bytes) -> bytes:
        made.append(salt)
        return real(passphrase, salt)

    real = filestore.from_passphrase
    monkeypatch.setattr(filestore, "from_passphrase", counted)
    store = FileTokenStore(key=canary.secret("passphrase"))
    for number in range(3):
        run(store.set(f"{KEY}{number}", record()))
        run(store.get(KEY))
    assert len(made) == 1


@pytest.mark.parametrize(("key", "kind"), [(b"short", ValueError), ("", ValueError), (7, TypeError)])
def test_what_is_no_key_is_refused(token_home: Path, key: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"key must|passphrase is empty"):
        FileTokenStore(key=key)  # type: ignore[arg-type]


def test_a_lost_key_is_told_and_none_is_made_in_its_place(store: FileTokenStore, token_home: Path) -> None:
    kept = key_file(token_home).read_bytes()
    key_file(token_home).unlink()
    refused(store, f"{key_file(token_home)} with the key of", "put it back")
    assert not key_file(token_home).exists()
    key_file(token_home).write_bytes(kept[:20])
    key_file(token_home).chmod(0o600)
    refused(store, f"the key file {key_file(token_home)} is damaged")
    key_file(token_home).write_bytes(kept)
    assert found(store) == vars(record())


# ---- disks ----------------------------------------------------------------------------------------------------------

CHILD = """
import asyncio, os, resource, sys
from gopher_mcp_python import FileTokenStore, GopherAgentTokenRecord, TokenStoreError

path, how, user = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = FileTokenStore(path, key=bytes(32))
asyncio.run(store.set("first", GopherAgentTokenRecord("first")))
if how == "full":  # writing fails in the middle, for the superuser too
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
else:
    os.chmod(os.path.dirname(path), 0o500)
    if os.geteuid() == 0:
        os.chown(path, user, -1)
        os.chown(os.path.dirname(path), user, -1)
        os.seteuid(user)
before = open(path, "rb").read()
for change in (store.set("second", GopherAgentTokenRecord("x" * 1000)), store.delete("first")):
    try:
        asyncio.run(change)
    except TokenStoreError as error:
        print(error.message)
assert asyncio.run(store.get("first")).access_token == "first"
assert open(path, "rb").read() == before
assert sorted(os.listdir(os.path.dirname(path))) == ["tokens", "tokens.lock"], os.listdir(os.path.dirname(path))
"""


@pytest.mark.parametrize(("how", "reason"), [("full", "File too large"), ("read-only", "Permission denied")])
def test_on_a_full_or_read_only_disk_nothing_is_lost(how: str, reason: str) -> None:
    folder = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
    path = f"{folder}/tokens"
    try:
        ended = children.python(CHILD, path, how, str(NOBODY)).check()
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
    lines = ended.out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert path in line and reason in line and "GOPHER_MCP_TOKEN_FILE" in line


def test_what_a_killed_writer_left_is_no_hindrance(store: FileTokenStore) -> None:
    store.path.with_name(store.path.name + ".new").write_text("half")
    run(store.set(KEY + "2", record()))
    assert run(store.keys()) == [KEY, KEY + "2"]
    assert sorted(path.name for path in store.path.parent.iterdir()) == [store.path.name, store.path.name + ".lock"]


# ---- other processes ------------------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from gopher_mcp_python import FileTokenStore, GopherAgentTokenRecord

async def work(store, name):
    for number in range(30):
        await store.set(f"{name} {number}", GopherAgentTokenRecord(f"{name} {number}" * 50))
        await store.set("shared", GopherAgentTokenRecord(name * 2000))
        assert len(set((await store.get("shared")).access_token)) == 1
        if number:
            await store.delete(f"{name} {number - 1}")

store = FileTokenStore()
asyncio.run(store.keys())
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(work(store, sys.argv[1]))
"""


def test_processes_that_write_at_the_same_time_lose_nothing(token_home: Path) -> None:
    """From the very first write on, which makes the key too."""
    children.at_the_same_time(WRITER, "abc", variables(token_home))
    assert run(FileTokenStore().keys()) == ["a 29", "b 29", "c 29", "shared"]


def test_a_lock_that_stays_is_told(store: FileTokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privatefile, "_PATIENCE", 0.05)
    with open(f"{store.path}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TokenStoreError, match=f"another process keeps {store.path}.lock locked"):
            run(store.set(KEY, GopherAgentTokenRecord("new")))
        assert found(store) == vars(record()), "reading needs no lock"
    run(store.set(KEY, GopherAgentTokenRecord("new")))
