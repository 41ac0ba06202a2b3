"""The base classes of kinds of systems, with the defaults that most kinds keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cdmae.config import systems
from cdmae.fields import REQUIRED, Name, Of, asdict, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

Engine = Literal["exact", "lucene"]
# passages that a multi-vector system scores without candidates: half a second a query on a core
MOST_EXHAUSTIVE = 200_000
# the keys of a system with the names of other systems: teachers, and all that its training reads
TEACHERS = ("teacher", "in_batch_teacher", "joint_teacher")
LEARNT_FROM = ("after", "negatives", *TEACHERS)
# settings of a stage that determine a model's weights
WEIGHTS = ("head", "dimensions", "match", "cls_dimensions", "pieces")
Columns = dict[str, Any]  # a system's values in `cdmae.config.systems.systems`, by column
# returns the path of a result by its name in `cdmae.layout`; refuses a missing result
Made = Callable[..., str]
# returns the result of `asked` for the named system, on which another system depends
Part = Callable[[str], Columns]


@settings
class System:
    """A system, which ranks passages for queries; the class attributes describe a kind."""

    trained = False  # has a model of its own
    searches = True  # searches a whole collection, so that its run can provide negatives
    answers = True  # can answer a user's own query
    third_party = False  # a third party made it; its size is unknown
    # as a teacher, scores the passages that a training draws, not only those of its own run
    scores_draws = False
    weighs = False  # a job writes the weights of the systems that it sums
    lexical = False  # compares words
    neural = True  # has a network, or may have one
    index = ""  # the path of its index, below the results, for a collection that is only searched
    answered_by = ""  # the module of `cdmae.retrieval` that answers a user's query
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

    def is_sparse(self, config: Config) -> bool:
        """Return whether its vectors are certainly sparse."""
        return False

    def is_multi(self, config: Config) -> bool:
        """Return whether its passages are known to have a vector per word-piece."""
        return False

    def is_unified(self, config: Config) -> bool:
        """Return whether it sums the scores of a dense and a sparse head."""
        return False

    def is_dense(self, config: Config) -> bool:
        """Return whether it has one vector per text, as far as the config tells."""
        several = self.is_sparse(config) or self.is_multi(config) or self.is_unified(config)
        return bool(self.encoded_by) and not several

    def model_of(self, config: Config, name: str) -> str:
        """Return the system with the trained model in use: itself or another; or ""."""
        return name if self.trained else ""

    def positions(self, config: Config) -> int | None:
        """Return its model's longest input; None without a model, or if only a job knows it."""
        return None

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Return the values that `cdmae.retrieval.asking` needs to answer a user's query."""
        parts = [part(other) for other in self.parts()]
        modules = {"answered_by": self.answered_by, "encoded_by": self.encoded_by}
        return self.values() | modules | {"name": name, "parts": parts}

    def in_words(self) -> str:
        """Describe the system for the report's table of systems."""
        raise NotImplementedError


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

    @property
    def origin(self) -> str:
        """Return the name of the entry with the initial weights."""
        return self.after or self.encoder

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
        return columns | {"ranking": ".".join([self.teacher, *systems.trains_on(config, name)])}

    def positions(self, config: Config) -> int | None:
        """Return the longest input of its initial checkpoint."""
        return config.starts[config.encoders[self.encoder].start].known_positions()

    def check(self, config: Config, name: str) -> None:
        """Refuse a stage of another kind, negatives of no search, and weights that do not fit."""
        kind = self.kind  # the kind of the class that has this key
        check_kind(
            self,
            "stage",
            config.stages,
            lambda stage: stage.kind == kind,
            f"a stage of kind {kind}",
        )
        searching = "a system that searches a whole collection"
        check_kind(self, "negatives", config.systems, lambda system: system.searches, searching)
        if self.after:
            self._check_after(config)

    def _check_after(self, config: Config) -> None:
        """Refuse weights of another network, or of another head."""
        kind = self.kind
        check_kind(
            self,
            "after",
            config.systems,
            lambda system: system.trained and system.kind == kind,
            f"a trained system of kind {kind}",
        )
        other = config.systems[self.after]
        start = config.encoders[other.encoder].start
        if config.encoders[self.encoder].start != start:
            words = f", whose initial weights are those of starts.{start}; expected the same start"
            raise unfit(self, "after", words)
        own = config.stages[self.stage].model()
        theirs = config.stages[other.stage].model()
        for key in WEIGHTS:
            if own.get(key) != theirs.get(key):
                words = (
                    f", whose stage {other.stage} has another {key} than {self.stage}; expected a "
                    "system with the same head and dimensions"
                )
                raise unfit(self, "after", words)


def check_kind(
    system: System, key: str, entries: dict[str, Any], fits: Callable[[Any], bool], what: str
) -> None:
    """Refuse a named entry unless it `fits`; what: a description of valid entries."""
    kind = entries[getattr(system, key)].kind
    if not fits(entries[getattr(system, key)]):
        fitting = (
            ", ".join(name for name, entry in entries.items() if fits(entry)) or "there is none"
        )
        raise unfit(system, key, f", of kind {kind}; expected {what} ({fitting})")


def check_candidates(system: System, config: Config) -> None:
    """Refuse candidates for single vectors, from a system that does not search, or in excess."""
    if not system.candidates:
        return
    if not system.is_multi(config):
        words = ", but passages are not known to have a vector per word-piece; expected head multi"
        raise unfit(system, "candidates", words)
    searching = "a system that searches a whole collection"
    check_kind(system, "candidates", config.systems, lambda other: other.searches, searching)
    most = config.evaluation.depth
    if system.candidates_depth > most:
        raise unfit(system, "candidates_depth", f"; expected up to evaluation.depth, {most}")


def check_engine(system: System, config: Config) -> None:
    """Refuse Lucene for dense vectors, and for vectors that are not stored."""
    if system.engine == "exact":
        return
    if not system.is_sparse(config):
        raise unfit(
            system,
            "engine",
            ", but nothing in the config says that the vectors are sparse; expected exact",
        )
    if not config.evaluation.keep_vectors:
        words = ", but evaluation.keep_vectors is false; expected exact, or keep_vectors: true"
        raise unfit(system, "engine", words)
