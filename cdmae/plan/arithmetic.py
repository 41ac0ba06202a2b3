"""Floating-point operations of the networks, a multiplication and an addition counting as two.

Symbols: `d` width, `f` inner width, `V` vocabulary, `n` tokens of a text, special ones included.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdmae.config.schema import Start

BACKWARD = 2  # a backward pass is two forward ones: the gradients of the inputs and those of the weights


@dataclass(frozen=True)
class Network:
    """The dimensions of a Transformer encoder; the defaults are BERT base's."""

    layers: int = 12
    width: int = 768
    inner: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    heads: int = 12

    @classmethod
    def of(cls, start: Start) -> Network:
        """Return the network of a start."""
        if start.checkpoint:
            return cls.read(start.checkpoint)
        return cls(start.layers, start.hidden, start.feedforward, start.vocabulary, start.positions, start.heads)

    @classmethod
    def read(cls, model: str) -> Network:
        """Return the network of a model that is here; what is not, or does not tell, is BERT base's."""
        settings = _json(_folder(model) / "config.json")
        keys = {  # BERT's words, and DistilBERT's
            "layers": ("num_hidden_layers", "n_layers"), "width": ("hidden_size", "dim"),
            "inner": ("intermediate_size", "hidden_dim"), "heads": ("num_attention_heads", "n_heads"),
            "vocabulary": ("vocab_size",), "positions": ("max_position_embeddings",),
        }  # fmt: skip
        return cls(**{name: settings[key] for name, known in keys.items() for key in known if key in settings})

    def narrowed(self, share: float) -> Network:
        """Return the same with a share of the heads and of both widths."""
        width, inner, heads = (round(share * size) for size in (self.width, self.inner, self.heads))
        return replace(self, width=width, inner=inner, heads=heads)

    def parameters(self) -> int:
        """Weights of the layers and the embeddings."""
        layer = 4 * self.width**2 + 2 * self.width * self.inner + 9 * self.width + self.inner
        return self.layers * layer + (self.vocabulary + self.positions + 4) * self.width

    def layer(self, tokens: float) -> float:
        """One layer over a text of n tokens: 2 n (4 d^2 + 2 d f) for the weights, 4 n^2 d for the attention."""
        return 2 * tokens * (4 * self.width**2 + 2 * self.width * self.inner) + 4 * tokens**2 * self.width

    def forward(self, tokens: float) -> float:
        """All layers over a text of n tokens."""
        return self.layers * self.layer(tokens)

    def head(self, tokens: float) -> float:
        """Price the language-model head over some tokens: the transform d x d, and the vocabulary."""
        return 2 * tokens * (self.width**2 + self.width * self.vocabulary)


def longest(model: str) -> int:
    """Return the word-pieces to which sentence-transformers cuts texts for a model; 512 where it does not tell."""
    return _json(_folder(model) / "sentence_bert_config.json").get("max_seq_length") or Network.read(model).positions


def _folder(model: str) -> Path:
    """Where the network of a model lies: in its folder or in the hub's cache, there perhaps as the first module."""
    folder = Path(model)
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache

        cached = (try_to_load_from_cache(model, name) for name in ("modules.json", "config.json"))
        folder = next((Path(path).parent for path in cached if isinstance(path, str)), folder)
    modules = _json(folder / "modules.json")
    return folder / modules[0].get("path", "") if modules else folder


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def training(network: Network, tokens: float, *, cached: bool) -> float:
    """Price a text in training: forward and backward; with gradient caching, in several chunks, forward once more."""
    return (1 + cached + BACKWARD) * network.forward(tokens)


def reranking(network: Network, tokens: float, group: int, forward_factor: int, rdrop: bool) -> float:
    """Price a query's group: all pairs forward, the best ones forward and backward, twice with R-Drop."""
    trained = group / forward_factor * (1 + BACKWARD) * (2 if rdrop else 1)
    return (group + trained) * network.forward(tokens)
