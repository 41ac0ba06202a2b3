"""A config with a mistake is refused before any job, by file, line, key and value."""

import pytest

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError, dotted

# the changed key and its value; the key of the error, if it is another one; a value of the message
SETTINGS = [
    ("seed", -1, "", "-1"),
    ("seed", [], "", "[]"),
    ("seed", [7, 8, 8], "", "[7, 8, 8]"),
    ("systems", ["bm25"], "", "mapping"),
    ("systems.x", None, "", "null"),
    ("stages.stage3.denoise", True, "", "true"),
    ("stages.stage3.pooling", "clss", "", "cls"),
    ("evaluation.collections.docs", "dev", "", "list"),
    ("seeds", [1, 2], "", "seed"),
    ("pretraining.decoder_mask_ratio", 0.5, "", "decoder_ratio"),
    ("pretraining.after", "mae", "", "config/README.md"),
    ("report", {"titel": "x"}, "report.titel", "title"),
    ("report", {"licence": "Apache 2.0"}, "report.licence", "apache-2.0"),
    ("report", {"languages": ["en", "xx-yy"]}, "report.languages[1]", "xx-yy"),
    ("encoders.mae.early_layers", 1, "", "config/README.md"),
    ("systems.x", {"kind": "fusion"}, "systems.x.of", ""),
    ("systems.x", {}, "systems.x.kind", ""),
    ("systems.x", {"kind": "bm25", "passages": {"docs": "docs"}}, "systems.x.passages.docs",
     "expanded"),
    ("systems.x", {"kind": "bm25", "passages": {"dogs": "docs"}}, "systems.x.passages.dogs", "docs"),
    ("encoders.cdmae.importance", "", "", "ami"),
    ("starts.small.collection", "", "starts.small.checkpoint", "collection"),
    ("starts.small.heads", 3, "", "8"),
    ("encoders.mae.seed", True, "", "true"),
    ("encoders.mae.random_share", 0.3, "encoders.mae.mask_share", "0.3"),
    ("stages.rerank.forward_factor", 3, "", "4"),
    ("stages.x", {"kind": "retriever", "head": "unified", "temperature": 0},
     "stages.x.temperature", "0"),
    ("stages.x", {"kind": "retriever", "head": "sparse", "pieces": "own", "query_weights": "idf"},
     "stages.x.query_weights", "own"),
    ("stages.x", {"kind": "retriever", "denoise": 0.5, "in_batch": False}, "stages.x.denoise",
     "in_batch"),
    *(("results", value, "", value) for value in ("./-rf", "a<b>", __file__)),
]  # fmt: skip
NAMES = [
    ("collections.docs.source", "toi", "", "toy"),
    ("pretraining.objective", "mea", "", "mae"),
    ("systems.bm25.kind", "bm52", "", "bm25"),
    ("systems.fused.of", ["one", "fuse"], "systems.fused.of[1]", "bm25, one"),
    ("evaluation.collections.dogs", ["test"], "", "docs"),
    ("evaluation.baseline", "bm", "", "bm25"),
    ("evaluation.lengths", {"docks": 64}, "evaluation.lengths.docks", "docs"),
    ("report", {"methods": {"PAIR": "on"}}, "report.methods.PAIR", "one"),
    ("report", {"compare": {"one": ["two"]}}, "report.compare.one", "two"),
    ("encoders.a", {"after": "mea"}, "encoders.a.after", "mae"),
    ("encoders.a b", {}, "", "letters"),
    ("starts.big", {"checkpoint": "./nowhere"}, "starts.big.checkpoint", "nowhere"),
    ("collection", "dosc", "", "docs"),
    ("systems.one.negatives", "fused", "systems", "fused -> three -> cross -> one -> fused"),
    ("encoders", {"a": {"after": "b"}, "b": {"after": "a"}}, "encoders", "a -> b -> a"),
    ("collections.a", {"source": "spans", "of": "a"}, "collections", "a -> a"),
]
KINDS = [
    ("systems.one.stage", "rerank", "", "stage1, stage3"),
    ("systems.three.negatives", "cross", "", "cross"),
    ("systems.three.in_batch_teacher", "cross", "", "one, wide"),
    ("systems.three.after", "wide", "", "starts.big"),
    ("systems.three.after", "late", "", "multi"),
    ("systems.x", {"kind": "head", "of": "one", "uses": "dense"}, "systems.x.of", "unified"),
    ("systems.one.engine", "lucene", "", "exact"),
    ("systems.one.engine", "bm25", "", "recall"),
    ("systems.one.candidates", "bm25", "", "multi"),
    ("systems.three.joint_teacher", "cross", "", "in addition to teacher cross"),
    ("stages.stage1.margin_bins", 10, "systems.one.stage", "margin_bins"),
    ("systems.x", {"kind": "fusion", "of": ["bm25", "one"], "weights": [1, 2],
                   "tuned_on": ["docs", "dev"]}, "systems.x.tuned_on", "weights"),
    ("systems.three.teacher", "one", "stages.stage3.random_negatives", "10"),
    ("systems.x", {"kind": "run", "runs": {"docs": {"dev": "no.run"}}}, "systems.x.runs.docs.dev",
     "no.run"),
    ("systems.x", {"kind": "run", "runs": {}}, "systems.x.runs", "dev of docs"),
    ("encoders.a", {"after": "mae", "start": "big"}, "encoders.a.start", "small"),
    ("encoders.a", {"decoder_masking": "pmi_span", "importance": "pieces"},
     "encoders.a.importance", "pmi_span"),
]  # fmt: skip
SPLITS_AND_LENGTHS = [
    ("stages.stage1.split", "trane", "", "train"),
    ("stages.stage1.split", "raw", "", "train, dev, test"),
    ("stages.stage3", {"kind": "retriever", "labels": 0.9, "random_negatives": 0},
     "stages.stage3.split", "train"),
    ("stages.stage3", {"kind": "retriever", "labels": 0.9, "split": "raw"},
     "stages.stage3.random_negatives", "labels"),
    ("systems.fused.tuned_on", ["docs", "dve"], "", '["docs", "dev"]'),
    ("evaluation.collections.docs", ["tests"], "", "test"),
    ("evaluation.collections.docs", ["train"], "", "systems.late"),
    ("evaluation.collections.docs", ["a/b"], "", "a/b"),
    ("evaluation.collections", {}, "", "split"),
    ("evaluation.relevant", {"docs": {"train": 2}}, "evaluation.relevant.docs", "train"),
    ("starts.small.positions", 100, "encoders.mae.max_length", "150"),
    ("starts.small.positions", 150, "stages.rerank.max_length", "192"),
    ("evaluation.depth", 100, "", "R@1000"),
    ("evaluation.measures", ["MRR@10"], "", "RR@10"),
    ("evaluation.measures", ["nDCG(rel=2)@10"], "", "nDCG(rel=2)@10"),
    ("evaluation.measures", ["P(rel=2, cutoff=5)"], "", "P(rel=2)@5"),
    ("evaluation.measures", ["R("], "", "R("),
    ("evaluation.measures", [], "", "[]"),
]  # fmt: skip
ROWS = [*SETTINGS, *NAMES, *KINDS, *SPLITS_AND_LENGTHS]


def put(values, path, value):
    *parents, last = path.split(".")
    for key in parents:
        values = values.setdefault(key, {})
    values[last] = value


@pytest.mark.parametrize(
    ("path", "value", "key", "named"), ROWS, ids=[f"{row[0]}={row[1]}"[:60] for row in ROWS]
)
def test_a_mistake_is_refused_by_its_key_and_value(values, path, value, key, named):
    values["starts"]["big"] = {"collection": "docs"}
    values["importance"]["pieces"] = {"unit": "wordpiece"}
    values["encoders"]["wide"] = {"start": "big", "objective": "none"}
    values["stages"]["multi"] = {"kind": "retriever", "head": "multi"}
    values["systems"]["wide"] = values["systems"]["one"] | {"encoder": "wide"}
    values["systems"]["late"] = values["systems"]["one"] | {"stage": "multi", "candidates": "bm25"}
    if path == "encoders":
        value = values["encoders"] | value
    put(values, path, value)
    with pytest.raises(InputError) as caught:
        load(values)
    keys = [dotted(mistake.keys) for mistake in caught.value.several]
    assert (key or path) in keys
    assert named in str(caught.value.several[keys.index(key or path)])


def test_a_mistake_has_a_kind(values):
    values["seed"] = -1
    values["starts"]["small"]["hight"] = 3
    del values["systems"]["one"]["encoder"]
    with pytest.raises(InputError) as caught:
        load(values)
    kinds = {mistake.kind for mistake in caught.value.several}
    assert kinds == {"greater_than_equal", "unexpected_keyword_argument", "missing"}


# --- file and line --------------------------------------------------------------------------------

DEFAULT = """\
collections:
  docs: {source: toy}
starts:
  small: {collection: docs, vocabulary: 300, layers: 2, hidden: 8, heads: 2}
importance:
  ami: {window: 3}
pretraining:
  start: small
  collection: docs
  importance: ami
  steps: 10
encoders:
  cdmae: {}
training:
  collection: docs
  group: 4
stages:
  stage1: {kind: retriever, depth: 50}
"""


@pytest.fixture
def mistakes(tmp_path, monkeypatch):
    """A function that maps the keys of mistakes in overlays, 0.yaml and so on, to their places."""
    monkeypatch.chdir(tmp_path)

    def find(*overlays, overrides=None, default=DEFAULT):
        paths = [tmp_path / f"{number}.yaml" for number in range(len(overlays))]
        for path, text in zip(paths, overlays, strict=True):
            path.write_text(text)
        (tmp_path / "default.yaml").write_text(default)
        with pytest.raises(InputError) as caught:
            load(gather(tmp_path / "default.yaml", paths, overrides))
        return {dotted(mistake.keys): mistake.place for mistake in caught.value.several}

    return find


@pytest.mark.parametrize(
    ("overlay", "key", "place"),
    [
        ("seed: -1\n", "seed", "0.yaml, line 1"),
        ("training:\n  epochs: 2\n  querys: 3\n", "training.querys", "0.yaml, line 3"),
        ("stages:\n  stage1:\n    depht: 3\n", "stages.stage1.depht", "0.yaml, line 3"),
        ("seed: 1\nstandalone:\n", "standalone", "0.yaml, line 2"),
        ("systems:\n  a: {kind: fusion}\n", "systems.a.of", "0.yaml, line 2"),
        ("base: &base\n  a: 3\nstarts:\n  small:\n    <<: *base\n", "starts.small.a",
         "0.yaml, line 4"),
        ("seed: 1\nsystems:\n  a.b: {kind: bm25}\n", "systems.a.b", "0.yaml, line 3"),
        ("starts:\n  small: {positions: 100}\n", "encoders.cdmae.max_length",
         "default.yaml, line 13"),
        ("collections:\n  mine:\n    source: beir\n    path: nowhere\n", "collections.mine",
         "0.yaml, line 4"),
        ("systems:\n  no: {kind: bm25}\n", "", "0.yaml, line 2"),
        ("seed: 1\nseed: 2\n", "", "0.yaml, line 2"),
        ("a: [1\n", "", "0.yaml, line 2"),
        ("seed: 2024-02-30\n", "", ""),
        ("- a\n", "", "0.yaml"),
        ("# nothing\n", "", "0.yaml"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_and_line(mistakes, overlay, key, place):
    assert mistakes(overlay)[key] == place


def test_of_several_files_the_last_that_has_the_key_is_named(mistakes):
    wrong = "training:\n  epochs: -1\n"
    again = "seed: 3\n\ntraining:\n  epochs: -2\n"
    assert mistakes(wrong, again) == {"training.epochs": "1.yaml, line 4"}
    assert mistakes(wrong, "seed: 3\n") == {"training.epochs": "0.yaml, line 2"}
    typed = {"encoders": {"cdmae": {"batch": 0}}}
    assert mistakes("seed: 1\n", overrides=typed) == {"encoders.cdmae.batch": "--config"}


def test_all_wrong_settings_are_reported_at_once_and_a_default_once(mistakes):
    overlay = "sed: 1\nresults: 3\npretraining: {batch: 0}\nencoders: {a: {}}\nreport: {titel: x}\n"
    assert mistakes(overlay).keys() == {"sed", "results", "pretraining.batch", "report.titel"}


def test_a_removed_system_is_removed_from_the_comparisons(tmp_path):
    default = tmp_path / "default.yaml"
    default.write_text(
        "systems: {a: {kind: bm25}, b: {kind: bm25}, c: {kind: bm25}}\n"
        "report: {compare: {a: [b, c], b: [a], c: [b], '*': [a]}}\n"
    )
    merged = gather(default, [], {"systems": {"b": None}})
    assert merged["report"]["compare"] == {"a": ["c"], "*": ["a"]}
