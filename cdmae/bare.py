"""BERT's weights in modules of torch's own, named as transformers names them: read and written without transformers.

`cdmae.transformer` computes the forward pass from the weights alone, so both give the same bits, and what is written
here loads there. What is saved is the import of transformers' modelling code, which takes longer than the search of a
small collection does.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from cdmae import files, huggingface
from cdmae.errors import InputError

ACTIVATIONS = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}  # transformers' names
HEADS = ("cls.", "classifier.")  # of a masked language model, of a reranker
POOLER = "pooler.dense."


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


class Scorer(nn.Module):
    """An encoder with pooler and a head of one label: what `reranker.scores` reads of a BertForSequenceClassification.

    The new weights of one that starts from an encoder are `drawn`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the values of a ``config.json``; the weights hold nothing yet."""
        super().__init__()
        self.config = SimpleNamespace(**{"classifier_dropout": None, **config})
        width = config["hidden_size"]
        self.bert = Bert(config)
        self.bert.pooler = _block(dense=nn.Linear(width, width))
        self.classifier = nn.Linear(width, 1)

    @property
    def base_model(self) -> nn.Module:
        """The transformer without the head."""
        return self.bert


# --- reading ---------------------------------------------------------------------------------------------------------


def read(folder: Path | str, network: type[nn.Module] = Bert, drawn: torch.Generator | None = None) -> Bert | Scorer:
    """The network in a folder in transformers format, float32, in evaluation mode.

    A pooler is left aside unless it is read, and so is the head of a masked language model. `drawn` gives a `Scorer`
    that has none yet a head: N(0, the model's initializer_range), biases 0, as in BERT.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    config = files.read_json(folder / "config.json")
    if config["hidden_act"] not in ACTIVATIONS:
        raise InputError(f"{folder} has the activation {config['hidden_act']}; allowed: {', '.join(ACTIVATIONS)}")
    with torch.device("meta"):
        found = network(config)
    weights = {}
    try:
        stored = load_file(folder / "model.safetensors")
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{folder}/model.safetensors cannot be read ({error}); delete {folder} and run again"
        ) from None
    for key, each in stored.items():
        name = key.removeprefix("bert.")
        if network is Scorer and not name.startswith(HEADS):
            name = f"bert.{name}"
        if not name.startswith(("cls.", *((POOLER, "classifier.") if network is Bert else ()))):
            weights[name] = each.float()
    if drawn is not None:
        weights |= _head(config, drawn)
    try:
        keys = found.load_state_dict(weights, strict=False, assign=True)
    except RuntimeError as error:
        raise InputError(f"{folder} has weights of other sizes than its config.json says; make it again") from error
    strange = [*keys.missing_keys, *keys.unexpected_keys]
    if strange:
        raise InputError(f"{folder} lacks the weights {strange[:3]}; delete it and make it again")
    for each in found.parameters():
        each.requires_grad_()
    return found.eval()


def _head(config: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    """New weights of pooler and classifier."""
    width, spread = config["hidden_size"], config["initializer_range"]
    return {
        f"bert.{POOLER}weight": torch.randn(width, width, generator=generator) * spread,
        f"bert.{POOLER}bias": torch.zeros(width),
        "classifier.weight": torch.randn(1, width, generator=generator) * spread,
        "classifier.bias": torch.zeros(1),
    }


# --- writing ---------------------------------------------------------------------------------------------------------


def write(folder: Path, network: Bert | Scorer) -> None:
    """Write config and weights so that transformers loads them without a warning.

    ``AutoModel`` expects a pooler of BERT, which no retriever has or reads: it is written as zeros.
    """
    from safetensors.torch import save_file

    config = {**vars(network.config), "dtype": "float32"}
    weights = {key: each.detach().cpu().contiguous() for key, each in network.state_dict().items()}
    if isinstance(network, Bert):
        config["architectures"] = ["BertModel"]
        width = network.config.hidden_size
        weights |= {f"{POOLER}weight": torch.zeros(width, width), f"{POOLER}bias": torch.zeros(width)}
    else:
        config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
        config["label2id"] = {"LABEL_0": 0}  # by which transformers knows that there is one
    files.write_json(folder / "config.json", config)
    with huggingface.writing():
        save_file(weights, folder / "model.safetensors", {"format": "pt"})


# --- parts -----------------------------------------------------------------------------------------------------------


def _layer(config: dict[str, Any]) -> nn.Module:
    width, wide, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
    attention = _block(
        self=_block(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width)),
        output=_block(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps)),
    )
    attention.self.num_attention_heads = config["num_attention_heads"]
    intermediate = _block(dense=nn.Linear(width, wide))
    intermediate.intermediate_act_fn = ACTIVATIONS[config["hidden_act"]]()
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
