"""Third-party runs from files, which can be measured, fused, mined for negatives, or teachers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from cdmae.config import systems
from cdmae.config.kinds._system import System
from cdmae.fields import HomePath, Of, refusal, settings, show

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class TrecRun(System):
    """Third-party runs, read from files in TREC format or from a table of pairs."""

    third_party = True

    kind: Literal["run"] = "run"
    """Runs of a third-party system, read from files."""
    runs: Annotated[dict[str, dict[str, HomePath]], Of("collections")]
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
                if not os.path.isfile(file):
                    words = "which is not a file; expected a run in TREC format"
                    raise refusal(keys, f" is {show(file)}, {words}")
        mined = [on for owner, *on in systems.mined(config) if owner == name]
        for collection, split in [*systems.targets(config), *mined]:
            if split not in self.runs.get(collection, {}):
                words = "on which it is measured, mined or used as a teacher"
                raise refusal(("runs",), f" lacks {split} of {collection}, {words}")
