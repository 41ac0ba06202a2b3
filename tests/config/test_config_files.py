"""Config files: how they are read and overlaid, and what the shipped ones say."""

import copy
import runpy
from pathlib import Path

import pytest
from made_up import make_model
from planned import plan
from small_collections import write_beir

from cdmae.config import systems
from cdmae.config.importance import Importance
from cdmae.config.load import load
from cdmae.config.objectives import Mae
from cdmae.config.reading import gather, lay, read_yaml
from cdmae.config.schema import SECTIONS, Config
from cdmae.config.stages import Dense, Reranker
from cdmae.fields import rules_of

FILES = Path(__file__).resolve().parents[2] / "config"
CONFIGS = sorted(path for path in FILES.rglob("*.yaml") if path.parent.name != "recipes")
NAMED = {path.stem: path for path in FILES.rglob("*.yaml")}
RECIPES = sorted(path.stem for path in FILES.glob("recipes/*.yaml"))


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """The folders that the config files name, and the working folder in which they are."""
    make_model(tmp_path / "models/foreign")
    make_model(tmp_path / "data/writer", is_encoder_decoder=True, vocab_size=9, d_model=512)
    texts = [
        f"Sentence {row} is here. Another one of seven words follows it." for row in range(300)
    ]
    passages = {f"p{row}": text for row, text in enumerate(texts)}
    # more queries than in a batch, and than the pseudo-queries of dev
    queries = {f"q{number}": "a query" for number in range(250)}
    splits = ("train", "dev", "test", "test_long")
    judged = dict.fromkeys(splits, [(query, "p1", 1) for query in queries])
    for collection in ("mine", "medquad", "boolq", "cisi", "squad"):
        folder = tmp_path / "data" / collection
        write_beir(folder, passages, queries, **judged)
        (folder / "notes.txt").write_text("\n\n".join(texts))
    monkeypatch.chdir(tmp_path)


def written(folder, text):
    path = folder / "own.yaml"
    path.write_text(text)
    return path


ONE = {"s": {"a": {"k": 1, "l": 3}, "b": {}}, "seed": 3, "list": [1]}


@pytest.mark.parametrize(
    ("above", "merged"),
    [
        ({"s": {"a": {"k": 2}}, "list": [2]}, {"s": {"a": {"k": 2, "l": 3}, "b": {}}, "seed": 3, "list": [2]}),
        ({"s": {"a": None}}, {"s": {"b": {}}, "seed": 3, "list": [1]}),
        ({"s": {"c": None}}, {"s": {**ONE["s"], "c": None}, "seed": 3, "list": [1]}),  # a mistake
    ],
)  # fmt: skip
def test_layers_are_merged_key_by_key_and_null_removes_what_is_there(above, merged):
    before = copy.deepcopy(ONE)
    assert lay(ONE, above) == merged and before == ONE


def test_a_standalone_file_omits_the_default(tmp_path):
    default = written(tmp_path, "seed: 3\nsystems: {a: {kind: bm25}, c: {kind: bm25}}\n")
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("systems: {a: null}\nstandalone: false\n")
    rest = {"seed": 3, "systems": {"c": {"kind": "bm25"}}, "standalone": False}
    assert gather(default, [overlay]) == rest
    alone = gather(default, [overlay], {"standalone": True, "seed": 4, "systems": None})
    assert load(alone) == Config(seed=(4,))


def test_numbers_of_the_command_line(tmp_path):
    """Snakemake passes those in lists and mappings as text."""
    typed = {"seed": ["7", "8"], "importance": {"ami": {"window": "3"}}}
    config = load(gather(written(tmp_path, "seed: 7\n"), overrides=typed))
    assert (config.seed, config.importance["ami"].window) == ((7, 8), 3)


# --- shipped files --------------------------------------------------------------------------------

OVERLAID_ON = {
    "evidence-squad": ["evidence"], "evidence-wikipedia": ["evidence"],
    "evidence-medquad": ["evidence"], "evidence-checkpoint": ["evidence"],
    "objectives-wikipedia": ["objectives"],
    **{f"objectives-labels-{name}": ["objectives-labels"] for name in ("medquad", "squad", "wikipedia")},
    **{f"engineer-{name}": ["engineer"] for name in ("boolq", "medquad", "squad", "wikipedia")},
    "unlabelled-minilm": ["unlabelled"], "doct5query": ["systems"],
    "paper-ablations": ["paper"],
} | dict.fromkeys(RECIPES, ["paper"])  # fmt: skip


def load_file(name):
    """A config file as a run would take it: overlaid on the default, and perhaps others."""
    if name == "config":
        return load(read_yaml(NAMED[name]))
    paths = [NAMED[each] for each in (*OVERLAID_ON.get(name, []), name)]
    return load(gather(NAMED["config"], paths))


@pytest.mark.parametrize("name", [path.stem for path in CONFIGS])
def test_a_shipped_config_loads(name, own_files):
    config = load_file(name)
    assert systems.systems(config).keys() == config.systems.keys()


def test_smoke_default_and_paper_run_the_same_rules():
    configs = [load_file(name).values() for name in ("smoke", "config", "paper")]
    smoke, default, paper = ({rule for rule, _ in plan(values)} for values in configs)
    assert smoke == default == paper


def test_the_paper_s_values_are_the_schema_s_defaults():
    """What paper.yaml states about pre-training and training, but for names and GPUs; 14 sets of
    BEIR.
    """
    assert load({}) == Config() and Config().seed == (42,) and Importance().window == 4
    paper = read_yaml(NAMED["paper"])
    for kinds, section in (([Mae], "pretraining"), ([Reranker, Dense], "training")):
        defaults = {key: rule.default for kind in kinds for key, rule in rules_of(kind).items()}
        for key, value in paper[section].items():
            if key not in ("start", "collection", "importance", "take_step", "chunk"):
                assert defaults[key] == value, key
    assert paper["pretraining"]["take_step"] == 80_000
    names = [name for name in paper["evaluation"]["collections"] if name != "msmarco"]
    assert len({name.partition("-")[0] if "cqadup" in name else name for name in names}) == 14


def test_the_page_of_settings_is_up_to_date(monkeypatch):
    monkeypatch.undo()  # without the tests' own source
    text = (FILES / "README.md").read_text(encoding="utf-8")
    page = runpy.run_path(str(FILES.parent / "docs/settings.py"))["page"]
    assert page(text) == text, "run: make settings"


def layered(*names):
    """The paper's config with some recipes on it."""
    return load(gather(NAMED["config"], [NAMED[name] for name in ("paper", *names)]))


def test_recipes_add_their_entries_to_the_paper_s_and_are_planned_together():
    paper, together = layered(), layered(*RECIPES)
    jobs = plan(together.values(), gpus=8).keys()
    for name in RECIPES:
        config = layered(name)
        for section in SECTIONS:
            ours, theirs = getattr(paper, section), getattr(config, section)
            assert ours.items() <= theirs.items() <= getattr(together, section).items(), name
        trained = {("train", f"{name}-stage{number}") for number in (1, 2)}
        assert {("pretrain", name), *trained} <= jobs
        first, second = (config.systems[f"{name}-stage{number}"] for number in (1, 2))
        assert (first.encoder, first.negatives) == (name, "bm25")
        assert (second.encoder, second.negatives) == (name, f"{name}-stage1")
