"""Web servers of the tests that live in the test's own process, each on a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from typing import Any

import uvicorn

LOOPBACK = "127.0.0.1"


def listener(port: int = 0) -> socket.socket:
    """A listening socket: whoever is told its address may connect at once."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((LOOPBACK, port))
    made.listen(128)
    return made


def closed_port() -> int:
    """A port on which nothing listens: connections to it are refused."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class Hosted:
    """An ASGI application behind uvicorn on a thread.

    Args:
        app: the application.
        name: the thread's name, told when a test leaves it behind.
        port: 0 takes a free one.
    """

    def __init__(self, app: Any, name: str, port: int = 0) -> None:
        self._listener = listener(port)
        self.base = f"http://{LOOPBACK}:{self._listener.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="on",
                                timeout_graceful_shutdown=1)  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        while not self._server.started:  # what the loop opens is there before the test's own inventory is taken
            assert self._thread.is_alive(), f"the server {name!r} could not start"
            time.sleep(0.002)

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    def close(self) -> None:
        """Ends the server; open streams get one second."""
        self._server.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive(), f"the server {self._thread.name!r} does not end"
        self._listener.close()


class Hold:
    """A place where a server's requests are kept until the test lets them go; both sides wait for events."""

    def __init__(self) -> None:
        self._lock, self._reached, self._released = threading.Lock(), threading.Event(), False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.count = 0

    def wait_reached(self, seconds: float = 20) -> None:
        """Returns once somebody waits here, or has."""
        assert self._reached.wait(seconds), f"nobody came here within {seconds} s"

    def release(self) -> None:
        """Lets everybody go on, those to come too."""
        with self._lock:
            self._released, waiting = True, self._waiting
            self._waiting = []
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # that server has ended
                loop.call_soon_threadsafe(event.set)

    async def here(self) -> None:
        """Called by the server: waits for release()."""
        event = asyncio.Event()
        with self._lock:
            self.count += 1
            if not self._released:
                self._waiting.append((asyncio.get_running_loop(), event))
            else:
                event.set()
        self._reached.set()
        await event.wait()
