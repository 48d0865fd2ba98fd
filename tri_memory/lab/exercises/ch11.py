"""Chapter 11: a rule for an id, a lookup on every engine, and the cases of the last days out of the graph."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone

from tri_memory.entity.extract import Entity, extract
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.rule import Rule
from tri_memory.lab.exercises.ch11_everywhere import everywhere
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test

AROUND = ("Where is {}?", "包裹{}到了吗", "PARCEL {}, please", "({})", "{}", "我的是{}。", "{}: still not here")
NEAR = ("PK-26-041", "PK-26-04178", "PK-2-0417", "PK-261-0417", "APK-26-0417", "PK-26-0417B", "PK-26-0417-2", "PK 26")


@exercise(
    "11-1",
    "A rule for parcels",
    dots=1,
    minutes=12,
    hints=(
        "The pattern needs a group (?P<what>…). Between the three parts there is a hyphen, a space, an underscore or "
        "nothing: [-_ ]?",
        "Nothing may go on before or after: (?<![\\w-]) in front, (?![\\w-]) behind. A Chinese sign is no \\w here.",
        "The value is a function of what was found: take its six digits, re.sub(r'\\D', '', what), and write "
        "f'PK-{digits[:2]}-{digits[2:]}'.",
    ),
)
def parcel_rule(function: Callable[[], Rule], rng: random.Random) -> None:
    rule = function()
    if not isinstance(rule, Rule):
        raise Wrong(f"It should return a Rule; it returned a {type(rule).__name__}.")
    if rule.kind != "CASE_ID":
        raise Wrong(f"A parcel is an affair: kind CASE_ID; got {rule.kind}.")
    for _ in range(60):
        year, number = f"{rng.randrange(20, 30)}", f"{rng.randrange(10_000):04}"
        for spelled in _spellings(year, number):
            _judge_spelling(rule, rng.choice(AROUND).format(spelled), spelled, f"PK-{year}-{number}")
    for near in NEAR:
        text = rng.choice(AROUND[:1] + AROUND[2:5]).format(near)
        if found := _found(rule, text):
            raise Wrong(f"{near} is no parcel, and the rule finds {found[0].text} in “{text}”.")


def _spellings(year: str, number: str) -> list[str]:
    usual = f"PK-{year}-{number}"
    wide = usual.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    joined = [f"PK{year}{number}", f"pk{year}-{number}"]
    return [usual, usual.lower(), usual.replace("-", " "), usual.replace("-", "_"), *joined, wide]


def _found(rule: Rule, text: str) -> list[Entity]:
    return extract(text, (rule,))


def _judge_spelling(rule: Rule, text: str, spelled: str, value: str) -> None:
    found = _found(rule, text)
    if not found:
        raise Wrong(f"“{spelled}” is a parcel, and the rule doesn't find it in “{text}”.")
    if len(found) > 1:
        raise Wrong(f"One parcel in “{text}”, and {len(found)} found.")
    if len(found[0].text) != len(spelled):
        raise Wrong(f"The group `what` should be the id alone: “{spelled}”; it is “{found[0].text}”.")
    got = found[0].value
    if got == value:
        return
    if got == got.lower() and re.search("[a-z]", got):
        raise Wrong(f"The value is in small letters: {got!r} for “{spelled}”. It should be {value!r}.")
    if re.sub(r"\W", "", got.upper()) == re.sub(r"\W", "", value):
        raise Wrong(f"Not every spelling has the same value: “{spelled}” gives {got!r} instead of {value!r}.")
    raise Wrong(f"The value of “{spelled}” should be {value!r}; it is {got!r}.")


@exercise(
    "11-2",
    "A lookup with a scope",
    dots=2,
    minutes=15,
    hints=(
        "extract(question) gives entities. Of these the CASE_IDs count, and of each its `value`, not its `text`.",
        "store.find(user, memory_type='case', entity_ids=…, since=…) does the rest. An empty set of ids finds "
        "nothing, and the store refuses a blank user in any case.",
        "ids = {e.value for e in extract(question) if e.kind == 'CASE_ID'}; found = await store.find(user, "
        "memory_type='case', entity_ids=ids, since=since, limit=max(1, len(ids))); then the entity_id of each.",
    ),
)
def cases_named(function: Callable[..., Awaitable[list[str]]], rng: random.Random) -> None:
    everywhere(function, rng)


@exercise(
    "11-3",
    "The cases of the last days",
    dots=3,
    minutes=12,
    hints=(
        "The days are those of the calendar where `now` is. With days=1 the first moment is today's midnight there.",
        "Midnight of the first day: take now, go back days - 1 days, and set hour, minute, second, microsecond to 0. "
        "The zone of `now` stays.",
        "since = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0); then "
        "graph.cases_of(since=since, user_id=user).",
    ),
)
def recent_cases(function: Callable[[EntityGraph, str, datetime, int], list[str]], rng: random.Random) -> None:
    for hours in (8, -5, 5.5, 0, 13, rng.choice((-8, 9))):
        zone = timezone(timedelta(hours=hours))
        hour = rng.choice((0, 6, 12, 19, 23))
        now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), hour, rng.randrange(1, 59), tzinfo=zone)
        for days in (7, 1):
            _judge_days(function, now, days, rng)


def _judge_days(
    function: Callable[[EntityGraph, str, datetime, int], list[str]], now: datetime, days: int, rng: random.Random
) -> None:
    graph, named = EntityGraph(), {}
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    utc = now.astimezone(UTC).replace(hour=0, minute=0) - timedelta(days=days - 1)
    edges = (midnight, midnight - timedelta(days=1), now - timedelta(days=days), utc)  # the right one, and mistakes
    moments = [edge - timedelta(minutes=before) for edge in edges for before in (0, 1)] + [now]
    moments += [now - timedelta(hours=hours) for hours in rng.sample(range(1, 24 * (days + 2)), 8)]
    moments = [moment for moment in dict.fromkeys(moments) if moment <= now]
    numbers = rng.sample(range(2_000, 3_000), len(moments))
    for number, at in zip(numbers, moments, strict=True):
        named[f"BX-{number}"] = at
        graph.add([*_entities(f"BX-{number}"), *extract("device PUMP-17")], at, user_id="ann")
    graph.add(_entities("BX-9999"), now, user_id="bob")
    expected = sorted((id for id, at in named.items() if at >= midnight), key=lambda id: (-named[id].timestamp(), id))
    got = function(graph, "ann", now, days)
    if got == expected:
        return
    what = f"(now {now.isoformat()}, days={days})"
    if not isinstance(got, list) or not all(isinstance(one, str) for one in got):
        raise Wrong(f"It should return a list of ids, such as ['BX-2207']; it returned {str(got)[:80]}. {what}")
    _name_the_mistake(got, expected, named, midnight, what, now, days)


def _name_the_mistake(
    got: list[str],
    expected: list[str],
    named: dict[str, datetime],
    midnight: datetime,
    what: str,
    now: datetime,
    days: int,
) -> None:
    if "BX-9999" in got:
        raise Wrong(f"BX-9999 is another user's case. {what}")
    if not set(got) <= named.keys():
        raise Wrong(f"Only cases belong here, and {sorted(set(got) - named.keys())[0]} is none. {what}")
    if set(got) == set(expected):
        raise Wrong(f"The right cases, but the last named comes first. {what}")

    def since(moment: datetime) -> set[str]:
        return {id for id, at in named.items() if at >= moment}

    if set(got) == named.keys():
        raise Wrong(f"All the cases there are; those before {midnight.isoformat()} are older. {what}")
    if set(got) == since(now - timedelta(days=days)):
        raise Wrong(f"This counts {24 * days} hours back. Days begin at midnight: {midnight.isoformat()}. {what}")
    if set(got) == since(midnight - timedelta(days=1)):
        raise Wrong(f"One day too many: today is one of the {days}. {what}")
    wrong = sorted(set(got) ^ set(expected))[0]
    raise Wrong(
        f"{'Too many' if wrong in got else 'Too few'}: {wrong} was named at {named[wrong].isoformat()}, and the "
        f"days begin at {midnight.isoformat()}, by the calendar of the zone that `now` is in. {what}"
    )


def _entities(id: str) -> list[Entity]:
    return extract(f"order {id}")


self_test(
    "11",
    Question(
        "11-q1",
        "A user has 200 cases and asks about BX-2207. Why is the nearest episode so often another case?",
        (
            Option("The table is too large for an exact search.", "All 200 were compared. None was overlooked."),
            Option(
                "Two sentences about two returns are about the same thing, and the id is a small part of each.",
                "The vector is of the whole sentence. What the sentences share outweighs four digits.",
                right=True,
            ),
            Option("The embedder doesn't know this shop's ids.", "It would have to tell apart what it has seen, too."),
        ),
    ),
    Question(
        "11-q2",
        "“Then there is BX-2270.” What does the confidence of 0.6 say?",
        (
            Option("It is right in six of ten times.", "It is a rank among rules, set by hand, and no probability."),
            Option(
                "No word says of what kind the id is; a rule that knows better would win.",
                "With “order” or “serial” before it, a surer rule finds the same span.",
                right=True,
            ),
            Option("Four of ten characters are doubtful.", "It belongs to the rule, not to the text."),
        ),
    ),
    Question(
        "11-q3",
        "The user mistypes one digit. Which answer does the least harm?",
        (
            Option("The nearest case.", "It is hardly ever the one that was meant, and comes without a warning."),
            Option("Nothing, and a question back.", "Nobody acts on a wrong case. The user looks again.", right=True),
            Option("The last five cases.", "Four of them at least are noise, and the model may pick any."),
        ),
    ),
    Question(
        "11-q4",
        "Why is there no index entry for an inactive record in the index _recent?",
        (
            Option("Postgres can't index a false value.", "It can. This index was made with WHERE is_active."),
            Option(
                "It is a partial index: only rows that a recall may give are in it.",
                "It stays small, and no row has to be thrown away after it was read.",
                right=True,
            ),
            Option("Inactive records are deleted.", "They stay until `purge`."),
        ),
    ),
    Question(
        "11-q5",
        "Somebody proposes to store nothing but ids and preferences. What do you ask?",
        model_answer="Which questions will come. What is needed later is not known when the text is dropped. In the "
        "kit, nearly every question for an id can still be answered, and hardly any of the others. Then: what does the "
        "saving buy? Text is cheap beside embeddings and model calls. Privacy may be a better reason to drop it.",
    ),
)
