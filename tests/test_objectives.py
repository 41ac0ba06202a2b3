"""What holds for every objective in the folder, and each competitor against its published form, naive and padded."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_objectives import (
    CPU,
    LENGTHS,
    SETTINGS,
    D,
    Padded,
    V,
    language_model,
    reader,
    transformers_layers,
    transformers_model,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

from cdmae import masking, training
from cdmae.batches import Batch, Step
from cdmae.errors import InputError
from cdmae.objectives import bowdpr, condenser, dupmae, objective, objectives, simlm
from cdmae.objectives.cocondenser import contrast
from cdmae.objectives.mae import Mae
from cdmae.ranks import Ranks

EVERY = pytest.mark.parametrize("name", objectives())


def first(name: str, lengths: tuple[int, ...] = LENGTHS) -> Step:
    return next(reader(name, lengths=lengths).steps(0, 1))


def network_of(name: str) -> nn.Module:
    made = objective(name).create(language_model(), SETTINGS, seed=5).eval()
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for each in made.parameters():  # biases and norms must differ from 0 and 1 to be tested
            each.add_(torch.randn(each.shape, generator=generator) * 0.05)
    return made


def ready(network: nn.Module, *batches: Batch) -> list[Batch]:
    """All micro-batches of a global batch as the loop hands them to the network."""
    if not hasattr(network, "prepare"):
        return list(batches)
    return network.prepare(list(batches), [None] * len(batches), Ranks())


def learnt(network: nn.Module, step: Step) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and numbers of a step as one micro-batch."""
    (batch,) = ready(network, whole(step))
    return network(batch)


def gradients(network: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    names, weights = zip(*network.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def same(network: nn.Module, found: Tensor, expected: Tensor) -> None:
    """Loss and gradient with respect to every weight."""
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    ours, theirs = gradients(network, found), gradients(network, expected)
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], atol=2e-5, rtol=1e-4, msg=lambda text, n=name: n + text)


# --- every objective -------------------------------------------------------------------------------------------------


def test_the_objectives_are_the_files_of_the_folder() -> None:
    assert objectives() == ["bowdpr", "cocondenser", "condenser", "cotmae", "dupmae", "mae", "retromae", "simlm"]
    with pytest.raises(InputError, match="objective is 'nothing'; allowed: .*mae"):
        objective("nothing")


@EVERY
def test_every_objective_offers_what_the_loop_calls(name: str) -> None:
    """A loss to be differentiated with respect to every weight; numbers that add up to it; the encoder as `model`."""
    network = network_of(name)
    loss, numbers = learnt(network, first(name))
    assert torch.isfinite(loss)
    assert all(value.ndim == 0 and not value.requires_grad for value in numbers.values())
    assert numbers.keys() == {"encoder_loss", "decoder_loss", "spread"}
    torch.testing.assert_close(loss.detach(), numbers["encoder_loss"] + numbers["decoder_loss"])
    assert network.model.config.model_type == "bert"
    assert all(each.any() for key, each in gradients(network, loss).items() if not key.endswith("key.bias"))


@EVERY
def test_one_batch_can_be_learnt_by_heart(name: str) -> None:
    """Both losses fall on one batch as far as they can: gradients reach everything that must learn."""
    network = objective(name).create(language_model(), SETTINGS, seed=5).eval()
    batch, step = whole(first(name)), first(name)
    adam, begin = training.AdamW(network.parameters(), 0.0), {}
    for done in range(60):
        adam.rate = training.learning_rate(done, 60, 6, 1e-2)
        loss, numbers = learnt(network, step)
        loss.backward()
        adam.step()
        adam.zero_grad()
        begin = begin or numbers
    least = least_of(name, batch)
    for side in ("encoder_loss", "decoder_loss"):
        assert numbers[side] - least[side] < 0.25 * (begin[side] - least[side])


def least_of(name: str, batch: Batch) -> dict[str, float]:
    """What the losses cannot fall below: the entropy of the bags of words."""
    bound = {"encoder_loss": 0.0, "decoder_loss": 0.0}
    if name in ("bowdpr", "dupmae"):
        from cdmae.objectives._bags import bags

        found, number = bags(batch["passage"], V)
        distinct = found.sum(1, keepdim=True)
        share = distinct / (number if name == "dupmae" else distinct.clamp_min(1))
        bound["decoder_loss"] = float((share * distinct.clamp_min(1).log()).mean())
    return bound


@EVERY
def test_accumulation_changes_neither_loss_nor_gradient(name: str) -> None:
    """1 x 6 equals several micro-batches, also shared out to two processes."""
    network, step = network_of(name), first(name)
    weights = list(network.parameters())

    def total(*parts: Batch) -> list[Tensor]:
        sums = [torch.zeros(())] * 3 + [torch.zeros_like(each) for each in weights]
        for part in ready(network, *parts):
            loss, numbers = network(part)
            found = [
                loss.detach(),
                numbers["encoder_loss"],
                numbers["decoder_loss"],
                *torch.autograd.grad(loss, weights),
            ]
            sums = [one + other for one, other in zip(sums, found, strict=True)]
        return sums

    expected = total(whole(step))
    pieces = list(step.batches(15, CPU))
    shared = [list(step.batches(15, CPU, rank, 2)) for rank in (0, 1)]
    assert len(pieces) >= 3
    assert len(shared[0]) == len(shared[1])
    assert sum(part.share for part in pieces) == pytest.approx(1)
    for parts in (pieces, shared[0] + shared[1]):
        for found, whole_one in zip(total(*parts), expected, strict=True):
            torch.testing.assert_close(found, whole_one, atol=1e-5, rtol=1e-4)


@EVERY
def test_bf16_gives_nearly_the_same_loss(name: str) -> None:
    """Weights, states and losses stay in float32; SimLM's generator may sample other words."""
    network, step = network_of(name), first(name)
    expected = learnt(network, step)[0]
    with training.autocast("bf16", CPU):
        found = learnt(network, step)[0]
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=0.1 if name == "simlm" else 0.02)
    assert all(each.dtype == torch.float32 for each in gradients(network, found).values())


@EVERY
def test_a_batch_with_nothing_to_predict_teaches_nothing(name: str) -> None:
    """Passages of no word or of one, of which none is masked: the loss and its gradient are finite."""
    network = network_of(name)
    loss, _ = learnt(network, first(name, lengths=(1, 0, 0, 0, 1, 0, 0, 3)))
    assert torch.isfinite(loss)
    assert all(torch.isfinite(each).all() for each in gradients(network, loss).values())


@EVERY
def test_weights_are_a_function_of_the_seed(name: str) -> None:
    state = torch.get_rng_state()
    model = language_model()
    torch.set_rng_state(state)
    one, again, other = (objective(name).create(model, SETTINGS, seed).state_dict() for seed in (1, 1, 2))
    new = [key for key in one if not key.startswith("model.") and one[key].ndim > 1]
    assert all(torch.equal(one[key], again[key]) for key in one)
    if name not in ("bowdpr",):
        assert any(not torch.equal(one[key], other[key]) for key in new)
    assert torch.equal(state, torch.get_rng_state())


@EVERY
def test_only_a_bert_can_be_pretrained(name: str) -> None:
    model = SimpleNamespace(config=SimpleNamespace(model_type="electra"))
    with pytest.raises(InputError, match=f"objective {name} needs a BERT .* type electra"):
        objective(name).create(model, SETTINGS, seed=1)


# --- RetroMAE --------------------------------------------------------------------------------------------------------


def encoder_states(network: nn.Module, padded: Padded) -> tuple[Tensor, ...]:
    return network.model.bert(padded.ids, attention_mask=padded.attended, output_hidden_states=True).hidden_states


def cross_entropy(network: nn.Module, states: Tensor, padded: Padded) -> Tensor:
    logits = network.model.cls(states)
    return functional.cross_entropy(logits[padded.chosen], padded.labels[padded.chosen])


def enhanced_decoding(network: nn.Module, h_c: Tensor, padded: Padded, hidden: list[Tensor]) -> Tensor:
    """The layer of the paper passage by passage: H1 = h + p, H2 = [h; e + p], softmax(Q K^T / sqrt d + M) V."""
    (layer,), bert = transformers_layers(network.decoder, network.model.config), network.model.bert
    parts, after = layer.attention.self, layer.attention.output
    heads, found = parts.num_attention_heads, torch.zeros(*padded.ids.shape, D)
    for row, length in enumerate(padded.attended.sum(1).tolist()):
        positions = bert.embeddings.position_embeddings.weight[:length]
        h1 = h_c[row] + positions
        h2 = torch.cat([h_c[row, None], bert.embeddings(padded.ids[row, None, :length])[0, 1:]])
        mask = torch.zeros(length, length).masked_fill(hidden[row], -torch.inf)
        q, k, v = (
            part(each).view(length, heads, -1).transpose(0, 1)
            for part, each in ((parts.query, h1), (parts.key, h2), (parts.value, h2))
        )
        mixed = ((q @ k.transpose(1, 2) / (D / heads) ** 0.5 + mask).softmax(-1) @ v).transpose(0, 1).reshape(length, D)
        states = after.LayerNorm(after.dense(mixed) + h1)
        found[row, :length] = layer.output(layer.intermediate(states), states)
    return found


def hidden_of(step: Step) -> list[Tensor]:
    """What each position of each passage does not see, with [CLS] and [SEP]: bool [n, n]."""
    masked, found = step.sides["decoder"], []
    places = masked.hide(masked.texts)
    for row, length in enumerate(masked.texts.lengths.tolist()):
        one = torch.eye(length + 2, dtype=torch.bool)
        one[1:-1, 1:-1] = torch.from_numpy(places[row, :length, :length])
        one[0, 0] = one[-1, -1] = False
        found.append(one)
    return found


def test_retromae_enhanced_decoding() -> None:
    network, step = network_of("retromae"), first("retromae")
    encoder, decoder = Padded(step, "encoder"), Padded(step, "decoder")
    states = encoder_states(network, encoder)[-1]
    decoded = enhanced_decoding(network, states[:, 0], decoder, hidden_of(step))
    expected = cross_entropy(network, states, encoder) + cross_entropy(network, decoded, decoder)
    same(network, network(whole(step))[0], expected)


def test_retromae_predicts_every_token_and_sees_the_original() -> None:
    """Nothing is masked in the decoder's input; specials are seen by all and predicted by none."""
    step = first("retromae")
    masked = step.sides["decoder"]
    inner = np.concatenate([masked.inputs.values[a + 1 : b - 1] for a, b in bounds(masked)])
    assert (inner == np.concatenate([masked.labels[a + 1 : b - 1] for a, b in bounds(masked)])).all()
    assert ((masked.inputs.values > 4) == masked.chosen).all()


def bounds(masked) -> list[tuple[int, int]]:
    return list(zip(masked.inputs.starts[:-1].tolist(), masked.inputs.starts[1:].tolist(), strict=True))


def test_retromae_masks_each_position_on_its_own() -> None:
    """Each position hides itself and floor(p n) tokens drawn for it alone, the same whatever the batch."""
    source = reader("retromae", lengths=(8,) * 40)
    step = next(source.steps(0, 1))
    masked = step.sides["decoder"]
    places = masked.hide(masked.texts)
    assert places.shape == (6, 8, 8)
    assert places[:, range(8), range(8)].all()
    specials = [(masked.inputs.values[a:b] == 4).any() for a, b in bounds(masked)]
    ordinary = places[~np.array(specials)]
    assert set(ordinary.sum(2).ravel().tolist()) == {4, 5}  # four drawn of eight, perhaps itself among them
    assert len({row.tobytes() for row in places.reshape(-1, 8)}) > 35
    assert abs(places[:, ~np.eye(8, dtype=bool)].mean() - 0.5) < 0.1
    alone = masked[2:3]
    assert (alone.hide(alone.texts)[0] == places[2]).all()


# --- bags of words ---------------------------------------------------------------------------------------------------


def words_of(padded: Padded, row: int) -> list[int]:
    return padded.labels[row][padded.chosen[row]].tolist()


def test_bowdpr_predicts_the_set_of_words_from_cls() -> None:
    """-1 / |set(x)| x sum of log P(t | h_c), the mean over passages; a passage without words counts as 0."""
    network, step = network_of("bowdpr"), first("bowdpr")
    encoder, passage = Padded(step, "encoder"), Padded(step, "passage")
    states = encoder_states(network, encoder)[-1]
    logs = network.model.cls(states[:, 0]).log_softmax(-1)
    bag = [-logs[row, sorted(set(words_of(passage, row)))].mean() for row in range(6) if words_of(passage, row)]
    assert len(bag) < 6
    same(network, network(whole(step))[0], cross_entropy(network, states, encoder) + sum(bag) / 6)


def test_bowdpr_weighs_its_bag() -> None:
    batch = whole(first("bowdpr"))
    plain = network_of("bowdpr")
    weighted = bowdpr.BowDpr(plain.model, 3.0)
    one, other = plain(batch)[1]["decoder_loss"], weighted(batch)[1]["decoder_loss"]
    torch.testing.assert_close(3 * one, other)


def test_dupmae_predicts_the_words_from_pooled_logits() -> None:
    """RetroMAE's losses, and -1 / n x sum over the set of log softmax(max over positions but [CLS])."""
    network, step = network_of("dupmae"), first("dupmae")
    encoder, decoder, passage = (Padded(step, side) for side in ("encoder", "decoder", "passage"))
    states = encoder_states(network, encoder)[-1]
    decoded = enhanced_decoding(network, states[:, 0], decoder, hidden_of(step))
    expected = cross_entropy(network, states, encoder) + cross_entropy(network, decoded, decoder)
    for row in range(6):
        words = words_of(passage, row)
        logits = network.model.cls(states[row, 1:][encoder.attended[row, 1:]])
        logs = logits.max(0).values.log_softmax(-1)
        expected = expected - logs[sorted(set(words))].sum() / max(1, len(words)) / 6
    same(network, network(whole(step))[0], expected)


def test_dupmae_pools_some_passages_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = network_of("dupmae"), whole(first("dupmae"))
    expected = network(batch)[0]
    monkeypatch.setitem(dupmae.LOGITS_AT_ONCE, "cpu", 1)
    same(network, network(batch)[0], expected)


# --- Condenser -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("early", "layers"), [(0, 1), (1, 1), (2, 2)])
def test_condenser_reads_late_cls_and_early_tokens(early: int, layers: int) -> None:
    """The head on [h_cls late; h early], and the late MLM loss; 0 is half of the three layers."""
    settings = dataclasses.replace(SETTINGS, early_layers=early)
    network, step = condenser.create(language_model(), settings, 5).eval(), first("condenser")
    padded = Padded(step, "encoder")
    states = encoder_states(network, padded)
    head = torch.cat([states[-1][:, :1], states[layers][:, 1:]], dim=1)
    for layer in transformers_layers(network.head, network.model.config):
        head = layer(head, attention_mask=padded.hidden)
    expected = cross_entropy(network, states[-1], padded) + cross_entropy(network, head, padded)
    same(network, network(whole(step))[0], expected)


def test_condenser_needs_late_layers() -> None:
    with pytest.raises(InputError, match="early_layers is 3; allowed: up to 2, the start has 3 layers"):
        condenser.create(language_model(), dataclasses.replace(SETTINGS, early_layers=3), 5)


# --- coCondenser -----------------------------------------------------------------------------------------------------


def test_cocondenser_contrasts_the_spans_of_the_global_batch() -> None:
    """Condenser's losses on spans, and -log of each span's share of its neighbour among all others' scores."""
    network, step = network_of("cocondenser"), first("cocondenser")
    padded = Padded(step, "encoder")
    assert len(padded.ids) == 12
    states = encoder_states(network, padded)
    head = torch.cat([states[-1][:, :1], states[1][:, 1:]], dim=1)
    for layer in transformers_layers(network.head, network.model.config):
        head = layer(head, attention_mask=padded.hidden)
    expected = cross_entropy(network, states[-1], padded) + cross_entropy(network, head, padded)
    h = states[-1][:, 0]
    for one in range(12):
        others = [other for other in range(12) if other != one]
        scores = torch.stack([h[one] @ h[other] for other in others])
        expected = expected - (h[one] @ h[one ^ 1] - scores.logsumexp(0)) / 12
    same(network, learnt(network, step)[0], expected)


def test_cocondenser_contrast_by_hand() -> None:
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    shares = [
        torch.tensor([2.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([2.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([3.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([3.0, 0.0, 0.0]).softmax(0)[0],
    ]
    torch.testing.assert_close(contrast(vectors), -torch.stack(shares).log().mean())


# --- SimLM -----------------------------------------------------------------------------------------------------------


def test_simlm_predicts_originals_of_replaced_tokens() -> None:
    """Generator, encoder and decoder as in the paper, tokens sampled by the cumulated probabilities."""
    network, step = network_of("simlm"), first("simlm")
    generator = transformers_model(network.generator)
    for each in (network.model, generator):  # a sampled [PAD] is a token like any other
        each.bert.embeddings.word_embeddings.padding_idx = None
    whole_text = Padded(step, "passage")

    def fill(side: str) -> tuple[Tensor, Tensor]:
        padded = Padded(step, side)
        logits = generator(padded.ids, attention_mask=padded.attended).logits
        ids, masked = padded.ids.clone(), step.sides[side]
        for row, (a, _) in enumerate(bounds(masked)):
            for place in padded.chosen[row].nonzero()[:, 0].tolist():
                heap = logits[row, place].softmax(-1).cumsum(0)
                ids[row, place] = int((heap <= masked.draws[a + place] * heap[-1]).sum())
        return ids, functional.cross_entropy(logits[padded.chosen], padded.labels[padded.chosen])

    filled, of_generator = fill("encoder")
    more, _ = fill("decoder")
    assert (filled != whole_text.ids).any()
    states = network.model.bert(filled, attention_mask=whole_text.attended).last_hidden_state
    decoded = torch.cat([states[:, :1], network.model.bert.embeddings(more)[:, 1:]], dim=1)
    for layer in transformers_layers(network.decoder, network.model.config):
        decoded = layer(decoded, attention_mask=whole_text.hidden)
    expected = cross_entropy(network, states, whole_text) + cross_entropy(network, decoded, whole_text) + of_generator
    same(network, network(whole(step))[0], expected)


def test_simlm_samples_from_the_generator() -> None:
    """Over many draws words come as often as the generator says."""
    head = language_model().cls.predictions
    state = torch.randn(1, D)
    number = 20_000
    draws = torch.rand(number, generator=torch.Generator().manual_seed(1))
    found = simlm.sample(head, state.expand(number, D), draws).bincount(minlength=V) / number
    expected = head(state)[0].softmax(-1).detach()
    assert (found - expected).abs().max() < 4 * (0.25 / number) ** 0.5


def test_simlm_decoder_masks_all_that_the_encoder_masks() -> None:
    """And so many more that both are p_dec; the two inputs are corrupted on their own."""
    source = reader("simlm", lengths=(10,) * 40)
    for step in source.steps(0, 4):
        encoder, decoder = step.sides["encoder"], step.sides["decoder"]
        assert (decoder.chosen >= encoder.chosen).all()
        for a, b in bounds(encoder):
            candidates = int((encoder.labels[a:b] > 4).sum())
            more = int((0.5 - 0.3) / (1 - 0.3) * (candidates - encoder.chosen[a:b].sum()) + 1e-9)
            assert decoder.chosen[a:b].sum() == encoder.chosen[a:b].sum() + more


def test_simlm_decoder_begins_as_the_last_layers() -> None:
    network = simlm.create(language_model(), SETTINGS, 5)
    ours, theirs = network.decoder.state_dict(), network.model.bert.encoder.layer[1:].state_dict()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert network.decoder[0] is not network.model.bert.encoder.layer[1]
    assert network.generator.config.num_attention_heads == 1
    assert network.generator.config.hidden_size == D // 3
    with pytest.raises(InputError, match="decoder_layers is 4; allowed: up to 3, the layers that simlm copies"):
        simlm.create(language_model(), dataclasses.replace(SETTINGS, decoder_layers=4), 5)


# --- CoT-MAE ---------------------------------------------------------------------------------------------------------


def test_cotmae_decodes_each_span_from_its_neighbour() -> None:
    """The vector of one span stands before the other's masked tokens, both ways."""
    network, step = network_of("cotmae"), first("cotmae")
    assert isinstance(network, Mae)
    encoder, decoder = Padded(step, "encoder"), Padded(step, "decoder")
    states = encoder_states(network, encoder)[-1]
    decoded = torch.cat([states[:, :1], network.model.bert.embeddings(decoder.ids)[:, 1:]], dim=1)
    for layer in transformers_layers(network.decoder, network.model.config):
        decoded = layer(decoded, attention_mask=decoder.hidden)
    expected = cross_entropy(network, states, encoder) + cross_entropy(network, decoded, decoder)
    same(network, network(whole(step))[0], expected)


def test_cotmae_cuts_a_passage_into_neighbouring_spans() -> None:
    """Together the two are the passage, as far as both may reach; each is at most as long as a passage may be."""
    source = reader("cotmae", lengths=(5, 9, 1, 0, 17, 20, 33))
    for epoch in range(3):
        rows = np.arange(7)
        texts = source.texts(rows, np.full(7, epoch))
        begins, lengths = texts.begins.reshape(7, 2), texts.lengths.reshape(7, 2)
        assert (begins[:, 0] == source.tokens.starts[:-1]).all()
        assert (begins[:, 1] == begins[:, 0] + lengths[:, 0]).all()
        assert lengths.max() <= source.length == 10
        assert lengths.sum(1).tolist() == [5, 9, 1, 0, 17, 20, 20]
        assert lengths[5:].tolist() == [[10, 10]] * 2
        assert len(set(texts.rows.tolist())) == 14
    cuts = {tuple(source.texts(rows, np.full(7, epoch)).lengths[::2].tolist()) for epoch in range(8)}
    assert len(cuts) > 4
    step = next(source.steps(0, 1))
    encoder, decoder = step.sides["encoder"], step.sides["decoder"]
    originals = [encoder.labels[a:b].tolist() for a, b in bounds(encoder)]
    assert [decoder.labels[a:b].tolist() for a, b in bounds(decoder)] == [originals[at ^ 1] for at in range(12)]


def test_cotmae_cuts_at_the_begin_of_a_word() -> None:
    source = reader("cotmae", lengths=(16,) * 30)
    starts = np.arange(V) % 3 != 1
    source = dataclasses.replace(source.vocabulary, word_starts=starts), source
    vocabulary, source = source
    source.vocabulary = vocabulary
    texts = source.texts(np.arange(30), np.zeros(30, int))
    second = texts.begins[1::2]
    inside = texts.lengths[1::2] > 0
    assert starts[source.tokens.ids[second[inside]]].all()


def test_the_sides_of_the_competitors() -> None:
    """Which of them mask, and how: what the reader makes of it is tested in the batches."""
    made = {name: objective(name).sides(SETTINGS, "word") for name in objectives()}
    encoder, decoder = masking.sides(SETTINGS, "word")
    plain = masking.PLAIN
    assert made["mae"] == {"encoder": encoder, "decoder": decoder}
    assert made["retromae"] == {"encoder": encoder, "decoder": dataclasses.replace(decoder, each=True)}
    assert made["dupmae"] == {**made["retromae"], "passage": plain}
    assert made["bowdpr"] == {"encoder": encoder, "passage": plain}
    assert made["condenser"] == {"encoder": encoder}
    assert made["cocondenser"] == {"encoder": dataclasses.replace(encoder, spans=2)}
    assert made["cotmae"] == {"encoder": encoder, "decoder": dataclasses.replace(decoder, next=True)}
    assert list(made["simlm"]) == ["encoder", "decoder", "passage"]
    assert made["simlm"]["decoder"].beyond == "encoder"
