"""Chapter 07: the nearest rows in one product, hit rates over questions, and recall behind the contract."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from tri_memory.lab.exercises.ch07_everywhere import everywhere
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test

Asked = list[tuple[list[str], set[str]]]


class _OneAtATime(np.ndarray):
    """Rows that may be computed with, but not walked through."""

    def __iter__(self) -> Any:
        if self.ndim == 2:
            raise Wrong("It goes through the rows in a loop. A product and a norm along an axis do all at once.")
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        if self.ndim == 2 and isinstance(key, int | np.integer):
            raise Wrong("It takes the rows one at a time. matrix @ query compares all of them in one product.")
        return super().__getitem__(key)


@exercise(
    "07-1",
    "The k nearest, without a loop",
    dots=1,
    minutes=8,
    hints=(
        "matrix @ query gives all dot products. A cosine is a dot product divided by both lengths.",
        "np.linalg.norm(matrix, axis=1) has the length of each row. np.argsort sorts upwards, so sort the negative.",
        'scores = matrix @ query / (row lengths * length of the query); np.argsort(-scores, kind="stable")[:k].',
    ),
)
def nearest(function: Callable[[Any, Any, int], Any], rng: random.Random) -> None:
    for _ in range(12):
        matrix, query, scores = _exact_rows(rng)
        for k in (len(matrix), 5, 1, len(matrix) + 3):  # all first: few rows may be right by chance
            expected = sorted(range(len(matrix)), key=lambda row: -scores[row])[:k]  # stable, and so are its ties
            before = matrix.copy()
            found = function(matrix.view(_OneAtATime), query, k)
            if not np.array_equal(matrix, before):
                raise Wrong("It changes the matrix it was given. The store still needs it.")
            _judge_rows(_as_rows(found), expected, scores, matrix @ query, k)


def _exact_rows(rng: random.Random) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Rows for which float arithmetic is exact (lengths are powers of two), so that ties are ties, and many."""
    count = rng.randrange(8, 20)
    matrix = np.zeros((count, 16))
    for row in matrix:
        size = rng.choice((4, 16))
        for place in rng.sample(range(16), size):
            row[place] = rng.choice((-1.0, 1.0))
        row *= rng.choice((0.25, 1.0, 2.0, 64.0))
    matrix[rng.randrange(count)] = matrix[rng.randrange(count)]
    query = np.array([rng.choice((-2.0, 2.0)) for _ in range(16)])
    scores = matrix @ query / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(query))
    return matrix, query, scores.tolist()


def _as_rows(found: Any) -> list[int]:
    numbers = np.asarray(found)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise Wrong(f"It should return the numbers of the rows, best first; it returned {numbers!r}.")
    return [int(row) for row in np.asarray(numbers, int).tolist()]


def _judge_rows(found: list[int], expected: list[int], scores: list[float], products: np.ndarray, k: int) -> None:
    if found == expected:
        return
    what = f"k={k}: expected the rows {_first(expected)}, got {_first(found)}."
    if len(found) != len(expected):
        raise Wrong(f"{len(found)} rows came back, and it should be {len(expected)}. {what}")
    if found == np.argsort(-products, kind="stable")[:k].tolist():
        raise Wrong(f"Long rows win: the product was not divided by the rows' lengths. {what}")
    if [scores[row] for row in found] == [scores[row] for row in expected]:
        raise Wrong(f"The scores are right, but equal ones are not in order of arrival. Sort stably. {what}")
    if [scores[row] for row in found] == sorted(scores)[:k]:
        raise Wrong(f"The farthest rows come first: argsort sorts upwards. {what}")
    raise Wrong(f"These are not the rows with the highest cosines, best first. {what}")


def _first(rows: list[int], most: int = 6) -> str:
    return str(rows) if len(rows) <= most else f"{str(rows[:most])[:-1]}, …]"


@exercise(
    "07-2",
    "Any and all of the gold",
    dots=2,
    minutes=10,
    hints=(
        "A question that nothing answers has no gold. It can be neither hit nor missed, so it is not counted.",
        "For each of the others: first = set(found[:k]); any is bool(gold & first), all is gold <= first.",
        "Count both over the questions with gold and divide by how many those are; (0.0, 0.0) where there are none.",
    ),
)
def any_and_all(function: Callable[[Asked, int], tuple[float, float]], rng: random.Random) -> None:
    for _ in range(30):
        asked: Asked = []
        for _ in range(rng.randrange(3, 9)):
            pool = [f"s{i}" for i in range(8)]
            asked.append((rng.sample(pool, rng.randrange(1, 8)), set(rng.sample(pool, rng.choice((0, 1, 1, 2, 3))))))
        asked.append((["s1", "s2", "s3", "s4"], {"s4", "s1"}))
        _judge_rates(function, asked, rng.randrange(1, 5))
    if _rates(function, [(["s1"], set())], 3) != (0.0, 0.0):
        raise Wrong("Where no question has gold, there is nothing to divide by; return (0.0, 0.0).")


def _judge_rates(function: Callable[[Asked, int], tuple[float, float]], asked: Asked, k: int) -> None:
    with_gold = [(set(found[:k]), gold) for found, gold in asked if gold]
    any_, all_ = (sum(ok(first, gold) for first, gold in with_gold) for ok in (_any, _all))
    expected = (any_ / len(with_gold), all_ / len(with_gold))
    got = _rates(function, [(list(found), set(gold)) for found, gold in asked], k)
    if np.allclose(got, expected):
        return
    what = (
        f"k={k}, {len(asked)} questions, {len(with_gold)} of them with gold: "
        f"expected ({expected[0]:.2f}, {expected[1]:.2f}), got ({got[0]:.2f}, {got[1]:.2f})."
    )
    if np.allclose(got, expected[::-1]):
        raise Wrong(f"The two are the wrong way round: any comes first. {what}")
    bare = len(asked) - len(with_gold)
    if bare and np.allclose(got, (any_ / len(asked), all_ / len(asked))):
        raise Wrong(f"A question without gold counts as a miss. Nothing can hit it: leave it out. {what}")
    if bare and np.allclose(got, (any_ / len(asked), (all_ + bare) / len(asked))):
        raise Wrong(f"An empty gold set counts as all found. It is part of any set; leave such a question out. {what}")
    share = sum(len(first & gold) / len(gold) for first, gold in with_gold) / len(with_gold)
    if np.isclose(got[0], expected[0]) and np.isclose(got[1], share):
        raise Wrong(f"That is the mean share of the gold found. All means every one of them, or nothing. {what}")
    uncut = [(set(found), gold) for found, gold in asked if gold]
    if np.allclose(got, [np.mean([ok(first, gold) for first, gold in uncut]) for ok in (_any, _all)]):
        raise Wrong(f"Sessions behind the first k count too. {what}")
    raise Wrong(f"Not the two rates. {what}")


def _rates(function: Callable[[Asked, int], tuple[float, float]], asked: Asked, k: int) -> tuple[float, float]:
    got = function(asked, k)
    if not isinstance(got, tuple | list) or len(got) != 2:
        raise Wrong(f"It should return two numbers, the rate of any and the rate of all; it returned {got!r}.")
    return float(got[0]), float(got[1])


def _any(first: set[str], gold: set[str]) -> bool:
    return bool(first & gold)


def _all(first: set[str], gold: set[str]) -> bool:
    return gold <= first


@exercise(
    "07-3",
    "The sessions that may answer",
    dots=3,
    minutes=15,
    hints=(
        "An embedder takes a list and gives rows: encode([question])[0]. The store compares; you only ask and filter.",
        "encode takes time, and while it runs in your coroutine nobody else gets an answer. asyncio.to_thread waits "
        "elsewhere.",
        "rows = await asyncio.to_thread(embedder.encode, [question]); found = await store.recall(rows[0], k, "
        "user_id=user); keep the session_id of those with score >= least.",
    ),
)
def answer_sessions(function: Callable[..., Awaitable[list[str]]], rng: random.Random) -> None:
    everywhere(function, rng)


self_test(
    "07",
    Question(
        "07-q1",
        "All vectors of a store are made ten times as long. What changes in the order of recall by cosine?",
        (
            Option("Nothing.", "A cosine divides by the lengths. Only the direction counts.", right=True),
            Option("All scores are ten times as high.", "The dot product is; the cosine divides that away again."),
            Option("Long summaries come first.", "A dot product would favour long vectors, a cosine doesn't."),
        ),
    ),
    Question(
        "07-q2",
        "A customer asks for order BX-2207. Which search should be trusted?",
        (
            Option(
                "The cosine: it knows what an order is.", "It does, and BX-2270 is an order too, in the same words."
            ),
            Option(
                "Shared words.",
                "An id is the same string or it is another id. Being near is worth nothing here.",
                right=True,
            ),
            Option(
                "Cosine with a high threshold.",
                "The wrong id in the same sentence often scores above the right one in other words.",
            ),
        ),
    ),
    Question(
        "07-q3",
        "hit@3 is 90 % where everybody has five sessions. How good is that?",
        (
            Option(
                "Very good.", "Ask what guessing would get: three of five drawn blindly hold the answer in about 60 %."
            ),
            Option(
                "Hard to say without the rate of a blind draw.",
                "With few sessions a large k hits by chance. Give both, or more sessions.",
                right=True,
            ),
            Option("Bad: 10 % are lost.", "Perhaps. But first compare with what chance and shared words get."),
        ),
    ),
    Question(
        "07-q4",
        "A user asks something that no session answers, and k is 3. What comes back?",
        (
            Option("Nothing.", "Recall has no idea of an answer. It sorts, and the first three are the first three."),
            Option("Three sessions.", "The nearest of what is there, however far away it is.", right=True),
            Option("An error.", "An empty list comes for an unknown user or a blank question; there is no error."),
        ),
    ),
    Question(
        "07-q5",
        "Why must one store hold the vectors of one embedder only?",
        model_answer="Place 17 of one embedder's vector and place 17 of another's stand for different things, even "
        "where both have 512 places. The cosine of the two is a number without meaning, and no error says so. Who "
        "changes the embedder embeds all summaries anew, so they have to be kept as text.",
    ),
)
