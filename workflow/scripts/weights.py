"""Choose the weights of a fusion: given, equal, or tuned on judged queries."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.collections.store import read_qrels, read_queries
from cdmae.evaluation.tuning import best_weights
from cdmae.files import write_json
from cdmae.log import say
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import read_run


def main(
    *,
    systems: list[str],
    method: str,
    k: float,
    output: Path,
    depth: int,
    weights: list[float] | None = None,
    runs: list[Path] | None = None,
    judged: Path | None = None,
    tuned: list[str] | None = None,
):
    """Write the weights of a fusion: `weights`, equal weights, or weights tuned on judged queries.

    Tuned weights come with the value of each query under weights that the other half chose.

    tuned: a split and a measure; the weights maximise this measure of the fused `runs` on the
    split. judged: a file in the folder of the collection with this split.
    """
    about = {
        "method": method,
        "k": k,
        "systems": systems,
        "weights": weights or [1.0] * len(systems),
    }
    if judged and tuned:
        folder, (split, measure) = judged.parent, tuned
        fusion = Fusion([read_run(path) for path in runs or ()], method, k)
        queries = read_queries(folder, split)["query_id"]
        tuned_to = best_weights(fusion, read_qrels(folder, split), queries, measure, depth)
        about |= {"weights": tuned_to.weights, "on": [folder.name, split], "measure": measure}
        about |= {"value": tuned_to.value}
        about |= {"held_out": dict(zip(queries, tuned_to.held_out.tolist(), strict=True))}
        shares = zip(tuned_to.weights, systems, strict=True)
        say(", ".join(f"{weight:g} x {name}" for weight, name in shares))
    write_json(output, about)


if __name__ == "__main__":
    run_command(main)
