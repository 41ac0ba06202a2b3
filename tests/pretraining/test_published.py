"""Published objectives: what each of them masks, cuts, samples and begins with; formulas are in
`tests.naive`.
"""

import dataclasses

import numpy as np
import pytest
import torch
from any_kind import as_objective
from tiny_objectives import (
    SETTINGS,
    D,
    V,
    bounds,
    language_model,
    network_of,
    reader,
)

from cdmae.errors import InputError
from cdmae.pretraining.objectives import simlm

# --- CoT-MAE --------------------------------------------------------------------------------------


def test_cotmae_cuts_a_passage_into_neighbouring_spans():
    """Together the two are the passage, as far as both may reach; each is at most as long as a
    passage may be.
    """
    source = reader("cotmae", lengths=(5, 9, 1, 17, 20, 33, 0))
    rows = np.arange(7)
    cuts = set()
    for epoch in range(8):
        texts = source.texts(rows, np.full(7, epoch))
        begins = texts.begins.reshape(7, 2)
        lengths = texts.lengths.reshape(7, 2)
        assert (begins[:, 0] == source.tokens.starts[:-1]).all()
        assert (begins[:, 1] == begins[:, 0] + lengths[:, 0]).all()
        assert lengths.sum(1).tolist() == [5, 9, 1, 17, 20, 20, 0]
        assert lengths[4:6].tolist() == [[10, 10]] * 2
        assert len(set(texts.rows.tolist())) == 14
        cuts.add(tuple(lengths[:, 0]))
    assert len(cuts) > 4
    step = next(source.steps(0, 1))
    encoder, decoder = step.sides["encoder"], step.sides["decoder"]
    originals = [encoder.labels[a:b].tolist() for a, b in bounds(encoder)]
    assert [decoder.labels[a:b].tolist() for a, b in bounds(decoder)] == [
        originals[at ^ 1] for at in range(12)
    ]


def test_cotmae_cuts_at_the_begin_of_a_word():
    source, starts = reader("cotmae", lengths=(16,) * 30), np.arange(V) % 3 != 1
    source.vocabulary = dataclasses.replace(source.vocabulary, word_starts=starts)
    texts = source.texts(np.arange(30), np.zeros(30, int))
    second = texts.begins[1::2]
    inside = texts.lengths[1::2] > 0
    assert starts[source.tokens.ids[second[inside]]].all()


# --- MASTER ---------------------------------------------------------------------------------------


def test_master_restores_a_span_from_its_own_vector_and_from_its_neighbour_s():
    """The first decoder reads the texts of the encoder, the second those beside them, each with
    masks of its own.
    """
    sides = next(reader("master", lengths=(16,) * 6).steps(0, 1)).sides
    texts = {
        side: [each.labels[a:b].tolist() for a, b in bounds(each)] for side, each in sides.items()
    }
    assert len(texts["encoder"]) == 12
    assert texts["decoder"] == texts["encoder"]
    assert texts["neighbour"] == [texts["encoder"][at ^ 1] for at in range(12)]
    chosen = {side: [each.chosen[a:b] for a, b in bounds(each)] for side, each in sides.items()}
    alike = [np.array_equal(chosen["decoder"][at], chosen["neighbour"][at ^ 1]) for at in range(12)]
    assert not all(alike)


def test_master_s_third_decoder_restores_what_a_second_pass_sees():
    """Its own masks of the same texts: together, the two predict every token once."""
    sides = next(reader("master", lengths=(16,) * 6).steps(0, 1)).sides
    second = sides["second"]
    rest = sides["complement"]
    assert np.array_equal(second.labels, rest.labels)
    content = second.labels > 4
    assert np.array_equal(rest.chosen[content], ~second.chosen[content])
    assert not rest.chosen[~content].any()
    assert not np.array_equal(second.chosen, sides["encoder"].chosen)
    assert second.chosen[content].mean() == pytest.approx(0.5, abs=0.05)
    masked = rest.inputs.values != rest.labels
    assert masked[rest.chosen].mean() == pytest.approx(0.9, abs=0.1)
    assert not masked[content & ~rest.chosen].any()


# --- RetroMAE --------------------------------------------------------------------------------------


def test_retromae_masks_each_position_on_its_own():
    """Each position hides itself and floor(p n) tokens drawn for it alone, the same whatever the
    batch.
    """
    source = reader("retromae", lengths=(8,) * 40)
    step = next(source.steps(0, 1))
    masked = step.sides["decoder"]
    places = masked.hide(masked.texts)
    assert places.shape == (6, 8, 8)
    assert places[:, range(8), range(8)].all()
    specials = [(masked.inputs.values[a:b] == 4).any() for a, b in bounds(masked)]
    ordinary = places[~np.array(specials)]
    assert set(ordinary.sum(2).ravel().tolist()) == {
        4,
        5,
    }  # four drawn of eight, perhaps itself among them
    assert len({row.tobytes() for row in places.reshape(-1, 8)}) > 35
    assert abs(places[:, ~np.eye(8, dtype=bool)].mean() - 0.5) < 0.1
    alone = masked[2:3]
    assert (alone.hide(alone.texts)[0] == places[2]).all()


# --- SimLM and LexMAE ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simlm", "lexmae"])
def test_the_decoder_masks_all_that_the_encoder_masks(name):
    """And so many more that both are p_dec."""
    source = reader(name, lengths=(10,) * 40)
    for step in source.steps(0, 4):
        encoder = step.sides["encoder"]
        decoder = step.sides["decoder"]
        assert (decoder.chosen >= encoder.chosen).all()
        for a, b in bounds(encoder):
            candidates = int((encoder.labels[a:b] > 4).sum())
            assert decoder.chosen[a:b].sum() == candidates // 2


def test_simlm_decoder_begins_as_the_last_layers():
    network = simlm.SimLm(language_model(), as_objective("simlm", SETTINGS), 5)
    ours, theirs = network.decoder.state_dict(), network.model.bert.encoder.layer[1:].state_dict()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert network.decoder[0] is not network.model.bert.encoder.layer[1]
    assert network.generator.config.num_attention_heads == 1
    assert network.generator.config.hidden_size == D // 3


@pytest.mark.parametrize(
    ("name", "setting", "value", "message"),
    [
        ("condenser", "early_layers", 3, "expected up to 2, the initial checkpoint has 3 layers"),
        ("simlm", "decoder_layers", 4, "expected up to 3, the layers of the initial checkpoint"),
    ],
)
def test_layers_that_the_checkpoint_lacks_are_refused(name, setting, value, message):
    with pytest.raises(InputError, match=f"{setting} is {value}; {message}"):
        network_of(name, **{setting: value})
