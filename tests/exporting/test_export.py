"""An exported folder has the model's very numbers in every file, which the programs of docs/use.md
read; triples are the training's groups.
"""

import contextlib
import io
import json
import re
from pathlib import Path

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest
from made_up import run_of
from small_collections import stored
from tiny_training import stage, untrained

from cdmae.errors import InputError
from cdmae.exporting import folder, graph
from cdmae.exporting.triples import export
from cdmae.finetuning.groups import Drawing
from cdmae.models import checkpoint
from cdmae.retrieval import kinds
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.kinds import read_shards
from cdmae.runs import Run, write_run

pytest.importorskip("onnxruntime")
PAGE = (Path(__file__).resolve().parents[2] / "docs/use.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
PACKAGES = ("onnxruntime", "faiss", "transformers")


def exported(tiny, tmp_path, recipe):
    """Export an untrained retriever; the export and our vectors of the passages."""
    model = untrained(tmp_path / "model", tiny.encoder, recipe)
    (model / ".snakemake_timestamp").touch()
    (model / "README.md").write_text('SentenceTransformer("model")')
    vectors = tmp_path / "vectors"
    how = {"encoder": {"encoded_by": "vectors"}, "model": model, "source": tiny.tokens}
    inference.write_vectors(**how, output=vectors)
    files = folder.export(
        tmp_path / "retriever",
        folder=str(model),
        kind="retriever",
        collection=str(tiny.collection),
        vectors=str(vectors),
    )
    assert set(files) >= {"model.safetensors", "cdmae.json", "tokenizer.json", "passages.parquet"}
    assert not list((tmp_path / "retriever").rglob(".*"))
    assert (tmp_path / "retriever/README.md").read_text() == 'SentenceTransformer("retriever")'
    parts = [each[:] for each in read_shards(vectors)]
    return tmp_path / "retriever", kinds.of(parts[0]).joined(parts)


def test_a_dense_retriever_has_its_vectors_in_every_file_and_program(tiny, tmp_path, monkeypatch):
    path, ours = exported(tiny, tmp_path, stage("retriever"))
    assert (path / graph.FILE).exists()  # the export compares its vectors with ours
    table = pq.read_table(path / "passages.parquet")
    assert table.column_names == ["docid", "vector", "text"]
    assert table["text"].to_pylist() == tiny.passages
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), ours)
    index = faiss.read_index(str(path / "passages.faiss"))
    np.testing.assert_array_equal(index.search(ours[:9], 1)[1][:, 0], np.arange(9))
    [left_out] = re.findall(r'^hf upload .* --exclude "(.*)"$', PAGE, re.MULTILINE)
    assert {"passages.parquet", "passages.faiss"} <= {each.name for each in path.glob(left_out)}
    monkeypatch.chdir(tmp_path)
    found = {}
    for program in PROGRAMS:
        named = [name for name in PACKAGES if re.search(rf"^(import|from) {name}", program, re.M)]
        name = next(iter(named), "sentence_transformers")
        with (
            contextlib.suppress(ModuleNotFoundError),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            exec(program, {"__name__": "documentation"})
            found[name] = [float(number) for number in re.findall(r"-?\d+\.\d+", said.getvalue())]
    assert {"sentence_transformers", "transformers", "onnxruntime", "faiss"} <= found.keys()
    for name in ("transformers", "onnxruntime"):
        assert found[name] == pytest.approx(found["sentence_transformers"], abs=1e-4)
    assert found["faiss"] == sorted(found["faiss"], reverse=True)


def test_long_queries_do_not_lengthen_passages(tiny, tmp_path):
    recipe = stage("retriever", query_length=40, passage_length=8)
    assert (exported(tiny, tmp_path, recipe)[0] / graph.FILE).exists()


def test_a_sparse_retriever_has_its_weights_in_onnx_and_parquet(tiny, tmp_path):
    path, ours = exported(tiny, tmp_path, stage("sparse"))
    assert (path / graph.FILE).exists()
    table = pq.read_table(path / "passages.parquet")
    row = table.slice(3, 1).to_pylist()[0]
    assert row["indices"] == ours[[3]].indices.tolist()
    assert row["values"] == pytest.approx(ours[[3]].data.tolist())
    assert not (path / "passages.faiss").exists()


def test_a_reranker_has_its_scores_in_onnx_and_other_numbers_are_refused(tiny, tmp_path):
    path = untrained(tmp_path / "model", tiny.encoder, stage("reranker"))
    source = {"folder": str(path), "kind": "reranker", "collection": str(tiny.collection)}
    assert graph.FILE in folder.export(tmp_path / "to", **source)
    model = checkpoint.load(path, "reranker")
    with pytest.raises(InputError, match="differ by .* from the model's"):
        graph.write(model, tmp_path / "to", tiny.passages[:3], np.ones((2, 1), np.float32))


def test_missing_packages_and_vectors_of_other_passages_are_refused(tiny, tmp_path, monkeypatch):
    path = untrained(tmp_path / "model", tiny.encoder, stage("retriever"))
    (tmp_path / "vectors").mkdir()
    np.save(tmp_path / "vectors/00000.npy", np.zeros((7, 32), np.float32))
    source = {
        "folder": str(path),
        "kind": "retriever",
        "collection": str(tiny.collection),
        "vectors": str(tmp_path / "vectors"),
    }
    with pytest.raises(InputError, match="120 passages.* 7"):
        folder.export(tmp_path / "to", **source, onnx=False)
    monkeypatch.setattr(graph, "NEEDED", ("onnx", "no_such_package"))
    with pytest.raises(InputError, match="no_such_package"):
        folder.export(tmp_path / "to", **source)
    assert not (tmp_path / "to").exists()


# --- triples --------------------------------------------------------------------------------------


POSITIVES = {"q0": [0, 1], "q1": [2], "q2": [3]}
MINED = {"q0": [4, 0, 5, 6], "q1": [7, 2, 0], "q2": [3]}  # q2 has no negative


@pytest.mark.parametrize("is_taught", [False, True])
def test_rows_are_the_training_s_groups_in_the_columns_of_the_library(tmp_path, is_taught):
    """Of three queries, in whose run relevant passages occur, too; the teacher scores passage p of
    query q by 10 q + p.
    """
    passages = [(f"p{row}", "T", f"passage {row}") for row in range(8)]
    asked = {name: f"query {name}" for name in POSITIVES}
    judged = [(name, f"p{row}", 1) for name, found in POSITIVES.items() for row in found]
    stored(tmp_path / "collection", passages, {"train": asked}, {"train": judged})
    write_run(tmp_path / "negatives.parquet", run_of(*MINED.values()))
    taught = [10 * query + np.arange(8, dtype=np.float32) for query in range(3)]
    write_run(tmp_path / "teacher.parquet", Run.of([np.arange(8, dtype=np.int32)] * 3, taught))
    how = {
        "collection": tmp_path / "collection",
        "negatives": tmp_path / "negatives.parquet",
        "drawing": Drawing("train", depth=10, group=2, random_negatives=0, seed=0),
        "teacher": tmp_path / "teacher.parquet" if is_taught else None,
    }
    output = tmp_path / "triples.jsonl"
    with pytest.raises(InputError, match="expected a smaller --triples"):
        export(output, 4, **how)
    assert export(output, 3, **how)[0] == 2, "q1 has two negatives"
    assert export(output, 2, **how)[0] == 3
    expected = []
    for query, *group in ((0, 0, 4, 5), (0, 1, 4, 5), (1, 2, 7, 0)):
        texts = [f"T passage {row}" for row in group]
        row = {"anchor": f"query q{query}", "positive": texts[0]}
        row |= {"negative_1": texts[1], "negative_2": texts[2]}
        scores = {"label": [10.0 * query + passage for passage in group]}
        expected.append(row | scores if is_taught else row)
    assert [json.loads(line) for line in output.read_text().splitlines()] == expected
