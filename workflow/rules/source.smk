# Finds the source, wherever Snakemake reads this file from, and makes its packages importable.

import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from snakemake.utils import min_version

min_version("9.20")


def checkout(folder):
    """Return the folder of the checkout that contains workflow/rules.

    Python imports no packages from a repository that a module names by github() or gitfile(), so
    each commit of such a repository is unpacked once, below .snakemake in the working directory.
    """
    if os.path.isabs(str(folder)):
        return Path(str(folder)).parents[1]
    if hasattr(folder, "repo_path"):  # gitfile()
        from git import Repo

        repository = Repo(folder.repo_path)
    else:
        folder.fetch_if_required()
        repository = folder.hosted_repo.repo
    commit = repository.commit(folder.ref).hexsha
    copy = Path(".snakemake/cdmae", commit).absolute()
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=copy.parent))
        with tempfile.TemporaryFile() as archive:
            repository.archive(archive, commit)
            archive.seek(0)
            with tarfile.open(fileobj=archive) as files:
                files.extractall(aside, filter="data")
        try:
            aside.rename(copy)
        except OSError:  # another process was faster
            shutil.rmtree(aside)
    return copy


source = checkout(workflow.current_basedir)
if str(source) not in sys.path:
    sys.path.insert(0, str(source))


def source_path(name):
    """Return the path of a source file: relative in a checkout, so that a copy is up to date."""
    path = source / name
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def source_file(name):
    """Return a source file as an input."""
    return local(source_path(name))
