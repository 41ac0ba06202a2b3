"""SEED-Encoder's decoder: each token from the vector and the few tokens before it."""

import pytest
import torch
from any_kind import as_objective
from tiny_objectives import SETTINGS, D, first, language_model, whole
from torch.nn import functional

from cdmae.pretraining.objectives import seed


def network(**changed):
    """A network of `seed` without dropout."""
    return seed.Seed(language_model(), as_objective("seed", SETTINGS, **changed), 5).eval()


@pytest.mark.parametrize("span", [1, 2, 4])
def test_the_loss_of_the_decoder_written_out(span):
    """Each token alone: one layer of transformers over [h; the tokens before it], its last row."""
    made = network(decoder_layers=1, attention_span=span)
    step = first("seed")
    batch = whole(step)
    _, numbers = made(batch)
    h, _ = made.encode(batch["encoder"])
    masked = step.sides["decoder"]
    losses = []
    for passage, begin in enumerate(masked.inputs.starts[:-1].tolist()):
        ids = torch.from_numpy(masked.inputs[passage].copy())
        embedded = made.model.bert.embeddings(ids[None])[0]
        for position in range(1, len(ids) - 1):
            if not masked.chosen[begin + position]:
                continue
            before = embedded[max(1, position - span) : position]
            states = torch.cat([h[passage, None], before])[None]
            last = made.decoder[0](states)[:, -1]
            losses.append(functional.cross_entropy(made.model.cls(last), ids[None, position]))
    torch.testing.assert_close(numbers["decoder_loss"], torch.stack(losses).mean())


def test_a_decoder_of_several_layers_never_sees_the_token_that_it_predicts():
    """The gradient of a state with respect to the embeddings is 0 from its own token on."""
    made = network()
    view = whole(first("seed", lengths=(9,) * 6))["decoder"]
    inputs = torch.randn(view.inputs.layout.rows, D, requires_grad=True)
    made.context = lambda *_: inputs
    states = made.decode(torch.zeros(6, D), view)
    predicted = view.rows.index[view.masked[5]].item()
    (gradient,) = torch.autograd.grad(states[5, 0], inputs)
    reached = gradient.abs().sum(1).nonzero().flatten().tolist()
    begin = view.inputs.starts[view.inputs.starts <= predicted][-1].item()
    assert begin in reached, "the vector"
    assert max(reached) == predicted - 1
    assert min(reached) >= begin
