"""Objects that threads may share, used by eight of them that begin at the same moment.

What can be shown in one order of steps is in test_interleavings.py; this is for what nobody thought of, and means most
on a Python without the GIL.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import (
    ElicitationPolicy,
    GopherAgent,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
)
from gopher_mcp_python.elicitation import normalize_elicitation_options
from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.engines import _loop
from gopher_mcp_python.engines._loop import LoopThread
from gopher_mcp_python.forms import read_form
from gopher_mcp_python.forms.pattern import compile_pattern
from gopher_mcp_python.handlers.lines import line_of
from gopher_mcp_python.handlers.occupied import is_occupied, occupying
from gopher_mcp_python.handlers.turns import Turns
from gopher_mcp_python.lone import LoneRequest
from gopher_mcp_python.oauth.stores import resolve_store
from gopher_mcp_python.policy import PolicyRule
from gopher_mcp_python.redaction import redact_text, redact_url
from gopher_mcp_python.run_events import RunEvents
from gopher_mcp_python.runtime_options import GopherAgentCreateOptions
from gopher_mcp_python.serve.rates import Rate
from gopher_mcp_python.serve.uploads import Uploads
from gopher_mcp_python.store import FileKeys, KeyRing, SqliteBackend, Store, confirmation, single_choice
from gopher_mcp_python.toolset.tls import shared_context
from gopher_mcp_python.weburl import parse_web_url
from tests.support.servers import McpServer

THREADS = 8
ROUNDS = 20


def at_once(step: Callable[[int], Any]) -> list[Any]:
    """What `step(number)` returns on each thread; raises what the first of them raised."""
    together = threading.Barrier(THREADS)
    results: list[Any] = [None] * THREADS
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            together.wait(30)
            results[number] = step(number)
        except BaseException as error:  # raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results


def page(identity: str = "e1", server: str = "mail") -> GopherAgentElicitationRequest:
    return GopherAgentElicitationRequest("url", identity, "Sign in.", "https://accounts.example.com/x", server=server)


# ---- the policy ----------------------------------------------------------------------------------------------------


def test_a_policy_counts_and_remembers_for_all() -> None:
    inside, most, lock = Counter[str](), 0, threading.Lock()

    def handler(request: GopherAgentElicitationRequest) -> str:
        nonlocal most
        with lock:
            inside["now"] += 1
            inside["asked"] += 1
            most = max(most, inside["now"])
        with lock:
            inside["now"] -= 1
        return "accept"

    policy = ElicitationPolicy([PolicyRule("block", server="spam")], max_waiting=3, rate=(100, 3600.0))
    ask = policy.around(handler)

    def action(request: GopherAgentElicitationRequest) -> str:
        answer = ask(request)
        return answer if isinstance(answer, str) else str(answer.action)

    def step(number: int) -> list[str]:
        policy.remember(page(server=f"server {number}"), "decline")
        assert len(policy.remembered()) >= 1
        blocked = [action(page(server="spam")), action(page(server=f"server {number}"))]
        assert blocked == ["decline", "decline"]
        return [action(page()) for _ in range(ROUNDS)]

    answers = Counter(answer for each in at_once(step) for answer in each)
    assert most <= 3 and answers["accept"] == inside["asked"] <= 100
    assert answers["accept"] + answers["decline"] == THREADS * ROUNDS
    assert {one.server for one in policy.remembered()} == {f"server {number}" for number in range(THREADS)}
    assert policy.forget() == THREADS and action(page()) == ("accept" if inside["asked"] < 100 else "decline")


# ---- the store -----------------------------------------------------------------------------------------------------


def test_a_store_loses_nothing_and_takes_one_answer(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    with Store(SqliteBackend(tmp_path / "store.db"), keys, rate=None) as store:
        common = store.create("ada", single_choice("Where?", ["here", "there"]))
        call: dict[str, Any] = {"tool": "drop", "arguments": {"table": "t"}}
        approved = store.create("ada", confirmation("May it?", **call))
        store.respond("ada", approved.id, {"confirmed": True})

        def step(number: int) -> tuple[str, str, str, list[str]]:
            mine = [store.create("ada", single_choice(f"{number}?", ["a", "b"])).id for _ in range(3)]
            if number == 0:
                keys.rotate()
            said = store.respond("ada", common.id, {"choice": "here" if number % 2 else "there"}).kind
            ended = store.wait("ada", common.id, timeout_s=30).status.value
            return said, ended, store.consume("ada", approved.id, **call), mine

        said, ended, consumed, made = zip(*at_once(step), strict=True)
        assert said.count("recorded") == 1 and set(said) <= {"recorded", "already_recorded", "conflict"}
        assert set(ended) == {"responded"} and consumed.count("consumed") == 1
        assert {one.id for one in store.pending("ada")} == {id for ids in made for id in ids}
        assert store.result("ada", common.id)["choice"] in ("here", "there")
        assert store.verify().ok


def test_files_are_claimed_or_removed(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "files")

    def step(number: int) -> str:
        incoming = uploads.begin(f"caller {number}", "el_1", name="a.txt", media_type="text/plain", limit=None)
        incoming.write(b"hello")
        upload = incoming.finish()
        assert uploads.claim(upload) and not uploads.claim(upload)
        uploads.sweep()
        return upload.file_id

    for number, file_id in enumerate(at_once(step)):
        assert uploads.find(f"caller {number}", "el_1", file_id) is not None and uploads.path(file_id).exists()


def test_a_rate_is_kept_by_all_together() -> None:
    rate = Rate(50, 3600.0)
    waits = at_once(lambda number: [rate.wait_for("ada") for _ in range(ROUNDS)])
    assert sum(wait == 0.0 for each in waits for wait in each) == 50


# ---- forms, addresses, texts ---------------------------------------------------------------------------------------


def test_forms_are_read_and_judged_alike() -> None:
    schema = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "pattern": r"^[A-Z]{2}\d{4}\p{L}*$"},
            "mail": {"type": "string", "format": "email"},
            "size": {"type": "string", "enum": ["S", "M"], "enumNames": ["small", "medium"]},
        },
        "required": ["code"],
    }
    shared = read_form(schema)

    def step(number: int) -> tuple[Any, ...]:
        own = read_form(schema)
        compiled = [compile_pattern(f"^a{{{at}}}$") for at in range(number, number + 3)]
        found = [pattern.search("a" * at) for at, pattern in enumerate(compiled, number)]
        content = {"code": "AB1234é", "mail": "ada@example.com", "size": "M"}
        labels = [(field.label, field.is_secret_named, len(field.values)) for field in shared.fields]
        return found, labels, own.validate(content), shared.validate(content), shared.by_name["code"].check("x")

    results = at_once(step)
    assert all(result == results[0] for result in results)
    assert results[0][0] == [True] * 3 and results[0][2] == results[0][3] and results[0][4] is not None


def test_addresses_and_texts_are_shown_alike() -> None:
    address = "https://user:s3cret@xn--bcher-kva.example.com:8443/a%20b?token=s3cret&x=1#code=s3cret"

    def step(number: int) -> tuple[str, ...]:
        seen = parse_web_url(address)
        return seen.href, seen.host, str(seen.is_misleading), redact_url(address), redact_text(f"see {address}")

    results = at_once(lambda number: [step(number) for _ in range(ROUNDS)])
    assert {shown for each in results for shown in each} == {step(0)}
    assert "s3cret" not in step(0)[3] + step(0)[4]


def test_options_are_made_of_the_same_mapping() -> None:
    given = {"handler": "decline", "timeoutMs": 5000, "modes": ["url"]}
    options = at_once(lambda number: [normalize_elicitation_options(given) for _ in range(ROUNDS)])
    made = {(one.handler, one.timeout_ms, one.modes) for each in options for one in each}
    assert made == {("decline", 5000, frozenset(("url",)))} and set(given) == {"handler", "timeoutMs", "modes"}
    shared = GopherAgentCreateOptions(elicitation=given)  # type: ignore[arg-type]
    assert len({repr(one) for one in at_once(lambda number: Elicitor(shared.elicitation).fixed_action)}) == 1


# ---- who is asked --------------------------------------------------------------------------------------------------


def test_what_exists_once_exists_once() -> None:
    keep = at_once(lambda number: (line_of("ada"), shared_context(), resolve_store("memory"), resolve_store("keyring")))
    assert all(len({id(one) for one in each}) == 1 for each in zip(*keep, strict=True))


def test_one_prompt_at_a_time_and_each_in_its_turn() -> None:
    turns, inside, most = Turns(), 0, 0

    def step(number: int) -> int:
        nonlocal inside, most
        got = 0
        for _ in range(5):
            with occupying(), turns.turn(lambda: True) as mine:
                assert is_occupied(threading.get_ident())
                inside += 1
                most = max(most, inside)
                inside -= 1
                got += mine
        assert not is_occupied(threading.get_ident())
        return got

    assert at_once(step) == [5] * THREADS and (inside, most) == (0, 1)


@pytest.mark.parametrize("action", ["accept", "decline"])
def test_what_is_asked_by_several_is_asked_once(action: str) -> None:
    asked: list[str] = []

    def handler(request: GopherAgentElicitationRequest) -> str:
        asked.append(str(request.elicitation_id))
        return action

    elicitor = Elicitor(GopherAgentElicitationOptions(handler=handler))

    def step(number: int) -> list[int]:
        codes = []
        with elicitor.during_run():
            together.wait(30)
            for at in range(ROUNDS):
                lone = LoneRequest(page(f"e{at}"), 0)
                elicitor.answer(lone)
                codes.append(lone.code)
            together.wait(30)
        return codes

    together = threading.Barrier(THREADS)
    codes = at_once(step)
    assert sorted(asked) == sorted(f"e{at}" for at in range(ROUNDS))
    assert {code for each in codes for code in each} == {1 if action == "accept" else 2}


def test_events_have_numbers_of_their_own_and_end_once() -> None:
    told: list[tuple[int, str]] = []
    run = RunEvents(None, lambda event: told.append((event.sequence, event.kind)))

    def step(number: int) -> None:
        for _ in range(ROUNDS):
            run.tell("iteration_start", 1, 1, {"a": [number]})
        if number == 0:
            run.end("completed")

    at_once(step)
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    assert [kind for _, kind in told].count("run_completed") == 1 and told[-1][1] == "run_completed"


# ---- agents --------------------------------------------------------------------------------------------------------


def test_loops_are_made_and_closed() -> None:
    async def nothing() -> None:
        return None

    def step(number: int) -> None:
        for _ in range(3):
            thread = LoopThread("loop under test")
            assert thread in list(_loop._live)
            thread.close(nothing)
            thread.join(30)
            assert thread not in list(_loop._live)

    at_once(step)


def test_agents_are_made_run_and_disposed_of(server: McpServer) -> None:
    def step(number: int) -> list[str]:
        def handler(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
            return GopherAgentElicitationResponse("accept" if number % 2 else "decline")

        options: Any = {"engine": "embedded", "elicitation": {"handler": handler}}
        with GopherAgent.create_with_url("DirectProvider", "none", server.url, options) as agent:
            found = [agent.run("decline_aware"), shared.run("plain")]
        assert agent.is_disposed()
        return found

    plain: Any = {"engine": "embedded", "elicitation": {"handler": "cancel"}}
    with GopherAgent.create_with_url("DirectProvider", "none", server.url, plain) as shared:
        results = at_once(step)
    expected = [[f"action: {'accept' if number % 2 else 'decline'}", "plain: ok"] for number in range(THREADS)]
    assert results == expected


def test_a_ring_of_keys_is_used_while_it_is_rotated(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")

    def step(number: int) -> list[tuple[str, bytes]]:
        seen = []
        for _ in range(3):
            if number < 2:
                keys.rotate()
            seen.append(keys.current())
        return seen

    for key_id, key in {one for each in at_once(step) for one in each}:
        assert FileKeys(tmp_path / "keys").find(key_id) == key
    assert isinstance(keys._ring, KeyRing) and len(keys._ring) == 7


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="this Python always has the GIL")
def test_the_package_does_not_bring_the_gil_back() -> None:
    import sysconfig

    without = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert without == (not sys._is_gil_enabled())  # type: ignore[attr-defined, unused-ignore]
