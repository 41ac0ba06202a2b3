"""Find the systems that correspond to the paper's methods and settings."""

from __future__ import annotations

import itertools
from typing import Any

from cdmae.report import comparisons
from cdmae.report.comparisons import chains, masking_pairs, not_pretrained, retrievers
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.recipes import differences

UNIFORM = "MAE, uniform masks"
WITHOUT = "no pre-training"
_CORPUS = {"encoder.start", "encoder.after", "encoder.collection", "encoder.objective"}
CORPORA = ("general", "domain", "general, then domain")


def main_chain(facts: Facts) -> list[str]:
    """Return the available systems of stages 1, 2 and 3 for the importance-masked encoder."""
    masking = {
        name: encoder.get("decoder_masking") for name, encoder in facts.entries("encoders").items()
    }
    firsts = [
        name
        for name, entry in retrievers(facts).items()
        if masking.get(entry["encoder"]) == "importance"
    ]
    return _longest(facts, firsts, [aware for aware, _ in masking_pairs(facts)])


def methods(
    facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN
) -> dict[str, list[str]]:
    """Return the systems of stages 1, 2 and 3 of each method trained here, by the paper's name.

    checkpoints: the method that produced each published checkpoint.
    """
    trained = {published.OURS: main_chain(facts)}
    encoders = facts.entries("encoders")
    for (name, entry), (method, objective) in itertools.product(
        encoders.items(), published.OBJECTIVES.items()
    ):
        own = published.MASKINGS.get(method)
        masks = (own,) if own else (None, *comparisons.UNIFORM)
        published_text = entry.get("context", "neighbour") == "neighbour"
        same = entry.get("objective") == objective and published_text
        if same and entry.get("decoder_masking") in masks:
            trained.setdefault(method, _chain_of(facts, name))
    for name, entry in encoders.items():
        checkpoint = _start(facts, entry).get("checkpoint")
        if entry.get("objective") == "none" and checkpoint in checkpoints:
            trained.setdefault(checkpoints[checkpoint], _chain_of(facts, name))
    return {method: chain for method, chain in trained.items() if chain}


def others(facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN) -> dict[str, list[str]]:
    """Return the baselines that the paper's tables lack: uniform masks, and no pre-training."""
    ours = main_chain(facts)[:1]
    uniform = [uniform for aware, uniform in masking_pairs(facts) if [aware] == ours]
    without = [not_pretrained(facts, name) for name in ours]
    firsts = {UNIFORM: uniform[:1], WITHOUT: [name for name in without if name]}
    known = {name for chain in methods(facts, checkpoints).values() for name in chain}
    longest = {label: _longest(facts, first, first) for label, first in firsts.items()}
    return {label: chain for label, chain in longest.items() if chain and not known & set(chain)}


def _longest(facts: Facts, firsts: list[str], default: list[str]) -> list[str]:
    """Return the longest chain that begins with one of `firsts`, or the first of `default`."""
    found = [chain for chain in chains(facts) if chain[0] in firsts]
    return max(found, key=len, default=default[:1])


def _chain_of(facts: Facts, encoder: str) -> list[str]:
    """Return an encoder's longest chain of stages, or its first retriever if there is no chain."""
    firsts = [name for name, entry in retrievers(facts).items() if entry.get("encoder") == encoder]
    return _longest(facts, firsts, firsts)


def corpora(facts: Facts) -> dict[str, list[str]]:
    """Return retrievers by the corpora of their pre-training: ``general``, ``domain`` or both.

    A corpus is general if it is not the corpus of the fine-tuning. It may be the corpus of the
    encoder, of the encoder that it continues (`after`), or of a published checkpoint for retrieval.
    A config with several of these has several systems with the same label; the paper's own setting,
    the method's first stage, comes first. To make the same number of passes, `steps` may differ
    between corpora.
    """
    systems: dict[str, list[str]] = {label: [] for label in CORPORA}
    for reference in main_chain(facts)[:1]:
        for name in dict.fromkeys([reference, *retrievers(facts)]):
            different = set(differences(facts, reference, name))
            if "encoder.collection" in different:
                different.discard("encoder.steps")
            if different <= _CORPUS:
                systems.get(_corpus(facts, name), []).append(name)
    return {label: names for label, names in systems.items() if names}


def _corpus(facts: Facts, system: str) -> str:
    """Name the corpora on which a system's encoder was pre-trained; "" without pre-training."""
    entry = facts.entries("systems")[system]
    encoders = facts.entries("encoders")
    encoder = encoders[entry["encoder"]]
    domain = facts.entries("stages")[entry["stage"]].get("collection")
    parts = [encoder]
    if encoder.get("after") in encoders:
        parts.append(encoders[encoder["after"]])
    read = {part.get("collection") for part in parts if part.get("objective") != "none"}
    labels = []
    if _start(facts, encoder).get("checkpoint") in published.GENERAL or read - {domain}:
        labels.append("general")
    if domain in read:
        labels.append("domain")
    return ", then ".join(labels)


def _start(facts: Facts, encoder: dict[str, Any]) -> dict[str, Any]:
    return facts.entries("starts").get(encoder.get("start", ""), {})
