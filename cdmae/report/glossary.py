"""Explain the terms of the report, each in one sentence."""

from __future__ import annotations

import re

TERMS = {
    "MRR": (
        "Mean reciprocal rank: 1 divided by the rank of the first relevant passage, or 0 if "
        "it is not among the first k (MRR@k), averaged over the queries."
    ),
    "nDCG": (
        "Normalised discounted cumulative gain: the grades of the first k passages, each "
        "divided by the logarithm of its rank + 1, as a share of the best possible order."
    ),
    "R": "Recall (R@k): the share of a query’s relevant passages among the first k.",
    "MAP": (
        "Mean average precision: the precision at the rank of each relevant passage, averaged."
    ),
    "p": (
        "The probability of a difference at least this large if the two systems were equally "
        "good, from the variances over queries and, if there are several, over seeds."
    ),
    "Holm": (
        "Holm’s correction raises the p-values of several tests, so that the chance of even "
        "one false finding among them stays below 5 %."
    ),
    "AMI": (
        "Average mutual information: how much the words around a word tell about it "
        "(equations 7 and 8 of the paper)."
    ),
    "nats": "Units of information with the natural logarithm; 1 nat is 1.44 bits.",
}
_SHOWN = {"R": "Recall", "p": "p-value"}


def shown(term: str) -> str:
    """Format a term as it appears in the list of terms."""
    return _SHOWN.get(term, term)


def term_of(measure: str) -> str:
    """Return the term that explains a measure such as ``MRR(rel=2)@10``; "" for another measure."""
    name = re.match(r"[A-Za-z]*", measure)[0]
    return name if name in TERMS else ""
