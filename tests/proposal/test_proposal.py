"""`./run new`: the config that it writes for a folder is short, and loads as it is."""

import contextlib
import json
import random
import re
import shutil
from functools import partial
from pathlib import Path

import huggingface_hub.constants
import pytest
from proposal_data import beir, pairs, passage, retriever, texts
from small_collections import write_files, write_lines

from cdmae import commands
from cdmae.commands import configs, proposing
from cdmae.config.load import load
from cdmae.config.reading import gather, read_yaml
from cdmae.errors import InputError
from cdmae.plan.machine import Machine
from cdmae.proposal import encoders, recipe
from cdmae.proposal.survey import Survey
from cdmae.tokens.tokenise import load_tokenizer

MOST_LINES = 40
BOTH = ("dev", "test")
TENTHS = {"dev": 0.1, "test": 0.1}
MINE, MADE = ("mine", "dev"), ("made", "dev")


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """A function that runs the command, and returns the config and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*words):
        commands.command(["new", "--force", *map(str, words)])
        text = (tmp_path / "my.yaml").read_text()
        assert len(text.splitlines()) <= MOST_LINES
        values = gather(tmp_path / "none.yaml", [tmp_path / "my.yaml"])
        with contextlib.chdir(proposing.ROOT):  # where a run looks for relative paths
            return load(values), capsys.readouterr().out

    return run


@pytest.fixture
def at_hub(tmp_path, monkeypatch, tiny_bert):
    """A hub that answers, and the folder with the small files of its only model, a retriever."""
    folder = retriever(tmp_path / "snapshot", tiny_bert, "Pooling", pooling={})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    return folder


# --- layouts --------------------------------------------------------------------------------------


def asked(folder, number):
    """Write documents, and a table of real questions; return the words of the command."""
    lines = [f"what is number {row},page{row % 40}.md\n" for row in range(number)]
    table = folder.with_name("asked.csv")
    table.write_text("Question,File\n" + "".join(lines))
    return texts(folder), "--questions", table


@pytest.mark.parametrize(
    ("write", "holdout", "tuned", "mine", "made"),
    [
        (lambda path: pairs(path.with_suffix(".csv")), TENTHS, MINE, BOTH, None),
        (partial(beir, train=60, test=20), {"dev": 0.1}, MINE, ("test", "dev"), None),
        (partial(beir, train=60, dev=20, test=20), {}, MINE, BOTH, None),
        (partial(beir, dev=30, test=30), {}, MINE, BOTH, BOTH),
        (partial(beir, test=3, validation=4), {}, ("mine", "validation"), ("test", "validation"), BOTH),
        (partial(beir, test=30), {}, MADE, ("test",), BOTH),
        (texts, {}, MADE, (), BOTH),
        (partial(asked, number=20), {}, MADE, ("test",), BOTH),
        (partial(asked, number=300), TENTHS, MINE, BOTH, None),
    ],
)  # fmt: skip
def test_queries_of_each_layout_train_choose_and_are_reported(
    new, tmp_path, write, holdout, tuned, mine, made
):
    """Labels are for training; without them, queries are made from the text."""
    data = write(tmp_path / "my data")
    config, printed = new(*(data if isinstance(data, tuple) else [data]))
    assert config.results == "results/my-data" and "passages" in printed
    assert config.collections["mine"].settings.holdout == holdout
    evaluated = {"mine": mine, "made": made} if made else {"mine": mine}
    assert config.evaluation.collections == evaluated
    assert config.systems["fused"].tuned_on == tuned
    assert config.stages["stage1"].collection == ("made" if made else "mine")
    assert config.encoders["base"].collection == config.starts["small"].collection == "mine"
    assert config.encoders["base"].masked_by_importance
    assert configs.chosen_collection(config, None) == "mine"


@pytest.mark.parametrize(("number", "is_few"), [(10, True), (34, False)])
def test_few_texts_have_a_warning(new, tmp_path, number, is_few):
    _, printed = new(texts(tmp_path / "some", number=number))
    assert ("WARNING: 30 queries" in printed) == is_few == ("WARNING" in printed)


def test_columns_with_other_names_are_options(new, tmp_path):
    path = pairs(tmp_path / "q.csv", columns=("Frage", "Antwort"))
    config, _ = new(path, "--query", "Frage", "--positive", "antwort")
    assert config.collections["mine"].settings.query == "Frage"


def test_a_table_of_texts_without_queries_is_documents(new, tmp_path):
    """Such as pyserini's: ids and contents, in any folder."""
    rng = random.Random(6)
    rows = [{"id": f"d{row}", "contents": passage(rng).capitalize()} for row in range(60)]
    table = write_lines(tmp_path / "docs/docs.jsonl", rows)
    config, printed = new(tmp_path / "docs")
    assert config.collections["mine"].settings.path == str(table)
    assert "text: 60 passages" in printed


def test_a_data_set_of_the_hub_is_read_by_its_tables(new, tmp_path):
    folder = tmp_path / "set"
    table = pairs(folder / "train-00000-of-00001.csv")
    (folder / "README.md").write_text("# A data set\n\nIt has pairs. They are from the web.\n")
    corpus = write_lines(folder / "corpus.jsonl", [{"_id": "p1", "title": "", "text": "a passage"}])
    config, printed = new(folder)
    settings = config.collections["mine"].settings
    assert (settings.path, settings.corpus) == (str(table), str(corpus))
    assert "ignored  README.md\n" in printed
    shutil.move(table, pairs(folder / "data/test.csv", rows=20).parent)
    corpus.unlink()
    config, _ = new(folder)
    assert config.collections["mine"].settings.path == str(folder / "data")
    assert config.evaluation.collections == {"mine": ("test", "dev")}


def test_a_path_with_commas_and_brackets_is_text(new, tmp_path, tiny_bert):
    model = tmp_path / "tiny, [old]"
    shutil.copytree(tiny_bert, model)
    table = pairs(tmp_path / "a, [b]: #1/q.csv")
    config, _ = new(table, "--encoder", model)
    assert config.starts["published"].checkpoint == str(model)
    assert config.collections["mine"].settings.path == str(table)


def test_only_the_checkouts_own_paths_become_relative():
    written = "{a: /app/data/q.csv, b: /mnt/app/q.csv, c: '/app/x, y'}"
    assert recipe.relative(written, Path("/app")) == "{a: data/q.csv, b: /mnt/app/q.csv, c: 'x, y'}"


# --- refusals -------------------------------------------------------------------------------------


def test_data_and_configs_are_never_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = pairs(tmp_path / "q.csv")
    (tmp_path / "my.yaml").write_text("seed: 1\n")
    for words in ([], ["--force", "--to", str(tmp_path)], ["--force", "--to", str(path)]):
        with pytest.raises(InputError, match="exists; --force"):
            commands.command(["new", str(path), *words])
    assert path.read_text().startswith("query,positive\n")
    assert (tmp_path / "my.yaml").read_text() == "seed: 1\n"


def test_results_of_other_data_are_not_overwritten(new, tmp_path, monkeypatch):
    monkeypatch.setattr(proposing, "ROOT", tmp_path)
    one = pairs(tmp_path / "one/train.csv").parent
    config, printed = new(one)
    assert "exists" not in printed
    mine = {"path": config.collections["mine"].settings.path}
    record = {"config": {"collections": {"mine": mine}}}
    write_lines(tmp_path / "results/one/facts.json", [record])
    assert "results/one exists" in new(one)[1]
    other = pairs(tmp_path / "other.csv").rename(tmp_path / "one.csv")
    with pytest.raises(InputError, match="results/one has the results of .*one/train.csv.*--to"):
        new(other)


@pytest.fixture
def unfit(tmp_path):
    """Data that the command cannot read as it is, and a table that it can."""
    good = pairs(tmp_path / "good.csv").read_text()
    (tmp_path / "bad.csv").write_text(good + "alone\n")
    (tmp_path / "book.xlsx").write_text("")
    (tmp_path / "one").mkdir()
    (tmp_path / "one/a.txt").write_text("A single sentence is here. Another one follows it.\n")
    (tmp_path / "models").mkdir()
    write_files(tmp_path / "office", {"a.pdf": "", "b/c.docx": ""})
    pairs(tmp_path / "other.csv", columns=("Frage", "Antwort"))
    texts(tmp_path / "notes")
    pairs(texts(tmp_path / "mixed") / "train.csv")
    for name in ("data", "triplets"):
        (tmp_path / "set" / name).mkdir(parents=True)
        pairs(tmp_path / "set" / name / "train.csv")
    pairs(tmp_path / "untrained/dev.csv")
    pairs(tmp_path / "untrained/test.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("nowhere", "nowhere"),
        ("book.xlsx", "book.xlsx has .xlsx; expected"),
        ("office", "office has .docx and .pdf; expected"),
        ("models", "models has no file; expected"),
        ("bad.csv", "bad.csv, line 102"),
        ("other.csv", "frage, antwort"),
        ("mixed", "--source"),
        ("set", "data and triplets"),
        ("untrained", "train.csv"),
        (". --source toy", "--source"),
        ("good.csv --questions none.csv", "--questions is none.csv"),
        ("good.csv --questions good.csv", "good.csv, line 2"),
        ("good.csv --questions good.csv --source pairs", "--questions"),
        ("good.csv --encoder a/b", "--encoder is a/b"),
        ("good.csv --encoder ~/a/b", "--encoder"),
        ("good.csv --encoder models/mine", "models/mine is"),
        ("one", "0 queries"),
    ],
)
def test_what_cannot_be_read_is_named(new, unfit, monkeypatch, words, named):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as caught:
        new(*words.split())
    assert named in str(caught.value)
    assert not (unfit / "my.yaml").exists()


# --- the configs in the documentation -------------------------------------------------------------

REFERENCE = Survey(
    source="beir",
    settings={"path": str(proposing.ROOT / "data/mine")},
    passages=20_000,
    judged={"dev": 500, "test": 500, "train": 5000},
    unjudged=[],
)


def test_the_shipped_example_is_what_it_writes_for_beir():
    values, _ = recipe.choose(REFERENCE, Machine(cores=8), None, "mine", (126, 14))
    shown = (proposing.ROOT / "config/examples/collection.yaml").read_text()
    assert recipe.text(values, proposing.ROOT) == shown


OWN = (proposing.ROOT / "docs/own.md").read_text()
OVERLAYS = dict(re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", OWN, flags=re.DOTALL))


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_guides_overlays_load_with_the_config(new, tmp_path, tiny_bert, name):
    model = tiny_bert
    if name == "distilled.yaml":
        kinds = {"model_type": "SparseEncoder"}
        model = retriever(tmp_path / "splade", tiny_bert, "SpladePooling", pooling={}, **kinds)
    before, _ = new(pairs(tmp_path / "q.csv"), "--encoder", model)
    texts(tmp_path / "later", suffix=".txt")
    mine = json.dumps(read_yaml(tmp_path / "my.yaml")["collections"]["mine"])
    overlay = OVERLAYS[name].replace("{source: text, path: data/mine}", mine)
    beir(tmp_path / "asked", train=20)
    (tmp_path / name).write_text(overlay.replace(" data/", f" {tmp_path}/"))
    files = [tmp_path / "my.yaml", tmp_path / name]
    with contextlib.chdir(proposing.ROOT):
        config = load(gather(tmp_path / "none.yaml", files))
    assert {*config.systems, *config.collections} > {*before.systems, *before.collections}


# --- published encoders ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "pooling", "similarity", "temperature"),
    [(("Pooling", "Normalize"), "mean", "cosine", 0.05), (("Pooling",), "cls", "dot", 0)],
)
def test_a_published_retriever_is_trained_as_it_is_published(
    new, tmp_path, tiny_bert, kinds, pooling, similarity, temperature
):
    prompts = {"query": "query: ", "passage": "passage: "}
    model = retriever(
        tmp_path / "e5", tiny_bert, *kinds, pooling={"pooling_mode": pooling}, prompts=prompts
    )
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    config, _ = new(pairs(tmp_path / "q.csv"), "--encoder", model)
    stage = config.stages["stage1"]
    found = (stage.pooling, stage.similarity, stage.temperature)
    assert found == (pooling, similarity, temperature)
    assert (stage.query_prompt, stage.passage_prompt) == ("query: ", "passage: ")
    assert stage.passage_length == 24
    assert config.systems["published"].model == str(model)
    assert config.encoders["base"].objective == "none"
    assert config.report.compare["fused"] == ("trained", "published-fused")


def test_the_hub_is_used_where_it_answers(new, tmp_path, at_hub):
    config, _ = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.ENGLISH
    (at_hub / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    config, _ = new(tmp_path / "q.csv", "--encoder", "a/splade")
    assert config.systems["published"].head == config.stages["stage1"].head == "sparse"
    config, _ = new(tmp_path / "q.csv", "--encoder", "none")
    assert "published" not in config.systems


CROSS = {"architectures": ["BertForSequenceClassification"]}


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}}, "word-piece"),
        ({"config": {"model_type": "deberta-v2"}}, "deberta-v2"),
        ({"1_Pooling/config": {"pooling_mode_max_tokens": True}}, "pooling max"),
        ({"1_Pooling/config": {"pooling_mode": ["cls", "mean"]}}, r"pooling cls\+mean"),
        ({"modules": [{"type": "models.Dense"}]}, "module Dense"),
        ({"1_SpladePooling/config": {"pooling_strategy": "sum"}}, "pooling_strategy sum"),
        ({"modules": [], "config": CROSS}, "SequenceClassification"),
    ],
)
def test_a_model_of_which_training_would_lose_a_part(new, tmp_path, at_hub, files, named):
    for name, content in files.items():
        write_lines(at_hub / f"{name}.json", [content])
    with pytest.raises(InputError, match=f"^--encoder.* a/model.*{named}"):
        new(pairs(tmp_path / "q.csv"), "--encoder", "a/model")


def test_lengths_are_in_word_pieces_of_the_tokenizer(new, tmp_path, tiny_bert):
    """A word of this code has many pieces: estimates by words would cut its passages."""
    words = " ".join(f"xml_http{number}_request" for number in range(20))
    rows = [{"query": f"what is {row}", "positive": f"{words} {row}"} for row in range(40)]
    config, _ = new(write_lines(tmp_path / "code.jsonl", rows), "--encoder", tiny_bert)
    count = len(load_tokenizer(tiny_bert)(words)["input_ids"])
    longest = config.stages["stage1"].passage_length
    assert longest in (count + -count % 16, 64)  # or the model's own limit


def test_texts_in_another_language_get_its_analysis_and_a_multilingual_encoder(
    new, tmp_path, monkeypatch, at_hub
):
    monkeypatch.setattr("proposal_data.WORDS", ["красный", "и", "река", "в", "лес", "снег"])
    config, _ = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.OTHER
    assert config.collections["mine"].language == "ru"
