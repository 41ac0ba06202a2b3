"""The config's classes of pre-training objectives, each in a file named like its network's file.

``cdmae/pretraining/objectives`` has the networks; ``none`` has no network. A file has one class
with the settings, defaults and checks of its objective, and facts for the plan, the model card and
the workflow.
"""

from __future__ import annotations

import importlib
from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import Field

from cdmae.config.encoders import Encoder, concepts


def _of(name: str) -> type[Encoder]:
    """Return the class of an objective: the class in its file with the setting `objective`."""
    parts = vars(importlib.import_module(f"{__name__}.{name}")).values()
    return next(part for part in parts if "objective" in getattr(part, "__pydantic_fields__", {}))


OBJECTIVES = {name: _of(name) for name in concepts("config/objectives")}
AnyEncoder = Annotated[reduce(or_, OBJECTIVES.values()), Field(discriminator="objective")]
