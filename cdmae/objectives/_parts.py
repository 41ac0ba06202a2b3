"""What several objectives are made of: new layers, the encoder's side, the number that tells a collapse.

B passages, S rows, M predicted rows, D dimensions (see `cdmae.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Generator, Tensor, nn

from cdmae import training, transformer
from cdmae.batches import View
from cdmae.errors import InputError

if TYPE_CHECKING:
    from transformers import BertConfig, BertForMaskedLM

Part = TypeVar("Part", bound=nn.Module)


def check_bert(model: BertForMaskedLM, objective: str) -> None:
    """Raise `InputError` for a start that is no BERT: objectives predict with its LM head."""
    if model.config.model_type != "bert":
        raise InputError(
            f"objective {objective} needs a BERT with its LM head; the start is of the type {model.config.model_type}"
        )


def weights_of(seed: int, purpose: str) -> Generator:
    """What draws the new weights of a part: a function of the seed and the part's purpose."""
    return training.generator(torch.device("cpu"), seed, purpose)


def new_layers(config: BertConfig, number: int, generator: Generator) -> nn.ModuleList:
    """Transformer layers with random weights, spread as the model's others."""
    from transformers.models.bert.modeling_bert import BertLayer

    with torch.device("meta"):  # or the layers would draw weights of their own
        layers = nn.ModuleList(BertLayer(config) for _ in range(number))
    return drawn(layers.to_empty(device="cpu"), config.initializer_range, generator)


def drawn(part: Part, spread: float, generator: Generator) -> Part:
    """The part, its weights drawn anew: N(0, spread), biases 0."""
    return part.apply(lambda each: _draw(each, spread, generator))


def _draw(part: nn.Module, spread: float, generator: Generator) -> None:
    if isinstance(part, nn.Linear | nn.Embedding):
        nn.init.normal_(part.weight, std=spread, generator=generator)
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
    elif isinstance(part, nn.LayerNorm):
        nn.init.ones_(part.weight)
        nn.init.zeros_(part.bias)


def encode(model: BertForMaskedLM, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    """Equation 2: the [CLS] states h_c [B, D], and the states of the predicted tokens [M, D]."""
    return read_states(
        transformer.hidden_states(model.bert, view.inputs, last_rows=view.rows, generator=generator), view
    )


def read_states(states: Tensor, view: View) -> tuple[Tensor, Tensor]:
    """From the states of a view's `rows` with [CLS]: those of [CLS] [B, D] and of the predicted tokens [M, D]."""
    return states.index_select(0, view.rows.layout.starts[:-1]), states.index_select(0, view.masked)


def passages_of(view: View) -> Tensor:
    """The passage of each of the view's `rows`, int64 [R]; 0 for filler."""
    layout = view.rows.layout
    passages = layout.cells.div(layout.longest, rounding_mode="floor")
    return nn.functional.pad(passages, (0, layout.rows - len(passages)))


def spread(h_c: Tensor) -> Tensor:
    """The standard deviation of [CLS] over the passages of a micro-batch, relative to its size; 1 for one passage."""
    h_c = h_c.detach()
    if len(h_c) == 1:
        return h_c.new_ones(())
    return h_c.std(0, correction=0).norm() / h_c.norm(dim=1).mean()
