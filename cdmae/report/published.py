"""The numbers of the paper, each row with its source: what is measured on the same queries stands beside them.

A dataset is named as `dataset` names a target; points are those of the paper, measures x 100.
"""

from __future__ import annotations

from typing import NamedTuple

from cdmae.report.facts import GRADED, Facts, Target

DEV, DL19, DL20, DL = "msmarco dev", "msmarco dl19", "msmarco dl20", "msmarco dl19 and dl20"
OURS = "CDMAE"  # the paper's own method


class Key(NamedTuple):
    """A column of the paper: a dataset and a measure; `stage` of the fine-tuning, 0 where a table has one a row."""

    dataset: str
    measure: str
    stage: int = 0


class Row(NamedTuple):
    """What the paper's tables say of a method or a setting; `source` is where its numbers are from."""

    name: str
    source: str
    values: dict[Key, float]


# where the paper takes the numbers of a method from (its references)
SOURCES = {
    "BM25": "Robertson and Zaragoza 2009",
    "DeepCT": "Dai and Callan 2020",
    "docT5query": "Nogueira and Lin 2019",
    "ANCE": "Xiong et al. 2021",
    "SEED": "Lu et al. 2021",
    "TAS-B": "Hofst\N{LATIN SMALL LETTER A WITH DIAERESIS}tter et al. 2021",
    "ColBERT": "Khattab and Zaharia 2020",
    "COIL": "Gao et al. 2021",
    "Condenser": "Gao and Callan 2021",
    "RocketQA": "Qu et al. 2021",
    "PAIR": "Ren et al. 2021a",
    "coCondenser": "Gao and Callan 2022",
    "RocketQAv2": "Ren et al. 2021b",
    "AR2": "Zhang et al. 2022",
    "ColBERTv2": "Santhanam et al. 2022",
    "UnifieR dense": "Shen et al. 2022",
    "RetroMAE": "Xiao et al. 2022",
    "SimLM": "Wang et al. 2022",
    "CoT-MAE": "Wu et al. 2022",
    "MASTER": "Zhou et al. 2022",
    "DPR": "Karpukhin et al. 2020",
    "Contriever": "Izacard et al. 2022",
    OURS: "the paper",
}
# the methods whose pre-training is a file in cdmae/objectives
OBJECTIVES = {
    "RetroMAE": "retromae",
    "SimLM": "simlm",
    "CoT-MAE": "cotmae",
    "Condenser": "condenser",
    "coCondenser": "cocondenser",
    "MASTER": "master",
}
MASKINGS = {"MASTER": "inverse_frequency"}  # of the decoder; the others' is uniform, where they have one
# published starts that are the result of a method: pre-trained on MS MARCO, as in tables 1 and 2, and on general text
# alone, as in table 3; the authors of RetroMAE report both
IN_DOMAIN = {"Shitao/RetroMAE_MSMARCO": "RetroMAE"}
GENERAL = {"Shitao/RetroMAE": "RetroMAE"}
# how far the fine-tuning of table 1 goes: to hard negatives, or to distillation
STAGE_OF = {"Condenser": 2, "coCondenser": 2, "CoT-MAE": 2, "RetroMAE": 3, "SimLM": 3, "MASTER": 3, OURS: 3}
_DISTILLED = (
    "TAS-B", "RocketQA", "PAIR", "RocketQAv2", "AR2", "ColBERTv2", "RetroMAE", "SimLM", "MASTER", OURS
)  # fmt: skip
_SEVERAL = ("ColBERT", "COIL", "ColBERTv2")


def kind(name: str) -> str:
    """The two columns of ticks in table 1, in words."""
    words = (("distilled", _DISTILLED), ("several vectors", _SEVERAL))
    return ", ".join(word for word, names in words if name in names)


def _rows(where: str, keys: tuple[Key, ...], text: str) -> list[Row]:
    """Rows of a table: a name, bars between its values, a dash where the paper has none."""
    rows = []
    for line in text.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        values = {key: float(cell) for key, cell in zip(keys, cells, strict=True) if cell != "-"}
        rows.append(Row(name, f"{where}; {SOURCES[name]}" if name in SOURCES else where, values))
    return rows


MAIN = _rows(
    "table 1",
    (Key(DEV, "RR@10"), Key(DEV, "R@50"), Key(DEV, "R@1000"), Key(DL19, GRADED), Key(DL20, GRADED)),
    """
    BM25          | 18.5 | 58.5 | 85.7 | 51.2 | 47.7
    DeepCT        | 24.3 | 69.0 | 91.0 | 57.2 | -
    docT5query    | 27.7 | 75.6 | 94.7 | 64.2 | -
    ANCE          | 33.0 | -    | 95.9 | 64.5 | 64.6
    SEED          | 33.9 | -    | 96.1 | -    | -
    TAS-B         | 34.0 | -    | 97.5 | 71.2 | 69.3
    ColBERT       | 36.0 | 82.9 | 96.8 | -    | -
    COIL          | 35.5 | -    | 96.3 | 70.4 | -
    Condenser     | 36.6 | -    | 97.4 | 69.8 | -
    RocketQA      | 37.0 | 85.5 | 97.9 | -    | -
    PAIR          | 37.9 | 86.4 | 98.2 | -    | -
    coCondenser   | 38.2 | 86.5 | 98.4 | 71.7 | 68.4
    RocketQAv2    | 38.8 | 86.2 | 98.1 | -    | -
    AR2           | 39.5 | 87.8 | 98.6 | -    | -
    ColBERTv2     | 39.7 | 86.8 | 98.4 | -    | -
    UnifieR dense | 38.8 | -    | 97.6 | 71.1 | -
    RetroMAE      | 41.6 | 88.5 | 98.8 | 68.1 | 70.6
    SimLM         | 41.1 | 87.8 | 98.7 | 71.2 | 69.7
    CoT-MAE       | 39.4 | 87.0 | 98.7 | -    | 70.4
    MASTER        | 41.5 | 88.6 | 98.8 | 72.7 | 71.7
    CDMAE         | 41.7 | 88.6 | 98.9 | 73.0 | 71.1
    """,
)

# RetroMAE's stage 1 is the authors' rerun of its code
STAGES = _rows(
    "table 2",
    tuple(Key(DEV, measure, stage) for stage in (1, 2, 3) for measure in ("RR@10", "R@1000")),
    """
    coCondenser | 35.7 | 97.8 | 38.2 | 98.4 | 40.2 | 98.3
    RetroMAE    | 37.7 | 98.5 | 39.3 | 98.5 | 41.6 | 98.8
    SimLM       | 38.0 | 98.3 | 39.1 | 98.6 | 41.1 | 98.7
    CoT-MAE     | 36.8 | 98.3 | 39.2 | 98.7 | 40.2 | 98.3
    MASTER      | 38.3 | 98.8 | 40.4 | 98.8 | 41.5 | 98.8
    CDMAE       | 38.8 | 98.6 | 40.2 | 98.7 | 41.7 | 98.9
    """,
)

# table 3, nDCG@10, as it stands there: datasets down, methods across
_BEIR_METHODS = ("BM25", "DPR", "ColBERT", "Contriever", "Condenser", "RetroMAE", "SimLM", "MASTER", "CDMAE")
_BEIR = """
    trec-covid     | 65.6 | 33.2 | 67.7 | 59.6 | 75.0 | 77.2 | 63.7 | 62.0 | 79.0
    nfcorpus       | 32.5 | 18.9 | 30.5 | 32.8 | 27.7 | 30.8 | 32.3 | 33.0 | 33.4
    nq             | 32.9 | 47.4 | 52.4 | 49.8 | 48.6 | 51.8 | 47.7 | 51.6 | 55.9
    hotpotqa       | 60.3 | 39.1 | 59.3 | 63.8 | 53.8 | 63.5 | 58.1 | 58.9 | 65.5
    fiqa           | 23.6 | 11.2 | 31.7 | 32.9 | 25.9 | 31.6 | 29.2 | 32.8 | 33.6
    arguana        | 31.5 | 17.5 | 23.3 | 44.6 | 29.8 | 43.3 | 42.1 | 39.5 | 49.1
    touche-2020    | 36.7 | 13.1 | 20.2 | 23.0 | 24.8 | 23.7 | 29.2 | 32.0 | 21.1
    cqadupstack    | 29.9 | 15.3 | 35.0 | 34.5 | 34.7 | 31.7 | 33.2 | 32.7 | 36.1
    quora          | 78.9 | 24.8 | 85.4 | 86.5 | 85.3 | 84.7 | 77.3 | 79.1 | 86.0
    dbpedia-entity | 31.3 | 26.3 | 39.2 | 41.3 | 33.9 | 39.0 | 34.5 | 39.9 | 42.0
    scidocs        | 15.8 | 7.7  | 14.5 | 16.5 | 13.3 | 15.0 | 14.5 | 14.1 | 17.0
    fever          | 75.3 | 56.2 | 77.1 | 75.8 | 69.1 | 77.4 | 65.7 | 69.2 | 76.1
    climate-fever  | 21.3 | 14.8 | 18.4 | 23.7 | 21.1 | 23.2 | 16.3 | 21.5 | 23.6
    scifact        | 66.5 | 31.8 | 67.1 | 67.7 | 59.3 | 65.3 | 58.8 | 63.7 | 67.1
    average        | 43.0 | 25.5 | 44.4 | 46.6 | 43.0 | 47.0 | 43.0 | 45.0 | 49.0
"""
_LINES = {dataset.strip(): [*map(float, cells)] for dataset, *cells in (
    line.split("|") for line in _BEIR.strip().splitlines()
)}  # fmt: skip
BEIR_SETS = tuple(dataset for dataset in _LINES if dataset != "average")
BEIR = [
    Row(name, f"table 3; {SOURCES[name]}", {Key(dataset, GRADED): cells[at] for dataset, cells in _LINES.items()})
    for at, name in enumerate(_BEIR_METHODS)
]

_ABLATION = (Key(DEV, "RR@10"), Key(DL19, GRADED), Key(DL20, GRADED))
PROJECTION = _rows("table 4", _ABLATION, "w/o projection | 38.4 | 66.3 | 65.9\nw/ projection | 38.8 | 67.0 | 67.9")
CORPUS = _rows("table 5", _ABLATION, "domain | 37.9 | 64.4 | 67.6\ngeneral, then domain | 38.8 | 67.0 | 67.9")

# figure 4: passages per query N, at 2,048 passages a step
NEGATIVES = _rows(
    "figure 4",
    (Key(DEV, "RR@10"), Key(DL, GRADED)),
    "2 | 35.3 | 66.0\n4 | 36.9 | 66.9\n8 | 37.4 | 66.3\n16 | 38.2 | 67.1\n32 | 38.4 | 66.4\n64 | 38.4 | 67.5",
)

# table 6: milliseconds to mask 128 passages of 150 word-pieces: (complexity, on a CPU, on a V100)
LATENCY = {
    "MAE": ("O(n)", 0.4, None),
    "RetroMAE": ("O(n\N{SUPERSCRIPT TWO})", 11.6, None),
    "SimLM": ("O(n\N{SUPERSCRIPT TWO})", 0.4, 2.8),
    "CDMAE": ("O(n log n)", 1.1, None),
}

STOP_WORDS = 0.40  # section 3.2: of the masks of BERT, stop-words and punctuation


def row(rows: list[Row], name: str) -> Row:
    """The row of a method."""
    return next(each for each in rows if each.name == name)


def dataset(facts: Facts, target: Target) -> str:
    """The name of tables 1 and 2 for a target, such as ``msmarco dev``; nothing if they do not have it."""
    entry = facts.entries("collections").get(target.collection, {})
    if entry.get("source") == "msmarco" or entry.get("dataset") == "msmarco-passage":
        split = {"dev": "dev", "dev/small": "dev", "dl19": "dl19", "dl20": "dl20"}.get(target.split, "")
        return f"msmarco {split}" if split else ""
    return ""
