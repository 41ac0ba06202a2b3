"""The server: answers as `./run search`, a page without JavaScript, judging, and refusals."""

import re
import sqlite3

import pytest
from made_up import run_of
from served import HOSTILE, Systems, app_of, engine_of, judgments_of
from starlette.testclient import TestClient

from cdmae.errors import InputError
from cdmae.retrieval import asking
from cdmae.serving import server


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_module", lambda name: Systems)
    return engine_of(tmp_path)


def client_of(engine, **options):
    return TestClient(app_of(engine, **options), base_url="http://127.0.0.1:8000")


def test_json_has_the_passages_their_scores_and_those_of_the_parts(engine):
    client = client_of(engine)
    found = client.get("/search", params={"q": "x", "system": "both", "k": 2}).json()
    assert (found["system"], found["collection"], found["passages"]) == ("both", "docs", 4)
    first = found["hits"][0]
    assert first["passage_id"] == "p0"
    assert first["parts"] == {"words": 3.0, "vectors": None}  # the third of three is below depth
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    assert "/search" in client.get("/openapi.json").json()["paths"]
    kept = engine.search("x", "both", "docs", 3).hits
    engine.keep = False
    assert engine.search("x", "both", "docs", 3).hits == kept


def test_the_page_shows_systems_side_by_side_and_escapes_everything(engine):
    page = client_of(engine).get(
        "/", params={"q": HOSTILE, "system": ["words", "both"], "collection": "docs"}
    )
    assert page.status_code == 200 and "<script" not in page.text
    assert page.text.count("<section") == 2 and "&lt;script&gt;" in page.text
    assert page.text.count(">Lists</h3>") == 2, "a title heads its passage"
    assert len(re.findall("checked", page.text)) == 2
    assert "<b>script</b>" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    style = client_of(engine).get("/style.css").text
    assert set(re.findall(r"var\((--[\w-]+)", style)) <= set(re.findall(r"(--[\w-]+):", style))


def test_a_system_may_find_nothing(engine, monkeypatch):
    monkeypatch.setattr(Systems, "answer", lambda system, question: run_of([]))
    page = client_of(engine).get("/", params={"q": "a"}).text
    assert "No passage was found" in page and "best" not in page


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/search?q=%20", 422, "q is empty"),
        ("/search?q=" + "a" * (server.LONGEST + 1), 422, "2000"),
        ("/search?q=a&k=101", 422, "k: Input should be less"),
        ("/search?q=a&depth=3", 422, "depth is not a parameter"),
        ("/search", 422, "q: Field required"),
        ("/?q=a&systen=words", 422, "did you mean system?"),
        ("/?q=" + "a" * (server.LONGEST + 1), 422, "2000"),
        ("/search?q=a&system=wrods", 422, "did you mean words?"),
        ("/search?q=a&collection=x", 422, "expected docs"),
        ("/?q=a&system=both&system=words&system=vectors", 422, "3 systems are chosen"),
        ("/?q=a&collection=%3Cb%3E", 422, "&lt;b&gt; is not a collection"),
        ("/judge", 404, "Not Found"),
    ],
)
def test_wrong_requests_get_a_reason(engine, monkeypatch, path, status, words):
    """A text in JSON for a program, and a page for a browser."""
    monkeypatch.setattr(server, "SIDE_BY_SIDE", 2)
    answer = client_of(engine).get(path)
    assert answer.status_code == status and words in answer.text
    if answer.headers["content-type"] == "application/json":
        assert isinstance(answer.json()["detail"], str)
    page = client_of(engine).get(path, headers={"Accept": "text/html"})
    assert page.status_code == status and 'role="alert"' in page.text


def test_passages_are_judged_by_buttons_and_not_from_other_web_sites(engine, tmp_path):
    judgments = judgments_of(engine, tmp_path / "judged")
    client = client_of(engine, judging=judgments)
    assert "no query yet" in client.get("/judge").text
    form = {"grade": "add", "text": "lists"}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert client.post("/judge", data=form, headers=headers).status_code in (400, 403)
    page = client.post("/judge", data=form, headers={"Origin": "http://127.0.0.1:8000"}).text
    assert "Query 1 of 1, passage 1 of 4" in page and "words" not in page
    for grade in ("2", "skip", "back", "0", "1", "3"):
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        who = {"Remote-User": "ann"} if grade == "2" else {}  # set by a proxy
        page = client.post("/judge", data={**fields, "grade": grade}, headers=who).text
    assert "All passages are judged" in page and "4 grades" in page
    assert sorted(judgments.grades().values()) == [0, 1, 2, 3]
    with sqlite3.connect(tmp_path / "judged/judgments.sqlite") as database:
        given = database.execute("SELECT who FROM grades WHERE grade IN (1, 2) ORDER BY rowid")
        assert given.fetchall() == [("ann",), ("me",)]
    assert "passage 4 of 4" in client.post("/judge", data={"grade": "back"}).text
    assert client.post("/judge", content=b"x" * 40000).status_code == 413
    for wrong in ({"grade": "7"}, {"grade": "up"}, {"grade": "add", "text": " "}):
        assert client.post("/judge", data=wrong).status_code == 422


def test_a_taken_port_is_an_error():
    bound = server.listen(0)
    with bound, pytest.raises(InputError, match="give another --port"):
        server.listen(bound.getsockname()[1])
