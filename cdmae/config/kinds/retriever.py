"""A retriever: an encoder that a stage trains; its vectors are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import (
    Columns,
    Made,
    Part,
    Trained,
    check_candidates,
    check_engine,
    check_kind,
)
from cdmae.fields import Of, Real, Share, Whole, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Retriever(Trained):
    """A retriever trained by a stage, and the search over its vectors."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["retriever"] = "retriever"
    """The vectors of an encoder that a stage trains."""
    in_batch_teacher: Annotated[str, Of("systems")] = ""
    """A second teacher: the trained retriever, with the same start, whose scores of all passages of
    a batch are distilled, too [TAS-B: ColBERT].
    """
    joint_teacher: Annotated[str, Of("systems")] = ""
    """Instead of `teacher`: the trained reranker, with the same start, that is trained further
    together with this retriever, by the list-wise loss and by the divergence from the retriever; it
    is written to the subfolder `teacher` of the retriever's folder [RocketQAv2, EMNLP 2021].
    """
    engine: Literal["exact", "lucene", "bm25"] = "exact"
    """How sparse vectors are searched: exact, by products of vectors; lucene, in an inverted index
    that stores the weights x 100 as whole numbers; bm25, of a stage with target recall: by BM25,
    with the weights x 100 as term frequencies [bm25: DeepCT, section 3.2].
    """
    k1: Annotated[Real, Ge(0), Le(100)] = 10.0
    """With engine bm25: saturation of term frequencies, which go up to 100 [DeepCT's README, tuned
    on MS MARCO; its authors call tuning critical].
    """
    b: Share = 0.9
    """With engine bm25: normalisation by length [DeepCT's README, tuned on MS MARCO]."""
    candidates: Annotated[str, Of("systems")] = ""
    """The system whose best passages are scored, for a retriever with a vector per word-piece;
    none: all passages are, which a small collection allows [ColBERT: BM25].
    """
    candidates_depth: Annotated[Whole, Ge(1), Le(100_000)] = 1000
    """Number of the best passages of `candidates` that are scored (passages) [ColBERT: 1000]."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []

    def columns(self, config: Config, name: str) -> Columns:
        """Add the name of the folder of its vectors."""
        return super().columns(config, name) | {"folder": name}

    def check(self, config: Config, name: str) -> None:
        """Refuse teachers, an engine or candidates that do not fit."""
        super().check(config, name)
        self._check_taught(config)
        if self.in_batch_teacher:
            self._check_in_batch(config)
        if self.joint_teacher:
            self._check_joint(config)
        check_engine(self, config)
        check_candidates(self, config)
        if self.engine == "bm25" and config.stages[self.stage].target != "recall":
            words = (
                f", but the stage {self.stage} has target ranking; expected exact, lucene, or a "
                "stage with target recall"
            )
            raise unfit(self, "engine", words)
        self._check_lm_head(config)

    def _check_taught(self, config: Config) -> None:
        """Refuse settings of the stage that need a teacher, without one."""
        stage = config.stages[self.stage]
        selecting = {key: getattr(stage, key) for key in ("denoise", "labels", "margin_bins")}
        for key, value in selecting.items():
            if value and not self.teacher:
                words = (
                    f", where {key} is {value}, which needs a teacher; expected a stage with {key} "
                    "0, or a teacher"
                )
                raise unfit(self, "stage", words)

    def _check_in_batch(self, config: Config) -> None:
        """Refuse a second teacher of another kind or start, or without in-batch negatives."""
        trained = "a trained retriever"
        check_kind(
            self, "in_batch_teacher", config.systems, lambda one: one.kind == self.kind, trained
        )
        self._check_tokenizer("in_batch_teacher", config)
        if not config.stages[self.stage].in_batch:
            words = f", but the stage {self.stage} has in_batch false; expected in_batch true"
            raise unfit(self, "in_batch_teacher", words)

    def _check_joint(self, config: Config) -> None:
        """Refuse a joint teacher of another kind or start, or in addition to a teacher."""
        trained = "a trained reranker"
        check_kind(
            self, "joint_teacher", config.systems, lambda one: one.kind == "reranker", trained
        )
        self._check_tokenizer("joint_teacher", config)
        if self.teacher:
            words = f", but teacher is {self.teacher}; expected one of the two"
            raise unfit(self, "joint_teacher", words)

    def _check_tokenizer(self, key: str, config: Config) -> None:
        """Refuse a teacher that reads the texts with another tokenizer."""
        start = config.encoders[config.systems[getattr(self, key)].encoder].start
        if config.encoders[self.encoder].start != start:
            words = f", which has the tokenizer of starts.{start}; expected the same start"
            raise unfit(self, key, words)

    def is_sparse(self, config: Config) -> bool:
        """Return whether its stage trains a sparse head."""
        return config.stages[self.stage].head == "sparse"

    def is_multi(self, config: Config) -> bool:
        """Return whether its stage trains a multi-vector head."""
        return config.stages[self.stage].head == "multi"

    def is_unified(self, config: Config) -> bool:
        """Return whether its stage trains a dense and a sparse head."""
        return config.stages[self.stage].head == "unified"

    def _check_lm_head(self, config: Config) -> None:
        """Refuse a sparse head on a checkpoint without the language-model head that it needs."""
        encoder = config.encoders[self.encoder]
        start = config.starts[encoder.start]
        stage = config.stages[self.stage]
        if stage.head not in ("sparse", "unified") or encoder.pretrained:
            return
        if stage.head == "sparse" and stage.pieces == "own":
            return  # its layer is new
        if start.checkpoint and not pretrained.has_lm_head(start.checkpoint):
            words = (
                f", whose head is {stage.head}, but {start.checkpoint}, the checkpoint of "
                f"{self.encoder}, has no language-model head; expected a checkpoint with one, a "
                "stage with pieces own, or an encoder that is pre-trained"
            )
            raise unfit(self, "stage", words)

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Add the folders of its model and its vectors."""
        model = made("trained")
        vectors = made("vectors", asked=not systems.keeps_vectors(config, name))
        return super().asked(config, name, made, part) | {"model": model, "vectors": vectors}

    def in_words(self) -> str:
        """Name its encoder."""
        best = f", orders the best {self.candidates_depth} of {self.candidates}"
        return f"retriever from {self.origin}{best if self.candidates else ''}"
