"""Published versions of sentence-transformers, unpacked from their wheels and not installed.

They are fetched once and kept in the checkout, next to the published checkpoints. If the package
index cannot be reached, the tests that use them are skipped.
"""

import hashlib
import tempfile
import zipfile
from pathlib import Path

from published_models import CACHE, download, locked

WHEELS = {  # the SHA-256 of the wheel, by version
    "2.7.0": "6a7276b05a95931581bbfa4ba49d780b2cf6904fa4a171ec7fd66c343f761c98",
    "3.4.1": "e026dc6d56801fd83f74ad29a30263f401b4b522165c19386d8bc10dcca805da",
    "5.1.2": "724ce0ea62200f413f1a5059712aff66495bc4e815a1493f7f9bca242414c333",
    "5.6.1": "cefbb17b6325a982a4732c8c49fb013375392687049d1de3d435c4b04060680b",
    "6.2.0": "ffb51ccfef65427cfa61776d0eeeb257600b0099cf0c7533ae9a6856d31e4665",
}


def fetch(version):
    """The folder with the package of a version; skips if the package index does not give it."""
    folder = CACHE / f"sentence-transformers-{version}"
    with locked(folder.name):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as aside:
                wheel = download(f"sentence-transformers=={version}", Path(aside))
                assert hashlib.sha256(wheel.read_bytes()).hexdigest() == WHEELS[version], wheel.name
                with zipfile.ZipFile(wheel) as files:
                    files.extractall(Path(aside, "package"))
                Path(aside, "package").rename(folder)
    return folder
