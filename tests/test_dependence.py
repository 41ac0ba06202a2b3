"""A changed setting re-runs what depends on it and nothing else: every setting of every config that comes along.

What should depend on a setting stands here once more, by the setting; the last test holds the encoders' part against
what their losses do.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from functools import cache, reduce
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from made_up import make_model
from tiny_objectives import V, language_model, learnt, vocabulary

from cdmae import collections, masking
from cdmae.collections.sources import ir_datasets, pydocs
from cdmae.config.load import gather, load, read_yaml, stack
from cdmae.config.schema import Encoder, Evaluation, Importance, Report, Stage, Start, System
from cdmae.errors import InputError
from cdmae.graph import Graph
from cdmae.pretraining.batches import Reader
from cdmae.pretraining.objectives import objective, objectives
from cdmae.tokens.store import Tokens

FILES = Path(__file__).resolve().parent.parent / "config"
RECIPES = [f"recipes/{path.stem}" for path in sorted((FILES / "recipes").glob("*.yaml"))]
CONFIGS = [
    ("config",), ("smoke",), ("full",), ("ablations",), ("objectives",), ("collection",), ("unlabelled",),
    ("paper", "paper-ablations"), ("paper", *RECIPES),
]  # fmt: skip
# Names are edges of the graph, which decide what is read and not how; the others decide what an entry is.
NAMES = {
    "start", "after", "collection", "importance", "snapshot_of", "encoder", "stage", "negatives", "teacher", "reranks",
    "of", "split", "collections", "baseline", "checkpoint", "generator", "model", "path", "part", "dataset", "splits",
    "title_file", "files", "kind", "objective", "triples",
}  # fmt: skip
FITTING = {
    "hidden": [256, 1536], "forward_factor": [1, 2, 4], "window": [2, 3], "measures": [["RR@10"]],
    "relevant": [{name: {split: 3}} for name, split in (("pydocs", "dev"), ("msmarco", "dev"), ("mine", "test"))],
    "lengths": [{name: 64} for name in ("pydocs", "msmarco", "mine")],
}  # fmt: skip
MASKED = ("decoder_ratio", "sigma", "max_length", "seed")  # what the masks that the report shows depend on
COUNTED = ("unit", "window")
DRAWN = ("depth", "group", "random_negatives", "epochs", "seed")  # what a teacher's candidates depend on
DECODED = ("mae", "retromae", "dupmae", "simlm", "cotmae", "master")  # objectives whose decoder has masks of its own
LAYERED = ("mae", "simlm", "cotmae", "master", "condenser", "cocondenser")
SOME_ENCODERS = {  # the settings that only some of them read
    "sigma": lambda encoder: "importance" in encoder.maskings,
    "epochs": lambda encoder: not encoder.steps,
    "decoder_masking": lambda encoder: encoder.objective in DECODED,
    "decoder_ratio": lambda encoder: encoder.objective in DECODED,
    "decoder_layers": lambda encoder: encoder.objective in LAYERED,
    "projection": lambda encoder: encoder.objective == "mae",
    "bag_weight": lambda encoder: encoder.objective in ("bowdpr", "dupmae"),
    "early_layers": lambda encoder: encoder.objective in ("condenser", "cocondenser"),
}
OF_KIND = {
    "retriever": ("query_length", "passage_length", "in_batch", "temperature", "alpha"),
    "reranker": ("max_length", "forward_factor", "rdrop"),
}


def reads(encoder, key):
    """Whether an encoder's training depends on one of the settings of encoders."""
    if encoder.objective == "none":
        return key in ("start", "objective", "seed")
    return SOME_ENCODERS.get(key, lambda _: True)(encoder)


# --- what should depend on a setting ----------------------------------------------------------------------------------


def of_encoder(graph, name, key):
    """The encoder's own jobs, and the cards that tell of it."""
    config, encoder = graph.config, graph.config.encoders[name]
    if not reads(encoder, key):
        return set()
    told = {each for each in config.encoders if name in (each, *graph.before(each))}
    found = {("release", each) for each in trained(graph) if config.systems[each].encoder in told}
    if name in graph.masked_by_importance() and key in MASKED:
        found.add(("masked_terms", name))
    return found if encoder.snapshot_of else {("pretrain", name), *found}


def of_stage(graph, name, key):
    """The trainings of the stage, their cards, their teachers' scores, and the runs that their negatives come from."""
    config, stage = graph.config, graph.config.stages[name]
    if key not in OF_KIND[stage.kind] and any(key in keys for keys in OF_KIND.values()):
        return set()
    found = set()
    for each in trained(graph):
        system = config.systems[each]
        if system.stage != name or (key == "alpha" and not system.teacher):
            continue
        found |= {(f"train_{system.kind}", each), ("release", each)}
        if system.teacher and key in DRAWN:
            found.add(("teacher", graph.taught_like(each)))
    return found


def of_start(graph, name, key):
    encoders = [each for each, encoder in graph.config.encoders.items() if encoder.start == name]
    found = {job for each in encoders for job in of_encoder(graph, each, "start") if job[0] != "masked_terms"}
    return found | ({("tokenizer", name)} if key == "vocabulary" else set())


def of_importance(graph, name, key):
    config = graph.config
    readers = [each for each, entry in config.encoders.items() if entry.importance == name]
    by = [each for each in readers if "importance" in config.encoders[each].maskings]
    rules = ("importance", "ngrams") if key in COUNTED else ("importance",)
    found = {(job.rule, job.name) for job in graph.jobs() if job.rule in rules and job.name.startswith(f"{name}/")}
    return found | {("release", each) for each in trained(graph) if config.systems[each].encoder in by}


def of_collection(graph, name, key):
    jobs = [job for job in graph.jobs() if job.rule == "release" and name in job.params["facts"]["collections"]]
    return {("collection", name), *((job.rule, job.name) for job in jobs)}


def of_system(graph, name, key):
    kind = graph.config.systems[name].kind
    rules = {"bm25": ("search_bm25", "mine_bm25"), "fusion": ("fuse",), "reranker": ("rerank", "release"),
             "external": ("vectors_external", "search_external", "mine_external")}[kind]  # fmt: skip
    return {(job.rule, job.name) for job in graph.jobs() if job.rule in rules and job.name.split("/")[0] == name}


def of_evaluation(graph, _, key):
    if key == "lengths":
        names = ("pydocs", "msmarco", "mine")
        vectors = ("vectors", "vectors_external", "mine", "mine_external")
        cut = {
            (job.rule, job.name) for job in graph.jobs() if job.rule in vectors and set(names) & {*job.name.split("/")}
        }
        return cut | {
            (job.rule, job.name) for job in graph.jobs() if job.rule in ("search", "search_external", "rerank")
        }
    graded = dict.fromkeys(("measures", "relevant"), ("measures",))
    rules = (graded | {"depth": ("search", "search_bm25", "search_external", "fuse")}).get(key, ())
    return {(job.rule, job.name) for job in graph.jobs() if job.rule in rules}


def of_report(graph, _, key):
    return {("masked_terms", each) for each in graph.masked_by_importance()} if key == "example" else set()


def trained(graph):
    return graph.systems("retriever", "reranker")


def deeper(before, after):
    """The runs over training queries whose depth follows from their users'."""
    depths = before.mined(), after.mined()
    rules = {"bm25": "mine_bm25", "retriever": "mine", "external": "mine_external"}
    return {
        (rules[before.config.systems[key[0]].kind], "/".join(key))
        for key in depths[0].keys() & depths[1].keys()
        if depths[0][key] != depths[1][key]
    }


# --- every setting of every config ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """The versions of the packages are looked up once: it takes up to half of the time of a plan."""
    for module, name in ((pydocs, "_installed"), (ir_datasets, "installed")):
        monkeypatch.setattr(module, name, cache(getattr(module, name)))


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """The folders that the templates name."""
    make_model(tmp_path / "models/foreign")
    (tmp_path / "data/mine/qrels").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "corpus.jsonl": '{"_id": "p1", "title": "", "text": "a passage"}\n',
        "queries.jsonl": "".join(f'{{"_id": "q{number}", "text": "a query"}}\n' for number in range(100)),
        "qrels/train.tsv": "".join(f"q{number}\tp1\t1\n" for number in range(100)),
        "qrels/test.tsv": "q1\tp1\t1\n",
    }.items():
        Path("data/mine", name).write_text(text)


def values_of(names):
    """The values of a config, once for one seed: replicas are entries like others."""
    overlays = [FILES / f"{name}.yaml" for name in names if name != "config"]
    values = gather(FILES / "config.yaml", [], reduce(stack, map(read_yaml, overlays), {}))
    return {key: value for key, value in values.items() if key != "seeds"}


def by_name(graph):
    return {(job.rule, job.name): job for job in graph.jobs()}


def others(cls, field, value):
    """Other values of a setting, the likeliest to fit first."""
    hint = get_type_hints(cls)[field.name]
    if field.name in FITTING:
        found = FITTING[field.name]
    elif get_origin(hint) is Literal:
        found = get_args(hint)
    elif isinstance(value, bool):
        found = [not value]
    elif isinstance(value, str):
        found = [f"{value} and more"]
    elif isinstance(value, float):
        found = [value / 2 or 0.5]
    else:
        found = [2 * value or 1, value + 1, value // 2]
    return [each for each in found if each != value]


def changed(values, place, cls, field, value):
    """The graph with another value of a setting; None where no other fits, as with the only one that is allowed."""
    for other in others(cls, field, value):
        edited = copy.deepcopy(values)
        (reduce(lambda inner, key: inner.setdefault(key, {}), place, edited))[field.name] = other
        try:
            return Graph(load(edited))
        except InputError:
            continue
    return None


def check(values, before, place, cls, entries, expected):
    """Change each setting at a place of the config, which decides it for some entries; compare what has changed."""
    jobs, tried = by_name(before), 0
    for field in dataclasses.fields(cls):
        if field.name in NAMES:
            continue
        having = [name for name, own in entries.items() if field.name not in own]
        current = reduce(dict.get, place, values).get(field.name, getattr(_first(before, place, having), field.name))
        after = changed(values, place, cls, field, current)
        if after is None:
            continue
        tried += 1
        now = by_name(after)
        found = {key for key in jobs.keys() & now.keys() if jobs[key].params != now[key].params} - {("report", "")}
        wanted = set().union(*(expected(before, name, field.name) for name in having)) & jobs.keys()
        if cls is Stage and field.name == "depth":
            wanted |= deeper(before, after)
        assert found == wanted & now.keys(), f"{'.'.join(place)}.{field.name}"
    return tried


def _first(graph, place, having):
    """The entry of a place, or the first that has its values from there."""
    section = {"pretraining": "encoders", "training": "stages"}.get(place[0], place[0])
    found = getattr(graph.config, section)
    if place[0] in ("evaluation", "report"):
        return found
    entry = found[having[0] if having else next(iter(found))]
    return entry.settings if place[0] == "collections" else entry


def defaulted(values, section, keys):
    """The entries of a section with the settings of their own, snapshots having those of their encoder."""
    found = {name: set(entry or {}) for name, entry in values.get(section, {}).items()}
    for name, entry in values.get(section, {}).items():
        if (entry or {}).get("snapshot_of"):
            found[name] |= found[entry["snapshot_of"]]
    return found


@pytest.mark.parametrize("names", CONFIGS, ids=lambda names: "+".join(names[:2]))
def test_a_setting_of_all_encoders_restarts_those_that_read_it(names):
    values = values_of(names)
    values.setdefault("pretraining", {})
    before = Graph(load(values))
    entries = defaulted(values, "encoders", Encoder)
    assert check(values, before, ("pretraining",), Encoder, entries, of_encoder) >= 10


@pytest.mark.parametrize("names", [("config",), ("paper", "paper-ablations"), ("collection",)], ids="+".join)
def test_a_setting_of_all_stages_restarts_those_that_read_it(names):
    values = values_of(names)
    before = Graph(load(values))
    assert check(values, before, ("training",), Stage, defaulted(values, "stages", Stage), of_stage) >= 15


@pytest.mark.parametrize("names", [("config",), ("unlabelled",), ("paper",)], ids="+".join)
def test_a_setting_of_anything_else_restarts_what_reads_it(names):
    """One entry of each kind: of a start, an importance, a source of collections, a kind of system."""
    values = values_of(names)
    before = Graph(load(values))
    config = before.config
    kinds = {system.kind: name for name, system in config.systems.items() if system.kind != "retriever"}
    sources = {entry.source: name for name, entry in config.collections.items()}
    places = [
        *((("starts", name), Start, of_start) for name, start in config.starts.items() if not start.checkpoint),
        *((("importance", name), Importance, of_importance) for name in list(config.importance)[:2]),
        *((("systems", name), System, of_system) for name in kinds.values()),
        *(
            (("collections", name), collections.source(source).Settings, of_collection)
            for source, name in sources.items()
        ),
        (("evaluation",), Evaluation, of_evaluation),
        (("report",), Report, of_report),
    ]
    for place, cls, expected in places:
        check(values, before, place, cls, {place[-1]: set()}, expected)


def test_another_seed_leaves_the_data_alone(values):
    values["encoders"]["own"] = {"seed": 3}
    before, after = by_name(Graph(load(values))), by_name(Graph(load(values | {"seed": 8})))
    rules = {rule for rule, name in before if before[rule, name].params != after[rule, name].params}
    assert rules == {"pretrain", "masked_terms", "train_retriever", "train_reranker", "teacher", "release", "report"}


def test_published_triples_do_not_depend_on_how_bm25_would_search():
    values = values_of(("paper",))
    values["systems"]["bm25"]["triples"] = "train/triples-v2"
    first = by_name(Graph(load(values)))
    values["systems"]["bm25"]["k1"] = 0.82
    second = by_name(Graph(load(values)))
    assert {key for key in first if first[key].params != second[key].params} == {
        ("search_bm25", "bm25"),
        ("report", ""),
    }


def test_collocations_are_read_from_the_counts_and_not_from_the_importance(values):
    """So that neither `pmi` nor `edges` trains a `pmi_span` again; beside importance-aware masks both matter."""
    values["encoders"] |= {
        "spans": {"decoder_masking": "pmi_span"},
        "both": {"encoder_masking": "pmi_span", "decoder_masking": "importance"},
    }
    jobs = {name: Graph(load(values)).job("pretrain", name) for name in ("spans", "both", "mae")}
    assert jobs["spans"].inputs["importance"] == "out/ngrams/ami/small/docs"
    assert jobs["both"].inputs["importance"] == "out/importance/ami/small/docs"
    assert "importance" not in jobs["mae"].inputs


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"sigma": 2.0}, "encoders.mae.sigma is 2.0, but no masking is importance; leave it out"),
        ({"epochs": 3}, "encoders.mae.epochs is 3, but steps is 10, and counts instead; leave it out"),
    ],
)
def test_what_has_no_effect_is_refused_where_it_is_written_out(values, edit, message):
    values["encoders"]["mae"] |= edit
    with pytest.raises(InputError) as caught:
        load(values)
    assert str(caught.value) == message


# --- what the losses say ----------------------------------------------------------------------------------------------

MODEL = language_model()
LENGTHS = (20, 35, 12, 38)
TRIED = {
    "encoder_masking": "span", "decoder_masking": "span", "encoder_ratio": 0.4, "decoder_ratio": 0.7, "sigma": 8.0,
    "mask_share": 0.1, "random_share": 0.5, "decoder_layers": 1, "projection": False, "bag_weight": 2.0,
    "early_layers": 2, "max_length": 16,
}  # fmt: skip


def loss_of(settings):
    """The first step's loss of a pre-training with these settings."""
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    rng = np.random.default_rng(0)
    tokens = Tokens(rng.integers(5, V, starts[-1]).astype(np.uint16), starts, starts[:-1], np.ones(V, bool))
    known = {"importance": rng.normal(size=starts[-1]).astype(np.float16)}
    chosen = objective(settings.objective)
    sides, sizes = chosen.sides(settings, "word"), {"batch": 4, "max_length": settings.max_length, "seed": 3}
    (step,) = Reader(tokens, known, vocabulary(), sides, **sizes).read(0, 1)
    network = chosen.create(copy.deepcopy(MODEL), settings, seed=5).eval()
    return learnt(network, step)[0].item()


@pytest.mark.parametrize("name", objectives())
def test_the_settings_that_count_are_those_that_change_the_loss(name):
    for encoder, decoder in itertools.permutations(("importance", "uniform")):
        masks = {"encoder_masking": encoder, "decoder_masking": decoder, "mask_share": 0.5, "max_length": 32}
        settings = Encoder(start="x", objective=name, **masks)
        first = loss_of(settings)
        told = settings.values().keys() - settings.unread.keys()
        for key, other in TRIED.items():
            differs = loss_of(dataclasses.replace(settings, **{key: other})) != first
            assert differs == (key in told) == reads(settings, key), (key, encoder, decoder)


@pytest.mark.parametrize("name", masking.names())
def test_only_masks_by_importance_know_of_noise(name):
    rng, shape = np.random.default_rng(0), (4, 60)
    batch = masking.Batch(
        rng.integers(5, V, shape).astype(np.int32), np.full(4, 60), np.arange(4), rng.random(shape) < 0.7,
        np.ones(shape, bool), rng.normal(size=shape).astype(np.float32),
    )  # fmt: skip
    sides = [masking.Side(name, 0.3, sigma) for sigma in (0.5, 4.0)]
    one, other = (masking.strategy(name).select(batch, side, masking.key(1, "decoder", 0)) for side in sides)
    assert np.array_equal(one, other) == (name != "importance")
