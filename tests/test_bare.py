"""Weights read without transformers: the same bits as with it."""

import sys

import pytest
import torch
from transformers import BertConfig, BertModel

from cdmae import bare, packed, transformer
from cdmae.errors import InputError
from cdmae.packed import Ragged


@pytest.fixture
def model(tmp_path):
    config = BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=12,
    )  # fmt: skip
    found = BertModel(config, add_pooling_layer=False).eval()
    found.save_pretrained(tmp_path)
    return found, tmp_path


def test_it_computes_the_same_bits(model):
    import numpy as np

    found, folder = model
    batch = packed.pack(Ragged(np.arange(17) % 50, np.array([0, 5, 6, 17])), torch.device("cpu"))
    with torch.no_grad():
        assert torch.equal(transformer.cls(bare.read(folder), batch), transformer.cls(found, batch))


def test_it_reads_every_weight(model):
    found, folder = model
    assert bare.read(folder).state_dict().keys() == found.state_dict().keys()


def test_it_reads_plain_bert_only(model):
    assert bare.reads(model[0].config.to_dict())
    assert not bare.reads({"model_type": "electra", "hidden_act": "gelu"})
    assert not bare.reads({"model_type": "bert", "hidden_act": "relu"})


def test_a_missing_weight_is_named(model):
    from safetensors.torch import load_file, save_file

    path = model[1] / "model.safetensors"
    weights = load_file(path)
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, path)
    with pytest.raises(InputError, match="lacks the weights .*encoder.layer.1.output.dense.bias"):
        bare.read(model[1])


def test_searching_imports_neither_transformers_nor_the_compiler(model):
    """That is what it is for."""
    import subprocess

    program = (
        "import sys; from cdmae import bare, inference, search; bare.read(sys.argv[1]); "
        "sys.exit(str({'transformers', 'torch._dynamo'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program, model[1]], capture_output=True, text=True)
    assert ended.stderr.strip() == "set()"
