"""What a model card is written from: the facts of one system, and its measures."""

import re
from contextlib import chdir

import pandas as pd
from synthetic_run import config

from cdmae.config.load import load
from cdmae.files import read_json
from cdmae.report import sources
from cdmae.report.card import card

FACTS = sources.card(load(config()), "cdmae-stage1") | {
    "languages": [],
    "about": {"pydocs": {"versions": {"python": "3.12.4", "numpy": "2.4.6"}, "passages": 19805}},
    "training": {"steps": 375, "queries": 4000, "seconds": 61.2, "parameters": 1_482_112},
}


def measures():
    values = {"RR@10": [0.5, 0.25, 0.0], "R@50": [1.0, 1.0, 0.0]}
    frame = pd.DataFrame({"collection": "pydocs", "split": "dev", "query_id": list("abc")})
    return pd.concat([frame.assign(measure=name, value=column) for name, column in values.items()])


def told_by_card(folder):
    """Run the first program of the card of a model's folder; return its names."""
    text = card(FACTS, measures(), read_json(folder / "cdmae.json"), folder.name)
    told = {}
    with chdir(folder.parent):
        exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], told)
    return told
