"""Pre-training objectives: settings, checks, and facts for the model card and the trainer.

``cdmae/pretraining/objectives`` has a file with the network of each, except of ``none``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cdmae.config.encoders import (
    Bagged,
    Decoded,
    DecoderMasked,
    Encoder,
    Layered,
    Pooled,
    Pretraining,
)
from cdmae.fields import (
    HomePath,
    Natural,
    Positive,
    PositiveReal,
    Rate,
    Share,
    settings,
    unfit,
)


@settings
class EarlyLayers(Layered):
    """An encoder with a head that reads the tokens' states after the early layers."""

    early_layers: Natural = 0
    """Encoder layers before the head's token states; 0: half [Condenser]."""

    def check_layers(self, layers: int, owner: str) -> None:
        """Refuse `early_layers` that leave no late layers in the encoder."""
        if self.early_layers >= layers:
            raise unfit(
                self, "early_layers", f"; expected up to {layers - 1}, {owner} has {layers} layers"
            )


@settings
class Condenser(EarlyLayers):
    """A head over late [CLS] and early token states [Gao and Callan 2021]."""

    objective: Literal["condenser"] = "condenser"


@settings
class BowDpr(Bagged, Pooled):
    """A bag of words, without a decoder [Ma et al. 2024]."""

    objective: Literal["bowdpr"] = "bowdpr"


@settings
class CoCondenser(EarlyLayers):
    """Condenser's head, and a contrast of neighbouring spans [Gao and Callan 2022]."""

    spans = 2

    objective: Literal["cocondenser"] = "cocondenser"


MASKS = ("encoder_masking", "encoder_ratio", "mask_share", "random_share", "sigma", "importance")


@settings
class Contriever(Pooled):
    """A contrast of two crops, without masks [Izacard et al. 2022]."""

    spans = 2

    objective: Literal["contriever"] = "contriever"
    pooling: Literal["cls", "mean"] = "mean"
    """As below; its retrievers should have the same."""
    crop_least: Rate = 0.05
    """Shortest crop (share of the passage)."""
    crop_most: Rate = 0.5
    """Longest crop (share of the passage)."""
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


@settings
class CotMae(Layered, Decoded):
    """A masked auto-encoder that decodes the neighbouring span [Wu et al. 2023]."""

    spans = 2

    objective: Literal["cotmae"] = "cotmae"


@settings
class DupMae(Bagged, Decoded):
    """Enhanced decoding and a bag of words [Xiao et al. 2023]."""

    decoder_layers = 1

    objective: Literal["dupmae"] = "dupmae"


@settings
class LexMae(Layered, DecoderMasked):
    """A distribution over the vocabulary as the bottleneck [Shen et al. 2023]."""

    objective: Literal["lexmae"] = "lexmae"


@settings
class Mae(Layered, Decoded):
    """A masked auto-encoder; CDMAE with decoder_masking importance [Li et al. 2023, 3.1]."""

    objective: Literal["mae"] = "mae"
    projection: bool = True
    """Linear projection of the vector, equation 4 [table 4]."""


@settings
class Master(Layered, Decoded):
    """Several decoders of the passage and its neighbour [Zhou et al. 2022]."""

    spans = 2

    objective: Literal["master"] = "master"
    complement_ratio: Share = 0.5
    """Share of words masked in a second pass of the encoder; 0: none."""

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
    """Masked language modelling [Devlin et al. 2019]; ROM with encoder_masking importance."""

    objective: Literal["mlm"] = "mlm"


@settings
class NotPretrained(Encoder):
    """No pre-training: the initial weights."""

    objective: Literal["none"] = "none"


@settings
class RetroMae(Decoded):
    """Enhanced decoding: one decoder layer that predicts every token [Xiao et al. 2022]."""

    decoder_layers = 1

    objective: Literal["retromae"] = "retromae"


@settings
class SeedEncoder(Layered, Pooled):
    """A weak decoder that sees the vector and the last tokens [Lu et al. 2021]."""

    objective: Literal["seed"] = "seed"
    decoder_layers: Positive = 3
    """Transformer layers of the decoder."""
    attention_span: Positive = 2
    """Tokens that the decoder sees besides the vector."""


@settings
class SimLm(Layered, Decoded):
    """Replaced language modelling [Wang et al. 2023]."""

    objective: Literal["simlm"] = "simlm"
    generator: HomePath = ""
    """A frozen generator with the same vocabulary; empty: trains a small one."""

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
