"""Read MS MARCO, TREC DL, BEIR and Wikipedia through ir_datasets (MacAvaney et al. 2021).

The package fetches the files, checks them against their published checksums and keeps them in
``$IR_DATASETS_HOME`` (default ``~/.ir_datasets``). Only the job that makes the collection uses the
network; a machine without network reads the files, as they were published, from the folder `files`.

MS MARCO's passages have no titles; RocketQA's release adds titles, and papers on dense retrieval
report results with them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import Source, pinned, tables
from cdmae.collections.judged import Parts, Rows
from cdmae.collections.judged import load as load_parts
from cdmae.errors import InputError, missing
from cdmae.fields import EMPTY, settings, suggestion

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

PUBLISHED = "data/published"
MSMARCO = "msmarco-passage"
# Qu et al. 2021; no checksum is published
TITLES = "https://rocketqa.bj.bcebos.com/corpus/marco.tar.gz"
MEMBER = "marco/para.title.txt"  # a file in this archive: passage id, tab, title
# words per passage, for the plan: of MS MARCO, and about those of the other sets
WORDS = {MSMARCO: 56.0}
MOST_WORDS = 100.0
FIELDS = {"queries": ("query_id", "text"), "qrels": ("query_id", "doc_id", "relevance")}


@settings
class Settings(Source):
    """A published collection."""

    dataset: str
    """Id in ir_datasets, such as msmarco-passage, beir/nq or dpr-w100 [4.1]."""
    splits: dict[str, str] = EMPTY
    """For each split, the rest of its id, as in {dev: dev/small}; empty: test."""
    titles: bool = True
    """Include titles [BEIR, RocketQA]."""
    files: str = PUBLISHED
    """Folder of downloaded files."""

    def __post_init__(self) -> None:
        """Refuse an unknown dataset, and a missing folder of files."""
        folder = Path(os.path.expanduser(self.files)).absolute()
        if self.files != PUBLISHED and not folder.is_dir():
            raise InputError(f"files is {self.files}, and {folder} is not a folder")
        known = list(package().registry)
        if self.dataset not in known:
            words = f"dataset is {self.dataset}, which ir_datasets does not know"
            raise InputError(f"{words}; {suggestion(self.dataset, known)}")

    def ids(self) -> dict[str, str]:
        """Return the catalogue's id of every split."""
        if self.splits:
            return {
                split: f"{self.dataset}/{rest}".rstrip("/") for split, rest in self.splits.items()
            }
        for name in (self.dataset, f"{self.dataset}/test"):
            if count(name, "qrels") is not None:
                return {"test": name}
        return {}

    def own_splits(self) -> dict[str, bool]:
        """Return, for each split, whether it has judgments; raise `InputError` for unknown ones."""
        judged = {}
        for split, name in self.ids().items():
            if count(name, "queries") is None:
                below = [other for other in package().registry if other.startswith(self.dataset)]
                known = [other.removeprefix(f"{self.dataset}/") for other in below]
                words = f"splits.{split} is {self.splits[split]}"
                raise InputError(f"{words}; {suggestion(self.splits[split], known)}")
            judged[split] = count(name, "qrels") is not None
        return judged

    def version(self) -> dict[str, str]:
        """Return the version of the package that reads the files."""
        return {"ir_datasets": pinned("ir-datasets")}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Return the catalogue's passages, and judged queries by split, and words per passage."""
        words = WORDS.get(self.dataset, MOST_WORDS)
        queries = {
            split: count(f"{name}/judged", "queries") or count(name, "queries") or 0
            for split, name in self.ids().items()
        }
        return count(self.dataset, "docs") or 0, words, queries

    def read(self) -> Collection:
        """Fetch missing files and read the collection."""
        judged = self.own_splits()
        passages = Rows([self.dataset], self._passages)
        ids = self.ids()
        queries = {split: _rows(name, "queries") for split, name in ids.items()}
        qrels = {split: _rows(name, "qrels") for split, name in ids.items() if judged[split]}
        self._fetch([passages, *queries.values(), *qrels.values()])
        about = {
            "source": "ir_datasets",
            "dataset": self.dataset,
            "titles": self.titles,
            **self.version(),
        }
        return load_parts(Parts(passages, queries, qrels), about)

    def _fetch(self, parts: list[Rows]) -> None:
        """Fetch every part by reading its first row; raise `InputError` for missing files.

        Files in the folder `files` are linked to where ir_datasets expects them.
        """
        from filelock import FileLock

        home = package().util.home_path()
        titles = home / MSMARCO / "marco.tar.gz"
        # collections that are made at the same time share files
        with FileLock(home / f".{self.dataset.partition('/')[0]}.lock"):
            for path in Path(os.path.expanduser(self.files)).resolve().rglob("*"):
                if path.is_file():
                    own = home / "downloads" / _md5(path)
                    _link(path, titles if path.name == titles.name else own)
            try:
                for part in parts:
                    next(part.rows(), None)
            except Exception as error:  # of requests, ir_datasets, or the operating system
                raise InputError(
                    f"files of {self.dataset} are missing ({error}); put them as published into "
                    f"{self.files}"
                ) from None

    def _passages(self, names: list[str]) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yield the (id, title, text) of every passage."""
        titles = self._published_titles() if self.titles and self.dataset == MSMARCO else {}
        for number, passage in enumerate(package().load(names[0]).docs_iter(), start=1):
            title = getattr(passage, "title", titles.get(passage.doc_id, ""))
            yield number, (passage.doc_id, title if self.titles else "", passage.text)

    def _published_titles(self) -> dict[str, str]:
        """Return the titles of MS MARCO's passages in RocketQA's release, by passage id."""
        util = package().util
        path = util.home_path() / MSMARCO / "marco.tar.gz"
        archive = util.Download([util.RequestsDownload(TITLES)], cache_path=path)
        member = util.Cache(util.TarExtract(archive, MEMBER), path.with_name("para.title.txt"))
        rows = (line.partition("\t") for _, line in tables.lines(Path(member.path())))
        return {passage: title.strip() for passage, _, title in rows}


def package() -> Any:
    """Import ir_datasets on first use, with this project's options in its environment variables."""
    # ir_datasets resumes an interrupted download from the count of its progress bar
    os.environ.pop("TQDM_DISABLE", None)
    os.environ.setdefault("TQDM_MININTERVAL", "10")  # seconds
    # makes ir_datasets look in downloads/ for small files, too
    os.environ.setdefault("IR_DATASETS_SMALL_FILE_SIZE", "0")
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise missing(error) from None
    return ir_datasets


def count(name: str, part: str) -> int | None:
    """Return a dataset's number of docs, queries or qrels; None if the catalogue has none."""
    if name not in list(package().registry):
        return None
    return package().load(name).metadata().get(part, {}).get("count")


def _rows(name: str, part: str) -> Rows:
    """Return the queries or the qrels of a dataset."""

    def read(names: list[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        entries = getattr(package().load(names[0]), f"{part}_iter")()
        return enumerate(map(attrgetter(*FIELDS[part]), entries), start=1)

    return Rows([name], read)


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _link(file: Path, path: Path) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # a dangling link
        path.symlink_to(file)
