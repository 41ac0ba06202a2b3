"""Kinds of systems: classes with settings, checks, and methods for the workflow.

The code that searches or orders passages is in `cdmae.retrieval`, the rules are in
``workflow/rules``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdmae.config.kinds._system import LEARNT_FROM as LEARNT_FROM
from cdmae.config.kinds._system import TEACHERS as TEACHERS
from cdmae.config.kinds._system import System as System
from cdmae.config.kinds.trained import Head, Reranker, Retriever
from cdmae.config.kinds.untrained import Bm25, External, Fusion, TrecRun

AnySystem = Annotated[
    Bm25 | Retriever | Reranker | Fusion | Head | External | TrecRun,
    Field(discriminator="kind"),
]
