"""Counting n-grams in shards: the files of one job, whatever the shards and ranges."""

from dataclasses import replace

import numpy as np
import pytest
from test_ngrams import random_tokens, tokens_of

from cdmae.errors import InputError
from cdmae.importance import ngrams, shards
from cdmae.importance.ngrams import UNITS
from cdmae.importance.shards import Step


def count_in_shards(folder, tokens, unit, window, number, ranges):
    """Run the jobs of all shards and ranges, and return the folder of their result."""
    numbered = [folder / f"words/{shard}" for shard in range(number)]
    for shard, path in enumerate(numbered):
        passages = (len(tokens) * cut // number for cut in (shard, shard + 1))
        shards.number(path, tokens.part(*passages), unit)
    vocabulary = folder / "vocabulary"
    shards.merge_words(vocabulary, numbered)
    steps = [{} for _ in range(number)]
    tables = []
    for order in range(2, window + 2):
        for index, path in enumerate(numbered):
            shard = shards.Shard.read(index, path, vocabulary, window)
            step = Step(folder / f"counts/{order}.{index}.npy", folder / f"keys/{order}.{index}")
            shards.list_keys(step, shard, order, window, steps[index].get(order - 1))
            steps[index][order] = step
        if order > window:
            break
        keys = [step[order].keys for step in steps]
        tables.append([folder / f"tables/{order}.{part}" for part in range(ranges)])
        answers = [folder / f"answers/{order}.{part}" for part in range(ranges)]
        for part, (table, answer) in enumerate(zip(tables[-1], answers, strict=True)):
            shards.merge_keys(table, answer, keys, part, ranges)
        for step in steps:
            step[order] = replace(step[order], answers=answers)
    counts = [[step[order].counts for step in steps] for order in range(2, window + 2)]
    shards.gather(folder / "ngrams", vocabulary, numbered, counts, tables)
    return folder / "ngrams"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize("number, ranges", [(1, 1), (3, 2), (7, 7)])
def test_shards_and_ranges_change_no_bit(unit, window, number, ranges, tmp_path):
    tokens = random_tokens(8)
    ngrams.count_to(tmp_path / "whole", tokens, unit=unit, window=window)
    found = count_in_shards(tmp_path, tokens, unit, window, number, ranges)
    assert files_of(found) == files_of(tmp_path / "whole")


@pytest.mark.parametrize("passages", [[], [([], [])], [([1], []), ([], [1, 9, 2])]])
def test_shards_without_passages_or_words(passages, tmp_path):
    tokens = tokens_of(passages)
    ngrams.count_to(tmp_path / "whole", tokens, unit="word", window=3)
    found = count_in_shards(tmp_path, tokens, "word", window=3, number=3, ranges=3)
    assert files_of(found) == files_of(tmp_path / "whole")


def test_a_collection_may_have_more_words_than_one_job_can_number(tmp_path, monkeypatch):
    tokens = random_tokens(8)
    ngrams.count_to(tmp_path / "whole", tokens, unit="word", window=4)
    monkeypatch.setattr(ngrams, "MOST_WORDS", 400 + len(tokens.word_starts))
    with pytest.raises(InputError, match="at most 400 can be counted together: count it in shards"):
        ngrams.count(tokens)
    found = count_in_shards(tmp_path, tokens, "word", window=4, number=3, ranges=3)
    assert files_of(found) == files_of(tmp_path / "whole")


def test_counts_beyond_32_bits_are_64_bits_and_keys_beyond_64_bits_are_refused(
    tmp_path, monkeypatch
):
    tokens = tokens_of([([], [1, 2, 1, 2, 1, 2])] * 3)
    monkeypatch.setattr(shards, "MOST_COUNTS", 5)
    found = ngrams.Counts.read(count_in_shards(tmp_path / "wide", tokens, "word", 2, 3, 2))
    expected = ngrams.count(tokens, window=2)
    assert found.counts.dtype == found.table.counts[0].dtype == np.uint64
    assert np.array_equal(found.counts, expected.counts)
    assert found.table.look_up(np.array([1, 2, 1])).tolist() == [[9, 9, 9], [9, 6, 0]]
    monkeypatch.setattr(shards, "MOST_KEYS", 3 * len(tokens.word_starts) - 1)
    with pytest.raises(InputError, match="3 n-grams of 1 words times 12 distinct words exceed"):
        count_in_shards(tmp_path / "narrow", tokens, "word", 2, 3, 2)


def test_ranges_are_of_about_equal_size(tmp_path):
    tokens = random_tokens(9, passages=2000)
    count_in_shards(tmp_path, tokens, "word", window=3, number=4, ranges=5)
    for order in (2, 3):
        edges = [np.load(path) for path in tmp_path.glob(f"answers/{order}.*/edges.npy")]
        sizes = np.array([each[-1] for each in edges])
        assert sizes.max() < 1.2 * sizes.mean()
