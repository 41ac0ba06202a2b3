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


def test_a_cache_is_a_folder_to_which_one_may_write(tmp_path, monkeypatch, read_only):
    for place in (tmp_path, "s3://bucket/cache"):
        monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(place))
        surroundings.check_cache()
    read_only(tmp_path)
    for place in (tmp_path, tmp_path / "nowhere", ""):
        monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(place))
        said = f"variable SNAKEMAKE_OUTPUT_CACHE, which is {place or 'not set'}; allowed: a folder that is there, and"
        with pytest.raises(InputError, match=f"^--cache needs the environment {said}"):
            surroundings.check_cache()
