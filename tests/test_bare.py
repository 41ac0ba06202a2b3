"""Weights read without transformers: the same bits as with it."""

import sys

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from cdmae.errors import InputError
from cdmae.models import attention, bare, packed
from cdmae.models.packed import Ragged


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
        assert torch.equal(attention.cls(bare.read(folder), batch), attention.cls(found, batch))


def test_it_reads_every_weight(model):
    found, folder = model
    assert bare.read(folder).state_dict().keys() == found.state_dict().keys()


def test_a_truncated_file_is_named(model):
    path = model[1] / "model.safetensors"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="model.safetensors cannot be read .* run again"):
        bare.read(model[1])


def test_a_full_disk_is_an_error_of_the_system(model, monkeypatch):
    import errno

    from safetensors import SafetensorError, torch

    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(torch, "save_file", full)
    with pytest.raises(OSError) as raised:
        bare.write(model[1], bare.read(model[1]))
    assert raised.value.errno == errno.ENOSPC


def test_an_unknown_activation_is_refused(model):
    found, folder = model
    found.config.hidden_act = "quick_gelu"
    found.config.save_pretrained(folder)
    with pytest.raises(InputError, match="has the activation quick_gelu; allowed: gelu, relu, silu"):
        bare.read(folder)


@pytest.mark.parametrize("prefixed", [False, True])
def test_a_scorer_starts_from_an_encoder_with_a_head_of_its_own(model, tmp_path, prefixed):
    found, folder = model
    if prefixed:
        folder = tmp_path / "with-head"
        BertForMaskedLM(found.config).save_pretrained(folder)
    scorer = bare.read(folder, bare.Scorer, torch.Generator().manual_seed(1))
    assert all(each.requires_grad for each in scorer.parameters())
    assert {"bert.pooler.dense.weight", "classifier.bias"} < scorer.state_dict().keys()
    with pytest.raises(InputError, match="lacks the weights .*pooler"):
        bare.read(folder, bare.Scorer)


def test_what_is_written_loads_in_transformers_to_the_same_weights(model, tmp_path):
    for network, family in ((bare.Bert, BertModel), (bare.Scorer, BertForSequenceClassification)):
        folder = tmp_path / network.__name__
        folder.mkdir()
        ours = bare.read(model[1], network, None if network is bare.Bert else torch.Generator().manual_seed(1))
        bare.write(folder, ours)
        theirs, info = family.from_pretrained(folder, output_loading_info=True)
        assert not any(info.values())
        assert theirs.config.num_labels == (2 if network is bare.Bert else 1)
        assert all(torch.equal(each, theirs.state_dict()[key]) for key, each in ours.state_dict().items())
        again = bare.read(folder, network)
        assert all(torch.equal(each, again.state_dict()[key]) for key, each in ours.state_dict().items())


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
        "import sys; from cdmae import bare, reranking, retriever, search; bare.read(sys.argv[1]); "
        "sys.exit(str({'transformers', 'torch._dynamo'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program, model[1]], capture_output=True, text=True)
    assert ended.stderr.strip() == "set()"
