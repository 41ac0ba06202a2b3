"""The masking strategies: the files in ``cdmae/masking/strategies``."""

from __future__ import annotations

from typing import NamedTuple


class Strategy(NamedTuple):
    """A masking strategy, without its code.

    in_words: a description of the masked words, for model cards. reads: what it needs besides the
    passages, with the settings that give it: ``importance``, or only the ``ngrams`` behind it
    (`importance`), the noise ``sigma`` (`sigma`), and importance with the ``unit word``.
    """

    in_words: str
    reads: tuple[str, ...] = ()


STRATEGIES = {
    "idf": Strategy("preferably words that occur in few passages"),
    "importance": Strategy(
        "words that are important by average mutual information", ("importance", "sigma")
    ),
    "inverse_frequency": Strategy("preferably rare words"),
    "pmi_span": Strategy("with collocations as units", ("ngrams", "unit word")),
    "span": Strategy("in contiguous spans"),
    "uniform": Strategy("words at random"),
    "whole_word": Strategy("words at random"),
}
