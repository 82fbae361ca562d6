"""The demo as a person sees it: what is started, what is asked, what came out, and what just happened."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from ..cli import options
from ..cli.failures import EXIT_FAILED, EXIT_OK
from . import QUERY
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

    clicker = _Clicker(click) if click and args.elicitation == "ask" else None
    elicitation = {"handler": clicker} if clicker else options.elicitation(args)
    with Status() as status:
        status.waiting("connecting")
        create = GopherAgentCreateOptions(elicitation=elicitation, engine=args.engine, on_event=status.event)
        with GopherAgent.create_with_url(args.provider, model, url, create) as agent:
            _line("engine", f"{agent.engine}, because {agent.engine_reason}")
            print(flush=True)
            status.waiting("waiting for the mail tool")
            result = agent.run_detailed(QUERY, options.timeout_ms(args))
    if not result.is_success():
        print(f"gopher-mcp demo: {result.error_message}", file=sys.stderr)
        return EXIT_FAILED
    print(flush=True)
    _line("result", result.response)
    signed_in = '"emailAddress"' in result.response
    print(_told(url, clicker, signed_in), flush=True)
    return EXIT_OK if signed_in else EXIT_FAILED


@dataclass
class _Clicker:
    """Stands in for the person where there is none: presses the page's button and answers the request."""

    decision: str
    heading: str = ""

    def __call__(self, request: Any) -> str:
        from .click import click

        _line("asked", f"{request.message}")
        _line("click", f"nobody is at a terminal here, so this program opens the page and presses {self.button} itself")
        self.heading = click(request.url, self.decision)
        _line("page", f"answers: {self.heading}")
        return "accept"

    @property
    def button(self) -> str:
        """The button's text."""
        return self.decision.capitalize()


def _told(url: str, clicker: _Clicker | None, signed_in: bool) -> str:
    who = "this program pressed the button on that page" if clicker else "you answered on that page"
    if not signed_in:
        return (
            "\nWhat happened: the mail tool asked for a sign-in, and the sign-in was not given. The tool said so, and\n"
            "the run ended normally. Run the demo again and press Allow to see the other way."
        )
    return (
        "\nWhat happened: the agent called the mail tool. The server answered that somebody has to sign in first and sent\n"
        f"a link (an MCP elicitation); {who}; the agent told the server, and the same tool call\n"
        "went on to its result. A program needs no code for that:\n\n"
        f'    agent = GopherAgent.create_with_url("DirectProvider", "direct", "{url}")\n'
        f'    agent.run("{QUERY}")\n\n'
        "Next: gopher-mcp demo --serve keeps the server for programs of your own; gopher-mcp doctor shows what works here."
    )


def _line(label: str, text: str) -> None:
    print(f"  {label:<7} {text}", flush=True)


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
