"""Survey a folder of data: its layout, its language, and the counts that decide a config."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cdmae import collections
from cdmae.collections import Source, tables
from cdmae.collections.folders import by_split, files_below
from cdmae.collections.leakage import DIVIDED
from cdmae.collections.pair_rows import POSITIVE, QUERY
from cdmae.collections.sources.pseudo import divided
from cdmae.collections.sources.text import SUFFIXES
from cdmae.errors import InputError
from cdmae.fields import parse, show
from cdmae.formats import listed
from cdmae.languages import scripts

SAMPLE = 20_000  # passages whose words are looked at; all passages are counted
PIECES = 2000  # passages, and queries, whose word-pieces are counted
# texts that describe the tables next to them, as at the Hugging Face hub
ABOUT = re.compile(r"(readme|licen[cs]e|changelog|citation|notice)(?![a-z])", re.IGNORECASE)
PASSAGES = ("corpus.", "psgs_w100.")  # names of tables of passages without queries
METHODS = ("first_sentence", "title", "span")  # of queries from unlabelled text, the best first


@dataclass(frozen=True)
class Survey:
    """The contents of a folder of data.

    language: of the passages, or "words" (`scripts.language_of`). judged: for each split with
    judgments, the number of queries with a relevant passage. unjudged: the other splits. made: for
    each method of `pseudo`, the share of passages that it turns into queries. unread: the files of
    the folder that are not read. texts, queries: the first passages and queries.
    """

    source: str
    settings: dict[str, Any]
    passages: int
    judged: dict[str, int]
    unjudged: list[str]
    language: str = "en"
    made: dict[str, float] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)


def source_of(path: Path, given: str) -> str:
    """Return the source that reads a file or folder; raise `InputError` if none or several can."""
    if not path.exists():
        raise InputError(f"{show(str(path))} does not exist; expected a folder, or a table")
    found = [given] if given else _layouts(path)
    if len(found) > 1:
        raise InputError(
            f"{path} could be {' or '.join(found)}. Name it with --source; expected "
            f"{', '.join(found)}"
        )
    if not found:
        files = [path] if path.is_file() else files_below(path)
        kinds = sorted({file.suffix.lower() or file.name for file in files})
        raise InputError(
            f"{path} has {listed(kinds, most=5) or 'no file'}; expected tables "
            f"({', '.join(tables.SUFFIXES)}), documents ({', '.join(SUFFIXES)}), or the layout of "
            "BEIR, MTEB, MS MARCO or LoTTE. Save a spreadsheet as CSV (UTF-8); convert PDF and "
            "Word files to text"
        )
    return found[0]


def _layouts(path: Path) -> list[str]:
    """List the sources that can read a file or folder."""
    if path.is_file():
        if not tables.suffix_of(path):
            return []
        return ["text"] if _is_text(path) else ["pairs"]
    names = {file.name.removesuffix(".parquet").partition(".jsonl")[0] for file in path.iterdir()}
    if "corpus" in names and ("queries" in names or not _pairs_in(path)):
        return ["beir"]
    if any(path.glob("collection.tsv*")):
        return ["msmarco"]
    files = files_below(path)
    found_tables = [file for file in files if tables.suffix_of(file)]
    texts = [file for file in files if file.suffix.lower() in SUFFIXES]
    if found_tables:
        texts = [file for file in texts if not ABOUT.match(file.name)]
    if found_tables and not texts:
        return ["text"] if all(map(_is_text, found_tables)) else ["pairs"]
    # a table in a folder below is read only where there are no texts
    found = ["pairs"] if _tables_in(path) else []
    return [*found, "text"] if texts else found


def _is_text(table: Path) -> bool:
    """Return whether a table has texts, but no queries: its rows are documents."""
    row = next((row.values for row in tables.rows(table)), {})
    return not {*QUERY, *POSITIVE} & row.keys() and bool({*tables.TEXT} & row.keys())


def _tables_in(path: Path) -> list[Path]:
    files = sorted(path.iterdir())
    return [file for file in files if tables.suffix_of(file) and file.name[0] != "."]


def _pairs_in(path: Path) -> list[Path]:
    """List the tables in a folder except those of passages without queries."""
    return [file for file in _tables_in(path) if not file.name.startswith(PASSAGES)]


def settings_of(source: str, path: Path, query: str, positive: str) -> dict[str, Any]:
    """Choose the settings with which a source reads a file or folder.

    Pairs may also be in one folder below, as in ``data`` of data sets at the Hugging Face hub.
    """
    named = {"query": query, "positive": positive}
    named = {key: value for key, value in named.items() if value}
    if source != "pairs":  # which refuses columns
        files = files_below(path)
        is_table = source == "text" and len(files) == 1 and tables.suffix_of(files[0])
        return {"path": str(files[0] if is_table else path), **named}
    if path.is_dir() and not _tables_in(path):
        folders = sorted({file.parent for file in files_below(path) if tables.suffix_of(file)})
        if len(folders) != 1:
            names = [show(str(folder.relative_to(path))) for folder in folders]
            found = listed(names, most=3) or "no folder"
            raise InputError(
                f"{path} has tables in {found}; give the path of one folder, with a table per "
                "split, such as train.csv"
            )
        path = folders[0]
    settings: dict[str, Any] = {"path": str(path)}
    if path.is_dir():
        pairs = _pairs_in(path)
        corpus = [file for file in _tables_in(path) if file not in pairs]
        if len(pairs) == 1:
            settings["path"] = str(pairs[0])
        elif DIVIDED not in by_split(pairs):
            names = ", ".join(file.name for file in _tables_in(path))
            raise InputError(
                f"{path} contains the tables {names}, and no {DIVIDED}.csv (or another suffix) "
                "with the training pairs; rename one, or give the path of one table"
            )
        if corpus:
            settings["corpus"] = str(corpus[0])
    return settings | named


def survey(source: str, path: Path, settings: dict[str, Any]) -> Survey:
    """Read a collection in a file or folder and describe it.

    Raises `InputError`, with file and line, for data that the source refuses.
    """
    reader: Source = parse(collections.source(source).Settings, settings)
    collection = reader.load()
    rows = list(islice(collection.rows(), SAMPLE))
    texts = [f"{title} {text}" for _, title, text in rows]
    language = scripts.language_of(texts)
    made = {}
    for method in METHODS:
        parts = [divided(*row, method, language) for row in rows]
        made[method] = len({each[0] for each in parts if each}) / max(1, len(rows))
    queries = [text for frame in collection.queries.values() for text in frame["text"]]
    read = set(reader.depends())
    unread = [file for file in files_below(path) if file not in read]
    return Survey(
        source=source,
        settings=settings,
        passages=len(collection.passages),
        judged=collections.relevant_queries(collection),
        unjudged=[split for split, has in reader.judged().items() if not has],
        language=language,
        made=made,
        unread=[str(file.relative_to(path)) for file in unread],
        texts=texts[:PIECES],
        queries=queries[:PIECES],
    )


def pieces(found: Survey, tokenizer: Path | None, vocabulary: int) -> tuple[int, int]:
    """Return the 95th percentiles of the word-pieces of passages and of queries.

    tokenizer: the folder of a published one; None: one of `vocabulary` word-pieces will be trained
    on the passages, and is trained on the sample here.
    """
    from cdmae.tokens import tokenise

    if tokenizer:
        loaded = tokenise.load_tokenizer(tokenizer)
    else:
        loaded = tokenise.train_tokenizer(found.texts, vocabulary)
    longest = []
    for texts in (found.texts, found.queries):
        ids = loaded(texts, add_special_tokens=False)["input_ids"] if texts else [[]]
        longest.append(int(np.percentile(list(map(len, ids)), 95)))
    return longest[0], longest[1]
