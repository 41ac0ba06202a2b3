"""The page for judging pooled passages: buttons 0 to 3, back and skip, each with a key."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlencode

import anyio
import anyio.to_thread
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.requests import ClientDisconnect

from cdmae.errors import InputError
from cdmae.serving.judging import GRADES, SKIPPED, Judgments
from cdmae.serving.pages import FOLDER, TEMPLATES

MOST_BYTES = 1 << 15  # of a form


@dataclass(frozen=True)
class Judging:
    """The judgments of a collection, and the name of the person who judges."""

    judgments: Judgments
    collection: str
    who: str


def add(
    app: FastAPI, judging: Judging, title: str, turns: anyio.CapacityLimiter, longest: int
) -> None:
    """Add the page /judge to an application.

    turns: limits the number of queries that are answered at the same time. longest: the largest
    number of characters of a query.
    """
    judgments = judging.judgments

    @app.get("/judge", response_class=HTMLResponse, include_in_schema=False)
    async def page(query: str = "", index: int = 0) -> str:
        return await anyio.to_thread.run_sync(shown, query, index, limiter=turns)

    def shown(query: str, index: int) -> str:
        pool = judgments.pool(query) if query in judgments.queries else None
        if pool is None or not 0 <= index < len(pool.passages):
            query, index = judgments.next() or ("", 0)
            pool = judgments.pool(query) if query else None
        passage = pool.passages[index] if pool else None
        return TEMPLATES.get_template("judge.html.j2").render(
            title=title,
            collection=judging.collection,
            folder=judgments.folder,
            queries=len(judgments.queries),
            number=list(judgments.queries).index(query) + 1 if pool else 0,
            done=judgments.done(),
            pool=pool,
            index=index,
            passage=passage,
            current=judgments.grades.get((query, passage.passage_id), -1) if passage else -1,
            grades=GRADES,
            longest=longest,
        )

    @app.post("/judge", include_in_schema=False)
    async def act(request: Request) -> Response:
        form = await _form(request)

        def done() -> tuple[str, int] | None:
            return _act(judging, form, longest)

        try:
            at = await anyio.to_thread.run_sync(done, limiter=turns)
        except OSError as error:  # such as a full disk
            raise HTTPException(500, f"the grade could not be saved: {error.strerror}") from None
        except (InputError, ValueError) as error:
            raise HTTPException(422, str(error)) from None
        where = "?" + urlencode({"query": at[0], "index": at[1]}) if at else ""
        return RedirectResponse(f"/judge{where}", 303)

    @app.get("/judge.js", include_in_schema=False)
    async def script() -> Response:
        return Response((FOLDER / "judge.js").read_text(), media_type="text/javascript")


def _act(judging: Judging, form: dict[str, str], longest: int) -> tuple[str, int] | None:
    """Carry out a button's action; return the query and index to show, None for the next one."""
    judgments = judging.judgments
    choice = form.get("grade", "")
    if choice == "add":
        text = form.get("text", "")
        if not text.strip() or len(text) > longest:
            raise InputError(f"the query has {len(text)} characters; allowed: 1 to {longest}")
        return judgments.add(text), 0
    if choice == "last":
        return _last(judgments, list(judgments.queries))
    query = form.get("query", "")
    index = int(form.get("index", "0"))
    if choice == "back":
        return _before(judgments, query, index)
    grade = SKIPPED if choice == "skip" else int(choice)
    judgments.grade(query, form.get("passage", ""), grade, judging.who)
    inside = index + 1 < len(judgments.pool(query).passages)
    return (query, index + 1) if inside else None


def _before(judgments: Judgments, query: str, index: int) -> tuple[str, int] | None:
    """Return the previous passage: of this query, or the last passage of an earlier query."""
    if index > 0:
        return query, index - 1
    queries = list(judgments.queries)
    return _last(judgments, queries[: queries.index(query)]) or (query, 0)


def _last(judgments: Judgments, queries: list[str]) -> tuple[str, int] | None:
    """Return the last passage of the last query with a pool; None if all pools are empty."""
    for query in reversed(queries):
        count = len(judgments.pool(query).passages)
        if count:
            return query, count - 1
    return None


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form; the last value of a repeated field counts."""
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                raise HTTPException(413, f"the form has more than {MOST_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the form is not complete") from None
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=10)
    except ValueError as error:
        raise HTTPException(422, f"not a form: {error}") from None
    return {key: values[-1] for key, values in fields.items()}
