"""The server: answers as `./run search`, a page without JavaScript, and refusals."""

import re
from pathlib import Path

import pytest
from served import HOSTILE, Systems, app_of, engine_of, judging_of
from starlette.testclient import TestClient

from cdmae.retrieval import asking
from cdmae.serving import server
from cdmae.serving.engine import Kept


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_module", lambda name: Systems)
    return engine_of(tmp_path)


def client_of(engine, **options):
    return TestClient(app_of(engine, **options), base_url="http://127.0.0.1:8000")


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
    assert "<b>script</b>" in page.text and "A cut sentence" in page.text
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
        ("/search?q=a&collection=x", 404, "expected docs"),
        ("/?q=a&system=both&system=words&system=vectors&system=x", 404, "is not a system"),
        ("/?q=" + "a" * (server.LONGEST + 1), 422, "2,001 characters; allowed: up to 2,000"),
        ("/?q=a&collection=%3Cb%3E", 404, "&lt;b&gt; is not a collection"),
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
    judging = judging_of(engine, tmp_path / "judged")
    client = client_of(engine, judging=judging)
    assert "no query yet" in client.get("/judge").text
    page = client.post("/judge", data={"grade": "add", "text": "lists"}).text
    assert "Query 1 of 1, passage 1 of 4" in page and "words" not in page
    for grade in ("2", "skip", "back", "0", "1", "3"):
        fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
        page = client.post("/judge", data={**fields, "grade": grade}).text
    assert "All passages are judged" in page and "4 grades" in page
    assert sorted(judging.judgments.grades.values()) == [0, 1, 2, 3]
    assert client.post("/judge", content=b"x" * 40000).status_code == 413
    assert client.post("/judge", data={"grade": "7"}).status_code == 422
    script = Path(server.__file__).with_name("templates") / "judge.js"
    assert client.get("/judge.js").text == script.read_text()
