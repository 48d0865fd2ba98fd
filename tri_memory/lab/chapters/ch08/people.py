"""Ten people of the kit with 60 to 1,040 rows each: what they really said, and mixtures of it to make up the number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import default_embedder
from tri_memory.lab import datasets

SIZES = (1_040, 800, 620, 480, 360, 260, 180, 120, 80, 60)
Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class People:
    """`vectors` is float32 (n, d) with rows of length 1; row i belongs to `owners[i]` and says `texts[i]`.

    `questions[user]` are the person's own gold questions and `asked[user]` their vectors, in the same order.
    """

    vectors: Matrix
    owners: tuple[str, ...]
    texts: tuple[str, ...]
    questions: dict[str, list[str]]
    asked: dict[str, Matrix]

    @property
    def users(self) -> list[str]:
        """The one with the most rows first."""
        return list(self.questions)

    @cached_property
    def rows_of(self) -> dict[str, NDArray[np.intp]]:
        owners = np.array(self.owners)
        return {user: np.flatnonzero(owners == user) for user in self.users}

    def share(self, user: str) -> float:
        """The part of all rows that is this person's, 0 to 1."""
        return len(self.rows_of[user]) / len(self.owners)

    def exact(self, query: Matrix, user: str, k: int) -> list[int]:
        """The person's k nearest rows, each compared in float64: what every other way is held against."""
        rows = self.rows_of[user]
        scores = self._wide[rows] @ query.astype(np.float64)
        return [int(row) for row in rows[np.argsort(-scores, kind="stable")[:k]]]

    def queries(self, user: str, count: int, seed: int) -> Matrix:
        """`count` of the person's questions (count, d), drawn by the seed."""
        asked = self.asked[user]
        return asked[np.random.default_rng(seed).choice(len(asked), count, replace=False)]

    @cached_property
    def _wide(self) -> NDArray[np.float64]:
        return self.vectors.astype(np.float64)


@cache
def ten_people(seed: int = 1) -> People:
    """Five who speak English and five who speak Chinese, from all three trades, embedded by the default embedder.

    A generated row lies between two of its person's real ones, so that it is about what that person is about.
    """
    random = np.random.default_rng(seed)
    vectors, owners, texts, questions, asked = [], [], [], {}, {}
    for size, (language, user) in zip(SIZES, ten(), strict=True):
        data = datasets.load(language)
        said = [s.summary for s in data.of(user)] + [t.content for t in data.turns_of(user) if t.content.strip()]
        said = list(dict.fromkeys(said))[:size]
        mine = [q.question for q in data.questions if q.user_id == user and q.kind != "unanswerable"]
        real, asked[user] = np.split(default_embedder().encode([*said, *mine]), [len(said)])
        vectors += [real, mixtures(real, size - len(said), random)]
        texts += [*said, *["(generated)"] * (size - len(said))]
        owners += [user] * size
        questions[user] = mine
    return People(np.concatenate(vectors), tuple(owners), tuple(texts), questions, asked)


def mixtures(rows: Matrix, count: int, random: np.random.Generator) -> Matrix:
    """`count` unit vectors (count, d), each between two of `rows`, with a little noise so that no two are equal."""
    one, other = rows[random.integers(0, len(rows), count)], rows[random.integers(0, len(rows), count)]
    part = random.uniform(0.2, 0.8, (count, 1)).astype(np.float32)
    noise = 0.01 * random.standard_normal(one.shape).astype(np.float32)
    return unit(part * one + (1 - part) * other + noise)


def unit(rows: Matrix) -> Matrix:
    """Each row at length 1."""
    lengths: Matrix = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / lengths).astype(np.float32)


def ten() -> list[tuple[str, str]]:
    """(language, user), the languages by turns; in each two of the shop, two of the devices and one of the coach."""
    pairs = []
    for language in datasets.LANGUAGES:
        users = datasets.load(language).users()
        pairs.append([(language, users[i]) for i in (8, 4, 0, 9, 5)])
    return [one for both in zip(*pairs, strict=True) for one in both]
