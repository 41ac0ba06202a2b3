"""The training loop of pre-training, retriever and reranker; each is a `Task` with its own step.

One process, or one per GPU under torchrun. All inputs of a training run are either functions of the
step (data, masks, dropout, learning rate) or saved (weights, optimiser, sums of the curve). A
training that is killed and run again produces bit-identical results on the CPU. The loop waits for
the device only when numbers are shown or saved, and in fp16 at every step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cdmae.errors import InputError, Interrupted
from cdmae.log import Progress, say
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.setup import Scaler

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.config.stages import Stage
    from cdmae.training.state import State

# relative spread of the outputs below which the model does not distinguish its inputs
COLLAPSED = 1e-4
CURVE = "steps.tsv"
# steps between the questions whether a process has to save or to stop; each waits for the devices
ASKED = 5


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

    network: all weights to train. A subclass also has these methods:

    - ``batches(begin)`` returns the batches from the step `begin` on, counted from 0.
    - ``learn(batch, step, scaler)`` adds the gradient of this process's share of a batch to the
      weights, forward and backward. scaler: scales the loss before the backward pass. It returns
      the values for the curve, 0-d tensors including `loss` and `spread`: shares, whose sums over
      the processes are the values.
    """

    network: nn.Module
    settings: Pretraining | Stage
    schedule: Schedule
    action = "train"

    def note(self, numbers: dict[str, float], step: int) -> str:
        """Return a warning about a step's values, or nothing; step: counted from 1.

        Raises `InputError` if continuing is pointless.
        """
        return ""


def train(task: Task, saved: State) -> tuple[float, list[str]]:
    """Train the task's network in place, resuming from its state if there is one.

    Returns the training time in seconds, including earlier runs, and the notes of `Task.note`. The
    means of the curve leave out the steps that the scaler skips.

    Raises `Interrupted` after a signal, and `InputError` if the training diverges or collapses.
    """
    settings = task.settings
    schedule = task.schedule
    group = saved.group
    parameters = list(task.network.parameters())
    adam = setup.adamw(parameters, settings.weight_decay)
    scaler = Scaler(settings.precision, group.device)
    parts = {"network": task.network, "optimiser": adam, "scaler": scaler}
    label = f"{task.action} {saved.name}"
    with setup.stopping() as requested:
        before = resume(saved, parts)
        begun = time.monotonic() - before["seconds"]
        sums = before["sums"]
        count = before["count"]
        notes = before["notes"]
        with Progress(schedule.last, label=label, start=saved.step) as progress:
            # draw
            for done, batch in enumerate(task.batches(saved.step), saved.step + 1):
                rate = setup.learning_rate(
                    done - 1, schedule.steps, schedule.warmup, settings.learning_rate
                )
                for each in adam.param_groups:
                    each["lr"] = rate
                # forward and backward
                numbers = task.learn(batch, done - 1, scaler)
                # reduce, clip, update
                add_up(parameters, numbers, group)
                scaler.unscale_(adam)
                numbers["gradient_norm"] = nn.utils.clip_grad_norm_(
                    parameters, settings.max_grad_norm, foreach=True
                )
                scaler.step(adam)
                scaler.update()
                adam.zero_grad()
                # row of the curve
                skipped = scaler.skips(numbers["gradient_norm"])
                if not skipped:
                    sums = {name: sums.get(name, 0) + value for name, value in numbers.items()}
                    count += 1
                progress.advance(loss=numbers["loss"])
                last = done == schedule.last
                write_row = (last or done % schedule.interval == 0) and count > 0
                # The result may be lost until the workflow has recorded it.
                save = last
                if group.size == 1 or done % ASKED == 0:
                    save = group.any(bool(requested) or saved.due()) or last
                if (write_row or save) and not skipped:
                    values = floats(numbers)
                    # The clock decides on saves, but not on notes and faults.
                    note = task.note(values, done) if write_row else ""
                    if note and note not in notes:
                        notes.append(note)
                        say(f"{saved.name}: {note}")
                    warm = write_row and done > schedule.warmup
                    check_numbers(values, done, settings.learning_rate, warm=warm)
                if write_row:
                    means = {name: value / count for name, value in floats(sums).items()}
                    saved.add(CURVE, step=done, **means, learning_rate=rate)
                    sums = {}
                    count = 0
                # save, and stop if a process was asked to
                if save:
                    state = {part: owner.state_dict() for part, owner in parts.items()}
                    state |= {"seconds": time.monotonic() - begun}
                    saved.save(done, state | {"sums": sums, "count": count, "notes": notes})
                    if not last and group.any(bool(requested)):
                        cause = requested[0] if requested else "a signal"
                        raise Interrupted(
                            f"{cause}: {saved.name} is saved at step {done:,}; run it again to "
                            "resume"
                        )
    return time.monotonic() - begun, notes


def add_up(parameters: Iterable[nn.Parameter], numbers: dict[str, Tensor], group: Ranks) -> None:
    """Replace the gradients and the values of a step by their sums over the processes."""
    gradients = [weight.grad for weight in parameters if weight.grad is not None]
    group.add_up([*gradients, *numbers.values()])


# --- numbers of the curve and the progress line ---------------------------------------------------


def floats(numbers: dict[str, Tensor]) -> dict[str, float]:
    """Return the values of 0-d tensors as floats; waits for the device once."""
    values = torch.stack([value.float() for value in numbers.values()]).tolist()
    return dict(zip(numbers, values, strict=True))


def check_numbers(numbers: dict[str, float], step: int, peak: float, *, warm: bool) -> None:
    """Raise `InputError` if a training has diverged, or has collapsed after its warm-up.

    peak: of the learning rate. warm: whether the warm-up is over.
    """
    lost = [name for name in ("loss", "gradient_norm") if not math.isfinite(numbers[name])]
    if lost:
        name = lost[0]
        fault = f"diverged: the {name.replace('_', ' ')} of step {step:,} is {numbers[name]}"
    elif warm and numbers["spread"] < COLLAPSED:
        fault = (
            f"collapsed: all inputs of step {step:,} are the same to the model (relative spread "
            f"{numbers['spread']:.1g})"
        )
    else:
        return
    raise InputError(
        f"training {fault}; lower learning_rate (now {peak:g}) or lengthen the warm-up"
    )


def resume(saved: State, parts: dict[str, Any]) -> dict[str, Any]:
    """Load the newest state, if any, into `parts`; return the values that it has besides.

    seconds: the earlier training time. sums: of the curve's numbers over `count` steps, on the
    device. notes: of `Task.note`.
    """
    payload = saved.latest()
    if payload is None:
        return {"seconds": 0.0, "sums": {}, "count": 0, "notes": []}
    for part, owner in parts.items():
        if payload[part]:  # the scaler has no state except in fp16
            owner.load_state_dict(payload[part])
    say(f"{saved.name} resumes from step {saved.step:,}")
    sums = {name: value.to(saved.group.device) for name, value in payload["sums"].items()}
    return payload | {"sums": sums}
