"""Every question of the ten people, asked of the table in plain SQL with default settings."""

from __future__ import annotations

import pandas as pd

from tri_memory.lab.chapters.ch08.table import EpisodeTable

K = 10


def all_questions(table: EpisodeTable) -> pd.DataFrame:
    """A row a question: language, user, the user's share of the rows, number among the user's questions, the text, rows
    found of ten, recall@10. Users with many rows come first.
    """
    people, found = table.people, []
    for user in people.users:
        for number, (question, vector) in enumerate(zip(people.questions[user], people.asked[user], strict=True)):
            rows = table.nearest(vector, user, K)
            right = len(set(rows) & set(people.exact(vector, user, K)))
            found.append((user[:2], user, people.share(user), number, question, len(rows), right / K))
    columns = ["language", "user", "share", "number", "question", "rows_found", "recall"]
    return pd.DataFrame(found, columns=columns)


def by_user(asked: pd.DataFrame) -> pd.DataFrame:
    """A row a user: share of the rows, questions, how many of them were answered short, recall@10 (mean)."""
    users = asked.assign(short=asked.rows_found < K).groupby("user", sort=False)
    return users.agg(
        share=("share", "first"), questions=("number", "count"), short=("short", "sum"), recall=("recall", "mean")
    ).round(3)
