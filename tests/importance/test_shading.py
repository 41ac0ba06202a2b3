import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.importance import ami, shading
from cdmae.importance.shading import Word

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cross", "##word", "is", "a", "puzzle", "!"]


@pytest.fixture
def tokenizer(tmp_path):
    from transformers import BertTokenizer

    BertTokenizer(vocab={piece: row for row, piece in enumerate(PIECES)}).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def table(monkeypatch):
    """A table that gives every word-piece its own id as importance."""

    class Table:
        def score(self, ids, vocabulary):
            return ids.astype(np.float32)

        def score_all(self, segments, vocabulary):
            return [self.score(ids, vocabulary) for ids in segments]

        def seen(self, ids, vocabulary):
            return np.where(ids == 9, 0.4, 0.5)

    monkeypatch.setattr(ami.Table, "read", lambda folder: Table())


def test_words_are_spelt_whole_with_the_importance_of_their_first_piece_if_there_are_any(
    tokenizer, table
):
    found = shading.score("Crossword is a puzzle!", "table", tokenizer)
    expected = [("crossword", 5.0), ("is", 7.0), ("a", 8.0), ("puzzle", 9.0), ("!", 10.0)]
    assert [(word.text, word.importance) for word in found] == expected
    assert [word.text for word in found if word.mark] == ["puzzle"], (
        "fewer than half of its n-grams are repeated"
    )
    with pytest.raises(InputError, match="no words"):
        shading.score("  ", "table", tokenizer)


def test_many_texts_are_spelt_together_and_some_have_no_words(tokenizer, table):
    found = shading.Shades("table", tokenizer).many(["crossword is", " ", "a puzzle"])
    assert found == [
        [Word("crossword", 5.0), Word("is", 7.0)],
        [],
        [Word("a", 8.0), Word("puzzle", 9.0)],
    ]


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
