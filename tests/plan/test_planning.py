"""Plans: the arithmetic by hand, the table of prices, the longest chain of small graphs, sizes."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tiny_models
import tiny_tokenizers
from any_kind import as_objective
from made_up import make_model
from planned import records

from cdmae import collections
from cdmae.collections.store import Collection, write_collection
from cdmae.config.encoders import concepts
from cdmae.config.load import load
from cdmae.config.objectives.mae import Mae
from cdmae.config.reading import gather
from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.plan import flops, machine, prices, sizes, work
from cdmae.plan import jobs as counting
from cdmae.plan.flops import Network
from cdmae.plan.jobs import count
from cdmae.plan.machine import Machine
from cdmae.plan.plan import Task, longest_chain, tasks_of, text, wall_time
from cdmae.plan.planned import Job, Planned
from cdmae.plan.prices import Price, price
from cdmae.plan.sizes import Size, size
from cdmae.plan.work import Work
from workflow import commands
from workflow.commands import configs

ROOT = Path(__file__).resolve().parents[2]
SMALL = Network(layers=3, width=2, inner=4, vocabulary=10, positions=8, heads=1)


@pytest.fixture
def planned(values, toy, tmp_path):
    """Return the plan of the small config.

    Its collections have 1,000 passages of 20 words, and 320 queries per split.
    """
    toy.Settings.expected = lambda settings: (
        1000,
        20.0,
        dict.fromkeys(("train", "dev", "test"), 320),
    )
    return Planned(load({**values, "results": str(tmp_path)}))


JOBS = {}


@pytest.fixture
def jobs(values):
    """The jobs of the small config where there are GPUs, by rule and name; planned once."""
    JOBS.update({} if JOBS else {(job.rule, job.name): job for job in records(values, gpus=8)})
    return JOBS


# --- operations -----------------------------------------------------------------------------------


def test_the_operations_and_parameters_of_a_network():
    assert Network().parameters() == 109_482_240 - (
        768 * 768 + 768
    )  # as published, without the pooler
    assert Network().narrowed(4 / 12) == Network(width=256, inner=1024, heads=4)
    weights = 4 * 2 * 2 + 2 * 2 * 4
    scores_and_sum = 2 * (2 * 5 * 5 * 2)
    assert SMALL.layer(5) == 2 * 5 * weights + scores_and_sum
    assert SMALL.forward(5) == 3 * SMALL.layer(5)
    assert SMALL.head(5) == 2 * 5 * (2 * 2 + 2 * 10)


def test_networks_follow_their_start(tmp_path):
    start = Start(
        collection="c", vocabulary=100, layers=3, hidden=2, heads=1, feedforward=4, positions=8
    )
    assert Network.of(start) == replace(SMALL, vocabulary=100)
    assert Network.of(Start(checkpoint="some/model")) == Network()
    config = '{"num_hidden_layers": 3, "hidden_size": 2, "intermediate_size": 4, "vocab_size": 10, '
    (tmp_path / "config.json").write_text(
        config + '"max_position_embeddings": 8, "num_attention_heads": 1}'
    )
    assert Network.of(Start(checkpoint=str(tmp_path))) == Network.read(str(tmp_path)) == SMALL
    assert flops.longest(str(tmp_path)) == 8
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    assert flops.longest(str(tmp_path)) == 6
    (tmp_path / "config.json").write_text('{"n_embd": 2}')  # a network of another kind
    assert Network.read(str(tmp_path)) == Network()
    t5 = '{"num_layers": 3, "d_model": 2, "d_ff": 4, "num_heads": 1, "vocab_size": 10}'
    (tmp_path / "config.json").write_text(t5)
    assert Network.read(str(tmp_path)) == replace(SMALL, positions=512)
    both = f'{{"model_type": "encoder-decoder", "encoder": {t5}, "decoder": {{"num_layers": 9}}}}'
    (tmp_path / "config.json").write_text(both)
    assert Network.read(str(tmp_path)) == replace(SMALL, positions=512)


@pytest.mark.parametrize("family", tiny_models.ALL)
def test_a_network_has_the_weights_of_its_model(tmp_path, family):
    """Differences are below 1 %: positions of padding, MPNet's buckets, missing token types."""
    model = tiny_models.model(family)
    model.save_pretrained(tmp_path)
    network = Network.read(str(tmp_path))
    assert network.parameters() == pytest.approx(
        sum(weights.numel() for weights in model.parameters()), rel=0.01
    )
    assert flops.longest(str(tmp_path)) == 48
    gate = 24 * 40 if family == "modernbert" else 0
    assert network.layer(5) == 10 * (4 * 24**2 + 2 * 24 * 40 + gate) + 4 * 5**2 * 24
    embedded = 16 if family == "electra" else 24
    assert network.head(5) == 10 * (24 + 40) * embedded


@pytest.mark.parametrize("kind", tiny_tokenizers.KINDS)
def test_tokens_cost_what_their_tokenizer_takes(planned, tmp_path, kind):
    folder = tmp_path / kind
    tiny_tokenizers.KINDS[kind]().save_pretrained(folder)
    (folder / "config.json").write_text('{"vocab_size": 40000}')
    start = Start(checkpoint=str(folder))
    chunks = kind in ("word_piece", "mpnet")
    pieces = 27_000
    planned.config = replace(planned.config, starts={"s": start})
    priced = price(planned, Job("tokens", "s/docs"))
    assert priced.seconds == pytest.approx(pieces * (1.1e-6 if chunks else 2.5e-6))
    assert priced.disk == pytest.approx(
        (2 if chunks else 4) * pieces + 16_000
    )  # 80,000 numbers need uint32
    (folder / "tokenizer.json").unlink()
    assert flops.is_word_piece(start)  # nothing tells
    (folder / "vocab.json").touch()
    assert not flops.is_word_piece(start)


# --- work -----------------------------------------------------------------------------------------


def test_the_work_of_pretraining_and_training(planned, jobs):
    """10 steps of 2,048; one epoch of 320 queries, five steps of 64, groups of 4."""
    network = planned.network("one")
    corpus = Size(1000, 20.0, {})
    found = {key: count(planned, job) for key, job in jobs.items()}
    passage = flops.passage(network, planned.config.encoders["cdmae"], corpus)
    assert found["pretrain", "cdmae"].flops == pytest.approx(10 * 2048 * passage)
    # 64 x 4 passages in chunks of 64, so that they are computed forward twice; backward is twice
    # forward
    group = 4 * (4 * network.forward(corpus.tokens(144)) + network.forward(10))
    assert found["train_retriever", "one"].flops == pytest.approx(320 * group)
    pair = network.forward(10 + corpus.tokens(192))
    # 4 pairs forward, the best 2 of them forward and backward, twice with R-Drop
    assert found["train_reranker", "cross"].flops == pytest.approx(320 * (4 + 2 * 2 * 3) * pair)
    assert found["teacher", "three"].flops == pytest.approx(320 * (1 + 3) * pair)
    assert price(planned, jobs["vectors", "one/docs"]).disk == 4 * 1000 * 8
    query = network.forward(10) + 1000 * (2 * 8 + work.SELECT)
    assert found["mine", "one/docs/train"].flops == pytest.approx(320 * query)


def test_a_joint_teacher_is_trained_and_held_too(planned):
    """Its 4 pairs a query, forward twice and backward, and its weights with AdamW's moments."""
    system = replace(planned.config.systems["one"], joint_teacher="cross")
    alone = work.train_retriever(planned, "one")
    planned.config = replace(planned.config, systems=planned.config.systems | {"one": system})
    together = work.train_retriever(planned, "one")
    network = planned.network("cross")
    pair = network.forward(10 + Size(1000, 20.0, {}).tokens(192))
    assert together.flops - alone.flops == pytest.approx(320 * 4 * 4 * pair)
    for unit in ("weight", "trained weight"):
        assert together.units[unit] - alone.units[unit] == network.parameters()


def test_a_writer_reads_every_passage_and_writes_its_texts(values, tmp_path):
    """With a decoder whose layers attend twice, a word-piece at a time: here 10 of each text."""
    described = {"is_encoder_decoder": True, "vocab_size": 100, "d_model": 2, "num_layers": 3}
    lines = [f'{{"_id": "{number}", "text": "a passage of five words"}}\n' for number in range(3)]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    of = {"source": "beir", "path": str(tmp_path)}
    model = make_model(tmp_path / "t5", **described)
    values["collections"]["more"] = {"source": "expanded", "of": of, "model": model, "samples": 5}
    planned = Planned(load(values))
    counted = work.expansions(planned, "more")
    passages, words, queries = planned.config.collections["more"].settings.base.expected()
    network = Network.read(model)
    read = network.forward(Size(passages, words, queries).tokens(512))
    written = 4 / 3 * network.forward(10) + network.head(10)
    assert counted.flops == pytest.approx(passages * (read + 5 * written))
    assert counted.units["text"] == 5 * passages
    assert planned.size("more").words == pytest.approx(words + 5 * 6)


TOKENS = 10.0  # of every passage, whatever it is cut to


class Even(Size):
    """Passages of one length."""

    def tokens(self, longest):
        """As many for all."""
        return TOKENS


def test_the_price_of_every_objective():
    """Of a passage of 10 word-pieces, layers written out; a backward pass is two forward ones."""
    encoder = Mae(start="s", collection="c", encoder_ratio=0.3, decoder_ratio=0.5, decoder_layers=2)
    price = {
        name: flops.passage(SMALL, as_objective(name, encoder), Even(1, 1.0, {}))
        for name in concepts("pretraining/objectives")
    }
    of_queues = {"queue": {"queue": 4096}, "cloze": {"queue": 4096, "cut": "cloze"}}
    for name, changed in of_queues.items():
        queued = as_objective("contriever", encoder, **changed)
        price[name] = flops.passage(SMALL, queued, Even(1, 1.0, {}))
        assert queued.kept(SMALL) == SMALL.parameters() + SMALL.width * (4096 + 2048)
    assert as_objective("contriever", encoder).kept(SMALL) == 0
    asked = as_objective("cotmae", encoder, context="query", decoder_masking="whole_word")
    texts = as_objective("master", encoder, texts=("a", "b"))
    two = as_objective("master", encoder, complement_ratio=0.0)
    price["two"] = flops.passage(SMALL, two, Even(1, 1.0, {}))
    assert (two.passes, two.held_layers, texts.passes, texts.held_layers) == (1, 2, 2, 8)
    price["texts"] = flops.passage(SMALL, texts, Even(1, 1.0, {}))
    price["asked"] = flops.passage(SMALL, asked, Even(1, 1.0, {}))
    price["frozen"] = flops.passage(
        SMALL, as_objective("simlm", encoder, generator="g"), Even(1, 1.0, {})
    )
    layer = SMALL.layer(TOKENS)
    span = 1 + TOKENS / 2

    def heads(share):
        return SMALL.head(share * TOKENS)

    condensed = 3 * (5 * SMALL.layer(span) + SMALL.head(0.6 * span))
    crop = 3 * SMALL.layer(2 + 0.275 * (TOKENS - 2))
    scores = 4 * SMALL.width * 4096
    generator = (
        3 * (3 * layer + heads(0.3)) + 3 * layer + heads(0.8)
    )  # one head: as wide as the encoder
    expected = {
        "mae": 3 * (5 * layer + heads(0.8)),
        "retromae": 3 * (4 * layer + heads(1.3)),
        "dupmae": 3 * (4 * layer + heads(2.3)),
        "mlm": 3 * (3 * layer + heads(0.3)),
        # forward twice; 27.5 % of eight tokens, and two special tokens
        "contriever": 2 * 4 * crop,
        # a crop forward and backward; the copy's crop, or the rest of the passage
        "queue": 4 * crop + scores,
        "cloze": 3 * crop + 3 * SMALL.layer(2 + 0.725 * (TOKENS - 2)) + scores,
        # the head at all tokens of the encoder, and a mean of word embeddings
        "lexmae": 3 * (5 * layer + heads(1.8)) + 4 * SMALL.vocabulary * SMALL.width,
        "seed": 3 * (5 * layer + heads(1.3)),  # two decoder layers
        "toroder": 3 * (5 * layer + heads(0.8)),
        "bowdpr": 3 * (3 * layer + heads(0.3 + 1 / TOKENS)),
        "condenser": 3 * (5 * layer + heads(0.6)),
        "cotmae": 2 * 3 * (5 * SMALL.layer(span) + SMALL.head(0.8 * span)),
        "asked": 2 * 3 * (5 * layer + heads(0.8)),  # a passage of ten word-pieces, a query of ten
        "two": 2 * 3 * (7 * SMALL.layer(span) + SMALL.head(1.3 * span)),
        # the encoder twice, and a third decoder; both predict all tokens together
        "master": 2 * 3 * (12 * SMALL.layer(span) + SMALL.head(2.3 * span)),
        "texts": 2 * 3 * (16 * SMALL.layer(span) + SMALL.head(3.3 * span)),  # five decoders
        "cocondenser": 2 * (condensed + 3 * SMALL.layer(span)),
        "simlm": 3 * (5 * layer + heads(2)) + generator,
        "frozen": 3 * (5 * layer + heads(2)) + 2 * 3 * layer + heads(0.8),
    }
    assert price == pytest.approx(expected)


def test_the_paper_on_h200s():
    """Pre-training takes 6.6 GPU-hours at half of the peak, stage 1 takes 1.4.

    Both were counted by hand elsewhere, with Wikipedia.
    """
    overlays = [ROOT / f"config/{name}.yaml" for name in ("paper", "paper-ablations")]
    values = gather(ROOT / "config/config.yaml", overlays)
    jobs = records(values, "all", "table_corpus", gpus=8)
    tasks = tasks_of(Planned(load(values)), jobs, Machine(64, 8, "h200"), everything=True)
    hours = {task.name: task.seconds * task.job.gpus / 3600 for task in tasks}
    assert hours["pretrain cdmae"] == pytest.approx(6.6, rel=0.2)
    assert hours["train_retriever cdmae-stage1"] == pytest.approx(1.4, rel=0.25)
    assert hours["teacher cdmae-stage3-simlm"] == pytest.approx(1.1, rel=0.25)


# --- sizes ----------------------------------------------------------------------------------------


def write_docs(folder):
    """A collection of two passages and a query, as a job would make it."""
    passages = pa.table(
        {"passage_id": ["a", "b"], "title": ["", ""], "text": ["five words in this one"] * 2}
    )
    queries = pd.DataFrame({"query_id": ["q"], "text": ["why"]})
    write_collection(folder, Collection(passages, {"dev": queries}, {}, {"source": "toy"}))


def test_sizes_are_counted_where_a_collection_is_made(planned, tmp_path):
    assert size(planned.config, "docs") == Size(
        1000, 20.0, dict.fromkeys(("train", "dev", "test"), 320)
    )
    write_docs(tmp_path / "collections/docs")
    counted = size(planned.config, "docs")
    assert (counted.passages, counted.queries, counted.measured) == (2, {"dev": 1}, True)
    assert 1 < counted.words < 30


@pytest.mark.parametrize(
    ("passages", "unit", "said"),
    [
        (
            2_800_000_000,
            "word",
            "collections.docs has about 2,800,000,000 passages; allowed: up to 2,147,483,647 ",
        ),
        (
            300_000_000,
            "word",
            "is docs, of about 6,000,000,000 words, whose n-grams cannot be counted",
        ),
        (
            200_000_000,
            "wordpiece",
            "is docs, of about 5,400,000,000 wordpieces, whose n-grams cannot be counted",
        ),
        (200_000_000, "word", ""),
        (None, "word", ""),
    ],
)
def test_what_cannot_be_numbered_is_refused_before_any_job(
    values, toy, monkeypatch, passages, unit, said
):
    """As far as the source can tell."""
    monkeypatch.setattr(toy.Settings, "expected", lambda _: passages and (passages, 20.0, {}))
    values["importance"]["ami"]["unit"] = unit
    config = load(values)
    if not said:
        sizes.check(config)
        return
    with pytest.raises(InputError, match=said):
        sizes.check(config)


def test_the_mean_of_cut_lengths():
    """Against a million draws of the distribution that is assumed."""
    lengths = np.random.default_rng(1).gamma(2.0, 100 * 1.35 / 2, 1_000_000)
    assert Size(1, 100.0, {}).tokens(64) == pytest.approx(
        2 + np.minimum(lengths, 62).mean(), rel=0.002
    )
    assert Size(1, 0.0, {}).tokens(64) == 2


def test_a_collection_of_unknown_size_is_named(planned, toy):
    del toy.Settings.expected
    with pytest.raises(
        InputError,
        match="collections.other does not exist yet and its source does not know its size",
    ):
        planned.size("other")


def test_sources_tell_sizes(tmp_path):
    (tmp_path / "collection.tsv").write_text(
        "".join(f"{row:05d}\tthree words here\n" for row in range(5000))
    )
    (tmp_path / "queries.dev.tsv").write_text("1\ta\n2\tb\n")
    (tmp_path / "qrels.dev.tsv").write_text("1\t0\t00001\t1\n1\t0\t00002\t1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/corpus.jsonl").write_text('{"_id": "a", "text": "b"}\nnonsense\n')
    msmarco, beir, published = map(collections.source, ("msmarco", "beir", "ir_datasets"))
    assert msmarco.Settings(path=str(tmp_path)).expected() == (5000, 3.0, {"dev": 1})
    with pytest.raises(InputError, match=r"corpus.jsonl, line 2: not JSON"):
        beir.Settings(path=str(tmp_path / "other")).expected()
    settings = published.Settings(
        dataset="msmarco-passage", splits={"train": "train", "dl19": "trec-dl-2019"}
    )
    assert settings.expected() == (8_841_823, 56.0, {"train": 502_939, "dl19": 43})


# --- machines -------------------------------------------------------------------------------------


def test_a_price_is_the_sum_of_the_units_of_a_job(planned, monkeypatch):
    """By hand; a network of 100 weights, and 10 operations at two units of work."""
    rows = {
        "job": (4.0, 0.0, 1e9, 0.0),
        "weight": (0.0, 4.0, 0.0, 16.0),
        "query": (0.5, 0.0, 8.0, 0.0),
    }
    table = {unit: dict(zip(prices.PRICED, row, strict=True)) for unit, row in rows.items()}
    monkeypatch.setattr(prices, "of", lambda rule: table)
    monkeypatch.setattr(
        counting, "count", lambda planned, job: Work(10.0, {"weight": 100, "query": 6})
    )
    one = price(planned, Job("pretrain", "cdmae"))
    assert one == (10.0, 4.0, 3.0, 400.0, 1e9 + 48 + 1600)
    assert price(planned, Job("pretrain", "cdmae", gpus=2)).memory == 2 * (1e9 + 48 + 2.5e9)


def test_every_unit_of_every_job_has_a_price_with_a_source(planned, jobs):
    counted = {
        (rule, unit) for (rule, _), job in jobs.items() for unit in count(planned, job).units
    }
    with open(prices.TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    priced = {(rule, row["unit"]) for row in rows for rule in row["rule"].split()}
    assert counted <= priced
    assert {rule for rule, _ in priced} == {rule for rule, unit in priced if unit == "job"}
    assert all(row["source"] and any(row[column] for column in prices.PRICED) for row in rows)
    assert prices.of("export") == prices.of("no such rule") == prices.of("*")


def test_seconds_are_operations_over_speed(planned, monkeypatch):
    """A network that is narrow gets one core; what needs no network, all."""
    priced = Price(312e12 * 0.45, 4.0, 8.0, 0.0, 0.0)
    monkeypatch.setattr(prices, "price", lambda planned, job: priced)
    jobs = [Job("pretrain", "cdmae", threads=8, gpus=8)]
    (task,) = tasks_of(planned, jobs, Machine(4, 2, "a100"))
    assert task.seconds == pytest.approx(4 + 8 / 4 + 1 / 2) and (
        task.job.threads,
        task.job.gpus,
    ) == (4, 2)
    (task,) = tasks_of(planned, jobs, Machine(1))
    assert task.seconds == pytest.approx(4 + 8 + 312e12 * 0.45 / machine.CORE)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"cores": 0}, "--cores is 0; allowed: 1 and more"),
        ({"gpus": -1, "gpu": "h200"}, "--gpus is -1; allowed: 0 and more"),
        ({"memory": -3.0 * 2**30}, "--memory is -3; allowed: more than 0 GB"),
        ({"gpus": 1, "gpu": "b9"}, "--gpu is b9; allowed: h200, h100"),
        ({"gpus": 1}, "--gpu is missing; allowed: h200"),
    ],
)
def test_machines_that_cannot_be_are_refused(values, sentence):
    with pytest.raises(InputError, match=sentence):
        Machine(**({"cores": 2} | values))


# --- the longest chain ----------------------------------------------------------------------------


def tasks(*lines):
    """Make tasks of (name, seconds, indices to wait for, cores, GPUs)."""
    return [
        Task(Job(name, "", threads=cores, gpus=gpus), seconds, after=after)
        for name, seconds, after, cores, gpus in lines
    ]


def test_the_longest_chain_and_the_least_time_on_a_machine():
    diamond = tasks(
        ("a", 1, (), 1, 0), ("b", 5, (0,), 1, 0), ("c", 3, (0,), 1, 0), ("d", 2, (1, 2), 1, 0)
    )
    assert [task.name for task in longest_chain(diamond)] == ["a", "b", "d"]
    assert wall_time(diamond, Machine(2)) == 1 + 5 + 2
    assert wall_time(diamond, Machine(1)) == 1 + 5 + 3 + 2
    apart = tasks(("a", 1, (), 2, 0), ("b", 2, (), 2, 0))
    assert [task.name for task in longest_chain(apart)] == ["b"] and longest_chain([]) == []
    assert wall_time(apart, Machine(2)) == 3
    trained = tasks(("a", 4, (), 1, 8), ("b", 6, (), 1, 1))
    assert wall_time(trained, Machine(64, 8, "h200")) == 6
    assert wall_time(trained, Machine(64, 2, "h200")) == (4 * 8 + 6) / 2, (
        "were they given more than there are"
    )


# --- the whole plan -------------------------------------------------------------------------------


def test_the_plan_tells_everything_but_what_is_up_to_date(planned, jobs):
    found = text(planned, list(jobs.values()), Machine(2, 1, "h100"))
    count = len(jobs)
    assert found.startswith(f"{count} of {count} jobs on 2 cores and 1 x h100:\n")
    for line in (
        "rule",
        "pretrain",
        "wall time",
        "disk",
        "memory",
        "longest chain of jobs",
        "sizes: 0 of 2",
        "times:",
    ):
        assert f"\n{line}" in found
    assert (
        "GPU-hours" in found
        and "\nnetworks: some/model is not on this machine; the plan assumes BERT base" in found
    )
    first, *others = jobs.values()
    known = [first._replace(due=False), *others]
    names = [task.name for task in tasks_of(planned, known, Machine(1))]
    assert len(names) == len(jobs) - 1 and f"{first.rule} {first.name}" not in names
    assert len(tasks_of(planned, known, Machine(1), everything=True)) == len(jobs)
    nothing = [job._replace(due=False) for job in known]
    assert text(planned, nothing, Machine(1)) == f"all {len(jobs)} jobs are done and up to date"


def test_what_does_not_suffice_is_said_plainly(planned, jobs, monkeypatch):
    jobs = list(jobs.values())
    found = tasks_of(planned, jobs, Machine(1))
    most = max(task.memory for task in found)
    disk = sum(task.disk for task in found)
    usage = shutil._ntuple_diskusage
    for memory, free, missing in (
        (None, disk + 1, 0),
        (most + 1, disk + 1, 0),
        (most / 2, disk / 2, 2),
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(0, 0, int(free)))
        found = text(planned, jobs, Machine(1, memory=memory))
        assert found.count("NOT ENOUGH, ") == missing
        assert (" are here" in found) == (memory is not None) and " are free there" in found


def test_what_is_downloaded_is_told_with_its_place(tmp_path, monkeypatch):
    """Sizes are from ir_datasets' catalogue, and of unpacked files; existing files do not count."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "fetched"))
    monkeypatch.chdir(tmp_path)
    source = collections.source("ir_datasets")

    def told(dataset, **settings):
        found = source.Settings(dataset=dataset, **settings).downloads()
        return {
            str(path.relative_to(tmp_path / "fetched")): round(size / 1e6)
            for path, size in found.items()
        }

    splits = {"dev": "dev/small", "dl20": "trec-dl-2020"}
    assert told("msmarco-passage", splits=splits) == {
        "downloads/31644046b18952c1386cd4564ba2ae69": 1058, "downloads/c177b2795d5f2dcc524cf00fcd973be1": 19,
        "downloads/9157ccaeaa8227f91722ba5770787b16": 1, "downloads/00a406fb0d14ed3752d70d1e4eb98600": 0,
        "downloads/0355ccee7509ac0463e8278186cdd8d1": 0, "msmarco-passage/collection.tsv": 2971,
    }  # fmt: skip
    assert told("dpr-w100") == {"downloads/612fe66e0b6b41ee28f806140226c563": 4695}
    tex, unix = (told(f"beir/cqadupstack/{name}") for name in ("tex", "unix"))
    assert set(tex) & set(unix) == {"downloads/4e41456d7df8ee7760a7f866133bda78"}, (
        "an archive for all forums"
    )
    (tmp_path / "data/published").mkdir(parents=True)
    (tmp_path / "data/published/nq.zip").touch()
    assert list(told("beir/nq")) == ["beir/nq/docs.pklz4"]
    (tmp_path / "fetched/beir/nq").mkdir(parents=True)
    (tmp_path / "fetched/beir/nq/docs.pklz4").touch()
    assert told("beir/nq") == {}


def test_room_for_downloads_and_results_is_one_where_their_disk_is(tmp_path, monkeypatch):
    """Either has room, both have not."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "fetched"))
    wanted = {
        "collections": {"nq": {"source": "ir_datasets", "dataset": "beir/nq"}},
        "results": str(tmp_path / "out"),
    }
    usage = shutil._ntuple_diskusage
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, int(1.5e9)))
    found = text(Planned(load(wanted)), records(wanted), Machine(1))
    disk, downloads = (
        next(line for line in found.splitlines() if line.startswith(name))
        for name in ("disk", "downl")
    )
    assert "NOT ENOUGH" not in disk
    assert downloads.startswith("downloads  about 1.2") and "with the results; 1.4" in downloads
    assert ": NOT ENOUGH, " in downloads


def test_a_foreign_model_is_as_large_as_its_folder_says(planned, values, tmp_path):
    """Here one of 3 layers x 2, cut to 6 word-pieces; without a folder, one of BERT's size."""
    job = Job("vectors_external", "foreign/docs")
    unknown = count(planned, job)
    found = Size(1000, 20.0, {})
    assert unknown.flops == pytest.approx(work.PADDED * 1000 * Network().forward(found.tokens(512)))
    sizes = {"num_hidden_layers": 3, "hidden_size": 2, "intermediate_size": 4, "vocab_size": 10}
    model = make_model(tmp_path, **sizes)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    system = {**values["systems"]["foreign"], "model": model}
    values = {**values, "systems": {**values["systems"], "foreign": system}}
    small = Planned(load(values))
    assert count(small, job).flops == pytest.approx(
        work.PADDED * 1000 * SMALL.forward(found.tokens(6))
    )
    assert price(small, job).disk == 4 * 1000 * 2


def test_a_foreign_model_is_found_in_its_first_module_and_in_the_hub_s_cache(tmp_path, monkeypatch):
    """Here in DistilBERT's words."""
    inner = tmp_path / "models--some--name/snapshots/abc/0_Transformer"
    inner.mkdir(parents=True)
    (inner.parent / "modules.json").write_text('[{"path": "0_Transformer"}, {"path": "1_Pooling"}]')
    (inner / "config.json").write_text(
        '{"n_layers": 3, "dim": 2, "hidden_dim": 4, "n_heads": 1, "vocab_size": 10}'
    )
    (inner / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    found = replace(SMALL, positions=512)
    assert Network.read(str(inner.parent)) == found and flops.longest(str(inner.parent)) == 6
    (tmp_path / "models--some--name/refs").mkdir()
    (tmp_path / "models--some--name/refs/main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert Network.read("some/name") == found and flops.longest("some/name") == 6
    assert Network.read("some/other") == Network(), "what is not here is taken for BERT base"


def test_no_more_vectors_are_planned_than_are_kept(planned, values, tmp_path):
    search = Job("search", "one")
    disk = price(planned, Job("search", "one")).disk
    values = {
        **values,
        "results": str(tmp_path),
        "evaluation": {**values["evaluation"], "keep_vectors": False},
    }
    made = Planned(load(values))
    encoding = sum(
        count(planned, Job("vectors", f"one/{name}")).flops for name in ("docs", "other")
    )
    assert count(made, search).flops == pytest.approx(count(planned, search).flops + encoding)
    assert price(made, search).disk == disk


def test_the_plan_of_a_run_is_that_of_its_run():
    """Estimates are right to a factor of two.

    The run took 764 s on two cores of a Xeon: the default with one seed, and twice its steps and
    epochs.
    """
    took = {
        "collection pydocs": (25, 357), "tokenizer tiny": (8, 307), "pretrain cdmae": (303, 767),
        "train_retriever cdmae-stage1": (94, 1445), "train_reranker cdmae-reranker": (61, 1170),
        "vectors cdmae-stage1/pydocs": (17, 696), "search cdmae-stage1": (10, 907),
        "mine cdmae-stage1/pydocs/train": (9, 786), "rerank cdmae-reranker": (51, 932),
        "teacher cdmae-stage3": (32, 1069), "search_bm25 bm25": (13, 471),
    }  # fmt: skip
    longer = {"seeds": [], "pretraining": {"steps": 4000}, "training": {"epochs": 8}}
    values = gather(ROOT / "config/config.yaml", overrides={"results": "nowhere", **longer})
    jobs = records(values, cores=2)
    planned = tasks_of(Planned(load(values)), jobs, Machine(2), everything=True)
    found = {task.name: task for task in planned}
    for name, (seconds, megabytes) in took.items():
        assert seconds / 2.1 < found[name].seconds < 2.1 * seconds, name
        assert megabytes / 1.5 < found[name].memory / 1e6 < 2 * megabytes, name
    assert 764 / 1.5 < wall_time(planned, Machine(2)) < 764 * 1.5


def test_the_command_plans_the_paper_for_any_machine(monkeypatch, capsys):
    command = ["plan", "--configfile", str(ROOT / "config/paper.yaml"), "--all"]
    described = [*command, "--cores", "64", "--gpus", "8", "--gpu", "h200"]

    def planned(*words):
        monkeypatch.setenv("CDMAE_DEVICE", "cpu")  # the described machine is another one
        monkeypatch.chdir(ROOT)
        commands.command(list(words))
        return capsys.readouterr().out

    found = planned(*described)
    assert " jobs on 64 cores and 8 x h200:" in found
    assert float(re.search(r"\nwall time .*, ([\d.]+) GPU-hours", found)[1]) > 10
    assert "NOT ENOUGH" not in found.split("\nmemory ")[1], "its memory is unknown"
    small = planned(*described, "--memory", "16")
    assert re.search(r"\nmemory .*; 16.0 GB are here: NOT ENOUGH, [\d.]+ GB are missing\n", small)
    kind = planned(*command, "--cores", "2", "--gpu", "h200")
    assert re.search(r" jobs on 2 cores and \d+ x h200:", kind), "--gpu means at least one"
    with pytest.raises(InputError, match="^--gpu is abacus; allowed: h200"):
        planned(*command, "--gpus", "8", "--gpu", "abacus")


def test_the_command_plans_what_a_run_takes(monkeypatch):
    """What targets do not need is left out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CDMAE_DEVICE", "")  # which plan sets
    line = ["--configfile", "config/smoke.yaml", "table_latency", "--cores", "4", "figure_sampling"]
    assert commands.read("plan", ["table_main", *line])[0] == [
        "table_main",
        "figure_sampling",
        "table_latency",
    ]
    for word in ("tabel_main", "results/encoders/cdmea"):
        with pytest.raises(InputError, match=f"No rule to produce {word}"):
            commands.command(["plan", word])
    config = configs.configured([])
    _, measuring, table = records(config.values(), "table_latency")
    assert (measuring.rule, table.rule) == ("latency", "table")
    (task,) = tasks_of(Planned(config), [measuring], Machine(2), everything=True)
    assert 13 < task.seconds < 30, "18 s on an idle core"
    sampling = [job.rule for job in records(config.values(), "figure_sampling")]
    assert "importance" in sampling and sampling[-1] == "figure" and "report" not in sampling


def test_a_reader_that_has_seen_enough_ends_the_plan_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        command = [sys.executable, "workflow/start.py", "plan", "--all"]
        found = subprocess.run(command, cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (found.returncode, found.stderr) == (128 + signal.SIGPIPE, "")
