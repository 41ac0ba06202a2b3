"""The web server of `Engine`: a page for people, and JSON for programs.

It listens on this machine only. Starlette refuses other host names and large bodies, FastAPI checks
the parameters of requests, and uvicorn limits headers and connections. The page escapes everything
that it shows and needs no JavaScript.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated

import anyio.to_thread
import uvicorn
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException as HTTPError
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect

from cdmae.errors import InputError
from cdmae.fields import show, suggestion
from cdmae.serving import judging_page, pages
from cdmae.serving.answers import question_words
from cdmae.serving.engine import Engine
from cdmae.serving.judging import Judgments
from cdmae.serving.pages import TEMPLATES

HOST = "127.0.0.1"
LONGEST = 2000  # characters of a query
MOST = 100  # passages per system
SIDE_BY_SIDE = 3  # systems on the page
SHOWN = 5  # passages per system on the page
BYTES = 1 << 15  # of a form, and of a request's header
CONNECTIONS = 64  # with so many open at a time, requests get status 503
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
REFUSED = {"description": "a wrong parameter; `detail` is the reason, a text"}


def listen(port: int) -> socket.socket:
    """Listen on a port of this machine. Raises `InputError` if it is taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise InputError(
            f"cannot listen on {HOST}, port {port}: {error.strerror}; give another --port"
        ) from None


def run(app: FastAPI, bound: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; open requests are finished first, for at most 5 seconds."""
    settings = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        log_level="error",  # warnings are about clients' invalid requests
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=BYTES,
        timeout_graceful_shutdown=5,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn ends cleanly, and then raises the signal again
        signal.signal(number, signal.SIG_IGN)
    uvicorn.Server(settings).run(sockets=[bound])


def only_known(request: Request) -> None:
    """Refuse parameters that the requested page does not have."""
    known = [field.name for field in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            raise InputError(f"{show(name)} is not a parameter; {suggestion(name, known)}")


def make(
    engine: Engine, *, title: str, best: str, threads: int, judging: Judgments | None = None
) -> FastAPI:
    """Make the web application.

    best: the system that answers if a request names none. threads: the number of requests that
    are answered at the same time. judging: adds the page that judges passages.
    """
    collections = list(engine.systems)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        anyio.to_thread.current_default_thread_limiter().total_tokens = threads
        yield

    app = FastAPI(
        title=title,
        docs_url=None,  # FastAPI's own page of documentation loads scripts from another web site
        redoc_url=None,
        lifespan=lifespan,
        max_body_size=BYTES,
        dependencies=[Depends(only_known)],
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", HOST])

    @app.middleware("http")
    async def secured(
        request: Request, proceed: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = await proceed(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(HTTPError)
    @app.exception_handler(InputError)
    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ClientDisconnect)  # within a form, or after half a line of it
    async def refused(request: Request, error: Exception) -> Response:
        """Explain an error: on a page for a browser, in JSON for a program."""
        detail = getattr(error, "detail", str(error))
        if isinstance(error, RequestValidationError):
            detail = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
        status = getattr(error, "status_code", 422)
        if "text/html" in request.headers.get("accept", ""):
            page = TEMPLATES.get_template("error.html.j2").render(title=title, detail=detail)
            return HTMLResponse(page, status)
        return JSONResponse({"detail": detail}, status)

    def check(name: str, collection: str) -> None:
        if collection not in engine.systems:
            raise InputError(
                f"{show(collection)} is not a collection; {suggestion(collection, collections)}"
            )
        known = list(engine.systems[collection])
        if name not in known:
            raise InputError(f"{show(name)} is not a system; {suggestion(name, known)}")

    @app.get("/search", response_class=JSONResponse, responses={422: REFUSED})
    def answer(
        q: Text, system: str = best, collection: str = collections[0], k: Count = 10
    ) -> Response:
        """Rank the best k passages of a collection for the query q with one system."""
        if not q.strip():
            raise InputError("q is empty; expected a text")
        check(system, collection)
        result = engine.search(q, system, collection, min(k, engine.depth))
        # FastAPI would check a dictionary again, which takes longer than writing it
        return JSONResponse(
            {
                "query": q,
                "system": system,
                "collection": collection,
                "passages": engine.passages(collection),
                "milliseconds": round(1000 * result.seconds, 1),
                "hits": [vars(hit) for hit in result.hits],
            }
        )

    @app.get("/", include_in_schema=False)
    def page(
        q: Text = "",
        collection: str = collections[0],
        system: Annotated[list[str] | None, Query()] = None,
    ) -> Response:
        asked = list(dict.fromkeys(system or [best]))
        problem = ""
        results = []
        try:
            for name in asked:
                check(name, collection)
            if len(asked) > SIDE_BY_SIDE:
                raise InputError(f"{len(asked)} systems are chosen; expected 1 to {SIDE_BY_SIDE}")
            if q.strip():
                results = [engine.search(q, name, collection, SHOWN) for name in asked]
        except InputError as error:
            problem = str(error)
        bold = question_words(q)
        html = TEMPLATES.get_template("ask.html.j2").render(
            title=title,
            query=q,
            asked=asked,
            collection=collection,
            engine=engine,
            results=results,
            problem=problem,
            judging=judging,
            divided=lambda text: pages.divided(text, bold, engine.shades),
            most=SIDE_BY_SIDE,
            longest=LONGEST,
        )
        return HTMLResponse(html, 422 if problem else 200)

    @app.get("/style.css", include_in_schema=False)
    def style() -> Response:
        return Response(TEMPLATES.get_template("serve.css.j2").render(), media_type="text/css")

    if judging:
        judging_page.add(app, judging, title, LONGEST)
    return app
