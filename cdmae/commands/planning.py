"""The command that estimates a run before it begins."""

from __future__ import annotations

from typing import Annotated, Any

import yaml
from typer import Option

from cdmae.commands.configs import ConfigFiles, configured
from cdmae.errors import InputError
from cdmae.plan.machine import PEAK


def plan(
    configfile: ConfigFiles = (),
    config: Annotated[list[str], Option(help="values as for a run, such as seed=42")] = (),
    gpus: Annotated[
        int | None, Option(min=0, help="GPUs of another machine; 1 if only --gpu is given")
    ] = None,
    gpu: Annotated[str, Option(help=f"their kind: {', '.join(PEAK)}")] = "",
) -> None:
    """Estimate the operations of a run's networks, their time, GPU-hours, and disk.

    It counts the whole run, also results that exist. Without --gpus and --gpu, it is for this
    machine.
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import Plan, text

    here = machine.here()
    described = machine.Machine(
        cores=here.cores,
        gpus=here.gpus or int(bool(gpu)) if gpus is None else gpus,
        gpu=gpu or here.gpu,
    )
    print(text(Plan(configured(configfile, values_of(config))), described))


def values_of(config: list[str]) -> dict[str, Any]:
    """Read the values of ``--config``, KEY=VALUE with a value in YAML, as Snakemake does."""
    values = {}
    for word in config:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--config has {word}; expected KEY=VALUE, such as seed=42")
        try:
            values[key] = yaml.load(value, yaml.BaseLoader)  # makes text only
        except yaml.YAMLError:
            values[key] = value
    return values
