"""What a conversation costs: at every call the window is sent, and paid for, again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from tri_memory.agent.prompt import Message, assemble
from tri_memory.contracts import ChatTurn
from tri_memory.session.compression import window
from tri_memory.session.tokens import estimate_tokens

DOLLARS_PER_MILLION = 1.0  # an assumption to change: what providers take for a million tokens differs a hundredfold

_tokens = cache(estimate_tokens)


def prompt_tokens(messages: Sequence[Message]) -> int:
    """The estimated tokens of one prompt. The few that an endpoint adds per message are left out."""
    return sum(_tokens(message["content"]) for message in messages)


def calls(turns: Sequence[ChatTurn]) -> Iterator[tuple[int, int]]:
    """For each call that wrote an assistant turn: where the user's message stood, and where the answer stands.

    What lies between the two, a tool call and its result, belongs to the current exchange and is sent whatever the
    limit says.
    """
    asked = 0
    for i, turn in enumerate(turns):
        if turn.role == "user":
            asked = i
        elif turn.role == "assistant":
            yield asked, i


def prompt_of(turns: Sequence[ChatTurn], asked: int, answered: int, limit: int) -> list[Message]:
    """The prompt of one call: the system text, the last `limit` turns before the question, the current exchange."""
    return assemble([*window(turns[:asked], limit), *turns[asked:answered]])


def conversation_tokens(turns: Sequence[ChatTurn], limit: int) -> int:
    """The tokens of all prompts of a conversation together."""
    return sum(prompt_tokens(prompt_of(turns, asked, answered, limit)) for asked, answered in calls(turns))


def per_thousand(tokens: int, dollars_per_million: float = DOLLARS_PER_MILLION) -> float:
    """What 1,000 conversations of `tokens` tokens each cost."""
    return 1_000 * tokens * dollars_per_million / 1_000_000
