"""Tiny tokenizers of every kind, trained here, as transformers saves them; tokens as a job writes
them.
"""

import json

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from cdmae.tokens.corpus import stream_tokens

TEXTS = [
    "The decoder's task is to recover (masked) tokens, aggressively masked 50 %, from one vector.",
    "A naïve café in São Paulo: Ångström, 中文字符 e-mail, don't mail\nme the masked one.",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def write_tokens(folder, tokens):
    """Write tokens that are in memory as a folder."""
    parts = [(tokens.ids, np.diff(tokens.edges))]
    stream_tokens(folder, parts, tokens.ids.dtype.type, tokens.word_starts)


def byte_level():
    """RoBERTa's: whether "mail" begins a word depends on what stands before it."""
    import transformers

    parts = _bytes(SPECIAL, 400)
    return transformers.RobertaTokenizer(
        vocab=parts["vocab"], merges=[tuple(pair) for pair in parts["merges"]]
    )


def modern():
    """ModernBERT's: bytes, with special tokens named as BERT's, which are not the first."""
    import transformers

    names = {
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "mask_token": "[MASK]",
    }
    special = ["|||IP_ADDRESS|||", "[UNK]", *names.values()]
    parts = _bytes(special, 400)
    backend = Tokenizer(models.BPE(parts["vocab"], [tuple(pair) for pair in parts["merges"]]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ends = [(name, special.index(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ends
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", **names
    )


def unigram():
    """XLM-RoBERTa's: words are what blanks divide."""
    import transformers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    how = {"special_tokens": SPECIAL[:4], "unk_token": "<unk>", "show_progress": False}
    trainer = trainers.UnigramTrainer(vocab_size=120, **how)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    pieces = json.loads(tokenizer.to_str())["model"]["vocab"]
    return transformers.XLMRobertaTokenizer(vocab=[*map(tuple, pieces), ("<mask>", 0.0)])


def mpnet():
    """MPNet's: BERT's word-pieces, other special tokens."""
    import transformers

    from cdmae.tokens import tokenise

    pieces = [piece for piece in tokenise.train_pieces(TEXTS * 3, 200) if not piece.startswith("[")]
    names = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *pieces, "<mask>"]
    return transformers.MPNetTokenizer(vocab={piece: number for number, piece in enumerate(names)})


def word_piece():
    """BERT's."""
    from cdmae.tokens import tokenise

    return tokenise.train_tokenizer(TEXTS * 3, 200)


KINDS = {make.__name__: make for make in (word_piece, mpnet, byte_level, modern, unigram)}


def _bytes(special, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    how = {
        "special_tokens": special,
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    trainer = trainers.BpeTrainer(vocab_size=size, **how)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return json.loads(tokenizer.to_str())["model"]
