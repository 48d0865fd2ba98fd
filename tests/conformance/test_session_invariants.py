"""Invariants 1 to 4 of the session store on every engine, under summarisers that fail, are blank, hang and are raced.

In this process time is virtual; on a real server a second is a few milliseconds, and of appends made at the same time
any may come first, since each takes a connection of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.conftest import needs
from tests.virtual_time import VirtualTimeLoop
from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore, TokenWatermark
from tri_memory.summary import is_summary, summary_text

BEHAVIOURS = ("ok", "raises", "blank", "too long", "not text", "hangs", "hangs and ignores cancellation")
SESSIONS = ("a", "b")
POLICIES = {
    "count": CountPolicy(compress_after=8, keep_recent=3, hard_cap=20),
    "tokens": TokenWatermark(120, high=0.75, low=0.5, count=len, summary_tokens=10),
}


class Engine(NamedTuple):
    """`make(**options)` gives a store on the running loop; `second_s` is how long a second of the script lasts."""

    make: Callable[..., Any]
    loop: Callable[[], asyncio.AbstractEventLoop]
    second_s: float

    @property
    def in_this_process(self) -> bool:
        return self.loop is VirtualTimeLoop


class Scripted:
    """Takes two seconds, then behaves as told. Remembers which turns each summary that it gave stands for."""

    def __init__(self, second_s: float) -> None:
        self.second_s = second_s
        self.behaviour = "ok"
        self.given: dict[str, list[str]] = {}
        self.read = Counter[str]()

    async def __call__(self, span: tuple[ChatTurn, ...]) -> object:
        behaviour = self.behaviour
        await asyncio.sleep(2 * self.second_s)
        if behaviour == "raises":
            raise ConnectionError("the model is down")
        if behaviour == "blank":
            return " \n"
        if behaviour == "too long":
            return "x" * 5_000
        if behaviour == "not text":
            return 42
        if behaviour == "hangs":
            await asyncio.sleep(3_600)
        if behaviour == "hangs and ignores cancellation":
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                await asyncio.sleep(3_600)
        turns = [turn.content for turn in span if not is_summary(turn)]
        self.read.update(turns)
        old = [self.given[summary_text(turn)] for turn in span if is_summary(turn)]
        assert len(old) <= 1, "a span with two summaries"
        text = f"S{len(self.given)}"
        self.given[text] = [*(old[0] if old else []), *turns]
        return text


class SessionMachine(RuleBasedStateMachine):
    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    @initialize(policy=st.sampled_from(sorted(POLICIES)), on_failure=st.sampled_from(["truncate", "keep"]))
    def begin(self, policy: str, on_failure: str) -> None:
        self.runner = asyncio.Runner(loop_factory=self.engine.loop)
        self.policy = POLICIES[policy]
        self.summarizer = Scripted(self.engine.second_s)
        self.store = self.engine.make(
            policy=self.policy,
            summarizer=self.summarizer,
            on_failure=on_failure,
            summary_timeout_s=10 * self.engine.second_s,
        )
        self.accepted: dict[str, list[str]] = defaultdict(list)
        self.cut_before_clear = Counter[str]()
        self.number = 0
        self.moments = count(1)
        self.burst: int | None = None  # in this process appends have an order even within a burst
        self.moment_of: dict[str, int] = {}
        self.longest_burst = 0

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            if hasattr(self.store, "close"):
                self.runner.run(self.store.close())
            self.runner.close()

    def turn(self, role: str = "user") -> ChatTurn:
        self.number += 1
        return ChatTurn(role, f"turn {self.number:05}", "tool" if role == "tool" else None)

    async def append(self, session: str, turn: ChatTurn, after: float = 0.0) -> None:
        await asyncio.sleep(after * self.engine.second_s)
        self.accepted[session].append(turn.content)
        self.moment_of[turn.content] = self.burst or next(self.moments)
        await self.store.append(session, turn)

    @rule(behaviour=st.sampled_from(BEHAVIOURS))
    def summariser_will(self, behaviour: str) -> None:
        self.summarizer.behaviour = behaviour

    @rule(
        session=st.sampled_from(SESSIONS), roles=st.lists(st.sampled_from(["user", "assistant", "tool"]), max_size=12)
    )
    def append_one_by_one(self, session: str, roles: list[str]) -> None:
        async def go() -> None:
            for role in roles:
                await self.append(session, self.turn(role))

        self.runner.run(go())

    @rule(moments=st.lists(st.tuples(st.sampled_from(SESSIONS), st.integers(0, 12)), min_size=2, max_size=25))
    def append_at_the_same_time(self, moments: list[tuple[str, int]]) -> None:
        self.longest_burst = max(self.longest_burst, len(moments))

        async def go() -> None:
            await asyncio.gather(*(self.append(s, self.turn(), after / 3) for s, after in moments))

        self.burst = None if self.engine.in_this_process else next(self.moments)
        self.runner.run(go())
        self.burst = None

    @rule(session=st.sampled_from(SESSIONS), after=st.sampled_from([0, 0.5, 1.5, 3.5]))
    def cancel_an_append(self, session: str, after: float) -> None:
        async def go() -> None:
            task = asyncio.ensure_future(self.append(session, self.turn()))
            await asyncio.sleep(after * self.engine.second_s)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(20 * self.engine.second_s)  # its fold goes on without it

        before = self.number
        self.runner.run(go())
        content = f"turn {before + 1:05}"
        if content in self.accepted[session] and content not in self.stored(session):
            self.accepted[session].remove(content)  # cancelled before it was written; the newest turn is never cut

    @rule(session=st.sampled_from(SESSIONS), while_appending=st.booleans())
    def clear(self, session: str, while_appending: bool) -> None:
        async def go() -> None:
            task = asyncio.ensure_future(self.append(session, self.turn()))
            await asyncio.sleep(self.engine.second_s if while_appending else 0)
            if not while_appending:
                await task
            await self.store.clear(session)
            await task

        self.runner.run(go())
        overtaken = [f"turn {self.number:05}"] if not self.engine.in_this_process else []
        self.accepted[session] = [content for content in overtaken if content in self.stored(session)]
        self.cut_before_clear[session] = self.cut(session, since_clear=False)

    def cut(self, session: str, since_clear: bool = True) -> int:
        cut = sum(r.turns for r in self.store.trace if r.session_id == session and r.outcome == "truncated")
        return cut - (self.cut_before_clear[session] if since_clear else 0)

    def history(self, session: str) -> list[ChatTurn]:
        return self.runner.run(self.store.get_history(session))

    def stored(self, session: str) -> list[str]:
        """Everything the history holds, literally or through its summary, oldest first."""
        held: list[str] = []
        for turn in self.history(session):
            held += self.summarizer.given[summary_text(turn)] if is_summary(turn) else [turn.content]
        return held

    @invariant()
    def every_turn_is_kept_once_and_in_order_or_counted_as_cut(self) -> None:
        for session in getattr(self, "accepted", {}):
            held = self.stored(session)
            assert max(Counter(held).values(), default=0) <= 1
            assert set(held) <= set(self.accepted[session])
            moments = [self.moment_of[content] for content in held]
            assert moments == sorted(moments)
            assert len(self.accepted[session]) - len(held) == self.cut(session)

    @invariant()
    def there_is_at_most_one_summary_and_it_is_the_head(self) -> None:
        for session in getattr(self, "accepted", {}):
            assert not any(is_summary(turn) for turn in self.history(session)[1:])

    @invariant()
    def the_history_is_bounded_and_no_turn_is_summarised_twice(self) -> None:
        if not hasattr(self, "store"):
            return
        for session in self.accepted:
            weight = sum(self.policy.weigh(turn) for turn in self.history(session))
            one = 1 if isinstance(self.policy, CountPolicy) else len("turn 00000")
            assert weight <= self.policy.hard_line + (self.longest_burst + 1) * one
        assert max(self.summarizer.read.values(), default=0) <= 1

    @invariant()
    def nothing_is_left_marked_as_folding(self) -> None:
        assert not any(s.folding for s in getattr(getattr(self, "store", None), "_sessions", {}).values())


def try_to_break(engine: Engine, examples: int, steps: int = 25) -> None:
    phases = tuple(Phase) if engine.in_this_process else (Phase.generate,)  # elsewhere nothing happens twice
    run_state_machine_as_test(
        lambda: SessionMachine(engine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=phases,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_in_memory():
    try_to_break(Engine(InMemorySessionStore, VirtualTimeLoop, second_s=1), examples=60)


def test_on_fakeredis():
    fakeredis = needs("fakeredis", "pip install 'fakeredis[lua]'")
    needs("lupa", "pip install 'fakeredis[lua]'")

    def make(**options: Any) -> Any:
        from tri_memory import RedisSessionStore

        return RedisSessionStore(fakeredis.FakeAsyncRedis(), lock_s=60, **options)

    try_to_break(Engine(make, VirtualTimeLoop, second_s=1), examples=15)


@pytest.mark.parametrize("server", ["embedded_valkey", "container_redis"])
def test_on_a_real_server(server, request):
    url = request.getfixturevalue(server)

    def make(**options: Any) -> Any:
        from tri_memory import RedisSessionStore

        return RedisSessionStore.from_url(url, prefix=f"{uuid4().hex}:", lock_s=1, **options)

    try_to_break(Engine(make, asyncio.new_event_loop, second_s=0.01), examples=6, steps=15)


def test_on_a_cluster(redis_cluster):
    def make(**options: Any) -> Any:
        from redis.asyncio import RedisCluster

        from tri_memory import RedisSessionStore

        client = RedisCluster.from_url(redis_cluster)
        store = RedisSessionStore(client, prefix=f"{uuid4().hex}:", lock_s=1, **options)
        store.close = client.aclose
        return store

    try_to_break(Engine(make, asyncio.new_event_loop, second_s=0.01), examples=4, steps=15)


@pytest.mark.parametrize("behaviour", BEHAVIOURS[1:])
@pytest.mark.parametrize("on_failure", ["truncate", "keep"])
def test_a_failing_summary_does_what_the_policy_says_and_nothing_worse(behaviour, on_failure):
    summarizer = Scripted(second_s=1)
    store = InMemorySessionStore(policy=POLICIES["count"], summarizer=summarizer, on_failure=on_failure)
    turns = [ChatTurn("user", f"turn {i}") for i in range(40)]

    async def go() -> list[list[ChatTurn]]:
        seen = []
        for i, turn in enumerate(turns):
            summarizer.behaviour = behaviour if i > 8 else "ok"
            await store.append("s", turn)
            seen.append(await store.get_history("s"))
        return seen

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        histories = runner.run(go())
    assert histories[8][0].content.endswith("S0")
    for i, history in enumerate(histories[8:], start=8):
        assert history[0].content.endswith("S0"), "the old summary is gone"
        assert history[-1] == turns[i]
        assert len(history) - 1 >= 3, "fewer turns than the policy keeps"
        assert history[1:] == turns[i + 2 - len(history) : i + 1], "a turn in the middle is gone"
        assert len(history) <= (8 if on_failure == "truncate" else 20)
    assert {record.reason for record in store.trace} > {None}
