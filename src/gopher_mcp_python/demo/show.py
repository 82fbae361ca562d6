"""The demo as a person sees it: what is started, what is asked, what came out, and what just happened."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cli import options
from ..cli.failures import EXIT_FAILED, EXIT_OK, tell
from ..display import safe_text
from . import ACCOUNT, QUERY
from .child import DemoServer

if TYPE_CHECKING:
    from ..cli.status import Status
    from ..elicitation import GopherAgentElicitationRequest
    from ..result import AgentResult

_TITLE = "gopher-mcp demo: a tool that needs you to sign in, and an agent that gets through it"


def show(args: argparse.Namespace) -> int:
    """Run the demo once; 0 when the tool's result came."""
    from ..cli.status import Status

    model = options.model(args)
    print(f"{_TITLE}\n", flush=True)
    with Status() as status:
        return _Show(args, status).run(model)


class _Show:
    """One demo. What it prints goes through the status line's own printer, so that neither is in the other's way."""

    def __init__(self, args: argparse.Namespace, status: Status) -> None:
        self._args = args
        self._status = status
        click = args.click or (None if _has_terminal() else "allow")
        why = "as asked for by --click" if args.click else "there is no terminal here"
        self._clicker = _Clicker(self.line, click, why) if click and args.elicitation == "ask" else None

    def line(self, label: str, text: str) -> None:
        """One line of the story; a server's or model's text can't drive the terminal."""
        self._status.say(f"  {label:<7} {safe_text(text)}")

    def run(self, model: str) -> int:
        self._status.waiting("starting the mail server")
        with DemoServer(self._args.port) as server:
            self.line("server", f"{server.url}   a real MCP server, on this machine only; the mail account is made up")
            self.line("query", QUERY)
            result = self._query(server.url, model)
        if not result.is_success():
            self._status.clear()
            tell(result.error_message or "it failed", "demo")
            return EXIT_FAILED
        self._status.say("")
        self.line("result", result.response)
        signed_in = ACCOUNT in result.response  # a model may have put it in words of its own
        self._status.say(_told(self._clicker, signed_in))
        return EXIT_OK if signed_in else EXIT_FAILED

    def _query(self, url: str, model: str) -> AgentResult:
        from .. import GopherAgent, GopherAgentCreateOptions

        args, status = self._args, self._status
        elicitation = {"handler": self._clicker} if self._clicker else options.elicitation(args)
        create = GopherAgentCreateOptions(elicitation=elicitation, engine=args.engine, on_event=status.event)
        status.waiting("connecting")
        with GopherAgent.create_with_url(args.provider, model, url, create) as agent:
            self.line("engine", f"{agent.engine}, because {agent.engine_reason}")
            self._hint()
            status.say("")
            status.waiting("waiting for the mail tool")
            return agent.run_detailed(QUERY, options.timeout_ms(args))

    def _hint(self) -> None:
        """Says how to see the demo where the page can't be opened, before the prompt says that it could not."""
        from ..oauth_browser import Unavailable, browser_command

        if self._clicker or self._args.no_browser or self._args.elicitation != "ask":
            return
        try:
            browser_command(os.environ)
        except Unavailable as reason:
            self.line("hint", f"{reason}; if you can't open the link: Ctrl-C, then gopher-mcp demo --click")


@dataclass
class _Clicker:
    """Stands in for the person where there is none: presses the page's button and answers the request."""

    line: Callable[[str, str], None]
    decision: str
    why: str

    def __call__(self, request: GopherAgentElicitationRequest) -> str:
        from .click import click

        self.line("asked", request.message or "")
        button = self.decision.capitalize()
        self.line("click", f"{self.why}: this program opens the page and presses {button} itself")
        self.line("page", f"answers: {click(request.url or '', self.decision)}")
        return "accept"


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


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
