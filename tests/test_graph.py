"""The graph of a config: complete, without surprises, and each job dependent on its own settings only."""

import json

import pytest
from made_up import make_model

from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.graph import COLLECTION_FILES, Graph
from cdmae.making import ROOT


@pytest.fixture
def graph(values):
    return Graph(load(values))


def by_name(graph):
    return {(job.rule, job.name): job for job in graph.jobs()}


def test_paths(graph):
    assert graph.collection("docs") == "out/collections/docs"
    assert graph.collection_files("docs") == [f"out/collections/docs/{name}" for name in COLLECTION_FILES]
    assert graph.tokens("small", "docs") == "out/tokens/small/docs"
    assert graph.importance("ami", "small", "docs") == "out/importance/ami/small/docs"
    assert graph.negatives("one", "docs", "train") == "out/negatives/one.docs.train.parquet"
    assert graph.run("one", "docs", "dev") == "out/runs/one/docs.dev.parquet"
    assert graph.measures("one") == "out/measures/one.tsv"
    assert graph.masked_terms("cdmae") == "out/masked_terms/cdmae.json"


def test_targets_follow_the_config(graph):
    assert graph.targets() == [("docs", "dev"), ("docs", "test"), ("other", "test")]


def test_the_jobs_of_a_whole_run(graph):
    jobs = sorted(by_name(graph))
    assert jobs == sorted(
        [
            ("collection", "docs"), ("collection", "other"), ("tokenizer", "small"), ("tokens", "small/docs"),
            ("tokens", "small/other"), ("ngrams", "ami/small/docs"), ("importance", "ami/small/docs"),
            ("pretrain", "cdmae"), ("pretrain", "mae"), ("pretrain", "none"), ("masked_terms", "cdmae"),
            ("index_bm25", "docs"), ("index_bm25", "other"), ("mine_bm25", "bm25/docs/train"),
            ("mine", "one/docs/train"), ("search_bm25", "bm25"), ("search", "one"), ("search", "three"),
            ("search_external", "foreign"), ("vectors", "one/docs"), ("vectors", "one/other"),
            ("vectors", "three/docs"), ("vectors", "three/other"), ("vectors_external", "foreign/docs"),
            ("vectors_external", "foreign/other"),
            ("train_retriever", "one"), ("train_retriever", "three"), ("train_reranker", "cross"), ("teacher", "three"),
            ("rerank", "cross"), ("fuse", "fused"), ("release", "one"), ("release", "three"), ("release", "cross"),
            *(("measures", name) for name in ("bm25", "one", "cross", "three", "fused", "foreign")), ("report", ""),
        ]
    )  # fmt: skip


def test_vectors_that_are_not_kept_are_no_jobs_and_searches_read_what_they_are_made_from(values):
    found = by_name(Graph(load({**values, "evaluation": {**values["evaluation"], "keep_vectors": False}})))
    assert not [rule for rule, _ in found if rule.startswith("vectors")]
    assert found["mine", "one/docs/train"].inputs["tokens"] == ["out/tokens/small/docs"]
    assert found["search", "three"].inputs["tokens"] == ["out/tokens/small/docs", "out/tokens/small/other"]
    foreign = found["search_external", "foreign"]
    assert foreign.inputs["passages"] == [f"out/collections/{name}/passages.parquet" for name in ("docs", "other")]
    assert foreign.params["passage_length"] == 0


def test_every_input_is_made_by_an_earlier_job(graph):
    made = set()
    for job in graph.jobs():
        assert set(job.reads()) <= made, job
        assert not made & set(job.outputs), job
        made |= set(job.outputs)
    assert set(graph.needed()) <= made


@pytest.mark.parametrize(
    ("target", "last"),
    [
        ("all", "release three"),
        ("report", "report "),
        ("table_latency", "table table_latency"),
        ("out/report/index.html", "report "),
        ("out/report/tables", "report "),
        ("./out//encoders/cdmae/", "pretrain cdmae"),
        (f"{ROOT}/out/encoders/cdmae", "pretrain cdmae"),
        ("out/collections/docs/qrels.parquet", "collection docs"),
        ("out/tables/table_latency.md", "table table_latency"),
        ("out/trec/bm25/docs.dev.run", "export bm25/docs/dev"),
    ],
)
def test_a_target_is_made_last_of_what_it_needs(graph, target, last):
    """Everything that ./run takes, and nothing that it does not need."""
    found = graph.jobs([target])
    assert f"{found[-1].rule} {found[-1].name}" == last
    made, read = {path for job in found for path in job.outputs}, {path for job in found for path in job.reads()}
    assert read <= made
    if target != "all":
        assert all(read.intersection(job.outputs) for job in found[:-1])


def test_targets_share_what_they_need(graph):
    both = graph.jobs(["out/encoders/cdmae", "out/encoders/mae"])
    assert [job.rule for job in both].count("tokens") == 1
    assert graph.jobs(["all"]) == graph.jobs()


def test_params_are_plain_json(graph):
    for job in graph.jobs():
        assert json.loads(json.dumps(job.params)) == job.params


def test_negatives_are_as_deep_as_the_deepest_stage_asks(graph):
    assert graph.mined() == {("bm25", "docs", "train"): 50, ("one", "docs", "train"): 30}
    assert by_name(graph)["mine", "one/docs/train"].params["depth"] == 30


def test_a_collection_knows_what_stages_take_of_it(graph):
    assert graph.batches("docs") == {f"stages.{name}": ["train", 64] for name in ("stage1", "stage3", "rerank")}
    assert graph.batches("other") == {}


def test_a_retriever_learns_from_its_negatives_and_its_teacher(graph):
    jobs = by_name(graph)
    one, three = jobs["train_retriever", "one"], jobs["train_retriever", "three"]
    assert one.inputs["negatives"] == "out/negatives/bm25.docs.train.parquet"
    assert "teacher" not in one.inputs
    assert "alpha" not in one.params["settings"]
    assert three.inputs["teacher"] == "out/teachers/three.parquet"
    assert three.params["settings"]["alpha"] == 0.3
    assert jobs["teacher", "three"].inputs["model"] == "out/trained/cross"
    assert graph.passages("docs") in jobs["teacher", "three"].inputs["collection"]  # equal texts are told there


def test_a_target_is_measured_by_the_grade_that_is_relevant_there(values):
    measures = ["RR@10", "R(rel=3)@50", "nDCG@10", "R(rel=1)@50", "Rprec", "Judged@10", "SetF(beta=0.5)"]
    values["evaluation"] |= {"measures": measures, "relevant": {"docs": {"test": 2}}}
    graded = "RR(rel=2)@10 R(rel=3)@50 nDCG@10 R(rel=1)@50 Rprec(rel=2) Judged@10 SetF(beta=0.5,rel=2)"
    plain = " ".join(measures)
    assert Graph(load(values)).job("measures", "one").params["measures"] == [plain, graded, plain]
    values["evaluation"]["measures"] = ["RR@10", "RR(rel=2)@10"]
    twice = Graph(load(values)).job("measures", "one").params["measures"]
    assert twice == ["RR@10 RR(rel=2)@10", "RR(rel=2)@10", "RR@10 RR(rel=2)@10"], "each once"
    values["evaluation"]["relevant"] = {"docs": {"train": 2}}
    with pytest.raises(InputError, match="evaluation.relevant names docs train, which is not evaluated; allowed: spl"):
        load(values)


def test_a_length_of_a_collection_is_told_to_all_that_search_it(values):
    values["evaluation"]["lengths"] = {"other": 16}
    jobs, before = by_name(Graph(load(values))), by_name(Graph(load({**values, "evaluation": {
        **values["evaluation"], "lengths": {}}})))  # fmt: skip
    changed = {key for key, job in jobs.items() if job.params != before[key].params}
    searching = {("search", "one"), ("search", "three"), ("search_external", "foreign"), ("rerank", "cross")}
    assert changed == {("vectors", "one/other"), ("vectors", "three/other"), *searching,
                       ("vectors_external", "foreign/other"), ("report", "")}  # fmt: skip
    assert jobs["search", "one"].params["lengths"] == jobs["rerank", "cross"].params["lengths"] == [0, 0, 16]
    assert jobs["vectors_external", "foreign/other"].params["passage_length"] == 16


def test_a_length_that_a_system_cannot_read_is_refused_before_any_job(values):
    for name, message in (("other", "evaluation.lengths.other is 99999; allowed: up to"), ("nowhere", "not evaluated")):
        values["evaluation"]["lengths"] = {name: 99999}
        with pytest.raises(InputError, match=message):
            load(values)


def test_a_release_reads_what_its_collections_were_made_from(graph):
    jobs = by_name(graph)
    assert jobs["release", "three"].inputs["about"] == ["out/collections/docs/about.json"]
    assert jobs["release", "three"].params["facts"]["about"] == {"docs": "out/collections/docs/about.json"}


def test_a_fusion_reads_the_systems_target_by_target(graph):
    assert by_name(graph)["fuse", "fused"].inputs["runs"] == [
        "out/runs/bm25/docs.dev.parquet", "out/runs/three/docs.dev.parquet",
        "out/runs/bm25/docs.test.parquet", "out/runs/three/docs.test.parquet",
        "out/runs/bm25/other.test.parquet", "out/runs/three/other.test.parquet",
    ]  # fmt: skip


def test_plugins_are_the_modules_that_the_settings_name(graph):
    jobs = by_name(graph)
    assert jobs["pretrain", "cdmae"].plugins == [
        "cdmae.pretraining.objectives.mae",
        "cdmae.masking.strategies.whole_word",
        "cdmae.masking.strategies.importance",
    ]
    assert jobs["pretrain", "none"].plugins == []
    assert jobs["collection", "docs"].plugins == ["cdmae.collections.sources.toy"]


def changed(values, *edits):
    """The jobs whose own settings an edit changes."""
    before = by_name(Graph(load(values)))
    for path, value in edits:
        *parents, last = path.split(".")
        place = values
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = value
    after = by_name(Graph(load(values)))
    return {key for key in before if key in after and before[key].params != after[key].params} - {("report", "")}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("report.title", "x", ""),
        ("evaluation.baseline", "one", ""),
        ("evaluation.measures", ["RR@10"], "measures bm25, one, cross, three, fused, foreign"),
        ("encoders.mae.steps", 20, "pretrain mae; release cross"),
        ("encoders.cdmae.sigma", 2.0, "pretrain cdmae; masked_terms cdmae; release one, three"),
        ("encoders.cdmae.steps", 20, "pretrain cdmae; release one, three"),
        ("importance.ami.edges", "mean", "importance ami/small/docs; release one, three"),
        ("importance.ami.window", 2, "importance ami/small/docs; ngrams ami/small/docs; release one, three"),
        ("training.rdrop", 0.1, "train_reranker cross; release cross"),
        ("stages.stage3.alpha", 1, "train_retriever three; release three"),
        ("stages.rerank.depth", 40, "train_reranker cross; mine one/docs/train; release cross"),
        ("starts.small.layers", 3, "pretrain none, mae, cdmae; release one, cross, three"),
        ("systems.fused.k", 10, "fuse fused"),
        ("systems.bm25.b", 0.7, "search_bm25 bm25; mine_bm25 bm25/docs/train"),
    ],
)
def test_a_setting_restarts_only_what_depends_on_it(values, path, value, expected):
    groups = [group.partition(" ") for group in expected.split("; ") if group]
    assert changed(values, (path, value)) == {(rule, name) for rule, _, names in groups for name in names.split(", ")}


def test_the_files_of_a_checkpoint_are_those_that_are_seen(tmp_path, values):
    values["systems"]["foreign"]["model"] = make_model(tmp_path)
    (tmp_path / ".snakemake_timestamp").touch()
    job = by_name(Graph(load(values)))["search_external", "foreign"]
    names = ("config.json", "model.safetensors", "tokenizer.json")
    assert job.inputs["checkpoint"] == [f"{tmp_path}/{name}" for name in names]


def test_the_files_of_a_given_generator_are_inputs_and_none_is_nothing(tmp_path, values):
    """So that another generator restarts the pre-training; and encoders from before there was one stay as they are."""
    start, generator = (make_model(tmp_path / name) for name in ("start", "generator"))
    values["starts"]["given"] = {"checkpoint": start}
    values["encoders"]["simlm"] = simlm = {"objective": "simlm", "start": "given"}
    without = Graph(load(values)).job("pretrain", "simlm")
    simlm["generator"] = generator
    job = Graph(load(values)).job("pretrain", "simlm")
    names = ("config.json", "model.safetensors", "tokenizer.json")
    assert job.inputs == {**without.inputs, "generator": [f"{generator}/{name}" for name in names]}
    assert job.inputs["checkpoint"] == [f"{start}/{name}" for name in names]
    settings = job.params["settings"]
    assert settings.pop("generator") == generator and settings == without.params["settings"]


def test_waiting_is_the_longest_chain_of_jobs_behind_a_job(graph):
    jobs = graph.jobs()

    def chain(job):
        behind = [each for each in jobs if set(job.outputs) & set(each.reads())]
        return 1 + max(map(chain, behind)) if behind else 0

    assert graph.waiting == {(job.rule, job.name): chain(job) for job in jobs}
    assert (
        graph.waiting["pretrain", "cdmae"] > graph.waiting["pretrain", "mae"] > graph.waiting["vectors", "three/docs"]
    )


def test_the_reading_names_every_job_and_file(graph):
    text = graph.reading()
    assert "pretrain none -> out/encoders/none\n    out/tokenizers/small\n" in text
    assert text.splitlines()[-1].startswith("    ")


def test_without_training_queries(values):
    """Pre-training on a collection, BM25 and a foreign model: no labels are needed."""
    for section in ("stages", "training", "systems"):
        del values[section]
    values["systems"] = {"bm25": {"kind": "bm25"}, "foreign": {"kind": "external", "model": "some/model"}}
    jobs = {job.rule for job in Graph(load(values)).jobs()}
    assert {"pretrain", "search_bm25", "vectors_external", "report"} <= jobs
    assert not jobs & {"train_retriever", "mine_bm25", "release", "teacher"}


def test_a_collection_alone(values):
    graph = Graph(load({"collections": values["collections"]}))
    assert [job.rule for job in graph.jobs()] == ["collection", "collection", "report"]
    assert graph.facts()["measures"] == {}


# --- encoders that come after another ---------------------------------------------------------------------------------


def test_an_encoder_that_goes_on_from_another_shares_what_is_upstream(values):
    before = by_name(Graph(load(values)))
    values["encoders"] |= {"general": {"collection": "other"}, "both": {"after": "general"}}
    values["systems"]["both"] = {**values["systems"]["one"], "encoder": "both"}
    jobs = by_name(Graph(load(values)))
    both = jobs["pretrain", "both"]
    assert both.inputs["after"] == "out/encoders/general"
    assert both.inputs["tokens"] == "out/tokens/small/docs"
    added = {key for key in jobs.keys() - before.keys() if key[0] in ("tokenizer", "tokens", "ngrams", "importance")}
    assert added == {("ngrams", "ami/small/other"), ("importance", "ami/small/other")}, "other masks, other counts"
    assert list(jobs).index(("pretrain", "general")) < list(jobs).index(("pretrain", "both"))
    assert jobs["pretrain", "cdmae"] == before["pretrain", "cdmae"]
    card = jobs["release", "both"].params["facts"]
    assert list(card["before"]) == ["general"] and list(card["collections"]) == ["docs", "other"]
    assert "before" not in jobs["release", "one"].params["facts"]


def test_snapshots_are_made_by_the_one_training(values):
    before = by_name(Graph(load(values)))
    for step in (8, 2):
        values["encoders"][f"cdmae-{step}"] = {"snapshot_of": "cdmae", "take_step": step}
        values["systems"][f"one-{step}"] = {**values["systems"]["one"], "encoder": f"cdmae-{step}"}
    graph = Graph(load(values))
    jobs = by_name(graph)
    training = jobs["pretrain", "cdmae"]
    assert training.params["snapshots"] == [2, 8]
    assert {key: training.params[key] for key in before["pretrain", "cdmae"].params} == before[
        "pretrain", "cdmae"
    ].params
    assert jobs["pretrain", "mae"] == before["pretrain", "mae"]
    found = jobs["snapshot", "cdmae-2"]
    assert (found.inputs, found.outputs) == ({"encoder": "out/encoders/cdmae"}, ["out/encoders/cdmae-2"])
    assert found.params == {"step": 2}
    assert jobs["train_retriever", "one-2"].inputs["encoder"] == "out/encoders/cdmae-2"
    assert {key for key in jobs if key[0] in ("pretrain", "masked_terms")} == {
        key for key in before if key[0] in ("pretrain", "masked_terms")
    }
    assert "cdmae-2" not in graph.facts()["encoders"], "its curves are those of its training"


# --- what students share ---------------------------------------------------------------------------------------------


def test_students_of_the_same_candidates_share_their_teacher_s_scores(values):
    values["stages"] |= {
        "other-alpha": {**values["stages"]["stage3"], "alpha": 2.0},
        "other-depth": {**values["stages"]["stage3"], "depth": 21},
    }
    for name in ("other-alpha", "other-depth"):
        values["systems"][name] = {**values["systems"]["three"], "stage": name}
    graph = Graph(load(values))
    jobs = by_name(graph)
    assert [name for rule, name in jobs if rule == "teacher"] == ["three", "other-depth"]
    read = {name: jobs["train_retriever", name].inputs["teacher"] for name in ("three", "other-alpha", "other-depth")}
    assert read == {
        "three": "out/teachers/three.parquet", "other-alpha": "out/teachers/three.parquet",
        "other-depth": "out/teachers/other-depth.parquet",
    }  # fmt: skip
    assert graph.facts()["teachers"] == read
