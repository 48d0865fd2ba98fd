"""A conversation with one user over the three layers of memory.

Each turn: write what the user said; keep what it states about them (layer 2); recall earlier sessions (layer 3);
assemble the prompt from the window (layer 1) and both; ask the model; write its answer. Ending a session archives it.
A layer that isn't passed isn't there, and the chat does without: leave one out and see what it forgets.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from tri_memory.agent.models import ChatModel, ModelError, PromptOnlyModel
from tri_memory.agent.notice import notice
from tri_memory.agent.notice_rules import RULES, Rule
from tri_memory.agent.prompt import SYSTEM, Message, Section, assemble, sections
from tri_memory.agent.summaries import never_blank, offline_summarizer, without_replies
from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import (
    ChatTurn,
    EpisodicRecord,
    EpisodicStore,
    PreferenceStore,
    Recollection,
    SessionStore,
    SessionSummary,
    require_count,
    require_text,
    shown,
)
from tri_memory.embedding import Embedder
from tri_memory.embedding.texts import is_blank, storable
from tri_memory.episodic.archive import archive
from tri_memory.summary import Summarizer

RECALLED = 3  # episodes in a prompt


@dataclass(frozen=True, slots=True)
class Known:
    """What memory contributed to a prompt, or knows of a user."""

    window: list[ChatTurn] = field(default_factory=list)
    preferences: dict[str, str] = field(default_factory=dict)
    episodes: list[Recollection] = field(default_factory=list)


class Chat:
    """One user's conversation.

    `user_id` owns everything; sessions are stored under `key`, which holds it, so that two users who pick the same
    session id never meet. `window` counts the turns that a prompt repeats. `rules` say which statements are kept.
    Raises ValueError for a user id that is missing, blank, or the session id, and for episodes without an embedder.
    """

    def __init__(
        self,
        user_id: str,
        session_id: str | None = None,
        *,
        sessions: SessionStore | None = None,
        preferences: PreferenceStore | None = None,
        episodes: EpisodicStore | None = None,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
        summarizer: Summarizer | None = None,
        clock: Clock = system_clock,
        system: str = SYSTEM,
        rules: Sequence[Rule] = RULES,
        window: int = 20,
    ) -> None:
        self.user_id = require_text("user_id", user_id)
        if episodes is not None and embedder is None:
            raise ValueError("episodes are recalled by meaning: pass an embedder, for instance default_embedder()")
        self.clock = clock
        self.session_id = self._session_id(session_id)
        self.sessions = sessions
        self.preferences = preferences
        self.episodes = episodes
        self.embedder = embedder
        self.model: ChatModel = model if model is not None else PromptOnlyModel()
        self.summarizer = summarizer
        self.system = system
        self.rules = tuple(rules)
        self.window = require_count("window", window)
        self.last_prompt: list[Message] = []
        self._last_known = Known()
        self._said_something = False  # since the session was last archived
        self._turns = asyncio.Lock()  # two calls of `say` would answer each other's questions

    @property
    def key(self) -> str:
        """Under which the session is stored: the user id, percent-encoded, then "/" and the session id."""
        return self._prefix + self.session_id

    @property
    def last_sections(self) -> list[Section]:
        """The last prompt, part by part, with what each part costs."""
        if not self.last_prompt:
            return []
        known = self._last_known
        return sections(known.window, preferences=known.preferences, episodes=known.episodes, system=self.system)

    async def say(self, text: str) -> str:
        """The model's answer to `text`; both are in the session afterwards.

        Raises ValueError, and writes nothing, for text that is blank, no string, or can't be stored. What the model
        raises comes through, and a blank answer is a ModelError: then the user's turn stays, and nothing is answered.
        """
        if is_blank(require_text("text", text)):
            raise ValueError(f"text must show something; got {shown(text)}")
        async with self._turns:
            turn = ChatTurn("user", text)
            await self._write(turn)
            await self._keep_what_is_stated(text)
            known = self._last_known = await self._known(turn)
            self.last_prompt = assemble(
                known.window, preferences=known.preferences, episodes=known.episodes, system=self.system
            )
            answer = _checked(await self.model(self.last_prompt))
            await self._write(ChatTurn("assistant", answer))
            return answer

    async def end(self) -> EpisodicRecord | None:
        """Archive the session as an episode; None where nothing was said since, or where layer 1 or 3 is missing.

        The session itself stays. Raises ArchiveError, and then nothing was stored.
        """
        async with self._turns:
            return await self._end()

    async def new(self, session_id: str | None = None) -> str:
        """End this session and open another one; its id. Where archiving fails, the error comes through, and the new
        session is open all the same."""
        fresh = self._session_id(session_id)
        async with self._turns:
            try:
                await self._end()
            finally:
                self.session_id, self._said_something = fresh, False
            return fresh

    async def history(self) -> list[ChatTurn]:
        """Everything that is kept of this session."""
        return await self.sessions.get_history(self.key) if self.sessions is not None else []

    async def list_sessions(self) -> list[SessionSummary]:
        """This user's sessions, most recently active first."""
        if self.sessions is None:
            return []
        prefix = self._prefix
        rows = [row for row in await self.sessions.list_sessions() if row.session_id.startswith(prefix)]
        return [SessionSummary(row.session_id.removeprefix(prefix), row.turns, row.updated_at) for row in rows]

    async def remembered(self, about: str = "what do you remember about me", k: int = 20) -> Known:
        """What layers 2 and 3 know about this user: all preferences, the `k` episodes nearest to `about`."""
        return Known([], await self._preferences(), await self._recall(about, k))

    async def forget(self) -> dict[str, int]:
        """Delete this user from all three layers; how much went from each."""
        async with self._turns:
            rows = await self.list_sessions()
            for row in rows:
                await self.sessions.clear(self._prefix + row.session_id)  # type: ignore[union-attr]
            preferences = await self.preferences.forget(self.user_id) if self.preferences is not None else 0
            episodes = await self.episodes.forget(self.user_id) if self.episodes is not None else 0
            self.last_prompt, self._last_known, self._said_something = [], Known(), False
            return {"sessions": len(rows), "preferences": preferences, "episodes": episodes}

    @property
    def _prefix(self) -> str:
        return quote(self.user_id, safe="") + "/"

    def _session_id(self, wished: str | None) -> str:
        if wished is None:
            return f"{self.clock():%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}"
        if require_text("session_id", wished) == self.user_id:
            raise ValueError(f"the session id {shown(wished)} is the user id: a session ends, a user stays")
        return wished

    async def _write(self, turn: ChatTurn) -> None:
        if self.sessions is not None:
            await self.sessions.append(self.key, turn)
            self._said_something = True

    async def _keep_what_is_stated(self, text: str) -> None:
        if self.preferences is not None:
            for key, value in notice(text, self.rules):
                await self.preferences.set(self.user_id, key, value)

    async def _known(self, turn: ChatTurn) -> Known:
        window = await self.sessions.get_window(self.key, self.window) if self.sessions is not None else []
        if turn not in window[-1:]:
            window = [*window, turn]  # no sessions, or a window of 0: the question itself is always in the prompt
        return Known(window, await self._preferences(), await self._recall(turn.content, RECALLED))

    async def _preferences(self) -> dict[str, str]:
        return await self.preferences.all(self.user_id) if self.preferences is not None else {}

    async def _recall(self, text: str, k: int) -> list[Recollection]:
        """The nearest episodes, this session's own left out: its turns are in the window."""
        if self.episodes is None or self.embedder is None:
            return []
        embedding = (await asyncio.to_thread(self.embedder.encode, [text]))[0]
        found = await self.episodes.recall(embedding, k + 1, user_id=self.user_id)
        return [episode for episode in found if episode.session_id != self.key][:k]

    async def _end(self) -> EpisodicRecord | None:
        if not self._said_something or self.sessions is None or self.episodes is None or self.embedder is None:
            return None
        record = await archive(
            self.key,
            user_id=self.user_id,
            sessions=self.sessions,
            episodes=self.episodes,
            embedder=self.embedder,
            summarizer=never_blank(without_replies(self.summarizer or offline_summarizer(self.embedder))),
            clock=self.clock,
        )
        self._said_something = False
        return record


def _checked(answer: object) -> str:
    if not isinstance(answer, str) or is_blank(answer):
        raise ModelError(f"the model answered {shown(answer)} instead of text")
    return storable(answer)
