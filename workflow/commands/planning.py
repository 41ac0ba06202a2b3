"""The command that estimates a run before it begins."""

from __future__ import annotations

import os
from typing import Any

from cdmae.config.reading import check_typed
from cdmae.errors import InputError
from workflow.commands.configs import configured


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
      --gpu         kind of the GPUs: h200, h100, a100, l40s, v100, rtx4090
      --memory      memory in GB; unknown by default for another machine
      --all         count finished jobs, too
      --configfile  config files as for a run, which overlay config/config.yaml
      --config      values as for a run, such as 'seeds=[]'

    Times are sums of prices per operation. cdmae/plan/prices.csv lists the prices with their
    sources; none was measured on this machine.

    Examples:
      ./run plan
      ./run plan table_main
      ./run plan --configfile config/paper.yaml --cores 128 --gpus 8 --gpu h200 --memory 1024
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import text
    from cdmae.plan.planned import Planned, priced
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
    # jobs request the GPUs of the described machine
    os.environ["CDMAE_DEVICE"] = "gpu" if size["gpus"] else "cpu"
    planned = dry_run(configfile, targets, **size, values=values)
    jobs = [priced(settings, job) for job in planned]
    print(text(Planned(settings), jobs, machine_, everything=all))


def values_of(config: list[str]) -> dict[str, Any]:
    """Read the values of ``--config`` in the same way as Snakemake."""
    from snakemake import cli
    from snakemake.exceptions import CliException

    try:
        values = cli.parse_config(config)
    except (CliException, ValueError) as error:
        raise InputError(f"{error}; ./run plan --help lists the options") from None
    check_typed(config)
    return values
