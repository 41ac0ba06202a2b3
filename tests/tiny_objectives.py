"""A language model, a reader of nonsense, padded sides and what is compared: what the tests of
objectives share.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

from cdmae.config.encoders import Encoder
from cdmae.config.objectives import AnyEncoder, Mae
from cdmae.fields import kinds_of, rules_of, tags
from cdmae.masking import Corpus
from cdmae.pretraining.batches import Batch, Masked, Step
from cdmae.pretraining.objectives import objective
from cdmae.pretraining.reader import Reader
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training.ranks import Ranks

OBJECTIVES = {tags(kind)["objective"]: kind for kind in kinds_of(AnyEncoder)}
V, D, CLS, SEP, MASK = 40, 24, 2, 3, 4
CPU = torch.device("cpu")
LENGTHS = (5, 9, 1, 0, 7, 12, 3)
NAMES = [name for name in OBJECTIVES if name != "none"]
SETTINGS = Mae(
    start="x",
    collection="c",
    decoder_masking="uniform",
    encoder_masking="uniform",
    decoder_layers=2,
    batch=6,
)


def as_objective(name: str, settings: Encoder, **changed: Any) -> Encoder:
    """The settings of a pre-training with another objective, as far as it knows them."""
    kind = OBJECTIVES[name]
    known = rules_of(kind).keys() - {"objective"}
    given = {key: getattr(settings, key) for key in rules_of(settings)} | changed
    return kind(**{key: value for key, value in given.items() if key in known})


def vocabulary() -> Vocabulary:
    special = np.arange(V) < 5
    return Vocabulary(V, 0, CLS, SEP, MASK, special, np.flatnonzero(~special), np.ones(V, bool))


def reader(
    name: str = "mae", settings: Encoder = SETTINGS, lengths: tuple[int, ...] = LENGTHS
) -> Reader:
    """The steps of an objective, cut to 10 word-pieces and a [CLS] and a [SEP]."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.random.default_rng(0).integers(5, V, starts[-1]).astype(np.uint16)
    ids[starts[1] + 2 :][:1] = MASK  # a special token spelt out in a text: never to be predicted
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    return reader_of(as_objective(name, settings, max_length=12), tokens)


def reader_of(settings: Encoder, tokens: Tokens, seed: int = 3, **further: Any) -> Reader:
    """The reader of an objective over tokens in memory."""
    kind = objective(settings.objective)
    corpus = Corpus(tokens, vocabulary())
    return kind.reader(settings, kind.sides(settings, "word"), corpus, seed, **further)


def language_model() -> BertForMaskedLM:
    torch.manual_seed(1)
    sizes = {
        "hidden_size": D,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 40,
    }
    config = BertConfig(vocab_size=V, initializer_range=0.3, attn_implementation="eager", **sizes)
    model = BertForMaskedLM(config).eval()
    with torch.no_grad():
        model.cls.predictions.bias.normal_()  # or a missing bias would go unnoticed
    return model


def whole(step: Step) -> Batch:
    """A step as one micro-batch."""
    (batch,) = step.batches(10_000, CPU)
    return batch


def first(name: str, lengths: tuple[int, ...] = LENGTHS, settings: Encoder = SETTINGS) -> Step:
    return next(reader(name, settings, lengths).steps(0, 1))


def network_of(name: str, **changed: Any) -> nn.Module:
    changed = {"pooling": "cls"} | changed
    made = objective(name)(language_model(), as_objective(name, SETTINGS, **changed), seed=5).eval()
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for each in made.parameters():  # biases and norms must differ from 0 and 1 to be tested
            each.add_(torch.randn(each.shape, generator=generator) * 0.05)
    return made


def ready(network: nn.Module, *batches: Batch) -> list[Batch]:
    """All micro-batches of a global batch as the loop hands them to the network."""
    if not hasattr(network, "prepare"):
        return list(batches)
    return network.prepare(list(batches), [None] * len(batches), Ranks())


def learnt(network: nn.Module, step: Step) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and numbers of a step as one micro-batch."""
    (batch,) = ready(network, whole(step))
    return network(batch)


def gradients(network: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """The gradients of all weights on which the loss depends."""
    trained = [each for each in network.named_parameters() if each[1].requires_grad]
    names, weights = zip(*trained, strict=True)
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    return {name: each for name, each in zip(names, found, strict=True) if each is not None}


def same(network: nn.Module, found: Tensor, expected: Tensor) -> None:
    """Loss and gradient with respect to every weight."""
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    ours, theirs = gradients(network, found), gradients(network, expected)
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(
            ours[name], theirs[name], atol=2e-5, rtol=1e-4, msg=lambda text, n=name: n + text
        )


def bounds(masked: Masked) -> list[tuple[int, int]]:
    """Where each text of a side begins and ends."""
    return list(
        zip(masked.inputs.starts[:-1].tolist(), masked.inputs.starts[1:].tolist(), strict=True)
    )
