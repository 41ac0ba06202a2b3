"""The result of a pre-training: an encoder on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config.objectives import AnyEncoder
from cdmae.files import write_json
from cdmae.models import architectures, metadata, networks

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Result:
    """What a pre-training writes: the encoder with its LM head, its tokenizer, and its origin."""

    model: PreTrainedModel
    settings: AnyEncoder
    tokenizer: Path
    about: dict[str, Any]

    def write(self, folder: Path, records: dict[str, Any]) -> None:
        """Write the encoder into a folder; records: of the training, for ``about.json``."""
        folder.mkdir(exist_ok=True)
        model = self.model
        positions = architectures.positions(model.config)
        networks.write(folder, model)
        metadata.write_tokenizer(folder, self.tokenizer, longest=positions)
        if self.settings.pretrained:
            metadata.write_modules(
                folder,
                width=model.config.hidden_size,
                pooling=self.settings.pooling,
                longest=self.settings.max_length,
            )
        write_json(folder / "about.json", self.about | records)
