"""Systems with a model that a stage trains, and the single heads of unified retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cdmae.config import systems
from cdmae.config.kinds._system import (
    Engine,
    Searched,
    System,
    check_kind,
    check_searched,
    check_searches,
)
from cdmae.fields import (
    REQUIRED,
    Name,
    Of,
    Positive,
    Share,
    Weight,
    settings,
    unfit,
)

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Trained(System):
    """A system with a model of its own, which a stage trains."""

    trained = True

    encoder: Annotated[Name, Of("encoders")] = REQUIRED
    """Initial weights, of `encoders`."""
    after: Annotated[str, Of("systems")] = ""
    """System that it continues, as in rounds [ANCE, AR2]."""
    stage: Annotated[Name, Of("stages")] = REQUIRED
    """Entry of `stages`, of the same kind."""
    negatives: Annotated[Name, Of("systems")]
    """System that gives the negatives [3.4]."""
    teacher: Annotated[str, Of("systems")] = ""
    """System to distil from [3.4]; any but a reranker scores only the passages that it ranks."""
    once: bool = False
    """Train it for the first seed only."""

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return the training collection, the settings of sampling, and the teacher.

        passages: the collection that has the passages of the training collection, or itself.
        scores: the student that shares its reranker scores. teacher_start: the entry of `starts`
        with the reranker's tokenizer. ranking: the run of any other teacher.
        """
        stage = config.stages[self.stage]
        columns = stage.drawn() | {
            "corpus": stage.collection,
            "passages": config.owner(stage.collection),
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


@settings
class Retriever(Searched, Trained):
    """The vectors of an encoder that a stage trains."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["retriever"] = "retriever"
    in_batch_teacher: Annotated[str, Of("systems")] = ""
    """A second teacher, a trained retriever that scores all passages of a batch [TAS-B]."""
    joint_teacher: Annotated[str, Of("systems")] = ""
    """Instead of `teacher`: a reranker that is trained further with this retriever [RocketQAv2]."""
    engine: Literal["exact", "lucene", "bm25"] = "exact"
    """Search of sparse vectors: exact; by Lucene, with weights x 100; or, after target recall, by
    BM25 with weights x 100 as counts [DeepCT].
    """
    k1: Weight = 10.0
    """With engine bm25: saturation of counts."""
    b: Share = 0.9
    """With engine bm25: normalisation by length."""

    def check(self, config: Config, name: str) -> None:
        """Refuse teachers, an engine or candidates that do not fit."""
        super().check(config, name)
        for key, kind in (("in_batch_teacher", "retriever"), ("joint_teacher", "reranker")):
            if getattr(self, key):
                check_kind(self, key, config.systems, kind)
                self.check_start(key, config)
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the head that its stage trains."""
        return config.stages[self.stage].head


@settings
class Reranker(Trained):
    """A cross-encoder that a stage trains, on another system's best passages."""

    searches = False
    scores_draws = True
    answered_by = "reranking"

    kind: Literal["reranker"] = "reranker"
    reranks: Annotated[Name, Of("systems")]
    """System whose run it reorders."""
    depth: Positive = 100
    """Number of passages that it reorders."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the run to reorder."""
        return [self.reranks]


@settings
class Head(System):
    """One head of a unified retriever, searched alone."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["head"] = "head"
    of: Annotated[Name, Of("systems")]
    """Unified retriever."""
    uses: Literal["dense", "sparse"]
    """The head to search with."""
    engine: Engine = "exact"

    def check(self, config: Config, name: str) -> None:
        """Refuse a system without two heads, and Lucene for the dense head."""
        if config.systems[self.of].vectors(config) != "unified":
            raise unfit(self, "of", "; expected a retriever with head unified")
        check_searched(self, config)

    def vectors(self, config: Config) -> str:
        """Return the head that it uses."""
        return self.uses
