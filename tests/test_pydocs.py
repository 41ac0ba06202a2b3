"""Documentation strings as a collection: harvest, cleaning, near-duplicates, and splits that share nothing."""

import os
import random
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from cdmae.datasets import pydocs
from cdmae.datasets.pydocs import cleaning, division, duplicates, harvest
from cdmae.errors import InputError
from cdmae.settings import parse

REPOSITORY = Path(__file__).parent.parent


def make_package(folder, monkeypatch, sources, name="tree"):
    """A package of the given files, importable by name but never to be imported."""
    for file, source in sources.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    return name


def names(package, **chosen):
    return [found.name for found in harvest.harvest(package, **chosen)]


# --- harvest ---------------------------------------------------------------------------------------------------------


def test_harvest_finds_docstrings_in_order_and_imports_nothing(tmp_path, monkeypatch):
    package = make_package(
        tmp_path,
        monkeypatch,
        {
            "__init__.py": '"""The tree."""\nraise RuntimeError("imported")\n',
            "leaf.py": (
                'def b():\n    """B."""\n    def inner():\n        """Local."""\n\n'
                'class A:\n    """A."""\n    def __init__(self):\n        """Special."""\n'
                '    async def run(self):\n        """Run."""\n'
                'if True:\n    def c():\n        """C."""\n'
                'try:\n    pass\nexcept ImportError:\n    def d():\n        """D."""\n'
                'def b():\n    """B again."""\n'
            ),
            "deep/bark.py": '"""Bark."""\n',
        },
    )
    assert names(package) == [
        "tree",
        "tree.deep.bark",
        "tree.leaf.b",
        "tree.leaf.A",
        "tree.leaf.A.run",
        "tree.leaf.c",
        "tree.leaf.d",
    ]
    assert names(package, within=("tree.deep",)) == ["tree.deep.bark"]
    assert package not in sys.modules


@pytest.mark.parametrize(
    "file",
    [
        "tests/a.py",
        "test/a.py",
        "_vendor/a.py",
        "externals/a.py",
        "generated/a.py",
        "test_a.py",
        "conftest.py",
        "a_pb2.py",
    ],
)
def test_harvest_skips_tests_and_vendored_and_generated_files(tmp_path, monkeypatch, file):
    package = make_package(
        tmp_path, monkeypatch, {"__init__.py": "", "kept.py": '"""Kept."""\n', file: '"""Skipped."""\n'}
    )
    assert names(package) == ["tree.kept"]


def test_harvest_skips_what_says_that_it_is_generated_and_what_does_not_parse(tmp_path, monkeypatch):
    sources = {
        "__init__.py": '# This file was automatically generated from x.\n"""Doc."""\n',
        "bad.py": '"""Doc."""\n{{ x }\n',
    }
    assert names(make_package(tmp_path, monkeypatch, sources)) == []


def test_harvest_reads_the_calls_that_document_compiled_objects(tmp_path, monkeypatch):
    source = """
add_newdoc("tree.core", "array", "Array.")
add_newdoc("tree.core", "array", ("flat", "Flat."))
add_newdoc("tree.core", "array", [("size", "Size."), ("__len__", "Special.")])
add_newdoc("erf", "Error " + "function.")
add_docstr(tree.abs, r"Abs {x}.".format(x=1))
add_docstr_all("copy", "Copy.")
det = _add_docstr(_linalg.det, "Det.")
other("tree", "x", "No documentation.")
add_newdoc(*everything)
"""
    package = make_package(
        tmp_path, monkeypatch, {"_docs.py": source.replace('"Array."', '""" Array."""'), "__init__.py": ""}
    )
    found = {each.name: each.docstring.strip() for each in harvest.harvest(package)}
    assert found == {
        "tree.core.array": "Array.",
        "tree.core.array.flat": "Flat.",
        "tree.core.array.size": "Size.",
        "tree.erf": "Error function.",
        "tree.abs": "Abs {x}.",
        "torch.Tensor.copy": "Copy.",
        "tree._docs.det": "Det.",
    }


def test_harvest_inspects_the_c_modules_of_the_standard_library():
    found = {each.name: each.docstring for each in harvest.harvest(harvest.STDLIB, within=("math", "builtins"))}
    assert "radians" in found["math.degrees"]
    assert found["builtins.str.upper"].startswith("Return a copy")
    assert not any(name.rpartition(".")[2].startswith("__") for name in found)


def test_harvest_of_a_package_that_is_not_installed():
    with pytest.raises(InputError, match="the package no_such_package is not installed in this environment"):
        names("no_such_package")


# --- cleaning --------------------------------------------------------------------------------------------------------

NUMPY = """
    lerp(x, y, *,
         clip=False) -> array

    Interpolate between two :class:`~tree.Points`.  The `lerp` of [1]_ is *linear*, e.g. for ``x``.

    .. versionadded:: 1.2
       Not prose.

    .. note:: Both points stay unchanged.

    Parameters
    ----------
    x, y : array_like, optional
        The first and the second point.
    clip : bool

    Returns
    -------
    z : ndarray
        The point between them.
    scalar

    Notes
    -----
    For details see `the manual <https://example.org/a>`_ or https://example.org/b.
    Written as follows::

        z = x + y

    === ===
    a   b
    === ===

    See Also
    --------
    dropped : Dropped.

    Examples
    --------
    >>> lerp(1, 2)
    dropped
"""
GOOGLE = """Fetch rows from a table. Retrieves all rows that match.

    Args:
        table_handle (Table, *optional*, defaults to `None`): An open table.
        keys: The keys of all
            rows to fetch.

    Returns:
        `dict`: A mapping of keys to rows.

    ```python
    fetch(dropped)
    ```

    <Tip>Use [`Table.read`] or [the guide](https://example.org).</Tip>

    Example:
        dropped

    Closing words.
"""
SPHINX = """Send a message to someone.

:param str sender: The person sending the message
:type sender: str
:param recipient: The recipient, named
    over two lines
:return: the message id
:rtype: int
"""
C = """recv(buffersize[, flags]) -> data

Receive data from the socket

  buffersize
    The number of bytes to receive.
"""


@pytest.mark.parametrize(
    ("docstring", "name", "summary", "body"),
    [
        (
            NUMPY,
            "tree.lerp",
            "Interpolate between two Points",
            "this function of is linear, e.g. for x. Both points stay unchanged. "
            "x, y: The first and the second point. The point between them. "
            "For details see the manual or. Written as follows.",
        ),
        (
            GOOGLE,
            "tree.fetch",
            "Fetch rows from a table",
            "Retrieves all rows that match. table_handle: An open table. keys: The keys of all rows to fetch. "
            "A mapping of keys to rows. Use Table.read or the guide. Closing words.",
        ),
        (
            SPHINX,
            "tree.send",
            "Send a message to someone",
            "sender: The person sending the message. recipient: The recipient, named over two lines. the message id.",
        ),
        (C, "_socket.recv", "Receive data from the socket", "buffersize: The number of bytes to receive."),
    ],
    ids=["numpy", "google", "sphinx", "c"],
)
def test_cleaning_keeps_the_prose(monkeypatch, docstring, name, summary, body):
    monkeypatch.setattr(cleaning, "MIN_BODY", 3)
    assert cleaning.clean(docstring, name, max_words=100) == (summary, body)


@pytest.mark.parametrize(
    "docstring",
    [
        "Only a summary that nothing follows.",
        "Two words. The body of this one is long enough to be a passage, certainly.",
        "Parameters\n----------\nx : int\n    The description of a parameter, with words enough to be a passage.",
        "x (`int`): The first parameter of this function. The description goes on for many more words than eight.",
        "Fill in the {name} of it. The rest of this text is long enough to be a passage, certainly.",
        r"Compute the \alpha of it. The rest of this text is long enough to be a passage, certainly.",
        "DEPRECATED: use another one. The rest of this text is long enough to be a passage, certainly.",
        "Compute the sum of both.\n\nx = [1, 2]; y = {3: 4}; z = x[0] + y[3] == 5; f(x)[0] = y | z; a <= b >= c",
    ],
)
def test_cleaning_refuses_what_has_no_summary_or_no_body(docstring):
    assert cleaning.clean(docstring, "tree.f", max_words=100) is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.read_csv", "Use read_csv or a.read_csv(x), not `b`.", "Use this function or this function, not `b`."),
        ("a.add", "To add, call `add` or add(x).", "To add, call this function or this function."),
        ("a.DataFrame", "A :class:`~a.DataFrame` of DataFrames.", "this class of DataFrames."),
        ("a.f1", "Call outer(f1) here.", "Call outer(this function) here."),
        ("a.solve", "The solver solves.", "The solver solves."),
    ],
)  # fmt: skip
def test_a_passage_does_not_name_its_object(name, text, expected):
    assert cleaning._without_name(text, name) == expected


def test_a_passage_does_not_repeat_its_summary():
    docstring = "Sort the list. It is stable and takes no memory at all. Sort the list. Then it returns nothing."
    summary, body = cleaning.clean(docstring, "a.b", max_words=100)
    assert summary == "Sort the list"
    assert body == "It is stable and takes no memory at all. Then it returns nothing."


@pytest.mark.parametrize(("max_words", "words"), [(30, 30), (29, 20), (20, 20), (14, 10)])
def test_a_passage_ends_with_a_sentence_where_it_can(max_words, words):
    text = " ".join(f"This is sentence {number} and it has exactly ten words." for number in range(3))
    assert len(cleaning._cut(text, max_words).split()) == words
    assert len(cleaning._cut(text.replace(".", ""), max_words).split()) == max_words


# --- near-duplicates and splits --------------------------------------------------------------------------------------


def sentences(seed, words=40):
    rng = random.Random(seed)
    return ["".join(rng.choices("abcde", k=5)) for _ in range(words)]


def changed(words, number, seed):
    """The words with the last `number` of them replaced."""
    return words[: len(words) - number] + sentences(f"new {seed}", number)


def test_near_duplicates_are_the_pairs_whose_trigrams_overlap_enough():
    texts = []
    for seed in range(30):
        words = sentences(seed)
        texts += [
            " ".join(words),
            " ".join(changed(words, seed % 12, seed)).upper(),
            " ".join(changed(words, 20, seed)),
        ]

    def trigrams(text):
        words = text.casefold().split()
        return set(zip(words, words[1:], words[2:], strict=False))

    sets = [trigrams(text) for text in texts]
    expected = [(i, j) for (i, a), (j, b) in combinations(enumerate(sets), 2) if len(a & b) >= 0.7 * len(a | b)]
    assert 10 < len(expected) < 30
    assert duplicates.near_duplicates(texts) == expected


def test_near_duplicates_of_nothing():
    assert duplicates.near_duplicates([]) == duplicates.near_duplicates(["two words", "two words"]) == []


def text(seed):
    return " ".join(sentences(seed))


def test_identical_bodies_are_one_passage_with_several_queries():
    divided = division.divide([("a.f", "Read a file", text(1)), ("a.g", "Load it all", text(1).upper())], held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f"]
    assert [(query.name, query.text, query.positives) for query in divided.queries["test"]] == [
        ("a.f", "Read a file", ("a.f",)),
        ("a.g", "Load it all", ("a.f",)),
    ]


def test_a_summary_of_several_passages_is_one_query_and_of_many_none():
    entries = [(f"a.f{each}", "Read a file.", text(each)) for each in range(3)]
    divided = division.divide(entries, held_out=True)
    assert [query.positives for query in divided.queries["test"]] == [("a.f0", "a.f1", "a.f2")]
    divided = division.divide([*entries, ("a.f3", "read a file", text(3))], held_out=True)
    assert divided.queries == {"test": []}
    assert len(divided.passages) == 4
    assert divided.counts["templated summaries dropped"] == 1


def test_near_duplicates_with_near_duplicate_summaries_are_dropped_and_others_kept_together():
    near = " ".join(changed(sentences(1), 2, 1))
    twice = [("a.f", "Read the whole file into memory", text(1)), ("a.g", "Read the whole file into main memory", near)]
    divided = division.divide(twice, held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f"]
    different = [twice[0], ("a.g", "Fetch one record", near)]
    divided = division.divide(different, held_out=True)
    assert [passage.name for passage in divided.passages] == ["a.f", "a.g"]
    assert {query.component for query in divided.queries["test"]} == {"a.f"}


def test_no_component_lies_in_two_splits():
    entries = []
    for each in range(400):  # groups of three: two share a summary, two have bodies that are nearly the same
        words = sentences(each)
        entries += [
            (f"a.f{each}", f"Summary number {each} of this test", " ".join(words)),
            (f"b.f{each}", f"summary number {each} of this test.", text(f"other {each}")),
            (f"c.f{each}", f"Something else about {each}", " ".join(changed(words, 2, each))),
        ]
    divided = division.divide(entries, held_out=False)
    splits = {}
    for split, queries in divided.queries.items():
        for query in queries:
            for name in (query.name, *query.positives):
                splits.setdefault(name.partition(".f")[2], set()).add(split)
    assert len(splits) == divided.counts["components"] == 400
    assert all(len(found) == 1 for found in splits.values())
    shares = {split: len(queries) / 800 for split, queries in divided.queries.items()}
    assert shares["train"] == pytest.approx(0.85, abs=0.06)
    assert shares["dev"] == pytest.approx(0.075, abs=0.04)


def test_a_split_depends_on_the_name_alone():
    alone = division.divide([("a.f", "Read a file", text(1))], held_out=False)
    among = division.divide(
        [(f"b.{i}", f"Query number {i}", text(i + 2)) for i in range(50)] + [("a.f", "Read a file", text(1))], False
    )
    where = [
        next(s for s, found in each.queries.items() if "a.f" in {q.name for q in found}) for each in (alone, among)
    ]
    assert where[0] == where[1] == division.split_of("a.f")


# --- the whole source ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smoke():
    return pydocs.load(pydocs.Settings(size="smoke"), seed=1)


def test_smoke_is_a_sensible_collection(smoke):
    assert 800 <= len(smoke.passages) <= 1500
    assert smoke.about["versions"] == {"python": pydocs.version(pydocs.Settings(size="smoke"))["python"]}
    assert set(smoke.passages["title"].to_pylist()) == {""}
    lengths = [len(each.split()) for each in smoke.passages["text"].to_pylist()]
    assert min(lengths) >= cleaning.MIN_BODY
    assert max(lengths) <= 120
    assert smoke.about["passages"] == len(smoke.passages)
    ids = smoke.passages["passage_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    for split in ("train", "dev", "test"):
        assert set(smoke.qrels[split]["query_id"]) == set(smoke.queries[split]["query_id"])
        assert not set(smoke.queries[split]["query_id"]) & set(ids)
        assert len(smoke.queries[split]) > 30


def test_smoke_queries_of_different_splits_share_no_passage_and_no_twin(smoke):
    split_of = {}
    for split, judged in smoke.qrels.items():
        for passage in judged["passage_id"]:
            assert split_of.setdefault(passage, split) == split
    ids, texts = smoke.passages["passage_id"].to_pylist(), smoke.passages["text"].to_pylist()
    pairs = [(ids[i], ids[j]) for i, j in duplicates.near_duplicates(texts)]
    assert all(split_of.get(one, split_of.get(other)) == split_of.get(other, split_of.get(one)) for one, other in pairs)
    seen = [set(map(division.key_of, frame["text"])) for frame in smoke.queries.values()]
    assert all(not one & other for one, other in combinations(seen, 2))


def test_passages_hold_no_markup_and_not_their_query(smoke):
    texts = dict(zip(*(smoke.passages[name].to_pylist() for name in ("passage_id", "text")), strict=True))
    for split, frame in smoke.queries.items():
        queries = dict(zip(frame["query_id"], frame["text"], strict=True))
        for query, passage in smoke.qrels[split][["query_id", "passage_id"]].itertuples(index=False):
            assert queries[query].casefold() not in texts[passage].casefold()
    joined = "\n".join(texts.values())
    for markup in ("`", ">>>", ":class:", ":param", "\n.. ", " .. ", "http://", "https://", "----"):
        assert markup not in joined


def test_the_same_bytes_in_another_process(tmp_path):
    script = "import sys; from cdmae import files; from cdmae.datasets import pydocs; "
    script += (
        "pydocs.SMOKE = ('asyncio', 'builtins'); collection = pydocs.load(pydocs.Settings(size='smoke'), seed=0); "
    )
    script += "files.write_collection(sys.argv[1], collection)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
        subprocess.run([sys.executable, "-c", script, str(tmp_path / seed)], check=True, env=environment)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def synthetic(tmp_path, monkeypatch, number=40):
    modules = {
        f"m{i}.py": f'def f():\n    """Return item number {i} of all. {text(i).title()}."""\n' for i in range(number)
    }
    make_package(tmp_path, monkeypatch, {"__init__.py": "", **modules}, name="networkx_made_up")
    monkeypatch.setattr(pydocs, "IN_DOMAIN", ("networkx_made_up",))
    monkeypatch.setitem(pydocs.HELD_OUT, "networkx", "networkx_made_up")


def test_train_queries_are_a_nested_choice(tmp_path, monkeypatch):
    synthetic(tmp_path, monkeypatch)
    all_, ten, five = (pydocs.load(pydocs.Settings(train_queries=number), seed=1) for number in (0, 10, 5))
    chosen = [set(each.queries["train"]["query_id"]) for each in (all_, ten, five)]
    assert [len(each) for each in chosen[1:]] == [10, 5]
    assert chosen[0] > chosen[1] > chosen[2]
    assert set(five.qrels["train"]["query_id"]) == chosen[2]
    assert five.passages.equals(all_.passages)
    assert five.queries["test"].equals(all_.queries["test"])
    assert five.about["queries"]["train"] == {"read": len(chosen[0]), "judged": 5, "judgments": 5}
    with pytest.raises(InputError, match=r"train_queries is 1000; allowed: 0 \(all\) to"):
        pydocs.load(pydocs.Settings(train_queries=1000), seed=1)


def test_a_held_out_package_is_all_test(tmp_path, monkeypatch):
    synthetic(tmp_path, monkeypatch)
    settings = pydocs.Settings(part="networkx")
    assert pydocs.splits(settings) == {"test": True}
    collection = pydocs.load(settings, seed=1)
    assert list(collection.queries) == ["test"]
    assert len(collection.queries["test"]) == len(collection.passages) == 40
    assert 0 < len(pydocs.load(pydocs.Settings(part="networkx", size="smoke"), seed=1).passages) < 20


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": "huge"}, "size is huge"),
        ({"part": "numpy"}, "part is numpy"),
        ({"max_words": 5}, "max_words is 5; allowed: a whole number from 20 to 10000"),
        ({"part": "networkx", "train_queries": 5}, "train_queries is 5, but the held-out part networkx has none"),
    ],
)
def test_settings_are_checked(values, message):
    with pytest.raises(InputError, match=message):
        parse(pydocs.Settings, values, "collections.docs")


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(pydocs, "IN_DOMAIN", ("no_such_package",))
    with pytest.raises(InputError, match="collections.docs: the package no_such_package is not installed"):
        pydocs.check(pydocs.Settings(), "docs")


def test_starting_the_workflow_imports_nothing_heavy():
    script = (
        "import sys; from cdmae.datasets import beir, msmarco, pydocs; pydocs.version(pydocs.Settings(size='smoke')); "
    )
    script += "print(sorted({'numpy', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    found = subprocess.run([sys.executable, "-c", script], check=True, env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
