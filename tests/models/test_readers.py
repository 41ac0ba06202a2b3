"""Model folders as other programs read them: files, permissions, tokenizers.

For programs that are not run, the tests check the files that their code reads:
text-embeddings-inference (``router/src/lib.rs``), vLLM (``vllm/transformers_utils/config.py``),
fastembed (``fastembed/common/preprocessor_utils.py``), older versions of sentence-transformers.
"""

import pytest
import tiny_tokenizers
from tiny_training import stage, untrained
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from cdmae.files import read_json
from cdmae.models import metadata


def test_the_pooling_is_written_for_every_reader(tiny, tmp_path):
    """TEI and older readers know only the names of sentence-transformers 2.

    TEI requires all four modes. vLLM reads the length only next to the other key. Versions of
    sentence-transformers before 6 refuse any further key.
    """
    recipe = stage("retriever", pooling="mean", similarity="cosine")
    folder = untrained(tmp_path / "model", tiny.encoder, recipe)
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    found = [(each["path"], each["type"]) for each in read_json(folder / "modules.json")]
    assert found == [(path, f"sentence_transformers.models.{name}") for path, name in parts]
    lengths = {"max_seq_length": 32, "do_lower_case": False}
    assert read_json(folder / "sentence_bert_config.json") == lengths
    pooling = read_json(folder / "1_Pooling/config.json")
    assert pooling.pop("word_embedding_dimension") == 32
    assert {key for key in pooling if pooling[key]} == {"pooling_mode_mean_tokens"}
    others = {
        f"pooling_mode_{name}" for name in ("cls_token", "max_tokens", "mean_sqrt_len_tokens")
    }
    assert pooling.keys() == others | {"pooling_mode_mean_tokens"}


def test_every_reader_finds_that_scores_of_a_reranker_are_logits(tiny, tmp_path):
    """One key is for sentence-transformers 4 and later and vLLM, the other for earlier versions.

    One label makes the model a reranker for TEI.
    """
    folder = untrained(tmp_path / "model", tiny.encoder, stage("reranker"))
    config = read_json(folder / "config.json")
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["sentence_transformers"] == {"activation_fn": "torch.nn.modules.linear.Identity"}
    assert config["sbert_ce_default_activation_function"] == "torch.nn.modules.linear.Identity"
    assert config["id2label"] == {"0": "LABEL_0"} and config["label2id"] == {"LABEL_0": 0}


@pytest.mark.parametrize("kind", tiny_tokenizers.KINDS)
def test_a_tokenizer_reads_as_before_by_transformers_and_fastembed(kind, tmp_path):
    """fastembed adds the special tokens of the map, and cuts at `model_max_length`."""
    tiny_tokenizers.KINDS[kind]().save_pretrained(tmp_path / "tokenizer")
    folder = tmp_path / "model"
    folder.mkdir()
    metadata.write_tokenizer(folder, tmp_path / "tokenizer", longest=24)
    before, after = (
        AutoTokenizer.from_pretrained(path) for path in (tmp_path / "tokenizer", folder)
    )
    texts = [*tiny_tokenizers.TEXTS, f"a {before.mask_token} b"]
    assert after(texts)["input_ids"] == before(texts)["input_ids"]
    named = read_json(folder / "special_tokens_map.json")
    assert named == before.special_tokens_map == after.special_tokens_map
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.enable_truncation(read_json(folder / "tokenizer_config.json")["model_max_length"])
    fast.add_special_tokens(list(named.values()))
    cut = after(texts, truncation=True)["input_ids"]
    assert [each.ids for each in fast.encode_batch(texts)] == cut
