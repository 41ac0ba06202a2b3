"""Count the networks' floating-point operations; a multiplication and an addition count as two.

Symbols: `d` width, `f` inner width, `V` vocabulary, `n` tokens of a text, special ones included.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config import pretrained

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.config.starts import Start
    from cdmae.plan.sizes import Size

BACKWARD = 2  # cost, in forward passes, of the gradients of the inputs and of the weights
TRAINED = 1 + BACKWARD  # a forward pass with its backward pass


@dataclass(frozen=True)
class Network:
    """The dimensions of a Transformer encoder; the defaults are BERT base's.

    embedding: the width of the embeddings if it differs from the layers' (ELECTRA)
    modern: ModernBERT's layers, with a gate (a third matrix), no biases, no learnt positions
    """

    layers: int = 12
    width: int = 768
    inner: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    heads: int = 12
    embedding: int = 0
    modern: bool = False

    @classmethod
    def of(cls, start: Start) -> Network:
        """Return the dimensions of an initial checkpoint's network."""
        if start.checkpoint:
            return cls.read(start.checkpoint)
        return cls(
            start.layers,
            start.hidden,
            start.feedforward,
            start.vocabulary,
            start.positions,
            start.heads,
        )

    @classmethod
    def read(cls, model: str) -> Network:
        """Return the dimensions of a local model; BERT base's if its sizes or files are missing."""
        settings = settings_of(model)
        if settings.get("model_type") == pretrained.COMPOSED:
            settings = settings.get("encoder") or {}
        keys = {  # BERT's keys, DistilBERT's, T5's and BART's
            "layers": ("num_hidden_layers", "n_layers", "num_layers", "encoder_layers"),
            "width": ("hidden_size", "dim", "d_model"),
            "inner": ("intermediate_size", "hidden_dim", "d_ff", "encoder_ffn_dim"),
            "heads": ("num_attention_heads", "n_heads", "num_heads", "encoder_attention_heads"),
            "vocabulary": ("vocab_size",),
            "positions": ("max_position_embeddings",),
            "embedding": ("embedding_size",),
        }
        sizes = {
            name: settings[key]
            for name, known in keys.items()
            for key in known
            if _is_size(settings.get(key))
        }
        return cls(**sizes, modern=settings.get("model_type") == "modernbert")

    def narrowed(self, share: float) -> Network:
        """Return a network with a share of the heads and of both widths."""
        width, inner, heads = (round(share * size) for size in (self.width, self.inner, self.heads))
        return replace(self, width=width, inner=inner, heads=heads)

    @property
    def inners(self) -> int:
        """Return the number of inner matrices: ModernBERT has a second one, the gate."""
        return 1 + self.modern

    @property
    def _matrices(self) -> int:
        """Return the weights of a layer's matrices: 4 d^2 + 2 d f, and ModernBERT's gate, d f."""
        return 4 * self.width**2 + (1 + self.inners) * self.width * self.inner

    def parameters(self) -> int:
        """Return the weights of the layers and the embeddings."""
        layer = self._matrices + (2 * self.width if self.modern else 9 * self.width + self.inner)
        embedding = self.embedding or self.width
        embedded = self.vocabulary + (1 if self.modern else self.positions + 4)
        projection = (embedding + 1) * self.width if embedding != self.width else 0
        return self.layers * layer + embedded * embedding + projection

    def layer(self, tokens: float) -> float:
        """Count a layer's operations on n tokens: 2 n per weight, and 4 n^2 d for attention."""
        return 2 * tokens * self._matrices + 4 * tokens**2 * self.width

    def forward(self, tokens: float) -> float:
        """Count the operations of all layers on a text of n tokens."""
        return self.layers * self.layer(tokens)

    def head(self, tokens: float) -> float:
        """Count the language-model head's operations: transform d x e, vocabulary e x V."""
        return 2 * tokens * (self.width + self.vocabulary) * (self.embedding or self.width)


def settings_of(model: str) -> dict[str, Any]:
    """Return the config.json of a local model; {} for other models."""
    return _object(_folder(model) / "config.json")


def longest(model: str) -> int:
    """Return the length to which sentence-transformers cuts texts; 512 if unknown."""
    cut = _object(_folder(model) / "sentence_bert_config.json").get("max_seq_length")
    own = cut if _is_size(cut) else pretrained.positions(str(_folder(model)))
    return own or Network().positions


def _folder(model: str) -> Path:
    """Return the folder of a model's network: local, in the hub's cache, or of the first module."""
    folder = Path(model)
    if not folder.is_dir() and find_spec("huggingface_hub"):
        from huggingface_hub import try_to_load_from_cache

        name, revision = pretrained.divided(model)
        files = ("modules.json", "config.json")
        cached = [try_to_load_from_cache(name, file, revision=revision) for file in files]
        folder = next((Path(path).parent for path in cached if isinstance(path, str)), folder)
    modules = _json(folder / "modules.json")
    return folder / modules[0].get("path", "") if modules else folder


def _is_size(value: Any) -> bool:
    """Return whether a value of a JSON file is a size."""
    return type(value) is int and value > 0


def _json(path: Path) -> Any:
    """Read a JSON file; return {} if it cannot be read: its job will report the error."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError):
        return {}


def _object(path: Path) -> dict[str, Any]:
    found = _json(path)
    return found if isinstance(found, dict) else {}


# --- pre-training ---------------------------------------------------------------------------------


def passage(network: Network, encoder: Pretraining, corpus: Size) -> float:
    """Count the operations of pre-training on a passage, forward and backward.

    A passage is `spans` times as long as each of its spans. Positions that no loss reads also
    count.
    """
    spans = encoder.spans
    n = encoder.read_tokens(corpus)
    trained = (
        network.forward(n)
        + encoder.decoder_layers * network.layer(n)
        + network.head(encoder.predicted(n))
    )
    return spans * (TRAINED * trained + encoder.further_flops(network, n))
