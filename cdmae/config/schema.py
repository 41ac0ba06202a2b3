"""Every setting of a config file: type, default, unit, meaning and source.

The defaults are the paper's; other defaults come from the prior work that the paper follows.
Section numbers are the paper's, `A` is its appendix. `cdmae.config.encoders` and
`cdmae.config.objectives` have the entries of pre-training, `cdmae.config.stages` of fine-tuning,
`cdmae.config.kinds` of search. Entries (``encoders: {cdmae: ...}``) refer to each other by name:
these names are the edges of the workflow's graph, and `cdmae.config.checks` refuses names that do
not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from cdmae import collections
from cdmae.config import seeds as replicas
from cdmae.config.checks import SPLIT, read_measure
from cdmae.config.importance import Importance
from cdmae.config.kinds import AnySystem
from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import AnyStage
from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    HomePath,
    Length,
    Natural,
    Of,
    Positive,
    asdict,
    parse,
    settings,
    show,
    suggestion,
)
from cdmae.languages import scripts


@settings
class Collection:
    """Passages, queries and judgments: a `source` (a file in ``cdmae/collections/sources``).

    settings: the settings of the source. language: of its texts, for BM25.
    """

    source: str
    settings: Any  # a `cdmae.collections.Source`
    language: scripts.Language = scripts.AUTO

    def values(self) -> dict[str, Any]:
        """Return plain values as in the config."""
        return {"language": self.language, **self.of_source()}

    def of_source(self) -> dict[str, Any]:
        """Return the values from which the collection is made."""
        return {"source": self.source, **asdict(self.settings)}

    def ask(self, name: str, question: str) -> Any:
        """Call a method of the source, such as ``judged``, ``depends`` or ``check``."""
        try:
            return getattr(self.settings, question)()
        except InputError as error:
            raise error.within("collections", name) from None

    def unfit(self, name: str, split: str) -> str:
        """Return the reason why a split is unusable, for messages; empty if it has judgments."""
        judged = self.ask(name, "judged")
        if split not in judged:
            return f"; {suggestion(split, judged)} (splits of collections.{name})"
        if not SPLIT.fullmatch(split):
            return "; expected the name of a split with up to 64 letters, digits, ., - and _"
        names = ", ".join(known for known in judged if judged[known]) or "none"
        return "" if judged[split] else f", which has no judgments; expected {names}"


def _collection(values: Any) -> Any:
    """Make a collection from plain values, with the settings of its source."""
    if not isinstance(values, dict):
        return values
    source, allowed = values.get("source"), collections.names()
    if source is None:
        raise InputError(f" is missing; expected {', '.join(allowed)}", keys=("source",))
    if source not in allowed:
        words = f" is {show(source)}; {suggestion(str(source), allowed)}"
        raise InputError(words, keys=("source",))
    own = {key: value for key, value in values.items() if key not in ("source", "language")}
    of_source = parse(collections.source(source).Settings, own)
    base = values.get("of") if source != "joined" else None
    # made queries are in the language of their passages
    inherited = base.get("language", scripts.AUTO) if isinstance(base, dict) else scripts.AUTO
    language = values.get("language", inherited)
    return parse(Collection, {"source": source, "settings": of_source, "language": language})


@settings
class Evaluation:
    """The collections and measures of every system."""

    collections: Annotated[dict[str, tuple[str, ...]], Of("collections")] = EMPTY
    """Evaluated splits, as in {pydocs: [dev, test]}; []: only `./run search` uses it."""
    measures: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "RR@10",
        "R@50",
        "R@1000",
        "nDCG@10",
    )
    """Measures as in ir_measures, such as R(rel=2)@50 or Judged@10 [4.1]."""
    relevant: dict[str, dict[str, Positive]] = EMPTY
    """Lowest relevant grade of a split, if not 1, as in {msmarco: {dl19: 2}} [TREC DL]."""
    lengths: Annotated[dict[str, Length], Of("collections")] = EMPTY
    """Longest text of a collection, as in {nq: 512} [RetroMAE]."""
    depth: Positive = 1000
    """Passages per query in a run [4.1]."""
    baseline: Annotated[str, Of("systems")] = ""
    """System to compare all others with."""
    keep_vectors: bool = True
    """Keep passages' vectors for `./run search`."""

    def measured(self, collection: str, split: str) -> list[str]:
        """List the measures of a split, with its lowest relevant grade."""
        grade = self.relevant.get(collection, {}).get(split, 1)
        names = []
        for name in self.measures:
            measure = read_measure(name) if grade > 1 else None
            if measure and "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
                name = str(measure(rel=grade))
            names.append(name)
        return list(dict.fromkeys(names))


def _like(pattern: str, expected: str) -> AfterValidator:
    """Refuse text that the hub would refuse in a card, other than the empty text."""

    def check(value: str) -> str:
        if value and not re.fullmatch(pattern, value):
            raise InputError(f" is {show(value)}; expected {expected}")
        return value

    return AfterValidator(check)


Licence = Annotated[
    str, _like(r"[a-z0-9.+-]+", "the hub's name of a licence, such as apache-2.0 or cc-by-4.0")
]
LanguageCode = Annotated[
    str, _like(r"[a-z]{2,3}|multilingual|code", "an ISO 639 code, such as en, or multilingual")
]
EVERY = "*"  # in `Report.compare`: every system without an entry of its own


@settings
class Report:
    """The report at the end of a run."""

    title: str = "Importance-aware masking for dense retrieval"
    """Heading of the report."""
    compare: dict[str, tuple[str, ...]] = EMPTY
    """Further systems to compare a system, or "*" for all others, with, as in {mae-stage1: [bm25]};
    default: BM25, or the first system.
    """
    methods: dict[str, str] = EMPTY
    """Systems in the rows of the paper's tables, as in {CDMAE: stage3, "table 3: RetroMAE": own}; a
    new name is added to table 1.
    """
    licence: Licence = ""
    """Licence of the models at the hub, such as apache-2.0."""
    languages: tuple[LanguageCode, ...] = ()
    """Languages of the models, by ISO 639 code, such as en."""

    def check(self, systems: Iterable[str]) -> None:
        """Refuse names of systems that do not exist."""
        named = [(("methods", method), name) for method, name in self.methods.items()]
        for system, baselines in self.compare.items():
            named += [(("compare", system), name) for name in baselines]
            if system != EVERY:
                named.append((("compare", system), system))
        for keys, name in named:
            if name not in systems:
                words = f" has {show(name)}, which does not exist; {suggestion(name, systems)}"
                raise InputError(words, keys=("report", *keys), kind="reference")


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse no seed, and a seed that is listed twice."""
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"values are {show(list(seeds))}; expected one or more, each once")
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
    """Folder of all results."""
    seed: Seeds = (42,)
    """Seed, or seeds such as [42, 43, 44], of every training, not of the data [A]."""
    collections: dict[str, Annotated[Collection, BeforeValidator(_collection)]] = EMPTY
    starts: dict[str, Start] = EMPTY
    importance: dict[str, Importance] = EMPTY
    encoders: dict[str, AnyEncoder] = EMPTY
    stages: dict[str, AnyStage] = EMPTY
    systems: dict[str, AnySystem] = EMPTY
    evaluation: Evaluation = Field(default_factory=Evaluation)
    report: Report = Field(default_factory=Report)

    def owner(self, collection: str) -> str:
        """Return the collection that has the passages of a collection: another one, or itself."""
        return self.collections[collection].settings.shared or collection

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
