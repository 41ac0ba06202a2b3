"""The web server of `Engine`: a page for people, JSON for programs, and its description at /docs.

It answers only requests for the address on which it listens, escapes everything that it shows, and
limits the length, number and rate of queries. The page needs no JavaScript.
"""

from __future__ import annotations

import json
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

import anyio.to_thread
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.exceptions import HTTPException as HTTPError

from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.retrieval.answers import question_words
from cdmae.serving import judging_page
from cdmae.serving.engine import Engine, Result
from cdmae.serving.judging_page import Judging
from cdmae.serving.pages import TEMPLATES

LONGEST = 2000  # characters of a query
MOST = 100  # passages per system
SIDE_BY_SIDE = 3  # systems on the page
SHOWN = 5  # passages per system on the page
RATE = 200  # requests per second and address
WAITING = 64  # requests that are answered or wait at a time; more get status 503
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Text = Annotated[str, Query(max_length=LONGEST, description="the query")]
Count = Annotated[int, Query(ge=1, le=MOST, description="the number of passages")]
Named = Annotated[str, Query(max_length=200)]


class Limits:
    """The number of requests of each address within the current second."""

    def __init__(self, rate: int) -> None:
        """Allow `rate` requests per second and address."""
        self.rate = rate
        self.second = 0
        self.requests: dict[str, int] = defaultdict(int)

    def allow(self, address: str, now: float) -> bool:
        """Count a request; return whether it is within the limit."""
        if int(now) != self.second:
            self.second = int(now)
            self.requests.clear()
        self.requests[address] += 1
        return self.requests[address] <= self.rate


def make(
    engine: Engine,
    *,
    title: str,
    system: str,
    host: str,
    threads: int,
    judging: Judging | None = None,
) -> FastAPI:
    """Make the application.

    system: the system that answers if a request names none. host: the address to listen on.
    threads: the number of queries that are answered at a time. judging: adds the page that judges
    passages.
    """
    hosts = _names_of(host)
    app = FastAPI(title=title, version="1", docs_url=None, redoc_url=None)
    collections = list(engine.systems)
    limits = Limits(RATE)
    turns = anyio.CapacityLimiter(threads)

    def search(text: str, name: str, collection: str, count: int) -> Result:
        if collection not in engine.systems:
            raise HTTPException(
                404, f"{collection} is not a collection; {suggestion(collection, collections)}"
            )
        known = list(engine.systems[collection])
        if name not in known:
            raise HTTPException(404, f"{name} is not a system; {suggestion(name, known)}")
        return engine.search(text, name, collection, min(count, engine.depth))

    @app.middleware("http")
    async def guard(
        request: Request, proceed: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        problem = _problem(request, hosts, limits)
        response = problem or await proceed(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(HTTPError)
    async def refused(request: Request, error: HTTPError) -> Response:
        text = json.dumps({"detail": error.detail})
        return Response(text, error.status_code, media_type="application/json")

    @app.get("/search")
    async def answer(
        q: Text, system: Named = system, collection: Named = collections[0], k: Count = 10
    ) -> dict[str, Any]:
        """Rank the best k passages of a collection for the query q by one system."""
        if not q.strip():
            raise HTTPException(422, "q is empty; allowed: a text")
        result = await anyio.to_thread.run_sync(search, q, system, collection, k, limiter=turns)
        hits = [
            {key: value for key, value in asdict(hit).items() if key != "row"}
            for hit in result.hits
        ]
        return {
            "query": q,
            "system": system,
            "collection": collection,
            "milliseconds": round(1000 * result.seconds, 1),
            "hits": hits,
        }

    @app.get("/systems")
    async def systems() -> dict[str, list[str]]:
        """List the systems that can be asked on each collection."""
        return {collection: list(own) for collection, own in engine.systems.items()}

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page(
        q: Text = "",
        system: Annotated[list[str] | None, Query(max_length=SIDE_BY_SIDE)] = None,
        collection: Named = collections[0],
    ) -> str:
        asked = list(dict.fromkeys(system or [default(collection)]))

        def answers() -> list[Result]:
            return [search(q, name, collection, SHOWN) for name in asked]

        results = []
        if q.strip():
            results = await anyio.to_thread.run_sync(answers, limiter=turns)
        return TEMPLATES.get_template("ask.html.j2").render(
            title=title,
            query=q,
            asked=asked,
            collection=collection,
            engine=engine,
            results=results,
            words=question_words(q),
            judging=judging,
            most=SIDE_BY_SIDE,
            longest=LONGEST,
        )

    def default(collection: str) -> str:
        own = engine.systems.get(collection, {})
        return system if system in own else next(iter(own), system)

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> str:
        return TEMPLATES.get_template("docs.html.j2").render(title=title, schema=app.openapi())

    @app.get("/style.css", include_in_schema=False)
    async def style() -> Response:
        return Response(TEMPLATES.get_template("serve.css.j2").render(), media_type="text/css")

    if judging:
        judging_page.add(app, judging, title, turns, LONGEST)
    return app


def _problem(request: Request, hosts: list[str], limits: Limits) -> Response | None:
    """Return the refusal of a request for another host, of another origin, or above the rate."""
    host = request.headers.get("host", "")
    if _without_port(host) not in hosts:
        return PlainTextResponse(f"this server answers requests for {hosts[0]} only\n", 400)
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return PlainTextResponse("this server answers no requests of other origins\n", 403)
    address = request.client.host if request.client else ""
    if not limits.allow(address, time.monotonic()):
        return PlainTextResponse(
            f"more than {limits.rate} requests per second\n", 429, {"Retry-After": "1"}
        )
    return None


def _without_port(host: str) -> str:
    """Return the name of a Host header, without a port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _names_of(host: str) -> list[str]:
    """List the values of the Host header, without a port, that mean an address of this machine."""
    shown = f"[{host}]" if ":" in host else host
    local = ["localhost", "127.0.0.1", "[::1]"]
    if host in ("localhost", "127.0.0.1", "::1"):
        return list(dict.fromkeys([shown, *local]))
    return [shown, *local, socket.gethostname(), socket.getfqdn()]


def run(app: FastAPI, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; open requests are finished first, for at most 5 seconds.

    started: called with the address of the page. Raises `InputError` if the address is taken or
    does not belong to this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror}; give another --port or --host"
        ) from None
    shown = f"[{host}]" if ":" in host else host
    started(f"http://{shown}:{bound.getsockname()[1]}/")
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=WAITING,
        h11_max_incomplete_event_size=1 << 14,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(settings).run(sockets=[bound])
