"""SimLM: replaced language modelling with a representation bottleneck (Wang et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cdmae.config import pretrained
from cdmae.config.encoders import Decoded, HomePath, Layered
from cdmae.fields import setting, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config


@settings
class SimLm(Layered, Decoded):
    """Replaced language modelling."""

    in_words = "with SimLM's replaced language modelling (Wang et al. 2023)"

    objective: Literal["simlm"] = setting(
        "simlm", meaning="replaced language modelling", source="Wang et al. 2023"
    )
    generator: HomePath = setting(
        "",
        meaning="a frozen generator of words with the start's vocabulary, a folder or a name (or "
        "name@revision) at the hub in transformers format; none: a small generator is "
        "trained along",
        source="SimLM: google/electra-base-generator",
    )

    def check_layers(self, layers: int | None, whose: str) -> None:
        """Refuse a decoder that is deeper than the encoder."""
        if layers is not None and self.decoder_layers > layers:
            copied = "with objective simlm, whose decoder begins as a copy of the last layers"
            raise unfit(
                self, "decoder_layers", f"; allowed {copied}: up to {layers}, those of {whose}"
            )

    def check(self, config: Config) -> None:
        """Refuse settings that do not fit the start, and a generator with other word-pieces."""
        if self.decoder_ratio < self.encoder_ratio:
            masked = "with objective simlm, whose decoder masks all that the encoder masks"
            raise unfit(
                self,
                "decoder_ratio",
                f"; allowed {masked}: from encoder_ratio, {self.encoder_ratio}",
            )
        if self.generator:
            self._check_generator(config.starts[self.start].checkpoint)
        super().check(config)

    def _check_generator(self, checkpoint: str) -> None:
        """Refuse a generator whose vocabulary cannot match the start's.

        The job compares the two vocabularies word-piece by word-piece.
        """
        owner = f"starts.{self.start}"
        pretrained.check(self.generator, ("generator",))
        if not checkpoint:
            remedy = (
                "has word-pieces of its own; allowed: a generator for a start with a checkpoint"
            )
            raise unfit(self, "generator", f", but {owner} {remedy}")
        own = pretrained.number(self.generator, "vocab_size")
        start = pretrained.number(checkpoint, "vocab_size")
        if own is not None and start is not None and own != start:
            words = (
                f", which has {own:,} word-pieces; allowed: a generator with {owner}'s {start:,}"
            )
            raise unfit(self, "generator", words)
        self.check_length(
            pretrained.positions(self.generator), f"the positions of the generator {self.generator}"
        )

    def predicted(self, tokens: float) -> float:
        """Count all tokens, of the encoder and of the decoder."""
        return 2 * tokens

    def further_flops(self, network: Any, tokens: float) -> float:
        """Count the generator: a third as wide and trained along, or frozen and only forward."""
        generator = network.narrowed(max(1, network.heads // 3) / network.heads)
        sampled = generator.head((self.encoder_ratio + self.decoder_ratio) * tokens)
        if self.generator:
            return 2 * generator.forward(tokens) + sampled
        learnt = generator.forward(tokens) + generator.head(self.encoder_ratio * tokens)
        return generator.forward(tokens) + sampled + 3 * learnt
