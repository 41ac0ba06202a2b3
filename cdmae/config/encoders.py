"""Settings of encoders: a class for each objective of pre-training.

Each class also has the facts that the model card and the trainer need. The networks are in
``cdmae/pretraining/objectives``, with one file for each objective except ``none``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from annotated_types import Gt, Le
from pydantic import Field

from cdmae.config import checks
from cdmae.errors import InputError
from cdmae.fields import (
    REQUIRED,
    HomePath,
    Length,
    Name,
    Natural,
    Of,
    Positive,
    PositiveReal,
    Precision,
    Rate,
    Real,
    Seed,
    Share,
    Weight,
    asdict,
    kinds_of,
    settings,
    suggestion,
    tags,
    unfit,
)

if TYPE_CHECKING:
    from cdmae.config.schema import Config


class Strategy(NamedTuple):
    """A masking strategy, without its code.

    in_words: a description of the masked words, for model cards. reads: what it needs besides the
    passages, with the settings that give it: ``importance``, or only the ``ngrams`` behind it
    (`importance`), the noise ``sigma`` (`sigma`), and importance with the ``unit word``.
    """

    in_words: str
    reads: tuple[str, ...] = ()


STRATEGIES = {
    "idf": Strategy("preferably words that occur in few passages"),
    "importance": Strategy(
        "words that are important by average mutual information", ("importance", "sigma")
    ),
    "inverse_frequency": Strategy("preferably rare words"),
    "pmi_span": Strategy("with collocations as units", ("ngrams", "unit word")),
    "span": Strategy("in contiguous spans"),
    "uniform": Strategy("words at random"),
    "whole_word": Strategy("words at random"),
}
MaskRatio = Annotated[Real, Gt(0), Le(0.95)]
Masking = Literal[tuple(STRATEGIES)]


@settings
class Encoder:
    """An encoder; the class attributes describe an encoder without pre-training."""

    pretrained = False  # whether it is pre-trained
    maskings = ()  # the maskings of the encoder and of the decoder, in this order
    collection = after = importance = generator = ""
    take_step = 0
    in_words = ""

    start: Annotated[Name, Of("starts")]
    """Initial weights, of `starts`."""
    seed: Seed = -1

    def reading(self, *needs: str) -> list[str]:
        """List the maskings that read one of the `needs` (`cdmae.config.encoders`)."""
        return [name for name in self.maskings if {*needs} & {*STRATEGIES[name].reads}]

    @property
    def masked_by_importance(self) -> bool:
        """Return whether the encoder's or the decoder's mask is importance-aware."""
        return bool(self.reading("importance"))

    @property
    def reads_importance(self) -> bool:
        """Return whether a mask reads the importance values, or the n-grams behind them."""
        return bool(self.reading("importance", "ngrams"))

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect; `cdmae.config.load` resets them to their defaults."""
        return ()

    def values(self) -> dict[str, Any]:
        """Return the settings that its objective uses."""
        return asdict(self)

    def check(self, config: Config) -> None:
        """Refuse settings that conflict with other entries; keys in errors start at the entry."""


@settings
class Pretraining(Encoder):
    """A pre-trained encoder: the settings of all objectives.

    decoder_layers: the number of Transformer layers in addition to the encoder's.
    held_layers: the number of these layers with activations in memory at the same time.
    passes: the number of the encoder's passes with activations in memory at the same time.
    spans: the number of parts of a passage that the encoder reads separately.
    in_words: the end of the sentence "Its encoder was pre-trained ..." in model cards. `{masked}`
    in it stands for a description of the masked words.
    """

    pretrained, pooling, projection = True, "cls", False
    decoder_layers, held_layers = 0, 2
    passes = 1
    spans = 1
    in_words = ""

    after: Annotated[str, Of("encoders")] = ""
    """Encoder that it continues, with the same `start` [table 5]."""
    collection: Annotated[Name, Of("collections")] = REQUIRED
    """Collection that it reads."""
    encoder_masking: Masking = "whole_word"
    """Masking of the encoder's input [decision 11]."""
    importance: Annotated[str, Of("importance")] = ""
    """Entry of `importance`."""
    encoder_ratio: MaskRatio = 0.3
    """Share of masked tokens, p_enc [4.1]."""
    sigma: Weight = 1.0
    """Standard deviation of noise on importance (nats); .inf: noise alone [3.2]."""
    mask_share: Share = 0.8
    """Share of [MASK] among masked tokens [eq. 1]."""
    random_share: Share = 0.1
    """Share of random ones among masked tokens [eq. 1]."""
    max_length: Length = 150
    """Longest passage (word-pieces) [4.3]."""
    batch: Positive = 2048
    """Passages per step, on all devices [A]."""
    epochs: PositiveReal = 20
    """Passes over the collection [A]."""
    steps: Natural = 0
    """Number of steps; 0: by `epochs` [A: 86,346]."""
    take_step: Natural = 0
    """Step that gives the weights; 0: the last [A: 80,000]."""
    learning_rate: Rate = 3e-4
    """Peak of the linear schedule [A]."""
    weight_decay: Weight = 0.01
    """Weight decay of AdamW [A]."""
    warmup_ratio: Share = 0.1
    """Share of warm-up steps [A]."""
    max_grad_norm: PositiveReal = 1.0
    """Maximum norm of gradients [SimLM]."""
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        """Refuse shares that add up to more than 1."""
        if self.mask_share + self.random_share > 1 + 1e-9:
            words = f" and random_share is {self.random_share}; expected a sum of at most 1"
            raise unfit(self, "mask_share", words)

    @property
    def maskings(self) -> tuple[str, ...]:
        """List the maskings of its objective: the encoder's, then the decoder's if it has one."""
        return (self.encoder_masking,)

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect."""
        has_effect = {
            "sigma": bool(self.reading("sigma")),
            "importance": self.reads_importance,
            "epochs": not self.steps,
        }
        return tuple(key for key, has in has_effect.items() if not has)

    def masking(self) -> dict[str, Any]:
        """Return the settings of the masks that `cdmae.masking.terms` describes."""
        return {
            "strategy": self.encoder_masking,
            "ratio": self.encoder_ratio,
            "sigma": self.sigma,
            "max_length": self.max_length,
        }

    def check(self, config: Config) -> None:
        """Refuse settings that conflict with the start, the importance or the earlier encoders."""
        if self.reads_importance and not self.importance:
            words = f" is missing, which a masking needs; {suggestion('', config.importance)}"
            raise InputError(words, keys=("importance",))
        start = config.starts[self.start]
        before = config.encoders[self.after].start if self.after else self.start
        if self.start != before:
            words = f"; expected {before}, the start of encoders.{self.after}, which it continues"
            raise unfit(self, "start", words)
        by_words = self.reading("unit word")
        if by_words and config.importance[self.importance].unit != "word":
            words = f"; expected for {by_words[0]}: an entry with unit word"
            raise unfit(self, "importance", words)
        owner = f"starts.{self.start}.positions"
        checks.check_lengths({"max_length": self.max_length}, start.known_positions(), owner)


@settings
class Pooled(Pretraining):
    """An objective that trains a vector from the last layer."""

    pooling: Literal["cls", "mean"] = "cls"
    """Vector: the first token's state, or the mean of all [eq. 2]."""


@settings
class DecoderMasked(Pretraining):
    """An objective with a separate mask for its decoder."""

    decoder_masking: Masking = "importance"
    """Masking of the decoder's input [Algorithm 1]."""
    decoder_ratio: MaskRatio = 0.5
    """Share of masked tokens, p_dec [4.1]."""

    @property
    def maskings(self) -> tuple[str, ...]:
        """List the masking of the encoder and of the decoder."""
        return (self.encoder_masking, self.decoder_masking)

    def masking(self) -> dict[str, Any]:
        """Return the settings of the decoder's masks if they are importance-aware."""
        if "importance" not in STRATEGIES[self.decoder_masking].reads:
            return super().masking()
        decoder = {"strategy": self.decoder_masking, "ratio": self.decoder_ratio}
        return super().masking() | decoder


@settings
class Decoded(DecoderMasked, Pooled):
    """An objective with a separately masked decoder that reads a vector from the last layer."""


@settings
class Layered(Pretraining):
    """An objective with a configurable decoder depth."""

    decoder_layers: Positive = 2
    """Transformer layers of a decoder [3.1]."""

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers with activations in memory at the same time."""
        return self.decoder_layers


@settings
class Bagged(Pretraining):
    """An objective that predicts a passage's bag of words."""

    bag_weight: Weight = 1.0
    """Weight of the bag of words."""


# --- the objectives -------------------------------------------------------------------------------


@settings
class EarlyLayers(Layered):
    """An encoder with a head that reads the tokens' states after the early layers."""

    early_layers: Natural = 0
    """Encoder layers before the head's token states; 0: half of all [Condenser]."""

    def check_layers(self, layers: int, owner: str) -> None:
        """Refuse `early_layers` that leave no late layers in the encoder."""
        if self.early_layers >= layers:
            raise unfit(
                self, "early_layers", f"; expected up to {layers - 1}, {owner} has {layers} layers"
            )


@settings
class Condenser(EarlyLayers):
    """A head over late [CLS] and early token states."""

    in_words = "with Condenser's head over late [CLS] and early token states (Gao and Callan 2021)"

    objective: Literal["condenser"] = "condenser"


@settings
class BowDpr(Bagged, Pooled):
    """A bag of words, without a decoder."""

    in_words = "with bag-of-words prediction from the [CLS] vector (Ma et al. 2024)"

    objective: Literal["bowdpr"] = "bowdpr"


@settings
class CoCondenser(EarlyLayers):
    """Condenser's head, and a contrast of neighbouring spans."""

    spans = 2
    in_words = "with coCondenser's head and contrast of neighbouring texts (Gao and Callan 2022)"

    objective: Literal["cocondenser"] = "cocondenser"


MASKS = ("encoder_masking", "encoder_ratio", "mask_share", "random_share", "sigma", "importance")


@settings
class Contriever(Pooled):
    """A contrast of two crops, without masks."""

    spans = 2
    in_words = "with Contriever's contrast of independent crops (Izacard et al. 2022)"

    objective: Literal["contriever"] = "contriever"
    pooling: Literal["cls", "mean"] = "mean"
    """As above; should equal its retrievers' `pooling`."""
    crop_least: Rate = 0.05
    """Shortest crop, as a share of the passage."""
    crop_most: Rate = 0.5
    """Longest crop, as a share of the passage."""
    deletion: Share = 0.1
    """Share of deleted tokens."""
    temperature: PositiveReal = 0.05
    """Divides the dot products."""

    @property
    def maskings(self) -> tuple[str, ...]:
        """Return no masking: every token is visible."""
        return ()

    @property
    def unread(self) -> tuple[str, ...]:
        """List the settings without effect: it masks nothing."""
        return (*super().unread, *MASKS)

    def values(self) -> dict[str, Any]:
        """Return all settings except the settings of masks."""
        return asdict(self, MASKS)


@settings
class CotMae(Layered, Decoded):
    """A masked auto-encoder that decodes the neighbouring span."""

    spans = 2
    in_words = "with CoT-MAE's decoding of the neighbouring text (Wu et al. 2023)"

    objective: Literal["cotmae"] = "cotmae"


@settings
class DupMae(Bagged, Decoded):
    """Enhanced decoding and a bag of words."""

    in_words = "with DupMAE's enhanced decoding and bags of words (Xiao et al. 2023)"
    decoder_layers = 1

    objective: Literal["dupmae"] = "dupmae"


@settings
class LexMae(Layered, DecoderMasked):
    """A distribution over the vocabulary as the bottleneck."""

    in_words = (
        "with LexMAE's decoder, which restores masked words from the passage's distribution over\n"
        "the vocabulary (Shen et al. 2023)"
    )

    objective: Literal["lexmae"] = "lexmae"


@settings
class Mae(Layered, Decoded):
    """A masked auto-encoder; CDMAE with decoder_masking importance [3.1]."""

    in_words = (
        "as a masked auto-encoder: a shallow decoder restores masked words from the [CLS] vector,\n"
        "here {masked} (Li et al. 2023, *Challenging Decoder helps in Masked Auto-Encoder\n"
        "Pre-training for Dense Passage Retrieval*)"
    )

    objective: Literal["mae"] = "mae"
    projection: bool = True
    """Linear projection of the vector, equation 4 [table 4]."""


@settings
class Master(Layered, Decoded):
    """Several decoders of the passage and its neighbour."""

    in_words = (
        "with MASTER's decoders of the passage and of its neighbour and, if there is one,\n"
        "of the words that a second pass of the encoder sees (Zhou et al. 2022)"
    )
    spans = 2

    objective: Literal["master"] = "master"
    complement_ratio: Share = 0.5
    """Share of words masked in a second pass of the encoder; 0: no such pass."""

    @property
    def has_complement(self) -> bool:
        """Return whether there is a second pass of the encoder, with a decoder of its own."""
        return self.complement_ratio > 0

    @property
    def held_layers(self) -> int:
        """Return the number of decoder layers whose activations are in memory at the same time."""
        return self.decoder_layers * (1 + self.has_complement)

    @property
    def passes(self) -> int:
        """Return the number of the encoder's passes."""
        return 1 + self.has_complement


@settings
class Mlm(Pretraining):
    """Masked language modelling; ROM with encoder_masking importance."""

    in_words = "with masked language modelling alone; the masked words are {masked}"

    objective: Literal["mlm"] = "mlm"


@settings
class NotPretrained(Encoder):
    """No pre-training: the initial weights."""

    objective: Literal["none"] = "none"


@settings
class RetroMae(Decoded):
    """Enhanced decoding: one decoder layer that predicts every token."""

    in_words = "with RetroMAE's enhanced decoding (Xiao et al. 2022)"
    decoder_layers = 1

    objective: Literal["retromae"] = "retromae"


@settings
class SeedEncoder(Layered, Pooled):
    """A weak decoder that sees the vector and the last tokens."""

    in_words = "with SEED-Encoder's weak autoregressive decoder (Lu et al. 2021)"

    objective: Literal["seed"] = "seed"
    decoder_layers: Positive = 3
    """Transformer layers of the decoder."""
    attention_span: Positive = 2
    """Tokens that the decoder sees besides the vector."""


@settings
class SimLm(Layered, Decoded):
    """Replaced language modelling."""

    in_words = "with SimLM's replaced language modelling (Wang et al. 2023)"

    objective: Literal["simlm"] = "simlm"
    generator: HomePath = ""
    """A frozen generator with the same vocabulary, as in SimLM; empty: a small one is trained."""

    def check_layers(self, layers: int, owner: str) -> None:
        """Refuse a decoder that is deeper than the encoder."""
        if self.decoder_layers > layers:
            words = (
                f"; expected up to {layers}, the layers of {owner}, since the decoder of simlm "
                "begins as a copy of the last layers"
            )
            raise unfit(self, "decoder_layers", words)


AnyEncoder = Annotated[
    BowDpr
    | CoCondenser
    | Condenser
    | Contriever
    | CotMae
    | DupMae
    | LexMae
    | Mae
    | Master
    | Mlm
    | NotPretrained
    | RetroMae
    | SeedEncoder
    | SimLm,
    Field(discriminator="objective"),
]
OBJECTIVES = {tags(kind)["objective"]: kind for kind in kinds_of(AnyEncoder)}
