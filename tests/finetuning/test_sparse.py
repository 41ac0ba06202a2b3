"""Training a sparse retriever: loss and gradient by transformers' own model, and the folder."""

import numpy as np
import pytest
import torch
import transformers
from tiny_models import padded
from tiny_training import encoder, gradients, learn, prepared, same, stage, train

from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.finetuning import losses, retriever
from cdmae.finetuning.regulariser import Sparsity
from cdmae.retrieval import vectors as inference

WORDS = 160
FLOPS = {"query_flops": 0.3, "passage_flops": 0.2, "flops_warmup": 4}


@pytest.mark.parametrize("in_batch", [True, False])
@pytest.mark.parametrize("taught", [False, True])
def test_loss_and_gradient_equal_the_naive_ones(tiny, tmp_path, teacher, in_batch, taught):
    """One padded batch through transformers, all logits kept; both weights are at a quarter."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("sparse", in_batch=in_batch, alpha=0.3, temperature=2.5, **FLOPS)
    model, batch = prepared(tiny, recipe, folder, teacher if taught else None)
    numbers, found = learn(model, batch, recipe, step=1)

    naive = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager")
    naive.double()
    inputs = padded(list(batch.sequences))
    weights = torch.log1p(torch.relu(naive(**inputs).logits)) * inputs["attention_mask"][..., None]
    vectors = weights.amax(1)
    queries = vectors[:6] / 2.5
    passages = vectors[6:].view(6, 4, -1)
    excluded = None if batch.excluded is None else torch.from_numpy(batch.excluded)
    loss = losses.contrastive(queries, passages, in_batch=in_batch, excluded=excluded)
    if taught:
        kl = losses.kl(losses.group_scores(queries, passages), torch.from_numpy(batch.teacher))
        loss = kl + 0.3 * loss
    penalty = 0.3 * (vectors[:6].mean(0) ** 2).sum() + 0.2 * (vectors[6:].mean(0) ** 2).sum()
    loss = loss + penalty / 4
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    assert numbers["penalty"].item() == pytest.approx(penalty.item() / 4, rel=1e-9)
    entries = (vectors[6:] > 0).sum(1).double().mean()
    assert numbers["passage_entries"].item() == pytest.approx(entries.item(), rel=1e-6)
    expected = gradients(naive)
    expected.pop("bert.embeddings.token_type_embeddings.weight")
    found.pop("bert.embeddings.token_type_embeddings.weight")
    same(found, expected)


def test_the_regulariser_grows_quadratically():
    sparsity = Sparsity(stage("sparse", flops_warmup=0.5), "tiny", 8, WORDS)
    assert [sparsity.grown(step) for step in (0, 1, 3, 7)] == [1 / 16, 1 / 4, 1.0, 1.0]
    assert Sparsity(stage("sparse", flops_warmup=2), "tiny", 8, WORDS).grown(0) == 1 / 4
    assert Sparsity(stage("sparse", flops_warmup=0), "tiny", 8, WORDS).grown(0) == 1.0


def test_dead_vectors_are_refused_and_saturated_ones_noted():
    sparsity = Sparsity(stage("sparse", flops_warmup=4), "tiny", 8, WORDS)

    def check(queries, passages, step):
        return sparsity.check({"query_entries": queries, "passage_entries": passages}, step)

    with pytest.raises(
        InputError, match="collapsed: the vectors of all queries of step 1 are 0; lower"
    ):
        check(0, 9, 1)
    with pytest.raises(InputError, match="all passages of step 5 are 0; lower passage_flops"):
        check(9, 0, 5)
    assert check(9, 99, 5).endswith(
        "more than 50% of the 160 possible entries: raise passage_flops (now 0.005) and query_flops "
        "(now 0.005), or train for more steps"
    )
    assert check(9, 99, 4) == check(9, 79, 9) == ""


def test_training_ends_where_its_vectors_died(tiny, tmp_path):
    recipe = stage("sparse", query_flops=1e6, passage_flops=1e6, learning_rate=0.5, epochs=20)
    with pytest.raises(InputError, match="training of tiny collapsed: the vectors of all"):
        train(retriever, tiny, tmp_path, recipe)


def test_the_folder_is_a_sparse_encoder(tiny, tmp_path):
    """sentence-transformers and transformers compute our vectors from it."""
    from sentence_transformers import SparseEncoder

    recipe = stage("sparse", flops_warmup=1.0, passage_flops=1.0, query_flops=1.0, epochs=10)
    folder = train(retriever, tiny, tmp_path, recipe)
    described = {"kind": "retriever", "query_length": 16, "passage_length": 32, "head": "sparse"}
    assert read_json(folder / "cdmae.json") == described | {"precision": "fp32"}
    curve = (folder / "steps.tsv").read_text().splitlines()[0].split("\t")
    assert {"penalty", "query_entries", "passage_entries", "flops"} <= set(curve)

    ours = inference.encode_queries(folder, tiny.queries)
    assert ours.shape == (len(tiny.queries), WORDS)
    theirs = SparseEncoder(str(folder), device="cpu")
    assert (theirs.max_seq_length, theirs.similarity_fn_name) == (32, "dot")
    found = theirs.encode_query(tiny.queries, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(ours.toarray(), found, atol=1e-5)

    (shard,) = inference.Encoder({"model": folder}).passages(tiny.tokens)
    found = theirs.encode_document(tiny.passages, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(shard[:].toarray(), found, atol=1e-5)

    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    read = tokenizer(tiny.queries, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**read).logits
    by_hand = (torch.log1p(torch.relu(logits)) * read["attention_mask"][..., None]).amax(1)
    np.testing.assert_allclose(ours.toarray(), by_hand.numpy(), atol=1e-5)
