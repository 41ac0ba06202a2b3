import numpy as np
import pytest

from cdmae.importance import ami, shading
from cdmae.importance.shading import Word

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cross", "##word", "is", "a", "puzzle", "!"]


@pytest.fixture
def tokenizer(tmp_path):
    from transformers import BertTokenizer

    BertTokenizer(vocab={piece: row for row, piece in enumerate(PIECES)}).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def shades(tokenizer, monkeypatch):
    """Shades by a table that gives every word-piece its own id as importance."""

    class Table:
        def score(self, segments, vocabulary):
            values = [ids.astype(np.float32) for ids in segments]
            return values, [np.where(ids == 9, 0.4, 0.5) for ids in segments]

    monkeypatch.setattr(ami.Table, "read", lambda folder: Table())
    return shading.Shades("table", tokenizer)


def test_words_are_spelt_whole_with_the_importance_of_their_first_piece_if_there_are_any(shades):
    found, none, other = shades.words(["Crossword is a puzzle!", " ", "a puzzle"])
    expected = [("crossword", 5.0), ("is", 7.0), ("a", 8.0), ("puzzle", 9.0), ("!", 10.0)]
    assert [(word.text, word.importance) for word in found] == expected
    marked = [word.text for word in found if word.mark]
    assert marked == ["puzzle"], "fewer than half of its n-grams are repeated"
    assert none == []
    assert [word.text for word in other] == ["a", "puzzle"]


def test_spans_are_the_text_in_its_own_spelling(shades):
    spans = shades.spans(" Crossword  is\tA puzzle!")
    assert "".join(span.text for span in spans) == " Crossword  is\tA puzzle!"
    assert [span.text for span in spans if span.shade] == ["Crossword", "is", "A", "puzzle", "!"]
    assert [span.shade for span in spans if span.shade] == shading.shades([5, 7, 8, 9, 10])
    assert shades.spans("") == [("", 0)]


def test_numbers_are_one_word_a_line_and_grounds_follow_them():
    words = [Word("a", 1.0), Word("b", -0.256, 0.2)]
    assert shading.as_numbers(words) == "word\timportance (nats)\tguess\na\t1.00\nb\t-0.26\t?"
    assert shading.for_terminal(words).endswith(" b?")
    escape = [Word("\x1b]0;owned\x07", 1.0)]
    assert "\x1b]" not in shading.for_terminal(escape) + shading.as_numbers(escape)
    shown = shading.for_terminal([Word("a", -2.0), Word("b", 10.0), Word("c", 5.0)]).split(" ")
    assert shown[0] == "a"
    assert f"48;5;{shading.GROUNDS[-1]}m" in shown[1] and shown[1].endswith("b\x1b[0m")
    assert shown[2] != shown[1] and "\x1b[48;5;" in shown[2]
    assert shading.for_terminal([Word("a", 0.0), Word("b", -1.0)]) == "a b"
