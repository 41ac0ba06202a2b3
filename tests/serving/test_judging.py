"""Judgments: nothing is lost, the pool hides its systems, and the folder is a BEIR collection."""

import json
import threading
from types import SimpleNamespace

import pytest
import yaml
from served import Systems, engine_of

from cdmae.collections.sources import beir
from cdmae.commands.judgments import judging_of
from cdmae.errors import InputError
from cdmae.retrieval import asking
from cdmae.serving import judging
from cdmae.serving.judging import SKIPPED, Judgments, Passage, read_queries

CORPUS = [{"passage_id": f"p{n}", "title": "", "text": f"text {n}"} for n in range(6)]


def pool(query):
    return [Passage(each["passage_id"], each["title"], each["text"]) for each in CORPUS[:4]]


def opened(folder, name="docs", pool=pool, systems=("bm25", "dense")):
    about = {"collection": name, "passages": len(CORPUS)}
    return Judgments(folder, iter(CORPUS), pool, list(systems), about)


def grade_all(judgments):
    order = []
    while at := judgments.next():
        query, index = at
        passage = judgments.pool(query).passages[index].passage_id
        judgments.grade(query, passage, len(order) % 4, "me")
        order.append((query, passage))
    return order


def test_grades_are_a_beir_collection_and_survive_a_new_process(tmp_path):
    first = opened(tmp_path)
    queries = [first.add("what is  it"), first.add("who"), first.add("what is it")]
    assert queries[0] == queries[2] and len(first.queries) == 2
    order = grade_all(first)
    first.grade(*order[0], 3, "you")
    first.grade(*order[1], SKIPPED, "you")
    first.close()

    again = opened(tmp_path)
    assert again.next() is None and again.grades[order[0]] == 3 and again.grades[order[1]] is None
    collection = beir.Settings(path=str(tmp_path)).load()
    grades = collection.qrels["test"].set_index(["query_id", "passage_id"])["grade"].to_dict()
    assert grades == {pair: grade for pair, grade in again.grades.items() if grade is not None}
    assert sum(batch.num_rows for batch in collection.passages) == len(CORPUS)
    record = json.loads((tmp_path / "judgments.jsonl").read_text().splitlines()[-1])
    assert {"who", "when", "pool"} <= set(record)


def test_a_pool_has_a_fixed_random_order(tmp_path):
    orders = []
    for name in ("a", "b"):
        judgments = opened(tmp_path / name)
        ids = [judgments.add(text) for text in ("one", "two", "three")]
        orders.append([[each.passage_id for each in judgments.pool(own).passages] for own in ids])
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders[0]}) > 1


def test_two_windows_lose_nothing(tmp_path):
    judgments = opened(tmp_path)
    queries = [judgments.add(f"query {number}") for number in range(8)]

    def window(who):
        for query in queries:
            for passage in judgments.pool(query).passages:
                judgments.grade(query, passage.passage_id, 1, who)

    threads = [threading.Thread(target=window, args=(who,)) for who in ("me", "you")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = (tmp_path / "judgments.jsonl").read_text().splitlines()
    given = {(line["who"], line["query_id"], line["passage_id"]) for line in map(json.loads, log)}
    assert len(log) == len(given) == 2 * 8 * 4
    assert len((tmp_path / "qrels/test.tsv").read_text().splitlines()) == 1 + 8 * 4


def test_a_new_system_extends_the_pools_and_grades_stay(tmp_path):
    first = opened(tmp_path)
    query = first.add("what")
    grade_all(first)
    first.close()

    def wider(query):
        return [Passage(each["passage_id"], each["title"], each["text"]) for each in CORPUS[3:]]

    again = opened(tmp_path, pool=wider, systems=["bm25", "new"])
    asked = [passage.passage_id for passage in again.pool(query).passages]
    assert sorted(asked) == ["p0", "p1", "p2", "p3", "p4", "p5"]
    assert {asked[index] for _, index in [again.next()]} <= {"p4", "p5"}
    assert len(grade_all(again)) == 2 and len(again.grades) == 6
    again.close()
    third = opened(tmp_path)  # fewer systems: nothing is pooled again
    assert third.pool(query).systems == ["bm25", "dense", "new"]


def test_a_line_that_a_kill_cut_is_dropped_and_the_rest_is_kept(tmp_path):
    first = opened(tmp_path)
    query = first.add("line\u2028separators stay")
    order = grade_all(first)
    first.close()
    with open(tmp_path / "judgments.jsonl", "a") as log:
        log.write('{"query_id": "q')
    again = opened(tmp_path)
    assert list(again.queries) == [query] and set(again.grades) == set(order)


def test_a_folder_belongs_to_one_collection_and_damaged_lines_are_named(tmp_path):
    first = opened(tmp_path)
    query = first.add("what")
    grade_all(first)
    first.close()
    with pytest.raises(InputError, match="judgments of .*docs.*give another folder"):
        opened(tmp_path, "others")
    (tmp_path / "judgments.jsonl").write_text(f'{{"query_id": "{query}"}}\n')
    with pytest.raises(InputError, match="judgments.jsonl, line 1 .*keys grade"):
        opened(tmp_path)


def test_a_grade_that_the_disk_refuses_is_not_recorded(tmp_path, monkeypatch):
    judgments = opened(tmp_path)
    query = judgments.add("what")
    first, second = (passage.passage_id for passage in judgments.pool(query).passages[:2])
    judgments.grade(query, first, 2, "me")
    before = (tmp_path / "judgments.jsonl").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(judging.os, "fsync", full)
        judgments.grade(query, second, 1, "me")
    assert (tmp_path / "judgments.jsonl").read_bytes() == before
    assert set(judgments.grades) == {(query, first)}


def test_two_processes_do_not_open_a_folder_and_foreign_judgments_stay(tmp_path):
    first = opened(tmp_path / "a")
    with pytest.raises(InputError, match="judged by another process"):
        opened(tmp_path / "a")
    first.close()
    (tmp_path / "b/qrels").mkdir(parents=True)
    (tmp_path / "b/qrels/test.tsv").write_text("q1\tp1\t1\n")
    with pytest.raises(InputError, match="contains qrels of a collection that was not made"):
        opened(tmp_path / "b")


@pytest.mark.parametrize(("passage", "grade"), [("p5", 1), ("p0", 4), ("p0", -1)])
def test_a_grade_outside_of_the_pool_or_the_scale_is_refused(tmp_path, passage, grade):
    judgments = opened(tmp_path)
    query = judgments.add("what")
    judgments.pool(query)
    with pytest.raises(InputError, match="not in the pool|allowed: 0 to 3"):
        judgments.grade(query, passage, grade, "me")
    assert not judgments.grades


def test_queries_come_from_lines_or_from_json_lines(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n two \n")
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    assert read_queries(tmp_path / "a.txt") == read_queries(tmp_path / "b.jsonl") == ["one", "two"]
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n{"query": "two"}\n')
    with pytest.raises(InputError, match=r"b.jsonl, line 2"):
        read_queries(tmp_path / "b.jsonl")


def test_the_folder_comes_with_its_overlay_of_a_config(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "_module", lambda name: Systems)
    engine = engine_of(tmp_path)
    asked = {"measures": ("RR@10", "Judged@10"), "lengths": {"docs": 64}}
    config = SimpleNamespace(evaluation=SimpleNamespace(**asked))
    made = judging_of(config, engine, tmp_path / "judged", "docs", ["lists"])
    (query,) = made.judgments.queries
    assert len(made.judgments.pool(query).passages) == 4
    assert "A cut sentence" in {each.title for each in made.judgments.pool(query).passages}
    made.judgments.grade(query, "p0", 2, made.who)
    overlay = yaml.safe_load((tmp_path / "judged/evaluation.yaml").read_text())
    assert overlay["evaluation"] == {
        "collections": {"docs-judged": ["test"]},
        "measures": ["RR@10", "Judged@10"],
        "lengths": {"docs-judged": 64},
    }
    path = overlay["collections"]["docs-judged"]["path"]
    assert beir.Settings(path=path).load().qrels["test"]["grade"].tolist() == [2]
