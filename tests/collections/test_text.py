"""A folder of text files: the files that are read, and the passages that are cut from them."""

import os
from pathlib import Path

import pytest

from cdmae.collections import Counts
from cdmae.collections.sources import pseudo, text
from cdmae.collections.store import read_passages, write_collection
from cdmae.config.load import load
from cdmae.errors import InputError

LONG = " ".join(f"word{number}" for number in range(40))


def files(folder: Path, **names: str) -> None:
    for name, content in names.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def read(folder: Path) -> dict[str, str]:
    table = text.Settings(path=str(folder)).load().passages.read_all()
    return dict(zip(table["passage_id"].to_pylist(), table["text"].to_pylist(), strict=True))


def test_files_are_cut_at_paragraphs(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "how_to-install.md").write_text(
        f"One two\nthree.\n\nFour five.\n\n{LONG}\n", encoding="utf-8"
    )
    (tmp_path / "a.txt").write_text("Plain words.\n")
    (tmp_path / "left.out").write_text("Not this.")
    entry = text.Settings(path=str(tmp_path), words=30)
    write_collection(tmp_path / "out", entry.load())
    rows = [tuple(row.values()) for row in read_passages(tmp_path / "out").to_pylist()]
    words = LONG.split()
    assert rows == [
        ("a.txt#1", "a", "Plain words."),
        ("guide/how_to-install.md#1", "how to install", "One two three. Four five."),
        ("guide/how_to-install.md#2", "how to install", " ".join(words[:30])),
        ("guide/how_to-install.md#3", "how to install", " ".join(words[30:])),
    ]
    assert entry.judged() == {} and entry.check() == Counts(4)
    assert entry.expected()[0] >= 1


def test_headings_are_titles_but_not_in_code():
    code = "```\n\n# a comment\n# more\n```"
    markdown = f"Say ```x```.\n# A  guide #\n\n## Use\nOne two.\n\n{code}\n## Empty\n\n### End\n\nLast.\n~~~\n# no\n~~~"
    assert list(text.passages(markdown, 30, markdown=True)) == [
        ("", "Say ```x```."), ("A guide: Use", "One two. ``` # a comment # more ```"),
        ("Empty: End", "Last. ~~~ # no ~~~"),
    ]  # fmt: skip
    underlined = "=====\nThe A\n=====\n\nBy pip.\n\nB\n---\nNone.\n\n- one\n- two\n\na\n--\n#none\n\n    # build\n\nx\n~~~\ny"
    assert list(text.passages(underlined, 30)) == [
        ("", "====="), ("The A", "By pip."), ("B", "None. - one - two a -- #none # build"), ("x", "y"),
    ]  # fmt: skip
    assert list(text.passages("---\ntitle: x\n---\n\nx\n~~~\ny\n~~~", 30, markdown=True)) == [
        ("", "--- title: x --- x ~~~ y ~~~")
    ]
    long = "# H\n\n" + "w " * 25
    assert list(text.passages(long, 10, markdown=True)) == [
        ("H", " ".join("w" * n)) for n in (10, 10, 5)
    ]


def test_headings_without_text_are_not_lost():
    assert list(text.passages("# Alone", 30, markdown=True)) == [("", "Alone")]
    letters = "abcdefgh"
    only = "\n".join(f"# {letter}" for letter in letters)
    assert " ".join(words for _, words in text.passages(only, 30, markdown=True)).split() == list(
        letters
    )
    assert list(text.passages("", 30)) == []


def test_hidden_files_and_links_that_lead_outside_are_not_read(tmp_path, capsys):
    """Links to files inside the folder are read; only links that lead outside are counted."""
    docs = tmp_path / "docs"
    files(docs, a_txt="one", inner__b_txt="two")
    for hidden in (".git/description.txt", ".venv/lib/LICENSE.txt", ".c.txt"):
        (docs / hidden).parent.mkdir(parents=True, exist_ok=True)
        (docs / hidden).write_text("hidden")
    files(tmp_path, secret_txt="the secret is 42", outside__d_txt="outside")
    (docs / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "up").symlink_to("..")
    (docs / "other").symlink_to(tmp_path / "outside")
    (docs / "same.txt").symlink_to("a.txt")
    (docs / "inner/again").symlink_to(docs)
    (docs / "broken.txt").symlink_to("nowhere")
    (docs / "loop.txt").symlink_to("loop.txt")
    (docs / "secret.pdf").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(docs / "pipe.txt")
    expected = {"a.txt#1": "one", "inner/b.txt#1": "two", "same.txt#1": "one"}
    assert read(docs) == expected
    assert (
        f"{docs} contains links that lead out of it, which are not read: 3"
        in capsys.readouterr().err
    )
    (tmp_path / "link").symlink_to(docs)
    assert read(tmp_path / "link") == expected
    about = text.Settings(path=str(docs)).load().about
    assert about["links that lead outside, not read"] == 3
    assert (
        "links that lead outside, not read"
        not in text.Settings(path=str(tmp_path / "outside")).load().about
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"x", "holds no file that ends in .txt, .md, .rst"),
        (".hidden.txt", b"x", "hidden files, and links that lead outside, are not read"),
        ("a.txt", b"\xff", "a.txt cannot be read"),
    ],
)
def test_a_folder_without_readable_text_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        text.Settings(path=str(tmp_path)).check()


def test_suffixes_match_in_any_case(tmp_path):
    for name in ("README.MD", "notes.Txt", "page.html"):
        (tmp_path / name).write_text("Some words.")
    assert [path.name for path in text.Settings(path=str(tmp_path)).depends()] == [
        "README.MD",
        "notes.Txt",
    ]
    assert text.Settings(path=str(tmp_path), suffixes=(".HTML",)).depends() == [
        tmp_path / "page.html"
    ]


@pytest.mark.parametrize("source", ["text", "pseudo"])
@pytest.mark.parametrize(
    ("path", "results", "refused"),
    [
        ("docs", "docs/results", True),
        ("docs", "docs", True),
        ("docs", "link/results", True),
        ("docs/inner", "docs", True),
        ("docs", "elsewhere", False),
    ],
)
def test_a_folder_that_holds_the_results_is_refused(tmp_path, source, path, results, refused):
    """Files of the results would be passages of the next run, and the collection would never be
    complete.
    """
    sentences = "One two three four. Five six seven eight nine ten."
    files(tmp_path, docs__a_txt=sentences, docs__inner__b_txt=sentences)
    (tmp_path / "link").symlink_to("docs")
    entry = {"source": "text", "path": str(tmp_path / path)}
    if source == "pseudo":
        entry = {"source": "pseudo", "of": entry}
    values = {"results": str(tmp_path / results), "collections": {"mine": entry}}
    if not refused:
        assert load(values).collections["mine"].settings.folders() == [tmp_path / path]
        return
    with pytest.raises(InputError, match=r"^collections\.mine reads all of .*, and results is"):
        load(values)


def test_pseudo_queries_leave_out_hidden_files_too(tmp_path):
    files(tmp_path, a_txt="one", **{".git__b_txt": "two"})
    of = {"source": "text", "path": str(tmp_path)}
    assert pseudo.Settings(of=of).depends() == [tmp_path / "a.txt"]
