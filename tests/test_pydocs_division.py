"""Near-duplicates are found, and the splits of a collection share nothing."""

from itertools import combinations

import pytest
from made_up import changed, sentences, text

from cdmae.collections.sources.pydocs import division, duplicates


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
    expected = [(i, j) for (i, a), (j, b) in combinations(enumerate(sets), 2) if len(a & b) >= 0.7 * len(a | b)]
    assert 10 < len(expected) < 30
    assert duplicates.near_duplicates(texts) == expected
    assert duplicates.near_duplicates([]) == duplicates.near_duplicates(["two words", "two words"]) == []


def test_identical_bodies_are_one_passage_with_several_queries():
    divided = division.divide([("a.f", "Read a file", text(1)), ("a.g", "Load it all", text(1).upper())], held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f"]
    assert [(query.name, query.text, query.positives) for query in divided.queries["test"]] == [
        ("a.f", "Read a file", ("a.f",)),
        ("a.g", "Load it all", ("a.f",)),
    ]


def test_a_summary_of_several_passages_is_one_query_and_of_many_none():
    entries = [(f"a.f{number}", "Read a file.", text(number)) for number in range(3)]
    divided = division.divide(entries, held_out=True)
    assert [query.positives for query in divided.queries["test"]] == [("a.f0", "a.f1", "a.f2")]
    divided = division.divide([*entries, ("a.f3", "read a file", text(3))], held_out=True)
    assert divided.queries == {"test": []}
    assert len(divided.passages) == 4
    assert divided.counts["templated summaries dropped"] == 1


def test_near_duplicates_with_near_duplicate_summaries_are_dropped_and_others_kept_together():
    near = " ".join(changed(sentences(1), 2, 1))
    twice = [("a.f", "Read the whole file into memory", text(1)), ("a.g", "Read the whole file into main memory", near)]
    divided = division.divide(twice, held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f"]
    different = [twice[0], ("a.g", "Fetch one record", near)]
    divided = division.divide(different, held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f", "a.g"]
    assert {query.component for query in divided.queries["test"]} == {"a.f"}


def test_no_component_lies_in_two_splits():
    entries = []
    for group in range(400):  # groups of three: two share a summary, two have bodies that are nearly the same
        words = sentences(group)
        entries += [
            (f"a.f{group}", f"Summary number {group} of this test", " ".join(words)),
            (f"b.f{group}", f"summary number {group} of this test.", text(f"other {group}")),
            (f"c.f{group}", f"Something else about {group}", " ".join(changed(words, 2, group))),
        ]
    divided = division.divide(entries, held_out=False)
    splits = {}
    for split, queries in divided.queries.items():
        for query in queries:
            for name in (query.name, *query.positives):
                splits.setdefault(name.partition(".f")[2], set()).add(split)
    assert len(splits) == divided.counts["components"] == 400
    assert all(len(of_group) == 1 for of_group in splits.values())
    shares = {split: len(queries) / 800 for split, queries in divided.queries.items()}
    assert shares["train"] == pytest.approx(0.85, abs=0.06)
    assert shares["dev"] == pytest.approx(0.075, abs=0.04)


def test_a_split_depends_on_the_name_alone():
    entry, others = ("a.f", "Read a file", text(1)), [(f"b.{i}", f"Query number {i}", text(i + 2)) for i in range(50)]
    for entries in ([entry], [*others, entry]):
        queries = division.divide(entries, held_out=False).queries
        assert "a.f" in {query.name for query in queries[division.split_of("a.f")]}
