"""Benchmarks compare forms that learn and compute the same, and record where they ran."""

import argparse

import numpy as np
import pytest

from benchmarks import counting, encoding, finetuning, forms, masking, pretraining, search, zipf

STEP = {"size": "toy", "vocabulary": 300, "length": 32, "batch": 6, "chunk": 4}
GROUPS = {"size": "toy", "queries": 4, "group": 3, "chunk": 5}
SEARCH = {"passages": 60, "queries": 3, "dimensions": 16, "depth": 10}
# a benchmark's function, its forms, and its arguments
BENCHMARKS = [
    *((pretraining.start, pretraining.FORMS, {**STEP, "objective": name})
      for name in pretraining.PUBLISHED),
    *((finetuning.start, names, {**GROUPS, "head": head})
      for head, names in finetuning.FORMS.items()),
    (encoding.start, encoding.FORMS, {"size": "toy", "passages": 40}),
    (search.start, search.FORMS, SEARCH),
    (search.start_multi, search.MULTI, SEARCH),
    (counting.start, ("ours", "numpy"), {"memory": 100}),
    *((masking.start, names, {"group": group, "calls": 1})
      for group, names in masking.GROUPS.items()),
]  # fmt: skip
TOLERANCES = {masking.start: masking.TOLERANCE, counting.start: 0.0}


@pytest.mark.parametrize(("start", "titles", "given"), BENCHMARKS)
def test_all_forms_of_a_benchmark_have_the_same_result(tmp_path, monkeypatch, start, titles, given):
    monkeypatch.setitem(pretraining.SIZES, "toy", (2, 64, 1))
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    if start is counting.start:
        zipf.write_tokens(tmp_path / "tokens", 50)
    settings = argparse.Namespace(threads=1, folder=tmp_path, **given)
    results = {form: np.asarray(start(form, settings)(), np.float64) for form in titles}
    ours = results["ours"]
    for form, result in results.items():
        tolerance = TOLERANCES.get(start, forms.TOLERANCE)
        allowed = forms.TOLERANCE_BF16 if form.endswith(forms.BF16) else tolerance
        assert np.linalg.norm(result - ours) <= allowed * np.linalg.norm(ours), form
