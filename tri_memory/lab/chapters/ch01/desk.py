"""A support desk in four lines: turns go into a session store, answers come out of its window and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tri_memory.agent.models import PromptOnlyModel
from tri_memory.agent.prompt import assemble
from tri_memory.contracts import ChatTurn, SessionStore

MODEL = PromptOnlyModel()


async def tell(store: SessionStore, session_id: str, turns: Sequence[ChatTurn]) -> None:
    """Append `turns` to the session, one after the other."""
    for turn in turns:
        await store.append(session_id, turn)


async def ask(store: SessionStore, session_id: str, question: str, limit: int = 20) -> str:
    """What the built-in model answers from the last `limit` turns of the session. Nothing is stored."""
    return await MODEL(assemble(await store.get_window(session_id, limit), question=question))
