"""Commands before and between runs: plan a run, and adopt orphaned training states."""

from __future__ import annotations

import os
from typing import Any

from cdmae.errors import InputError
from workflow import state
from workflow.commands.configs import configured
from workflow.surroundings import DEVICE, device_here, lock


def plan(
    *targets: str,
    configfile: list[str] = (),  # type: ignore[assignment]
    cores: int | None = None,
    gpus: int | None = None,
    gpu: str = "",
    memory: int | None = None,
    config: list[str] = (),  # type: ignore[assignment]
    all: bool = False,
) -> None:
    """Estimate the jobs, hours, disk and memory of a run.

    Targets are as for a run: a table or figure such as table_stages, or a path such as
    results/report/index.html. The default is the whole run, on this machine. Options describe
    another machine:

      --cores       processor cores
      --gpus        GPUs; default on a machine without GPUs: 1 with --gpu, otherwise 0
      --gpu         kind of the GPUs: h200, h100, a100, l40s, v100, rtx4090, t4
      --memory      memory in GB; unknown by default for another machine
      --all         count finished jobs, too
      --configfile  config files as for a run, which overlay config/config.yaml
      --config      values as for a run, such as seed=42

    Times are sums of prices per operation. cdmae/plan/prices.csv lists the prices with their
    sources; none was measured on this machine.

    Examples:
      ./run plan
      ./run plan table_main
      ./run plan --configfile config/paper.yaml --cores 128 --gpus 8 --gpu h200 --memory 1024
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import text
    from cdmae.plan.planned import Planned
    from workflow import recorded
    from workflow.dry_run import dry_run

    values = values_of(config)
    settings = configured(configfile, values)
    here = machine.here()
    elsewhere = (cores or 0) > here.cores or gpus not in (None, here.gpus) or bool(gpu)
    size = {
        "cores": here.cores if cores is None else cores,
        "gpus": here.gpus or int(bool(gpu)) if gpus is None else gpus,
    }
    bytes_ = None if elsewhere else here.memory
    if memory is not None:
        bytes_ = memory * 2**30
    machine_ = machine.Machine(**size, gpu=gpu or here.gpu, memory=bytes_)
    device_here()
    # jobs request the GPUs of the described machine
    os.environ[DEVICE] = "gpu" if size["gpus"] else "cpu"
    planned = dry_run(configfile, targets, **size, values=values)
    print(text(Planned(settings), list(planned), machine_, everything=all))
    for line in recorded.summary(planned.values()):
        print(f"changed    {line}")


def values_of(config: list[str]) -> dict[str, Any]:
    """Read the values of ``--config`` in the same way as Snakemake."""
    from snakemake import cli
    from snakemake.exceptions import CliException

    try:
        values = cli.parse_config(config)
    except (CliException, ValueError) as error:
        raise InputError(f"{error}; ./run plan --help lists the options") from None
    return values


def adopt(*, configfile: list[str] = ()) -> None:  # type: ignore[assignment]
    """Resume from the newest training states that an edit of the code has orphaned.

    Use this command only after edits that do not change any result. It moves the states to the
    folders in which the edited code looks for them.

      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run adopt
      ./run adopt --configfile mine.yaml
    """
    from workflow.dry_run import dry_run

    config = configured(configfile)
    trainings = {
        f"{job.rule}/{job.name}": state.folder_of(*details.params.state, details.input)
        for job, details in dry_run(configfile).items()
        if hasattr(details.params, "state") and all(map(os.path.exists, job.inputs))
    }
    with lock(config.results):
        adopted = [state.adopt(name, folder) for name, folder in trainings.items()]
    lines = [line for line in adopted if line]
    print("\n".join(lines or ["there is no older training state to resume from"]))
