"""Two ways to fail: an archive that never fades, and one that deletes by age."""

from __future__ import annotations

import numpy as np

from tri_memory.lab.chapters.ch09.ranking import asked

STALE = {
    "en-device-04": "How often do I have to clean the filters in the medicine room?",
    "zh-device-04": "采血室空调现在该设在多少度？",
}
TOLD_ONCE = {
    "en-device-01": "What could a visiting fitter have on his hands that would make me ill?",
    "zh-shop-01": "你们送东西给我的时候，什么成分是绝对不能有的？",
}


def nearest(user: str, question: str, k: int = 2, oldest: float = np.inf) -> list[str]:
    """A line for each of the k nearest visits of at most `oldest` days: cosine, age, and what the visit says of the
    answer. ValueError where this user never asks that."""
    its = asked(user[:2])
    which = [i for i, q in enumerate(its.corpus.questions) if (q.user_id, q.question) == (user, question)]
    if not which:
        raise ValueError(f"{user} never asks {question!r}")
    scores = np.where(its.corpus.own[which[0]] & (its.ages <= oldest), its.cosines[which[0]], -np.inf)
    lines = []
    for visit in np.argsort(-scores, kind="stable")[:k]:
        if np.isfinite(scores[visit]):
            says = "the answer" if its.corpus.gold[which[0], visit] else ""
            says = "outdated" if its.stale[which[0], visit] else says
            lines.append(f"{scores[visit]:.2f}  {its.ages[visit]:3.0f} days ago  {says or '-'}")
    return lines


def answer(user: str, question: str) -> str:
    """What the data say: the answer, and behind it what it once was."""
    its = asked(user[:2])
    found = next(q for q in its.corpus.questions if (q.user_id, q.question) == (user, question))
    once = f" (it was: {', '.join(found.outdated)})" if found.outdated else ""
    return found.answer + once


def lost_by_age(language: str, oldest: float = 90) -> tuple[int, int]:
    """Of all answerable questions of a language, those whose answer stands only in visits older than `oldest` days:
    (how many, of how many)."""
    its = asked(language)
    newest = np.where(its.corpus.gold, its.ages, np.inf).min(axis=1)
    return int((newest > oldest).sum()), len(newest)
