"""A verdict follows from what was measured: other numbers, another verdict. C04, C11, C12, C16, C17 and C20."""

from __future__ import annotations

import pandas as pd
import pytest

from tri_memory.lab.chapters.ch05 import lives, others
from tri_memory.lab.chapters.ch07 import kong
from tri_memory.lab.chapters.ch07.searches import MINILM, USE
from tri_memory.lab.chapters.ch08 import timing
from tri_memory.lab.chapters.ch09 import gaps
from tri_memory.lab.chapters.ch10 import resolution


@pytest.mark.parametrize(("whole", "verdict"), [((1.0, 1.0), "holds"), ((1.0, 0.3), "depends"), ((0.5, 0.3), "fails")])
def test_a_ttl_that_is_renewed_on_write(whole, verdict):
    table = pd.DataFrame({"way": "writes", "planned": [0.1, 0.8], "whole": whole})
    assert lives.survival_verdict(table) == verdict


@pytest.mark.parametrize(
    ("keys", "few", "many", "verdict"),
    [(40, 2, 2, "holds"), (40, 2, 30, "depends"), (40, 30, 30, "fails"), (2, 2, 2, "fails")],
)
def test_keys_against_scan(keys, few, many, verdict):
    rows = zip(others.WAYS, (2, keys, few, many), strict=True)
    table = pd.DataFrame([(200_000, way, wait) for way, wait in rows], columns=["keys", "way", "longest_ms"])
    assert others.waits_verdict(table) == verdict
    assert others.waits_verdict(None) == "cannot be tested here"


@pytest.mark.parametrize(
    ("write", "query", "verdict"), [(23, 86, "holds"), (40, 50, "holds"), (2, 86, "depends"), (23, 200, "depends")]
)
def test_write_and_query_times(write, query, verdict):
    table = pd.DataFrame({"index": [True, False], "write_ms": [write, 1], "query_ms": [query, 1]})
    assert timing.verdict(table) == verdict


@pytest.mark.parametrize(
    ("low", "high", "ms", "verdict"),
    [
        (5, 30, 0.05, "holds"),
        (5, 30, 90, "depends"),  # it costs more than claimed
        (0.1, 0.3, 0.05, "depends"),  # a rise, and not the one that is claimed
        (-5, 30, 0.05, "depends"),
        (-5, 5, 0.05, "fails"),
        (-30, -5, 0.05, "fails"),
    ],
)
def test_a_gate_that_lifts_by_19_points(low, high, ms, verdict):
    columns = ["language", "embedder", "change", "low", "high"]
    table = pd.DataFrame([("English", MINILM, (low + high) / 2, low, high)], columns=columns)
    assert resolution.verdict(table, ms) == verdict
    assert resolution.verdict(table.assign(embedder=USE), ms) == "cannot be tested here"


@pytest.mark.parametrize(
    ("drawn", "came", "verdict"),
    [
        ((0.95, 0.97), 24, "holds"),
        ((0.95, 0.97), 22, "depends"),  # the visits' interval reaches below 90 %
        ((0.95, 0.5), 24, "depends"),
        ((0.6, 0.5), 24, "depends"),
        ((0.6, 0.5), 18, "depends"),  # 75 % of 24 people may be 90 %
        ((0.6, 0.5), 12, "fails"),
    ],
)
def test_a_ttl_of_one_and_a_half_times_the_median_gap(drawn, came, verdict):
    table = pd.DataFrame(
        [(kind, share) for kind, share in enumerate(drawn) for _ in range(5)], columns=["gaps", "bridged"]
    )
    real = pd.DataFrame({"bridged": [True] * came + [False] * (24 - came)})
    assert gaps.verdict(table, real) == verdict


@pytest.mark.parametrize(
    ("extra", "stomach", "food", "verdict"),
    [
        (0.4, 0.95, 0.2, "holds"),
        (0.4, 0.3, 0.2, "depends"),  # nearer by the character, and still not near
        (0.4, 0.95, 0.95, "depends"),  # near, and so are meals without the character
        (0.0, 0.95, 0.2, "depends"),  # only the word about meals
        (0.0, 0.3, 0.3, "fails"),
    ],
)
def test_a_character_that_makes_meals_of_an_air_conditioner(monkeypatch, extra, stomach, food, verdict):
    columns = {"ac_word": stomach, "ac_partner": 0.1, "control_word": 0.1, "control_partner": 0.1, "extra": extra}
    rows = [(form, word) for form in (kong.WORD, kong.SENTENCE) for word in (kong.STOMACH, "空手")]
    table = pd.DataFrame(rows, columns=["form", "word"]).assign(**columns)
    monkeypatch.setattr(kong, "measure", lambda: table)
    monkeypatch.setattr(kong, "meals", lambda: pd.DataFrame({"ac": [food] * 6, "control": [0.1] * 6}))
    monkeypatch.setattr(kong, "synonym", lambda: {kong.WORD: 0.56, kong.SENTENCE: 0.79})
    assert kong.verdict() == verdict
    assert ("Meals: 空调 and 空腹 " + f"{stomach:.2f}") in kong.sentence()
