"""What tests share: no network, a source of collections, a config of every kind."""

import copy
import gc
import os
import shutil
import sys
import types
from pathlib import Path

# Tests run in several processes. Set before torch is imported: threads of several processes on
# the same cores would make tiny networks many times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Lucene's searches here are short: Java's second compiler would take longer than it saves.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

import pytest  # noqa: E402

os.environ["HF_HUB_OFFLINE"] = "1"  # a test that would download must fail at once
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

VALUES = {
    "results": "out",
    "seed": 7,
    "collections": {"docs": {"source": "toy", "size": 3}, "other": {"source": "toy"}},
    "starts": {"small": {"collection": "docs", "vocabulary": 300, "layers": 2, "hidden": 8, "heads": 2}},
    "importance": {"ami": {"window": 3}},
    "pretraining": {"start": "small", "collection": "docs", "importance": "ami", "steps": 10},
    "encoders": {
        "none": {"objective": "none"},
        "mae": {"decoder_masking": "uniform"},
        "cdmae": {"decoder_masking": "importance"},
    },
    "training": {"collection": "docs", "epochs": 1, "group": 4, "rdrop": 0.5},
    "stages": {
        "stage1": {"kind": "retriever", "depth": 50},
        "stage3": {"kind": "retriever", "depth": 20, "alpha": 0.3},
        "rerank": {"kind": "reranker", "depth": 30, "forward_factor": 2},
    },
    "systems": {
        "bm25": {"kind": "bm25"},
        "one": {"kind": "retriever", "encoder": "cdmae", "stage": "stage1", "negatives": "bm25"},
        "cross": {"kind": "reranker", "encoder": "mae", "stage": "rerank", "negatives": "one", "reranks": "one"},
        "three": {
            "kind": "retriever", "encoder": "cdmae", "stage": "stage3", "negatives": "one", "teacher": "cross",
        },
        "fused": {"kind": "fusion", "of": ["bm25", "three"]},
        "foreign": {"kind": "external", "model": "some/model"},
    },
    "evaluation": {"collections": {"docs": ["dev", "test"], "other": ["test"]}, "baseline": "bm25"},
}  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """In several processes, begin with what takes longest; the first file makes a run for others."""
    if hasattr(config, "workerinput"):
        longest = (
            "tests/workflow/test_smoke.py",
            "tests/workflow/test_slurm.py",
            "tests/workflow/",
        )
        items.sort(key=lambda item: [not item.nodeid.startswith(path) for path in longest])


def pytest_collection_finish():
    """Spare the garbage collector what the imports made: it would walk over all of torch and
    transformers again.
    """
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def quick_files():
    """What tests write need not survive a power cut; thousands of small files would wait for the
    disk.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def denormals():
    """Undo what `training.set_up` does to its process: other tests look at the smallest numbers."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts shell scripts and links to real programs on the PATH, `alone` or before
    all others.
    """
    folder = tmp_path / "bin"

    def put(scripts, links=(), *, alone=False):
        folder.mkdir(exist_ok=True)
        for name, body in scripts.items():
            (folder / name).write_text(f"#!/bin/bash\n{body}\n")
            (folder / name).chmod(0o755)
        for name in links:
            (folder / name).symlink_to(shutil.which(name))
        monkeypatch.setenv(
            "PATH", str(folder) if alone else f"{folder}{os.pathsep}{os.environ['PATH']}"
        )
        return folder

    return put


@pytest.fixture(scope="session")
def rules():
    """The rules of the default config, for GPUs."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

    snakefile = Path(__file__).resolve().parents[1] / "Snakefile"
    with (
        pytest.MonkeyPatch.context() as patch,
        SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api,
    ):
        patch.chdir(snakefile.parent)
        patch.setenv("CDMAE_DEVICE", "gpu")
        return api.workflow(ResourceSettings(cores=1), snakefile=snakefile)._workflow.rules


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    from browser import MISSING, Browser

    if MISSING:
        pytest.skip(MISSING)
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="session")
def tiny_bert(tiny, tmp_path_factory):
    """The folder of a BERT of 2 layers x 32 for 512 word-pieces, with its tokenizer."""
    from tiny_training import encoder

    return encoder(tmp_path_factory.mktemp("bert"), tiny.encoder, positions=512)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The collection of nonsense that can be learnt, its tokens, encoder and negatives."""
    from tiny_training import write_tiny

    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def teacher(tmp_path):
    """A run with scores of every passage for every query of the tiny collection."""
    from tiny_training import write_teacher

    return write_teacher(tmp_path / "teacher.parquet")


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """What a small pre-training reads."""
    from tiny_pretraining import write_inputs

    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="session")
def pretrained(inputs, tmp_path_factory):
    """The encoder of an uninterrupted pre-training."""
    from tiny_pretraining import run

    return run(inputs, tmp_path_factory.mktemp("whole"))


@pytest.fixture
def values():
    """Plain values of a config in which every kind of entry stands once; a copy to be broken."""
    return copy.deepcopy(VALUES)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """A source named `toy`, as a file in cdmae/collections/sources would be one."""
    from cdmae import collections
    from cdmae.fields import Positive, settings

    @settings
    class Settings(collections.Source):
        size: Positive = 1
        """Passages."""

        def own_splits(self):
            return {"train": True, "dev": True, "test": True, "raw": False}

        def version(self):
            return {"toy": "1"}

    module = types.ModuleType("cdmae.collections.sources.toy")
    module.Settings = Settings
    monkeypatch.setitem(sys.modules, "cdmae.collections.sources.toy", module)
    listed = collections.names()
    monkeypatch.setattr(collections, "names", lambda: [*listed, "toy"])
    return module
