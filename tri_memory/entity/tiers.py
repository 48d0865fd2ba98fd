"""When a memory has to move up a tier: from what a day of conversations shows, not from what might be needed one day.

L1  in memory                 what one process holds is enough
L2  Redis and Postgres        sessions outlive a process, records outlive everything
L3  partitions, a graph store on paper only: Postgres partitioned by time (or TimescaleDB), and a graph store for
                              what is connected; the kit has neither
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tri_memory.contracts import require_count, shown

Tier = Literal["L1", "L2", "L3"]
TIERS: tuple[Tier, ...] = get_args(Tier)

MOST_INTERRUPTED = 15  # percent of a day's sessions that broke off
MOST_FORGOT_ME = 5  # times a day that users say "you forgot me"
MOST_TURNS = 8  # turns of a session, on average


@dataclass(frozen=True, slots=True)
class Stats:
    """One day: how many sessions there were, how many of them broke off before their matter was settled, how often a
    user said "you forgot me", the turns of all sessions together, and the tier that served them."""

    sessions: int
    interrupted: int
    forgot_me: int
    turns: int
    tier: Tier = "L1"

    def __post_init__(self) -> None:
        for name in ("sessions", "interrupted", "forgot_me", "turns"):
            require_count(name, getattr(self, name))
        if self.interrupted > self.sessions:
            raise ValueError(f"interrupted must be at most the {self.sessions:,} sessions; got {self.interrupted:,}")
        if self.turns and not self.sessions:
            raise ValueError(f"turns must be 0 where there was no session; got {self.turns:,}")
        if self.tier not in TIERS:
            raise ValueError(f"tier must be one of {', '.join(TIERS)}; got {shown(self.tier)}")


@dataclass(frozen=True, slots=True)
class Advice:
    """The tier to be on, and a sentence for each thing that was looked at: what it was, and what it would have to be
    for another advice."""

    tier: Tier
    reasons: tuple[str, ...]


def advise(stats: Stats) -> Advice:
    """The next tier where any of three limits is passed, else the one there is; never back, and never past L3.

    A limit that is reached is not passed. A day without a session passes none but "you forgot me".
    """
    share = 100 * stats.interrupted / stats.sessions if stats.sessions else 0.0
    mean = stats.turns / stats.sessions if stats.sessions else 0.0
    looked_at = (
        (
            100 * stats.interrupted > MOST_INTERRUPTED * stats.sessions,
            f"{stats.interrupted:,} of {stats.sessions:,} sessions broke off ({share:.1f} %)",
            f"{MOST_INTERRUPTED} %",
            "what a session held has to be there when its user comes back",
        ),
        (
            stats.forgot_me > MOST_FORGOT_ME,
            f'users said "you forgot me" {stats.forgot_me:,} time{"" if stats.forgot_me == 1 else "s"}',
            f"{MOST_FORGOT_ME} a day",
            "what is known of a user has to outlive a session",
        ),
        (
            stats.turns > MOST_TURNS * stats.sessions,
            f"a session had {mean:.1f} turns on average",
            f"{MOST_TURNS}",
            "what was said early has to be kept, and found, elsewhere than in the window",
        ),
    )
    moves = any(passed for passed, *_ in looked_at)
    reasons = [
        f"{seen}, more than {limit}: {why}" if passed else f"{seen}; more than {limit} would speak for moving"
        for passed, seen, limit, why in looked_at
    ]
    place = TIERS.index(stats.tier)
    tier = TIERS[min(place + moves, len(TIERS) - 1)]
    if tier == "L3":
        reasons.append(_on_paper(stats.tier, moves))
    return Advice(tier, tuple(reasons))


def _on_paper(tier: Tier, moves: bool) -> str:
    if tier == "L2":
        return (
            "L3 is on paper: it takes Postgres partitioned by time (or TimescaleDB) and a graph store, which the kit "
            "does not have; see first whether L2 forgets by a mistake, which no larger store repairs"
        )
    return "there is no tier above L3: look for the mistake instead" if moves else "L3 is on paper: the kit has none"
