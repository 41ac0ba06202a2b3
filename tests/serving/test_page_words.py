"""The words of a passage on the page."""

from types import SimpleNamespace

from cdmae.importance.shading import Span
from cdmae.serving import page_words
from cdmae.serving.page_words import Word, divided


def test_words_keep_the_text_their_shade_and_the_querys_words():
    shades = SimpleNamespace(spans=lambda text: [Span("Sort a ", 0), Span("list", 5), Span(".", 0)])
    first, rest = divided("Sort a list.", {"sort", "list"}, shades)
    assert "".join(word.text for word in first) == "Sort a list." and not rest
    assert Word("Sort", 0, True) in first and Word("list", 5, True) in first
    assert Word("a", 0, False) in first


def test_a_long_text_is_cut_after_a_word():
    text = " ".join(f"w{number}" for number in range(page_words.SHOWN * 2))
    first, rest = divided(text, set(), None)
    assert "".join(word.text for word in [*first, *rest]) == text
    assert first[-1].text == f"w{page_words.SHOWN - 1}"
    short = " ".join("w" for _ in range(page_words.SHOWN + 5))  # no "more" for a few words
    assert divided(short, set(), None)[1] == []
