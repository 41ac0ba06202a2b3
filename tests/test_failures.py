"""What is printed last: which jobs failed, and why."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from workflow.failures import Failures, ending, last_words

FRAMES = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    go()\n'
TORCHRUN = f"{FRAMES}torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\npretrain.py FAILED\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "cdmae has 5 steps: few\ncdmae: a try\ncdmae: diverged\nE0101 failed: a\n",
            "cdmae: diverged",
        ),
        (f"step 3\n{FRAMES}ValueError: no: 3\nleft over\n", "ValueError: no: 3"),
        (
            f"{FRAMES}KeyError: 'a'\n\nDuring handling of it, another:\n\n{FRAMES}a.b.Odd\n",
            "a.b.Odd",
        ),
        (f"{FRAMES}ValueError: first\nsecond\n", "ValueError: first"),
        (
            '  File "a.py", line 1\n    x =\n       ^\nSyntaxError: invalid syntax\n',
            "SyntaxError: invalid syntax",
        ),
        (
            "".join(f"[rank1]: {line}\n" for line in f"{FRAMES}OSError: x".split("\n")) + TORCHRUN,
            "OSError: x",
        ),
        (f"cdmae: diverged\n{TORCHRUN}", "cdmae: diverged"),
        ("step 3: loss 4.0\n", ""),
        ("", ""),
    ],
)
def test_the_last_words_of_a_log(log, words):
    assert last_words(log) == words


@pytest.mark.parametrize(
    ("error", "how"),
    [
        ("Command 'python a' returned non-zero exit status 137.", "was killed by SIGKILL"),
        ("Command 'python a' died with <Signals.SIGTERM: 15>.", "was killed by SIGTERM"),
        ("Command 'python a' returned non-zero exit status 127.", "ended with exit status 127"),
        ("Missing output files", "failed"),
    ],
)
def test_how_a_command_ended(error, how):
    assert ending(error) == how


def record(event, message="", **extra):
    return logging.makeLogRecord({"msg": message, "event": event, **extra})


def job(megabytes):
    return SimpleNamespace(resources={"mem_mb": megabytes})


def failed(jobid, log, shellcmd="python a", rule_msg=None):
    parts = {
        "jobid": jobid,
        "log": [str(log)],
        "shellcmd": shellcmd,
        "rule_msg": rule_msg,
        "rule_name": "pretrain",
    }
    return record(LogEvent.JOB_ERROR, **parts)


def repeated(command, status):
    text = f"RuleException:\nCalledProcessError in file \"x.smk\", line 3:\nCommand 'set -e; {command}' returned "
    return record(LogEvent.ERROR, f"{text}non-zero exit status {status}.")


def test_a_job_that_was_killed_is_named_with_its_memory_and_its_command_is_printed_once(tmp_path):
    """bash prints the command of what is killed; otherwise Snakemake does, twice."""
    failures = Failures(lambda number: job(1000 * number))
    killed = tmp_path / "killed.log"
    wrong = tmp_path / "wrong.log"
    assert not failures(repeated("python a", 137)) and not failures(repeated("python b", 1))
    killed.touch()
    wrong.write_text("step 1\n")
    records = [failed(2, killed), failed(4, wrong, "python b")]
    assert all(map(failures, records))
    assert [each.shellcmd for each in records] == [None, "python b"]
    asked = "it had requested {} MB of memory (mem_mb)"
    assert list(map(str, failures)) == [
        f"{killed}: the job was killed by SIGKILL; it wrote nothing; {asked.format('2,000')}",
        f"{wrong}: the job ended with exit status 1; its last line is: step 1; {asked.format('4,000')}",
    ]


def test_a_job_of_a_cluster_is_named_with_the_words_of_its_queue_unless_another_attempt_went_well(
    tmp_path,
):
    failures = Failures(lambda number: job(0))
    for jobid in (1, 2):
        assert failures(
            failed(jobid, tmp_path / f"{jobid}.log", rule_msg="SLURM-job '7' failed: OUT_OF_MEMORY")
        )
    assert failures(record(LogEvent.JOB_FINISHED, job_id=2))
    assert failures(record(LogEvent.JOB_INFO)) and failures(record(None, "words"))
    said = (
        f"{tmp_path}/1.log: the job failed: SLURM-job '7' failed: OUT_OF_MEMORY; it wrote nothing"
    )
    assert list(map(str, failures)) == [said]
