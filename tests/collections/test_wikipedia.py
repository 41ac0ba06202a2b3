"""Wikipedia's articles from a wheel: descriptions are queries, and the archive is checked."""

import hashlib
import json
import zipfile

import pytest
from small_collections import relevant

from cdmae.collections.sources import wikipedia
from cdmae.errors import InputError


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A small wheel in the published form, with its checksum."""
    articles = {}
    for row in range(60):
        description = "shared by two" if row < 2 else f"subject number {row}"
        own = {"title": f"T{row}", "extract": f"Text {row}.", "description": description}
        articles[f"T{row}"] = own
    articles["T58"]["description"] = None
    articles["T59"]["extract"] = ""
    with zipfile.ZipFile(tmp_path / wikipedia.WHEEL, "w") as archive:
        for locale in wikipedia.LOCALES.values():
            archive.writestr(wikipedia.MEMBER.format(locale), json.dumps(articles))
    content = (tmp_path / wikipedia.WHEEL).read_bytes()
    monkeypatch.setattr(wikipedia, "SHA256", hashlib.sha256(content).hexdigest())
    return tmp_path


@pytest.mark.parametrize("edition", ["en", "fr", "es"])
def test_a_description_of_one_article_asks_for_it(wheel, edition):
    settings = wikipedia.Settings(edition=edition, files=str(wheel))
    collection = settings.load()
    assert list(collection.rows())[5] == ("T5", "T5", "Text 5.")
    assert len(collection.passages) == 59
    splits = [relevant(collection, split) for split in settings.judged()]
    assert all(splits)
    expected = {f"subject number {row}": [f"T{row}"] for row in range(2, 58)}
    assert {query: names for asked in splits for query, names in asked.items()} == expected


def test_another_archive_is_refused(wheel):
    with zipfile.ZipFile(wheel / wikipedia.WHEEL, "a") as archive:
        archive.writestr("more", "")
    with pytest.raises(InputError, match="has another checksum than"):
        wikipedia.Settings(files=str(wheel)).load()
