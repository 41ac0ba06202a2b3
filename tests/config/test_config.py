"""A config is refused before any job starts, in one sentence that names the key, the value and what
is allowed.
"""

import dataclasses
import json
import os
from functools import reduce
from pathlib import Path

import pytest
from made_up import make_model

from cdmae import collections
from cdmae.config import checks, systems
from cdmae.config.encoders import concepts
from cdmae.config.importance import Importance
from cdmae.config.kinds import AnySystem
from cdmae.config.load import load
from cdmae.config.objectives import OBJECTIVES, AnyEncoder
from cdmae.config.schema import SECTIONS, Collection, Config, Evaluation, Report
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import allowed, json_schema, kinds_of, parse, rules_of, whole


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
    config = load(values)
    assert config.encoders["cdmae"].importance == "ami"
    assert config.stages["rerank"].rdrop == 0.5
    assert config.stages["stage1"].epochs == 1.0
    assert config.collections["docs"].values() == {"source": "toy", "size": 3}
    assert config.evaluation.collections == {"docs": ("dev", "test"), "other": ("test",)}


def test_nothing_has_the_defaults_of_the_paper():
    assert load({}) == Config()
    encoder = parse(AnyEncoder, {"objective": "mae", "start": "s", "collection": "c"})
    assert (encoder.encoder_ratio, encoder.decoder_ratio, encoder.sigma) == (0.3, 0.5, 1.0)
    assert (encoder.learning_rate, encoder.batch, encoder.epochs, encoder.warmup_ratio) == (
        3e-4,
        2048,
        20,
        0.1,
    )
    stage = parse(AnyStage, {"kind": "retriever", "head": "dense", "collection": "c"})
    assert (stage.queries, stage.group, stage.epochs, stage.learning_rate, stage.alpha) == (
        64,
        32,
        3,
        2e-5,
        0.2,
    )
    assert Importance().window == 4
    assert Config().seed == 42


def test_written_out_values_load_to_the_same_config(values):
    config = load(values)
    again = load(config.values())
    for name in (
        "collections",
        "starts",
        "importance",
        "encoders",
        "stages",
        "systems",
        "evaluation",
        "report",
    ):
        assert getattr(again, name) == getattr(config, name)


def test_the_seed_is_the_config_s_unless_given(values):
    values["encoders"]["mae"]["seed"] = 3
    config = load(values)
    assert (
        config.encoders["mae"].seed,
        config.encoders["cdmae"].seed,
        config.stages["stage1"].seed,
    ) == (3, 7, 7)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("seed", -1, "seed is -1; allowed: a whole number from 0"),
        ("results", "", 'results is ""; allowed: a folder without spaces, wildcards, control'),
        ("results", "a<logs>", "results is a<logs>; allowed: a folder without spaces, wildcards, "),
        ("results", "a\tb", 'results is "a\\tb"; allowed: a folder without spaces, wildcards, control'),
        ("results", "-rf", "results is -rf; allowed: a folder whose path does not begin with - "),
        ("results", "./-rf", "results is ./-rf; allowed: a folder whose path does not begin with - "),
        ("results", "~nobody7/x", "results is ~nobody7/x; allowed: a folder whose path does not begin with - "),
        ("results", "r:x/y", "results is r:x/y; allowed: a path, not an address with a colon before the first slash"),
        ("results", "s3://bucket/x", "results is s3://bucket/x; allowed: a path, not an address with a colon"),
        ("report", {"example": "x" * 10_001}, "report.example has 10,001 characters; allowed: up to 10,000"),
        ("results", "/", "results is /, which contains the checkout; allowed: a folder of its own"),
        ("results", f"{__file__}/x", f"results is {__file__}/x, but {__file__} is a file; allowed: a folder"),
        ("results", "a/" + 256 * "b", f"results is a/{256 * 'b'}; allowed: up to 255 bytes between one slash"),
        ("results", 128 * "é", f"results is {57 * 'é'}...; allowed: up to 255 bytes between one slash"),
        ("systems", ["bm25"], 'systems is ["bm25"]; allowed: a mapping of keys to values'),
        ("report", {"licence": "My Own"}, "report.licence is My Own; allowed: a lower-case letter or digit, then "),
        ("report", {"languages": ["English"]}, "report.languages[0] is English; allowed: an ISO 639 code of two or "),
        ("systems.x", None, "systems.x is empty; allowed: a mapping of its settings"),
        ("pretraining.sigma", -1, "pretraining.sigma is -1; allowed: a number from 0 to infinity"),
        ("collections.docs.source", "toi", "collections.docs.source is toi; did you mean toy?"),
        ("collections.docs.source", 5, "collections.docs.source is 5; allowed: "),
        ("collections.docs.size", 13, "collections.docs: size is 13; allowed: no unlucky number"),
        ("collections.docs.size", 14, "collections.docs: size is 14; allowed: less"),
        ("starts.small.collection", "dogs", "starts.small.collection is dogs, which is not in collections; did you mean docs?"),
        ("starts.small.collection", "", "starts.small has neither checkpoint nor collection"),
        ("starts.small.checkpoint", "bert", "starts.small.collection has no effect with a checkpoint"),
        ("starts.small.heads", 3, "starts.small: hidden is 8 and heads is 3; allowed: heads that divide hidden"),
        ("starts.small.positions", 100, "encoders.mae.max_length is 150; allowed: up to 100, starts.small.positions"),
        ("starts.small.positions", 150, "stages.rerank.max_length is 192; allowed: up to 150"),
        ("starts.big", {"checkpoint": "./nowhere"}, "starts.big.checkpoint is ./nowhere, and /"),
        ("encoders.mae.importance", "ami", "encoders.mae.importance is ami, but no masking is importance or pmi_span"),
        ("encoders.mae.sigma", 2.0, "encoders.mae.sigma is 2.0, but no masking is importance; remove it"),
        ("encoders.mae.epochs", 3, "encoders.mae.epochs is 3.0, but steps is 10, which replaces it; remove it"),
        ("encoders.cdmae.importance", "", "encoders.cdmae.importance is missing; objective mae needs start, "),
        ("encoders.cdmae.collection", "", "encoders.cdmae.collection is missing; objective mae needs start, "),
        ("encoders.mae.objective", "bowdpr", "encoders.mae.decoder_masking is not a setting of objective bowdpr; of the "
         "settings that only some objectives have, it has pooling, bag_weight"),
        ("encoders.mae.early_layers", 1, "encoders.mae.early_layers is not a setting of objective mae; of the settings "
         "that only some objectives have, it has pooling, decoder_masking, decoder_ratio, decoder_layers, projection"),
        ("encoders.low", {"objective": "simlm", "encoder_ratio": 0.6}, "encoders.low.decoder_ratio is 0.5; allowed "
         "with objective simlm, whose decoder masks all that the encoder masks: from encoder_ratio, 0.6"),
        ("encoders.deep", {"objective": "simlm", "decoder_layers": 3}, "encoders.deep.decoder_layers is 3; allowed "
         "with objective simlm, whose decoder begins as a copy of the last layers: up to 2, the layers of starts.small"),
        ("encoders.early", {"objective": "condenser", "early_layers": 2}, "encoders.early.early_layers is 2; allowed: "
         "up to 1, starts.small has 2 layers"),
        ("encoders.none.steps", 5, "encoders.none.steps is not a setting of objective none; allowed: start, seed, obj"),
        ("encoders.mae.random_share", 0.3, "encoders.mae: mask_share is 0.8 and random_share is 0.3; allowed: a sum"),
        ("encoders.mae.take_step", 11, "encoders.mae.take_step is 11; allowed: up to 10, its steps"),
        ("stages.stage1.split", "trane", "stages.stage1.split is trane; did you mean train?"),
        ("stages.stage1.split", "raw", "stages.stage1.split is raw, which has no judgments; allowed: train, dev, test"),
        ("stages.stage1.group", 62, "stages.stage1: group is 62; allowed: up to 61, the sum of 1 positive, depth 50"),
        ("stages.stage1.queries", 65, "stages.stage1.queries is 65; allowed: up to 64, the queries of collections."
         "docs, split train, that have a relevant passage"),
        ("stages.stage1.rdrop", 1, "stages.stage1.rdrop is not a setting of kind retriever; of the "
         "settings that only some kinds have, it has query_length"),
        ("stages.stage1.train_queries", 63, "stages.stage1: train_queries is 63 and queries is 64; allowed: at least"),
        ("stages.rerank.forward_factor", 3, "stages.rerank: group is 4 and forward_factor is 3; allowed: a factor"),
        ("stages.rerank.forward_factor", 4, "stages.rerank: group is 4 and forward_factor is 4; allowed: a factor"),
        ("systems.one.encoder", "", "systems.one.encoder is missing; kind retriever needs encoder, stage, negatives"),
        ("systems.one.stage", "rerank", "systems.one.stage is rerank, of kind reranker; allowed: a stage of"),
        ("systems.one.negatives", "one", "systems depend on each other in a circle: one -> one; remove"),
        ("systems.three.negatives", "cross", "systems.three.negatives is cross, of kind reranker; allowed: a system"),
        ("systems.one.k1", 1.0, "systems.one.k1 is 1.0, but engine is exact; remove it"),
        ("systems.one.reranks", "bm25", "systems.one.reranks is not a setting of kind retriever; of the settings "
         "that only some kinds have, it has encoder, after, stage, negatives, teacher, once"),
        ("systems.three.teacher", "one", "stages.stage3.random_negatives is 10, but one, the teacher of systems.three, sc"),
        ("systems.three.after", "cross", "systems.three.after is cross, of kind reranker; allowed: a trained system"),
        ("systems.three.after", "three", "systems depend on each other in a circle: three -> three; remove"),
        ("report", {"methods": {"PAIR": "on"}}, "report.methods.PAIR is on, which is not a system; did you mean one?"),
        ("systems.cross.teacher", "bm25", "stages.rerank.random_negatives is 10, but bm25, the teacher of systems.cross, sc"),
        ("systems.cross.teacher", "cross", "systems depend on each other in a circle: cross -> cross; remove"),
        ("stages.stage3.distillation", "none", "systems.three.teacher is cross, but the stage stage3 has distillation "
         "none, denoise 0, labels 0 and margin_bins 0, so that the teacher has no effect; allowed: no teacher, o"),
        ("stages.stage1.labels", 0.9, "stages.stage1: labels is 0.9 and random_negatives is 10; allowed: random_negatives 0"),
        ("stages.stage3", {"kind": "retriever", "labels": 0.9, "random_negatives": 0},
         "stages.stage3.split is train, which has judgments; allowed with labels: a split without them"),
        ("stages.stage1", {"kind": "retriever", "labels": 0.9, "random_negatives": 0, "split": "raw"},
         "systems.one.stage is stage1, where labels is 0.9, which needs a teacher; allowed: a stage with labels 0"),
        ("stages.stage1.denoise", 0.5, "systems.one.stage is stage1, where denoise is 0.5, which needs a teacher; allo"),
        ("stages.stage1.margin_bins", 5, "systems.one.stage is stage1, where margin_bins is 5, which needs a teacher"),
        ("systems.three.in_batch_teacher", "cross", "systems.three.in_batch_teacher is cross, of kind reranker; allowed: a trained retr"),
        ("systems.three.in_batch_teacher", "three", "systems depend on each other in a circle: three -> three; remove"),
        ("systems.three.joint_teacher", "cross", "systems.three.joint_teacher is cross, but teacher is cross; allowed: one of the two"),
        ("systems.one.joint_teacher", "three", "systems.one.joint_teacher is three, of kind retriever; allowed: a trained reranker"),
        ("systems.cross.depth", 1001, "systems.cross.depth is 1001; allowed: up to evaluation.depth, 1000"),
        ("systems.fused.of", ["one"], 'systems.fused.of is ["one"]; allowed: at least two systems, each once'),
        ("systems.fused.of", ["one", "on"], "systems.fused.of[1] is on, which is not in systems; did you mean one?"),
        ("systems.fused.of", ["one", "fuse"], "systems.fused.of[1] is fuse, which is not in systems; allowed: bm25, one"),
        ("systems.fused.tuned_on", ["docs", "dve"], 'systems.fused.tuned_on is ["docs", "dve"]; allowed: one of ["do'),
        ("systems.foreign.model", "/nowhere", "systems.foreign.model is /nowhere, and /nowhere is not a folder; allow"),
        ("evaluation.collections.docs", ["dev", "dev"], 'evaluation.collections.docs is ["dev", "dev"]; allowed'),
        ("evaluation.collections.docs", ["tests"], "evaluation.collections.docs is tests; did you mean test?"),
        ("evaluation.collections.docs", ["train"], "evaluation.collections.docs names train, which stages.stage1 "),
        ("evaluation.collections.dogs", ["test"], "evaluation.collections.dogs is dogs, which is not in collections; did you mean docs?"),
        ("evaluation.collections", {}, "evaluation.collections names no split, but there are systems"),
        ("evaluation.measures", ["MRR@10"], "evaluation.measures has MRR@10; allowed: RR@10, the notation of ir_measures"),
        ("evaluation.measures", ["NumRet"], "evaluation.measures has NumRet; allowed: means that pytrec_eval, msm"),
        ("evaluation.measures", ["RR@10", "R@50", "RR@10"], "evaluation.measures has RR@10 twice; allowed: each once"),
        ("evaluation.measures", [], "evaluation.measures is []; allowed: at least one measure"),
        ("evaluation.depth", 100, "evaluation.depth is 100; allowed: from 1000, the depth of R@1000"),
        ("evaluation.baseline", "bm", "evaluation.baseline is bm, which is not in systems; did you mean bm25?"),
    ],
)  # fmt: skip
def test_refused(values, path, value, sentence):
    put(values, path, value)
    assert refusal(values).startswith(sentence)


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (["ami", "small"], "; allowed: an entry each of importance, starts and collections"),
        (["amy", "small", "docs"], ", and amy is not in importance; did you mean ami?"),
        (["ami", "smal", "docs"], ", and smal is not in starts; did you mean small?"),
        (["ami", "small", "made"], ", and made is made by keywords itself; allowed: a collection"),
    ],
)
def test_keywords_by_an_estimate_that_cannot_be_made_are_refused(values, estimate, words):
    of = values["collections"]["docs"]
    values["collections"]["made"] = {
        "source": "pseudo", "of": of, "method": "written", "keywords_of": estimate,
    }  # fmt: skip
    sentence = f"collections.made.keywords_of is {json.dumps(estimate)}{words}"
    assert refusal(values).startswith(sentence)


def test_a_fusion_gives_negatives_where_all_its_parts_search_training_queries(values):
    put(values, "systems.three.negatives", "mixed")
    put(values, "systems.mixed", {"kind": "fusion", "of": ["bm25", "one"]})
    config = load(values)
    train = ("docs", "train")
    depths = {
        ("mixed", *train): 20,
        ("bm25", *train): 1000,
        ("one", *train): 1000,
    }  # the parts as in the evaluation
    assert systems.mined(config).items() >= depths.items()
    put(values, "systems.mixed.of", ["bm25", "cross"])
    put(values, "systems.cross.negatives", "bm25")
    put(values, "systems.cross.reranks", "bm25")
    assert refusal(values) == (
        "systems.mixed.of[1] is cross, of kind reranker; allowed in a fusion that gives negatives: systems that search"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"distillation": "none", "denoise": 0.5},
        {"distillation": "none", "margin_bins": 10},
        {"denoise": 1.0, "margin_bins": 10},
    ],
)
def test_a_teacher_may_only_select_negatives(values, changed):
    values["stages"]["stage3"] |= changed
    assert load(values).systems["three"].teacher == "cross"
    put(values, "systems.three.in_batch_teacher", "one")
    assert load(values).systems["three"].teachers() == {"teacher": True, "in_batch_teacher": True}
    values["stages"]["stage3"] |= {"distillation": "kl", "denoise": 0.0, "in_batch": False}
    assert refusal(values).startswith("systems.three.in_batch_teacher is one, but the stage stage3")
    values["stages"]["stage3"] |= {"denoise": 0.5, "in_batch": False}
    assert refusal(values).startswith("stages.stage3: denoise is 0.5, but in_batch is false")


def test_a_joint_teacher_needs_a_loss_that_reads_it(values):
    values["systems"]["three"] |= {"teacher": "", "joint_teacher": "cross"}
    assert load(values).systems["three"].teachers() == {"teacher": True, "in_batch_teacher": False}
    for changed, words in (
        ({"distillation": "none"}, "the stage stage3 has distillation none; allowed: kl, margin_mse"),
        ({"head": "sparse", "pieces": "own", "target": "recall", "temperature": 1.0},
         "the stage stage3 has target recall; allowed: target ranking"),
    ):  # fmt: skip
        wrong = values | {
            "stages": values["stages"] | {"stage3": values["stages"]["stage3"] | changed}
        }
        assert refusal(wrong) == f"systems.three.joint_teacher is cross, but {words}"
    values["stages"]["stage3"]["denoise"] = 0.5
    assert "denoise is 0.5, which needs a teacher" in refusal(values)


def test_a_run_of_others_as_a_teacher_scores_all_that_is_drawn(values, tmp_path):
    file = tmp_path / "theirs.run"
    file.touch()
    values["systems"]["theirs"] = {
        "kind": "run",
        "runs": {"docs": {"dev": str(file), "test": str(file)}},
    }
    values["systems"]["theirs"]["runs"]["other"] = {"test": str(file)}
    put(values, "systems.three.teacher", "theirs")
    assert refusal(values).startswith(
        "stages.stage3.random_negatives is 10, but theirs, the teacher of systems.three, "
    )
    put(values, "stages.stage3.random_negatives", 0)
    assert refusal(values).startswith(
        "systems.theirs.runs lacks train of docs, on which it is mined or used as a teach"
    )
    values["systems"]["theirs"]["runs"]["docs"]["train"] = str(file)
    assert load(values)


def numbers():
    """Every number of a config: the class that has it, its key, what it lies in, and its rule."""
    sources = [collections.source(name).Settings for name in collections.names()]
    entries = [
        kind for section in SECTIONS.values() if section != Collection for kind in kinds_of(section)
    ]
    for cls in (*sources, Config, *entries, Evaluation, Report):
        schema = json_schema(cls)
        for key, rule in schema["properties"].items():
            around = []
            while rule.get("type") in ("array", "object"):
                around.append(rule["type"])
                rule = rule.get("items") or rule.get("additionalProperties")
                rule = whole(rule, schema) if isinstance(rule, dict) else {}
            if rule.get("type") in ("integer", "number"):
                yield pytest.param(
                    cls,
                    key,
                    around,
                    rule,
                    id=f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{key}",
                )


@pytest.mark.parametrize(("cls", "key", "around", "rule"), list(numbers()))
def test_a_number_in_quotation_marks_is_refused(cls, key, around, rule):
    value = rule.get("default", rule.get("minimum", 0.5))

    def within(value):
        return reduce(
            lambda inner, kind: [inner] if kind == "array" else {"x": inner},
            reversed(around),
            value,
        )

    path = key + "".join("[0]" if kind == "array" else ".x" for kind in around)
    said = f'{path} is "{value}"; allowed: {allowed(rule)}, without quotation marks'
    assert said in mistakes(cls, {key: within(str(value))})
    assert not [words for words in mistakes(cls, {key: within(value)}) if words.startswith(path)]


def mistakes(cls, values):
    """What is said of values; what else is required is missing."""
    with pytest.raises(InputError) as caught:
        parse(cls, {**values, "unknown": 0})
    return [str(mistake) for mistake in caught.value.several]


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a b", "ä", "a\n", 65 * "x"])
def test_names_that_cannot_be_part_of_a_path(values, name):
    values["encoders"][64 * "x"] = {}
    load(values)
    values["encoders"][name] = {}
    assert refusal(values).startswith("encoders has the name ")
    assert refusal(values).endswith("; allowed: up to 64 letters, digits, - and _")


def test_results_leave_room_for_the_paths_below_them(values):
    said = refusal(values | {"results": "/tmp" + 19 * f"/{'x' * 200}"})
    assert said.endswith("; allowed: up to 1,000 bytes, since the paths of results are longer")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a{b}.run", ": the path a{b}.run has {, which Snakemake would replace; rename the file"),
        ("-x.run", " is -x.run, which a job would read as an option; allowed: an absolute path"),
        ("a" * 5000, f" is {'a' * 57}..., which is not a file; allowed: a run in TREC format"),
        (
            "future.run",
            ": the modification time of future.run is in the future",
        ),
    ],
)
def test_files_that_a_job_could_not_read_are_refused_before(
    values, tmp_path, monkeypatch, name, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name[:100]).touch()
    if name == "future.run":
        os.utime(name, (4_000_000_000, 4_000_000_000))
    values["systems"]["theirs"] = {"kind": "run", "runs": {"docs": {"dev": name}}}
    assert refusal(values).startswith(f"systems.theirs.runs.docs.dev{sentence}")


def test_a_table_of_pairs_without_negatives_and_scores_is_no_run(values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"query": f"q{row}", "positive": "a passage"} for row in range(3)]
    table = Path("theirs.jsonl")
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = {"docs": {"dev": "theirs.jsonl", "test": "theirs.jsonl"}, "other": {}}
    runs["other"]["test"] = "theirs.jsonl"
    values["systems"]["theirs"] = {"kind": "run", "runs": runs}
    assert refusal(values).startswith(
        "systems.theirs.runs.docs.dev is theirs.jsonl, a table whose rows have neither negatives "
    )
    for more in ({"negative": "another"}, {"label": [2.5, 1], "negative_1": "another"}):
        table.write_text(json.dumps(rows[0]) + "\n" + json.dumps(rows[1] | more) + "\n")
        assert load(values)


@pytest.mark.parametrize(
    ("split", "fits"),
    [("dev.small", True), ("s" * 65, False), ("\u00e9" * 33, False), ("a b", False)],
)
def test_a_split_is_part_of_paths(split, fits):
    assert checks.fits_in_paths(split) == fits


@pytest.mark.parametrize("folder", checks.SOURCES)
def test_results_do_not_lie_among_the_code(values, folder, monkeypatch):
    monkeypatch.chdir(checks.ROOT)
    is_file = (checks.ROOT / folder).is_file()  # .git, in a further work tree of one repository
    said = (
        "is a file; allowed: a folder"
        if is_file
        else f", inside the folder {folder} of the checkout; allowed: a folder"
    )
    for results in (folder, f"{folder}/own", f"results/../{folder}", str(checks.ROOT / folder)):
        assert said in refusal(values | {"results": results})
    assert load(values | {"results": f"{folder}-own"})


def test_every_folder_of_the_code_is_kept_from_results():
    ignored = [line.strip("/") for line in (checks.ROOT / ".gitignore").read_text().splitlines()]
    folders = {
        path.name for path in checks.ROOT.iterdir() if path.is_dir() and not path.is_symlink()
    }
    assert not {
        name for name in folders - set(checks.SOURCES) if not any(map(Path(name).match, ignored))
    }


@pytest.mark.parametrize("split", ["", "a/b", "a b", "-a"])
def test_splits_that_cannot_be_part_of_a_path(values, toy, split):
    toy.Settings.judged = lambda settings: {
        "train": True,
        "dev": True,
        "dev.small": True,
        split: True,
    }
    values["evaluation"]["collections"] = {"docs": ["dev", "dev.small"]}
    load(values)
    values["evaluation"]["collections"]["docs"].append(split)
    assert refusal(values).startswith(
        f"evaluation.collections.docs is {split or chr(34) * 2}, which cannot be part of"
    )


def test_weights_of_another_network_or_head_are_no_initial_weights(values):
    values["systems"]["three"]["after"] = "one"
    load(values)
    values["stages"]["stage1"]["head"] = "sparse"
    assert refusal(values) == (
        "systems.three.after is one, whose stage stage1 has another head than stage3; allowed: a "
        "system with the same head and dimensions"
    )
    del values["stages"]["stage1"]["head"]
    values["starts"]["other"] = values["starts"]["small"] | {"hidden": 16}
    values["encoders"]["wide"] = {"start": "other", "objective": "none"}
    values["systems"]["one"]["encoder"] = "wide"
    assert refusal(values) == (
        "systems.three.after is one, whose initial weights are those of starts.other; allowed: "
        "the same start"
    )


def test_a_circle_of_systems_is_printed(values):
    retriever = {"kind": "retriever", "encoder": "mae", "stage": "stage1"}
    values["systems"] |= {
        "a": {**retriever, "negatives": "b"},
        "b": {**retriever, "negatives": "bm25", "teacher": "c"},
        "c": {
            "kind": "reranker",
            "encoder": "mae",
            "stage": "rerank",
            "negatives": "one",
            "reranks": "a",
        },
    }
    assert (
        refusal(values)
        == "systems depend on each other in a circle: a -> b -> c -> a; remove a reference"
    )


def test_defaults_that_do_not_apply_are_left_out(values):
    config = load(values)
    assert config.encoders["mae"].importance == ""
    assert set(config.encoders["none"].values()) == {"start", "objective", "seed"}
    stages = config.stages
    assert "rdrop" not in stages["stage1"].values() and "in_batch" not in stages["rerank"].values()
    assert stages["stage3"].values()["alpha"] == 0.3 and "alpha" not in stages["stage1"].values(
        teacher=False
    )


def test_objectives_take_their_own_settings_only(values):
    """Inherited from `pretraining` they are left out, so that touching them restarts nothing else."""
    values["pretraining"] |= {
        "decoder_layers": 1,
        "decoder_masking": "importance",
        "bag_weight": 0.5,
    }
    for name in concepts("pretraining/objectives"):
        values["encoders"][name] = {"objective": name}
    config = load(values)
    for name in concepts("pretraining/objectives"):
        encoder = config.encoders[name]
        left_out = set(rules_of(OBJECTIVES[name])) - set(encoder.values())
        assert left_out <= set(encoder.unread)
        assert bool(left_out) == (name == "contriever")  # which masks nothing
        assert encoder.objective == name
        aware = "decoder_masking" in encoder.values()
        assert encoder.reads_importance == encoder.masked_by_importance == aware
        assert encoder.importance == ("ami" if aware else "")
        if not left_out:
            assert encoder.maskings == ("whole_word", "importance")[: 1 + aware]
    assert config.encoders["bowdpr"].bag_weight == 0.5
    assert config.encoders["none"].maskings == ()


def test_a_given_generator_is_simlm_s_alone_and_needs_the_vocabulary_of_a_checkpoint(
    values, tmp_path
):
    """What can be known before a job: it may exist, the start is a checkpoint, both know as many
    word-pieces.
    """
    for name, size in (("start", 100), ("generator", 100), ("other", 99)):
        make_model(tmp_path / name, vocab_size=size)
    values["starts"]["given"] = {"checkpoint": f"{tmp_path}/start"}
    values["encoders"]["simlm"] = simlm = {
        "objective": "simlm",
        "start": "given",
        "generator": f"{tmp_path}/generator",
    }
    assert load(values).encoders["simlm"].values()["generator"] == f"{tmp_path}/generator"
    simlm["generator"] = f"{tmp_path}/other"
    assert refusal(values).endswith(
        "which has 99 word-pieces; allowed: a generator with the 100 of starts.given"
    )
    simlm["generator"] = "google/electra-base-generator"
    load(values)
    simlm["start"] = "small"
    assert refusal(values) == (
        "encoders.simlm.generator is google/electra-base-generator, but starts.small has word-pieces of its own; "
        "allowed: a generator for a start with a checkpoint"
    )
    simlm["generator"] = "./nowhere"
    assert refusal(values).startswith("encoders.simlm.generator is ./nowhere, and ")
    values["encoders"]["simlm"] = {
        "objective": "retromae",
        "generator": "google/electra-base-generator",
    }
    assert refusal(values).startswith(
        "encoders.simlm.generator is not a setting of objective retromae; "
    )


def test_a_generator_in_a_folder_is_looked_at_before_the_first_job(values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model("generator", model_type="electra", max_position_embeddings=150)
    values["starts"]["given"] = {"checkpoint": "some/checkpoint"}
    values["encoders"]["simlm"] = {"objective": "simlm", "start": "given", "generator": "generator"}
    load(values)
    make_model("generator", max_position_embeddings=149)
    most = "encoders.simlm.max_length is 150; allowed: up to 149, the positions of the generator generator"
    assert refusal(values) == most
    make_model("generator", model_type="gpt2")
    assert refusal(values).startswith(
        "encoders.simlm.generator is generator, whose config.json has model_type gpt2; "
    )


@pytest.mark.parametrize(
    ("key", "encoder"),
    [("decoder_layers", {"objective": "simlm"}), ("early_layers", {"objective": "condenser"})],
)
def test_layers_of_a_checkpoint_in_a_folder_are_those_of_its_config(values, tmp_path, key, encoder):
    values["starts"]["own"] = {"checkpoint": make_model(tmp_path)}
    values["encoders"]["a"] = {**encoder, "start": "own", key: 5}
    load(values)  # where it does not say how many, its job tells
    make_model(tmp_path, num_hidden_layers=6)
    load(values)
    make_model(tmp_path, num_hidden_layers=4)
    assert refusal(values).startswith(f"encoders.a.{key} is 5; allowed")


def test_collocations_are_of_words(values):
    values["encoders"]["spans"] = {"decoder_masking": "pmi_span"}
    values["importance"]["ami"]["unit"] = "wordpiece"
    said = "encoders.spans.importance is ami, whose unit is wordpiece; allowed for pmi_span: an entry with unit word"
    assert refusal(values) == said


def test_models_of_one_s_own_are_folders_also_in_the_home_folder(values, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = make_model(tmp_path / "own")
    values["starts"]["own"] = {"checkpoint": "~/own"}
    values["encoders"]["own"] = {"start": "own", "objective": "simlm", "generator": "~/own"}
    values["systems"]["foreign"]["model"] = "~/own"
    values["results"] = "~/results"
    config = load(values)
    assert config.starts["own"].values() == {"checkpoint": model}
    assert config.encoders["own"].generator == config.systems["foreign"].model == model
    assert config.results == f"{tmp_path}/results"
    theirs = parse(AnySystem, {"kind": "run", "runs": {"docs": {"dev": "~/theirs.trec"}}})
    assert theirs.runs == {"docs": {"dev": f"{tmp_path}/theirs.trec"}}


# --- encoders that need another one ---------------------------------------------------------------


def test_an_encoder_goes_on_from_another_with_the_start_of_that_one(values):
    values["starts"]["large"] = {**values["starts"]["small"], "hidden": 16}
    values["encoders"] |= {
        "general": {"start": "large", "collection": "other"},
        "both": {"after": "general"},
    }
    config = load(values)
    assert (config.encoders["both"].start, config.encoders["both"].collection) == ("large", "docs")
    assert load(config.values()).encoders == config.encoders


def test_a_snapshot_has_all_else_from_its_encoder(values):
    values["encoders"]["cdmae"] |= {"batch": 3, "after": "mae"}
    values["encoders"]["early"] = {"snapshot_of": "cdmae", "take_step": 4}
    config = load(values)
    early, whole = config.encoders["early"], config.encoders["cdmae"]
    assert (early.take_step, early.snapshot_of) == (4, "cdmae")
    assert dataclasses.replace(early, take_step=0, snapshot_of="") == whole
    assert load(config.values()).encoders == config.encoders


@pytest.mark.parametrize(
    ("encoders", "sentence"),
    [
        ({"a": {"after": "b"}, "b": {"after": "a"}}, "encoders depend on each other in a circle: a -> b -> a; remove "),
        ({"a": {"after": "b"}, "b": {"snapshot_of": "a", "take_step": 1}}, "encoders depend on each other in a circle: a "),
        ({"a": {"snapshot_of": "a"}}, "encoders depend on each other in a circle: a -> a; remove a reference"),
        ({"a": {"after": "mea"}}, "encoders.a.after is mea; did you mean mae?"),
        ({"a": {"after": "mae", "objective": "none"}}, "encoders.a.after is not a setting of objective none; allowed: "),
        ({"a": {"after": "mae", "start": "big"}}, "encoders.a.start is big; allowed: small, the start of encoders.mae"),
        ({"a": {"snapshot_of": "cdmea", "take_step": 1}}, "encoders.a.snapshot_of is cdmea; did you mean cdmae?"),
        ({"a": {"snapshot_of": "mae"}}, "encoders.a.take_step is missing; set it to the step of encoders.mae that this snapshot keeps"),
        ({"a": {"snapshot_of": "mae", "take_step": 11}}, "encoders.a.take_step is 11; allowed: up to 10, its steps"),
        ({"a": {"snapshot_of": "b", "take_step": 6}, "b": {"take_step": 5}},
         "encoders.a.take_step is 6; allowed: up to 5, the last step of encoders.b"),
        ({"a": {"snapshot_of": "none", "take_step": 1}}, "encoders.a.snapshot_of is none, which is not pre-trained; "),
        ({"a": {"snapshot_of": "mae", "take_step": 1, "batch": 9}},
         "encoders.a.batch is 9, but a snapshot inherits everything except take_step from encoders.mae; remove it"),
        ({"a": {"snapshot_of": "mae", "take_step": 2}, "b": {"snapshot_of": "a", "take_step": 1}},
         "encoders.b.snapshot_of is a, a snapshot itself; allowed: mae"),
    ],
)  # fmt: skip
def test_encoders_that_cannot_come_after_each_other(values, encoders, sentence):
    values["starts"]["big"] = {"collection": "docs"}
    values["encoders"] |= encoders
    assert refusal(values).startswith(sentence)


@pytest.mark.parametrize("key", ["after", "snapshot_of"])
def test_what_comes_before_is_no_default(values, key):
    values["pretraining"][key] = "mae"
    assert refusal(values).startswith(f"pretraining.{key} cannot be a default")
