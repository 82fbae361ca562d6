"""`gopher-mcp serve`: the page and the REST interface on which people answer what is asked through a store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .failures import EXIT_OK, as_usage
from .listening import add_address, check_address, end_when_told, tls_options
from .status import waiting
from .storing import add_store, store_of
from .token import token_file

if TYPE_CHECKING:
    from ..serve.tokens import TokenFile
    from ..serve.uploads import Uploads
    from ..store.core import Store

_PORT = 8123


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `serve` to the command line."""
    parser = commands.add_parser(
        "serve",
        help="answer from elsewhere: a page and a REST interface",
        description="Serves the page and the REST interface on which people answer what servers ask and approve what a "
        "gateway holds. Reached from this machine only, unless you say otherwise.",
    )
    add_store(parser)
    parser.add_argument("--uploads", metavar="FOLDER", help="where files go that people answer with "
                        "(default: in this user's data folder)")  # fmt: skip
    names = "a name under which browsers reach it, as in their address bar; repeatable"
    add_address(parser, _PORT, allowed=names, metavar="HOST[:PORT]")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    check_address(args)
    tls = tls_options(args)
    try:
        from ..serve.guard import host_names
        from ..serve.server import Server, bind
    except ImportError as error:
        raise OSError(f"{error.name} is not installed: pip install 'gopher-mcp-python[serve]'") from None
    from ..serve.app import create_app
    from ..store.housekeeping import Housekeeping

    if args.allowed_host:
        with as_usage("--allowed-host"):
            host_names(args.allowed_host)
    tokens, uploads = token_file(args.tokens), _uploads(args.uploads)
    listener = bind(args.host, args.port)
    store: Store | None = None
    try:
        port = listener.getsockname()[1]
        with waiting("opening the store"):
            store = store_of(args)
        app = create_app(store, tokens, allowed_hosts=_hosts(args, port), uploads=uploads, https=bool(tls))
        server = Server(app, **tls)
        with waiting("waiting for the store"):
            store.check()
        print(_greeting(args, port, tokens), flush=True)
        end_when_told()
        with Housekeeping(store):
            server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # the server has ended its requests already
    finally:
        listener.close()
        if store is not None:
            store.close()
    print("gopher-mcp serve: ended", flush=True)
    return EXIT_OK


def _uploads(folder: str | None) -> Uploads:
    from ..serve.opening import default_folder
    from ..serve.uploads import Uploads

    return Uploads(Path(folder) if folder is not None else default_folder() / "uploads")


def _hosts(args: argparse.Namespace, port: int) -> list[str]:
    names = ["localhost", "127.0.0.1", "[::1]"]
    local = [f"{name}:{port}" for name in names] + (names if port in (80, 443) else [])
    return [*local, *args.allowed_host]


def _greeting(args: argparse.Namespace, port: int, tokens: TokenFile) -> str:
    scheme = "https" if args.tls_cert else "http"
    where = args.allowed_host[0] if args.allowed_host else f"{'[::1]' if ':' in args.host else '127.0.0.1'}:{port}"
    lines = [f"answering on {scheme}://{where}/   Ctrl-C stops", ""]
    file = f" --tokens {args.tokens}" if args.tokens else ""
    has_any = any("answer" in entry.scopes for entry in tokens.entries())
    lines += [] if has_any else ["nobody can answer yet: there is no token with the scope answer", ""]
    lines += [f"  gopher-mcp token{file} add YOUR-NAME --scope answer", "", "makes a token to sign in with; see also "
              f"gopher-mcp token{file} list"]  # fmt: skip
    if args.store == "memory":
        lines += ["", "the store is this process's memory: only programs inside it can ask, and it ends with it"]
    return "\n".join(lines)
