"""Several systems as one."""

from pathlib import Path

from cdmae.cli import command
from cdmae.collections.store import read_qrels, read_queries
from cdmae.errors import InputError
from cdmae.evaluation.tuning import best_weights
from cdmae.files import write_json
from cdmae.log import say
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import read_run, write_run


@command
def main(
    *,
    systems: list[str],
    runs: list[Path],
    outputs: list[Path],
    chosen: Path,
    method: str,
    k: float,
    depth: int,
    weights: list[float] | None = None,
    judged: Path | None = None,
    tuned: list[str] | None = None,
):
    """Fuse the runs of several systems: for each output in turn, one run of every system.

    The weights are equal, or `weights`, or chosen: with `tuned`, a split and a measure, those with its best value
    on that split of the collection in whose folder `judged` lies; its output is among the others. `chosen` tells them.
    """
    if len(runs) != len(systems) * len(outputs):
        raise InputError(f"--runs are {len(runs)}; allowed: {len(systems)} for each of {len(outputs)} outputs")

    def fusion(number: int) -> Fusion:
        parts = runs[number * len(systems) : (number + 1) * len(systems)]
        return Fusion([read_run(path) for path in parts], method, k)

    about = {"method": method, "systems": systems, "weights": weights or [1.0] * len(systems)}
    if judged and tuned:
        folder, (split, measure) = judged.parent, tuned
        number = [path.stem for path in outputs].index(f"{folder.name}.{split}")
        queries = read_queries(folder, split)["query_id"]
        best, value = best_weights(fusion(number), read_qrels(folder, split), queries, measure, depth)
        about |= {"weights": best, "on": [folder.name, split], "measure": measure, "value": value}
        say(", ".join(f"{weight:g} x {name}" for weight, name in zip(best, systems, strict=True)))
    for number, output in enumerate(outputs):
        write_run(output, fusion(number).run(about["weights"], depth))
    write_json(chosen, about)
