"""Every setting: type, default, unit, meaning and source; the only schema. A config file holds values.

The defaults are the paper's; a setting without a value there has that of the prior work it follows. Section numbers
are the paper's, `A` is its appendix. `cdmae.config.encoders` holds the entries of pre-training, `cdmae.config.rankers`
those of fine-tuning and search. Named things (``encoders: {cdmae: ...}``) refer to each other by name: these names are
the edges of the workflow's graph, and `cdmae.config.demands` refuses those that lead nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from cdmae.config import seeds as replicas
from cdmae.config.checks import read_measure
from cdmae.config.encoders import Encoder, HomePath, Importance, Start
from cdmae.config.rankers import Stage, System
from cdmae.errors import InputError
from cdmae.fields import LARGEST, asdict, setting, show


@dataclass(frozen=True)
class Collection:
    """Passages, queries and judgments: a `source` (a file in ``cdmae/collections/sources``) and its own settings."""

    source: str
    settings: Any  # a `cdmae.collections.Source`, which pydantic need not know

    @property
    def module(self) -> str:
        """Name the module that knows the source."""
        return f"cdmae.collections.sources.{self.source}"

    def values(self) -> dict[str, Any]:
        """Return plain values, as they stand in the config."""
        return {"source": self.source, **asdict(self.settings)}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What every system is measured on."""

    collections: dict[str, tuple[str, ...]] = setting(
        {},
        meaning="collection: list of its splits; an empty one: only searched, by `./run search`",
        names="collections",
    )
    measures: tuple[str, ...] = setting(
        ("RR@10", "R@50", "R@1000", "nDCG@10"),
        meaning="means of ir_measures, in its notation: R(rel=2)@50, Judged@10",
        source="4.1",
    )
    relevant: dict[str, dict[str, Annotated[int, Field(strict=True, ge=1, le=1000)]]] = setting(
        {}, meaning="the lowest relevant grade of a split, as in {msmarco: {dl19: 2}}; without, 1. Measures that ask "
        "for one then have names like RR(rel=2)@10; nDCG does not ask", source="TREC DL: 2",
    )  # fmt: skip
    lengths: dict[str, Annotated[int, Field(strict=True, ge=16, le=LARGEST)]] = setting(
        {}, unit="word-pieces", meaning="the length at which queries, passages and pairs of a collection are cut when "
        "it is searched, as in {nq: 512}; without, that of the stage or the system", source="RetroMAE: BEIR at 512",
    )  # fmt: skip
    depth: int = setting(1000, unit="passages", meaning="length of the runs", source="4.1", low=1, high=100_000)
    baseline: str = setting(
        "", meaning="the system that the others are compared with; none: no comparison", names="systems"
    )
    keep_vectors: bool = setting(
        True, meaning="passages' vectors stay on disk, for `./run search`; false: they are made while they are searched"
    )

    def measured(self, collection: str, split: str) -> list[str]:
        """List the measures of a target, with the grade that is relevant there."""
        grade = self.relevant.get(collection, {}).get(split, 1)
        parsed = {name: read_measure(name) for name in self.measures if grade > 1}
        plain = [name for name, measure in parsed.items() if "rel" in measure.SUPPORTED_PARAMS.keys() - measure.params]
        return list(dict.fromkeys(str(parsed[name](rel=grade)) if name in plain else name for name in self.measures))


@dataclass(frozen=True, kw_only=True)
class Report:
    """The page at the end."""

    title: str = setting("Importance-aware masking for dense retrieval", meaning="heading of the page")
    example: str = setting(
        "hokey stuff is a crossword puzzle clue that we have spotted 4 times",
        meaning="text that is shaded by importance", source="figure 3",
    )  # fmt: skip
    noise: float = setting(
        0.3, unit="points", meaning="a difference that another seed may make; that of `seeds`, where larger, counts",
        source="recipes of the field, MRR@10 on MS MARCO", low=0, high=100,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole config, checked."""

    results: HomePath = setting("results", meaning="folder of every artefact; a relative path begins at the checkout")
    seed: int = setting(42, meaning="of everything random; the data depend on none", source="A", low=0)
    seeds: tuple[Annotated[int, Field(strict=True, ge=0, le=LARGEST)], ...] = setting(
        (), meaning="every training once for each, `seed` the first; entries with a `seed` of their own keep it; none: "
        "only `seed`",
    )  # fmt: skip
    collections: dict[str, Collection] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    importance: dict[str, Importance] = field(default_factory=dict)
    encoders: dict[str, Encoder] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    systems: dict[str, System] = field(default_factory=dict)
    evaluation: Evaluation = field(default_factory=Evaluation)
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        """Refuse seeds that are not all different, or do not begin with `seed`."""
        if self.seeds and (len(set(self.seeds)) < len(self.seeds) or self.seeds[0] != self.seed):
            raise InputError(
                f"seeds is {show(list(self.seeds))}; allowed: different ones, the first of them seed, {self.seed}"
            )

    def values(self) -> dict[str, Any]:
        """Return plain values that `cdmae.config.load` accepts again: all defaults written out, no replicas."""
        named = {section: getattr(self, section) for section in SECTIONS}
        return {
            "results": self.results,
            "seed": self.seed,
            "seeds": list(self.seeds),
            **{name: {key: part[key].values() for key in replicas.first(part)} for name, part in named.items()},
            "evaluation": asdict(self.evaluation),
            "report": asdict(self.report),
        }


SECTIONS = {  # of named entries, in the order in which they are made
    "collections": Collection,
    "starts": Start,
    "importance": Importance,
    "encoders": Encoder,
    "stages": Stage,
    "systems": System,
}
