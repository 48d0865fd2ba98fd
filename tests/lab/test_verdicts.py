"""The verdicts on claims C04, C16 and C17 follow from what was measured: other numbers, another verdict."""

from __future__ import annotations

import pandas as pd
import pytest

from tri_memory.lab.chapters.ch05 import lives, others
from tri_memory.lab.chapters.ch08 import timing


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
