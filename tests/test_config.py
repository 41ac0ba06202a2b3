"""A config is refused before any job starts, in one sentence that names the key, the value and what is allowed."""

import dataclasses
import math
from pathlib import Path

import pytest

from cdmae import checks, config
from cdmae.config import Config, Encoder, Importance, Stage, Start, concepts, gather, load, merge, read_yaml, stack
from cdmae.datasets.ir_datasets import catalogue
from cdmae.errors import InputError
from cdmae.graph import Graph
from cdmae.reference import page
from cdmae.settings import parse

FILES = Path(__file__).resolve().parent.parent / "config"
SCHEMA = [Start, Importance, Encoder, Stage, config.System, config.Evaluation, config.Report]


def put(values, path, value):
    *parents, last = path.split(".")
    for key in parents:
        values = values[key]
    values[last] = value


def refusal(values):
    with pytest.raises(InputError) as caught:
        load(values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_valid_config(values):
    found = load(values)
    assert found.encoders["cdmae"].importance == "ami"
    assert found.stages["rerank"].rdrop == 0.5
    assert found.stages["stage1"].epochs == 1.0
    assert found.collections["docs"].values() == {"source": "toy", "size": 3}
    assert found.evaluation.collections == {"docs": ("dev", "test"), "other": ("test",)}


def test_nothing_has_the_defaults_of_the_paper():
    assert load({}) == Config()
    encoder = parse(Encoder, {"start": "s"})
    assert (encoder.encoder_ratio, encoder.decoder_ratio, encoder.sigma) == (0.3, 0.5, 1.0)
    assert (encoder.learning_rate, encoder.batch, encoder.epochs, encoder.warmup_ratio) == (3e-4, 2048, 20, 0.1)
    stage = parse(Stage, {"kind": "retriever", "collection": "c"})
    assert (stage.queries, stage.group, stage.epochs, stage.learning_rate, stage.alpha) == (64, 32, 3, 2e-5, 0.2)
    assert Importance().window == 4
    assert Config().seed == 42


def test_written_out_values_load_to_the_same_config(values):
    found = load(values)
    again = load(found.values())
    for name in ("collections", "starts", "importance", "encoders", "stages", "systems", "evaluation", "report"):
        assert getattr(again, name) == getattr(found, name)


def test_the_seed_is_the_config_s_unless_given(values):
    values["encoders"]["mae"]["seed"] = 3
    found = load(values)
    assert (found.encoders["mae"].seed, found.encoders["cdmae"].seed, found.stages["stage1"].seed) == (3, 7, 7)


@pytest.mark.parametrize("cls", SCHEMA, ids=lambda cls: cls.__name__)
def test_every_setting_says_what_it_means(cls):
    assert all(each.metadata.get("meaning") for each in dataclasses.fields(cls))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("encodrs", {}, "encodrs is not a setting; did you mean encoders?"),
        ("seed", "x", "seed is x; allowed: a whole number from 0"),
        ("seed", -1, "seed is -1; allowed: a whole number from 0"),
        ("results", "", 'results is ""; allowed: a folder without spaces, wildcards and control'),
        ("results", "a b", "results is a b; allowed: a folder without spaces, wildcards and"),
        ("results", "a\0b", 'results is "a\\u0000b"; allowed: a folder without spaces, wildcards and control'),
        ("results", "a/" + 256 * "b", f"results is a/{55 * 'b'}...; allowed: up to 255 bytes between two slashes"),
        ("results", 128 * "é", f"results is {57 * 'é'}...; allowed: up to 255 bytes between two slashes"),
        ("results", 5, "results is 5; allowed: text"),
        ("systems", ["bm25"], 'systems is ["bm25"]; allowed: a mapping of keys to values'),
        ("systems.x", None, "systems.x is empty; allowed: a mapping of its settings"),
        ("systems.a.b", {"kind": "bm25"}, None),
        ("pretraining.windw", 3, "pretraining.windw is not a setting; allowed: start"),
        ("pretraining.sigma", -1, "pretraining.sigma is -1; allowed: a number from 0 to infinity"),
        ("training.bach", 3, "training.bach is not a setting; "),
        ("collections.docs.source", "toi", "collections.docs.source is toi; did you mean toy?"),
        ("collections.docs.source", 5, "collections.docs.source is 5; allowed: "),
        ("collections.docs.size", 0, "collections.docs.size is 0; allowed: a whole number from 1"),
        ("collections.docs.size", 13, "collections.docs: size is 13; allowed: no unlucky number"),
        ("collections.docs.size", 14, "collections.docs: size is 14; allowed: less"),
        ("collections.docs.sise", 1, "collections.docs.sise is not a setting; did you mean size?"),
        ("starts.small.collection", "dogs", "starts.small.collection is dogs; did you mean docs?"),
        ("starts.small.collection", "", "starts.small has neither checkpoint nor collection"),
        ("starts.small.checkpoint", "bert", "starts.small.collection does not go with checkpoint"),
        ("starts.small.heads", 3, "starts.small: hidden is 8 and heads is 3; allowed: heads that divide hidden"),
        ("starts.small.positions", 100, "encoders.mae.max_length is 150; allowed: up to 100, starts.small.positions"),
        ("starts.small.positions", 150, "stages.rerank.max_length is 192; allowed: up to 150"),
        ("starts.big", {"checkpoint": "./nowhere"}, "starts.big.checkpoint is ./nowhere; allowed: a folder"),
        ("starts.big", {"checkpoint": "a b"}, "starts.big.checkpoint is a b; allowed: a folder that exists"),
        ("importance.ami.window", 1, "importance.ami.window is 1; allowed: a whole number from 2 to 8"),
        ("importance.ami.pmi", "max", "importance.ami.pmi is max; allowed: min, product"),
        ("encoders.mae.start", "smal", "encoders.mae.start is smal; did you mean small?"),
        ("encoders.mae.objective", "may", "encoders.mae.objective is may; did you mean mae?"),
        ("encoders.mae.decoder_masking", "unifrm", "encoders.mae.decoder_masking is unifrm; did you mean uniform?"),
        ("encoders.mae.importance", "ami", "encoders.mae.importance is ami, but no masking is importance or pmi_span"),
        ("encoders.cdmae.importance", "mi", "encoders.cdmae.importance is mi; did you mean ami?"),
        ("encoders.cdmae.importance", "", "encoders.cdmae.importance is missing: the name of an entry of importance"),
        ("encoders.cdmae.collection", "", "encoders.cdmae.collection is missing: the name of an entry of collections"),
        ("encoders.mae.objective", "bowdpr", "encoders.mae.decoder_masking does not go with objective bowdpr; of the "
         "settings that only some objectives know it takes bag_weight"),
        ("encoders.mae.early_layers", 1, "encoders.mae.early_layers does not go with objective mae; of the settings "
         "that only some objectives know it takes decoder_masking, decoder_ratio, decoder_layers, projection"),
        ("encoders.low", {"objective": "simlm", "encoder_ratio": 0.6}, "encoders.low.decoder_ratio is 0.5; allowed "
         "with objective simlm, whose decoder masks all that the encoder masks: from encoder_ratio, 0.6"),
        ("encoders.bow", {"objective": "bowdpr", "importance": "ami"}, "encoders.bow.importance is ami, but no "),
        ("encoders.spans", {"decoder_masking": "pmi_span", "importance": ""}, "encoders.spans.importance is missing"),
        ("encoders.none.steps", 5, "encoders.none.steps does not go with objective none; allowed: start, objective"),
        ("encoders.mae.random_share", 0.3, "encoders.mae: mask_share is 0.8 and random_share is 0.3; allowed: a sum"),
        ("encoders.mae.take_step", 11, "encoders.mae: take_step is 11; allowed: up to steps, 10"),
        ("encoders.mae.encoder_ratio", 1.0, "encoders.mae.encoder_ratio is 1.0; allowed: a number above 0 to 0.95"),
        ("encoders.mae.learning_rate", math.inf, "encoders.mae.learning_rate is Infinity; allowed"),
        ("stages.stage1.kind", "retriver", "stages.stage1.kind is retriver; did you mean retriever?"),
        ("stages.stage1.collection", "x", "stages.stage1.collection is x; allowed: docs, other"),
        ("stages.stage1.split", "trane", "stages.stage1.split is trane; did you mean train?"),
        ("stages.stage1.split", "raw", "stages.stage1.split is raw, which has no judgments; allowed: train, dev, test"),
        ("stages.stage1.group", 62, "stages.stage1: group is 62; allowed: up to 61, one positive, depth 50"),
        ("stages.stage1.queries", 65, "stages.stage1.queries is 65; allowed: up to 64, the queries of collections."
         "docs, split train, that have a relevant passage"),
        ("training.queries", 65, "stages.stage1.queries is 65; allowed: up to 64, "),
        ("stages.stage1.rdrop", 1, "stages.stage1.rdrop is not a setting of a retriever; it takes no max_length"),
        ("stages.rerank.in_batch", True, "stages.rerank.in_batch is not a setting of a reranker"),
        ("stages.rerank.forward_factor", 3, "stages.rerank: group is 4 and forward_factor is 3; allowed: a factor"),
        ("stages.rerank.forward_factor", 4, "stages.rerank: group is 4 and forward_factor is 4; allowed: a factor"),
        ("systems.one.kind", "dense", "systems.one.kind is dense; allowed: bm25, retriever, reranker, fusion"),
        ("systems.one.encoder", "cdma", "systems.one.encoder is cdma; did you mean cdmae?"),
        ("systems.one.encoder", "", "systems.one.encoder is missing; kind retriever needs encoder, stage, negatives"),
        ("systems.one.stage", "stag1", "systems.one.stage is stag1; did you mean stage1?"),
        ("systems.one.stage", "rerank", "systems.one.stage is rerank, of kind reranker; allowed: a stage of"),
        ("systems.one.negatives", "one", "systems.one.negatives is one: a system cannot be made from its own run"),
        ("systems.one.negatives", "bm52", "systems.one.negatives is bm52; did you mean bm25?"),
        ("systems.one.negatives", "fused", "systems.one.negatives is fused, of kind fusion; allowed: a system of kind"),
        ("systems.one.k1", 1.0, "systems.one.k1 does not go with kind retriever; allowed: kind, encoder, stage"),
        ("systems.three.teacher", "one", "systems.three.teacher is one, of kind retriever; allowed: a system"),
        ("systems.cross.teacher", "one", "systems.cross.teacher does not go with kind reranker"),
        ("systems.cross.reranks", "", "systems.cross.reranks is missing; kind reranker needs"),
        ("systems.cross.reranks", "cross", "systems.cross.reranks is cross: a system cannot be made from its own run"),
        ("systems.cross.depth", 1001, "systems.cross.depth is 1001; allowed: up to evaluation.depth, 1000"),
        ("systems.fused.of", ["one"], 'systems.fused.of is ["one"]; allowed: at least two systems, each once'),
        ("systems.fused.of", ["one", "one"], 'systems.fused.of is ["one", "one"]; allowed: at least two'),
        ("systems.fused.of", ["one", "on"], "systems.fused.of[1] is on; did you mean one?"),
        ("systems.fused.of", "one", "systems.fused.of is one; allowed: a list"),
        ("systems.foreign.model", "", "systems.foreign.model is missing; kind external needs model"),
        ("systems.foreign.model", "/nowhere", "systems.foreign.model is /nowhere; allowed: a folder that exists"),
        ("evaluation.collections.docs", [], "evaluation.collections.docs is []; allowed: at least one split"),
        ("evaluation.collections.docs", ["dev", "dev"], 'evaluation.collections.docs is ["dev", "dev"]; allowed'),
        ("evaluation.collections.docs", ["tests"], "evaluation.collections.docs is tests; did you mean test?"),
        ("evaluation.collections.dogs", ["test"], "evaluation.collections.dogs: not a collection; did you mean docs?"),
        ("evaluation.collections", {}, "evaluation.collections is empty, but there are systems"),
        ("evaluation.measures", ["MRR@10"], "evaluation.measures has MRR@10; allowed: RR, R, P, AP, nDCG or Success"),
        ("evaluation.measures", ["RR@10", "R@50", "RR@10"], "evaluation.measures has RR@10 twice; allowed: each once"),
        ("evaluation.measures", [], "evaluation.measures is []; allowed: at least one measure"),
        ("evaluation.depth", 100, "evaluation.depth is 100; allowed: from 1000, the depth of R@1000"),
        ("evaluation.baseline", "bm", "evaluation.baseline is bm; did you mean bm25?"),
        ("report", {"titel": "x"}, "report.titel is not a setting; did you mean title?"),
    ],
)  # fmt: skip
def test_refused(values, path, value, sentence):
    if sentence is None:
        values["systems"]["a.b"] = {"kind": "bm25"}
        sentence = "systems has the name a.b; allowed: letters, digits, - and _"
    else:
        put(values, path, value)
    assert refusal(values).startswith(sentence)


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a b", "ä", "a\n"])
def test_names_that_cannot_be_part_of_a_path(values, name):
    values["encoders"][name] = {}
    with pytest.raises(InputError, match="encoders has the name .*; allowed: letters, digits"):
        load(values)


def test_names_that_file_systems_do_not_take(values):
    values["encoders"][64 * "x"] = {}
    load(values)
    values["encoders"][65 * "x"] = {}
    assert refusal(values) == f"encoders has the name {57 * 'x'}... of 65 letters; allowed: up to 64"


@pytest.mark.parametrize("folder", checks.SOURCES)
def test_results_do_not_lie_among_the_code(values, folder, monkeypatch):
    monkeypatch.chdir(checks.ROOT)
    for results in (folder, f"{folder}/own", f"results/../{folder}", str(checks.ROOT / folder)):
        values["results"] = results
        assert f", inside {folder} of the checkout; allowed: a folder of its own" in refusal(values)
    values["results"] = f"{folder}-own"
    assert load(values)


def test_every_folder_of_the_code_is_kept_from_results():
    ignored = [line.strip("/") for line in (checks.ROOT / ".gitignore").read_text().splitlines()]
    found = {path.name for path in checks.ROOT.iterdir() if path.is_dir() and not path.is_symlink()}
    assert not {each for each in found - set(checks.SOURCES) if not any(map(Path(each).match, ignored))}


@pytest.mark.parametrize("split", ["", "a/b", "a b", "-a"])
def test_splits_that_cannot_be_part_of_a_path(values, toy, split):
    toy.splits = lambda settings: {"train": True, "dev": True, "dev.small": True, split: True}
    values["evaluation"]["collections"] = {"docs": ["dev", "dev.small"]}
    load(values)
    values["evaluation"]["collections"]["docs"].append(split)
    assert refusal(values).startswith(f"evaluation.collections.docs is {split or chr(34) * 2}, which cannot be part of")


def test_a_circle_of_systems_is_printed(values):
    retriever = {"kind": "retriever", "encoder": "mae", "stage": "stage1"}
    values["systems"] |= {
        "a": {**retriever, "negatives": "b"},
        "b": {**retriever, "negatives": "bm25", "teacher": "c"},
        "c": {"kind": "reranker", "encoder": "mae", "stage": "rerank", "negatives": "one", "reranks": "a"},
    }
    assert refusal(values) == "systems need each other in a circle: a -> b -> c -> a; allowed: chains that end"


def test_defaults_that_do_not_apply_are_left_out(values):
    found = load(values)
    assert found.encoders["mae"].importance == ""
    assert set(found.encoders["none"].values()) == {"start", "objective", "seed"}
    assert "rdrop" not in found.stages["stage1"].values()
    assert "alpha" not in found.stages["stage1"].values(teacher=False)
    assert found.stages["stage3"].values()["alpha"] == 0.3
    assert "in_batch" not in found.stages["rerank"].values()


def test_objectives_take_their_own_settings_only(values):
    """Inherited from `pretraining` they are left out, so that touching them restarts nothing else."""
    values["pretraining"] |= {"decoder_layers": 1, "decoder_masking": "importance", "bag_weight": 0.5}
    for name in concepts("objectives"):
        values["encoders"][name] = {"objective": name}
    found = load(values)
    only = {key for keys in checks.OBJECTIVE_ONLY.values() for key in keys}
    for name in concepts("objectives"):
        encoder = found.encoders[name]
        assert set(encoder.values()) & only == set(checks.OBJECTIVE_ONLY[name])
        aware = "decoder_masking" in checks.OBJECTIVE_ONLY[name]
        assert encoder.reads_importance == encoder.masked_by_importance == aware
        assert encoder.importance == ("ami" if aware else "")
        assert encoder.maskings == ["whole_word", "importance"][: 1 + aware]
    assert found.encoders["bowdpr"].bag_weight == 0.5
    assert found.encoders["none"].maskings == []


def test_collocations_come_with_the_importance(values):
    values["encoders"]["spans"] = {"decoder_masking": "pmi_span"}
    found = load(values)
    assert found.encoders["spans"].reads_importance
    assert not found.encoders["spans"].masked_by_importance
    job = Graph(found).job("pretrain", "spans")
    assert job.inputs["importance"] == "out/importance/ami/small/docs"
    assert job.plugins == ["cdmae.objectives.mae", "cdmae.masking.whole_word", "cdmae.masking.pmi_span"]
    values["importance"]["ami"]["unit"] = "wordpiece"
    assert refusal(values) == (
        "encoders.spans.importance is ami, whose unit is wordpiece; allowed for pmi_span: one of words"
    )


def test_a_checkpoint_of_one_s_own_is_a_folder(values, tmp_path):
    values["starts"]["own"] = {"checkpoint": str(tmp_path)}
    assert load(values).starts["own"].values() == {"checkpoint": str(tmp_path)}


# --- files -----------------------------------------------------------------------------------------------------------


def written(folder, text):
    path = folder / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_config_file_is_read(tmp_path):
    text = "base: &base {rate: 1}\nother:\n  <<: *base\n  rate: 2  # over the anchor\n"
    assert read_yaml(written(tmp_path, text)) == {"base": {"rate": 1}, "other": {"rate": 2}}
    assert read_yaml(written(tmp_path, "# nothing\n")) == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed: 1\nseed: 2\n", "own.yaml, line 2: the key seed is there twice"),
        ("systems:\n  a: {kind: bm25}\n  b: {}\n  a: {}\n", "own.yaml, line 4: the key a is there twice"),
        (b"title: caf\xe9\n", "own.yaml is not UTF-8 text (byte 10); save it as UTF-8"),
        ("a: [1\n", "own.yaml, line 2: not YAML ("),
        ("a:\n\tb: 1\n", "own.yaml, line 2: not YAML ("),
        ("- a\n", 'own.yaml is ["a"]; allowed: a mapping of keys to values'),
        ("1: a\n", "1 is not a text key; put it in quotation marks"),
        ("a: " + 5000 * "[", "own.yaml is nested too deeply; allowed: entries with settings"),
    ],
)
def test_a_malformed_config_file(tmp_path, text, sentence):
    with pytest.raises(InputError) as caught:
        read_yaml(written(tmp_path, text))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_config_file(tmp_path):
    with pytest.raises(InputError, match="the config file .*none.yaml cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_an_overlay_is_merged_key_by_key():
    default = {"seed": 1, "systems": {"a": {"kind": "bm25", "b": 0.4}, "c": {"kind": "bm25"}}, "evaluation": {"m": [1]}}
    overlay = {"systems": {"a": {"b": 0.5}, "c": None, "d": {"kind": "x"}}, "evaluation": {"m": [2]}}
    merged = merge(default, overlay)
    assert merged == {
        "seed": 1, "systems": {"a": {"kind": "bm25", "b": 0.5}, "d": {"kind": "x"}}, "evaluation": {"m": [2]},
    }  # fmt: skip
    assert default["systems"]["a"]["b"] == 0.4


def test_standalone_leaves_the_default_out(tmp_path):
    default, overlay = written(tmp_path, "seed: 1\nresults: there\n"), {"standalone": True, "seed": 2}
    assert gather(default, [], {"seed": 2}) == {"seed": 2, "results": "there"}
    assert gather(default, [], overlay) == overlay
    assert load(gather(default, [], overlay)) == Config(seed=2)


def test_standalone_is_true_or_false(values):
    values["standalone"] = "yes"
    assert refusal(values) == "standalone is yes; allowed: true or false"


def test_null_in_a_later_overlay_removes_what_an_earlier_one_changed():
    default = {"systems": {"a": {"depth": 1}, "b": {}}}
    stacked = stack({"systems": {"a": {"depth": 2}}}, {"systems": {"a": None, "c": {}}})
    assert merge(default, stacked) == {"systems": {"b": {}, "c": {}}}


def test_overlays_are_checked_for_what_the_engine_overlooks(tmp_path):
    overlay = written(tmp_path, "seed: 1\nseed: 2\n")
    with pytest.raises(InputError, match="line 2: the key seed is there twice"):
        gather(FILES / "config.yaml", [overlay], {"seed": 2})


@pytest.mark.parametrize("path", sorted(FILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_config_files_that_come_along(path, tmp_path, monkeypatch):
    own = tmp_path / "data" / "mine"
    for name, text in {
        "corpus.jsonl": '{"_id": "p1", "title": "", "text": "a passage"}\n',
        "queries.jsonl": "".join(f'{{"_id": "q{number}", "text": "a query"}}\n' for number in range(100)),
        "qrels/train.tsv": "".join(f"q{number}\tp1\t1\n" for number in range(100)),  # more than in a batch
        "qrels/test.tsv": "q1\tp1\t1\n",
    }.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text)
    (tmp_path / "models" / "foreign").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)  # the templates name these folders
    assert Graph(load_file(path)).jobs()


def load_file(path):
    """A config file as a run would take it: over the default."""
    values = read_yaml(path)
    return load(values if path.stem == "config" else gather(FILES / "config.yaml", [path], values))


def test_published_triples_are_those_of_the_collection():
    def refused(name):
        values = read_yaml(FILES / "paper.yaml")
        values["systems"]["bm25"]["triples"] = name
        return refusal(values)

    values = read_yaml(FILES / "paper.yaml")
    values["systems"]["bm25"]["triples"] = "train/triples-v2"
    load(values)
    assert refused("train/triples-v3") == ("systems.bm25.triples is train/triples-v3; did you mean train/triples-v2?")
    values["collections"]["own"] = {"source": "pydocs", "size": "smoke"}
    values["training"]["collection"] = "own"
    assert refusal(values) == "systems.bm25.triples is train/triples-v2; collections.own has none; leave it out"


def test_smoke_default_and_paper_run_the_same_rules():
    smoke, default, paper = (
        {job.rule for job in Graph(load_file(FILES / f"{name}.yaml")).jobs()} for name in ("smoke", "config", "paper")
    )
    assert smoke == default == paper


def test_the_paper_s_steps_and_collections():
    """Appendix A, and 4.1: 20 epochs are 86,346 steps, of which step 80,000 is kept; 14 sets of BEIR."""
    paper = load_file(FILES / "paper.yaml")
    passages = catalogue.counts(paper.collections["msmarco"].settings.dataset, "docs")
    for name in ("mae", "cdmae"):
        encoder = paper.encoders[name]
        assert (math.ceil(encoder.epochs * passages / encoder.batch), encoder.take_step) == (86_346, 80_000)
    sets = {name.partition("-")[0] if name.startswith("cqadupstack") else name for name in paper.evaluation.collections}
    assert len(sets - {"msmarco"}) == 14
    stages = paper.stages
    assert (stages["stage3"].epochs, stages["stage3"].learning_rate) == (3, 2e-5)
    assert (stages["stage3-simlm"].epochs, stages["stage3-simlm"].learning_rate) == (6, 3e-5)
    assert (stages["reranker"].forward_factor, stages["reranker"].rdrop) == (4, 1.0)


@pytest.mark.parametrize("name", ["smoke", "full"])
def test_smaller_and_larger_runs_have_the_default_s_systems(name):
    default = read_yaml(FILES / "config.yaml")
    found = merge(default, read_yaml(FILES / f"{name}.yaml"))
    assert set(default["systems"]) <= set(found["systems"])
    assert found["encoders"] == default["encoders"]


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
    expected = (FILES / "README.md").read_text(encoding="utf-8")
    assert page() == expected, "run: python -m cdmae.reference > config/README.md"


def test_the_paper_s_values_are_the_schema_s_defaults(tmp_path):
    """Everything that paper.yaml states about pre-training and training, but for the names and its snapshot."""
    paper = read_yaml(FILES / "paper.yaml")
    for cls, section in ((Encoder, "pretraining"), (Stage, "training")):
        defaults = {each.name: each.default for each in dataclasses.fields(cls)}
        for key, value in paper[section].items():
            if key not in ("start", "collection", "importance", "take_step"):
                assert defaults[key] == value, key
