"""The page for judging pooled passages: buttons 0 to 3, back and skip, each with a key."""

from __future__ import annotations

import sqlite3
from typing import Annotated
from urllib.parse import parse_qs, urlencode

from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from cdmae.errors import InputError
from cdmae.serving.judging import GRADES, SKIPPED, Judgments
from cdmae.serving.pages import FOLDER, TEMPLATES


async def form(request: Request) -> dict[str, str]:
    """Read the fields of a form; the last value of a repeated field counts.

    Raises `HTTPException` for a form that another web site sends through the judge's browser.
    """
    if request.headers.get("origin") not in (None, f"http://{request.headers['host']}"):
        raise HTTPException(403, "this server answers no requests of other web sites")
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    return {key: values[-1] for key, values in fields.items()}


def add(app: FastAPI, judgments: Judgments, title: str, longest: int) -> None:
    """Add the page /judge to an application.

    longest: the largest number of characters of a query.
    """

    @app.get("/judge", response_class=HTMLResponse, include_in_schema=False)
    def shown(query: str = "", index: int = 0) -> str:
        queries = judgments.queries()
        pool = judgments.pool(query) if query in queries else []
        if not 0 <= index < len(pool):
            query, index = judgments.next() or ("", 0)
            pool = judgments.pool(query) if query else []
        passage = pool[index] if pool else None
        grades = judgments.grades()
        return TEMPLATES.get_template("judge.html.j2").render(
            title=title,
            collection=judgments.collection,
            folder=judgments.folder,
            queries=list(queries),
            query_id=query,
            query=queries.get(query, ""),
            done=sum(grade is not SKIPPED for grade in grades.values()),
            pool=pool,
            index=index,
            passage=passage,
            current=grades.get((query, passage.passage_id), -1) if passage else -1,
            grades=GRADES,
            longest=longest,
        )

    @app.post("/judge", include_in_schema=False)
    def act(
        fields: Annotated[dict[str, str], Depends(form)],
        remote_user: Annotated[str, Header()] = "",
    ) -> Response:
        try:
            position = _act(judgments, fields, longest, remote_user)
        except (OSError, sqlite3.Error) as error:  # such as a full disk
            raise HTTPException(500, f"the grade could not be saved: {error}") from None
        except ValueError as error:
            raise HTTPException(422, f"not a form of this page: {error}") from None
        where = ""
        if position:
            where = "?" + urlencode({"query": position[0], "index": position[1]})
        return RedirectResponse(f"/judge{where}", 303)

    @app.get("/judge.js", include_in_schema=False)
    def script() -> Response:
        return Response((FOLDER / "judge.js").read_text(), media_type="text/javascript")


def _act(
    judgments: Judgments, fields: dict[str, str], longest: int, who: str
) -> tuple[str, int] | None:
    """Carry out a button's action; return the query and index to show, None for the next one.

    who: the person that a proxy names, if any.
    """
    choice = fields.get("grade", "")
    if choice == "add":
        text = fields.get("text", "")
        if not text.strip() or len(text) > longest:
            raise InputError(f"the query has {len(text)} characters; expected 1 to {longest}")
        (query,) = judgments.add([text])
        return query, 0
    query = fields.get("query", "")
    index = int(fields.get("index", "0"))
    if choice == "back":
        return judgments.before(query, index) or (query, index)
    grade = SKIPPED if choice == "skip" else int(choice)
    judgments.grade(query, fields.get("passage", ""), grade, who)
    inside = index + 1 < len(judgments.pool(query))
    return (query, index + 1) if inside else None
