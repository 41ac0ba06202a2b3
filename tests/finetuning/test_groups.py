"""Properties of the groups that the trainers learn from."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tiny_training import stage

from cdmae.collections.store import Collection, write_collection
from cdmae.config.systems import WHOLE
from cdmae.errors import InputError
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing
from cdmae.finetuning.selection import Selection
from cdmae.finetuning.teacher import Teacher
from cdmae.retrieval import trec
from cdmae.runs import Run, write_run

PASSAGES, QUERIES = 60, 12


def passages_of(
    folder: Path, titles: list[str], texts: list[str], *rest: dict[str, pd.DataFrame]
) -> Path:
    """Write a collection; `rest`: queries and judgments."""
    names = [f"p{row}" for row in range(len(texts))]
    passages = pa.table({"passage_id": names, "title": titles, "text": texts})
    write_collection(folder, Collection(passages, *(rest or ({}, {})), {}))
    return folder


def qrels_of(pairs: list[tuple[int, int, int]]) -> pd.DataFrame:
    return pd.DataFrame(pairs, columns=["query", "passage", "grade"]).astype(
        {"query": "int32", "passage": "int32"}
    )


@pytest.fixture
def run():
    """Every query's list: 20 passages, its positives (row q, and q + 12 for the even ones) among
    them.
    """
    generator = np.random.default_rng(5)
    lists = []
    for query in range(QUERIES):
        rest = np.setdiff1d(np.arange(PASSAGES), [query, query + 12])
        lists.append(
            np.concatenate([[query, query + 12], generator.choice(rest, 18, replace=False)])[:20]
        )
    return Run.of(lists, [np.arange(20, 0, -1, dtype=np.float32)] * QUERIES)


QRELS = qrels_of([(q, p, 1) for q in range(QUERIES) for p in ([q, q + 12] if q % 2 == 0 else [q])])


def make(run: Run, qrels: pd.DataFrame = QRELS, texts: np.ndarray | None = None, **changed: int):
    settings = {"depth": 20, "group": 8, "random_negatives": 3, "seed": 42} | changed
    texts = np.arange(PASSAGES) if texts is None else texts
    ranking = settings.pop("ranking", None)
    drawing = Drawing("train", **settings)
    selection = groups.select(run, qrels, texts, drawing, ranking)
    return groups.examples_of(selection, drawing), selection.counts()


def test_no_positive_and_no_passage_twice_in_any_group(run):
    examples, _ = make(run)
    for epoch in range(20):
        for row, group in zip(
            examples.queries, examples.draw(np.arange(len(examples)), epoch), strict=True
        ):
            positives = set(QRELS.loc[QRELS["query"] == row, "passage"])
            assert group[0] in positives
            assert not positives & set(group[1:].tolist())
            assert len(set(group.tolist())) == 8


def test_the_positive_rotates_with_the_epoch(run):
    examples, _ = make(run)
    firsts = [examples.draw(np.array([0, 1]), epoch)[:, 0].tolist() for epoch in range(4)]
    assert firsts == [[0, 1], [12, 1], [0, 1], [12, 1]]


def test_groups_depend_on_seed_epoch_and_query_and_on_nothing_else(run):
    examples, _ = make(run)
    alone = np.concatenate([examples.draw(np.array([row]), 3) for row in range(QUERIES)])
    assert (examples.draw(np.arange(QUERIES), 3) == alone).all()
    assert (make(run)[0].draw(np.arange(QUERIES), 3) == alone).all()
    assert (examples.draw(np.arange(QUERIES), 4) != alone).any()
    assert (make(run, seed=43)[0].draw(np.arange(QUERIES), 3) != alone).any()
    fewer, _ = make(
        run, QRELS[QRELS["query"] != 2]
    )  # a query less does not change what the others draw
    assert (fewer.draw(np.arange(QUERIES - 1), 3) == np.delete(alone, 2, axis=0)).all()


def test_negatives_come_from_the_pool_which_depth_cuts_by_places_and_all_of_it_is_drawn_some_day(
    run,
):
    examples, _ = make(run)
    pool = set(examples.pool(1).tolist())
    assert set(examples.mined[1].tolist()) < pool
    assert len(pool) == len(examples.mined[1]) + 3
    drawn = {
        int(each) for epoch in range(60) for each in examples.draw(np.array([1]), epoch)[0, 1:]
    }
    assert drawn == pool
    # the first place is the positive
    examples, _ = make(run, depth=9)
    assert examples.mined[1].tolist() == run.ranked(1)[0][1:9].tolist()


def test_passages_with_the_text_of_a_positive_are_no_negatives(run):
    texts = np.arange(PASSAGES)
    duplicate = int(run.ranked(3)[0][5])
    texts[duplicate] = texts[3]
    examples, counts = make(run, texts=texts)
    assert duplicate not in examples.mined[3]
    assert counts["negatives removed as copies of a judged passage"] == 1
    drawn = [examples.draw(np.array([3]), epoch)[0, 1:] for epoch in range(50)]
    assert duplicate not in np.concatenate(drawn)


def test_what_the_judgments_exclude_is_never_drawn_and_what_they_call_irrelevant_is(run):
    """Neither mined, nor at random, nor from another group of the batch, nor in a copy; in `run`
    there are 20 of 60.
    """
    mined, other, copy = (
        int(run.ranked(3)[0][5]),
        *np.setdiff1d(np.arange(24, PASSAGES), run.ranked(3)[0])[:2].tolist(),
    )
    texts = np.arange(PASSAGES)
    texts[copy] = texts[other]
    judged = [(query, query, 1) for query in range(QUERIES)] + [
        (3, mined, -100),
        (3, other, -100),
        (3, 15, 0),
    ]
    examples, _ = make(run, qrels_of(sorted(judged)), texts, random_negatives=50)
    pool = set(examples.pool(3).tolist())
    assert pool == set(range(PASSAGES)) - {3, mined, other, copy}
    assert examples.positives[3].tolist() == [3]
    excluded = examples.excluded(
        np.array([2, 3]), np.array([[2, other, 30], [3, 31, 32]], np.int32)
    )
    assert excluded.nonzero()[1].tolist() == [1] and excluded[1, 1]


def test_what_is_left_out_is_counted(run):
    lists = [run.ranked(query) for query in range(QUERIES)]
    passages = [each[0] for each in lists]
    passages[4], passages[5] = passages[4][:2], passages[5][:4]  # only positives; three negatives
    shorter = Run.of(passages, [np.ones(len(each), np.float32) for each in passages])
    examples, counts = make(shorter, QRELS[QRELS["query"] != 7])
    assert sorted(set(range(QUERIES)) - set(examples.queries.tolist())) == [4, 7]
    assert counts["left out without a relevant passage"] == 1
    assert counts["left out without negatives"] == 1
    assert counts["with short lists, completed by random passages"] == 1
    row = int(np.flatnonzero(examples.queries == 5)[0])
    assert len(examples.pool(row)) == 7
    assert set(passages[5][1:].tolist()) < set(examples.pool(row).tolist())


def test_the_margin_by_hand():
    """Kept is s <= .75 x 8 = 6 for the one positive that the run ranks; nothing where it ranks none
    within the depth.

    No list names passages 20 to 31, which random ones come from.
    """
    scored = {7: 9.0, 0: 8.0, 8: 7.0, 5: 6.25, 9: 6.0, 6: 1.0}
    lists = [list(scored), [7, 8, 9, 1], [2, 7, 3, 8, 9]]
    scores = [list(scored.values()), [4.0, 3.0, 2.0, 1.0], [8.0, 6.5, 5.0, 4.5, 3.0]]
    run = Run.of([np.array(rows) for rows in lists], [np.array(own) for own in scores])
    qrels = qrels_of([(0, 0, 1), (0, 10, 1), (1, 1, 1), (2, 2, 1), (2, 3, 1)])
    how = {"depth": 5, "group": 3, "random_negatives": 2, "margin": 0.25, "texts": np.arange(32)}
    examples, counts = make(run, qrels, **how)
    assert [examples.mined[row].tolist() for row in range(3)] == [
        [9],
        [],
        [8, 9],
    ]  # query 2: its best has 8, too
    assert {what: count for what, count in counts.items() if count} == {
        "mined negatives removed by the margin": 7,
        "mined negatives left by it": 3,
        "with random negatives only, because the margin removed all mined ones": 1,
    }
    everything, _ = make(run, qrels, **how | {"random_negatives": 32})
    suspects = [{7, 0, 8, 5, 10}, {7, 8, 9, 1}, {2, 7, 3}]
    assert [set(everything.pool(row).tolist()) for row in range(3)] == [
        set(range(32)) - own for own in suspects
    ]
    drawn = np.array(
        [[0, 20, 21], [1, 8, 22], [2, 9, 7]], np.int32
    )  # nor are they negatives from another group
    excluded = examples.excluded(np.arange(3), drawn)
    assert [drawn.ravel()[row].tolist() for row in excluded] == [[8, 7], [8, 9, 7], [7]]
    deeper, _ = make(run, qrels, **how | {"depth": 6})
    assert [deeper.mined[row].tolist() for row in range(3)] == [[9, 6], [], [8, 9]]


def test_a_margin_takes_copies_of_what_it_removes_and_leaves_the_other_draws(run):
    """Scores are 20 to 1 by rank, and the positive is first: up to 18 is kept with a margin of .1."""
    first, *rest = run.ranked(1)[0]
    texts = np.arange(PASSAGES)
    texts[rest[7]] = texts[rest[0]]
    examples, counts = make(run, QRELS[QRELS["query"] == 1], texts, margin=0.1)
    assert first == 1 and examples.mined[0].tolist() == [*rest[1:7], *rest[8:]]
    assert counts["mined negatives removed by the margin"] == 2
    without, near = (make(run, margin=margin)[0] for margin in (0.0, 1e-9))
    assert (without.draw(np.arange(QUERIES), 0) == near.draw(np.arange(QUERIES), 0)).all()


@pytest.mark.parametrize("score", [0.0, -3.0])
def test_a_margin_needs_scores_of_which_a_share_is_a_distance(score):
    run = Run.of([np.array([0, 1])], [np.array([score, score - 1])])
    with pytest.raises(
        InputError,
        match=rf"margin is 0.05, a share of .* is {score:g} for query 0 of the run",
    ):
        make(run, qrels_of([(0, 0, 1)]), margin=0.05)
    assert make(
        Run.of([np.array([2, 1])], [np.array([score, score])]), qrels_of([(0, 0, 1)]), margin=0.05
    ), "unranked"


def test_a_teacher_that_ranks_some_passages_limits_the_groups_to_them(run, tmp_path):
    """Query 0: one of two positives and 5 of its negatives; 1: no positive; 2: too few negatives;
    the rest as it is.
    """
    ranked = [run.ranked(query)[0].tolist() for query in range(QUERIES)]
    others = np.setdiff1d(np.arange(24, PASSAGES), ranked[0])
    ranked[0] = [ranked[0][4], 12, *ranked[0][10:14], int(others[0])]
    ranked[1], ranked[2] = ranked[1][1:], ranked[2][:5]
    lines = [
        f"q{query} Q0 p{passage} {rank} {50 - rank - query / 8} theirs\n"
        for query, passages in enumerate(ranked)
        for rank, passage in enumerate(passages)
    ]
    (tmp_path / "theirs.run").write_text("".join(lines))
    ids = [f"q{row}" for row in range(QUERIES)], [f"p{row}" for row in range(PASSAGES)]
    theirs = trec.read_run(tmp_path / "theirs.run", *ids, WHOLE)
    examples, counts = make(run, ranking=theirs, group=6, random_negatives=0)
    assert examples.queries.tolist() == [0, *range(3, QUERIES)]
    assert examples.positives[0].tolist() == [12] and set(examples.mined[0].tolist()) == {
        ranked[0][0],
        *ranked[0][2:6],
    }
    assert examples.barred[0].tolist() == [0, 12], (
        "of another group, what is judged is no negative still"
    )
    assert {what: count for what, count in counts.items() if count} == {
        "left out because the teacher ranks no judged passage": 1,
        "left out because the teacher ranks too few negatives": 1,
        "mined negatives removed as not ranked by the teacher": 13,
    }
    written = {(line.split()[0], line.split()[2]): np.float32(line.split()[4]) for line in lines}
    for epoch in range(3):
        drawn = examples.draw(np.arange(len(examples)), epoch)
        scores = Teacher(theirs, "t").scores(examples.queries, drawn)
        for query, passages, own in zip(examples.queries, drawn, scores, strict=True):
            assert own.tolist() == [written[f"q{query}", f"p{passage}"] for passage in passages]


def test_a_grade_of_zero_or_a_judged_passage_that_is_not_there_is_no_positive(run):
    examples, _ = make(run, qrels_of([(0, 0, 1), (0, 12, 0)]))
    assert examples.positives[0].tolist() == [0]
    assert 12 in examples.mined[0]
    examples, counts = make(run, qrels_of([(0, 0, 1), (0, PASSAGES, 1), (1, PASSAGES, 2)]))
    assert examples.positives[0].tolist() == [0]
    assert examples.queries.tolist() == [0]
    assert counts["left out without a relevant passage"] == QUERIES - 1


def test_a_collection_too_small_for_the_group_is_an_error(run):
    examples, _ = make(run, group=70)
    for find_out in (examples.check, lambda: examples.draw(np.array([0]), 0)):
        with pytest.raises(InputError, match="query 0 .* group is 70; allowed: at most 59"):
            find_out()
    examples, _ = make(run, group=59)
    examples.check()
    texts = np.arange(PASSAGES)
    texts[50] = texts[4]
    examples, _ = make(run, group=59, texts=texts)
    with pytest.raises(InputError, match="query 4 .* group is 59; allowed: at most 58"):
        examples.check()


def test_batches_visit_every_example_once_an_epoch_and_resume_anywhere(run):
    examples, _ = make(run)
    steps = list(examples.batches(5, 6))
    assert [(step, epoch) for step, epoch, _ in steps] == [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, 2),
    ]
    for epoch in range(3):
        seen = np.concatenate([batch for _, of, batch in steps if of == epoch])
        assert len(set(seen.tolist())) == 10
    for start in range(7):
        rest = list(examples.batches(5, 6, start))
        assert all((a[2] == b[2]).all() for a, b in zip(rest, steps[start:], strict=True))


def test_batches_of_one_topic_visit_every_example_once_and_resume_anywhere(run):
    examples, _ = make(run)
    topics = np.arange(len(examples)) % 3
    examples = replace(examples, topics=topics)
    steps = list(examples.batches(2, 12))
    per_epoch = len(examples) // 2
    seen = np.concatenate([batch for *_, batch in steps[:per_epoch]])
    assert len(set(seen.tolist())) == 2 * per_epoch
    for epoch in range(2):
        batches = [batch for _, of, batch in steps if of == epoch]
        # a topic of an odd number of examples shares a batch with the next one
        assert sum(len(set(topics[batch])) > 1 for batch in batches) <= 1
        first = [int(topics[batch[0]]) for batch in batches]
        assert first != sorted(first) and first != sorted(first, reverse=True)
    for start in range(12):
        rest = list(examples.batches(2, 12, start))
        assert all((a[2] == b[2]).all() for a, b in zip(rest, steps[start:], strict=True))


def test_other_positives_in_the_batch_are_excluded(run):
    texts = np.arange(PASSAGES)
    texts[30] = texts[1]
    examples, _ = make(run, texts=texts)
    batch = np.array([0, 1])
    drawn = np.array(
        [[0, 40, 30], [1, 12, 41]], dtype=np.int32
    )  # 12: also query 0's; 30: the text of query 1's
    expected = np.zeros((2, 6), dtype=bool)
    expected[0, 4] = expected[1, 2] = True
    assert (examples.excluded(batch, drawn) == expected).all()


def test_equal_texts_share_a_number_in_any_case_or_space_and_wherever_their_title_ends(tmp_path):
    generator = np.random.default_rng(2)
    texts = [
        " ".join(generator.choice(list("abcdefgh"), generator.integers(0, 6))) for _ in range(3000)
    ]
    found, same = groups.text_ids(passages_of(tmp_path / "drawn", [""] * 3000, texts)), {}
    assert all(
        same.setdefault(text, number) == number for text, number in zip(texts, found, strict=True)
    )
    assert len(set(found.tolist())) == len(same)
    titles, texts = ["A b", "", "", "", ""], ["c", "a B c", " a\tb  c\n", "abc", "c a b"]
    found = groups.text_ids(passages_of(tmp_path / "titled", titles, texts)).tolist()
    assert found[0] == found[1] == found[2]
    assert len({found[0], *found[3:]}) == 3


def test_the_teachers_scores_are_found_wherever_they_rank():
    run = Run.of(
        [np.array([9, 4, 7]), np.array([2, 1])], [np.array([3.0, 2.0, 1.0]), np.array([8.0, 5.0])]
    )
    found = Teacher(run, "t").scores(np.array([0, 1]), np.array([[4, 7], [1, 2]]))
    assert found.tolist() == [[2.0, 1.0], [5.0, 8.0]]


def test_a_teacher_that_cannot_tell_is_refused_where_hardly_anything_else_is_heard(run):
    """Scores of 0 and 1 over a group of 3 are nearly uniform (entropy .94 of log 3), of 0 and 9
    they are not.
    """
    examples, _ = make(run, group=3)
    drawn = [examples.drawn(row, 1) for row in range(QUERIES)]

    def check(scale: float, alpha: float) -> None:
        scores = [
            scale * (members == examples.positives[row][0]) for row, members in enumerate(drawn)
        ]
        recipe = stage("retriever", alpha=alpha)
        Teacher(Run.of(drawn, scores), "t").check_worth(examples, recipe, "student")

    shares = np.array([math.e, 1, 1]) / (math.e + 2)
    entropy = -(shares * np.log(shares)).sum() / math.log(3)
    with pytest.raises(InputError) as refused:
        check(1.0, 0.2)
    assert str(refused.value).startswith(
        f"alpha of student is 0.2, and its teacher's scores have {entropy:.0%} of the entropy of guessing and rank the "
        "positive first in 100% of the groups (chance: 33%): they carry too little information; allowed: an alpha of 1 or more"
    )
    check(1.0, 1.0)
    check(9.0, 0.2)


def test_a_missing_teacher_score_is_an_error(run):
    teacher = Teacher(Run.of([np.array([9, 4])], [np.array([3.0, 2.0])]), "t")
    with pytest.raises(InputError, match="lack passage 5 of query 0"):
        teacher.scores(np.array([0]), np.array([[9, 5]]))
    with pytest.raises(InputError, match="lack passage"):
        Teacher(Run.of([np.array([])], [np.array([])]), "t").scores(
            np.array([0]), np.array([[9, 5]])
        )
    examples, _ = make(run)
    drawn = [examples.drawn(row, 2) for row in range(QUERIES)]
    assert all(
        set(examples.draw(np.array([row]), 1)[0].tolist()) <= set(drawn[row].tolist())
        for row in range(QUERIES)
    )
    Teacher(Run.of(drawn, drawn), "t").check(examples, 2)
    with pytest.raises(InputError, match="lack passage .* epochs or seed"):
        Teacher(Run.of(drawn, drawn), "t").check(examples, 3)
    with pytest.raises(InputError, match="lack passage .* of query 6"):
        Teacher(Run.of(*[[*drawn[:6], drawn[6][:-1], *drawn[7:]]] * 2), "t").check(examples, 2)
    with pytest.raises(InputError, match="too few"):
        teacher.check(examples, 2)


def test_fewer_training_queries_are_some_of_more_training_queries(run):
    ids = pd.Series([f"q{row}" for row in range(QUERIES)])

    def chosen(count):
        selection = Selection.mined(run, QRELS, np.arange(PASSAGES), 20)
        selection.limit_to_queries(ids, count)
        assert selection.counts().get("left out beyond train_queries", 0) == QUERIES - count
        return set(np.flatnonzero(selection.kept))

    several = [chosen(count) for count in range(1, QUERIES + 1)]
    assert [len(rows) for rows in several] == list(range(1, QUERIES + 1))
    assert all(fewer < more for fewer, more in pairwise(several))
    with pytest.raises(InputError, match="train_queries is 13; allowed: up to 12"):
        chosen(13)


def test_reading_says_what_does_not_fit(tmp_path, run, capsys):
    names = [f"p{row}" for row in range(PASSAGES)]
    queries = pd.DataFrame(
        {"query_id": [f"q{row}" for row in range(QUERIES)], "text": ["?"] * QUERIES}
    )
    judged = QRELS.assign(
        query_id=[f"q{q}" for q in QRELS["query"]], passage_id=[f"p{p}" for p in QRELS["passage"]]
    )
    passages_of(tmp_path / "c", [""] * PASSAGES, names, {"train": queries}, {"train": judged})
    write_run(tmp_path / "r.parquet", run)
    how = Drawing("train", depth=20, group=4, random_negatives=0, seed=1)
    examples, counts = groups.read(tmp_path / "c", tmp_path / "r.parquet", how)
    assert len(examples) == QUERIES and not counts
    some, _ = groups.read(tmp_path / "c", tmp_path / "r.parquet", replace(how, train_queries=5))
    assert len(some) == 5
    said = capsys.readouterr().err
    assert "12 training queries of split train" in said
    assert "5 training queries of split train (7 left out beyond train_queries" in said
    write_run(tmp_path / "short.parquet", Run.of([np.array([1])], [np.array([1.0])]))
    write_run(
        tmp_path / "far.parquet", Run.of([np.array([99])] * QUERIES, [np.array([1.0])] * QUERIES)
    )
    none = Run.of([np.array([query]) for query in range(QUERIES)], [np.array([1.0])] * QUERIES)
    write_run(tmp_path / "none.parquet", none)
    for name, message in (
        ("short", "has 1 queries"),
        ("far", "names passage 99"),
        ("none", "no query .*: 12 left out without negatives, such as query q0; change"),
    ):
        with pytest.raises(InputError, match=message):
            groups.read(tmp_path / "c", tmp_path / f"{name}.parquet", how)
    with pytest.raises(InputError, match=r"short.parquet has 1 queries"):
        groups.read(tmp_path / "c", tmp_path / "r.parquet", how, ranking=tmp_path / "short.parquet")
    # a margin of .3 leaves what scores up to 14, of which the teacher ranks what is among the first
    # passages
    theirs = Run.of(
        [np.append(run.ranked(0)[0][:9], 0), *[np.arange(QUERIES)] * 11],
        [np.ones(10), *[np.ones(12)] * 11],
    )
    write_run(tmp_path / "theirs.parquet", theirs)
    limited = replace(how, group=3, margin=0.3)
    ranking = tmp_path / "theirs.parquet"
    groups.read(tmp_path / "c", tmp_path / "r.parquet", limited, ranking)
    said = capsys.readouterr().err
    assert "2 left out because the teacher ranks too few negatives, such as query q7" in said
    with pytest.raises(
        InputError,
        match="no query .* the teacher ranks too few negatives, such as query q0",
    ):
        groups.read(tmp_path / "c", tmp_path / "r.parquet", replace(limited, group=9), ranking)
