"""A config with a mistake is refused before any job: one line that names file and line, the key, the
value found, and what is expected or the nearest name.
"""

import re
from pathlib import Path

import pytest

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError

# the changed key and its value; the beginning of the message (the changed key if empty); other
# words that the message names
TYPES_AND_RANGES = [
    ("seed", -1, "", ["-1", "0"]),
    ("systems", ["bm25"], "", ['["bm25"]', "mapping"]),
    ("systems.x", None, "", ["null", "mapping"]),
    ("report", {"licence": "My Own"}, "report.licence", ["My Own"]),
    ("pretraining.encoder_ratio", 0.96, "", ["0.96", "0.95"]),
    ("stages.stage3.denoise", True, "", ["true", "number"]),
    ("stages.stage3.pooling", "clss", "", ["clss", "did you mean cls?"]),
]
UNKNOWN_AND_MISSING = [
    ("seeds", [1, 2], "", ["did you mean seed?"]),
    ("pretraining.decoder_mask_ratio", 0.5, "", ["did you mean decoder_ratio?"]),
    ("pretraining.after", "mae", "", []),
    ("report", {"titel": "x"}, "report.titel", ["did you mean title?"]),
    ("encoders.mae.early_layers", 1, "", ["mae", "condenser"]),
    ("encoders.none.steps", 5, "", ["config/README.md"]),
    ("stages.stage1.rdrop", 1, "", ["reranker"]),
    ("systems.one.reranks", "bm25", "", ["reranker"]),
    ("systems.x", {"kind": "fusion"}, "systems.x.of", ["missing"]),
    ("systems.x", {}, "systems.x.kind", ["missing"]),
    ("encoders.cdmae.importance", "", "", ["missing", "ami"]),
    ("starts.small.collection", "", "starts.small: ", ["checkpoint"]),
]
NAMES = [
    ("collections.docs.source", "toi", "", ["toi", "did you mean toy?"]),
    ("pretraining.objective", "mea", "", ["mea", "did you mean mae?"]),
    ("stages.stage1.head", "dens", "", ["dens", "did you mean dense?"]),
    ("systems.bm25.kind", "bm52", "", ["bm52", "did you mean bm25?"]),
    ("systems.fused.of", ["one", "on"], "systems.fused.of[1]", ["on", "did you mean one?"]),
    ("systems.fused.of", ["one", "fuse"], "systems.fused.of[1]", ["fuse", "bm25, one"]),
    ("evaluation.collections.dogs", ["test"], "", ["dogs", "did you mean docs?"]),
    ("evaluation.baseline", "bm", "", ["bm", "did you mean bm25?"]),
    ("report", {"methods": {"PAIR": "on"}}, "report.methods.PAIR", ["on", "did you mean one?"]),
    ("report", {"compare": {"one": ["two"]}}, "report.compare.one", ["two"]),
    ("encoders.a", {"after": "mea"}, "encoders.a.after", ["mea", "did you mean mae?"]),
    ("encoders.a b", {}, "", ["a b", "letters"]),
    ("starts.big", {"checkpoint": "./nowhere"}, "starts.big.checkpoint", ["nowhere", "folder"]),
    ("collection", "dosc", "", ["dosc", "did you mean docs?"]),
    ("evaluation.lengths", {"docks": 64}, "evaluation.lengths.docks", ["did you mean docs?"]),
]
CYCLES = [
    ("systems.one.negatives", "one", "systems", ["one -> one"]),
    ("systems.one.negatives", "fused", "systems", ["fused -> three -> cross -> one -> fused"]),
    ("encoders", {"a": {"after": "b"}, "b": {"after": "a"}}, "encoders", ["a -> b -> a"]),
    ("encoders.a", {"after": "a"}, "encoders", ["a -> a"]),
]
KINDS = [
    ("systems.one.stage", "rerank", "", ["reranker", "stage1, stage3"]),
    ("systems.three.negatives", "cross", "", ["cross", "bm25, one"]),
    ("systems.three.after", "cross", "", ["cross", "one, three"]),
    ("systems.three.in_batch_teacher", "cross", "", ["cross", "one, three"]),
    ("systems.one.joint_teacher", "three", "systems", ["one -> three"]),
    ("systems.x", {"kind": "head", "of": "one", "uses": "dense"}, "systems.x.of", ["one"]),
    ("systems.fused.of", ["one"], "", ["one", "two"]),
    ("systems.one.engine", "lucene", "", ["lucene", "exact"]),
    ("systems.one.engine", "bm25", "", ["bm25", "exact"]),
    ("systems.one.candidates", "bm25", "", ["bm25", "multi"]),
    ("systems.three.teacher", "one", "stages.stage3.random_negatives", ["10", "one"]),
    ("encoders.a", {"after": "mae", "start": "big"}, "encoders.a.start", ["big", "small"]),
]
SPLITS = [
    ("stages.stage1.split", "trane", "", ["trane", "did you mean train?"]),
    ("stages.stage1.split", "raw", "", ["raw", "train, dev, test"]),
    ("stages.stage3", {"kind": "retriever", "labels": 0.9, "random_negatives": 0},
     "stages.stage3.split", ["train"]),
    ("systems.fused.tuned_on", ["docs", "dve"], "", ["dve", '["docs", "dev"]']),
    ("evaluation.collections.docs", ["tests"], "", ["tests", "did you mean test?"]),
    ("evaluation.collections.docs", ["train"], "", ["train", "systems.three"]),
    ("evaluation.collections", {}, "", ["split"]),
    ("evaluation.relevant", {"docs": {"train": 2}}, "evaluation.relevant", ["docs train"]),
]  # fmt: skip
LENGTHS = [
    ("starts.small.heads", 3, "starts.small", ["hidden is 8", "heads is 3"]),
    ("starts.small.positions", 100, "encoders.mae.max_length", ["150", "100", "starts.small"]),
    ("starts.small.positions", 150, "stages.rerank.max_length", ["192", "150", "starts.small"]),
    ("encoders.low", {"objective": "simlm", "encoder_ratio": 0.6}, "encoders.low.decoder_ratio",
     ["0.5", "0.6"]),
    ("encoders.deep", {"objective": "simlm", "decoder_layers": 3}, "encoders.deep.decoder_layers",
     ["3", "2", "starts.small"]),
    ("encoders.a", {"objective": "condenser", "early_layers": 2}, "encoders.a.early_layers",
     ["2", "starts.small"]),
    ("encoders.mae.random_share", 0.3, "encoders.mae: mask_share", ["0.8", "0.3"]),
    ("stages.rerank.forward_factor", 3, "training: group", ["4", "3"]),
    ("evaluation.depth", 100, "", ["100", "R@1000"]),
    ("evaluation.measures", ["MRR@10"], "", ["MRR@10", "RR@10"]),
    ("evaluation.measures", [], "", ["[]"]),
]  # fmt: skip
RESULTS = [
    ("results", value, "", [value])
    for value in ("./-rf", "~nobody7/x", "a<logs>", "s3://b/x", "a b", "/")
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
    ("path", "value", "begins", "named"), ROWS, ids=[f"{row[0]}={row[1]}"[:60] for row in ROWS]
)
def test_a_mistake_is_refused_by_its_key_and_value(values, path, value, begins, named):
    values["starts"]["big"] = {"collection": "docs"}
    if path == "encoders":
        value = values["encoders"] | value
    put(values, path, value)
    with pytest.raises(InputError) as caught:
        load(values)
    first = str(caught.value).split("\n")[0]
    assert first.startswith(begins or path)
    assert not [word for word in named if word not in first], first
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
    assert said(wrong, "seed: 3\n")[0].startswith("0.yaml, line 2: training.epochs is -1")
    wrong = DEFAULT.replace("window: 3", "window: 1")
    assert said("seed: 3\n", default=wrong)[0].startswith("default.yaml, line 6: importance.ami")


def test_a_mistake_on_the_command_line_has_no_file(said):
    assert said("seed: 1\n", overrides={"seed": -1})[0].startswith("--config: seed is -1")
    typed = {"encoders": {"cdmae": {"batch": 0, "epochs": "1"}}}
    assert said("seed: 1\n", overrides=typed)[0].startswith("--config: encoders.cdmae.batch is 0")


def test_all_wrong_settings_are_told_at_once_and_a_default_once(said):
    overlay = "sed: 1\nresults: 3\npretraining: {batch: 0}\nencoders: {a: {}}\nreport: {titel: x}\n"
    lines = [line.split(" ")[2:4] for line in said(overlay)]
    keys = [["1:", "sed"], ["2:", "results"], ["3:", "pretraining.batch"], ["5:", "report.titel"]]
    assert sorted(lines) == keys
