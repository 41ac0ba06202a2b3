"""Compute every objective literally as in its paper.

Batches are padded, layers are transformers' own, and the LM head reads every position.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from cdmae.pretraining.batches import Step

IGNORED = -100
LAYERS = ("decoder", "neighbour", "complement", "head")  # the parts of ours that are layers


class Side(NamedTuple):
    """A padded side of a step, [B, n] each: inputs, attention mask, original ids, targets.

    share: the side's share of the targets of the global batch.
    """

    ids: Tensor
    attended: Tensor
    labels: Tensor
    chosen: Tensor
    share: float = 1.0

    @classmethod
    def of(cls, step: Step, name: str) -> Side:
        """Return the side `name` of a step, padded."""
        masked = step.sides[name]
        real = _real(step, name)
        parts = [np.zeros(real.shape, kind) for kind in (np.int64, np.int64, bool)]
        for part, values in zip(
            parts, (masked.inputs.values, masked.labels, masked.chosen), strict=True
        ):
            part[real] = values
        ids, labels, chosen = map(tensor, parts)
        share = getattr(step, "shares", {}).get(name, 1.0)
        return cls(ids, tensor(real), labels, chosen, share)

    @property
    def hidden(self) -> Tensor:
        """Return the mask that transformers adds to attention scores: [B, 1, 1, n]."""
        return added(self.attended)[:, None, None, :]


def tensor(array: np.ndarray) -> Tensor:
    """Put an array on the default device."""
    return torch.from_numpy(array).to(torch.get_default_device())


def _real(step: Step, name: str) -> np.ndarray:
    lengths = np.diff(step.sides[name].inputs.starts)
    return np.arange(lengths.max()) < lengths[:, None]


def added(attended: Tensor) -> Tensor:
    """Return 0 for attended positions and minus infinity elsewhere, in the same shape."""
    return torch.zeros(attended.shape).masked_fill(~attended, -torch.inf)


class Naive(nn.Module):
    """The padded form of an objective, by its name, with the weights of `network`."""

    def __init__(self, name: str, network: nn.Module, given: nn.Module | None = None) -> None:
        """Use the weights of an objective of `cdmae.pretraining.objectives`, without copies."""
        super().__init__()
        self.model = network.model
        self.network = network
        parts = [part for part in LAYERS if isinstance(getattr(network, part, None), nn.ModuleList)]
        self.layers = nn.ModuleDict({part: getattr(network, part) for part in parts})
        if name == "simlm":
            self.learns = given is None
            self.generator = given or network.generator
            for each in (self.model, self.generator):  # a sampled [PAD] is a token like any other
                each.get_input_embeddings().padding_idx = None

    def forward(self, step: Step) -> Tensor:
        """Compute the loss of a global batch, by the formula of the objective or of its base."""
        names = [kind.__dict__.get("name", "") for kind in type(self.network).__mro__]
        formula = next(name for name in names if hasattr(self, name))
        return getattr(self, formula)(step)

    # --- the objectives ---------------------------------------------------------------------------

    def mlm(self, step: Step) -> Tensor:
        """Compute equation 3: the mean of -log P(x | h) over the encoder's masked tokens."""
        encoder = Side.of(step, "encoder")
        return self.loss(self.states(encoder)[-1], encoder)

    def mae(self, step: Step) -> Tensor:
        """Compute equation 9; the decoder restores the encoder's own text."""
        encoder = Side.of(step, "encoder")
        decoder = Side.of(step, "decoder")
        states = self.states(encoder)[-1]
        h_b = getattr(self.network, "projection", nn.Identity())(self.vector(states, encoder))
        return self.loss(states, encoder) + self.loss(
            self.decoded("decoder", h_b, decoder), decoder
        )

    def seed(self, step: Step) -> Tensor:
        """SEED-Encoder: -log P(x_t | h, the tokens before it that the span allows), for every t."""
        encoder, passage = Side.of(step, "encoder"), Side.of(step, "decoder")
        states = self.states(encoder)[-1]
        h = self.vector(states, encoder)
        decoded = torch.cat([h, self.model.bert.embeddings(passage.ids)[:, 1:]], dim=1)
        rows = passage.ids.shape[1]
        span = self.network.settings.attention_span
        seen = torch.ones(rows, rows, dtype=torch.bool).tril().triu(1 - span)
        seen[:, 0] = True
        for layer in self.layers["decoder"]:
            decoded = layer(decoded, attention_mask=added(seen)[None, None])
        following = passage._replace(labels=passage.labels[:, 1:], chosen=passage.chosen[:, 1:])
        return self.loss(states, encoder) + self.loss(decoded[:, :-1], following)

    def lexmae(self, step: Step) -> Tensor:
        """LexMAE: the decoder reads softmax(max_i z_i) E, in which E is a constant."""
        encoder, decoder = Side.of(step, "encoder"), Side.of(step, "decoder")
        states = self.states(encoder)[-1]
        words = encoder.attended.clone()
        words[:, 0] = False
        words[torch.arange(len(words)), encoder.attended.sum(1) - 1] = False  # [SEP]
        logits = self.model.cls(states).masked_fill(~words[..., None], -torch.inf).max(1).values
        logits = torch.where(words.any(1)[:, None], logits, 0.0)
        embeddings = self.model.bert.embeddings.word_embeddings.weight.detach()
        h_b = (logits.softmax(-1) @ embeddings)[:, None]
        return self.loss(states, encoder) + self.loss(
            self.decoded("decoder", h_b, decoder), decoder
        )

    def master(self, step: Step) -> Tensor:
        """Add the losses of decoders: of the encoder's own text and of the next span.

        A second pass of the encoder has a loss, and a decoder of the words that it sees.
        """
        encoder = Side.of(step, "encoder")
        following = Side.of(step, "neighbour")
        states = self.decoded(
            "neighbour", self.vector(self.states(encoder)[-1], encoder), following
        )
        loss = self.mae(step) + self.loss(states, following)
        if "complement" in self.layers:
            second = Side.of(step, "second")
            rest = Side.of(step, "complement")
            states = self.states(second)[-1]
            seen = self.decoded("complement", self.vector(states, second), rest)
            loss = loss + self.loss(states, second) + self.loss(seen, rest)
        return loss

    def retromae(self, step: Step) -> Tensor:
        """Compute enhanced decoding and a loss on all tokens.

        H1 = h + p, H2 = [h; e + p], softmax(Q K^T / sqrt d + M) V
        """
        encoder = Side.of(step, "encoder")
        decoder = Side.of(step, "decoder")
        states = self.states(encoder)[-1]
        decoded = self.enhanced(self.vector(states, encoder), decoder, step)
        return self.loss(states, encoder) + self.loss(decoded, decoder)

    def dupmae(self, step: Step) -> Tensor:
        """Add the bag-of-words loss to RetroMAE's losses.

        -1 / n x sum over the set of log softmax(max over positions but [CLS])
        """
        encoder = Side.of(step, "encoder")
        passage = Side.of(step, "passage")
        logits = self.model.cls(self.states(encoder)[-1])[:, 1:]
        pooled = logits.masked_fill(~encoder.attended[:, 1:, None], -torch.inf).max(1).values
        number = passage.chosen.sum(1, keepdim=True).clamp_min(1)
        bags = self.bags(passage) / number
        return (
            self.retromae(step)
            + self.network.settings.bag_weight * -(bags * pooled.log_softmax(-1)).sum(1).mean()
        )

    def bowdpr(self, step: Step) -> Tensor:
        """Add -1 / |set(x)| x sum over the set of log P(t | h_c) to the encoder's loss."""
        encoder = Side.of(step, "encoder")
        bags = self.bags(Side.of(step, "passage"))
        states = self.states(encoder)[-1]
        logs = self.model.cls(self.vector(states, encoder)[:, 0]).log_softmax(-1)
        bags = bags / bags.sum(1, keepdim=True).clamp_min(1)
        return (
            self.loss(states, encoder)
            + self.network.settings.bag_weight * -(bags * logs).sum(1).mean()
        )

    def condenser(self, step: Step) -> Tensor:
        """Compute the late MLM loss, and the loss of a head on [h_cls late; h early]."""
        encoder = Side.of(step, "encoder")
        states = self.states(encoder)
        head = self.decoded("head", states[-1][:, :1], encoder, states[self.network.early])
        return self.loss(states[-1], encoder) + self.loss(head, encoder)

    def cocondenser(self, step: Step) -> Tensor:
        """Add the contrastive loss of spans to Condenser's losses.

        -log of each span's share of its neighbour among the scores of all other spans
        """
        h = self.states(Side.of(step, "encoder"))[-1][:, 0]
        scores = (h @ h.T).fill_diagonal_(-torch.inf)
        return self.condenser(step) + functional.cross_entropy(scores, torch.arange(len(h)) ^ 1)

    def contriever(self, step: Step) -> Tensor:
        """-log of the share of a crop's own passage in its scores with all second crops."""
        crops = Side.of(step, "encoder")
        h = self.vector(self.states(crops)[-1], crops)[:, 0]
        scores = h[::2] @ h[1::2].T / self.network.settings.temperature
        return functional.cross_entropy(scores, torch.arange(len(scores)))

    def simlm(self, step: Step) -> Tensor:
        """Compute the losses of both sides; each predicts the original of every token.

        The generator learns from the encoder's masks.
        """
        masked = Side.of(step, "encoder")
        text = Side.of(step, "passage")
        filled, logits = self.replaced(step, "encoder")
        with torch.no_grad():
            more, _ = self.replaced(step, "decoder")
        states = self.states(text._replace(ids=filled))[-1]
        decoded = self.decoded("decoder", self.vector(states, text), text._replace(ids=more))
        loss = self.loss(states, text) + self.loss(decoded, text)
        return loss + _cross_entropy(logits, masked) if self.learns else loss

    # --- their parts ------------------------------------------------------------------------------

    def states(self, side: Side) -> tuple[Tensor, ...]:
        """Return the output of every layer of the encoder, [B, n, D] each, its input first."""
        return self.model.bert(
            side.ids, attention_mask=side.attended, output_hidden_states=True
        ).hidden_states

    def vector(self, states: Tensor, side: Side) -> Tensor:
        """Return a side's vectors [B, 1, D]: [CLS], or with `pooling` mean the mean."""
        if self.network.settings.pooling == "cls":
            return states[:, :1]
        shares = side.attended / side.attended.sum(1, keepdim=True)
        return torch.einsum("bn,bnd->bd", shares, states)[:, None]

    def decoded(self, part: str, h: Tensor, side: Side, states: Tensor | None = None) -> Tensor:
        """Apply layers to the vectors [B, 1, D] and a side's `states` or embeddings."""
        states = torch.cat(
            [h, (self.model.bert.embeddings(side.ids) if states is None else states)[:, 1:]], dim=1
        )
        for layer in self.layers[part]:
            states = layer(states, attention_mask=side.hidden)
        return states

    def loss(self, states: Tensor, side: Side) -> Tensor:
        """Compute the mean of -log P(x | state) over the targets of a side."""
        return _cross_entropy(self.model.cls(states), side)

    def bags(self, side: Side) -> Tensor:
        """Mark the word-pieces of each passage by 1, all others by 0: [B, V]."""
        bags = torch.zeros(len(side.ids), self.model.config.vocab_size)
        row, _ = side.chosen.nonzero(as_tuple=True)
        bags[row, side.labels[side.chosen]] = 1
        return bags

    def replaced(self, step: Step, name: str) -> tuple[Tensor, Tensor]:
        """Return a side's ids with masked tokens sampled from the logits [B, n, V]."""
        side = Side.of(step, name)
        masked = step.sides[name]
        logits = self.generator(side.ids, attention_mask=side.attended).logits
        sums = logits[side.chosen].softmax(-1).cumsum(-1)
        draws = tensor(masked.draws[masked.chosen])[:, None]
        ids = side.ids.clone()
        ids[side.chosen] = (sums <= draws * sums[:, -1:]).sum(-1)
        return ids, logits

    def enhanced(self, h: Tensor, side: Side, step: Step) -> Tensor:
        """Apply RetroMAE's layer to vectors [B, 1, D]; each position has its own mask."""
        (layer,) = self.layers["decoder"]
        bert = self.model.bert
        (passages, rows) = side.ids.shape
        parts = layer.attention.self
        after = layer.attention.output
        h1 = h + bert.embeddings.position_embeddings.weight[:rows]
        h2 = torch.cat([h, bert.embeddings(side.ids)[:, 1:]], dim=1)
        q, k, v = (
            part(each).view(passages, rows, parts.num_attention_heads, -1).transpose(1, 2)
            for part, each in ((parts.query, h1), (parts.key, h2), (parts.value, h2))
        )
        seen = self.seen(side, step)[:, None]
        mixed = self.mixed(q, k, v, seen)
        states = after.LayerNorm(after.dense(mixed.transpose(1, 2).flatten(2)) + h1)
        return layer.output(layer.intermediate(states), states)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """Attend [B, heads, n, d] to the positions that are seen, bool [B, 1, n, n]."""
        return (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + added(seen)).softmax(-1) @ v

    def seen(self, side: Side, step: Step) -> Tensor:
        """Return the attention of each position: bool [B, n, n]; padding attends to [CLS]."""
        masked = step.sides["decoder"]
        seen = ~tensor(masked.hide(masked.texts))
        last = side.attended.sum(1) - 1
        seen[torch.arange(len(last)), :, last] = True  # [SEP]
        return seen & side.attended[:, None]


def _cross_entropy(logits: Tensor, side: Side) -> Tensor:
    labels = side.labels.masked_fill(~side.chosen, IGNORED)
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
