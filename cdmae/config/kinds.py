"""Kinds of systems: classes with settings, checks, and methods for the workflow.

The code that searches or orders passages is in `cdmae.retrieval`, the rules are in
``workflow/rules``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cdmae.config import pretrained, systems
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    REQUIRED,
    Entry,
    HomePath,
    Name,
    Natural,
    Of,
    Positive,
    PositiveReal,
    Share,
    Weight,
    settings,
    show,
    unfit,
)

if TYPE_CHECKING:
    from cdmae.config.schema import Config

Engine = Annotated[
    Literal["exact", "lucene"],
    Field(description="Search of sparse vectors; lucene: with weights x 100."),
]
# the keys of a system with the names of other systems: teachers, and all that its training reads
TEACHERS = ("teacher", "in_batch_teacher", "joint_teacher")
LEARNT_FROM = ("after", "negatives", *TEACHERS)
# a system that searches a whole collection: any kind but a reranker
SEARCHING = Of("systems", ("bm25", "retriever", "fusion", "head", "external", "run"))


@settings
class System(Entry):
    """A system, which ranks passages for queries; the class attributes describe a kind."""

    trained = False  # has a model of its own
    answered_by = ""  # the module of `cdmae.retrieval` that answers a user's query; none: it cannot
    encoded_by = ""  # the module that encodes a query as a vector
    # settings of some kinds
    model = encoder = after = stage = candidates = ""
    teacher = in_batch_teacher = joint_teacher = ""
    once = False  # exists for the first seed only

    @property
    def complexity(self) -> int:
        """Return 0 for BM25, 1 for a published retriever, 2 for a trained one, 3 for several."""
        if self.parts():
            return 3
        return {"bm25": 0, "external": 1, "run": 1}.get(self.kind, 2)

    def parts(self) -> list[str]:
        """Return the names of the systems that provide the runs to reorder or sum."""
        return []

    @property
    def is_taught(self) -> bool:
        """Return whether a teacher scores its groups of passages."""
        return bool(self.teacher or self.joint_teacher)

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return values for the rules in addition to its settings."""
        return {}

    def check(self, config: Config, name: str) -> None:
        """Refuse settings that conflict with other entries; keys in errors start at the entry."""

    def vectors(self, config: Config) -> str:
        """Return the kind of its vectors, as far as the config tells; empty without vectors.

        The kinds are dense, sparse, multi (a vector per word-piece) and unified.
        """
        return ""


@settings
class Searched(System):
    """A system whose vectors are searched, perhaps among the best passages of another system."""

    candidates: Annotated[str, SEARCHING] = ""
    """For head multi: system whose best passages are scored; empty: all [ColBERT: BM25]."""
    candidates_depth: Positive = 1000
    """Number of these passages [ColBERT]."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []


# --- systems with a trained model ----------------------------------------------------------------


@settings
class Trained(System):
    """A system with a model of its own, which a stage trains."""

    trained = True

    encoder: Annotated[Name, Of("encoders")] = REQUIRED
    """Initial weights, of `encoders`."""
    after: Annotated[str, Of("systems", same_kind=True)] = ""
    """System that it continues, as in rounds [ANCE, AR2]."""
    stage: Annotated[Name, Of("stages", same_kind=True)] = REQUIRED
    """Entry of `stages`, of the same kind."""
    negatives: Annotated[Name, SEARCHING]
    """System that gives the negatives [3.4]."""
    teacher: Annotated[str, Of("systems")] = ""
    """System to distil from; all but rerankers score only what they rank [3.4, stage 3]."""
    once: bool = False
    """Train for the first seed only."""

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return the training collection, the settings of sampling, and the teacher.

        passages: the collection that has the passages of the training collection, or itself.
        scores_of: the student that shares its reranker scores. teacher_start: the entry of `starts`
        with the reranker's tokenizer. ranking: the run of any other teacher.
        """
        stage = config.stages[self.stage]
        columns = stage.drawn() | {
            "corpus": stage.collection,
            "passages": config.owner(stage.collection),
            "scores_of": "",
            "ranking": "",
        }
        if not self.teacher:
            return columns
        if config.systems[self.teacher].kind == "reranker":
            start = systems.start_of(config, self.teacher)
            return columns | {
                "scores_of": systems.taught_like(config, name),
                "teacher_start": start,
            }
        part = ".".join(systems.trains_on(config, name))
        return columns | {"ranking": f"{self.teacher}/{part}"}

    def check(self, config: Config, name: str) -> None:
        """Refuse named systems with other initial weights or, for `after`, another head."""
        for key in ("after", "in_batch_teacher", "joint_teacher"):
            other = getattr(self, key)
            start = systems.start_of(config, other or name)
            if config.encoders[self.encoder].start != start:
                words = f", which begins from starts.{start}; expected the same start"
                raise unfit(self, key, words)
        if self.after:
            head = config.systems[self.after].vectors(config)
            if head != self.vectors(config):
                raise unfit(self, "after", f", which has head {head}; expected the same head")


@settings
class Retriever(Searched, Trained):
    """The vectors of an encoder that a stage trains."""

    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["retriever"] = "retriever"
    in_batch_teacher: Annotated[str, Of("systems", ("retriever",))] = ""
    """Second teacher: a retriever that scores all passages of a batch [TAS-B]."""
    joint_teacher: Annotated[str, Of("systems", ("reranker",))] = ""
    """Instead of `teacher`: a reranker trained with this retriever [RocketQAv2]."""
    engine: Literal["exact", "lucene", "bm25"] = "exact"
    """Search of sparse vectors; lucene: with weights x 100; bm25: after target recall, with weights
    x 100 as counts [DeepCT].
    """
    k1: Weight = 10.0
    """With engine bm25: its k1 [DeepCT]."""
    b: Share = 0.9
    """With engine bm25: its b [DeepCT]."""

    def check(self, config: Config, name: str) -> None:
        """Refuse systems, an engine, candidates or a stage that do not fit."""
        super().check(config, name)
        check_searched(self, config)
        stage = config.stages[self.stage]
        if self.engine == "bm25" and stage.target != "recall":
            words = f", but stages.{self.stage} has no target recall; expected exact or lucene"
            raise unfit(self, "engine", words)
        if self.teacher and self.joint_teacher:
            words = f", in addition to teacher {self.teacher}; expected one of them"
            raise unfit(self, "joint_teacher", words)
        for key in ("denoise", "labels", "margin_bins"):
            if getattr(stage, key) and not self.teacher:
                raise unfit(self, "stage", f", whose {key} needs a teacher; expected teacher")

    def vectors(self, config: Config) -> str:
        """Return the head that its stage trains."""
        return config.stages[self.stage].head


@settings
class Reranker(Trained):
    """A cross-encoder that a stage trains; it reorders another system's best passages."""

    answered_by = "reranking"

    kind: Literal["reranker"] = "reranker"
    reranks: Annotated[Name, Of("systems")]
    """System whose run it reorders."""
    depth: Positive = 100
    """Passages that it reorders."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the run to reorder."""
        return [self.reranks]


@settings
class Head(System):
    """One head of a unified retriever, searched alone."""

    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["head"] = "head"
    of: Annotated[Name, Of("systems")]
    """Unified retriever."""
    uses: Literal["dense", "sparse"]
    """Head to search with."""
    engine: Engine = "exact"

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without two heads, and Lucene for the dense head."""
        if config.systems[self.of].vectors(config) != "unified":
            raise unfit(self, "of", "; expected a retriever with head unified")
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the head that it uses."""
        return self.uses


# --- systems without a training -------------------------------------------------------------------


@settings
class Bm25(System):
    """The words that query and passage share [Robertson and Zaragoza 2009]."""

    answered_by = "bm25"

    kind: Literal["bm25"] = "bm25"
    k1: Weight = 0.9
    """Saturation of counts [Anserini]."""
    b: Share = 0.4
    """Normalisation by length [Anserini]."""

    passages: Annotated[dict[str, str], Of("collections")] = EMPTY
    """By collection, one of source `expanded` to index instead."""

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
    """A published retriever, without further training."""

    answered_by = "search"
    encoded_by = "external"

    kind: Literal["external"] = "external"
    model: Annotated[HomePath, Field(min_length=1)] = REQUIRED
    """A sentence-transformers retriever: folder, or name at the hub."""
    head: Literal["auto", "dense", "sparse", "multi"] = "auto"
    """auto: by its files; sparse: SPLADE; multi: ColBERT."""
    engine: Engine = "exact"
    query_length: Natural = 0
    """Longest query (word-pieces); 0: the model's."""
    passage_length: Natural = 0
    """Longest passage (word-pieces); 0: the model's."""
    query_prompt: str = ""
    """Text before each query; empty: the model's."""
    passage_prompt: str = ""
    """Text before each passage; empty: the model's."""

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

    kind: Literal["run"] = "run"
    runs: Annotated[dict[str, dict[str, HomePath]], Of("collections")]
    """TREC files, or tables of pairs (no .tsv), as in {pydocs: {dev: theirs.trec}}."""

    def check(self, config: Config, name: str) -> None:
        """Refuse missing files, and measured splits without a run."""
        for collection, files in self.runs.items():
            for split, file in files.items():
                if not os.path.isfile(file):
                    words = "which is not a file; expected a TREC file or a table of pairs"
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
    """A weighted sum of several systems' reciprocal ranks or scores."""

    answered_by = "fusion"

    kind: Literal["fusion"] = "fusion"
    of: Annotated[tuple[str, ...], Of("systems"), Field(min_length=2)]
    """Two or more systems."""
    method: Literal["reciprocal_rank", "convex"] = "reciprocal_rank"
    """Sums of 1 / (k + rank) [Cormack et al. 2009], or of scaled scores [Bruch et al. 2023]."""
    k: PositiveReal = 60.0
    """Constant in 1 / (k + rank)."""
    weights: tuple[Weight, ...] = ()
    """Weight of each system; empty: equal, unless `tuned_on` chooses them."""
    tuned_on: tuple[str, ...] = ()
    """Collection and split that choose weights by the first measure, as in [pydocs, dev]."""

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
        """Refuse weights that do not match, and a split that is not evaluated."""
        if self.weights and self.tuned_on:
            raise unfit(self, "tuned_on", ", and weights are given; expected one of them")
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


# --- checks --------------------------------------------------------------------------------------


def check_searched(system: System, config: Config) -> None:
    """Refuse candidates for single vectors, and Lucene for vectors that are not sparse."""
    if system.candidates and system.vectors(config) != "multi":
        raise unfit(system, "candidates", ", but its vectors are single; expected head multi")
    if system.engine == "lucene" and system.vectors(config) != "sparse":
        raise unfit(system, "engine", ", but its vectors are not sparse; expected exact")


AnySystem = Annotated[
    Bm25 | Retriever | Reranker | Fusion | Head | External | TrecRun,
    Field(discriminator="kind"),
]
