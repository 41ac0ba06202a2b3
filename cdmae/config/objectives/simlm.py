"""SimLM: replaced language modelling with a representation bottleneck (Wang et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config.encoders import Decoded, Layered
from cdmae.fields import HomePath, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class SimLm(Layered, Decoded):
    """Replaced language modelling."""

    in_words = "with SimLM's replaced language modelling (Wang et al. 2023)"

    objective: Literal["simlm"] = "simlm"
    """Replaced language modelling [Wang et al. 2023]."""
    generator: HomePath = ""
    """A frozen generator of words with the start's vocabulary, a folder or a name (or
    name@revision) at the hub in transformers format; empty: a small generator is trained with the
    encoder [SimLM: google/electra-base-generator].
    """

    def check_layers(self, layers: int | None, owner: str) -> None:
        """Refuse a decoder that is deeper than the encoder."""
        if layers is not None and self.decoder_layers > layers:
            words = (
                f"; expected up to {layers}, the layers of {owner}, since the decoder of simlm "
                "begins as a copy of the last layers"
            )
            raise unfit(self, "decoder_layers", words)

    def check(self, config: Config) -> None:
        """Refuse a decoder that masks less than the encoder, and a generator for random weights."""
        self.check_nested()
        if self.generator and not config.starts[self.start].checkpoint:
            words = f", but starts.{self.start} has word-pieces of its own"
            raise unfit(self, "generator", f"{words}; expected with a start that has a checkpoint")
        super().check(config)
