"""Training in fp16, on the CPU: the scaled loss, and steps whose gradient overflows."""

import numpy as np
import pandas as pd
import pytest
import tiny_pretraining
import torch
from any_kind import as_objective
from tiny_training import TinyTask, data_of, stage, task_of
from torch import nn

from cdmae.config.heads import Dense
from cdmae.errors import InputError
from cdmae.finetuning import recall
from cdmae.models import checkpoint
from cdmae.training import loop, setup, state
from cdmae.training.scaling import Scaler

CPU = torch.device("cpu")
STEPS = 8
SCALE = 65536.0  # torch's scaler begins with it
# its contrast of dot products has gradients that overflow at first
OVERFLOWING = as_objective(
    "contriever", tiny_pretraining.SETTINGS, precision="fp16", temperature=0.05, steps=STEPS
)


def linear(folder, overflows, precision="fp16", steps=STEPS):
    """Train a linear layer; return its weights, the scaler and the rows of the curve."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = nn.Linear(3, 1)
    scalers = set()

    class Overflowing(TinyTask):
        def learn(self, batch, step, scaler):
            scalers.add(scaler)
            loss = network(torch.arange(3.0) + batch).square().mean()
            scaler.scale(loss).backward()
            if step in overflows:
                network.bias.grad.fill_(torch.inf)
            return {"loss": loss.detach(), "spread": torch.ones(())}

    settings = Dense(collection="c", learning_rate=0.1, precision=precision)
    plan = loop.Schedule(steps, warmup=2, last=steps, interval=2)
    task = Overflowing(network, settings, plan)
    task.columns = ["step", "loss", "gradient_norm", "skipped"]
    with state.opened(folder, "x") as saved:
        loop.train(task, saved)
        rows = [list(map(float, row)) for row in saved.tables["steps.tsv"][1:]]
    return (
        torch.cat([each.detach().flatten() for each in network.parameters()]),
        scalers.pop(),
        rows,
    )


def without(overflows):
    """Return the weights after the same steps in float32, of which some are left out."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        network = nn.Linear(3, 1)
    adam = setup.adamw(network.parameters(), Dense(collection="c").weight_decay)
    for step in set(range(STEPS)) - set(overflows):
        setup.set_rate(adam, setup.learning_rate(step, STEPS, 2, 0.1))
        network(torch.arange(3.0) + step).square().mean().backward()
        setup.clip(network.parameters(), Dense(collection="c").max_grad_norm)
        adam.step()
        adam.zero_grad()
    return torch.cat([each.detach().flatten() for each in network.parameters()])


def test_a_step_whose_gradient_overflows_changes_nothing_but_the_scale(tmp_path):
    """Steps 3, 4 and 6: the schedule goes on, and the curve has the means of the other steps."""
    weights, scaler, rows = linear(tmp_path, overflows=(2, 3, 5))
    assert torch.equal(weights, without((2, 3, 5)))
    assert scaler.get_scale() == SCALE / 8
    steps, losses, norms, skipped = np.array(rows).T.tolist()
    assert (steps, skipped) == ([2, 6, 8], [0, 3, 3])
    assert np.isfinite([losses, norms]).all()


def test_a_gradient_that_overflows_at_any_scale_ends_the_training(tmp_path):
    with pytest.raises(InputError, match="the gradients of 25 steps in a row, up to step 28, over"):
        linear(tmp_path / "long", overflows=range(3, 40), steps=40)
    with pytest.raises(InputError, match="8 of 8 steps were skipped"):
        linear(tmp_path / "short", overflows=range(8))
    with pytest.raises(InputError, match="the gradient norm of step 4 is inf"):
        linear(tmp_path / "wide", overflows=[3], precision="fp32")


@pytest.mark.parametrize("at", [1, 6])
def test_a_killed_training_resumes_with_its_scale(inputs, tmp_path, at):
    """Within the steps that overflow, and after them."""
    whole = tiny_pretraining.run(inputs, tmp_path / "whole", OVERFLOWING)
    skipped = pd.read_csv(whole / "steps.tsv", sep="\t")["skipped"]
    assert 1 < skipped.iloc[-1] < STEPS - 2, "some steps overflow, and not all"
    tiny_pretraining.cut_off(at, inputs, tmp_path / "cut", OVERFLOWING)
    resumed = tiny_pretraining.run(inputs, tmp_path / "cut", OVERFLOWING)
    assert not tiny_pretraining.differences(whole, resumed)
    assert (whole / "steps.tsv").read_text() == (resumed / "steps.tsv").read_text()


HEADS = {
    "retriever": {"alpha": 0.3},
    "sparse": {"flops_warmup": 2.0},
    "own": {"pieces": "own", "flops_warmup": 2.0},
    "recall": {"pieces": "own", "target": "recall"},
    "multi": {},
    "unified": {"flops_warmup": 2.0},
    "joint": {},
    "reranker": {"rdrop": 1.0},
}
KINDS = {"own": "sparse", "recall": "sparse", "joint": "retriever"}


@pytest.fixture(scope="module")
def cross(tiny, tmp_path_factory):
    """A reranker without training."""
    folder = tmp_path_factory.mktemp("cross")
    model = checkpoint.start_model(tiny.encoder, "reranker", **stage("reranker").model())
    checkpoint.save(folder, model, tiny.encoder, {})
    return folder


@pytest.mark.parametrize("head", HEADS)
def test_the_gradient_of_a_step_in_fp16_is_that_of_float32(tiny, teacher, cross, head):
    """In several chunks: gradients are cached, and every one of them is scaled."""
    kind = KINDS.get(head, head)
    gradients = []
    for precision in ("fp32", "fp16"):
        recipe = stage(kind, chunk=4, precision=precision, **HEADS[head])
        model = checkpoint.start_model(
            tiny.encoder,
            "reranker" if kind == "reranker" else "retriever",
            seed=3,
            **recipe.model(),
        )
        more = {"retriever": {"teacher": teacher}, "joint": {"joint_teacher": cross}}
        if head == "recall":
            made = recall.recall_task("tiny", model, data_of(tiny, recipe, model), recipe, 1)
        else:
            made = task_of(tiny, recipe, model, **more.get(head, {}))
        scaler = Scaler(precision, CPU)
        scaler.update(1024.0)  # at which nothing overflows
        made.learn(next(made.batches(1)), 1, scaler)
        weights = list(made.network.parameters())
        scale = scaler.get_scale()
        gradients.append(torch.cat([weight.grad.flatten() / scale for weight in weights]))
    exact, narrow = gradients
    # where products are about equal, a maximum over word-pieces is another one's in fp16
    allowed = 0.3 if head == "multi" else 0.05
    assert (narrow - exact).norm() < allowed * exact.norm()
