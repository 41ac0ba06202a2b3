"""Third-party runs from files, which can be measured, fused, mined for negatives, or teachers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from cdmae.config import pretrained, systems
from cdmae.config.checks import check_time
from cdmae.config.kinds._system import System
from cdmae.fields import HomePath, Mapped, refusal, setting, settings, show

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class TrecRun(System):
    """Third-party runs, read from files in TREC format or from a table of pairs."""

    answers = False
    third_party = True

    kind: Literal["run"] = setting("run", meaning="runs of a third-party system, read from files")
    runs: Annotated[dict[str, Annotated[dict[str, HomePath], Mapped]], Mapped] = setting(
        meaning="TREC files of a third-party system, by collection and split, as in {pydocs: "
        "{dev: runs/theirs.trec}}; or tables of pairs, as of `source: pairs`, whose scored "
        "passages, or else negatives, are the run; a relative path begins at the working directory",
        names="collections",
    )

    def check(self, config: Config, name: str) -> None:
        """Refuse missing files, and measured splits without a run."""
        for collection, files in self.runs.items():
            for split, file in files.items():
                keys = ("runs", collection, split)
                words = config.collections[collection].unfit(collection, split)
                if words:
                    raise refusal(keys, f": the split is {split}{words}")
                pretrained.check_plain(file, keys)
                if file.startswith("-"):
                    raise refusal(
                        keys,
                        f" is {file}, which a job would read as an option; allowed: an absolute "
                        "path",
                    )
                if not os.path.isfile(file):
                    raise refusal(
                        keys,
                        f" is {show(file)}, which is not a file; allowed: a run in TREC format",
                    )
                check_time(file, keys)
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
