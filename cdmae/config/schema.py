"""Every setting of a config file: type, default, unit, meaning and source.

The defaults are the paper's; other defaults come from the prior work that the paper follows.
Section numbers are the paper's, `A` is its appendix. `cdmae.config.encoders` and
`cdmae.config.objectives` hold the entries of pre-training, `cdmae.config.stages` the entries of
fine-tuning, `cdmae.config.kinds` the entries of search. Entries (``encoders: {cdmae: ...}``) refer
to each other by name: these names are the edges of the workflow's graph, and
`cdmae.config.demands` refuses names that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, Field

from cdmae import collections
from cdmae.config import seeds as replicas
from cdmae.config.checks import fits_in_paths, read_measure
from cdmae.config.importance import Importance
from cdmae.config.kinds import AnySystem
from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import AnyStage
from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    HomePath,
    Mapped,
    Natural,
    Of,
    Whole,
    asdict,
    parse,
    refusal,
    settings,
    show,
    suggestion,
)


@settings
class Collection:
    """Passages, queries and judgments: a `source` (a file in ``cdmae/collections/sources``).

    settings: the settings of the source.
    """

    source: str
    settings: Any  # a `cdmae.collections.Source`

    @property
    def module(self) -> str:
        """Return the name of the source's module."""
        return f"cdmae.collections.sources.{self.source}"

    def values(self) -> dict[str, Any]:
        """Return plain values as in the config."""
        return {"source": self.source, **asdict(self.settings)}

    def ask(self, name: str, question: str) -> Any:
        """Call a method of the source, such as ``judged``, ``depends`` or ``check``.

        Errors name the collection. An error in a file of the source has no config keys.
        """
        try:
            return getattr(self.settings, question)()
        except InputError as error:
            words = str(error)
            keys = (
                ()
                if re.search(r", (line|row) \d", words)
                else ("collections", name, words.partition(" ")[0])
            )
            raise InputError(f"collections.{name}: {words}", keys=keys) from None

    def unfit(self, name: str, split: str) -> str:
        """Return the reason why a split is unusable, for messages; empty if it has judgments."""
        judged = self.ask(name, "judged")
        if split not in judged:
            return f"; {suggestion(split, judged)} (splits of collections.{name})"
        if not fits_in_paths(split):
            what = f"splits of collections.{name} with up to 64 letters, digits, ., - and _"
            return f", which cannot be part of a path; expected {what}"
        names = ", ".join(known for known in judged if judged[known]) or "none"
        return "" if judged[split] else f", which has no judgments; expected {names}"


def _collection(values: Any) -> Any:
    """Make a collection from plain values, with the settings of its source."""
    if not isinstance(values, dict):
        return values
    source, allowed = values.get("source"), collections.names()
    if source is None:
        raise refusal(("source",), f" is missing; expected {', '.join(allowed)}")
    if source not in allowed:
        raise refusal(("source",), f" is {show(source)}; {suggestion(str(source), allowed)}")
    own = {key: value for key, value in values.items() if key != "source"}
    return Collection(source=source, settings=parse(collections.source(source).Settings, own))


Grade = Annotated[Whole, Ge(1), Le(1000)]
Length = Annotated[Whole, Ge(16)]


@settings
class Evaluation:
    """The collections and measures of every system."""

    collections: Annotated[dict[str, tuple[str, ...]], Mapped, Of("collections")] = EMPTY
    """The splits of each collection that are evaluated, as in {pydocs: [dev, test]}; an empty list:
    the collection is only searched, by `./run search`.
    """
    measures: tuple[str, ...] = ("RR@10", "R@50", "R@1000", "nDCG@10")
    """Measures of ir_measures, in its notation, such as R(rel=2)@50 or Judged@10; means over the
    queries are reported [4.1].
    """
    relevant: Annotated[dict[str, Annotated[dict[str, Grade], Mapped]], Mapped] = EMPTY
    """The lowest relevant grade of a split, as in {msmarco: {dl19: 2}}; otherwise 1. Measures with
    a binary relevance are then named like RR(rel=2)@10; nDCG uses all grades [TREC DL: 2].
    """
    lengths: Annotated[dict[str, Length], Mapped] = EMPTY
    """The length at which queries, passages and pairs of a collection are cut when it is searched,
    as in {nq: 512}; otherwise the length of the stage or the system (word-pieces) [RetroMAE: BEIR
    at 512].
    """
    depth: Annotated[Whole, Ge(1), Le(100_000)] = 1000
    """Number of passages per query in a run (passages) [4.1]."""
    baseline: Annotated[str, Of("systems")] = ""
    """The system that all others are compared with, in addition to report.compare."""
    keep_vectors: bool = True
    """Keep passages' vectors on disk, for `./run search`; false: they are computed during each
    search.
    """

    def measured(self, collection: str, split: str) -> list[str]:
        """List the measures of a split, with its lowest relevant grade."""
        grade = self.relevant.get(collection, {}).get(split, 1)
        parsed = {name: read_measure(name) for name in self.measures if grade > 1}
        plain = [
            name
            for name, measure in parsed.items()
            if "rel" in measure.SUPPORTED_PARAMS.keys() - measure.params
        ]
        return list(
            dict.fromkeys(
                str(parsed[name](rel=grade)) if name in plain else name for name in self.measures
            )
        )


# an identifier of the hub's list of licences, such as mit, cc-by-4.0 or other
Licence = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9.+-]{0,63})?$")]
# ISO 639-1 to 639-3, or the hub's `multilingual` and `code`
Language = Annotated[str, Field(pattern="^([a-z]{2,3}|multilingual|code)$")]
EVERY = "*"  # in `Report.compare`: every system without an entry of its own


@settings
class Report:
    """The report at the end of a run."""

    title: str = "Importance-aware masking for dense retrieval"
    """Heading of the report."""
    example: str = "hokey stuff is a crossword puzzle clue that we have spotted 4 times"
    """Text whose words are shaded by importance [figure 3]."""
    compare: Annotated[dict[str, tuple[str, ...]], Mapped] = EMPTY
    """The systems that each system is compared with in addition to evaluation.baseline, in the
    order of the report, as in {mae-stage1: [bm25]}; the key "*" is for all other systems. Without
    `compare` and baseline, every system is compared with the first BM25 system, or else the first
    system. A system that an overlay removes (`NAME: null` in systems) is removed here, too.
    """
    methods: Annotated[dict[str, str], Mapped] = EMPTY
    """The systems of the rows of the paper's tables, as in {CDMAE: stage3, "CDMAE, stage 1": one,
    w/ projection: one}: each table shows the rows that it has. A row of one table has its name, as
    in "table 3: RetroMAE". A row that the paper lacks is added to table 1, or to the named table.
    Without rows, the report scores no claims of the paper [4].
    """
    curve: tuple[str, ...] = ()
    """Stages that differ in their number of training queries; the last one has all. The report
    draws every encoder's measure over this number.
    """
    licence: Licence = ""
    """Licence of the trained models, for their cards, by its identifier at the hub, as in mit or
    cc-by-4.0; empty: none is stated. It must fit the licences of the collections and of the initial
    checkpoint.
    """
    languages: tuple[Language, ...] = ()
    """Languages of the text, for the models' cards, by their ISO 639 codes, such as en; or
    multilingual, or code.
    """

    def check(self, systems: Iterable[str], stages: Iterable[str]) -> None:
        """Refuse unknown names, and a system that is compared with itself or twice with another."""
        for stage in self.curve:
            if stage not in stages:
                words = f" has {show(stage)}, which is not a stage; {suggestion(stage, stages)}"
                raise refusal(("report", "curve"), words)
        known = list(systems)
        for method, system in self.methods.items():
            if system not in known:
                words = f" is {show(system)}, which is not a system; {suggestion(system, known)}"
                raise refusal(("report", "methods", method), words)
        pairs: set[frozenset[str]] = set()
        for system, baselines in self.compare.items():
            keys = ("report", "compare", system)
            if system not in (EVERY, *known):
                raise refusal(keys, f": no such system; {suggestion(system, known)}")
            for baseline in baselines:
                if baseline == system:
                    raise refusal(keys, f" has {show(baseline)}, the system itself; remove it")
                if baseline not in known:
                    words = f" has {show(baseline)}, which is not a system; "
                    raise refusal(keys, words + suggestion(baseline, known))
                pair = frozenset([system, baseline])
                if pair in pairs:
                    words = f" has {show(baseline)}, but the two are already compared; remove it"
                    raise refusal(keys, words)
                pairs.add(pair)


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse no seed, and a seed that is listed twice."""
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"the seeds are {show(list(seeds))}; expected one or more, each once")
    return seeds


Seeds = Annotated[
    tuple[Natural, ...],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value]),
    AfterValidator(_distinct),
]


@settings
class Config:
    """A complete, checked config."""

    results: HomePath = "results"
    """Folder of every artefact; a relative path begins at the working directory."""
    seed: Seeds = (42,)
    """Seed of everything random, such as 7, or a list of seeds with which every training runs, such
    as [42, 43, 44]; the data do not depend on it. Entries with a `seed` of their own run only with
    that [A].
    """
    collections: Annotated[
        dict[str, Annotated[Collection, BeforeValidator(_collection)]], Mapped
    ] = EMPTY
    starts: Annotated[dict[str, Start], Mapped] = EMPTY
    importance: Annotated[dict[str, Importance], Mapped] = EMPTY
    encoders: Annotated[dict[str, AnyEncoder], Mapped] = EMPTY
    stages: Annotated[dict[str, AnyStage], Mapped] = EMPTY
    systems: Annotated[dict[str, AnySystem], Mapped] = EMPTY
    evaluation: Annotated[Evaluation, Mapped] = Field(default_factory=Evaluation)
    report: Annotated[Report, Mapped] = Field(default_factory=Report)

    def values(self) -> dict[str, Any]:
        """Return plain values for `cdmae.config.load`, with all defaults, without seed replicas."""
        sections = {}
        for section in SECTIONS:
            entries = getattr(self, section)
            sections[section] = {name: entries[name].values() for name in replicas.first(entries)}
        return {
            "results": self.results,
            "seed": list(self.seed) if len(self.seed) > 1 else self.seed[0],
            **sections,
            "evaluation": asdict(self.evaluation),
            "report": asdict(self.report),
        }


SECTIONS = {  # the sections of named entries, in the order in which the entries are made
    "collections": Collection,
    "starts": Start,
    "importance": Importance,
    "encoders": AnyEncoder,
    "stages": AnyStage,
    "systems": AnySystem,
}
