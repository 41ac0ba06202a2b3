"""BERT's weights in modules of torch's own, named as transformers names them: made, read and written without it.

`cdmae.models.attention` computes the forward pass from the weights alone, so both give the same bits, and what is
written here loads there. What is saved is the import of transformers' modelling code, which takes longer than the
search of a small collection does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from cdmae.errors import InputError
from cdmae.files import read_json, write_json
from cdmae.models import huggingface

ACTIVATIONS = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}  # transformers' names
HEADS = ("cls.", "classifier.")  # of a masked language model, of a reranker
POOLER = "pooler.dense."
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


Part = TypeVar("Part", bound=nn.Module)


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
        self.encoder = _block(layer=nn.ModuleList(_layer(self.config) for _ in range(config["num_hidden_layers"])))

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


class MaskedLM(nn.Module):
    """An encoder with the head that predicts its masked word-pieces: what objectives read of a BertForMaskedLM."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the values of a ``config.json``; the weights hold nothing yet."""
        super().__init__()
        self.config = SimpleNamespace(**config)
        self.bert = Bert(config)
        self.cls = _block(predictions=LanguageModelHead(self.config))
        self.tie()

    def tie(self) -> None:
        """Let the head's matrix be that of the word embeddings, as in BERT."""
        head = self.cls.predictions
        head.decoder.weight, head.decoder.bias = self.bert.embeddings.word_embeddings.weight, head.bias


class LanguageModelHead(nn.Module):
    """Log probabilities of word-pieces, up to a constant, from states: [M, D] to [M, V]."""

    def __init__(self, config: SimpleNamespace) -> None:
        """Take the values of a ``config.json``; the weights hold nothing yet."""
        super().__init__()
        self.transform = Transform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor) -> Tensor:
        """The logits of the states."""
        return self.decoder(self.transform(states))


class Transform(nn.Module):
    """What the head does to states before it compares them with word-pieces: [M, D] to [M, D]."""

    def __init__(self, config: SimpleNamespace) -> None:
        """Take the values of a ``config.json``; the weights hold nothing yet."""
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.transform_act_fn = _activation(config)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, states: Tensor) -> Tensor:
        """The transformed states."""
        return self.LayerNorm(self.transform_act_fn(self.dense(states)))


def values(config: Any) -> dict[str, Any]:
    """The values of a model's config, ours or transformers'."""
    return config.to_dict() if hasattr(config, "to_dict") else dict(vars(config))


# --- making ----------------------------------------------------------------------------------------------------------


def language_model(config: dict[str, Any], generator: torch.Generator) -> MaskedLM:
    """A new BERT with its head: every matrix is drawn from N(0, initializer_range), that of padding is 0."""
    model = new(lambda: MaskedLM(config), config["initializer_range"], generator)
    model.tie()
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[config["pad_token_id"]].zero_()
        model.cls.predictions.bias.zero_()
    return model


def layers(config: Any, number: int, generator: torch.Generator) -> nn.ModuleList:
    """New Transformer layers, drawn as the others of a model with this config."""
    return new(lambda: nn.ModuleList(_layer(config) for _ in range(number)), config.initializer_range, generator)


def new(make: Callable[[], Part], spread: float, generator: torch.Generator) -> Part:
    """A new part, drawn from N(0, spread), its biases 0."""
    with torch.device("meta"):  # or it would draw weights of its own
        part = make()
    return part.to_empty(device="cpu").apply(lambda each: _draw(each, spread, generator))


def _draw(part: nn.Module, spread: float, generator: torch.Generator) -> None:
    if isinstance(part, nn.Linear | nn.Embedding):
        nn.init.normal_(part.weight, std=spread, generator=generator)
    if isinstance(part, nn.Linear):
        nn.init.zeros_(part.bias)
    elif isinstance(part, nn.LayerNorm):
        nn.init.ones_(part.weight)
        nn.init.zeros_(part.bias)


# --- reading ---------------------------------------------------------------------------------------------------------


def read(folder: Path | str, network: type[nn.Module] = Bert, drawn: torch.Generator | None = None) -> Bert | Scorer:
    """The network in a folder in transformers format, float32, in evaluation mode.

    A pooler is left aside unless it is read, and so is the head of a masked language model. `drawn` gives a `Scorer`
    that has none yet a head: N(0, the model's initializer_range), biases 0, as in BERT.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    config = read_json(folder / "config.json")
    try:
        with torch.device("meta"):
            found = network(config)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    weights = {}
    try:
        stored = load_file(folder / "model.safetensors")
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{folder}/model.safetensors cannot be read ({error}); delete {folder} and run again"
        ) from None
    for key, each in stored.items():
        name = key.removeprefix("bert.")
        for old, new in OLD_NAMES.items():  # encoders of earlier versions, of a checkpoint with these names
            name = name.replace(old, new)
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


def write(folder: Path, network: Bert | Scorer | MaskedLM) -> None:
    """Write config and weights so that transformers loads them without a warning.

    ``AutoModel`` expects a pooler of BERT, which no retriever has or reads: it is written as zeros.
    """
    from safetensors.torch import save_file

    config = {**values(network.config), "dtype": "float32"}
    weights = {key: each.detach().cpu().contiguous() for key, each in network.state_dict().items()}
    if isinstance(network, Bert):
        config["architectures"] = ["BertModel"]
        width = network.config.hidden_size
        weights |= {f"{POOLER}weight": torch.zeros(width, width), f"{POOLER}bias": torch.zeros(width)}
    elif isinstance(network, MaskedLM):
        config["architectures"] = ["BertForMaskedLM"]
        weights = {key: each for key, each in weights.items() if not key.startswith("cls.predictions.decoder.")}  # tied
    else:
        config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
        config["label2id"] = {"LABEL_0": 0}  # by which transformers knows that there is one
    write_json(folder / "config.json", config)
    with huggingface.writing():
        save_file(weights, folder / "model.safetensors", {"format": "pt"})


# --- parts -----------------------------------------------------------------------------------------------------------


def _layer(config: Any) -> nn.Module:
    width, wide, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
    attention = _block(
        self=_block(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width)),
        output=_block(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps)),
    )
    attention.self.num_attention_heads = config.num_attention_heads
    intermediate = _block(dense=nn.Linear(width, wide))
    intermediate.intermediate_act_fn = _activation(config)
    output = _block(dense=nn.Linear(wide, width), LayerNorm=nn.LayerNorm(width, eps))
    return _block(attention=attention, intermediate=intermediate, output=output)


def _activation(config: Any) -> nn.Module:
    if config.hidden_act not in ACTIVATIONS:
        raise InputError(f"the model has the activation {config.hidden_act}; allowed: {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[config.hidden_act]()


def _embedding(size: int, width: int) -> nn.Embedding:
    """A matrix that is never drawn: a normal draw on the meta device imports torch's compiler, a second or more."""
    return nn.Embedding(size, width, _weight=torch.empty(size, width))


def _block(**parts: nn.Module) -> nn.Module:
    """A module with these children."""
    module = nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    return module
