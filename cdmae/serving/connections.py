"""Listening for HTTP connections, within the limits of uvicorn."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import uvicorn
from fastapi import FastAPI

from cdmae.errors import InputError

CONNECTIONS = 64  # with so many open at a time, requests get status 503
HEADER = 1 << 15  # bytes of a request without its body


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
        http="h11",
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
