"""Config files: how they are read and stacked, and what those that come along say."""

import copy
import json
import math
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from planned import records

from cdmae.collections.sources.ir_datasets import catalogue
from cdmae.config import systems
from cdmae.config.heads import Dense
from cdmae.config.load import Written, load
from cdmae.config.objectives.mae import Mae
from cdmae.config.reading import check_typed, gather, lay, read_yaml
from cdmae.config.reference import editor_schema, page
from cdmae.config.schema import Config
from cdmae.config.stages import Reranker
from cdmae.errors import InputError
from cdmae.fields import parse, rules_of

FILES = Path(__file__).resolve().parents[2] / "config"
CONFIGS = sorted(path for path in FILES.rglob("*.yaml") if path.name != "expected.yaml")


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


def written(folder, text):
    path = folder / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ALIASES = "x0: &x0 [lol]\n" + "".join(
    f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]\n" for i in range(1, 9)
)
MERGES = "x0: &x0 {k: 1}\n" + "".join(
    f"x{i}: &x{i} {{<<: [{', '.join([f'*x{i - 1}'] * 10)}]}}\n" for i in range(1, 9)
)


def test_a_config_file_is_read(tmp_path):
    text = "base: &base {rate: 1}\nother:\n  <<: *base\n  rate: 2  # over the anchor\n"
    assert read_yaml(written(tmp_path, text)) == {"base": {"rate": 1}, "other": {"rate": 2}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed: 1\nseed: 2\n", "own.yaml, line 2: the key seed is listed twice"),
        (
            "systems:\n  a: {kind: bm25}\n  b: {}\n  a: {}\n",
            "own.yaml, line 4: the key a is listed twice",
        ),
        ("a: 1\n? [a, b]\n: 1\n", "own.yaml, line 2: a key is a list; allowed: text"),
        ("a: 1\nb: {{c: 1}: 2}\n", "own.yaml, line 2: a key is a mapping; allowed: text"),
        (b"title: caf\xe9\n", "own.yaml is not UTF-8 text (byte 10); save it as UTF-8"),
        ("# nothing\n", "own.yaml contains nothing; allowed: a mapping of settings"),
        ("a: [1\n", "own.yaml, line 2: not YAML ("),
        ("a:\n\tb: 1\n", "own.yaml, line 2: not YAML ("),
        ("- a\n", 'own.yaml contains ["a"]; allowed: a mapping of settings'),
        ("1: a\n", "own.yaml, line 1: the key 1 is not text; put it in quotation marks"),
        (
            "a:\n  true: a\n",
            "own.yaml, line 2: the key true is not text; put it in quotation marks",
        ),
        (
            'a: 1\nb: "\\0"\n',
            "own.yaml, line 2: a text has a NUL character, which no command line can contain; remove it",
        ),
        (
            "a:\n  b: &b\n    c: *b\n",
            "own.yaml, line 2: not YAML (found unconstructable recursive node)",
        ),
        (
            "a: 1\nb: 2001-02-30\n",
            "own.yaml, line 2: 2001-02-30 looks like a number or a date",
        ),
        (
            "a: {b: [0x_]}\n",
            "own.yaml, line 1: 0x_ looks like a number or a date",
        ),
        (
            "a: " + 5000 * "1",
            "1... looks like a number or a date",
        ),
        (
            "seed: 010\n",
            "own.yaml, line 1: 010 is a different number in different versions of YAML; write plain",
        ),
        (
            "a: [1:30]\n",
            "own.yaml, line 1: 1:30 is a different number in different versions of YAML",
        ),
        (
            "a: 1_0.5\n",
            "own.yaml, line 1: 1_0.5 is a different number in different versions of YAML",
        ),
        (
            'a: "x\\uD800"\n',
            "own.yaml, line 1: a text has half a surrogate pair, which is not a character; remove it",
        ),
        ('"a\\uDC00": 1\n', "own.yaml, line 1: a text has half a surrogate pair"),
        (
            "a: !!binary AAAA\n",
            "own.yaml, line 1: a value is !!binary; allowed: numbers, text, lists and mappings",
        ),
        (
            "a: 1\n__definitions__: []\n",
            "own.yaml, line 2: the key __definitions__ makes a config file run code",
        ),
        (ALIASES, "own.yaml contains more than 100,000 values"),
        (MERGES, "own.yaml contains more than 100,000 values"),
        ("a: " + 5000 * "[", "own.yaml is nested too deeply; allowed: entries with settings"),
    ],
)
def test_a_malformed_config_file(tmp_path, text, sentence):
    with pytest.raises(InputError) as caught:
        read_yaml(written(tmp_path, text))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_of_the_command_line_that_only_looks_like_a_number_stays_text(tmp_path):
    typed = {"report": {"title": "0x_", "noise": "1e0", "example": "2001-02-30"}}
    report = gather(written(tmp_path, "seed: 1\n"), [], typed)["report"]
    assert report == {"title": "0x_", "noise": 1, "example": "2001-02-30"}


def test_numbers_that_programs_read_differently_are_refused_on_the_command_line():
    """Snakemake would make 10 of them."""
    for value in ("010", "1_0", "-007"):
        with pytest.raises(
            InputError, match=f"--config has seed={value}, but {value} is a different"
        ):
            check_typed(["results=a", f"seed={value}"])
    check_typed(["seed=10", "seed=0", "results=01a", "seeds=[0, 1]", "report={title: 010}"])


def test_an_emoji_as_json_writes_it_is_one_character(tmp_path):
    text = {"title": "caf\u00e9 \U0001f600", "\U0001f600": 1}
    assert read_yaml(written(tmp_path, json.dumps(text))) == text


def test_text_of_the_command_line_is_utf8_and_its_numbers_are_plain(tmp_path):
    default = written(tmp_path, "a: 1\n")
    assert gather(default, [], {"a": ["010", "1_0", "10"]}) == {"a": ["010", "1_0", 10]}
    with pytest.raises(InputError, match=r"--config has 'caf\\udce9', which is not UTF-8"):
        gather(default, [], {"a": {"b": "caf\udce9"}})


def test_a_pipe_as_a_config_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InputError, match="pipe.yaml is a pipe; allowed: a file"):
        read_yaml(tmp_path / "pipe.yaml")


def test_a_missing_config_file(tmp_path):
    with pytest.raises(
        InputError, match="the config file .*none.yaml cannot be read: No such file"
    ):
        read_yaml(tmp_path / "none.yaml")


ONE, TWO = {"s": {"a": {"k": 1, "l": 3}, "b": {}}, "seed": 3}, {"s": {"a": {"k": 2}}, "list": [2]}
NULL = {"s": {"a": None}}


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        ([ONE], ONE),
        ([ONE, TWO], {"s": {"a": {"k": 2, "l": 3}, "b": {}}, "seed": 3, "list": [2]}),
        ([TWO, {"list": [4]}], {"s": {"a": {"k": 2}}, "list": [4]}),
        ([ONE, NULL], {"s": {"b": {}}, "seed": 3}),
        (
            [ONE, TWO, {"s": {"a": None, "c": {}}, "seed": None}],
            {"s": {"b": {}, "c": {}}, "list": [2]},
        ),
        ([ONE, NULL, NULL], {"s": {"b": {}}, "seed": 3}),
        (
            [TWO, {"s": {"c": None}}],
            {"s": {"a": {"k": 2}, "c": None}, "list": [2]},
        ),  # nothing has a c: a mistake
        (
            [ONE, NULL, TWO],
            {"s": {"a": {"k": 2}, "b": {}}, "seed": 3, "list": [2]},
        ),  # nothing is left of the first a
        ([ONE, {"s": None}, TWO], {"s": {"a": {"k": 2}}, "seed": 3, "list": [2]}),
    ],
)
def test_layers_are_merged_key_by_key_and_null_removes_what_is_there(layers, merged):
    before = copy.deepcopy(layers)
    assert lay(*layers) == merged and layers == before


def test_the_last_word_on_standalone_counts(tmp_path):
    default, paths = written(tmp_path, "seed: 3\nsystems: {a: {kind: bm25}, c: {kind: bm25}}\n"), []
    for number, text in enumerate(["systems: {a: null}\nstandalone: true", "standalone: false"]):
        paths.append(tmp_path / f"{number}.yaml")
        paths[-1].write_text(text)
    rest = {"seed": 3, "systems": {"c": {"kind": "bm25"}}, "standalone": False}
    assert gather(default, paths) == gather(default, paths[1:], {"systems": {"a": "null"}}) == rest
    alone = gather(default, paths[1:], {"standalone": "true", "seed": 4})
    assert alone == {"standalone": True, "seed": 4} and load(alone) == Config(seed=4)


def test_overlays_are_checked_for_what_the_engine_overlooks(tmp_path):
    overlay = written(tmp_path, "seed: 1\nseed: 2\n")
    with pytest.raises(InputError, match="line 2: the key seed is listed twice"):
        gather(FILES / "config.yaml", [overlay])


def test_numbers_without_quotation_marks_are_read_as_numbers(tmp_path):
    """Also what YAML 1.1 takes for text, and what the engine passes on as text within lists and
    mappings.
    """
    lines = "whole: 1e3\nhalf: 5e-1\nsmall: [3E-4, .1e-3]\ntext: [1e, e3, '1e3', 0x]\n"
    numbers = {"whole": 1000, "half": 0.5, "small": [3e-4, 1e-4], "text": ["1e", "e3", "1e3", "0x"]}
    assert (
        read_yaml(written(tmp_path, lines)) == numbers
        and type(read_yaml(tmp_path / "own.yaml")["whole"]) is int
    )
    entry = "stages:\n  one: {kind: retriever, head: dense, collection: docs, learning_rate: "
    for number in ("1e-4", "1E-4", "1.e-4", ".1e-3", "1.0e-4", "0.0001"):
        values = gather(written(tmp_path, f"{entry}{number}}}\n"))
        assert parse(Written, values).stages["one"].learning_rate == 1e-4
    typed = {"seeds": ["7", "8"], "training": {"margin": "5e-2", "in_batch": "true", "split": ""}}
    values = gather(written(tmp_path, "seed: 7\n"), overrides=typed)
    assert values == {
        "seed": 7,
        "seeds": [7, 8],
        "training": {"margin": 0.05, "in_batch": True, "split": ""},
    }
    values = gather(
        written(tmp_path, "starts: {a: {}, b: {}}\n"), overrides={"starts": {"a": "null"}}
    )
    assert values == {"starts": {"b": {}}}
    for number in ('"1e-4"', "'0.0001'"):
        with pytest.raises(InputError, match='stages.one.learning_rate is "'):
            parse(Written, gather(written(tmp_path, f"{entry}{number}}}\n")))


@pytest.mark.parametrize(
    "path", [path for path in CONFIGS if path.parent == FILES], ids=lambda path: path.stem
)
def test_the_config_files_that_come_along(path, own_files):
    config = load_file(path)
    assert systems.encoders(config).keys() == config.encoders.keys()
    assert systems.systems(config).keys() == config.systems.keys()


LAID_OVER = {
    "medquad": ["minilm"], "medquad-half": ["minilm", "medquad"], "boolq": ["minilm"],
    "heads-medquad": ["heads"], "heads-distilled": ["heads"],
    "unlabelled-minilm": ["unlabelled"], "doct5query": ["systems"],
    "unlabelled-distilled": ["unlabelled", "unlabelled-minilm"],
    "cisi": ["unlabelled", "unlabelled-minilm"],
}  # fmt: skip


def load_file(path):
    """A config file as a run would take it: over the default, and perhaps others."""
    if path.stem == "config":
        return load(read_yaml(path))
    paths = [*(FILES / f"{name}.yaml" for name in LAID_OVER.get(path.stem, [])), path]
    return load(gather(FILES / "config.yaml", paths))


def test_smoke_default_and_paper_run_the_same_rules():
    smoke, default, paper = (
        {job.rule for job in records(load_file(FILES / f"{name}.yaml").values())}
        for name in ("smoke", "config", "paper")
    )
    assert smoke == default == paper | {"encode"}  # which the paper's does not keep


def test_the_paper_s_steps_and_collections():
    """Appendix A, and 4.1: 20 epochs are 86,346 steps, of which step 80,000 is kept; 14 sets of
    BEIR.
    """
    paper = load_file(FILES / "paper.yaml")
    passages = catalogue.counts(paper.collections["msmarco"].settings.dataset, "docs")
    for name in ("mae", "cdmae"):
        encoder = paper.encoders[name]
        assert (math.ceil(encoder.epochs * passages / encoder.batch), encoder.take_step) == (
            86_346,
            80_000,
        )
    sets = {
        name.partition("-")[0] if name.startswith("cqadupstack") else name
        for name in paper.evaluation.collections
    }
    assert len(sets - {"msmarco"}) == 14
    stages = paper.stages
    assert (stages["stage3"].epochs, stages["stage3"].learning_rate) == (3, 2e-5)
    assert (stages["stage3-simlm"].epochs, stages["stage3-simlm"].learning_rate) == (6, 3e-5)
    assert (stages["reranker"].forward_factor, stages["reranker"].rdrop) == (4, 1.0)


@pytest.mark.parametrize("name", ["smoke", "full"])
def test_smaller_and_larger_runs_have_the_default_s_systems(name):
    default = read_yaml(FILES / "config.yaml")
    values = lay(default, read_yaml(FILES / f"{name}.yaml"))
    assert set(default["systems"]) <= set(values["systems"])
    assert values["encoders"] == default["encoders"]


def test_no_config_file_holds_a_key_that_the_default_already_says():
    """A value lives once: an overlay states differences only."""

    def same(default, overlay, path):
        for key, value in overlay.items():
            if isinstance(value, dict):
                yield from same(default.get(key) or {}, value, f"{path}.{key}")
            elif key in default and default[key] == value:
                yield f"{path}.{key}"

    default = read_yaml(FILES / "config.yaml")
    for name in ("smoke", "full"):
        assert not list(same(default, read_yaml(FILES / f"{name}.yaml"), name))


def test_the_page_of_settings_is_up_to_date(monkeypatch):
    monkeypatch.undo()  # without the tests' own source
    assert page() == (FILES / "README.md").read_text(encoding="utf-8"), (
        "run: python -m cdmae.config.reference"
    )
    assert editor_schema() == json.loads(
        (FILES.parent / "workflow/schemas/config.schema.json").read_text()
    ), "run: python -m cdmae.config.reference"


def test_editors_accept_the_config_files_and_refuse_mistakes():
    validator = Draft202012Validator(
        json.loads((FILES.parent / "workflow/schemas/config.schema.json").read_text())
    )
    for path in CONFIGS:
        validator.validate(read_yaml(path))
    validator.validate(
        {
            "seed": None,
            "systems": {"a": {"k1": None}},
            "evaluation": {"measures": None},
            "report": None,
        }
    )
    for wrong in (
        {"sed": 1},
        {"seed": -1},
        {"stages": {"a": {"depht": 1}}},
        {"collections": {"a": {"source": "x"}}},
    ):
        assert not validator.is_valid(wrong)


def test_the_paper_s_values_are_the_schema_s_defaults(tmp_path):
    """What paper.yaml states about pre-training and training, but for the names, its snapshot and
    its GPUs.
    """
    paper = read_yaml(FILES / "paper.yaml")
    for kinds, section in (([Mae], "pretraining"), ([Reranker, Dense], "training")):
        defaults = {key: rule.default for kind in kinds for key, rule in rules_of(kind).items()}
        for key, value in paper[section].items():
            if key not in ("start", "collection", "importance", "take_step", "chunk"):
                assert defaults[key] == value, key


# --- where a mistake is ---------------------------------------------------------------------------


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What is said of a default config with overlays, run in the folder of the files."""
    monkeypatch.chdir(tmp_path)

    def say(*overlays, default=DEFAULT, overrides=None):
        files = [
            Path("default.yaml").absolute(),
            *(Path(f"{place}.yaml").absolute() for place in range(len(overlays))),
        ]
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
        (
            "training:\n  epochs: 2\n  querys: 3\n",
            "0.yaml, line 3: training.querys is not a setting; did you mean q",
        ),
        (
            "stages:\n  stage1:\n    depht: 3\n",
            "0.yaml, line 3: stages.stage1.depht is not a setting; did you mean",
        ),
        (
            "\ntraining:\n  queries: 65\n",
            "0.yaml, line 3: stages.stage1.queries is 65; allowed: up to 64, ",
        ),
        (
            "pretraining: {take_step: 11}\n",
            "0.yaml, line 1: pretraining.take_step is 11; allowed: up to 10",
        ),
        (
            "collections:\n  docs:\n    size: 13\n",
            "0.yaml, line 3: collections.docs: size is 13; allowed: no unlucky",
        ),
        ("seed: 1\nstandalone:\n", "0.yaml, line 2: standalone is null; allowed: true or false"),
        (
            "standalone: true\nencoders:\n  mae:\n",
            "0.yaml, line 3: encoders.mae is empty; allowed: a mapping",
        ),
        (
            "systems:\n  a: {kind: fusion}\n",
            "0.yaml, line 2: systems.a.of is missing; kind fusion needs of",
        ),
        (
            "base: &base\n  depht: 3\nstages:\n  stage1:\n    <<: *base\n",
            "0.yaml, line 1: base is not a setting",
        ),
        (
            "evaluation:\n  collections:\n    dogs: [test]\n",
            "0.yaml, line 3: evaluation.collections.dogs is dogs, which is not in collections; did",
        ),
        (
            "seed: 1\nsystems:\n  a.b: {kind: bm25}\n",
            "0.yaml, line 3: systems has the name a.b; allowed: up to",
        ),
        (
            "evaluation:\n  relevant:\n    docs: {dev: 1,\n      dev.small: 0}\n",
            "0.yaml, line 4: evaluation.relevant.docs.dev.small is 0; allowed: a whole number from 1 to 1000",
        ),
        (
            "starts:\n  small: {positions: 100}\n",
            "default.yaml, line 13: encoders.cdmae.max_length is 150; allowed: ",
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_line(said, overlay, begins):
    assert said(overlay)[0].startswith(begins)


def test_of_several_files_the_last_that_has_the_key_is_named(said):
    assert said("training:\n  epochs: -1\n", "seed: 3\n\ntraining:\n  epochs: -2\n")[0].startswith(
        "1.yaml, line 4: tr"
    )
    assert said("training:\n  epochs: -1\n", "seed: 3\n")[0].startswith(
        "0.yaml, line 2: training.epochs is -1; "
    )
    wrong = DEFAULT.replace("window: 3", "window: 1")
    assert said("seed: 3\n", default=wrong)[0].startswith(
        "default.yaml, line 6: importance.ami.window is 1; "
    )


def test_what_was_typed_and_what_the_sentence_places_itself_stand_in_no_config_file(said, toy):
    assert said("seed: 1\n", overrides={"seed": -1}) == [
        "seed is -1; allowed: a whole number from 0"
    ]
    typed = {"encoders": {"cdmae": {"batch": 0, "epochs": "1"}}}
    assert said("seed: 1\n", overrides=typed) == [
        "encoders.cdmae.batch is 0; allowed: a whole number from 1"
    ]
    sentence = "data/corpus.jsonl, line 3: not JSON"

    def check(_):
        raise InputError(sentence)

    toy.Settings.check = check
    assert said("seed: 1\n") == [f"collections.docs: {sentence}"]


def test_several_mistakes_are_told_at_once(said):
    sentences = said("sed: 1\nseeds: 3\ntraining:\n  querys: 3\n  group: x\n")
    assert sorted(sentence.partition(": ")[0] for sentence in sentences) == [
        f"0.yaml, line {line}" for line in (1, 2, 4, 5)
    ]
    sentences = said(
        "stages:\n  stage1: {depht: 3}\nsystems:\n  a: {kind: bm52}\n  b: {}\nreport: {titel: x}\n"
    )
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


def test_a_wrong_setting_hides_no_wrong_name(said):
    sentences = said(
        "starts: {small: {layrs: 3}}\nencoders:\n  cdmae: {start: smal}\n"
        "systems:\n  a: {kind: fusion, of: [bm52, bm25], k: 0}\n  b: {kind: fusion, of: [bm52, a]}\n"
    )
    assert [sentence.partition(" is ")[0] for sentence in sentences] == [
        "0.yaml, line 1: starts.small.layrs",
        "0.yaml, line 3: encoders.cdmae.start",
        "0.yaml, line 5: systems.a.k",
        "0.yaml, line 6: systems.b.of[0]",
    ]


def test_what_only_a_mistyped_section_of_defaults_lacks_is_not_told(said):
    sentences = said("standalone: true\n" + DEFAULT.replace("pretraining", "pretrainng"))
    assert sentences == ["0.yaml, line 8: pretrainng is not a setting; did you mean pretraining?"]


def test_one_mistake_in_the_defaults_is_told_once(said):
    sentences = said("pretraining: {take_step: 11}\nencoders: {a: {}, b: {}}\n")
    assert sentences == [
        "0.yaml, line 1: pretraining.take_step is 11; allowed: up to 10, its steps"
    ]


def test_of_very_many_mistakes_the_first_ones_are_told(said):
    sentences = said("".join(f"key{place}: 1\n" for place in range(30)))
    assert len(sentences) == 11 and sentences[-1] == "and 20 more"


def test_a_system_that_an_overlay_removes_is_removed_from_the_comparisons(tmp_path):
    default = tmp_path / "default.yaml"
    default.write_text(
        "systems: {a: {kind: bm25}, b: {kind: bm25}, c: {kind: bm25}}\n"
        "report: {compare: {a: [b, c], b: [a], c: [b], '*': [a]}}\n"
    )
    merged = gather(default, [], {"systems": {"b": None}})
    assert merged["report"]["compare"] == {"a": ["c"], "*": ["a"]}
    again = gather(default, [], {"systems": {"b": {"k1": 1}}})
    assert again["report"]["compare"] == {"a": ["b", "c"], "b": ["a"], "c": ["b"], "*": ["a"]}
