"""A given generator: its logits are transformers', nothing of it is trained, and another vocabulary
is refused.
"""

import dataclasses

import pytest
import torch
import transformers
from any_kind import as_objective
from tiny_objectives import CPU, SETTINGS, D, V, first, gradients, language_model, same, whole
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, ElectraConfig

from cdmae.errors import InputError
from cdmae.pretraining.objectives import simlm
from cdmae.pretraining.objectives.simlm import SimLm
from cdmae.training import setup
from tests.naive import Naive, Side

SIMLM = as_objective("simlm", SETTINGS, max_length=12)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(V - 5))]
SIZES = {
    "vocab_size": V, "num_hidden_layers": 2, "max_position_embeddings": 32,
    "attn_implementation": "eager", "num_attention_heads": 2, "intermediate_size": 20,
}  # fmt: skip


def electra(kind=transformers.ElectraForMaskedLM, **changed):
    """Narrow layers between wide embeddings and a wide head, as in google/electra-base-generator."""
    sizes = SIZES | {"embedding_size": D, "hidden_size": 8} | changed
    return drawn(kind, ElectraConfig(**sizes))


def bert():
    return drawn(BertForMaskedLM, BertConfig(**SIZES, hidden_size=12))


def drawn(kind, config):
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = kind(config).eval()
        with torch.no_grad():
            for each in model.parameters():  # biases and norms other than 0 and 1
                each.add_(torch.randn(each.shape) * 0.2)
    return model


KINDS = pytest.mark.parametrize("made", [electra, bert])


@KINDS
def test_simlm_learns_from_what_it_samples_and_from_nothing_else(made):
    """The paper's two losses: a frozen generator has none, and the encoder's is shown alone."""
    network, step = SimLm(language_model(), SIMLM, 5, made()).eval(), first("simlm")
    naive = Naive("simlm", network, made().requires_grad_(False))
    loss, numbers = network(whole(step))
    same(network, loss, naive(step))
    text, (filled, _) = Side.of(step, "passage"), naive.replaced(step, "encoder")
    expected = naive.loss(naive.states(text._replace(ids=filled))[-1], text)
    torch.testing.assert_close(numbers["encoder_loss"], expected.detach())


def test_nothing_of_it_is_trained_dropped_out_or_kept_in_a_state(monkeypatch):
    model, fill, dropped = language_model(), simlm.fill, []
    monkeypatch.setattr(simlm, "fill", lambda *inputs: dropped.append(inputs[2]) or fill(*inputs))
    network, before = SimLm(model, SIMLM, 5, electra()), electra().state_dict()
    names = [name for name, _ in network.named_parameters()] + list(network.state_dict())
    assert names and not [name for name in names if name.startswith("generator.")]
    draws = setup.generator(CPU, 1, "dropout")
    adam = setup.adamw(network.parameters(), 0.1)
    setup.set_rate(adam, 0.1)
    loss, _ = network(whole(first("simlm")), draws)
    found = gradients(network, loss)
    assert all(each.any() for key, each in found.items() if not key.endswith("key.bias"))
    network(whole(first("simlm")), draws)[0].backward()
    adam.step()
    after = dict(network.generator.named_buffers())
    kept = after.keys() & before.keys()
    assert len(kept) > 30 and all(torch.equal(after[name], before[name]) for name in kept)
    SimLm(model, SIMLM, 5)(whole(first("simlm")), draws)
    assert dropped == [None] * 4 + [draws] * 2, "one that is trained along has dropout"


# --- from a folder --------------------------------------------------------------------------------


def folder(path, model, pieces=PIECES):
    """A folder with a model and its tokenizer."""
    model.save_pretrained(path)
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary).save_pretrained(path)
    return str(path)


def start(path):
    """A start as `checkpoint.start_encoder` reads it."""
    return BertForMaskedLM.from_pretrained(folder(path / "start", language_model()))


@KINDS
def test_the_objective_reads_it_from_a_folder(made, tmp_path):
    name = folder(tmp_path / "generator", made())
    settings = dataclasses.replace(SIMLM, generator=name)
    network = SimLm(start(tmp_path), settings, 5).eval()
    expected = SimLm(language_model(), SIMLM, 5, made()).eval()
    batch = whole(first("simlm"))
    torch.testing.assert_close(network(batch)[0], expected(batch)[0])


SWAPPED = [*PIECES[:7], PIECES[8], PIECES[7], *PIECES[9:]]


@pytest.mark.parametrize(
    ("make", "pieces", "sentence"),
    [
        (lambda: electra(vocab_size=50), PIECES, "has other word-pieces"),
        (electra, SWAPPED, "has other word-pieces"),
        (
            lambda: electra(transformers.ElectraForPreTraining),
            PIECES,
            "lacks generator_.*; expected",
        ),
        (
            lambda: electra(max_position_embeddings=11),
            PIECES,
            "max_length is 12; expected up to 11",
        ),
    ],
    ids=["size", "pieces", "no head", "positions"],
)
def test_one_that_does_not_fit_is_refused(make, pieces, sentence, tmp_path):
    name = folder(tmp_path / "generator", make(), pieces)
    with pytest.raises(InputError, match=sentence) as caught:
        simlm.load(dataclasses.replace(SIMLM, generator=name), start(tmp_path))
    assert "\n" not in str(caught.value)
