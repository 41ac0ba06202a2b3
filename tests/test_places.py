"""Messages about the config say in which file and line the mistake is, and tell several mistakes at once."""

from pathlib import Path

import pytest

from cdmae.config.load import gather, load
from cdmae.errors import InputError

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
    """What is said of a default config with overlays, run in the folder of the files."""
    monkeypatch.chdir(tmp_path)

    def say(*overlays, default=DEFAULT, overrides=None):
        files = [Path("default.yaml").absolute(), *(Path(f"{place}.yaml").absolute() for place in range(len(overlays)))]
        for path, text in zip(files, (default, *overlays), strict=True):
            path.write_text(text)
        with pytest.raises(InputError) as caught:
            load(gather(files[0], files[1:], overrides))
        return str(caught.value).split("\n")

    return say


@pytest.mark.parametrize(
    ("overlay", "begins"),
    [
        ("seed: -1\n", "0.yaml, line 1: seed is -1; allowed: "),
        ("training:\n  epochs: 2\n  querys: 3\n", "0.yaml, line 3: training.querys is not a setting; did you mean q"),
        ("stages:\n  stage1:\n    depht: 3\n", "0.yaml, line 3: stages.stage1.depht is not a setting; did you mean"),
        ("\ntraining:\n  queries: 65\n", "0.yaml, line 3: stages.stage1.queries is 65; allowed: up to 64, "),
        ("pretraining: {take_step: 11}\n", "0.yaml, line 1: encoders.cdmae: take_step is 11; allowed: up to steps"),
        ("collections:\n  docs:\n    size: 13\n", "0.yaml, line 3: collections.docs: size is 13; allowed: no unlucky"),
        ("seed: 1\nstandalone:\n", "0.yaml, line 2: standalone is null; allowed: true or false"),
        ("standalone: true\nencoders:\n  mae:\n", "0.yaml, line 3: encoders.mae is empty; allowed: a mapping"),
        ("systems:\n  a: {kind: fusion}\n", "0.yaml, line 2: systems.a.of is missing; kind fusion needs of"),
        ("base: &base\n  depht: 3\nstages:\n  stage1:\n    <<: *base\n", "0.yaml, line 1: base is not a setting"),
        ("evaluation:\n  collections:\n    dogs: [test]\n", "0.yaml, line 3: evaluation.collections.dogs: not a coll"),
        ("seed: 1\nsystems:\n  a.b: {kind: bm25}\n", "0.yaml, line 3: systems has the name a.b; allowed: up to"),
        (
            "evaluation:\n  relevant:\n    docs: {dev: 1,\n      dev.small: 0}\n",
            "0.yaml, line 4: evaluation.relevant.docs.dev.small is 0; allowed: a whole number from 1 to 1000",
        ),
        ("starts:\n  small: {positions: 100}\n", "default.yaml, line 13: encoders.cdmae.max_length is 150; allowed: "),
    ],
)
def test_a_mistake_is_named_with_file_and_line(said, overlay, begins):
    assert said(overlay)[0].startswith(begins)


def test_of_several_files_the_last_that_has_the_key_is_named(said):
    assert said("training:\n  epochs: -1\n", "seed: 3\n\ntraining:\n  epochs: -2\n")[0].startswith("1.yaml, line 4: tr")
    assert said("training:\n  epochs: -1\n", "seed: 3\n")[0].startswith("0.yaml, line 2: training.epochs is -1; ")
    wrong = DEFAULT.replace("window: 3", "window: 1")
    assert said("seed: 3\n", default=wrong)[0].startswith("default.yaml, line 6: importance.ami.window is 1; ")


def test_what_was_typed_and_what_the_sentence_places_itself_stand_in_no_config_file(said, toy):
    assert said("seed: 1\n", overrides={"seed": -1}) == ["seed is -1; allowed: a whole number from 0"]
    typed = {"encoders": {"cdmae": {"batch": 0, "epochs": "1"}}}
    assert said("seed: 1\n", overrides=typed) == ["encoders.cdmae.batch is 0; allowed: a whole number from 1"]
    sentence = "collections.docs: data/corpus.jsonl, line 3: not JSON"

    def check(*_):
        raise InputError(sentence)

    toy.check = check
    assert said("seed: 1\n") == [sentence]


def test_several_mistakes_are_told_at_once(said):
    sentences = said("sed: 1\nseeds: 3\ntraining:\n  querys: 3\n  group: x\n")
    assert sorted(sentence.partition(": ")[0] for sentence in sentences) == [
        f"0.yaml, line {line}" for line in (1, 2, 4, 5)
    ]
    sentences = said("stages:\n  stage1: {depht: 3}\nsystems:\n  a: {kind: bm52}\n  b: {}\nreport: {titel: x}\n")
    assert [sentence.partition(" is ")[0] for sentence in sentences] == [
        "0.yaml, line 2: stages.stage1.depht",
        "0.yaml, line 4: systems.a.kind",
        "0.yaml, line 6: report.titel",
    ]


@pytest.mark.parametrize("first", ["sed: 1", "seed: x", "seeds: 3", "results: 5"])
def test_a_mistake_at_the_top_hides_no_other_one(said, first):
    sentences = said(f"{first}\nstages:\n  stage1: {{depht: 3}}\n")
    assert [sentence.partition(" is ")[0] for sentence in sentences] == [
        f"0.yaml, line 1: {first.partition(':')[0]}",
        "0.yaml, line 3: stages.stage1.depht",
    ]


def test_what_only_a_mistyped_section_of_defaults_lacks_is_not_told(said):
    sentences = said("standalone: true\n" + DEFAULT.replace("pretraining", "pretrainng"))
    assert sentences == ["0.yaml, line 8: pretrainng is not a setting; did you mean pretraining?"]


def test_one_mistake_in_the_defaults_is_told_once(said):
    sentences = said("pretraining: {take_step: 11}\nencoders: {a: {}, b: {}}\n")
    assert sentences == ["0.yaml, line 1: encoders.cdmae: take_step is 11; allowed: up to steps, 10"]


def test_of_very_many_mistakes_the_first_ones_are_told(said):
    sentences = said("".join(f"key{place}: 1\n" for place in range(30)))
    assert len(sentences) == 11 and sentences[-1] == "and 20 more"
