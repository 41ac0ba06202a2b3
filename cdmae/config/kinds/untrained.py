"""Systems without a training: words, published models and runs, and what other systems make up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import (
    Engine,
    Searched,
    System,
    check_searched,
)
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    REQUIRED,
    HomePath,
    Natural,
    Of,
    PositiveReal,
    Share,
    Weight,
    settings,
    show,
    unfit,
)

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Bm25(System):
    """The words that query and passage share [Robertson and Zaragoza 2009]."""

    lexical = True
    neural = False
    index = answered_by = "bm25"

    kind: Literal["bm25"] = "bm25"
    k1: Weight = 0.9
    """Saturation of counts [Anserini]."""
    b: Share = 0.4
    """Normalisation by length [Anserini]."""

    passages: Annotated[dict[str, str], Of("collections")] = EMPTY
    """For a collection, one of source `expanded` that is indexed instead [docT5query]."""

    def indexed(self, collection: str) -> str:
        """Return the collection whose passages are indexed for the queries of a collection."""
        return self.passages.get(collection, collection)

    def check(self, config: Config, name: str) -> None:
        """Refuse other passages than expanded ones of the same collection."""
        for collection, other in self.passages.items():
            own = config.collections[collection].settings
            expanded = config.collections.get(other)
            if expanded is None or expanded.source != "expanded" or expanded.settings.base != own:
                words = f" is {other}; expected a collection of source expanded, whose `of` equals"
                words = f"{words} collections.{collection}"
                raise InputError(words, keys=("passages", collection))


@settings
class External(Searched):
    """A published retriever, searched without further training."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "external"
    third_party = True

    kind: Literal["external"] = "external"
    model: Annotated[HomePath, Field(min_length=1)] = REQUIRED
    """A retriever in the format of sentence-transformers: a folder, or a name at the hub."""
    head: Literal["auto", "dense", "sparse", "multi"] = "auto"
    """What it computes; auto: by its files. sparse: SPLADE; multi: ColBERT."""
    engine: Engine = "exact"
    query_length: Natural = 0
    """Maximum length of a query (word-pieces); 0: the model's own."""
    passage_length: Natural = 0
    """Maximum length of a passage (word-pieces); 0: the model's own."""
    query_prompt: str = ""
    """Text before each query; empty: the model's own."""
    passage_prompt: str = ""
    """Text before each passage; empty: the model's own."""

    def check(self, config: Config, name: str) -> None:
        """Refuse a missing folder, and a search that does not fit its vectors."""
        pretrained.check(self.model, ("model",))
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the kind of its vectors; for a model at the hub only `head` can tell."""
        return pretrained.kind_of_vectors(self.model) if self.head == "auto" else self.head


@settings
class TrecRun(System):
    """Third-party runs, read from files."""

    third_party = True

    kind: Literal["run"] = "run"
    runs: Annotated[dict[str, dict[str, HomePath]], Of("collections")]
    """TREC files by collection and split, as in {pydocs: {dev: theirs.trec}}, or tables of pairs
    with scores or negatives, but not .tsv.
    """

    def check(self, config: Config, name: str) -> None:
        """Refuse missing files, and measured splits without a run."""
        for collection, files in self.runs.items():
            for split, file in files.items():
                if not os.path.isfile(file):
                    words = "which is not a file; expected a run in TREC format"
                    keys = ("runs", collection, split)
                    raise InputError(f" is {show(file)}, {words}", keys=keys)
        mined = [on for owner, *on in systems.mined(config) if owner == name]
        for collection, split in [*systems.targets(config), *mined]:
            if split not in self.runs.get(collection, {}):
                words = "on which it is measured, mined or used as a teacher"
                words = f" lacks {split} of {collection}, {words}"
                raise InputError(words, keys=("runs",))


MOST_TUNED = 4  # the most systems whose weights are tuned


@settings
class Fusion(System):
    """A weighted sum of the reciprocal ranks or scores of several systems."""

    neural = False
    answered_by = "fusion"

    kind: Literal["fusion"] = "fusion"
    of: Annotated[tuple[str, ...], Of("systems"), Field(min_length=2)]
    """Two or more systems."""
    method: Literal["reciprocal_rank", "convex"] = "reciprocal_rank"
    """The summands: 1 / (k + rank) [Cormack et al. 2009], or scores scaled to 0 .. 1 [Bruch et al.
    2023].
    """
    k: PositiveReal = 60.0
    """Constant in 1 / (k + rank) [Cormack et al. 2009]."""
    weights: tuple[Weight, ...] = ()
    """Weight of each system; empty: equal weights, unless `tuned_on` chooses them."""
    tuned_on: tuple[str, ...] = ()
    """Collection and split that choose the weights by the first measure, as in [pydocs, dev]."""

    def parts(self) -> list[str]:
        """Return the names of the systems that it sums."""
        return list(self.of)

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return the systems, the collection and the measure by which its weights are tuned."""
        if not self.tuned_on:
            return {"tuning_systems": (), "tuning_collection": "", "tuning_measure": ""}
        return {
            "tuning_systems": self.of,
            "tuning_collection": self.tuned_on[0],
            "tuning_measure": config.evaluation.measured(*self.tuned_on)[0],
        }

    def check(self, config: Config, name: str) -> None:
        """Refuse weights that do not match the systems, and a split that is not evaluated."""
        if self.weights and (len(self.weights) != len(self.of) or not any(self.weights)):
            raise unfit(
                self, "weights", f"; expected one for each of the {len(self.of)} systems, not all 0"
            )
        targets = systems.targets(config)
        if self.tuned_on and self.tuned_on not in targets:
            choices = ", ".join(show(list(target)) for target in targets) or "an evaluated split"
            raise unfit(self, "tuned_on", f"; expected one of {choices}")
        if self.tuned_on and len(self.of) > MOST_TUNED:
            raise unfit(self, "of", f"; expected up to {MOST_TUNED} systems with tuned_on")
