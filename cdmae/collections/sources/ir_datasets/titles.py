"""The titles of MS MARCO's passages: RocketQA's release, or a file of one's own."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

from cdmae.collections.judged import File
from cdmae.collections.sources.ir_datasets.catalogue import counts
from cdmae.collections.sources.ir_datasets.fetching import MSMARCO, TITLES, package, passages, places

MEMBER = "marco/para.title.txt"  # passage id, title, separated by a tab


class Titles:
    """MS MARCO's titles, by the number that is a passage's id; together about half a gigabyte."""

    def __init__(self, file: str) -> None:
        """Take the file, or none for RocketQA's."""
        self.dataset, self.path, self._file = MSMARCO, f"{MSMARCO} (titles)", file
        self._places = array("q", [-1]) * (counts(MSMARCO, "docs") or 0)
        self._text = bytearray()

    def rows(self) -> Iterator[tuple[int, tuple[int, str]]]:
        """Yield the lines of the file of titles: number from 1, then passage id and title."""
        path = Path(self._file).expanduser() if self._file else self._released()
        return File(path, self._parse).rows()

    def joined(self, dataset: str) -> Iterator[tuple[str, str, str]]:
        """Yield the passages with their titles; one that has none keeps an empty one."""
        if not self._text:
            for _, (passage, title) in self.rows():
                self._places[passage] = len(self._text)
                self._text += title.encode() + b"\n"
        for passage_id, _, text in passages(dataset):
            start = self._places[int(passage_id)]
            title = "" if start < 0 else self._text[start : self._text.index(b"\n", start)].decode()
            yield passage_id, title, text

    def _parse(self, number: int, line: str) -> tuple[int, str]:
        passage, tab, title = line.partition("\t")
        if not tab or not passage.isdecimal() or int(passage) >= len(self._places):
            raise ValueError(f"{line[:40]!r}; allowed: passage id (0 to {len(self._places) - 1}), tab, title")
        return int(passage), title.strip()

    def _released(self) -> Path:
        """Return the file of RocketQA's titles, fetched and unpacked once."""
        util = package().util
        place = places(MSMARCO)[TITLES]
        archive = util.Download([util.RequestsDownload(TITLES)], cache_path=place)
        return util.Cache(util.TarExtract(archive, MEMBER), place.with_name("para.title.txt")).path()
