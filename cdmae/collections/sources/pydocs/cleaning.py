"""Turn a docstring into prose: a summary (its first sentence) and a body (the rest).

The summary becomes the query, the body becomes the passage.
"""

from __future__ import annotations

import inspect
import re
import string

from cdmae.collections.sources.pydocs.paragraphs import (
    ENTRIES,
    FIELDS,
    RESULTS,
    TYPED_ENTRY,
    paragraphs_of,
    without_signature,
)

# (trigger, pattern, replacement): the pattern is tried only if the paragraph contains the trigger.
_INLINE = [
    ("`", re.compile(r"`~[\w.]*?(\w+)`"), r"`\1`"),  # a name with its path hidden
    ("`", re.compile(r":(?:\w+:)?(?:\w+):`([^`<]*?)(?:\s*<[^`>]*>)?`"), r"`\1`"),  # roles
    ("`", re.compile(r"`([^`<>]+?)\s*<[^`<>]*>`_{0,2}"), r"\1"),  # hyperlinks
    ("[`", re.compile(r"\[`~?([^`\]]+)`\](?!\()"), r"\1"),  # references, as in transformers
    ("`", re.compile(r"`[.!~]+(?=\w)"), ""),
    ("~", re.compile(r"(?<![\w/])~(?=[A-Za-z_])"), ""),
    # references whose name was replaced
    ("[this ", re.compile(r"\[(this (?:function|class))\]"), r"\1"),
    ("](", re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)"), r"\1"),  # Markdown links
    ("://", re.compile(r"<?\b(?:https?|ftp)://[^\s>)]*[^\s>).,;]>?"), ""),
    ("www.", re.compile(r"\bwww\.\S+"), ""),
    ("]_", re.compile(r"\s*\[(?:\d+|[A-Z]\w+\d)\]_"), ""),  # citations
    ("<", re.compile(r"</?[A-Za-z][\w ]*?(?:=[^<>]*)?/?>"), ""),  # HTML
    ("|", re.compile(r"\|(\w+)\|_?"), r"\1"),  # substitutions
    ("*", re.compile(r"(?<![\w*])\*{1,3}(?=\w)([^*\n]+?)(?<=[\w.!?)])\*{1,3}(?![\w*])"), r"\1"),
    ("\\", re.compile(r"\\(?=[*_`|~ ])"), ""),
    ("`", re.compile(r"`+_{0,2}"), ""),
    # the remains of a dropped URL
    ("(", re.compile(r"\s+\((?:see|at|cf\.?|from)?[\s:]*\)"), ""),
]  # fmt: skip
# The same for the remains of dropped citations and addresses, after spaces are normalised.
_LEFT_BEHIND = [
    (",,", re.compile(r",(?:\s*,)+"), ","),
    ("(,", re.compile(r"\s*\(,\)"), ""),
    (",", re.compile(r",(?=[.;](?:\s|$))"), ""),  # but (N,) is a shape
    ("g.,", re.compile(r"(?<=e\.g\.),\s*(?=\))"), ""),
    (":.", re.compile(r":\.(?=\s|$)"), "."),
    (" see.", re.compile(r",\s+see\.(?=\s|$)"), "."),
    ("ee.", re.compile(r"(?:^|(?<=[.!?]\s))(?:[^.!?]{0,60}\s)?[Ss]ee\.(?:\s|$)"), ""),
    ("..", re.compile(r"(?<=[a-z)])\.\.(?=\s+[A-Z]|$)"), "."),
    ("", re.compile(r"^[.,:;]+\s+"), ""),
]  # fmt: skip
_ARTICLE = re.compile(r"\b(?:the|an?) (?=this (?:function|class)\b)", re.IGNORECASE)
_MENTION = re.compile(r"(:\w+:)?(`*)[~.!]?((?:\w+\.)*(\w+))(\([^()]*\))?(`*)")
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;:!?)](?:\s|$))")
_TEMPLATE = re.compile(r"(?<!\{)\{\w*\}(?!\})|%\(\w+\)s|\$\{?\w+\}?")
_CODE = b"=<>{}[]\\|_^$&@#/~"
_LETTERS = string.ascii_letters.encode()
_LATEX = re.compile(r"\\[a-zA-Z]{2,}|\\[\[({]")
_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][)\"']))\s+(?=[\"'(]?[A-Z0-9*])")
_NOTICE = re.compile(
    r"^(?:important|note|notice|warning|deprecated|todo|fixme|internal|experimental)\b|.*\bdeprecated\b",
    re.I,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|al|Fig|Eq|eq|No|Sec|Ref|Dr|Mr|approx|resp|a\.k\.a|w\.r\.t|St|[A-Z]))\.$"
)
# Fields and definition lists have entries of the form `name: text` in any section.
_ENTRY = re.compile(r"^\*{0,2}\w+(?:, ?\*{0,2}\w+)*: ")
_LISTS = ENTRIES | RESULTS | {FIELDS}
# The finite verbs of documentation; a noun phrase such as "Shape of the array." has none.
_VERB = re.compile(
    r"\b(?:is|are|was|were|it's|isn't|aren't|has|have|had|does|do|doesn't|don't|can|cannot|can't|could|may|"
    r"might|must|should|will|won't|would|need|needs|returns|means|contains|specifies|determines|"
    r"indicates|controls|defines|becomes|allows|gives|takes|uses|supports|makes|corresponds|refers)\b",
    re.IGNORECASE,
)

MAX_SUMMARY = 40  # words
MIN_SUMMARY = 3
MIN_BODY = 8
MIN_SENTENCE = 5


def clean(docstring: str, name: str, max_words: int) -> tuple[str, str] | None:
    """Return the (summary, body) of a docstring as prose, or None if one of them is missing.

    The body has `MIN_BODY` to `max_words` words, ends with a complete sentence if possible, and
    contains neither the summary nor the object's own `name`. A list of parameters or results is no
    body of its own, unless one of its entries has a sentence.
    """
    paragraphs = paragraphs_of(without_signature(inspect.cleandoc(docstring).splitlines()))
    if not paragraphs:
        return None
    first_section, opening = paragraphs[0]
    if first_section or TYPED_ENTRY.match(opening):
        return None  # begins with a section or a parameter: no summary
    first, rest = _first_sentence(opening)
    summary = _inline(first).rstrip(".: ")
    if not _is_summary(summary):
        return None
    pieces = [_inline(_without_name(rest, name))] if rest else []
    is_list = not pieces
    for section, paragraph in paragraphs[1:]:
        text = _inline(_without_name(paragraph, name))
        is_bare_type = section in RESULTS and text.count(" ") < 3
        if _is_prose(text) and not is_bare_type:
            pieces.append(text if text[-1] in ".!?:;," else text + ".")
            is_entry = section in _LISTS or _ENTRY.match(text) is not None
            is_list = is_list and is_entry
    if is_list and not any(map(_has_sentence, pieces)):
        return None
    body = _without_summary(" ".join(filter(None, pieces)), summary)
    body = _cut(body, max_words)
    is_long_enough = len(body.split()) >= MIN_BODY
    return (summary, body) if is_long_enough and _is_prose(body) else None


def _inline(text: str) -> str:
    """Remove the markup from a paragraph."""
    for trigger, pattern, replacement in _INLINE:
        if trigger in text:
            text = pattern.sub(replacement, text)
    text = _SPACE_BEFORE.sub("", " ".join(text.split()))
    for trigger, pattern, replacement in _LEFT_BEHIND:
        if trigger in text:
            text = pattern.sub(replacement, text)
    return text.strip()


def _first_sentence(text: str) -> tuple[str, str]:
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[: match.start()]):
            return text[: match.start()], text[match.end() :]
    return text, ""


def _is_summary(text: str) -> bool:
    words = text.split()
    return (
        MIN_SUMMARY <= len(words) <= MAX_SUMMARY
        and text[0].isalpha()
        and not _NOTICE.match(text)
        and not _TEMPLATE.search(text)
        and not _LATEX.search(text)
        and _is_wordy(text, 0.7)
    )


def _has_sentence(entry: str) -> bool:
    """Return whether an entry of a list has a sentence: words around a finite verb."""
    sentences = _SENTENCE_END.split(_ENTRY.sub("", entry))
    return any(
        len(sentence.split()) >= MIN_SENTENCE and _VERB.search(sentence) for sentence in sentences
    )


def _is_prose(text: str) -> bool:
    """Return whether a text reads as English, not as code, a formula, a table or a template."""
    return (
        bool(text)
        and not _LATEX.search(text)
        and not _TEMPLATE.search(text)
        and _is_wordy(text, 0.75)
    )


def _is_wordy(text: str, letters: float) -> bool:
    """Return whether a text consists mostly of ASCII letters and has few signs of code.

    letters: the minimum share of letters among the bytes other than spaces.
    """
    encoded = text.encode()
    solid = len(encoded.replace(b" ", b""))
    letter_count = solid - len(encoded.translate(None, _LETTERS + b" "))
    code_count = len(encoded) - len(encoded.translate(None, _CODE))
    return letter_count >= letters * solid and code_count <= 0.06 * len(encoded)


def _without_name(text: str, name: str) -> str:
    """Replace an object's own name by "this function" or "this class".

    A mention is replaced if it is in code quotes, called or qualified, or if it cannot be an
    English word (``read_csv``, ``DataFrame``, ``rfft2``). The word ``add`` in plain text remains.
    """
    last = name.rpartition(".")[2]
    if last not in text:
        return text
    stand_in = "this class" if last.lstrip("_")[:1].isupper() else "this function"
    is_identifier = re.search(r"_|\d|[a-z][A-Z]", last) is not None

    def replace(match: re.Match[str]) -> str:
        role, quotes, path, word, arguments, closing = match.groups(default="")
        if word == last:
            is_code = is_identifier or role or quotes or arguments or path != word
            return stand_in if is_code else match[0]
        if last not in arguments:
            return match[0]
        # the object is an argument of a call of another object
        call = match[0][: match.start(5) - match.start()]
        return call + _MENTION.sub(replace, arguments) + closing

    return _ARTICLE.sub("", _MENTION.sub(replace, text))


def _without_summary(body: str, summary: str) -> str:
    """Drop the sentences of a body that repeat the summary."""
    repeated = summary.casefold()
    if repeated not in body.casefold():
        return body
    sentences = _SENTENCE_END.split(body)
    return " ".join(sentence for sentence in sentences if repeated not in sentence.casefold())


def _cut(text: str, max_words: int) -> str:
    """Cut a text to `max_words` words, at the end of a sentence if that keeps at least half."""
    words = text.split()
    if len(words) <= max_words:
        return text
    for end in range(max_words, max_words // 2, -1):
        if words[end - 1][-1] in ".!?" and not _ABBREVIATION.search(words[end - 1]):
            return " ".join(words[:end])
    return " ".join(words[:max_words])
