"""Any number of turns and records for speed work, from a seed: the same seed gives the same, in every process.

A longer run begins with the shorter one. The text is only as varied as timing asks for: order numbers, amounts and
small talk in English and Chinese. It says nothing about how well a memory recalls; `datasets.py` is for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random

import numpy as np

from tri_memory.contracts import ChatTurn, EpisodicRecord, require_count
from tri_memory.lab.datasets import FIRST_DAY, LANGUAGES

USER = {
    "en": (
        "Where is order {id}? I paid {amount} euros for it.",
        "Please move my visit to day {day} of the month, the number is {id}.",
        "My pump shows error {amount} again, serial number {id}.",
        "It rained all morning, so I stayed in and read {day} pages.",
    ),
    "zh": (
        "我的订单{id}到哪里了？付了{amount}元。",
        "请把预约改到{day}号，编号是{id}。",
        "水泵又报错{amount}了，序列号{id}。",
        "早上一直下雨，我在家看了{day}页书。",
    ),
}
ASSISTANT = {
    "en": (
        "{id} has left the warehouse and should reach you within {day} days.",
        "Done: it is on day {day} now, and the fee stays at {amount} euros.",
        "Please note {id}; the part costs {amount} euros.",
        "That sounds like a quiet day. Which of the {day} did you like best?",
    ),
    "zh": (
        "{id}已经出库，{day}天内送到。",
        "改好了：现在是{day}号，费用还是{amount}元。",
        "请记下{id}，这个零件{amount}元。",
        "听起来很清静。那{day}页里您最喜欢哪一段？",
    ),
}


def turns(n: int, seed: int = 0, language: str = "en") -> Iterator[ChatTurn]:
    """`n` turns of one conversation, user and assistant by turns.

    Raises ValueError for a negative or fractional `n` or seed and an unknown language, at the call and not at the
    first turn.
    """
    require_count("n", n)
    require_count("seed", seed)
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {LANGUAGES}, got {language!r}")
    return _turns(n, Random(f"turns {language} {seed}"), language)  # seeded with text, which no hash seed changes


def _turns(n: int, random: Random, language: str) -> Iterator[ChatTurn]:
    for i in range(n):
        if i % 2 == 0:
            yield ChatTurn("user", _sentence(random, USER[language]))
        else:
            yield ChatTurn("assistant", _sentence(random, ASSISTANT[language]))


def episodes(n: int, users: int, dimensions: int, seed: int = 0) -> Iterator[EpisodicRecord]:
    """`n` past sessions of `users` users in rotation, one a minute, their summaries in English and Chinese by turns.

    Embeddings are float32 of shape (dimensions,), of length 1 and of a random direction. Raises ValueError as `turns`
    does, and for `users` or `dimensions` below 1.
    """
    require_count("n", n)
    require_count("users", users, 1)
    require_count("dimensions", dimensions, 1)
    require_count("seed", seed)
    return _episodes(n, users, dimensions, seed)


def _episodes(n: int, users: int, dimensions: int, seed: int) -> Iterator[EpisodicRecord]:
    words, directions = Random(f"episodes {seed}"), np.random.default_rng(seed)
    for i in range(n):
        language = LANGUAGES[i // users % len(LANGUAGES)]  # by turns within each user
        summary = " ".join(_sentence(words, parts[language]) for parts in (USER, ASSISTANT))
        vector = directions.standard_normal(dimensions)
        yield EpisodicRecord(
            user_id=f"user-{i % users + 1}",
            session_id=f"session-{i + 1}",
            summary=summary,
            embedding=(vector / np.linalg.norm(vector)).astype(np.float32),
            created_at=FIRST_DAY + timedelta(minutes=i),
        )


def _sentence(random: Random, parts: tuple[str, ...]) -> str:
    number = f"{random.choice('ABCDEFGH')}{random.choice('KLMNPQ')}-{random.randrange(10_000):04}"
    return random.choice(parts).format(id=number, amount=random.randrange(5, 5_000), day=random.randrange(2, 29))
