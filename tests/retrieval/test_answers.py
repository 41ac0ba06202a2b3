"""What `./run search` prints."""

from cdmae.retrieval.answers import Answer, question_words, show

TEXT = "Open a file and return it.\nRaises OSError if the file cannot be opened."
ANSWERS = [
    Answer(71.234, "open", "Opening files", TEXT),
    Answer(-3.0, "odd", "", "a\x1b[31mred\x07 one"),
]


def test_answers_are_wrapped_and_without_control_characters():
    assert show(ANSWERS, width=40) == (
        "1. Opening files\n"
        "    from open (score 71.23)\n"
        "    Open a file and return it. Raises\n"
        "    OSError if the file cannot be\n"
        "    opened.\n"
        "\n"
        "2. odd\n"
        "    (score -3.00)\n"
        "    a [31mred one"
    )
    assert show([], width=50) == "no passage was found"


def test_long_passages_are_cut():
    lines = show([Answer(1, "id", "t", "word " * 500)], width=50).splitlines()
    assert len(lines) == 8 and lines[-1].endswith(" …") and max(map(len, lines)) <= 50


def test_stop_words_count_only_where_there_is_nothing_else():
    assert question_words("How do I merge?") == {"merge"}
    assert question_words("to be or not") == {"to", "be", "or", "not"}
