"""A retriever: an encoder that a stage trains; its vectors are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le

from cdmae.config import pretrained
from cdmae.config.kinds._system import (
    Columns,
    Made,
    Searched,
    Trained,
    check_kind,
    check_searched,
)
from cdmae.fields import Of, Real, Share, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Retriever(Searched, Trained):
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

    def check(self, config: Config, name: str) -> None:
        """Refuse teachers, an engine or candidates that do not fit."""
        super().check(config, name)
        stage = config.stages[self.stage]
        for key in ("denoise", "labels", "margin_bins"):
            if getattr(stage, key) and not self.teacher:
                words = f", where {key} is {getattr(stage, key)}, which needs a teacher"
                raise unfit(self, "stage", f"{words}; expected {key} 0, or a teacher")
        for key, kind in (("in_batch_teacher", "retriever"), ("joint_teacher", "reranker")):
            if getattr(self, key):
                check_kind(self, key, config.systems, kind)
                self.check_start(key, config)
        if self.joint_teacher and self.teacher:
            words = f", but teacher is {self.teacher}; expected one of the two"
            raise unfit(self, "joint_teacher", words)
        check_searched(self, config)
        if self.engine == "bm25" and stage.target != "recall":
            words = f", but the stage {self.stage} has target ranking; expected exact or lucene"
            raise unfit(self, "engine", words)
        self._check_lm_head(config)

    def _check_lm_head(self, config: Config) -> None:
        """Refuse a sparse head on a checkpoint without the language-model head that it needs."""
        encoder = config.encoders[self.encoder]
        checkpoint = config.starts[encoder.start].checkpoint
        stage = config.stages[self.stage]
        reads = stage.head == "unified" or (stage.head == "sparse" and stage.pieces == "all")
        if encoder.pretrained or not checkpoint or not reads:
            return
        if not pretrained.has_lm_head(checkpoint):
            words = (
                f", whose head is {stage.head}, but {checkpoint} has no language-model head; "
                "expected a stage with pieces own, or an encoder that is pre-trained"
            )
            raise unfit(self, "stage", words)

    def vectors(self, config: Config) -> str:
        """Return the head that its stage trains."""
        return config.stages[self.stage].head

    def files(self, config: Config, name: str, made: Made) -> Columns:
        """Return the folders of its model and its vectors."""
        return {"model": made("trained"), "vectors": made("vectors")}
