"""Benchmarks compare forms that learn and compute the same, and record where they ran."""

import argparse
import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import (
    counting,
    encoding,
    finetuning,
    forms,
    masking,
    pretraining,
    search,
    zipf,
)


@pytest.fixture(autouse=True)
def toy_sizes(monkeypatch):
    monkeypatch.setitem(pretraining.SIZES, "toy", (2, 64, 1))
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))


def results(start, titles, **given):
    """Return the result of each form of a benchmark, by its name."""
    given = argparse.Namespace(threads=1, **given)
    return {form: np.asarray(start(form, given)(), np.float64) for form in titles}


@pytest.mark.parametrize("objective", pretraining.PUBLISHED)
def test_both_forms_of_a_pretraining_step_learn_the_same(objective):
    given = {"size": "toy", "vocabulary": 300, "length": 32, "batch": 6, "chunk": 4}
    found = results(pretraining.start, pretraining.FORMS, **given, objective=objective)
    assert found["ours"] == pytest.approx(found["sorted"], rel=1e-5)
    assert found["ours_bf16"] == pytest.approx(found["sorted_bf16"], rel=1e-2)


@pytest.mark.parametrize("head", finetuning.FORMS)
def test_all_forms_of_a_finetuning_step_have_the_same_loss(head):
    given = {"size": "toy", "queries": 4, "group": 3, "chunk": 5}
    found = results(finetuning.start, finetuning.FORMS[head], **given, head=head)
    for form, loss in found.items():
        near = 0.02 if form.endswith(forms.BF16) else 1e-5
        assert loss == pytest.approx(found["ours"], rel=near)


def test_all_forms_of_encoding_and_search_compute_the_same():
    found = results(encoding.start, encoding.FORMS, size="toy", passages=40)
    for form, vectors in found.items():
        atol = 0.05 if form.endswith(forms.BF16) else 1e-5
        np.testing.assert_allclose(vectors, found["ours"], rtol=0, atol=atol)
    sizes = {"passages": 60, "queries": 3, "dimensions": 16, "depth": 10}
    for start, titles in ((search.start, search.FORMS), (search.start_multi, search.MULTI)):
        found = results(start, titles, **sizes)
        for scores in found.values():
            np.testing.assert_allclose(scores, found["ours"], rtol=1e-5)


def test_all_forms_count_the_same(tmp_path):
    zipf.write_tokens(tmp_path / "tokens", 50)
    found = results(counting.start, ("ours", "numpy"), folder=tmp_path, memory=100)
    np.testing.assert_array_equal(found["ours"], found["numpy"])


@pytest.mark.parametrize("group", ["tokens", "words"])
def test_all_forms_mask_the_same_share(group):
    found = results(masking.start, masking.GROUPS[group], group=group, calls=1)
    for share in found.values():
        assert share == pytest.approx(found["ours"], rel=masking.TOLERANCE)


def wrong(form, given):
    """A benchmark whose forms have other results."""
    return lambda: np.array([1.0 if form == "ours" else given.other])


def test_forms_take_turns_must_agree_and_leave_rows_for_the_table(tmp_path):
    given = argparse.Namespace(threads=1, rounds=2, other=1.0, output=tmp_path / "rows.jsonl")
    titles = {"peer": "a peer", "ours": "ours"}
    forms.compare(wrong, titles, given, "nothing", work="none")
    rows = [json.loads(line) for line in given.output.read_text().splitlines()]
    assert {"machine", "date", "commit", "command", "ratio", "threads"} <= rows[0].keys()
    assert "| nothing | a peer |" in command.markdown(command.newest(given.output))
    given.other = 1.001
    with pytest.raises(SystemExit, match="ours differs by"):
        forms.compare(wrong, titles, given, "nothing")
    assert len(given.output.read_text().splitlines()) == len(rows)
