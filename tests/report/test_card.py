import ast
import re

import pytest
import yaml
from card_facts import FACTS, measures
from markdown_it import MarkdownIt

from cdmae.config import maskings
from cdmae.config.encoders import concepts
from cdmae.config.objectives import OBJECTIVES
from cdmae.errors import InputError
from cdmae.evaluation.per_query import read_measures, write_measures
from cdmae.files import write_json
from cdmae.report import card

LENGTHS = {
    "retriever": {"kind": "retriever", "query_length": 32, "passage_length": 144},
    "sparse": {"kind": "retriever", "query_length": 32, "passage_length": 144, "head": "sparse"},
    "reranker": {"kind": "reranker", "max_length": 192},
}
TWO = {"kind": "retriever", "query_length": 32, "passage_length": 144}
LATE = {
    **TWO, "head": "multi", "dimensions": 16, "expansion": "unattended", "skip_punctuation": True,
}  # fmt: skip
LENGTHS |= {
    "colbert": {**LATE, "match": "any"},
    "coil": {**LATE, "match": "equal", "cls_dimensions": 24},
    "unified": {
        **TWO, "head": "unified", "pooling": "cls", "similarity": "dot", "dense_weight": 0.5,
    },
}  # fmt: skip
OWN = {**LENGTHS["sparse"], "pieces": "own"}
LENGTHS |= {
    "unicoil": {**OWN, "target": "ranking"},
    "deepct": {**OWN, "target": "recall"},
}
PROMPTED = {"query_prompt": "Q: ", "passage_prompt": "P: "}

READER = MarkdownIt("gfm-like", {"linkify": False})  # what model hubs read


@pytest.fixture
def trained(tmp_path):
    """A trained retriever as far as a release looks at it, and its measures."""
    folder = tmp_path / "trained"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "README.md").write_text("the trainer's")
    write_json(folder / "cdmae.json", LENGTHS["retriever"])
    write_json(folder / "about.json", FACTS["training"])
    write_json(tmp_path / "about.json", FACTS["about"]["pydocs"])
    write_measures(tmp_path / "measures.tsv", measures())
    facts = {key: value for key, value in FACTS.items() if key != "training"}
    facts["about"] = {"pydocs": str(tmp_path / "about.json")}
    return folder, tmp_path / "measures.tsv", facts, tmp_path / "models" / "cdmae-stage1"


def test_the_card_tells_the_commit_of_a_checkpoint_at_the_hub():
    training = {**FACTS["training"], "commits": {"checkpoint": "0123abc"}}
    facts = {**FACTS, "start": {"checkpoint": "acme/tiny@v1"}, "training": training}
    text = card.card(facts, measures(), LENGTHS["retriever"], "models/x")
    assert "base_model: acme/tiny\n" in text
    assert "  checkpoint: acme/tiny@v1\n  commit: 0123abc\n" in text


def test_bm25_and_the_checkpoint_are_measured_on_the_same_queries():
    bm25 = measures().assign(value=[0.9, 0.8, 0.7, 1.0, 1.0, 1.0])
    others = {"bm25": bm25, "minilm": measures()}
    text = card.card(FACTS, measures(), LENGTHS["retriever"], "x", others)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| pydocs ")
    ]
    assert rows == [
        ["pydocs", "dev", "this model", "3", "25.0", "66.7"],
        ["pydocs", "dev", "bm25", "3", "80.0", "100.0"],
        ["pydocs", "dev", "minilm", "3", "25.0", "66.7"],
    ]
    assert "bm25 and minilm answered the same queries." in text


def test_the_card_names_the_data_of_the_encoder_before_and_has_no_results_without_measures():
    before = {"general": {"start": "small", "objective": "mae", "collection": "wikipedia"}}
    facts = {**FACTS, "before": before, "encoder": {**FACTS["encoder"], "after": "general"}}
    facts["collections"] = {**FACTS["collections"], "wikipedia": {"source": "ir_datasets"}}
    text = card.card(facts, measures(), LENGTHS["retriever"], "models/x")
    assert "**wikipedia**, for pre-training before that: source ir_datasets." in text
    assert "before:\n  general:\n    start: small\n" in text
    text = card.card(FACTS, measures().iloc[:0], LENGTHS["reranker"], "x")
    assert not {"model_name", "model-index"} & yaml.safe_load(text.split("---")[1]).keys()


def test_the_card_tells_how_every_encoder_was_pretrained():
    """A new objective or masking without a word in the card fails here."""
    kinds = {name: kind for name, kind in OBJECTIVES.items() if kind.pretrained}
    told = [
        {"words": kind.in_words, "masked": "words at random"}
        for name, kind in kinds.items()
        if name != "mae"
    ]
    told += [
        {"words": kinds["mae"].in_words, "masked": maskings.in_words(name)}
        for name in concepts("masking/strategies")
    ]
    texts = {}
    for pretraining in told:
        text = card.card(
            {**FACTS, "pretraining": pretraining}, measures(), LENGTHS["retriever"], "x"
        )
        texts[tuple(pretraining.values())] = text.partition("## Use")[0].partition("Its encoder")[2]
        masked_auto_encoder = pretraining["words"] == kinds["mae"].in_words
        assert ("masked auto-encoder" in text.partition("# cdmae-stage1")[2]) == masked_auto_encoder
    assert len(set(texts.values())) == len(texts)
    assert all(each["masked"] for each in told), "a masking without a word"


def test_release_links_every_file_and_adds_the_card(trained):
    folder, tsv, facts, output = trained
    (folder / ".snakemake_timestamp").touch()
    card.release(folder, tsv, facts, output, [tsv])
    assert not (output / ".snakemake_timestamp").exists()
    assert (output / "model.safetensors").stat().st_ino == (
        folder / "model.safetensors"
    ).stat().st_ino
    assert (output / "1_Pooling" / "config.json").exists()
    lengths = LENGTHS["retriever"]
    assert (output / "README.md").read_text() == card.card(
        FACTS, read_measures(tsv), lengths, str(output), {"measures": read_measures(tsv)}
    )
    assert (folder / "README.md").read_text() == "the trainer's"


def test_release_refuses_a_folder_without_a_model(trained, tmp_path):
    _, tsv, facts, output = trained
    with pytest.raises(InputError, match="contains no trained model"):
        card.release(tmp_path / "nothing", tsv, facts, output)


@pytest.mark.parametrize("kind", LENGTHS)
def test_code_of_the_card_is_python_with_the_lengths_of_the_training(kind):
    text = card.card(FACTS, measures(), LENGTHS[kind], "results/models/x")
    [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ast.parse(block)
    assert "results/models/x" in block
    assert ("SparseEncoder(" in block) == (kind in ("sparse", "unified"))
    assert ("MultiVectorEncoder(" in block) == (kind == "colbert")
    assert ("A dense retriever" in text) == (kind == "retriever")
    for key, length in LENGTHS[kind].items():
        assert not key.endswith("length") or str(length) in text
    prompted = card.card(FACTS, measures(), {**LENGTHS[kind], **PROMPTED}, "x")
    assert ('"Q: "' in prompted and '"P: "' in prompted) == (kind != "reranker")


def test_front_matter_is_yaml_with_the_measures():
    text = card.card(FACTS, measures(), LENGTHS["retriever"], "x")
    assert text.startswith("---\nlibrary_name: sentence-transformers\n")
    values = yaml.safe_load(text.split("---\n")[1])
    assert (
        values["library_name"] == "sentence-transformers"
        and values["pipeline_tag"] == "sentence-similarity"
    )
    (result,) = values["model-index"][0]["results"]
    assert result["metrics"][0] == {"type": "RR@10", "name": "MRR@10", "value": 0.25}
    reranker = yaml.safe_load(
        card.card(FACTS, measures(), LENGTHS["reranker"], "x").split("---\n")[1]
    )
    assert reranker["pipeline_tag"] == "text-ranking"


def test_the_card_has_the_licence_and_the_languages_of_the_config():
    facts = {**FACTS, "licence": "cc-by-4.0", "languages": ["en", "fr"]}
    text = card.card(facts, measures(), LENGTHS["retriever"], "x")
    values = yaml.safe_load(text.split("---\n")[1])
    assert (values["license"], values["language"]) == ("cc-by-4.0", ["en", "fr"])
    text = card.card(FACTS, measures(), LENGTHS["retriever"], "x")
    assert not {"license", "language"} & yaml.safe_load(text.split("---\n")[1]).keys()
    assert "No licence is stated" in text and "https://arxiv.org/abs/2305.13197" in text


def test_the_card_tells_measures_data_and_settings_and_does_without_records():
    text = card.card(FACTS, measures(), LENGTHS["retriever"], "x").replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "| pydocs | dev | this model | 3 | 25.0 | 66.7 |" in re.sub(" +", " ", text)
    assert "**pydocs**, for word-pieces and fine-tuning: source pydocs, size default." in text
    assert "Made from python 3.12.4, numpy 2.4.6." in text
    assert "375 steps over 4,000 queries in 1 min 1 s, 1.48 million parameters" in text
    for part in ("passages: 19805", "in_batch: true", "window: 4", "negatives of bm25", "seed: 42"):
        assert part in text
    facts = FACTS | {"about": {}, "training": {}}
    text = card.card(facts, measures(), LENGTHS["reranker"], "x")
    assert "source pydocs" in text and "Stage stage1, with negatives of bm25. All settings" in text


# --- a card is published --------------------------------------------------------------------------

HOSTILE = {
    "front matter": "x\n---\nlicense: evil\n---\n# Hi",
    "HTML": "<script>alert(7)</script>",
    "a link": "[l](javascript:alert(7))",
    "stress": "**bold** _slanted_ __bold__ ~~struck~~ `code`",
    "a fence": "x\n```\n<script>alert(7)</script>\n```",
    "a backslash at its end": "x\\",
    "quotation marks": 'x")\nraise SystemExit  # "',
    "a template": "{{ 7 * 7 }} {% include 'x' %}",
}


def structure(text):
    """The kinds of tokens in a card's body, as a Markdown reader parses it, and the words shown."""
    _, _, body = text.removeprefix("---\n").partition("\n---\n")
    blocks = READER.parse(body)
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    words = "".join(token.content for token in tokens if token.type == "text")
    return [token.type for token in tokens if token.type != "text"], words


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_no_value_of_a_card_is_read_as_markup(value):
    """Not of paths, versions, records, checkpoints, splits or folders."""

    def with_value(value):
        changed = {
            "collections": {"pydocs": {"source": "beir", "path": value}},
            "about": {"pydocs": {"versions": {value: value}, "of": value, value: 1}},
            "start": {"checkpoint": value},
            "system": {**FACTS["system"], "negatives": value},
        }
        values = measures().assign(split=value)
        return card.card({**FACTS, **changed}, values, LENGTHS["retriever"], value)

    text = with_value(value)
    kinds, words = structure(text)
    assert kinds == structure(with_value("plain"))[0]
    assert f"path {' '.join(value.split())}." in words
    front = yaml.safe_load(text.removeprefix("---\n").partition("\n---\n")[0])
    assert front.keys() <= {"library_name", "pipeline_tag", "tags", "model-index", "base_model"}
    assert "49" not in text
    code = next(token.content for token in READER.parse(text) if token.info == "python")
    nodes = list(ast.walk(ast.parse(code)))
    assert value in [node.value for node in nodes if isinstance(node, ast.Constant)]
    assert not [node for node in nodes if isinstance(node, ast.Raise)]


PATHS = ["/home/alice/clients/acme/data/", "~/clients/acme/data", "../clients/acme/data"]


@pytest.mark.parametrize("path", PATHS)
def test_a_card_shows_the_last_part_of_a_local_path(path):
    encoder = {**FACTS["encoder"], "generator": path}
    changed = {
        "collections": {"pydocs": {"source": "beir", "path": path}},
        "start": {"checkpoint": path},
        "encoder": encoder,
        "before": {"general": encoder},
        "about": {"pydocs": {"made of": [path, {"file": path}]}},
    }
    folder = f"{path.rstrip('/')}/results/models/x"
    text = card.card({**FACTS, **changed}, measures(), LENGTHS["retriever"], folder)
    assert not re.search("alice|clients|acme", text)
    settings = ("checkpoint: data", "generator: data", "- data", "file: data")
    for shown in ("path data.", *settings, '("x")'):
        assert shown in text
    assert "base_model" not in text


def test_a_card_shows_relative_paths_and_names_at_the_hub():
    collections = {"pydocs": {"path": "data/scifact"}}
    changed = {"collections": collections, "start": {"checkpoint": "Shitao/RetroMAE"}}
    text = card.card({**FACTS, **changed}, measures(), LENGTHS["retriever"], "results/models/x")
    assert "path data/scifact." in text and "results/models/x" in text
    assert "base_model: Shitao/RetroMAE" in text and "checkpoint: Shitao/RetroMAE" in text
