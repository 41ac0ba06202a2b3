"""An encoder that reads misspelt words, which its decoder restores."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from any_kind import as_objective
from tiny_objectives import SETTINGS
from tiny_tokenizers import byte_level

from cdmae.masking import Corpus
from cdmae.models import ragged
from cdmae.pretraining.objectives import objective
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_backend

TEXTS = [
    "the quick brown fox jumps over the lazy dog near 42 riverbanks",
    "searching documents with misspelt questions is difficult",
    "a of it",  # nothing can be misspelt
    "",
    "sphinx of black quartz judge my vow again and again",
]
EPOCHS = np.zeros(len(TEXTS), np.int64)


@pytest.fixture(params=["word-pieces", "bytes"])
def folder(request, tmp_path):
    """A tokenizer of each kind."""
    words = request.param == "word-pieces"
    made = tokenise.train_tokenizer(TEXTS * 3, 120) if words else byte_level()
    made.save_pretrained(tmp_path)
    return tmp_path


FEW = 1e-9  # a ratio that masks nothing but misspelt words


def read(folder, *, length=80, decoder_ratio=FEW, masking="whole_word", **changed):
    """A reader of the texts, and its two sides in the order of the collection."""
    settings = as_objective(
        "toroder",
        SETTINGS,
        misspelt=0.5,
        encoder_masking=masking,
        decoder_masking=masking,
        decoder_ratio=decoder_ratio,
        max_length=length,
        **changed,
    )
    passages = pa.table({"title": [""] * len(TEXTS), "text": TEXTS})
    corpus = Corpus(tokenise.tokenise(passages, folder, 1), Vocabulary.read(folder), folder)
    toroder = objective("toroder")
    reader = toroder.reader(settings, toroder.sides(settings, "word"), corpus, seed=3)
    made = {}
    for side in reader.sides:
        made[side] = reader.mask(side, reader.texts(np.arange(len(TEXTS)), EPOCHS), made)
    return reader, made


def test_exactly_the_words_that_the_decoder_restores_are_misspelt(folder):
    """Without masks of the encoder, its texts differ from the originals in these words alone."""
    _, sides = read(folder, encoder_ratio=FEW)
    backend = read_backend(folder)
    assert not sides["encoder"].chosen.any()
    misspelt = 0
    for row, text in enumerate(TEXTS):
        cut = slice(row, row + 1)
        masked = sides["decoder"][cut]
        inside = ragged.content(masked.inputs.starts - masked.inputs.starts[0])
        original = masked.labels[inside]
        restored = backend.decode(original[masked.chosen[inside]].tolist())
        ids = next(iter(sides["encoder"].inputs.take(np.array([row])))).tolist()
        seen = backend.decode(ids[1:-1])
        if not restored:
            assert seen.split() == text.split()
            continue
        changed = [
            (old, new) for old, new in zip(text.split(), seen.split(), strict=True) if old != new
        ]
        assert "".join(old for old, _ in changed) == restored.replace(" ", "")
        misspelt += len(changed)
    assert misspelt >= 4


def test_only_other_words_are_masked_and_labels_are_the_originals(folder):
    _, sides = read(folder, encoder_ratio=0.5)
    encoder = sides["encoder"]
    assert encoder.chosen.any()
    assert (encoder.chosen <= (encoder.labels > 0)).all()
    _, plain = read(folder, encoder_ratio=FEW)
    kept = ~encoder.chosen
    assert (encoder.inputs.values[kept] == plain["encoder"].inputs.values[kept]).all()
    assert (encoder.labels[encoder.chosen] == plain["encoder"].inputs.values[encoder.chosen]).all()


def test_the_decoder_also_restores_masked_words_of_the_encoder_up_to_its_ratio(folder):
    """As TypoBoderCollator of ielab/boder with random_mask False."""
    _, misspelt = read(folder, encoder_ratio=FEW)
    # word-pieces, because the last whole words that still fit depend on the ratio
    _, sides = read(folder, encoder_ratio=0.2, decoder_ratio=0.7, masking="uniform")
    typos = misspelt["decoder"].chosen
    masked = sides["decoder"].chosen
    assert (masked >= typos).all()
    assert masked.sum() > typos.sum()
    for row in range(len(TEXTS)):
        cut = slice(row, row + 1)
        decoder = sides["decoder"][cut]
        encoder = sides["encoder"][cut]
        pieces = len(decoder.chosen) - 2
        own = misspelt["decoder"][cut].chosen
        assert decoder.chosen.sum() == max(own.sum(), int(0.7 * pieces + 1e-9))
        assert encoder.chosen.sum() == min(int(0.2 * pieces + 1e-9), pieces - own.sum())
        more = Counter(decoder.labels[decoder.chosen & ~own].tolist())
        shared = more & Counter(encoder.labels[encoder.chosen].tolist())
        assert shared.total() >= min(more.total(), encoder.chosen.sum())


def test_longer_passages_are_cut_again(folder):
    _, whole = read(folder, encoder_ratio=FEW)
    _, short = read(folder, length=14, encoder_ratio=FEW)
    lengths = np.diff(short["encoder"].inputs.starts)
    assert lengths.max() == 14
    assert np.diff(whole["encoder"].inputs.starts).max() > 14
    assert len(short["encoder"].chosen) == lengths.sum() == len(short["encoder"].labels)


def test_misspellings_depend_on_seed_epoch_and_passage_alone(folder):
    reader, sides = read(folder)
    again = {}
    rows = np.array([4, 0])
    for side in sides:
        again[side] = reader.mask(side, reader.texts(rows, EPOCHS[:2]), again)
    for place, row in enumerate(rows):
        first = next(iter(sides["encoder"].inputs.take(np.array([row]))))
        second = next(iter(again["encoder"].inputs.take(np.array([place]))))
        assert (first == second).all()
    other = {}
    for side in sides:
        other[side] = reader.mask(side, reader.texts(rows, EPOCHS[:2] + 1), other)
    assert not np.array_equal(other["encoder"].inputs.values, again["encoder"].inputs.values)
