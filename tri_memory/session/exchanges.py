"""Which turns belong together: a tool result and the call that it answers."""

from __future__ import annotations

from collections.abc import Sequence

from tri_memory.contracts import ChatTurn


def inside_exchanges(turns: Sequence[ChatTurn]) -> set[int]:
    """Cuts that would part a result from its call, leave a call alone whose result may still come, or part a run of
    results whose call nobody knows."""
    answered, waiting = exchanges(turns)
    inside = {cut for result, call in answered for cut in range(call + 1, result + 1)}
    inside |= {i for i in range(1, len(turns)) if turns[i].role == turns[i - 1].role == "tool"}
    return inside.union(*(range(call + 1, len(turns)) for call in waiting))


def exchanges(turns: Sequence[ChatTurn]) -> tuple[list[tuple[int, int]], list[int]]:
    """(result, its call) for every result that has one, and the calls that still wait; all as indices.

    A call is answered by the next result of its name; where nobody called that name, the assistant turn right before
    the run of results did. Calls wait until the user speaks again.
    """
    answered: list[tuple[int, int]] = []
    waiting: dict[str, list[int]] = {}
    speaker = None  # the assistant turn before a run of results
    for i, turn in enumerate(turns):
        if turn.role == "user":
            waiting.clear()
        if turn.role == "assistant" and turn.tool_name:
            waiting.setdefault(turn.tool_name, []).append(i)
        if turn.role == "tool":
            calls = waiting.get(turn.tool_name or "")
            call = calls.pop(0) if calls else speaker
            if call is not None:
                answered.append((i, call))
        else:
            speaker = i if turn.role == "assistant" else None
    return answered, sorted(call for calls in waiting.values() for call in calls)
