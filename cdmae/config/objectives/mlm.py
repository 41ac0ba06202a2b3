"""Masked language modelling (Devlin et al. 2019): the encoder's loss alone, equations 1 to 3."""

from __future__ import annotations

from typing import Literal

from cdmae.config.encoders import Pretraining
from cdmae.fields import settings


@settings
class Mlm(Pretraining):
    """The encoder's own loss, without a decoder."""

    in_words = "with masked language modelling alone; the masked words are {masked}"

    objective: Literal["mlm"] = "mlm"
    """Masked language modelling, without a decoder; ROM with encoder_masking importance [Devlin et
    al. 2019; ROM: Long et al. 2022].
    """
