"""A conversation with one user over the three layers of memory.

Each turn: write what the user said; keep what it states about them (layer 2) and their cases (records); recall earlier
sessions (layer 3); assemble the prompt from the window (layer 1) and all these, within the budget; ask the model; write
its answer. Ending a session archives it. A layer that isn't passed isn't there: leave one out and see what it forgets.
What the model or the user only repeats from a prompt is neither archived nor counted as a use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tri_memory.agent.budget import LeftOut
from tri_memory.agent.echoes import Echoes, echoless, without_fences
from tri_memory.agent.forget_request import ForgetRequest
from tri_memory.agent.known import Facts, Past, let_in, require_embedder, within
from tri_memory.agent.known import Known as Known
from tri_memory.agent.models import ChatModel, PromptOnlyModel, checked
from tri_memory.agent.notice import notice
from tri_memory.agent.notice_rules import RULES, Rule
from tri_memory.agent.own_sessions import OwnSessions
from tri_memory.agent.prompt import SYSTEM, Message, Section, assemble, sections
from tri_memory.agent.records import Records
from tri_memory.agent.summaries import never_blank, offline_summarizer, without_replies
from tri_memory.agent.trace import Mask, Sink, Tracer, TurnTrace, process_mask
from tri_memory.agent.word_counts import counts_of
from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import (
    ChatTurn,
    EpisodicRecord,
    EpisodicStore,
    PreferenceStore,
    SessionStore,
    SessionSummary,
    require_count,
    require_text,
    shown,
)
from tri_memory.embedding import Embedder
from tri_memory.embedding.texts import is_blank
from tri_memory.entity.records import UserMemoryStore
from tri_memory.episodic.archive import archive
from tri_memory.recall.gate import Gate
from tri_memory.summary import Summarizer

RECALLED = 3  # episodes in a prompt


class Chat:
    """One user's conversation.

    `user_id` owns everything; sessions are stored under `key`, which holds it, so that two users who pick the same
    session id never meet. `window` counts the turns that a prompt repeats. `rules` say which statements are kept.
    `budget` counts tokens, of which a prompt has no more (`budget.py`); without it everything goes in. Episodes are
    recalled by cosine, where `hybrid` by their words as well, and judged by `gate`. `user_memory` keeps records, found
    by the number a question names; `facts` finds others. `trace`, a list or a function, gets a TurnTrace a turn, the
    user behind `mask`, memories without text unless `trace_texts`.
    Raises ValueError for a user id that is missing, blank, or the session id, for episodes without an embedder, and for
    a gate that judges another embedder's cosines.
    """

    def __init__(
        self,
        user_id: str,
        session_id: str | None = None,
        *,
        sessions: SessionStore | None = None,
        preferences: PreferenceStore | None = None,
        episodes: EpisodicStore | None = None,
        user_memory: UserMemoryStore | None = None,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
        summarizer: Summarizer | None = None,
        clock: Clock = system_clock,
        system: str = SYSTEM,
        rules: Sequence[Rule] = RULES,
        window: int = 20,
        budget: int | None = None,
        hybrid: bool = False,
        gate: Gate | None = None,
        facts: Facts | None = None,
        trace: list[TurnTrace] | Sink | None = None,
        mask: Mask = process_mask,
        trace_texts: bool = False,
    ) -> None:
        self.user_id = require_text("user_id", user_id)
        require_embedder(episodes, embedder, gate)
        self.clock = clock
        self._own = OwnSessions(user_id, sessions, clock)
        self.session_id = self._own.named(session_id)
        self.sessions, self.preferences = sessions, preferences
        self.episodes, self.user_memory = episodes, user_memory
        self._records = Records(user_id, user_memory, clock)
        self.embedder, self.summarizer = embedder, summarizer
        self.model: ChatModel = model if model is not None else PromptOnlyModel()
        self.system, self.rules = system, tuple(rules)
        self.window = require_count("window", window)
        self.budget = None if budget is None else require_count("budget", budget, least=1)
        self.hybrid, self.gate, self.facts = hybrid, gate, facts
        self.last_prompt: list[Message] = []
        self.last_known = Known()
        self.last_left_out: list[LeftOut] = []
        self._echoes = Echoes()  # of this session
        sink = trace.append if isinstance(trace, list) else trace
        self._tracer = Tracer(sink, mask=mask, texts=trace_texts, clock=clock)
        self._words = counts_of(episodes)
        self._said_something = False  # since the session was last archived
        self._forgetting = ForgetRequest()
        self._turns = asyncio.Lock()  # two calls of `say` would answer each other's questions

    @property
    def key(self) -> str:
        """Under which the session is stored: the user id, percent-encoded, then "/" and the session id."""
        return self._own.key(self.session_id)

    @property
    def last_sections(self) -> list[Section]:
        """The last prompt, part by part, with what each part costs."""
        if not self.last_prompt:
            return []
        return sections(self.last_known.window, **self.last_known.remembered(), system=self.system)

    async def say(self, text: str) -> str:
        """The model's answer to `text`; both are in the session afterwards.

        Raises ValueError, and writes nothing, for text that is blank, no string, or can't be stored. What the model
        raises comes through, and a blank answer is a ModelError: then the user's turn stays, and nothing is answered.
        "Forget me" and the answer to what it is asked then are not kept: a clear yes calls `forget`.
        """
        if is_blank(require_text("text", text)):
            raise ValueError(f"text must show something; got {shown(text)}")
        async with self._turns:
            turn = ChatTurn("user", text)
            reply = await self._forgetting.reply(text, self._forget)
            if reply is not None:
                return reply
            with self._tracer.turn(self.user_id, self.session_id) as draft:
                await self._echoes.begin(self.history)
                await self._write(turn)
                await self._keep_what_is_stated(text)
                await self._records.keep(text, self.key)
                known = await self._known(turn)
                self.last_known, self.last_left_out = within(known, self.budget, self.system)
                self.last_prompt = assemble(self.last_known.window, **self.last_known.remembered(), system=self.system)
                self._echoes.inject(self.last_known.injected())
                draft.assembled(self.last_known, self.last_left_out, lambda: self.last_sections)
                answer = checked(await self.model(self.last_prompt))
                await self._write(ChatTurn("assistant", without_fences(answer)))
            return answer

    async def end(self) -> EpisodicRecord | None:
        """Archive the session as an episode; None where nothing new was said, or where layer 1 or 3 is missing.

        The session itself stays. Raises ArchiveError, and then nothing was stored.
        """
        async with self._turns:
            return await self._end()

    async def new(self, session_id: str | None = None) -> str:
        """End this session and open another one; its id. Where archiving fails, the error comes through, and the new
        session is open all the same."""
        fresh = self._own.named(session_id)
        async with self._turns:
            try:
                await self._end()
            finally:
                self.session_id, self._said_something = fresh, False
                self._echoes, self._forgetting = Echoes(), ForgetRequest()
            return fresh

    async def history(self) -> list[ChatTurn]:
        """Everything that is kept of this session."""
        return await self.sessions.get_history(self.key) if self.sessions is not None else []

    async def list_sessions(self) -> list[SessionSummary]:
        """This user's sessions, most recently active first."""
        return await self._own.rows()

    async def remembered(self, about: str = "what do you remember about me", k: int = 20) -> Known:
        """What is known about this user: all preferences, the `k` episodes nearest to `about`, the newest records."""
        return Known([], await self._preferences(), await self._past.nearest(about, k), await self._records.all())

    async def forget(self) -> dict[str, int]:
        """Delete this user from all layers there are; how much went from each."""
        async with self._turns:
            return await self._forget()

    async def _forget(self) -> dict[str, int]:
        gone = {"sessions": await self._own.clear()}
        gone["preferences"] = await self.preferences.forget(self.user_id) if self.preferences is not None else 0
        gone["episodes"] = await self.episodes.forget(self.user_id) if self.episodes is not None else 0
        if self.user_memory is not None:
            gone["records"] = await self.user_memory.forget(self.user_id)
        self.last_prompt, self.last_known, self.last_left_out, self._said_something = [], Known(), [], False
        self._echoes = Echoes()
        self._words.clear()
        return gone

    @property
    def _past(self) -> Past:
        return Past(self.user_id, self.episodes, self.embedder, but=self.key)

    async def _write(self, turn: ChatTurn) -> None:
        if self.sessions is not None:
            await self.sessions.append(self.key, turn)
            self._said_something = True

    async def _keep_what_is_stated(self, text: str) -> None:
        stated, known = notice(text, self.rules), self.last_known.preferences
        self._echoes.hear(text, changes=any(known.get(key) != value for key, value in stated))
        if self.preferences is not None:
            for key, value in stated:
                await self.preferences.set(self.user_id, key, value)

    async def _known(self, turn: ChatTurn) -> Known:
        window = await self.sessions.get_window(self.key, self.window) if self.sessions is not None else []
        if turn not in window[-1:]:
            window = [*window, turn]  # no sessions, or a window of 0: the question itself is always in the prompt
        words = self._words if self.hybrid else None
        hits = await self._past.hits(turn.content, RECALLED, words=words, gate=self.gate, clock=self.clock)
        facts = await self._records.about(turn.content, window)
        facts += await self.facts(turn.content) if self.facts is not None else []
        return Known(window, await self._preferences(), let_in(hits), facts, hits)

    async def _preferences(self) -> dict[str, str]:
        return await self.preferences.all(self.user_id) if self.preferences is not None else {}

    async def _end(self) -> EpisodicRecord | None:
        if not self._said_something or self.sessions is None or self.episodes is None or self.embedder is None:
            return None
        if all(turn.role == "assistant" for turn in self._echoes.without(await self.history())):
            return None
        summarizer = without_replies(self.summarizer or offline_summarizer(self.embedder))
        record = await archive(
            self.key,
            user_id=self.user_id,
            sessions=self.sessions,
            episodes=self.episodes,
            embedder=self.embedder,
            summarizer=echoless(never_blank(summarizer), self._echoes),
            clock=self.clock,
        )
        self._said_something = False
        return record
