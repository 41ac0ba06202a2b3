"""Several seeds: whatever a seed decides exists once for each of them, and is made from what has
the same seed.

With ``seeds: [42, 43]`` there are the encoder ``mae`` and its replica ``mae@43``, the retriever
``one`` and ``one@43``, which starts from ``mae@43``. Names in a config have no `MARK`, so that a
replica's name tells what it is one of. The first seed keeps the bare names: a finished run with one
seed is the first part of one with several. Replicas are made once, when the config is loaded; to
jobs and rules they are entries like others. Standard library only.
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
    """Return the name in the config that a replica, or an entry of the first seed, goes back to."""
    return name.partition(MARK)[0]


def first(names: Iterable[str]) -> list[str]:
    """List the names that are no replicas: those of the first seed, and of what no seed decides."""
    return [name for name in names if MARK not in name]


def replicate(config: Config) -> Config:
    """Add replicas for every seed of a checked config but the first, behind the entries that they
    are made from.

    Encoders and stages with the config's seed have replicas, but no checkpoint as it is; and so
    does every system that uses one, directly or through other systems. What BM25 finds does not
    depend on a seed, nor do the data.
    """

    @cache
    def decided(section: str, name: str) -> bool:
        entry = getattr(config, section)[name]
        if section == "systems":
            return any(
                decided(part, other) for _, other, part in named(entry) if part != "collections"
            )
        as_it_is = (
            section == "encoders" and not entry.pretrained and config.starts[entry.start].checkpoint
        )
        return entry.seed == config.seed and not as_it_is

    grown = config
    for seed in config.seeds[1:]:
        replicas = {
            section: {
                name: f"{name}{MARK}{seed}"
                for name in getattr(config, section)
                if decided(section, name)
            }
            for section in ("encoders", "stages", "systems")
        }
        for section, names in replicas.items():
            of_seed = {} if section == "systems" else {"seed": seed}
            entries = getattr(config, section)
            more = {
                own: replace(_renamed(entries[name], replicas), **of_seed)
                for name, own in names.items()
            }
            grown = replace(grown, **{section: getattr(grown, section) | more})
    return grown


def _renamed(entry: Any, replicas: dict[str, dict[str, str]]) -> Any:
    """Make an entry from the replicas of what it is made from; it shares what has none."""
    changed = {}
    for (key, *places), name, section in named(entry):
        if section in replicas:
            other = replicas[section].get(name, name)
            changed[key] = (*changed.get(key, ()), other) if places else other
    return replace(entry, **changed)
