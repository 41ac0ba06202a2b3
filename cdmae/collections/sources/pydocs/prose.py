"""Turn a docstring into prose: a summary (its first sentence) and a body (the rest).

docutils reads a docstring as a document (`cdmae.collections.documents.restructured`): sections of
numpy's form are headings, lists of parameters of all forms are definition lists or fields.
"""

from __future__ import annotations

import inspect
import re

from cdmae.collections.documents import HEADING, ITEM, TEXT, restructured
from cdmae.collections.sources.pseudo import LEAST_QUERY, MOST_QUERY, is_prose, is_query

MIN_BODY = 8  # words
READ = 3  # of the longest body: so much of a docstring is read
MIN_ENTRY = 12  # words of a parameter's description, without which a list of them is no body
# sections without prose about the object
_DROPPED = {
    "example", "examples", "usage", "reference", "references", "see also", "methods", "attributes",
    "shape", "author", "authors", "license", "todo",
}  # fmt: skip
_SECTIONS = re.compile(r"(args|arguments|keyword args|parameters|returns?|yields?|raises): ", re.I)
_FIELD = re.compile(r"(?:param|parameter|arg|keyword|raises?|ivar)\s(?:\S+\s)*?(\w+): ")
_MENTION = re.compile(
    r"(?:\b(?P<article>(?i:the|an?)) )?(?P<role>:[\w:]+:)?(?P<quotes>`*)[~.!]?(?P<path>(?:\w+\.)*)"
    r"(?P<word>\w+)(?P<call>\([^()\n]*\))?`*"
)
_QUOTES = re.compile(r"(?::[a-z]+:)?`+_{0,2}")  # that docutils cannot read
_TYPE = re.compile(r"r?type\b[^:]*: |[\w*, ]+ : [^.]*$")  # of a parameter
_NOTICE = re.compile(
    r"(note|warning|deprecated|todo|internal|experimental)\b|.*\bdeprecated\b", re.I
)
_TEMPLATE = re.compile(r"[{}\\$|]|%\(")
# Google's sections begin without an empty line, which docutils needs
_HEADED = re.compile(r"\n(?=[A-Z][A-Za-z ]{2,20}:\n[ \t]+\S)")
_SIGNATURE = re.compile(r"\A[\w.]+\([^\n]*\)(?:[ \t]*(?:->|=>)[^\n]*)?\n+(?:--\n+)?")
_MARKUP = [  # patterns and replacements of what is not reStructuredText
    (re.compile(r"^([ \t]*)(```|~~~).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE), ""),  # fences
    (re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)"), r"\1"),  # links
    (re.compile(r"\[`~?([^`\]\n]+)`\]"), r"\1"),  # references
    (re.compile(r"</?[A-Za-z][\w ]*(?:=[^<>\n]*)?/?>"), ""),  # tags
    (re.compile(r" \((?:[^()\n]|\([^()\n]*\))*\)(?=:\s)"), ""),  # types of parameters
]  # fmt: skip
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)(?<!cf\.)\s+(?=[\"'(]?[A-Z0-9])"
)


def prose(docstring: str, name: str, max_words: int) -> tuple[str, str] | None:
    """Return the (summary, body) of a docstring as prose, or None if one of them is missing.

    The body has `MIN_BODY` to `max_words` words, ends with a complete sentence if possible, and
    contains neither the summary nor the object's own `name`. A list of short descriptions of
    parameters is no body.
    """
    text = _SIGNATURE.sub("", inspect.cleandoc(docstring) + "\n").strip()
    opening = _SENTENCE.split(text.partition("\n\n")[0], maxsplit=1)[0].split()
    if not LEAST_QUERY <= len(opening) <= MOST_QUERY or len(text.split()) < MIN_BODY + len(opening):
        return None  # without the cost of a parser
    text = _begin(text, READ * max_words)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    summary = ""
    pieces: list[str] = []
    is_dropped = False
    text = _HEADED.sub("\n\n", _without_name(text, name))
    for block in restructured(text, with_notes=False):
        if block.kind == HEADING:
            is_dropped = block.text.lower() in _DROPPED
        if block.kind not in (TEXT, ITEM) or is_dropped:
            continue
        piece = _QUOTES.sub("", block.text)
        if not summary:
            summary, *rest = _SENTENCE.split(piece, maxsplit=1)
            summary = summary.rstrip(".: ")
            if not is_query(summary) or _NOTICE.match(summary) or _TEMPLATE.search(summary):
                return None
            piece = "".join(rest)
        piece = _SECTIONS.sub("", _FIELD.sub(r"\1: ", piece), count=1)
        is_left_out = piece.partition(":")[0].lower() in _DROPPED or _TYPE.match(piece)
        if piece and not is_left_out and is_prose(piece) and not _TEMPLATE.search(piece):
            pieces.append(piece if piece[-1] in ".!?:;," else f"{piece}.")
    is_list = all(re.match(r"\w+: ", piece) for piece in pieces)
    if is_list and max((len(piece.split()) for piece in pieces), default=0) < MIN_ENTRY:
        return None
    body = _cut(_without_summary(" ".join(pieces), summary), max_words)
    return (summary, body) if len(body.split()) >= MIN_BODY else None


def _begin(text: str, words: int) -> str:
    """Return the first lines of a text that has up to about `words` words."""
    read = 0
    lines = []
    for line in text.splitlines():
        read += len(line.split())
        if read > words:
            break
        lines.append(line)
    return "\n".join(lines)


def _without_name(text: str, name: str) -> str:
    """Replace an object's own name after the first line by "this function" or "this class".

    A mention is replaced if it is in code quotes, called or qualified, or if it cannot be an
    English word (``read_csv``, ``DataFrame``). The word ``add`` in plain text remains.
    """
    last = name.rpartition(".")[2]
    if last not in text:
        return text
    stand_in = "this class" if last.lstrip("_")[:1].isupper() else "this function"
    is_identifier = re.search(r"_|\d|[a-z][A-Z]", last) is not None

    def replace(match: re.Match[str]) -> str:
        is_code = is_identifier or any(match[part] for part in ("role", "quotes", "path", "call"))
        if match["word"] != last or not is_code:
            return match[0]
        begins = (match["article"] or "a")[0].isupper()
        return stand_in.capitalize() if begins else stand_in

    return _MENTION.sub(replace, text)


def _without_summary(body: str, summary: str) -> str:
    """Drop the sentences of a body that repeat the summary."""
    repeated = summary.casefold()
    if repeated not in body.casefold():
        return body
    return " ".join(part for part in _SENTENCE.split(body) if repeated not in part.casefold())


def _cut(text: str, max_words: int) -> str:
    """Cut a text to `max_words` words, at the end of a sentence if that keeps at least half."""
    words = text.split()
    if len(words) <= max_words:
        return text
    ends = [end for end in range(max_words // 2 + 1, max_words + 1) if words[end - 1][-1] in ".!?"]
    return " ".join(words[: max(ends, default=max_words)])
