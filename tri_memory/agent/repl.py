"""The conversation of `tri-memory chat`: one line in, one answer out, and commands that show what is remembered."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any

from tri_memory.agent.chat import Chat
from tri_memory.agent.confirmation import is_clear_yes
from tri_memory.agent.forget_request import KEPT, SURE, asks_to_forget, forgotten

Read = Callable[[], str]  # the next line; EOFError at the end
Write = Callable[[str], None]
Forget = Callable[[], Awaitable[str]]  # everything of the user, in every store; what is to be said about it


class Repl:
    """`run` reads lines until /exit, the end of the input or Ctrl-C, and archives the session whichever it was.

    `forget` is what "/forget" and "forget me" call after a clear yes; without it the layers of the chat are emptied.
    """

    def __init__(self, chat: Chat, read: Read, write: Write, forget: Forget | None = None) -> None:
        self.chat, self.forget = chat, forget
        self.read = read
        self.write = write
        self.commands: dict[str, tuple[str, Callable[[], Awaitable[None]]]] = {
            "/new": ("end this session and begin another one", self._new),
            "/history": ("what is kept of this session", self._history),
            "/sessions": ("your sessions, most recent first", self._sessions),
            "/prefs": ("your preferences", self._prefs),
            "/memory": ("what is remembered about you", self._memory),
            "/forget": ("delete everything about you, in every layer", self._forget),
            "/help": ("this list", self._help),
        }

    def run(self) -> int:
        """The exit code: 1 where the session could not be archived, else 0."""
        with asyncio.Runner() as runner:
            try:
                while True:
                    line = tidy(self.read())
                    if line.lower().split()[:1] == ["/exit"]:
                        break
                    self._try(runner, self._answer(line))
            except (EOFError, KeyboardInterrupt):
                self.write("")
            return 0 if self._try(runner, self._archive()) else 1

    def _try(self, runner: asyncio.Runner, coroutine: Any) -> bool:
        """Whatever fails, the conversation goes on: a REPL that dies takes its memory with it."""
        try:
            runner.run(coroutine)
        except Exception as error:
            self.write(printable(f"error: {error or type(error).__name__}"))
            return False
        return True

    async def _answer(self, line: str) -> None:
        if not line:
            return
        if asks_to_forget(line):
            await self._forget()
            return
        if not line.startswith("/"):
            self.write(printable(await self.chat.say(line)))
            return
        name = line.split()[0].lower()
        if name in self.commands:
            await self.commands[name][1]()
        else:
            self.write(printable(f"unknown command {name}; there are {' '.join(self.commands)} /exit"))

    async def _new(self) -> None:
        self.write(f"new session {await self.chat.new()}")

    async def _history(self) -> None:
        turns = await self.chat.history()
        self._list([f"{turn.role}: {turn.content}" for turn in turns], "nothing was said yet")

    async def _sessions(self) -> None:
        rows = await self.chat.list_sessions()
        self._list(
            [f"{row.session_id}  {row.turns} turns  {row.updated_at:%Y-%m-%d %H:%M} UTC" for row in rows], "no sessions"
        )

    async def _prefs(self) -> None:
        store = self.chat.preferences
        stated = await store.all(self.chat.user_id) if store is not None else {}
        self._list([f"{key}: {value}" for key, value in stated.items()], "no preferences")

    async def _memory(self) -> None:
        known = await self.chat.remembered()
        lines = [f"preference  {key}: {value}" for key, value in known.preferences.items()]
        lines += [f"record  [{fact.when:%Y-%m-%d}] {fact.title}: {fact.text}" for fact in known.facts]
        episodes = sorted(known.episodes, key=lambda episode: episode.created_at)
        lines += [f"episode  [{episode.created_at:%Y-%m-%d}] {episode.summary}" for episode in episodes]
        self._list(lines, "nothing is remembered about you yet; earlier sessions are, once they have ended (/new)")

    async def _forget(self) -> None:
        self.write(SURE)
        try:
            sure = is_clear_yes(tidy(self.read()))
        except EOFError:  # nobody is there to say it
            sure = False
        if not sure:
            self.write(KEPT)
            return
        if self.forget is not None:
            self.write(await self.forget())
        gone = await self.chat.forget()  # with what the conversation itself still holds
        if self.forget is None or any(gone.values()):
            self.write(forgotten(gone))

    async def _help(self) -> None:
        for name, (what, _) in self.commands.items():
            self.write(f"{name:10}{what}")
        self.write(f"{'/exit':10}archive the session and leave")

    async def _archive(self) -> None:
        if await self.chat.end():
            self.write(f"session {self.chat.session_id} archived")

    def _list(self, lines: list[str], nothing: str) -> None:
        for line in lines or [nothing]:
            self.write(printable(line))


def tidy(line: str) -> str:
    """A line as it was meant: trimmed, without a byte order mark, halves of an emoji joined, what is no text as �."""
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip().removeprefix("\ufeff").strip()


def printable(text: str) -> str:
    """The text without what would move the cursor or change the colours of a terminal; line breaks and tabs stay."""
    return "".join(sign if sign in "\n\t" or unicodedata.category(sign) != "Cc" else "\ufffd" for sign in text)
