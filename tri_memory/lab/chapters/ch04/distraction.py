"""The same turns folded twice, once with logs between the words: what a summariser still finds to keep."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tri_memory.contracts import ChatTurn
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch04.bills import facts_by_turn, facts_of, replay, said_in
from tri_memory.lab.chapters.ch04.pastes import with_pastes
from tri_memory.lab.datasets import Dataset
from tri_memory.session.compression import CountPolicy
from tri_memory.summary import Summarizer


async def same_fold(summarizer: Summarizer, people: int = 3) -> pd.DataFrame:
    """One row a person, `people` a language: the share of the folded facts that the summary says, for both variants.

    The fold is the one at turn 41; a fact counts where no turn that stays says it.
    """
    rows = {}
    for data in map(datasets.load, datasets.LANGUAGES):
        users = data.users()
        for user in users[:: len(users) // people][:people]:
            spoken = data.turns_of(user)
            rows[user] = (
                await _kept(data, user, spoken, summarizer),
                await _kept(data, user, with_pastes(data, user), summarizer),
            )
    return pd.DataFrame.from_dict(rows, orient="index", columns=["as written", "with logs"])


async def _kept(data: Dataset, user: str, turns: Sequence[ChatTurn], summarizer: Summarizer) -> float:
    policy = CountPolicy()
    early = turns[: policy.compress_after + 1]
    fold = (await replay(early, policy, summarizer)).folds[0]
    told = facts_by_turn(facts_of(data, user), early)
    gone = set[str]().union(*told[: fold.folded]) - set[str]().union(*told[fold.folded :])
    return len(said_in(fold.summary, frozenset(gone))) / len(gone)


def distraction_sentence(table: pd.DataFrame) -> str:
    """What `same_fold` found."""
    plain, pasted = table.mean()
    worse = (table["with logs"] < table["as written"]).sum()
    return (
        f"Of the facts that the fold at turn 41 takes away, the summary keeps {plain:.0%}.\n"
        f"With logs between the same words it keeps {pasted:.0%} (fewer for {worse} of {len(table)} people)."
    )
