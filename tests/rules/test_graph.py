"""The graph of a config, as Snakemake plans it: complete, without surprises, each job dependent on
its own settings.
"""

import os
import re
from pathlib import Path
from unittest import mock

import pytest
from made_up import make_model
from planned import ROOT, changed, dry_run, plan
from snakemake.io import is_flagged

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.layout import PLACES
from workflow.facts import facts

WHOLE = {}


@pytest.fixture
def whole(values):
    """The jobs of the small config, planned once; nobody may change them."""
    values["systems"]["foreign"]["head"] = "sparse"
    WHOLE.update({} if WHOLE else plan(values))
    return WHOLE


def test_the_jobs_of_a_whole_run(whole):
    assert sorted(whole) == sorted(
        [
            ("collection", "docs"), ("collection", "other"), ("tokenizer", "small"), ("tokens", "small/docs"),
            ("tokens", "small/other"), ("ngrams", "ami/small/docs"), ("importance", "ami/small/docs"),
            ("pretrain", "cdmae"), ("pretrain", "mae"), ("pretrain", "none"), ("masked_terms", "cdmae"),
            ("index_bm25", "docs"), ("index_bm25", "other"), ("bm25", "bm25/docs.train"),
            ("search", "one/docs.train"), ("bm25", "bm25/evaluated"), ("search", "one/evaluated"), ("search", "three/evaluated"),
            ("search", "foreign/evaluated"), ("sparsity", "foreign"), ("encode", "one/docs"), ("encode", "one/other"),
            ("encode", "three/docs"), ("encode", "three/other"), ("encode", "foreign/docs"),
            ("encode", "foreign/other"),
            ("train", "one"), ("train", "three"), ("train", "cross"), ("teacher", "three"),
            ("rerank", "cross/evaluated"), ("fuse", "fused/evaluated"),
            ("release", "one"), ("release", "three"), ("release", "cross"),
            *(("measures", name) for name in ("bm25", "one", "cross", "three", "fused", "foreign")),
            ("report", ""),
        ]
    )  # fmt: skip


def test_every_input_is_made_by_an_earlier_job(whole):
    made = {"config/paper_results.csv"}
    for job in whole.values():
        read = {path for several in job.inputs.values() for path in several}
        assert {path for path in read if not path.startswith("cdmae/report/")} <= made
        made |= set(job.outputs)


def test_what_is_made_is_known_to_those_who_look_for_it(whole, values):
    """The names of targets, and the places where the report and the commands look."""
    config = load(values)
    made = [path for job in whole.values() for path in job.outputs]
    unused = {"benchmarks", "latency", "trec"}
    for place in (pattern for name, pattern in PLACES.items() if name not in unused):
        path = re.compile(f"out/{re.sub('{.*?}', '[^/]+', place)}")
        folder = re.compile(f"out/{re.sub('{.*?}', '[^/]+', os.path.dirname(place))}")
        assert any(
            re.match(f"{path.pattern}(/|$)", each) or folder.fullmatch(each) for each in made
        ), place
    parts = (
        "measures",
        "encoders",
        "trained",
        "masked_terms",
        "mined",
        "teachers",
        "runs",
        "sparsity",
    )
    read = {path for part in parts for path in facts(config)[part].values()}
    assert {
        path for path in read if path not in made and os.path.dirname(path) not in made
    } == set()


@pytest.mark.parametrize(
    ("target", "last"),
    [
        ("table_latency", ("table", "table_latency")),
        ("out/encoders/cdmae", ("pretrain", "cdmae")),
        ("out/trec/bm25/docs.dev.run", ("export", "bm25/docs/dev")),
    ],
)
def test_a_target_is_made_last_of_what_it_needs(values, target, last):
    assert list(plan(values, target))[-1] == last


def test_vectors_that_are_not_kept_are_no_jobs_and_searches_read_what_they_are_made_from(values):
    jobs = plan({**values, "evaluation": {**values["evaluation"], "keep_vectors": False}})
    assert not [rule for rule, _ in jobs if rule == "encode"]
    assert jobs["search", "one/docs.train"].inputs["tokens"] == ["out/tokens/small/docs"]
    search, foreign = jobs["search", "three/evaluated"], jobs["search", "foreign/evaluated"]
    assert search.inputs["tokens"] == ["out/tokens/small/docs", "out/tokens/small/other"]
    assert not search.inputs["vectors"] + foreign.inputs["vectors"]
    assert {os.path.dirname(path) for path in foreign.inputs["collections"]} == {
        "out/collections/docs", "out/collections/other",
    }  # fmt: skip


def test_vectors_of_a_replica_are_kept_only_for_the_negatives_that_it_gives(values):
    jobs = plan(values | {"seed": [7, 8]})
    encoded = {name for rule, name in jobs if rule == "encode"}
    tokens = ["out/tokens/small/docs", "out/tokens/small/other"]
    assert "one@8/docs" in encoded, "its runs over training queries need them, too"
    assert "three/docs" in encoded and "three@8/docs" not in encoded
    assert jobs["search", "three@8/evaluated"].inputs["tokens"] == tokens
    assert not jobs["search", "three@8/evaluated"].inputs["vectors"]
    assert not jobs["search", "three/evaluated"].inputs["tokens"]


def test_a_fusion_of_runs_over_training_queries_gives_negatives_by_the_weights_of_its_runs(values):
    values["systems"]["mixed"] = {
        "kind": "fusion",
        "of": ["bm25", "one"],
        "tuned_on": ["docs", "dev"],
    }
    values["systems"]["three"]["negatives"] = "mixed"
    jobs = plan(values)
    assert jobs["train", "three"].inputs["negatives"] == ["out/runs/mixed/docs.train"]
    mined, fused = jobs["fuse", "mixed/docs.train"], jobs["fuse", "mixed/evaluated"]
    assert mined.inputs["runs"] == ["out/runs/bm25/docs.train", "out/runs/one/docs.train"]
    assert fused.inputs["runs"] == ["out/runs/bm25/evaluated", "out/runs/one/evaluated"]
    assert mined.inputs["tuned_runs"] == fused.inputs["tuned_runs"] == fused.inputs["runs"]
    assert mined.inputs["judged"][0] == "out/collections/docs/passages.parquet"
    assert not jobs["fuse", "fused/evaluated"].inputs["tuned_runs"]


def test_negatives_are_as_deep_as_the_deepest_stage_asks_and_collections_know_what_stages_take(
    whole, values
):
    assert systems.mined(load(values)) == {
        ("bm25", "docs", "train"): 50,
        ("one", "docs", "train"): 30,
    }
    assert whole["search", "one/docs.train"].params["settings"]["depth"] == 30
    stages = ("stage1", "stage3", "rerank")
    asked = {f"stages.{name}.queries": ["queries", "train", 64] for name in stages}
    asked |= {f"stages.{name}.group": ["passages", "train", 4] for name in stages}
    assert systems.needed(load(values), "docs") == asked
    assert systems.needed(load(values), "other") == {}
    values["stages"]["stage1"]["topics"] = 9
    values["evaluation"]["relevant"] = {"docs": {"test": 2}}
    more = {
        "stages.stage1.topics": ["queries", "train", 9],
        "evaluation.relevant.docs.test": ["grade", "test", 2],
    }
    assert systems.needed(load(values), "docs") == asked | more
    stage = {"kind": "retriever", "head": "sparse", "pieces": "own", "target": "recall"}
    values["stages"]["stage1"] = stage
    assert "stages.stage1.group" not in systems.needed(load(values), "docs"), "it draws no groups"


def test_a_retriever_learns_from_its_negatives_and_its_teacher_and_its_release_tells_of_its_collection(
    whole,
):
    one, three = whole["train", "one"], whole["train", "three"]
    assert one.inputs["negatives"] == ["out/runs/bm25/docs.train"]
    assert one.inputs["teacher"] == []
    assert three.params["settings"]["settings"]["alpha"] == 0.3
    assert "alpha" not in one.params["settings"]["settings"]
    assert three.inputs["teacher"] == ["out/teachers/three.parquet"]
    assert whole["teacher", "three"].inputs["model"] == ["out/trained/cross"]
    assert whole["teacher", "three"].inputs["collection"] == one.inputs["collection"]
    release = whole["release", "three"]
    assert release.inputs["about"] == ["out/collections/docs/about.json"]
    assert release.params["settings"]["facts"]["about"] == {
        "docs": "out/collections/docs/about.json"
    }


def test_a_target_is_measured_by_the_grade_that_is_relevant_there(values):
    measures = [
        "RR@10",
        "R(rel=3)@50",
        "nDCG@10",
        "R(rel=1)@50",
        "Rprec",
        "Judged@10",
        "SetF(beta=0.5)",
    ]
    values["evaluation"] |= {"measures": measures, "relevant": {"docs": {"test": 2}}}
    graded = (
        "RR(rel=2)@10 R(rel=3)@50 nDCG@10 R(rel=1)@50 Rprec(rel=2) Judged@10 SetF(beta=0.5,rel=2)"
    )
    plain = " ".join(measures)
    job = plan(values)["measures", "one"]
    assert job.params["settings"]["measures"] == [plain, graded, plain]
    assert "evaluation.relevant.docs.test" in job.params["needed"]["docs"]
    assert not any("evaluation.relevant" in reason for reason in job.reasons)
    values["evaluation"]["measures"] = ["RR@10", "RR(rel=2)@10"]
    assert load(values).evaluation.measured("docs", "test") == ["RR(rel=2)@10"], "each once"
    values["evaluation"]["relevant"] = {"docs": {"train": 2}}
    with pytest.raises(
        InputError,
        match="evaluation.relevant names docs train, which is not evaluated; expected spl",
    ):
        load(values)


def test_a_tokenizer_s_job_knows_the_prompts_that_it_reads(values):
    values["stages"]["stage1"] |= {"query_prompt": "query: "}
    values["evaluation"]["lengths"] = {"other": 64}
    job = plan(values)["tokenizer", "small"]
    lengths = {"stages.stage1.query_length": 32, "evaluation.lengths.other": 64}
    assert job.params["prompted"] == {"stages.stage1.query_prompt": ["query: ", lengths]}
    assert not any("query_prompt" in reason for reason in job.reasons)
    values["starts"]["big"] = values["starts"]["small"] | {"vocabulary": 400}
    values["encoders"]["big"] = {"objective": "none", "start": "big"}
    assert systems.prompts(load(values), "big") == {}


def test_a_length_of_a_collection_is_told_to_all_that_search_it_and_refused_where_one_cannot_read_it(
    values, whole
):
    values["evaluation"]["lengths"] = {"other": 16}
    jobs = plan(values)
    searching = {
        ("search", "one/evaluated"),
        ("search", "three/evaluated"),
        ("search", "foreign/evaluated"),
        ("rerank", "cross/evaluated"),
        ("sparsity", "foreign"),
    }
    vectors = {
        ("encode", "one/other"),
        ("encode", "three/other"),
        ("encode", "foreign/other"),
    }
    assert changed(whole, jobs) == searching | vectors
    for name in (("search", "one/evaluated"), ("rerank", "cross/evaluated")):
        assert jobs[name].params["settings"]["lengths"] == [0, 0, 16]
    assert jobs["encode", "foreign/other"].params["settings"]["length"] == 16
    for name, message in (
        ("other", "evaluation.lengths.other is 99999; expected up to"),
        ("nowhere", "not evaluated"),
    ):
        values["evaluation"]["lengths"] = {name: 99999}
        with pytest.raises(InputError, match=message):
            load(values)


def test_plugins_are_the_modules_that_the_settings_name(whole):
    names = (
        "pretraining.objectives.mae",
        "masking.strategies.whole_word",
        "masking.strategies.importance",
        "config.objectives.mae.Mae",
        "config.starts.Start",
    )
    assert {f"cdmae.{name}" for name in names} <= whole["pretrain", "cdmae"].params["code"].keys()
    code = whole["pretrain", "none"].params["code"]
    assert not any(name.startswith("cdmae.masking") for name in code)
    assert "cdmae.config.heads.Dense" in whole["train", "one"].params["code"]
    assert list(whole["collection", "docs"].params["code"])[1:] == ["cdmae.collections.sources.toy"]


def edited(values, edits):
    for path, value in edits.items():
        *parents, last = path.split(".")
        place = values
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = value
    return values


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"report.title": "x", "evaluation.baseline": "one", "systems.fused.k": 10, "stages.stage3.alpha": 1},
         "fuse fused/evaluated; train three; release three"),
        ({"evaluation.measures": ["RR@10"], "encoders.mae.steps": 20},
         "measures bm25, one, cross, three, fused, foreign; pretrain mae; release cross"),
        ({"encoders.cdmae.sigma": 2.0}, "pretrain cdmae; masked_terms cdmae; release one, three"),
        ({"importance.ami.edges": "mean"}, "importance ami/small/docs; release one, three"),
        ({"importance.ami.window": 2, "systems.bm25.b": 0.7}, "importance ami/small/docs; ngrams ami/small/docs; "
         "release one, three; bm25 bm25/evaluated, bm25/docs.train"),
        ({"stages.rerank.depth": 40, "training.rdrop": 0.1},
         "train cross; search one/docs.train; release cross"),
        ({"starts.small.layers": 3}, "pretrain none, mae, cdmae; release one, cross, three"),
        ({"collections.docs.size": 5}, "collection docs; release one, cross, three"),
        ({"seed": 8}, "pretrain none, mae, cdmae; masked_terms cdmae; train one, three, cross; "
         "teacher three; release one, cross, three"),
    ],
)  # fmt: skip
def test_a_setting_restarts_only_what_depends_on_it(whole, values, edits, expected):
    groups = [group.partition(" ") for group in expected.split("; ") if group]
    names = {(rule, name) for rule, _, several in groups for name in several.split(", ")}
    assert changed(whole, plan(edited(values, edits))) == names


def test_a_number_that_takes_the_value_of_another_is_seen(values):
    """Snakemake compares parameters as a set, without their names."""
    values["stages"]["stage3"] |= {"depth": 20, "group": 10, "random_negatives": 10}
    before = plan(values)
    values["stages"]["stage3"]["group"] = 20
    values["systems"]["bm25"] |= {
        "k1": before["bm25", "bm25/evaluated"].params["settings"]["b"],
        "b": 0.9,
    }
    assert changed(before, plan(values)) == {
        ("bm25", "bm25/evaluated"), ("bm25", "bm25/docs.train"), ("teacher", "three"), ("train", "three"),
        ("release", "three"),
    }  # fmt: skip


def test_a_margin_restarts_those_who_draw_by_it(values, whole):
    values["stages"]["stage3"]["margin"] = 0.05
    jobs = plan(values)
    assert changed(whole, jobs) == {
        ("train", "three"),
        ("teacher", "three"),
        ("release", "three"),
    }
    for rule in ("teacher", "train"):
        assert jobs[rule, "three"].params["settings"]["settings"]["margin"] == 0.05
    values["stages"]["again"] = values["stages"]["stage3"] | {"margin": 0.1}
    values["systems"]["again"] = values["systems"]["three"] | {"stage": "again"}
    assert systems.taught_like(load(values), "again") == "again", "other candidates"


def test_teachers_of_retrievers_and_rerankers_are_inputs(values, whole):
    small = values["systems"]["cross"] | {"teacher": "cross", "reranks": "three"}
    values["systems"] |= {
        "small": small,
        "four": values["systems"]["three"] | {"in_batch_teacher": "one"},
        "five": values["systems"]["three"] | {"teacher": "", "joint_teacher": "cross"},
    }
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    assert jobs["train", "small"].inputs["teacher"] == jobs["teacher", "small"].outputs
    assert jobs["train", "small"].inputs["teacher"] == ["out/teachers/small.parquet"]
    second = jobs["train", "four"]
    assert second.inputs["in_batch_teacher"] == jobs["train", "one"].outputs
    assert second.params["settings"]["settings"]["in_batch_weight"] == 0.75
    assert "in_batch_weight" not in jobs["train", "three"].params["settings"]["settings"]
    joint = jobs["train", "five"]
    assert joint.inputs["joint_teacher"] == jobs["train", "cross"].outputs
    assert joint.params["settings"]["settings"]["alpha"] == load(values).stages["stage3"].alpha
    assert ("teacher", "five") not in jobs


def test_bm25_searches_the_index_of_expanded_passages(values, whole, tmp_path):
    (tmp_path / "texts.tsv").touch()
    for name in ("docs", "other"):
        of = values["collections"][name]
        values["collections"][f"more-{name}"] = {
            "source": "expanded", "of": of, "texts": str(tmp_path / "texts.tsv"),
        }  # fmt: skip
    values["systems"]["t5"] = {
        "kind": "bm25", "passages": {"docs": "more-docs", "other": "more-other"},
    }  # fmt: skip
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    searched = {
        name: jobs["bm25", f"{name}/evaluated"].inputs["indexes"] for name in ("bm25", "t5")
    }
    assert searched == {
        "bm25": ["out/bm25/docs", "out/bm25/other"],
        "t5": ["out/bm25/more-docs", "out/bm25/more-other"],
    }
    assert (
        jobs["bm25", "t5/evaluated"].inputs["collections"]
        == jobs["bm25", "bm25/evaluated"].inputs["collections"]
    )


def test_a_model_writes_the_texts_of_a_collection(values, whole, tmp_path):
    files = {"is_encoder_decoder": True, "vocab_size": 9, "d_model": 512}
    model = make_model(tmp_path / "t5", **files)
    values["collections"]["more"] = {
        "source": "expanded", "of": values["collections"]["docs"], "model": model,
    }  # fmt: skip
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    written = jobs["expansions", "more"]
    assert f"{model}/model.safetensors" in written.inputs["model"]
    assert written.outputs == ["out/expansions/more.tsv"]
    assert jobs["collection", "more"].inputs["texts"] == written.outputs
    assert jobs["collection", "docs"].inputs["texts"] == []
    values["collections"]["more"]["samples"] = 2
    assert changed(jobs, plan(values)) == {("expansions", "more"), ("collection", "more")}


def test_keywords_by_importance_are_queries_of_a_collection(values, whole):
    values["collections"]["made"] = {
        "source": "pseudo", "of": values["collections"]["docs"], "method": "written",
        "keywords_of": ["ami", "small", "docs"],
    }  # fmt: skip
    values["stages"]["own"] = values["stages"]["stage1"] | {"collection": "made"}
    values["systems"]["four"] = values["systems"]["one"] | {"stage": "own"}
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    written = jobs["keywords", "made"]
    assert written.inputs["importance"] == ["out/importance/ami/small/docs"]
    assert written.inputs["ngrams"] == ["out/ngrams/ami/small/docs"]
    assert written.inputs["tokenizer"] == ["out/tokenizers/small"]
    assert jobs["collection", "made"].inputs["texts"] == written.outputs
    assert jobs["train", "four"].inputs["collection"][0].startswith("out/collections/made/")
    values["collections"]["made"]["keywords"] = 7
    again = changed(jobs, plan(values))
    assert {("keywords", "made"), ("collection", "made")} <= again
    assert ("importance", "ami/small/docs") not in again


@pytest.mark.parametrize("teacher", ["one", "bm25", "sums"])
def test_any_system_teaches_what_it_ranks(values, whole, teacher):
    """By its run over the training queries, as long as those of the evaluation."""
    values["systems"]["sums"] = {"kind": "fusion", "of": ["bm25", "one"], "method": "convex"}
    values["systems"]["four"] = values["systems"]["three"] | {"teacher": teacher, "stage": "own"}
    values["stages"]["own"] = values["stages"]["stage3"] | {"random_negatives": 0}
    jobs = plan(values)
    run = f"out/runs/{teacher}/docs.train"
    student = jobs["train", "four"].inputs
    assert (student["ranking"], student["teacher"]) == ([run], [])
    config = load(values)
    assert systems.mined(config)[teacher, "docs", "train"] == config.evaluation.depth
    assert ("teacher", "four") not in jobs


def test_a_teacher_labels_a_split_and_the_report_omits_its_negatives(values, whole):
    """The report compares negatives with judgments, which the split `raw` has not."""
    values["stages"]["own"] = values["stages"]["stage3"] | {
        "split": "raw", "labels": 0.9, "random_negatives": 0,
    }  # fmt: skip
    values["systems"]["four"] = values["systems"]["three"] | {"stage": "own"}
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    assert jobs["teacher", "four"].params["settings"]["settings"]["labelled"] is True
    assert jobs["train", "four"].inputs["teacher"] == jobs["teacher", "four"].outputs
    reported = facts(load(values))
    assert "three" in reported["mined"] and "four" not in reported["mined"]
    assert list(reported["teachers"]) == ["three"]


def test_a_run_of_others_teaches_what_it_ranks(values, whole, tmp_path):
    (tmp_path / "theirs.run").touch()
    files = {"docs": dict.fromkeys(("train", "dev", "test"), str(tmp_path / "theirs.run"))}
    values["systems"]["theirs"] = {
        "kind": "run",
        "runs": files | {"other": {"test": str(tmp_path / "theirs.run")}},
    }
    values["systems"]["four"] = values["systems"]["three"] | {"teacher": "theirs", "stage": "own"}
    values["stages"]["own"] = values["stages"]["stage3"] | {"random_negatives": 0}
    jobs = plan(values)
    assert not changed(whole, jobs), "of the others"
    assert not [name for rule, name in jobs if rule == "teacher" and name != "three"]
    assert jobs["read_run", "theirs/docs.train"].params["settings"]["depth"] == systems.WHOLE
    train = jobs["train", "four"]
    assert train.inputs["ranking"] == jobs["read_run", "theirs/docs.train"].outputs
    assert not train.inputs["teacher"] and not jobs["train", "three"].inputs["ranking"]
    assert train.params["settings"]["settings"]["alpha"] == 0.3
    config = load(values)
    assert list(facts(config)["teachers"]) == ["three"], (
        "the report looks at what rerankers were asked"
    )


def test_words_of_the_user_may_have_braces(values):
    values["report"] = {"title": "Of {some} <words>", "example": "a {word} of {5,6} <or> more"}
    jobs = plan(values)
    masked = jobs["masked_terms", "cdmae"].params["settings"]
    assert masked["example"] == "a {word} of {5,6} <or> more"
    config = jobs["report", ""].params["settings"]["facts"]["config"]
    assert config["report"]["title"] == "Of {some} <words>"


def test_the_report_and_exhibits_have_the_order_of_the_config(values):
    values["systems"] = dict(reversed(values["systems"].items()))
    jobs = plan(values, "report", "table_main")
    for job in (jobs["report", ""], jobs["table", "table_main"]):
        config = job.params["settings"]["facts"]["config"]
        assert list(config["systems"]) == list(values["systems"])


def test_what_snakemake_refuses_is_refused_by_a_dry_run(values):
    with pytest.raises(InputError, match="No rule to produce no/where.txt"):
        plan(values, "no/where.txt")


def test_the_report_waits_for_no_importance_but_the_one_that_shades_its_texts(whole):
    """Only masks read the others, and the report waits for their trainings."""
    read = {path for several in whole["report", ""].inputs.values() for path in several}
    importances = [path for path in read if path.startswith("out/importance/")]
    assert importances == ["out/importance/ami/small/docs"]
    assert "out/encoders/cdmae" in read


def test_a_script_that_is_not_python_is_refused_in_a_sentence(monkeypatch):
    sentence = "workflow/scripts/fuse.py, line 3, is not valid Python: invalid syntax"
    monkeypatch.setattr(
        "workflow.fingerprint.fingerprint", mock.Mock(side_effect=InputError(sentence))
    )
    monkeypatch.chdir(ROOT)
    with pytest.raises(InputError, match=f"^{sentence}$"):
        dry_run()


def test_all_files_that_a_config_names_count_by_their_content_and_none_by_its_time(
    tmp_path, values, monkeypatch
):
    """Tables, texts, runs and models: a time is what `cp -p`, `mv`, archives and `touch` make it."""
    pair = '{"query": "a", "positive": "b"}\n'
    for name, text in (("table.jsonl", pair), ("texts.tsv", "p\ta\n"), ("theirs.run", "")):
        (tmp_path / name).write_text(text)
    start, generator, foreign, writer = (
        make_model(tmp_path / name, **described)
        for name, described in (
            ("start", {}),
            ("generator", {}),
            ("foreign", {}),
            ("writer", {"is_encoder_decoder": True, "vocab_size": 9}),
        )
    )
    table = {"source": "pairs", "path": str(tmp_path / "table.jsonl")}
    values["collections"]["mine"] = table
    values["collections"]["more"] = {"source": "expanded", "of": table, "model": writer}
    values["starts"]["given"] = {"checkpoint": start}
    values["encoders"] |= {
        "simlm": {"objective": "simlm", "start": "given", "generator": generator},
        "master": {
            "objective": "master",
            "texts": [str(tmp_path / "texts.tsv")],
            "decoder_masking": "uniform",
        },
    }
    splits = {name: str(tmp_path / "theirs.run") for name in ("train", "dev", "test")}
    runs = {"docs": splits, "other": {"test": splits["test"]}}
    values["systems"] |= {
        "theirs": {"kind": "run", "runs": runs},
        "fed": {"kind": "feedback", "of": "foreign"},
        "again": values["systems"]["three"] | {"teacher": "theirs", "stage": "own"},
    }
    values["stages"]["own"] = values["stages"]["stage3"] | {"random_negatives": 0}
    values["systems"]["foreign"]["model"] = foreign
    about = [f"out/collections/{name}/about.json" for name in ("mine", "more")]
    encoders = [f"out/encoders/{name}" for name in ("simlm", "master")]

    def planned_now():
        return plan(values, "all", *about, *encoders)

    before = planned_now()
    readers = {}
    for job in before.values():
        for file in job.detail.input:
            path = str(file)
            if path.startswith(str(tmp_path)):
                assert is_flagged(file, "ancient"), path
                readers.setdefault(path, set()).add((job.record.rule, job.record.name))
    kinds = {rule for several in readers.values() for rule, _ in several}
    assert kinds == {
        "collection", "expansions", "tokenizer", "pretrain", "encode", "search", "read_run",
    }  # fmt: skip
    for path in readers:
        os.utime(path)
    assert changed(before, planned_now()) == set(), "files that are only touched"
    different = {frozenset(several): path for path, several in readers.items()}
    for expected, path in different.items():
        content = Path(path).read_bytes()
        other = content[:-1] + b"1" if path.endswith(".safetensors") else content + b"\n"
        Path(path).write_bytes(other)
        os.utime(path, (0, 0))
        assert changed(before, planned_now()) == expected, f"{path} is another, and older"
        Path(path).write_bytes(content)


def test_the_files_of_models_that_are_folders_here_are_inputs_and_hidden_ones_are_not(
    tmp_path, values
):
    """So that another checkpoint or generator restarts what begins with it; none is nothing."""
    start, generator, foreign = (
        make_model(tmp_path / name) for name in ("start", "generator", "foreign")
    )
    (tmp_path / "foreign/.snakemake_timestamp").touch()
    values["starts"]["given"] = {"checkpoint": start}
    values["encoders"]["simlm"] = {"objective": "simlm", "start": "given", "generator": generator}
    values["encoders"]["alone"] = {"objective": "simlm", "start": "given"}
    values["systems"]["foreign"]["model"] = foreign
    config = load(values)
    names = ("config.json", "model.safetensors", "tokenizer.json")
    rows = systems.encoders(config)
    assert rows["simlm"]["checkpoint"] == [f"{start}/{name}" for name in names]
    assert rows["simlm"]["generator"] == [f"{generator}/{name}" for name in names]
    assert rows["alone"]["generator"] == []
    assert plan(values)["search", "foreign/evaluated"].inputs["checkpoint"] == [
        f"{foreign}/{name}" for name in names
    ]


def test_an_encoder_without_pretraining_and_narrow_networks_request_no_gpu(values, monkeypatch):
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)

    def gpus(values):
        return {
            name: job.detail.resources.get("gpu", 0) for name, job in plan(values, gpus=8).items()
        }

    narrow = gpus(values)
    assert set(narrow.values()) == {0, 1}
    assert {name for name, number in narrow.items() if number} == {
        ("encode", "foreign/docs"), ("encode", "foreign/other"), ("search", "foreign/evaluated"),
    }  # fmt: skip
    values["starts"]["small"]["hidden"] = 256
    wide = gpus(values)
    assert (wide["pretrain", "cdmae"], wide["pretrain", "none"]) == (8, 0)
    assert (wide["train", "one"], wide["encode", "one/docs"]) == (8, 1)
    values["pretraining"]["batch"] = 4
    assert gpus(values)["pretrain", "cdmae"] == 4, "as many as a step has texts"
    monkeypatch.setenv("CDMAE_DEVICE", "cpu")
    assert set(gpus(values).values()) == {0}


def test_without_training_queries_and_with_a_collection_alone(values):
    """Pre-training on a collection, BM25 and a foreign model: no labels are needed."""
    for section in ("stages", "training", "systems"):
        del values[section]
    values["systems"] = {
        "bm25": {"kind": "bm25"},
        "foreign": {"kind": "external", "model": "some/model"},
    }
    rules = {rule for rule, _ in plan(values)}
    assert {"bm25", "encode", "report", "pretrain"} <= rules
    assert not rules & {"train", "release", "teacher"}
    alone = {"results": "out", "collections": values["collections"]}
    assert [rule for rule, _ in plan(alone)] == ["collection", "collection", "report"]
    assert facts(load(alone))["measures"] == {}


# --- encoders that come after another -------------------------------------------------------------


def test_encoders_after_another_and_snapshots_share_what_is_upstream(values, whole):
    values["encoders"] |= {"general": {"collection": "other"}, "both": {"after": "general"}}
    for step in (8, 2):
        values["encoders"][f"cdmae-{step}"] = {"snapshot_of": "cdmae", "take_step": step}
        values["systems"][f"one-{step}"] = {**values["systems"]["one"], "encoder": f"cdmae-{step}"}
    values["systems"]["both"] = {**values["systems"]["one"], "encoder": "both"}
    jobs = plan(values)
    both, training = jobs["pretrain", "both"], jobs["pretrain", "cdmae"]
    assert both.inputs["after"] == ["out/encoders/general"]
    assert both.inputs["tokens"] == ["out/tokens/small/docs"]
    added = {
        name
        for name in jobs.keys() - whole.keys()
        if name[0] in ("tokenizer", "tokens", "ngrams", "importance")
    }
    assert added == {("ngrams", "ami/small/other"), ("importance", "ami/small/other")}, (
        "other masks, other counts"
    )
    assert changed(whole, jobs) == {("pretrain", "cdmae")}, "which now keeps two steps"
    assert training.params["settings"]["snapshots"] == [2, 8]
    assert jobs["snapshot", "cdmae-2"].inputs == {"encoder": ["out/encoders/cdmae"]}
    assert jobs["snapshot", "cdmae-2"].params["settings"]["step"] == 2
    assert jobs["train", "one-2"].inputs["encoder"] == ["out/encoders/cdmae-2"]
    assert "cdmae-2" not in facts(load(values))["encoders"], "its curves are those of its training"
    assert list(jobs["release", "both"].params["settings"]["facts"]["before"]) == ["general"]
    assert "before" not in jobs["release", "one"].params["settings"]["facts"]


def test_students_of_the_same_candidates_share_their_teacher_s_scores(values):
    values["stages"] |= {
        "other-alpha": {**values["stages"]["stage3"], "alpha": 2.0},
        "other-depth": {**values["stages"]["stage3"], "depth": 21},
    }
    for name in ("other-alpha", "other-depth"):
        values["systems"][name] = {**values["systems"]["three"], "stage": name}
    jobs = plan(values)
    assert {name for rule, name in jobs if rule == "teacher"} == {"three", "other-depth"}
    names = ("three", "other-alpha", "other-depth")
    read = {name: jobs["train", name].inputs["teacher"] for name in names}
    expected = dict(zip(names, ("three", "three", "other-depth"), strict=True))
    assert read == {name: [f"out/teachers/{student}.parquet"] for name, student in expected.items()}
    assert facts(load(values))["teachers"] == {name: paths[0] for name, paths in read.items()}
