"""Published objectives: what each of them masks, cuts, samples and begins with; formulas are in
`tests.naive`.
"""

import dataclasses

import numpy as np
import pytest
import torch
from tiny_objectives import (
    CPU,
    SETTINGS,
    D,
    V,
    as_objective,
    bounds,
    first,
    language_model,
    network_of,
    reader,
    reader_of,
    same,
    whole,
)
from transformers import BertForMaskedLM, BertTokenizer, ElectraConfig, ElectraForMaskedLM

from cdmae.errors import InputError
from cdmae.pretraining.objectives import simlm
from cdmae.pretraining.objectives.simlm import SimLm
from cdmae.tokens.corpus import Tokens
from cdmae.training import setup
from tests.naive import Naive, Side

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
    source, starts = reader("cotmae", lengths=(16, 20) * 15), np.arange(V) % 3 != 1
    source.vocabulary = dataclasses.replace(source.vocabulary, word_starts=starts)
    texts = source.texts(np.arange(30), np.zeros(30, int))
    assert texts.lengths.max() == 10
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
    assert places.shape == (6, 10, 10)
    places = places[:, 1:-1, 1:-1]  # [CLS] and [SEP] are seen
    assert places[:, range(8), range(8)].all()
    specials = [(masked.inputs.values[a:b] == 4).any() for a, b in bounds(masked)]
    ordinary = places[~np.array(specials)]
    # four drawn of eight, perhaps itself among them
    assert set(ordinary.sum(2).ravel().tolist()) == {4, 5}
    assert len({row.tobytes() for row in places.reshape(-1, 8)}) > 35
    assert abs(places[:, ~np.eye(8, dtype=bool)].mean() - 0.5) < 0.1
    alone = masked[2:3]
    assert (alone.hide(alone.texts)[0, 1:-1, 1:-1] == places[2]).all()


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


def test_simlm_samples_by_numbers_that_did_not_choose_the_masks():
    """Uniform masks are the tokens with the highest numbers; those of samples have a mean of 1/2."""
    sides = [step.sides["encoder"] for step in reader("simlm", lengths=(10,) * 40).steps(0, 6)]
    found = np.concatenate([side.draws[side.chosen] for side in sides])
    assert abs(found.mean() - 0.5) < 0.1


def test_simlm_decoder_begins_as_the_last_layers():
    network = simlm.SimLm(language_model(), as_objective("simlm", SETTINGS), 5)
    ours, theirs = network.decoder.state_dict(), network.model.bert.encoder.layer[1:].state_dict()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert network.decoder[0] is not network.model.bert.encoder.layer[1]
    assert network.generator.config.num_attention_heads == 1
    assert network.generator.config.hidden_size == D // 3


def test_layers_that_the_checkpoint_lacks_are_refused():
    with pytest.raises(InputError, match="early_layers is 3; expected up to 2, the initial"):
        network_of("condenser", early_layers=3)


# --- Contriever -----------------------------------------------------------------------------------


LENGTH = 40
CROPPED = 5 + np.arange(LENGTH) % (V - 5)


def crops(passages=400, length=LENGTH, seed=3, deletion=0.0, **changed):
    """Crops of passages of one length; word-piece i of every passage is 5 + i % 35."""
    starts = np.arange(passages + 1) * length
    ids = np.tile(CROPPED[:length], passages).astype(np.uint16)
    changed |= {"batch": passages, "max_length": LENGTH + 2, "deletion": deletion}
    settings = as_objective("contriever", SETTINGS, **changed)
    return reader_of(settings, Tokens(ids, starts, starts[:-1], np.ones(V, bool)), seed)


def test_crops_are_independent_and_uniform():
    texts = crops().texts(np.arange(400), np.zeros(400, int))
    sizes = texts.lengths.reshape(-1, 2)
    offsets = (texts.begins - np.repeat(np.arange(400) * LENGTH, 2)).reshape(-1, 2)
    assert sizes.min() == 2 and sizes.max() == LENGTH // 2 - 1  # 5 % and just below 50 %
    assert sizes.mean() == pytest.approx(0.275 * LENGTH - 0.5, rel=0.05)
    assert offsets.min() == 0 and (offsets + sizes).max() == LENGTH
    for numbers in (sizes, offsets):
        assert abs(np.corrcoef(numbers.T)[0, 1]) < 0.15
    assert len(np.unique(texts.rows)) == 800
    for length in (0, 1):  # one word-piece is both crops
        texts = crops(passages=3, length=length).texts(np.arange(3), np.zeros(3, int))
        assert texts.lengths.tolist() == [length] * 6


def test_a_share_of_the_tokens_of_a_crop_is_deleted():
    """The rest keeps its order; each epoch deletes others; nothing is predicted."""
    (whole,) = crops().read(0, 1)
    (thinned,) = crops(deletion=0.1).read(0, 1)
    before = whole.sides["encoder"].inputs.lengths.sum() - 2 * 800
    masked = thinned.sides["encoder"]
    assert masked.inputs.lengths.sum() - 2 * 800 == pytest.approx(0.9 * before, rel=0.02)
    for text in range(50):
        given = iter(whole.sides["encoder"].inputs[text][1:-1].tolist())
        assert all(piece in given for piece in masked.inputs[text][1:-1].tolist()), "a subsequence"
    assert not masked.chosen.any()
    other = crops(deletion=0.1, seed=4).read(0, 1)[0].sides["encoder"]
    assert not np.array_equal(other.inputs.lengths, masked.inputs.lengths)


# --- a given generator ----------------------------------------------------------------------------


SIMLM = as_objective("simlm", SETTINGS, max_length=12)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(V - 5))]
SIZES = {
    "vocab_size": V, "num_hidden_layers": 2, "max_position_embeddings": 32,
    "attn_implementation": "eager", "num_attention_heads": 2, "intermediate_size": 20,
    "embedding_size": D, "hidden_size": 8,
}  # fmt: skip


def electra():
    """Narrow layers between wide embeddings and a wide head, as in google/electra-base-generator."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = ElectraForMaskedLM(ElectraConfig(**SIZES)).eval()
        with torch.no_grad():
            for each in model.parameters():  # biases and norms other than 0 and 1
                each.add_(torch.randn(each.shape) * 0.2)
    return model


def folder(path, model, pieces=PIECES):
    """A folder with a model and its tokenizer."""
    model.save_pretrained(path)
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary).save_pretrained(path)
    return str(path)


def network_with(path, generator, pieces=PIECES):
    start = BertForMaskedLM.from_pretrained(folder(path / "start", language_model()))
    name = folder(path / "generator", generator, pieces)
    return SimLm(start, dataclasses.replace(SIMLM, generator=name), 5).eval()


def test_simlm_learns_from_what_it_samples_and_from_nothing_else(tmp_path):
    """The paper's two losses: a frozen generator has none, and the encoder's is shown alone."""
    network = network_with(tmp_path, electra())
    step = first("simlm")
    naive = Naive("simlm", network, electra().requires_grad_(False))
    loss, numbers = network(whole(step))
    same(network, loss, naive(step))
    text, (filled, _) = Side.of(step, "passage"), naive.replaced(step, "encoder")
    expected = naive.loss(naive.states(text._replace(ids=filled))[-1], text)
    torch.testing.assert_close(numbers["encoder_loss"], expected.detach())
    # nothing of the generator is dropped out
    network.model.config.hidden_dropout_prob = 0.0
    network.generator.config.hidden_dropout_prob = 0.9
    again, _ = network(whole(step), setup.generator(CPU, 1, "dropout"))
    torch.testing.assert_close(again, loss)


def test_one_with_other_word_pieces_is_refused(tmp_path):
    swapped = [*PIECES[:7], PIECES[8], PIECES[7], *PIECES[9:]]
    with pytest.raises(InputError, match="has other word-pieces"):
        network_with(tmp_path, electra(), swapped)
