"""Server configurations in every form, written in the one that the native library reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gopher_mcp_python.engines.native_config import native_form, own_credentials

ENTRY = {"name": "mail", "transport": "http_sse", "config": {"headers": {}, "url": "https://mail.test/mcp"}}
NATIVE = {"succeeded": True, "message": "success", "data": {"servers": [ENTRY]}}


def servers_of(given: Any) -> list[dict[str, Any]]:
    written = json.loads(native_form(json.dumps(given)))
    assert (written["succeeded"], written["message"]) == (True, "success")
    servers: list[dict[str, Any]] = written["data"]["servers"]
    return servers


def test_the_librarys_own_form_stays_as_it_is() -> None:
    text = json.dumps({**NATIVE, "code": 200000000}, indent=3)
    assert native_form(text) == text


@pytest.mark.parametrize(
    "given",
    [
        {"servers": [{"name": "mail", "url": "https://mail.test/mcp"}]},
        {"data": {"servers": [{"name": "mail", "url": "https://mail.test/mcp", "headers": {}}]}},
        {"mcpServers": {"mail": {"url": "https://mail.test/mcp", "transport": "sse"}}},
        [{"name": "mail", "type": "http", "config": {"url": "https://mail.test/mcp"}}],
    ],
)
def test_other_forms_become_it(given: Any) -> None:
    (server,) = servers_of(given)
    assert server.pop("type", "http") == "http"
    assert server == ENTRY


def test_members_that_are_not_ours_stay() -> None:
    (server,) = servers_of({"servers": [{"serverId": "7", "url": "https://mail.test/mcp", "requestTimeout": 5}]})
    assert (server["serverId"], server["requestTimeout"], server["name"]) == ("7", 5, "server_1")


def test_local_programs_and_nothing_are_left_out() -> None:
    given = {"servers": [None, {"command": "ls"}, {"name": "mail", "url": "https://mail.test/mcp"}]}
    assert [server["name"] for server in servers_of(given)] == ["mail"]


def test_no_two_servers_have_one_name() -> None:
    """The library gives what is meant for one server to all of that name."""
    hosts = [("mail", "a"), ("Mail", "b"), (None, "c"), ("mail_2", "d"), ("server_3", "e"), ("mail", "f")]
    given = {
        "servers": [
            {"name": name, "url": f"https://{host}.test/mcp", "headers": {"Authorization": f"Basic {host}"}}
            for name, host in hosts
        ]
    }
    written = [server["name"] for server in servers_of(given)]
    assert written == ["mail", "Mail_2", "server_3", "mail_2_2", "server_3_2", "mail_3"]
    assert [(entry.server_name, entry.headers) for entry in own_credentials(json.dumps(given))] == [
        (name, {"Authorization": f"Basic {host}"}) for name, (_, host) in zip(written, hosts, strict=True)
    ]


FAILED = '{"succeeded": false, "servers": [{"url": "u"}]}'
UNREADABLE = ["", "{", "[" * 100_000, "null", "{}", '{"servers": []}', FAILED]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_can_not_be_read_is_the_librarys_to_refuse(text: str) -> None:
    assert native_form(text) == text


def test_credentials_that_stand_in_it_go_with_their_server() -> None:
    given = {
        "servers": [
            {"name": "mail", "url": "https://mail.test/mcp", "headers": {"authorization": "Basic x"}},
            {"name": "notes", "url": "https://notes.test/mcp", "headers": {"X-Key": "k"}},
        ]
    }
    (entry,) = own_credentials(json.dumps(given))
    assert (entry.server_name, entry.url) == ("mail", None)
    assert entry.headers == {"authorization": "Basic x"}
    assert own_credentials("{") == ()
