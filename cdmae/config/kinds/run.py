"""Third-party runs from files, which can be measured, fused, mined for negatives, or teachers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cdmae import collections
from cdmae.collections import pair_rows
from cdmae.config import pretrained, systems
from cdmae.config.checks import check_time
from cdmae.config.kinds._system import System
from cdmae.fields import HomePath, Keys, Mapped, Of, pick, refusal, settings, show

if TYPE_CHECKING:
    from cdmae.config.schema import Collection, Config


@settings
class TrecRun(System):
    """Third-party runs, read from files in TREC format or from a table of pairs."""

    answers = False
    third_party = True

    kind: Literal["run"] = "run"
    """Runs of a third-party system, read from files."""
    runs: Annotated[dict[str, Annotated[dict[str, HomePath], Mapped]], Mapped, Of("collections")]
    """TREC files of a third-party system, by collection and split, as in {pydocs: {dev:
    runs/theirs.trec}}; or tables of pairs, as of `source: pairs`, whose scored passages, or else
    negatives, are the run; a relative path begins at the working directory.
    """

    def check(self, config: Config, name: str) -> None:
        """Refuse missing files, and measured splits without a run."""
        for collection, files in self.runs.items():
            for split, file in files.items():
                keys = ("runs", collection, split)
                words = config.collections[collection].unfit(collection, split)
                if words:
                    raise refusal(keys, f": the split is {split}{words}")
                pretrained.check_plain(file, keys)
                if not os.path.isfile(file):
                    raise refusal(
                        keys,
                        f" is {show(file)}, which is not a file; expected a run in TREC format",
                    )
                check_time(file, keys)
                if collections.readable():
                    _check_table(config.collections[collection], file, keys)
        for collection, split in systems.targets(config):
            if split not in self.runs.get(collection, {}):
                raise refusal(
                    ("runs",), f" lacks {split} of {collection}, on which the system is measured"
                )

    def in_words(self) -> str:
        """Describe the origin of the runs."""
        return "third-party runs, read from files"

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse a system without a run over the training queries."""
        if split not in self.runs.get(collection, {}):
            raise refusal(
                ("runs",),
                f" lacks {split} of {collection}, on which it is mined or used as a teacher",
            )


def _check_table(collection: Collection, file: str, keys: Keys) -> None:
    """Refuse a table of pairs without negatives and scores, of which no run can be made.

    The reading ends at the first row that has some.
    """
    columns = {}
    if collection.source == "pairs":
        columns = pick(collection.values(), ("query", "positive"))
    path = Path(file)
    if not pair_rows.is_table(path, columns.get("query", "")):
        return
    if not any(pair.negatives or pair.scores for _, pair in pair_rows.read(path, **columns)):
        raise refusal(
            keys,
            f" is {show(file)}, a table whose rows have neither negatives nor scores; expected a "
            "table with a column such as negative, or a run in TREC format",
        )
