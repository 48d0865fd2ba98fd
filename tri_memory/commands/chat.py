"""`tri-memory chat`: a conversation on the stores, model and summariser that the environment names."""

from __future__ import annotations

from tri_memory.agent.chat import Chat
from tri_memory.agent.models import PromptOnlyModel, model_from_env
from tri_memory.agent.repl import Forget
from tri_memory.agent.summaries import without_replies
from tri_memory.commands.forget import forgotten, names_a_store
from tri_memory.commands.registry import registry_from_env
from tri_memory.embedding import default_embedder
from tri_memory.factory import (
    episodic_store_from_env,
    preference_store_from_env,
    session_store_from_env,
    user_memory_store_from_env,
)
from tri_memory.privacy.guarded import guarded
from tri_memory.session.extractive import ExtractiveSummarizer
from tri_memory.session.summarizers import openai_summarizer_from_env


def chat_from_env(user: str, session: str | None) -> Chat:
    """Behind the registry of the forgotten where there is one, so that `tri-memory forget` in another process holds."""
    embedder = default_embedder()
    summarizer = openai_summarizer_from_env() or ExtractiveSummarizer(embedder)
    sessions = session_store_from_env(summarizer=without_replies(summarizer))
    preferences = preference_store_from_env()
    episodes = episodic_store_from_env(dimensions=embedder.dimensions)
    user_memory = user_memory_store_from_env()
    if tombstones := registry_from_env():
        sessions, preferences = guarded(sessions, tombstones), guarded(preferences, tombstones)
        episodes, user_memory = guarded(episodes, tombstones), guarded(user_memory, tombstones)
    return Chat(
        user,
        session,
        sessions=sessions,
        preferences=preferences,
        episodes=episodes,
        user_memory=user_memory,
        embedder=embedder,
        model=model_from_env(),
        summarizer=summarizer,
    )


def forget_from_env(user: str) -> Forget | None:
    """What forgets the user in every store that the environment names, and says so; None where it names none."""

    async def forget() -> str:
        return (await forgotten(user)).to_text()

    return forget if names_a_store() else None


def greeting(conversation: Chat) -> str:
    built_in = isinstance(conversation.model, PromptOnlyModel)
    model = "the built-in model, which answers only from its prompt" if built_in else repr(conversation.model)
    return (
        f"{conversation.user_id}, session {conversation.session_id}, {model}.\n"
        f"{_lifetime(conversation)} /help lists the commands."
    )


def _lifetime(conversation: Chat) -> str:
    layers = {
        "session": conversation.sessions,
        "preferences": conversation.preferences,
        "episodes": conversation.episodes,
        "records": conversation.user_memory,
    }
    kept = [name for name, store in layers.items() if not _in_memory(store)]
    gone = [name for name in layers if name not in kept]
    if not kept:
        return "Memory lives in this process: when you leave, it is gone."
    return f"Kept when you leave: {', '.join(kept)}." + (f" Gone then: {', '.join(gone)}." if gone else "")


def _in_memory(store: object) -> bool:
    return type(getattr(store, "store", store)).__name__.startswith("InMemory")
