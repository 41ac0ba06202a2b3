"""The words of a passage on the page."""

import pytest

from cdmae.importance.shading import Span
from cdmae.serving.answers import question_words
from cdmae.serving.pages import SHOWN, Word, divided


@pytest.mark.parametrize(
    ("question", "text", "bold"),
    [
        ("How do I Sort a list?", "A LIST is sorted by sort(), not a blacklist", "LIST sort"),
        ("read_csv", "pandas.read_csv reads", "read csv"),
        ("what is this", "this is it", "this is"),  # stop-words alone
        ("कैसे सीखें हिन्दी भाषा", "वे हिन्दी और भाषा सीखें।", "हिन्दी भाषा सीखें"),
        ("如何安装软件?", "请先安装这个软件,再安装。", "安装 软件 安装"),
        ("装软件", "装软件", "装软件"),
        ("???", "what ???", ""),
    ],
)
def test_the_words_of_the_question_are_bold(question, text, bold):
    first, rest = divided(text, question_words(question), None)
    assert "".join(word.text for word in first) == text and not rest
    assert [word.text for word in first if word.asked] == bold.split()


def test_a_long_passage_is_cut_after_a_word_and_keeps_its_shades():
    class Shades:
        def spans(self, text):
            return [Span(text[:4], 5), Span(text[4:], 1)]

    text = "sort " * 2 * SHOWN
    first, rest = divided(text, question_words("sort"), Shades())
    assert "".join(word.text for word in first) == ("sort " * SHOWN).rstrip()
    assert first[:3] == [Word("sort", 5, True), Word(" ", 1, False), Word("sort", 1, True)]
    assert "".join(word.text for word in first + rest) == text
