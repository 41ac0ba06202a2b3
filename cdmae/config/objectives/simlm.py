"""SimLM: replaced language modelling with a representation bottleneck (Wang et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cdmae.config import pretrained
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
        """Refuse settings that the initial model does not allow, and an unsuitable generator."""
        self.check_nested()
        if self.generator:
            self._check_generator(config.starts[self.start].checkpoint)
        super().check(config)

    def _check_generator(self, checkpoint: str) -> None:
        """Refuse a generator with another number of word-pieces, and any for random weights.

        The job compares the two vocabularies word-piece by word-piece.
        """
        pretrained.check(self.generator, ("generator",))
        pieces = pretrained.number(self.generator, "vocab_size")
        of_start = pretrained.number(checkpoint, "vocab_size") if checkpoint else None
        self.check_vocabulary(pieces, of_start, checkpoint, f"starts.{self.start}")
        owner = f"the positions of the generator {self.generator}"
        self.check_length(pretrained.positions(self.generator), owner)

    def check_vocabulary(
        self, pieces: int | None, of_start: int | None, checkpoint: str, owner: str
    ) -> None:
        """Refuse a generator for random weights, or with another number of word-pieces.

        pieces, of_start: the numbers of word-pieces of the generator and of the start; None if only
        the job knows them, which checks again. checkpoint: the start's checkpoint, or an empty text
        for random weights. owner: the start's name for messages.
        """
        if not checkpoint:
            remedy = "a generator for a start with a checkpoint"
            words = f", but {owner} has word-pieces of its own; expected {remedy}"
            raise unfit(self, "generator", words)
        if None not in (pieces, of_start) and pieces != of_start:
            allowed = f"a generator with the {of_start:,} of {owner}"
            words = f", which has {pieces:,} word-pieces; expected {allowed}"
            raise unfit(self, "generator", words)
