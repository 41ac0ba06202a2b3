"""`./run new` with a published encoder: its config trains the model as it was published."""

import json

import pytest
from proposal_data import jsonl, pairs, retriever

from cdmae.errors import InputError
from cdmae.proposal import encoders
from cdmae.tokens.tokenise import load_tokenizer


@pytest.mark.parametrize(
    ("kinds", "pooling", "similarity", "temperature"),
    [(("Pooling", "Normalize"), "mean", "cosine", 0.05), (("Pooling",), "cls", "dot", 0)],
)
def test_a_published_retriever_is_trained_as_it_is_published(
    new, tmp_path, tiny_bert, kinds, pooling, similarity, temperature
):
    prompts = {"query": "query: ", "passage": "passage: "}
    model = retriever(
        tmp_path / "e5", tiny_bert, *kinds, pooling={"pooling_mode": pooling}, prompts=prompts
    )
    (model / "sentence_bert_config.json").write_text('{"max_seq_length": 24}')
    config, _ = new(pairs(tmp_path / "q.csv"), "--encoder", model)
    stage = config.stages["stage1"]
    found = (stage.pooling, stage.similarity, stage.temperature)
    assert found == (pooling, similarity, temperature)
    assert (stage.query_prompt, stage.passage_prompt) == ("query: ", "passage: ")
    assert stage.passage_length == 24
    assert config.systems["published"].model == str(model)
    assert config.encoders["base"].objective == "none"
    assert config.report.compare["fused"] == ("trained", "published-fused")


def test_the_hub_is_used_where_it_answers(new, tmp_path, at_hub):
    config, _ = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.ENGLISH
    (at_hub / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    config, _ = new(tmp_path / "q.csv", "--encoder", "a/splade")
    assert config.systems["published"].head == config.stages["stage1"].head == "sparse"
    config, _ = new(tmp_path / "q.csv", "--encoder", "none")
    assert "published" not in config.systems


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("config_sentence_transformers.json", {"model_type": "MultiVectorEncoder"}, "word-piece"),
        ("config.json", {"model_type": "deberta-v2"}, "deberta-v2"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pooling max"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, r"pooling cls\+mean"),
        ("modules.json", [{"type": "models.Dense"}], "module Dense"),
        ("1_SpladePooling/config.json", {"pooling_strategy": "sum"}, "pooling_strategy sum"),
    ],
)
def test_a_model_of_which_training_would_lose_a_part(new, tmp_path, at_hub, file, content, named):
    (at_hub / file).parent.mkdir(exist_ok=True)
    (at_hub / file).write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"^--encoder.* a/model.*{named}"):
        new(pairs(tmp_path / "q.csv"), "--encoder", "a/model")


def test_a_cross_encoder_is_no_retriever(new, tmp_path, at_hub):
    (at_hub / "modules.json").unlink()
    (at_hub / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    with pytest.raises(InputError, match="^--encoder.* a/reranker .*SequenceClassification"):
        new(pairs(tmp_path / "q.csv"), "--encoder", "a/reranker")


def test_lengths_are_in_word_pieces_of_the_tokenizer(new, tmp_path, tiny_bert):
    """A word of this code has many pieces: estimates by words would cut its passages."""
    words = " ".join(f"xml_http{number}_request" for number in range(20))
    rows = [{"query": f"what is {row}", "positive": f"{words} {row}"} for row in range(40)]
    config, _ = new(jsonl(tmp_path / "code.jsonl", rows), "--encoder", tiny_bert)
    count = len(load_tokenizer(tiny_bert)(words)["input_ids"])
    longest = config.stages["stage1"].passage_length
    assert longest in (count + -count % 16, 64)  # or the model's own limit


def test_texts_in_another_language_get_its_analysis_and_a_multilingual_encoder(
    new, tmp_path, monkeypatch, at_hub
):
    monkeypatch.setattr("proposal_data.WORDS", ["красный", "и", "река", "в", "лес", "снег"])
    config, _ = new(pairs(tmp_path / "q.csv"))
    assert config.systems["published"].model == encoders.OTHER
    assert config.collections["mine"].language == "ru"
