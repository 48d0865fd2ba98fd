"""Whether a learner's ranker keeps the contract: numbers of memories, each once, always the same, earned by looking.

It is tried on pasts made up for the check, which it can't have seen, and on two people of the kit.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from tri_memory.contracts import ChatTurn, shown
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab.datasets import FIRST_DAY, Dataset, Question, Session, load
from tri_memory.lab.exercises.kit import Wrong
from tri_memory.lab.history import History, Level, gold_of, history_of
from tri_memory.lab.metrics import recall_any
from tri_memory.lab.rankers import Asked, Ranker, newest

SESSIONS, TURNS, K = 7, 6, 3
LEAST, SUSPICIOUS = 0.7, 0.95  # any@3 on made-up pasts; any@1 on the kit, where no honest method comes near
_SYLLABLES = "ba ko lu mi ne po ri sa te vu dor fen gal hin jat".split()
_HAN = "山水火木金土石田禾竹米丝羊鸟虫鱼贝车门雨雪云风电花草叶果刀弓衣巾舟瓦皿缶"


def judge(ranker: Ranker, rng: random.Random) -> None:
    """Raises Wrong with the first thing that is amiss."""
    found: dict[str, list[float]] = {"en": [], "zh": []}
    levels: tuple[Level, ...] = ("turn", "session")
    for language in found:
        dataset = _made_up(language, rng)
        for level in levels:
            hits = _hits(ranker, dataset, level, "ann", K)
            if level == "turn":
                found[language] = hits
    means = {language: float(np.mean(hits)) for language, hits in found.items()}
    if min(means.values()) < LEAST:
        _weak(ranker, means, rng)
    if _on_the_kit(ranker) >= SUSPICIOUS:
        raise Wrong(
            "It puts the answer first for nearly every question of the kit, which no reading of the memories does. A "
            "ranker must not know the gold of the questions it is judged by."
        )


def _weak(ranker: Ranker, means: dict[str, float], rng: random.Random) -> None:
    if _on_the_kit(ranker) >= SUSPICIOUS:
        raise Wrong(
            "It answers the questions of the kit, and few in a past that it has never seen: it must have looked up "
            "their gold."
        )
    what = f"any@{K} on made-up memories: English {means['en']:.2f}, Chinese {means['zh']:.2f}."
    if means["en"] >= LEAST:
        raise Wrong(f"In Chinese it finds next to nothing: no space parts its words, so split() sees one word. {what}")
    backwards = {language: _reversed(ranker, _made_up(language, rng)) for language in means}
    if min(backwards.values()) >= LEAST:
        raise Wrong(f"The worst memories come first. Sort by the negative, or with reverse=True. {what}")
    base = np.mean(_hits(newest, _made_up("en", rng), "turn", "ann", K))
    raise Wrong(f"Hardly better than the newest {K}, which get {base:.2f}. Does it look at what is asked? {what}")


def _hits(ranker: Ranker, dataset: Dataset, level: Level, user: str, k: int) -> list[float]:
    """any@k of each question with gold; the contract is held on the way."""
    history = history_of(user, dataset, level, HashingEmbedder())
    before = copy.deepcopy((history.ids, history.texts, history.said, history.memory_of, history.vectors))
    questions = [one for one in dataset.questions if one.user_id == user and gold_of(one, level)]
    ask, hits, rankings = ranker(history), [], []
    if not callable(ask):
        raise Wrong(f"my_ranker(history) should return a function that is then asked; it returned {shown(ask)}.")
    for one in questions:
        ranking = _numbers(ask(Asked(one.question, history.embedder)), history, level)
        rankings.append(ranking)
        hits.append(recall_any([history.ids[memory] for memory in ranking], gold_of(one, level), k))
    _unchanged(before, history)
    anew = ranker(history)
    for one, ranking in reversed([*zip(questions, rankings, strict=True)]):
        for again in (ask, anew):
            if _numbers(again(Asked(one.question, history.embedder)), history, level) != ranking:
                raise Wrong("The same question gets another ranking the second time. Leave chance and counters out.")
    return hits


def _unchanged(before: tuple[Any, ...], history: History) -> None:
    after = (history.ids, history.texts, history.said, history.memory_of, history.vectors)
    if any(one != other for one, other in zip(before[:4], after[:4], strict=True)) or (before[4] != after[4]).any():
        raise Wrong("It changes the history it was given, which all other rankers read as well. Sort a copy.")


def _numbers(found: Any, history: History, level: Level) -> list[int]:
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise Wrong(f"ask should return a list of numbers of memories; it returned {shown(found)}.")
    listed: Sequence[Any] = list(found)
    if bad := [one for one in listed if isinstance(one, bool) or not isinstance(one, int | np.integer)]:
        raise Wrong(f"Memories are named by their number, 0 to n - 1; {shown(bad[0])} is none.")
    numbers = [int(one) for one in listed]
    outside = [one for one in numbers if not 0 <= one < len(history.ids)]
    if outside and level == "session":
        raise Wrong(
            f"{outside[0]} is the number of a row and not of a memory. Where memories are sessions, several rows lead "
            "to one: history.memories(rows) says to which."
        )
    if outside:
        raise Wrong(f"There are {len(history.ids)} memories, from number 0 on, and none has the number {outside[0]}.")
    if len(set(numbers)) < len(numbers):
        raise Wrong("A memory is found twice. It would take two places in the prompt and be counted twice.")
    return numbers


def _reversed(ranker: Ranker, dataset: Dataset) -> float:
    return float(np.mean(_hits(lambda history: _backwards(ranker, history), dataset, "turn", "ann", K)))


def _backwards(ranker: Ranker, history: History) -> Any:
    ask = ranker(history)
    return lambda asked: list(reversed(list(ask(asked))))


def _on_the_kit(ranker: Ranker) -> float:
    return float(np.mean([hit for name in ("en", "zh") for hit in _of_one(ranker, load(name))]))


def _of_one(ranker: Ranker, dataset: Dataset) -> list[float]:
    return _hits(ranker, dataset, "turn", dataset.users()[0], 1)


def _made_up(language: str, rng: random.Random) -> Dataset:
    """One person, sessions of turns made of words that nobody uses; a question has some words of one older turn."""
    sessions, questions = [], []
    for number in range(SESSIONS):
        said = [_words(language, rng) for _ in range(TURNS)]
        turns = tuple(
            ChatTurn("assistant" if i % 2 else "user", _joined(words, language)) for i, words in enumerate(said)
        )
        name = f"ann-s{number}"
        sessions.append(Session(name, "ann", FIRST_DAY + timedelta(days=number), "", turns))
        if number < SESSIONS - 1:
            place = rng.randrange(TURNS)
            asked = _joined(rng.sample(said[place], 4), language)
            gold = ((name, place),)
            questions.append(Question(f"q{number}", "ann", "copy", asked, "", (name,), gold, ()))
    return Dataset(language, tuple(sessions), tuple(questions))


def _words(language: str, rng: random.Random) -> list[str]:
    if language == "en":
        return ["".join(rng.sample(_SYLLABLES, 3)) for _ in range(8)]
    return ["".join(rng.sample(_HAN, 2)) for _ in range(8)]


def _joined(words: Sequence[str], language: str) -> str:
    return " ".join(words) if language == "en" else "".join(words)
