"""Plans: operations against torch's counter and by hand, the paper on its node, sizes, disk."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tiny_models
import torch
from any_kind import as_objective
from made_up import make_model
from torch.utils.flop_counter import FlopCounterMode

from cdmae import collections
from cdmae.collections.store import Collection, write_collection
from cdmae.config.encoders import concepts
from cdmae.config.load import load
from cdmae.config.objectives.mae import Mae
from cdmae.config.reading import gather
from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.plan import flops
from cdmae.plan.flops import Network
from cdmae.plan.machine import Machine
from cdmae.plan.plan import Plan, text
from cdmae.plan.sizes import Size, size

ROOT = Path(__file__).resolve().parents[2]
SMALL = Network(layers=3, width=2, inner=4, vocabulary=10, positions=8, heads=1)


@pytest.fixture
def plan(values, toy, tmp_path):
    """Return the plan of the small config.

    Its collections have 1,000 passages of 20 words, and 320 queries per split.
    """
    splits = dict.fromkeys(("train", "dev", "test"), 320)
    toy.Settings.expected = lambda settings: (1000, 20.0, splits)
    return Plan(load({**values, "results": str(tmp_path)}))


def flops_of(plan):
    """Map every estimate with operations to them."""
    return {(each.part, each.name): each.flops for each in plan.estimates() if each.flops}


# --- operations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tiny_models.ALL)
def test_operations_and_weights_are_those_of_the_model(tmp_path, family):
    """Operations as torch counts them, without ELECTRA's projection of the embeddings.

    Weights differ by less than 1 %: positions of padding, MPNet's buckets, missing token types.
    """
    model = tiny_models.model(family, attn_implementation="eager")
    model.save_pretrained(tmp_path)
    network = Network.read(str(tmp_path))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.full((2, 7), 4))
    projection = 2 * 2 * 7 * 16 * 24 if family == "electra" else 0
    assert 2 * network.forward(7) + projection == counter.get_total_flops()
    weights = sum(each.numel() for each in model.parameters())
    assert network.parameters() == pytest.approx(weights, rel=0.01)
    assert flops.longest(str(tmp_path)) == 48


def test_the_head_of_a_network_and_one_of_a_third_of_its_width():
    assert SMALL.head(5) == 2 * 5 * (2 * 2 + 2 * 10)
    assert replace(SMALL, embedding=1).head(5) == 2 * 5 * (2 + 10)
    assert Network().narrowed(4 / 12) == Network(width=256, inner=1024, heads=4)


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


TOKENS = 10.0  # of every passage, whatever it is cut to


class Even(Size):
    """Passages of one length."""

    def tokens(self, longest):
        """As many for all."""
        return TOKENS


def test_the_operations_of_every_objective():
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
    asked = as_objective("cotmae", encoder, context="query", decoder_masking="whole_word")
    texts = as_objective("master", encoder, texts=("a", "b"))
    two = as_objective("master", encoder, complement_ratio=0.0)
    price["two"] = flops.passage(SMALL, two, Even(1, 1.0, {}))
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


# --- the operations of a run ----------------------------------------------------------------------


def test_trainings_scores_and_searches_by_hand(plan):
    """10 steps of 2,048; one epoch of 320 queries, five steps of 64, groups of 4."""
    network = plan.network("one")
    corpus = Size(1000, 20.0, {})
    found = flops_of(plan)
    passage = flops.passage(network, plan.config.encoders["cdmae"], corpus)
    assert found["pre-training", "cdmae"] == pytest.approx(10 * 2048 * passage)
    # 64 x 4 passages in chunks of 64, so that they are computed forward twice; backward is twice
    # forward
    group = 4 * (4 * network.forward(corpus.tokens(144)) + network.forward(10))
    assert found["retrievers", "one"] == pytest.approx(320 * group)
    pair = network.forward(10 + corpus.tokens(192))
    # 4 pairs forward, the best 2 of them forward and backward, twice with R-Drop
    assert found["rerankers", "cross"] == pytest.approx(320 * (4 + 2 * 2 * 3) * pair)
    assert found["teachers", "three"] == pytest.approx(320 * (1 + 3) * pair)
    # three evaluated splits, and train, on which negatives are mined
    encoded = 2 * 1000 * network.forward(corpus.tokens(144)) + 4 * 320 * network.forward(10)
    assert found["searches", "one"] == pytest.approx(encoded)
    depth = plan.config.systems["cross"].depth
    assert found["searches", "cross"] == pytest.approx(3 * 320 * depth * pair)
    assert ("searches", "bm25") not in found and ("pre-training", "none") not in found


def test_pre_training_stops_at_take_step_and_a_snapshot_costs_nothing(values, plan):
    whole = flops_of(plan)["pre-training", "cdmae"]
    values["encoders"]["cdmae"]["take_step"] = 4
    values["encoders"]["early"] = {"snapshot_of": "cdmae", "take_step": 2}
    found = flops_of(Plan(load({**values, "results": plan.config.results})))
    assert found["pre-training", "cdmae"] == pytest.approx(whole * 4 / 10)
    assert ("pre-training", "early") not in found


def test_a_joint_teacher_is_trained_too(plan):
    """Its 4 pairs a query, forward twice and backward."""
    alone = plan.retriever("one")
    system = replace(plan.config.systems["one"], joint_teacher="cross")
    plan.config = replace(plan.config, systems=plan.config.systems | {"one": system})
    pair = plan.network("cross").forward(10 + Size(1000, 20.0, {}).tokens(192))
    assert plan.retriever("one") - alone == pytest.approx(320 * 4 * 4 * pair)


def test_a_writer_reads_every_passage_and_writes_its_texts(plan, values, tmp_path):
    """With a decoder whose layers attend twice, a word-piece at a time: here 10 of each text."""
    described = {"is_encoder_decoder": True, "vocab_size": 100, "d_model": 2, "num_layers": 3}
    lines = [f'{{"_id": "{number}", "text": "a passage of five words"}}\n' for number in range(3)]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    of = {"source": "beir", "path": str(tmp_path)}
    model = make_model(tmp_path / "t5", **described)
    values["collections"]["more"] = {"source": "expanded", "of": of, "model": model, "samples": 5}
    made = Plan(load(values))
    passages, words, queries = made.config.collections["more"].settings.base.expected()
    network = Network.read(model)
    read = network.forward(Size(passages, words, queries).tokens(512))
    written = 4 / 3 * network.forward(10) + network.head(10)
    assert made.expansions("more") == pytest.approx(passages * (read + 5 * written))
    assert made.sizes["more"].words == pytest.approx(words + 5 * 6)


def test_a_foreign_model_is_as_large_as_its_folder_says(plan, values, tmp_path):
    """Here one of 3 layers x 2, cut to 6 word-pieces; without a folder, one of BERT's size."""
    found = Size(1000, 20.0, {})

    def encoded(network, length):
        return 2 * 1000 * network.forward(found.tokens(length)) + 3 * 320 * network.forward(10)

    assert plan.encoding("foreign") == pytest.approx(encoded(Network(), 512))
    sizes = {"num_hidden_layers": 3, "hidden_size": 2, "intermediate_size": 4, "vocab_size": 10}
    values["systems"]["foreign"]["model"] = make_model(tmp_path, **sizes)
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    small = Plan(load(values))
    assert small.encoding("foreign") == pytest.approx(encoded(SMALL, 6))
    runs = 8 * 1000 * 3 * 320
    assert small.searched("foreign") - runs == 4 * 2 * 1000 * 2, "vectors of two numbers"
    values["evaluation"]["keep_vectors"] = False
    assert Plan(load(values)).searched("foreign") == runs


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


def test_the_paper_on_h200s():
    """Pre-training takes 6.6 GPU-hours at half of the peak, stage 1 takes 1.4.

    They were counted by hand elsewhere, with Wikipedia.
    """
    overlays = [ROOT / f"config/{name}.yaml" for name in ("paper", "paper-ablations")]
    estimates = Plan(load(gather(ROOT / "config/config.yaml", overlays))).estimates()
    node = Machine(64, 8, "h200")
    hours = {(each.part, each.name): each.seconds(node) * 8 / 3600 for each in estimates}
    assert hours["pre-training", "cdmae"] == pytest.approx(6.6, rel=0.2)
    assert hours["retrievers", "cdmae-stage1"] == pytest.approx(1.4, rel=0.25)
    assert hours["retrievers", "cdmae-stage3"] == pytest.approx(2.8, rel=0.25)
    assert hours["teachers", "cdmae-stage3-simlm"] == pytest.approx(1.1, rel=0.25)


# --- the table ------------------------------------------------------------------------------------


def test_a_finished_result_is_not_to_do(plan, tmp_path):
    (tmp_path / "encoders/cdmae").mkdir(parents=True)
    rows = text(plan, Machine(2, 1, "h100")).splitlines()
    assert next(row for row in rows if row.startswith("pre-training")).split()[1:4] == [
        "2", "of", "3",
    ]  # fmt: skip
    assert any("GPU-hours" in row for row in rows)
    assert "networks   some/model is not on this machine; BERT base is assumed" in rows


def test_float32_is_slower_on_a_gpu(values, plan):
    card = Machine(1, 1, "a100")
    before = next(each for each in plan.estimates() if each.name == "cdmae").seconds(card)
    values["encoders"]["cdmae"]["precision"] = "fp32"
    exact = Plan(load({**values, "results": plan.config.results})).estimates()
    after = next(each for each in exact if each.name == "cdmae").seconds(card)
    assert after == pytest.approx(before * 312 / 19.5)


@pytest.mark.parametrize(("free", "lines"), [(1.5e9, ["downloads"]), (1e6, ["disk", "downloads"])])
def test_what_does_not_fit_on_the_disk_is_said(tmp_path, monkeypatch, free, lines):
    """The results and the downloads share a disk: either has room, both have not."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "fetched"))
    wanted = {
        "collections": {"nq": {"source": "ir_datasets", "dataset": "beir/nq"}},
        "results": str(tmp_path / "out"),
    }
    usage = shutil._ntuple_diskusage
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, int(free)))
    found = text(Plan(load(wanted)), Machine(1)).splitlines()
    assert [line.split()[0] for line in found if "NOT ENOUGH" in line] == lines


def test_gpus_of_unknown_speed_are_refused():
    with pytest.raises(InputError, match="--gpu is b9; allowed: h200, h100"):
        Machine(2, 1, "b9")
    with pytest.raises(InputError, match="--gpu is missing; allowed: h200"):
        Machine(2, 1)


# --- sizes ----------------------------------------------------------------------------------------


def write_docs(folder):
    """A collection of two passages and a query, as a job would make it."""
    passages = pa.table(
        {"passage_id": ["a", "b"], "title": ["", ""], "text": ["five words in this one"] * 2}
    )
    queries = pd.DataFrame({"query_id": ["q"], "text": ["why"]})
    write_collection(folder, Collection(passages, {"dev": queries}, {}, {"source": "toy"}))


def test_sizes_are_counted_where_a_collection_is_made(plan, tmp_path):
    assert size(plan.config, "docs") == Size(
        1000, 20.0, dict.fromkeys(("train", "dev", "test"), 320)
    )
    write_docs(tmp_path / "collections/docs")
    counted = size(plan.config, "docs")
    assert (counted.passages, counted.queries, counted.measured) == (2, {"dev": 1}, True)
    assert 1 < counted.words < 30


def test_the_mean_of_cut_lengths():
    """Against a million draws of the distribution that is assumed."""
    lengths = np.random.default_rng(1).gamma(2.0, 100 * 1.35 / 2, 1_000_000)
    assert Size(1, 100.0, {}).tokens(64) == pytest.approx(
        2 + np.minimum(lengths, 62).mean(), rel=0.002
    )
    assert Size(1, 0.0, {}).tokens(64) == 2


def test_a_collection_of_unknown_size_is_named(plan, toy):
    del toy.Settings.expected
    with pytest.raises(
        InputError,
        match="collections.docs does not exist yet and its source does not know its size",
    ):
        plan.estimates()


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
