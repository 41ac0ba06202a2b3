"""Commands that write a finished run's results for other programs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from cdmae.config import seeds, splits, systems
from cdmae.config.checks import read_measure
from cdmae.errors import InputError
from cdmae.formats import plural
from cdmae.layout import place
from workflow.commands.answering import best_system, described
from workflow.commands.configs import ROOT, chosen, configured, existing


def compare(*runs: str, qrels: str, measures: str = "") -> None:
    """Compare runs with the first one: means, differences, paired t-tests corrected by Holm.

    Runs are two or more files with lines `query_id Q0 passage_id rank score system`. Files may be
    compressed (.gz).

      --qrels     judgments, in TREC's four columns or BEIR's three
      --measures  measures of ir_measures, separated by commas; default:
                  RR@10,R@50,R@1000,nDCG@10

    Examples:
      ./run compare bm25.run mine.run --qrels dev.tsv --measures nDCG@10,RR@10
    """
    from cdmae.config.schema import Evaluation
    from cdmae.evaluation import compare

    if len(runs) < 2:
        raise InputError(
            "compare needs at least two runs, such as "
            "./run compare bm25.run mine.run --qrels dev.tsv"
        )
    named = measures.split(",") if measures else Evaluation().measures
    names = [str(read_measure(name, of=("--measures",))) for name in named]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"--measures has {name} twice; allowed: each once")
    print(compare.table(compare.compare(list(map(Path, runs)), Path(qrels), names)))


def sizes(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    system: list[str] = (),  # type: ignore[assignment]
    collection: str | None = None,
    split: str | None = None,
    dimensions: str = "",
) -> None:
    """Measure smaller vectors of retrievers: with fewer dimensions, or fewer bits per number.

    One row per size: bytes per passage, the first measure of the evaluation, and a paired t-test
    against the system's full vectors, corrected by Holm. The command reads the results of a
    finished run.

      --system      one or several retrievers of the config; default: the best one on dev, or on
                    the split that decides in the report
      --collection  a collection of the evaluation; default: the one that the report shows
      --split       a split of the collection; default: the first one
      --dimensions  numbers separated by commas; default: a half, a quarter and an eighth of all
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run sizes --system cdmae-stage3 --split test
      ./run sizes --configfile config/smoke.yaml --system mae-stage1 --dimensions 24,12
    """
    config = configured(configfile)
    retrievers = [name for name, each in config.systems.items() if each.is_dense(config)]
    if not retrievers:
        raise InputError(
            "the config has no dense retriever; give the --configfile of a run that has one"
        )
    main = splits.roles(config).deciding.collection
    judged = [name for name, measured in config.evaluation.collections.items() if measured]
    collection = chosen("collection", collection, judged, [main])
    evaluated = list(config.evaluation.collections[collection])
    split = chosen("split", split, evaluated, evaluated[:1])
    if not all(width.isdecimal() for width in dimensions.split(",") if dimensions):
        raise InputError(
            f"--dimensions is {dimensions}; allowed: whole numbers separated by commas, such as "
            "384,192"
        )
    for name in system:
        chosen("system", name, retrievers, [])
    compared = list(dict.fromkeys(system)) or [best_system(config, retrievers)]
    abouts = {name: described(config, name, collection) for name in compared}
    folder = existing(place(config.results, "collection", collection=collection))

    from cdmae.evaluation import compare, compression
    from cdmae.plan import machine
    from cdmae.retrieval.asking import encode
    from cdmae.retrieval.vectors import read_vectors
    from cdmae.training import setup

    measure = config.evaluation.measured(collection, split)[0]
    threads = machine.here().cores
    frames = {
        name: compression.compare_sizes(
            partial(
                encode, about, length=config.evaluation.lengths.get(collection, 0), threads=threads
            ),
            read_vectors(about["vectors"]),
            Path(folder),
            split,
            measure,
            read_measure(measure).params.get("cutoff", config.evaluation.depth),
            widths=[int(width) for width in dimensions.split(",") if dimensions],
            threads=threads,
            device=str(setup.device()),
        )
        for name, about in abouts.items()
    }
    title = f"{', '.join(frames)} on {collection} {split}"
    print(f"{title}\n\n{compare.table(compression.side_by_side(frames))}")


def check(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    write: bool = False,
) -> None:
    """Compare a finished run with the numbers of the README, which config/expected.yaml lists.

    A number is [OK] if it is equal as shown, and [OKish] if another seed may cause the difference.
    Otherwise it is [FAIL], and the exit status is 1. Tables made by other config files or seeds are
    omitted.

      --write       write the run's numbers into config/expected.yaml, and print their rows in
                    Markdown
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run check
      ./run check --configfile config/objectives.yaml
    """
    from cdmae.evaluation import expected
    from cdmae.evaluation.per_query import read_measures

    config = configured(configfile)
    path = ROOT / "config/expected.yaml"
    tables = expected.read(path)
    names = [os.path.relpath(file, ROOT) for file in configfile]
    chosen_tables = expected.made_by(tables, names, config.seeds or (config.seed,))
    if not chosen_tables:
        raise InputError(
            f"{path} has no table for these config files and seeds; its tables name theirs under "
            "configfile and seeds"
        )

    def values(system: str, collection: str, split: str, measure: str) -> list[Any]:
        replicas = [name for name in config.systems if seeds.base(name) == system]
        if not replicas:
            raise InputError(
                f"{path} names the system {system}, which the config lacks; correct one of them"
            )
        files = [existing(place(config.results, "measures", system=name)) for name in replicas]
        return expected.of_system(
            [read_measures(file) for file in files], measure, collection, split
        )

    failed = 0
    for index in chosen_tables:
        table = tables[index]
        read_values = partial(values, measure=table.measure)
        found = expected.measured(table, read_values, partial(systems.learns, config))
        if write:
            tables[index] = found
            print(f"{table.title}\n\n{expected.markdown(found)}\n")
            continue
        verdicts = expected.compare(table, found)
        failed += sum(verdict.word == "FAIL" for verdict in verdicts)
        print("\n".join([table.title, *map(str, verdicts), ""]))
    if write:
        expected.write(path, tables)
    if failed:
        raise InputError(f"{plural(failed, 'number')} of the README differ by more than the noise")
