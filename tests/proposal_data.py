"""Folders of data and published models for the tests of `./run new`."""

import json
import random
import shutil

import pandas as pd
from small_collections import write_beir

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnprst"]


def passage(rng):
    return " ".join(rng.choices(WORDS, k=30)) + ". " + " ".join(rng.choices(WORDS, k=20)) + "."


def pairs(path, columns=("query", "positive")):
    rng = random.Random(1)
    path.parent.mkdir(exist_ok=True)
    found = [(f"what is {' '.join(rng.choices(WORDS, k=4))}", passage(rng)) for _ in range(100)]
    pd.DataFrame(found, columns=columns).to_csv(path, index=False)
    return path


def beir(folder, **splits):
    rng = random.Random(2)
    passages = {f"p{row}": passage(rng).capitalize() for row in range(120)}
    queries = {f"q{row}": f"query {WORDS[row]}" for row in range(120)}
    judged = {}
    first = 0
    for split, count in splits.items():
        judged[split] = [(f"q{row}", f"p{row}", 1) for row in range(first, first + count)]
        first += count
    write_beir(folder, passages, queries, **judged)
    return folder


def texts(folder, suffix=".md"):
    rng = random.Random(3)
    folder.mkdir()
    for row in range(40):
        heads = [" ".join(rng.choices(WORDS, k=4)) for _ in range(3)]
        sections = [f"# {head}\n\n{passage(rng).title()}\n" for head in heads]
        (folder / f"page{row}{suffix}").write_text("\n".join(sections))
    return folder


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
