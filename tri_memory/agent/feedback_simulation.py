"""How fast weights learn from reactions, and how wrongly: simulated users of whom the truth is known.

Each user has memories, of which some are worth having in the prompt and others never are. At each turn some of them fit
the question, with a score that tells little; the chosen ones go in; the user reacts to all of them together, rightly or
wrongly, or says nothing. Beside it the same turns, questions and scores without learning, and the best choice there is.
What it does not do: change the truth half-way, as people do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tri_memory.agent.feedback import Signal, Weights


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment; probabilities in 0 to 1.

    `separation` is by how many standard deviations the scores of worthy memories lie higher; 0.7 gives the 68 %
    without learning from which a public claim starts (C19). `noise` is how often a reaction says the opposite,
    `silence` how often there is none, `hostile` the share of users whose every reaction says the opposite.
    """

    users: int = 100
    turns: int = 300
    memories: int = 30
    worthy: float = 0.5
    fitting: int = 10
    chosen: int = 3
    separation: float = 0.7
    noise: float = 0.1
    silence: float = 0.3
    hostile: float = 0.0
    corrected: float = 0.2  # how often a prompt with a memory that isn't worthy is corrected, not just passed over
    explore: float = 0.1
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Relevance, the share of worthy ones among the chosen, each float64 (users, turns): with learning, without, and of
    the best choice."""

    learned: NDArray[np.float64]
    unlearned: NDArray[np.float64]
    best: NDArray[np.float64]

    def turns_until(self, share: float = 0.9, over: int = 20) -> int | None:
        """After how many turns the mean over all users and the last `over` turns is `share` of the best; None: never.

        At least `over`, since before that there is no such mean.
        """
        kernel = np.ones(over) / over
        learned, best = (np.convolve(each.mean(axis=0), kernel, "valid") for each in (self.learned, self.best))
        reached = np.flatnonzero(learned >= share * best)
        return int(reached[0]) + over if reached.size else None

    def before_and_after(self, last: int = 50) -> tuple[float, float]:
        """Relevance in the last turns without learning and with it."""
        return float(self.unlearned[:, -last:].mean()), float(self.learned[:, -last:].mean())

    def worse(self, last: int = 50) -> float:
        """The share of users who in the last turns had less relevant prompts than without learning."""
        return float((self.learned[:, -last:].mean(axis=1) < self.unlearned[:, -last:].mean(axis=1) - 1e-9).mean())


def simulate(setting: Setting) -> Runs:
    """The same setting gives the same runs."""
    rows = [_one_user(setting, user) for user in range(setting.users)]
    learned, unlearned, best = (np.array([row[i] for row in rows]) for i in range(3))
    return Runs(learned, unlearned, best)


def _one_user(setting: Setting, user: int) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng([setting.seed, user])
    reactions = np.random.default_rng([setting.seed, user, 1])  # of their own: the questions don't depend on learning
    worthy = rng.random(setting.memories) < setting.worthy
    hostile = rng.random() < setting.hostile
    weights = Weights(explore=setting.explore, seed=int(rng.integers(2**31)))
    rows: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(setting.turns):
        fitting = rng.choice(setting.memories, setting.fitting, replace=False)
        score = np.clip(0.5 + 0.1 * (setting.separation * worthy[fitting] + rng.standard_normal(len(fitting))), 0, 1)
        scores = {str(memory): float(each) for memory, each in zip(fitting, score, strict=True)}
        chosen = weights.choose(scores, setting.chosen)
        plain = sorted(scores, key=lambda key: -scores[key])[: setting.chosen]
        rows[0].append(float(worthy[[int(key) for key in chosen]].mean()))
        rows[1].append(float(worthy[[int(key) for key in plain]].mean()))
        rows[2].append(min(1.0, worthy[fitting].sum() / setting.chosen))
        if signal := _reaction(setting, rows[0][-1], hostile, reactions):
            weights.learn(chosen, signal)
    return rows


def _reaction(setting: Setting, relevance: float, hostile: bool, rng: np.random.Generator) -> Signal | None:
    """To the prompt as a whole: the more of it was worthy, the likelier is a follow-up question."""
    silent, pleased, opposite, corrects = rng.random(4) < (
        setting.silence,
        relevance,
        setting.noise,
        setting.corrected,
    )
    if silent:
        return None
    if pleased != (opposite or hostile):
        return "relevant"
    return "wrong" if corrects else "irrelevant"
