"""An encoder that reads misspelt words, which its decoder restores."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from any_kind import as_objective
from tiny_objectives import SETTINGS, bounds
from tiny_tokenizers import byte_level

from cdmae.masking import Corpus
from cdmae.pretraining.objectives.toroder import ToRoDer
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary, read_backend

TEXTS = [
    "the quick brown fox jumps over the lazy dog near 42 riverbanks",
    "searching documents with misspelt questions is difficult",
    "a of it",  # nothing can be misspelt
    "",
    "sphinx of black quartz judge my vow again and again",
]
ROWS = np.arange(len(TEXTS))
EPOCHS = 0 * ROWS
FEW = 1e-9  # a ratio that masks nothing but misspelt words


@pytest.fixture(params=["word-pieces", "bytes"])
def folder(request, tmp_path):
    """A tokenizer of each kind."""
    words = request.param == "word-pieces"
    made = tokenise.train_tokenizer(TEXTS * 3, 120) if words else byte_level()
    made.save_pretrained(tmp_path)
    return tmp_path


def masks(reader, rows=ROWS, epochs=EPOCHS):
    """Both sides of some texts."""
    made = {}
    for side in reader.sides:
        made[side] = reader.mask(side, reader.texts(rows, epochs), made)
    return made


def read(folder, *, length=80, encoder_ratio=FEW, decoder_ratio=FEW, masking="whole_word"):
    """A reader of the texts."""
    shares = {"encoder_ratio": encoder_ratio, "decoder_ratio": decoder_ratio, "misspelt": 0.5}
    how = {"encoder_masking": masking, "decoder_masking": masking, "max_length": length}
    settings = as_objective("toroder", SETTINGS, **shares, **how)
    passages = pa.table({"title": [""] * len(TEXTS), "text": TEXTS})
    corpus = Corpus(tokenise.tokenise(passages, folder, 1), Vocabulary.read(folder), folder)
    return ToRoDer.reader(settings, ToRoDer.sides(settings, "word"), corpus, seed=3)


def rows_of(masked, name):
    """An array of a side, cut into its texts, without [CLS] and [SEP]."""
    array = masked.inputs.values if name == "inputs" else getattr(masked, name)
    return [array[begin + 1 : end - 1] for begin, end in bounds(masked)]


def test_exactly_the_words_that_the_decoder_restores_are_misspelt(folder):
    """Without masks of the encoder, its texts differ from the originals in these words alone."""
    sides = masks(read(folder))
    backend = read_backend(folder)
    assert not sides["encoder"].chosen.any()
    misspelt = 0
    decoder = (rows_of(sides["decoder"], name) for name in ("labels", "chosen"))
    inputs = rows_of(sides["encoder"], "inputs")
    for text, labels, chosen, ids in zip(TEXTS, *decoder, inputs, strict=True):
        restored = backend.decode(labels[chosen].tolist())
        seen = backend.decode(ids.tolist()).split()
        changed = [old for old, new in zip(text.split(), seen, strict=True) if old != new]
        assert "".join(changed) == restored.replace(" ", "")
        misspelt += len(changed)
    assert misspelt >= 4


def test_only_other_words_are_masked_and_labels_are_the_originals(folder):
    encoder = masks(read(folder, encoder_ratio=0.5))["encoder"]
    plain = masks(read(folder))["encoder"].inputs.values
    chosen = encoder.chosen
    assert chosen.any()
    assert (encoder.inputs.values[~chosen] == plain[~chosen]).all()
    assert (encoder.labels[chosen] == plain[chosen]).all()


def test_the_decoder_also_restores_masked_words_of_the_encoder_up_to_its_ratio(folder):
    """As TypoBoderCollator of ielab/boder with random_mask False."""
    typos = rows_of(masks(read(folder))["decoder"], "chosen")
    # word-pieces, because the last whole words that still fit depend on the ratio
    sides = masks(read(folder, encoder_ratio=0.2, decoder_ratio=0.7, masking="uniform"))
    encoder, decoder = (
        [rows_of(sides[side], name) for name in ("chosen", "labels")]
        for side in ("encoder", "decoder")
    )
    for own, chosen, labels, masked, read_labels in zip(typos, *decoder, *encoder, strict=True):
        assert (chosen >= own).all()
        assert chosen.sum() == max(own.sum(), int(0.7 * len(own) + 1e-9))
        assert masked.sum() == min(int(0.2 * len(own) + 1e-9), len(own) - own.sum())
        more = Counter(labels[chosen & ~own].tolist())
        shared = more & Counter(read_labels[masked].tolist())
        assert shared.total() >= min(more.total(), masked.sum())
    assert sum(map(np.sum, decoder[0])) > sum(map(np.sum, typos))


def test_longer_passages_are_cut_again(folder):
    whole, short = (masks(read(folder, length=length))["encoder"] for length in (80, 14))
    assert short.inputs.lengths.max() == 14 < whole.inputs.lengths.max()
    assert len(short.chosen) == short.inputs.lengths.sum() == len(short.labels)


def test_misspellings_depend_on_seed_epoch_and_passage_alone(folder):
    reader = read(folder)
    whole = rows_of(masks(reader)["encoder"], "inputs")
    rows = np.array([4, 0])
    again = rows_of(masks(reader, rows, EPOCHS[:2])["encoder"], "inputs")
    assert all((whole[row] == again[place]).all() for place, row in enumerate(rows))
    other = rows_of(masks(reader, rows, EPOCHS[:2] + 1)["encoder"], "inputs")
    assert not all(map(np.array_equal, other, again))
