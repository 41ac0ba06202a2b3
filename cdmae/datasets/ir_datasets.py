"""Published collections through the ir_datasets package (MacAvaney et al. 2021): MS MARCO, TREC DL, BEIR, Wikipedia.

It knows where the files are, checks them against their published checksums and keeps them, in ``$IR_DATASETS_HOME``
(``~/.ir_datasets`` without). Nothing is asked of the network before the job that makes the collection; a machine
without one takes the files, as they were published, from the folder `files`.

The package's own catalogue says how many passages, queries and judgments there are: a collection with other counts is
refused. MS MARCO's passages have no titles; the title-augmented corpus of RocketQA, which dense retrievers are compared
on, is the same passages with the titles of RocketQA's release.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.datasets import _judged
from cdmae.datasets._judged import Parts
from cdmae.datasets._text_files import File
from cdmae.errors import InputError
from cdmae.settings import setting, suggestion

if TYPE_CHECKING:
    from cdmae import files

PUBLISHED = "data/published"
MSMARCO = "msmarco-passage"
TITLES = "https://rocketqa.bj.bcebos.com/corpus/marco.tar.gz"  # Qu et al. 2021; no checksum is published
TITLES_MEMBER = "marco/para.title.txt"  # passage id, title, separated by a tab
WORDS = {  # per passage
    "msmarco-passage": 56.0, "dpr-w100": 100.0, "beir/trec-covid": 161.0, "beir/nfcorpus": 232.0, "beir/nq": 79.0,
    "beir/hotpotqa": 46.0, "beir/fiqa": 132.0, "beir/arguana": 167.0, "beir/webis-touche2020": 292.0,
    "beir/cqadupstack": 129.0, "beir/quora": 11.0, "beir/dbpedia-entity": 50.0, "beir/scidocs": 176.0,
    "beir/fever": 85.0, "beir/climate-fever": 85.0, "beir/scifact": 214.0,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The keys of a published collection."""

    dataset: str = setting(
        meaning="id in the catalogue of ir_datasets: msmarco-passage, beir/nq, dpr-w100 (Wikipedia), ...", source="4.1"
    )
    splits: dict[str, str] = setting(
        {}, meaning="split: what follows `dataset` in the id of its queries and judgments, such as `dev: dev/small`; "
        "without, `test` where the dataset has it",
    )  # fmt: skip
    titles: bool = setting(
        True, meaning="whether titles are part of the passages", source="RocketQA for MS MARCO, BEIR: joined"
    )
    title_file: str = setting(
        "", meaning="MS MARCO's titles: passage id, tab, title, one a line; without, RocketQA's release is fetched"
    )
    files: str = setting(
        PUBLISHED, meaning="files as published (collectionandqueries.tar.gz, nq.zip, ...) that lie in this folder "
        "are not fetched",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse what the catalogue does not know, and titles from a file for passages that have them."""
        if "docs" not in catalogue().get(self.dataset, {}):
            known = [each for each, parts in catalogue().items() if "docs" in parts and "_ref" not in parts["docs"]]
            raise InputError(f"dataset is {self.dataset}, which ir_datasets does not know; {_few(self.dataset, known)}")
        if self.title_file and (self.dataset != MSMARCO or not self.titles):
            raise InputError(f"title_file goes with dataset {MSMARCO} and titles: true; allowed: leave it out")

    def ids(self) -> dict[str, str]:
        """The id in the catalogue of every split."""
        if self.splits:
            return {split: f"{self.dataset}/{rest}".rstrip("/") for split, rest in self.splits.items()}
        found = [each for each in (self.dataset, f"{self.dataset}/test") if "qrels" in catalogue().get(each, {})]
        return {"test": found[0]} if found else {}


def splits(settings: Settings) -> dict[str, bool]:
    """Split -> whether it has judgments; raises `InputError` for one that the catalogue does not know."""
    found = {}
    for split, name in settings.ids().items():
        parts = catalogue().get(name, {})
        if "queries" not in parts:
            below = f"{settings.dataset}/"
            known = [each.removeprefix(below) for each in catalogue() if each.startswith(below)]
            raise InputError(f"splits.{split} is {settings.splits[split]}; {_few(settings.splits[split], known)}")
        found[split] = "qrels" in parts
    return found


def triples(settings: Settings) -> dict[str, str]:
    """Published training triples: what follows `dataset` in their id, to the id."""
    below = f"{settings.dataset}/"
    found = (name for name, parts in catalogue().items() if name.startswith(below) and "docpairs" in parts)
    return {name.removeprefix(below): name for name in found}


def triples_file(settings: Settings, name: str) -> Path:
    """The file of published triples, fetched if it is not there; raises `InputError` where it cannot be."""
    _offer(settings)
    rows = _Rows(triples(settings)[name], "triples", lambda each: _package().load(each).docpairs_iter())
    _fetch([rows])
    try:
        return Path(_package().load(rows.dataset).docpairs_path())
    except (AttributeError, NotImplementedError):
        raise InputError(f"{rows.dataset} has no file of triples, being a part of another one's") from None


def depends(settings: Settings) -> list[Path]:
    """The file of titles, if one is given; what ir_datasets keeps has checksums and does not change."""
    return [Path(settings.title_file)] if settings.title_file else []


def version(settings: Settings) -> dict[str, str]:
    """The package that reads the files."""
    return {"ir_datasets": installed("ir_datasets")}


def check(settings: Settings, name: str) -> None:
    """Look for the folder and the file that the settings name; the data is read when the collection is made."""
    if settings.files != PUBLISHED and not Path(settings.files).expanduser().is_dir():
        raise InputError(f"collections.{name}: files is {settings.files}; allowed: a folder")
    if settings.title_file and not Path(settings.title_file).expanduser().is_file():
        raise InputError(f"collections.{name}: title_file is {settings.title_file}; allowed: a file")


def expected(settings: Settings) -> tuple[int, float, dict[str, int]]:
    """Passages, words in one, and judged queries by split, from the catalogue and Thakur et al. 2021, table 1."""
    words = next((each for name, each in WORDS.items() if settings.dataset.startswith(name)), 100.0)
    judged = {
        split: counts(f"{name}/judged", "queries") or counts(name, "queries") or 0
        for split, name in settings.ids().items()
    }
    return counts(settings.dataset, "docs") or 0, words, judged


def load(settings: Settings, seed: int) -> files.Collection:
    """Fetch what is missing and read the collection; `seed` is not used, nothing being drawn."""
    _offer(settings)
    judged = [split for split, has in splits(settings).items() if has]
    passages = _Rows(settings.dataset, "passages", _passages)
    queries = {split: _Rows(name, "queries", _queries) for split, name in settings.ids().items()}
    qrels = {split: _Rows(settings.ids()[split], "judgments", _qrels) for split in judged}
    titles = _Titles(settings) if settings.dataset == MSMARCO and settings.titles else None
    _fetch([*queries.values(), *qrels.values(), passages, *([titles] if titles else [])])
    if titles:
        passages = _Rows(settings.dataset, "passages", titles.joined)
    elif not settings.titles:
        passages = _Rows(settings.dataset, "passages", _untitled)
    about = {"source": "ir_datasets", "dataset": settings.dataset, "titles": settings.titles, **version(settings)}
    collection = _judged.load(Parts(passages, queries, qrels, published=True), about)
    _check_counts(settings, collection.about)
    return collection


# --- the catalogue ---------------------------------------------------------------------------------------------------


@functools.cache
def catalogue() -> dict[str, dict[str, Any]]:
    """What ir_datasets says of its datasets: id -> {docs, queries, qrels} -> {count}; without importing it."""
    return _read_json("metadata.json")


def counts(name: str, part: str) -> int | None:
    """How many docs, queries or qrels a dataset has; None where the catalogue does not say."""
    found = catalogue().get(name, {}).get(part, {})
    found = catalogue().get(found["_ref"], {}).get(part, {}) if "_ref" in found else found
    return found.get("count")


def _read_json(name: str) -> dict[str, Any]:
    found = find_spec("ir_datasets")
    if found is None or not found.submodule_search_locations:
        raise InputError("the package ir_datasets is missing; pip install -r envs/requirements.txt brings it")
    return json.loads(Path(found.submodule_search_locations[0], "etc", name).read_text(encoding="utf-8"))


def _few(name: str, known: list[str]) -> str:
    text = suggestion(name, known)
    return text if text.startswith("did") else f"allowed: {', '.join(known[:12])}{' ...' * (len(known) > 12)}"


def _check_counts(settings: Settings, about: dict[str, Any]) -> None:
    """Refuse a collection that is not the published one."""
    found = {(settings.dataset, "docs"): about["passages"] + about["passages without text, dropped"]}
    for split, name in settings.ids().items():
        counted = about["queries"][split]
        found[name, "queries"] = counted["read"]
        if "judged" in counted:
            found[name, "qrels"] = sum(count for what, count in counted.items() if what.startswith("judgments"))
            found[f"{name}/judged", "queries"] = counted["judged"]
    for (name, part), count in found.items():
        expected = counts(name, part)
        if expected not in (None, count):
            raise InputError(f"{name} has {count:,} {part}; allowed: {expected:,}, as published")


# --- fetching --------------------------------------------------------------------------------------------------------


def _package() -> Any:
    """The package, imported late and with our wishes in its environment."""
    os.environ.pop("TQDM_DISABLE", None)  # its interrupted downloads go on from what the progress bar has counted
    os.environ.setdefault("TQDM_MININTERVAL", "10")  # seconds
    os.environ.setdefault("IR_DATASETS_SMALL_FILE_SIZE", "0")  # it looks in downloads/ for small files, too
    import ir_datasets

    return ir_datasets


def _places(dataset: str) -> dict[str, Path]:
    """Where ir_datasets looks for the published files of a dataset and its relatives: address -> path."""
    home = _package().util.home_path()
    family = _read_json("downloads.json").get(dataset.split("/")[0], {}).values()
    places = {each["url"]: home / "downloads" / each["expected_md5"] for each in family if "expected_md5" in each}
    return {**places, TITLES: home / MSMARCO / "marco.tar.gz"}


def _offer(settings: Settings) -> None:
    """Put links to the files in the folder `files` where ir_datasets looks for them."""
    folder = Path(settings.files).expanduser().resolve()
    for address, place in _places(settings.dataset).items():
        path = folder / address.rpartition("/")[2]
        if path.exists() and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)


@contextmanager
def _alone(dataset: str) -> Iterator[None]:
    """Keep other processes from fetching the same: the forums of CQADupStack share an archive, variants everything."""
    path = _package().util.home_path() / f".{'-'.join(dataset.split('/')[:2])}.lock"
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released with the file
        yield


def _fetch(parts: list[_Rows | _Titles]) -> None:
    """Read the first row of everything, which fetches it; raises one `InputError` with all that is missing."""
    missing: dict[str, Path] = {}
    for part in parts:
        try:
            with _alone(part.dataset):
                next(part.rows(), None)
        except InputError:
            raise
        except Exception as error:  # of requests, of ir_datasets, or of the operating system
            address, places = _address(error), _places(part.dataset)
            if address not in places:
                raise InputError(f"{part.path} cannot be read: {error}") from error
            missing[address] = places[address]
            missing[address].parent.mkdir(parents=True, exist_ok=True)
    if missing:
        other = " (the file there has another checksum)"
        wanted = "; ".join(f"put {each} at {place}{other * place.exists()}" for each, place in missing.items())
        raise InputError(f"files are missing and cannot be fetched: {wanted}")


def _address(error: BaseException) -> str | None:
    """The address that could not be fetched, the first where there are mirrors."""
    if getattr(error, "request", None) is not None:
        return error.request.url
    tried = next((each for each in error.args if isinstance(each, list)), [])
    return next((mirror.url for mirror, _ in tried if hasattr(mirror, "url")), None)


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Rows of a dataset, read by a function of its id; `path` is what messages name."""

    dataset: str
    part: str
    read: Callable[[str], Iterator[tuple[Any, ...]]]

    @property
    def path(self) -> str:
        return f"{self.dataset} ({self.part})"

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        return enumerate(self.read(self.dataset), start=1)


def _passages(dataset: str) -> Iterator[tuple[str, str, str]]:
    for each in _package().load(dataset).docs_iter():
        yield each.doc_id, getattr(each, "title", ""), each.text


def _untitled(dataset: str) -> Iterator[tuple[str, str, str]]:
    for passage_id, _, text in _passages(dataset):
        yield passage_id, "", text


def _queries(dataset: str) -> Iterator[tuple[str, str]]:
    for each in _package().load(dataset).queries_iter():
        yield each.query_id, each.text


def _qrels(dataset: str) -> Iterator[tuple[str, str, int]]:
    for each in _package().load(dataset).qrels_iter():
        yield each.query_id, each.doc_id, each.relevance


class _Titles:
    """MS MARCO's titles, by the number that is a passage's id; together about half a gigabyte."""

    def __init__(self, settings: Settings) -> None:
        self.dataset, self.path = settings.dataset, f"{settings.dataset} (titles)"
        self._file = settings.title_file
        self._places = array("q", [-1]) * (counts(settings.dataset, "docs") or 0)
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
        for passage_id, _, text in _passages(dataset):
            yield passage_id, self._title(int(passage_id)), text

    def _title(self, passage: int) -> str:
        start = self._places[passage]
        return "" if start < 0 else self._text[start : self._text.index(b"\n", start)].decode()

    def _parse(self, number: int, line: str) -> tuple[int, str]:
        passage, tab, title = line.partition("\t")
        if not tab or not passage.isdecimal() or int(passage) >= len(self._places):
            raise ValueError(f"{line[:40]!r}; allowed: passage id (0 to {len(self._places) - 1}), tab, title")
        return int(passage), title.strip()

    def _released(self) -> Path:
        """RocketQA's titles, fetched and unpacked once."""
        util = _package().util
        place = _places(MSMARCO)[TITLES]
        archive = util.Download([util.RequestsDownload(TITLES)], cache_path=place)
        return util.Cache(util.TarExtract(archive, TITLES_MEMBER), place.with_name("para.title.txt")).path()
