"""The fine-tuning losses (section 3.4): pure functions of scores, averaged over queries.

Shapes: `B` queries, `N` passages per query (its group, the positive first), `D` dimensions.
Logarithms are natural. Every loss is a mean over the queries of the *global* batch and a sum over
passages. Neither the number of devices nor the chunks of gradient caching change it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, mse_loss


def group_scores(queries: Tensor, passages: Tensor) -> Tensor:
    """Return s(q, d) = q . d of each query with its own group: [B, D], [B, N, D] -> [B, N]."""
    return (passages @ queries.unsqueeze(-1)).squeeze(-1)


def in_batch_loss(scores: Tensor, excluded: Tensor | None = None) -> Tensor:
    """Return L_cont = mean_q -log( exp s(q, d+) / sum_d exp s(q, d) ), equation 10.

    The sum runs over the passages of the whole batch; `listwise` has the sum over a query's own.
    scores: [B, B x N], each query with the passages of all groups, group by group, the positive
    first. excluded: bool [B, B x N], the candidates that the sum omits because they are false
    negatives; never the query's own positive.
    """
    groups = len(scores)
    size = scores.shape[1] // groups
    if excluded is not None:
        scores = scores.masked_fill(excluded, float("-inf"))
    positives = torch.arange(groups, device=scores.device) * size
    return cross_entropy(scores, positives)


def kl(student: Tensor, teacher: Tensor) -> Tensor:
    """Return L_kl = mean_q sum_d p_ce(d|q) log( p_ce(d|q) / p_de(d|q) ), equation 11.

    p(d|q) = softmax over the group. student, teacher: scores [B, N], divided by their temperatures.
    The result is a sum over the group and a mean over the queries. A mean over all B x N elements
    would be N times too small.
    """
    target = log_softmax(teacher, dim=-1)
    return (target.exp() * (target - log_softmax(student, dim=-1))).sum(-1).mean()


def margin_mse(student: Tensor, teacher: Tensor) -> Tensor:
    """Return L = mean_q mean_{d-} ( (s(q, d+) - s(q, d-)) - (t(q, d+) - t(q, d-)) )^2, Margin-MSE.

    The means are over the queries and the N - 1 negatives (Hofstätter et al. 2020,
    arXiv:2010.02666). student, teacher: scores [B, N], the positive first.
    """
    margins = student[:, :1] - student[:, 1:]
    return mse_loss(margins, teacher[:, :1] - teacher[:, 1:])


def in_batch_margin_mse(student: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean over queries and other passages of a batch of the squared error of margins.

    A margin is the score of a query's positive minus that of another passage of the batch (TAS-B,
    Hofstätter et al. 2021, arXiv:2104.06967). student, teacher: scores [B, B x N], each
    query with the passages of all groups, group by group, the positive first.
    """
    queries, passages = student.shape
    columns = torch.arange(queries, device=student.device) * (passages // queries)
    differences = student - teacher
    errors = (differences.gather(1, columns.unsqueeze(1)) - differences).square()
    return errors.sum(1).mean() / (passages - 1)


def passage_centric(
    queries: Tensor, passages: Tensor, temperature: float = 1.0, excluded: Tensor | None = None
) -> Tensor:
    """Return L = mean_q -log( exp s(d+, q) / ( exp s(d+, q) + sum_{d-} exp s(d+, d-) ) ).

    The sum is over the negatives of the query's own group (PAIR, Ren et al. 2021,
    arXiv:2108.06027).
    queries: [B, D]; passages: [B, N, D], the positive first. All scores are divided by the
    temperature. excluded: bool [B, B x N], as in `in_batch_loss`.
    """
    others = torch.cat([queries.unsqueeze(1), passages[:, 1:]], dim=1)
    scores = group_scores(passages[:, 0] / temperature, others)
    if excluded is not None:  # the positive, which is never excluded, has the query's column
        own = excluded.view(len(queries), len(queries), -1).diagonal().T  # [B, N]
        scores = scores.masked_fill(own, float("-inf"))
    return listwise(scores)


def distillation(taught: Tensor, contrastive: Tensor, alpha: float) -> Tensor:
    """Return L = L_kl + alpha L_cont, stage 3; alpha is 0.2 in the paper (section 4.1).

    taught: L_kl, or another loss of the teacher's scores.
    """
    return taught + alpha * contrastive


def flops(vectors: Tensor) -> Tensor:
    """Return sum_j (mean_texts |w_j|)^2 of vectors [n, V], the FLOPS regulariser.

    It approximates the number of non-zero products in the score of two texts (Paria et al. 2020,
    equation 4; SPLADE, equation 5). The mean is over the global batch.
    """
    return vectors.abs().mean(0).square().sum()


def listwise(scores: Tensor) -> Tensor:
    """Return L = mean_q -log( exp s(q, d+) / sum_{d in group} exp s(q, d) ), the list-wise loss.

    This is equation 10 without in-batch negatives, where s is the cross-encoder's logit. It trains
    the reranker. scores: [B, N], the positive first.
    """
    return cross_entropy(scores, scores.new_zeros(len(scores), dtype=torch.long))


def rdrop(first: Tensor, second: Tensor, *, weight: float = 1.0) -> Tensor:
    """Return L = 1/2 (L(s1) + L(s2)) + weight x 1/2 ( KL(p1 || p2) + KL(p2 || p1) ).

    L(s) is the list-wise loss. first, second: scores [B, N] of the same pairs under two dropout
    masks (R-Drop, Liang et al. 2021; SimLM's reranker uses weight 1).
    """
    return (listwise(first) + listwise(second)) / 2 + weight * (
        kl(first, second) + kl(second, first)
    ) / 2
