"""What Snakemake records of parameters, and how a change is named."""

import logging
from types import SimpleNamespace

import snakemake
from snakemake.jobs import Reason
from snakemake.persistence import ParamsChange
from snakemake_interface_logger_plugins.common import LogEvent

from workflow.recorded import SAID, Json, Reasons, named, plain, summary


def change(before, now):
    """As Snakemake compares what it has recorded of two mappings."""
    return ParamsChange(only_old={repr(before)}, only_new={repr(now)}, files={"a"})


def job(change, rule="train", *wildcards):
    reason = SimpleNamespace(params_changed=change)
    return SimpleNamespace(
        dag=SimpleNamespace(reason=lambda _: reason),
        rule=SimpleNamespace(name=rule),
        wildcards=wildcards,
    )


def test_settings_are_recorded_in_one_form_and_given_to_commands_as_json():
    one = plain({"b": (1, 2), "a": {"y": None, "x": "it's"}})
    assert repr(one) == repr(plain({"a": {"x": "it's", "y": None}, "b": [1, 2]}))
    assert repr(one) == "{'a': {'x': \"it's\", 'y': None}, 'b': [1, 2]}", "as a plain mapping"
    assert isinstance(one, Json)
    assert f"{one['a']}" == '{"x": "it\'s", "y": null}'


def test_a_change_is_named_by_its_keys():
    before = {"stage": {"alpha": 4.0, "margin": 0.1, "group": 4, "lengths": []}, "seed": 42}
    now = {"stage": {"alpha": 0.5, "depth": 9, "group": 4, "lengths": [1]}, "seed": 42}
    assert named(change(before, now)) == [
        "stage.alpha was 4.0 and is 0.5",
        "stage.margin was 0.1 and is not set",
        "stage.lengths was [] and is [1]",
        "stage.depth is 9 and was not set",
    ]
    modules = [{"cdmae.files": "1", "workflow/scripts/fuse.py": each} for each in "12"]
    assert named(change(*modules)) == ["code of workflow/scripts/fuse.py"]
    assert named(change("alpha: 4.0", now)) == [
        "its parameters were recorded by another version of the workflow"
    ]
    assert named(ParamsChange()) == []


def test_the_plan_names_the_jobs_of_a_change():
    alpha = change({"alpha": 1}, {"alpha": 2})
    jobs = [job(alpha, "train", str(number)) for number in range(7)] + [job(ParamsChange())]
    assert summary(jobs) == [
        "alpha was 1 and is 2: train 0; train 1; train 2; train 3; train 4; 2 more"
    ]


def test_the_reason_that_snakemake_logs_names_the_change():
    """Snakemake 9.27.1 writes both sets after these words; `./run -n` of another version must be
    looked at.
    """
    assert snakemake.__version__ == "9.27.1"
    reason = Reason()
    reason.code_changed = True
    reason.params_changed = change({"alpha": 1}, {"alpha": 2})
    record = logging.makeLogRecord({"event": LogEvent.JOB_INFO, "jobid": 3, "reason": str(reason)})
    assert Reasons({3: job(reason.params_changed)}.__getitem__)(record)
    assert record.reason == f"Code has changed since last execution; {SAID}alpha was 1 and is 2"
    other = logging.makeLogRecord({"msg": "words"})
    assert Reasons({}.__getitem__)(other) and not hasattr(other, "reason")
