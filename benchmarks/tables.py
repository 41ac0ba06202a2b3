"""Format tables for a terminal."""

from __future__ import annotations


def table(rows: list[dict[str, str]]) -> str:
    """Align rows with the same keys: the first column to the left, numbers to the right."""
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for row in cells:
        first, *rest = (each.rjust(width) for each, width in zip(row, widths, strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
