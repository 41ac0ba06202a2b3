"""Words of a text with their importance, as spans of the text, colours and numbers."""

import numpy as np
import pytest
from transformers import BertTokenizer

from cdmae.importance import ami, ngrams, shading
from cdmae.tokens.corpus import Tokens

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cross", "##word", "is", "a", "puzzle", "!"]
WORD_STARTS = np.array([not piece.startswith("##") for piece in PIECES])


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    """Shades by a collection in which "crossword puzzle" is a collocation."""
    folder = tmp_path_factory.mktemp("shades")
    BertTokenizer(vocab={piece: row for row, piece in enumerate(PIECES)}).save_pretrained(folder)
    texts = [[5, 6, 9], [8, 7, 10], [7, 8]] * 4
    lengths = np.array([[0, len(text)] for text in texts]).ravel()
    tokens = Tokens.of(np.concatenate(texts).astype(np.uint16), lengths, WORD_STARTS)
    ngrams.count_to(folder / "ngrams", tokens, window=2)
    settings = {"pmi": "min", "normaliser": "order", "edges": "literal"}
    ami.estimate(folder / "importance", folder / "ngrams", tokens, settings)
    return shading.Shades(folder / "importance", folder)


def test_spans_are_the_text_in_its_own_spelling(shades):
    text = " Crossword  puzzle\tIs A!"
    spans = shades.spans(text)
    assert "".join(span.text for span in spans) == text
    assert ("puzzle", 5) in spans and ("A", 0) not in spans
    assert shades.spans("") == [("", 0)]
    words = shades.words(text)
    assert [word.text for word in words] == ["crossword", "puzzle", "is", "a", "!"]
    assert words[0].importance > words[2].importance
