"""Write training queries with mined negatives and a teacher's scores for sentence-transformers.

A file has one JSON object per line and positive: ``anchor``, ``positive``, ``negative_1``,
``negative_2``, ... with the same number of negatives in every row. With a teacher, ``label`` is the
list of its scores for the positive and the negatives. `cdmae.collections.pair_rows` reads the file.
"""

from __future__ import annotations

import json
from pathlib import Path

from cdmae.collections.store import read_passages, read_queries
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.finetuning import groups
from cdmae.finetuning.groups import Drawing
from cdmae.finetuning.labels import Labels
from cdmae.runs import read_run


def export(
    output: Path,
    count: int,
    *,
    collection: Path,
    negatives: Path,
    drawing: Drawing,
    teacher: Path | None = None,
    labels: Labels | None = None,
) -> tuple[int, int]:
    """Write a row per positive of each training query, with `count` mined negatives.

    The files and settings select the training groups, as for `groups.read_examples`. teacher: the
    run with the teacher's scores; None without a teacher.

    Returns the number of rows, and of queries that have fewer negatives and are left out. Raises
    `InputError` if no query is left.
    """
    examples, _ = groups.read_examples(collection, negatives, drawing, teacher, labels)
    queries = read_queries(collection, drawing.split)["text"]
    passages = read_passages(collection)
    scores = read_run(teacher) if teacher else None
    rows = 0
    short = 0
    with complete(output) as aside, open(aside, "w", encoding="utf-8", newline="\n") as file:
        for example, query in enumerate(examples.queries.tolist()):
            mined = examples.mined[example][:count].tolist()
            if len(mined) < count:
                short += 1
                continue
            for positive in examples.positives[example].tolist():
                group = [positive, *mined]
                found = passages.take(group).to_pylist()
                texts = [f"{each['title']} {each['text']}".strip() for each in found]
                row = {"anchor": queries[query], "positive": texts[0]}
                row |= {f"negative_{rank}": text for rank, text in enumerate(texts[1:], 1)}
                if scores:
                    ranked, values = scores.ranked(query)
                    known = dict(zip(ranked.tolist(), values.tolist(), strict=True))
                    row["label"] = [known[passage] for passage in group]
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                rows += 1
        if not rows:
            raise InputError(
                f"all {short:,} queries of {collection} {drawing.split} have fewer than {count} "
                "negatives; expected a smaller --triples"
            )
    return rows, short
