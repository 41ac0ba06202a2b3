"""The graph of a config, as Snakemake plans it: complete, without surprises, each job dependent on
its own settings.
"""

import os
import re
from pathlib import Path

import pytest
from planned import changed, plan
from snakemake.io import is_flagged

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.layout import PLACES
from workflow import fingerprint


def test_the_jobs_of_a_whole_run(whole):
    expected = """
    collection docs, other; tokenizer small; tokens small/docs, small/other; ngrams ami/small/docs; importance ami/small/docs;
    masked_terms cdmae; pretrain cdmae, mae, none; train one, three, cross; teacher three;
    bm25 bm25/docs.train, bm25/evaluated; rerank cross/evaluated; fuse fused/evaluated;
    search one/docs.train, one/evaluated, three/evaluated, foreign/evaluated;
    measures ; release ; report """
    assert set(whole) == names_of(" ".join(expected.split()) + " ")


def test_what_is_made_is_known_to_those_who_look_for_it(whole):
    """The places where the report and the commands look."""
    made = [path for job in whole.values() for path in job.outputs]
    for name, pattern in PLACES.items():
        path = f"out/{pattern}(/.*)?|out/{os.path.dirname(pattern)}"
        places = re.compile(re.sub("{.*?}", "[^/]+", path))
        assert name in ("logs", "measured") or any(map(places.fullmatch, made)), name


# --- inputs ---------------------------------------------------------------------------------------

DOCS = [f"out/collections/docs/{name}" for name in ("passages.parquet", "queries.parquet")]
INPUTS = [
    ("train one", "negatives", ["out/runs/bm25/docs.train"]),
    ("train three", "teacher", ["out/teachers/three.parquet"]),
    ("teacher three", "model", ["out/trained/cross"]),
    ("release", "about", ["out/collections/docs/about.json"]),
    # negatives of a fusion, by the weights that the evaluation has tuned
    ("train by-mixed", "negatives", ["out/runs/mixed/docs.train"]),
    ("fuse mixed/docs.train", "runs", ["out/runs/bm25/docs.train", "out/runs/one/docs.train"]),
    ("fuse mixed/docs.train", "tuning_runs", ["out/runs/bm25/evaluated", "out/runs/one/evaluated"]),
    ("fuse mixed/docs.train", "judged", DOCS),
    # teachers: a reranker's scores, any other system's run, a retriever of the batch, a joint one
    ("train small", "teacher", ["out/teachers/small.parquet"]),
    ("train by-sums", "ranking", ["out/runs/sums/docs.train"]),
    ("train by-theirs", "ranking", ["out/runs/theirs/docs.train"]),
    ("train by-labels", "teacher", ["out/teachers/by-labels.parquet"]),
    ("train in-batch", "in_batch_teacher", ["out/trained/one"]),
    ("train joint", "joint_teacher", ["out/trained/cross"]),
    ("train other-alpha", "teacher", ["out/teachers/three.parquet"]),  # of the same candidates
    ("train other-depth", "teacher", ["out/teachers/other-depth.parquet"]),
    # texts that other jobs write
    ("bm25 bm25/evaluated", "passages", [DOCS[0], DOCS[0].replace("docs", "other")]),
    ("bm25 t5/evaluated", "passages", [DOCS[0].replace("docs", f"more-{n}") for n in ("docs", "other")]),
    ("bm25 bm25/evaluated", "mined", ["out/bm25/bm25/docs.train"]),
    ("bm25 bm25/docs.train", "mined", []),
    ("search one/evaluated", "mined", ["out/vectors/one/docs.train"]),
    ("search three/evaluated", "mined", []),
    ("collection written", "texts", ["out/texts/written.tsv"]),
    ("pretrain spans", "importance", ["out/ngrams/ami/small/docs"]),
    ("pretrain cdmae", "importance", ["out/importance/ami/small/docs"]),
    ("train by-made", "collection", ["out/collections/made/passages.parquet"]),
    # encoders after another
    ("pretrain both", "after", ["out/encoders/general"]),
    ("pretrain both", "tokens", ["out/tokens/small/docs"]),
]  # fmt: skip


def job(jobs, name):
    rule, _, wildcards = name.partition(" ")
    return jobs[rule, wildcards]


def names_of(text):
    """Read names of jobs, as in `train one, three; report `."""
    groups = [group.partition(" ") for group in text.split("; ")]
    return {(rule, name.strip()) for rule, _, several in groups for name in several.split(", ")}


def test_every_input_is_made_by_an_earlier_job(grown, whole):
    made = set()
    for planned in grown.values():
        read = {path for several in planned.inputs.values() for path in several}
        assert {path for path in read if path.startswith("out/")} <= made
        made |= set(planned.outputs)
    more = {("bm25", "bm25/docs.train"), ("search", "one/docs.train"), ("release", "")}
    assert changed(whole, grown) == more, "more entries change nothing else of others"


def test_a_job_runs_again_when_what_it_reads_is_made_again(grown):
    """Snakemake does not look at the parameters of a job that reads `ancient` files of a job."""
    for name, planned in grown.items():
        for file in planned.detail.input:
            if str(file).startswith("out/"):
                assert not is_flagged(file, "ancient"), (name, file)


def test_a_job_reads_what_its_entry_names(grown):
    for name, key, paths in INPUTS:
        assert job(grown, name).inputs[key][: len(paths) or None] == paths, (name, key)
    assert ("teacher", "by-sums") not in grown


def test_settings_that_follow_from_other_entries(grown):
    def of(name):
        return job(grown, name).params["settings"]

    assert of("train three")["settings"]["alpha"] == of("train by-theirs")["settings"]["alpha"]
    assert "alpha" not in of("train one")["settings"], "it has no teacher"
    assert of("teacher by-labels")["settings"]["labelled"] is True
    depths = {"search one/docs.train": grown.config.evaluation.depth}
    depths["read_run theirs/docs.train"] = systems.WHOLE
    assert {name: of(name)["depth"] for name in depths} == depths
    cards = of("release")["cards"]
    assert list(cards["both"]["before"]) == ["general"]
    assert "before" not in cards["one"]


def test_the_modules_that_settings_name_are_reasons(whole):
    names = (
        "pretraining.objectives.mae",
        "masking.strategies.whole_word",
        "masking.strategies.importance",
        "config.objectives.Mae",
        "config.starts.Start",
    )
    assert {f"cdmae.{name}" for name in names} <= whole["pretrain", "cdmae"].params["code"].keys()
    code = whole["pretrain", "none"].params["code"]
    assert not any(name.startswith("cdmae.masking") for name in code)
    assert "cdmae.config.stages.Dense" in whole["train", "one"].params["code"]
    assert "cdmae.collections.sources.toy" in whole["collection", "docs"].params["code"]


def test_vectors_are_kept_of_the_first_seed_and_of_searches_for_negatives(values):
    jobs = plan(values | {"seed": [7, 8]})
    kept = {name: jobs["search", name].params["keep"] for rule, name in jobs if rule == "search"}
    assert {name for name, keep in kept.items() if not keep} == {"three@8/evaluated"}
    assert jobs["search", "one@8/evaluated"].inputs["mined"] == ["out/vectors/one@8/docs.train"]
    assert "keep" not in jobs["search", "one/docs.train"].params["settings"], (
        "or stages train again"
    )
    jobs = plan({**values, "evaluation": {**values["evaluation"], "keep_vectors": False}})
    assert not jobs["search", "one/evaluated"].inputs["mined"]
    assert jobs["bm25", "bm25/evaluated"].inputs["mined"]


def test_further_queries_share_what_is_made_of_the_passages(values, tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a query"}\n')
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tp\t1\n")
    values["collections"]["docs"] |= {"language": "de"}
    values["collections"]["asked"] = {"source": "queries", "of": "docs", "path": str(tmp_path)}
    values["evaluation"]["collections"]["asked"] = ["test"]
    jobs = plan(values)
    languages = jobs["bm25", "bm25/evaluated"].params["settings"]["languages"]
    assert languages["asked"] == languages["docs"] == "de"
    assert jobs["collection", "asked"].inputs["shared"][0].startswith("out/collections/docs/")
    assert "out/tokens/small/docs" in jobs["search", "one/evaluated"].inputs["tokens"]
    assert ("tokens", "small/asked") not in jobs


def test_a_target_is_measured_by_the_grade_that_is_relevant_there(values):
    measures = ["RR@10", "R(rel=3)@50", "nDCG@10", "Rprec", "Judged@10", "SetF(beta=0.5)"]
    values["evaluation"] |= {"measures": measures, "relevant": {"docs": {"test": 2}}}
    graded = "RR(rel=2)@10 R(rel=3)@50 nDCG@10 Rprec(rel=2) Judged@10 SetF(beta=0.5,rel=2)"
    plain = " ".join(measures)
    measured = plan(values)["measures", ""]
    assert measured.params["settings"]["measures"] == [plain, graded, plain]
    values["evaluation"]["measures"] = ["RR@10", "RR(rel=2)@10"]
    assert load(values).evaluation.measured("docs", "test") == ["RR(rel=2)@10"], "each once"


# --- reasons to run again -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"report.title": "x", "evaluation.baseline": "one", "systems.fused.k": 10, "stages.stage3.alpha": 1},
         "fuse fused/evaluated; train three; release "),
        ({"evaluation.measures": ["RR@10"], "encoders.mae.steps": 20}, "measures ; pretrain mae; release "),
        ({"encoders.cdmae.sigma": 2.0}, "pretrain cdmae; masked_terms cdmae; release "),
        ({"importance.ami.pmi": "product"}, "importance ami/small/docs; release "),
        ({"importance.ami.window": 2}, "ngrams ami/small/docs; release "),
        ({"systems.bm25.b": 0.7}, "bm25 bm25/evaluated, bm25/docs.train"),
        ({"stages.rerank.depth": 40, "training.rdrop": 0.1},
         "train cross; search one/docs.train; release "),
        ({"stages.stage3.random_negatives": 5}, "train three; teacher three; release "),
        ({"starts.small.layers": 3}, "pretrain none, mae, cdmae; release "),
        ({"collections.docs.size": 5}, "collection docs; release "),
        ({"seed": 8}, "pretrain none, mae, cdmae; masked_terms cdmae; train one, three, cross; "
         "teacher three; release "),
        ({"evaluation.lengths": {"other": 16}},
         "search one/evaluated, three/evaluated, foreign/evaluated; rerank cross/evaluated"),
        ({"evaluation.collections": {"docs": ["dev"], "other": ["test"]}},
         "search one/evaluated, three/evaluated, foreign/evaluated; rerank cross/evaluated; measures ; "
         "bm25 bm25/evaluated; fuse fused/evaluated"),
    ],
)  # fmt: skip
def test_a_setting_restarts_only_what_depends_on_it(whole, values, edits, expected):
    for path, value in edits.items():
        *parents, last = path.split(".")
        place = values
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = value
    assert changed(whole, plan(values)) == names_of(expected)


def test_written_texts_do_not_depend_on_the_choice_of_queries(grown_values):
    def written():
        return plan(grown_values, "out/texts/written.tsv")["texts", "written"].params["settings"]

    before = written()
    base = grown_values["collections"]["written"]["of"]
    grown_values["collections"]["written"]["of"] = base | {"holdout_seed": 3}
    assert written() == before
    grown_values["collections"]["written"]["of"] = base | {"size": 4}
    assert written() != before


# --- files and requests ---------------------------------------------------------------------------


READ = [
    "out/collections/mine/about.json", "out/collections/written/about.json", "out/encoders/simlm",
    "out/runs/ours/evaluated", "out/runs/theirs/evaluated",
]  # fmt: skip


def test_the_users_files_count_by_their_content_and_not_by_their_time(grown_values, tmp_path):
    """A time is what `cp -p`, `mv`, archives and `touch` make it."""

    def planned_now():
        fingerprint._content.cache_clear()
        return plan(grown_values, *READ)

    before = planned_now()
    readers = {}
    for name, planned in before.items():
        for file in planned.detail.input:
            if str(file).startswith(str(tmp_path)):
                assert is_flagged(file, "ancient"), file
                readers.setdefault(Path(file), set()).add(name)
    kinds = {rule for names in readers.values() for rule, _ in names}
    assert kinds == {"collection", "texts", "tokenizer", "pretrain", "search", "read_run"}
    assert not any("/." in str(path) for path in readers), "hidden files"
    for path in readers:
        os.utime(path)
    assert changed(before, planned_now()) == set(), "files that are only touched"
    by_readers = {frozenset(names): path for path, names in readers.items()}
    for names, path in by_readers.items():
        content = path.read_bytes()
        path.write_bytes(content[:-1] + b"1" if path.suffix == ".safetensors" else content + b"\n")
        os.utime(path, (0, 0))
        assert changed(before, planned_now()) == names, f"{path} is another, and older"
        path.write_bytes(content)


def test_narrow_networks_and_encoders_without_pretraining_request_no_gpu(values, monkeypatch):
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)

    def requests(values, name):
        planned = plan(values, gpus=8)
        return {key: job.detail.resources.get(name, 0) for key, job in planned.items()}

    assert {number for number in requests(values, "gpu").values() if number != "<TBD>"} == {0}
    assert requests(values, "_cores")["train", "one"] == 1
    values["starts"]["small"]["hidden"] = 256
    wide = requests(values, "gpu")
    trained = [("pretrain", "cdmae"), ("pretrain", "none"), ("train", "one")]
    assert [wide[name] for name in trained] == [8, 0, 8]
    assert requests(values, "_cores")["train", "one"] == 8
    values["pretraining"]["batch"] = 4
    assert requests(values, "gpu")["pretrain", "cdmae"] == 4, "as many as a step has texts"
    monkeypatch.setenv("CDMAE_DEVICE", "cpu")
    assert not {8, 4, 1} & set(requests(values, "gpu").values())


@pytest.mark.parametrize(
    ("rule", "wildcards", "first", "second"),
    [
        ("ngrams", "ami/small/docs", {"mem_mb": 60_000}, {"mem_mb": 120_000}),
        ("pretrain", "cdmae", {"mem_mb": 32_000}, {"mem_mb": 64_000}),
        ("search", "foreign/evaluated", {"mem_mb": 16_000, "gpu": 4, "_cores": 16}, {"gpu": 4}),
    ],
)
def test_requests_grow_with_the_input_and_with_attempts(
    values, tmp_path, monkeypatch, rule, wildcards, first, second
):
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 3_000_000_000)
    job = plan(values, gpus=8)[rule, wildcards].detail
    for attempt, expected in ((1, first), (2, second)):
        asked = job.rule.expand_resources(job.wildcards, [str(tmp_path)], attempt)
        assert {name: asked[name] for name in expected} == expected
    if rule == "pretrain":  # a later attempt may be due to a time limit
        asked = job.rule.expand_resources(job.wildcards, [str(tmp_path)], 5)
        assert asked["mem_mb"] == second["mem_mb"]
