"""Attention between packed rows: each row attends to its own passage, never to padding.

Layers call `attend`, which has three implementations:

==============  ===================================================================================
packed kernel   on CUDA in half precision, without a mask: torch's ``varlen_attn`` reads the packed
                rows directly (`_varlen`); GPUs older than Ampere lack it
padded grid     elsewhere, without a mask: `_Attention`, with its own backward pass
masked grid     with a mask: torch's ``scaled_dot_product_attention`` (`_masked`), for RetroMAE's
                decoder and for attention that depends on positions (`Distances`): MPNet's biases,
                ModernBERT's windows
==============  ===================================================================================

Read `Grid` first: it spreads rows over padded cells during one call and collects them again. Then
read `attend` and its implementations, and `Distances` last. The grids `to` (of queries) and
`of` (of keys and values) differ if the last layer is computed only at selected rows.

Torch offers three alternatives to this file. All of them are slower on a CPU, where tests and small
runs train:

- ``scaled_dot_product_attention`` needs the padded grid too. On one core, forward and backward in
  bfloat16, it takes three to six times as long as `_Attention`:

  - 93 vs. 21 ms for 256 passages of 20 to 64 word-pieces (2 heads of 64),
  - 119 vs. 21 ms for 64 such passages (12 heads of 32),
  - 58 vs. 18 ms for 8 passages of 75 to 150 word-pieces (12 heads of 64).

  In float32 it takes 1.1 to 1.2 times as long. It is faster only at 300 to 512 word-pieces, 119 vs.
  220 ms.
- Jagged nested tensors do not support masks, and the CPU processes them passage by passage.
- ``flex_attention`` has no backward pass on the CPU.

    S rows, B passages, n longest passage, m rows of a passage that attend, D hidden size, H heads
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.models.packed import Layout, Rows

# above this length in word-pieces, padded attention recomputes its probabilities to save memory
LONG = 256
KERNEL = (8, 0)  # the first compute capability with the packed kernel


class Grid:
    """A layout for attention with `heads` heads; its padded grid is computed on demand."""

    def __init__(self, layout: Layout, heads: int, positions: Tensor | None = None) -> None:
        """Take a layout and, if attention depends on positions, each row's position, int64 [S]."""
        self.layout = layout
        self.passages = len(layout.starts) - 1
        self.heads = heads
        self.positions = positions

    def at(self, rows: Rows) -> Grid:
        """Return the grid of selected rows."""
        positions = None if self.positions is None else self.positions.index_select(0, rows.index)
        return Grid(rows, self.heads, positions)

    @cached_property
    def cells(self) -> Tensor:
        """Return the cell ``(b, h, position)`` of each real row's heads, int64 [rows x H]."""
        longest = self.layout.longest
        cells = self.layout.cells
        passage = cells.div(longest, rounding_mode="floor")
        first = cells + passage * ((self.heads - 1) * longest)
        heads = torch.arange(0, self.heads * longest, longest, device=cells.device)
        return (first[:, None] + heads).view(-1)

    @cached_property
    def sources(self) -> Tensor:
        """Return each cell's index into (row, head), int64 [B x H x n]; padding cells get 0."""
        sources = self.cells.new_zeros(self.passages * self.heads * self.layout.longest)
        rows = torch.arange(len(self.cells), device=sources.device)
        return sources.index_copy_(0, self.cells, rows)

    @cached_property
    def real(self) -> Tensor | None:
        """Return the mask of cells that hold a row, bool [B, n]; None if all do."""
        layout = self.layout
        if len(layout.cells) == self.passages * layout.longest:
            return None
        positions = torch.arange(layout.longest, device=layout.starts.device)
        return positions < layout.starts.diff()[:, None]

    @cached_property
    def cell_positions(self) -> Tensor:
        """Return each cell's position, int64 [B, n]; padding gets 0, and so can see a row."""
        layout = self.layout
        count = self.passages * layout.longest
        positions = torch.zeros(count, dtype=torch.int64, device=layout.cells.device)
        positions.index_copy_(0, layout.cells, self.positions[: len(layout.cells)])
        return positions.view(self.passages, layout.longest)

    @cached_property
    def hidden(self) -> Tensor:
        """Return the bias that masks padding: 0 or minus infinity, [B x H, 1, n]."""
        layout = self.layout
        hidden = torch.zeros(self.passages, 1, layout.longest, device=layout.cells.device)
        if self.real is not None:
            hidden.masked_fill_(~self.real[:, None], -torch.inf)
        return hidden.repeat_interleave(self.heads, 0)

    def spread(self, states: Tensor) -> Tensor:
        """Spread rows [rows, D] over cells [B x H, n, D / H]; padding holds arbitrary numbers."""
        cells = states.reshape(-1, states.shape[1] // self.heads).index_select(0, self.sources)
        return cells.view(self.passages * self.heads, self.layout.longest, -1)

    def collect(self, states: Tensor) -> Tensor:
        """Collect cells [B x H, n, D / H] into rows [rows, D]; filler rows are 0."""
        width = states.shape[-1]
        rows = states.new_empty(self.layout.size * self.heads, width)
        torch.index_select(states.view(-1, width), 0, self.cells, out=rows[: len(self.cells)])
        rows[len(self.cells) :].zero_()
        return rows.view(self.layout.size, -1)


def attend(
    query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid, mask: Tensor | None = None
) -> Tensor:
    """Attend within each passage: scaled dot products.

    query [rows of `to`, D]; key, value [rows of `of`, D]; returns [rows of `to`, D], filler 0.
    mask: [B, H or 1, m, n]. Booleans are true where a row sees another row; numbers are added to
    the scores, -inf where a row must not see another row. No row may see padding, and every row
    must see at least one row. Head sizes that the packed kernel refuses use the padded grid.
    """
    if mask is not None:
        return _masked(query, key, value, to, of, mask)
    size = query.shape[1] // to.heads
    if (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and size % 8 == 0
        and size <= 256
        and torch.cuda.get_device_capability(query.device) >= KERNEL
    ):
        return _varlen(query, key, value, to, of)
    # CUDA's autocast would return the softmax in float32, which the backward pass cannot
    # multiply with half precision
    with torch.autocast(query.device.type, enabled=False):
        return _Attention.apply(query, key, value, to, of)


def _varlen(query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid) -> Tensor:
    """Attend with the packed kernel, which reads the rows without padding."""
    from torch.nn.attention.varlen import varlen_attn

    def heads(rows: Tensor, grid: Grid) -> Tensor:
        return rows[: len(grid.layout.cells)].unflatten(1, (to.heads, -1))

    mixed = varlen_attn(
        heads(query, to),
        heads(key, of),
        heads(value, of),
        to.layout.starts,
        of.layout.starts,
        to.layout.longest,
        of.layout.longest,
    ).flatten(1)
    # On a GPU only an empty selection has filler; padding by 0 rows would make a copy.
    filler = to.layout.size - len(mixed)
    return functional.pad(mixed, (0, 0, 0, filler)) if filler else mixed


class _Attention(torch.autograd.Function):
    """Attention on a padded grid, as an autograd function with its own backward pass."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid) -> Tensor:
        q, k, v = to.spread(query), of.spread(key), of.spread(value)  # [B x H, n, D / H]
        probabilities = _probabilities(q, k, of)  # [B x H, n, n]
        ctx.grids = to, of
        ctx.save_for_backward(q, k, v, probabilities if of.layout.longest <= LONG else None)
        return to.collect(torch.bmm(probabilities, v))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to, of = ctx.grids
        q, k, v, probabilities = ctx.saved_tensors
        if probabilities is None:
            probabilities = _probabilities(q, k, of)
        gradient = to.spread(gradient)
        if to.real is not None:  # zero the padding
            cells = gradient.view(to.passages, to.heads, to.layout.longest, -1)
            cells.mul_(to.real[:, None, :, None])
        of_probabilities = torch.bmm(gradient, v.transpose(1, 2))
        of_scores = torch._softmax_backward_data(
            of_probabilities, probabilities, -1, probabilities.dtype
        )
        of_scores.mul_(q.shape[-1] ** -0.5)
        return (
            to.collect(torch.bmm(of_scores, k)),
            of.collect(torch.bmm(of_scores.transpose(1, 2), q)),
            of.collect(torch.bmm(probabilities.transpose(1, 2), gradient)),
            None,
            None,
        )


def _probabilities(q: Tensor, k: Tensor, of: Grid) -> Tensor:
    """Return each cell's attention probabilities for all cells, [B x H, n, n]; 0 for padding."""
    return torch.baddbmm(
        of.hidden.to(q.dtype), q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5
    ).softmax(-1)


def _masked(query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid, mask: Tensor) -> Tensor:
    """Attend with a mask on the padded grid, using torch's ``scaled_dot_product_attention``."""

    def cells(rows: Tensor, grid: Grid) -> Tensor:  # [B, H, n, D / H]
        return grid.spread(rows).view(to.passages, to.heads, grid.layout.longest, -1)

    if mask.is_floating_point():
        mask = mask.to(query.dtype)
    mixed = functional.scaled_dot_product_attention(
        cells(query, to), cells(key, of), cells(value, of), attn_mask=mask
    )
    rows = mixed.reshape(-1, mixed.shape[-1]).index_select(0, to.cells).view(-1, query.shape[1])
    return functional.pad(rows, (0, 0, 0, to.layout.size - len(rows)))


class Distances:
    """The positional terms of attention during one forward pass: MPNet's biases, and rotations.

    buckets: MPNet's encoder, which holds the biases. rotary: a rotary embedding.
    """

    def __init__(
        self, *, buckets: nn.Module | None = None, rotary: nn.Module | None = None
    ) -> None:
        """Compute each term once, on demand."""
        self.buckets = buckets
        self.rotary = rotary
        self._masks: dict[tuple[int, Grid, Grid], Tensor] = {}
        self._turns: dict[tuple[str, Grid], tuple[Tensor, Tensor]] = {}

    @classmethod
    def of(cls, model: nn.Module, layer: nn.Module) -> Distances | None:
        """Return the positional terms for layers of this type, or None if they have none."""
        if hasattr(layer, "attn") or hasattr(layer, "self_attn"):
            return cls(rotary=model.rotary_emb)
        return cls(buckets=model.encoder) if hasattr(layer.attention, "attn") else None

    def mask(self, layer: nn.Module, to: Grid, of: Grid) -> Tensor | None:
        """Return a layer's mask for `attend`; None if every row sees its whole passage."""
        window = 0
        if getattr(layer, "attention_type", "") == "sliding_attention":  # ModernBERT
            window = layer.config.sliding_window
        if self.rotary and not window:
            return None
        if (window, to, of) not in self._masks:
            self._masks[window, to, of] = self._mask(window, to, of)
        return self._masks[window, to, of]

    def _mask(self, window: int, to: Grid, of: Grid) -> Tensor:
        between = of.cell_positions[:, None] - to.cell_positions[:, :, None]  # [B, m, n]
        if window:
            seen = (between.abs() <= window)[:, None]
            return seen if of.real is None else seen & of.real[:, None, None]
        buckets = self.buckets.relative_position_bucket(between)
        bias = self.buckets.relative_attention_bias(buckets).permute(0, 3, 1, 2)  # [B, H, m, n]
        return bias if of.real is None else bias.masked_fill(~of.real[:, None, None], -torch.inf)

    def rotated(self, layer: nn.Module, rows: Tensor, grid: Grid) -> Tensor:
        """Rotate the heads of rows [rows, D] by their positions, in float32."""
        kind = getattr(layer, "attention_type", "")
        if (kind, grid) not in self._turns:
            wide = rows.new_empty(0, dtype=torch.promote_types(rows.dtype, torch.float32))
            cos, sin = self.rotary(wide, grid.positions[None], *([kind] if kind else []))
            self._turns[kind, grid] = cos[0, :, None], sin[0, :, None]  # [rows, 1, D / H]
        cos, sin = self._turns[kind, grid]
        heads = rows.unflatten(1, (grid.heads, -1)).to(cos.dtype)
        low, high = heads.chunk(2, dim=-1)
        return (heads * cos + torch.cat([-high, low], dim=-1) * sin).flatten(1).to(rows.dtype)
