"""What a person asks later, and whether the history still holds what the answer takes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.plots import ORANGE
from tri_memory.lab.survival import stands_in, told_facts
from tri_memory.session.compression import CompressionPolicy, CountPolicy
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import Summarizer


async def talk(
    turns: Sequence[ChatTurn], summarizer: Summarizer | None = None, policy: CompressionPolicy | None = None
) -> InMemorySessionStore:
    """A store that has heard all `turns` in session "desk"."""
    store = InMemorySessionStore(policy=policy or CountPolicy(), summarizer=summarizer, summary_timeout_s=120)
    for turn in turns:
        await store.append("desk", turn)
    return store


def asked(dataset: Dataset, user: str, history: Sequence[ChatTurn]) -> pd.DataFrame:
    """One row a gold question of `user`, in the order in which the facts were first told (turn 1 is the first).

    `in the history` is "yes" where every fact that the answer takes stands somewhere in `history`, else "gone".
    """
    text = "\n".join(turn.content for turn in history)
    facts: dict[str, list[tuple[str, int]]] = {}
    for question_id, fact, told_at in told_facts(dataset, user):
        facts.setdefault(question_id, []).append((fact, told_at[0] + 1))
    rows = [
        (
            min(turn for _, turn in facts[question.question_id]),
            question.question,
            " + ".join(fact for fact, _ in facts[question.question_id]),
            "yes" if all(stands_in(fact, text) for fact, _ in facts[question.question_id]) else "gone",
        )
        for question in dataset.questions
        if question.question_id in facts
    ]
    return pd.DataFrame(sorted(rows), columns=["said in turn", "asked later", "needs", "in the history"])


def marked(table: pd.DataFrame) -> Styler:
    """The table with its texts in full, and what is lost in colour."""
    return (
        table.style.hide(axis="index")
        .set_properties(**{"text-align": "left"})
        .set_table_styles([{"selector": "th", "props": "text-align: left"}])
        .map(lambda cell: f"color: {ORANGE}; font-weight: bold" if cell == "gone" else "")
    )
