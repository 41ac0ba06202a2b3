"""Training a multi-vector retriever: loss and gradient by transformers' own model, and the folder."""

import copy

import numpy as np
import pytest
import torch
import transformers
from card_facts import told_by_card
from tiny_training import data_of, encoder, gradients, learn, prepared, same, stage, train

from cdmae.files import read_json
from cdmae.finetuning import late, losses, retriever
from cdmae.models import linear
from cdmae.models.ragged import Ragged
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search

VARIANTS = [
    {},
    {"expansion": "attended", "skip_punctuation": False},
    {"expansion": "none", "passage_prompt": "[d] "},
    {"match": "equal", "cls_dimensions": 30},  # three rows of 12, the last with zeros
]
COIL = VARIANTS[3]


def by_hand(folder, texts, kind, recipe, layers):
    """The text's vectors, word-piece ids and, for COIL, [CLS] vector, by transformers."""
    network = transformers.BertModel.from_pretrained(
        folder, attn_implementation="eager", add_pooling_layer=False
    ).double()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    prompt = getattr(recipe, f"{kind}_prompt")
    length = getattr(recipe, f"{kind}_length")
    fills = kind == "query" and recipe.expansion != "none" and recipe.match == "any"
    read = tokenizer(
        [prompt + text for text in texts],
        truncation=True,
        max_length=length,
        padding="max_length" if fills else True,
        return_tensors="pt",
    )
    ids = read["input_ids"]
    real = read["attention_mask"].bool()
    if fills:
        ids = ids.masked_fill(~real, tokenizer.mask_token_id)
        attended = torch.ones_like(ids) if recipe.expansion == "attended" else real.long()
        real = torch.ones_like(real)
    else:
        attended = real.long()
    states = network(input_ids=ids, attention_mask=attended).last_hidden_state
    vectors = layers["projection"](states)
    whole = [None] * len(ids)
    if recipe.match == "equal":
        whole = layers["of_cls"](states[:, 0])
        real = real & ~torch.isin(
            ids, torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id])
        )
    else:
        vectors = vectors / vectors.norm(dim=-1, keepdim=True)
        if kind == "passage" and recipe.skip_punctuation:
            marks = [tokenizer.vocab[mark] for mark in "!.,-[]()" if mark in tokenizer.vocab]
            real = real & ~torch.isin(ids, torch.tensor(marks))
    return network, [
        (own[mask], row[mask], cls)
        for own, row, mask, cls in zip(vectors, ids, real, whole, strict=True)
    ]


def score_by_hand(query, passage, match):
    """The definition, one pair at a time."""
    vectors, pieces, cls = query
    products = vectors @ passage[0].T
    if match == "any":
        return products.amax(1).sum()
    # COIL: the maximum of product x exact match is 0 if all products of a word-piece are negative
    exact = (pieces[:, None] == passage[1]).double()
    return (products * exact).amax(1).clamp_min(0).sum() + cls @ passage[2]


@pytest.mark.parametrize(
    ("variant", "in_batch"), [(0, True), (1, True), (2, False), (3, False), (3, True)]
)
def test_loss_and_gradient_equal_the_naive_ones(tiny, tmp_path, teacher, in_batch, variant):
    """Also with a teacher, and with punctuation marks in the texts."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("multi", in_batch=in_batch, alpha=0.3, temperature=2.5, **VARIANTS[variant])
    model, batch = prepared(tiny, recipe, folder, teacher)
    numbers, found = learn(model, batch, recipe)

    layers = torch.nn.ModuleDict(
        {
            name: copy.deepcopy(getattr(model.network, name))
            for name in ("projection", "of_cls")
            if hasattr(model.network, name)
        }
    )
    layers.zero_grad()
    data = data_of(tiny, recipe, model)
    drawn = data.examples.draw(np.arange(6), 0)
    asked = data.examples.queries[np.arange(6)]
    texts = [tiny.passages[row] for row in drawn.ravel()]
    network, queries = by_hand(
        folder, [tiny.queries[row] for row in asked], "query", recipe, layers
    )
    other, passages = by_hand(folder, texts, "passage", recipe, layers)
    every = torch.stack(
        [
            torch.stack([score_by_hand(query, each, recipe.match) for each in passages])
            for query in queries
        ]
    )
    if recipe.match == "equal":
        met = [
            (query[0] @ each[0].T)[query[1][:, None] == each[1]]
            for query in queries
            for each in passages
        ]
        assert any((products < 0).any() for products in met)
    every = every / 2.5
    groups = torch.stack([every[row, 4 * row : 4 * row + 4] for row in range(6)])
    if in_batch:
        masked = every.masked_fill(torch.from_numpy(batch.excluded), -torch.inf)
        loss = torch.nn.functional.cross_entropy(masked, 4 * torch.arange(6))
    else:
        loss = losses.listwise(groups)
    loss = losses.kl(groups, torch.from_numpy(batch.teacher)) + 0.3 * loss
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    expected = gradients(network)
    for name, gradient in gradients(other).items():
        expected[name] += gradient
    expected |= gradients(layers)
    expected.pop("embeddings.token_type_embeddings.weight")
    found.pop("embeddings.token_type_embeddings.weight")
    same(found, expected)


def test_maxima_have_the_gradient_of_finite_differences():
    queries = Ragged.of([[-1, 1, 2], [-1, 3], [-1, 1, 9, 1]])
    passages = Ragged.of([[-1, 1, 1, 5], [-1, 2, 3], [-1], [-1, 1, 2, 3, 9]])
    generator = torch.Generator().manual_seed(1)

    def drawn(texts):
        numbers = torch.randn(len(texts.values), 3, generator=generator, dtype=torch.float64)
        return numbers.requires_grad_()

    for match in ("any", "equal"):
        assert torch.autograd.gradcheck(
            lambda q, p, match=match: late.scores(
                late.Texts(q, queries), late.Texts(p, passages), match
            ),
            (drawn(queries), drawn(passages)),
        )


def test_a_folder_of_coil_has_its_projections(tiny, tmp_path):
    """Transformers and two linear layers compute the search's scores, and so does the card."""
    recipe = stage("multi", epochs=1, passage_prompt="", **COIL)
    folder = train(retriever, tiny, tmp_path, recipe)
    assert not (folder / "modules.json").exists()
    layers = {
        "projection": linear.read_layer(folder / "1_Dense"),
        "of_cls": linear.read_layer(folder / "2_Dense"),
    }
    layers = torch.nn.ModuleDict(layers).double()
    assert layers["of_cls"].out_features == 30
    with torch.no_grad():
        _, queries = by_hand(folder, tiny.queries[:5], "query", recipe, layers)
        _, passages = by_hand(folder, tiny.passages, "passage", recipe, layers)
        expected = torch.stack(
            [
                torch.stack([score_by_hand(query, each, "equal") for each in passages])
                for query in queries
            ]
        )
    asked = inference.encode_queries(folder, tiny.queries[:5])
    run = search(
        asked, inference.Encoder({"model": folder}).passages(tiny.tokens), len(tiny.passages)
    )
    for row, scores in enumerate(expected.numpy()):
        found, values = run.ranked(row)
        assert len(found) == len(tiny.passages)
        np.testing.assert_allclose(values, scores[found], rtol=2e-3, atol=2e-3)  # of float16
    described = read_json(folder / "cdmae.json")
    assert described["cls_dimensions"] == 30
    told = told_by_card(folder)
    asked = told["encode"](tiny.queries[0], 16)
    for row, text in enumerate(tiny.passages[:5]):
        query, passage = [
            (vectors.double(), pieces, cls.double())
            for pieces, vectors, cls in (asked, told["encode"](text, 32))
        ]
        score = score_by_hand(query, passage, "equal")
        assert score.item() == pytest.approx(expected[0, row].item(), rel=1e-3)
