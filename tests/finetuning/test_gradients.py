"""A step's loss and gradient: those of one padded batch through transformers, in any chunks."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tiny_models import own_weights, padded
from tiny_training import encoder, gradients, learn, prepared, same, stage, task_of, together, train

from cdmae.finetuning import late, losses, reranker, retriever
from cdmae.models import checkpoint

FLOPS = {"query_flops": 0.3, "passage_flops": 0.2, "flops_warmup": 4}
UNIFIED = FLOPS | {"dense_temperature": 7.0}
MEAN = {"pooling": "mean", "similarity": "cosine"}
CASES = [
    ("retriever", {}),
    ("retriever", {"in_batch": False, "distillation": "kl"}),
    ("retriever", {"distillation": "margin_mse", "passage_weight": 0.1}),
    ("retriever", MEAN | {"in_batch": False, "passage_weight": 0.1}),
    ("sparse", FLOPS),
    ("sparse", FLOPS | {"in_batch": False, "distillation": "kl"}),
    ("sparse", FLOPS | {"pieces": "own"}),
    ("unified", UNIFIED | {"distillation": "kl"}),
    ("unified", UNIFIED | MEAN),
]


def vectors_by_hand(recipe, folder, model, batch):
    """The network in transformers, and the vectors of each head with their temperature."""
    inputs = padded(list(batch.sequences))
    mask = inputs["attention_mask"][..., None]
    if getattr(recipe, "pieces", "") == "own":
        network = copy.deepcopy(model.network)
        network.zero_grad()
        scores = network.weigh(network(**inputs).last_hidden_state)[..., 0]
        return network, [(own_weights(scores, batch.sequences, 160), recipe.temperature)]
    network = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager")
    network.double()
    read = network(**inputs, output_hidden_states=True)
    states = read.hidden_states[-1]
    found = []
    if recipe.head != "dense":
        weights = (torch.log1p(torch.relu(read.logits)) * mask).amax(1)
        found.append((weights, recipe.temperature))
    if recipe.head != "sparse":
        dense = states[:, 0]
        if recipe.pooling == "mean":
            dense = (states * mask).sum(1) / mask.sum(1)
            dense = dense / dense.norm(dim=1, keepdim=True)
        temperature = recipe.dense_temperature if recipe.head == "unified" else recipe.temperature
        found.append((dense, temperature))
    return network, found


def loss_by_hand(vectors, temperature, recipe, batch):
    """The loss of one head."""
    queries, passages = vectors[:6] / temperature, vectors[6:].view(6, 4, -1)
    excluded = None if batch.excluded is None else torch.from_numpy(batch.excluded)
    loss = losses.contrastive(queries, passages, in_batch=recipe.in_batch, excluded=excluded)
    if weight := getattr(recipe, "passage_weight", 0):
        centric = losses.passage_centric(vectors[:6], passages, temperature, excluded)
        loss = (1 - weight) * loss + weight * centric
    if batch.teacher is not None:
        scores = losses.group_scores(queries, passages)
        taught = getattr(losses, recipe.distillation)(scores, torch.as_tensor(batch.teacher))
        loss = taught + 0.3 * loss
    return loss


def shared(found, expected):
    """Gradients by the names that both networks have, without those of the type embeddings."""
    found = {key.removeprefix("bert."): value for key, value in found.items()}
    expected = {key.removeprefix("bert."): value for key, value in expected.items()}
    names = [key for key in found if "token_type" not in key]
    same({key: found[key] for key in names}, {key: expected[key] for key in names})


@pytest.mark.parametrize(("kind", "more"), CASES)
def test_the_gradient_equals_the_naive_one(tiny, tmp_path, teacher, kind, more):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage(kind, alpha=0.3, temperature=2.5, **more)
    taught = teacher if "distillation" in more else None
    model, batch = prepared(tiny, recipe, folder, taught)
    network, heads = vectors_by_hand(recipe, folder, model, batch)
    loss = sum(loss_by_hand(*head, recipe, batch) for head in heads)
    if kind != "retriever":
        weights = heads[0][0]
        queries, passages = (part.mean(0).square().sum() for part in (weights[:6], weights[6:]))
        # in the second of four steps of warm-up
        loss = loss + (0.3 * queries + 0.2 * passages) / 4
    loss.backward()
    numbers, found = learn(model, batch, recipe, step=1)
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    shared(found, gradients(network))


HEADS = [
    ("retriever", {}),
    ("sparse", FLOPS),
    ("sparse", FLOPS | {"pieces": "own"}),
    ("unified", UNIFIED),
    ("multi", {}),
    ("multi", {"match": "equal", "cls_dimensions": 30}),
]


@pytest.mark.parametrize(("kind", "more"), HEADS)
def test_chunks_blocks_and_processes_change_nothing(
    tiny, tmp_path, teacher, kind, more, monkeypatch
):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage(kind, alpha=4.0, chunk=3, **more)
    model, batch = prepared(tiny, recipe, folder, teacher)
    numbers, whole = learn(model, batch, replace(recipe, chunk=1000), step=1)
    monkeypatch.setitem(late.PRODUCTS_AT_ONCE, "cpu", 3000)
    models = [prepared(tiny, recipe, folder)[0] for _ in range(2)]

    def process(group):
        return learn(models[group.rank], batch, recipe, group, step=1)

    for other, gradient in [learn(model, batch, recipe, step=1), *together(2, process)]:
        same(gradient, whole)
        assert other.keys() == numbers.keys()
        for name, value in numbers.items():
            assert other[name].item() == pytest.approx(value.item(), rel=1e-9), name


def test_both_passes_over_a_chunk_drop_the_same(tiny):
    """With dropout, the cached gradient is that of the same chunks with all graphs kept."""
    recipe = stage("retriever")
    model, batch = prepared(tiny, recipe, tiny.encoder)
    numbers, found = learn(model, batch, recipe)

    def keep_all(inputs, loss, *_):
        cuts = inputs[0].cuts
        parts = [inputs[0].encode(chunk) for chunk in range(len(cuts))]
        value, numbers = loss(torch.cat(parts)[torch.argsort(torch.cat(cuts))])
        value.backward()
        return numbers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retriever, "cached_backward", keep_all)
        kept_numbers, kept = learn(model, batch, recipe)
    assert numbers["loss"].item() == pytest.approx(kept_numbers["loss"].item(), rel=1e-12)
    same(found, kept)
    assert learn(model, batch, recipe, step=1)[0]["loss"] != numbers["loss"]  # dropout is on


# --- a teacher that is trained, too ---------------------------------------------------------------


@pytest.fixture
def cross(tiny, tmp_path):
    """A trained reranker without dropout."""
    still = encoder(tmp_path / "still", tiny.encoder, dropout=0.0)
    return train(reranker, tiny, tmp_path / "cross", stage("reranker", epochs=0.5), encoder=still)


@pytest.mark.parametrize("kind", ["retriever", "sparse", "multi", "unified"])
def test_the_divergence_reaches_student_and_teacher(tiny, tmp_path, cross, kind):
    """RocketQAv2: one padded batch by transformers for a dense student; chunks for every head."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    flops = {"flops_warmup": 4.0} if kind in ("sparse", "unified") else {}
    found = []
    for chunk in (3, 1000):
        recipe = stage(kind, alpha=0.3, temperature=2.5, chunk=chunk, **flops)
        model = checkpoint.start_model(folder, "retriever", **recipe.model(), seed=1)
        task = task_of(tiny, recipe, model, joint_teacher=cross)
        networks = model.network.double(), task.teachers.joint.model.network.double()
        batch = task.draw(np.arange(6), 0)
        numbers = task.learn(batch, 1)
        assert set(task.columns) - {"step", "learning_rate"} == set(numbers)
        found.append([numbers, *map(gradients, networks)])
    (numbers, *cut), (others, *whole) = found
    for name, value in numbers.items():
        assert value.item() == pytest.approx(others[name].item(), rel=1e-9), name
    for first, second in zip(cut, whole, strict=True):
        same(first, second)
    if kind != "retriever":
        return
    judge = transformers.BertForSequenceClassification.from_pretrained(
        cross, attn_implementation="eager"
    )
    judge.double().eval()
    types = list(replace(batch.pairs, values=batch.pairs.types))
    judged = judge(**padded(list(batch.pairs), types=types)).logits.view(6, 4)
    network, heads = vectors_by_hand(recipe, folder, model, batch)
    student = loss_by_hand(*heads[0], recipe, replace(batch, teacher=judged))
    own = torch.nn.functional.cross_entropy(judged, torch.zeros(6, dtype=torch.long))
    (student + own).backward()
    assert numbers["loss"].item() == pytest.approx((student + own).item(), rel=1e-9)
    assert numbers["teacher_listwise"].item() == pytest.approx(own.item(), rel=1e-9)
    shared(whole[0], gradients(network))
    shared(whole[1], gradients(judge))


def test_a_trained_teacher_is_kept(tiny, tmp_path, cross):
    recipe = stage("retriever", alpha=0.3, learning_rate=3e-3, epochs=1.0)
    folder = train(retriever, tiny, tmp_path, recipe, joint_teacher=cross)
    before, after = (
        checkpoint.load(path, "reranker").network.state_dict()
        for path in (cross, folder / "teacher")
    )
    assert any((before[name] != after[name]).any() for name in before)
    assert checkpoint.load(folder, "retriever").head == "dense"
