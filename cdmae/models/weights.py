"""New weights, as in BERT: matrices from N(0, initializer_range), biases 0, LayerNorm 1 and 0.

torch and transformers draw weights from torch's global generator. Here, they are drawn again from a
separate generator and depend only on its seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Generator, nn

from cdmae.models.architectures import bert_config

if TYPE_CHECKING:
    from transformers import BertConfig, BertForMaskedLM, PretrainedConfig

Part = TypeVar("Part", bound=nn.Module)


def language_model(config: BertConfig, generator: Generator) -> BertForMaskedLM:
    """Make a new BERT with its LM head."""
    from transformers import BertForMaskedLM

    model = BertForMaskedLM(config)
    # The head's matrix is the matrix of the word embeddings.
    for part in (model.bert, model.cls.predictions.transform):
        draw(part, config.initializer_range, generator)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[config.pad_token_id].zero_()
    return model.eval()


def layers(config: PretrainedConfig, number: int, generator: Generator) -> nn.ModuleList:
    """Make new BERT layers with the sizes of a model with this config."""
    from transformers.models.bert.modeling_bert import BertLayer

    config = bert_config(config)
    made = nn.ModuleList(BertLayer(config) for _ in range(number))
    return draw(made, config.initializer_range, generator)


def draw(part: Part, spread: float, generator: Generator) -> Part:
    """Redraw a module's weights with standard deviation `spread`; return it in evaluation mode."""

    def one(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=spread, generator=generator)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return part.apply(one).eval()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator; restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield
