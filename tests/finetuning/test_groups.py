"""Properties of the groups that the trainers learn from."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from small_collections import stored

from cdmae.errors import InputError
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing, Examples
from cdmae.finetuning.selection import select
from cdmae.finetuning.teacher import Teacher
from cdmae.runs import Run

PASSAGES, QUERIES = 60, 12


def qrels_of(pairs):
    return pd.DataFrame(pairs, columns=["query", "passage", "grade"]).astype("int32")


def run_of(*lists):
    """A run from (passages, scores) of each query."""
    passages, scores = zip(*lists, strict=True)
    return Run.of([np.array(each) for each in passages], [np.array(each) for each in scores])


@pytest.fixture
def run():
    """Every query's list: 20 passages, its positives (row q, and q + 12) first."""
    generator = np.random.default_rng(5)
    lists = []
    for query in range(QUERIES):
        rest = np.setdiff1d(np.arange(PASSAGES), [query, query + 12])
        lists.append(np.append([query, query + 12], generator.choice(rest, 18, replace=False)))
    return Run.of(lists, [np.arange(20, 0, -1, dtype=np.float32)] * QUERIES)


# even queries have two positives
QRELS = qrels_of([(q, p, 1) for q in range(QUERIES) for p in ([q, q + 12] if q % 2 == 0 else [q])])


def make(run, qrels=QRELS, texts=None, ranking=None, **changed):
    settings = {"depth": 20, "group": 8, "random_negatives": 3, "seed": 42} | changed
    texts = np.arange(PASSAGES) if texts is None else texts
    drawing = Drawing("train", **settings)
    ids = pd.Series([f"q{row}" for row in range(len(run))])
    found, counts = select(run, qrels, texts, drawing, ids, ranking)
    return Examples(**found, texts=texts, drawing=drawing), counts


def test_no_positive_and_no_passage_twice_in_any_group_and_all_of_a_pool_is_drawn(run):
    examples, _ = make(run)
    drawn = set()
    for epoch in range(60):
        every = examples.draw(np.arange(len(examples)), epoch)
        for row, group in zip(examples.queries, every.tolist(), strict=True):
            positives = set(QRELS.loc[QRELS["query"] == row, "passage"])
            assert group[0] in positives
            assert not positives & set(group[1:])
            assert len(set(group)) == 8
        drawn |= set(every[1, 1:].tolist())
    pool = examples.pool(1)
    assert drawn == set(pool.tolist())
    assert len(pool) == len(examples.mined[1]) + 3
    firsts = [examples.draw(np.array([0, 1]), epoch)[:, 0].tolist() for epoch in range(4)]
    assert firsts == [[0, 1], [12, 1], [0, 1], [12, 1]]
    shallow, _ = make(run, depth=9)  # the first place is the positive
    assert shallow.mined[1].tolist() == run.ranked(1)[0][1:9].tolist()


def test_groups_do_not_depend_on_other_queries(run):
    examples, _ = make(run)
    alone = np.concatenate([examples.draw(np.array([row]), 3) for row in range(QUERIES)])
    assert (examples.draw(np.arange(QUERIES), 3) == alone).all()
    drawn = [examples.draw(np.array([0]), epoch) for epoch in range(3)]
    assert examples.drawn(0, 3).tolist() == np.unique(drawn).tolist(), "for a teacher's scores"
    fewer, _ = make(run, QRELS[QRELS["query"] != 2])
    assert (fewer.draw(np.arange(QUERIES - 1), 3) == np.delete(alone, 2, axis=0)).all()


def test_copies_of_judged_passages_are_no_negatives_and_irrelevant_ones_are(run):
    """Neither mined, nor at random, nor from another group of the batch."""
    mined = int(run.ranked(3)[0][5])
    other, copy = np.setdiff1d(np.arange(24, PASSAGES), run.ranked(3)[0])[:2].tolist()
    duplicate = int(run.ranked(3)[0][6])
    texts = np.arange(PASSAGES)
    texts[copy] = texts[other]
    texts[duplicate] = texts[3]
    judged = [(query, query, 1) for query in range(QUERIES)]
    judged += [(3, mined, -100), (3, other, -100), (3, 15, 0), (3, PASSAGES, 1)]
    examples, _ = make(run, qrels_of(sorted(judged)), texts, random_negatives=50)
    pool = set(examples.pool(3).tolist())
    assert pool == set(range(PASSAGES)) - {3, mined, other, copy, duplicate}
    assert examples.positives[3].tolist() == [3]
    # 14 is also query 2's; `other` and `duplicate` are query 3's; its own positive stays
    drawn = np.array([[2, other, 30], [3, 14, duplicate]], np.int32)
    judged = qrels_of(sorted([*judged, (2, 14, 1)]))
    examples, _ = make(run, judged, texts)
    excluded = examples.excluded(np.array([2, 3]), drawn)
    assert np.argwhere(excluded).tolist() == [[0, 4], [1, 1], [1, 5]]


def test_what_is_left_out_is_counted(run):
    passages = [run.ranked(query)[0] for query in range(QUERIES)]
    passages[4], passages[5] = passages[4][:2], passages[5][:4]  # only positives; three negatives
    shorter = Run.of(passages, [np.ones(len(each), np.float32) for each in passages])
    examples, counts = make(shorter, QRELS[QRELS["query"] != 7])
    assert sorted(set(range(QUERIES)) - set(examples.queries.tolist())) == [7]
    assert counts == {
        "left out without a relevant passage": 1,
        "with random negatives only": 1,
    }
    for query in (4, 5):
        pool = examples.pool(int(np.flatnonzero(examples.queries == query)[0]))
        assert len(pool) == 7
        assert not set(pool.tolist()) & set(QRELS[QRELS["query"] == query]["passage"])


def test_a_teacher_that_ranks_some_passages_limits_the_groups_to_them(run):
    """Query 0: one of two positives and 5 of its negatives; 1: no positive; 2: too few negatives;
    the rest as it is.
    """
    ranked = [run.ranked(query)[0].tolist() for query in range(QUERIES)]
    other = int(np.setdiff1d(np.arange(24, PASSAGES), ranked[0])[0])
    ranked[0] = [ranked[0][4], 12, *ranked[0][10:14], other]
    ranked[1], ranked[2] = ranked[1][1:], ranked[2][:5]
    theirs = run_of(*((each, np.arange(len(each), 0, -1.0)) for each in ranked))
    examples, counts = make(run, ranking=theirs, group=6, random_negatives=0)
    assert examples.queries.tolist() == [0, *range(3, QUERIES)]
    assert examples.positives[0].tolist() == [12]
    assert set(examples.mined[0].tolist()) == {ranked[0][0], *ranked[0][2:6]}
    assert examples.barred[0].tolist() == [0, 12], "judged passages of another group"
    assert counts == {
        "left out because the teacher ranks no judged passage": 1,
        "left out because the teacher ranks too few negatives": 1,
    }
    drawn = examples.draw(np.arange(len(examples)), 0)
    scores = Teacher(theirs, "t").scores(examples.queries, drawn)
    for query, passages, own in zip(examples.queries, drawn, scores, strict=True):
        places = [ranked[query].index(passage) for passage in passages]
        assert own.tolist() == [len(ranked[query]) - place for place in places]


def test_a_collection_too_small_for_the_group_is_an_error(run):
    examples, _ = make(run, group=70)
    with pytest.raises(InputError, match="query 0 .* group is 70; expected at most 59"):
        examples.draw(np.array([0]), 0)
    texts = np.arange(PASSAGES)
    texts[50] = texts[4]
    examples, _ = make(run, group=59, texts=texts)
    examples.draw(np.array([1]), 0)
    with pytest.raises(InputError, match="query 4 .* group is 59; expected at most 58"):
        examples.draw(np.array([4]), 0)


@pytest.mark.parametrize("topics", [None, np.arange(QUERIES) % 3])
def test_batches_visit_every_example_once_an_epoch_and_resume_anywhere(run, topics):
    """Of one topic, except the batch at a border."""
    examples = replace(make(run)[0], topics=topics)
    steps = list(examples.batches(5, 6))
    assert [step for step, *_ in steps] == list(range(6))
    assert [epoch for _, epoch, _ in steps] == [0, 0, 1, 1, 2, 2]
    for epoch in range(3):
        batches = [batch for _, of, batch in steps if of == epoch]
        assert len(set(np.concatenate(batches).tolist())) == 10
    if topics is not None:
        small = [batch for *_, batch in examples.batches(2, 6)]
        assert sum(len(set(topics[batch])) > 1 for batch in small) == 0
        order = [topics[batch[0]] for batch in small]
        assert sum(one != other for one, other in pairwise(order)) > 2, "batches are shuffled"
        mixed = {frozenset(topics[batch].tolist()) for *_, batch in examples.batches(5, 40)}
        assert len(mixed) == 3, "every two topics meet at a border"
    for start in range(7):
        rest = list(examples.batches(5, 6, start))
        assert all((a[2] == b[2]).all() for a, b in zip(rest, steps[start:], strict=True))


def test_equal_texts_share_a_number_in_any_case_or_space_and_wherever_their_title_ends(tmp_path):
    stored(tmp_path, [("a", "A b", "c"), "a B c", " a\tb  c\n", "abc", "c a b"])
    found = groups.text_ids(tmp_path).tolist()
    assert found[0] == found[1] == found[2]
    assert len({found[0], *found[3:]}) == 3


def test_a_missing_teacher_score_is_an_error(run):
    found = Teacher(run_of(([9, 4, 7], [3.0, 2.0, 1.0]), ([2, 1], [8.0, 5.0]), ([], [])), "t")
    assert found.scores(np.array([0, 1]), np.array([[4, 7], [1, 2]])).tolist() == [[2, 1], [5, 8]]
    for query in (0, 2):
        with pytest.raises(InputError, match=f"lack passage 5 of query {query}"):
            found.scores(np.array([query]), np.array([[5, 9]]))


def test_fewer_training_queries_are_some_of_more_training_queries(run):
    def chosen(count):
        examples, counts = make(run, train_queries=count)
        assert counts.get("left out beyond train_queries", 0) == QUERIES - count
        return set(examples.queries.tolist())

    several = [chosen(count) for count in range(1, QUERIES + 1)]
    assert [len(rows) for rows in several] == list(range(1, QUERIES + 1))
    assert all(fewer < more for fewer, more in pairwise(several))
    assert several[5] not in (set(range(6)), set(range(6, 12))), "in no order of the file"
    with pytest.raises(InputError, match="train_queries is 13; expected up to 12"):
        chosen(13)


# --- draws ----------------------------------------------------------------------------------------


def alike(seed, random_negatives=0):
    """Twelve queries whose lists are equal, in 400 passages."""
    run = Run.of([np.arange(10)] * QUERIES, [np.arange(10, 0, -1, dtype=np.float32)] * QUERIES)
    qrels = qrels_of([(query, query % 10, 1) for query in range(QUERIES)])
    how = {"depth": 10, "group": 4, "random_negatives": random_negatives, "seed": seed}
    return make(run, qrels, np.arange(400), **how)[0]


def test_draws_follow_seed_query_and_epoch():
    """Groups without random negatives, which follow seed and query themselves."""
    negatives, drawn, orders = set(), set(), set()
    for seed in (1, 2, 1):
        several = alike(seed, random_negatives=5)
        negatives |= {tuple(several.pool(query)[-5:]) for query in range(QUERIES)}
        examples = alike(seed)
        for epoch in (0, 1):
            groups_of = examples.draw(np.array([2, 3, 4, 5]), epoch)[:, 1:]
            drawn |= set(map(tuple, groups_of.tolist()))
            orders.add(tuple(examples.order(epoch, 3)))
    assert len(negatives) == 2 * QUERIES and len(orders) == 4
    assert len(drawn) >= 15, "of 16; 9 x 8 x 7 groups are possible"
