"""Divide queries into splits that share no passage and no text.

Nothing heavy is imported at the top, because sources use this module when the workflow starts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from annotated_types import Gt, Lt
from pydantic import Field

from cdmae.errors import InputError
from cdmae.fields import Natural, Real, show
from cdmae.formats import count

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from cdmae.collections.store import Collection

DIVIDED = "train"  # the split whose queries are held out
# minimum share of the requested queries that must be held out; components are not divided
_LEAST = 0.5
_WORD = re.compile(r"\w+")


def stable_share(name: str) -> float:
    """Return a number in [0, 1) that depends only on `name`, not on the machine or process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.casefold())


def key_of(text: str) -> str:
    """Return a key for a text; texts that differ only in case and punctuation have the same key."""
    return " ".join(words_of(text))


def components(size: int, pairs: Iterable[tuple[int, int]] | np.ndarray) -> np.ndarray:
    """Return the first row of each row's connected component, int64 [size].

    pairs: the edges of the graph, as pairs of rows.
    """
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(size, size))
    _, numbers = connected_components(graph, directed=False)
    _, first_rows = np.unique(numbers, return_index=True)
    return first_rows[numbers]


# --- holdout: the settings `holdout` and `holdout_seed` of every source ---------------------------

Holdout = Annotated[
    dict[str, Annotated[Real, Gt(0), Lt(1)]],
    Field(
        description="Share of the training queries that moves into each missing split, as in "
        "{dev: 0.1}; queries that share a passage or text stay together."
    ),
]
HoldoutSeed = Annotated[Natural, Field(description="Seed of the draw of `holdout`.")]


def splits_after(judged: dict[str, bool], shares: dict[str, float]) -> dict[str, bool]:
    """Return, for each split, whether it has judgments after `hold_out`.

    Raises `InputError` if there are no training queries, or if a split in `shares` already exists.
    """
    if shares and (not judged.get(DIVIDED) or judged.keys() & shares.keys()):
        splits = ", ".join(split for split, has in judged.items() if has) or "none"
        raise InputError(
            f"holdout is {show(shares)}, and the judged splits are {splits}; expected new splits, "
            f"which take queries from the split {DIVIDED}"
        )
    return judged | dict.fromkeys(shares, True)


def queries_after(queries: dict[str, int], shares: dict[str, float]) -> dict[str, int]:
    """Return the expected number of queries by split, after `hold_out`."""
    if not shares:
        return queries
    divided = queries.get(DIVIDED, 0)
    held_out = {split: round(share * divided) for split, share in shares.items()}
    return queries | {DIVIDED: divided - sum(held_out.values())} | held_out


def hold_out(collection: Collection, shares: dict[str, float], seed: int) -> Collection:
    """Move shares of the training queries into new splits.

    Queries that share a relevant passage or a text, directly or through other queries, are in the
    same split. shares: for each new split, its share of the training queries. Raises `InputError`
    if these groups are too large for a share.
    """
    if not shares:
        return collection
    queries = collection.queries[DIVIDED]
    qrels = collection.qrels[DIVIDED]
    groups = components(len(queries), _links(queries, qrels))
    splits = _drawn(queries["query_id"], groups, shares, seed)

    new_queries = dict(collection.queries)
    new_qrels = dict(collection.qrels)
    for split in (DIVIDED, *shares):
        chosen = queries[splits == split].reset_index(drop=True)
        judgments = qrels[qrels["query_id"].isin(chosen["query_id"])].reset_index(drop=True)
        new_queries[split] = chosen
        new_qrels[split] = judgments
    about = collection.about | {"holdout": shares}
    return replace(collection, queries=new_queries, qrels=new_qrels, about=about)


def _links(queries: pd.DataFrame, qrels: pd.DataFrame) -> np.ndarray:
    """Return the pairs of query rows that share a text or a relevant passage, int64 [n, 2].

    Each row is paired with the first row that has the same text or passage.
    """
    import pandas as pd

    row_of = pd.Series(queries.index, index=queries["query_id"])
    positives = qrels[(qrels["grade"] > 0) & qrels["passage_id"].notna()]
    texts = queries["text"].map(lambda text: key_of(text) or text)
    shared = pd.concat([
        pd.DataFrame({"key": "text " + texts, "row": queries.index}),
        pd.DataFrame({
            "key": "passage " + positives["passage_id"],
            "row": positives["query_id"].map(row_of),
        }),
    ])  # fmt: skip
    first = shared.groupby("key")["row"].transform("first")
    return pd.DataFrame({"first": first, "row": shared["row"]}).to_numpy()


def _drawn(ids: pd.Series, groups: np.ndarray, shares: dict[str, float], seed: int) -> pd.Series:
    """Assign each query to a split, by a hash of its group and the seed.

    Groups are drawn in the order of their hashes: the first split that has room takes the group.
    """
    import pandas as pd

    sizes = Counter(groups.tolist())
    wanted = {split: round(share * len(ids)) for split, share in shares.items()}
    room = dict(wanted)
    split_of = {}
    for group in sorted(sizes, key=lambda group: stable_share(f"holdout {seed} {ids[group]}")):
        fitting = [split for split in room if sizes[group] <= room[split]]
        split_of[group] = fitting[0] if fitting else DIVIDED
        if fitting:
            room[fitting[0]] -= sizes[group]
    for split, number in wanted.items():
        held = number - room[split]
        if not number or held < _LEAST * number or DIVIDED not in split_of.values():
            raise InputError(
                f"holdout gives {split} {shares[split]} of {DIVIDED}, {count(number)} of "
                f"{count(len(ids))} queries, of which {count(held)} can be held out: queries that "
                "share a relevant passage or a text stay together, and the largest group has "
                f"{count(max(sizes.values()))}; expected other shares, which leave queries for "
                f"{DIVIDED}"
            )
    return pd.Series(groups).map(split_of)
