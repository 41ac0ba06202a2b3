"""Sources that read a folder of files, and the files in such folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.collections import Source, judged
from cdmae.collections.leakage import check_shares, expected_after, hold_out, judged_after
from cdmae.collections.tables import PACKED
from cdmae.errors import InputError
from cdmae.fields import show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection


class Folder(Source):
    """Hold the settings of a source of files; all methods use the files of `parts`."""

    def __post_init__(self) -> None:
        """Raise an error if `holdout` leaves no training queries, or if its seed has no effect."""
        check_shares(self.holdout)

    def parts(self) -> judged.Parts:
        """Find the collection's files; raises `InputError` for missing files."""
        raise NotImplementedError

    def judged(self) -> dict[str, bool]:
        """Return, for each split with queries, whether it has judgments."""
        parts = self.parts()
        known = {split: split in parts.qrels for split in parts.queries}
        return judged_after(known, self.holdout, self.path)

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, without duplicates."""
        parts = self.parts()
        every = [parts.passages, *parts.queries.values(), *parts.qrels.values()]
        return list(dict.fromkeys(file for rows in every for file in rows.files))

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages, the words per passage, and the queries by split.

        The estimate uses the files' sizes and their first lines.
        """
        parts = self.parts()
        passages, words, _ = parts.passages.size()
        queries = {
            split: parts.qrels.get(split, rows).size()[2] for split, rows in parts.queries.items()
        }
        return passages, words, expected_after(queries, self.holdout)

    def load(self, threads: int = 1) -> Collection:
        """Read the collection; `threads` is not used because nothing is computed."""
        self.judged()  # checks `holdout`
        name = type(self).__module__.rpartition(".")[2]
        collection = judged.load(self.parts(), {"source": name, "titles": self.titles})
        return hold_out(collection, self.holdout, self.holdout_seed)


def find(folder: Path, stem: str, suffix: str, layout: str = "") -> Path | None:
    """Return the file `stem` + `suffix` in a folder, plain or compressed, or None.

    Raises `InputError` if there are several, or if there is none and a `layout` requires one.
    """
    paths = [folder / f"{stem}{suffix}{packed}" for packed in ("", *PACKED)]
    paths = [path for path in paths if path.exists()]
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        raise InputError(f"{folder} holds both {names}; keep one of them")
    if layout and not paths:
        raise InputError(
            f"path is {folder}, and {folder.absolute()} holds no {stem}{suffix}, also compressed; "
            f"expected a folder in {layout} layout"
        )
    return paths[0] if paths else None


def by_split(folder: Path, prefix: str = "") -> dict[str, Path]:
    """Return the files ``{prefix}{split}.tsv`` of a folder, by split, plain or compressed."""
    names = {path.name.partition(".tsv")[0] for path in folder.glob(f"{prefix or '[!.]'}*.tsv*")}
    splits = sorted(name.removeprefix(prefix) for name in names)
    paths = {split: find(folder, f"{prefix}{split}", ".tsv") for split in splits}
    return {split: path for split, path in paths.items() if path}


def check_folder(path: str) -> Path:
    """Return the path as a folder; raise `InputError` if it is not a folder that can be listed.

    Without this check, an unreadable folder would look empty.
    """
    if not path.strip():
        raise InputError("path is empty; expected a folder")
    folder = Path(os.path.expanduser(path))
    name = f"path is {show(path)}, and {show(str(folder.absolute()))}"
    try:
        next(os.scandir(folder), None)
    except (FileNotFoundError, NotADirectoryError) as error:
        state = "a file" if isinstance(error, NotADirectoryError) else "not there"
        raise InputError(
            f"{name} is {state}; expected a folder with the collection's files"
        ) from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None
    return folder
