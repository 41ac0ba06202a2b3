"""Small collections in files, and the relevant passages of their queries."""

import json
import lzma

import pandas as pd
import pyarrow as pa

from cdmae.collections.store import Collection, table_of, write_collection


def write_files(folder, contents):
    """Write files of text or bytes by their paths in a folder; None omits a file."""
    for name, content in contents.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_lines(path, rows):
    """Write JSON lines, compressed by the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    with pa.output_stream(str(path), compression="detect") as file:
        file.write(lzma.compress(content) if path.suffix == ".xz" else content)
    return path


def write_beir(folder, passages, queries=None, **judged):
    """Write texts by id in BEIR's layout; judged: (query, passage, grade) by split.

    Returns the settings of the source.
    """
    for name, texts in (("corpus", passages), ("queries", queries)):
        if texts:
            rows = [{"_id": each, "text": text} for each, text in texts.items()]
            write_lines(folder / f"{name}.jsonl", rows)
    for split, rows in judged.items():
        (folder / "qrels").mkdir(exist_ok=True)
        text = "".join(f"{query}\t{passage}\t{grade}\n" for query, passage, grade in rows)
        (folder / f"qrels/{split}.tsv").write_text(text)
    return {"source": "beir", "path": str(folder)}


def stored(folder, passages, queries=None, judged=None, about=None, **more):
    """Write a collection as a job does; return its folder.

    passages: each a text or (id, title, text). queries: texts by id, by split. judged: (query,
    passage, grade) by split. about: its record.
    """
    rows = [
        (f"p{row}", "", each) if isinstance(each, str) else each
        for row, each in enumerate(passages)
    ]
    asked = {}
    for split, texts in (queries or {}).items():
        asked[split] = pd.DataFrame(texts.items(), columns=["query_id", "text"])
    qrels = {}
    for split, grades in (judged or {}).items():
        qrels[split] = pd.DataFrame(grades, columns=["query_id", "passage_id", "grade"])
    write_collection(folder, Collection(table_of(rows), asked, qrels, about or {}, **more))
    return folder


def texts_of(collection):
    """Return the text of each passage by its id."""
    return {name: text for name, _, text in collection.rows()}


def relevant(collection, split="train"):
    """Return the ids of the relevant passages of each query, by the query's text."""
    asked = dict(collection.queries[split].to_numpy().tolist())
    found = {text: [] for text in asked.values()}
    for judgment in collection.qrels[split].itertuples():
        if judgment.grade > 0:
            found[asked[judgment.query_id]].append(judgment.passage_id)
    return found
