"""`gopher-mcp logout`: deletes from this machine the tokens that signing in to a server has left."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..display import safe_line
from .failures import EXIT_FAILED, EXIT_OK, UsageError, tell

if TYPE_CHECKING:
    from ..oauth.stores import ListingTokenStore

_PLACES = {"FileTokenStore": "the token file", "KeyringTokenStore": "the keyring"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `logout` to the command line."""
    parser = commands.add_parser(
        "logout",
        help="delete the stored tokens of a server",
        description="Deletes the tokens and the client registration of MCP servers from the token stores of this "
        "machine. The servers are not told: a token that somebody copied stays good until it expires.",
    )
    parser.add_argument("urls", nargs="*", metavar="URL", help="address of an MCP server, as given to `run`")
    parser.add_argument("--all", action="store_true", help="all servers")
    parser.add_argument(
        "--token-store",
        choices=("keyring", "file"),
        help="delete there only (default: $GOPHER_MCP_TOKEN_STORE, else wherever tokens are)",
    )


def run(args: argparse.Namespace) -> int:
    """Delete, and say what was there."""
    import asyncio

    if bool(args.urls) == args.all:
        raise UsageError("name the servers' URLs, or say --all" if not args.urls else "either URLs or --all, not both")
    wanted = None if args.all else [_address(url) for url in args.urls]
    from .status import waiting

    with waiting("waiting for the token stores") as status:  # a keyring may ask its user first
        failed = asyncio.run(_sign_out(_stores(args.token_store), wanted, status.say))
    for text in failed:
        tell(text, "logout")
    return EXIT_FAILED if failed else EXIT_OK


def _address(url: str) -> str:
    from ..oauth.keys import canonical_address

    try:
        return canonical_address(url)
    except ValueError as error:
        # The text is not repeated whole: it may hold credentials.
        raise UsageError(f"{safe_line(url.partition('?')[0].rpartition('@')[2], limit=60)!r} is {error}") from None


def _stores(name: str | None) -> list[ListingTokenStore]:
    from ..oauth.stores import ListingTokenStore, default_name, resolve_store, stored_outside

    name = name or default_name()
    if name in (None, "memory"):  # the memory of a process that has ended holds nothing
        return stored_outside()
    store = resolve_store(name)
    assert isinstance(store, ListingTokenStore)
    return [store]


async def _sign_out(stores: list[ListingTokenStore], wanted: list[str] | None, say: Callable[[str], None]) -> list[str]:
    """One store that can't be read keeps nobody from the others. Returns what failed."""
    from ..oauth.stores import TokenStoreError

    found: set[str] = set()
    others: set[str] = set()
    failed: list[str] = []
    for store in stores:
        try:
            for line in await _sign_out_of(store, wanted, found, others):
                say(line)
        except TokenStoreError as error:
            failed.append(error.message)
    for line in [] if failed else _what_was_not_there(wanted, found, others):
        say(line)
    return failed


async def _sign_out_of(
    store: ListingTokenStore, wanted: list[str] | None, found: set[str], others: set[str]
) -> list[str]:
    """Deletes what is wanted (None: everything) from one store, notes what was found and what else is there; returns
    what to say."""
    from ..oauth.keys import address_of

    by_address: dict[str | None, list[str]] = {}
    for key in await store.keys():
        by_address.setdefault(address_of(key), []).append(key)
    said: list[str] = []
    if wanted is None:
        await store.clear()
    for address, keys in by_address.items():
        if wanted is None or address in wanted:
            for key in keys:
                await store.delete(key)
            what = "what belongs to no server" if address is None else safe_line(address, limit=300)
            said.append(f"signed out of {what} ({_what(keys)} deleted from {_PLACES[type(store).__name__]})")
            found.add(address or "")
        elif address is not None:
            others.add(address)
    return said


def _what(keys: list[str]) -> str:
    registrations = sum(key.endswith("/client") for key in keys)
    tokens = len(keys) - registrations
    parts = [f"{tokens} token{'s' * (tokens != 1)}"] if tokens else []
    return " and ".join([*parts, "client registration"] if registrations else parts)


def _what_was_not_there(wanted: list[str] | None, found: set[str], others: set[str]) -> Iterator[str]:
    for address in wanted or []:
        if address not in found:
            yield f"nothing is stored for {safe_line(address, limit=300)}"
    if wanted is None and not found:
        yield "nothing is stored"
    if wanted is not None and not found.issuperset(wanted) and others:
        yield "stored: " + ", ".join(safe_line(address, limit=300) for address in sorted(others))
