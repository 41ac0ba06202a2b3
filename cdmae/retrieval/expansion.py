"""Writing texts for passages by a sequence-to-sequence model: docT5query (Nogueira and Lin 2019).

The model reads a passage and draws several texts, such as queries that the passage answers. Each
word-piece is drawn among the most probable ones. BM25 then searches the passages with these texts
(`cdmae.collections.sources.expanded`). The draws of a batch depend only on the seed and on the
passages of its piece, so a killed run continues with the same texts. On another kind of device it
writes all texts again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cdmae import collections
from cdmae.config import pretrained, systems
from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.files import complete, digest, write_text
from cdmae.formats import listed
from cdmae.log import Progress, say
from cdmae.models import networks
from cdmae.retrieval import vectors
from cdmae.training import setup

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cdmae.collections.sources.expanded import Settings

PIECE = 256  # passages of a file that a killed run does not write again
SEQUENCES = {"cpu": 64, "cuda": 256}  # texts that are drawn at the same time
Passage = tuple[str, str]  # id, title and text


class Writer:
    """A sequence-to-sequence model and its tokenizer."""

    def __init__(self, settings: Settings, threads: int = 1) -> None:
        """Load the model from a folder, or from the hub by name.

        Raises `InputError` if it cannot be loaded or lacks weights. Custom code of a model is not
        executed.
        """
        self.settings = settings
        self.device = setup.set_up(threads)
        self.model, self.tokenizer = _load(settings.model)
        self.model.to(self.device)
        # passages that are read together
        self.together = max(1, SEQUENCES[self.device.type] // settings.samples)

    def write(self, texts: list[str], seed: int) -> list[list[str]]:
        """Draw the texts of some passages; each passage gets ``samples`` texts."""
        settings = self.settings
        read = self.tokenizer(
            [f"{settings.prompt}{text}" for text in texts],
            max_length=settings.passage_length,
            truncation=True,
            padding=True,
            return_tensors="pt",
        ).to(self.device)
        precision = setup.scoring_precision("auto", self.device)
        torch.manual_seed(seed)  # transformers draws from torch's global generator
        with torch.inference_mode(), setup.autocast(precision, self.device):
            drawn = self.model.generate(
                input_ids=read["input_ids"],
                attention_mask=read["attention_mask"],
                do_sample=True,
                top_k=settings.top_k,
                num_beams=1,
                num_return_sequences=settings.samples,
                max_new_tokens=settings.text_length,
            )
        written = self.tokenizer.batch_decode(drawn, skip_special_tokens=True)
        lines = [" ".join(text.split()) for text in written]
        begins = range(0, len(lines), settings.samples)
        return [lines[begin : begin + settings.samples] for begin in begins]


def _load(model: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a sequence-to-sequence model in evaluation mode, and its tokenizer."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    name, revision = pretrained.divided(model)
    where_from = {"revision": revision, "trust_remote_code": False}
    with networks.reported(f"the model {model}"):
        tokenizer = AutoTokenizer.from_pretrained(name, **where_from)
        loaded, found = AutoModelForSeq2SeqLM.from_pretrained(
            name, output_loading_info=True, dtype=torch.float32, **where_from
        )
        if found["missing_keys"]:
            raise InputError(f"it lacks weights: {listed(sorted(found['missing_keys']), most=3)}")
    for commit in networks.commits(model=model).values():
        say(f"{model}: using commit {commit} of the hub")
    return loaded.eval(), tokenizer


def write_texts(
    settings: dict[str, Any], output: Path, threads: int = 1, code: Mapping[str, str] | None = None
) -> None:
    """Write texts for all passages of a collection: lines of passage id, tab, text.

    settings: of an entry of `collections` with the source `expanded`. A killed run resumes after
    its last complete piece, unless the `code` has changed.
    """
    expanded = collections.settings_of(settings, "collection")
    writer = Writer(expanded, threads)
    files = (*expanded.base.depends(), *systems.model_files(expanded.model))
    content = [digest(path) for path in files]
    commits = networks.commits(model=expanded.model)
    key = [asdict(expanded), expanded.version(), content, commits, PIECE, writer.together, code]
    passages, _, _ = expanded.base.expected()
    rows = (
        (passage_id, f"{title} {text}" if title else text)
        for passage_id, title, text in expanded.base.load().rows()
    )
    folder = vectors.pieces(output, key)
    label = f"write texts with {expanded.model}"
    with Progress(passages, unit="passages", label=label) as progress:
        for number in count():
            piece = list(islice(rows, PIECE))
            if not piece:
                break
            path = folder / f"{number:06d}.tsv"
            if path.exists():
                progress.advance(len(piece))
            else:
                write_text(path, "".join(_lines(writer, piece, number, progress)))
        with complete(output) as aside, aside.open("wb") as joined:
            for path in sorted(folder.glob("*.tsv")):
                joined.write(path.read_bytes())


def _lines(writer: Writer, piece: list[Passage], number: int, progress: Progress) -> Iterator[str]:
    """Yield the lines of a piece in the order of its passages.

    Passages of similar lengths are read together.
    """
    order = sorted(range(len(piece)), key=lambda row: len(piece[row][1]))
    size = writer.together
    written: dict[int, list[str]] = {}
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        seed = setup.seed_of(writer.settings.seed, "texts", number, begin)
        texts = writer.write([piece[row][1] for row in rows], seed)
        written.update(zip(rows, texts, strict=True))
        progress.advance(len(rows))
    for row, (passage_id, _) in enumerate(piece):
        for text in written[row]:
            yield f"{passage_id}\t{text}\n"
