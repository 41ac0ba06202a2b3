"""The files that jobs exchange: paths, formats, and the modules that read and write them.

Paths are below ``results/``.

``collections/{collection}/``, by `collections.store`
    ``passages.parquet`` (passage_id, title, text; the row number is the internal id),
    ``queries.parquet`` (split, query_id, text), ``qrels.parquet`` (split, query, passage, grade;
    query and passage are row numbers), ``about.json``
``tokens/{start}/{collection}/``, by `tokens.corpus`
    ``ids.npy`` uint16 or uint32 [T], ``starts.npy`` int64 [P + 1], ``text_starts.npy`` int64 [P],
    ``word_starts.npy`` bool [V]
``importance/{importance}/{start}/{collection}/``, by `importance.ami`
    ``values.npy`` float16 [T], aligned with the tokens' ``ids.npy``; ``ngrams.json`` refers to the
    table of n-grams, which scores new text
``runs/{system}/{part}/{collection}.{split}.parquet``, by `runs`
    one row per query in the order of the split: ``passages`` list<int32>, ``scores`` list<float32>.
    part: ``evaluated``, or the collection and split again for the queries that a stage trains on
``vectors/{system}/{part}/{collection}/``, by `retrieval.vectors`
    ``00000.npy``, ``00001.npy``, ... float32 [p, D]; of sparse vectors ``00000.npz``, ... CSR
    matrices of SciPy
``measures/{system}.tsv``, ``measured/{system}.tsv``, by `evaluation.per_query`
    collection, split, query_id, measure, value

`cdmae.files` writes each file to a hidden path, syncs it and renames it: a file exists only when
complete. This module imports none of the modules above, because a job depends on the formats that
it imports and runs again when they change.

The rules (``workflow/rules``) contain the paths of their results; other code calls `place`.
"""

import os

PLACES = {
    "about": "collections/{collection}/about.json",
    "collection": "collections/{collection}",
    "tokens": "tokens/{start}/{collection}",
    "bm25": "bm25/{system}/evaluated/{collection}",
    "fusion": "runs/{system}/evaluated/weights.json",
    "tokenizer": "tokenizers/{start}",
    "encoder": "encoders/{encoder}",
    "masked_terms": "masked_terms/{encoder}.json",
    "negatives": "runs/{system}/{collection}.{split}/{collection}.{split}.parquet",
    "teacher": "teachers/{system}.parquet",
    "trained": "trained/{system}",
    "model": "models/{system}",
    "vectors": "vectors/{system}/evaluated/{collection}",
    "sparsity": "runs/{system}/evaluated/sparsity.json",
    "run": "runs/{system}/evaluated/{collection}.{split}.parquet",
    "measures": "measures/{system}.tsv",  # of all systems at once
    "measured": "measured/{system}.tsv",  # of one, for a table or on request
    "logs": "logs",
    "report": "report",
}


def place(results: str, what: str, **names: str) -> str:
    """Return the path of a result.

    ``place("results", "encoder", encoder="mae")`` is ``results/encoders/mae``.
    """
    return os.path.join(os.path.normpath(results), PLACES[what].format(**names))
