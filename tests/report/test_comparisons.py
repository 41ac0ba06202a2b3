"""`report.compare` of a config: what it accepts, and where its mistakes are reported."""

from pathlib import Path

import pytest

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError

DEFAULT = Path(__file__).resolve().parents[2] / "config" / "config.yaml"


@pytest.mark.parametrize(
    ("compare", "sentence"),
    [
        ("cdmae-stge1: [bm25]", "report.compare.cdmae-stge1 has cdmae-stge1"),
        (
            "fused: [bm52]",
            "report.compare.fused has bm52, which does not exist; did you mean bm25?",
        ),
        ('"*": [bm52]', "report.compare.* has bm52, which does not exist; did you mean bm25?"),
    ],
)
def test_a_wrong_pair_is_refused_with_file_and_line(tmp_path, compare, sentence):
    overlay = tmp_path / "own.yaml"
    overlay.write_text(f"report:\n  compare:\n    {compare}\n")
    with pytest.raises(InputError) as error:
        load(gather(DEFAULT, [overlay]))
    assert str(error.value).startswith(f"{overlay}, line 3: {sentence}")


def test_a_removed_system_leaves_its_pairs(tmp_path):
    overlay = tmp_path / "own.yaml"
    overlay.write_text("systems: {cdmae-reranker: null, cdmae-stage3: null, fused: null}\n")
    compare = load(gather(DEFAULT, [overlay])).report.compare
    assert compare
    assert not {"cdmae-reranker", "cdmae-stage3", "fused"} & {*compare, *sum(compare.values(), ())}
