"""The forward pass of transformers' encoders over packed passages, with their own weights.

Its results equal the padded forward pass of transformers to 1e-5, but it spends no time on padding.
The last layer can be computed only at selected rows, such as [CLS] or masked positions.
transformers' own layers support neither.

This file has the functions for callers, then `run`, then the two kinds of layer. Attention is in
`cdmae.models.attention`, the modules of each architecture in `cdmae.models.architectures`.

    S rows, R selected rows, B passages, n longest passage, D hidden size; see `models.packed`

Dropout follows the model's ``hidden_dropout_prob`` if a generator is given, and is off otherwise.
Attention probabilities are not dropped, because no fused kernel for packed sequences supports it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from cdmae.models import architectures, attention
from cdmae.models.attention import Distances, Grid
from cdmae.models.packed import Layout, Packed, Rows, cls_rows


def hidden_states(
    model: nn.Module,
    packed: Packed,
    *,
    last_rows: Rows | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return the last hidden states of an encoder: [S, D], or only of `last_rows`, [R, D]."""
    states = embed(model, packed, generator=generator)
    layers = architectures.layers(model)
    states = run(model, layers, states, packed, last_rows=last_rows, generator=generator)
    return finish(model, states)


def vectors(
    model: nn.Module,
    packed: Packed,
    pooling: str = "cls",
    similarity: str = "dot",
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return each passage's vector [B, D]: its [CLS] state, or with mean pooling the mean state.

    With `similarity` cosine, vectors have length 1: their dot product is the cosine.
    """
    rows = cls_rows(packed) if pooling == "cls" else None
    states = hidden_states(model, packed, last_rows=rows, generator=generator)
    found = mean(states, packed) if rows is None else states[: len(packed)]
    return scaled(found, similarity)


def pooled(states: Tensor, packed: Packed, pooling: str, similarity: str) -> Tensor:
    """Return each passage's vector [B, D], as in `vectors`, from the states of all rows [S, D]."""
    found = states[packed.starts[:-1].long()] if pooling == "cls" else mean(states, packed)
    return scaled(found, similarity)


def scaled(vectors: Tensor, similarity: str) -> Tensor:
    """Scale vectors [B, D] to length 1 if they are compared by cosine."""
    if similarity == "dot":
        return vectors
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return functional.normalize(wide, dim=-1)


def mean(states: Tensor, packed: Packed) -> Tensor:
    """Average states [S, D] over every passage's rows: [B, D], in float32 or wider."""
    wide = states[: len(packed.cells)].to(torch.promote_types(states.dtype, torch.float32))
    lengths = packed.starts.diff().long()
    return torch.segment_reduce(wide, "mean", lengths=lengths, axis=0, unsafe=True)


def embed(model: nn.Module, packed: Packed, *, generator: torch.Generator | None = None) -> Tensor:
    """Return the first layer's input [S, D]: the sum of the encoder's embeddings, normalised.

    The sum includes embeddings of words, positions and types, if the encoder has them.
    """
    parts = model.embeddings
    config = model.config
    if config.model_type == "modernbert":
        words = functional.embedding(packed.ids, parts.tok_embeddings.weight)
        return drop(parts.norm(words), config.embedding_dropout, generator)
    states = functional.embedding(packed.ids, parts.word_embeddings.weight)
    if hasattr(parts, "position_embeddings"):
        numbers = packed.positions + architectures.first_position(config)
        states = states + functional.embedding(numbers, parts.position_embeddings.weight)
    if getattr(parts, "token_type_embeddings", None) is not None:
        types = parts.token_type_embeddings.weight
        if packed.types is None or len(types) == 1:  # RoBERTa has only one type
            states = states + types[0]
        else:
            states = states + functional.embedding(packed.types, types)
    states = drop(parts.LayerNorm(states), architectures.dropout(config), generator)
    project = getattr(model, "embeddings_project", None)
    return states if project is None else project(states).to(states.dtype)


def position_vectors(model: nn.Module, positions: Tensor) -> Tensor:
    """Return the position embeddings that `embed` adds, [R, D], for positions int64 [R].

    They are not normalised yet. Encoders with rotary attention have no position embeddings.
    """
    weight = model.embeddings.position_embeddings.weight
    vectors = functional.embedding(positions + architectures.first_position(model.config), weight)
    project = getattr(model, "embeddings_project", None)
    if project is None:
        return vectors
    return functional.linear(vectors, project.weight).to(vectors.dtype)


def run(
    model: nn.Module,
    layers: nn.ModuleList,
    states: Tensor,
    packed: Packed,
    *,
    last_rows: Rows | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Apply layers to `states` [S, D].

    If `last_rows` is given, the last layer is computed only at these rows, [R, D].

    layers: layers of the encoder `model`, copies of its layers, or the layers of a decoder. A
    decoder has BERT layers, whatever the encoder. Rows attend only to the batch's `seen` rows.
    """
    distances = Distances.of(model, layers[0])
    whole = Grid(packed, model.config.num_attention_heads, packed.positions)
    seen = whole if packed.seen is None else whole.at(packed.seen)
    product = product_type(states)
    dropout = architectures.dropout(model.config)
    for layer in layers:
        context = states if packed.seen is None else states.index_select(0, packed.seen.index)
        to = whole
        if last_rows is not None and layer is layers[-1]:
            to = whole.at(last_rows)
            states = states.index_select(0, last_rows.index)
        mask = distances.mask(layer, to, seen) if distances else None
        call = _Call(to, seen, mask, product, dropout, generator)
        apply = _pre_norm_layer if hasattr(layer, "attn") else _layer
        states = apply(layer, states, context, call, distances)
    return states


def finish(model: nn.Module, states: Tensor) -> Tensor:
    """Return the last layer's states for heads and pooling, normalised for ModernBERT."""
    return model.final_norm(states) if model.config.model_type == "modernbert" else states


def read(
    model: nn.Module,
    layer: nn.Module,
    states: Tensor,
    to: Layout,
    context: Tensor,
    of: Layout,
    hidden: Tensor,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Apply a BERT layer to `states` [R, D] with layout `to`, attending to `context` [S, D].

    model: an encoder of the same sizes. hidden: a mask, bool [B, m, n], on the padded grids of `to`
    and `of`, true where a row must not see another row. Every row must see at least one row.
    """
    heads = model.config.num_attention_heads
    mask = ~hidden[:, None]
    product = product_type(states)
    dropout = architectures.dropout(model.config)
    call = _Call(Grid(to, heads), Grid(of, heads), mask, product, dropout, generator)
    return _layer(layer, states, context, call)


# --- a layer --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Call:
    """How a layer is called: the rows of the grid `to` attend to the rows of the grid `of`.

    mask: see `attention.attend`. product: the dtype of products, to which states are cast once
    instead of for each product. dropout: the probability.
    """

    to: Grid
    of: Grid
    mask: Tensor | None
    product: torch.dtype
    dropout: float
    generator: torch.Generator | None


def _layer(
    layer: nn.Module,
    states: Tensor,
    context: Tensor,
    call: _Call,
    distances: Distances | None = None,
) -> Tensor:
    """Apply a post-LayerNorm layer to `states`, attending to `context`.

    Both are the same tensor, except in a last layer.
    """
    parts = architectures.parts(layer)
    narrow = context.to(call.product)
    query = parts.query(narrow if states is context else states.to(call.product))
    key = parts.key(narrow)
    if distances and distances.rotary:
        query = distances.rotated(layer, query, call.to)
        key = distances.rotated(layer, key, call.of)
    mixed = attention.attend(query, key, parts.value(narrow), call.to, call.of, call.mask)
    states = parts.norm(states + drop(parts.mix(mixed), call.dropout, call.generator))
    wide = parts.widen(states.to(call.product))
    return parts.last_norm(states + drop(parts.narrow(wide), call.dropout, call.generator))


def _pre_norm_layer(
    layer: nn.Module, states: Tensor, context: Tensor, call: _Call, distances: Distances
) -> Tensor:
    """Apply a ModernBERT layer, with LayerNorm before each half and rotary attention."""

    def products(rows: Tensor) -> tuple[Tensor, ...]:
        return layer.attn.Wqkv(layer.attn_norm(rows).to(call.product)).chunk(3, dim=1)

    query, key, value = products(context)
    if states is not context:
        query = products(states)[0]
    query = distances.rotated(layer, query, call.to)
    key = distances.rotated(layer, key, call.of)
    mixed = attention.attend(query, key, value, call.to, call.of, call.mask)
    share = layer.attn.attention_dropout
    states = states + drop(layer.attn.Wo(mixed), share, call.generator)
    wide, gate = layer.mlp.Wi(layer.mlp_norm(states).to(call.product)).chunk(2, dim=1)
    gated = drop(layer.mlp.act(wide) * gate, call.dropout, call.generator)
    return states + layer.mlp.Wo(gated.to(wide.dtype))


def drop(states: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Set a random `share` of the values to 0, and scale the others up.

    On the CPU, the share is rounded to 1/65536. Without a generator, the states are returned
    unchanged.

    Torch's dropout on the CPU draws one number at a time, 16 ns each. With bf16 products, this
    would take as long as all other work. The scale is float32, because 1 / 0.9 becomes 1.1094 in
    bf16.
    """
    if generator is None or not share:
        return states
    wide = torch.promote_types(states.dtype, torch.float32)
    kept = torch.empty_like(states, dtype=wide, requires_grad=False)
    if states.is_cuda:
        return states * kept.bernoulli_(1 - share, generator=generator).div_(1 - share)
    count = states.numel()
    words = torch.empty(-(-count // 4), dtype=torch.int64, device=states.device)
    words.random_(torch.iinfo(torch.int64).min, None, generator=generator)
    draws = words.view(torch.int16)[:count].view(states.shape)
    torch.ge(draws, round(share * 65536) - 32768, out=kept)
    return states * kept.mul_(1 / (1 - share))


def product_type(states: Tensor) -> torch.dtype:
    """Return autocast's dtype for products of `states`, or their own without autocast."""
    device = states.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return states.dtype
