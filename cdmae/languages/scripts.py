"""Scripts: the words and sentences of a text, and the language by which BM25 analyses it.

Chinese, Japanese, Thai, Lao, Burmese and Khmer are written without spaces between words. Wherever
this package counts words, two characters of Chinese or Japanese, or three letters of the others
with their vowel signs and tone marks, count as one word. Standard library only.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

# ranges of characters, in the syntax of regular expressions
_CHINESE = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_CHINESE += "\U00020000-\U0003ffff"  # with Japanese
_THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # with Lao, Burmese and Khmer
_MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
_MARKS += "\u102b-\u103e\u17b4-\u17d3"
_PUNCTUATION = "\u3001-\u3004\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\u2018-\u201f\u2026"
_WORD = re.compile(
    rf"[{_CHINESE}]{{1,2}}[{_PUNCTUATION}]*"
    rf"|(?:[{_THAI}][{_MARKS}]*){{1,3}}"
    rf"|[^\s{_CHINESE}{_THAI}]+"
)
_UNDIVIDED = re.compile(rf"[{_CHINESE}{_THAI}]+")
_RUN = re.compile(rf"{_UNDIVIDED.pattern}|[^{_CHINESE}{_THAI}]+")
# a line break between characters of these scripts is no space
_BREAK = re.compile(rf"(?<=[{_CHINESE}{_PUNCTUATION}{_THAI}])\s*\n\s*(?=[{_CHINESE}{_THAI}])")
# A full stop after a single letter is part of a name or an abbreviation: J. Smith, z. B., U.S.
# Thai and Lao have no mark for the end of a sentence; they have spaces only between clauses.
_END = re.compile(
    r"(?:(?<!\b[^\W\d_])\.|[!?؟۔])(?=\s+[\"'(«„“‘¿¡]?(?P<next>\w))"
    "|[。！？｡।॥။។][」』”’）)]*"
    r"|[\u0e00-\u0eff](?=\s+[\u0e00-\u0eff])"
)
# Before a name or a number, a sentence goes on after these words. English has none here.
_ABBREVIATION = re.compile(
    "Abb|Avv?|Bd|Bpk|Chr|Dipl|Doç|[Dd]ott|[Dd]rs?|Dra|[FH]r|hr|Ing|Ir|Jl|Kap|Lic|MM|Me|Mgr|Mme|Nr|Ny"
    "|[Pp]rof|Profa|Sig|Sn|Sra?|Srta|Str?|Tn|Uds?|bijv|bzw|ca|dhr|gen|inkl|inż|ks|mevr|mgr|nr|płk|sog"
    "|str|ul|vgl|św|акад|вул|г-жа|г-н|гг|доц|им|ім|проф|пр|св|стр|ул|డా|ডা|মো|डॉ|पं|प्रो"
)

AUTO = "auto"  # the language that `language_of` chooses
CHARACTERS = "characters"  # any language, by pairs of characters where a script has no spaces
WORDS = "words"  # any language, by its words in lower case
# languages that Lucene analyses, by their names in Anserini
LUCENE = (
    "ar", "bn", "da", "de", "en", "es", "fa", "fi", "fr", "hi", "hu", "id", "it", "ja", "ko", "nl",
    "no", "pl", "pt", "ru", "sv", "te", "tr", "uk", "zh",
)  # fmt: skip
# languages without spaces that the bundled Java cannot divide into words
BY_CHARACTERS = ("km", "lo", "my", "th")
LANGUAGES = (*LUCENE, *BY_CHARACTERS)
Language = Literal[AUTO, *LANGUAGES, CHARACTERS, WORDS]
# the language of a script, by the first word of its letters' Unicode names
_OF_SCRIPT = {
    "BENGALI": "bn", "DEVANAGARI": "hi", "HANGUL": "ko", "KHMER": "km", "LAO": "lo",
    "MYANMAR": "my", "TELUGU": "te", "THAI": "th",
}  # fmt: skip
# frequent words of languages that share a script, the usual language first
_FREQUENT = {
    "LATIN": {
        "en": "the of and to is that for with",
        "da": "og det af til ikke der som på",
        "de": "der die und das ist nicht den mit",
        "es": "el los las y una por con es",
        "fi": "ja on ei että se oli mutta hän",
        "fr": "le les des et est une dans pour",
        "hu": "az és hogy nem egy is volt meg",
        "id": "yang dan di dari untuk dengan ini itu",
        "it": "il che di è per una della gli",
        "nl": "het een van en dat niet zijn op",
        "no": "og det av til ikke som på jeg",
        "pl": "nie w i się na z jest do",
        "pt": "o os uma não é em para do",
        "sv": "och det att som är inte av på",
        "tr": "ve bir bu için de da ile çok",
    },
    "ARABIC": {"ar": "من في على إلى أن ما عن هذا", "fa": "و در به از که این است را"},
}
# the letters that only one of Lucene's languages in a script has; Belarusian has those of both
_OWN_LETTERS = {"CYRILLIC": {"ru": "ыэё", "uk": "іїєґ"}}
# the letters of languages that Lucene does not know: Kyrgyz, Mongolian, Tatar, Tajik; Urdu
_OTHER_LETTERS = {"CYRILLIC": "өүңғқәҷҳӯӣҗһ", "ARABIC": "ٹےںھڈڑ"}
_LEAST_LETTERS = 0.005  # the share of these letters in its texts
_ACCENTED = 0.02  # a share of letters beyond ASCII that English does not have
_LEAST_FREQUENT = 0.05  # the share of a language's frequent words in its texts
# so many of them are frequent: Spanish shares "de" with Turkish, Croatian "i" and "na" with Polish
_LEAST_DIFFERENT = 4
_LEAST_EACH = 0.002
_KANA = ("HIRAGANA", "KATAKANA")
_LEAST_KANA = 0.05  # the share of kana in Japanese
_SAMPLE = 200_000  # letters from which a language is chosen


def words(text: str) -> list[str]:
    """Divide a text into words, which contain every character but white space."""
    return text.split() if text.isascii() else _WORD.findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the first character of each of the `words` and of the next one."""
    return [match.span() for match in _WORD.finditer(text)]


def is_unspaced(word: str) -> bool:
    """Return whether a word-piece begins with a letter of a script without spaces."""
    return _UNDIVIDED.match(word) is not None


def unwrapped(text: str) -> str:
    """Remove the line breaks within words of scripts without spaces."""
    return text if text.isascii() else _BREAK.sub("", text)


def first_sentence(text: str, language: str) -> str:
    """Return the first sentence of a paragraph, by the marks of its script.

    In any language but English, no sentence begins with a digit after a full stop. In German, a
    full stop after a number up to 99 makes it an ordinal: am 3. Oktober.
    """
    for end in _END.finditer(text):
        following = end["next"]
        if following and (following.islower() or not following.isalnum()):
            continue
        if end[0] == "." and language != "en":
            last = re.split(r"[\s(\[\"'«„“‘]", text[: end.start()])[-1]
            is_ordinal = language == "de" and last.isdigit() and len(last) <= 2
            if following.isdigit() or is_ordinal or _ABBREVIATION.fullmatch(last):
                continue
        return text[: end.end()]
    return text


def pairs_of_characters(text: str) -> str:
    """Divide a text for an index, by spaces: overlapping pairs where a script has no spaces.

    Words of other scripts stay whole. Case and forms of characters, such as full-width, are lost.
    """
    normal = unicodedata.normalize("NFKC", text).lower()
    kept = "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in normal)
    found = []
    for word in kept.split():
        for run in _RUN.findall(word):
            if len(run) > 1 and _UNDIVIDED.match(run):
                found += map("".join, pairwise(run))
            else:
                found.append(run)
    return " ".join(found)


def lucene_language(language: str) -> str:
    """Return the language whose analysis Lucene uses; empty: it gets `pairs_of_characters`."""
    if language in (*BY_CHARACTERS, CHARACTERS):
        return ""
    return "ko" if language == WORDS else language  # which has neither stems nor a dictionary


def is_latin(texts: Iterable[str]) -> bool:
    """Return whether most letters of the first texts are Latin."""
    return _script(_sample(texts)[0]) == "LATIN"


def language_of(texts: Iterable[str]) -> str:
    """Choose the language of a collection from its first texts, by script and frequent words.

    Returns one of `LANGUAGES`, or `WORDS` for a language that Lucene does not know. Latin texts in
    none of its languages count as English if they have no accents.
    """
    letters, frequent = _sample(texts)
    dominant = _script(letters)
    if dominant == "CJK":
        kana = sum(count for letter, count in letters.items() if _script_of(letter) in _KANA)
        return "ja" if kana > _LEAST_KANA * letters.total() else "zh"
    least = _LEAST_LETTERS * letters.total()
    if sum(letters[letter] for letter in _OTHER_LETTERS.get(dominant, "")) > least:
        return WORDS
    if dominant in _OWN_LETTERS:
        fitting = [
            language
            for language, listed in _OWN_LETTERS[dominant].items()
            if sum(letters[letter] for letter in listed) > least
        ]
        return fitting[0] if len(fitting) == 1 else WORDS
    if dominant not in _FREQUENT:
        return _OF_SCRIPT.get(dominant, WORDS)
    usual = next(iter(_FREQUENT[dominant]))
    counts = {}
    for language, listed in _FREQUENT[dominant].items():
        found = [frequent[word] for word in listed.split()]
        if sum(count > _LEAST_EACH * frequent.total() for count in found) >= _LEAST_DIFFERENT:
            counts[language] = sum(found)
    best = max(counts, key=counts.__getitem__, default=usual)
    if counts.get(best, 0) > _LEAST_FREQUENT * frequent.total():
        return best
    accented = sum(count for letter, count in letters.items() if not letter.isascii())
    return WORDS if dominant == "LATIN" and accented > _ACCENTED * letters.total() else usual


def _sample(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count the letters and the words of the first texts."""
    letters: Counter[str] = Counter()
    frequent: Counter[str] = Counter()
    for text in texts:
        letters.update(filter(str.isalpha, text))
        frequent.update(text.casefold().split())
        if letters.total() > _SAMPLE:
            break
    return letters, frequent


def _script_of(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "").replace("-", " ").partition(" ")[0]


def _script(letters: Counter[str]) -> str:
    """Return the script of most letters, kana with Chinese characters; Latin without letters."""
    scripts: Counter[str] = Counter(LATIN=0)
    for letter, count in letters.items():
        script = _script_of(letter)
        scripts["CJK" if script in _KANA else script] += count
    return max(scripts, key=scripts.__getitem__)
