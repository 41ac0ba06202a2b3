"""The GPU command with toy sizes, and what a CPU can tell of the paths that CUDA takes.

`like_cuda` lets the CPU take them: rows without filler, the packed kernel
(`test_transformer.varlen_attn`, which checks what torch's demands), and the casts of CUDA's
autocast, for which a build without CUDA has no tensors.
"""

import json
import multiprocessing
import os
import socket
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
import torch
from torch.overrides import TorchFunctionMode
from transformers import BertConfig
from varlen import varlen_attn

from benchmarks import finetuning, pretraining
from benchmarks.gpu import __main__ as command
from benchmarks.gpu import parity, pipeline, speed, steps
from benchmarks.gpu.results import Results, Row, received, work
from benchmarks.gpu.sizes import TOY
from cdmae.models import attention, packed, transformer
from cdmae.pretraining import trainer
from cdmae.pretraining.objectives import _prediction, objectives
from cdmae.training import setup
from cdmae.training.ranks import Ranks

CUDA = torch.device("cuda", 0)
# what CUDA's autocast computes in float32 and the CPU's does not
# (docs.pytorch.org/docs/stable/amp.html)
WIDE = {
    "cross_entropy", "cumsum", "exp", "layer_norm", "log", "log1p", "log_softmax", "nll_loss", "norm", "normalize",
    "pow", "softmax", "sum",
}  # fmt: skip
SPAWNED = multiprocessing.get_context("forkserver")


@pytest.fixture(autouse=True, scope="module")
def imported():
    """Import the packages of these tests once; other test files import fewer."""
    SPAWNED.set_forkserver_preload([*command.IMPORTED, "pytest"])


# --- the command ----------------------------------------------------------------------------------


SHARED = ("parity", "speed")  # the parts that several processes share


def test_every_row_passes_on_a_cpu_or_says_what_is_not_here(tmp_path, monkeypatch):
    """All parts but the shared ones, which `test_two_processes_share_a_part` runs."""
    alone = [part for part in command.PARTS if part not in SHARED]
    monkeypatch.setattr(
        sys, "argv", ["gpu", "--output", str(tmp_path), "--minutes", "60", "--parts", *alone]
    )
    monkeypatch.setattr(command.shutil, "which", lambda _: None)
    command.main()
    parts = json.loads((tmp_path / "results.json").read_text())
    assert list(parts) == alone
    rows = [Row(**row) for part in parts.values() for row in part]
    assert [row for row in rows if row.passed is False] == []
    assert [row for row in rows if row.value == "" and not row.note.startswith("not here: ")] == []
    page = (tmp_path / "results.md").read_text()
    assert (
        f"{sum(row.passed is True for row in rows)} of {sum(row.passed is not None for row in rows)} checks"
        in page
    )


def ranked(rank, port, part, line):
    """Run a part as torchrun would."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
    }
    os.environ |= {"MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    work(part, 0, time.monotonic() + 3600, None, line)


@pytest.mark.parametrize("part", SHARED)
def test_two_processes_share_a_part(part):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    lines = [SPAWNED.Pipe(duplex=False) for _ in range(2)]
    processes = [
        SPAWNED.Process(target=ranked, args=(rank, port - 1, part, lines[rank][1]))
        for rank in range(2)
    ]
    for process, (_, other) in zip(processes, lines, strict=True):
        process.start()
        other.close()
    end = time.monotonic() + 3600
    first, second = (
        list(received(line, process, end))
        for process, (line, _) in zip(processes, lines, strict=True)
    )
    assert [row for row in first + second if row.passed is False or "ended" in row.note] == []
    assert min(len(first), len(second)) > 10
    if part == "parity":
        assert {row.name.split(",")[0] for row in first} >= {*objectives(), "retriever", "reranker"}


def ends(how, line):
    """Send a row, then end in some way."""
    line.send(Row("before"))
    if how == "exit":
        os._exit(3)
    if how == "close":
        line.close()
    if how != "return":
        time.sleep(600)


@pytest.mark.parametrize(
    ("how", "last"),
    [
        ("return", []),
        ("exit", ["it ended with 3"]),
        ("hang", ["its time has ended"]),
        ("close", ["its time has ended"]),
    ],
)
def test_a_part_that_ends_badly_is_a_row(how, last):
    line, other = SPAWNED.Pipe(duplex=False)
    process = SPAWNED.Process(target=ends, args=(how, other))
    process.start()
    other.close()
    assert line.poll(600)  # it has begun
    rows = list(
        received(line, process, time.monotonic() + (0.5 if how in ("hang", "close") else 600))
    )
    assert [row.name for row in rows][:1] == ["before"]
    assert [row.note for row in rows[1:]] == last
    assert not process.is_alive()


def test_a_step_that_fails_is_a_row():
    here = steps.Run(Ranks(), TOY, time.monotonic() + 60, None)

    def step(here, error):
        yield Row("before")
        raise error

    def last(error, here=here):
        *before, row = steps.attempt(here, "step", lambda here: step(here, error))
        return len(before), row.passed, row.note

    missing = ModuleNotFoundError("none", name="flash_attn")
    assert last(missing) == (1, None, "not here: flash_attn")
    ours = ModuleNotFoundError("none", name="cdmae.pretraining.trainers")
    assert last(ours) == (1, False, "no module: cdmae.pretraining.trainers")
    assert last(TimeoutError("still running")) == (1, None, "no time left: still running")
    assert last(torch.OutOfMemoryError("out\nof memory"))[:2] == (1, False)
    assert last(torch.OutOfMemoryError("out\nof memory"))[2].startswith(
        "OutOfMemoryError: out of memory (test_gpu.py, line"
    )
    assert last(missing, steps.Run(Ranks(), TOY, time.monotonic() - 1, None)) == (
        0,
        None,
        "no time left",
    )


def test_what_is_no_number_fails_and_is_json(tmp_path):
    lost = (torch.ones(2), torch.tensor([1.0, torch.nan]))
    value = parity.error(lost, (torch.ones(2), torch.ones(2)))
    Results(tmp_path).add(
        "parity", parity._row("mae", "fp32", lost, (torch.ones(2), torch.ones(2)), None)
    )
    (row,) = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)[
        "parity"
    ]
    assert (np.isnan(value), row["value"], row["passed"]) == (True, "nan", False)


@pytest.mark.parametrize(
    ("card", "value", "passed", "note"),
    [
        ("NVIDIA H100 80GB HBM3", 50, False, "494.5 of 989 TFLOP/s, NVIDIA H100 80GB HBM3"),
        ("NVIDIA H200", 50, False, "494.5 of 989 TFLOP/s, NVIDIA H200"),
        ("NVIDIA H100 PCIe", 65.41, True, "494.5 of 756 TFLOP/s, NVIDIA H100 PCIe"),
        ("NVIDIA H100 NVL", 59.22, False, "494.5 of 835 TFLOP/s, NVIDIA H100 NVL"),
        ("NVIDIA A10", "unknown", None, "494.5 TFLOP/s; no peak is known of NVIDIA A10"),
    ],
)
def test_the_share_of_a_peak_names_it(card, value, passed, note, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: card)
    row = speed.of_peak(SimpleNamespace(on_gpu=True), "encoding", 494.5e12, 0.6)
    assert (row.passed, row.note) == (passed, note)
    assert row.value == (pytest.approx(value, abs=0.01) if passed is not None else value)


KILLED = "killed at the end of its time"
# as Snakemake and its jobs do
RUNS_ON = "trap 'echo Error in rule pretrain:; exit 1' TERM; sleep 600 & wait"


@pytest.mark.parametrize(
    ("said", "value", "passed", "note"),
    [
        (
            f"echo '1 of 7 steps (14%) done'; echo '2 of 7 steps (29%) done'; {RUNS_ON}",
            2,
            True,
            KILLED,
        ),
        (f"echo 'total      7'; {RUNS_ON}", 0, True, KILLED),
        (
            f"echo '1 of 7 steps (14%) done'; echo 'Error in rule mine:'; {RUNS_ON}",
            1,
            False,
            "failed: mine",
        ),
        ("echo '7 of 7 steps (100%) done'", 7, True, ""),
        (
            "echo '1 of 7 steps (14%) done'; echo Lost; exit 1",
            1,
            False,
            "ended with 1: 1 of 7 steps (14%) done Lost",
        ),
    ],
)
def test_jobs_are_counted_when_the_time_ends(said, value, passed, note):
    seconds = 3.0 if RUNS_ON in said else 600.0
    row = pipeline.counted(["sh", "-c", said], time.monotonic() + seconds)
    assert (row.value, row.unit, row.passed) == (value, "of 7 jobs", passed)
    assert row.note.removeprefix("Snakemake ") == note


def test_snakemake_that_counts_no_jobs_says_why():
    with pytest.raises(TimeoutError, match="still starting: Building"):
        pipeline.counted(["sh", "-c", f"echo Building; {RUNS_ON}"], time.monotonic() + 3)
    with pytest.raises(RuntimeError, match="ended with 1: Locked"):
        pipeline.counted(["sh", "-c", "echo Locked; exit 1"], time.monotonic() + 600)


# --- the paths of CUDA ----------------------------------------------------------------------------


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


STEPS = {name: lambda name=name: parity.pretraining_step(name) for name in objectives()}
STEPS |= {"odd heads": lambda: parity.pretraining_step("mae", "odd")}
STEPS |= {"retriever": parity.retriever_step, "reranker": parity.reranker_step}


@pytest.fixture(scope="module")
def on_cpu():
    """Loss and gradient of every step, by the paths of the CPU, in both precisions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(pretraining.SIZES, "odd", (2, 130, 5))
        trained = {name: step() for name, step in STEPS.items()}
    computed = {
        (name, precision): parity.learnt(*step, precision, Ranks())
        for name, step in trained.items()
        for precision in ("fp32", "bf16")
    }
    return trained, computed


@pytest.mark.parametrize("name", STEPS)
def test_a_step_by_the_paths_of_cuda_is_the_cpus(name, on_cpu, like_cuda):
    """Equal in float32 up to the order of sums, in bfloat16 within twice the CPU's own error."""
    trained, computed = on_cpu
    reference = computed[name, "fp32"]
    own = parity.error(computed[name, "bf16"], computed[name, "fp32"])
    assert parity.error(parity.learnt(*trained[name], "fp32", Ranks()), reference) < 1e-5
    assert parity.error(parity.learnt(*trained[name], "bf16", Ranks()), reference) < max(
        4e-3, 2 * own
    )


@pytest.mark.parametrize("family", tiny_models.ALL)
def test_every_architecture_learns_by_the_paths_of_cuda(family, like_cuda):
    network = tiny_models.model(family)
    batch = packed.pack([[2, 5, 6, 3], [2, 7, 3], [2, *range(8, 30), 3]])
    gradients = []
    for precision in ("fp32", "bf16"):
        with setup.autocast(precision, torch.device("cpu")):
            vectors = transformer.vectors(network, batch)
        weights = [weight for weight in network.parameters() if weight.requires_grad]
        of_weights = torch.autograd.grad(vectors.float().square().sum(), weights, allow_unused=True)
        gradients.append(torch.cat([one.flatten() for one in of_weights if one is not None]))
    assert (gradients[1] - gradients[0]).norm() < 0.1 * gradients[0].norm()


def test_torchs_packed_kernel_takes_what_it_is_given(monkeypatch):
    """Run the installed operator, forward and backward, on tensors without memory.

    This checks arguments, shapes and dtypes.
    """
    monkeypatch.setattr(packed, "put", lambda array, on: torch.from_numpy(array).to(on))
    meta = torch.device("meta")
    starts = np.array([0, 5, 7, 11])
    of = packed.pack(packed.Ragged(np.zeros(11, np.int64), starts), meta).layout
    to = packed.select(np.array([0, 7]), starts, meta).layout
    query, key = (
        torch.empty(layout.rows, 3 * 64, dtype=torch.bfloat16, device=meta) for layout in (to, of)
    )
    query.requires_grad_()
    key.requires_grad_()
    mixed = attention._varlen(query, key, key, attention.Grid(to, 3), attention.Grid(of, 3))
    assert (mixed.shape, mixed.dtype, of.starts.dtype) == (query.shape, torch.bfloat16, torch.int32)
    mixed.sum().backward()
    assert (query.grad.shape, key.grad.dtype) == (query.shape, torch.bfloat16)


# --- memory ---------------------------------------------------------------------------------------


class Kernel(torch.autograd.Function):
    """Keeps what torch's packed kernel keeps."""

    @staticmethod
    def forward(ctx, query, key, value, *_):
        out = query.clone()
        ctx.save_for_backward(
            query, key, value, out, query.new_empty(query.shape[:2], dtype=torch.float32)
        )
        return out


def test_a_layer_keeps_what_is_planned_for_it(like_cuda, monkeypatch):
    """Count by hand, in bytes a row and number in bfloat16: 44 D, and the kernel's float32 for each
    head.

    Inputs of the products 2 + 2, query, key and value 6, what the kernel gives 2, dropout's masks 4
    + 4, the sums before the norms 4 + 4, and the inner layer before and behind GELU 8 + 8. The plan
    has 72 D.
    """
    monkeypatch.setitem(
        sys.modules, "torch.nn.attention.varlen", SimpleNamespace(varlen_attn=Kernel.apply)
    )
    width = 128
    heads = 2
    kept = []
    batch = packed.pack(finetuning.batch("tiny", 1, 20).sequences)
    for layers in (2, 3):
        network = finetuning.network("tiny")
        seen = {}
        network.encoder.layer.extend([network.encoder.layer[0]] * (layers - 2))
        network.config.hidden_dropout_prob = 0.1
        weights = {weight.data_ptr() for weight in network.parameters()}

        def note(tensor, seen=seen):
            seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        generator = torch.Generator().manual_seed(1)
        with (
            torch.autograd.graph.saved_tensors_hooks(note, lambda one: one),
            setup.autocast("bf16", torch.device("cpu")),
        ):
            states = transformer.hidden_states(network, batch, generator=generator)
        del states
        kept.append(sum(size for place, size in seen.items() if place not in weights))
    a_row = (kept[1] - kept[0]) / batch.layout.rows
    assert a_row == pytest.approx(44 * width + 4 * heads, rel=0.02)
    assert a_row < 4 * (10 * width + 2 * 4 * width)


def test_a_micro_batch_of_bert_base_fills_a_third_of_an_h100(monkeypatch):
    """79.1 GiB x .35 over 14 layers of 4 x (10 x 768 + 2 x 3072) = 55,296 bytes a row."""
    card = SimpleNamespace(total_memory=int(79.1 * 2**30))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    rows = trainer.micro_batch(BertConfig(), SimpleNamespace(passes=1, held_layers=2), CUDA)
    assert rows == int(0.35 * card.total_memory / (14 * 55296)) == 38_399
    twice = trainer.micro_batch(BertConfig(), SimpleNamespace(passes=2, held_layers=2), CUDA)
    assert twice == pytest.approx(rows * 14 / 26, abs=1), "the encoder's second pass is held, too"
    logits = _prediction.LOGITS_AT_ONCE["cuda"] * 2 * 2  # a product in bfloat16, and its softmax
    assert rows * 14 * 44 * 768 + logits + 16 * 110e6 < 0.3 * card.total_memory
