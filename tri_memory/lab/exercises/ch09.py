"""Chapter 09: a law that recalling never hurts, a TTL that bridges what it should, and a night's work done once."""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from tri_memory.lab.datasets import FIRST_DAY
from tri_memory.lab.exercises.ch09_everywhere import everywhere
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test
from tri_memory.recall.decay import Use

Law = Callable[[float, list[Use]], float]


@exercise(
    "09-1",
    "A law that recalling never hurts",
    dots=1,
    minutes=10,
    hints=(
        "Decide what a use changes. It may start the curve again, make it flatter, or both. Never a steeper one.",
        "Leave out the injected uses first. The last use is the one with the smallest age; without one, take the "
        "memory's own age.",
        "ages = [use.age for use in uses if not use.injected]; since = min(ages, default=age); "
        "math.exp(-since / (30 * (1 + len(ages)))).",
    ),
)
def never_hurts(law: Law, rng: random.Random) -> None:
    _judge_shape(law)
    for _ in range(200):
        age = rng.uniform(1, 300)
        uses = [Use(rng.uniform(0, age)) for _ in range(rng.randrange(5))]
        _judge_uses(law, age, uses, Use(rng.uniform(0, age)), rng)
    if not _weigh(law, 125, [Use(1)]) > _weigh(law, 125, []):
        raise Wrong("A memory of 125 days that was used yesterday weighs no more than one that never was.")


def _judge_shape(law: Law) -> None:
    weights = [_weigh(law, age, []) for age in (0, 45, 100, 365)]
    if not math.isclose(weights[0], 1):
        raise Wrong(f"A memory that was just made weighs 1; yours weighs {weights[0]:.3f}.")
    if not weights[0] > weights[1] > weights[2]:
        raise Wrong(f"Nothing fades: ages 0, 45 and 100 days weigh {', '.join(f'{w:.3f}' for w in weights[:3])}.")
    if weights[3] >= 0.5:
        raise Wrong(f"After a year without a use it still weighs {weights[3]:.2f}. By then it should be below 0.5.")


def _judge_uses(law: Law, age: float, uses: list[Use], one: Use, rng: random.Random) -> None:
    before = _weigh(law, age, uses)
    what = f"Age {age:.0f} days, uses {_days(uses)} days ago: {before:.3f}."
    if not math.isclose(_weigh(law, age, [*uses, one._replace(injected=True)]), before):
        raise Wrong(f"{what} An injected use {one.age:.0f} days ago changes that. What the system put there is no use.")
    mixed = rng.sample(uses, len(uses))
    if not math.isclose(_weigh(law, age, mixed), before):
        raise Wrong(f"The order of the list must not matter. {what} As {_days(mixed)}: {_weigh(law, age, mixed):.3f}.")
    for later in (0, 1, 30, 200):
        without, used = (
            _weigh(law, age + later, [Use(use.age + later) for use in some]) for some in (uses, [*uses, one])
        )
        if used < without - 1e-9:
            when = f"{later} days later it weighs" if later else "with it, it weighs"
            raise Wrong(
                f"Recalling hurts. {what} One more use {one.age:.0f} days ago: {when} {used:.3f}, not {without:.3f}."
            )


def _weigh(law: Law, age: float, uses: list[Use]) -> float:
    weight = law(age, list(uses))
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise Wrong(f"It should return a number; for an age of {age:.0f} days it returned {weight!r}.")
    if not 0 <= weight <= 1 + 1e-9:
        raise Wrong(f"A weight lies between 0 and 1; age {age:.0f} days with {len(uses)} uses gives {weight:.3f}.")
    return weight


def _days(uses: list[Use]) -> str:
    return ", ".join(f"{use.age:.0f}" for use in uses) or "none"


@exercise(
    "09-2",
    "A TTL that bridges what it should",
    dots=2,
    minutes=10,
    hints=(
        "Put the times in order first: several processes write one log, each when it gets round to it. A gap is the "
        "difference of neighbours in time, in seconds, days included.",
        "Sort the gaps. The TTL is one of them: the first that, with all smaller ones, makes up the share.",
        "gaps = sorted((b - a).total_seconds() for a, b in pairwise(sorted(times))); "
        "the first gap with i / len(gaps) >= share, i counted from 1.",
    ),
)
def ttl_that_bridges(ttl_for: Callable[[list[datetime], float], float], rng: random.Random) -> None:
    for share in (0.5, 0.75, 0.9, 0.95, 1.0):
        for days in (0, 5):
            gaps = [float(rng.randrange(1, 5_000) + 86_400 * days) for _ in range(20)]
            _judge_ttl(ttl_for, gaps, share, rng)
    _judge_ttl(ttl_for, [60.0] * 19 + [7_200.0], 0.9, rng)


def _judge_ttl(
    ttl_for: Callable[[list[datetime], float], float], gaps: list[float], share: float, rng: random.Random
) -> None:
    times = [FIRST_DAY + timedelta(seconds=sum(gaps[:i])) for i in range(len(gaps) + 1)]
    in_order = ttl_for(list(times), share)
    rng.shuffle(times)
    found = ttl_for(list(times), share)
    ordered = sorted(gaps)
    expected = next(gap for i, gap in enumerate(ordered, 1) if i / len(gaps) >= share)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Wrong(f"It should return seconds, a number; it returned {found!r}.")
    if math.isclose(found, expected):
        return
    what = f"{len(gaps)} gaps, share {share:.0%}: the TTL is {expected:,.0f} s, yours {found:,.0f} s."
    if math.isclose(in_order, expected):
        raise Wrong(
            "Right when the times come in order, and they need not: several processes write one log. Unsorted, a "
            f"difference is between any two messages, and no gap. {what}"
        )
    if expected >= 86_400 > found:
        raise Wrong(f"The days are lost: `.seconds` of a timedelta leaves them out. {what}")
    middle = (ordered[(len(gaps) - 1) // 2] + ordered[len(gaps) // 2]) / 2
    if math.isclose(found, 1.5 * middle):
        raise Wrong(f"That is 1.5 times the median, whatever the share. {what}")
    bridged = sum(gap <= found for gap in gaps) / len(gaps)
    if bridged < share:
        raise Wrong(f"Too short: it bridges {bridged:.0%} of the gaps. {what}")
    raise Wrong(f"Longer than it need be: a shorter one bridges {share:.0%} as well. {what}")


@exercise(
    "09-3",
    "A night's work, done once",
    dots=3,
    minutes=15,
    hints=(
        "fade() takes whatever weighs less than 0.5. So what is on hold has to weigh enough before fade() runs, and "
        "what an earlier run archived has to come back.",
        "restore brings back what sleeps, at 1.0, and returns False where nothing sleeps. There a use adds 0.1, and no "
        "memory weighs less than 0.3.",
        "for pair in hold: if not await store.restore(*pair): await store.use(*pair), and once more. Then faded = "
        "await store.fade(), and return list(faded.archived), which is sorted and has nothing on hold.",
    ),
)
def nightly(function: Callable[[Any, set[tuple[str, str]]], Awaitable[Any]], rng: random.Random) -> None:
    everywhere(function, rng)


self_test(
    "09",
    Question(
        "09-q1",
        "A half-life of 30 days. What does a memory of 90 days weigh, and a cosine of 0.4 with it?",
        (
            Option("0.125, and the product is 0.05.", "Three half-lives: 0.5 ** 3. 0.4 times that.", right=True),
            Option("0.25, and the product is 0.1.", "That is 60 days, two half-lives."),
            Option("0: after two half-lives all is gone.", "Each half-life takes half of what is left."),
        ),
    ),
    Question(
        "09-q2",
        "A system counts each injection as a use. What do you expect in the archive after half a year?",
        (
            Option(
                "Too little: what was injected by chance is kept alive by that.",
                "Being near many questions is enough to live for ever.",
                right=True,
            ),
            Option("Too much: uses make a memory older.", "A use makes it weigh more."),
            Option(
                "The same as without: injected memories are the useful ones.",
                "With k = 3, two of the three mostly hold no answer.",
            ),
        ),
    ),
    Question(
        "09-q3",
        "An address changed in May, and the old one still ranks first. Which cure loses no other old answer?",
        (
            Option(
                "Let the cosine choose the k, then put these in order of date.",
                "Age decides the order and not who is there. Better still: an address is a preference (06).",
                right=True,
            ),
            Option("A half-life of a week.", "Then an allergy told in January goes down with the old address."),
            Option("Archive what is older than 90 days.", "The same, and more thoroughly."),
        ),
    ),
    Question(
        "09-q4",
        "Why is a memory archived and not deleted?",
        model_answer="A law of age doesn't know what will be asked. Archived, it is out of the recall and out of the "
        "prompt, somebody can see what was there and when it went, and a mistake can be taken back. Deleting is for "
        "what must not be kept: there the person's wish decides, not the age (13).",
    ),
    Question(
        "09-q5",
        "The nightly job was started twice, and the night before it was killed half-way. What must hold?",
        model_answer="Whether it runs once, twice or again after a crash, the same memories are active afterwards. So "
        "the weight is reckoned from dates and not taken down a little at each run, each memory is in one place, and "
        "the next run does what is left.",
    ),
)
