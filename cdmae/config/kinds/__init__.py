"""Kinds of systems, one file each: a class with settings, checks, and methods for the workflow.

The code that searches or orders passages is in `cdmae.retrieval`, the rules are in
``workflow/rules``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdmae.config.kinds._system import LEARNT_FROM as LEARNT_FROM
from cdmae.config.kinds._system import TEACHERS as TEACHERS
from cdmae.config.kinds._system import System as System
from cdmae.config.kinds.bm25 import Bm25
from cdmae.config.kinds.external import External
from cdmae.config.kinds.fusion import Fusion
from cdmae.config.kinds.head import Head
from cdmae.config.kinds.reranker import Reranker
from cdmae.config.kinds.retriever import Retriever
from cdmae.config.kinds.run import TrecRun

AnySystem = Annotated[
    Bm25 | Retriever | Reranker | Fusion | Head | External | TrecRun,
    Field(discriminator="kind"),
]
