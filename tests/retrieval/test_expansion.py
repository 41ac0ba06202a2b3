"""Texts that a sequence-to-sequence model writes for passages, and models that cannot write any."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from small_collections import write_lines

from cdmae.collections.sources import expanded
from cdmae.errors import InputError
from cdmae.retrieval import expansion

PASSAGES = {
    "p1": ("Heaps", "a binary heap keeps the smallest item first"),
    "p2": ("", "a hash table finds an item by its hash"),
    "p3": ("Lists", "a list of links"),
    "p4": ("", "a tree"),
}
ASKED = {"p1": "smallest item", "p2": "by its hash", "p3": "links", "p4": "a tree"}


def make_t5(folder, steps):
    """Write a T5 that learns one query for each passage, and its tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    read = [f"{title} {text}" if title else text for title, text in PASSAGES.values()]
    words = ["<pad>", "</s>", "<unk>", *dict.fromkeys(" ".join(read).split())]
    tokenizer = Tokenizer(
        models.WordLevel({word: row for row, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    fast.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        t5 = T5ForConditionalGeneration(
            T5Config(
                vocab_size=len(words), d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2,
                dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
            )
        )  # fmt: skip
    optimiser = torch.optim.Adam(t5.parameters(), 1e-2)
    batch = fast(read, padding=True, return_tensors="pt")
    labels = fast(list(ASKED.values()), padding=True, return_tensors="pt")["input_ids"]
    labels[labels == 0] = -100
    for _ in range(steps):
        loss = t5(**batch, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    t5.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_t5(tmp_path_factory.mktemp("t5"), steps=80)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    return make_t5(tmp_path_factory.mktemp("random"), steps=0)


@pytest.fixture
def base(tmp_path):
    rows = [{"_id": name, "title": each[0], "text": each[1]} for name, each in PASSAGES.items()]
    write_lines(tmp_path / "base/corpus.jsonl", rows)
    return {"source": "beir", "path": str(tmp_path / "base")}


def settings_of(base, model, **changes):
    own = {"source": "expanded", "of": base, "model": str(model), "samples": 3, "text_length": 8}
    return own | changes


def test_the_model_writes_what_it_learnt_for_each_passage(base, model, tmp_path):
    settings = settings_of(base, model, top_k=1)
    expansion.write_texts(settings=settings, output=tmp_path / "texts.tsv")
    lines = (tmp_path / "texts.tsv").read_text().splitlines()
    assert lines == [f"{name}\t{text}" for name, text in ASKED.items() for _ in range(3)]
    read = expanded.Settings(of=base, texts=str(tmp_path / "texts.tsv")).load()
    texts = "smallest item smallest item smallest item"
    assert next(iter(read.rows())) == ("p1", "Heaps", f"{PASSAGES['p1'][1]} {texts}")


def test_texts_are_drawn_among_the_most_probable_words(base, untrained, tmp_path, monkeypatch):
    """Other draws for each text, piece and seed; the same for the same seed."""
    monkeypatch.setattr(expansion, "PIECE", 1)
    write_lines(tmp_path / "base/corpus.jsonl", [{"_id": name, "text": "a tree"} for name in "pq"])
    read = {}
    for name, changes in {"a": {}, "b": {}, "c": {"seed": 1}}.items():
        settings = settings_of(base, untrained, top_k=5, samples=20, **changes)
        expansion.write_texts(settings=settings, output=tmp_path / name)
        read[name] = (tmp_path / name).read_text()
    assert read["a"] == read["b"] != read["c"]
    own, other = ([line[2:] for line in read["a"].splitlines() if line[0] == p] for p in "pq")
    assert len(own) == 20 and len(set(own)) > 1 and own != other


def test_a_killed_run_goes_on_after_its_complete_pieces(base, untrained, tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "PIECE", 2)
    output = tmp_path / "texts.tsv"
    how = {"settings": settings_of(base, untrained, top_k=5), "output": output}
    expansion.write_texts(**how)
    lines = output.read_text().splitlines()
    output.unlink()
    first, second = sorted(tmp_path.rglob("00000*.tsv"))
    first.write_text("kept\n")
    second.unlink()
    expansion.write_texts(**how)
    assert output.read_text().splitlines() == ["kept", *lines[6:]]


def test_the_documented_program_trains_a_model_that_writes(tiny, base, tmp_path, capsys):
    root = Path(__file__).resolve().parents[2]
    program = (root / "docs/programs/doct5query.py").read_text()
    made = {
        "results/systems/encoders/mlm": tiny.encoder,
        "results/systems/collections/pydocs": tiny.collection,
        "data/writer": tmp_path / "writer",
        "max_length=128": "max_length=32",  # the encoder's positions
    }
    for old, new in made.items():
        assert program.count(old) == 1
        program = program.replace(old, str(new))
    with torch.random.fork_rng(devices=[]):
        exec(program, {"__name__": "documentation"})
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", capsys.readouterr().out)]
    assert len(losses) == 6 and losses[-1] < losses[0] - 0.1
    settings = settings_of(base, tmp_path / "writer", passage_length=32)
    expansion.write_texts(settings=settings, output=tmp_path / "texts.tsv")
    assert len((tmp_path / "texts.tsv").read_text().splitlines()) == 3 * len(PASSAGES)


def test_a_job_refuses_a_model_that_cannot_write(model, tmp_path, base):
    """Another kind of model, and missing weights."""
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(model, tmp_path / "less")

    def refused(words):
        with pytest.raises(InputError, match=words):
            expansion.write_texts(settings=settings_of(base, folder), output=tmp_path / "texts.tsv")

    weights = load_file(folder / "model.safetensors")
    del weights["decoder.final_layer_norm.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    refused("lacks weights: decoder.final_layer_norm")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    refused("cannot be read")
