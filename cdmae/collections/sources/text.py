"""Divide a folder of text files into passages, without queries and judgments.

Paragraphs, separated by empty lines, are joined up to a number of words; a longer paragraph is cut.

The id of a passage is the path of its file and its number in the file, ``guide/install.md#3``. Its
title is the name of the file and the heading above it, ``install: On a cluster``. Headings are
lines underlined with one of ``=-~^``, and in ``.md`` files Markdown's (``## On a cluster``).

Hidden files and folders, and links that lead outside the folder, are not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le

from cdmae.collections import Source, judged
from cdmae.collections.text_files import check_folder
from cdmae.errors import InputError
from cdmae.fields import Whole, settings
from cdmae.log import say

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

BYTES = 6  # the estimated bytes per word
LEVELS = 6  # the number of Markdown's heading levels
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HASHED = re.compile(r" {0,3}#{1,6}[ \t]+(.*?\S)[ \t#]*$")


@settings
class Settings(Source):
    """Settings of a collection in a folder of text files."""

    path: str
    """Folder with text files in UTF-8; a relative path begins at the working directory."""
    suffixes: tuple[str, ...] = (".txt", ".md", ".rst")
    """Suffixes of the files that are read, in upper or lower case."""
    words: Annotated[Whole, Ge(10), Le(10_000)] = 100
    """Maximum length of a passage (words) [DPR: 100]."""

    def folders(self) -> list[Path]:
        """Return the folder; results stored in it would be read as passages by the next run."""
        return [check_folder(self.path)]

    def depends(self) -> list[Path]:
        """List the files to read, sorted by path; raise `InputError` without files."""
        folder = check_folder(self.path)
        files, _ = self._found()
        for file in files:
            # Python decodes bytes that are not UTF-8 to lone surrogates
            if any("\ud800" <= letter <= "\udfff" for letter in str(file)):
                raise InputError(f"{ascii(str(file))} has a name that is not UTF-8; rename it")
        if not files:
            raise InputError(
                f"path is {self.path}, and {folder.absolute()} holds no file that ends in "
                f"{', '.join(self.suffixes)}; see `suffixes` (hidden files, and links that lead "
                "outside, are not read)"
            )
        return files

    def _found(self) -> tuple[list[Path], int]:
        """List the files sorted by path, and count the links that lead outside the folder."""
        folder = check_folder(self.path)
        top = folder.resolve()
        suffixes = {suffix.lower() for suffix in self.suffixes}
        files = []
        outside = 0
        for parent, folders, names in os.walk(folder, onerror=_refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = [Path(parent, name) for name in names if not name.startswith(".")]
            texts = [path for path in paths if path.suffix.lower() in suffixes and path.is_file()]
            links = [Path(parent, name) for name in folders if Path(parent, name).is_symlink()]
            for path in (*texts, *links):
                if not path.resolve().is_relative_to(top):
                    outside += 1
                elif path.is_file():
                    files.append(path)
        return sorted(files), outside

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the number of passages from the files' sizes; there are no queries."""
        words = sum(file.stat().st_size for file in self.depends()) // BYTES
        return max(1, words // self.words), self.words, {}

    def load(self, threads: int = 1) -> Collection:
        """Read the collection; `threads` is not used because nothing is computed."""
        about = {"source": "text", "files": len(self.depends())}
        _, outside = self._found()
        if outside:
            say(f"{self.path} contains links that lead out of it, which are not read: {outside:,}")
            about["links that lead outside, not read"] = outside
        return judged.load(judged.Parts(self, {}, {}), about)

    def rows(self) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yield the number of each passage, from 1, and its id, title and text."""
        folder = Path(os.path.expanduser(self.path))
        number = 0
        for file in self.depends():
            title = re.sub(r"[\W_]+", " ", file.stem).strip()
            try:
                text = file.read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(
                    f"{file} cannot be read ({error}); allowed: text in UTF-8"
                ) from None
            name = file.relative_to(folder).as_posix()
            found = passages(text, self.words, markdown=file.suffix.lower() == ".md")
            for index, (heading, passage) in enumerate(found, start=1):
                number += 1
                full_title = f"{title}: {heading}" if heading else title
                yield number, (f"{name}#{index}", full_title, passage)


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}") from None


def passages(text: str, words: int, *, markdown: bool = False) -> Iterator[tuple[str, str]]:
    """Yield passages of at most `words` words, each with its heading.

    Paragraphs under a heading are joined, and longer paragraphs are cut. A heading begins a new
    passage and is not part of it.
    """
    for heading, paragraphs in _sections(text, markdown):
        passage: list[str] = []
        for paragraph in paragraphs:
            if passage and len(passage) + len(paragraph) > words:
                yield heading, " ".join(passage)
                passage = []
            passage += paragraph
            while len(passage) > words:
                yield heading, " ".join(passage[:words])
                passage = passage[words:]
        if passage:
            yield heading, " ".join(passage)


def _sections(text: str, markdown: bool) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each heading, with the list of words of each of its paragraphs.

    A heading without paragraphs is joined to the next heading. If none follows, or if the joined
    headings exceed Markdown's number of levels, it becomes text: no heading is lost.
    """
    headings: list[str] = []
    paragraphs: list[list[str]] = [[]]
    above = ""
    fenced = False
    is_underline = False

    def section() -> tuple[str, list[list[str]]]:
        if any(paragraphs):
            return ": ".join(headings), paragraphs
        return "", [" ".join(headings).split()]

    for line, below in pairwise([*text.splitlines(), ""]):
        if markdown and _FENCE.match(line):
            fenced = not fenced
        heading = "" if fenced or is_underline else _heading(above, line, below, markdown)
        if heading:
            if any(paragraphs) or len(headings) == LEVELS:
                yield section()
                headings = []
                paragraphs = [[]]
            headings.append(" ".join(heading.split()))
        elif not is_underline:
            if not line.strip():
                paragraphs.append([])
            paragraphs[-1].extend(line.split())
        is_underline = bool(heading) and not (markdown and _HASHED.match(line))
        above = line
    yield section()


def _heading(above: str, line: str, below: str, markdown: bool) -> str:
    """Return the heading on a line, given the lines above and below, or an empty string."""
    hashed = _HASHED.match(line)
    if markdown and hashed:
        return hashed[1]
    rule = below.rstrip()
    marks = "=-" if markdown else "=-~^"
    is_underlined = len(rule) >= 3 and rule[0] in marks and rule == rule[0] * len(rule)
    is_overlined = not markdown and above.rstrip() == rule  # reStructuredText allows both
    is_first = not above.strip() or is_overlined
    is_heading = is_underlined and is_first and re.match(r"\S.*\w|\w", line)
    return line.strip() if is_heading else ""
