"""What `./run search` prints."""

from cdmae.retrieval.answers import BOLD, DIM, PLAIN, Answer, question_words, show

ANSWERS = [
    Answer(
        71.234,
        "open",
        "Opening files",
        "Open a file and return it.\nRaises OSError if the file cannot be opened.",
    ),
    Answer(-3.0, "odd", "", "a\x1b[31mred\x07 one"),
]


def test_without_a_terminal_it_is_plain_text():
    assert show("how do I open a file?", ANSWERS, width=40, coloured=False) == (
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


def test_on_a_terminal_the_words_of_the_question_are_bold():
    text = show("how do I OPEN a file?", ANSWERS[:1], width=80, coloured=True)
    assert text.splitlines()[1] == f"    {DIM}from open (score 71.23){PLAIN}"
    assert f"{BOLD}Open{PLAIN} a {BOLD}file{PLAIN} and return" in text
    assert f"{BOLD}a{PLAIN}" not in text


def test_long_passages_are_cut_and_stop_words_count_only_where_there_is_nothing_else():
    text = show("x", [Answer(1, "id", "t", "word " * 500)], width=50, coloured=False)
    lines = text.splitlines()
    assert len(lines) == 8 and lines[-1].endswith(" …") and max(map(len, lines)) <= 50
    assert question_words("How do I merge?") == {"merge"}
    assert question_words("to be or not") == {"to", "be", "or", "not"}
    assert show("what", [], width=50, coloured=False) == "no passage was found"
