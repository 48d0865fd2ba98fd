"""One call, every store, a receipt that was verified; and nothing that is being written comes back."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest

from tests.privacy.conftest import EMBEDDER
from tests.privacy.slow import Gate, Slow
from tri_memory import ChatTurn, EpisodicRecord, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.agent.chat import Chat
from tri_memory.clock import ManualClock, system_clock
from tri_memory.engines.redis_client import ClientPerLoop
from tri_memory.entity.cache import CachedUserMemoryStore
from tri_memory.entity.extract import extract
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import Forgotten
from tri_memory.episodic.archive import archive
from tri_memory.privacy.audit import AuditLog
from tri_memory.privacy.consent import Consent
from tri_memory.privacy.forget import Stores, forget_user, purge
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.hunt import hunt_redis
from tri_memory.privacy.jobs import Jobs
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.receipt import Receipt
from tri_memory.privacy.tombstones import InMemoryTombstones
from tri_memory.privacy.unit import writing

CANARY = "BX-220719"
SAID = ChatTurn("user", f"My order number is {CANARY}.")
KEY = "ann/s1"


def episode(user: str, summary: str = f"Asked about {CANARY}.", session: str = "") -> EpisodicRecord:
    vector = EMBEDDER.encode([summary])[0]
    return EpisodicRecord(user, session or f"{user}/s1", summary, vector, system_clock())


async def plant(layers, user: str) -> None:
    await layers.sessions.append(f"{user}/s1", SAID)
    await layers.sessions.append(f"{user}/s2", SAID)
    await layers.preferences.set(user, "order", CANARY)
    await layers.episodes.remember(episode(user))
    await layers.user_memory.put(user, "case", CANARY, {"said": CANARY})
    await layers.user_memory.find(user)  # which fills a cache
    await layers.short_context.put(user, [SAID])


def stores_of(layers, **more) -> Stores:
    return Stores(**vars(layers), dimensions=EMBEDDER.dimensions, **more)


async def what_is_there(layers, user: str = "ann") -> dict[str, int | None]:
    return {holder.name: await holder.find(user, "") for holder in stores_of(layers).all()}


NOTHING = {"sessions": 0, "preferences": 0, "episodes": 0, "user_memory": 0, "short_context": 0}
ALL = {"sessions": 2, "preferences": 1, "episodes": 1, "user_memory": 1, "short_context": 1}


async def test_every_store_forgets_one_user_says_how_much_and_again_gives_zeros(layers):
    graph, trace, consent, audit = EntityGraph(), [], Consent(), AuditLog()
    tombstones, names = InMemoryTombstones(), Pseudonyms("0123456789abcdef" * 4)
    jobs = Jobs(tombstones)
    for user in ("ann", "bob"):
        await plant(layers, user)
        graph.add(extract(SAID.content), system_clock(), user_id=user)
        chat = Chat(user, "s3", trace=trace)
        await chat.say(SAID.content)
        consent.ask(CANARY, user_id=user, session_id="s1")
        jobs.put(user, CANARY, layers.sessions.clear)
    assert await what_is_there(layers) == ALL

    stores = stores_of(layers, graph=graph, trace=trace, queue=jobs, others=[consent])
    what = {"stores": stores, "tombstones": tombstones, "pseudonyms": names, "audit": audit, "canaries": [CANARY]}
    receipt = await forget_user("ann", **what)
    again = await forget_user("ann", **what)

    assert {line.store: line.erased for line in receipt.lines} == ALL | {
        "jobs": 1,
        "graph": 1,
        "trace": 1,
        "consent": 1,
    }
    assert receipt.ok
    assert [(line.left, line.canaries_left) for line in receipt.lines] == [(0, 0)] * 9
    assert again.ok
    assert again.erased == 0
    assert await what_is_there(layers) == NOTHING
    assert await what_is_there(layers, "bob") == ALL
    assert (len(trace), len(jobs), len(graph.of("bob"))) == (1, 1, 2)
    assert [(entry.what, entry.whom) for entry in audit] == [("forget", names.of_user("ann"))] * 2
    for text in (receipt.to_json(), receipt.to_html(), receipt.to_text(), *(entry.to_json() for entry in audit)):
        assert CANARY not in text
        assert "ann" not in text.replace("canar", "")


async def test_after_seven_days_what_was_hidden_is_gone_for_good(layers):
    clock = ManualClock(system_clock())
    await plant(layers, "ann")
    await forget_user("ann", stores=stores_of(layers))
    clock.advance(days=6, hours=23)
    assert (await purge(stores=stores_of(layers), clock=clock))["user_memory"] == 0
    clock.advance(hours=2)
    assert (await purge(stores=stores_of(layers), clock=clock))["user_memory"] == 1
    assert (await purge(stores=stores_of(layers), clock=clock))["user_memory"] == 0


async def write(layers, layer: str) -> None:
    """One write of ann's into that layer."""
    if layer == "sessions":
        await layers.sessions.append(KEY, SAID)
    elif layer == "preferences":
        await layers.preferences.set("ann", "order", CANARY)
    elif layer == "episodes":
        await layers.episodes.remember(episode("ann"))
    elif layer == "user_memory":
        await layers.user_memory.put("ann", "case", CANARY, {"said": CANARY})
    else:
        await layers.short_context.put("ann", [SAID])


METHOD = {
    "sessions": "append",
    "preferences": "set",
    "episodes": "remember",
    "user_memory": "put",
    "short_context": "put",
}


def all_guarded(layers, tombstones):
    return type(layers)(**{name: guarded(store, tombstones) for name, store in vars(layers).items()})


@pytest.mark.parametrize("after", [False, True], ids=["before it is stored", "after it is stored"])
@pytest.mark.parametrize("layer", METHOD)
async def test_input_43_a_slow_save_that_a_forgetting_overtakes_brings_nothing_back(layers, layer, after):
    tombstones, gate = InMemoryTombstones(), Gate()
    held = type(layers)(**vars(layers) | {layer: Slow(getattr(layers, layer), METHOD[layer], gate, after=after)})
    save = asyncio.create_task(write(all_guarded(held, tombstones), layer))
    await gate.reached.wait()
    forgetting = asyncio.create_task(forget_user("ann", stores=stores_of(layers), tombstones=tombstones))
    await asyncio.sleep(0.05)
    gate.open.set()
    receipt = await forgetting

    with pytest.raises(Forgotten):
        await save
    assert await what_is_there(layers) == NOTHING
    assert (receipt.ok, receipt.writes_overtaken, receipt.writes_left) == (True, 1, 0)
    # What is said afterwards stands.
    await write(all_guarded(layers, tombstones), layer)
    assert (await what_is_there(layers))[layer] == 1


@pytest.mark.parametrize("layer", [layer for layer in METHOD if layer != "user_memory"])
async def test_without_the_guard_a_slow_save_does_come_back(layers, layer):
    gate = Gate()
    held = type(layers)(**vars(layers) | {layer: Slow(getattr(layers, layer), METHOD[layer], gate)})
    save = asyncio.create_task(write(held, layer))
    await gate.reached.wait()
    await forget_user("ann", stores=stores_of(layers))
    gate.open.set()
    await save

    assert (await what_is_there(layers))[layer] == 1


@pytest.mark.parametrize("layer", METHOD)
async def test_a_save_that_outlasts_all_patience_is_undone_when_it_ends_and_the_receipt_says_so(layers, layer):
    tombstones, gate = InMemoryTombstones(), Gate()
    held = type(layers)(**vars(layers) | {layer: Slow(getattr(layers, layer), METHOD[layer], gate)})
    save = asyncio.create_task(write(all_guarded(held, tombstones), layer))
    await gate.reached.wait()
    receipt = await forget_user("ann", stores=stores_of(layers), tombstones=tombstones, patience_s=0.05)
    assert (receipt.ok, receipt.writes_left) == (False, 1)
    gate.open.set()

    with pytest.raises(Forgotten):
        await save
    assert await what_is_there(layers) == NOTHING


async def test_an_archive_that_read_a_session_before_the_forgetting_stores_nothing_after_it(layers):
    tombstones, gate = InMemoryTombstones(), Gate()
    safe = all_guarded(layers, tombstones)
    await plant(layers, "ann")

    async def slowly(turns):
        await gate.passing()
        return f"Asked about {CANARY}."

    saving = asyncio.create_task(
        archive(
            KEY, user_id="ann", sessions=safe.sessions, episodes=safe.episodes, embedder=EMBEDDER, summarizer=slowly
        )
    )
    await gate.reached.wait()
    receipt = await forget_user("ann", stores=stores_of(layers), tombstones=tombstones)
    assert receipt.ok  # it waits for no summary
    await safe.sessions.append(KEY, SAID)  # the user is back, in the same session
    gate.open.set()

    with pytest.raises(Forgotten):
        await saving
    assert await what_is_there(layers) == NOTHING | {"sessions": 1}


async def test_a_fold_whose_summary_is_slow_brings_no_turn_back(layers):
    tombstones, gate = InMemoryTombstones(), Gate()

    async def slowly(turns):
        await gate.passing()
        return f"Asked about {CANARY}."

    layers.sessions.summarizer = slowly
    sessions = guarded(layers.sessions, tombstones)
    for _ in range(40):
        await sessions.append(KEY, SAID)
    folding = asyncio.create_task(sessions.append(KEY, SAID))
    await gate.reached.wait()
    forgetting = asyncio.create_task(forget_user("ann", stores=stores_of(layers), tombstones=tombstones))
    await asyncio.sleep(0.05)
    gate.open.set()
    await asyncio.gather(forgetting, folding, return_exceptions=True)

    assert await layers.sessions.get_history(KEY) == []
    assert await what_is_there(layers) == NOTHING


async def test_an_answer_that_a_forgetting_overtakes_is_not_stored_and_the_next_question_is(layers):
    tombstones, gate = InMemoryTombstones(), Gate()
    safe = all_guarded(layers, tombstones)

    async def model(prompt):
        if not gate.open.is_set():
            await gate.passing()
        return f"It is {CANARY}."

    chat = Chat(
        "ann",
        "s1",
        sessions=safe.sessions,
        preferences=safe.preferences,
        episodes=safe.episodes,
        embedder=EMBEDDER,
        model=model,
    )
    asking = asyncio.create_task(chat.say(SAID.content))
    await gate.reached.wait()
    receipt = await forget_user("ann", stores=stores_of(layers), tombstones=tombstones)
    gate.open.set()

    with pytest.raises(Forgotten):
        await asking
    assert receipt.ok
    assert await what_is_there(layers) == NOTHING
    await chat.say("Hello again.")
    assert len(await chat.history()) == 2


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "already taken from the queue"])
async def test_a_queued_job_writes_nothing_after_the_forgetting(layers, taken):
    tombstones, gate = InMemoryTombstones(), Gate()
    safe, jobs = all_guarded(layers, tombstones), Jobs(tombstones)

    async def work(text: str) -> None:
        if taken:
            await gate.passing()
        await safe.preferences.set("ann", "order", text)
        await safe.user_memory.put("ann", "case", text, {})

    jobs.put("ann", CANARY, work)
    assert await jobs.find("ann", CANARY) == 1
    running = asyncio.create_task(jobs.run()) if taken else None
    if taken:
        await gate.reached.wait()
    forgetting = asyncio.create_task(forget_user("ann", stores=stores_of(layers, queue=jobs), tombstones=tombstones))
    await asyncio.sleep(0.05)
    gate.open.set()
    receipt = await forgetting

    assert receipt.ok
    assert (await running if running else await jobs.run()) is False
    assert await what_is_there(layers) == NOTHING


async def test_a_job_that_was_queued_elsewhere_is_judged_by_when_it_was(layers):
    clock = ManualClock(system_clock())
    tombstones = InMemoryTombstones(clock=clock)
    safe, queued = all_guarded(layers, tombstones), clock()
    clock.advance(seconds=1)
    await forget_user("ann", stores=stores_of(layers), tombstones=tombstones)
    clock.advance(seconds=1)

    with pytest.raises(Forgotten):
        async with writing(tombstones, "ann", began_at=queued):
            await safe.preferences.set("ann", "order", CANARY)
    async with writing(tombstones, "ann", began_at=clock()):
        await safe.preferences.set("ann", "order", "new")
    assert await layers.preferences.all("ann") == {"order": "new"}


# The registry and the receipt, in memory


def test_a_receipt_counts_one_text_and_two_writes_as_people_do():
    at = system_clock()
    one = Receipt("user_x", at, at, canaries=1, writes_overtaken=2, writes_left=1, lines=())
    said = one.to_text()
    assert "1 given text was looked for" in said
    assert "2 writes were under way" in said
    assert "1 write was not over yet" in said
    assert "was" not in Receipt("user_x", at, at, 0, 0, 0, ()).to_text().partition("Forgotten")[2]


class Broken:
    name = "broken"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def forget(self, user_id: str) -> int:
        raise self.error

    async def find(self, user_id: str, canary: str) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError(f"at {CANARY}"), "start its server"),
        (KeyError(CANARY), "forget again"),
        (ImportError("x"), "doctor"),
    ],
)
async def test_one_store_that_fails_keeps_no_other_from_forgetting_and_the_receipt_says_what_to_do(error, words):
    preferences, audit = InMemoryPreferenceStore(), AuditLog()
    await preferences.set("ann", "order", CANARY)
    late = InMemorySessionStore()
    await late.append(KEY, SAID)
    stores = Stores(preferences=preferences, queue=Broken(error), others=[Broken(error)])
    receipt = await forget_user("ann", stores=stores, audit=audit)

    assert await preferences.all("ann") == {}
    assert not receipt.ok
    assert [line.ok for line in receipt.lines] == [False, True, False]
    assert words in receipt.lines[0].what_to_do
    assert audit.entries()[0].what == "forget_incomplete"
    for text in (receipt.to_json(), receipt.to_html(), receipt.to_text()):
        assert type(error).__name__ in text
        assert CANARY not in text


async def test_a_store_that_lies_is_found_out():
    class Liar:
        name = "liar"

        async def forget(self, user_id: str) -> int:
            return 3

        async def find(self, user_id: str, canary: str) -> int:
            return 1 if canary == CANARY else 2

    receipt = await forget_user("ann", stores=Stores(others=[Liar()]), canaries=[CANARY])

    assert not receipt.ok
    assert (receipt.lines[0].left, receipt.lines[0].canaries_left) == (2, 1)
    assert "Not everything" in receipt.to_html()


async def test_a_user_whose_id_begins_like_another_keeps_everything():
    sessions, preferences = InMemorySessionStore(), InMemoryPreferenceStore()
    for user in ("ann", "ann/b", "anna", "an"):
        chat = Chat(user, "s1", sessions=sessions, preferences=preferences)
        await chat.say("I am called Kim.")
    receipt = await forget_user("ann", stores=Stores(sessions=sessions, preferences=preferences))

    assert receipt.lines[0].erased == 1
    assert {row.session_id for row in await sessions.list_sessions()} == {"ann%2Fb/s1", "anna/s1", "an/s1"}


async def test_with_a_clock_that_stands_still_or_goes_back_what_is_said_afterwards_stands():
    clock = ManualClock()
    tombstones, store = InMemoryTombstones(clock=clock), InMemorySessionStore()
    sessions, preferences = guarded(store, tombstones), guarded(InMemoryPreferenceStore(), tombstones)
    chat = Chat("ann", "s1", sessions=sessions, preferences=preferences)
    await chat.say("My name is Ann.")
    for hours in (0, -5):
        await forget_user("ann", stores=Stores(sessions=sessions, preferences=preferences), tombstones=tombstones)
        clock.advance(hours=hours)
        await chat.say("My name is Ann.")
        assert len(await chat.history()) == 2


async def test_a_conversation_goes_on_after_somebody_else_forgot_its_user():
    tombstones = InMemoryTombstones()
    sessions, preferences = (
        guarded(InMemorySessionStore(), tombstones),
        guarded(InMemoryPreferenceStore(), tombstones),
    )
    chat = Chat("ann", "s1", sessions=sessions, preferences=preferences)
    await chat.say("My name is Ann.")
    stores = Stores(sessions=sessions, preferences=preferences)
    await asyncio.create_task(forget_user("ann", stores=stores, tombstones=tombstones))
    with pytest.raises(Forgotten):  # what this task has read before
        await preferences.set("ann", "name", "Ann")
    await chat.say("My name is Kim.")

    assert len(await chat.history()) == 2
    assert "Kim" in str(await preferences.all("ann"))


async def test_an_audit_log_that_cant_be_written_costs_nobody_the_receipt(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    (tmp_path / "audit.jsonl").write_text("hello\n")
    receipt = await forget_user("ann", stores=Stores(preferences=InMemoryPreferenceStore()), audit=log)

    assert not receipt.ok
    assert (receipt.lines[-1].store, receipt.lines[-1].error) == ("audit", "Tampered")


async def test_a_forgetting_that_fails_or_is_cancelled_opens_the_door_again():
    tombstones, gate = InMemoryTombstones(), Gate()

    class Hanging:
        name = "hanging"

        async def forget(self, user_id: str) -> int:
            await gate.passing()
            return 0

        async def find(self, user_id: str, canary: str) -> None:
            return None

    preferences = guarded(InMemoryPreferenceStore(), tombstones)
    forgetting = asyncio.create_task(forget_user("ann", stores=Stores(others=[Hanging()]), tombstones=tombstones))
    await gate.reached.wait()
    with pytest.raises(Forgotten, match="is being forgotten"):
        await preferences.set("ann", "a", "b")
    assert await preferences.set("bob", "a", "b")
    forgetting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forgetting
    assert await preferences.set("ann", "a", "b")


async def test_two_forgettings_at_once_keep_the_door_shut_until_both_are_done():
    tombstones, gate = InMemoryTombstones(), Gate()
    preferences = InMemoryPreferenceStore()
    slow = Slow(preferences, "forget", gate)
    first = asyncio.create_task(forget_user("ann", stores=Stores(preferences=slow), tombstones=tombstones))
    await gate.reached.wait()
    await forget_user("ann", stores=Stores(preferences=preferences), tombstones=tombstones)
    with pytest.raises(Forgotten, match="is being forgotten"):
        await guarded(preferences, tombstones).set("ann", "a", "b")
    gate.open.set()
    assert (await first).ok
    assert await guarded(preferences, tombstones).set("ann", "a", "b")


async def test_who_is_writing_for_a_user_cant_forget_them_and_wait_for_itself():
    tombstones = InMemoryTombstones()
    async with writing(tombstones, "ann"):
        with pytest.raises(RuntimeError, match="wait for itself"):
            await forget_user("ann", stores=Stores(), tombstones=tombstones)


async def test_the_registry_holds_no_raw_id_frees_what_it_needs_no_more_and_purges_its_notes():
    clock = ManualClock()
    tombstones = InMemoryTombstones(clock=clock)
    preferences = guarded(InMemoryPreferenceStore(), tombstones)
    await preferences.set("ann", "a", "b")
    assert tombstones._users == {}
    await forget_user("ann", stores=Stores(preferences=preferences), tombstones=tombstones)
    assert list(tombstones._users) != []
    assert "ann" not in str(tombstones._users)
    clock.advance(days=7)
    assert await tombstones.purge(clock()) == 1
    assert tombstones._users == {}


async def test_what_the_writer_raises_comes_through():
    tombstones = InMemoryTombstones()
    with pytest.raises(ValueError, match="user_id must be"):
        await guarded(InMemoryPreferenceStore(), tombstones).set(" ", "a", "b")
    with pytest.raises(ValueError, match="turn must be"):
        await guarded(InMemorySessionStore(), tombstones).append(KEY, "hello")
    assert tombstones._users == {}


@pytest.mark.parametrize("user", ["", " ", None, 7])
async def test_no_user_is_nobody_to_forget(user):
    with pytest.raises(ValueError, match="user_id must be"):
        await forget_user(user, stores=Stores(preferences=InMemoryPreferenceStore()))


async def test_the_receipt_survives_json_and_its_page_escapes_what_stands_in_it():
    class Odd:
        name = "<script>alert(1)</script>"

        async def forget(self, user_id: str) -> int:
            return 1

        async def find(self, user_id: str, canary: str) -> None:
            return None

    receipt = await forget_user("ann", stores=Stores(others=[Odd()]), canaries=["x"])

    assert Receipt.from_json(receipt.to_json()) == receipt
    assert json.loads(receipt.to_json())["ok"] is True
    assert "<script>" not in receipt.to_html()
    assert "can&#x27;t be searched" in receipt.to_html()


@pytest.mark.parametrize("how", ["user_memory", "cache"])
async def test_a_cache_that_could_not_be_told_is_named_in_the_receipt_with_when_its_copies_are_gone(
    embedded_valkey, free_tcp_port, how
):
    truth, prefix, where = InMemoryUserMemoryStore(), f"{uuid4().hex}:", {"url": embedded_valkey}
    clients = ClientPerLoop(embedded_valkey)
    here = clients.here
    clients.here = lambda: (dead.here if where["url"] is None else here)()
    dead = ClientPerLoop(f"redis://127.0.0.1:{free_tcp_port}")
    async with CachedUserMemoryStore(truth, clients, prefix=prefix, limit_s=5, ttl_s=1_800, pause_s=0.001) as store:
        await store.put("ann", "case", CANARY, {"said": CANARY})
        await store.find("ann")
        where["url"] = None  # Redis is gone
        stores = Stores(**{how: guarded(store, InMemoryTombstones())})
        store._calls._limit_s = 0.2
        receipt = await forget_user("ann", stores=stores)

        assert not receipt.ok
        assert receipt.lines[-1].store == "copies in Redis"
        assert "expire, at most 1,800 s after they were read" in receipt.to_text()
        assert "expire, at most 1,800 s" in receipt.to_html()
        assert await store.find("ann") == []
        assert await hunt_redis(embedded_valkey, [CANARY], match=f"{prefix}*") == {"keys": 1}

        where["url"] = embedded_valkey  # and back: forget again, as the receipt says
        store._calls._limit_s = 5
        await asyncio.sleep(0.01)
        assert (await forget_user("ann", stores=stores)).ok
        assert await hunt_redis(embedded_valkey, [CANARY], match=f"{prefix}*") == {}
    await dead.close()
