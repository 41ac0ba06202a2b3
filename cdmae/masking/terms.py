"""Describe masked words: the most frequent, and the share of stop-words.

Section 3.2 of the paper: 40 % of the tokens masked at random are stop-words or punctuation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cdmae import masking
from cdmae.config.encoders import reads
from cdmae.config.objectives import AnyEncoder
from cdmae.files import write_json
from cdmae.importance.shading import spell
from cdmae.languages.stop_words import STOP_WORDS
from cdmae.masking import Batch, Corpus, side_of
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

SAMPLE = 20_000  # number of passages that are masked
TOP = 10


def describe(
    output: Path | str,
    tokens: Tokens,
    tokenizer: Path,
    importance: Path,
    *,
    settings: AnyEncoder,
) -> None:
    """Describe the importance-aware masks of a decoder, or of its encoder, and uniform masks.

    `output` is a JSON file with these keys:

    ``uniform``, ``importance``: two facts about the masks. The most frequent masked words and
    their share of the masked words; the share of stop-words and punctuation among the masked
    word-pieces.
    """
    corpus = Corpus(tokens, Vocabulary.read(tokenizer), tokenizer, importance)
    decoder = getattr(settings, "decoder_masking", "uniform")
    name = "decoder" if reads(decoder) == "importance" else "encoder"
    side = side_of(settings, name, corpus.unit)
    uniform = replace(side, strategy="uniform")
    evenly = np.linspace(0, max(0, len(tokens) - 1), SAMPLE).astype(np.int64)
    rows = np.unique(evenly)[: len(tokens)]
    values = masking.values([side.strategy], corpus).get(side.strategy)
    batch = masking.read(tokens, rows, settings.max_length - 2, corpus.vocabulary, values)
    key = masking.key(settings.seed, "decoder", 0)
    facts = {
        "uniform": _facts(batch, masking.choose(batch, uniform, key), corpus.pieces),
        "importance": _facts(batch, masking.choose(batch, side, key), corpus.pieces),
    }
    write_json(output, facts)


def _facts(batch: Batch, mask: np.ndarray, pieces: list[str]) -> dict[str, Any]:
    """Return the words with the most frequently masked first pieces, and the share of stop-words.

    mask: bool [B, n]. pieces: the spelling of each word-piece.
    """
    ids = batch.ids[batch.inside]
    masked = mask[batch.inside]
    begins = np.flatnonzero(batch.word_starts[batch.inside])
    ends = np.append(begins[1:], len(ids))
    chosen = masked[begins]
    words = zip(begins[chosen].tolist(), ends[chosen].tolist(), strict=True)
    counts = Counter(tuple(ids[begin:end].tolist()) for begin, end in words)
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    total = counts.total()
    is_stop_word = np.array(
        [piece in STOP_WORDS or not any(map(str.isalnum, piece)) for piece in pieces]
    )
    # A stop-word is a whole word; the "a" of "aorta" is not a stop-word.
    whole = np.zeros(len(ids), bool)
    whole[begins] = ends - begins == 1
    found = is_stop_word[ids] & whole
    return {
        "top": [[spell(word, pieces), round(count / total, 4)] for word, count in best],
        "stop_word_share": round(float(found[masked].mean()), 4) if masked.any() else 0.0,
    }
