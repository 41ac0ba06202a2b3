"""The linear layers that a head adds to an encoder, each in a folder below a model's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from cdmae.errors import InputError
from cdmae.files import write_json
from cdmae.models import weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Layer:
    """A layer: its folder below a model's, its number of outputs, and whether it has a bias."""

    folder: str
    outputs: int
    bias: bool = True


Layers = Mapping[str, Layer]  # by the network's attribute


def start_layers(network: PreTrainedModel, layers: Layers, seed: int) -> None:
    """Add layers with new weights from N(0, initializer_range) and biases 0, as in BERT."""
    draws = torch.Generator().manual_seed(seed)
    width = network.config.hidden_size
    spread = network.config.initializer_range
    for name, layer in layers.items():
        made = nn.Linear(width, layer.outputs, bias=layer.bias)
        setattr(network, name, weights.draw(made, spread, draws))


def load_layers(network: PreTrainedModel, layers: Layers, folder: Path | str) -> None:
    """Add the layers that are stored below a trained model's folder.

    Raises `InputError` for a damaged file, or a layer of another size.
    """
    start_layers(network, layers, seed=0)
    for name, layer in layers.items():
        path = Path(folder) / layer.folder / "model.safetensors"
        try:
            stored = load_file(path)
            parts = {key.removeprefix("linear."): part for key, part in stored.items()}
            getattr(network, name).load_state_dict(parts)
        except Exception as error:  # safetensors raises errors of its own
            raise InputError(
                f"{path} holds no linear layer with {layer.outputs} outputs ({error}); a stage "
                "with `after` needs the dimensions of the retriever with which it begins"
            ) from None


def write_layers(network: nn.Module, layers: Layers, folder: Path) -> None:
    """Write the layers below a model's folder, as sentence-transformers and PyLate do."""
    for name, layer in layers.items():
        linear = getattr(network, name)
        described = {
            "in_features": linear.in_features,
            "out_features": linear.out_features,
            "bias": linear.bias is not None,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
        (folder / layer.folder).mkdir()
        write_json(folder / layer.folder / "config.json", described)
        stored = {f"linear.{key}": part.contiguous() for key, part in linear.state_dict().items()}
        file = folder / layer.folder / "model.safetensors"
        save_file(stored, file)
        shutil.copymode(folder / layer.folder / "config.json", file)  # from the mode 0600
