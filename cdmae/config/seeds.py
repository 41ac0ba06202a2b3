"""Add replicas of the entries that a seed affects, to run a config with several seeds.

With ``seed: [42, 43]`` the encoder ``mae`` has the replica ``mae@43``, and the retriever ``one``
has ``one@43``, which is made from ``mae@43``. Names in a config cannot contain `MARK`, so a
replica's name identifies its original. The first seed keeps the plain names: a finished run with
one seed is the first part of a run with several. Replicas are made once, when the config is loaded;
jobs and rules treat them like other entries. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from cdmae.fields import named

if TYPE_CHECKING:
    from cdmae.config.schema import Config

MARK = "@"


def base(name: str) -> str:
    """Return an entry's name in the config; for a replica, without the mark and the seed."""
    return name.partition(MARK)[0]


def first(names: Iterable[str]) -> list[str]:
    """List the names that are not replicas: the entries of the config itself."""
    return [name for name in names if MARK not in name]


def replicate(config: Config) -> Config:
    """Add replicas to a checked config for every seed but the first, after their originals.

    Encoders and stages with the config's seed have replicas, except for a checkpoint without
    pre-training. Systems that use such an encoder or stage, directly or through other systems,
    also have replicas, unless they are trained `once`. BM25 and the data depend on no seed.
    """

    @cache
    def decided(section: str, name: str) -> bool:
        entry = getattr(config, section)[name]
        if section == "systems":
            return not entry.once and any(
                decided(mark.section, other)
                for _, other, mark in named(entry)
                if mark.section != "collections"
            )
        as_it_is = (
            section == "encoders" and not entry.pretrained and config.starts[entry.start].checkpoint
        )
        return entry.seed == config.seed[0] and not as_it_is

    grown = config
    for seed in config.seed[1:]:
        replicas = {}
        for section in ("encoders", "stages", "systems"):
            names = [name for name in getattr(config, section) if decided(section, name)]
            replicas[section] = {name: f"{name}{MARK}{seed}" for name in names}
        for section, renamed in replicas.items():
            of_seed = {} if section == "systems" else {"seed": seed}
            entries = getattr(config, section)
            more = {
                own: replace(_renamed(entries[name], replicas), **of_seed)
                for name, own in renamed.items()
            }
            grown = replace(grown, **{section: getattr(grown, section) | more})
    return grown


def _renamed(entry: Any, replicas: dict[str, dict[str, str]]) -> Any:
    """Return an entry that refers to the replicas of its inputs, where they have replicas."""
    changed = {}
    for (key, *places), name, mark in named(entry):
        if mark.section in replicas:
            other = replicas[mark.section].get(name, name)
            changed[key] = (*changed.get(key, ()), other) if places else other
    return replace(entry, **changed)
