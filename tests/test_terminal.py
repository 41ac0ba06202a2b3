"""Terminals and logs receive no control characters and no endless lines."""

import subprocess
import sys

import pytest

from cdmae.errors import said
from cdmae.importance import shading
from cdmae.importance.shading import Word
from cdmae.log import say
from cdmae.retrieval.answers import Answer, show
from cdmae.terminal import LONGEST, printable

CLEAR = "\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, caf\u00e9, \U0001f600", "plain, caf\u00e9, \U0001f600"),
        (CLEAR, r"\x1b]0;owned\x07\x1b[2J"),
        ("a\rb\x9b2J\u202ec\x00\udcff", r"a\rb\x9b2J\u202ec\x00\udcff"),
    ],
)
def test_control_characters_are_shown_as_escapes(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize("letter", ["x", "\x1b", "\U000e0041"])
def test_a_long_line_loses_its_middle(letter):
    shown = printable("begin" + letter * 10**7 + "end")
    assert shown.startswith("begin")
    assert shown.endswith("end")
    assert "characters left out" in shown
    assert len(shown) < LONGEST + 50


def test_every_line_that_is_printed_is_printable(capsys):
    assert said(f"one{CLEAR}\ntwo") == "cdmae: one\\x1b]0;owned\\x07\\x1b[2J\ncdmae: two"
    say(CLEAR)
    assert capsys.readouterr().err.strip().isprintable()


def test_answers_and_shaded_words_hold_no_control_characters():
    long = "x" * 10**6
    lines = show(
        "x",
        [Answer(1.0, CLEAR, CLEAR, CLEAR), Answer(1.0, long, long, long)],
        width=80,
        coloured=False,
    )
    assert all(line.isprintable() and len(line) < 1000 for line in lines.split("\n"))
    assert (
        shading.as_numbers([Word(CLEAR, 1.0)]).splitlines()[1] == "\\x1b]0;owned\\x07\\x1b[2J\t1.00"
    )
    assert CLEAR not in shading.for_terminal([Word(CLEAR, 1.0), Word(CLEAR, 0.0)])


def test_a_terminal_of_ascii_only_gets_question_marks():
    code = "from cdmae.cli import ending; ending(lambda: print('caf\\u00e9'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("caf?\n", "")
