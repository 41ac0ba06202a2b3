"""A linear layer that a head adds to an encoder, and its folder below a model's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file
from torch import Generator, nn

from cdmae.errors import InputError
from cdmae.files import remedy, write_json

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def new(
    encoder: PretrainedConfig, outputs: int, generator: Generator, *, bias: bool = True
) -> nn.Linear:
    """Make a layer with new weights from N(0, initializer_range) and biases 0, as in BERT."""
    drawn = torch.randn(outputs, encoder.hidden_size, generator=generator)
    weights = {"weight": drawn * getattr(encoder, "initializer_range", 0.02)}
    return _layer(weights | ({"bias": torch.zeros(outputs)} if bias else {}))


def write(folder: Path, layer: nn.Linear) -> None:
    """Write a layer into a new folder, in the layout of sentence-transformers and PyLate."""
    described = {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": layer.bias is not None,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    folder.mkdir()
    write_json(folder / "config.json", described)
    weights = {
        f"linear.{name}": weight.detach().cpu().contiguous()
        for name, weight in layer.state_dict().items()
    }
    from cdmae.models import networks  # imports transformers, which a search does without

    networks.write_tensors(folder, weights)


def read(folder: Path, inputs: int, *, bias: bool = True) -> nn.Linear:
    """Read a layer; raise `InputError` unless it has `inputs` inputs and, if needed, a bias."""
    path = folder / "model.safetensors"
    names = ["weight", "bias"] if bias else ["weight"]
    try:
        stored = load_file(path)
        weights = {name: stored[f"linear.{name}"].float() for name in names}
    except Exception as error:  # safetensors raises errors of its own
        raise InputError(f"{path} holds no linear layer ({error}); {remedy(path)}") from None
    shapes = {name: list(weight.shape) for name, weight in weights.items()}
    outputs = shapes["weight"][0]
    if shapes["weight"] != [outputs, inputs] or shapes.get("bias", [outputs]) != [outputs]:
        raise InputError(
            f"{path} has a layer of the shapes {shapes} for an encoder of width {inputs}; "
            f"{remedy(path)}"
        )
    return _layer(weights)


def _layer(weights: dict[str, torch.Tensor]) -> nn.Linear:
    outputs, inputs = weights["weight"].shape
    layer = nn.Linear(inputs, outputs, bias="bias" in weights)
    for name, weight in weights.items():
        setattr(layer, name, nn.Parameter(weight))
    return layer
