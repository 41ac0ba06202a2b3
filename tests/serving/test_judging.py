"""Judgments: nothing is lost, the pool hides its systems, and the folder is read as it is."""

import sqlite3
import threading
from types import SimpleNamespace

import pytest
import yaml
from served import Systems, engine_of
from small_collections import stored

from cdmae.collections.sources import queries
from cdmae.commands.serving import judging_of
from cdmae.errors import InputError
from cdmae.retrieval import asking
from cdmae.serving import judging
from cdmae.serving.judging import SKIPPED, Judgments, Passage, read_queries

PASSAGES = [Passage(f"p{n}", "", f"text {n}") for n in range(6)]


def opened(folder, name="docs", pooled=PASSAGES[:4], systems=("bm25", "dense"), who="me"):
    about = {"collection": name, "passages": len(PASSAGES), "who": who}
    return Judgments(folder, lambda query: pooled, list(systems), **about)


def grade_all(judgments):
    order = []
    while position := judgments.next():
        query, index = position
        passage = judgments.pool(query)[index].passage_id
        judgments.grade(query, passage, len(order) % 4)
        order.append((query, passage))
    return order


def test_grades_are_queries_of_the_collection_and_the_newest_counts(tmp_path):
    first = opened(tmp_path)
    ids = first.add(["what is  it", "who\u2028is it", "what is it"])
    assert ids[0] == ids[2] and len(first.queries()) == 2
    order = grade_all(first)
    pools = [[passage.passage_id for passage in first.pool(query)] for query in ids[:2]]
    assert pools[0] != pools[1]  # random
    first.grade(*order[0], 3)
    first.grade(*order[1], SKIPPED)
    again = opened(tmp_path)
    assert [passage.passage_id for passage in again.pool(ids[0])] == pools[0]
    grades = again.grades()
    assert again.next() is None and grades[order[0]] == 3 and grades[order[1]] is None
    stored(tmp_path / "docs", [(each.passage_id, each.title, each.text) for each in PASSAGES])
    collection = queries.Settings(of=str(tmp_path / "docs"), path=str(tmp_path)).load()
    written = collection.qrels["test"].set_index(["query_id", "passage_id"])["grade"].to_dict()
    assert written == {pair: grade for pair, grade in grades.items() if grade is not None}
    for pair in order:
        again.grade(*pair, SKIPPED)
    assert not list(tmp_path.rglob("test.tsv")), "all grades are withdrawn"


def test_two_persons_lose_nothing(tmp_path):
    queries = opened(tmp_path).add([f"query {number}" for number in range(4)])

    def window(who):
        judgments = opened(tmp_path, who=who)
        for query in queries:
            for passage in judgments.pool(query):
                judgments.grade(query, passage.passage_id, 1)

    threads = [threading.Thread(target=window, args=(who,)) for who in ("me", "you")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sqlite3.connect(tmp_path / judging.FILE) as database:
        given = database.execute("SELECT who, query_id, passage_id FROM grades").fetchall()
    assert len(given) == len(set(given)) == 2 * 4 * 4
    assert len((tmp_path / "qrels/test.tsv").read_text().splitlines()) == 1 + 4 * 4


def test_a_grade_that_cannot_be_written_is_not_recorded(tmp_path):
    judgments = opened(tmp_path)
    (query,) = judgments.add(["what"])
    judgments.pool(query)
    (tmp_path / "qrels").write_text("not a folder")
    with pytest.raises(OSError, match="qrels"):
        judgments.grade(query, "p0", 1)
    for passage, grade in (("p5", 1), ("p0", 4), ("p0", -1)):
        with pytest.raises(InputError, match="not in the pool|expected 0 to 3"):
            judgments.grade(query, passage, grade)
    assert not judgments.grades()


def test_a_folder_belongs_to_one_collection_and_other_programs_files_stay(tmp_path):
    opened(tmp_path / "a")
    with pytest.raises(InputError, match="judgments of docs .*give another folder"):
        opened(tmp_path / "a", "others")
    (tmp_path / "b/qrels").mkdir(parents=True)
    (tmp_path / "b/judgments.jsonl").write_text("{}\n")  # of an earlier version
    with pytest.raises(InputError, match="contains qrels but no judgments.sqlite"):
        opened(tmp_path / "b")


def test_the_folder_comes_with_its_overlay_of_a_config(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_module", lambda name: Systems)
    (tmp_path / "queries.txt").write_text("lists\n\n", encoding="utf-8-sig")
    engine = engine_of(tmp_path)
    asked = {"measures": ("RR@10", "Judged@10"), "lengths": {"docs": 64}}
    config = SimpleNamespace(evaluation=SimpleNamespace(**asked))
    texts = read_queries(tmp_path / "queries.txt")

    assert texts == ["lists"]

    def opened(systems, depth):
        return judging_of(config, engine, tmp_path / "judged", "docs", texts, systems, depth)

    made = opened(["words"], 1)
    (query,) = made.queries()
    assert [passage.passage_id for passage in made.pool(query)] == ["p0"]
    assert len(opened(["words"], 2).pool(query)) == 2
    made = opened(["words", "vectors"], 2)
    assert len(made.pool(query)) == 4
    overlay = yaml.safe_load((tmp_path / "judged/evaluation.yaml").read_text())
    assert overlay["evaluation"] == {
        "collections": {"docs-judged": ["test"]},
        "measures": ["RR@10", "Judged@10"],
        "lengths": {"docs-judged": 64},
    }
    source = overlay["collections"]["docs-judged"]
    assert source == {"source": "queries", "of": "docs", "path": str(tmp_path / "judged")}
    (tmp_path / "judged/evaluation.yaml").write_text("changed")
    opened(["words"], 1)
    assert (tmp_path / "judged/evaluation.yaml").read_text() == "changed"
