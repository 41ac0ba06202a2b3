"""Which systems stand for what the paper's tables name: a method after each stage, a setting with and without."""

from __future__ import annotations

from typing import Any

from cdmae.report.comparisons import chains, differences, is_uniform, masking_pairs, not_pretrained
from cdmae.report.facts import Facts
from cdmae.report.paper import published

UNIFORM, WITHOUT = "MAE, uniform masks", "no pre-training"
_CORPUS = {"encoder.start", "encoder.after", "encoder.collection", "encoder.objective"}
CORPORA = ("general", "domain", "general, then domain")


def main_chain(facts: Facts) -> list[str]:
    """The systems of stages 1, 2, 3 of the encoder that masks by importance, as far as they go."""
    encoders, systems = facts.entries("encoders"), facts.entries("systems")
    found = [
        chain
        for chain in chains(facts)
        if encoders.get(systems[chain[0]]["encoder"], {}).get("decoder_masking") == "importance"
    ]
    return max(found, key=len) if found else [pair[0] for pair in masking_pairs(facts)[:1]]


def methods(facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN) -> dict[str, list[str]]:
    """The systems of stages 1, 2, 3 for every method that is trained here, by the name it has in the paper.

    checkpoints: the starts that stand for a method which is not.
    """
    found = {published.OURS: main_chain(facts)}
    encoders = facts.entries("encoders")
    for name, entry in encoders.items():
        for method, objective in published.OBJECTIVES.items():
            if entry.get("objective") == objective and _masked_as_published(method, entry):
                found.setdefault(method, chain_of(facts, name))
    for name, entry in encoders.items():
        start = facts.entries("starts").get(entry.get("start", ""), {})
        if entry.get("objective") == "none" and start.get("checkpoint") in checkpoints:
            found.setdefault(checkpoints[start["checkpoint"]], chain_of(facts, name))
    return {method: chain for method, chain in found.items() if chain}


def _masked_as_published(method: str, encoder: dict[str, Any]) -> bool:
    masking = encoder.get("decoder_masking")
    if method in published.MASKINGS:
        return masking == published.MASKINGS[method]
    return masking is None or is_uniform(encoder)


def others(facts: Facts, checkpoints: dict[str, str] = published.IN_DOMAIN) -> dict[str, list[str]]:
    """What the paper's tables do not have, but the comparison needs: uniform masks, and no pre-training."""
    ours = main_chain(facts)[:1]
    uniform = [b for a, b in masking_pairs(facts) if [a] == ours][:1]
    without = [name for name in [not_pretrained(facts, each) for each in ours] if name]
    known = {name for chain in methods(facts, checkpoints).values() for name in chain}
    found = {UNIFORM: _chain_from(facts, uniform), WITHOUT: _chain_from(facts, without)}
    return {label: chain for label, chain in found.items() if chain and not known & set(chain)}


def chain_of(facts: Facts, encoder: str) -> list[str]:
    """The longest chain of stages of an encoder; its first retriever where there is no second stage."""
    systems = facts.entries("systems")
    firsts = [name for name in facts.systems if systems.get(name, {}).get("encoder") == encoder]
    firsts = [name for name in firsts if systems[name]["kind"] == "retriever"]
    found = [chain for chain in chains(facts) if chain[0] in firsts]
    return max(found, key=len) if found else firsts[:1]


def _chain_from(facts: Facts, first: list[str]) -> list[str]:
    return max([chain for chain in chains(facts) if chain[:1] == first], key=len, default=first)


def projection_pair(facts: Facts) -> tuple[str, str] | None:
    """(With, without): retrievers that differ in the projection of the bottleneck alone."""
    pairs = ((a, b) for a in facts.systems for b in facts.systems)
    return next((pair for pair in pairs if differences(facts, *pair) == {"encoder.projection": (True, False)}), None)


def corpora(facts: Facts) -> dict[str, list[str]]:
    """Retrievers that differ in what their encoder was pre-trained on, by label: ``general``, ``domain`` or both.

    General is a published start that was pre-trained for retrieval, or passages other than those of the fine-tuning,
    of the encoder itself or of the one that it goes on from; where a config has both, there are two of a label. The
    paper's own setting, the method's first stage, stands before others.
    """
    found: dict[str, list[str]] = {label: [] for label in CORPORA}
    for reference in main_chain(facts)[:1]:
        for name in dict.fromkeys([reference, *facts.systems]):
            retriever = facts.entries("systems").get(name, {}).get("kind") == "retriever"
            if retriever and _in_corpus_alone(set(differences(facts, reference, name))):
                found.get(_corpus(facts, name), []).append(name)
    return {label: systems for label, systems in found.items() if systems}


def _in_corpus_alone(different: set[str]) -> bool:
    """Whether systems differ in their corpora alone; other text may take other `steps` for as many passes."""
    return different - ({"encoder.steps"} if "encoder.collection" in different else set()) <= _CORPUS


def _corpus(facts: Facts, system: str) -> str:
    entry = facts.entries("systems")[system]
    encoders, stage = facts.entries("encoders"), facts.entries("stages")[entry["stage"]]
    encoder = encoders[entry["encoder"]]
    read = [each.get("collection") for each in (encoder, encoders.get(encoder.get("after", ""), {})) if _trained(each)]
    start = facts.entries("starts").get(encoder.get("start", ""), {})
    domain = stage.get("collection") in read
    general = start.get("checkpoint") in published.GENERAL or bool(set(read) - {stage.get("collection")})
    return ", then ".join(label for label, fits in (("general", general), ("domain", domain)) if fits)


def _trained(encoder: dict[str, Any]) -> bool:
    return bool(encoder) and encoder.get("objective") != "none"
