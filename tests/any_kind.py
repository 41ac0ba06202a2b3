"""Settings of one kind as those of another, as far as it knows them."""

from typing import Any

from cdmae.config.encoders import OBJECTIVES, Encoder
from cdmae.fields import rules_of


def as_objective(name: str, settings: Encoder, **changed: Any) -> Encoder:
    """The settings of a pre-training with another objective; what that one does not know is left
    out.
    """
    kind = OBJECTIVES[name]
    given = {key: getattr(settings, key) for key in rules_of(settings)} | changed
    return kind(
        **{
            key: value
            for key, value in given.items()
            if key in rules_of(kind) and key != "objective"
        }
    )
