"""Every format that crosses a rule: what an artefact holds, and the module that reads and writes
it.

======================  =======================================  =====================================================
module                  path below ``results/``                  format
======================  =======================================  =====================================================
`collections.store`     ``collections/{collection}/``            ``passages.parquet`` (passage_id, title, text; the row
                                                                 number is the internal id), ``queries.parquet``
                                                                 (split, query_id, text), ``qrels.parquet`` (split,
                                                                 query, passage, grade; rows, not ids), ``about.json``
`tokens.corpus`         ``tokens/{start}/{collection}/``         ``ids.npy`` uint16 or uint32 [T], ``starts.npy`` int64
                                                                 [P + 1], ``text_starts.npy`` int64 [P],
                                                                 ``word_starts.npy`` bool [V]
`importance.ami`        ``importance/{importance}/{start}/``     ``values.npy`` float16 [T], aligned with the tokens'
                        ``{collection}/``                        ``ids.npy``; ``ngrams.json`` refers to the n-grams,
                                                                 whose table scores new text
`runs`                  ``runs/{system}/{collection}.{split}``   Parquet, one row per query in the order of the split:
                        ``.parquet``                             ``passages`` list<int32>, ``scores`` list<float32>
`retrieval.vectors`     ``vectors/{system}/{collection}/``       ``00000.npy``, ``00001.npy``, ... float32 [p, D]
`evaluation.per_query`  ``measures/{system}.tsv``                collection, split, query_id, measure, value
======================  =======================================  =====================================================

They are made by `cdmae.files`, so that they exist only when complete (written beside their place,
synced and renamed). No format is imported here: a job depends on the formats that it imports, and
runs again when these change.

The rules say where a result lies (``workflow/rules``). `place` says it to those who are no rule.
"""

import os

PLACES = {
    "about": "collections/{collection}/about.json",
    "collection": "collections/{collection}",
    "tokens": "tokens/{start}/{collection}",
    "bm25": "bm25/{collection}",
    "fusion": "fusions/{system}.json",
    "tokenizer": "tokenizers/{start}",
    "ngrams": "ngrams/{importance}/{start}/{collection}",
    "importance": "importance/{importance}/{start}/{collection}",
    "encoder": "encoders/{encoder}",
    "masked_terms": "masked_terms/{encoder}.json",
    "negatives": "negatives/{system}.{collection}.{split}.parquet",
    "teacher": "teachers/{system}.parquet",
    "trained": "trained/{system}",
    "vectors": "vectors/{system}/{collection}",
    "run": "runs/{system}/{collection}.{split}.parquet",
    "measures": "measures/{system}.tsv",
    "latency": "latency.json",
    "benchmarks": "benchmarks",
}


def place(results: str, what: str, **names: str) -> str:
    """Tell where a result lies: ``place("results", "encoder", encoder="mae")`` is
    ``results/encoders/mae``.
    """
    return os.path.join(os.path.normpath(results), PLACES[what].format(**names))
