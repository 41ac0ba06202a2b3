"""The web server of `Engine`: a page for people, JSON for programs, and its description at /docs.

It answers only requests for the address on which it listens, escapes everything that it shows, and
limits the length, number and rate of queries. The page needs no JavaScript.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio.to_thread
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException as HTTPError

from cdmae.errors import InputError
from cdmae.fields import show, suggestion
from cdmae.retrieval.answers import question_words
from cdmae.serving import judging_page, page_words
from cdmae.serving.connections import written
from cdmae.serving.engine import Engine, Hit
from cdmae.serving.judging_page import Judging
from cdmae.serving.pages import TEMPLATES

LONGEST = 2000  # characters of a query
MOST = 100  # passages per system
SIDE_BY_SIDE = 3  # systems on the page
SHOWN = 5  # passages per system on the page
RATE = 500  # requests per second and address
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # with no-referrer, browsers send the form of this page with "Origin: null"
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Text = Annotated[str, Query(max_length=LONGEST, description="the query")]
Count = Annotated[int, Query(ge=1, le=MOST, description="the number of passages")]
Named = Annotated[str, Query(max_length=200)]


class Limits:
    """The number of requests from each address within the current second."""

    def __init__(self, rate: int) -> None:
        """Allow `rate` requests per second and address."""
        self.rate = rate
        self.second = 0
        self.requests: dict[str, int] = defaultdict(int)

    def allow(self, address: str, now: float) -> bool:
        """Count a request; return whether its address is still within the limit."""
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
    """Make the web application.

    system: the system that answers if a request names none. host: the address to listen on.
    threads: the number of queries that are answered at the same time. judging: adds the page that
    judges passages.
    """
    hosts = _names_of(host)
    app = FastAPI(title=title, version="1", docs_url=None, redoc_url=None)
    collections = list(engine.systems)
    limits = Limits(RATE)
    turns = anyio.CapacityLimiter(threads)

    def check(name: str, collection: str) -> None:
        if collection not in engine.systems:
            detail = (
                f"{show(collection)} is not a collection; {suggestion(collection, collections)}"
            )
            raise HTTPException(404, detail)
        known = list(engine.systems[collection])
        if name not in known:
            raise HTTPException(404, f"{show(name)} is not a system; {suggestion(name, known)}")

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
        return _refusal(request, str(error.detail), error.status_code, title)

    @app.exception_handler(InputError)
    async def failed(request: Request, error: InputError) -> Response:
        return _refusal(request, str(error), 500, title)

    @app.get("/search", response_class=JSONResponse)
    async def answer(
        q: Text, system: Named = system, collection: Named = collections[0], k: Count = 10
    ) -> Response:
        """Rank the best k passages of a collection for the query q with one system."""
        if not q.strip():
            raise HTTPException(422, "q is empty; allowed: a text")
        check(system, collection)
        result = await anyio.to_thread.run_sync(
            engine.search, q, system, collection, min(k, engine.depth), limiter=turns
        )
        # FastAPI would check a dictionary again, which takes longer than writing it
        return JSONResponse(
            {
                "query": q,
                "system": system,
                "collection": collection,
                "passages": engine.passages(collection),
                "milliseconds": round(1000 * result.seconds, 1),
                "fingerprint": engine.fingerprints.get((system, collection)),
                "hits": [_public(hit) for hit in result.hits],
            }
        )

    @app.get("/systems")
    async def systems() -> dict[str, list[str]]:
        """List the systems that can be asked, for each collection."""
        return {collection: list(own) for collection, own in engine.systems.items()}

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        given = request.query_params
        query = given.get("q", "")
        collection = given.get("collection", collections[0])
        asked = list(dict.fromkeys(given.getlist("system"))) or [default(collection)]

        def filled() -> tuple[str, int]:
            problem = ""
            status = 200
            results = []
            try:
                for name in asked:
                    check(name, collection)
                if len(query) > LONGEST:
                    detail = f"The query has {len(query):,} characters; allowed: up to {LONGEST:,}."
                    raise HTTPException(422, detail)
                if len(asked) > SIDE_BY_SIDE:
                    detail = f"{len(asked)} systems are chosen; allowed: up to {SIDE_BY_SIDE}."
                    raise HTTPException(422, detail)
                if query.strip():
                    results = [engine.search(query, name, collection, SHOWN) for name in asked]
            except HTTPException as error:
                problem = error.detail
                status = error.status_code
            return _ask_page(
                title=title,
                query=query[:LONGEST],
                asked=asked,
                collection=collection,
                engine=engine,
                results=results,
                problem=problem,
                judging=judging,
            ), status

        html, status = await anyio.to_thread.run_sync(filled, limiter=turns)
        return HTMLResponse(html, status)

    def default(collection: str) -> str:
        own = engine.systems.get(collection, {})
        return system if system in own else next(iter(own), system)

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs(request: Request) -> str:
        return TEMPLATES.get_template("docs.html.j2").render(
            title=title, schema=app.openapi(), url=request.base_url
        )

    @app.get("/style.css", include_in_schema=False)
    async def style() -> Response:
        return Response(TEMPLATES.get_template("serve.css.j2").render(), media_type="text/css")

    if judging:
        judging_page.add(app, judging, title, turns, LONGEST)
    return app


def _public(hit: Hit) -> dict[str, Any]:
    """Return the attributes of a hit that are part of an answer: all but the row."""
    return {name: value for name, value in vars(hit).items() if name != "row"}


def _ask_page(*, query: str, engine: Engine, **values: Any) -> str:
    """Fill the template of the page that answers a query."""
    bold = question_words(query)

    def divided(text: str) -> tuple[list[page_words.Word], list[page_words.Word]]:
        return page_words.divided(text, bold, engine.shades)

    return TEMPLATES.get_template("ask.html.j2").render(
        query=query, engine=engine, divided=divided, most=SIDE_BY_SIDE, longest=LONGEST, **values
    )


def _refusal(request: Request, detail: str, status: int, title: str) -> Response:
    """Return an error response: a page for a browser, JSON for a program."""
    if "text/html" in request.headers.get("accept", ""):
        page = TEMPLATES.get_template("error.html.j2").render(title=title, detail=detail)
        return HTMLResponse(page, status)
    return JSONResponse({"detail": detail}, status)


def _problem(request: Request, hosts: list[str], limits: Limits) -> Response | None:
    """Return the refusal of a request for another host, from another origin, or above the rate."""
    host = request.headers.get("host", "")
    # the address at which the client reached this machine, if it listens on all of them
    own, _ = request.scope.get("server") or ("", None)
    if _without_port(host).lower() not in (*hosts, written(own)):
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
    """Remove the port from the value of a Host header."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _names_of(host: str) -> list[str]:
    """List the host names, without a port, under which requests may reach this server."""
    local = ["localhost", "127.0.0.1", "[::1]"]
    names = [written(host), *local]
    if not _is_local(host):
        names += [socket.gethostname(), socket.getfqdn()]
    return [name.lower() for name in dict.fromkeys(names)]


def _is_local(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False
