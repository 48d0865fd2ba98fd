"""Logs for exercise 14-3, and what is wrong with an answer about one."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from tri_memory.agent.feedback import Signal
from tri_memory.agent.trace import TurnTrace
from tri_memory.lab.exercises.kit import Wrong


def a_turn(rng: random.Random, never_used: bool) -> tuple[TurnTrace, Signal | None]:
    """A turn of a log, and what was said about it."""
    signals: tuple[Signal | None, ...] = (None, None, "relevant", "helpful", "irrelevant", "wrong", "unhelpful")
    used = not never_used and rng.random() < 0.7
    failed = rng.random() < 0.15
    ms = round(rng.lognormvariate(3, 0.8) * (20 if failed else 1), 1)
    trace = TurnTrace(
        at="2026-03-01T09:00:00+00:00",
        user="user-1",
        session_id="s",
        memory_used=used,
        memory_source=("episodes",) if used else (),
        latency_ms=ms,
        answer_ms=round(rng.uniform(600, 1200), 1),
        tokens={"system": 50, "window": 20},
        left_out=(),
        hits=(),
        error="ModelError" if failed else None,
    )
    return trace, rng.choice(signals)


USELESS = ("irrelevant", "wrong", "unhelpful")


def _shares(turns: list[tuple[TurnTrace, Signal | None]]) -> dict[str, float]:
    """The right share and those of typical mistakes."""
    its = [(trace, signal) for trace, signal in turns if trace.error is None]
    used = [signal for trace, signal in its if trace.memory_used]
    useless = sum(signal in USELESS for signal in used)
    every = [signal for trace, signal in turns if trace.memory_used]
    return {
        "right": useless / len(used) if used else 0.0,
        "silent": (useless + used.count(None)) / len(used) if used else 0.0,
        "of all turns": useless / len(its) if its else 0.0,
        "any turn": sum(signal in USELESS for _, signal in its) / len(its) if its else 0.0,
        "told": useless / told if (told := len(used) - used.count(None)) else 0.0,
        "inferred": sum(signal in USELESS[:2] for signal in used) / len(used) if used else 0.0,
        "only wrong": used.count("wrong") / len(used) if used else 0.0,
        "failed": sum(signal in USELESS for signal in every) / len(every) if every else 0.0,
        "per cent": 100 * useless / len(used) if used else 0.0,
    }


def judge_log(got: Any, turns: list[tuple[TurnTrace, Signal | None]]) -> None:
    """Wrong where the two numbers are not those of this log."""
    if not (isinstance(got, tuple) and len(got) == 2 and all(isinstance(x, int | float) for x in got)):
        raise Wrong(f"It should return two numbers, P95 and share; got {str(got)[:60]}.")
    ms = sorted(trace.latency_ms for trace, _ in turns if trace.error is None)
    every = sorted(trace.latency_ms for trace, _ in turns)
    p95, share = map(float, got)
    if not turns and (p95, share) != (0.0, 0.0):
        raise Wrong(f"Without turns both numbers are 0; got {got}.")
    expected = ms[_ninety_five(len(ms))] if ms else 0.0
    if not math.isclose(p95, expected, abs_tol=1e-6):
        whole = sorted(trace.latency_ms + trace.answer_ms for trace, _ in turns if trace.error is None)
        _name_the_latency(p95, expected, ms, every, whole)
    shares = _shares(turns)
    if not math.isclose(share, shares["right"], abs_tol=1e-9):
        _name_the_share(share, shares)


def _ninety_five(count: int) -> int:
    return -(-95 * count // 100) - 1


def _name_the_latency(p95: float, expected: float, ms: list[float], every: list[float], whole: list[float]) -> None:
    if every and math.isclose(p95, every[_ninety_five(len(every))], abs_tol=1e-6):
        raise Wrong(f"Turns that failed are in it: {p95:g} ms instead of {expected:g}. Their time is that of an error.")
    if ms and math.isclose(p95, sum(ms) / len(ms), abs_tol=1e-6):
        raise Wrong(f"{p95:g} ms is the mean. One turn in twenty may be far slower, and the mean hides it.")
    if ms and math.isclose(p95, ms[-1], abs_tol=1e-6):
        raise Wrong(f"{p95:g} ms is the slowest of {len(ms)} turns; 95 % took no longer than {expected:g}.")
    if whole and math.isclose(p95, whole[_ninety_five(len(whole))], abs_tol=1e-6):
        raise Wrong(f"{p95:g} ms has the model's answer in it: latency_ms alone ends where the prompt is ready.")
    if ms and math.isclose(p95, float(np.percentile(ms, 95)), abs_tol=1e-6):
        raise Wrong(
            f"{p95:g} ms lies between two measured latencies; asked for is one that was measured: {expected:g}."
        )
    if (place := int(0.95 * len(ms)) - 1) >= 0 and math.isclose(p95, ms[place], abs_tol=1e-6):
        raise Wrong(f"{p95:g} ms: only {place + 1} of {len(ms)} turns don't exceed it, fewer than 95 %. Round up.")
    raise Wrong(
        f"P95 should be {expected:g} ms, the smallest latency that 95 % of {len(ms)} turns don't exceed, and one that "
        f"was measured; got {p95:g}."
    )


def _name_the_share(share: float, shares: dict[str, float]) -> None:
    right = shares["right"]
    messages = {
        "silent": "Silence is no judgement: None doesn't make a memory useless.",
        "of all turns": "The share is of the turns where memory was used; turns without memory can't waste any.",
        "any turn": "Turns without memory are in it: whatever annoyed there, it was no memory.",
        "told": "The share is of all turns with memory, also of those after which nobody said anything.",
        "inferred": "'unhelpful' was said outright, and it counts, too.",
        "only wrong": "'irrelevant' and 'unhelpful' memories were useless, too, not only wrong ones.",
        "failed": "Turns that failed are in the share: what was said after them is about the failure.",
        "per cent": "A share is between 0 and 1, and no per cent.",
    }
    for mistake, message in messages.items():
        if math.isclose(share, shares[mistake], abs_tol=1e-9):
            raise Wrong(f"{message} {share:.3f} instead of {right:.3f}.")
    raise Wrong(f"The share of useless memory should be {right:.3f}; got {share:.3f}.")
