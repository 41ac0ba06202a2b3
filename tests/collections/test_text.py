"""A folder of text files: what is read of it, and what is not."""

import os
from pathlib import Path

import pytest

from cdmae.collections.sources import pseudo, text
from cdmae.config.load import load
from cdmae.errors import InputError


def files(folder: Path, **names: str) -> None:
    for name, content in names.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def read(folder: Path) -> dict[str, str]:
    table = text.Settings(path=str(folder)).load().passages.read_all()
    return dict(zip(table["passage_id"].to_pylist(), table["text"].to_pylist(), strict=True))


def test_hidden_files_and_links_that_lead_outside_are_not_read(tmp_path, capsys):
    """Links within the folder are, and nothing else is counted: links to nowhere, to folders
    inside, of other files.
    """
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
        f"{docs} holds links that lead outside of it, which are not read: 3"
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


def test_a_folder_without_a_file_to_read_is_refused(tmp_path):
    files(tmp_path, **{".hidden_txt": "x"})
    with pytest.raises(
        InputError, match=r"holds no file that ends in .*hidden files, and links that lead out"
    ):
        read(tmp_path)


@pytest.mark.parametrize("source", ["text", "pseudo"])
@pytest.mark.parametrize(
    ("path", "results", "where"),
    [
        ("docs", "docs/results", "in which the results are written"),
        ("docs", "docs", "in which the results are written"),
        ("docs", "link/results", "in which the results are written"),
        ("docs/inner", "docs", "which is inside the results"),
        ("docs", "elsewhere", ""),
    ],
)
def test_a_folder_that_holds_the_results_is_refused(tmp_path, source, path, results, where):
    """What is written there would be passages of the next run, which would never find its
    collection finished.
    """
    sentences = "One two three four. Five six seven eight nine ten."
    files(tmp_path, docs__a_txt=sentences, docs__inner__b_txt=sentences)
    (tmp_path / "link").symlink_to("docs")
    entry = {"source": "text", "path": str(tmp_path / path)}
    if source == "pseudo":
        entry = {"source": "pseudo", "of": entry}
    values = {"results": str(tmp_path / results), "collections": {"mine": entry}}
    if not where:
        assert load(values).collections["mine"].settings.folders() == [tmp_path / path]
        return
    with pytest.raises(
        InputError,
        match=rf"^collections\.mine reads all of .*, {where} .*; allowed: a folder apart",
    ):
        load(values)


def test_pseudo_queries_leave_out_hidden_files_too(tmp_path):
    files(tmp_path, a_txt="one", **{".git__b_txt": "two"})
    of = {"source": "text", "path": str(tmp_path)}
    assert pseudo.Settings(of=of).depends() == [tmp_path / "a.txt"]
