"""Windows that begin with the result of a call which was cut off: how often, and what an endpoint says."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch01.bill import calls
from tri_memory.lab.datasets import Dataset

# The answer of OpenAI's chat endpoint, as users of many libraries report it, e.g. in langchain#33245.
REFUSED = (
    "400 invalid_request_error: messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
)
UNANSWERED = "400 invalid_request_error: 'tool_calls' must be followed by tool messages"
ACCEPTED = "200 ok"


def endpoint(turns: Sequence[ChatTurn]) -> str:
    """What a chat endpoint of OpenAI's kind says to these turns: each result behind its call, each call with a result.

    Calls in parallel are not looked at: one call at a time, as in the kit's conversations.
    """
    before: str = "nothing"
    for role in [*("call" if turn.role == "assistant" and turn.tool_name else turn.role for turn in turns), "end"]:
        if role == "tool" and before not in ("call", "tool"):
            return REFUSED
        if before == "call" and role != "tool":
            return UNANSWERED
        before = role
    return ACCEPTED


def naive_prompts(dataset: Dataset, limit: int) -> pd.DataFrame:
    """What the prompts would open with if they were `turns[-limit:]`, for `limit` of at least 1.

    One row a call that has more than `limit` turns before it: whose, before which turn, the first role.
    """
    rows = []
    for user in dataset.users():
        turns = dataset.turns_of(user)
        rows += [(user, answered, turns[answered - limit].role) for _, answered in calls(turns) if answered > limit]
    return pd.DataFrame(rows, columns=["user", "turn", "opens_with"])
