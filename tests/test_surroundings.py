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


def test_an_image_is_a_file_or_an_address_from_which_apptainer_pulls_it(tmp_path, monkeypatch):
    monkeypatch.delenv("CDMAE_IMAGE", raising=False)
    (tmp_path / "envs").mkdir()
    with pytest.raises(InputError, match=f"^the image {tmp_path}/envs/cdmae.sif does not exist; build it with `appt"):
        surroundings.image_here(tmp_path)
    (tmp_path / "envs/cdmae.sif").touch()
    assert surroundings.image_here(tmp_path) == f"{tmp_path}/envs/cdmae.sif"
    for address in ("docker://registry.example/cdmae:1", "oras://registry.example/cdmae:1", "library://me/cdmae"):
        monkeypatch.setenv("CDMAE_IMAGE", address)
        assert surroundings.image_here(tmp_path) == address
    for wrong in ("dcoker://cdmae", "https://example.org/cdmae.sif", str(tmp_path / "envs")):
        monkeypatch.setenv("CDMAE_IMAGE", wrong)
        with pytest.raises(InputError, match="an address with docker://, oras://, library://$"):
            surroundings.image_here(tmp_path)
