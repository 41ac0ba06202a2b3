"""Pre-training steps of RetroMAE and SimLM as they compute them: padded, with the LM head at every position.

Written after the published code, data preparation left out: ``src/pretrain/modeling.py`` and ``enhancedDecoder.py`` of
RetroMAE, ``src/models/rlm.py`` of SimLM. All take the same passages and masks, none drops out.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertForMaskedLM, ElectraConfig, ElectraForMaskedLM

from cdmae.batches import Masked, Step

IGNORED = -100


def padded(masked: Masked) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs, attention mask, original ids (`IGNORED` for special tokens) and choices of a side, all [B, n]."""
    starts = masked.inputs.starts
    lengths = np.diff(starts)
    real = np.arange(lengths.max()) < lengths[:, None]
    ids, labels, chosen = np.zeros(real.shape, int), np.full(real.shape, IGNORED), np.zeros(real.shape, bool)
    ids[real], labels[real], chosen[real] = masked.inputs.values, masked.labels, masked.chosen
    labels[:, 0], labels[np.arange(len(lengths)), lengths - 1] = IGNORED, IGNORED
    return tuple(torch.from_numpy(each) for each in (ids, real, labels, chosen))


def hidden(attended: Tensor) -> Tensor:
    """What to add to attention scores: 0 where attended to, as broadcastable to [B, H, n, n]."""
    return torch.zeros(attended.shape).masked_fill(~attended, torch.finfo(torch.float32).min)


class RetroMae(nn.Module):
    """One decoder layer whose positions each see their own random subset of the passage; its loss is on all tokens."""

    def __init__(self, model: BertForMaskedLM) -> None:
        """A new decoder layer around `model`."""
        super().__init__()
        config = model.config
        self.model, self.heads = model, config.num_attention_heads
        width, inner = config.hidden_size, config.intermediate_size
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.last_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, step: Step) -> Tensor:
        """The encoder's loss and the enhanced decoder's."""
        ids, attended, labels, chosen = padded(step.sides["encoder"])
        out = self.model(
            ids, attention_mask=attended, labels=labels.masked_fill(~chosen, IGNORED), output_hidden_states=True
        )
        cls = out.hidden_states[-1][:, :1]
        embeddings, count = self.model.bert.embeddings, ids.shape[1]
        original = torch.where(labels == IGNORED, ids, labels)
        states = torch.cat([cls, embeddings(original)[:, 1:]], dim=1)
        query = embeddings.position_embeddings(torch.arange(count))[None] + cls
        seen = (torch.rand(len(ids), count, count) < 0.5) & ~torch.eye(count, dtype=torch.bool)
        seen[:, :, 0] = True
        states = self.decode(query, states, hidden(seen & attended[:, None]))
        scores = self.model.cls(states)
        return out.loss + functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    def decode(self, query: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """The enhanced decoder's layer."""
        split = (*query.shape[:2], self.heads, -1)
        q, k, v = (
            part(each).view(split).transpose(1, 2)
            for part, each in ((self.query, query), (self.key, states), (self.value, states))
        )
        weights = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + mask[:, None]).softmax(-1)
        mixed = self.norm(self.dense((weights @ v).transpose(1, 2).flatten(2)) + query)
        return self.last_norm(self.narrow(functional.gelu(self.wide(mixed))) + mixed)


class SimLm(nn.Module):
    """A frozen ELECTRA generator fills the masks of both sides; both losses are on all tokens."""

    def __init__(self, model: BertForMaskedLM) -> None:
        """A generator of a third of the width, as electra-base-generator has; the decoder copies the last 2 layers."""
        super().__init__()
        config = model.config
        self.model = model
        self.decoder = copy.deepcopy(model.bert.encoder.layer[-2:])
        heads = max(1, config.num_attention_heads // 3)
        width = config.hidden_size // 3 // heads * heads
        sizes = {
            "vocab_size": config.vocab_size,
            "embedding_size": config.hidden_size,
            "hidden_size": width,
            "num_hidden_layers": config.num_hidden_layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * width,
        }
        self.generator = ElectraForMaskedLM(ElectraConfig(**sizes, attn_implementation="eager")).eval()
        self.generator.requires_grad_(False)

    def forward(self, step: Step) -> Tensor:
        """The encoder's loss and the decoder's."""
        ids, attended, labels, _ = padded(step.sides["encoder"])
        out = self.model(
            self.replace(step.sides["encoder"]), attention_mask=attended, labels=labels, output_hidden_states=True
        )
        embedded = self.model.bert.embeddings(self.replace(step.sides["decoder"]))
        states = torch.cat([out.hidden_states[-1][:, :1], embedded[:, 1:]], dim=1)
        for layer in self.decoder:
            states = layer(states, attention_mask=hidden(attended)[:, None, None])
        scores = self.model.cls(states)
        return out.loss + functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    @torch.no_grad()
    def replace(self, side: Masked) -> Tensor:
        """Sample every masked token from the generator."""
        ids, attended, labels, chosen = padded(side)
        out = self.generator(ids, attention_mask=attended, labels=labels.masked_fill(~chosen, IGNORED))
        sampled = torch.distributions.Categorical(logits=out.logits).sample()
        return torch.where(chosen, sampled, ids)


def parameters(*networks: nn.Module) -> list[nn.Parameter]:
    """What is trained, each once."""
    every = itertools.chain(*(network.parameters() for network in networks))
    return list({id(each): each for each in every if each.requires_grad}.values())
