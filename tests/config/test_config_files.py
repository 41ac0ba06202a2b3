"""Config files: how they are read and stacked, and what those that come along say."""

import copy
import math
from pathlib import Path

import pytest
from planned import records

from cdmae.config import systems
from cdmae.config.heads import Dense
from cdmae.config.load import load
from cdmae.config.objectives import Mae
from cdmae.config.reading import gather, lay, read_yaml
from cdmae.config.reference import page
from cdmae.config.schema import Config
from cdmae.config.stages import Reranker
from cdmae.fields import rules_of

FILES = Path(__file__).resolve().parents[2] / "config"
CONFIGS = sorted(path for path in FILES.rglob("*.yaml") if path.parent.name != "recipes")
NAMED = {path.stem: path for path in CONFIGS}


def written(folder, text):
    path = folder / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_config_file_is_read(tmp_path):
    text = "base: &base {rate: 1}\nother:\n  <<: *base\n  rate: 2  # over the anchor\n"
    assert read_yaml(written(tmp_path, text)) == {"base": {"rate": 1}, "other": {"rate": 2}}


ONE, TWO = {"s": {"a": {"k": 1, "l": 3}, "b": {}}, "seed": 3}, {"s": {"a": {"k": 2}}, "list": [2]}
NULL = {"s": {"a": None}}


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        ([ONE, TWO], {"s": {"a": {"k": 2, "l": 3}, "b": {}}, "seed": 3, "list": [2]}),
        ([TWO, {"list": [4]}], {"s": {"a": {"k": 2}}, "list": [4]}),
        ([ONE, NULL], {"s": {"b": {}}, "seed": 3}),
        ([ONE, NULL, NULL], {"s": {"b": {}}, "seed": 3}),
        # nothing is left of the first a
        ([ONE, NULL, TWO], {"s": {"a": {"k": 2}, "b": {}}, "seed": 3, "list": [2]}),
        # nothing has a c: a mistake
        ([TWO, {"s": {"c": None}}], {"s": {"a": {"k": 2}, "c": None}, "list": [2]}),
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
    assert gather(default, paths) == rest
    alone = gather(default, paths[1:], {"standalone": True, "seed": 4})
    assert alone == {"standalone": True, "seed": 4} and load(alone) == Config(seed=(4,))


def test_numbers_of_the_command_line(tmp_path):
    """Snakemake passes those in lists and mappings as text."""
    typed = {"seed": ["7", "8"], "importance": {"ami": {"window": "3"}}}
    config = load(gather(written(tmp_path, "seed: 7\n"), overrides=typed))
    assert (config.seed, config.importance["ami"].window) == ((7, 8), 3)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_config_files_that_come_along(path, own_files):
    config = load_file(path)
    assert systems.encoders(config).keys() == config.encoders.keys()
    assert systems.systems(config).keys() == config.systems.keys()


LAID_OVER = {
    "medquad": ["minilm"], "medquad-half": ["minilm", "medquad"], "boolq": ["minilm"],
    "heads-medquad": ["heads"], "heads-distilled": ["heads"], "untrained": ["nfcorpus"],
    "evidence-squad": ["evidence"], "evidence-wikipedia": ["evidence"],
    "evidence-medquad": ["evidence"],
    "unlabelled-minilm": ["unlabelled"], "doct5query": ["systems"],
    "unlabelled-distilled": ["unlabelled", "unlabelled-minilm"],
    "cisi": ["unlabelled", "unlabelled-minilm"], "paper-ablations": ["paper"],
}  # fmt: skip


def load_file(path):
    """A config file as a run would take it: over the default, and perhaps others."""
    if path.stem == "config":
        return load(read_yaml(path))
    paths = [*(NAMED[name] for name in LAID_OVER.get(path.stem, [])), path]
    return load(gather(FILES / "config.yaml", paths))


def test_smoke_default_and_paper_run_the_same_rules():
    smoke, default, paper = (
        {job.rule for job in records(load_file(FILES / f"{name}.yaml").values())}
        for name in ("smoke", "config", "paper")
    )
    assert smoke == default == paper


def test_the_paper_s_steps_and_collections():
    """Appendix A, and 4.1: 20 epochs are 86,346 steps, of which step 80,000 is kept; 14 sets of
    BEIR.
    """
    paper = load_file(FILES / "paper.yaml")
    passages = paper.collections["msmarco"].settings.expected()[0]
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


def test_the_page_of_settings_is_up_to_date(monkeypatch):
    monkeypatch.undo()  # without the tests' own source
    text = (FILES / "README.md").read_text(encoding="utf-8")
    assert page(text) == text, "run: python -m cdmae.config.reference"


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
