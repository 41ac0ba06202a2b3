"""`./run new`: the config that it writes for a folder is short, and loads as it is."""

import contextlib
import csv
import json
import random
import re
import shutil

import huggingface_hub
import pytest

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

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnprst"]
MOST_LINES = 40


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """A function that runs the command, and returns the config and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(encoders, "_answers", lambda: False)

    def run(*words):
        commands.command(["new", *map(str, words)])
        text = (tmp_path / "my.yaml").read_text()
        assert len(text.splitlines()) <= MOST_LINES
        values = gather(tmp_path / "none.yaml", [tmp_path / "my.yaml"])
        with contextlib.chdir(proposing.ROOT):  # where a run looks for relative paths
            return load(values), capsys.readouterr().out

    return run


def passage(rng):
    return " ".join(rng.choices(WORDS, k=30)) + ". " + " ".join(rng.choices(WORDS, k=20)) + "."


def pairs(path, rows=100, columns=("query", "positive")):
    rng = random.Random(1)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            [f"what is {' '.join(rng.choices(WORDS, k=4))}", passage(rng)] for _ in range(rows)
        )
    return path


def beir(folder, **splits):
    rng = random.Random(2)
    (folder / "qrels").mkdir(parents=True)
    texts = [{"_id": f"p{row}", "text": passage(rng).capitalize()} for row in range(120)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    asked = [{"_id": f"q{row}", "text": f"query {WORDS[row]}"} for row in range(120)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    first = 0
    for split, count in splits.items():
        lines = [f"q{row}\tp{row}\t1\n" for row in range(first, first + count)]
        (folder / f"qrels/{split}.tsv").write_text("".join(lines))
        first += count
    return folder


def texts(folder, suffix=".md"):
    rng = random.Random(3)
    folder.mkdir()
    for number in range(40):
        sections = (
            f"# {' '.join(rng.choices(WORDS, k=4))}\n\n{passage(rng).title()}\n" for _ in range(3)
        )
        (folder / f"page{number}{suffix}").write_text("\n".join(sections))
    return folder


def test_pairs_without_splits_are_held_out(new, tmp_path):
    config, said = new(pairs(tmp_path / "questions.csv"))
    assert config.collections["mine"].settings.holdout == {"dev": 0.1, "test": 0.1}
    assert config.evaluation.collections == {"mine": ("dev", "test")}
    assert config.systems["fused"].tuned_on == ("mine", "dev")
    assert config.results.startswith("results/questions")
    assert (
        config.encoders["base"].objective == "mae" and config.encoders["base"].masked_by_importance
    )
    assert "pairs: 100 passages" in said and "train 100" in said


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


def test_a_folder_in_beir_s_layout_keeps_its_splits(new, tmp_path):
    config, said = new(beir(tmp_path / "mine", train=60, test=20))
    assert config.collections["mine"].settings.holdout == {"dev": 0.1}
    assert config.evaluation.collections == {"mine": ("test", "dev")}
    config, said = new(beir(tmp_path / "more", train=60, dev=20, test=20), "--force")
    assert not config.collections["mine"].settings.holdout
    assert config.evaluation.collections == {"mine": ("dev", "test")}


def test_a_folder_of_text_gets_queries_from_the_text(new, tmp_path):
    config, said = new(texts(tmp_path / "notes"))
    assert config.collections["made"].source == "pseudo"
    assert config.collections["made"].settings.of["path"] == str(tmp_path / "notes")
    assert config.evaluation.collections == {"made": ("dev", "test"), "mine": ()}
    assert configs.chosen_collection(config, None) == "mine"
    assert config.stages["stage1"].collection == "made"
    assert config.encoders["base"].collection == config.starts["small"].collection == "mine"


def retriever(folder, tiny_bert, *kinds, pooling, **described):
    """Write a retriever of sentence-transformers, with its modules and the pooling's settings."""
    shutil.copytree(tiny_bert, folder, dirs_exist_ok=True)
    modules = [
        {"idx": number, "name": str(number), "path": f"{number}_{kind}" if number else "",
         "type": f"sentence_transformers.models.{kind}"}
        for number, kind in enumerate(("Transformer", *kinds))
    ]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(described))
    return folder


MEAN = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def test_a_published_encoder_is_read_as_it_is_published(new, tmp_path, tiny_bert):
    table = pairs(tmp_path / "q.csv")
    config, _ = new(table, "--encoder", tiny_bert)
    stage = config.stages["stage1"]
    assert (stage.pooling, stage.similarity, stage.temperature) == ("cls", "cosine", 0.05)
    prompts = {"query": "query: ", "passage": "passage: "}
    model = retriever(
        tmp_path / "e5", tiny_bert, "Pooling", "Normalize", pooling=MEAN, prompts=prompts
    )
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    config, _ = new(table, "--encoder", model, "--force")
    stage = config.stages["stage1"]
    assert (stage.pooling, stage.similarity) == ("mean", "cosine")
    assert (stage.query_prompt, stage.passage_prompt) == ("query: ", "passage: ")
    assert stage.passage_length == 24
    assert config.systems["published"].model == str(model)
    assert config.encoders["base"].objective == "none"
    assert config.report.compare["fused"] == ("trained", "published-fused")
    retriever(model, tiny_bert, "Pooling", pooling={"pooling_mode": "cls"})
    config, _ = new(table, "--encoder", model, "--force")
    stage = config.stages["stage1"]
    assert (stage.pooling, stage.similarity, stage.temperature) == ("cls", "dot", 0)
    assert not stage.query_prompt


@pytest.mark.parametrize(
    ("kinds", "pooling", "family", "lost"),
    [
        (("Pooling", "Dense"), MEAN, "bert", "its module Dense"),
        (("Pooling",), {"pooling_mode_max_tokens": True}, "bert", "its pooling max"),
        (("Pooling",), {"pooling_mode": "lasttoken"}, "bert", "its pooling lasttoken"),
        (("Pooling",), {"pooling_mode": ["cls", "mean"]}, "bert", r"its pooling cls\+mean"),
        (("Pooling",), MEAN, "deberta-v2", "its model_type deberta-v2"),
    ],
)
def test_what_training_would_lose_is_refused_and_measured_without(
    new, tmp_path, tiny_bert, kinds, pooling, family, lost
):
    model = retriever(tmp_path / "model", tiny_bert, *kinds, pooling=pooling)
    described = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**described, "model_type": family}))
    with pytest.raises(InputError, match=f"training does not keep .*{lost}.*--no-train"):
        new(beir(tmp_path / "mine", dev=30), "--encoder", model)
    config, _ = new(tmp_path / "mine", "--encoder", model, "--no-train")
    assert set(config.systems) == {"bm25", "published", "published-fused"}


@pytest.mark.parametrize(
    ("judged", "tuned"),
    [
        ({"dev": 30, "test": 30}, ("mine", "dev")),
        ({"train": 60, "test": 30}, ("mine", "dev")),
        ({"test": 30}, ()),
    ],
)
def test_judged_queries_measure_without_a_training(new, tmp_path, tiny_bert, judged, tuned):
    model = retriever(tmp_path / "model", tiny_bert, "Pooling", pooling=MEAN)
    data = beir(tmp_path / "mine", **judged)
    config, _ = new(data, "--encoder", model, "--no-train")
    assert not config.stages and not config.encoders and not config.starts
    fused = config.systems["published-fused"]
    assert (fused.tuned_on, fused.method) == (tuned, "convex" if tuned else "reciprocal_rank")
    assert splits.roles(config).reported == ("mine", "test")
    with pytest.raises(InputError, match="--no-train measures a published retriever"):
        new(data, "--no-train", "--force")
    with pytest.raises(InputError, match="--no-train needs judged queries"):
        new(texts(tmp_path / "docs"), "--encoder", model, "--no-train", "--force")


@pytest.fixture
def at_hub(tmp_path, monkeypatch, tiny_bert):
    """A hub that answers, and the folder with the small files of its only model, a retriever."""
    monkeypatch.setattr(encoders, "_answers", lambda: True)
    folder = retriever(tmp_path / "snapshot", tiny_bert, "Pooling", pooling={})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    return folder


def test_the_hub_is_used_where_it_answers(new, tmp_path, at_hub):
    config, _ = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.ENGLISH
    assert (config.stages["stage1"].pooling, config.stages["stage1"].similarity) == ("cls", "dot")
    config, _ = new(tmp_path / "q.csv", "--encoder", "none", "--force")
    assert "published" not in config.systems


def test_the_files_of_a_model_say_its_head(new, tmp_path, tiny_bert, at_hub):
    path = pairs(tmp_path / "q.csv")
    config, _ = new(path, "--encoder", tiny_bert, "--head", "sparse")
    assert config.systems["published"].head == config.stages["stage1"].head == "sparse"
    assert config.encoders["base"].objective == "none"
    described = at_hub / "config_sentence_transformers.json"
    described.write_text('{"model_type": "SparseEncoder"}')
    config, _ = new(path, "--encoder", "a/splade", "--force")
    assert config.systems["published"].head == config.stages["stage1"].head == "sparse"
    described.write_text('{"model_type": "MultiVectorEncoder"}')
    with pytest.raises(InputError, match="a/colbert has a vector per word-piece"):
        new(path, "--encoder", "a/colbert", "--force")
    described.unlink()
    (at_hub / "modules.json").unlink()
    config = json.loads((at_hub / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (at_hub / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="a/reranker is a cross-encoder"):
        new(path, "--encoder", "a/reranker", "--force")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--head", "spars", "--encoder", "a/b"], "--head"),
        (["--head", "sparse"], "--head is sparse, but --encoder names no model"),
        (["--encoder", "a/b"], "the hub does not give the model a/b"),
        (["--encoder", "~/a/b"], "--encoder is .* is no folder"),
    ],
)
def test_an_encoder_that_cannot_be_described(new, tmp_path, monkeypatch, words, sentence):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=sentence):
        new(pairs(tmp_path / "q.csv"), *words)


def test_texts_in_another_language_get_its_analysis_and_a_multilingual_encoder(
    new, tmp_path, monkeypatch, at_hub
):
    monkeypatch.setattr(f"{__name__}.WORDS", ["красный", "и", "река", "в", "лес", "снег"])
    config, said = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.OTHER
    assert config.collections["mine"].language == "ru"
    assert "language ru" in said


def test_lengths_are_in_word_pieces_of_the_tokenizer(new, tmp_path, tiny_bert):
    """A word of this code has many pieces: estimates by words would cut its passages."""
    words = " ".join(f"xml_http{number}_request" for number in range(20))
    rows = [{"query": f"what is {row}", "positive": f"{words} {row}"} for row in range(40)]
    table = tmp_path / "code.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config, _ = new(table, "--encoder", tiny_bert)
    count = len(load_tokenizer(tiny_bert)(words)["input_ids"])
    longest = config.stages["stage1"].passage_length
    assert longest in (count + -count % 16, 64)  # or the model's own limit


def test_data_and_configs_are_never_overwritten(new, tmp_path):
    path = pairs(tmp_path / "q.csv")
    for target in (tmp_path, path, "later/", ""):
        with pytest.raises(InputError, match="^--to is .*; expected a name "):
            new(path, "--to", target, "--force")
    assert path.read_text().startswith("query,positive\n")
    (tmp_path / "my.yaml").write_text("seed: 1\n")
    with pytest.raises(InputError, match=r"my\.yaml exists; --force overwrites it, --to names"):
        new(path)
    assert (tmp_path / "my.yaml").read_text() == "seed: 1\n"


def test_a_single_text_is_too_little_in_a_sentence(new, tmp_path):
    (tmp_path / "docs").mkdir()
    text = "A single sentence is here. Another one follows it.\n"
    for made, queries in enumerate(("0 queries", "1 query")):
        (tmp_path / f"docs/{made}.txt").write_text(text * (1 + 10 * made))
        with pytest.raises(
            InputError, match=f"{queries} can be made .*docs, too few .*; add texts"
        ):
            new(tmp_path / "docs", "--encoder", "none")
    assert not (tmp_path / "my.yaml").exists()


def test_columns_with_other_names_are_flags(new, tmp_path):
    path = pairs(tmp_path / "q.csv", columns=("Frage", "Antwort"))
    with pytest.raises(InputError, match="it has frage, antwort; set `query` or --query"):
        new(path)
    config, _ = new(path, "--query", "Frage", "--positive", "antwort")
    assert config.collections["mine"].settings.query == "Frage"


@pytest.mark.parametrize("number", [20, 300])
def test_real_questions_measure_and_many_also_train(new, tmp_path, number):
    folder = texts(tmp_path / "docs")
    table = tmp_path / "asked.csv"
    lines = [f"what is number {row},page{row % 40}.md\n" for row in range(number)]
    table.write_text("Question,File\n" + "".join(lines))
    config, said = new(folder, "--questions", table)
    settings = config.collections["mine"].settings
    if number == 20:
        assert settings.questions == {"test": str(table)}
        assert config.evaluation.collections == {"made": ("dev", "test"), "mine": ("test",)}
        assert config.stages["stage1"].collection == "made"
    else:
        assert settings.questions == {"train": str(table)}
        assert settings.holdout == {"dev": 0.1, "test": 0.1}
        assert config.evaluation.collections == {"mine": ("dev", "test")}
    with pytest.raises(InputError, match="--questions is for documents, but .* is read as beir"):
        new(beir(tmp_path / "b"), "--questions", table, "--source", "beir", "--force")


def test_a_table_of_texts_without_queries_is_documents(new, tmp_path):
    """As pyserini's: ids and contents, in any folder."""
    rng = random.Random(6)
    rows = [{"id": f"d{row}", "contents": passage(rng).capitalize()} for row in range(60)]
    (tmp_path / "docs").mkdir()
    table = tmp_path / "docs/docs.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for given in (table, tmp_path / "docs"):
        config, said = new(given, "--force")
        assert config.collections["mine"].settings.path == str(table)
        assert "text: 60 passages" in said


def test_passages_next_to_a_table_per_split(new, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for split in ("train", "dev"):
        pairs(folder / f"{split}.csv")
    (folder / "corpus.jsonl").write_text('{"_id": "p1", "title": "", "text": "a passage"}\n')
    config, _ = new(folder)
    assert config.collections["mine"].settings.corpus.endswith("corpus.jsonl")
    (folder / "train.csv").write_text("query,positive\n")
    (folder / "dev.csv").unlink()
    with pytest.raises(InputError, match=r"train\.csv holds no pairs"):
        new(folder, "--force")


def test_a_folder_that_could_be_several(new, tmp_path):
    folder = texts(tmp_path / "mixed")
    pairs(folder / "train.csv")
    with pytest.raises(InputError, match="could be pairs or text. Name it with --source"):
        new(folder)
    config, _ = new(folder, "--source", "text")
    assert config.collections["mine"].source == "text"


def test_a_data_set_of_the_hub_is_read_by_its_tables(new, tmp_path):
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("# A data set\n\nIt has pairs. They are from the web.\n")
    (folder / "licence.txt").write_text("Everybody may use it. Nobody must.\n")
    pairs(folder / "data/train-00000-of-00001.csv")
    config, said = new(folder)
    assert config.collections["mine"].settings.path.endswith("set/data/train-00000-of-00001.csv")
    assert "ignored  README.md, licence.txt\n" in said
    pairs(folder / "data/test-00000-of-00001.csv", rows=20)
    config, _ = new(folder, "--force")
    assert config.collections["mine"].settings.path.endswith("set/data")
    assert config.evaluation.collections == {"mine": ("test", "dev")}
    (folder / "triplets").mkdir()
    pairs(folder / "triplets/train.csv")
    with pytest.raises(InputError, match="has tables in data, triplets; give the path of"):
        new(folder, "--force")
    rng = random.Random(5)
    for number in range(20):
        (folder / f"readme-{number}.md").write_text(f"# Part {number}\n\n{passage(rng)}\n")
    config, said = new(folder, "--source", "text", "--force")
    assert "ignored  data/test-00000-of-00001.csv, data/train-" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "missing argument 'FOLDER'"),
        (["nowhere"], "nowhere does not exist"),
        (["questions.xlsx"], "questions.xlsx contains no data that can be read; expected "),
        ([".", "--source", "toy"], "--source"),
    ],
)
def test_a_wrong_folder(new, tmp_path, words, sentence):
    (tmp_path / "questions.xlsx").write_text("")
    with pytest.raises(InputError) as caught:
        new(*words)
    assert sentence in str(caught.value)


def test_a_mistake_in_the_data_has_its_line(new, tmp_path):
    path = pairs(tmp_path / "q.csv")
    path.write_text(path.read_text() + "alone\n")
    with pytest.raises(InputError, match=r"q\.csv, line 102: another number of columns"):
        new(path)


def test_a_path_with_commas_and_brackets_is_text(new, tmp_path, tiny_bert):
    model = tmp_path / "tiny, [old]"
    shutil.copytree(tiny_bert, model)
    folder = tmp_path / "a, [b]: #1"
    folder.mkdir()
    config, _ = new(pairs(folder / "q.csv"), "--encoder", model)
    assert config.starts["published"].checkpoint == str(model)
    assert config.collections["mine"].settings.path == str(folder / "q.csv")


REFERENCE = Survey(
    source="beir",
    settings={"path": str(proposing.ROOT / "data/mine")},
    passages=20_000,
    judged={"dev": 500, "test": 500, "train": 5000},
    unjudged=[],
    words=(90, 10),
)


def test_the_config_that_comes_along_is_what_it_writes_for_beir():
    chosen = recipe.choose(REFERENCE, Machine(cores=8), None, "mine", (126, 14))
    shown = (proposing.ROOT / "config/examples/collection.yaml").read_text()
    assert recipe.text(chosen, proposing.ROOT) == shown


OWN = (proposing.ROOT / "docs/own.md").read_text()
LABELLED = "written.yaml"  # without labels, it needs an entry for `made`, too
OVERLAYS = dict(re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", OWN, flags=re.DOTALL))


@pytest.mark.parametrize(
    ("name", "labelled"),
    [
        *((name, True) for name in OVERLAYS),
        *((name, False) for name in OVERLAYS if name != LABELLED),
    ],
)
def test_the_guides_overlays_load_with_the_config(new, tmp_path, tiny_bert, name, labelled):
    data = pairs(tmp_path / "q.csv") if labelled else texts(tmp_path / "docs")
    before, _ = new(
        data, "--encoder", tiny_bert, "--head", "sparse" if name == "distilled.yaml" else "dense"
    )
    texts(tmp_path / "later", suffix=".txt")
    mine = json.dumps(read_yaml(tmp_path / "my.yaml")["collections"]["mine"])
    overlay = OVERLAYS[name].replace("{source: text, path: data/mine}", mine)
    beir(tmp_path / "asked", train=20)
    (tmp_path / name).write_text(overlay.replace(" data/", f" {tmp_path}/"))
    files = [tmp_path / "my.yaml", tmp_path / name]
    with contextlib.chdir(proposing.ROOT):
        config = load(gather(tmp_path / "none.yaml", files))
    added = {*config.systems, *config.collections} - {*before.systems, *before.collections}
    assert added
    if name == "later.yaml":
        assert config.evaluation.collections["later"] == ()
