"""A config with a mistake is refused before any job, by file, line, key and value."""

import re
from pathlib import Path

import pytest

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError

# the changed key and its value; the key that is named, if it is another one; names and values of
# the remedy
TYPES_AND_RANGES = [
    ("seed", -1, "", "0"),
    ("seed", [7, 8, 8], "", "[7, 8, 8]"),
    ("seed", [], "", "[]"),
    ("systems", ["bm25"], "", "mapping"),
    ("systems.x", None, "", "null"),
    ("report", {"licence": "My Own"}, "report.licence", "My Own"),
    ("pretraining.encoder_ratio", 0.96, "", "0.95"),
    ("stages.stage3.denoise", True, "", "true"),
    ("stages.stage3.pooling", "clss", "", "cls"),
    ("stages.stage3.pooling", 5, "", "cls, mean"),
    ("importance.ami.window", 2.5, "", "2.5"),
    ("importance.ami.window", 2**31, "", "8"),
    ("pretraining.learning_rate", float("nan"), "", "NaN"),
    ("collections.docs.size", 0, "", "1"),
    ("report", {"title": 3}, "report.title", "3"),
    ("evaluation.collections.docs", "dev", "", "dev"),
    ("training.in_batch", "maybe", "", "maybe"),
]
UNKNOWN_AND_MISSING = [
    ("seeds", [1, 2], "", "seed"),
    ("pretraining.decoder_mask_ratio", 0.5, "", "decoder_ratio"),
    ("pretraining.after", "mae", "", ""),
    ("report", {"titel": "x"}, "report.titel", "title"),
    ("encoders.mae.early_layers", 1, "", ""),
    ("encoders.none.steps", 5, "", "config/README.md"),
    ("stages.stage1.rdrop", 1, "", ""),
    ("systems.one.reranks", "bm25", "", ""),
    ("systems.x", {"kind": "fusion"}, "systems.x.of", ""),
    ("systems.x", {}, "systems.x.kind", ""),
    ("encoders.cdmae.importance", "", "", "ami"),
    ("starts.small.collection", "", "starts.small", "checkpoint"),
]
NAMES = [
    ("collections.docs.source", "toi", "", "toy"),
    ("pretraining.objective", "mea", "", "mae"),
    ("stages.stage1.head", "dens", "", "dense"),
    ("systems.bm25.kind", "bm52", "", "bm25"),
    ("systems.fused.of", ["one", "on"], "systems.fused.of[1]", "one"),
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
]
CYCLES = [
    ("systems.one.negatives", "one", "systems", "one -> one"),
    ("systems.one.negatives", "fused", "systems", "fused -> three -> cross -> one -> fused"),
    ("encoders", {"a": {"after": "b"}, "b": {"after": "a"}}, "encoders", "a -> b -> a"),
]
KINDS = [
    ("systems.one.stage", "rerank", "", "stage1, stage3"),
    ("systems.three.negatives", "cross", "", "bm25, one"),
    ("systems.three.after", "cross", "", "one, three"),
    ("systems.three.in_batch_teacher", "cross", "", "one, three"),
    ("systems.one.joint_teacher", "three", "systems", "one -> three"),
    ("systems.three.after", "wide", "", "starts.big"),
    ("systems.three.after", "late", "", "multi"),
    ("systems.x", {"kind": "head", "of": "one", "uses": "dense"}, "systems.x.of", "one"),
    ("systems.fused.of", ["one"], "", "one"),
    ("systems.one.engine", "lucene", "", "exact"),
    ("systems.one.engine", "bm25", "", "exact"),
    ("systems.one.candidates", "bm25", "", "multi"),
    ("systems.three.teacher", "one", "stages.stage3.random_negatives", "10"),
    ("systems.x", {"kind": "run", "runs": {"docs": {"dev": "no.run"}}}, "systems.x.runs.docs.dev",
     "no.run"),
    ("systems.x", {"kind": "run", "runs": {}}, "systems.x.runs", "dev of docs"),
    ("encoders.a", {"after": "mae", "start": "big"}, "encoders.a.start", "small"),
    ("encoders.a", {"decoder_masking": "pmi_span", "importance": "pieces"},
     "encoders.a.importance", "pmi_span"),
    ("encoders.a", {"objective": "simlm", "generator": "some/electra"}, "encoders.a.generator",
     "starts.small"),
]  # fmt: skip
SPLITS = [
    ("stages.stage1.split", "trane", "", "train"),
    ("stages.stage1.split", "raw", "", "train, dev, test"),
    ("stages.stage3", {"kind": "retriever", "labels": 0.9, "random_negatives": 0},
     "stages.stage3.split", "train"),
    ("systems.fused.tuned_on", ["docs", "dve"], "", '["docs", "dev"]'),
    ("evaluation.collections.docs", ["tests"], "", "test"),
    ("evaluation.collections.docs", ["train"], "", "systems.late"),
    ("evaluation.collections.docs", ["a/b"], "", "a/b"),
    ("evaluation.collections", {}, "", "split"),
    ("evaluation.relevant", {"docs": {"train": 2}}, "evaluation.relevant.docs", "train"),
]  # fmt: skip
LENGTHS = [
    ("starts.small.heads", 3, "starts.small", "8"),
    ("starts.small.positions", 100, "encoders.mae.max_length", "150"),
    ("starts.small.positions", 150, "stages.rerank.max_length", "192"),
    ("encoders.mae.random_share", 0.3, "encoders.mae", "mask_share"),
    ("stages.rerank.forward_factor", 3, "training", "group"),
    ("evaluation.depth", 100, "", "R@1000"),
    ("evaluation.measures", ["MRR@10"], "", "RR@10"),
    ("evaluation.measures", [], "", "[]"),
]  # fmt: skip
RESULTS = [
    ("results", value, "", value) for value in ("./-rf", "~no7/x", "a<b>", "s3://b/x", "a b")
]
ROWS = [
    *TYPES_AND_RANGES, *UNKNOWN_AND_MISSING, *NAMES, *CYCLES, *KINDS, *SPLITS, *LENGTHS, *RESULTS,
]  # fmt: skip


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
    first = str(caught.value).split("\n")[0]
    assert re.match(rf"{re.escape(key or path)}(:? |\.)", first), first
    assert named in first
    has_form(first)


def has_form(sentence):
    """Check the form of a refusal: the key, the mistake, and mostly the remedy."""
    key = r"[\w.\[\]@*-]+( ?\w+)?:? "
    mistake = r"(\w+ )?(is|are|has|have|names|depend|lacks|needs) .+"
    assert re.fullmatch(rf"([\w./-]+, line \d+: )?{key}{mistake}", sentence), sentence
    assert "Input should" not in sentence and "allowed" not in sentence


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
def said(tmp_path, monkeypatch):
    """The lines of the refusal of overlays, 0.yaml and so on, on a default config."""
    monkeypatch.chdir(tmp_path)

    def say(*overlays, overrides=None, default=DEFAULT):
        names = ["default.yaml", *(f"{place}.yaml" for place in range(len(overlays)))]
        for name, text in zip(names, (default, *overlays), strict=True):
            Path(name).write_text(text)
        first, *rest = [Path(name).absolute() for name in names]
        with pytest.raises(InputError) as caught:
            load(gather(first, rest, overrides))
        return str(caught.value).split("\n")

    return say


@pytest.mark.parametrize(
    ("overlay", "begins"),
    [
        ("seed: -1\n", "0.yaml, line 1: seed is -1"),
        ("training:\n  epochs: 2\n  querys: 3\n", "0.yaml, line 3: training.querys"),
        ("stages:\n  stage1:\n    depht: 3\n", "0.yaml, line 3: stages.stage1.depht"),
        ("seed: 1\nstandalone:\n", "0.yaml, line 2: standalone is null"),
        ("systems:\n  a: {kind: fusion}\n", "0.yaml, line 2: systems.a.of is missing"),
        ("base: &base\n  a: 3\nstarts:\n  small:\n    <<: *base\n", "0.yaml, line 4: starts.small.a"),
        ("seed: 1\nsystems:\n  a.b: {kind: bm25}\n", "0.yaml, line 3: systems.a.b is a.b"),
        ("starts:\n  small: {positions: 100}\n", "default.yaml, line 13: encoders.cdmae.max_length"),
        ("systems:\n  no: {kind: bm25}\n", "0.yaml, line 2: the key no"),
        ("seed: 1\nseed: 2\n", "0.yaml, line 2: the key seed is listed twice"),
        ("a: [1\n", "0.yaml, line 2: not YAML"),
        ("- a\n", 'TMP/0.yaml contains ["a"]'),
        ("# nothing\n", "TMP/0.yaml contains null"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_and_line(said, tmp_path, overlay, begins):
    assert said(overlay)[0].startswith(begins.replace("TMP", str(tmp_path)))


def test_of_several_files_the_last_that_has_the_key_is_named(said):
    wrong = "training:\n  epochs: -1\n"
    assert said(wrong, "seed: 3\n\ntraining:\n  epochs: -2\n")[0].startswith("1.yaml, line 4: tr")
    assert said(wrong, "seed: 3\n")[0].startswith("0.yaml, line 2: training.epochs")
    wrong = DEFAULT.replace("window: 3", "window: 1")
    assert said("seed: 3\n", default=wrong)[0].startswith("default.yaml, line 6: importance.ami")
    typed = {"encoders": {"cdmae": {"batch": 0}}}
    assert said("seed: 1\n", overrides=typed)[0].startswith("--config: encoders.cdmae.batch")


def test_all_wrong_settings_are_reported_at_once_and_a_default_once(said):
    overlay = "sed: 1\nresults: 3\npretraining: {batch: 0}\nencoders: {a: {}}\nreport: {titel: x}\n"
    lines = [line.split(" ")[2:4] for line in said(overlay)]
    keys = [["1:", "sed"], ["2:", "results"], ["3:", "pretraining.batch"], ["5:", "report.titel"]]
    assert sorted(lines) == keys


def test_a_removed_system_is_removed_from_the_comparisons(tmp_path):
    default = tmp_path / "default.yaml"
    default.write_text(
        "systems: {a: {kind: bm25}, b: {kind: bm25}, c: {kind: bm25}}\n"
        "report: {compare: {a: [b, c], b: [a], c: [b], '*': [a]}}\n"
    )
    merged = gather(default, [], {"systems": {"b": None}})
    assert merged["report"]["compare"] == {"a": ["c"], "*": ["a"]}
