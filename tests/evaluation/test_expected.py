"""The README's numbers are those of config/expected.yaml, with which a run is compared."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError
from cdmae.evaluation import expected
from cdmae.evaluation.expected import Row, Table

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {"dev": ("own", "dev"), "test": ("own", "test")}


def test_the_readme_shows_the_expected_numbers():
    """Every row of the section on results is expected, and every expected row is there."""
    section = (ROOT / "README.md").read_text().partition("\n## Results\n")[2].partition("\n## ")[0]
    shown = {}
    for line in section.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        numbers = [re.match(r"[+-]?\d+\.\d", cell) for cell in cells[1:]]
        if line.startswith("| ") and all(numbers):
            shown[cells[0]] = tuple(float(number[0]) for number in numbers)
    tables = expected.read(ROOT / "config/expected.yaml")
    assert shown == {row.label: row.values for table in tables for row in table.rows}


def runs(**means):
    """Values of systems over two queries, one array per seed."""
    return lambda system, collection, split: [
        np.array([mean - 0.1, mean + 0.1]) for mean in means[system]
    ]


def test_a_run_is_compared_with_the_mean_and_the_noise_of_its_seeds():
    rows = [Row("one", "one"), Row("one minus two", "one", minus="two")]
    table = Table("T", "RR@10", COLUMNS, rows)
    measured = partial(expected.measured, learns=lambda name: name != "bm25")
    found = measured(table, runs(one=[0.2, 0.3], two=[0.1]))
    assert found.rows[0].values == (25.0, 25.0) and found.rows[1].values == (15.0, 15.0)
    # two seeds that are 10 points apart: a standard deviation of 7.07
    assert found.rows[0].noise == (13.9, 13.9)
    same = measured(table, runs(one=[0.2504, 0.2504], two=[0.0804]))
    words = [verdict.word for verdict in expected.compare(found, same)]
    assert words == ["OK", "OK", "OKish", "OKish"]
    other = measured(table, runs(one=[0.5], two=[0.35]))
    verdicts = expected.compare(found, other)
    assert [verdict.word for verdict in verdicts] == ["FAIL", "FAIL", "OK", "OK"]
    assert str(verdicts[0]).startswith("[FAIL]")
    assert other.rows[0].noise == (0.1, 0.1)
    both = [Row("one", "one"), Row("once", "once"), Row("BM25", "bm25")]
    table = Table("T", "RR@10", COLUMNS, both)
    found = measured(table, runs(one=[0.2, 0.3], once=[0.4], bm25=[0.4]))
    assert [row.noise[0] for row in found.rows] == [13.9, 13.9, 0.1]


def test_a_seed_changes_a_fusion_with_a_trained_part_and_not_bm25():
    config = load(gather(ROOT / "config/config.yaml", []))
    assert systems.learns(config, "fused") and systems.learns(config, "cdmae-stage1")
    assert not systems.learns(config, "bm25")


def test_a_written_file_is_read_and_a_damaged_one_refused(tmp_path):
    path = tmp_path / "expected.yaml"
    rows = [Row("one: a", "one", "two", (1.0, -2.5), (0.3, 0.4))]
    tables = [Table("T", "RR@10", COLUMNS, rows, ["config/minilm.yaml"], [42, 43])]
    expected.write(path, tables)
    assert expected.read(path) == tables
    assert expected.made_by(tables, ["config/minilm.yaml"], (42, 43)) == [0]
    assert expected.made_by(tables, [], (42, 43)) == []
    assert "| one: a | +1.0 | -2.5 |" in expected.markdown(tables[0])
    path.write_text(path.read_text().replace(", -2.5", ""))
    with pytest.raises(InputError, match="one number per column"):
        expected.read(path)
