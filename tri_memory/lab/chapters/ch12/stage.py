"""Several coroutines that take one call at a time, in an order that is given: a race that can be repeated.

What they share (a client, a book) is handed to each of them as `Stepped`: every call waits until its turn comes. So a
step is one call to a server, and between two calls anybody else may go on. `every_order` tries all orders there are.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tri_memory.contracts import shown

STUCK_S = 0.25  # an actor that neither calls nor ends for so long waits for another one
LIMIT_S = 20.0  # for one play

Actor = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Call:
    """One step: who called what, and what came back (or the error's name)."""

    who: str
    what: str
    gave: str


@dataclass(frozen=True)
class Play:
    """`order` names who took each step, `others` who could have taken it as well. `results` are what the actors
    returned, or the exceptions that they raised."""

    order: tuple[str, ...]
    others: tuple[tuple[str, ...], ...]
    calls: tuple[Call, ...]
    results: Mapping[str, Any]


class Stepped:
    """`inner`, of which every coroutine method waits for its turn first. Other attributes are passed on."""

    def __init__(self, inner: Any, name: str, turn: Callable[[], Awaitable[None]], log: Callable[[str, Any], None]):
        self._inner, self._name, self._turn, self._log = inner, name, turn, log

    def __getattr__(self, attribute: str) -> Any:
        method = getattr(self._inner, attribute)
        if not callable(method) or attribute in ("pipeline", "lock", "pubsub", "register_script"):
            return method

        async def stepped(*given: Any, **options: Any) -> Any:
            await self._turn()
            said = f"{self._name} {attribute} {' '.join(map(str, given))}"
            try:
                reply = method(*given, **options)
                reply = await reply if inspect.isawaitable(reply) else reply
            except BaseException as error:
                self._log(said, type(error).__name__)
                raise
            self._log(said, "nothing" if reply is None else reply)
            return reply

        return stepped


class _Turns:
    """Who waits for a turn, and what was called."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[None]] = {}
        self.calls: list[Call] = []
        self.moved = asyncio.Event()

    def shared(self, who: str, shared: Mapping[str, Any]) -> list[Any]:
        async def turn() -> None:
            self.waiting[who] = asyncio.get_running_loop().create_future()
            self.moved.set()
            await self.waiting[who]

        def log(what: str, gave: Any) -> None:
            self.calls.append(Call(who, what, gave if isinstance(gave, str) else shown(gave)))

        return [Stepped(inner, name, turn, log) for name, inner in shared.items()]


async def play(actors: Mapping[str, Actor], shared: Mapping[str, Any], order: Sequence[str] = ()) -> Play:
    """Let the actors go, each given the `shared` things in their order. `order` names who takes each step; after it,
    and where the named one can't, whoever has waited longest. TimeoutError after 20 s."""
    turns = _Turns()
    tasks = {who: asyncio.ensure_future(actor(*turns.shared(who, shared))) for who, actor in actors.items()}
    for task in tasks.values():
        task.add_done_callback(lambda _: turns.moved.set())
    taken: list[str] = []
    others: list[tuple[str, ...]] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            while not all(task.done() for task in tasks.values()):
                ready = await _ready(tasks, turns)
                if not ready:
                    continue
                wish = order[len(taken)] if len(taken) < len(order) else ready[0]
                who = wish if wish in ready else ready[0]
                taken.append(who)
                others.append(tuple(other for other in ready if other != who))
                turns.waiting.pop(who).set_result(None)
    finally:
        for task in tasks.values():
            task.cancel()
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    return Play(tuple(taken), tuple(others), tuple(turns.calls), dict(zip(tasks, results, strict=True)))


async def _ready(tasks: Mapping[str, asyncio.Future[Any]], turns: _Turns) -> list[str]:
    """Those that wait for their turn, longest first, once everybody else has ended or is stuck."""
    while any(not task.done() and who not in turns.waiting for who, task in tasks.items()):
        turns.moved.clear()
        try:
            await asyncio.wait_for(turns.moved.wait(), STUCK_S)
        except TimeoutError:
            break
    return [who for who in turns.waiting if not tasks[who].done()]


async def every_order(scene: Callable[[Sequence[str]], Awaitable[Play]], most: int = 200) -> AsyncIterator[Play]:
    """Every order of the steps of `scene`, which plays the one it is given from a fresh start; at most `most`."""
    left: list[tuple[str, ...]] = [()]
    for _ in range(most):
        if not left:
            return
        begun = left.pop()
        played = await scene(begun)
        yield played
        for i in range(len(begun), len(played.order)):
            left += [(*played.order[:i], other) for other in played.others[i]]
