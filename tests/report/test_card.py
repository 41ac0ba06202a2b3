"""Model cards: what they say, code that runs, metadata of hubs, and no text read as markup."""

import ast
import re

import pytest
import yaml
from card_facts import FACTS, measures
from markdown_it import MarkdownIt

from cdmae.evaluation.per_query import read_measures, write_measures
from cdmae.files import write_json
from cdmae.models.checkpoint import DEFAULTS
from cdmae.report import card

TWO = {**DEFAULTS, "kind": "retriever", "query_length": 32, "passage_length": 144}
LATE = {**TWO, "head": "multi", "dimensions": 16, "expansion": "unattended"}
OWN = {**TWO, "head": "sparse", "pieces": "own"}
UNIFIED = {"head": "unified", "pooling": "cls", "similarity": "dot", "dense_weight": 0.5}
FORMS = {
    "dense": TWO,
    "sparse": {**TWO, "head": "sparse"},
    "reranker": {"kind": "reranker", "max_length": 192},
    "colbert": {**LATE, "match": "any"},
    "coil": {**LATE, "match": "equal", "cls_dimensions": 24},
    "unified": {**TWO, **UNIFIED},
    "unicoil": {**OWN, "target": "ranking"},
    "deepct": {**OWN, "target": "recall"},
}
READER = MarkdownIt("gfm-like", {"linkify": False})  # what model hubs read


def card_of(form="dense", others=None, place="results/models/x", **changes):
    return card.card({**FACTS, **changes}, measures(), FORMS[form], place, others)


def front_matter(text):
    return yaml.safe_load(text.removeprefix("---\n").partition("\n---\n")[0])


def test_other_systems_are_measured_on_the_same_queries():
    bm25 = measures().assign(value=[0.9, 0.8, 0.7, 1.0, 1.0, 1.0])
    text = card_of(others={"bm25": bm25, "minilm": measures()})
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


def test_the_card_has_data_and_settings_and_does_without_records():
    text = card_of(before={"general": {"start": "small", "objective": "mae"}})
    parts = ("source: pydocs", "passages: 19805", "python: 3.12.4", "in_batch: true", "window: 4")
    for part in (*parts, "negatives: bm25", "seed: 42", "steps: 375", "before:\n  general:\n"):
        assert part in text
    assert "source: pydocs" in card_of("reranker", about={}, training={})
    assert "objective mae: A masked auto-encoder;" in text and "whole_word, importance." in text


def test_a_release_is_the_model_with_its_card(tmp_path):
    folder = tmp_path / "trained"
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("model.safetensors", "1_Pooling/config.json", "README.md", ".snakemake_timestamp"):
        (folder / name).write_text(name)
    write_json(folder / "cdmae.json", TWO)
    write_json(folder / "about.json", FACTS["training"])
    write_json(tmp_path / "about.json", FACTS["about"]["pydocs"])
    tsv = tmp_path / "bm25.tsv"
    write_measures(tsv, measures())
    facts = {**FACTS, "about": {"pydocs": str(tmp_path / "about.json")}, "beside": ["bm25"]}
    output = tmp_path / "models/bm25"
    card.release({"bm25": facts}, [folder], [tsv], [output])
    names = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    weights = {"model.safetensors", "1_Pooling/config.json"}
    assert names == {"README.md", "about.json", "cdmae.json", *weights}
    assert (output / "model.safetensors").samefile(folder / "model.safetensors"), "linked"
    expected = card.card(FACTS, read_measures(tsv), TWO, str(output), {"bm25": measures()})
    assert (output / "README.md").read_text() == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_card_names_the_lengths_and_prompts_of_the_training(form):
    prompts = {"query_prompt": "Q: ", "passage_prompt": "P: "}
    text = card.card(FACTS, measures(), FORMS[form] | prompts, "x")
    assert all(str(length) in text for key, length in FORMS[form].items() if key.endswith("length"))
    assert ('"Q: "' in text and '"P: "' in text) == (form != "reranker")


@pytest.mark.parametrize(
    ("form", "version"), [("dense", "5"), ("sparse", "5.1"), ("unified", "5.1"), ("colbert", "6.2")]
)
def test_the_code_names_the_version_that_it_needs(form, version):
    found = re.search(
        r"^from sentence_transformers import \w+  # version (\S+)", card_of(form), re.M
    )
    assert found[1] == version


def test_front_matter_has_the_measures_the_licence_and_the_languages():
    values = front_matter(card_of(licence="cc-by-4.0", languages=["en", "fr"]))
    assert values["library_name"] == "sentence-transformers"
    assert values["pipeline_tag"] == "sentence-similarity"
    assert (values["license"], values["language"]) == ("cc-by-4.0", ["en", "fr"])
    (result,) = values["model-index"][0]["results"]
    assert result["metrics"][0] == {"type": "RR@10", "name": "MRR@10", "value": 0.25}
    text = card_of("reranker", start={"checkpoint": "acme/tiny@v1"})
    values = front_matter(text)
    assert (values["pipeline_tag"], values["base_model"]) == ("text-ranking", "acme/tiny")
    assert not {"license", "language"} & values.keys() and "No licence is stated" in text


# --- a card is published --------------------------------------------------------------------------

HOSTILE = (
    "x\n---\nlicense: evil\n---\n# Hi <script>alert(7)</script> &lt;b&gt; <!-- x\n\n   ```\n```\n"
    '![i](http://x/y.png) [l](javascript:alert(7)) http://x.test/y **bold** `code`\n\\")\n'
    'raise SystemExit  # "{{ 7 * 7 }}'
)


def structure(text):
    """The kinds of tokens in a card's body, as a Markdown reader parses it."""
    _, _, body = text.removeprefix("---\n").partition("\n---\n")
    blocks = READER.parse(body)
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    return [token.type for token in tokens if token.type != "text"]


def test_no_value_of_a_card_is_read_as_markup():
    """Not of paths, versions, records, checkpoints, splits or folders."""

    def with_value(value):
        changed = {
            "collections": {"pydocs": {"source": "beir", "path": value}},
            "about": {"pydocs": {"versions": {value: value}, "of": value, value: 1}},
            "start": {"checkpoint": value},
            "system": {**FACTS["system"], "negatives": value},
        }
        return card.card({**FACTS, **changed}, measures().assign(split=value), TWO, value)

    text = with_value(HOSTILE)
    assert structure(text) == structure(with_value("plain"))
    known = {"library_name", "pipeline_tag", "tags", "model-index", "base_model"}
    assert front_matter(text).keys() <= known
    assert "49" not in text
    code = next(token.content for token in READER.parse(text) if token.info == "python")
    nodes = list(ast.walk(ast.parse(code)))
    assert HOSTILE in [node.value for node in nodes if isinstance(node, ast.Constant)]
    assert not [node for node in nodes if isinstance(node, ast.Raise)]


def test_a_card_shows_the_last_part_of_a_local_path():
    path = "/home/alice/clients/acme/data/"
    encoder = {**FACTS["encoder"], "generator": path}
    text = card_of(
        collections={"pydocs": {"source": "beir", "path": path}},
        start={"checkpoint": path},
        before={"general": encoder},
        about={"pydocs": {"made of": [path, {"file": "../clients/acme/data"}]}},
        place=f"{path}results/models/x",
    )
    assert not re.search("alice|clients|acme", text) and "base_model" not in text
    settings = ("path: data", "checkpoint: data", "generator: data", "- data", "file: data")
    assert all(shown in text for shown in (*settings, '("x")'))
