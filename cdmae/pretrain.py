"""Pre-training (sections 3.1 and 3.3, appendix A): the loop, what it resumes from, what stops it, what it writes.

One process, or one per GPU under torchrun: each takes its micro-batches of the global batch, and their gradients are
added up. A training that is killed at any moment and started again ends in the same bits (on the CPU).
"""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from cdmae import files, importance, objectives, ranks, starts, states, training
from cdmae.batches import Reader, Step
from cdmae.errors import InputError, Interrupted
from cdmae.progress import Progress, say
from cdmae.ranks import Ranks
from cdmae.settings import asdict
from cdmae.tokens import Vocabulary

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from cdmae.config import Encoder, Start
    from cdmae.states import State

COLUMNS = ["step", "loss", "encoder_loss", "decoder_loss", "spread", "gradient_norm", "learning_rate"]
SHOWN = ("encoder_loss", "decoder_loss")  # while it runs
COLLAPSED = 1e-4  # spread of [CLS] over the passages, relative to its size, below which they are all the same
DIVERGED = 3.0  # times ln V, the loss of guessing uniformly
MEMORY = {"cpu": 2 << 30, "cuda": 0.35}  # for the activations of a micro-batch: bytes, or a share of the device's
MOST_ROWS = {"cpu": 4096, "cuda": 1 << 17}  # more at a time make nothing faster


def pretrain(
    *,
    name: str,
    settings: Encoder,
    start: Start,
    tokenizer: Path,
    tokens: Path | None,
    importance: Path | None,
    seed: int,
    threads: int,
    state: Path,
    output: Path,
) -> None:
    """Make the encoder `name` and write it to `output`; with objective none it is the start itself.

    tokens: of the collection, by the same tokenizer; importance: aligned with them, None where no masking reads it.
    The state folder lets a killed training go on.
    """
    device = training.set_up(threads)
    about = {"name": name, "settings": asdict(settings), "start": asdict(start), "seed": seed}
    with ranks.joined(device) as group:
        model = starts.load(start, tokenizer, seed)
        if settings.objective == "none":
            if group.first:
                write(output, model, tokenizer, about)
            return
        reader = read(settings, model.config, tokenizer, tokens, importance, seed)
        with states.hold(state, name) if group.first else states.look(state) as held:
            about |= train(model.to(device), settings, reader, held, group, name=name, seed=seed)
            if group.first:
                held.close()
                write(output, model, tokenizer, about, state / "steps.tsv")
                held.discard()


def train(
    model: PreTrainedModel, settings: Encoder, reader: Reader, held: State, group: Ranks, *, name: str, seed: int
) -> dict[str, Any]:
    """The loop: trains `model` in place, returns what is worth recording of it."""
    if settings.batch < group.size:
        raise InputError(f"batch is {settings.batch}; allowed: at least {group.size}, the number of processes")
    network = objectives.objective(settings.objective).create(model, settings, seed).to(group.device)
    adam = training.optimiser(network, settings.learning_rate, settings.weight_decay)
    steps, warmup, last = schedule(settings, len(reader.tokens))
    meter, numbers = Meter(interval(steps)), {}
    with training.Stop() as stop:
        begun = time.monotonic() - resume(held, group, network, adam, meter, name)
        curve = held.curve(COLUMNS)
        with Progress(last, label=f"pretrain {name}", start=held.step) as progress:
            coming = reader.steps(held.step, last, ahead=group.device.type == "cuda")
            for done, step in enumerate(coming, held.step + 1):
                rate = training.learning_rate(done - 1, steps, warmup, settings.learning_rate)
                training.set_learning_rate(adam, rate)
                learnt = learn(network, step, done, settings, group, seed)
                norm = training.clip(network.parameters(), settings.max_grad_norm)
                adam.step()
                adam.zero_grad()
                meter.add({**learnt, "gradient_norm": norm / group.size})
                shown = done % meter.interval == 0 or done == last
                if shown:
                    numbers = meter.means(group)
                    check(numbers, done, settings, model.config.vocab_size, warm=done > warmup)
                    curve.add(step=done, learning_rate=rate, **numbers)
                progress.advance(**{name: numbers[name] for name in SHOWN if numbers})
                together = shown or group.size == 1  # where several processes look at signals at the same step
                stopped = together and done < last and group.any(bool(stop.requested))
                if stopped or (together and held.due()):
                    meter.check(done, settings.learning_rate)
                    save(held, done, network, adam, meter, time.monotonic() - begun)
                if stopped:
                    raise interrupted(name, done, stop.requested)
    return {
        "steps": last,
        "passages": len(reader.tokens),
        "parameters": sum(each.numel() for each in model.parameters()),
        "precision": training.precision(settings.precision, group.device),
        "processes": group.size,
        "seconds": round(time.monotonic() - begun, 1),
    }


def learn(network: nn.Module, step: Step, number: int, settings: Encoder, group: Ranks, seed: int) -> dict[str, Tensor]:
    """Add the gradient of a global batch's loss to the weights; returns this process's share of the step's numbers."""
    device, total = group.device, {}
    rows = micro_batch(network.model.config, settings.decoder_layers, device)
    for index, batch in enumerate(step.batches(rows, device, group.rank, group.size)):
        generator = training.generator(device, seed, "dropout", number, index, group.rank)
        with training.autocast(settings.precision, device):
            loss, numbers = network(batch, generator)
        loss.backward()
        for name, value in {"loss": loss.detach(), **numbers}.items():
            total[name] = total[name] + value if name in total else value
    group.add_up([each.grad for each in network.parameters()])
    return total


# --- what it reads ---------------------------------------------------------------------------------------------------


def read(
    settings: Encoder,
    config: PretrainedConfig,
    tokenizer: Path,
    tokens: Path | None,
    values: Path | None,
    seed: int,
) -> Reader:
    """The steps of a pre-training; raises `InputError` where settings, model and files do not fit together."""
    positions = config.max_position_embeddings
    if settings.max_length > positions:
        raise InputError(f"max_length is {settings.max_length}; allowed: up to {positions}, the positions of the start")
    if tokens is None:
        raise InputError(f"objective {settings.objective} needs the tokens of a collection (--tokens)")
    vocabulary = Vocabulary.read(tokenizer)
    found = files.read_tokens(tokens)
    if len(found.word_starts) != vocabulary.size:
        raise InputError(
            f"{tokens} was made by a tokenizer of {len(found.word_starts):,} word-pieces, "
            f"{tokenizer} has {vocabulary.size:,}; tokenise the collection again"
        )
    unit = "word"
    if values is not None:
        unit = importance.Table.read(values).ngrams.unit
        values = importance.read_values(values)
        if len(values) != len(found.ids):
            raise InputError(f"the importance has {len(values):,} values, {tokens} has {len(found.ids):,} word-pieces")
    sides = objectives.objective(settings.objective).sides(settings, unit)
    return Reader(found, values, vocabulary, sides, batch=settings.batch, max_length=settings.max_length, seed=seed)


def schedule(settings: Encoder, passages: int) -> tuple[int, int, int]:
    """The steps of the learning rate's schedule, those of its warm-up, and the last one that is computed.

    `epochs` passes are rounded up to whole steps: 20 x 8,841,823 / 2048 is the paper's 86,346. What comes after
    `take_step` would not be used and is not computed; the schedule's horizon stays.
    """
    steps = settings.steps or max(1, math.ceil(settings.epochs * passages / settings.batch))
    if settings.take_step > steps:
        raise InputError(f"take_step is {settings.take_step}; allowed: up to {steps:,}, the steps of this pre-training")
    return steps, math.ceil(settings.warmup_ratio * steps), settings.take_step or steps


def interval(steps: int) -> int:
    """Steps between two rows of the curve: about a thousand rows, and a look at the device now and then."""
    return min(50, max(1, steps // 1000))


def micro_batch(config: PretrainedConfig, decoder_layers: int, device: torch.device) -> int:
    """Rows of a micro-batch: as many as keep the activations within `MEMORY`."""
    memory = MEMORY[device.type]
    if device.type == "cuda":
        memory *= torch.cuda.get_device_properties(device).total_memory
    layer = 4 * (10 * config.hidden_size + 2 * config.intermediate_size)  # bytes per row, at most
    return int(min(MOST_ROWS[device.type], max(256, memory / (layer * (config.num_hidden_layers + decoder_layers)))))


# --- what it shows, and what stops it --------------------------------------------------------------------------------


class Meter:
    """Means over an interval of steps, kept on the device and saved with the state."""

    def __init__(self, interval: int) -> None:
        """`interval`: steps between two rows of the curve."""
        self.interval = interval
        self.steps = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, numbers: dict[str, Tensor]) -> None:
        """Add a step's numbers, 0-d tensors, without waiting for the device."""
        for name, value in numbers.items():
            self.sums[name] = self.sums[name] + value if name in self.sums else value
        self.steps += 1

    def means(self, group: Ranks) -> dict[str, float]:
        """The means since the last call."""
        total = torch.stack(list(self.sums.values())).float()
        group.add_up([total])
        means = dict(zip(self.sums, (total / self.steps).tolist(), strict=True))
        self.sums, self.steps = {}, 0
        return means

    def check(self, step: int, peak: float) -> None:
        """Refuse to go on with numbers that are not finite."""
        training.check_finite(float(sum(self.sums.values())), step, peak)


def check(numbers: dict[str, float], step: int, settings: Encoder, vocabulary: int, *, warm: bool) -> None:
    """Stop with words where training diverged, or after the warm-up collapsed."""
    peak = settings.learning_rate
    for name in ("gradient_norm", "loss"):
        training.check_finite(numbers[name], step, peak)
    worst = max(numbers["encoder_loss"], numbers["decoder_loss"])
    remedy = f"lower learning_rate (now {peak:g}) or lengthen the warm-up"
    if warm and worst > DIVERGED * math.log(vocabulary):
        raise InputError(
            f"training diverged: at step {step:,} the loss of a side is {worst:.3g}, guessing any of the "
            f"{vocabulary:,} word-pieces costs {math.log(vocabulary):.3g}; {remedy}"
        )
    if warm and numbers["spread"] < COLLAPSED:
        raise InputError(
            f"training collapsed: at step {step:,} all passages have the same vector (relative spread "
            f"{numbers['spread']:.1g}); {remedy}"
        )


# --- what it resumes from, and what it writes ------------------------------------------------------------------------


def resume(
    held: State, group: Ranks, network: nn.Module, adam: torch.optim.Optimizer, meter: Meter, name: str
) -> float:
    """Load the newest state, if there is one; returns the seconds that it took to get there.

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
    meter.steps, meter.sums = saved["counted"], {key: value.to(group.device) for key, value in saved["sums"].items()}
    say(f"{name} goes on from step {held.step:,}")
    return saved["seconds"]


def interrupted(name: str, step: int, signal: str) -> Interrupted:
    """What ends the loop after a signal, to this process or another; the state is saved."""
    return Interrupted(f"{signal or 'a signal'}: {name} is saved at step {step:,}; run it again to go on")


def save(held: State, step: int, network: nn.Module, adam: torch.optim.Optimizer, meter: Meter, seconds: float) -> None:
    """Save all that the training depends on after `step` updates: order, masks and dropout depend on the step alone."""
    payload = {"network": network.state_dict(), "optimiser": adam.state_dict(), "seconds": seconds}
    held.save(step, {**payload, "sums": meter.sums, "counted": meter.steps})


def write(
    output: Path, model: PreTrainedModel, tokenizer: Path, about: dict[str, Any], curve: Path | None = None
) -> None:
    """Write the encoder with its LM head, its tokenizer, its curve and what it was made from."""
    with files.complete(output) as aside:
        shutil.copytree(tokenizer, aside, ignore=shutil.ignore_patterns("config.json"))
        starts.save(model, aside)
        if curve:
            shutil.copyfile(curve, aside / "steps.tsv")
        files.write_json(aside / "about.json", about)
