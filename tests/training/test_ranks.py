"""Three real processes that talk through gloo learn the same as one, in all three trainers.

What a step reads (order, masks, negatives, teacher's scores), its loss and its gradient do not
depend on how many share it. Without dropout, whose draws are each process's own; fine-tuning in
float64, where no rounding hides a mistake.
"""

import multiprocessing
import os
import signal
import socket
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from any_kind import as_objective
from tiny_training import TinyTask, encoder, stage, write_teacher

from cdmae.config.objectives import Mae
from cdmae.config.starts import Start
from cdmae.errors import Interrupted
from cdmae.finetuning import reranker, retriever
from cdmae.finetuning.task import Data, Inputs
from cdmae.finetuning.teacher import Teacher
from cdmae.models import checkpoint
from cdmae.pretraining import objectives
from cdmae.pretraining import trainer as pretrain
from cdmae.training import loop, ranks, state
from cdmae.training.loop import add_up
from cdmae.training.sharing import sharing
from cdmae.training.state import State

SIZE = 3  # processes; it divides neither the batch nor the micro-batches
# of the largest gradient
TOLERANCE = {
    "pretraining": 1e-5,
    "several decoders": 1e-5,
    "retriever": 1e-9,
    "reranker": 1e-9,
    "sparse": 1e-9,
    "multi": 1e-9,
    "unified": 1e-9,
    "with its teacher": 1e-9,
}
TRAINERS = tuple(TOLERANCE)
PRETRAINED = TRAINERS[:2]
MASKED = Mae(
    start="s",
    collection="c",
    decoder_masking="uniform",
    max_length=16,
    batch=10,
    steps=3,
    precision="fp32",
)
CPU = torch.device("cpu")
# Random weights, since transformers, which reads others, would take longer to import than all the
# rest.
START = Start(
    collection="c",
    layers=2,
    hidden=32,
    heads=2,
    feedforward=64,
    positions=64,
    initializer=0.1,
    dropout=0.0,
)
IMPORTED = [
    "cdmae.pretraining.trainer", "cdmae.finetuning.retriever", "cdmae.finetuning.reranker",
    "cdmae.pretraining.objectives.mae", "cdmae.pretraining.objectives.master",
    "cdmae.models.heads.sparse", "transformers.models.bert.modeling_bert",
    "cdmae.masking.strategies.whole_word", "cdmae.masking.strategies.uniform", "pandas", "pyarrow.parquet", "pytest",
]  # fmt: skip


def pretraining(group, folders, objective="mae"):
    """The second step: what this process reads of it, the numbers and the gradient."""
    settings = as_objective(objective, MASKED)
    model = checkpoint.start_encoder(START, folders["encoder"], 1)
    network = objectives.objective(objective)(model, settings, 1)
    files = pretrain.Files(folders["encoder"], tokens=folders["tokens"])
    source = pretrain.read(settings, model.config, files, 1)
    step = list(source.steps(0, 2))[1]
    with mock.patch.object(pretrain, "micro_batch", lambda *_: 40):  # rows: several per process
        numbers = pretrain.learn(network, step, settings, group, seed=1, step=1)
    add_up(network.parameters(), numbers, group)
    numbers = {
        name: value.item() for name, value in numbers.items() if name != "spread"
    }  # of a micro-batch
    read = [masked(batch) for batch in step.batches(40, CPU, group.rank, group.size)]
    return sorted(sum(read, [])), numbers, gradients(network)


def overflowing(group, folders, folder):
    """Five steps in fp16, with a gradient of the last process that overflows in the third."""
    settings = replace(MASKED, precision="fp16", learning_rate=0.01)
    model = checkpoint.start_encoder(START, folders["encoder"], 1)
    network = objectives.objective("mae")(model, settings, 1)
    files = pretrain.Files(folders["encoder"], tokens=folders["tokens"])
    source = pretrain.read(settings, model.config, files, 1)
    weight = next(network.parameters())
    scalers = set()

    class Overflowing(TinyTask):
        columns = pretrain.COLUMNS

        def batches(self, begin):
            return source.steps(begin, 5)

        def learn(self, batch, step, scaler):
            scalers.add(scaler)
            overflows = step == 2 and group.rank == group.size - 1
            hook = weight.register_hook(lambda slope: slope * torch.inf if overflows else slope)
            how = {"seed": 1, "step": step, "scaler": scaler}
            numbers = pretrain.learn(network, batch, settings, group, **how)
            hook.remove()
            return numbers

    plan = loop.Schedule(5, warmup=1, last=5, interval=1)
    loop.train(Overflowing(network, settings, plan), State(folder, "x", group))
    return network.state_dict(), scalers.pop().state_dict()


def shared(group, folders, folder):
    """The arrays of a retriever's training data, each with the file that it is mapped from."""
    recipe = stage("retriever")
    model = checkpoint.start_model(folders["encoder"], "retriever", **recipe.model())
    with sharing(folder / "state", group) as files:
        data = Data.read(Inputs(**given(folders)), recipe, model, seed=1, shared=files)
        run = Teacher.read(folders["teacher"], files).run
        tokens = {"starts": data.passages.starts, "text_starts": data.passages.text_starts}
        arrays = data.examples.arrays() | vars(run) | tokens
        found = {name: (values.tolist(), place_of(values)) for name, values in arrays.items()}
        group.any(False)  # all have read them before they are deleted
    return found


def place_of(values):
    """The file that an array is mapped from, or None."""
    while values is not None and not isinstance(values, np.memmap):
        values = values.base
    return values if values is None else str(values.filename)


def several_decoders(group, folders):
    """The same of an objective with two spans a passage, and a decoder for each of two tasks."""
    return pretraining(group, folders, "master")


def masked(batch):
    """The masked texts of a micro-batch by side, and the word-pieces to restore."""
    found = []
    for side, view in batch.views.items():
        ids, cuts = view.inputs.ids.tolist(), view.inputs.starts.tolist()
        found += [
            (side, ids[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a and ids[a]
        ]
        found += [(f"{side} restores", [piece]) for piece in view.labels[view.weights > 0].tolist()]
    return found


def fine_tuned(recipe, read, **more):
    """What a process reads of the second step, its numbers and its gradient, in float64.

    recipe: the settings. read: a function of the batch. more: further inputs.
    """

    def train(group, folders):
        inputs = Inputs(**given(folders) | {key: folders[name] for key, name in more.items()})
        model = checkpoint.start_model(folders["encoder"], recipe.kind, seed=3, **recipe.model())
        data = Data.read(inputs, recipe, model, seed=1)
        kinds = {"reranker": reranker.reranker_task, "retriever": retriever.retriever_task}
        task = kinds[recipe.kind]("tiny", model, data, recipe, inputs, 1, group)
        batch = next(task.batches(1))
        network = task.network.double()
        numbers = task.learn(batch, 1)
        add_up(network.parameters(), numbers, group)
        numbers = {name: value.item() for name, value in numbers.items()}
        return read(batch), numbers, gradients(network)

    return train


def read_by_retriever(batch):
    return [batch.sequences.values.tolist(), batch.excluded.tolist(), batch.teacher.tolist()]


def read_by_reranker(batch):
    return [batch.pairs.values.tolist(), batch.teacher.tolist()]


def stopped(group, folder):
    """Train without a stop; then the last process gets a signal in step 4 and all train again.

    The curve has a row after step 100 only. What each process said, the steps that it computed
    again, and the weights of both trainings.
    """

    def train(name, kill=-1):
        network, seen = torch.nn.Linear(3, 1, bias=False), []
        torch.nn.init.ones_(network.weight)

        class Stopped(TinyTask):
            columns = ("step", "loss")

            def learn(self, batch, step, scaler):
                seen.append(step)
                loss = (network(torch.ones(3)) * (step + group.rank)).square().sum()
                loss.backward()
                if step == kill and group.rank == SIZE - 1:
                    os.kill(os.getpid(), signal.SIGUSR1)
                return {"loss": loss.detach(), "spread": torch.ones(())}

        plan = loop.Schedule(steps=12, warmup=2, last=12, interval=100)
        with state.opened(folder / name, "x", group) as saved:
            loop.train(Stopped(network, MASKED, plan), saved)
        return network.weight.detach(), seen

    whole, _ = train("whole")
    try:
        train("stopped", kill=3)
        said = ""
    except Interrupted as stop:
        said = str(stop)
    again, seen = train("stopped")
    return said, seen, whole, again


def given(folders):
    """What both fine-tunings read."""
    return {name: path for name, path in folders.items() if name not in ("teacher", "cross")}


def gradients(network):
    return {name: each.grad for name, each in network.named_parameters() if each.grad is not None}


def work(rank, port, folders, output):
    """Join the other processes as under torchrun, run every trainer, and save the results."""
    torch.set_num_threads(1)
    place = {"RANK": rank, "WORLD_SIZE": SIZE, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in place.items()}
    with ranks.joined(CPU) as group:
        assert (group.rank, group.size, group.first) == (rank, SIZE, rank == 0)
        assert [group.any(rank == SIZE - 1), group.any(False)] == [True, False]
        results = trained(group, folders)
        results["fp16"] = overflowing(group, folders, output)
        results["shared"] = shared(group, folders, output)
        results["stopped"] = stopped(group, output / "states")
        torch.save(results, output / f"{rank}.pt")


def trained(group, folders):
    """The input of each trainer's step, its numbers and its gradient."""
    taught = {"teacher": "teacher"}
    flops = {"alpha": 0.3, "flops_warmup": 2.0}
    trainers = (
        pretraining,
        several_decoders,
        fine_tuned(stage("retriever", alpha=0.3), read_by_retriever, **taught),
        fine_tuned(stage("reranker", chunk=4, alpha=1.0), read_by_reranker, **taught),
        fine_tuned(stage("sparse", **flops), read_by_retriever, **taught),
        fine_tuned(stage("multi", alpha=0.3), read_by_retriever, **taught),
        fine_tuned(stage("unified", **flops), read_by_retriever, **taught),
        fine_tuned(
            stage("retriever", alpha=0.3),
            lambda batch: batch.pairs.values.tolist(),
            joint_teacher="cross",
        ),
    )
    return {name: train(group, folders) for name, train in zip(TRAINERS, trainers, strict=True)}


@pytest.fixture(scope="module")
def found(tiny, tmp_path_factory):
    """The results of a single process, and of each process of a group."""
    folder = tmp_path_factory.mktemp("ranks")
    folders = tiny.inputs() | {
        "encoder": encoder(folder / "encoder", tiny.encoder, dropout=0.0),
        "teacher": write_teacher(folder / "teacher.parquet"),
        "cross": folder / "cross",
    }
    cross = checkpoint.start_model(folders["encoder"], "reranker", **stage("reranker").model())
    folders["cross"].mkdir()
    checkpoint.save(folders["cross"], cross, folders["encoder"], {})
    context = multiprocessing.get_context("forkserver")  # torch is imported once for all of them
    context.set_forkserver_preload(IMPORTED)
    port = free_port()
    group = [
        context.Process(target=work, args=(rank, port, folders, folder)) for rank in range(SIZE)
    ]
    for process in group:
        process.start()
    alone = trained(ranks.Ranks(), folders)
    alone["shared"] = shared(ranks.Ranks(), folders, folder)
    for process in group:
        process.join(240)
        process.kill()  # a process that waits for a process that has failed
    assert [process.exitcode for process in group] == [0] * SIZE
    assert not list(folder.glob(".*")), "the shared files are deleted"
    return alone, [torch.load(folder / f"{rank}.pt") for rank in range(SIZE)]


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def test_a_signal_to_one_process_stops_all_of_them_a_step_later(found):
    """Preemption may leave a few seconds, and a row of the curve may be minutes away."""
    _, group = found
    said, seen, whole, again = zip(*(each["stopped"] for each in group), strict=True)
    assert list(said) == [
        f"{who}: x is saved at step 5; run it again to resume"
        for who in ("a signal", "a signal", "SIGUSR1")
    ]
    assert list(seen) == [list(range(5, 12))] * SIZE
    for weights in (*whole, *again):
        assert torch.equal(weights, whole[0])


@pytest.mark.parametrize("trainer", TRAINERS)
def test_loss_and_gradient_are_the_same_in_every_process(found, trainer):
    alone, group = found
    _, numbers, gradient = alone[trainer]
    _, _, first = group[0][trainer]
    largest = max(float(each.abs().max()) for each in gradient.values())
    near = {"atol": TOLERANCE[trainer] * largest, "rtol": 0}
    for each in group:
        _, other_numbers, other = each[trainer]
        assert other_numbers == pytest.approx(numbers, rel=TOLERANCE[trainer])
        assert other.keys() == gradient.keys()
        for name, value in gradient.items():
            torch.testing.assert_close(other[name], value, **near)
            assert torch.equal(other[name], first[name]), "processes drift apart"


def test_processes_skip_the_same_steps(found):
    (weights, scale), *others = [each["fp16"] for each in found[1]]
    assert (scale["skipped"], scale["scale"]["scale"]) == (1, 32768)
    for other, other_scale in others:
        assert other_scale == scale
        assert all(torch.equal(other[name], weights[name]) for name in weights)


def test_processes_map_the_same_files_of_what_one_has_read(found):
    """Each would otherwise hold all candidates of the collection in its own memory."""
    alone, group = found
    for name, (values, _) in alone["shared"].items():
        assert all(each["shared"][name][0] == values for each in group)
        places = {each["shared"][name][1] for each in group}
        assert len(places) == 1 and None not in places, name


@pytest.mark.parametrize("trainer", PRETRAINED)
def test_masks_and_order_are_the_same_and_shared_out_without_rest(found, trainer):
    alone, group = found
    read = [each[trainer][0] for each in group]
    assert all(read), "every process has something to do"
    assert sorted(sum(read, [])) == alone[trainer][0]


@pytest.mark.parametrize("trainer", TRAINERS[len(PRETRAINED) :])
def test_every_process_draws_the_same_queries_and_negatives(found, trainer):
    alone, group = found
    assert all(each[trainer][0] == alone[trainer][0] for each in group)
