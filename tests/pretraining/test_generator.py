"""SimLM with a given generator: its samples are read, nothing of it is trained, and another
vocabulary is refused.
"""

import dataclasses

import pytest
import torch
import transformers
from any_kind import as_objective
from tiny_objectives import CPU, SETTINGS, D, V, first, gradients, language_model, same, whole
from transformers import BertForMaskedLM, BertTokenizer, ElectraConfig

from cdmae.errors import InputError
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
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = kind(ElectraConfig(**sizes)).eval()
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


def test_nothing_of_it_is_trained_or_dropped_out(tmp_path):
    network, before = network_with(tmp_path, electra()), electra().state_dict()
    batch = whole(first("simlm"))
    network.model.config.hidden_dropout_prob = 0.0
    network.generator.config.hidden_dropout_prob = 0.9
    loss, _ = network(batch, setup.generator(CPU, 1, "dropout"))
    torch.testing.assert_close(loss, network(batch)[0])
    assert all(
        each.any() for key, each in gradients(network, loss).items() if "key.bias" not in key
    )
    adam = setup.adamw(network.parameters(), 0.1)
    adam.param_groups[0]["lr"] = 0.1
    network(batch)[0].backward()
    adam.step()
    after = network.generator.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in before.items())


SWAPPED = [*PIECES[:7], PIECES[8], PIECES[7], *PIECES[9:]]


@pytest.mark.parametrize(
    ("changed", "pieces", "sentence"),
    [
        ({"vocab_size": 50}, PIECES, "has other word-pieces"),
        ({}, SWAPPED, "has other word-pieces"),
        ({"kind": transformers.ElectraForPreTraining}, PIECES, "lacks generator_.*; expected"),
    ],
)
def test_one_that_does_not_fit_is_refused(changed, pieces, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        network_with(tmp_path, electra(**changed), pieces)
