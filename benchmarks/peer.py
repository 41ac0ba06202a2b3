"""The peer of the pre-training benchmark: the simplest form of an objective with little waste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from cdmae.pretraining.batches import Step
from cdmae.training import setup
from tests.naive import Naive, Side, tensor


@dataclass(frozen=True)
class Chunk(Step):
    """Some passages of a step, with each side's share of the step's targets."""

    shares: dict[str, float] = field(default_factory=dict)


class Sorted(Naive):
    """The same with little waste: transformers' modules and SDPA on chunks of similar lengths.

    The LM head reads only the predicted positions. This is for objectives whose losses are means
    over positions, with a given generator: mae, retromae and simlm.
    """

    def learn(self, step: Step, chunk: int, on: torch.device, precision: str) -> Tensor:
        """Add the gradient of a step to the weights, `chunk` passages at a time; return the loss.

        step: sorted by length, as the reader makes it.
        """
        total = torch.zeros((), device=on)
        for part in self.chunks(step, chunk):
            with torch.device(on), setup.autocast(precision, on):
                loss = self(part)
            loss.backward()
            total += loss.detach()
        return total

    def chunks(self, step: Step, chunk: int) -> Iterator[Chunk]:
        """Divide a step into chunks of `chunk` passages."""
        passages = len(step.sides["encoder"].inputs)
        for first in range(0, passages, chunk):
            cut = slice(first, min(passages, first + chunk))
            sides = {name: side[cut] for name, side in step.sides.items()}
            shares = {
                name: side.chosen.sum() / max(1, step.sides[name].chosen.sum())
                for name, side in sides.items()
            }
            yield Chunk(sides, step.spans, shares=shares)

    def loss(self, states: Tensor, side: Side) -> Tensor:
        """Compute the side's part of the mean of -log P(x | state) over all targets."""
        logits = self.model.cls(states[side.chosen]).float()
        return side.share * functional.cross_entropy(logits, side.labels[side.chosen])

    def replaced(self, step: Step, name: str) -> tuple[Tensor, None]:
        """Return a side's ids with masked tokens sampled; ELECTRA's head reads only these."""
        side = Side.of(step, name)
        masked = step.sides[name]
        electra = self.generator
        states = electra.electra(side.ids, attention_mask=side.attended).last_hidden_state
        states = electra.generator_predictions(states[side.chosen])
        sums = electra.generator_lm_head(states).float().softmax(-1).cumsum(-1)
        draws = tensor(masked.draws[masked.chosen])[:, None]
        ids = side.ids.clone()
        ids[side.chosen] = (sums <= draws * sums[:, -1:]).sum(-1)
        return ids, None

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """Attend by SDPA."""
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
