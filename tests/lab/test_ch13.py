"""Chapter 13: what its hunts find, and that the run gives what the prose says."""

from __future__ import annotations

import json
from datetime import timedelta

import pandas as pd
import psycopg
import pytest
from redis import Redis

from tests.engines.servers import missing
from tri_memory.blocking_calls import run
from tri_memory.lab.chapters.ch13 import answers, counting, days, failing, files, house, overtaken, panel, plots, timing
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import InMemoryTombstones

KEY = "0123456789abcdef" * 4


def left_in(postgres_url, redis_url):
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'lesson\\_%'").fetchall()
    with Redis.from_url(redis_url) as client:
        return [*tables, *client.scan_iter(match="lesson:*")]


# Deleted, and forgotten


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_canary_is_everywhere_at_first_and_each_way_to_delete_leaves_places(
    embedded_valkey, embedded_postgres, language
):
    one = await failing.deleted(embedded_valkey, embedded_postgres, language)
    assert tuple(one.found.index) == house.PLACES
    assert (one.found[failing.BEFORE] > 0).all(), "a hunt that found nothing before would prove nothing afterwards"
    gone = one.found[failing.ONE] < one.found[failing.BEFORE]
    assert list(gone[gone].index) == ["records"]
    empty = one.found[failing.THREE] == 0
    assert set(empty[empty].index) == {"sessions", "records", "preferences", "episodes"}
    night = one.found[failing.NIGHT]
    assert (night["queue"], night["preferences"]) == (0, 1), "the job wrote what everybody thought was gone"
    assert one.canary in one.still[0], "the record was deleted, and the cache still answers"
    assert left_in(embedded_postgres, embedded_valkey) == []


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_forgetting_leaves_the_hidden_record_alone_and_the_purge_nothing(
    embedded_valkey, embedded_postgres, language
):
    one = await failing.forgotten(embedded_valkey, embedded_postgres, language)
    before = one.found[failing.BEFORE]
    assert before["log"] == 0
    assert (before.drop("log") > 0).all()
    after = one.found[failing.FORGOTTEN]
    assert list(after[after > 0].index) == ["records"]
    assert (one.found[failing.PURGED] == 0).all()
    assert (one.found[failing.NAME] > 0).pipe(lambda found: list(found[found].index)) == ["log"]
    assert one.changed == "entry 1 of the log is not what was written"
    assert one.receipt.ok
    assert (one.again.ok, one.again.erased) == (True, 0)
    assert [entry.what for entry in one.audit] == ["forget", "forget"]
    user = house.SHOPPERS[language][0]
    for text in (one.receipt.to_html(), *(entry.to_json() for entry in one.audit)):
        assert user not in text
    assert left_in(embedded_postgres, embedded_valkey) == []


async def test_the_masked_log_has_no_id_and_still_has_the_name(embedded_valkey, embedded_postgres):
    one = await failing.forgotten(embedded_valkey, embedded_postgres, "zh")
    said = json.loads(one.log)
    assert "林晓蓓" in said["said"]
    assert "zh-shop-01" not in one.log
    assert "ZB-" not in one.log


# Pseudonyms and consent


def test_counting_finds_what_is_behind_a_hash_and_nothing_behind_a_keyed_one():
    found = counting.count_through(counting.plain("BX-2207"), counting.CASES, counting.plain)
    assert (found.found, found.tried) == ("BX-2207", 2_208)
    assert counting.count_through(counting.salted("BX-2207"), counting.CASES, counting.salted).found == "BX-2207"
    mobile = counting.count_through(counting.plain("13800094417"), counting.mobiles("138000"), counting.plain)
    assert (mobile.found, mobile.tried) == ("13800094417", 94_418)
    assert counting.all_mobiles_s(mobile) == pytest.approx(1e8 * mobile.seconds / mobile.tried)
    stored = Pseudonyms(KEY).of("BX-2207", user_id="ann")
    guess = Pseudonyms(KEY[::-1])
    keyed = counting.count_through(stored, counting.CASES, lambda raw: guess.of(raw, user_id="ann"))
    assert (keyed.found, keyed.tried) == (None, 10_000)
    assert str(keyed).startswith("no number fits")


def test_only_the_first_two_answers_of_each_language_are_a_yes():
    for language in ("en", "zh"):
        judged = answers.judged(language)
        taken = dict(zip(judged.answer, judged["taken for"], strict=True))
        assert len(taken) == 9
        assert list(taken.values()) == ["yes", "yes", *["no"] * 7]
        assert all(judged.meaning) == (language == "zh")


def test_a_yes_holds_for_one_case_in_one_session_until_it_is_taken_back():
    story = answers.over_time()
    assert [allowed for _, allowed in story] == [False, True, False, False, False, False]
    assert story[-1][0] == "after trying to ask again: no question comes"


# What was running


async def test_a_summary_that_ends_late_comes_back_unless_there_is_a_registry():
    without, within = [await overtaken.slow_summary(tombstones=each) for each in (None, InMemoryTombstones())]
    assert (without.verified, without.back) == (True, 1), "the receipt was right, and then it was not"
    assert (within.verified, within.back) == (True, 0)
    assert "stored" in without.steps[2]
    assert "refused" in within.steps[2]


async def test_a_job_that_was_taken_comes_back_unless_it_is_judged():
    without, within = [await overtaken.queued_job(judged=each) for each in (False, True)]
    assert (without.verified, without.back) == (True, 1)
    assert (within.verified, within.back) == (True, 0)
    assert without.steps[1:3] == (
        "forget has ended: 0 entries left, 1 job under way, a new write is let in",
        "the job goes on: stored",
    )
    assert within.steps[1:3] == (
        "forget waits: 0 entries left, 1 job under way, a new write is refused",
        "the job goes on: dropped",
    )


# The panel


@pytest.mark.parametrize("text", [panel.START, "BX-220719", 'I\'m allergic to latex, said "Maeve" \\o/', "花生"])
@pytest.mark.parametrize("way", days.WAYS)
def test_before_the_request_a_text_stands_in_all_places_that_can_hold_it(text, way):
    before = panel.at(text, way, 0, days.RAW).found[0]
    nowhere = {place for place, count in before.items() if count == 0}
    assert nowhere == (set() if "BX-" in text else {"graph"})  # a graph holds ids alone


def found(way, day, log=days.RAW, text=panel.START):
    shown = panel.at(text, way, day, log)
    return {place for place, count in shown.last.items() if count > 0}


def test_the_days_after_each_way_to_forget_are_as_the_prose_says():
    hour = {"cache (1 h)", "short context (1 h)"}
    everywhere = set(days.PLACES)
    assert found(days.ONE_TABLE, 0) == everywhere - {"records"}
    three = everywhere - {"sessions", "preferences", "episodes"}
    assert found(days.THREE_LAYERS, 0) == three
    assert found(days.THREE_LAYERS, 1) == three - hour
    assert found(days.THREE_LAYERS, 2) == three - hour - {"queue"} | {"episodes"}
    assert found(days.FORGET, 0) == found(days.FORGET, 10) == {"log"}
    assert found(days.FORGET, 5, days.MASKED) == {"log"}, "the allergy has no shape that a rule could find"
    assert found(days.FORGET, 5, days.MASKED, "BX-220719") == set()


def test_the_record_is_hidden_until_the_purge():
    hidden = [panel.at(panel.START, days.FORGET, day, days.RAW).last["records"] == days.HIDDEN for day in range(11)]
    assert hidden == [True] * days.PURGE_ON + [False] * (11 - days.PURGE_ON)
    assert timedelta(days=days.PURGE_ON) > timedelta(days=7)
    assert "Hidden until the purge: records." in panel.say(panel.at(panel.START, days.FORGET, 3, days.RAW))


def test_the_picture_of_the_panel_names_the_way_the_log_and_what_its_colours_mean():
    figure = panel.draw(panel.at(panel.START, days.FORGET, 10, days.MASKED))
    assert figure.axes[0].get_title(loc="right") == "forget, log ids masked"
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == ["so many entries give it away", "hidden until the purge", "nothing found"]


def test_every_move_of_the_panel_changes_sentence_and_picture_and_no_text_breaks_it():
    its = panel.canary_panel()
    seen = {(its.text, its.png)}
    for day in (0, 1, 7):
        seen.add((its.set(day=day).text, its.png))
    assert len({text for text, _ in seen}) == len({png for _, png in seen}) == 4
    for text in ("   ", "$x^2$ \\alpha", "x" * 500, "😂🥜", "%_'\"; DROP TABLE"):
        its.set(canary=text)
        assert "Error" not in its.text, its.text
    assert panel.say(panel.at(" ", days.FORGET, 3, days.RAW)) == "Nothing to look for yet: type a text."


def test_pieces_are_the_ids_and_what_stands_around_them():
    assert days.pieces_of("订单号BX-220719：我对花生过敏") == [
        "订单号BX-220719：我对花生过敏",
        "BX-220719",
        "我对花生过敏",
    ]
    assert days.pieces_of("BX-220719") == ["BX-220719"]


# Files and times


async def test_files_hold_more_after_forgetting_no_less_after_purging_and_nothing_after_scrubbing():
    on_disk = await files.hunted()
    if on_disk is None:
        missing("embedded", RuntimeError("no embedded servers"))
    assert list(on_disk.columns) == list(files.STEPS)
    said, forgotten, purged, scrubbed = (on_disk[step] for step in files.STEPS)
    assert (said >= files.ENTRIES).all()
    assert forgotten[files.PAGES] > said[files.PAGES]
    assert forgotten[files.WAL] > said[files.WAL]
    assert forgotten[files.AOF] >= said[files.AOF]
    assert purged[files.PAGES] == forgotten[files.PAGES]
    assert purged[files.WAL] > forgotten[files.WAL]
    assert purged[files.AOF] == forgotten[files.AOF] == said[files.AOF]
    assert (scrubbed == 0).all()
    written = {text.get_text() for text in plots.in_files(on_disk).axes[0].texts}
    assert written == {f"{count:,}" for count in on_disk.to_numpy().ravel()}


async def test_without_embedded_servers_the_picture_says_so(monkeypatch):
    def none(prefer):
        class Gone:
            def start(self):
                raise RuntimeError("no")

            def stop(self):
                pass

        return Gone()

    monkeypatch.setattr(files.engines, "postgres", none)
    monkeypatch.setattr(files.engines, "redis", none)
    assert await files.hunted() is None
    assert "no embedded servers" in plots.in_files(None).axes[0].texts[0].get_text()


async def test_every_run_is_timed_and_nothing_stays(embedded_valkey, embedded_postgres, monkeypatch):
    monkeypatch.setattr(timing, "SIZES", (3, timing.CLAIMED))
    monkeypatch.setattr(timing, "OTHERS", (0, 20))
    its = await timing.timed(embedded_valkey, embedded_postgres, repeats=2)
    assert len(its.sizes) == 4 * 2 * 2
    assert len(its.others) == 2 * 2 * 2
    assert (its.sizes.seconds > 0).all()
    left, right = plots.durations(its).axes
    assert left.get_ylabel() == "milliseconds"
    assert left.get_ylim() == right.get_ylim()
    assert left_in(embedded_postgres, embedded_valkey) == []


def made(alone, among):
    sizes = [(engine, timing.CLAIMED, alone) for engine in timing.ENGINES]
    others = [(engine, number, seconds) for engine in timing.ENGINES[1:3] for number, seconds in among.items()]
    return timing.Timed(
        pd.DataFrame(sizes, columns=["engine", "records", "seconds"]),
        pd.DataFrame(others, columns=["engine", "others", "seconds"]),
    )


def test_sentence_and_verdict_of_c18_follow_what_was_measured():
    quick = made(0.05, {0: 0.0004, 1_500: 0.5})
    assert "370 ms an entry" in timing.sentence(quick)
    assert "one session waits 400 µs alone, and 500.0 ms among 1,500 sessions" in timing.sentence(quick)
    assert timing.verdict(quick) == "fails"
    assert timing.verdict(made(45, {0: 45, 1_500: 45})) == "holds"
    one_slow = made(0.05, {0: 0.1, 1_500: 0.1})
    one_slow.sizes.loc[one_slow.sizes.engine == timing.ONE_BY_ONE, "seconds"] = 40.0
    assert timing.verdict(one_slow) == "depends"


def test_the_panel_runs_inside_a_running_loop():
    assert run(days.lived("花生过敏", days.FORGET, days.RAW))[0]["log"] == 1
