"""Near-duplicates are found, and the splits of a collection share nothing."""

from itertools import combinations

import pytest
from made_up import changed, sentences, text

from cdmae.collections.sources.pydocs import division

NEAR = " ".join(changed(sentences(1), 2, 1))  # of text(1)


def divided(*entries, held_out=True):
    """The passages, the queries as (id, text, passages), and the counts."""
    passages, queries, counts = division.divide(entries, held_out)
    rows = list(queries[["query_id", "text", "passage_id"]].itertuples(index=False, name=None))
    return passages["passage_id"].tolist(), rows, counts


def test_near_duplicates_are_the_pairs_whose_trigrams_overlap_enough():
    texts = []
    for seed in range(30):
        words = sentences(seed)
        near, far = changed(words, seed % 12, seed), changed(words, 20, seed)
        texts += [" ".join(words), " ".join(near).upper(), " ".join(far)]

    def trigrams(text):
        words = text.casefold().split()
        return set(zip(words, words[1:], words[2:], strict=False))

    sets = [trigrams(text) for text in texts]
    expected = [
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(sets), 2)
        if len(a & b) >= 0.7 * len(a | b)
    ]
    assert 10 < len(expected) < 30
    assert division.near_duplicates(texts) == expected
    assert (
        division.near_duplicates([]) == division.near_duplicates(["two words", "two words"]) == []
    )


def test_identical_bodies_are_one_passage_with_several_queries():
    passages, queries, _ = divided(
        ("a.f", "Read a file", text(1)), ("a.g", "Load it all", text(1).upper())
    )
    assert passages == ["a.f"]
    assert queries == [("query:a.f", "Read a file", ["a.f"]), ("query:a.g", "Load it all", ["a.f"])]


def test_a_summary_of_several_passages_is_one_query_and_of_many_none():
    entries = [(f"a.f{number}", "Read a file.", text(number)) for number in range(3)]
    assert divided(*entries)[1] == [("query:a.f0", "Read a file.", ["a.f0", "a.f1", "a.f2"])]
    passages, queries, counts = divided(*entries, ("a.f3", "read a file", text(3)))
    assert len(passages) == 4 and queries == []
    assert counts["templated summaries dropped"] == 1


@pytest.mark.parametrize(
    ("summary", "kept"),
    [("Read the whole file into main memory", ["a.f"]), ("Fetch one record", ["a.f", "a.g"])],
)
def test_near_duplicates_are_dropped_with_near_duplicate_summaries_and_kept_together_with_others(
    summary, kept
):
    passages, _, counts = divided(
        ("a.f", "Read the whole file into memory", text(1)), ("a.g", summary, NEAR)
    )
    assert passages == kept
    assert counts["components"] == 1


def test_no_component_lies_in_two_splits():
    entries = []
    for group in range(
        400
    ):  # groups of three: two share a summary, two have bodies that are nearly the same
        words = sentences(group)
        entries += [
            (f"a.f{group}", f"Summary number {group} of this test", " ".join(words)),
            (f"b.f{group}", f"summary number {group} of this test.", text(f"other {group}")),
            (f"c.f{group}", f"Something else about {group}", " ".join(changed(words, 2, group))),
        ]
    _, queries, counts = division.divide(entries, held_out=False)
    groups = queries.explode("passage_id")["passage_id"].str.partition(".f")[2]
    splits = queries.explode("passage_id").groupby(groups)["split"].nunique()
    assert len(splits) == counts["components"] == 400
    assert (splits == 1).all()
    shares = queries["split"].value_counts(normalize=True)
    assert shares["train"] == pytest.approx(0.85, abs=0.06)
    assert shares["dev"] == pytest.approx(0.075, abs=0.04)


def test_a_split_depends_on_the_name_alone():
    entry, others = (
        ("a.f", "Read a file", text(1)),
        [(f"b.{i}", f"Query number {i}", text(i + 2)) for i in range(50)],
    )
    for entries in ([entry], [*others, entry]):
        queries = division.divide(entries, held_out=False)[1].set_index("query_id")
        assert queries.loc["query:a.f", "split"] == division.split_of("a.f")
