"""BERT's weights in modules of torch's own, named as transformers names them: to read a model without transformers.

`cdmae.transformer` computes the forward pass from the weights alone, so both give the same bits. What is saved is the
import of transformers' modelling code, which takes longer than searching a small collection does.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from cdmae import files
from cdmae.errors import InputError

UNUSED = "pooler."  # zeros that only `AutoModel` asks for, see `cdmae.models`


class Bert(nn.Module):
    """An encoder: what `transformer.hidden_states` reads of a BertModel, and no forward pass of its own."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the values of a ``config.json``; the weights hold nothing yet."""
        super().__init__()
        self.config = SimpleNamespace(**config)
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.embeddings = _block(
            word_embeddings=_embedding(config["vocab_size"], width),
            position_embeddings=_embedding(config["max_position_embeddings"], width),
            token_type_embeddings=_embedding(config["type_vocab_size"], width),
            LayerNorm=nn.LayerNorm(width, eps),
        )
        self.encoder = _block(layer=nn.ModuleList(_layer(config) for _ in range(config["num_hidden_layers"])))

    @property
    def base_model(self) -> nn.Module:
        """The transformer without a head: this has none."""
        return self


def reads(config: dict[str, Any]) -> bool:
    """Whether `Bert` is all there is to a model with this ``config.json``."""
    return config.get("model_type") == "bert" and config.get("hidden_act") == "gelu"


def read(folder: Path | str) -> Bert:
    """The encoder in a folder in transformers format, float32, in evaluation mode."""
    from safetensors.torch import load_file

    folder = Path(folder)
    with torch.device("meta"):
        network = Bert(files.read_json(folder / "config.json"))
    weights = {key: each.float() for key, each in load_file(folder / "model.safetensors").items()}
    try:
        found = network.load_state_dict(weights, strict=False, assign=True)
    except RuntimeError as error:
        raise InputError(f"{folder} has weights of other sizes than its config.json says; make it again") from error
    strange = [key for key in found.unexpected_keys if not key.startswith(UNUSED)]
    if found.missing_keys or strange:
        raise InputError(
            f"{folder} lacks the weights {[*found.missing_keys, *strange][:3]}; delete it and make it again"
        )
    return network.eval()


def _layer(config: dict[str, Any]) -> nn.Module:
    width, wide, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
    attention = _block(
        self=_block(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width)),
        output=_block(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps)),
    )
    attention.self.num_attention_heads = config["num_attention_heads"]
    intermediate = _block(dense=nn.Linear(width, wide))
    intermediate.intermediate_act_fn = nn.GELU()
    output = _block(dense=nn.Linear(wide, width), LayerNorm=nn.LayerNorm(width, eps))
    return _block(attention=attention, intermediate=intermediate, output=output)


def _embedding(size: int, width: int) -> nn.Embedding:
    """A matrix that is never drawn: a normal draw on the meta device imports torch's compiler, a second or more."""
    return nn.Embedding(size, width, _weight=torch.empty(size, width))


def _block(**parts: nn.Module) -> nn.Module:
    """A module with these children."""
    module = nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    return module
