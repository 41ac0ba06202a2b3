"""A step's loss and gradient: those of the formula over one batch of vectors, in any chunks.

`models/test_architectures.py` compares the vectors and their gradients with transformers.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tiny_models import padded
from tiny_training import (
    encoder,
    gradients,
    learn,
    same,
    stage,
    task_in_float64,
    together,
    train,
)

from cdmae.config.stages import Regularised
from cdmae.finetuning import late, losses, retriever
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.heads import multi, table
from cdmae.models.ragged import Ragged
from cdmae.training import setup

FLOPS = {"query_flops": 0.3, "passage_flops": 0.2, "flops_warmup": 4}
UNIFIED = FLOPS | {"dense_temperature": 7.0}
MEAN = {"pooling": "mean", "similarity": "cosine"}
COIL = {"match": "equal", "cls_dimensions": 30}  # three rows of 12, the last with zeros
TABLE = FLOPS | {"query_weights": "learned"}
CASES = [
    ("retriever", {"in_batch": False, "distillation": "kl"}),
    ("retriever", {"distillation": "margin_mse", "passage_weight": 0.1}),
    ("retriever", MEAN | {"in_batch": False, "passage_weight": 0.1}),
    ("sparse", FLOPS | {"in_batch": False, "distillation": "kl"}),
    ("sparse", FLOPS | {"pieces": "own"}),
    ("sparse", TABLE),
    ("sparse", TABLE | {"query_weights": "idf"}),
    ("unified", UNIFIED | MEAN | {"distillation": "kl", "passage_weight": 0.1}),
    ("multi", {"distillation": "kl"}),
    ("multi", {"expansion": "attended", "skip_punctuation": False, "in_batch": False}),
    ("multi", COIL | {"distillation": "kl"}),
    ("multi", COIL | {"in_batch": False}),
]


def scores_of_pieces(model, batch, recipe, vectors):
    """MaxSim or COIL's score of each query with all passages, one pair at a time: [B, B x N]."""
    pieces = multi.scored(batch.sequences, model.network)
    texts = [
        (vectors[first:last], torch.from_numpy(pieces.values[first:last]))
        for first, last in zip(pieces.starts[:-1], pieces.starts[1:], strict=True)
    ]

    def score(query, passage):
        products = query[0] @ passage[0].T
        if recipe.match == "any":
            return products.amax(1).sum()
        # of negative products with the same word-piece and 0 for all others, 0 is the largest
        exact = (query[1][:, None] == passage[1]).double()
        is_piece = query[1] >= 0
        of_cls = (products * exact).sum(1)[~is_piece]
        return (products * exact).amax(1)[is_piece].clamp_min(0).sum() + of_cls.sum()

    return torch.stack([torch.stack([score(q, p) for p in texts[6:]]) for q in texts[:6]])


def loss_of(every, groups, recipe, batch, centric=None):
    """The loss of one head; every: the scores of the whole batch, groups: of the groups."""
    loss = losses.listwise(groups)
    if recipe.in_batch:
        masked = every.masked_fill(torch.from_numpy(batch.excluded), -torch.inf)
        loss = torch.nn.functional.cross_entropy(masked, 4 * torch.arange(6))
    if centric is not None:
        loss = (1 - recipe.passage_weight) * loss + recipe.passage_weight * centric
    if batch.teacher is not None:
        taught = getattr(losses, recipe.distillation)(groups, torch.as_tensor(batch.teacher))
        loss = taught + recipe.alpha * loss
    return loss


def loss_by_hand(task, batch):
    """The loss of a batch, in the second of four steps of the regulariser's warm-up."""
    recipe, network = task.stage, task.model.network
    texts = packed.pack(batch.sequences, torch.device("cpu"))
    vectors = heads.of(recipe.head).vectors(network, texts, recipe)
    if recipe.head == "multi":
        every = scores_of_pieces(task.model, batch, recipe, vectors) / recipe.temperature
        groups = torch.stack([every[row, 4 * row : 4 * row + 4] for row in range(6)])
        return loss_of(every, groups, recipe, batch)
    of_table = recipe.query_weights != "network"
    if of_table:
        vectors = torch.cat([table_of_queries(task), vectors])
    parts = [(vectors, recipe.temperature)]
    if recipe.head == "unified":
        parts = [(vectors[:, :160], recipe.temperature)]
        parts.append((vectors[:, 160:], recipe.dense_temperature))
    loss = 0
    for part, temperature in parts:
        queries, passages = part[:6] / temperature, part[6:].view(6, 4, -1)
        centric = None
        if getattr(recipe, "passage_weight", 0) and part is parts[-1][0]:  # of the dense vectors
            excluded = None if batch.excluded is None else torch.from_numpy(batch.excluded)
            centric = losses.passage_centric(part[:6], passages, temperature, excluded)
        groups = losses.group_scores(queries, passages)
        loss = loss + loss_of(queries @ part[6:].T, groups, recipe, batch, centric)
    if isinstance(recipe, Regularised):
        weights = vectors[:, :160]
        queries, passages = (part.mean(0).square().sum() for part in (weights[:6], weights[6:]))
        loss = loss + (0.3 * queries * (not of_table) + 0.2 * passages) / 4
    return loss


def table_of_queries(task):
    """The weights of the first queries from the table, which may be learnt, too."""
    asked = sequences.texts(task.model, "query", task.data.queries, task.data.examples.queries[:6])
    found = torch.from_numpy(table.weigh(asked, task.model.table).toarray()).double()
    if task.stage.query_weights == "learned":
        found = found * (1 + 50 * task.model.network.query_scales).relu()
    return found


@pytest.mark.parametrize(("kind", "more"), CASES)
def test_loss_and_gradient_are_those_of_the_formula(tiny, tmp_path, teacher, kind, more):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage(kind, alpha=1.3, temperature=2.5, **more)
    taught = {"teacher": teacher} if "distillation" in more else {}
    task = task_in_float64(tiny, recipe, folder, **taught)
    if recipe.query_weights == "learned":
        task.network.query_scales.data[::2] = -0.04  # at which a weight would be negative
    batch = task.draw(np.arange(6), 8)  # an epoch that excludes two passages
    assert not recipe.in_batch or batch.excluded.sum() == 2
    loss = loss_by_hand(task, batch)
    loss.backward()
    expected = gradients(task.network)
    numbers, found = learn(task, batch, step=1)
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, expected)


def test_of_negative_products_only_those_of_cls_vectors_count():
    """COIL: the row -1 is a text's [CLS] vector, and 7 is a word-piece."""
    query, passage = (
        late.Texts(torch.tensor(vectors)[:, None], Ragged.of([[-1, 7]]))
        for vectors in ([1.0, 1.0], [-2.0, -3.0])
    )
    assert late.scores(query, passage, "equal").tolist() == [[-2]]


HEADS = [
    ("retriever", {}),
    ("sparse", FLOPS),
    ("sparse", FLOPS | {"pieces": "own"}),
    ("sparse", TABLE),
    ("sparse", {"pieces": "own", "target": "recall"}),
    ("unified", UNIFIED),
    ("multi", {}),
    ("multi", COIL),
    ("reranker", {}),
]


@pytest.mark.parametrize(("kind", "more"), HEADS)
def test_chunks_blocks_and_processes_change_nothing_and_fp16_little(
    tiny, tmp_path, teacher, kind, more, monkeypatch
):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage(kind, alpha=4.0, chunk=3, **more)
    alone, *others = (task_in_float64(tiny, recipe, folder, teacher=teacher) for _ in range(3))
    batch = alone.draw(np.arange(6), 0)
    large = replace(alone, stage=replace(alone.stage, chunk=1000))
    numbers, whole = learn(large, batch, step=1)
    monkeypatch.setitem(late.PRODUCTS_AT_ONCE, "cpu", 3000)

    def process(group):
        return learn(others[group.rank], batch, step=1, group=group)

    for other, gradient in [learn(alone, batch, step=1), *together(2, process)]:
        same(gradient, whole)
        assert other.keys() == numbers.keys()
        of_chunks = {"spread"} if kind == "reranker" or "target" in more else set()
        for name in numbers.keys() - of_chunks:  # which are the mean over those of the chunks
            assert other[name].item() == pytest.approx(numbers[name].item(), rel=1e-7), name

    scaler = setup.Scaler("fp16", torch.device("cpu"))
    scaler.update(1024.0)  # at which nothing overflows
    narrow = replace(alone, stage=replace(alone.stage, precision="fp16"))
    narrow.network.float()
    _, gradient = learn(narrow, batch, step=1, scaler=scaler)
    errors = [each / scaler.get_scale() - whole[name] for name, each in gradient.items()]
    # where products are about equal, a maximum over word-pieces is another one's in fp16
    allowed = 0.3 if kind == "multi" else 0.05
    assert length_of(errors) < allowed * length_of(whole.values())


def length_of(gradients):
    return torch.cat([each.flatten() for each in gradients]).norm()


def test_both_passes_over_a_chunk_drop_the_same(tiny):
    """With dropout, the cached gradient is that of the same chunks with all graphs kept."""
    task = task_in_float64(tiny, stage("retriever"), tiny.encoder)
    batch = task.draw(np.arange(6), 0)
    numbers, found = learn(task, batch)

    def keep_all(inputs, loss, *_):
        cuts = inputs[0].cuts
        parts = [inputs[0].encode(chunk) for chunk in range(len(cuts))]
        value, numbers = loss(torch.cat(parts)[torch.argsort(torch.cat(cuts))])
        value.backward()
        return numbers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retriever, "cached_backward", keep_all)
        kept_numbers, kept = learn(task, batch)
    assert numbers["loss"].item() == pytest.approx(kept_numbers["loss"].item(), rel=1e-12)
    same(found, kept)
    assert learn(task, batch, step=1)[0]["loss"] != numbers["loss"]  # dropout is on


# --- a teacher that is trained, too ---------------------------------------------------------------


@pytest.fixture(scope="module")
def cross(tiny, tmp_path_factory):
    """A trained reranker without dropout."""
    folder = tmp_path_factory.mktemp("cross")
    still = encoder(folder / "still", tiny.encoder, dropout=0.0)
    return train(tiny, folder, stage("reranker", epochs=0.5), encoder=still)


@pytest.mark.parametrize("kind", ["retriever", "sparse", "multi", "unified"])
def test_the_divergence_reaches_student_and_teacher(tiny, tmp_path, cross, kind):
    """RocketQAv2: scores of one padded batch by transformers; any chunks."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    flops = FLOPS if kind in ("sparse", "unified") else {}
    judge = transformers.BertForSequenceClassification.from_pretrained(
        cross, attn_implementation="eager"
    )
    judge.double().eval()
    for chunk in (3, 1000):
        recipe = stage(kind, alpha=1.3, temperature=2.5, chunk=chunk, **flops)
        tasks = [task_in_float64(tiny, recipe, folder, joint_teacher=cross) for _ in range(3)]
        batch = tasks[2].draw(np.arange(6), 0)
        judge.zero_grad()
        types = list(replace(batch.pairs, values=batch.pairs.types))
        judged = judge(**padded(list(batch.pairs), types=types)).logits.view(6, 4)
        student = loss_by_hand(tasks[2], replace(batch, teacher=judged))
        own = torch.nn.functional.cross_entropy(judged, torch.zeros(6, dtype=torch.long))
        (student + own).backward()
        expected = gradients(tasks[2].model.network)
        numbers, whole = learn(tasks[2], batch, step=1)
        assert numbers["teacher_listwise"].item() == pytest.approx(own.item(), rel=1e-9)
        found = gradients(tasks[2].joint.network)
        same(found, {name: gradients(judge)[name] for name in found})

        def process(group, tasks=tasks, batch=batch):
            return learn(tasks[group.rank], batch, step=1, group=group)

        for other, gradient in [(numbers, whole), *together(2, process)]:
            assert other["loss"].item() == pytest.approx((student + own).item(), rel=1e-9)
            same(gradient, expected)


def test_a_trained_teacher_is_kept(tiny, tmp_path, cross):
    recipe = stage("retriever", alpha=0.3, learning_rate=3e-3, epochs=1.0)
    folder = train(tiny, tmp_path, recipe, joint_teacher=cross)
    before, after = (
        checkpoint.load(path, "reranker").network.state_dict()
        for path in (cross, folder / "teacher")
    )
    assert any((before[name] != after[name]).any() for name in before)
    assert checkpoint.load(folder, "retriever").head == "dense"
