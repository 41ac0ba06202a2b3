"""What the loops of the retriever and the reranker share: how many steps, what is shown, saved and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cdmae import files, models, ranks, settings, states, training
from cdmae.errors import InputError, Interrupted
from cdmae.progress import say

if TYPE_CHECKING:
    from cdmae.config import Stage
    from cdmae.models import Model
    from cdmae.ranks import Ranks
    from cdmae.states import State

COLLAPSED = 1e-4  # spread of the vectors, relative to their size, below which nothing can be told apart any more


def schedule(stage: Stage, examples: int, name: str) -> tuple[int, int]:
    """The steps of a training and those of its warm-up; says so where the warm-up is cut.

    An epoch has as many steps as whole batches. A warm-up that would not end before the training does becomes a tenth
    of the steps: at the paper's size 1,000 steps are a twenty-fourth, on a small collection they are everything.
    """
    per_epoch = examples // stage.queries
    if not per_epoch:
        raise InputError(f"queries is {stage.queries}; allowed: up to {examples}, the training queries of {name}")
    steps = max(1, round(stage.epochs * per_epoch))
    warmup = stage.warmup_steps
    if warmup >= steps > 1:
        warmup = steps // 10
        say(f"{name} has only {steps:,} steps: the warm-up is {warmup:,} of them, not {stage.warmup_steps:,}")
    return steps, min(warmup, steps - 1)


class Meter:
    """Means of numbers over an interval of steps, on the device; saved with the state, so that resuming keeps them."""

    def __init__(self, steps: int) -> None:
        """`steps` of the training: there are about a hundred intervals."""
        self.interval = max(1, min(100, steps // 100))
        self._sums: dict[str, Tensor] = {}
        self._count = 0

    def add(self, numbers: dict[str, Tensor]) -> None:
        """Add the numbers of a step (0-d tensors), without waiting for the device."""
        for name, value in numbers.items():
            self._sums[name] = self._sums[name] + value if self._count else value
        self._count += 1

    def means(self) -> dict[str, float]:
        """The means since the last call."""
        found = {name: float(value) / self._count for name, value in self._sums.items()}
        self._sums, self._count = {}, 0
        return found

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        return {"sums": self._sums, "count": self._count}

    def restore(self, saved: dict[str, Any], on: torch.device) -> None:
        """Go on from a saved state."""
        self._sums = {name: value.to(on) for name, value in saved["sums"].items()}
        self._count = saved["count"]


@contextmanager
def shared(state: Path, name: str, stage: Stage, device: torch.device) -> Iterator[tuple[State, Ranks]]:
    """The state folder, held by the first of the processes that train together, and those processes."""
    with ranks.joined(device) as group, states.hold(state, name) if group.first else states.look(state) as held:
        if stage.queries < group.size:
            raise InputError(f"queries is {stage.queries}; allowed: at least {group.size}, the number of processes")
        yield held, group


def restore(
    held: State, group: Ranks, network: nn.Module, adam: torch.optim.Optimizer, meter: Meter, name: str
) -> float:
    """Load the newest state, if there is one, and say so; returns the seconds that it took to get there.

    The first process reads first: it deletes damaged states.
    """
    if not group.first:
        group.any(False)
    saved = held.latest()
    if group.first:
        group.any(False)
    if saved is None:
        return 0.0
    network.load_state_dict(saved["network"])
    adam.load_state_dict(saved["optimiser"])
    meter.restore(saved["meter"], group.device)
    say(f"{name} goes on from step {held.step:,}")
    return saved["seconds"]


def pause(held: State, group: Ranks, stop: training.Stop, shown: bool) -> bool:
    """Whether to save now: after a signal or after some time. Several processes agree on it when numbers are shown."""
    if group.size == 1:
        return bool(stop.requested) or held.due()
    return shown and group.any(bool(stop.requested) or (group.first and held.due()))


def save(held: State, step: int, network: nn.Module, adam: torch.optim.Optimizer, meter: Meter, seconds: float) -> None:
    """Save everything that the training after `step` updates depends on; data and dropout depend on the step alone."""
    payload = {"network": network.state_dict(), "optimiser": adam.state_dict(), "meter": meter.state()}
    held.save(step, {**payload, "seconds": seconds})


def end_if_asked(group: Ranks, stop: training.Stop, name: str, step: int) -> None:
    """Raise `Interrupted` after a signal to any of the processes; the state of `step` is saved."""
    if group.any(bool(stop.requested)):
        signal = stop.requested or "a signal"
        raise Interrupted(f"{signal}: {name} is saved at step {step:,}; run it again to go on")


def check(numbers: dict[str, Tensor], step: int, warm: bool, peak: float) -> None:
    """Stop with words when a training diverged, or collapsed after its warm-up; waits for the device."""
    training.check_finite(float(numbers["loss"]), step, peak)
    spread = float(numbers.get("spread", 1.0))
    if warm and spread < COLLAPSED:
        raise InputError(
            f"training collapsed: at step {step:,} all passages have the same vector (relative spread {spread:.1g}); "
            f"lower learning_rate (now {peak:g}) or lengthen the warm-up"
        )


def write(output: Path, tokenizer: Path, model: Model, stage: Stage, held: State, about: dict[str, Any]) -> None:
    """Write the trained model with its curve; nothing is left of its states afterwards."""
    held.close()
    with files.complete(output) as aside:
        aside.mkdir()
        facts = {
            "settings": settings.asdict(stage),
            "parameters": sum(each.numel() for each in model.network.parameters()),
            **about,
        }
        models.save(aside, model, tokenizer, facts)
        files.write_text(aside / "steps.tsv", (held.folder / "steps.tsv").read_text(encoding="utf-8"))
    held.discard()
