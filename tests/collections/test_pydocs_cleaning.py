"""Documentation strings become prose: a summary and the rest, without markup, code and the object's
own name.
"""

import pytest

from cdmae.collections.sources.pydocs import cleaning

NUMPY = """
    lerp(x, y, *,
         clip=False) -> array

    Interpolate between two :class:`~tree.Points`.  The `lerp` of [1]_ is *linear*, e.g. for ``x``.

    .. versionadded:: 1.2
       Not prose.

    .. note:: Both points stay unchanged.

    Parameters
    ----------
    x, y : array_like, optional
        The first and the second point.
    clip : bool

    Returns
    -------
    z : ndarray
        The point between them.
    scalar

    Notes
    -----
    For details see `the manual <https://example.org/a>`_ or https://example.org/b.
    Written as follows::

        z = x + y

    === ===
    a   b
    === ===

    See Also
    --------
    dropped : Dropped.

    Examples
    --------
    >>> lerp(1, 2)
    dropped
"""
GOOGLE = """Fetch rows from a table. Retrieves all rows that match.

    Args:
        table_handle (Table, *optional*, defaults to `None`): An open table.
        keys: The keys of all
            rows to fetch.

    Returns:
        `dict`: A mapping of keys to rows.

    ```python
    fetch(dropped)
    ```

    <Tip>Use [`Table.read`] or [the guide](https://example.org).</Tip>

    Example:
        dropped

    Closing words.
"""
SPHINX = """Send a message to someone.

:param str sender: The person sending the message
:type sender: str
:param recipient: The recipient, who is named
    over two lines
:return: the message id
:rtype: int
"""
C = """recv(buffersize[, flags]) -> data

Receive data from the socket

  buffersize
    The number of bytes that it should receive.
"""


@pytest.mark.parametrize(
    ("docstring", "name", "summary", "body"),
    [
        (
            NUMPY,
            "tree.lerp",
            "Interpolate between two Points",
            "this function of is linear, e.g. for x. Both points stay unchanged. "
            "x, y: The first and the second point. The point between them. "
            "For details see the manual or. Written as follows.",
        ),
        (
            GOOGLE,
            "tree.fetch",
            "Fetch rows from a table",
            "Retrieves all rows that match. table_handle: An open table. keys: The keys of all rows to fetch. "
            "A mapping of keys to rows. Use Table.read or the guide. Closing words.",
        ),
        (
            SPHINX,
            "tree.send",
            "Send a message to someone",
            "sender: The person sending the message. recipient: The recipient, who is named over two lines. the message id.",
        ),
        (
            C,
            "_socket.recv",
            "Receive data from the socket",
            "buffersize: The number of bytes that it should receive.",
        ),
    ],
    ids=["numpy", "google", "sphinx", "c"],
)
def test_cleaning_keeps_the_prose(monkeypatch, docstring, name, summary, body):
    monkeypatch.setattr(cleaning, "MIN_BODY", 3)
    assert cleaning.clean(docstring, name, max_words=100) == (summary, body)


@pytest.mark.parametrize(
    "docstring",
    [
        "Only a summary that nothing follows.",
        "Two words. The body of this one is long enough to be a passage, certainly.",
        "Parameters\n----------\nx : int\n    The description of a parameter, with words enough to be a passage.",
        "x (`int`): The first parameter of this function. The description goes on for many more words than eight.",
        "Fill in the {name} of it. The rest of this text is long enough to be a passage, certainly.",
        r"Compute the \alpha of it. The rest of this text is long enough to be a passage, certainly.",
        "DEPRECATED: use another one. The rest of this text is long enough to be a passage, certainly.",
        "Compute the sum of both.\n\nx = [1, 2]; y = {3: 4}; z = x[0] + y[3] == 5; f(x)[0] = y | z; a <= b >= c",
    ],
)
def test_cleaning_refuses_what_has_no_summary_or_no_body(docstring):
    assert cleaning.clean(docstring, "tree.f", max_words=100) is None


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.read_csv", "Use read_csv or a.read_csv(x), not `b`.", "Use this function or this function, not `b`."),
        ("a.add", "To add, call `add` or add(x).", "To add, call this function or this function."),
        ("a.DataFrame", "A :class:`~a.DataFrame` of DataFrames.", "this class of DataFrames."),
        ("a.f1", "Call outer(f1) here.", "Call outer(this function) here."),
        ("a.solve", "The solver solves.", "The solver solves."),
    ],
)  # fmt: skip
def test_a_passage_does_not_name_its_object(name, text, expected):
    assert cleaning._without_name(text, name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Use UMFPACK for the solution [1]_, [2]_, [3]_. Or not.",
            "Use UMFPACK for the solution. Or not.",
        ),
        ("The Ansari-Bradley test ([1]_, [2]_) is a test.", "The Ansari-Bradley test is a test."),
        (
            "It is monotone (PAVA), see [1]_. See the Notes.",
            "It is monotone (PAVA). See the Notes.",
        ),
        ("For more details see [2]_. Then go on.", "Then go on."),
        (
            "The code can be found here: https://example.org/x. Go on.",
            "The code can be found here. Go on.",
        ),
        (". N.B. This is called. . N.B. That is not.", "N.B. This is called. N.B. That is not."),
        (
            "Of (N,) or (N,1), in 0 .. 10. Tags (e.g., `<a>`, `<b>`).",
            "Of (N,) or (N,1), in 0 .. 10. Tags (e.g.).",
        ),
        (
            "Then g(), 0..1 and a ... b, e.g. x[:, 1]. Mr. X",
            "Then g(), 0..1 and a ... b, e.g. x[:, 1]. Mr. X",
        ),
    ],
)
def test_nothing_is_left_of_what_is_dropped(text, expected):
    assert cleaning._inline(text) == expected


def test_a_passage_does_not_repeat_its_summary():
    docstring = "Sort the list. It is stable and takes no memory at all. Sort the list. Then it returns nothing."
    summary, body = cleaning.clean(docstring, "a.b", max_words=100)
    assert summary == "Sort the list"
    assert body == "It is stable and takes no memory at all. Then it returns nothing."


@pytest.mark.parametrize(("max_words", "words"), [(30, 30), (29, 20), (20, 20), (14, 10)])
def test_a_passage_ends_with_a_sentence_where_it_can(max_words, words):
    text = " ".join(
        f"This is sentence {number} and it has exactly ten words." for number in range(3)
    )
    assert len(cleaning._cut(text, max_words).split()) == words
    assert len(cleaning._cut(text.replace(".", ""), max_words).split()) == max_words


@pytest.mark.parametrize(
    "entry",
    [
        "The array to sort, which must have one dimension.",
        "Ignored. It is needed by the interface of other estimators.",
        "Returns the array itself, sorted along its last axis.",
    ],
)
def test_a_list_of_parameters_with_a_sentence_is_a_body(entry):
    docstring = f"Sort an array in place.\n\nParameters\n----------\na : array\n    {entry}\n"
    summary, body = cleaning.clean(docstring, "sorting.sort", max_words=100)
    assert summary == "Sort an array in place"
    assert body == f"a: {entry}"


def test_a_list_of_parameters_without_a_sentence_makes_no_passage():
    entries = (
        "\n\nParameters\n----------\na : array\n    The array of the numbers to sort.\n"
        "axis : int\n    Number of the sorted axis, from 0.\n\nReturns\n-------\nout : array\n"
        "    Sorted array of shape (n_rows, n_columns).\n"
    )
    docstring = "Sort an array in place." + entries
    assert cleaning.clean(docstring, "sorting.sort", max_words=100) is None
    assert cleaning.clean(f"Sort an array. Equal numbers stay.{entries}", "s.sort", max_words=100)
    fields = "\n\n:param a: the array of the numbers to sort\n:return: the sorted array of numbers"
    assert cleaning.clean("Sort an array in place." + fields, "s.sort", max_words=100) is None
