"""The exercises of chapter 11: right answers pass, each typical mistake is named."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from itertools import chain

import pytest

from tests.lab.proof import assert_proved, assert_told_on_which_engine
from tri_memory.entity.extract import extract
from tri_memory.entity.rule import Rule, code
from tri_memory.lab.exercises import check

PATTERN = r"(?<![\w-])(?P<what>PK[-_ ]?\d{2}[-_ ]?\d{4})(?![\w-])"


def from_digits(what):
    digits = re.sub(r"\D", "", what)
    return f"PK-{digits[:2]}-{digits[2:]}"


def parcel(pattern=PATTERN, value=from_digits, kind="CASE_ID"):
    def parcel_rule():
        return Rule("parcel", kind, pattern, value, 0.9, ())

    return parcel_rule


def by_slices(what):
    plain = what.upper().translate(dict.fromkeys(map(ord, "-_ "), ""))
    return f"PK-{plain[2:4]}-{plain[4:]}"


def rule_itself_missing():
    return PATTERN


async def cases_one_by_one(store, question, user, since):
    found = [await store.find(user, memory_type="case", entity_ids=[], limit=1)]
    for id in dict.fromkeys(e.value for e in extract(question) if e.kind == "CASE_ID"):
        found.append(await store.find(user, memory_type="case", entity_ids=[id], since=since))
    rows = sorted(chain.from_iterable(found), key=lambda one: one.updated_at, reverse=True)
    return [one.entity_id for one in rows]


async def cases_from_all(store, question, user, since):
    ids = {e.value for e in extract(question)}
    every = await store.find(user, memory_type="case", since=since, limit=1_000)
    return [one.entity_id for one in every if one.entity_id in ids]


def looked_up(ids=None, **other):
    async def cases_named(store, question, user, since):
        wanted = {e.value for e in extract(question) if e.kind == "CASE_ID"} if ids is None else ids(question)
        given = {"memory_type": "case", "entity_ids": wanted, "since": since, "limit": max(1, len(wanted))} | other
        return [one.entity_id for one in await store.find(user, **given)]

    return cases_named


async def cases_else_the_newest(store, question, user, since):
    found = await looked_up()(store, question, user, since)
    if found or not extract(question):
        return found
    return [one.entity_id for one in await store.find(user, memory_type="case", since=since, limit=3)]


async def cases_all_where_none_is_named(store, question, user, since):
    if extract(question):
        return await looked_up()(store, question, user, since)
    return [one.entity_id for one in await store.find(user, memory_type="case", since=since)]


async def cases_before_the_store(store, question, user, since):
    if not any(e.kind == "CASE_ID" for e in extract(question)):
        return []
    return await looked_up()(store, question, user, since)


async def cases_oldest_first(store, question, user, since):
    return (await looked_up()(store, question, user, since))[::-1]


async def cases_as_records(store, question, user, since):
    ids = [e.value for e in extract(question) if e.kind == "CASE_ID"]
    return await store.find(user, memory_type="case", entity_ids=ids, since=since)


def days_by_combine(graph, user, now, days=7):
    since = datetime.combine(now.date() - timedelta(days=days - 1), time.min, tzinfo=now.tzinfo)
    return [case.value for case in graph.cases_of(since=since, user_id=user)]


def days_by_dates(graph, user, now, days=7):
    first = now.date() - timedelta(days=days - 1)
    from tri_memory.entity.graph import user_node

    links = graph.neighbours(user_node(user), user_id=user)
    cases = [link for link in links if link.node.kind == "CASE_ID"]
    return [link.node.value for link in cases if link.last_at.astimezone(now.tzinfo).date() >= first]


def since(moment):
    def recent_cases(graph, user, now, days=7):
        return [case.value for case in graph.cases_of(since=moment(now, days), user_id=user)]

    return recent_cases


def midnight(moment):
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def days_in_hours(graph, user, now, days=7):
    return since(lambda now, days: now - timedelta(days=days))(graph, user, now, days)


def days_in_utc(graph, user, now, days=7):
    return since(lambda now, days: midnight(now.astimezone(UTC)) - timedelta(days=days - 1))(graph, user, now, days)


def days_one_too_many(graph, user, now, days=7):
    return since(lambda now, days: midnight(now) - timedelta(days=days))(graph, user, now, days)


def days_all(graph, user, now, days=7):
    return [case.value for case in graph.cases_of(user_id=user)]


def days_with_devices(graph, user, now, days=7):
    return sorted(node.value for node in graph.of(user) if node.kind != "PERSON_ID")


def days_sorted(graph, user, now, days=7):
    return sorted(days_by_combine(graph, user, now, days))


def days_as_nodes(graph, user, now, days=7):
    return graph.cases_of(user_id=user)


def days_of_another(graph, user, now, days=7):
    return [*days_by_combine(graph, user, now, days), *days_by_combine(graph, "bob", now, days)]


def test_exercise_11_1_is_proved():
    assert_proved(
        "11-1",
        right=[parcel(value=by_slices), parcel(PATTERN.replace("[-_ ]?", r"[-_\s]{0,1}"))],
        wrong={
            rule_itself_missing: "It should return a Rule",
            parcel(kind="DEVICE_ID"): "kind CASE_ID; got DEVICE_ID",
            parcel(value="{what}"): "The value is in small letters",
            parcel(value=code): "Not every spelling has the same value",
            parcel(value="PK"): "The value of “",
            parcel(PATTERN.replace(r"(?<![\w-])", "")): "APK-26-0417 is no parcel",
            parcel(PATTERN.replace(r"(?![\w-])", "")): "PK-26-04178 is no parcel",
            parcel(PATTERN.replace("(?<!", r"(?:parcel |包裹| )(?<!")): "and the rule doesn't find it",
            parcel(PATTERN.replace("(?P<what>PK", "PK(?P<what>")): "The group `what` should be the id alone",
        },
    )


@pytest.mark.parametrize("left_out", ["-", "_", " "])
def test_a_parcel_rule_that_misses_a_spelling_is_told_which(left_out):
    verdict = check("11-1", parcel(PATTERN.replace("[-_ ]?", f"[{'-_ '.replace(left_out, '')}]?")))
    assert not verdict.passed
    assert f"PK{left_out}".lower() in verdict.message.lower()


def test_exercise_11_2_is_proved():
    assert_proved(
        "11-2",
        right=[cases_one_by_one, cases_from_all],
        wrong={
            looked_up(lambda question: [e.text for e in extract(question)]): "For “订单号",
            looked_up(lambda question: [e.value for e in extract(question)], memory_type=None): "PUMP-17 is a device",
            looked_up(memory_type=None, limit=100): "A device with the same id came along",
            looked_up(since=None): "was last stated before `since`",
            looked_up(limit=20): "25 cases are named, and 20 come back",
            cases_else_the_newest: "For a case older than `since`",
            cases_all_where_none_is_named: "The question names no case, and",
            cases_before_the_store: "A blank user id is no user",
            cases_oldest_first: "The right cases in the wrong order",
            cases_as_records: "It should return a list of ids",
        },
    )


def test_a_lookup_that_finds_another_users_case_is_told_so():
    async def what_is_no_old_case(store, question, user, since):
        ids = [e.value for e in extract(question) if e.kind == "CASE_ID"]
        old = await looked_up(since=None)(store, question, user, since)
        return await looked_up()(store, question, user, since) or [id for id in ids if id not in old]

    verdict = check("11-2", what_is_no_old_case)
    assert not verdict.passed
    assert "is another user's case, and it was found" in verdict.message


def test_a_lookup_that_falls_back_to_the_newest_is_told_that_nobody_asked_for_them():
    async def only_for_unknown_ids(store, question, user, since):
        found = await looked_up()(store, question, user, since)
        known = await looked_up(since=None)(store, question, user, since)
        if found or known or not extract(question):
            return found
        return [one.entity_id for one in await store.find(user, memory_type="case", since=since, limit=3)]

    verdict = check("11-2", only_for_unknown_ids)
    assert not verdict.passed
    assert "is another user's id: nothing is found" in verdict.message


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(store, question, user, since):
        found = await looked_up()(store, question, user, since)
        return found if type(store).__name__ == "InMemoryUserMemoryStore" else found[1:]

    assert_told_on_which_engine("11-2", right_in_memory)


def test_exercise_11_3_is_proved():
    assert_proved(
        "11-3",
        right=[days_by_combine, days_by_dates],
        wrong={
            days_in_hours: "hours back. Days begin at midnight",
            days_in_utc: "by the calendar of the zone that `now` is in",
            days_one_too_many: "One day too many",
            days_with_devices: "Only cases belong here, and PUMP-17 is none",
            days_sorted: "but the last named comes first",
            days_all: "All the cases there are",
            days_as_nodes: "It should return a list of ids",
            days_of_another: "BX-9999 is another user's case",
        },
    )
