"""Folders of data and published models for the tests of `./run new`."""

import csv
import json
import random
import shutil

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnprst"]


def passage(rng):
    return " ".join(rng.choices(WORDS, k=30)) + ". " + " ".join(rng.choices(WORDS, k=20)) + "."


def pairs(path, rows=100, columns=("query", "positive")):
    rng = random.Random(1)
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for _ in range(rows):
            writer.writerow([f"what is {' '.join(rng.choices(WORDS, k=4))}", passage(rng)])
    return path


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def beir(folder, **splits):
    rng = random.Random(2)
    texts = [{"_id": f"p{row}", "text": passage(rng).capitalize()} for row in range(120)]
    jsonl(folder / "corpus.jsonl", texts)
    asked = [{"_id": f"q{row}", "text": f"query {WORDS[row]}"} for row in range(120)]
    jsonl(folder / "queries.jsonl", asked)
    (folder / "qrels").mkdir()
    first = 0
    for split, count in splits.items():
        lines = [f"q{row}\tp{row}\t1\n" for row in range(first, first + count)]
        (folder / f"qrels/{split}.tsv").write_text("".join(lines))
        first += count
    return folder


def texts(folder, suffix=".md", number=40):
    rng = random.Random(3)
    folder.mkdir()
    for row in range(number):
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
