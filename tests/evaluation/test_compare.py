"""Runs of others beside each other: the values of ir_measures, the test of scipy."""

import gzip

import ir_measures
import numpy as np
import pytest
from scipy.stats import ttest_rel

from cdmae.errors import InputError
from cdmae.evaluation.compare import compare, table
from workflow import commands

MEASURES = ["nDCG@10", "RR@10"]


@pytest.fixture
def files(tmp_path):
    """Judgments of 40 queries and two runs over a little more of them, the second one better."""
    random = np.random.default_rng(3)
    passages = [f"d{row}" for row in range(30)]
    judged, runs = [], {"a": [], "b": []}
    for query in range(42):
        right = random.choice(passages, 3, replace=False).tolist()
        if query < 40:
            judged += [f"q{query} 0 {name} {grade}\n" for grade, name in enumerate(right)]
        for name, lines in runs.items():
            scores = {
                other: random.normal() + (name == "b") * (other in right) for other in passages
            }
            ranked = sorted(scores, key=scores.get, reverse=True)
            for rank, other in enumerate(ranked, 1):
                lines.append(f"q{query} Q0 {other} {rank} {scores[other]:.6f} {name}\n")
    (tmp_path / "qrels").write_text("".join(judged))
    for name, lines in runs.items():
        (tmp_path / name).write_text("".join(lines))
    return tmp_path


def test_means_are_those_of_ir_measures_and_p_that_of_scipy(files):
    table = compare([files / "a", files / "b"], files / "qrels", MEASURES)
    rows = [[name, str(files / run)] for name in MEASURES for run in ("a", "b")]
    assert table[["measure", "run"]].values.tolist() == rows
    qrels = list(ir_measures.read_trec_qrels(str(files / "qrels")))
    for name in MEASURES:
        values = []
        for run in ("a", "b"):
            ranking = list(ir_measures.read_trec_run(str(files / run)))
            metrics = ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, ranking)
            values.append({metric.query_id: metric.value for metric in metrics})
        first, second = (np.array([one[query] for query in sorted(one)]) for one in values)
        rows = table[table["measure"] == name].to_dict("records")
        np.testing.assert_allclose(
            [row["mean"] for row in rows], [first.mean(), second.mean()], rtol=1e-6
        )
        assert rows[0]["p"] is None
        assert rows[1]["p"] == pytest.approx(ttest_rel(second, first).pvalue)
        assert rows[1]["p_holm"] == rows[1]["p"] < 0.01, "one comparison is not corrected"
        assert rows[1]["low"] < rows[1]["difference"] < rows[1]["high"]


def test_several_runs_are_corrected_together(files):
    """And their intervals with them, so that they exclude 0 where the corrected p is below .05."""
    (files / "c").write_text((files / "a").read_text().replace(" 30 ", " 0 ", 12))
    rows = compare([files / name for name in "abc"], files / "qrels", ["nDCG@10"]).to_dict(
        "records"
    )
    small, large = sorted((rows[1], rows[2]), key=lambda row: row["p"])
    assert small["p_holm"] == pytest.approx(2 * small["p"]) and large["p_holm"] >= large["p"]
    for row in (small, large):
        assert (row["p_holm"] < 0.05) == (row["low"] > 0 or row["high"] < 0)


@pytest.mark.parametrize("header", ["", "query-id corpus-id score\n"])
def test_packed_files_are_read_as_they_are(files, header):
    lines = (files / "qrels").read_text()
    lines = lines.replace(" 0 ", " ") if header else lines
    (files / "own").write_text(header + lines)
    for name in ("a", "b", "own"):
        with gzip.open(files / f"{name}.gz", "wt") as file:
            file.write((files / name).read_text())
    ends = ("", ".gz")
    plain, packed = (
        compare([files / f"a{end}", files / f"b{end}"], files / f"own{end}", MEASURES)
        for end in ends
    )
    assert packed.drop(columns="run").equals(plain.drop(columns="run"))
    (files / "broken.gz").write_bytes((files / "own.gz").read_bytes()[:99])
    with pytest.raises(InputError, match="broken.gz cannot be read"):
        compare([files / "a", files / "b"], files / "broken.gz", MEASURES)


def test_runs_count_to_their_end_and_what_is_there_twice_is_refused(files):
    deep = "".join(f"q1 Q0 d{rank} {rank} {-rank} x\n" for rank in range(1, 1601))
    (files / "a").write_text(deep)
    (files / "b").write_text(deep)
    (files / "qrels").write_text("q1 0 d3 1\nq1 0 d1500 1\n")
    assert compare([files / "a", files / "b"], files / "qrels", ["R@2000"])["mean"].tolist() == [
        1,
        1,
    ]
    with pytest.raises(InputError, match="a is given twice; allowed: each run once"):
        compare([files / "a", files / "b", files / "a"], files / "qrels", MEASURES)
    (files / "qrels").write_text("q1 0 d1 1\nq1 0 d1 0\n")
    with pytest.raises(InputError, match="line 2: the query has a second judgment of d1"):
        compare([files / "a", files / "b"], files / "qrels", MEASURES)


def test_no_judgments_and_runs_of_other_queries_are_refused(files):
    (files / "qrels").write_text("")
    with pytest.raises(
        InputError, match="qrels is empty; allowed: lines of query_id Q0 passage_id grade"
    ):
        compare([files / "a", files / "b"], files / "qrels", MEASURES)
    (files / "qrels").write_text("q1 0 d1 0\n")
    with pytest.raises(
        InputError, match="qrels have no relevant passage: their highest grade is 0; allowed: "
    ):
        compare([files / "a", files / "b"], files / "qrels", MEASURES)
    (files / "qrels").write_text("q1 0 d1 1\n")
    (files / "a").write_text("x1 Q0 d1 1 1 x\n")
    with pytest.raises(InputError, match="have no query in common"):
        compare([files / "b", files / "a"], files / "qrels", MEASURES)


def test_a_run_of_few_of_the_judged_queries_says_so(files, capsys):
    whole = compare([files / "a", files / "b"], files / "qrels", ["RR@10"])
    assert not capsys.readouterr().err
    lines = (files / "b").read_text().splitlines(keepends=True)
    (files / "b").write_text(
        "".join(line for line in lines if line.split()[0] in ("q3", "q4", "q41"))
    )
    part = compare([files / "a", files / "b"], files / "qrels", ["RR@10"])
    assert (
        capsys.readouterr().err
        == f"{files / 'b'} contains 2 of 40 judged queries; the others count 0\n"
    )
    assert part["mean"][0] == whole["mean"][0] and part["mean"][1] <= 2 / 40


def test_the_command_names_its_option_and_the_table_runs_differences_and_p(files):
    with pytest.raises(
        InputError, match="^--measures has nonsense; allowed: means that pytrec_eval, "
    ):
        commands.compare(
            str(files / "a"),
            str(files / "b"),
            qrels=str(files / "qrels"),
            measures="RR@10,nonsense",
        )
    with pytest.raises(
        InputError, match="^--measures has MRR@10; allowed: RR@10, the notation of ir_measures"
    ):
        commands.compare(
            str(files / "a"), str(files / "b"), qrels=str(files / "qrels"), measures="MRR@10"
        )
    frame = compare([files / "a", files / "b"], files / "qrels", ["RR@10"])
    text = table(frame)
    header, _, first, second = text.splitlines()
    expected = ["measure", "run", "mean x 100", "difference, Holm", "p", "p, Holm"]
    assert [cell.strip() for cell in header.strip("|").split("|")] == expected
    assert first.count("|") == second.count("|") and "[+" in second
    means = [float(line.split("|")[3]) for line in (first, second)]
    assert means == pytest.approx((100 * frame["mean"]).tolist(), abs=0.005), (
        "on the report's scale"
    )
    assert float(second.split("|")[4].split()[0]) == pytest.approx(means[1] - means[0], abs=0.011)
