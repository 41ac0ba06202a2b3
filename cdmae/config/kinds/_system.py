"""The base classes of kinds of systems, with the defaults that most kinds keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import Field

from cdmae.config import systems
from cdmae.fields import REQUIRED, Name, Of, Whole, asdict, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

Engine = Annotated[
    Literal["exact", "lucene"],
    Field(
        description="How sparse vectors are searched: exact, by products of vectors; lucene, in an "
        "inverted index that stores the weights x 100 as whole numbers."
    ),
]
# passages that a multi-vector system scores without candidates: half a second a query on a core
MOST_EXHAUSTIVE = 200_000
# the keys of a system with the names of other systems: teachers, and all that its training reads
TEACHERS = ("teacher", "in_batch_teacher", "joint_teacher")
LEARNT_FROM = ("after", "negatives", *TEACHERS)
Columns = dict[str, Any]  # a system's values in `cdmae.config.systems.systems`, by column
# returns the path of a result by its name in `cdmae.layout`; refuses a missing result
Made = Callable[..., str]


@settings
class System:
    """A system, which ranks passages for queries; the class attributes describe a kind."""

    trained = False  # has a model of its own
    searches = True  # searches a whole collection, so that its run can provide negatives
    third_party = False  # a third party made it; its size is unknown
    # as a teacher, scores the passages that a training draws, not only those of its own run
    scores_draws = False
    lexical = False  # compares words
    neural = True  # has a network, or may have one
    index = ""  # the path of its index, below the results, for a collection that is only searched
    answered_by = ""  # the module of `cdmae.retrieval` that answers a user's query; none: it cannot
    encoded_by = ""  # the module that encodes a query as a vector
    # settings of some kinds
    model = encoder = after = stage = candidates = ""
    teacher = in_batch_teacher = joint_teacher = ""
    once = False  # exists for the first seed only

    def values(self) -> dict[str, Any]:
        """Return the system's settings as plain values."""
        return asdict(self)

    @property
    def complexity(self) -> int:
        """Return 0 for a system that compares words, 1 for a single retriever, and 2 for others."""
        if self.lexical:
            return 0
        return 1 if self.searches and self.neural and not self.parts() else 2

    def parts(self) -> list[str]:
        """Return the names of the systems that provide the runs to reorder or sum."""
        return []

    def teachers(self) -> dict[str, bool]:
        """Return whether it has each kind of teacher, for `cdmae.config.recipe.Stage.values`."""
        return {
            "teacher": bool(self.teacher or self.joint_teacher),
            "in_batch_teacher": bool(self.in_batch_teacher),
        }

    def columns(self, config: Config, name: str) -> Columns:
        """Return values for the rules in addition to its settings."""
        return {}

    def indexed(self, collection: str) -> str:
        """Return the collection whose passages are indexed for the queries of a collection."""
        return collection

    def check(self, config: Config, name: str) -> None:
        """Refuse settings that conflict with other entries; keys in errors start at the entry."""

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse training queries without a run; keys in errors start at the entry."""

    def vectors(self, config: Config) -> str:
        """Return the kind of its vectors, as far as the config tells; empty without vectors.

        The kinds are dense, sparse, multi (a vector per word-piece) and unified.
        """
        return ""

    def model_of(self, config: Config, name: str) -> str:
        """Return the system with the trained model in use: itself or another; or ""."""
        return name if self.trained else ""

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the paths that `cdmae.retrieval.asking` needs to answer a user's query."""
        return {}


@settings
class Searched(System):
    """A system whose vectors are searched, perhaps among the best passages of another system."""

    candidates: Annotated[str, Of("systems")] = ""
    """The system whose best passages are scored, for a retriever with a vector per word-piece;
    none: all passages are, which a small collection allows [ColBERT: BM25].
    """
    candidates_depth: Annotated[Whole, Ge(1), Le(100_000)] = 1000
    """Number of the best passages of `candidates` that are scored (passages) [ColBERT: 1000]."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []


@settings
class Trained(System):
    """A system with a model of its own, which a stage trains."""

    trained = True

    encoder: Annotated[Name, Of("encoders")] = REQUIRED
    """The entry of `encoders` with its initial weights."""
    after: Annotated[str, Of("systems")] = ""
    """The system whose trained weights are the initial weights; empty: those of the encoder. A
    chain of such systems, each with the negatives of the one before, trains in rounds [ANCE, AR2].
    """
    stage: Annotated[Name, Of("stages")] = REQUIRED
    """Entry of `stages`, of the same kind."""
    negatives: Annotated[Name, Of("systems")]
    """The system whose run gives the negatives [3.4]."""
    teacher: Annotated[str, Of("systems")] = ""
    """The system to distil from: a reranker, or any other system, which scores only the passages
    that it ranks; empty: no distillation [3.4, stage 3].
    """
    once: bool = False
    """true: trained for the first seed only, even with several seeds, on the inputs for it."""

    def columns(self, config: Config, name: str) -> Columns:
        """Return the training collection, the start, the settings of sampling, and the teacher.

        scores: the student that shares its reranker scores. teacher_start: the entry of `starts`
        with the reranker's tokenizer. ranking: the run of any other teacher.
        """
        stage = config.stages[self.stage]
        columns = stage.drawn() | {
            "corpus": stage.collection,
            "start": config.encoders[self.encoder].start,
            "scores": "",
            "ranking": "",
        }
        if not self.teacher:
            return columns
        if config.systems[self.teacher].scores_draws:
            start = systems.start_of(config, self.teacher)
            return columns | {"scores": systems.taught_like(config, name), "teacher_start": start}
        part = ".".join(systems.trains_on(config, name))
        return columns | {"ranking": f"{self.teacher}/{part}"}

    def check(self, config: Config, name: str) -> None:
        """Refuse a stage of another kind, negatives of no search, and weights that do not fit."""
        check_kind(self, "stage", config.stages, self.kind)
        check_searches(self, "negatives", config)
        if self.after:
            check_kind(self, "after", config.systems, self.kind)
            self.check_start("after", config)
            other = config.systems[self.after].vectors(config)
            if other != self.vectors(config):
                raise unfit(self, "after", f", which has head {other}; expected the same head")

    def check_start(self, key: str, config: Config) -> None:
        """Refuse a named system with other initial weights, and thus another tokenizer."""
        start = systems.start_of(config, getattr(self, key))
        if config.encoders[self.encoder].start != start:
            raise unfit(self, key, f", which begins from starts.{start}; expected the same start")


def check_kind(system: System, key: str, entries: dict[str, Any], kind: str) -> None:
    """Refuse a named entry of another kind."""
    check_fits(system, key, entries, lambda entry: entry.kind == kind, f"one of kind {kind}")


def check_searches(system: System, key: str, config: Config) -> None:
    """Refuse a named system that does not search a whole collection."""
    what = "a system that searches a whole collection"
    check_fits(system, key, config.systems, lambda entry: entry.searches, what)


def check_fits(
    system: System, key: str, entries: dict[str, Any], fits: Callable[[Any], bool], what: str
) -> None:
    """Refuse a named entry unless it `fits`; what: a description of valid entries."""
    entry = entries[getattr(system, key)]
    if not fits(entry):
        fitting = ", ".join(name for name in entries if fits(entries[name])) or "there is none"
        raise unfit(system, key, f", of kind {entry.kind}; expected {what} ({fitting})")


def check_depth(system: System, key: str, config: Config) -> None:
    """Refuse to read more passages than a run has."""
    most = config.evaluation.depth
    if getattr(system, key) > most:
        raise unfit(system, key, f"; expected up to evaluation.depth, {most}")


def check_searched(system: System, config: Config) -> None:
    """Refuse candidates for single vectors, and Lucene for vectors that are not sparse."""
    if system.candidates:
        if system.vectors(config) != "multi":
            raise unfit(system, "candidates", ", but its vectors are single; expected head multi")
        check_searches(system, "candidates", config)
        check_depth(system, "candidates_depth", config)
    if system.engine == "lucene" and system.vectors(config) != "sparse":
        raise unfit(system, "engine", ", but its vectors are not sparse; expected exact")
