"""The command, and a hub with one model."""

import contextlib

import huggingface_hub
import pytest
from proposal_data import retriever

from cdmae import commands
from cdmae.commands import proposing
from cdmae.config.load import load
from cdmae.config.reading import gather

MOST_LINES = 40


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """A function that runs the command, and returns the config and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(*words):
        commands.command(["new", "--force", *map(str, words)])
        text = (tmp_path / "my.yaml").read_text()
        assert len(text.splitlines()) <= MOST_LINES
        values = gather(tmp_path / "none.yaml", [tmp_path / "my.yaml"])
        with contextlib.chdir(proposing.ROOT):  # where a run looks for relative paths
            return load(values), capsys.readouterr().out

    return run


@pytest.fixture
def at_hub(tmp_path, monkeypatch, tiny_bert):
    """A hub that answers, and the folder with the small files of its only model, a retriever."""
    folder = retriever(tmp_path / "snapshot", tiny_bert, "Pooling", pooling={})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(folder))
    return folder
