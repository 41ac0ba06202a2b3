"""Pre-training (sections 3.1 and 3.3, appendix A): input, gradient of a step, output.

One process, or one per GPU under torchrun. Each process takes its micro-batches of the global
batch, and the gradients are added up. The loop around a step is `cdmae.training.loop`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cdmae.config.checks import check_lengths
from cdmae.config.encoders import Pretraining
from cdmae.config.objectives import AnyEncoder
from cdmae.config.starts import Start
from cdmae.fields import asdict, unfit
from cdmae.files import complete, write_json
from cdmae.masking import Corpus
from cdmae.models import architectures, checkpoint, metadata, networks
from cdmae.pretraining import objectives, probes
from cdmae.pretraining.batches import Step
from cdmae.pretraining.reader import Reader
from cdmae.tokens.corpus import read_tokens
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training import loop, ranks, setup
from cdmae.training import state as states
from cdmae.training.loop import Schedule, Task
from cdmae.training.setup import UNSCALED, Scaler

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from cdmae.pretraining.objectives._parts import Objective
    from cdmae.training.state import State

# memory for the activations of a micro-batch: bytes, or a share of the device's memory
MEMORY = {"cpu": 2 << 30, "cuda": 0.35}
MOST_ROWS = {"cpu": 4096, "cuda": 1 << 17}  # more rows at a time bring no speed-up


@dataclass(frozen=True)
class Files:
    """The folders that a pre-training reads.

    after: another encoder; its weights replace the initial checkpoint's. tokens: of the collection,
    by the same tokenizer. importance: values for the tokens, or n-grams if the masks need only
    these; None if the masks need neither.
    """

    tokenizer: Path
    after: Path | None = None
    tokens: Path | None = None
    importance: Path | None = None


def pretrain(
    *,
    name: str,
    settings: AnyEncoder,
    start: Start,
    files: Files,
    seed: int,
    threads: int = 1,
    state: Path,
    output: Path,
) -> None:
    """Make the encoder `name`; with objective none it keeps its initial weights.

    A stopped training resumes from its state. output: the encoder's folder.
    """
    device = setup.set_up(threads)
    initial = Start(checkpoint=str(files.after)) if files.after else start
    model = checkpoint.start_encoder(initial, files.tokenizer, setup.seed_of(seed, "start"))
    about = {
        "name": name,
        "settings": asdict(settings),
        "start": asdict(start),
        "seed": seed,
        "parameters": sum(weight.numel() for weight in model.parameters()),
    }
    commits = networks.commits(
        checkpoint=files.after or start.checkpoint, generator=settings.generator
    )
    if commits:
        about["commits"] = commits
    with ranks.joined(device) as group:
        if not settings.pretrained:
            if group.first:
                with complete(output) as aside:
                    write(aside, model, settings, files.tokenizer, about)
            return
        reader = read(settings, model.config, files, seed)
        with states.opened(state, name, group) as saved:
            kind = objectives.objective(settings.objective)
            network = kind(model.to(device), settings, seed)
            task = PretrainingTask(network, reader, saved, seed)
            seconds, notes = loop.train(task, saved)
            task.look(task.schedule.last)
            about |= {
                "steps": task.schedule.last,
                "passages": len(reader),
                "precision": setup.precision(settings.precision, device),
                "processes": group.size,
                "seconds": round(seconds, 1),
                "notes": [*notes, *reader.vocabulary.doubts(reader.tokens.ids)],
            }
            if group.first:
                with saved.finish(output) as aside:
                    write(aside, model, settings, files.tokenizer, about)


def write(
    folder: Path,
    model: PreTrainedModel,
    settings: AnyEncoder,
    tokenizer: Path,
    about: dict[str, Any],
) -> None:
    """Write the encoder with its LM head, its tokenizer and its origin, `about`, into a folder."""
    folder.mkdir(exist_ok=True)
    networks.write(folder, model)
    metadata.write_tokenizer(folder, tokenizer, longest=architectures.positions(model.config))
    if settings.pretrained:
        metadata.write_modules(
            folder,
            width=model.config.hidden_size,
            pooling=settings.pooling,
            longest=settings.max_length,
        )
    write_json(folder / "about.json", about)


class PretrainingTask(Task):
    """The training of an objective's network, with its measurements.

    rows: of a micro-batch.
    """

    action = "pretrain"

    def __init__(self, network: Objective, reader: Reader, saved: State, seed: int) -> None:
        """Take the network; raise `InputError` if its settings do not fit the collection."""
        device = saved.group.device
        self.network = network.to(device)
        self.settings = network.settings
        self.schedule = schedule(self.settings, len(reader))
        self.reader = reader
        self.saved = saved
        self.seed = seed
        self.rows = micro_batch(network.model.config, self.settings, device)
        self.sample = None
        if saved.writes and self.network.probed:
            self.sample = probes.sample(reader, self.rows, device)
        self.probed = probes.steps(self.schedule.last)

    def batches(self, begin: int) -> Iterator[Step]:
        """Read the steps from `begin` on; look at the network before each of them."""
        for number, step in enumerate(self.reader.steps(begin, self.schedule.last), begin):
            self.look(number)
            yield step

    def look(self, step: int) -> None:
        """Measure the bottleneck of `step` updates, if it is due."""
        saved = self.saved
        if self.sample is not None and step in self.probed:
            with setup.autocast(self.settings.precision, saved.group.device):
                losses = probes.decoder_losses(self.network, self.sample, self.reader.spans)
            saved.add(probes.TABLE, step=step, **losses)

    def learn(self, batch: Step, step: int, scaler: Scaler = UNSCALED) -> dict[str, Tensor]:
        """Add the gradient of a global batch's scaled loss to the weights; return its numbers, 0-d.

        Gradient and numbers are this process's shares of the sums over all processes. Dropout is
        drawn for (seed, step counted from 1, micro-batch, process).
        """
        network = self.network
        group = self.saved.group
        device = group.device
        precision = self.settings.precision
        parts = batch.batches(self.rows, device, group.rank, group.size)

        def dropout(index: int) -> torch.Generator:
            return setup.generator(device, self.seed, "dropout", step + 1, index, group.rank)

        if hasattr(network, "prepare"):
            parts = list(parts)
            generators = [dropout(index) for index in range(len(parts))]
            with setup.autocast(precision, device):
                parts = network.prepare(parts, generators, group)
        total: dict[str, Tensor] = {}
        for index, part in enumerate(parts):
            with setup.autocast(precision, device):
                loss, numbers = network(part, dropout(index))
            scaler.scale(loss).backward()
            for name, value in {"loss": loss.detach(), **numbers}.items():
                total[name] = total[name] + value if name in total else value
        return total


def read(settings: Pretraining, config: PretrainedConfig, files: Files, seed: int) -> Reader:
    """Return the reader of a pre-training's steps.

    Raises `InputError` if settings, model and files do not fit together.
    """
    positions = architectures.positions(config)
    owner = "the positions of the initial checkpoint"
    check_lengths({"max_length": settings.max_length}, positions, owner)
    vocabulary = Vocabulary.read(files.tokenizer)
    tokens = read_tokens(files.tokens)
    corpus = Corpus(tokens, vocabulary, files.tokenizer, estimate=files.importance)
    objective = objectives.objective(settings.objective)
    return objective.reader(settings, objective.sides(settings, corpus.unit), corpus, seed)


def schedule(settings: Pretraining, passages: int) -> Schedule:
    """Return the schedule of a pre-training.

    `epochs` passes are rounded up to whole steps: 20 x 8,841,823 / 2048 is the paper's 86,346.
    Steps after `take_step` are not computed, but the learning rate follows the whole schedule. The
    curve has about 1,000 rows.
    """
    steps = settings.steps or max(1, math.ceil(settings.epochs * passages / settings.batch))
    if settings.take_step > steps:
        raise unfit(settings, "take_step", f"; expected up to {steps}, the number of steps")
    return Schedule(
        steps=steps,
        warmup=min(math.ceil(settings.warmup_ratio * steps), steps - 1),
        last=settings.take_step or steps,
        interval=min(50, max(1, steps // 1000)),
    )


def micro_batch(config: PretrainedConfig, settings: Pretraining, device: torch.device) -> int:
    """Return the number of rows of a micro-batch, as many as activations fit into `MEMORY`."""
    memory = MEMORY[device.type]
    if device.type == "cuda":
        memory *= torch.cuda.get_device_properties(device).total_memory
    config = architectures.bert_config(config)
    layer = 4 * (10 * config.hidden_size + 2 * config.intermediate_size)  # bytes per row, at most
    layers = settings.passes * config.num_hidden_layers + settings.held_layers
    rows = memory / (layer * layers)
    return int(min(MOST_ROWS[device.type], max(256, rows)))
