"""The training loop of pre-training, retriever and reranker; each is a `Task` with its own step.

One process, or one per GPU under torchrun. All inputs of a training run are either functions of the
step (data, masks, dropout, learning rate) or saved (weights, optimiser, sums of the curve). A
training that is killed and run again produces bit-identical results on the CPU. The loop waits for
the device only when numbers are shown or saved, and in fp16 at every step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cdmae.errors import InputError, Interrupted
from cdmae.log import Progress, say
from cdmae.training import ranks, setup
from cdmae.training.ranks import Ranks
from cdmae.training.scaling import Scaler

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.config.recipe import Stage
    from cdmae.training.state import State

# relative spread of the outputs below which the model does not distinguish its inputs
COLLAPSED = 1e-4
# share of the initial spread; no good training so far has fallen below 0.24
SHRUNK = 0.2
MANY_SKIPPED = 0.05  # share of the steps
CURVE = "steps.tsv"
DIVERGED = 3.0  # multiple of the loss of guessing; a higher loss means divergence


@dataclass(frozen=True)
class Schedule:
    """The length of a training.

    steps, warmup: the steps of the learning rate's schedule and of its warm-up. last: the last
    step that is computed, at most `steps`.
    interval: steps between two rows of the curve.
    """

    steps: int
    warmup: int
    last: int
    interval: int


class Task:
    """One kind of training: its weights and settings, and its part of every step.

    network: all weights to train. columns: the columns of the curve. shown: the losses on the
    progress line. guessing: the value of each loss for a model that guesses.
    """

    network: nn.Module
    settings: Pretraining | Stage
    schedule: Schedule
    columns: Sequence[str]
    action = "train"
    shown: Sequence[str] = ("loss",)
    guessing = math.inf

    def batches(self, begin: int) -> Iterable[Any]:
        """Return the batches from the step `begin` on, counted from 0."""
        raise NotImplementedError

    def learn(self, batch: Any, step: int, scaler: Scaler) -> dict[str, Tensor]:
        """Add the gradient of this process's share of a batch to the weights, forward and backward.

        scaler: scales the loss before the backward pass. Returns the values for the curve, 0-d
        tensors including `loss` and `spread`: shares, whose sums over the processes are the values.
        """
        raise NotImplementedError

    def note(self, numbers: dict[str, float], step: int) -> str:
        """Return a warning about a step's values, or nothing; step: counted from 1.

        Raises `InputError` if continuing is pointless.
        """
        return ""


def train(task: Task, saved: State) -> tuple[float, list[str]]:
    """Train the task's network in place, resuming from its state if there is one.

    Returns the training time in seconds, including earlier runs, and the notes of `Meter`. The
    means of the curve leave out the steps that the scaler skips.

    Raises `Interrupted` after a signal, and `InputError` if the training diverges or collapses.
    """
    settings = task.settings
    schedule = task.schedule
    group = saved.group
    parameters = list(task.network.parameters())
    requests = ranks.Requests(group)
    adam = setup.adamw(parameters, settings.weight_decay)
    scaler = Scaler(settings.precision, group.device)
    meter = Meter(group.device, saved.name)
    parts = {"network": task.network, "optimiser": adam, "meter": meter, "scaler": scaler}
    label = f"{task.action} {saved.name}"
    with setup.stopping() as stop:
        begun = time.monotonic() - resume(saved, parts)
        saved.begin(CURVE, task.columns)
        with Progress(schedule.last, label=label, start=saved.step) as progress:
            # draw
            for done, batch in enumerate(task.batches(saved.step), saved.step + 1):
                rate = setup.learning_rate(
                    done - 1, schedule.steps, schedule.warmup, settings.learning_rate
                )
                setup.set_rate(adam, rate)
                # forward and backward
                numbers = task.learn(batch, done - 1, scaler)
                # reduce, clip, update
                add_up(parameters, numbers, group)
                scaler.unscale_(adam)
                numbers["gradient_norm"] = setup.clip(parameters, settings.max_grad_norm)
                scaler.step(adam)
                scaler.update()
                adam.zero_grad()
                # row of the curve
                skipped = scaler.skips(numbers["gradient_norm"], done)
                if not skipped:
                    meter.add(numbers)
                progress.advance(**{loss: numbers[loss] for loss in task.shown})
                last = done == schedule.last
                warm = done > schedule.warmup
                write_row = (last or done % schedule.interval == 0) and not meter.empty
                # The result may be lost until the workflow has recorded it.
                save = requests.any(bool(stop.requested) or saved.due()) or last
                if (write_row or save) and not skipped:
                    values = floats(numbers)
                    # The clock decides on saves, but not on notes and faults.
                    if write_row:
                        meter.note(task.note(values, done))
                    check_numbers(task, values, done, warm=warm and write_row)
                if write_row:
                    means = meter.means(done if warm else None)
                    counts = {"step": done, "skipped": scaler.skipped}
                    saved.add(CURVE, learning_rate=rate, **counts, **means)
                # save, and stop if a process was asked to
                if save:
                    state = {part: owner.state_dict() for part, owner in parts.items()}
                    saved.save(done, {"seconds": time.monotonic() - begun, **state})
                    if not last and group.any(bool(stop.requested)):
                        raise Interrupted(
                            f"{stop.requested or 'a signal'}: {saved.name} is saved at step "
                            f"{done:,}; run it again to resume"
                        )
    if scaler.skipped > MANY_SKIPPED * schedule.last:
        meter.note(scaler.note(schedule.last))
    return time.monotonic() - begun, meter.notes


def add_up(parameters: Iterable[nn.Parameter], numbers: dict[str, Tensor], group: Ranks) -> None:
    """Replace the gradients and the values of a step by their sums over the processes."""
    gradients = [weight.grad for weight in parameters if weight.requires_grad]
    group.add_up([*gradients, *numbers.values()])


# --- numbers of the curve and the progress line ---------------------------------------------------


def floats(numbers: dict[str, Tensor]) -> dict[str, float]:
    """Return the values of 0-d tensors as floats; waits for the device once."""
    values = torch.stack([value.float() for value in numbers.values()]).tolist()
    return dict(zip(numbers, values, strict=True))


class Meter:
    """Sums of numbers over an interval of steps, on the device; saved with the state for resuming.

    notes: warnings for readers of the result, each logged once during training.
    """

    def __init__(self, device: torch.device, name: str) -> None:
        """Sum on `device`; `name` is the name of the training in log messages."""
        self._device = device
        self._name = name
        self._spread: float | None = None  # of the first interval
        self.notes: list[str] = []
        self._sums: dict[str, Tensor] = {}
        self._count = 0

    @property
    def empty(self) -> bool:
        """Return whether no step has been added since the last call of `means`."""
        return not self._count

    def add(self, numbers: dict[str, Tensor]) -> None:
        """Add the numbers of a step, 0-d tensors, without waiting for the device."""
        for name, value in numbers.items():
            self._sums[name] = self._sums[name] + value if self._count else value
        self._count += 1

    def means(self, warm: int | None = None) -> dict[str, float]:
        """Return the means since the last call; waits for the device.

        warm: the current step, or None during the warm-up. Adds a note if the outputs have become
        much more alike by then: the model has lost its initial knowledge, even if the loss still
        falls.
        """
        means = {name: value / self._count for name, value in floats(self._sums).items()}
        self._sums = {}
        self._count = 0
        self._spread = self._spread or means.get("spread")
        if warm and self._spread and means["spread"] < SHRUNK * self._spread and not self.notes:
            closer = self._spread / means["spread"]
            self.note(
                f"at step {warm:,} the outputs are {closer:.0f} times closer together than in the "
                "first steps: the knowledge of the initial weights is lost, unless they were "
                "random (the learning rate is too high, or the loss requires it)"
            )
        return means

    def note(self, text: str) -> None:
        """Keep and log a note, once; ignore an empty note."""
        if text and text not in self.notes:
            self.notes.append(text)
            say(f"{self._name}: {text}")

    def state_dict(self) -> dict[str, Any]:
        """Return the meter's state for `load_state_dict`."""
        return {
            "sums": self._sums,
            "count": self._count,
            "spread": self._spread,
            "notes": self.notes,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Resume from a saved state."""
        self._sums = {name: value.to(self._device) for name, value in saved["sums"].items()}
        self._count = saved["count"]
        self._spread = saved["spread"]
        self.notes = saved["notes"]


# --- divergence and collapse ----------------------------------------------------------------------


def check_numbers(task: Task, numbers: dict[str, float], step: int, *, warm: bool) -> None:
    """Raise `InputError` if a training has diverged, or has collapsed after its warm-up.

    warm: whether the warm-up is over.
    """
    fault = ""
    peak = task.settings.learning_rate
    worst = max(task.shown, key=numbers.__getitem__)
    lost = [name for name in ("loss", "gradient_norm") if not math.isfinite(numbers[name])]
    if lost:
        name = lost[0]
        fault = f"diverged: the {name.replace('_', ' ')} of step {step:,} is {numbers[name]}"
    elif warm and numbers[worst] > DIVERGED * task.guessing:
        fault = (
            f"diverged: the {worst.replace('_', ' ')} of step {step:,} is {numbers[worst]:.3g}, "
            f"but guessing gives {task.guessing:.3g}"
        )
    elif warm and numbers["spread"] < COLLAPSED:
        fault = (
            f"collapsed: all inputs of step {step:,} are the same to the model (relative spread "
            f"{numbers['spread']:.1g})"
        )
    if fault:
        raise InputError(
            f"training {fault}; lower learning_rate (now {peak:g}) or lengthen the warm-up"
        )


# --- states ---------------------------------------------------------------------------------------


def resume(saved: State, parts: dict[str, Any]) -> float:
    """Load the newest state, if any, into the `parts`; return the earlier training time in seconds.

    The first process reads first: it deletes damaged states.
    """
    if not saved.group.first:
        saved.group.any(False)
    payload = saved.latest()
    if saved.group.first:
        saved.group.any(False)
    if payload is None:
        return 0.0
    for part, owner in parts.items():
        owner.load_state_dict(payload[part])
    say(f"{saved.name} resumes from step {saved.step:,}")
    return payload["seconds"]
