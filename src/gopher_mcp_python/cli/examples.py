"""The examples at the end of each help. Every one is a command line that the parser takes (tests/test_cli_help.py)."""

from __future__ import annotations

__all__ = ["EXAMPLES"]

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("gopher-mcp demo", "see a sign-in in the middle of a tool call"),
        ('gopher-mcp run https://host/mcp "query"', "run one query against an MCP server"),
        ("gopher-mcp logout https://host/mcp", "delete the tokens that a sign-in left on this machine"),
        ("gopher-mcp doctor", "what works on this machine, and what to do about the rest"),
        ("gopher-mcp serve --store sqlite:FILE", "answer from elsewhere: a page and a REST interface"),
        ("gopher-mcp token add ada --scope answer", "make the token that the page asks for"),
        ("gopher-mcp gateway --store sqlite:FILE --upstream NAME=URL", "a server that asks before a tool destroys "
         "anything"),
        ("gopher-mcp audit --store sqlite:FILE", "whether nobody changed the record of what was answered"),
        ("gopher-mcp completion bash", "a script that completes all this with the Tab key"),
    ),
    "run": (
        ("gopher-mcp run https://mcp.example.com/mcp 'search_mail {\"query\": \"from:ada\"}'",
         "call one tool, without a model"),
        ('gopher-mcp run https://mcp.example.com/mcp "what is new?" --provider AnthropicProvider --model MODEL',
         "let a model choose the tools; its key comes from ANTHROPIC_API_KEY"),
        ('gopher-mcp run --config servers.json "plain" --json', "several servers; the result for a program"),
        ('gopher-mcp run https://mcp.example.com/mcp "plain" --token-env MAIL_TOKEN --elicitation decline',
         "with a token, and nobody is asked anything"),
    ),
    "logout": (
        ("gopher-mcp logout https://mcp.example.com/mcp", "forget one server"),
        ("gopher-mcp logout --all --token-store keyring", "forget all of them, in the keyring only"),
    ),
    "doctor": (
        ("gopher-mcp doctor", "the report"),
        ("gopher-mcp doctor --json", "for a program, or for a bug report"),
    ),
    "demo": (
        ("gopher-mcp demo", "sign in on the page that opens"),
        ("gopher-mcp demo --click", "let the demo press the button"),
        ("gopher-mcp demo --serve --port 8000", "only the server, for programs of your own"),
    ),
    "serve": (
        ("gopher-mcp serve --store sqlite:elicitations.db", "on this machine, at http://127.0.0.1:8123/"),
        ("gopher-mcp serve --store postgresql://app@db/store --host 0.0.0.0 --public "
         "--allowed-host answers.example.com --tls-cert cert.pem --tls-key key.pem", "for others, with https"),
    ),
    "token": (
        ("gopher-mcp token add ada --scope answer", "ada may answer what she is asked"),
        ("gopher-mcp token list", "what there is"),
    ),
    "token add": (
        ("gopher-mcp token add ada --scope answer --name laptop", "ada may answer what she is asked"),
        ("gopher-mcp token add ada --scope call > agent.token", "a program may call tools as ada"),
    ),
    "token list": (
        ("gopher-mcp token list", "the tokens of the usual file"),
        ("gopher-mcp token list --tokens /srv/tokens.json", "those of another one"),
    ),
    "token revoke": (("gopher-mcp token revoke 1f0c9a", "end the token with this id of `gopher-mcp token list`"),),
    "gateway": (
        ("gopher-mcp gateway --store sqlite:elicitations.db --upstream files=http://127.0.0.1:9000/mcp",
         "in front of one server"),
        ('gopher-mcp gateway --store memory --stdio --upstream "notes=python notes_server.py" --hold "notes:delete_*"',
         "for one client, in front of a local command"),
    ),
    "audit": (
        ("gopher-mcp audit --store sqlite:elicitations.db", "look whether the chain is whole"),
        ("gopher-mcp audit --store postgresql://app@db/store --anchor https://anchor.example.com/end --write",
         "compare it with its anchor, then move that on"),
    ),
    "completion": (
        ("gopher-mcp completion bash > ~/.local/share/bash-completion/completions/gopher-mcp", "bash"),
        ("gopher-mcp completion zsh > ~/.zfunc/_gopher-mcp", "zsh, with fpath+=~/.zfunc before compinit in ~/.zshrc"),
        ("gopher-mcp completion fish > ~/.config/fish/completions/gopher-mcp.fish", "fish"),
    ),
}  # fmt: skip
