"""Documents: the files that are read, the passages that are cut from them, and real questions."""

import pytest
from small_collections import relevant, texts_of, write_files

from cdmae.collections import documents
from cdmae.collections.documents import CODE, HEADING, ITEM, ROW, TEXT
from cdmae.collections.sources import text
from cdmae.errors import InputError

LONG = " ".join(f"word{number}" for number in range(40))


def read(folder, **settings):
    return texts_of(text.Settings(path=str(folder), **settings).load())


def test_files_are_cut_at_paragraphs(tmp_path):
    guide = f"One two\nthree.\n\nFour five.\n\n{LONG}\n"
    names = ("guide/how_to-install.md", "a.txt", "left.out")
    write_files(tmp_path, dict(zip(names, (guide, "Plain words.\n", "Not."), strict=True)))
    entry = text.Settings(path=str(tmp_path), words=30)
    words = LONG.split()
    assert list(entry.load().rows()) == [
        ("a.txt#1", "a", "Plain words."),
        ("guide/how_to-install.md#1", "how to install", "One two three.\n\nFour five."),
        ("guide/how_to-install.md#2", "how to install", " ".join(words[:30])),
        ("guide/how_to-install.md#3", "how to install", " ".join(words[30:])),
    ]


MARKDOWN = """---
title: x
---
<p align="center"><img src="logo.png"><a name="top"></a></p>

# A [guide](https://example.org) of `x_y`

See **the** [manual page](a.html#b), or <https://example.org/c>.

## Use

| name | meaning |
|---|---|
| `a` | the *first* letter |

```python
# no heading
print("[x](y)")
```
"""
DIALECTS = """+++
title = "x"
+++
# A guide {#top}

:::note[Mind this]
One.
:::

::: tip Take two
Two.
:::

::::{hint}
A half.
::::

!!! warning "Take care"
    Three, by the `.`{.py} (period)[^1].

=== "Linux"

    Four.

> [!NOTE]
> Five, see ![](x.png){ width=9 } .
{: .class }

Term
: Meaning

- [x] Done

  More.

```
{# kept #}
```

[^1]: Six.
"""
RST = """
A guide
=======

.. toctree:: other

See :func:`~tree.leaf.grow`\\s and :doc:`the manual <manual>`, `here <https://example.org>`_ [1]_.

.. note:: Mind *this*, says |version|.

.. py:function:: grow(leaf)

   Let it grow.

.. only:: html

   Let it live.

.. versionadded:: 3.1 A new leaf

   It grows.

.. admonition:: Hint

   Water it.

Use
---

term
   The meaning::

       x = [1]
"""
PAGE = """<html><head><title>T</title><script>var x;</script></head><body>
<nav><a href="/">Home</a></nav><div role="main"><h1>A guide<a class="headerlink">¶</a></h1>
<p>See <b>the</b> <a href="x">manual page</a>.<br>Or <svg></svg> .NET.</p><!-- not this -->
<h2>Use</h2><ul><li>One <code>x</code></li><li><p>Two</p></li></ul>
<table><tr><th>a</th><th>b</th></tr></table><pre><button>Copy</button>x = 1
y = 2</pre></div><footer>Made today</footer></body></html>"""

# as ASP.NET wraps pages
ARTICLES = """<body><form><h1>FAQ</h1><label>Search</label><input><article><h2>One</h2>
<p>First.</p></article><article><h2>Two</h2><p>Second.</p></article></form></body>"""


@pytest.mark.parametrize(
    ("source", "suffix", "expected"),
    [
        (MARKDOWN, ".md", [
            (HEADING, "A guide of x_y"), (TEXT, "See the manual page, or."), (HEADING, "Use"),
            (ROW, "name, meaning"), (ROW, "a, the first letter"),
            (CODE, '    # no heading\n    print("[x](y)")'),
        ]),
        (DIALECTS, ".md", [
            (HEADING, "A guide"), (TEXT, "Mind this"), (TEXT, "One."), (TEXT, "Take two"),
            (TEXT, "Two."), (TEXT, "A half."), (TEXT, "Take care"), (TEXT, "Three, by the . (period)."), (TEXT, "Linux"),
            (TEXT, "Four."), (TEXT, "Note"), (TEXT, "Five, see."), (ITEM, "Term"),
            (TEXT, "Meaning"), (ITEM, "Done"), (TEXT, "More."), (CODE, "    {# kept #}"),
            (ITEM, "Six."),
        ]),
        (RST, ".rst", [
            (HEADING, "A guide"), (TEXT, "See grows and the manual, here."),
            (TEXT, "Mind this, says."), (TEXT, "grow(leaf)"), (TEXT, "Let it grow."),
            (TEXT, "Let it live."), (TEXT, "A new leaf"), (TEXT, "It grows."), (TEXT, "Hint"),
            (TEXT, "Water it."),
            (HEADING, "Use"), (ITEM, "term: The meaning:"), (CODE, "    x = [1]"),
        ]),
        (PAGE, ".html", [
            (HEADING, "A guide"), (TEXT, "See the manual page. Or .NET."), (HEADING, "Use"),
            (ITEM, "One x"), (ITEM, "Two"), (ROW, "a, b"), (CODE, "    x = 1\n    y = 2"),
        ]),
        ("<table><tr><td>Menu</td><td><h1>A</h1><p>In <dfn>b</dfn>.</p></td></tr></table>", ".htm", [
            (TEXT, "Menu"), (HEADING, "A"), (TEXT, "In b."),
        ]),
        (ARTICLES, ".html", [
            (HEADING, "FAQ"), (HEADING, "One"), (TEXT, "First."), (HEADING, "Two"), (TEXT, "Second."),
        ]),
        ("<title>A &amp; B</title><svg><title>C</title></svg><h2>D</h2><p>E", ".html", [
            (HEADING, "A & B"), (HEADING, "D"), (TEXT, "E"),
        ]),
        ("---\nid: 1\ntitle: 'A <b> & C'\n---\nD", ".md", [(HEADING, "A <b> & C"), (TEXT, "D")]),
        ('+++\ntitle = "A"\n+++\n## B\n\nC', ".md", [(HEADING, "A"), (HEADING, "B"), (TEXT, "C")]),
        ("---\ntitle: A\n---\n![](a.png)", ".md", []),
        ("One\ntwo.\n\n \nThree.", ".txt", [(TEXT, "One two."), (TEXT, "Three.")]),
    ],
)  # fmt: skip
def test_documents_are_parsed(source, suffix, expected):
    assert list(documents.blocks(source, suffix)) == expected


def test_headings_are_titles_and_none_is_lost(tmp_path, capsys):
    write_files(tmp_path, {"x.md": "# A\n\n## B\n\nText.\n\n## C\n", "y.md": "![](y.png)"})
    rows = [row[1:] for row in text.Settings(path=str(tmp_path)).load().rows()]
    assert rows == [("x: A: B", "Text."), ("x", "C")]
    assert "1 of 2 documents have no text" in capsys.readouterr().err
    write_files(tmp_path, {"index.md": "One.", "guide/index.md": "Two."})
    titles = [row[1] for row in text.Settings(path=str(tmp_path)).load().rows()]
    assert titles == ["guide index", "index", "x: A: B", "x"]


def test_rows_of_tables_are_not_cut_and_code_can_be_left_out(tmp_path):
    row = " ".join(f"cell{number}" for number in range(20))
    code = "\n".join(f"line {number} of code" for number in range(5))
    nine = "one two three four five six seven eight nine"
    write_files(tmp_path, {"x.md": f"{nine}\n\n|a|\n|-|\n|{row}|\n\n```\n{code}\n```\n"})
    pieces = list(read(tmp_path, words=10).values())
    assert pieces[:3] == [f"{nine}\n\n- a", f"- {row}", "    line 0 of code\n    line 1 of code"]
    assert not any("line" in piece for piece in read(tmp_path, code=False).values())


def test_hidden_files_and_links_that_lead_outside_are_not_read(tmp_path):
    """Links to files inside the folder are read; suffixes may be in any case."""
    hidden = {".git/c.txt": "hidden", ".d.txt": "hidden", "e.org": "not a suffix"}
    docs = write_files(tmp_path / "docs", {"a.TXT": "one", "inner/b.txt": "two", **hidden})
    (tmp_path / "secret.txt").write_text("the secret is 42")
    (docs / "secret.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "up").symlink_to("..")
    (docs / "same.txt").symlink_to("a.TXT")
    (docs / "broken.txt").symlink_to("nowhere")
    assert read(docs) == {"a.TXT#1": "one", "inner/b.txt#1": "two", "same.txt#1": "one"}
    assert text.Settings(path=str(docs), suffixes=(".ORG",)).depends() == [docs / "e.org"]


@pytest.mark.parametrize(
    "declared", ["ISO-8859-1", "utf-8", "utf-16", "ascii", "rot13", "none", ""]
)
def test_a_page_is_read_in_the_encoding_that_it_declares(tmp_path, declared):
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}"><p>caf\u00e9'
    encoding = "latin-1" if declared.startswith("ISO") else "utf-8"
    (tmp_path / "a.html").write_text(page, encoding=encoding)
    (tmp_path / "b.html").write_text("<frameset><noframes><body></noframes></frameset>")
    (tmp_path / "c.html").write_text("<!-- <body> -->")
    assert read(tmp_path) == {"a.html#1": "caf\u00e9"}


# --- real questions -------------------------------------------------------------------------------


def asked(folder, table):
    """The passages that answer each question of a table."""
    settings = text.Settings(path=str(folder), questions={"test": str(table)})
    assert settings.judged() == {"test": True} and table in settings.depends()
    assert settings.expected()[2] == {"test": len(settings.load().queries["test"])}
    return relevant(settings.load(), "test")


def test_questions_name_a_file_a_heading_or_a_passage(tmp_path):
    guide = "# By pip\n\nRun pip.\n\n# By conda\n\nRun conda.\n"
    contents = {"guide/install.md": guide, "faq.md": "# Cost\n\nIt is free.\n"}
    docs = write_files(tmp_path / "docs", contents)
    table = tmp_path / "questions.csv"
    table.write_text(
        "Question,File,Heading,ID\nhow to install,install.md,,\nwhat does it cost,,cost,\n"
        "with conda,guide/install,By Conda,\nwith pip,,,guide/install.md#1\nwith pip,faq.md,,\n"
    )
    both = ["guide/install.md#1", "guide/install.md#2"]
    assert asked(docs, table) == {
        "how to install": both,
        "what does it cost": ["faq.md#1"],
        "with conda": both[1:],
        "with pip": [both[0], "faq.md#1"],
    }
    write_files(docs, {"c.md": "# C\n\nOne.\n\n# C++\n\nTwo.\n"})
    table.write_text("question,heading\nwhat is C?,C\nWhat is  C++?,c++\n")
    assert asked(docs, table) == {"what is C?": ["c.md#1"], "What is  C++?": ["c.md#2"]}


def test_a_name_of_several_files_is_the_one_at_the_top_or_refused(tmp_path, capsys):
    files = {"README.md": "One.", "a/README.md": "Two.", "a/x.md": "Three.", "b/x.md": "Four."}
    docs = write_files(tmp_path / "docs", files)
    table = tmp_path / "asked.csv"
    table.write_text("question,file,author\nwhat,README.md,me\n")
    assert asked(docs, table) == {"what": ["README.md#1"]}
    assert "asked.csv: ignored columns: author" in capsys.readouterr().err
    table.write_text("question,file\nwhat,README.md\nwhich,x.md\n")
    several = "2 files, such as a/x.md and b/x.md"
    with pytest.raises(InputError, match=f"line 3: file is x.md, the name of {several}"):
        asked(docs, table)
    write_files(docs, {"a/x.md": "# X\n\nThree.", "b/x.md": "# X\n\nFour."})
    table.write_text("question,heading,file\nwhat,X,b/x.md\nwhich,x,\n")
    with pytest.raises(InputError, match=f"line 3: heading is x, which is in {several}"):
        asked(docs, table)


def test_a_table_of_answers_may_be_the_documents(tmp_path):
    table = tmp_path / "faq.csv"
    table.write_text("Question,Answer,URL\nCost?,It is free.,/cost\nWhere?,There.,\n")
    questions = tmp_path / "asked.jsonl"
    questions.write_text('{"query": "what is the price", "url": "/cost"}\n')
    assert asked(table, questions) == {"what is the price": ["/cost"]}
    assert list(text.Settings(path=str(table)).load().rows()) == [
        ("/cost", "Cost?", "It is free."),
        ("faq.csv#3", "Where?", "There."),
    ]
