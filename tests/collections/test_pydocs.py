"""Documentation strings as a collection: harvest, prose, division, and the same bytes everywhere."""

import hashlib
import random
from itertools import combinations

import pytest
from small_collections import relevant, texts_of, write_files

from cdmae.collections.sources import pydocs
from cdmae.collections.sources.pydocs import division, harvest
from cdmae.collections.sources.pydocs.prose import MIN_BODY
from cdmae.errors import InputError

VERSIONS = {"pandas": "3.1.1", "scipy": "1.17.1"}
SMOKE = "8b9b9f18bd82af6f68ff3fc383f56b992adf28489111083837ab744dc1c3839c"


def text(seed):
    """Made-up words."""
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcde", k=5)) for _ in range(40))


@pytest.fixture(scope="module")
def smoke():
    return pydocs.Settings(size="smoke").load()


def test_smoke_is_a_sensible_collection(smoke):
    """Splits share no passage, near-duplicate or query; no passage holds its query."""
    texts = texts_of(smoke)
    assert 600 <= len(texts) == len(smoke.passages) <= 1500
    assert all(MIN_BODY <= len(text.split()) <= 120 for text in texts.values())
    split_of = {}
    seen = []
    for split in smoke.qrels:
        asked = relevant(smoke, split)
        assert len(asked) > 30
        seen.append(set(map(division.key_of, asked)))
        for query, passages in asked.items():
            for passage in passages:
                assert split_of.setdefault(passage, split) == split
                assert query.casefold() not in texts[passage].casefold()
    ids = list(texts)
    for i, j in division.near_duplicates(list(texts.values())):
        both = split_of.get(ids[i]), split_of.get(ids[j])
        assert None in both or both[0] == both[1]
    assert all(not one & other for one, other in combinations(seen, 2))


def test_the_bytes_of_these_versions(smoke):
    """The default's numbers hold for these bytes: other packages, or other code, give others."""
    frames = [frame.to_csv() for frame in smoke.queries.values()]
    content = repr([*smoke.rows(), *frames]).encode()
    assert smoke.about["versions"] == VERSIONS
    assert hashlib.sha256(content).hexdigest() == SMOKE


def test_training_queries_are_a_nested_choice_and_further_ones_lose_their_judgments(
    tmp_path, monkeypatch
):
    """Of a package of 40 functions, in domain and held out."""
    modules = {
        f"m{i}.py": f'def f():\n    """Return item number {i} of all. {text(i).title()}."""\n'
        for i in range(40)
    }
    write_files(tmp_path / "networkx_made_up", {"__init__.py": "", **modules})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(pydocs, "IN_DOMAIN", ("networkx_made_up",))
    monkeypatch.setitem(pydocs.HELD_OUT, "networkx", "networkx_made_up")

    every, ten, five = (pydocs.Settings(train_queries=number).load() for number in (0, 10, 5))
    chosen = [set(each.queries["train"]["query_id"]) for each in (every, ten, five)]
    assert list(map(len, chosen[1:])) == [10, 5] and chosen[0] > chosen[1] > chosen[2]
    assert five.passages.equals(every.passages)
    assert five.queries["test"].equals(every.queries["test"])
    more = pydocs.Settings(train_queries=5, unlabelled=5)
    assert more.judged()["unlabelled"] is False
    further = more.load()
    assert chosen[2] | set(further.queries["unlabelled"]["query_id"]) == chosen[1]
    assert "unlabelled" not in further.qrels
    with pytest.raises(InputError, match="train_queries is 1000, and unlabelled is 0; expected at"):
        pydocs.Settings(train_queries=1000).load()
    apart = pydocs.Settings(part="networkx").load()
    assert len(apart.queries["test"]) == len(apart.passages) == 40 and len(apart.queries) == 1


def test_the_harvest_reads_the_calls_that_document_compiled_objects(tmp_path):
    source = '''
add_newdoc("tree.core", "array", """Array.""")
add_newdoc("tree.core", "array", ("flat", "Flat."))
add_newdoc("tree.core", "array", [("size", "Size."), ("__len__", "Special.")])
add_newdoc("erf", "Error " + "function.")
add_newdoc_for_scalar_type("str_", '(value="", /, *args)', "Text.")
add_docstr(tree.abs, r"Abs {x}.".format(x=1))
add_docstr_all("copy", "Copy.")
det = _add_docstr(_linalg.det, "Det.")
other("tree", "x", "No documentation.")
add_newdoc(*everything)
'''
    (tmp_path / "_docs.py").write_text(source)
    assert dict(harvest.documented_in("tree._docs", tmp_path / "_docs.py")) == {
        "tree.core.array": "Array.", "tree.core.array.flat": "Flat.", "tree.core.array.size": "Size.",
        "tree.erf": "Error function.", "tree.str_": "Text.", "tree.abs": "Abs {x}.",
        "torch.Tensor.copy": "Copy.", "tree._docs.det": "Det.",
    }  # fmt: skip


def test_bodies_in_other_case_are_one_passage_and_a_summary_of_four_is_no_query():
    """The smoke collection has all other cases."""
    entries = [("a.f", "Read a file", text(1)), ("a.g", "Load it all", text(1).upper())]
    passages, judged = division.divide(entries, held_out=True)
    assert passages["name"].tolist() == ["a.f"]
    assert judged["text"].tolist() == ["Read a file", "Load it all"]
    entries = [(f"a.f{row}", "Read a file", text(row)) for row in range(4)]
    assert len(division.divide(entries[:3], held_out=True)[1]) == 3
    passages, judged = division.divide(entries, held_out=True)
    assert len(passages) == 4 and judged.empty, "a template"
