"""Chapter 08: from distance to score, recall@k, and a filter that must not eat the answer."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable

from tri_memory.contracts import Recollection
from tri_memory.lab.exercises.ch08_everywhere import everywhere
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test


@exercise(
    "08-1",
    "A distance is not a score",
    dots=1,
    minutes=5,
    hints=(
        "pgvector's <=> is 0 for the same direction and 2 for the opposite one. A score is 1 and -1 there.",
        "1 - distance. Postgres gives NaN as the distance of a vector of zeros, and NaN is no score.",
        "if math.isnan(distance): raise ValueError(…); else return 1 - distance.",
    ),
)
def score_from_distance(score: Callable[[float], float], rng: random.Random) -> None:
    for distance in (0.0, 2.0, 1.0, *(rng.uniform(0, 2) for _ in range(20))):
        found = score(distance)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise Wrong(f"It should return a number; for the distance {distance:.3f} it returned {found!r}.")
        if distance == 0 and found == 0:
            raise Wrong("The exact match has the distance 0 and gets the score 0: the distance came back as it was.")
        if distance == 0 and math.isclose(found, 2):
            raise Wrong("The exact match scores 2. A cosine is at most 1: subtract from 1.")
        if distance > 1 and found == 0:
            raise Wrong(
                f"Opposite directions are cut off at 0: the distance {distance:.3f} is a score of {1 - distance:.3f}."
            )
        if not math.isclose(found, 1 - distance, abs_tol=1e-6):
            raise Wrong(f"The distance {distance:.3f} is a score of {1 - distance:.3f}; yours is {found:.3f}.")
    try:
        found = score(math.nan)
    except ValueError:
        return
    raise Wrong(
        f"A vector of zeros has no direction, its distance is NaN, and you return {found!r}. Raise a ValueError."
    )


@exercise(
    "08-2",
    "Recall@k",
    dots=2,
    minutes=8,
    hints=(
        "How many of the right ones were found, of those that could have been found?",
        "A short answer must not look better than a full one: divide by the exact ones, not by the found ones.",
        "want = set(exact[:k]); len(want & set(found[:k])) / len(want), and 1.0 where want is empty.",
    ),
)
def recall_at_k(recall: Callable[[list[str], list[str], int], float], rng: random.Random) -> None:
    for _ in range(40):
        pool = [f"s{i}" for i in range(20)]
        exact = rng.sample(pool, rng.randrange(1, 13))
        found = rng.sample(pool, rng.randrange(0, 13))
        _judge_recall(recall, found, exact, rng.randrange(1, 11))
    _judge_recall(recall, ["a"], ["a", "b", "c", "d"], 3)
    _judge_recall(recall, ["a", "a", "b"], ["a", "b", "c"], 3)
    _judge_recall(recall, ["b", "a"], ["a", "b"], 5)
    if recall(["a"], [], 3) != 1.0:
        raise Wrong("There is nothing to find, so nothing was missed: recall is 1.0 then.")


def _judge_recall(
    recall: Callable[[list[str], list[str], int], float], found: list[str], exact: list[str], k: int
) -> None:
    want, got = set(exact[:k]), set(found[:k])
    expected, hits = len(want & got) / len(want), len(want & got)
    value = recall(list(found), list(exact), k)
    what = f"Found {found[:k]}, exact {exact[:k]}, k={k}: recall is {expected:.2f}, yours {value!r}."
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"It should return a number between 0 and 1. {what}")
    if math.isclose(value, expected, abs_tol=1e-9):
        return
    if len(set(found)) < len(found) and value > expected:
        raise Wrong(f"A row that was found twice counts twice. {what}")
    if got and math.isclose(value, hits / len(got), abs_tol=1e-9):
        raise Wrong(f"That is precision: it divides by what was found, so a short list looks perfect. {what}")
    if len(want) < k and math.isclose(value, hits / k, abs_tol=1e-9):
        raise Wrong(f"There are only {len(want)} to find, and you divide by k. {what}")
    whole = len(set(found) & set(exact))
    if whole > hits:
        raise Wrong(f"Rows behind the first k count too. Cut both lists at k. {what}")
    raise Wrong(f"Not the share of the k exact ones that was found. {what}")


@exercise(
    "08-3",
    "Recall within a period",
    dots=3,
    minutes=15,
    hints=(
        "The contract has no filter by time. Ask for more than k, keep what lies in the period; was that enough?",
        "If not, ask again for twice as many. Stop when k are left, or when the store gave fewer than asked for.",
        "ask = k; loop: found = await store.recall(embedding, ask, user_id=user); kept = those with start <= "
        "created_at < end; if len(kept) >= k or len(found) < ask: return kept[:k]; ask *= 2.",
    ),
)
def recall_between(function: Callable[..., Awaitable[list[Recollection]]], rng: random.Random) -> None:
    everywhere(function, rng)


self_test(
    "08",
    Question(
        "08-q1",
        "Ten rows are asked for and are there; four come back. What is the likeliest cause?",
        (
            Option("Half precision rounded the others away.", "A rounded vector still has a place in the order."),
            Option(
                "The index gave its candidates, and the filter dropped most of them.",
                "HNSW looks at ef_search rows of everybody. The filter by user comes afterwards.",
                right=True,
            ),
            Option("LIMIT 10 counts the rows before the filter.", "LIMIT comes last. It had only four to count."),
        ),
    ),
    Question(
        "08-q2",
        "A store returns 0.08 for a session that is nearly the same as the query. What happened?",
        (
            Option("The embedder is bad.", "A bad embedder would not find the session first."),
            Option("A distance was returned as a score.", "1 - 0.08 = 0.92 is the similarity.", right=True),
            Option("The vectors were not of length 1.", "A cosine does not depend on the length."),
        ),
    ),
    Question(
        "08-q3",
        "One user has 60 rows of 4,000. Which way is right for this user?",
        (
            Option(
                "Compare all 60.",
                "It is exact, and quicker than a walk through a graph of everybody's rows.",
                right=True,
            ),
            Option(
                "The HNSW index with a larger ef_search.", "It would look at hundreds of rows to find some of the 60."
            ),
            Option(
                "An HNSW index for this user alone.",
                "One index a user has to be built, kept and written to, for 60 rows.",
            ),
        ),
    ),
    Question(
        "08-q4",
        "Why do the rows come first and the index afterwards when many rows are loaded?",
        model_answer="With the index there, each row is linked into the graph while it is written, one by one. Built "
        "afterwards, the server reads all rows once and may use several workers and its maintenance memory. The graph "
        "is as good. The store creates its index with the table all the same, since sessions end one at a time.",
    ),
    Question(
        "08-q5",
        "What does iterative scan cost, and when does it help least?",
        model_answer="It goes on through the graph until enough rows pass the filter or a limit is reached. For a user "
        "with a small share that is a long way: time grows, and the far part of the graph is searched less carefully, "
        "so recall stays below an exact comparison of the few rows.",
    ),
)
