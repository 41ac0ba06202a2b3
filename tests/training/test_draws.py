"""Every draw follows the numbers of its key: the same for equal ones, another one for each that
differs.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from any_kind import as_objective
from safetensors.torch import load_file
from tiny_objectives import SETTINGS, first, network_of, reader
from tiny_training import gradients, prepared, simple_task, stage, train

from cdmae.config.objectives import NotPretrained
from cdmae.config.starts import Start
from cdmae.finetuning.groups import Drawing, Examples
from cdmae.finetuning.selection import select
from cdmae.pretraining import trainer
from cdmae.pretraining.batches import Masked, Step
from cdmae.runs import Run
from cdmae.training.ranks import Ranks


def gradient_of(learn, network, **key):
    network.zero_grad(set_to_none=True)
    learn(network, **key)
    return torch.cat([each.flatten() for each in gradients(network).values()])


def of_pretraining(tiny, name="mae"):
    network, step = network_of(name), first(name)
    network.model.config.hidden_dropout_prob = 0.5
    settings = as_objective(name, replace(SETTINGS, precision="fp32"))
    return network, lambda network, **key: trainer.learn(network, step, settings, Ranks(), **key)


def of_contrast(tiny):
    return of_pretraining(tiny, "cocondenser")


def of_retriever(tiny):
    return of_finetuning(tiny, stage("retriever"))


def of_reranker(tiny):
    return of_finetuning(tiny, stage("reranker", forward_factor=1))


def of_finetuning(tiny, recipe):
    model, batch = prepared(tiny, recipe, tiny.encoder)
    training = simple_task(model, recipe)

    def learn(_, *, seed, step):
        replace(training, seed=seed).learn(batch, step)

    return model.network, learn


@pytest.mark.parametrize("learning", [of_pretraining, of_contrast, of_retriever, of_reranker])
def test_dropout_follows_seed_and_step(tiny, learning):
    network, learn = learning(tiny)
    one = gradient_of(learn, network, seed=1, step=0)
    assert torch.equal(one, gradient_of(learn, network, seed=1, step=0))
    assert not torch.equal(one, gradient_of(learn, network, seed=2, step=0))
    assert not torch.equal(one, gradient_of(learn, network, seed=1, step=1))


def test_dropout_differs_between_chunks(tiny):
    """Of a batch whose passages are all the same one, each in a chunk of its own, the vectors are
    not.
    """
    recipe = stage("retriever")
    model, batch = prepared(tiny, recipe, tiny.encoder)
    lengths = batch.sequences.lengths
    longest = int(lengths.argmax())
    rows = np.concatenate([np.arange(6), np.full(24, longest)])
    batch = replace(batch, sequences=batch.sequences.take(rows))
    recipe = replace(recipe, chunk=1, passage_length=int(lengths.max()))
    numbers = simple_task(model, recipe).learn(batch, 0)
    assert numbers["spread"] > 0.01


def test_dropout_differs_between_micro_batches(monkeypatch):
    """Of a passage that is masked twice in the same way, each in a micro-batch of its own."""
    network, step = network_of("mlm"), first("mlm")
    network.model.config.hidden_dropout_prob = 0.5
    settings = as_objective("mlm", replace(SETTINGS, precision="fp32"))
    monkeypatch.setattr(trainer, "micro_batch", lambda *_: 1)  # rows: a passage each
    side = step.sides["encoder"]
    longest = int(side.inputs.lengths.argmax())
    one = side[longest : longest + 1]
    twice = np.zeros(2, np.int64)
    both = Masked(
        one.inputs.take(twice), np.tile(one.chosen, 2), np.tile(one.labels, 2), one.texts[twice]
    )

    def gradient(side):
        step = Step({"encoder": side})
        assert len(list(step.batches(1, torch.device("cpu")))) == len(side.inputs)
        return gradient_of(
            lambda network, **key: trainer.learn(network, step, settings, Ranks(), **key),
            network,
            seed=1,
            step=0,
        )

    assert not torch.allclose(gradient(one), gradient(both), rtol=1e-3)


def test_random_weights_follow_the_seed(tiny, tmp_path):
    start = Start(collection="c", vocabulary=160, layers=1, hidden=8, heads=1, feedforward=8)
    files = trainer.Files(tiny.encoder)
    how = {"name": "x", "settings": NotPretrained(start="s"), "files": files}
    found = []
    for seed in (1, 1, 2):
        places = {"state": tmp_path / "state", "output": tmp_path / "encoder"}
        trainer.pretrain(**how, **places, start=start, seed=seed)
        found.append((tmp_path / "encoder" / "model.safetensors").read_bytes())
    assert found[0] == found[1] != found[2]


@pytest.fixture
def examples():
    """A function of the seed: twelve queries whose lists are equal, in 400 passages."""
    lists = [np.arange(10) for _ in range(12)]
    run = Run.of(lists, [np.arange(10, 0, -1, dtype=np.float32)] * 12)
    pairs = [(query, query % 10, 1) for query in range(12)]
    qrels = pd.DataFrame(pairs, columns=["query", "passage", "grade"]).astype("int32")

    def of(seed, random_negatives=5):
        drawing = Drawing("train", 10, 4, random_negatives, seed)
        texts = np.arange(400)
        found, _ = select(run, qrels, texts, drawing, pd.Series(range(12)))
        return Examples(**found, texts=texts, drawing=drawing)

    return of


def test_random_negatives_follow_seed_and_query(examples):
    one, again, other = examples(1), examples(1), examples(2)
    drawn = [one.pool(query)[-5:].tolist() for query in range(12)]
    assert drawn == [again.pool(query)[-5:].tolist() for query in range(12)]
    assert len(set(map(tuple, drawn))) == 12
    assert all(drawn[query] != other.pool(query)[-5:].tolist() for query in range(12))


def test_groups_follow_seed_epoch_and_query(examples):
    """Without random negatives, which follow seed and query themselves: equal pools, in the order
    of the draws.
    """
    one, other = (examples(seed, random_negatives=0) for seed in (1, 2))
    rows = np.array([2, 3, 4, 5])
    drawn = one.draw(rows, 0)[:, 1:]
    assert (drawn == one.draw(rows[::-1], 0)[::-1, 1:]).all(), "whatever else is in the batch"
    found = {tuple(row) for row in drawn.tolist()}
    found |= {tuple(row) for row in one.draw(rows, 1)[:, 1:].tolist()}
    found |= {tuple(row) for row in other.draw(rows, 0)[:, 1:].tolist()}
    assert len(found) >= 11, "9 x 8 x 7 groups are possible"


def test_the_order_of_queries_follows_seed_and_epoch(examples):
    one, other = examples(1), examples(2)
    assert (one.order(0, 3) == examples(1).order(0, 3)).all()
    assert (one.order(0, 3) != one.order(1, 3)).any()
    assert (one.order(0, 3) != other.order(0, 3)).any()


def test_the_new_head_of_a_reranker_follows_the_seed(tiny, tmp_path):
    recipe = stage("reranker", epochs=0.25, learning_rate=1e-9)
    folders = [tmp_path / str(seed) for seed in (1, 2)]
    one, other = (
        load_file(train(tiny, folder, recipe, seed=int(folder.name)) / "model.safetensors")
        for folder in folders
    )
    new = [name for name in one if (one[name] - other[name]).abs().max() > 1e-3]
    assert any(name.startswith("classifier") for name in new)


def test_order_and_masks_of_pretraining_follow_seed_and_epoch():
    """Masks of the same passage in two epochs, and for two seeds."""
    source = reader()
    other = reader()
    other.seed = 4
    rows = np.arange(len(source))
    epochs = np.zeros(len(source), np.int64)

    def chosen(reader, side, epoch):
        texts = reader.texts(rows, epochs + epoch)
        return reader.mask(side, texts, {}).chosen

    for side in ("encoder", "decoder"):
        one = chosen(source, side, 0)
        assert (one == chosen(source, side, 0)).all()
        assert (one != chosen(source, side, 1)).any()
        assert (one != chosen(other, side, 0)).any()
    assert (chosen(source, "encoder", 0) != chosen(source, "decoder", 0)).any(), "own draws"
    orders = [
        tuple(each.passages(len(rows) * epoch + rows)[1])
        for each, epoch in ((source, 0), (source, 1), (other, 0))
    ]
    assert len(set(orders)) == 3
