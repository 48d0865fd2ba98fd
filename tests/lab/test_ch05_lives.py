"""Chapter 05: what a time to live does on a real server, and a panel that counts the same."""

from __future__ import annotations

import random
from datetime import timedelta
from uuid import uuid4

import pytest
import redis

from tri_memory import InMemorySessionStore, RedisSessionStore, blocking
from tri_memory.lab.chapters.ch05 import lives, panel, place


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex[:8]}:"


async def test_appending_keeps_a_session_alive_and_reading_or_listing_does_not(embedded_valkey, prefix):
    async with RedisSessionStore.from_url(embedded_valkey, prefix=prefix, ttl_s=1.0) as store:
        left = await lives.keep_busy(store, for_s=1.4, every_s=0.2)
    assert left == {"append": 8, "get_window": 0, "list_sessions": 0}


async def test_short_pauses_keep_all_sessions_whole_and_long_ones_end_those_that_only_read(
    embedded_valkey, prefix, monkeypatch
):
    monkeypatch.setattr(lives, "BEGIN_WITHIN_S", 0.2)
    table = await lives.survival(embedded_valkey, prefix, ttl_s=0.5, ratios=[0.005, 1.2], seeds=[1], sessions=4)
    whole = table.set_index(["way", "planned"])["whole"]
    assert whole["writes", 0.005] == whole["reads", 0.005] == 1
    assert whole["reads", 1.2] == 0
    sentence = lives.survival_sentence(table, lives.pauses_between_visits(), timedelta(hours=24))
    assert "of sessions that write, 100% were whole" in sentence
    assert (table.taken >= 0.001).all()
    assert "96 of 96 returns come later than 24 h" in sentence


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.8])
def test_the_computed_lines_are_what_drawing_pauses_gives(ratio):
    rng = random.Random(3)
    draws = [[rng.expovariate(1 / ratio) for _ in range(lives.TURNS - 1)] for _ in range(20_000)]
    assert lives.expected("writes", ratio) == pytest.approx(sum(max(d) < 1 for d in draws) / len(draws), abs=0.015)
    assert lives.expected("reads", ratio) == pytest.approx(sum(sum(d) < 1 for d in draws) / len(draws), abs=0.015)


# The panel


class AgedServer:
    """A real server on which hours pass at once: everything in it is made older instead."""

    def __init__(self, url: str, prefix: str, ttl_h: float) -> None:
        self.raw = redis.Redis.from_url(url, decode_responses=True)
        self.prefix, self.index = prefix, f"{prefix}index"
        self.store = blocking(RedisSessionStore.from_url(url, prefix=prefix, ttl_s=ttl_h * 3_600))

    def pass_hours(self, hours: float) -> None:
        for member in self.raw.zrange(self.index, 0, -1):
            self.raw.zincrby(self.index, -round(hours * 3_600e6), member)
        for key in self.raw.scan_iter(f"{self.prefix}*"):
            left = self.raw.pttl(key) - round(hours * 3_600e3)
            if left > 0:
                self.raw.pexpire(key, left)
            else:
                self.raw.delete(key)

    def alive(self) -> int:
        return len(list(self.raw.scan_iter(f"{self.prefix}*}}")))

    def close(self) -> None:
        place.sweep(self.raw, self.prefix)
        self.store.close()
        self.raw.close()


@pytest.mark.parametrize(("ttl_h", "gap_h", "ghosts"), [(23.5, 8, True), (5, 9, True), (1, 30, False)])
def test_the_panel_counts_what_a_real_server_holds(embedded_valkey, prefix, ttl_h, gap_h, ghosts):
    settings = {"gap_h": gap_h, "sessions_a_day": 3, "list_every_h": 31, "days": 4}
    server, now = AgedServer(embedded_valkey, prefix, ttl_h), 0.0
    found = panel.course(ttl_h=ttl_h, **settings)
    too_late, seen = 0, set()
    for event, moment in zip(panel.schedule(**settings), found.moments, strict=True):
        server.pass_hours(event.hour - now)
        now = event.hour
        if event.session is None:
            server.store.list_sessions()
        else:
            begun = server.store.get_history(str(event.session))
            too_late += event.session in seen and not begun
            seen.add(event.session)
            server.store.append(str(event.session), lives.HELLO)
        assert (server.alive(), server.raw.zcard(server.index)) == (moment.alive, moment.by_store), event
    server.close()
    assert found.too_late == too_late
    assert any(moment.by_store > moment.alive for moment in found.moments) == ghosts


def test_an_index_that_nobody_cleans_only_grows_and_the_others_never_list_less_than_is_alive():
    found = panel.course(ttl_h=24, gap_h=8, sessions_a_day=4, list_every_h=60)
    nobody = [moment.nobody for moment in found.moments]
    assert nobody == sorted(nobody)
    assert nobody[-1] == panel.DAYS * 4
    for moment in found.moments:
        assert moment.alive <= moment.by_store <= moment.by_list <= moment.nobody


def test_the_panel_follows_its_sliders():
    shown = panel.index_panel()
    before = shown.png, shown.text
    shown.set(ttl_h=2, gap_h=40)
    assert shown.png != before[0]
    assert shown.text != before[1]
    assert "returns found the session expired" in shown.view.value
    assert shown.view.value.count("<img") == 1


@pytest.mark.parametrize("extreme", [(1, 48, 1, 120), (72, 1, 12, 6), (72, 48, 1, 6)])
def test_the_panel_draws_at_the_ends_of_its_sliders(extreme):
    found = panel.course(*extreme)
    assert panel.draw(found)
    assert f"of {found.returns} returns" in panel.say(found)


async def test_the_busy_user_of_a_store_in_memory_loses_nothing():
    left = await lives.keep_busy(InMemorySessionStore(), for_s=0.02, every_s=0.01)
    assert left == {"append": 3, "get_window": 1, "list_sessions": 1}
