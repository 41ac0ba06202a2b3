"""Fuse the runs of several systems, with weights that are given, equal or tuned."""

from pathlib import Path

from cdmae.collections.store import read_qrels, read_queries
from cdmae.evaluation.tuning import best_weights
from cdmae.files import write_json
from cdmae.job import run
from cdmae.log import say
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import Target, read_run, write_run


def main(
    *,
    of: list[str],
    method: str,
    k: float,
    weights: list[float],
    tuned_on: list[str],
    tuning_measure: str,
    tuning_depth: int,
    tuning_runs: list[Path],
    judged: Path | None,
    targets: list[Target],
    output: Path,
    depth: int,
) -> None:
    """Fuse the runs of the systems `of`, and write the weights next to the fused runs.

    targets: with a run of every system. tuned_on: the collection `judged` and its split on which
    the weights maximise `tuning_measure`. The weights come with the value of each query under
    weights that the other half of the queries chose.
    """
    about = {"method": method, "k": k, "systems": of, "weights": weights or [1.0] * len(of)}
    if judged:
        collection, split = tuned_on
        parts = [read_run(folder / f"{collection}.{split}.parquet") for folder in tuning_runs]
        queries = read_queries(judged, split)["query_id"]
        qrels = read_qrels(judged, split)
        fusion = Fusion(parts, method, k)
        best = best_weights(fusion, qrels, queries, tuning_measure, tuning_depth)
        about |= {"weights": best.weights, "on": tuned_on, "measure": tuning_measure}
        about |= {"value": best.value}
        about |= {"held_out": dict(zip(queries, best.held_out.tolist(), strict=True))}
        shares = zip(best.weights, of, strict=True)
        say(", ".join(f"{weight:g} x {name}" for weight, name in shares))
    for target in targets:
        fusion = Fusion([read_run(run) for run in target.runs], method, k)
        write_run(target.output, fusion.run(about["weights"], depth))
    write_json(output / "weights.json", about)


if __name__ == "__main__":
    run(main, snakemake)
