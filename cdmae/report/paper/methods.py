"""Find the systems that stand for what the paper names: a method after each stage, a setting with and without."""

from __future__ import annotations

import itertools

from cdmae.report import comparisons
from cdmae.report.comparisons import chains, differences, masking_pairs, not_pretrained
from cdmae.report.facts import Facts
from cdmae.report.paper import published

UNIFORM, WITHOUT = "MAE, uniform masks", "no pre-training"
_CORPUS = {"encoder.start", "encoder.after", "encoder.collection", "encoder.objective"}
CORPORA = ("general", "domain", "general, then domain")


def main_chain(facts: Facts) -> list[str]:
    """Return the systems of stages 1, 2, 3 of the encoder that masks by importance, as far as they go."""
    encoders, systems = facts.entries("encoders"), facts.entries("systems")
    masking = {name: encoder.get("decoder_masking") for name, encoder in encoders.items()}
    by_importance = [chain for chain in chains(facts) if masking.get(systems[chain[0]]["encoder"]) == "importance"]
    return max(by_importance, key=len, default=[first for first, _ in masking_pairs(facts)[:1]])


def methods(facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN) -> dict[str, list[str]]:
    """Return the systems of stages 1, 2, 3 for every method that is trained here, by the name it has in the paper.

    checkpoints: the starts that stand for a method which is not.
    """
    trained = {published.OURS: main_chain(facts)}
    encoders = facts.entries("encoders")
    for name, entry in encoders.items():
        masking = entry.get("decoder_masking")
        for method, objective in published.OBJECTIVES.items():
            own = published.MASKINGS.get(method)
            as_published = masking == own if own else masking in (None, *comparisons.UNIFORM)
            if entry.get("objective") == objective and as_published:
                trained.setdefault(method, chain_of(facts, name))
    for name, entry in encoders.items():
        checkpoint = facts.entries("starts").get(entry.get("start", ""), {}).get("checkpoint")
        if entry.get("objective") == "none" and checkpoint in checkpoints:
            trained.setdefault(checkpoints[checkpoint], chain_of(facts, name))
    return {method: chain for method, chain in trained.items() if chain}


def others(facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN) -> dict[str, list[str]]:
    """Return what the paper's tables do not have, but the comparison needs: uniform masks, and no pre-training."""
    ours = main_chain(facts)[:1]
    firsts = {
        UNIFORM: [uniform for aware, uniform in masking_pairs(facts) if [aware] == ours][:1],
        WITHOUT: [without for name in ours if (without := not_pretrained(facts, name))],
    }
    known = {name for chain in methods(facts, checkpoints).values() for name in chain}
    longest = {
        label: max([chain for chain in chains(facts) if chain[:1] == first], key=len, default=first)
        for label, first in firsts.items()
    }
    return {label: chain for label, chain in longest.items() if chain and not known & set(chain)}


def chain_of(facts: Facts, encoder: str) -> list[str]:
    """Return the longest chain of stages of an encoder; its first retriever where there is no second stage."""
    entries = {name: facts.entries("systems").get(name, {}) for name in facts.systems}
    retrievers = [name for name, entry in entries.items() if entry.get("kind") == "retriever"]
    firsts = [name for name in retrievers if entries[name].get("encoder") == encoder]
    return max([chain for chain in chains(facts) if chain[0] in firsts], key=len, default=firsts[:1])


def projection_pair(facts: Facts) -> tuple[str, str] | None:
    """Return (with, without): retrievers that differ in the projection of the bottleneck alone."""
    pairs = itertools.product(facts.systems, repeat=2)
    return next((pair for pair in pairs if differences(facts, *pair) == {"encoder.projection": (True, False)}), None)


def corpora(facts: Facts) -> dict[str, list[str]]:
    """Return retrievers that differ in what their encoder was pre-trained on: ``general``, ``domain`` or both.

    General is a published start that was pre-trained for retrieval, or passages other than those of the fine-tuning,
    of the encoder itself or of the one that it goes on from; where a config has both, there are two of a label. The
    paper's own setting, the method's first stage, stands before others. Other text may take other `steps` for as many
    passes.
    """
    systems: dict[str, list[str]] = {label: [] for label in CORPORA}
    for reference in main_chain(facts)[:1]:
        for name in dict.fromkeys([reference, *facts.systems]):
            retriever = facts.entries("systems").get(name, {}).get("kind") == "retriever"
            different = set(differences(facts, reference, name)) if retriever else set()
            ignored = {"encoder.steps"} if "encoder.collection" in different else set()
            if retriever and different - ignored <= _CORPUS:
                systems.get(_corpus(facts, name), []).append(name)
    return {label: names for label, names in systems.items() if names}


def _corpus(facts: Facts, system: str) -> str:
    """Name the corpora that the encoder of a system was pre-trained on; nothing where it was not."""
    entry, encoders = facts.entries("systems")[system], facts.entries("encoders")
    encoder, domain = encoders[entry["encoder"]], facts.entries("stages")[entry["stage"]].get("collection")
    parts = [encoder, *(encoders[name] for name in [encoder.get("after")] if name in encoders)]
    read = {part.get("collection") for part in parts if part.get("objective") != "none"}
    start = facts.entries("starts").get(encoder.get("start", ""), {})
    labels = {"general": start.get("checkpoint") in published.GENERAL or read - {domain}, "domain": domain in read}
    return ", then ".join(label for label, fits in labels.items() if fits)
