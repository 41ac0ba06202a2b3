"""The folders of trained retrievers: sentence-transformers, or the card's program, reads them."""

import numpy as np
import pytest
from card_facts import told_by_card
from scipy.sparse import issparse
from tiny_training import stage, train
from transformers import AutoTokenizer

from cdmae.retrieval import vectors
from cdmae.retrieval.kinds.dual import DualVectors

IDF = {"query_weights": "idf", "passage_flops": 0.01, "flops_warmup": 4}
FOLDERS = [
    ("retriever", {"pooling": "mean", "similarity": "cosine", "precision": "bf16"}),
    ("retriever", {"query_prompt": "bada: ", "passage_prompt": "fika, gule: "}),
    ("sparse", {"flops_warmup": 1.0}),
    ("sparse", IDF),
    ("sparse", IDF | {"query_weights": "learned"}),
    ("unified", {"temperature": 2.0, "dense_temperature": 4.0, "flops_warmup": 1.0}),
    ("multi", {"expansion": "attended", "skip_punctuation": False}),
    ("multi", {"expansion": "none", "passage_prompt": "[d] "}),
]


def theirs(folder, kind, encode, texts):
    """What sentence-transformers computes: an array per text, or a matrix."""
    import sentence_transformers

    name = {"retriever": "SentenceTransformer", "multi": "MultiVectorEncoder"}.get(
        kind, "SparseEncoder"
    )
    model = getattr(sentence_transformers, name)(str(folder), device="cpu")
    if name == "SparseEncoder":
        return getattr(model, encode)(texts, convert_to_sparse_tensor=False).numpy()
    if kind == "retriever":
        model[0].query_length = 16  # a file has one length for both
    return getattr(model, encode)(texts, convert_to_numpy=True)


@pytest.mark.parametrize(("kind", "more"), FOLDERS)
def test_sentence_transformers_computes_the_same_vectors(tiny, tmp_path, kind, more):
    folder = train(tiny, tmp_path, stage(kind, epochs=1, **more))
    encoder = vectors.Encoder({"model": folder})
    (shard,) = encoder.passages(tiny.tokens)
    for encode, texts, ours in (
        ("encode_query", tiny.queries, encoder.queries(tiny.queries)),
        ("encode_document", tiny.passages, shard[:]),
    ):
        found = theirs(folder, kind, encode, texts)
        if isinstance(ours, DualVectors):
            assert ours.weight == 0.5
            ours = ours.sparse
        if kind == "multi":
            for row, expected in enumerate(found):
                np.testing.assert_allclose(ours[row : row + 1].values, expected, atol=1e-5)
        else:
            ours = ours.toarray() if issparse(ours) else ours
            np.testing.assert_allclose(ours, found, atol=1e-4)


def own_weights(encode, text, length):
    """The weights of a text by the card of uniCOIL or DeepCT."""
    weights = np.zeros(160)
    for piece, weight in encode(text, length).items():
        weights[piece] = weight
    return weights


def coil_vectors(encode, text, length):
    """The vectors of a text by COIL's card: [CLS]'s 30 numbers in three rows of 12, then others."""
    _, of_pieces, of_cls = encode(text, length)
    rows = np.zeros(36)
    rows[:30] = of_cls
    return np.concatenate([rows.reshape(3, 12), of_pieces])


CARDS = [
    ("sparse", {"pieces": "own", "query_flops": 0.0, "passage_flops": 0.0}, own_weights),
    ("sparse", {"pieces": "own", "target": "recall"}, own_weights),
    ("multi", {"match": "equal", "cls_dimensions": 30}, coil_vectors),
]


@pytest.mark.parametrize(("kind", "more", "told"), CARDS)
def test_the_program_of_a_card_computes_the_same_vectors(tiny, tmp_path, kind, more, told):
    folder = train(tiny, tmp_path, stage(kind, epochs=1, **more))
    assert not (folder / "modules.json").exists()
    encoder = vectors.Encoder({"model": folder})
    (shard,) = encoder.passages(tiny.tokens)
    encode = told_by_card(folder)["encode"]
    for texts, length, ours in (
        (tiny.queries, 16, encoder.queries(tiny.queries)),
        (tiny.passages[:20], 32, shard[:]),
    ):
        if more.get("target") == "recall" and length == 16:
            pieces = AutoTokenizer.from_pretrained(folder)
            read = pieces(texts, truncation=True, max_length=length)["input_ids"]
            assert ours.sum() == sum(len(text) - 2 for text in read)
            continue
        for row, text in enumerate(texts):
            found = ours[row : row + 1]
            found = found.toarray()[0] if kind == "sparse" else found.values
            np.testing.assert_allclose(found, told(encode, text, length), atol=1e-5)


def test_a_head_of_a_unified_retriever_has_its_vectors(tiny, tmp_path):
    folder = train(tiny, tmp_path, stage("unified", flops_warmup=1.0, epochs=1))
    both = vectors.Encoder({"model": folder}).queries(tiny.queries)
    (shard,) = vectors.Encoder({"model": folder}).passages(tiny.tokens)
    for uses in ("dense", "sparse"):
        encoder = vectors.Encoder({"model": folder, "uses": uses})
        assert abs(encoder.queries(tiny.queries) - both.head(uses)).max() == 0
        (own,) = encoder.passages(tiny.tokens)
        assert abs(own[:] - shard[:].head(uses)).max() == 0
