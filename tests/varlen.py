"""Torch's kernel for packed sequences, computed plainly on any device."""

import torch
from torch import Tensor


def varlen_attn(
    q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor, max_q: int, max_k: int
) -> Tensor:
    """What torch's kernel computes, one passage after the other, with what it demands (its
    `mha_varlen_fwd`).
    """
    assert starts_q.dtype == starts_k.dtype == torch.int32
    assert starts_q.is_contiguous()
    assert starts_k.is_contiguous()
    assert len(starts_q) == len(starts_k) > 1
    assert (len(q), len(k), len(v)) == (starts_q[-1], starts_k[-1], starts_k[-1])
    assert max_q >= max(1, starts_q.diff().max())
    assert max_k >= max(1, starts_k.diff().max())
    assert q.dtype == k.dtype == v.dtype
    assert all(each.stride(-1) == 1 and each.shape[1:] == q.shape[1:] for each in (q, k, v))
    assert q.shape[2] % 8 == 0
    assert q.shape[2] <= 256
    out = torch.full_like(q, torch.nan)
    for b in range(len(starts_k) - 1):
        to, of = slice(starts_q[b], starts_q[b + 1]), slice(starts_k[b], starts_k[b + 1])
        scores = torch.einsum("qhd,khd->hqk", q[to], k[of]) * q.shape[-1] ** -0.5
        out[to] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[of])
    return out
