"""Claim C19: what can be learned from the next message, how fast, and how wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pandas as pd

from tri_memory.agent.feedback import implicit
from tri_memory.agent.feedback_simulation import Runs, Setting, simulate
from tri_memory.lab.claims import Outcome

CLAIMED = 0.89
USUAL = "one in ten wrong"
SETTINGS = {
    "as meant": {"noise": 0.0},
    USUAL: {"noise": 0.1},
    "three in ten wrong": {"noise": 0.3},
    "a coin": {"noise": 0.5},
    "the opposite": {"noise": 0.0, "hostile": 1.0},
}
# (asked, what memory put in, the next message, what it really says about the memory)
TOLD = (
    ("Which size do I wear?", "size: 42", "And is 42 in stock?", "relevant"),
    ("我穿几码？", "尺码: 42码", "42码还有货吗？", "relevant"),
    ("Which size do I wear?", "size: 42", "Thanks, that's kind.", "nothing"),
    ("Which size do I wear?", "size: 42", "No, that was my old size.", "wrong"),
    ("我穿几码？", "尺码: 42码", "不对，我穿43码", "wrong"),
    ("Which size do I wear?", "size: 42", "Which size do I wear now?", "wrong"),
    ("我穿几码？", "尺码: 42码", "我到底穿几码？", "wrong"),
    ("Which size do I wear?", "size: 42", "Perfect. Does the shop open on Sunday?", "nothing"),
)


def read() -> pd.DataFrame:
    """What a rule reads out of next messages, and what they meant."""
    rows = [(then, means, implicit(asked, then, [memory]) or "nothing") for asked, memory, then, means in TOLD]
    table = pd.DataFrame(rows, columns=["the next message", "means", "is read as"])
    return table.assign(right=["yes" if a == b else "NO" for _, a, b in rows])


def learn(users: int = 30, turns: int = 300) -> dict[str, Runs]:
    """Each setting, the same users and questions."""
    return {
        name: simulate(Setting(users=users, turns=turns, **changed))  # type: ignore[arg-type]
        for name, changed in SETTINGS.items()
    }


@cache
def at_the_rate_above() -> tuple[float, float, float]:
    """How often the rule misread in `read`, and relevance without and with learning at that noise."""
    noise = float((read().right == "NO").mean())
    return noise, *simulate(Setting(users=30, turns=300, noise=noise)).before_and_after()


def table(runs: Mapping[str, Runs]) -> pd.DataFrame:
    """A row a setting: relevance without and with learning in the last 50 turns, users who are served worse, and after
    how many turns 90 % of the best is reached."""
    rows = []
    for name, run in runs.items():
        before, after = run.before_and_after()
        until = run.turns_until()
        rows.append((name, 100 * before, 100 * after, 100 * run.worse(), "never" if until is None else str(until)))
    columns = ["reactions are", "without (%)", "learned (%)", "users served worse (%)", "turns until 90 % of the best"]
    return pd.DataFrame(rows, columns=columns).set_index("reactions are").round(0)


def sentence(runs: Mapping[str, Runs]) -> str:
    """What the run says about C19."""
    said = []
    noise, low, high = (f"{100 * part:.0f} %" for part in at_the_rate_above())
    for name, run in runs.items():
        before, after = run.before_and_after()
        said.append(f"{name}: {100 * before:.0f} % to {100 * after:.0f} %")
    return (
        "Simulated users of whom the truth is known, not people; the 68 % is set, the rest follows. Reactions are "
        + "; ".join(said)
        + f". At the rate of the hand-picked messages, {noise} misread: {low} to {high}. How often "
        "real messages are misread was not measured, and that decides."
    )


def verdict(runs: Mapping[str, Runs]) -> Outcome:
    """`holds` where every kind of reaction reaches the claimed relevance, `fails` where none does."""
    reached = [run.before_and_after()[1] >= CLAIMED for run in runs.values()]
    return "holds" if all(reached) else "depends" if any(reached) else "fails"
