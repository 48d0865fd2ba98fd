from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tri_memory import InMemoryEpisodicStore, InMemoryPreferenceStore, ManualClock
from tri_memory.embedding import HashingEmbedder
from tri_memory.privacy.tombstones import InMemoryTombstones
from tri_memory.web.app import memory_app
from tri_memory.web.token import MemoryTokens

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOES = {"session_id": "s1", "summary": "Ann wants red running shoes in size 42"}


class House:
    """The application in this process, and who asks it."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock(START)
        self.tokens = MemoryTokens("s3cret-" * 10, clock=self.clock)
        self.preferences = options.setdefault("preferences", InMemoryPreferenceStore())
        self.episodes = options.setdefault("episodes", InMemoryEpisodicStore())
        options.setdefault("embedder", HashingEmbedder())
        app = memory_app(self.tokens, clock=self.clock, **options)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")

    async def get(self, path: str, user: str = "ann", **params: Any) -> httpx.Response:
        return await self.client.get(path, params=params or None, headers=self.signed(user))

    async def post(self, path: str, body: Any = None, user: str = "ann", **options: Any) -> httpx.Response:
        return await self.client.post(path, headers=self.signed(user), **({"json": body} | options))

    def signed(self, user: str) -> dict[str, str]:
        return {"X-Memory-Token": self.tokens.issue(user)}


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    async with house.client:
        yield house


async def test_what_was_remembered_is_recalled(house: House) -> None:
    assert (await house.post("/remember", {"key": "size", "value": "42"})).json() == {"kept": True}
    assert (await house.post("/remember", SHOES)).json() == {"kept": True}
    expected = {**SHOES, "score": pytest.approx(1, abs=1e-5), "created_at": START.isoformat()}
    answer = (await house.get("/recall", query=SHOES["summary"])).json()
    assert answer == {"preferences": {"size": "42"}, "episodes": [expected]}
    assert (await house.get("/users/ann/recall", query=SHOES["summary"])).json() == answer
    assert (await house.get("/recall")).json() == {"preferences": {"size": "42"}, "episodes": []}


async def test_another_user_sees_and_forgets_nothing_of_it(house: House) -> None:
    await house.post("/remember", {"key": "size", "value": "42"})
    await house.post("/remember", SHOES)
    empty = {"preferences": {}, "episodes": []}
    assert (await house.get("/recall", user="bob", query=SHOES["summary"])).json() == empty
    assert (await house.post("/forget", user="bob")).json() == {"preferences": 0, "episodes": 0}
    assert len((await house.get("/recall", query="shoes")).json()["episodes"]) == 1


async def test_forgetting_empties_both_stores_and_says_how_much_went(house: House) -> None:
    await house.post("/remember", {"key": "size", "value": "42"})
    await house.post("/remember", SHOES)
    assert (await house.post("/forget")).json() == {"preferences": 1, "episodes": 1}
    assert (await house.get("/recall", query="shoes")).json() == {"preferences": {}, "episodes": []}


@pytest.mark.parametrize("path", ["/remember", "/forget", "/recall"])
async def test_no_token_no_memory(house: House, path: str) -> None:
    answer = await house.client.request("GET" if path == "/recall" else "POST", path, json={"user_id": "ann"})
    assert (answer.status_code, answer.json()["error"]) == (401, "missing")
    assert (await house.client.get("/health")).json() == {"ok": True}


@pytest.mark.parametrize("other", ["bob", "", ["ann"], 7, "ann "])
async def test_a_user_id_anywhere_else_must_be_the_tokens_own(house: House, other: Any) -> None:
    await house.post("/remember", {"key": "size", "value": "42"}, user="bob")
    asked = [
        await house.post("/remember", {"key": "size", "value": "1", "user_id": other}),
        await house.post("/remember", {**SHOES, "user_id": other}),
        await house.post("/forget", {"user_id": other}),
        await house.get("/recall", user_id=str(other)),
        await house.client.get("/recall?user_id=ann&user_id=bob", headers=house.signed("ann")),
        await house.client.get("/recall?user_id=bob&user_id=ann", headers=house.signed("ann")),
        await house.get("/users/bob/recall"),
        await house.client.post("/forget?user_id=bob", headers=house.signed("ann")),
    ]
    assert [answer.status_code for answer in asked] == [403] * len(asked)
    assert all(answer.json() == {"error": "the token is for another user"} for answer in asked)
    assert await house.preferences.all("bob") == {"size": "42"}
    assert await house.preferences.all("ann") == {}
    assert (await house.post("/remember", {"key": "size", "value": "1", "user_id": "ann"})).json() == {"kept": True}


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'"ann"',
        b"7",
        b"\xff",
        b"",
        b"{}",
        b"[" * 20_000,
        b'{"key": "size"}',
        b'{"key": "size", "value": 42}',
        b'{"key": null, "value": "x"}',
        b'{"session_id": "", "summary": "x"}',
        b'{"session_id": "s", "summary": " "}',
        b'{"session_id": "s\\u0000", "summary": "shoes"}',
        b'{"session_id": "s", "summary": "\\ud83d shoes"}',
        b'{"summary": "shoes"}',
    ],
)
async def test_a_body_that_is_not_understood_is_a_400_with_a_reason(house: House, content: bytes) -> None:
    answer = await house.post("/remember", content=content)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]
    assert await house.episodes.forget("ann") == 0


@pytest.mark.parametrize("value", ["\ud83d", "a\0b", "x" * 10_000, " "])
async def test_an_odd_preference_is_cleaned_or_dropped_and_never_an_error(house: House, value: str) -> None:
    answer = await house.post("/remember", content=json.dumps({"key": "note", "value": value}))
    assert answer.status_code in (200, 400), answer.text
    assert (await house.get("/recall")).status_code == 200


@pytest.mark.parametrize("k", ["-1", "0", "51", "x", "1.5", "", "٣", "9" * 5_000])
async def test_k_is_a_number_within_reason(house: House, k: str) -> None:
    answer = await house.get("/recall", query="shoes", k=k)
    assert (answer.status_code, "k must be" in answer.json()["error"]) == (400, True)


async def test_a_body_without_end_is_cut_off_at_the_limit(house: House) -> None:
    taken = 0

    async def without_end() -> AsyncIterator[bytes]:
        nonlocal taken
        while taken < 10_000_000:
            taken += 4_096
            yield b" " * 4_096

    for path in ("/remember", "/forget"):
        taken = 0
        answer = await house.post(path, content=without_end())
        assert (answer.status_code, taken < 100_000) == (413, True)


async def test_a_store_that_fails_is_not_an_answer(house: House) -> None:
    async def fails(*_: Any, **__: Any) -> Any:
        raise ConnectionError("the database is away")

    house.preferences.all = fails  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="away"):
        await house.get("/recall")


# Forgetting while something is written


class SlowEpisodes(InMemoryEpisodicStore):
    """Holds a write until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def remember(self, record: Any) -> None:
        self.reached.set()
        await self.go.wait()
        await super().remember(record)


class SlowEmbedder(HashingEmbedder):
    """Holds an embedding, and with it a request that has written nothing yet."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()
        self.go.set()

    def encode(self, texts: Any) -> Any:
        self.reached.set()
        assert self.go.wait(30)
        return super().encode(texts)


async def test_input_43_a_request_that_is_writing_when_its_user_is_forgotten_leaves_nothing() -> None:
    episodes = SlowEpisodes()
    house = House(episodes=episodes, tombstones=InMemoryTombstones())
    async with house.client:
        saving = asyncio.create_task(house.post("/remember", SHOES))
        await episodes.reached.wait()
        forgetting = asyncio.create_task(house.post("/forget"))
        await asyncio.sleep(0.05)
        episodes.go.set()

        assert (await saving).status_code == 409
        assert (await forgetting).json() == {"preferences": 0, "episodes": 1}
        assert (await house.get("/recall", query="shoes")).json() == {"preferences": {}, "episodes": []}
        assert (await house.post("/remember", SHOES)).json() == {"kept": True}  # said afterwards
        assert len((await house.get("/recall", query="shoes")).json()["episodes"]) == 1


async def test_a_request_that_came_before_the_forgetting_and_writes_after_it_is_refused() -> None:
    embedder = SlowEmbedder()
    embedder.go.clear()
    house = House(embedder=embedder, tombstones=InMemoryTombstones())
    async with house.client:
        saving = asyncio.create_task(house.post("/remember", SHOES))
        await asyncio.to_thread(embedder.reached.wait, 30)
        assert (await house.post("/forget")).status_code == 200
        embedder.go.set()

        answer = await saving
        assert (answer.status_code, answer.json()["error"][:27]) == (409, "the user was forgotten mean")
        assert (await house.get("/recall", query="shoes")).json()["episodes"] == []


async def test_without_the_registry_that_request_does_bring_it_back() -> None:
    embedder = SlowEmbedder()
    embedder.go.clear()
    house = House(embedder=embedder)
    async with house.client:
        saving = asyncio.create_task(house.post("/remember", SHOES))
        await asyncio.to_thread(embedder.reached.wait, 30)
        await house.post("/forget")
        embedder.go.set()
        assert (await saving).status_code == 200


@pytest.mark.parametrize("tombstones", [None, InMemoryTombstones()])
async def test_a_store_that_cant_forget_is_no_success(tombstones: Any) -> None:
    class Away(InMemoryPreferenceStore):
        async def forget(self, user_id: str) -> int:
            raise ConnectionError("no server today, dear ann")

    house = House(preferences=Away(), tombstones=tombstones)
    async with house.client:
        await house.post("/remember", SHOES)
        answer = await house.post("/forget")
        assert (answer.status_code, answer.json()) == (
            503,
            {"error": "not everything was forgotten (preferences): forget again"},
        )
        assert (await house.get("/recall", query="shoes")).json()["episodes"] == []  # the others forget all the same
