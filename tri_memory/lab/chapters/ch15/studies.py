"""Evaluations as colleagues write them down, some with faults that nobody sees in the number at the end."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tri_memory.lab.datasets import LANGUAGES, Question, load
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE, EVERYTHING, FUSION, NEWEST

TUNED = "tuned on people that it reports"
LEAKED = "a reported question lies in a memory"
UNCOMPARED = "no baseline"
BASELINES = (NEWEST, EVERYTHING)


@dataclass(frozen=True)
class Study:
    """What was remembered, which questions settings were chosen on, which are reported, and for which methods."""

    memories: tuple[str, ...]
    tuned_on: tuple[Question, ...]
    reported_on: tuple[Question, ...]
    methods: tuple[str, ...]


def draw(rng: random.Random) -> tuple[Study, set[str]]:
    """A study on questions of the kit, and its faults: none, one, or several."""
    dataset = load(rng.choice(LANGUAGES))
    faults = {fault for fault in (TUNED, LEAKED, UNCOMPARED) if rng.random() < 0.4}
    people = rng.sample(dataset.users(), 6)
    tuned_people, reported_people = people[:3], people[3:]
    asked = {user: [one for one in dataset.questions if one.user_id == user] for user in people}
    tuned_on = [one for user in tuned_people for one in rng.sample(asked[user], 3)]
    reported_on = [one for user in reported_people for one in rng.sample(asked[user], 3)]
    if TUNED in faults:  # other questions of the same person, as is easily overlooked
        user = rng.choice(reported_people)
        tuned_on[-1] = rng.choice([one for one in asked[user] if one not in reported_on])
    said = [turn.content for user in reported_people for turn in dataset.turns_of(user)]
    memories = rng.sample(said, 12)
    if LEAKED in faults:
        memories[rng.randrange(12)] = _log_line(rng.choice(reported_on), rng)
    elif rng.random() < 0.5:
        memories[rng.randrange(12)] = _log_line(tuned_on[0], rng)
    methods = [BM25, rng.choice((COSINE, FUSION)), CONVERSATION]
    methods.insert(rng.randrange(4), "newest model" if UNCOMPARED in faults else rng.choice(BASELINES))
    rng.shuffle(tuned_on)
    return Study(tuple(memories), tuple(tuned_on), tuple(reported_on), tuple(methods)), faults


def _log_line(question: Question, rng: random.Random) -> str:
    asked = rng.choice((str, str.upper))(question.question)
    return rng.choice((asked, f"user: {asked} assistant: {question.answer}"))


def described(study: Study) -> str:
    """The beginning of each field, as a cell prints it."""
    tuned_on, reported_on = (
        ", ".join(f"{one.user_id} {one.question_id}" for one in some[:4])
        for some in (study.tuned_on, study.reported_on)
    )
    return "\n".join(
        [
            f"methods:     {', '.join(study.methods)}",
            f"tuned_on:    {tuned_on}, … ({len(study.tuned_on)})",
            f"reported_on: {reported_on}, … ({len(study.reported_on)})",
            f"asked:       {study.reported_on[0].question}",
            f"memories:    {study.memories[0]}, … ({len(study.memories)})",
        ]
    )
