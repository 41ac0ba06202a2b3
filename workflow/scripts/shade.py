"""A text shaded by the importance of its words: what the decoder would have to restore."""

import os
import sys
from pathlib import Path

from cdmae.cli import command
from cdmae.importance import shading


@command
def main(*, table: Path, tokenizer: Path, text: str):
    """Score `text` with the importance in `table`: shaded on a terminal, elsewhere or with NO_COLOR as numbers."""
    words = shading.score(text, table, tokenizer)
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(shading.for_terminal(words) if coloured else shading.as_numbers(words))
