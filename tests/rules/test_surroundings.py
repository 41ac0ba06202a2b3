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
        surroundings.os,
        "access",
        lambda path, mode: access(path, mode) and not (mode & os.W_OK and path in folders),
    )
    return folders.append


def test_a_checkout_without_room_for_the_records_of_snakemake(tmp_path, read_only):
    """They lie in a folder of their own, which may be another's or a link to where one may write."""
    surroundings.check_records(tmp_path, tmp_path)
    read_only(tmp_path)
    with pytest.raises(
        InputError,
        match=f"^{tmp_path} is not writable, and Snakemake keeps its records there; allow",
    ):
        surroundings.check_records(tmp_path, tmp_path)
    (tmp_path / ".snakemake").mkdir()
    surroundings.check_records(tmp_path, tmp_path)
    read_only(tmp_path / ".snakemake")
    with pytest.raises(InputError, match=f"^{tmp_path}/.snakemake is not writable"):
        surroundings.check_records(tmp_path, tmp_path)


def test_a_checkout_with_braces_in_its_path_is_refused(tmp_path):
    folder = tmp_path / "a{b}c"
    folder.mkdir()
    with pytest.raises(
        InputError, match="has braces in its path, which Snakemake reads as wildcards; rename it"
    ):
        surroundings.check_records(folder, tmp_path)


def test_results_are_locked_by_one_run_which_the_next_one_names(tmp_path):
    with surroundings.lock(str(tmp_path / "results")):
        with pytest.raises(
            InputError,
            match=f"another run .process {os.getpid()} on .* is working on .*; wait for it",
        ):
            surroundings.lock(str(tmp_path / "results"))
        (tmp_path / "results/.lock").write_text("\x1b[2J" + "x" * 10_000)
        with pytest.raises(InputError) as caught:
            surroundings.lock(str(tmp_path / "results"))
        assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 400
    surroundings.lock(str(tmp_path / "results")).close()


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_a_lock_that_somebody_made_of_another_file_is_refused(tmp_path, kind):
    """In a folder that a group shares: what is behind it is not written to, and nothing waits for
    it.
    """
    mine, lock = tmp_path / "mine.txt", tmp_path / "results/.lock"
    mine.write_text("precious")
    lock.parent.mkdir()
    {
        "link": lambda: lock.symlink_to(mine),
        "dangling link": lambda: lock.symlink_to(tmp_path / "nowhere"),
        "hard link": lambda: lock.hardlink_to(mine),
        "pipe": lambda: os.mkfifo(lock),
        "folder": lock.mkdir,
    }[kind]()
    words = (
        "is not writable: Is a directory"
        if kind == "folder"
        else "is not a plain file .*; delete it"
    )
    with pytest.raises(InputError, match=words):
        surroundings.lock(str(tmp_path / "results"))
    assert mine.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_an_image_is_a_file_or_an_address_from_which_apptainer_pulls_it(tmp_path, monkeypatch):
    monkeypatch.delenv("CDMAE_IMAGE", raising=False)
    (tmp_path / "envs").mkdir()
    with pytest.raises(
        InputError,
        match=f"^the image {tmp_path}/envs/cdmae.sif does not exist; build it with `appt",
    ):
        surroundings.image_here(tmp_path)
    (tmp_path / "envs/cdmae.sif").touch()
    assert surroundings.image_here(tmp_path) == f"{tmp_path}/envs/cdmae.sif"
    for address in (
        "docker://registry.example/cdmae:1",
        "oras://registry.example/cdmae:1",
        "library://me/cdmae",
    ):
        monkeypatch.setenv("CDMAE_IMAGE", address)
        assert surroundings.image_here(tmp_path) == address
    for wrong in ("dcoker://cdmae", "https://example.org/cdmae.sif", str(tmp_path / "envs")):
        monkeypatch.setenv("CDMAE_IMAGE", wrong)
        with pytest.raises(InputError, match="an address with docker://, oras://, library://$"):
            surroundings.image_here(tmp_path)
