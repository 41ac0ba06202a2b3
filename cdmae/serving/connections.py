"""Listening for HTTP connections, with limits against slow and silent clients."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from cdmae.errors import InputError

ASKING = 10  # seconds within which a request must arrive completely
ANSWERING = 60  # seconds within which its answer must be computed and accepted by the client
CONNECTIONS = 64  # at a time; more get status 503
PER_ADDRESS = 32  # connections of one address; more are closed
HEADER = 1 << 15  # bytes of a request without its body


class Bounded(H11Protocol):
    """A connection that is closed if sending a request, or accepting an answer, takes too long.

    uvicorn itself limits only the time between an answer and the next request.
    """

    limit: asyncio.TimerHandle | None = None
    asking = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, or close the connection if its address has too many connections."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        own = [each for each in self.connections if each.client and each.client[0] == address]
        if len(own) > PER_ADDRESS:
            transport.abort()
            return
        self._wait(ASKING)

    def data_received(self, data: bytes) -> None:
        """Handle a part of a request."""
        super().data_received(data)
        incomplete = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not incomplete:
            self.asking = False
            self._wait(ANSWERING)
        elif not self.asking:  # the first part of another request
            self.asking = True
            self._wait(ASKING)

    def on_response_complete(self) -> None:
        """Limit the time for the client to accept an answer; uvicorn then waits for a request."""
        super().on_response_complete()
        self.asking = False
        self._wait(ANSWERING)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self.limit:
            self.limit.cancel()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        if self.limit:
            self.limit.cancel()
        self.limit = self.loop.call_later(seconds, self.transport.abort)


def run(
    app: FastAPI, host: str, port: int, started: Callable[[str], AbstractContextManager[Any]]
) -> None:
    """Serve until SIGTERM or SIGINT; open requests are finished first, for at most 5 seconds.

    started: a function that takes the page's URL and returns a context manager, which is active
    while the server runs. Raises `InputError` if the address is taken or does not belong to this
    machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}, port {port}: {reason}; give another --port or --host"
        ) from None
    settings = uvicorn.Config(
        app,
        http=Bounded,
        ws="none",
        lifespan="off",
        log_level="error",  # warnings are about clients' invalid requests
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADER,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn ends cleanly, and then raises the signal again
        signal.signal(number, signal.SIG_IGN)
    with started(f"http://{written(host)}:{bound.getsockname()[1]}/"):
        uvicorn.Server(settings).run(sockets=[bound])


def written(host: str) -> str:
    """Format an address as in a URL, with IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host
