"""Smaller vectors: the full size is the evaluation's, and each kind of number is what it says."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cdmae.collections.store import Collection, read_qrels, write_collection
from cdmae.errors import InputError
from cdmae.evaluation.compare import table
from cdmae.evaluation.compression import (
    RESCORED,
    compare_sizes,
    find,
    prefixes,
    side_by_side,
)
from cdmae.evaluation.measures import measure
from cdmae.evaluation.significance import paired
from cdmae.retrieval import targets
from cdmae.retrieval.search import search
from cdmae.runs import read_run
from workflow import commands

NUMBERS = ["float32", "float16", "int8", "binary"]


@pytest.fixture
def collection(tmp_path):
    """60 passages, of which the first three are queries themselves, which the evaluation leaves
    out; 20 queries.
    """
    ids = [f"p{row}" for row in range(60)]
    passages = pa.table({"passage_id": ids, "title": [""] * 60, "text": ids})
    names = ids[:3] + [f"q{row}" for row in range(17)]
    relevant = [f"p{10 + 2 * row}" for row in range(20)]
    judged = pd.DataFrame({"query_id": names, "passage_id": relevant, "grade": 1})
    queries = pd.DataFrame({"query_id": names, "text": names})
    write_collection(
        tmp_path, Collection(passages, {"test": queries}, {"test": judged}, {"source": "beir"})
    )
    return tmp_path


def test_the_full_size_is_the_evaluations_and_the_others_are_tested_against_it(collection):
    rng = np.random.default_rng(1)
    passages, queries = (
        rng.standard_normal((60, 16), np.float32),
        rng.standard_normal((20, 16), np.float32),
    )
    queries += passages[10:50:2]
    shards, names = (
        [passages[:25], passages[25:]],
        [*["p0", "p1", "p2"], *[f"q{row}" for row in range(17)]],
    )
    frame = compare_sizes(
        lambda texts: queries[: len(texts)], shards, collection, "test", "RR@10", 10
    )

    def whole(_, texts, depth):
        return search(queries, shards, depth)

    targets.search([collection], ["test"], [collection / "run"], 10, whole)
    full = measure(read_run(collection / "run"), read_qrels(collection, "test"), names, ["RR@10"])[
        "value"
    ]
    assert frame["mean"][0] == full.mean() > 0.3
    assert frame["p"][0] is None
    assert list(zip(frame["dimensions"], frame["numbers"], frame["bytes"], strict=True)) == [
        *zip([16] * 4, NUMBERS, [64, 32, 16, 2], strict=True), *zip([8] * 4, NUMBERS, [32, 16, 8, 1], strict=True),
        *zip([4] * 4, NUMBERS, [16, 8, 4, 1], strict=True), *zip([2] * 4, NUMBERS, [8, 4, 2, 1], strict=True),
    ]  # fmt: skip
    half = search(queries[:, :8], [passages[:, :8]], 11)
    half = targets.without(half, np.array([[0, 0], [1, 1], [2, 2]]), 10)
    values = measure(half, read_qrels(collection, "test"), names, ["RR@10"])["value"]
    assert frame["mean"][4] == values.mean()
    assert frame["p"][4] == pytest.approx(paired(values, full).p)
    header = [cell.strip() for cell in table(frame).splitlines()[0].strip("|").split("|")]
    assert header == [
        "measure",
        "dimensions",
        "numbers",
        "bytes",
        "mean x 100",
        "difference, Holm",
        "p",
        "p, Holm",
    ]


def test_dimensions_are_those_that_are_asked_for_beside_all(collection):
    vectors = np.eye(60, 12, dtype=np.float32)
    sizes = compare_sizes(
        lambda texts: vectors[:20], [vectors], collection, "test", "R@5", 5, widths=[9, 12]
    )
    assert sizes["dimensions"].tolist() == [12] * 4 + [9] * 4
    assert sizes["bytes"].tolist() == [48, 24, 12, 2, 36, 18, 9, 2]
    with pytest.raises(InputError, match="the dimensions to keep are 13; allowed: from 1 to 12"):
        compare_sizes(
            lambda texts: vectors[:20], [vectors], collection, "test", "R@5", 5, widths=[13]
        )


def test_prefixes_of_vectors_of_length_1_have_length_1():
    vectors = np.random.default_rng(2).standard_normal((30, 8), np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert prefixes([vectors], 8)[0] is vectors and prefixes([units], 8)[0] is units
    assert (prefixes([vectors[:7], vectors[7:]], 3)[1][:] == vectors[7:, :3]).all()
    cut = units[:, :3]
    np.testing.assert_allclose(
        prefixes([units], 3)[0][:], cut / np.linalg.norm(cut, axis=1, keepdims=True), rtol=1e-6
    )
    assert not prefixes([np.eye(4, dtype=np.float32)], 2)[0][:][2:].any(), (
        "a vector of zeros stays one"
    )


def test_bytes_lose_nothing_of_256_steps_and_half_floats_are_rounded():
    rng = np.random.default_rng(3)
    passages = rng.integers(0, 256, (300, 6)).astype(np.float32)
    passages[0], passages[1] = 0, 255
    passages[:, 4], passages[:, 5] = passages[:, 4] / 4 - 3, 0.25  # other steps, and a constant
    queries = rng.integers(-3, 4, (20, 6)).astype(np.float32)
    full, small = (
        find(queries, [passages[:90], passages[90:]], numbers, 30)
        for numbers in ("float32", "int8")
    )
    np.testing.assert_array_equal(small.passages, full.passages)
    np.testing.assert_array_equal(small.scores, full.scores)
    passages = np.array([[1.0001], [1.0002], [1.01]], np.float32)
    queries = np.ones((1, 1), np.float32)
    assert find(queries, [passages], "float32", 3).passages.tolist() == [2, 1, 0]
    assert find(queries, [passages], "float16", 3).passages.tolist() == [2, 0, 1]


def test_signs_propose_and_the_query_orders():
    """Passage i differs from the query in i signs: in the heaviest for odd i, in the lightest for
    even i.
    """
    weights = np.arange(1, 13, dtype=np.float32)
    passages = np.tile(weights, (13, 1))
    for row in range(13):
        passages[row, slice(12 - row, 12) if row % 2 else slice(0, row)] *= -1
    depth = 2
    signs = passages > 0
    near = np.argsort((~signs).sum(1), kind="stable")[: RESCORED * depth]
    scores = signs @ weights
    best = near[np.argsort(-scores[near], kind="stable")]
    run = find(weights[None], [passages[:5], passages[5:]], "binary", depth)
    assert run.passages.tolist() == best[:depth].tolist() == [0, 2]
    assert run.scores.tolist() == scores[best[:depth]].tolist()
    every = find(weights[None], [passages], "binary", 8)  # all 13 are proposed
    assert every.passages.tolist() == np.argsort(-scores, kind="stable")[:8].tolist()
    lost = find(weights[None], [passages[[5, 5, 5, 5, 8]]], "binary", 1)
    assert scores[8] > scores[5] == lost.scores[0] and lost.passages.tolist() == [0], (
        "8 is not proposed; ties by row"
    )


def test_the_command_names_what_is_wrong_and_what_makes_it(tmp_path):
    overlay = tmp_path / "own.yaml"
    overlay.write_text(
        f"results: {tmp_path}/out\nevaluation: {{keep_vectors: false, collections: {{networkx: []}}}}\n"
    )

    def refusal(*words):
        with pytest.raises(InputError) as refused:
            commands.command(["sizes", "--configfile", str(overlay), *words])
        return str(refused.value)

    assert refusal("--system", "cdmae-stage4").endswith("did you mean cdmae-stage3?")
    assert refusal("--system", "bm25").startswith("--system is bm25; allowed: ")
    assert (
        refusal("--system", "cdmae-stage3", "--split", "train")
        == "--split is train; allowed: dev, test"
    )
    assert (
        refusal("--collection", "networkx")
        == "--collection is networkx; allowed: pydocs, scikit-learn"
    ), "no split"
    assert refusal("--dimensions", "64,x").startswith(
        "--dimensions is 64,x; allowed: whole numbers separated by commas"
    )
    model = f"{tmp_path}/out/trained/cdmae-stage3"
    said = f"{model} does not exist yet; ./run with the same config files makes it"
    assert refusal("--system", "cdmae-stage3") == said
    (tmp_path / "out/trained/cdmae-stage3").mkdir(parents=True)
    vectors = f"{tmp_path}/out/vectors/cdmae-stage3/pydocs"
    said = f"{vectors} does not exist yet; ./run {vectors} with the same config files makes it"
    assert refusal("--system", "cdmae-stage3") == said


def test_sizes_of_several_systems_are_side_by_side():
    def sizes(full, mean):
        rows = [
            {"dimensions": width, "numbers": numbers, "mean": mean}
            for width in (full, full // 2)
            for numbers in ("float32", "int8")
        ]
        return pd.DataFrame(rows)

    own = sizes(8, 0.5)
    assert side_by_side({"a": own}) is own
    both = side_by_side({"a": own, "b": sizes(4, 0.25)})
    labels = [(row.system, row.dimensions, row.numbers) for row in both.itertuples()]
    assert labels == [
        ("a", 8, "float32"),
        ("a", 8, "int8"),
        ("a", 4, "float32"),
        ("b", 4, "float32"),
        ("a", 4, "int8"),
        ("b", 4, "int8"),
        ("b", 2, "float32"),
        ("b", 2, "int8"),
    ]
    assert both["mean"].tolist() == [0.5] * 3 + [0.25, 0.5] + [0.25] * 3
