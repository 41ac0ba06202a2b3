"""Survey a folder of data: its layout, and the counts and lengths that decide a config."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae import collections
from cdmae.collections import Source, pair_rows, table_files
from cdmae.collections.leakage import DIVIDED, key_of
from cdmae.collections.sources.pairs import split_of
from cdmae.collections.sources.pseudo import divided
from cdmae.errors import InputError
from cdmae.fields import parse, show

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

NAMED = 3  # files or folders that a line names
SAMPLE = 20_000  # passages whose words are looked at; all passages are counted
TEXTS = (".txt", ".md", ".rst")
# texts that describe the tables next to them, as at the Hugging Face hub
ABOUT = re.compile(r"(readme|licen[cs]e|changelog|citation|notice)(?![a-z])", re.IGNORECASE)
METHODS = ("first_sentence", "title", "span")  # of queries from unlabelled text, the best first
_RARE = 0.01  # the share of letters from which a script is reported
# scripts that separate few words by spaces, so that a letter is about a word-piece
_DENSE = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Survey:
    """The contents of a folder of data.

    judged: for each split with judgments, the number of queries with a relevant passage. shared:
    for each other split, the number of queries with the text of a training query. lengths: the 95th
    percentiles of the lengths of passages and of queries, in estimated word-pieces. made: for each
    method of `pseudo`, the share of passages that it turns into queries. unread: the files of the
    folder that are not read.
    """

    source: str
    settings: dict[str, Any]
    passages: int
    judged: dict[str, int]
    unjudged: list[str]
    shared: dict[str, int]
    words: tuple[int, int]
    pieces: tuple[int, int]
    scripts: dict[str, float]
    duplicates: float
    columns: dict[str, str] = field(default_factory=dict)
    made: dict[str, float] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


# --- layout ---------------------------------------------------------------------------------------


def layouts(path: Path) -> list[str]:
    """List the kinds of source that can read a file or folder, the likeliest first."""
    if path.is_file():
        return ["pairs"] if table_files.suffix_of(path) else []
    names = {file.name.removesuffix(".gz") for file in path.iterdir() if file.is_file()}
    judged = "queries.jsonl" in names or (path / "qrels").is_dir()
    if "corpus.jsonl" in names and (judged or not pairs_of(path)):
        return ["beir"]
    if "collection.tsv" in names:
        return ["msmarco"]
    files = files_below(path)
    has_tables = any(map(table_files.suffix_of, files))
    texts = [file for file in files if file.suffix.lower() in TEXTS]
    if has_tables:
        texts = [file for file in texts if not ABOUT.match(file.name)]
    found = []
    # a table in a folder below is read only where there are no texts
    if tables_of(path) or (has_tables and not texts):
        found.append("pairs")
    if texts:
        found.append("text")
    return found


def files_below(path: Path) -> list[Path]:
    """List the files in a folder and in the folders below it, except hidden files."""
    found = []
    for parent, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name[0] != "."]
        found += [Path(parent, name) for name in names if name[0] != "."]
    return sorted(found)


def tables_of(path: Path) -> list[Path]:
    """List the tables in a folder, except hidden files."""
    files = sorted(path.iterdir())
    return [file for file in files if table_files.suffix_of(file) and file.name[0] != "."]


def pairs_of(path: Path) -> list[Path]:
    """List the tables in a folder except ``corpus.*``, which has passages without queries."""
    return [file for file in tables_of(path) if not file.name.startswith("corpus.")]


def settings_of(source: str, path: Path, query: str, positive: str) -> dict[str, Any]:
    """Choose the settings with which a source reads a file or folder.

    Pairs may also be in one folder below, as in ``data`` of data sets at the Hugging Face hub.
    """
    if source != "pairs":
        for option, column in (("--query", query), ("--positive", positive)):
            if column:
                raise InputError(
                    f"{option} is {show(column)}, but {path} is read as {source}, and only pairs "
                    f"have columns to name; remove {option}, or give a table of pairs"
                )
        return {"path": str(path)}
    if path.is_dir() and not tables_of(path):
        tables = [file for file in files_below(path) if table_files.suffix_of(file)]
        folders = list(dict.fromkeys(file.parent for file in tables))
        if not folders:
            allowed = ", ".join(table_files.SUFFIXES)
            raise InputError(f"{path} contains no table of pairs; allowed: a file in {allowed}")
        if len(folders) > 1:
            names = [str(folder.relative_to(path)) for folder in folders]
            raise InputError(
                f"{path} has tables in several folders: {some(names)}; give the path of one, or "
                f"put a table per split, such as train{tables[0].suffix}, into one folder"
            )
        path = folders[0]
    settings: dict[str, Any] = {"path": str(path)}
    if path.is_dir():
        pairs = pairs_of(path)
        corpus = [file for file in tables_of(path) if file not in pairs]
        if not pairs:
            raise InputError(
                f"{corpus[0]} has no queries; allowed: a table of pairs next to it, or passages "
                "without queries as corpus.jsonl (BEIR's layout)"
            )
        splits = {split_of(file)[0] for file in pairs}
        if len(pairs) == 1:
            settings["path"] = str(pairs[0])
        elif DIVIDED not in splits:
            raise InputError(
                f"{path} contains the tables {', '.join(file.name for file in pairs)}; rename the "
                f"training pairs to {DIVIDED}{pairs[0].suffix}, or give the path of one table"
            )
        if corpus:
            settings["corpus"] = str(corpus[0])
    if query:
        settings["query"] = query
    if positive:
        settings["positive"] = positive
    return settings


def unclear_columns(settings: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the candidates for each ambiguous column of pairs, and the columns that are clear."""
    path = Path(settings["path"])
    table = path if path.is_file() else pairs_of(path)[0]
    _, row = next(table_files.rows(table), (0, {}))
    if not row:
        raise InputError(f"{table} contains no pairs; allowed: at least one row below the names")
    for what in ("query", "positive"):
        if what in settings and settings[what] not in row:
            raise InputError(
                f"--{what} is {show(settings[what])}, which is not a column of {table}; allowed: "
                f"{', '.join(map(show, row))}"
            )
    usual = {"query": pair_rows.QUERY, "positive": pair_rows.POSITIVE}
    unclear = {}
    clear = {}
    for what, names in usual.items():
        found = [settings[what]] if what in settings else [name for name in names if name in row]
        if len(found) == 1:
            clear[what] = found[0]
        else:
            unclear[what] = found or list(row)
    return unclear, clear


def some(names: list[str]) -> str:
    """List the first names, and count the others."""
    listed = ", ".join(map(show, names[:NAMED]))
    return f"{listed} and {len(names) - NAMED:,} more" if len(names) > NAMED else listed


# --- content --------------------------------------------------------------------------------------


def survey(source: str, path: Path, settings: dict[str, Any], columns: dict[str, str]) -> Survey:
    """Read a collection in a file or folder and describe it.

    Raises `InputError`, with file and line, for data that the source refuses.
    """
    reader: Source = parse(collections.source(source).Settings, settings)
    judged = reader.judged()
    collection = reader.load()
    words = []
    pieces = []
    scripts: Counter[str] = Counter()
    texts: set[str] = set()
    made: Counter[str] = Counter()
    queries_made: dict[str, set[str]] = {method: set() for method in METHODS}
    passages = 0
    looked_at = 0
    for name, title, text in _passages(collection.passages):
        passages += 1
        if looked_at == SAMPLE:
            continue
        looked_at += 1
        whole = f"{title} {text}"
        letters = _scripts(whole)
        scripts += letters
        words.append(len(whole.split()))
        pieces.append(_pieces(whole, letters))
        texts.add(key_of(whole))
        for method in METHODS:
            parts = divided(name, title, text, method)
            if parts:
                queries_made[method].add(parts[0])
    made.update({method: len(found) for method, found in queries_made.items()})
    asked = [text for frame in collection.queries.values() for text in frame["text"]]
    for text in islice(asked, SAMPLE):
        scripts += _scripts(text)
    read = set(reader.depends())
    unread = [file for file in files_below(path) if file not in read]
    letters_in_all = max(1, scripts.total())
    shares = {name: count / letters_in_all for name, count in scripts.most_common()}
    return Survey(
        source=source,
        settings=settings,
        passages=passages,
        judged={
            split: judgments.queries or 0
            for split, judgments in collections.counts(collection).splits.items()
        },
        unjudged=[split for split, has in judged.items() if not has],
        shared=_shared(collection.queries),
        words=(_most(words), _most([len(text.split()) for text in asked])),
        pieces=(_most(pieces), _most([_pieces(text, _scripts(text)) for text in asked])),
        scripts={name: share for name, share in shares.items() if share >= _RARE},
        duplicates=1 - len(texts) / max(1, looked_at),
        columns=columns,
        made={method: made[method] / max(1, looked_at) for method in METHODS},
        unread=[str(file.relative_to(path)) for file in unread],
    )


def _passages(passages: pa.RecordBatchReader) -> Iterator[tuple[str, str, str]]:
    for batch in passages:
        columns = (batch[name].to_pylist() for name in ("passage_id", "title", "text"))
        yield from zip(*columns, strict=True)


def _shared(queries: dict[str, pd.DataFrame]) -> dict[str, int]:
    """Count the queries of each split that have the text of a training query."""
    if "train" not in queries:
        return {}
    trained = {key_of(text) for text in queries["train"]["text"]}
    counts = {
        split: sum(key_of(text) in trained for text in frame["text"])
        for split, frame in queries.items()
        if split != "train"
    }
    return {split: count for split, count in counts.items() if count}


def _scripts(text: str) -> Counter[str]:
    """Count a text's letters by script, which is the first word of a letter's Unicode name."""
    counts = Counter(letter for letter in text if letter.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in counts.items():
        scripts[unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]] += count
    return scripts


def _pieces(text: str, scripts: Counter[str]) -> int:
    """Estimate a text's word-pieces: one per letter in dense scripts, else 1.4 per word."""
    dense = sum(scripts[name] for name in _DENSE)
    return dense + round(1.4 * len(text.split()))


def _most(lengths: list[int]) -> int:
    """Return the 95th percentile of lengths, or 0 without lengths."""
    return int(np.percentile(lengths, 95)) if lengths else 0


def check(path: Path, source: str) -> list[str]:
    """List the sources that can read a path; raise `InputError` for a wrong path or source."""
    if not path.exists():
        raise InputError(
            f"{show(str(path))} does not exist; allowed: a folder, or a table of pairs"
        )
    if path.is_file() and not table_files.suffix_of(path):
        raise InputError(
            f"{show(str(path))} is not a table of pairs; allowed: a file in "
            f"{', '.join(table_files.SUFFIXES)}, or a folder"
        )
    found = layouts(path)
    known = ("beir", "msmarco", "pairs", "text")
    if source and source not in known:
        raise InputError(f"--source is {source}; allowed: {', '.join(known)}")
    if not found and not source:
        raise InputError(
            f"{path} contains no data that can be read; allowed: BEIR's layout (corpus.jsonl), MS "
            f"MARCO's (collection.tsv), tables of pairs ({', '.join(table_files.SUFFIXES)}), or "
            f"texts ({', '.join(TEXTS)})"
        )
    return [source] if source else found
