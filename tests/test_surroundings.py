"""What a run needs around it is looked at before it starts."""

import os

import pytest

from cdmae.errors import InputError
from workflow import surroundings


@pytest.fixture
def read_only(monkeypatch):
    """A function that makes folders read-only, which the permissions of files do not for root."""
    folders = []
    access = os.access
    monkeypatch.setattr(
        surroundings.os, "access", lambda path, mode: access(path, mode) and not (mode & os.W_OK and path in folders)
    )
    return folders.append


def test_a_checkout_without_room_for_the_records_of_snakemake(tmp_path, read_only):
    """They lie in a folder of their own, which may be another's or a link to where one may write."""
    surroundings.check_records(tmp_path)
    read_only(tmp_path)
    with pytest.raises(InputError, match=f"^{tmp_path} cannot be written to, where Snakemake keeps its records; allow"):
        surroundings.check_records(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    surroundings.check_records(tmp_path)
    read_only(tmp_path / ".snakemake")
    with pytest.raises(InputError, match=f"^{tmp_path}/.snakemake cannot be written to"):
        surroundings.check_records(tmp_path)
