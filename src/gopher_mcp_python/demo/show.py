"""The demo as a person sees it: what is started, what is asked, what came out, and what just happened."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from typing import Any

from ..cli import options
from ..cli.failures import EXIT_FAILED, EXIT_OK
from . import ACCOUNT, QUERY
from .child import DemoServer

_TITLE = "gopher-mcp demo: a tool that needs you to sign in, and an agent that gets through it"


def show(args: argparse.Namespace) -> int:
    """Run the demo once; 0 when the tool's result came."""
    model = options.model(args)
    click = args.click or (None if _has_terminal() else "allow")
    print(f"{_TITLE}\n", flush=True)
    with DemoServer(args.port) as server:
        _line("server", f"{server.url}   a real MCP server, on this machine only; the mail account is made up")
        _line("query", QUERY)
        return _run(args, server.url, model, click)


def _run(args: argparse.Namespace, url: str, model: str, click: str | None) -> int:
    from .. import GopherAgent, GopherAgentCreateOptions
    from ..cli.status import Status

    why = "as asked for by --click" if args.click else "there is no terminal here"
    clicker = _Clicker(click, why) if click and args.elicitation == "ask" else None
    elicitation = {"handler": clicker} if clicker else options.elicitation(args)
    with Status() as status:
        status.waiting("connecting")
        create = GopherAgentCreateOptions(elicitation=elicitation, engine=args.engine, on_event=status.event)
        with GopherAgent.create_with_url(args.provider, model, url, create) as agent:
            _line("engine", f"{agent.engine}, because {agent.engine_reason}")
            _hint(args, clicker)
            print(flush=True)
            status.waiting("waiting for the mail tool")
            result = agent.run_detailed(QUERY, options.timeout_ms(args))
    if not result.is_success():
        print(f"gopher-mcp demo: {result.error_message}", file=sys.stderr)
        return EXIT_FAILED
    print(flush=True)
    _line("result", result.response)
    signed_in = ACCOUNT in result.response  # a model may have put it in words of its own
    print(_told(clicker, signed_in), flush=True)
    return EXIT_OK if signed_in else EXIT_FAILED


@dataclass
class _Clicker:
    """Stands in for the person where there is none: presses the page's button and answers the request."""

    decision: str
    why: str
    heading: str = ""

    def __call__(self, request: Any) -> str:
        from .click import click

        _line("asked", f"{request.message}")
        _line("click", f"{self.why}: this program opens the page and presses {self.button} itself")
        self.heading = click(request.url, self.decision)
        _line("page", f"answers: {self.heading}")
        return "accept"

    @property
    def button(self) -> str:
        """The button's text."""
        return self.decision.capitalize()


_REFUSED = """
What happened: the mail tool asked for a sign-in, and it was not given. The tool said so, and the run ended
normally. Run the demo again and press Allow to see the other way."""

_ALLOWED = """
What happened: the agent called the mail tool. The server answered that somebody has to sign in first, and
sent a link (an MCP elicitation). {who} The agent told the server, and the same
tool call went on to its result. A program needs no code for that:

    with GopherAgent.create_with_url("DirectProvider", "direct", url) as agent:
        print(agent.run("{query}"))

Next: gopher-mcp demo --serve    keeps the server, for programs of your own
      gopher-mcp doctor          what works on this machine"""


def _told(clicker: _Clicker | None, signed_in: bool) -> str:
    who = "This program pressed the page's button." if clicker else "You answered on that page."
    return _ALLOWED.format(who=who, query=QUERY) if signed_in else _REFUSED


def _hint(args: argparse.Namespace, clicker: _Clicker | None) -> None:
    """Says how to see the demo where the page can't be opened, before the prompt says that it could not."""
    from ..oauth_browser import Unavailable, browser_command

    if clicker or args.no_browser or args.elicitation != "ask":
        return
    try:
        browser_command(os.environ)
    except Unavailable as reason:
        _line("hint", f"{reason}; if you can't open the link: Ctrl-C, then gopher-mcp demo --click")


def _line(label: str, text: str) -> None:
    print(f"  {label:<7} {text}", flush=True)


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
