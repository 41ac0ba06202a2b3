"""The server: answers as `./run search`, a page without JavaScript, and refusals."""

import re
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from cdmae.collections.store import Collection, write_collection
from cdmae.retrieval import asking
from cdmae.runs import Run
from cdmae.serving import server
from cdmae.serving.engine import Engine, Kept
from cdmae.serving.judging import Judgments, Passage
from cdmae.serving.judging_page import Judging

HOSTILE = '<script>alert(1)</script>" onload="x'
TEXTS = ["merge two lists", HOSTILE, "parse a date", "read a file"]
SCORES = {"words": [3, 2, 1, 0], "vectors": [0, 1, 2, 3]}


class Systems:
    """Systems with fixed scores, in place of the modules of `cdmae.retrieval`."""

    @staticmethod
    def answer(system, question):
        if question.parts:
            scores = sum(np.bincount(part.passages, part.scores, 4) for part in question.parts)
        else:
            scores = question.load(np.asarray, tuple(SCORES[system["name"]]))
        best = np.argsort(-scores, kind="stable")[: question.depth]
        return Run.of([best.astype(np.int32)], [scores[best].astype(np.float32)])


@pytest.fixture
def engine(tmp_path, monkeypatch):
    import pandas as pd
    import pyarrow as pa

    passages = pa.table(
        {
            "passage_id": [f"p{row}" for row in range(len(TEXTS))],
            "title": ["", "", "", "Files"],
            "text": TEXTS,
        }
    )
    queries = {"test": pd.DataFrame({"query_id": ["q"], "text": ["a query"]})}
    write_collection(tmp_path / "docs", Collection(passages, queries, {}, {}))
    monkeypatch.setattr(asking, "_module", lambda name: Systems)
    parts = [{"name": name, "parts": [], "answered_by": ""} for name in SCORES]
    both = {"name": "both", "parts": parts, "answered_by": ""}
    systems = {system["name"]: system for system in [*parts, both]}
    return Engine(
        {"docs": systems},
        {"docs": tmp_path / "docs"},
        depth=3,
        lengths={},
        summaries={"docs": {0: "A cut sentence"}},
    )


def client_of(engine, **options):
    app = server.make(engine, title="Test", system="words", host="127.0.0.1", threads=1, **options)
    return TestClient(app, base_url="http://127.0.0.1:8000")


def test_json_has_the_passages_their_scores_and_those_of_the_parts(engine):
    found = client_of(engine).get("/search", params={"q": "x", "system": "both", "k": 2}).json()
    assert (found["system"], found["collection"]) == ("both", "docs")
    first = found["hits"][0]
    assert first["passage_id"] == "p0" and first["summary"] == "A cut sentence"
    assert first["parts"] == {"words": 3.0, "vectors": None}  # the third of three is below depth
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]


def test_the_page_shows_systems_side_by_side_and_escapes_everything(engine):
    page = client_of(engine).get(
        "/", params={"q": HOSTILE, "system": ["words", "both"], "collection": "docs"}
    )
    assert page.status_code == 200 and "<script" not in page.text
    assert page.text.count("<section") == 2 and "&lt;script&gt;" in page.text
    assert len(re.findall("checked", page.text)) == 2
    assert "script-src 'self'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/search", 422, "q"),
        ("/search?q=%20", 422, "q is empty"),
        ("/search?q=" + "a" * (server.LONGEST + 1), 422, "2000"),
        ("/search?q=a&k=0", 422, "greater"),
        ("/search?q=a&k=101", 422, "less"),
        ("/search?q=a&system=wrods", 404, "did you mean words?"),
        ("/search?q=a&collection=x", 404, "allowed: docs"),
        ("/?q=a&system=both&system=words&system=vectors&system=x", 422, "3"),
        ("/judge", 404, "Not Found"),
        ("/../../etc/passwd", 404, "Not Found"),
    ],
)
def test_wrong_requests_get_a_reason(engine, path, status, words):
    answer = client_of(engine).get(path)
    assert answer.status_code == status and words in answer.text


def test_other_hosts_and_origins_are_refused(engine):
    client = client_of(engine)
    assert client.get("/systems", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/systems", headers={"Host": "localhost:8000"}).status_code == 200
    assert client.get("/systems", headers={"Origin": "http://evil.example"}).status_code == 403
    own = {"Origin": "http://127.0.0.1:8000"}
    assert client.get("/systems", headers=own).status_code == 200


def test_an_address_may_not_ask_without_limit(engine, monkeypatch):
    monkeypatch.setattr(server, "RATE", 5)
    monkeypatch.setattr(server.time, "monotonic", lambda: 7.0)
    client = client_of(engine)
    codes = [client.get("/systems").status_code for _ in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_models_are_loaded_once():
    calls = []

    def load(name):
        calls.append(name)
        return name.upper()

    kept = Kept()
    assert [kept(load, name) for name in ("a", "b", "a")] == ["A", "B", "A"]
    assert calls == ["a", "b"]


def test_the_interface_is_described(engine):
    client = client_of(engine)
    assert "/search" in client.get("/openapi.json").json()["paths"]
    assert "<code>collection</code>" in client.get("/docs").text


def test_passages_are_judged_by_buttons_and_keys(engine, tmp_path):
    def pool(text):
        hits = engine.pool(text, "docs", 2)
        return [Passage(hit.passage_id, hit.title, hit.text) for hit in hits]

    judgments = Judgments(tmp_path / "judged", [], pool, list(SCORES))
    client = client_of(engine, judging=Judging(judgments, "docs", "me"))
    assert "no query yet" in client.get("/judge").text
    page = client.post("/judge", data={"grade": "add", "text": "lists"}).text
    assert "Query 1 of 1, passage 1 of 4" in page and "words" not in page
    for grade in ("2", "skip", "back", "0", "1", "3"):
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        page = client.post("/judge", data={**fields, "grade": grade}).text
    assert "All passages are judged" in page and "4 grades" in page
    assert sorted(judgments.grades.values()) == [0, 1, 2, 3]
    assert client.post("/judge", content=b"x" * 20000).status_code == 413
    assert client.post("/judge", data={"grade": "7"}).status_code == 422
    script = Path(server.__file__).with_name("templates") / "judge.js"
    assert client.get("/judge.js").text == script.read_text()
