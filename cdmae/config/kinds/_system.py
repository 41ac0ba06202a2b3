"""The base classes of kinds of systems, with the defaults that most kinds keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cdmae.fields import Of, Positive, asdict, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

Engine = Annotated[
    Literal["exact", "lucene"],
    Field(description="Search of sparse vectors: exact, or by Lucene with weights x 100."),
]
# passages that a multi-vector system scores without candidates: half a second a query on a core
MOST_EXHAUSTIVE = 200_000
# the keys of a system with the names of other systems: teachers, and all that its training reads
TEACHERS = ("teacher", "in_batch_teacher", "joint_teacher")
LEARNT_FROM = ("after", "negatives", *TEACHERS)


@settings
class System:
    """A system, which ranks passages for queries; the class attributes describe a kind."""

    trained = False  # has a model of its own
    searches = True  # searches a whole collection, so that its run can provide negatives
    third_party = False  # a third party made it; its size is unknown
    # as a teacher, scores the passages that a training draws, not only those of its own run
    scores_draws = False
    lexical = False  # compares words
    neural = True  # has a network, or may have one
    index = ""  # the path of its index, below the results, for a collection that is only searched
    answered_by = ""  # the module of `cdmae.retrieval` that answers a user's query; none: it cannot
    encoded_by = ""  # the module that encodes a query as a vector
    # settings of some kinds
    model = encoder = after = stage = candidates = ""
    teacher = in_batch_teacher = joint_teacher = ""
    once = False  # exists for the first seed only

    def values(self) -> dict[str, Any]:
        """Return the system's settings as plain values."""
        return asdict(self)

    @property
    def complexity(self) -> int:
        """Return 0 for a system that compares words, 1 for a single retriever, and 2 for others."""
        if self.lexical:
            return 0
        return 1 if self.searches and self.neural and not self.parts() else 2

    def parts(self) -> list[str]:
        """Return the names of the systems that provide the runs to reorder or sum."""
        return []

    def teachers(self) -> dict[str, bool]:
        """Return whether it has each kind of teacher, for `cdmae.config.recipe.Stage.values`."""
        return {
            "teacher": bool(self.teacher or self.joint_teacher),
            "in_batch_teacher": bool(self.in_batch_teacher),
        }

    def columns(self, config: Config, name: str) -> dict[str, Any]:
        """Return values for the rules in addition to its settings."""
        return {}

    def check(self, config: Config, name: str) -> None:
        """Refuse settings that conflict with other entries; keys in errors start at the entry."""

    def vectors(self, config: Config) -> str:
        """Return the kind of its vectors, as far as the config tells; empty without vectors.

        The kinds are dense, sparse, multi (a vector per word-piece) and unified.
        """
        return ""


@settings
class Searched(System):
    """A system whose vectors are searched, perhaps among the best passages of another system."""

    candidates: Annotated[str, Of("systems")] = ""
    """With a vector per word-piece: system whose best passages are scored; empty: all are, in a
    small collection [ColBERT: BM25].
    """
    candidates_depth: Positive = 1000
    """Number of these passages [ColBERT]."""

    def parts(self) -> list[str]:
        """Return the name of the system that provides the candidates."""
        return [self.candidates] if self.candidates else []


def check_kind(system: System, key: str, entries: dict[str, Any], kind: str) -> None:
    """Refuse a named entry of another kind."""
    entry = entries[getattr(system, key)]
    if entry.kind != kind:
        fitting = [name for name in entries if entries[name].kind == kind]
        words = f", of kind {entry.kind}; expected one of kind {kind} ({', '.join(fitting)})"
        raise unfit(system, key, words)


def check_searches(system: System, key: str, config: Config) -> None:
    """Refuse a named system that does not search a whole collection."""
    if not config.systems[getattr(system, key)].searches:
        words = ", which orders the passages of another system; expected one that searches"
        raise unfit(system, key, words)


def check_searched(system: System, config: Config) -> None:
    """Refuse candidates for single vectors, and Lucene for vectors that are not sparse."""
    if system.candidates:
        if system.vectors(config) != "multi":
            raise unfit(system, "candidates", ", but its vectors are single; expected head multi")
        check_searches(system, "candidates", config)
    if system.engine == "lucene" and system.vectors(config) != "sparse":
        raise unfit(system, "engine", ", but its vectors are not sparse; expected exact")
