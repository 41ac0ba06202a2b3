"""What a kind of system answers, with the answers that most kinds give."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cdmae.fields import Name, asdict, setting, settings, unfit

if TYPE_CHECKING:
    from cdmae.config.schema import Config

Columns = dict[str, Any]  # of a row of `cdmae.config.systems.systems`
Made = Callable[
    ..., str
]  # of the name of a place (`cdmae.layout`): where it is; refuses what is not there
Part = Callable[
    [str], Columns
]  # of the name of a system that another one is made from: what `asked` returns of it


@settings
class System:
    """Queries in, ranked passages with scores out.

    trained: it has a model of its own; searches: it searches a whole collection, so that its run
    can give negatives; answers: it can be asked a question of one's own; encodes: it makes a vector
    of a text; compared: the report looks at its runs query by query; teaches: a retriever may learn
    from its scores; scores_draws: these are made for the passages that a training draws, and are
    not of those that it ranks; index: what it reads of a collection that is only searched, below
    the results; model, encoder, stage, teacher: what most kinds do without.
    """

    trained = encodes = compared = teaches = scores_draws = False
    searches = answers = True
    index = ""
    model = encoder = stage = teacher = ""

    def values(self) -> dict[str, Any]:
        """Return its settings."""
        return asdict(self)

    def parts(self) -> list[str]:
        """Name the systems whose runs it orders or sums."""
        return []

    def columns(self, config: Config, name: str) -> Columns:
        """Return what the rules fill in for it besides its settings."""
        return {}

    def check(self, config: Config, name: str) -> None:
        """Refuse what does not fit other entries of the config; the keys of errors begin at the
        entry.
        """

    def check_mined(self, config: Config, collection: str, split: str) -> None:
        """Refuse to search training queries where it cannot; the keys of errors begin at the entry."""

    def positions(self, config: Config) -> int | None:
        """Return the longest input of its model; None without one, or where it is not known before
        a job.
        """
        return None

    def asked(self, config: Config, name: str, made: Made, part: Part) -> Columns:
        """Return what `cdmae.retrieval.asking` reads of it: its settings, folders, and the systems
        it is made from.
        """
        return self.values()


@settings
class Trained(System):
    """A system with a model of its own, which a stage trains."""

    trained = True

    encoder: Name = setting(meaning="the entry of `encoders` that it starts from", names="encoders")
    stage: Name = setting(meaning="entry of `stages`, of the same kind", names="stages")
    negatives: Name = setting(
        meaning="the system whose run gives the negatives", source="3.4", names="systems"
    )

    def columns(self, config: Config, name: str) -> Columns:
        """Return what it is trained on, whose word-pieces it reads, and what decides what is drawn."""
        stage = config.stages[self.stage]
        return stage.drawn() | {
            "corpus": stage.collection,
            "start": config.encoders[self.encoder].start,
        }

    def positions(self, config: Config) -> int | None:
        """Return the longest input of its start."""
        return config.starts[config.encoders[self.encoder].start].known_positions()

    def check(self, config: Config, name: str) -> None:
        """Refuse a stage of another kind, and negatives of a system that does not search."""
        kind = self.kind  # of the class that has it
        check_kind(
            self,
            "stage",
            config.stages,
            lambda stage: stage.kind == kind,
            f"a stage of kind {kind}",
        )
        searching = "a system that searches a whole collection"
        check_kind(self, "negatives", config.systems, lambda system: system.searches, searching)


def check_kind(
    system: Trained, key: str, entries: dict[str, Any], fits: Callable[[Any], bool], what: str
) -> None:
    """Refuse an entry that a system names unless it `fits`; what: those that do, in words."""
    kind = entries[getattr(system, key)].kind
    if not fits(entries[getattr(system, key)]):
        fitting = (
            ", ".join(name for name, entry in entries.items() if fits(entry)) or "there is none"
        )
        raise unfit(system, key, f", of kind {kind}; allowed: {what} ({fitting})")
