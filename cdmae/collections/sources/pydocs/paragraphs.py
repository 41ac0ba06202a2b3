"""The lines of a doc string as paragraphs of its sections: what is no prose is passed over.

Understands what the harvested packages use: numpy's underlined sections with ``name : type`` entries, Google's
``Args:`` with ``name (type): text``, Sphinx's field lists, definition lists, reST directives, Markdown fences.
"""

from __future__ import annotations

import re

# Sections by what is done with them; every other heading is dropped and its text kept.
_DROPPED = {
    "example", "examples", "usage", "usage example", "doctest", "reference", "references", "citation", "see also",
    "seealso", "methods", "other methods", "class methods", "routine listings", "attributes", "other attributes",
    "shape", "author", "authors", "license", "signature", "subclassing", "todo", "todos",
}  # fmt: skip
_ENTRIES = {
    "parameters", "other parameters", "optional parameters", "args", "arguments", "keyword args", "keyword arguments",
    "keywords", "kwargs", "params", "inputs", "input", "raises", "warns", "except", "exceptions",
}  # fmt: skip
RESULTS = {"returns", "return", "yields", "yield", "receives", "outputs", "output"}
_PROSE = {"note", "notes", "warning", "warnings", "important", "tip", "details", "remarks", "hint"}
_GOOGLE = _DROPPED | _ENTRIES | RESULTS | _PROSE  # headings of the form `Name:`
_PROSE_DIRECTIVES = {"note", "warning", "tip", "important", "attention", "caution", "hint", "danger"}

_UNDERLINE = re.compile(r"^\s*([-=~^*+#`\"'])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"^\s*\.\.\s*([\w:+-]*?)::\s*(.*)$")
_COMMENT = re.compile(r"^\s*\.\.(\s|$)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_FIELD = re.compile(r"^\s*:(\w+)(?:\s+([^:]*))?:(?!`)\s*(.*)$")  # not a role such as :attr:`dim`
_BULLET = re.compile(r"^\s*(?:[-*+•]|\(?(?:\d{1,2}|[a-z])[.)])\s+(?=\S)")
_TABLE = re.compile(r"^\s*(?:[+|].*[+|]\s*$|[=-]{2,}(?:\s+[=-]{2,})+\s*$)")
_GOOGLE_HEADING = re.compile(r"^\s*\**([A-Z][A-Za-z ]{2,20}?)\**\s*:{1,2}\**\s*$")
_MARKDOWN_HEADING = re.compile(r"^\s*#{1,6}\s+\S")
_TYPE = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
TYPED_ENTRY = re.compile(
    rf"^[`*]*(\w+(?:,\s*\w+)*)[`]*\s*{_TYPE}\s*(?:,\s*(?:\*?optional\*?|defaults? [^:]{{1,40}}))?\s*:\s*"
)
_PLAIN_ENTRY = re.compile(r"^[`*]*([A-Za-z_]\w*(?:,\s*\w+)*)`*\s*(?::|\s-{1,2}\s)\s*")
_NUMPY_ENTRY = re.compile(r"^\s*[`*]*([A-Za-z_][\w.]*(?:\s*,\s*[`*]*\w+`*)*)`*(?:\s*:\s.*|\s*:)?$")
_BARE_ENTRY = re.compile(r"^\*{0,2}\w+(?:, \w+)*\s*:(?:\s+\S+){1,3}$")  # a name and a type, no description
_RESULT_TYPE = re.compile(r"^[`~:\w.\[\], |*]{1,60}?(?:\([^)]*\))?`*\s*:\s+(?=\S)")
_PLACEHOLDER = re.compile(r"^\s*(?:[{%(|$]+\s*\w+\s*[})|]+s?[\s,.]*)+$")


def without_signature(lines: list[str]) -> list[str]:
    """Drop call signatures such as ``name(a[, b]) -> value`` and ``--`` from the beginning of a doc string."""
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        match = re.match(r"^[\w.]+\(", line)
        if not line or line == "--":
            at += 1
            continue
        if not match:
            break
        end, depth = at, line.count("(") - line.count(")")
        while depth > 0 and end + 1 < len(lines) and lines[end + 1].strip():
            end += 1
            depth += lines[end].count("(") - lines[end].count(")")
        joined = " ".join(part.strip() for part in lines[at : end + 1])
        signature = re.match(
            rf"^[\w.]+{_TYPE}(?P<result>\s*(?:->|=>|→)\s*[^.:]*?)?\s*(?:(?:--|:|-)\s+(?P<text>\S.*))?$", joined
        )
        if not signature:
            break
        if signature["text"]:
            return [signature["text"], *lines[end + 1 :]]
        at = end + 1
    return lines[at:]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Reader:
    """Hold the state of one pass over the lines: the section, and the paragraph that is being collected."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.at = lines, 0
        self.section, self.section_indent, self.is_google = "", 0, False
        self.paragraph: list[str] = []
        self.paragraphs: list[tuple[str, str]] = []

    def flush(self) -> None:
        if self.paragraph:
            text = " ".join(self.paragraph)
            self.paragraph = []
            if self.section not in _DROPPED:
                self.paragraphs.append((self.section, text))

    def skip_indented(self, indent: int) -> None:
        """Skip the lines after this one that are blank or indented deeper than `indent`."""
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or _indent(self.lines[self.at]) > indent):
            self.at += 1

    def enter(self, section: str, indent: int, is_google: bool) -> None:
        self.flush()
        self.section, self.section_indent, self.is_google = section, indent, is_google


def paragraphs_of(lines: list[str]) -> list[tuple[str, str]]:
    """Return the (section, text) of every kept paragraph, in order; the section is "" before the first heading."""
    reader = _Reader(lines)
    while reader.at < len(lines):
        line = lines[reader.at]
        reader.at += 1
        stripped = line.strip()
        if not stripped:
            reader.flush()
        elif not (_block(reader, line, stripped) or _heading(reader, line, stripped)):
            _prose(reader, line, stripped)
    reader.flush()
    return reader.paragraphs


def _block(reader: _Reader, line: str, stripped: str) -> bool:
    """Pass over what is no prose: doctests, fences, directives, tables, placeholders."""
    lines = reader.lines
    if stripped.startswith((">>>", "In [")):
        reader.flush()
        while reader.at < len(lines) and lines[reader.at].strip():
            reader.at += 1
    elif _FENCE.match(line):
        reader.flush()
        while reader.at < len(lines) and not _FENCE.match(lines[reader.at]):
            reader.at += 1
        reader.at += 1
    elif directive := _DIRECTIVE.match(line):
        reader.flush()
        if directive[1] not in _PROSE_DIRECTIVES:
            reader.skip_indented(_indent(line))
        elif directive[2]:
            reader.paragraph.append(directive[2])
    elif _COMMENT.match(line):
        reader.flush()
        reader.skip_indented(_indent(line))
    elif _TABLE.match(line):
        reader.paragraph = []
        while reader.at < len(lines) and lines[reader.at].strip():
            reader.at += 1
    elif not (_PLACEHOLDER.match(line) or _MARKDOWN_HEADING.match(line)):
        return False
    return True


def _heading(reader: _Reader, line: str, stripped: str) -> bool:
    """Enter a section at a heading: underlined, or a known name with a colon."""
    lines, indent = reader.lines, _indent(line)
    if _UNDERLINE.match(line):  # an overline, or the underline of a heading kept as text
        return True
    following = lines[reader.at] if reader.at < len(lines) else ""
    if _UNDERLINE.match(following) and len(stripped) < 60 and _indent(following) <= indent + 1:
        reader.at += 1
        if reader.paragraphs or reader.paragraph or stripped.lower() in _GOOGLE:
            reader.enter(stripped.rstrip(":").lower(), indent, is_google=False)
        else:
            reader.paragraphs.append(("", stripped))  # the title of a module's documentation
        return True
    match = _GOOGLE_HEADING.match(line)
    if match and match[1].lower() in _GOOGLE:
        reader.enter(match[1].lower(), indent, is_google=True)
        return True
    if reader.is_google and reader.section and indent <= reader.section_indent:
        reader.enter("after", 0, is_google=False)  # text after the sections is body, never a summary
    return False


def _prose(reader: _Reader, line: str, stripped: str) -> None:
    lines, indent = reader.lines, _indent(line)
    if reader.section in _DROPPED:
        return
    following = lines[reader.at] if reader.at < len(lines) else ""
    if field := _FIELD.match(line):
        reader.flush()
        _field(reader, indent, field)
        return
    if bullet := _BULLET.match(line):
        reader.flush()
        stripped = line[bullet.end() :].strip()
    if re.fullmatch(r"\*{0,2}\w+", stripped) and following.strip() and _indent(following) > indent:
        reader.flush()  # a definition list, as in the documentation of C functions
        reader.paragraph.append(f"{stripped}:")
        return
    if reader.section in _ENTRIES or reader.section in RESULTS:
        stripped = _entry(reader, indent, stripped, following)
    if stripped.endswith("::"):  # a literal block follows
        reader.paragraph.append(stripped.rstrip(":").rstrip(" .") + ".")
        reader.flush()
        reader.skip_indented(indent)
    elif stripped:
        reader.paragraph.append(stripped)


def _entry(reader: _Reader, indent: int, stripped: str, following: str) -> str:
    """Return what to collect of a line of a list of parameters or results: its name stays, its type goes."""
    if not reader.is_google and indent <= reader.section_indent:  # at the margin: numpy's `name : type`
        if following.strip() and _indent(following) > indent:
            reader.flush()
            entry = _NUMPY_ENTRY.match(stripped)
            if entry and reader.section in _ENTRIES:
                reader.paragraph.append(f"{entry[1]}:")
            return ""
        if _BARE_ENTRY.match(stripped):
            return ""
        if _indent(reader.lines[reader.at - 2]) > reader.section_indent:
            reader.flush()  # the description above has ended
    if reader.section in _ENTRIES:
        entry = TYPED_ENTRY.match(stripped) or (reader.is_google and _PLAIN_ENTRY.match(stripped))
        if not entry:
            return stripped
        reader.flush()
        return f"{entry[1]}: {stripped[entry.end() :]}"
    return stripped if reader.paragraph else _RESULT_TYPE.sub("", stripped)


def _field(reader: _Reader, indent: int, field: re.Match[str]) -> None:
    """Collect one entry of a Sphinx field list, ``:param type name: text``."""
    kind, argument, text = field[1], (field[2] or "").split(), field[3]
    if reader.section == "":
        reader.section = "fields"
    if kind in ("param", "parameter", "arg", "argument", "keyword", "kwarg", "raises", "raise") and argument:
        reader.paragraph.append(f"{argument[-1]}: {text}")
    elif kind in ("return", "returns", "yield", "yields"):
        reader.paragraph.append(text)
    else:  # types, metadata
        reader.skip_indented(indent)
