"""Divide the lines of a docstring into the paragraphs of its sections, and drop all but prose.

Supports the formats of the harvested packages: numpy's underlined sections with ``name : type``
entries, Google's ``Args:`` with ``name (type): text``, Sphinx's field lists, definition lists, reST
directives, Markdown fences.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Sections by their treatment; any other heading is dropped, and its text is kept.
_DROPPED = {
    "example", "examples", "usage", "usage example", "doctest", "reference", "references",
    "citation", "see also", "seealso", "methods", "other methods", "class methods",
    "routine listings", "attributes", "other attributes", "shape", "author", "authors", "license",
    "signature", "subclassing", "todo", "todos",
}  # fmt: skip
ENTRIES = {
    "parameters", "other parameters", "optional parameters", "args", "arguments", "keyword args",
    "keyword arguments", "keywords", "kwargs", "params", "inputs", "input", "raises", "warns",
    "except", "exceptions",
}  # fmt: skip
RESULTS = {"returns", "return", "yields", "yield", "receives", "outputs", "output"}
FIELDS = "fields"  # the section of a Sphinx field list
_PROSE = {"note", "notes", "warning", "warnings", "important", "tip", "details", "remarks", "hint"}
_GOOGLE = _DROPPED | ENTRIES | RESULTS | _PROSE  # headings of the form `Name:`
_PROSE_DIRECTIVES = {
    "note", "warning", "tip", "important", "attention", "caution", "hint", "danger",
}  # fmt: skip

_NAMED_FIELDS = {
    "param", "parameter", "arg", "argument", "keyword", "kwarg", "raises", "raise",
}  # fmt: skip
_RESULT_FIELDS = {"return", "returns", "yield", "yields"}

_UNDERLINE = re.compile(r"^\s*([-=~^*+#`\"'])\1{2,}\s*$")
_DIRECTIVE = re.compile(r"^\s*\.\.\s*([\w:+-]*?)::\s*(.*)$")
_COMMENT = re.compile(r"^\s*\.\.(\s|$)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_FIELD = re.compile(r"^\s*:(\w+)(?:\s+([^:]*))?:(?!`)\s*(.*)$")  # not a role such as :attr:`dim`
_BULLET = re.compile(r"^\s*(?:[-*+•]|\(?(?:\d{1,2}|[a-z])[.)])\s+(?=\S)")
_TABLE = re.compile(r"^\s*(?:[+|].*[+|]\s*$|[=-]{2,}(?:\s+[=-]{2,})+\s*$)")
_GOOGLE_HEADING = re.compile(r"^\s*\**([A-Z][A-Za-z ]{2,20}?)\**\s*:{1,2}\**\s*$")
_MARKDOWN_HEADING = re.compile(r"^\s*#{1,6}\s+\S")
_LONGEST_HEADING = 60  # characters, exclusive
_TYPE = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_REMARK = r"(?:,\s*(?:\*?optional\*?|defaults? [^:]{1,40}))?"  # after a type
TYPED_ENTRY = re.compile(rf"^[`*]*(\w+(?:,\s*\w+)*)[`]*\s*{_TYPE}\s*{_REMARK}\s*:\s*")
_PLAIN_ENTRY = re.compile(r"^[`*]*([A-Za-z_]\w*(?:,\s*\w+)*)`*\s*(?::|\s-{1,2}\s)\s*")
_NUMPY_ENTRY = re.compile(r"^\s*[`*]*([A-Za-z_][\w.]*(?:\s*,\s*[`*]*\w+`*)*)`*(?:\s*:\s.*|\s*:)?$")
# a name and a type, no description
_BARE_ENTRY = re.compile(r"^\*{0,2}\w+(?:, \w+)*\s*:(?:\s+\S+){1,3}$")
_RESULT_TYPE = re.compile(r"^[`~:\w.\[\], |*]{1,60}?(?:\([^)]*\))?`*\s*:\s+(?=\S)")
_CALL = re.compile(r"^[\w.]+\(")
_SIGNATURE = re.compile(
    rf"^[\w.]+{_TYPE}(?:\s*(?:->|=>|→)\s*[^.:]*?)?\s*(?:(?:--|:|-)\s+(?P<text>\S.*))?$"
)
_PLACEHOLDER = re.compile(r"^\s*(?:[{%(|$]+\s*\w+\s*[})|]+s?[\s,.]*)+$")


def without_signature(lines: list[str]) -> list[str]:
    """Drop ``name(a[, b]) -> value`` and ``--`` from the beginning of a docstring."""
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        if not line or line == "--":
            index += 1
            continue
        if not _CALL.match(line):
            break
        end = _end_of_call(lines, index)
        joined = " ".join(part.strip() for part in lines[index:end])
        signature = _SIGNATURE.match(joined)
        if not signature:
            break
        if signature["text"]:
            return [signature["text"], *lines[end:]]
        index = end
    return lines[index:]


def _end_of_call(lines: list[str], begin: int) -> int:
    """Return the index after the line on which the parentheses opened on line `begin` close."""
    depth = 0
    for index in range(begin, len(lines)):
        line = lines[index]
        if index > begin and not line.strip():
            return index
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            return index + 1
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def paragraphs_of(lines: list[str]) -> list[tuple[str, str]]:
    """Return the (section, text) of every kept paragraph, in order.

    The section is "" before the first heading.
    """
    return _Reader(lines).read()


class _Reader:
    """A single pass over the lines that tracks the current section and paragraph.

    index: the index of the next line.
    """

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.index = 0
        self.section = ""
        self.section_indent = 0
        self.is_google = False
        self.paragraph: list[str] = []
        self.paragraphs: list[tuple[str, str]] = []

    def read(self) -> list[tuple[str, str]]:
        while self.index < len(self.lines):
            line = self.lines[self.index]
            self.index += 1
            if not line.strip():
                self.flush()
            elif not (self._block(line) or self._heading(line)):
                self._prose(line)
        self.flush()
        return self.paragraphs

    @property
    def following(self) -> str:
        return self.lines[self.index] if self.index < len(self.lines) else ""

    def has_below(self, indent: int) -> bool:
        """Return whether the following line is indented deeper than `indent`."""
        return bool(self.following.strip()) and _indent(self.following) > indent

    def flush(self) -> None:
        if self.paragraph and self.section not in _DROPPED:
            self.paragraphs.append((self.section, " ".join(self.paragraph)))
        self.paragraph = []

    def skip(self, is_skipped: Callable[[str], Any]) -> None:
        while self.index < len(self.lines) and is_skipped(self.lines[self.index]):
            self.index += 1

    def skip_indented(self, indent: int) -> None:
        self.skip(lambda line: not line.strip() or _indent(line) > indent)

    def enter(self, section: str, indent: int, is_google: bool) -> None:
        self.flush()
        self.section = section
        self.section_indent = indent
        self.is_google = is_google

    def _block(self, line: str) -> bool:
        """Skip a doctest, fence, directive, table or placeholder; return whether this is one."""
        if line.strip().startswith((">>>", "In [")):
            self.flush()
            self.skip(str.strip)
        elif _FENCE.match(line):
            self.flush()
            self.skip(lambda line: not _FENCE.match(line))
            self.index += 1
        elif directive := _DIRECTIVE.match(line):
            self.flush()
            if directive[1] not in _PROSE_DIRECTIVES:
                self.skip_indented(_indent(line))
            elif directive[2]:
                self.paragraph.append(directive[2])
        elif _COMMENT.match(line):
            self.flush()
            self.skip_indented(_indent(line))
        elif _TABLE.match(line):
            self.paragraph = []
            self.skip(str.strip)
        elif not (_PLACEHOLDER.match(line) or _MARKDOWN_HEADING.match(line)):
            return False
        return True

    def _heading(self, line: str) -> bool:
        """Enter a section at a heading, underlined or with a colon; return whether this is one."""
        indent = _indent(line)
        stripped = line.strip()
        if _UNDERLINE.match(line):  # an overline, or the underline of a heading kept as text
            return True
        is_underlined = _UNDERLINE.match(self.following) and _indent(self.following) <= indent + 1
        if is_underlined and len(stripped) < _LONGEST_HEADING:
            self.index += 1
            if self.paragraphs or self.paragraph or stripped.lower() in _GOOGLE:
                self.enter(stripped.rstrip(":").lower(), indent, is_google=False)
            else:
                self.paragraphs.append(("", stripped))  # the title of a module's documentation
            return True
        match = _GOOGLE_HEADING.match(line)
        if match and match[1].lower() in _GOOGLE:
            self.enter(match[1].lower(), indent, is_google=True)
            return True
        if self.is_google and self.section and indent <= self.section_indent:
            # text after the sections is body, never a summary
            self.enter("after", 0, is_google=False)
        return False

    def _prose(self, line: str) -> None:
        if self.section in _DROPPED:
            return
        indent = _indent(line)
        stripped = line.strip()
        field = _FIELD.match(line)
        if field:
            self.flush()
            self._field(indent, field)
            return
        bullet = _BULLET.match(line)
        if bullet:
            self.flush()
            stripped = line[bullet.end() :].strip()
        if re.fullmatch(r"\*{0,2}\w+", stripped) and self.has_below(indent):
            self.flush()  # a definition list, as in the documentation of C functions
            self.paragraph.append(f"{stripped}:")
            return
        if self.section in ENTRIES or self.section in RESULTS:
            stripped = self._entry(indent, stripped)
        if stripped.endswith("::"):  # a literal block follows
            self.paragraph.append(stripped.rstrip(":").rstrip(" .") + ".")
            self.flush()
            self.skip_indented(indent)
        elif stripped:
            self.paragraph.append(stripped)

    def _entry(self, indent: int, stripped: str) -> str:
        """Return a line of a list of parameters or results without its type."""
        # numpy's `name : type` is not indented
        if not self.is_google and indent <= self.section_indent:
            if self.has_below(indent):
                self.flush()
                entry = _NUMPY_ENTRY.match(stripped)
                if entry and self.section in ENTRIES:
                    self.paragraph.append(f"{entry[1]}:")
                return ""
            if _BARE_ENTRY.match(stripped):
                return ""
            above = self.lines[self.index - 2]
            if _indent(above) > self.section_indent:
                self.flush()  # the description above is complete
        if self.section in ENTRIES:
            entry = TYPED_ENTRY.match(stripped) or (self.is_google and _PLAIN_ENTRY.match(stripped))
            if not entry:
                return stripped
            self.flush()
            return f"{entry[1]}: {stripped[entry.end() :]}"
        return stripped if self.paragraph else _RESULT_TYPE.sub("", stripped)

    def _field(self, indent: int, field: re.Match[str]) -> None:
        """Collect one entry of a Sphinx field list, ``:param type name: text``."""
        kind, argument, text = field.groups(default="")
        if self.section == "":
            self.section = FIELDS
        if kind in _NAMED_FIELDS and argument.strip():
            name = argument.split()[-1]  # after the type
            self.paragraph.append(f"{name}: {text}")
        elif kind in _RESULT_FIELDS:
            self.paragraph.append(text)
        else:  # types, metadata
            self.skip_indented(indent)
