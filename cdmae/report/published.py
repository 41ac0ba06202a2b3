"""The numbers of the paper (tables 1 to 4), for what is measured on the same queries, and for its claims."""

from __future__ import annotations

from cdmae.report.facts import Facts, Target

# table 1 and 2: the paper's own system, (dataset, measure) -> value after stages 1, 2 and 3 (None: not given)
STAGES: dict[tuple[str, str], tuple[float | None, float | None, float | None]] = {
    ("msmarco dev", "RR@10"): (38.8, 40.2, 41.7),
    ("msmarco dev", "R@50"): (None, None, 88.6),
    ("msmarco dev", "R@1000"): (98.6, 98.7, 98.9),
    ("msmarco dl19", "nDCG@10"): (67.0, None, 73.0),
    ("msmarco dl20", "nDCG@10"): (67.9, None, 71.1),
}

# table 1: BM25
BM25 = {
    ("msmarco dev", "RR@10"): 18.5,
    ("msmarco dev", "R@50"): 58.5,
    ("msmarco dev", "R@1000"): 85.7,
    ("msmarco dl19", "nDCG@10"): 51.2,
    ("msmarco dl20", "nDCG@10"): 47.7,
}

# table 3, nDCG@10: dataset -> (BM25, RetroMAE, CDMAE)
BEIR = {
    "trec-covid": (65.6, 77.2, 79.0),
    "nfcorpus": (32.5, 30.8, 33.4),
    "nq": (32.9, 51.8, 55.9),
    "hotpotqa": (60.3, 63.5, 65.5),
    "fiqa": (23.6, 31.6, 33.6),
    "arguana": (31.5, 43.3, 49.1),
    "touche-2020": (36.7, 23.7, 21.1),
    "cqadupstack": (29.9, 31.7, 36.1),
    "quora": (78.9, 84.7, 86.0),
    "dbpedia-entity": (31.3, 39.0, 42.0),
    "scidocs": (15.8, 15.0, 17.0),
    "fever": (75.3, 77.4, 76.1),
    "climate-fever": (21.3, 23.2, 23.6),
    "scifact": (66.5, 65.3, 67.1),
}

# table 3, the mean of the 14
BEIR_MEAN = (43.0, 47.0, 49.0)

# what the paper says it gains, in points
OVER_UNIFORM = 38.8 - 37.7  # table 2, stage 1: over RetroMAE, whose decoder differs too
STAGE_GAINS = (40.2 - 38.8, 41.7 - 40.2)  # table 2: stage 2 over 1, stage 3 over 2
ZERO_SHOT = 49.0 - 47.0  # table 3: over RetroMAE, mean of 14 datasets
PROJECTION = 38.8 - 38.4  # table 4
STOP_WORDS = 0.40  # section 3.2: of the masks of BERT, stop-words and punctuation


def dataset(facts: Facts, target: Target) -> str:
    """The name of tables 1 and 2 for a target, such as ``msmarco dev``; nothing if they do not have it."""
    entry = facts.entries("collections").get(target.collection, {})
    if entry.get("source") == "msmarco" or entry.get("dataset") == "msmarco-passage":
        split = {"dev": "dev", "dev/small": "dev", "dl19": "dl19", "dl20": "dl20"}.get(target.split, "")
        return f"msmarco {split}" if split else ""
    return ""
