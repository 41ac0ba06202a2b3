"""Read documents: Markdown, reStructuredText, HTML and plain text, as headings and paragraphs.

markdown-it-py, docutils and lxml parse them. Links keep their texts; images, addresses, comments,
navigation and references to footnotes are dropped. Rows of tables and code stay whole.
"""

from __future__ import annotations

import codecs
import html
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cdmae.languages.scripts import unwrapped

if TYPE_CHECKING:
    from docutils import nodes
    from lxml.html import HtmlElement

HEADING, TEXT, ITEM, ROW, CODE = "heading", "text", "item", "row", "code"
MARKDOWN = (".md", ".markdown")
HTML = (".html", ".htm")
INDENT = "    "  # of a line of code in a passage
DASH = "- "  # before an item in a passage
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)""", re.IGNORECASE)


class Block(NamedTuple):
    """A heading, a paragraph, an item of a list, a row of a table, or code with its lines."""

    kind: str
    text: str


def blocks(text: str, suffix: str) -> Iterator[Block]:
    """Yield the blocks of a document by the suffix of its file; another suffix is plain text."""
    if suffix in MARKDOWN:
        return _html(_rendered(text))
    if suffix in HTML:
        return _html(text)
    if suffix == ".rst":
        return restructured(text)
    return (Block(TEXT, _spaced(part)) for part in re.split(r"\n\s*\n", text) if part.strip())


def encoding(page: Path) -> str:
    """Return the encoding that an HTML page declares, if it is known and decodes it; else UTF-8."""
    with page.open("rb") as file:
        found = _CHARSET.search(file.read(1024))  # where HTML's standard looks for it
    name = found[1].decode() if found else "utf-8"
    try:
        is_known = "<".encode(name) == b"<"  # the declaration itself was read as ASCII
        page.read_bytes().decode(name)
    except (LookupError, UnicodeDecodeError):
        is_known = False
    return name if is_known and codecs.lookup(name).name != "utf-8" else "utf-8-sig"


def _spaced(text: str) -> str:
    """Replace every sequence of white space by one space."""
    return " ".join(unwrapped(text).split())


def _item(found: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of an item; its first paragraph is the item, further ones are text."""
    for block in islice(found, 1):
        yield Block(ITEM, block.text) if block.kind == TEXT else block
    yield from found


def _code(text: str) -> Block:
    lines = text.strip("\n").splitlines()
    return Block(CODE, "\n".join(f"{INDENT}{line.rstrip()}" for line in lines if line.strip()))


# --- Markdown -------------------------------------------------------------------------------------

# notations of site generators that no plugin of markdown-it-py reads
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)\n(.*?\n)\1\n", re.DOTALL)
_TITLE = re.compile(r"""^title\s*[:=][ \t]*["']?(.*\w.*?)["']?\s*$""", re.MULTILINE)
_TAB = re.compile(r'^([ \t]*)===[!+]? (?=")', re.MULTILINE)  # Material for MkDocs
_ATTRIBUTES = re.compile(r"^(\s*#{1,6} .*?|) *\{:? ?[#.][\w-][^{}\n]*\} *$", re.MULTILINE)
_CONTAINER = re.compile(r"\S+?(?:\[|\s+)(.*?)\]?\s*")  # its name and its title


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin
    from mdit_py_plugins.attrs import attrs_plugin
    from mdit_py_plugins.container import container_plugin
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    parser = MarkdownIt("commonmark", {"alerts": True, "tasklists": True})
    parser.enable(["table", "strikethrough"])
    for plugin in (admon_plugin, attrs_plugin, deflist_plugin, footnote_plugin):
        parser.use(plugin)
    # `:::` of any name
    return parser.use(container_plugin, "", validate=lambda *_: True, render=_container)


def _container(renderer: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """Render the start tag of a container (``:::note Title``) with its title, or its end tag."""
    if tokens[at].nesting < 0:
        return "</div>"
    titled = _CONTAINER.fullmatch(tokens[at].info.strip())
    return f"<div><p>{html.escape(titled[1])}</p>" if titled else "<div>"


def _rendered(text: str) -> str:
    """Render Markdown as HTML, with the title of its front matter."""
    front = _FRONT_MATTER.match(text)
    titled = _TITLE.search(front[2]) if front else None
    title = f"<title>{html.escape(titled[1])}</title>" if titled else ""
    text = _TAB.sub(r"\1!!! tab ", text[front.end() :] if front else text)
    return title + _markdown().render(_ATTRIBUTES.sub(r"\1", text))


# --- HTML -----------------------------------------------------------------------------------------

_DROPPED = (
    "script|style|nav|footer|aside|input|select|textarea|button|svg|img|noscript|template|iframe"
    "|math|video|title|form//label"
)
# references to footnotes and back, links to a heading next to it, addresses as texts of links
_MARKS = (
    "//*[contains(@class, 'footnote-ref') or contains(@class, 'footnote-backref')"
    " or contains(@class, 'headerlink')] | //sup[@class='reference']"
    " | //a[starts-with(normalize-space(.), 'http') or normalize-space(.) = '¶']"
)
_GAP = "\ufffc"  # in place of what was dropped from a sentence
# the first of which a page has one; it may have several articles
_MAIN = ("//main", "//article[not(ancestor::article)]", "//*[@role='main']", "//body")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn",
    "em", "font", "i", "ins", "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip


def _html(text: str) -> Iterator[Block]:
    """Yield the blocks of a page's main part; a page without h1 has its title as heading."""
    import lxml.html

    parser = lxml.html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    if "<body" not in text:
        text = f"<body>{text}</body>"
    try:
        page = lxml.html.document_fromstring(text.encode(), parser=parser)
    except lxml.etree.ParserError:  # nothing but comments
        return
    found = (page.xpath(path) for path in _MAIN)
    main = next((elements[0] for elements in found if len(elements) == 1), None)
    if main is None:  # a frameset
        return
    title = _spaced(page.xpath("string(//title[not(ancestor::svg)])"))
    dropped = " | ".join(f"//{tag}" for tag in _DROPPED.split("|"))
    for element in page.xpath(f"{dropped} | {_MARKS}"):
        element.tail = f"{_GAP}{element.tail or ''}"
        element.drop_tree()
    for line_break in page.iter("br"):
        line_break.tail = f" {line_break.tail or ''}"
    below = list(_blocks_in(main))
    if title and below and not any(_without_gaps(each.text_content()) for each in main.iter("h1")):
        yield Block(HEADING, title)
    yield from below


def _blocks_in(element: HtmlElement) -> Iterator[Block]:
    """Yield the blocks in an element; inline elements are parts of a paragraph."""
    paragraph = [element.text or ""]
    for child in element:
        if child.tag in _INLINE:
            paragraph.append(child.text_content())
        else:
            yield from _paragraph(paragraph)
            yield from _block(child)
            paragraph = []
        paragraph.append(child.tail or "")
    yield from _paragraph(paragraph)


def _without_gaps(text: str) -> str:
    """Remove the gaps of a text, and the space between a gap and the end of its clause."""
    closed = re.sub(rf"(?: ?{_GAP})+ ?(?=[.,](?: |$))", "", _spaced(text))
    return _spaced(closed.replace(_GAP, ""))


def _paragraph(parts: list[str]) -> Iterator[Block]:
    text = _without_gaps("".join(parts))
    if text:
        yield Block(TEXT, text)


def _block(element: HtmlElement) -> Iterator[Block]:
    text = _without_gaps(element.text_content())
    if not text:
        return
    if element.tag in _HEADINGS:
        yield Block(HEADING, text)
    elif element.tag == "pre":
        yield _code(element.text_content().replace(_GAP, ""))
    elif element.tag in ("li", "dt"):
        yield from _item(_blocks_in(element))
    elif element.tag == "tr" and not any(True for _ in element.iter("table", *_HEADINGS)):
        cells = (_without_gaps(cell.text_content()) for cell in element)
        yield Block(ROW, ", ".join(filter(None, cells)))
    else:
        yield from _blocks_in(element)


# --- reStructuredText -----------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"^\s*\.\. ([\w:+.-]+)::", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`")
_TITLED = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
_CONDITIONS = {"only", "ifconfig"}  # on the content that follows
_AS_CODE = {"doctest", "testcode", "ipython", "prompt", "plot"}
_WITHOUT_TEXT = re.compile(
    r"toctree|literalinclude|auto\w+|index|currentmodule|highlight|testsetup|testoutput|rubric"
    r"|tabularcolumns|bibliography|minigallery"
)
_VERSIONS = ("versionadded", "versionchanged")  # their first word is a version


def restructured(text: str, *, with_notes: bool = True) -> Iterator[Block]:
    """Yield the blocks of reStructuredText, and of docstrings, whose sections are headings.

    Directives and roles that docutils does not know, such as Sphinx's, keep their text.
    with_notes: whether titles of notes, and what a version added or changed, are text.
    """
    from docutils import utils

    parser, settings = _docutils()
    _register(text)
    document = utils.new_document("", settings.copy())
    document.settings.with_notes = with_notes
    parser.parse(text, document)
    yield from _blocks_of(document)


@cache
def _docutils() -> tuple[Any, Any]:
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser

    settings = get_default_settings(Parser)
    settings.report_level = 5  # no messages
    settings.halt_level = 6
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.syntax_highlight = "none"
    return Parser(), settings


def _register(text: str) -> None:
    """Tell docutils how to read the unknown directives and roles of a text."""
    from docutils.parsers.rst import directives, roles
    from docutils.parsers.rst.languages import en

    for name in {name.lower() for name in _DIRECTIVE.findall(text)}:
        if name not in en.directives:
            directives.register_directive(name, _unknown_directive())
    for name in {name.lower() for name in _ROLE.findall(text)}:
        if name not in en.roles:
            roles.register_local_role(name, _unknown_role)


@cache
def _unknown_directive() -> type:
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives

    class Unknown(Directive):
        """A directive whose arguments and content are text, unless they are code."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = defaultdict(lambda: directives.unchanged, {"": directives.unchanged})

        def run(self) -> list[Any]:
            content = "\n".join(self.content)
            arguments = () if self.name in _CONDITIONS else self.arguments
            if self.name in _VERSIONS:
                arguments = [text for each in arguments for text in each.split(None, 1)[1:]]
            is_kept = self.name not in _VERSIONS or self.state.document.settings.with_notes
            if _WITHOUT_TEXT.fullmatch(self.name) or not is_kept:
                return []
            if self.name in _AS_CODE:
                return [nodes.literal_block(content, content)]
            found = nodes.container()
            for argument in arguments:
                found += nodes.paragraph("", "", nodes.Text(argument))
            self.state.nested_parse(self.content, self.content_offset, found)
            return [found]

    return Unknown


def _unknown_role(name: str, raw: str, text: str, *others: Any, **more: Any) -> tuple[list, list]:
    """Return the title of a reference, or its name without the path that ``~`` hides."""
    from docutils import nodes, utils

    text = utils.unescape(text)
    titled = _TITLED.fullmatch(text)
    shown = titled[1] if titled else text.lstrip("!")
    if shown.startswith("~"):
        shown = shown.rpartition(".")[2].lstrip("~")
    return [nodes.inline(raw, shown)], []


def _blocks_of(node: nodes.Node) -> Iterator[Block]:
    from docutils import nodes

    if isinstance(node, nodes.title):
        is_note = not isinstance(node.parent, nodes.document | nodes.section)
        is_text = is_note and node.document.settings.with_notes
        yield Block(TEXT if is_text else HEADING, _words(node))
    elif isinstance(node, nodes.list_item):
        yield from _item(_below(node))
    elif isinstance(node, nodes.literal_block | nodes.doctest_block):
        yield _code(node.astext())
    elif isinstance(node, nodes.row):
        cells = (_joined(" ".join(block.text for block in _below(cell))) for cell in node)
        yield Block(ROW, ", ".join(filter(None, cells)))
    elif isinstance(node, nodes.field | nodes.definition_list_item):
        # a name and its description
        name, *texts = node
        below = [block for text in texts for block in _below(text)]
        if below and below[0].kind in (TEXT, ITEM):
            below[0] = Block(TEXT, f"{_words(name).removesuffix(':')}: {below[0].text}")
        yield from _item(iter(below))
    elif isinstance(node, nodes.TextElement):
        text = _words(node)
        if text and not isinstance(node, nodes.Invisible | nodes.math_block | nodes.classifier):
            yield Block(TEXT, text)
    elif not isinstance(node, nodes.system_message | nodes.Invisible | nodes.topic):
        yield from _below(node)


def _below(node: nodes.Node) -> Iterator[Block]:
    for child in node.children:
        yield from _blocks_of(child)


def _joined(text: str) -> str:
    """Replace white space by one space, or by none before the end of a sentence.

    A space before it remains of a reference that was dropped.
    """
    return re.sub(r" (?=[.,](?: |$))", "", _spaced(text))


def _words(node: nodes.Node) -> str:
    """Return the text of a node without references to footnotes, images and addresses."""
    from docutils import nodes

    without = (nodes.footnote_reference, nodes.citation_reference, nodes.math, nodes.image)

    def parts(inner: nodes.Node) -> Iterator[str]:
        if isinstance(inner, nodes.Text):
            yield inner.astext()  # without the marks of escapes
        elif isinstance(inner, nodes.problematic):  # markup that has no end
            yield re.sub(r"`+_{0,2}|\*+|^\||\|_?$", "", inner.astext())
        elif not isinstance(inner, (*without, nodes.substitution_reference)):
            is_address = isinstance(inner, nodes.reference) and "://" in inner.astext()
            for child in () if is_address else inner.children:
                yield from parts(child)

    return _joined("".join(parts(node)))
