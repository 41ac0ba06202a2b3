"""CoT-MAE: how a passage is cut into spans; its formula is in `benchmarks.naive`."""

import dataclasses

import numpy as np
from tiny_objectives import V, bounds, reader


def test_cotmae_cuts_a_passage_into_neighbouring_spans():
    """Together the two are the passage, as far as both may reach; each is at most as long as a passage may be."""
    source = reader("cotmae", lengths=(5, 9, 1, 0, 17, 20, 33))
    for epoch in range(3):
        rows = np.arange(7)
        texts = source.texts(rows, np.full(7, epoch))
        begins, lengths = texts.begins.reshape(7, 2), texts.lengths.reshape(7, 2)
        assert (begins[:, 0] == source.tokens.starts[:-1]).all()
        assert (begins[:, 1] == begins[:, 0] + lengths[:, 0]).all()
        assert lengths.max() <= source.length == 10
        assert lengths.sum(1).tolist() == [5, 9, 1, 0, 17, 20, 20]
        assert lengths[5:].tolist() == [[10, 10]] * 2
        assert len(set(texts.rows.tolist())) == 14
    cuts = {tuple(source.texts(rows, np.full(7, epoch)).lengths[::2].tolist()) for epoch in range(8)}
    assert len(cuts) > 4
    step = next(source.steps(0, 1))
    encoder, decoder = step.sides["encoder"], step.sides["decoder"]
    originals = [encoder.labels[a:b].tolist() for a, b in bounds(encoder)]
    assert [decoder.labels[a:b].tolist() for a, b in bounds(decoder)] == [originals[at ^ 1] for at in range(12)]


def test_cotmae_cuts_at_the_begin_of_a_word():
    source, starts = reader("cotmae", lengths=(16,) * 30), np.arange(V) % 3 != 1
    source.vocabulary = dataclasses.replace(source.vocabulary, word_starts=starts)
    texts = source.texts(np.arange(30), np.zeros(30, int))
    second = texts.begins[1::2]
    inside = texts.lengths[1::2] > 0
    assert starts[source.tokens.ids[second[inside]]].all()
