"""Fetch or find files with ir_datasets and read their rows; errors name the path for each file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import tables
from cdmae.collections.judged import Rows
from cdmae.collections.sources.ir_datasets import catalogue
from cdmae.errors import InputError

MSMARCO = "msmarco-passage"
# Qu et al. 2021; no checksum is published
TITLES = "https://rocketqa.bj.bcebos.com/corpus/marco.tar.gz"
MEMBER = "marco/para.title.txt"  # a file in this archive: passage id, tab, title

if TYPE_CHECKING:
    from filelock import FileLock


def package() -> Any:
    """Import ir_datasets on first use, with this project's options in its environment variables."""
    # ir_datasets resumes an interrupted download from the count of its progress bar
    os.environ.pop("TQDM_DISABLE", None)
    os.environ.setdefault("TQDM_MININTERVAL", "10")  # seconds
    # makes ir_datasets look in downloads/ for small files, too
    os.environ.setdefault("IR_DATASETS_SMALL_FILE_SIZE", "0")
    import ir_datasets

    return ir_datasets


def paths(dataset: str) -> dict[str, Path]:
    """Return the paths at which ir_datasets expects the files of a dataset's family, by address."""
    home = package().util.home_path()
    files = catalogue.files(dataset.split("/")[0]).values()
    return {file.url: home / "downloads" / file.checksum for file in files} | {
        TITLES: home / MSMARCO / "marco.tar.gz"
    }


def offer(folder: str, dataset: str) -> None:
    """Link the published files in `folder` to the paths of ir_datasets."""
    names = {file.url: file.path for file in catalogue.files(dataset.split("/")[0]).values()}
    offered = Path(os.path.expanduser(folder)).resolve()
    for address, expected in paths(dataset).items():
        path = offered / names.get(address, expected.name)
        if not path.exists() or expected.exists():
            continue
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.unlink(missing_ok=True)  # a dangling link
        expected.symlink_to(path)


def alone(dataset: str) -> FileLock:
    """Return a lock against parallel fetching of the same files.

    The forums of CQADupStack share an archive, and variants of a dataset share all files.
    """
    from filelock import FileLock

    return FileLock(package().util.home_path() / f".{'-'.join(dataset.split('/')[:2])}.lock")


def fetch(parts: Iterable[Rows]) -> None:
    """Fetch every part by reading its first row.

    Raises one `InputError` for all missing files.
    """
    missing: dict[str, Path] = {}
    for part in parts:
        try:
            with alone(part.path):
                next(part.rows(), None)
        except InputError:
            raise
        except Exception as error:  # of requests, of ir_datasets, or of the operating system
            address = _address(error)
            expected = paths(part.path).get(address)
            if expected is None:
                raise InputError(f"{part.path} cannot be read: {error}") from error
            expected.parent.mkdir(parents=True, exist_ok=True)
            missing[address] = expected
    if missing:
        remedies = []
        for address, expected in missing.items():
            note = " (the file there has another checksum)" if expected.exists() else ""
            remedies.append(f"put {address} at {expected}{note}")
        raise InputError(f"files are missing and cannot be fetched: {'; '.join(remedies)}")


def _address(error: BaseException) -> str | None:
    """Return the address that could not be fetched; of several mirrors, the first."""
    if getattr(error, "request", None) is not None:
        return error.request.url
    tried = next((argument for argument in error.args if isinstance(argument, list)), [])
    return next((mirror.url for mirror, _ in tried if hasattr(mirror, "url")), None)


def rows_of(dataset: str, read: Callable[[str], Iterator[tuple[Any, ...]]]) -> Rows:
    """Return the rows of a dataset, read by a function of its id."""
    return Rows([dataset], lambda _: enumerate(read(dataset), start=1))


def passages(dataset: str, titles: bool | list[str] = True) -> Iterator[tuple[str, str, str]]:
    """Yield the (id, title, text) of every passage.

    titles: False for empty titles, True for the dataset's titles, or a list of titles by id.
    """
    for passage in package().load(dataset).docs_iter():
        if isinstance(titles, list):
            title = titles[int(passage.doc_id)]
        else:
            title = getattr(passage, "title", "") if titles else ""
        yield passage.doc_id, title, passage.text


def titles(dataset: str, file: str) -> Iterator[tuple[int, str]]:
    """Yield the passage id and title of MS MARCO's passages, from a file or RocketQA's release."""
    count = catalogue.counts(dataset, "docs")
    path = Path(os.path.expanduser(file)) if file else _published_titles(dataset)
    for number, line in tables.lines(path):
        passage, tab, title = line.partition("\t")
        if not tab or not passage.isdecimal() or int(passage) >= count:
            words = f"{line[:40]!r}; expected passage id (0 to {count - 1}), tab, title"
            raise tables.fault(path, number, words)
        yield int(passage), title.strip()


def _published_titles(dataset: str) -> Path:
    """Return the file of titles in RocketQA's release, which is downloaded if it is missing."""
    util = package().util
    path = paths(dataset)[TITLES]
    archive = util.Download([util.RequestsDownload(TITLES)], cache_path=path)
    member = util.TarExtract(archive, MEMBER)
    return Path(util.Cache(member, path.with_name("para.title.txt")).path())


def queries(dataset: str) -> Iterator[tuple[str, str]]:
    """Yield the (id, text) of every query."""
    for query in package().load(dataset).queries_iter():
        yield query.query_id, query.text


def qrels(dataset: str) -> Iterator[tuple[str, str, int]]:
    """Yield the (query_id, passage_id, grade) of every judgment."""
    for judgment in package().load(dataset).qrels_iter():
        yield judgment.query_id, judgment.doc_id, judgment.relevance
