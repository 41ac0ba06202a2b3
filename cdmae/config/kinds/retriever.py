"""A retriever: an encoder that a stage trains; its vectors are searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config import pretrained, systems
from cdmae.config.kinds._system import (
    CANDIDATES,
    CANDIDATES_DEPTH,
    ENGINE,
    Columns,
    Made,
    Part,
    Trained,
    check_candidates,
    check_engine,
    check_kind,
)
from cdmae.fields import rules_of, setting, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class Retriever(Trained):
    """A retriever trained by a stage, and the search over its vectors."""

    index = "vectors/{system}"
    answered_by = "search"
    encoded_by = "vectors"

    kind: Literal["retriever"] = setting(
        "retriever", meaning="the vectors of an encoder that a stage trains"
    )
    in_batch_teacher: str = setting(
        "",
        meaning="a second teacher: the trained retriever, with the same start, whose scores of all "
        "passages of a batch are distilled, too",
        source="TAS-B: ColBERT",
        names="systems",
    )
    joint_teacher: str = setting(
        "",
        meaning="instead of `teacher`: the trained reranker, with the same start, that is trained "
        "further together with this retriever, by the list-wise loss and by the divergence from "
        "the retriever; it is written to the subfolder `teacher` of the retriever's folder",
        source="RocketQAv2, EMNLP 2021",
        names="systems",
    )
    engine: Literal["exact", "lucene", "bm25"] = setting(
        "exact",
        meaning=f"{ENGINE}; bm25, of a stage with target recall: by BM25, with the weights x 100 "
        "as term frequencies",
        source="bm25: DeepCT, section 3.2",
    )
    k1: float = setting(
        10.0,
        meaning="with engine bm25: saturation of term frequencies, which go up to 100",
        source="DeepCT's README, tuned on MS MARCO; its authors call tuning critical",
        low=0,
        high=100,
    )
    b: float = setting(
        0.9,
        meaning="with engine bm25: normalisation by length",
        source="DeepCT's README, tuned on MS MARCO",
        low=0,
        high=1,
    )
    candidates: str = setting("", meaning=CANDIDATES, source="ColBERT: BM25", names="systems")
    candidates_depth: int = setting(
        1000,
        unit="passages",
        meaning=CANDIDATES_DEPTH,
        source="ColBERT: 1000",
        low=1,
        high=100_000,
    )

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []

    def columns(self, config: Config, name: str) -> Columns:
        """Add the name of the folder of its vectors."""
        return super().columns(config, name) | {"folder": name}

    def check(self, config: Config, name: str) -> None:
        """Refuse a teacher without an effect, and an engine or candidates that do not fit."""
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
                f", but the stage {self.stage} has target ranking; allowed: exact, lucene, or a "
                "stage with target recall"
            )
            raise unfit(self, "engine", words)
        self._check_constants()
        self._check_lm_head(config)

    def _check_taught(self, config: Config) -> None:
        """Refuse a teacher without an effect, and settings that have no effect without one."""
        stage = config.stages[self.stage]
        selecting = {key: getattr(stage, key) for key in ("denoise", "labels", "margin_bins")}
        for key, value in selecting.items():
            if value and not self.teacher:
                words = (
                    f", where {key} is {value}, which needs a teacher; allowed: a stage with {key} "
                    "0, or a teacher"
                )
                raise unfit(self, "stage", words)
        if stage.head == "sparse" and stage.target == "recall":
            return
        if self.teacher and stage.distillation == "none" and not any(selecting.values()):
            words = (
                f", but the stage {self.stage} has distillation none, denoise 0, labels 0 and "
                "margin_bins 0, so that the teacher has no effect; allowed: no teacher, or one of "
                "these settings"
            )
            raise unfit(self, "teacher", words)

    def _check_in_batch(self, config: Config) -> None:
        """Refuse a second teacher of another kind or start, or without in-batch negatives."""
        trained = "a trained retriever"
        check_kind(
            self, "in_batch_teacher", config.systems, lambda one: one.kind == self.kind, trained
        )
        self._check_tokenizer("in_batch_teacher", config)
        for name in (self.stage, config.systems[self.in_batch_teacher].stage):
            stage = config.stages[name]
            if stage.head == "sparse" and stage.target == "recall":
                words = f", but the stage {name} has target recall; allowed: target ranking"
                raise unfit(self, "in_batch_teacher", words)
        if not config.stages[self.stage].in_batch:
            words = f", but the stage {self.stage} has in_batch false; allowed: in_batch true"
            raise unfit(self, "in_batch_teacher", words)

    def _check_joint(self, config: Config) -> None:
        """Refuse a joint teacher of another kind or start, or one that has no effect."""
        trained = "a trained reranker"
        check_kind(
            self, "joint_teacher", config.systems, lambda one: one.kind == "reranker", trained
        )
        self._check_tokenizer("joint_teacher", config)
        if self.teacher:
            words = f", but teacher is {self.teacher}; allowed: one of the two"
            raise unfit(self, "joint_teacher", words)
        stage = config.stages[self.stage]
        if stage.head == "sparse" and stage.target == "recall":
            words = f", but the stage {self.stage} has target recall; allowed: target ranking"
            raise unfit(self, "joint_teacher", words)
        if stage.distillation == "none":
            words = f", but the stage {self.stage} has distillation none; allowed: kl, margin_mse"
            raise unfit(self, "joint_teacher", words)

    def _check_tokenizer(self, key: str, config: Config) -> None:
        """Refuse a teacher that reads the texts with another tokenizer."""
        start = config.encoders[config.systems[getattr(self, key)].encoder].start
        if config.encoders[self.encoder].start != start:
            words = f", which has the tokenizer of starts.{start}; allowed: the same start"
            raise unfit(self, key, words)

    def _check_constants(self) -> None:
        """Refuse BM25's constants for a search that does not read them."""
        defaults = rules_of(self)
        for key in ("k1", "b"):
            if self.engine != "bm25" and getattr(self, key) != defaults[key].default:
                raise unfit(self, key, f", but engine is {self.engine}; remove it")

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
                f"{self.encoder}, has no language-model head; allowed: a checkpoint with one, a "
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
