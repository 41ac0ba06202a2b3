"""An exported folder has the model's very numbers in every file."""

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest

from cdmae.errors import InputError
from cdmae.exporting import folder, graph
from cdmae.files import read_json
from cdmae.models import checkpoint
from cdmae.retrieval import kinds
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.kinds import read_shards
from cdmae.retrieval.kinds.multi import MultiVectors

pytest.importorskip("onnxruntime")
LENGTHS = {"query_length": 16, "passage_length": 32}
DENSE = {"pooling": "mean", "similarity": "cosine"}


def model_of(tiny, path, kind="retriever", **described):
    """The folder of an untrained model."""
    lengths = LENGTHS if kind == "retriever" else {"max_length": 40}
    model = checkpoint.start_model(
        tiny.encoder, kind, **lengths, precision="fp32", seed=3, **described
    )
    path.mkdir()
    checkpoint.save(path, model, tiny.encoder, {"steps": 1})
    (path / ".snakemake_timestamp").touch()
    return path


def exported(tiny, tmp_path, onnx=True, **described):
    """Export a retriever; the export and our vectors of the passages."""
    model = model_of(tiny, tmp_path / "model", **described)
    inference.write_vectors(
        encoder={"encoded_by": "vectors"},
        model=model,
        source=tiny.tokens,
        output=tmp_path / "vectors",
    )
    source = folder.Source(str(model), "retriever", str(tiny.collection), str(tmp_path / "vectors"))
    files = folder.export(source, tmp_path / "to", onnx=onnx)
    assert set(files) >= {"model.safetensors", "cdmae.json", "tokenizer.json", "passages.parquet"}
    assert not list((tmp_path / "to").rglob(".*"))
    parts = [each[:] for each in read_shards(source.vectors)]
    return tmp_path / "to", kinds.of(parts[0]).joined(parts)


def test_a_dense_retriever_has_its_vectors_in_onnx_parquet_and_faiss(tiny, tmp_path):
    path, ours = exported(tiny, tmp_path, **DENSE)
    assert (path / graph.FILE).exists()  # the export compares its vectors with ours
    table = pq.read_table(path / "passages.parquet")
    assert table.column_names == ["docid", "vector", "text"]
    assert table["text"].to_pylist() == tiny.passages
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, ours)
    index = faiss.read_index(str(path / "passages.faiss"))
    np.testing.assert_array_equal(index.search(ours[:9], 1)[1][:, 0], np.arange(9))


def test_an_encoder_is_exported_with_the_pooling_of_its_training(tiny, tmp_path, pretrained):
    source = folder.Source(str(pretrained), "encoder", str(tiny.collection))
    files = folder.export(source, tmp_path / "to")
    assert "passages.parquet" not in files and graph.FILE in files
    pooling = read_json(tmp_path / "to" / folder.POOLING)
    assert pooling == read_json(pretrained / folder.POOLING)


def test_a_sparse_retriever_has_its_weights_in_onnx_and_parquet(tiny, tmp_path):
    path, ours = exported(tiny, tmp_path, head="sparse")
    assert (path / graph.FILE).exists()
    table = pq.read_table(path / "passages.parquet")
    row = table.slice(3, 1).to_pylist()[0]
    assert row["indices"] == ours[[3]].indices.tolist()
    assert row["values"] == pytest.approx(ours[[3]].data.tolist())
    assert not (path / "passages.faiss").exists()


def test_a_multi_vector_retriever_has_a_list_of_vectors_and_no_graph(tiny, tmp_path):
    described = {"match": "any", "expansion": "none", "skip_punctuation": True}
    path, ours = exported(tiny, tmp_path, head="multi", dimensions=8, **described)
    assert isinstance(ours, MultiVectors) and not (path / graph.FILE).exists()
    lists = pq.read_table(path / "passages.parquet")["vectors"].to_pylist()
    np.testing.assert_array_equal(np.array(lists[5], np.float16), ours[5:6].values)


def test_a_reranker_has_its_scores_in_onnx_and_other_numbers_are_refused(tiny, tmp_path):
    path = model_of(tiny, tmp_path / "model", "reranker")
    source = folder.Source(str(path), "reranker", str(tiny.collection))
    assert graph.FILE in folder.export(source, tmp_path / "to")
    model = checkpoint.load(path, "reranker")
    with pytest.raises(InputError, match="differ by .* from the model's"):
        graph.write(model, tmp_path / "to", tiny.passages[:3], np.ones((2, 1), np.float32))


def test_missing_packages_and_vectors_of_other_passages_are_refused(tiny, tmp_path, monkeypatch):
    path = model_of(tiny, tmp_path / "model", **DENSE)
    (tmp_path / "vectors").mkdir()
    np.save(tmp_path / "vectors/00000.npy", np.zeros((7, 32), np.float32))
    source = folder.Source(str(path), "retriever", str(tiny.collection), str(tmp_path / "vectors"))
    with pytest.raises(InputError, match="has 120 passages, but the run has vectors of 7"):
        folder.export(source, tmp_path / "to", onnx=False)
    monkeypatch.setattr(graph, "NEEDED", ("onnx", "no_such_package"))
    with pytest.raises(InputError, match=r"not installed \(no_such_package\)"):
        folder.export(source, tmp_path / "to")
    assert not (tmp_path / "to").exists()
