"""Divide documents into passages; a table of real questions about them is a split with judgments.

Markdown (``.md``), reStructuredText (``.rst``) and HTML are parsed (`cdmae.collections.documents`).
Paragraphs are joined up to a number of words (`cdmae.languages.scripts`); a longer paragraph is
cut, a row of a table never is.
An empty line separates paragraphs in a passage, code is indented, and a dash precedes items of
lists and rows of tables.

The id of a passage is the path of its file and its number in the file, ``guide/install.md#3``. Its
title is the name of the file and the heading above it, ``install: On a cluster``; a name that
several files have is preceded by the folders, ``guide index: On a cluster``. A table instead of a
folder has one passage per row, with its columns for title, text and id or url.

A folder without documents is read as tables, such as pyserini's (``id``, ``contents``). Hidden
files and folders, and links that lead outside the folder, are not read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le

from cdmae.collections import Source, documents, judged, questions, tables
from cdmae.collections.documents import CODE, DASH, HEADING, ITEM, ROW, TEXT, Block
from cdmae.collections.folders import check_folder, files_below, table_at
from cdmae.collections.questions import Passage
from cdmae.errors import InputError
from cdmae.fields import EMPTY, HomePath, Whole, settings
from cdmae.languages import scripts
from cdmae.log import say

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

BYTES = 6  # the estimated bytes per word
SUFFIXES = (".txt", ".md", ".markdown", ".rst", ".html", ".htm")
# columns of a table of documents
_TITLE = ("title", "heading", "question", "query")
_TEXT = (*tables.TEXT, "answer", "positive")


@settings
class Settings(Source):
    """Documents, or passages without queries."""

    path: str
    """Folder with documents in UTF-8, or tables of passages."""
    suffixes: tuple[str, ...] = SUFFIXES
    """Suffixes of files to read."""
    words: Annotated[Whole, Ge(10), Le(10_000)] = 100
    """Longest passage (words) [DPR]."""
    code: bool = True
    """Keep code in passages."""
    questions: dict[str, HomePath] = EMPTY
    """Tables of [real questions](../docs/own.md#documents) by split, as in {test: questions.csv}.
    """

    def own_splits(self) -> dict[str, bool]:
        """Return the splits of the questions; all are judged."""
        return dict.fromkeys(self.questions, True)

    def depends(self) -> list[Path]:
        """List the documents, sorted by path, and the tables of questions."""
        asked = [table_at(path, f"questions.{split}") for split, path in self.questions.items()]
        return [*self.documents(), *asked]

    def documents(self) -> list[Path]:
        """List the documents, or without any the tables, sorted by path.

        Raises `InputError` for a folder without any.
        """
        path = Path(self.path).expanduser()
        if path.is_file() and tables.suffix_of(path):
            return [path]
        folder = check_folder(self.path)
        top = folder.resolve()
        files = files_below(folder)
        inside = [path for path in files if path.is_file() and path.resolve().is_relative_to(top)]
        suffixes = {suffix.lower() for suffix in self.suffixes}
        found = [path for path in inside if path.suffix.lower() in suffixes]
        found = found or [path for path in inside if tables.suffix_of(path)]
        for path in found:
            try:
                str(path).encode()
            except UnicodeEncodeError:
                words = f"holds {ascii(path.name)}, a name that is not UTF-8; rename the file"
                raise InputError(f"path is {self.path}, which {words}") from None
        if not found:
            raise InputError(
                f"path is {self.path}, and {folder.absolute()} holds no file that ends in "
                f"{', '.join(self.suffixes)}; see `suffixes` (hidden files, and links that lead "
                "outside, are not read)"
            )
        return found

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the number of passages from the files' sizes; the questions are counted."""
        queries = {
            split: len({row.text(*questions.pair_rows.QUERY) for row in tables.rows(Path(path))})
            for split, path in self.questions.items()
        }
        words = sum(file.stat().st_size for file in self.documents()) // BYTES
        return max(1, words // self.words), self.words, queries

    def read(self) -> Collection:
        """Read the documents and the questions."""
        import pandas as pd

        from cdmae.collections.store import table_of

        found = list(self._passages())
        if not found:
            raise InputError(f"{self.path} holds no passages: no document has any text")
        rows = []
        for split, path in self.questions.items():
            rows += questions.read(Path(path), split, found)
        table = table_of((each.name, each.title, each.text) for each in found)
        files = self.documents()
        texts = [file for file in files if not tables.suffix_of(file)]
        empty = len(texts) - len({passage.file for passage in found if passage.file})
        if empty:
            say(f"{self.path}: {empty} of {len(texts)} documents have no text")
        about = {"source": "text", "files": len(files)}
        frame = pd.DataFrame(rows, columns=judged.JUDGED)
        return judged.collected(table, frame, self.own_splits(), about)

    def _passages(self) -> Iterator[Passage]:
        folder = Path(os.path.expanduser(self.path))
        names: set[str] = set()
        files = self.documents()
        stems = Counter(file.stem for file in files)
        for file in files:
            if tables.suffix_of(file):
                yield from self._rows(file, names)
                continue
            is_unique = stems[file.stem] == 1  # unlike index.md, one per folder
            place = file.stem if is_unique else str(file.relative_to(folder).with_suffix(""))
            stem = re.sub(r"[\W_]+", " ", place).strip()
            suffix = file.suffix.lower()
            encoding = documents.encoding(file) if suffix in documents.HTML else "utf-8-sig"
            with tables.opened(file, encoding) as opened:
                text = opened.read().replace("\r\n", "\n")
            path = file.relative_to(folder).as_posix()
            read = documents.blocks(text, suffix)
            kept = (block for block in read if self.code or block.kind != CODE)
            for number, (headings, passage) in enumerate(passages(kept, self.words), start=1):
                title = f"{stem}: {': '.join(headings)}" if headings else stem
                yield Passage(f"{path}#{number}", title, passage, path, headings)

    def _rows(self, table: Path, names: set[str]) -> Iterator[Passage]:
        """Yield the passages of a table; rows without an id or url are numbered.

        names: the ids so far.
        """
        for row in tables.rows(table):
            own, title, text = row.passage(_TITLE, _TEXT)
            name = own or f"{table.name}#{row.number}"
            if name in names:
                raise row.fault(f"the id {name} already belongs to another passage")
            names.add(name)
            yield Passage(name, title, text, "", (title,) if title else ())


def passages(blocks: Iterator[Block], words: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield passages of at most `words` words, each with the headings above it.

    Blocks below a heading are joined, and longer blocks are cut. A heading begins a new passage and
    is not part of it. A longer row of a table is a passage of its own.
    """
    for headings, section in _sections(blocks):
        passage: list[str] = []
        length = 0
        for block in section:
            for piece in _pieces(block, words):
                own = len(scripts.words(piece))
                if passage and length + own > words:
                    yield headings, "\n\n".join(passage)
                    passage = []
                    length = 0
                passage.append(f"{DASH}{piece}" if block.kind in (ITEM, ROW) else piece)
                length += own
        if passage:
            yield headings, "\n\n".join(passage)


def _sections(blocks: Iterator[Block]) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
    """Yield the headings above each group of blocks, and the blocks.

    A heading without blocks is joined to the next heading. If none follows, it becomes text.
    """
    headings: list[str] = []
    section: list[Block] = []
    for block in blocks:
        if block.kind != HEADING:
            section.append(block)
            continue
        if section:
            yield tuple(headings), section
            headings = []
            section = []
        headings.append(block.text)
    if section:
        yield tuple(headings), section
    elif headings:
        yield (), [Block(TEXT, " ".join(headings))]


def _pieces(block: Block, words: int) -> Iterator[str]:
    """Cut a block into pieces of at most `words` words: code between lines, a row never."""
    spans = scripts.word_spans(block.text)
    if block.kind == ROW or len(spans) <= words:
        yield block.text
    elif block.kind == CODE:
        lines: list[str] = []
        for line in block.text.splitlines():
            if lines and len(scripts.words(" ".join([*lines, line]))) > words:
                yield "\n".join(lines)
                lines = []
            lines.append(line)
        yield "\n".join(lines)
    else:
        for first in range(0, len(spans), words):
            last = min(first + words, len(spans)) - 1
            yield block.text[spans[first][0] : spans[last][1]]
