"""Measure each form of a step in its own process: no form inherits memory, caches or kernels."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.tables import table
from cdmae.describe import describe
from cdmae.models.ragged import Ragged
from cdmae.training import setup

BF16 = "_bf16"  # ends the names of forms that compute in bfloat16
ONE_CHUNK = "_one_chunk"  # ends the names of forms that keep the graph of the whole batch
TOLERANCE = 1e-5  # relative difference of the losses of all forms in float32


def measure_each(benchmark: str, forms: Iterable[str]) -> dict[str, Any]:
    """Run a benchmark with the arguments of this process and ``--form``; read its JSON."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *sys.argv[1:], "--form"]
    return {
        form: json.loads(
            subprocess.run([*command, form], check=True, capture_output=True, text=True).stdout
        )
        for form in forms
    }


def measure_step(model: nn.Module, step: Callable[[], float], repeats: int) -> dict[str, float]:
    """Return CPU seconds per step (median), memory in GB above the weights, loss and gradient norm.

    step: computes a loss and its gradient, and returns the loss.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = []
    for _ in range(repeats):
        model.zero_grad(set_to_none=False)
        begun = time.process_time()
        loss = step()
        taken.append(time.process_time() - begun)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    gradients = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
    return {
        "seconds": float(np.median(taken)),
        "memory": memory,
        "loss": loss,
        "gradient": float(torch.cat(gradients).norm()),
    }


def measure_form(
    form: str,
    arguments: argparse.Namespace,
    step: Callable[[str, nn.Module, Any, int, str], float],
    network: Callable[[str], nn.Module],
    batch: Callable[[str, int, int], Any],
) -> dict[str, float]:
    """Measure a form in this process, with the texts and weights of all forms.

    step: of a form, network, batch, chunk and size. network: makes the network of a size. batch:
    draws the texts of a size, by the numbers of queries and of passages per query.
    """
    setup.set_up(arguments.threads)
    size = arguments.size
    model = network(size)
    work = batch(size, arguments.queries, arguments.group)
    step(form, model, batch(size, 2, 2), arguments.chunk, size)  # kernels are compiled
    return measure_step(
        model, lambda: step(form, model, work, arguments.chunk, size), arguments.repeats
    )


def chunk_of(form: str, chunk: int, read: Ragged) -> int:
    """Return the passages per chunk for a form: all texts of the batch for `ONE_CHUNK`."""
    return len(read) if form.endswith(ONE_CHUNK) else chunk


def compare(
    benchmark: str,
    forms: dict[str, str],
    sizes: dict[str, tuple[int, ...]],
    measure: Callable[[str, argparse.Namespace], dict[str, float]],
    *,
    description: str,
    size: str,
    queries: int,
    group: int,
) -> None:
    """Read the command line, measure every form and print the table.

    measure: measures one form. size, queries, group: the defaults of the command line. Exits with
    an error if the losses of the forms in float32 differ.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=sizes, default=size)
    parser.add_argument("--queries", type=int, default=queries)
    parser.add_argument("--group", type=int, default=group)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--form", choices=forms, help="internal: measure one form and print JSON")
    arguments = parser.parse_args()
    if arguments.form:
        print(json.dumps(measure(arguments.form, arguments)))
        return
    found = measure_each(benchmark, forms)
    print(
        f"{describe()['processor']}; threads: {arguments.threads}\n"
        f"{arguments.size}: {sizes[arguments.size][:3]}, {arguments.queries} queries x "
        f"{arguments.group} passages, chunk {arguments.chunk}\n"
    )
    print(table([_row(forms[form], form, each, found["ours"]) for form, each in found.items()]))
    exact = [each["loss"] for form, each in found.items() if not form.endswith(BF16)]
    gap = max(exact) / min(exact) - 1
    if gap > TOLERANCE:
        raise SystemExit(f"the losses in float32 differ by {gap:.1e} of their size")
    print(f"\nlosses in float32 differ by {gap:.1e} of their size")


def _row(title: str, form: str, found: dict[str, float], ours: dict[str, float]) -> dict[str, str]:
    """Return a row of the table."""
    return {
        "form": title,
        "precision": "bf16" if form.endswith(BF16) else "float32",
        "cpu-s per step": f"{found['seconds']:.2f}",
        "time of ours": f"x {found['seconds'] / ours['seconds']:.2f}",
        "memory, GB": f"{found['memory']:.2f}",
        "memory of ours": f"x {found['memory'] / ours['memory']:.2f}",
        "loss": f"{found['loss']:.6f}",
        "gradient norm": f"{found['gradient']:.6f}",
    }
