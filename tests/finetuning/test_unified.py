"""A dense and a sparse head on one encoder: loss and gradient by transformers, and the folder."""

import numpy as np
import pytest
import torch
import transformers
from tiny_models import padded
from tiny_training import encoder, gradients, learn, prepared, same, stage, train

from cdmae.files import read_json
from cdmae.finetuning import losses, retriever
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search

WORDS = 160
HOW = {
    "query_flops": 0.3, "passage_flops": 0.2, "flops_warmup": 4, "temperature": 2.5,
    "dense_temperature": 7.0, "alpha": 0.3,
}  # fmt: skip


@pytest.mark.parametrize("variant", [{}, {"pooling": "mean", "similarity": "cosine"}])
def test_the_loss_is_the_sum_of_both_heads_losses(tiny, tmp_path, teacher, variant):
    """One padded batch through transformers, once; each head's loss as if it were alone."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("unified", **HOW | variant)
    model, batch = prepared(tiny, recipe, folder, teacher)
    numbers, found = learn(model, batch, recipe, step=1)

    naive = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager")
    naive.double()
    inputs = padded(list(batch.sequences))
    mask = inputs["attention_mask"][..., None]
    read = naive(**inputs, output_hidden_states=True)
    states = read.hidden_states[-1]
    weights = (torch.log1p(torch.relu(read.logits)) * mask).amax(1)
    dense = states[:, 0]
    if variant:
        dense = (states * mask).sum(1) / mask.sum(1)
        dense = dense / dense.norm(dim=1, keepdim=True)

    def alone(vectors, temperature):
        queries = vectors[:6] / temperature
        passages = vectors[6:].view(6, 4, -1)
        excluded = torch.from_numpy(batch.excluded)
        contrastive = losses.contrastive(queries, passages, excluded=excluded)
        kl = losses.kl(losses.group_scores(queries, passages), torch.from_numpy(batch.teacher))
        return kl + 0.3 * contrastive

    loss = alone(weights, 2.5) + alone(dense, 7.0)
    penalty = 0.3 * (weights[:6].mean(0) ** 2).sum() + 0.2 * (weights[6:].mean(0) ** 2).sum()
    loss = loss + penalty / 4
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    expected = gradients(naive)
    expected.pop("bert.embeddings.token_type_embeddings.weight")
    found.pop("bert.embeddings.token_type_embeddings.weight")
    same(found, expected)


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    recipe = stage("unified", temperature=2.0, dense_temperature=4.0, flops_warmup=1.0, epochs=4)
    return train(retriever, tiny, tmp_path_factory.mktemp("unified"), recipe)


def test_the_folder_has_both_heads(tiny, folder):
    """sentence-transformers computes our vectors: of the sparse head by itself, of the dense head
    from its two modules, as the card shows.
    """
    from sentence_transformers import SentenceTransformer, SparseEncoder
    from sentence_transformers.models import Pooling, Transformer

    described = {"head": "unified", "pooling": "cls", "similarity": "dot", "dense_weight": 0.5}
    assert described.items() <= read_json(folder / "cdmae.json").items()
    curve = (folder / "steps.tsv").read_text().splitlines()[0].split("\t")
    assert {"penalty", "passage_entries", "accuracy", "dense_accuracy"} <= set(curve)
    ours = inference.encode_queries(folder, tiny.queries)
    assert ours.shape == (len(tiny.queries), WORDS + 32)
    theirs = SparseEncoder(str(folder), device="cpu")
    found = theirs.encode_query(tiny.queries, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(ours.sparse.toarray(), found, atol=1e-5)
    parts = [Transformer(str(folder), max_seq_length=16), Pooling(32, "cls")]
    found = SentenceTransformer(modules=parts, device="cpu").encode(tiny.queries)
    np.testing.assert_allclose(ours.dense, found, atol=1e-5)


def test_a_head_alone_has_its_part_of_the_vectors(tiny, folder, tmp_path):
    """Stored or not; Lucene's index can be built of the sparse ones."""
    both = inference.encode_queries(folder, tiny.queries)
    (shard,) = inference.Encoder({"model": folder}).passages(tiny.tokens)
    inference.write_vectors(
        encoder={"encoded_by": "vectors"},
        model=folder,
        source=tiny.tokens,
        output=tmp_path / "both",
    )
    (kept,) = inference.read_shards(tmp_path / "both")
    assert kept.shape == shard.shape == (len(tiny.passages), WORDS + 32)
    for uses in ("dense", "sparse"):
        queries = inference.encode_queries(folder, tiny.queries, uses=uses)
        assert abs(queries - both.head(uses)).max() == 0
        of = {"encoded_by": "vectors", "uses": uses}
        inference.write_vectors(
            encoder=of, model=folder, source=tiny.tokens, output=tmp_path / uses
        )
        stored = inference.read_shards(tmp_path / uses)
        made = inference.Encoder({"model": folder, "uses": uses}).passages(tiny.tokens)
        assert stored[0].shape == made[0].shape
        assert abs(stored[0][:] - kept[:].head(uses)).max() == 0
        first, second = (search(queries, shards, 9) for shards in (stored, made))
        np.testing.assert_array_equal(first.passages, second.passages)
