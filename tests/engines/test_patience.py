"""Waiting has an end, and a long wait says what it is for."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import pytest

from tri_memory.engines.patience import Limit, progress, within


def test_a_value_in_time_is_handed_over() -> None:
    assert within(Limit(5), "a sum", lambda: 1 + 1) == 2


def test_none_is_a_value_too() -> None:
    assert within(Limit(5), "nothing", lambda: None) is None


def test_an_error_in_time_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        within(Limit(5), "a quotient", lambda: 1 / 0)


def test_an_error_keeps_nothing_alive_once_it_was_caught() -> None:
    class Thing:
        pass

    def caller(thing: Thing) -> None:
        with contextlib.suppress(ZeroDivisionError):
            within(Limit(5), "a quotient", lambda: 1 / 0)

    thing = Thing()
    watched = weakref.ref(thing)
    gc.disable()  # which would find the circle, some day
    try:
        caller(thing)
        del thing
        assert watched() is None
    finally:
        gc.enable()


def test_what_comes_too_late_is_a_time_out_that_names_it() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError, match="the oracle gave no answer within 0 s"):
        within(Limit(0.05), "the oracle", never.wait)
    never.set()


def test_a_limit_inside_another_is_the_shorter_one() -> None:
    assert Limit(100).at_most(3).seconds == 3
    assert Limit(1).at_most(3).seconds <= 1
    assert Limit(0).left() == 0


def test_a_short_wait_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("waiting for Godot", quiet_s=60):
        pass
    assert capsys.readouterr().err == ""


def test_a_long_wait_says_what_it_is_for_and_how_long_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    spoken = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        spoken.set()

    monkeypatch.setattr("tri_memory.engines.patience.say", say)
    with progress("waiting for Godot", quiet_s=0.01):
        assert spoken.wait(10)
    assert lines[0] == "waiting for Godot …"
    assert lines[1].startswith("waiting for Godot: ")
    assert len(lines) == 2
