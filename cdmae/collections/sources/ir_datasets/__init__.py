"""Read MS MARCO, TREC DL, BEIR and Wikipedia through ir_datasets (MacAvaney et al. 2021).

The package fetches the files, checks them against their published checksums and keeps them in
``$IR_DATASETS_HOME`` (default ``~/.ir_datasets``). Only the job that makes the collection uses the
network; a machine without network reads the files, as they were published, from the folder `files`.

The package's catalogue contains the numbers of passages, queries and judgments: a collection with
other counts is refused. MS MARCO's passages have no titles; RocketQA's release adds titles, and
papers on dense retrieval report results with them.
"""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import Counts, Source
from cdmae.collections.judged import Parts
from cdmae.collections.judged import load as load_parts
from cdmae.collections.leakage import (
    Holdout,
    HoldoutSeed,
    check_shares,
    expected_after,
    hold_out,
    judged_after,
)
from cdmae.collections.sources.ir_datasets import catalogue, fetching
from cdmae.collections.sources.ir_datasets.fetching import MSMARCO, rows_of
from cdmae.errors import InputError
from cdmae.fields import EMPTY, settings

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

PUBLISHED = "data/published"
WORDS = {  # words per passage
    "msmarco-passage": 56.0, "dpr-w100": 100.0, "beir/trec-covid": 161.0, "beir/nfcorpus": 232.0,
    "beir/nq": 79.0, "beir/hotpotqa": 46.0, "beir/fiqa": 132.0, "beir/arguana": 167.0,
    "beir/webis-touche2020": 292.0, "beir/cqadupstack": 129.0, "beir/quora": 11.0,
    "beir/dbpedia-entity": 50.0, "beir/scidocs": 176.0, "beir/fever": 85.0,
    "beir/climate-fever": 85.0, "beir/scifact": 214.0, "nano-beir/climate-fever": 270.0,
    "nano-beir/dbpedia-entity": 56.0, "nano-beir/fever": 205.0, "nano-beir/fiqa": 150.0,
    "nano-beir/hotpotqa": 58.0, "nano-beir/msmarco": 55.0, "nano-beir/nfcorpus": 252.0,
    "nano-beir/nq": 88.0, "nano-beir/quora": 9.0, "nano-beir/scidocs": 154.0,
    "nano-beir/arguana": 169.0, "nano-beir/scifact": 239.0, "nano-beir/webis-touche2020": 357.0,
}  # fmt: skip


@settings
class Settings(Source):
    """The keys of a published collection."""

    dataset: str
    """Id in the catalogue of ir_datasets: msmarco-passage, beir/nq, dpr-w100 (Wikipedia),  [4.1].
    """
    splits: dict[str, str] = EMPTY
    """For each split, the part of its catalogue id after `dataset`, as in {dev: dev/small}; empty:
    `test`, if the dataset has it.
    """
    titles: bool = True
    """Whether titles are part of the passages [RocketQA for MS MARCO, BEIR: joined]."""
    title_file: str = ""
    """File of MS MARCO's titles, one per line: passage id, tab, title; empty: RocketQA's release is
    downloaded.
    """
    files: str = PUBLISHED
    """Folder of published files (collectionandqueries.tar.gz, nq.zip, ...), which are then not
    downloaded; files that share a name keep the hub's folders
    (NanoNQ/corpus/train-00000-of-00001.parquet); a relative path begins at the working directory.
    """
    holdout: Holdout = EMPTY
    holdout_seed: HoldoutSeed = 0

    def __post_init__(self) -> None:
        """Refuse an unknown dataset, a second set of titles, and invalid shares."""
        check_shares(self.holdout)
        if not catalogue.has(self.dataset, "docs"):
            known = catalogue.few(self.dataset, catalogue.collections())
            raise InputError(f"dataset is {self.dataset}, which ir_datasets does not know; {known}")
        if self.title_file and (self.dataset != MSMARCO or not self.titles):
            raise InputError(
                f"title_file has no effect without dataset {MSMARCO} and titles: true; remove it"
            )

    def ids(self) -> dict[str, str]:
        """Return the catalogue's id of every split."""
        if self.splits:
            return {
                split: f"{self.dataset}/{rest}".rstrip("/") for split, rest in self.splits.items()
            }
        for name in (self.dataset, f"{self.dataset}/test"):
            if catalogue.has(name, "qrels"):
                return {"test": name}
        return {}

    def judged(self) -> dict[str, bool]:
        """Return, for each split, whether it has judgments; raise `InputError` for unknown ones."""
        for split, name in self.ids().items():
            if not catalogue.has(name, "queries"):
                known = catalogue.few(self.splits[split], catalogue.below(self.dataset, "queries"))
                raise InputError(f"splits.{split} is {self.splits[split]}; {known}")
        judged = {split: catalogue.has(name, "qrels") for split, name in self.ids().items()}
        return judged_after(judged, self.holdout, self.dataset)

    def depends(self) -> list[Path]:
        """Return the file of titles, if there is one.

        The files that ir_datasets keeps have checksums and do not change.
        """
        return [Path(os.path.expanduser(self.title_file))] if self.title_file else []

    def version(self) -> dict[str, str]:
        """Return the version of the package that reads the files."""
        return {"ir_datasets": installed("ir_datasets")}

    def check(self) -> Counts:
        """Check that the folder and the file in the settings exist; the job reads the data.

        Counts nothing: the catalogue knows neither grades nor the queries with a relevant passage.
        """
        folder = Path(os.path.expanduser(self.files)).absolute()
        titles = Path(os.path.expanduser(self.title_file)).absolute()
        if self.files != PUBLISHED and not folder.is_dir():
            raise InputError(
                f"files is {self.files}, and {folder} is not a folder; expected a folder"
            )
        if self.title_file and not titles.is_file():
            raise InputError(f"title_file is {self.title_file}, and {titles} is not a file")
        return Counts()

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Return the passages, the words per passage, and the judged queries by split.

        Sources: the catalogue, and Thakur et al. 2021, table 1. For NanoBEIR, words per passage are
        HAKARI-Bench's counts of characters, divided by 6.
        """
        passages = catalogue.counts(self.dataset, "docs") or 0
        words = next(
            (words for name, words in WORDS.items() if self.dataset.startswith(name)), 100.0
        )
        queries = {}
        for split, name in self.ids().items():
            judged = catalogue.counts(f"{name}/judged", "queries")
            queries[split] = judged or catalogue.counts(name, "queries") or 0
        return passages, words, expected_after(queries, self.holdout)

    def load(self, threads: int = 1) -> Collection:
        """Fetch missing files and read the collection; `threads` is not used."""
        fetching.offer(self.files, self.dataset)
        passages = rows_of(self.dataset, partial(fetching.passages, titles=self.titles))
        queries = {}
        qrels = {}
        judged = self.judged()
        for split, name in self.ids().items():
            queries[split] = rows_of(name, fetching.queries)
            if judged[split]:
                qrels[split] = rows_of(name, fetching.qrels)
        parts = [*queries.values(), *qrels.values(), passages]
        if self.dataset == MSMARCO and self.titles:
            titles = rows_of(self.dataset, partial(fetching.titles, file=self.title_file))
            fetching.fetch([*parts, titles])
            by_passage = [""] * (catalogue.counts(MSMARCO, "docs") or 0)
            for _, (passage, title) in titles.rows():
                by_passage[passage] = title
            passages = rows_of(self.dataset, partial(fetching.passages, titles=by_passage))
        else:
            fetching.fetch(parts)
        about = {
            "source": "ir_datasets",
            "dataset": self.dataset,
            "titles": self.titles,
            **self.version(),
        }
        collection = load_parts(Parts(passages, queries, qrels, published=True), about)
        self._check_counts(collection.about)
        return hold_out(collection, self.holdout, self.holdout_seed)

    def _check_counts(self, about: dict[str, Any]) -> None:
        """Raise `InputError` if counts differ from the published collection's counts."""
        counts = {
            (self.dataset, "docs"): about["passages"] + about["passages without text, dropped"]
        }
        for split, name in self.ids().items():
            counted = about["queries"][split]
            counts[name, "queries"] = counted["read"]
            if "judged" in counted:
                counts[name, "qrels"] = counted["judgments read"]
                counts[f"{name}/judged", "queries"] = counted["judged"]
        for (name, part), count in counts.items():
            expected = catalogue.counts(name, part)
            if expected not in (None, count):
                raise InputError(
                    f"{name} has {count:,} {part}; expected {expected:,}, as published"
                )
