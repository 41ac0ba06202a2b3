"""A retriever and its teacher that are trained together."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from tiny_models import padded
from tiny_training import encoder, gradients, same, stage, task_of, train

from cdmae.files import read_json
from cdmae.finetuning import losses, reranker, retriever
from cdmae.models import checkpoint
from cdmae.training import loop


@pytest.fixture
def cross(tiny, tmp_path):
    """A trained reranker without dropout."""
    still = encoder(tmp_path / "still", tiny.encoder, dropout=0.0)
    return train(reranker, tiny, tmp_path / "cross", stage("reranker", epochs=0.5), encoder=still)


def prepared(tiny, folder, recipe, cross):
    """The task, in float64, and its first batch; then the networks of student and teacher."""
    model = checkpoint.start_model(folder, "retriever", **recipe.model(), seed=1)
    made = task_of(tiny, recipe, model, joint_teacher=cross)
    networks = model.network.double(), made.teachers.joint.model.network.double()
    return made, made.draw(np.arange(6), 0), networks


@pytest.mark.parametrize("distillation", ["kl", "margin_mse"])
def test_both_gradients_equal_the_naive_ones(tiny, tmp_path, cross, distillation):
    """One padded batch through transformers' own models; the divergence reaches both."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("retriever", alpha=0.3, temperature=2.5, distillation=distillation)
    made, batch, (student, teacher) = prepared(tiny, folder, recipe, cross)
    numbers = made.learn(batch, 0)

    eager = {"attn_implementation": "eager"}
    encodes = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False, **eager)
    judges = transformers.BertForSequenceClassification.from_pretrained(cross, **eager)
    for naive in (encodes, judges):
        naive.double().eval()
    vectors = encodes(**padded(list(batch.sequences))).last_hidden_state[:, 0]
    queries, passages = vectors[:6] / 2.5, vectors[6:].view(6, 4, -1)
    scores = losses.group_scores(queries, passages)
    types = list(replace(batch.pairs, values=batch.pairs.types))
    judged = judges(**padded(list(batch.pairs), types=types)).logits.view(6, 4)
    excluded = torch.from_numpy(batch.excluded)
    contrastive = losses.contrastive(queries, passages, excluded=excluded)
    taught = getattr(losses, distillation)(scores, judged)
    own = torch.nn.functional.cross_entropy(judged, torch.zeros(6, dtype=torch.long))
    loss = taught + 0.3 * contrastive + own
    loss.backward()

    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    assert numbers[distillation].item() == pytest.approx(taught.item(), rel=1e-9)
    assert numbers["teacher_listwise"].item() == pytest.approx(own.item(), rel=1e-9)
    for network, naive in ((student, encodes), (teacher, judges)):
        expected = gradients(naive)
        found = gradients(network)
        for each in (expected, found):
            each.pop("embeddings.token_type_embeddings.weight", None)
        same(found, expected)


@pytest.mark.parametrize("kind", ["retriever", "sparse", "multi", "unified"])
def test_chunks_do_not_change_the_gradients_of_any_head(tiny, tmp_path, cross, kind):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    flops = {"flops_warmup": 4.0} if kind in ("sparse", "unified") else {}
    found = []
    for chunk in (3, 1000):
        recipe = stage(kind, alpha=0.3, chunk=chunk, **flops)
        made, batch, networks = prepared(tiny, folder, recipe, cross)
        numbers = made.learn(batch, 1)
        assert set(made.columns) - {"step", "skipped", "learning_rate"} == set(numbers)
        found.append([numbers, *map(gradients, networks)])
    (numbers, *cut), (others, *whole) = found
    assert {name: value.item() for name, value in numbers.items()} == pytest.approx(
        {name: value.item() for name, value in others.items()}, rel=1e-9
    )
    for first, second in zip(cut, whole, strict=True):
        same(first, second)


def test_a_teacher_learns_too_and_is_kept(tiny, tmp_path, cross):
    recipe = stage("retriever", alpha=0.3, learning_rate=3e-3, epochs=10.0)
    folder = train(retriever, tiny, tmp_path, recipe, joint_teacher=cross)
    rows = [line.split("\t") for line in (folder / loop.CURVE).read_text().splitlines()]
    column = rows[0].index("teacher_listwise")
    assert float(rows[-1][column]) < 0.8 * float(rows[1][column])
    before, after = (
        load_file(cross / "model.safetensors"),
        load_file(folder / "teacher" / "model.safetensors"),
    )
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before)
    model = checkpoint.load(folder / "teacher", "reranker")
    assert model.lengths == checkpoint.load(cross, "reranker").lengths
    count = sum(weight.numel() for weight in model.network.parameters())
    assert read_json(folder / "teacher" / "about.json")["parameters"] == count
    assert read_json(folder / "about.json")["parameters"] != count
    assert checkpoint.load(folder, "retriever").head == "dense"
