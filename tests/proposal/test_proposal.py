"""`./run new`: the config that it writes for a folder is short, and loads as it is."""

import contextlib
import json
import random
import re
import shutil

import huggingface_hub.constants
import pytest
from proposal_data import beir, jsonl, pairs, passage, retriever, texts

from cdmae import commands
from cdmae.commands import configs, proposing
from cdmae.config import splits
from cdmae.config.load import load
from cdmae.config.reading import gather, read_yaml
from cdmae.errors import InputError
from cdmae.plan.machine import Machine
from cdmae.proposal import encoders, recipe
from cdmae.proposal.survey import Survey
from cdmae.tokens.tokenise import load_tokenizer


def test_pairs_without_splits_are_held_out(new, tmp_path):
    config, printed = new(pairs(tmp_path / "questions.csv"))
    assert config.collections["mine"].settings.holdout == {"dev": 0.1, "test": 0.1}
    assert config.evaluation.collections == {"mine": ("dev", "test")}
    assert config.systems["fused"].tuned_on == ("mine", "dev")
    assert config.results == "results/questions"
    assert config.encoders["base"].masked_by_importance
    assert "100 passages" in printed and "train 100" in printed and "WARNING" not in printed


@pytest.mark.parametrize(
    ("judged", "tuned", "deciding"),
    [
        ({"dev": 30, "test": 30}, ("mine", "dev"), ("mine", "dev")),
        ({"test": 30, "validation": 40}, ("mine", "validation"), ("mine", "validation")),
        ({"test": 30}, ("made", "dev"), ("made", "dev")),
    ],
)
def test_judged_queries_choose_where_nothing_is_labelled_for_training(
    new, tmp_path, judged, tuned, deciding
):
    config, _ = new(beir(tmp_path / "questions", **judged))
    assert config.collections["made"].source == "pseudo"
    assert config.systems["fused"].tuned_on == tuned
    found = splits.roles(config)
    assert (found.deciding, found.reported) == (deciding, ("mine", "test"))


def test_a_published_retriever_is_measured_without_training(new, tmp_path, tiny_bert):
    folder = beir(tmp_path / "mine", train=60, dev=20, test=20)
    config, _ = new(folder, "--no-train", "--encoder", tiny_bert)
    assert not config.stages and [*config.systems] == ["bm25", "published", "fused"]
    assert config.systems["fused"].tuned_on == ("mine", "dev")
    assert config.evaluation.collections == {"mine": ("dev", "test")}


@pytest.mark.parametrize(
    ("judged", "holdout", "evaluated"),
    [
        ({"train": 60, "test": 20}, {"dev": 0.1}, ("test", "dev")),
        ({"train": 60, "dev": 20, "test": 20}, {}, ("dev", "test")),
    ],
)
def test_a_folder_in_beir_s_layout_keeps_its_splits(new, tmp_path, judged, holdout, evaluated):
    config, _ = new(beir(tmp_path / "mine", **judged))
    assert config.collections["mine"].settings.holdout == holdout
    assert config.evaluation.collections == {"mine": evaluated}


def test_a_folder_of_text_gets_queries_from_the_text(new, tmp_path):
    config, _ = new(texts(tmp_path / "notes"))
    assert config.collections["made"].source == "pseudo"
    assert config.collections["made"].settings.of["path"] == str(tmp_path / "notes")
    assert config.evaluation.collections == {"made": ("dev", "test"), "mine": ()}
    assert configs.chosen_collection(config, None) == "mine"
    assert config.stages["stage1"].collection == "made"
    assert config.encoders["base"].collection == config.starts["small"].collection == "mine"


def test_few_texts_have_a_warning(new, tmp_path):
    _, printed = new(texts(tmp_path / "ten", number=10))
    assert "WARNING: 30 queries" in printed


@pytest.mark.parametrize("number", [20, 300])
def test_real_questions_measure_and_many_also_train(new, tmp_path, number):
    folder = texts(tmp_path / "docs")
    table = tmp_path / "asked.csv"
    lines = [f"what is number {row},page{row % 40}.md\n" for row in range(number)]
    table.write_text("Question,File\n" + "".join(lines))
    config, _ = new(folder, "--questions", table)
    settings = config.collections["mine"].settings
    if number == 20:
        assert settings.questions == {"test": str(table)}
        assert config.evaluation.collections == {"made": ("dev", "test"), "mine": ("test",)}
        assert config.stages["stage1"].collection == "made"
    else:
        assert settings.questions == {"train": str(table)}
        assert settings.holdout == {"dev": 0.1, "test": 0.1}
        assert config.evaluation.collections == {"mine": ("dev", "test")}


def test_columns_with_other_names_are_options(new, tmp_path):
    path = pairs(tmp_path / "q.csv", columns=("Frage", "Antwort"))
    config, _ = new(path, "--query", "Frage", "--positive", "antwort")
    assert config.collections["mine"].settings.query == "Frage"


def test_a_table_of_texts_without_queries_is_documents(new, tmp_path):
    """Such as pyserini's: ids and contents, in any folder."""
    rng = random.Random(6)
    rows = [{"id": f"d{row}", "contents": passage(rng).capitalize()} for row in range(60)]
    table = jsonl(tmp_path / "docs/docs.jsonl", rows)
    config, printed = new(tmp_path / "docs")
    assert config.collections["mine"].settings.path == str(table)
    assert "text: 60 passages" in printed


def test_a_data_set_of_the_hub_is_read_by_its_tables(new, tmp_path):
    folder = tmp_path / "set"
    table = pairs(folder / "train-00000-of-00001.csv")
    (folder / "README.md").write_text("# A data set\n\nIt has pairs. They are from the web.\n")
    corpus = jsonl(folder / "corpus.jsonl", [{"_id": "p1", "title": "", "text": "a passage"}])
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


@pytest.fixture
def unfit(tmp_path):
    """Data that the command cannot read as it is, and a table that it can."""
    good = pairs(tmp_path / "good.csv").read_text()
    (tmp_path / "bad.csv").write_text(good + "alone\n")
    (tmp_path / "book.xlsx").write_text("")
    (tmp_path / "one").mkdir()
    (tmp_path / "one/a.txt").write_text("A single sentence is here. Another one follows it.\n")
    (tmp_path / "models").mkdir()
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
        ("book.xlsx", "book.xlsx"),
        ("bad.csv", "bad.csv, line 102"),
        ("other.csv", "frage, antwort"),
        ("mixed", "--source"),
        ("set", "data, triplets"),
        ("untrained", "train.csv"),
        (". --source toy", "--source"),
        ("good.csv --questions good.csv", "good.csv, line 2"),
        ("good.csv --questions good.csv --source pairs", "--questions"),
        ("good.csv --encoder a/b", "--encoder is a/b"),
        ("good.csv --no-train", "--encoder"),
        ("notes --no-train --encoder a/b", "--no-train"),
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
    chosen = recipe.choose(REFERENCE, Machine(cores=8), None, "mine", (126, 14))
    shown = (proposing.ROOT / "config/examples/collection.yaml").read_text()
    assert recipe.text(chosen, proposing.ROOT) == shown


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


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("config_sentence_transformers.json", {"model_type": "MultiVectorEncoder"}, "word-piece"),
        ("config.json", {"model_type": "deberta-v2"}, "deberta-v2"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pooling max"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, r"pooling cls\+mean"),
        ("modules.json", [{"type": "models.Dense"}], "module Dense"),
        ("1_SpladePooling/config.json", {"pooling_strategy": "sum"}, "pooling_strategy sum"),
    ],
)
def test_a_model_of_which_training_would_lose_a_part(new, tmp_path, at_hub, file, content, named):
    (at_hub / file).parent.mkdir(exist_ok=True)
    (at_hub / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"^--encoder.* a/model.*{named}"):
        new(pairs(tmp_path / "q.csv"), "--encoder", "a/model")


def test_a_cross_encoder_is_no_retriever(new, tmp_path, at_hub):
    (at_hub / "modules.json").unlink()
    (at_hub / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    with pytest.raises(InputError, match="^--encoder.* a/reranker .*SequenceClassification"):
        new(pairs(tmp_path / "q.csv"), "--encoder", "a/reranker")


def test_lengths_are_in_word_pieces_of_the_tokenizer(new, tmp_path, tiny_bert):
    """A word of this code has many pieces: estimates by words would cut its passages."""
    words = " ".join(f"xml_http{number}_request" for number in range(20))
    rows = [{"query": f"what is {row}", "positive": f"{words} {row}"} for row in range(40)]
    config, _ = new(jsonl(tmp_path / "code.jsonl", rows), "--encoder", tiny_bert)
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
