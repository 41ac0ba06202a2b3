"""What a CPU can tell of the paths that CUDA takes.

`like_cuda` lets the CPU take them: rows without filler, the packed kernel (`varlen_attn`, which
checks what torch's demands), and the casts of CUDA's autocast, for which a build without CUDA
has no tensors.
"""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch.overrides import TorchFunctionMode

from benchmarks import gpu, pretraining
from cdmae.models import packed
from cdmae.pretraining.objectives import _prediction

CPU = torch.device("cpu")
# what CUDA's autocast computes in float32 and the CPU's does not
# (docs.pytorch.org/docs/stable/amp.html)
WIDE = {
    "cross_entropy", "cumsum", "exp", "layer_norm", "log", "log1p", "log_softmax", "nll_loss", "norm", "normalize",
    "pow", "softmax", "sum",
}  # fmt: skip


def varlen_attn(q, k, v, starts_q, starts_k, max_q, max_k):
    """Compute what torch's kernel computes, one passage after the other; NaN in all other rows."""
    assert starts_q.dtype == starts_k.dtype == torch.int32
    assert max_q >= starts_q.diff().max()
    assert max_k >= starts_k.diff().max()
    out = torch.full_like(q, torch.nan)
    for b in range(len(starts_k) - 1):
        to, of = slice(starts_q[b], starts_q[b + 1]), slice(starts_k[b], starts_k[b + 1])
        scores = torch.einsum("qhd,khd->hqk", q[to], k[of]) * q.shape[-1] ** -0.5
        out[to] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[of])
    return out


class CudaAutocast(TorchFunctionMode):
    """Casts what CUDA's autocast casts and the CPU's does not."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in WIDE and torch.is_autocast_enabled("cpu"):
            args = [
                one.float() if isinstance(one, torch.Tensor) and one.is_floating_point() else one
                for one in args
            ]
        return func(*args, **(kwargs or {}))


@pytest.fixture
def like_cuda(monkeypatch):
    """Let tensors of the CPU take the paths of CUDA."""
    monkeypatch.setitem(
        sys.modules, "torch.nn.attention.varlen", SimpleNamespace(varlen_attn=varlen_attn)
    )
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
    monkeypatch.setattr(packed, "BLOCK", 1)
    monkeypatch.setattr(packed, "WIDTH", 1)
    monkeypatch.setitem(_prediction.ROWS, "cpu", _prediction.ROWS["cuda"])
    with CudaAutocast():
        yield


NAMES = ("mae", "retromae", "dupmae", "simlm", "contriever")  # each takes a path of its own
STEPS = {name: lambda name=name: gpu.pretraining_step(name) for name in NAMES}
STEPS |= {"odd heads": lambda: gpu.pretraining_step("mae", "odd")}
STEPS |= {"retriever": gpu.retriever_step, "reranker": gpu.reranker_step}


@pytest.fixture(scope="module")
def on_cpu():
    """Loss and gradient of every step, by the paths of the CPU, in both precisions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(pretraining.SIZES, "odd", (2, 130, 5))
        trained = {name: step() for name, step in STEPS.items()}
    computed = {
        (name, precision): gpu.learnt(*step, CPU, precision)
        for name, step in trained.items()
        for precision in ("fp32", "bf16")
    }
    return trained, computed


@pytest.mark.parametrize("name", STEPS)
def test_a_step_by_the_paths_of_cuda_is_the_cpus(name, on_cpu, like_cuda):
    """Equal in float32 up to the order of sums, in bfloat16 within twice the CPU's own error."""
    trained, computed = on_cpu
    reference = computed[name, "fp32"]
    own = gpu.error(computed[name, "bf16"], reference)
    assert gpu.error(gpu.learnt(*trained[name], CPU, "fp32"), reference) < 1e-5
    rounded = gpu.learnt(*trained[name], CPU, "bf16")
    assert gpu.error(rounded, reference) < max(4e-3, 2 * own)
