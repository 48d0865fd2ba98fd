"""Small conversations with tool calls, made of blocks: where they may be cut is known, and why not elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pandas as pd

from tri_memory.contracts import ChatTurn
from tri_memory.session.compression import CompressionPolicy

TOOLS = ("orders", "stock", "manual")


def told(story: str, rng: random.Random) -> tuple[list[ChatTurn], list[int]]:
    """The turns of a story such as "ccpco", and the cuts that part nothing (the newest turn is never cut off).

    A letter is a block: c a turn of talk, t a call and its result, s a call, two turns of "one moment", its result,
    p two parallel calls a, b with results b, a, o a call whose result is still to come.
    """
    turns: list[ChatTurn] = []
    good: list[int] = []
    for block in story:
        one, two = rng.choice(TOOLS), rng.choice(TOOLS)
        call, result = ChatTurn("assistant", f"{one}(…)", one), ChatTurn("tool", "…", one)
        also, second = ChatTurn("assistant", f"{two}(…)", two), ChatTurn("tool", "…", two)
        talk = ChatTurn("user" if rng.random() < 0.5 else "assistant", "…")
        wait = ChatTurn("assistant", "One moment, I'm looking it up.")
        turns += {
            "c": [talk],
            "t": [call, result],
            "s": [call, wait, wait, result],
            "p": [call, also, second, result],
            "o": [call, wait, wait],
        }[block]
        good.append(len(turns))
    return turns, [cut for cut in good if cut < len(turns)]


def why_not(found: int, turns: list[ChatTurn], good: list[int], wanted: int, expected: int) -> str:
    """The explanation of a wrong cut."""
    shown = " ".join(_letter(turn) for turn in turns)
    case = (
        f"Turns, oldest first: {shown} (u user, a assistant, C:name call, R:name result). "
        f"Wanted cut {wanted}, right is {expected}, yours is {found}."
    )
    if found == len(turns):
        return f"The newest turn always stays, so a cut is at most len(turns) - 1. {case}"
    if not 0 <= found < len(turns):
        return f"A cut is a number from 0 to len(turns) - 1. {case}"
    if found and found not in good:
        return f"{_parted(found, turns)} {case}"
    if found < expected and expected >= wanted:
        return f"Look to the right first: a cut before the wanted one leaves more than low behind. {case}"
    if expected < wanted:
        return f"No good cut at or behind the wanted one, so take the nearest before it. {case}"
    return f"You fold more than you must: there is a good cut nearer to the wanted one. {case}"


def _parted(cut: int, turns: list[ChatTurn]) -> str:
    if not any(turn.role == "tool" for turn in turns[cut:]):
        return "A call folded away while its result is still to come: it will arrive and nobody has asked for it."
    if turns[cut].role == "tool":
        return "The kept part opens with a tool result, and its call is folded away. An API refuses that."
    if turns[cut].tool_name:
        return "Between two parallel calls: one is folded away and its result stays."
    return "Between a call and its result somebody said 'one moment': the call is folded away, the result stays."


def _letter(turn: ChatTurn) -> str:
    if turn.role == "tool":
        return f"R:{turn.tool_name}"
    return f"C:{turn.tool_name}" if turn.tool_name else turn.role[0]


def plan_table(policy: CompressionPolicy, turns: Sequence[ChatTurn], weights: Sequence[int]) -> pd.DataFrame:
    """One row a turn: who, which tool, tokens, and what the policy's plan does with it."""
    span = policy.plan(turns, weights)
    rows = [
        (turn.role, turn.tool_name or "", weight, "folded" if span.start <= i < span.stop else "kept")
        for i, (turn, weight) in enumerate(zip(turns, weights, strict=True))
    ]
    return pd.DataFrame(rows, columns=["role", "tool", "tokens", "plan"])
