"""The panel of chapter 05: two weeks of sessions, what is alive, and what an index lists that nobody, somebody, or the
store itself cleans. In simulated time; the tests hold it against a real server."""

from __future__ import annotations

import random
from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_memory.lab.panel import Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, axes

DAYS = 14
TURNS = 6
SLACK_H = 60 / 3600  # the store's own margin: an entry may be a minute older than the longest life


@dataclass(frozen=True)
class Event:
    """At `hour` somebody appends to a session, or (session None) opens the list of sessions."""

    hour: float
    session: int | None


@dataclass(frozen=True)
class Moment:
    """After an event: sessions alive, and entries in the index by who cleans it."""

    hour: float
    alive: int
    nobody: int
    by_list: int
    by_store: int


@dataclass(frozen=True)
class Course:
    """`returns` appends to a session that had begun; `too_late` of them found it expired."""

    moments: tuple[Moment, ...]
    returns: int
    too_late: int
    ttl_h: float


def schedule(gap_h: float, sessions_a_day: int, list_every_h: float, days: int = DAYS, seed: int = 5) -> list[Event]:
    """Sessions begin evenly; each has six appends with exponential pauses of `gap_h` hours on average."""
    pauses = random.Random(seed)
    events = []
    for session in range(days * sessions_a_day):
        hour = session * 24 / sessions_a_day
        for _ in range(TURNS):
            events.append(Event(hour, session))
            hour += pauses.expovariate(1 / gap_h)
    events += [Event(n * list_every_h, None) for n in range(1, int(days * 24 / list_every_h) + 1)]
    return sorted((event for event in events if event.hour <= days * 24), key=lambda event: event.hour)


def course(
    ttl_h: float, gap_h: float, sessions_a_day: int, list_every_h: float, days: int = DAYS, seed: int = 5
) -> Course:
    """The panel's model. All times in hours."""
    last: dict[int, float] = {}
    by_list: set[int] = set()
    by_store: set[int] = set()
    moments = []
    returns = too_late = 0
    touched = 0.0
    for event in schedule(gap_h, sessions_a_day, list_every_h, days, seed):
        now, session = event.hour, event.session
        if now - touched >= ttl_h:
            by_store = set()  # the index has a TTL too
        if session is None:
            alive = {one for one, at in last.items() if now - at < ttl_h}
            by_list, by_store = by_list & alive, by_store & alive
        else:
            returns += session in last
            too_late += session in last and now - last[session] >= ttl_h
            is_new = session not in by_store
            last[session] = touched = now
            by_list.add(session)
            by_store.add(session)
            if is_new:
                by_store = {one for one in by_store if now - last[one] <= ttl_h + SLACK_H}
        alive_now = sum(now - at < ttl_h for at in last.values())
        moments.append(Moment(now, alive_now, len(last), len(by_list), len(by_store)))
    return Course(tuple(moments), returns, too_late, ttl_h)


def say(found: Course) -> str:
    """The panel's sentence."""
    end = found.moments[-1]
    return (
        f"{found.too_late} of {found.returns} returns found the session expired. After {DAYS} days, {end.alive} "
        f"sessions are alive; an index that nobody cleans lists {end.nobody}, one cleaned when listed {end.by_list}, "
        f"the store's {end.by_store}."
    )


def draw(found: Course) -> Figure:
    """Entries in the index over two weeks; the area is what is alive."""
    figure, ax = axes(
        9.2, 3.8, title="What the index lists, and what is alive", xlabel="time (days)", ylabel="sessions"
    )
    days = [moment.hour / 24 for moment in found.moments]
    alive = [moment.alive for moment in found.moments]
    ax.fill_between(days, alive, step="post", color="#D9D9D9", label="alive")
    lines = (
        ("nobody cleans", "nobody", ORANGE, "-"),
        ("cleaned when listed", "by_list", BLUE, "-"),
        ("the store's", "by_store", GREEN, "--"),
    )
    for label, name, colour, style in lines:
        ax.step(
            days, [getattr(moment, name) for moment in found.moments], style, where="post", color=colour, label=label
        )
    ax.set_ylim(0, max(moment.nobody for moment in found.moments) * 1.08)
    ax.set_xlim(0, DAYS)
    figure.legend(loc="outside right center", labelcolor=GREY)
    return figure


def index_panel() -> Panel:
    """The panel itself."""
    return panel(
        course,
        draw,
        say,
        [
            Slider("ttl_h", 1, 72, 24, 1, label="TTL", unit="h"),
            Slider("gap_h", 1, 48, 8, 1, label="mean pause between appends", unit="h"),
            Slider("sessions_a_day", 1, 12, 4, 1, label="new sessions a day"),
            Slider("list_every_h", 6, 120, 60, 6, label="the list is opened every", unit="h"),
        ],
        title="Two weeks of sessions",
    )
