"""Which facts are still there after n folds: in the summary alone, in the whole history, after plain truncation.

A fact is one of the texts without which a gold question can't be answered (`facts` in `data/README.md`). It counts from
the turn where the conversation reached it, and it survives where the same letters stand, in either case and with any
white space; "41" inside "4,150" or "BX-4107" is not the fact "41".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from tri_memory.contracts import ChatTurn, require_count
from tri_memory.lab.datasets import Dataset
from tri_memory.session.compression import CompressionPolicy, head
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import Summarizer, is_summary, summary_text


@dataclass(frozen=True, slots=True)
class Fate:
    """One fact after `folds` folds.

    `folded`: every turn that states it is behind the summary. `in_truncated`: it stands in the turns that were kept,
    which is all that truncation leaves; `in_history` adds the summary to these.
    """

    user: str
    question_id: str
    fact: str
    turn: int
    folds: int
    folded: bool
    in_summary: bool
    in_history: bool
    in_truncated: bool


class Shares(NamedTuple):
    """Shares in [0, 1] of `facts` facts (`summary`: of `folded` facts, from the summary alone); nan of none."""

    facts: int
    history: float
    truncated: float
    folded: int
    summary: float


class Snapshot(NamedTuple):
    """A conversation right after a fold: how many turns were said, the summary ("" for none), the turns kept."""

    seen: int
    summary: str
    kept: tuple[ChatTurn, ...]


async def survival(
    dataset: Dataset, summarizer: Summarizer | None, policy: CompressionPolicy, *, folds: int = 1
) -> list[Fate]:
    """The fate of every fact told so far, right after fold number `folds`, over all users.

    Each user's visits are replayed as one conversation through the in-memory session store. A user whose conversation
    ends before that fold is left out. A cut by a failing summariser counts as a fold.
    """
    require_count("folds", folds, least=1)
    found: list[Fate] = []
    for user in dataset.users():
        snapshots = await replay(dataset.turns_of(user), summarizer, policy, folds=folds)
        if len(snapshots) == folds:
            found += fates(dataset, user, snapshots[-1], folds)
    return found


async def by_folds(
    dataset: Dataset, summarizer: Summarizer | None, policy: CompressionPolicy, *, most: int = 4
) -> dict[int, list[Fate]]:
    """For each number of folds 1 … `most`: the fates of the facts that the first fold took away.

    Only users whose conversation is long enough for `most` folds, so that all points speak of the same facts.
    """
    require_count("most", most, least=1)
    found: dict[int, list[Fate]] = {folds: [] for folds in range(1, most + 1)}
    for user in dataset.users():
        snapshots = await replay(dataset.turns_of(user), summarizer, policy, folds=most)
        if len(snapshots) < most:
            continue
        first = {(fate.question_id, fate.fact) for fate in fates(dataset, user, snapshots[0], 1) if fate.folded}
        for folds, snapshot in enumerate(snapshots, start=1):
            after = fates(dataset, user, snapshot, folds)
            found[folds] += [fate for fate in after if (fate.question_id, fate.fact) in first]
    return found


async def replay(
    turns: Sequence[ChatTurn], summarizer: Summarizer | None, policy: CompressionPolicy, *, folds: int
) -> list[Snapshot]:
    """The conversation right after each of its first `folds` folds, or after as many as it has."""
    store = InMemorySessionStore(policy=policy, summarizer=summarizer, summary_timeout_s=120)
    snapshots: list[Snapshot] = []
    for seen, turn in enumerate(turns, start=1):
        await store.append("replay", turn)
        if len(store.trace) > len(snapshots):
            history = await store.get_history("replay")
            summaries = [summary_text(t) for t in history[: head(history)] if is_summary(t)]
            snapshots.append(Snapshot(seen, "\n".join(summaries), tuple(history[head(history) :])))
        if len(snapshots) == folds:
            break
    return snapshots


def fates(dataset: Dataset, user: str, snapshot: Snapshot, folds: int) -> list[Fate]:
    """What became of each fact that `user` and the assistant had told when the snapshot was taken."""
    first_kept = snapshot.seen - len(snapshot.kept)
    kept = "\n".join(turn.content for turn in snapshot.kept)
    found = []
    for question_id, fact, told_at in told_facts(dataset, user):
        seen = [turn for turn in told_at if turn < snapshot.seen]
        if seen:
            summary, truncated = stands_in(fact, snapshot.summary), stands_in(fact, kept)
            folded = seen[-1] < first_kept
            found.append(
                Fate(user, question_id, fact, seen[0], folds, folded, summary, summary or truncated, truncated)
            )
    return found


def told_facts(dataset: Dataset, user: str) -> list[tuple[str, str, list[int]]]:
    """(question id, fact, the gold turns that state it as indices into `turns_of(user)`, ascending)."""
    turns = dataset.turns_of(user)
    places = [(session.session_id, i) for session in dataset.of(user) for i in range(len(session.turns))]
    index = {place: n for n, place in enumerate(places)}
    return [
        (question.question_id, fact, sorted(told_at))
        for question in dataset.questions
        if question.user_id == user
        for fact in question.facts
        if (told_at := {index[g] for g in question.gold_turns if stands_in(fact, turns[index[g]].content)})
    ]


def stands_in(fact: str, text: str) -> bool:
    """Whether `text` says `fact` to the letter; case and white space aside, and not as a part of a longer word."""
    fact, text = (" ".join(t.casefold().split()) for t in (fact, text))
    before = "(?<![a-z0-9])" if fact[:1].isascii() and fact[:1].isalnum() else ""
    after = "(?![a-z0-9])" if fact[-1:].isascii() and fact[-1:].isalnum() else ""
    return re.search(before + re.escape(fact) + after, text) is not None


def by_question(rows: Iterable[Fate]) -> list[Fate]:
    """One row a question: it survives where all its facts do, and is folded where one of them is."""
    ordered = sorted(rows, key=lambda fate: (fate.user, fate.question_id, fate.folds))
    return [
        Fate(
            user,
            question_id,
            " + ".join(fate.fact for fate in group),
            min(fate.turn for fate in group),
            folds,
            any(fate.folded for fate in group),
            all(fate.in_summary for fate in group),
            all(fate.in_history for fate in group),
            all(fate.in_truncated for fate in group),
        )
        for (user, question_id, folds), members in groupby(ordered, key=lambda f: (f.user, f.question_id, f.folds))
        for group in [list(members)]
    ]


def shares(rows: Iterable[Fate]) -> Shares:
    """How many facts there are, and what share of them survives."""
    every = list(rows)
    folded = [fate for fate in every if fate.folded]
    return Shares(
        len(every),
        _share([fate.in_history for fate in every]),
        _share([fate.in_truncated for fate in every]),
        len(folded),
        _share([fate.in_summary for fate in folded]),
    )


def _share(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else float("nan")
