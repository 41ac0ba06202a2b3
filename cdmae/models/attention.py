"""The forward pass of transformers' encoders over packed passages, with their own weights.

Equal to the padded forward of transformers to 1e-5, at the price of the real word-pieces only. The last layer can be
computed at chosen rows alone: whoever reads only [CLS], or only masked positions, pays for nothing else.

    S rows, R selected rows, B passages, n longest passage, D hidden size, H heads (see `cdmae.models.packed`)

Dropout follows the model's ``hidden_dropout_prob`` when there is a generator, and is off without: randomness is
an argument. Attention probabilities are not dropped (no fused kernel for packed sequences can).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.models import architectures
from cdmae.models.packed import Layout, Packed, Rows, row_count

LONG = 256  # word-pieces beyond which padded attention computes its probabilities twice rather than keep them


def hidden_states(
    model: nn.Module, packed: Packed, *, last_rows: Rows | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """Compute the last hidden states [S, D] of an encoder without a head, or only those of `last_rows` [R, D]."""
    states = embed(model, packed, generator=generator)
    layers = architectures.layers(model)
    return finish(model, run(model, layers, states, packed, last_rows=last_rows, generator=generator))


def cls(model: nn.Module, packed: Packed, *, generator: torch.Generator | None = None) -> Tensor:
    """Compute the last hidden state of every passage's [CLS]: [B, D]."""
    return hidden_states(model, packed, last_rows=_cls_rows(packed), generator=generator)[: len(packed)]


def vectors(
    model: nn.Module,
    packed: Packed,
    pooling: str = "cls",
    similarity: str = "dot",
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Compute every passage's vector [B, D]: its [CLS], or with `pooling` mean the mean over all its rows.

    With `similarity` cosine vectors have length 1, such that their dot product is the cosine.
    """
    if pooling == "cls":
        pooled = cls(model, packed, generator=generator)
    else:
        pooled = mean(hidden_states(model, packed, generator=generator), packed)
    return nn.functional.normalize(pooled.float(), dim=-1) if similarity == "cosine" else pooled


def mean(states: Tensor, packed: Packed) -> Tensor:
    """Average states [S, D] over every passage's rows: [B, D], float32 where they have fewer bits."""
    wide = states[: len(packed.layout.cells)].to(torch.promote_types(states.dtype, torch.float32))
    return torch.segment_reduce(wide, "mean", lengths=packed.starts.diff().long(), axis=0, unsafe=True)


def embed(model: nn.Module, packed: Packed, *, generator: torch.Generator | None = None) -> Tensor:
    """Add up what the first layer reads [S, D]: word, position and type embeddings, as far as the encoder has them."""
    parts, config = model.embeddings, model.config
    if config.model_type == "modernbert":
        words = functional.embedding(packed.ids, parts.tok_embeddings.weight)
        return drop(parts.norm(words), config.embedding_dropout, generator)
    states = functional.embedding(packed.ids, parts.word_embeddings.weight)
    numbers = packed.positions + architectures.first_position(config)
    states = states + functional.embedding(numbers, parts.position_embeddings.weight)
    if hasattr(parts, "token_type_embeddings"):
        types = parts.token_type_embeddings.weight
        one = packed.types is None or len(types) == 1  # RoBERTa's tokenizers tell none
        states = states + (types[0] if one else functional.embedding(packed.types, types))
    states = drop(parts.LayerNorm(states), architectures.dropout(config), generator)
    project = getattr(model, "embeddings_project", None)
    return states if project is None else project(states).to(states.dtype)


def position_vectors(model: nn.Module, positions: Tensor) -> Tensor | None:
    """Return what `embed` adds for positions, int64 [R], before it normalises: [R, D]; None where it adds nothing."""
    if model.config.model_type == "modernbert":
        return None
    weight = model.embeddings.position_embeddings.weight
    vectors = functional.embedding(positions + architectures.first_position(model.config), weight)
    project = getattr(model, "embeddings_project", None)
    return vectors if project is None else functional.linear(vectors, project.weight).to(vectors.dtype)


def run(
    model: nn.Module,
    layers: nn.ModuleList,
    states: Tensor,
    packed: Packed,
    *,
    last_rows: Rows | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Apply layers of the encoder `model`, or copies of them, to `states` [S, D] of a batch; see `run_layers`."""
    return run_layers(
        layers,
        states,
        packed.layout,
        last_rows=last_rows,
        dropout=architectures.dropout(model.config),
        generator=generator,
        distances=Distances.of(model, packed.positions),
    )


def finish(model: nn.Module, states: Tensor) -> Tensor:
    """Return what the states of the last layer, or of an earlier one, are to those who read them: normalised."""
    return model.final_norm(states) if model.config.model_type == "modernbert" else states


def run_layers(
    layers: nn.ModuleList,
    states: Tensor,
    layout: Layout,
    *,
    last_rows: Rows | None = None,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
    distances: Distances | None = None,
) -> Tensor:
    """Apply layers to `states` [S, D]; with `last_rows` the last one is computed at those rows only: [R, D].

    distances: what the attention of these layers knows of positions; None for BERT's, which knows nothing.
    """
    one = _pre_norm_layer if distances is not None and distances.rotary is not None else _layer
    heads = _heads(layers[0])
    grid = Grid(layout, heads, distances and distances.positions)
    for layer in layers[:-1]:
        states = one(layer, states, states, grid, grid, dropout, generator, distances=distances)
    if last_rows is None:
        return one(layers[-1], states, states, grid, grid, dropout, generator, distances=distances)
    chosen = states.index_select(0, last_rows.index)
    to = Grid(last_rows.layout, heads, distances and distances.positions.index_select(0, last_rows.index))
    return one(layers[-1], chosen, states, to, grid, dropout, generator, distances=distances)


def read(
    layer: nn.Module,
    states: Tensor,
    to: Layout,
    context: Tensor,
    of: Layout,
    hidden: Tensor,
    *,
    dropout: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Apply one BERT layer at `states` [R, D], laid out `to`, each attending to its own part of `context` [S, D].

    hidden: bool [B, m, n] on the padded grids of `to` and `of`: what of its passage each row does not see; not all.
    """
    heads = _heads(layer)
    return _layer(layer, states, context, Grid(to, heads), Grid(of, heads), dropout, generator, ~hidden[:, None])


def _layer(
    layer: nn.Module,
    states: Tensor,
    context: Tensor,
    to: Grid,
    of: Grid,
    dropout: float,
    generator: torch.Generator | None,
    mask: Tensor | None = None,
    distances: Distances | None = None,
) -> Tensor:
    """Apply one post-LayerNorm layer at `states`, attending to `context` (the same tensor, except in a last layer)."""
    parts = _parts(layer)
    narrow = _narrow(context)
    query = parts.query(narrow if states is context else _narrow(states))
    key, value = parts.key(narrow), parts.value(narrow)
    if distances is not None:
        mask = distances.mask(layer, to, of)
    if mask is None:
        mixed = attention(query, key, value, to, of)
    else:
        mixed = attention_in_part(query, key, value, to, of, mask)
    states = parts.norm(states + drop(parts.mix(mixed), dropout, generator))
    wide = parts.widen(_narrow(states))
    return parts.last_norm(states + drop(parts.narrow(wide), dropout, generator))


class _Parts(NamedTuple):
    """The modules of a post-LayerNorm layer."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    mix: nn.Module
    norm: nn.Module
    widen: Callable[[Tensor], Tensor]
    narrow: nn.Module
    last_norm: nn.Module


def _parts(layer: nn.Module) -> _Parts:
    """Take the modules of a layer of DistilBERT, MPNet, or BERT, ELECTRA and RoBERTa."""
    block = layer.attention
    if hasattr(layer, "ffn"):
        wide = layer.ffn
        attended = block.q_lin, block.k_lin, block.v_lin, block.out_lin, layer.sa_layer_norm
        return _Parts(*attended, lambda states: wide.activation(wide.lin1(states)), wide.lin2, layer.output_layer_norm)
    if hasattr(block, "attn"):
        own = block.attn
        attended = own.q, own.k, own.v, own.o, block.LayerNorm
    else:
        own, after = block.self, block.output
        attended = own.query, own.key, own.value, after.dense, after.LayerNorm
    return _Parts(*attended, layer.intermediate, layer.output.dense, layer.output.LayerNorm)


def _heads(layer: nn.Module) -> int:
    """Return the number of a layer's attention heads."""
    if hasattr(layer, "attn"):  # ModernBERT
        return layer.config.num_attention_heads
    own = getattr(layer.attention, "self", None) or getattr(layer.attention, "attn", None) or layer.attention
    return own.n_heads if hasattr(own, "n_heads") else own.num_attention_heads


def _pre_norm_layer(
    layer: nn.Module,
    states: Tensor,
    context: Tensor,
    to: Grid,
    of: Grid,
    dropout: float,
    generator: torch.Generator | None,
    distances: Distances,
) -> Tensor:
    """Apply one layer of ModernBERT, as `_layer` does: LayerNorm before each half, attention that rotates."""
    product, width = layer.attn.Wqkv, states.shape[1]
    normed = _narrow(layer.attn_norm(context))
    if states is context:
        query, key, value = product(normed).split(width, dim=1)
    else:
        biases = (None, None) if product.bias is None else product.bias.split((width, 2 * width))
        query = functional.linear(_narrow(layer.attn_norm(states)), product.weight[:width], biases[0])
        key, value = functional.linear(normed, product.weight[width:], biases[1]).split(width, dim=1)
    query, key = distances.rotated(layer, query, to), distances.rotated(layer, key, of)
    mask = distances.mask(layer, to, of)
    if mask is None:
        mixed = attention(query, key, value, to, of)
    else:
        mixed = attention_in_part(query, key, value, to, of, mask)
    states = states + drop(layer.attn.Wo(mixed), layer.attn.attention_dropout, generator)
    wide, gate = layer.mlp.Wi(_narrow(layer.mlp_norm(states))).chunk(2, dim=1)
    return states + layer.mlp.Wo(drop(layer.mlp.act(wide) * gate, dropout, generator).to(wide.dtype))


def drop(states: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Zero a `share` of the numbers (to 1/65536) and scale the others up; nothing without a generator.

    Torch's own dropout on the CPU draws one number at a time, 16 ns each: with bf16 products as long as all the rest.
    The scale is float32, as is what the result is added to: in bf16 1 / .9 is 1.1094.
    """
    if generator is None or not share:
        return states
    kept = torch.empty_like(states, dtype=torch.promote_types(states.dtype, torch.float32), requires_grad=False)
    if states.is_cuda:
        return states * kept.bernoulli_(1 - share, generator=generator).div_(1 - share)
    count, low = states.numel(), torch.iinfo(torch.int64).min
    words = torch.empty(-(-count // 4), dtype=torch.int64, device=states.device).random_(low, None, generator=generator)
    draws = words.view(torch.int16)[:count].view(states.shape)
    torch.ge(draws, round(share * 65536) - 32768, out=kept)
    return states * kept.mul_(1 / (1 - share))


def _narrow(states: Tensor) -> Tensor:
    """Cast `states` to the dtype of autocast's products, once for all that read it."""
    device = states.device.type
    return states.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else states


def _cls_rows(packed: Packed) -> Rows:
    """Select the first row of every passage."""
    layout, on = packed.layout, packed.ids.device
    count = len(layout)
    rows = row_count(count, on)
    index = torch.zeros(rows, dtype=torch.int64, device=on)
    index[:count] = layout.starts[:-1]
    every = torch.arange(count + 1, device=on)
    return Rows(index, Layout(every.int(), rows, 1, every[:-1]))


# --- attention -------------------------------------------------------------------------------------------------------


class Grid:
    """A layout for attention with `heads` heads; its padded grid of cells [B, H, n] is computed when first needed."""

    def __init__(self, layout: Layout, heads: int, positions: Tensor | None = None) -> None:
        """See `cdmae.models.packed.Layout`; positions: int64, of each row within its passage, where attention asks."""
        self.layout, self.heads, self.positions = layout, heads, positions

    @cached_property
    def cells(self) -> Tensor:
        """The cell ``(b, h, position)`` of every real row's head, int64 [rows x H] in the order of the rows."""
        longest, cells = self.layout.longest, self.layout.cells
        first = cells + cells.div(longest, rounding_mode="floor") * ((self.heads - 1) * longest)
        return (first[:, None] + torch.arange(0, self.heads * longest, longest, device=cells.device)).view(-1)

    @cached_property
    def sources(self) -> Tensor:
        """The row's head that every cell takes its numbers from, int64 [B x H x n]; padding takes the first."""
        sources = self.cells.new_zeros(len(self.layout) * self.heads * self.layout.longest)
        return sources.index_copy_(0, self.cells, torch.arange(len(self.cells), device=sources.device))

    @cached_property
    def real(self) -> Tensor | None:
        """Which cells hold a row: bool [B, n]; None where all do."""
        layout = self.layout
        if len(layout.cells) == len(layout) * layout.longest:
            return None
        real = torch.zeros(len(layout) * layout.longest, dtype=torch.bool, device=layout.cells.device)
        return real.index_fill_(0, layout.cells, True).view(len(layout), layout.longest)

    @cached_property
    def places(self) -> Tensor:
        """The position of each cell, int64 [B, n]; 0 for padding, so that it sees something."""
        layout = self.layout
        places = torch.zeros(len(layout) * layout.longest, dtype=torch.int64, device=layout.cells.device)
        return places.index_copy_(0, layout.cells, self.positions[: len(layout.cells)]).view(len(layout), -1)

    @cached_property
    def hidden(self) -> Tensor:
        """What to add to scores so that padding is not attended to: 0 or minus infinity, [B x H, 1, n]."""
        layout = self.layout
        hidden = torch.zeros(len(layout), 1, layout.longest, device=layout.cells.device)
        if self.real is not None:
            hidden.masked_fill_(~self.real[:, None], -torch.inf)
        return hidden.repeat_interleave(self.heads, 0)

    def spread(self, states: Tensor) -> Tensor:
        """Rows [rows, D] to cells [B x H, n, D / H]; padding holds numbers that mean nothing."""
        cells = states.reshape(-1, states.shape[1] // self.heads).index_select(0, self.sources)
        return cells.view(len(self.layout) * self.heads, self.layout.longest, -1)

    def collect(self, states: Tensor) -> Tensor:
        """Cells [B x H, n, D / H] to rows [rows, D]; filler rows are 0."""
        rows = states.new_empty(self.layout.rows * self.heads, states.shape[-1])
        torch.index_select(states.view(-1, states.shape[-1]), 0, self.cells, out=rows[: len(self.cells)])
        rows[len(self.cells) :].zero_()
        return rows.view(self.layout.rows, -1)


def attention(query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid) -> Tensor:
    """Attend within each passage: scaled dot products.

    query [rows of `to`, D]; key, value [rows of `of`, D]; returns [rows of `to`, D], filler 0. On CUDA in half
    precision one kernel reads the packed rows; elsewhere, and with heads that the kernel refuses, they are spread over
    a padded grid for the time of this call.
    """
    size = query.shape[1] // to.heads
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and size % 8 == 0 and size <= 256:
        return _varlen(query, key, value, to, of)
    return _Attention.apply(query, key, value, to, of)


class _Attention(torch.autograd.Function):
    """Attention on a padded grid; as one function because its gradients are read, not added, where they are needed."""

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
        probabilities = _probabilities(q, k, of) if probabilities is None else probabilities
        gradient = to.spread(gradient)
        if to.real is not None:  # zero the padding
            gradient.view(len(to.layout), to.heads, to.layout.longest, -1).mul_(to.real[:, None, :, None])
        of_probabilities = torch.bmm(gradient, v.transpose(1, 2))
        of_scores = torch._softmax_backward_data(of_probabilities, probabilities, -1, probabilities.dtype)
        of_scores.mul_(q.shape[-1] ** -0.5)
        return (
            to.collect(torch.bmm(of_scores, k)),
            of.collect(torch.bmm(of_scores.transpose(1, 2), q)),
            of.collect(torch.bmm(probabilities.transpose(1, 2), gradient)),
            None,
            None,
        )


def attention_in_part(query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid, mask: Tensor) -> Tensor:
    """Attend by a `mask`, [B, H or 1, m, n]: bool, what each row sees; or numbers to add to the scores, -inf for none.

    Padding must not be seen, and every row must see something.
    """
    passages = len(to.layout)
    q, k, v = (  # [B, H, n, D / H]
        grid.spread(rows).view(passages, to.heads, grid.layout.longest, -1)
        for grid, rows in ((to, query), (of, key), (of, value))
    )
    mask = mask.to(q.dtype) if mask.is_floating_point() else mask
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    rows = mixed.reshape(-1, mixed.shape[-1]).index_select(0, to.cells).view(-1, query.shape[1])
    return functional.pad(rows, (0, 0, 0, to.layout.rows - len(rows)))


class Distances:
    """What the attention of MPNet and of ModernBERT knows of positions, for the layers of one forward pass."""

    def __init__(self, positions: Tensor, *, buckets: nn.Module | None = None, rotary: nn.Module | None = None) -> None:
        """positions: int64 [S]; buckets: MPNet's encoder, with a bias for each distance; rotary: ModernBERT's."""
        self.positions, self.buckets, self.rotary = positions, buckets, rotary
        self._masks: dict[tuple[Grid, Grid, str], Tensor | None] = {}
        self._turns: dict[tuple[Grid, str], tuple[Tensor, Tensor]] = {}

    @classmethod
    def of(cls, model: nn.Module, positions: Tensor) -> Distances | None:
        """Return that of an encoder; None for those whose attention knows nothing of positions."""
        if model.config.model_type == "mpnet":
            return cls(positions, buckets=model.encoder)
        return cls(positions, rotary=model.rotary_emb) if model.config.model_type == "modernbert" else None

    def mask(self, layer: nn.Module, to: Grid, of: Grid) -> Tensor | None:
        """Return a layer's mask for `attention_in_part`; None where every row sees its whole passage alike."""
        kind = "" if self.rotary is None else layer.attention_type
        if (to, of, kind) not in self._masks:
            self._masks[to, of, kind] = self._mask(layer, kind, to, of)
        return self._masks[to, of, kind]

    def _mask(self, layer: nn.Module, kind: str, to: Grid, of: Grid) -> Tensor | None:
        if kind == "full_attention":
            return None
        between = of.places[:, None] - to.places[:, :, None]  # [B, m, n]
        if kind:
            seen = (between.abs() <= layer.config.sliding_window)[:, None]
            return seen if of.real is None else seen & of.real[:, None, None]
        bias = self.buckets.relative_attention_bias(self.buckets.relative_position_bucket(between)).permute(0, 3, 1, 2)
        return bias if of.real is None else bias.masked_fill(~of.real[:, None, None], -torch.inf)

    def rotated(self, layer: nn.Module, rows: Tensor, grid: Grid) -> Tensor:
        """Rotate the heads of rows [rows, D] by their positions, in float32, as ModernBERT does."""
        kind = layer.attention_type
        if (grid, kind) not in self._turns:
            wide = rows.new_empty(0, dtype=torch.promote_types(rows.dtype, torch.float32))
            cos, sin = self.rotary(wide, grid.positions[None], kind)
            self._turns[grid, kind] = cos[0, :, None], sin[0, :, None]  # [rows, 1, D / H]
        cos, sin = self._turns[grid, kind]
        heads = rows.unflatten(1, (grid.heads, -1)).to(cos.dtype)
        low, high = heads.chunk(2, dim=-1)
        return (heads * cos + torch.cat([-high, low], dim=-1) * sin).flatten(1).to(rows.dtype)


def _probabilities(q: Tensor, k: Tensor, of: Grid) -> Tensor:
    """Compute how much each cell attends to each other: [B x H, n, n], 0 for padding."""
    return torch.baddbmm(of.hidden.to(q.dtype), q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5).softmax(-1)


def _varlen(query: Tensor, key: Tensor, value: Tensor, to: Grid, of: Grid) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    real_q, real_k = len(to.layout.cells), len(of.layout.cells)
    parts = (query, real_q), (key, real_k), (value, real_k)
    q, k, v = (rows[:real].unflatten(1, (to.heads, -1)) for rows, real in parts)
    mixed = varlen_attn(q, k, v, to.layout.starts, of.layout.starts, to.layout.longest, of.layout.longest)
    return functional.pad(mixed.flatten(1), (0, 0, 0, to.layout.rows - real_q))
