"""A scripted model: a real HTTP endpoint that speaks OpenAI's chat completions and Anthropic's messages.

No model can be run in a test, so its decisions are scripted; protocol, TLS and client libraries are the real ones. It
calls, in order and one a turn, the tools that the user's text names (else the first tool), with the JSON object that
follows a name as arguments; then it answers "FINAL: <the last tool result>".

One port serves two kinds of client:
- libgopher-orch, which only speaks HTTPS to the vendors' own hosts: an HTTP CONNECT proxy that ends TLS itself, with a
  certificate authority made on the spot (`ScriptedModel.environment()` has the variables for it);
- the vendors' Python SDKs: plain HTTP, with OPENAI_BASE_URL and ANTHROPIC_BASE_URL.

The model's name scripts the rest: "status-401" (any status) fails so, "hang" never answers, "loop" calls the first
named tool for ever, "parallel" calls all named tools in one turn, "say:TEXT" answers TEXT without any tool.

    python -m tests.support.scripted_llm --dir DIR [--port 0] [--log FILE]

prints one JSON line {"proxy", "ca", "port"} and serves until it is ended. Needs the openssl command.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import children

HOSTS = ("api.openai.com", "api.anthropic.com", "api.groq.com")


class ScriptedModel:
    """The endpoint as a child process."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "model.jsonl"
        argv = [sys.executable, "-m", "tests.support.scripted_llm", "--dir", str(folder), "--log", str(self._log)]
        self._process, line = children.start_server(argv)
        self.proxy, self.ca, self.port = line["proxy"], line["ca"], line["port"]

    def environment(self) -> dict[str, str]:
        """Variables that lead the native library and the vendors' SDKs to this model."""
        names = {"HTTPS_PROXY": self.proxy, "https_proxy": self.proxy, "GOPHER_ORCH_CURL_CA_BUNDLE": self.ca}
        plain = f"http://127.0.0.1:{self.port}"
        base = {"OPENAI_BASE_URL": f"{plain}/v1", "ANTHROPIC_BASE_URL": plain}
        keys = {"OPENAI_API_KEY": "scripted", "ANTHROPIC_API_KEY": "scripted"}
        return {**names, **base, **keys, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    def requests(self) -> list[dict[str, Any]]:
        """Everything that was asked so far, with its reply."""
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def close(self) -> None:
        children.stop(self._process)


def certificates(folder: Path) -> ssl.SSLContext:
    """A certificate authority and one certificate for the vendors' hosts, made once a folder."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*arguments: str) -> None:
        subprocess.run(("openssl", *arguments), cwd=folder, check=True, capture_output=True)

    if not (folder / "leaf.pem").exists():
        # All that RFC 5280 wants, as Python insists on it since 3.13.
        (folder / "san").write_text(
            "subjectAltName=" + ",".join(f"DNS:{host}" for host in HOSTS) + "\nauthorityKeyIdentifier=keyid\n"
            "subjectKeyIdentifier=hash\nkeyUsage=critical,digitalSignature,keyEncipherment\n"
        )
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30",
                "-subj", "/CN=scripted model authority", "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "leaf.key", "-out", "leaf.csr",
                "-subj", f"/CN={HOSTS[0]}")  # fmt: skip
        openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", "leaf.pem", "-days", "30", "-extfile", "san")  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return context


# ---- What it decides ------------------------------------------------------------------------------------------------


def plan(names: list[str], text: str) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls that a text asks for: names in the order of the text, each with the JSON object behind it."""
    found = []
    for name in names:
        for match in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
            arguments: Any = {}
            rest = text[match.end() :].lstrip()
            if rest.startswith("{"):
                with contextlib.suppress(ValueError):
                    arguments = json.JSONDecoder().raw_decode(rest)[0]
            found.append((match.start(), name, arguments))
    return [(name, arguments) for _, name, arguments in sorted(found, key=lambda item: item[0])]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def decide(model: str, names: list[str], text: str, results: list[Any]) -> list[tuple[str, dict[str, Any]]] | str:
    """The next tool calls, or the final answer. `results` are those since the user's last text."""
    if model.startswith("say:"):
        return model[4:]
    calls = plan(names, text) or [(name, {}) for name in names[:1]]
    if model == "loop":
        return calls[:1]
    if model == "parallel":
        return calls if calls and not results else f"FINAL: {results}"
    if len(results) < len(calls):
        return [calls[len(results)]]
    return "FINAL: " + (_text(results[-1]) if results else "no tool")


def openai_reply(body: dict[str, Any]) -> dict[str, Any]:
    messages = body.get("messages", [])
    turn = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=-1)
    results = [message.get("content") for message in messages[turn + 1 :] if message["role"] == "tool"]
    names = [tool["function"]["name"] for tool in body.get("tools") or []]
    choice = decide(body["model"], names, _text(messages[turn].get("content")) if turn >= 0 else "", results)
    message: dict[str, Any] = {"role": "assistant", "content": choice if isinstance(choice, str) else None}
    if not isinstance(choice, str):
        message["tool_calls"] = [
            {"id": f"call_{len(results)}_{at}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for at, (name, arguments) in enumerate(choice)
        ]  # fmt: skip
    stop = "stop" if isinstance(choice, str) else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, "finish_reason": stop, "message": message}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "usage": usage,
            "choices": choices}  # fmt: skip


def _is_text(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, str) or any(part.get("type") == "text" for part in content or [])


def anthropic_reply(body: dict[str, Any]) -> dict[str, Any]:
    messages = body.get("messages", [])
    turn = max((at for at, m in enumerate(messages) if m["role"] == "user" and _is_text(m)), default=-1)
    lists = [m["content"] for m in messages[turn + 1 :] if m["role"] == "user" and isinstance(m["content"], list)]
    parts = [part for content in lists for part in content]
    results = [part.get("content") for part in parts if part.get("type") == "tool_result"]
    names = [tool["name"] for tool in body.get("tools") or []]
    choice = decide(body["model"], names, _text(messages[turn]["content"]) if turn >= 0 else "", results)
    if isinstance(choice, str):
        content: list[dict[str, Any]] = [{"type": "text", "text": choice}]
    else:
        content = [
            {"type": "tool_use", "id": f"call_{len(results)}_{at}", "name": name, "input": arguments}
            for at, (name, arguments) in enumerate(choice)
        ]
    stop = "end_turn" if isinstance(choice, str) else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": stop,
            "stop_sequence": None, "content": content, "usage": usage}  # fmt: skip


def reply(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """Status and body; None: never answer."""
    model = str(body.get("model"))
    if model == "hang":
        return None
    if status := re.fullmatch(r"status-(\d{3})", model):
        error = {"type": "scripted_error", "message": f"scripted failure {status[1]}", "code": "scripted"}
        return int(status[1]), {"type": "error", "error": error}
    if path.endswith("/messages"):
        return 200, anthropic_reply(body)
    if path.endswith("/chat/completions"):
        return 200, openai_reply(body)
    return 404, {"error": {"message": f"no such endpoint: {path}"}}


# ---- How it is spoken to --------------------------------------------------------------------------------------------


async def _start_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> None:
    """`StreamWriter.start_tls`, which Python 3.10 does not have yet."""
    if sys.version_info >= (3, 11):
        await writer.start_tls(context)
        return
    old = writer.transport
    protocol = old.get_protocol()
    loop = asyncio.get_running_loop()
    new = await loop.start_tls(old, protocol, context, server_side=True)
    reader._transport = writer._transport = protocol._transport = new
    protocol._over_ssl = True


class Server:
    """Connections of both kinds."""

    def __init__(self, context: ssl.SSLContext, log: Path | None) -> None:
        self._context, self._log = context, log

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                if head.startswith("CONNECT "):
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await writer.drain()
                    await _start_tls(reader, writer, self._context)
                elif not await self._exchange(head, reader, writer):
                    await asyncio.sleep(3600)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _exchange(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        length = re.search(r"(?im)^content-length: *(\d+)", head)
        if "100-continue" in head.lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = json.loads(await reader.readexactly(int(length[1]))) if length else {}
        answer = reply(head.split(" ")[1].split("?")[0], body)
        if self._log:
            with self._log.open("a") as log:
                log.write(json.dumps({"request": body, "reply": answer}) + "\n")
        if answer is None:
            return False
        status, data = answer[0], json.dumps(answer[1]).encode()
        start = f"HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(start.encode() + data)
        await writer.drain()
        return True


async def serve(folder: Path, port: int, log: Path | None) -> None:
    server = await asyncio.start_server(Server(certificates(folder), log).connection, "127.0.0.1", port)
    port = server.sockets[0].getsockname()[1]
    line = {"proxy": f"http://127.0.0.1:{port}", "ca": str(folder / "ca.pem"), "port": port}
    print(json.dumps(line), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A scripted model endpoint.")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(given.dir.resolve(), given.port, given.log))
