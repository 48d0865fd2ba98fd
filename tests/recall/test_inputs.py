"""What people type and what they have installed: inputs that went wrong in public memory systems. No server needed."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from tri_memory.lab.offline import FOLDER
from tri_memory.recall.conversation import ConversationIndex, Said
from tri_memory.recall.cosine import as_unit
from tri_memory.recall.decay import age_in_days, ttl_from_gaps
from tri_memory.recall.gate import Candidate
from tri_memory.recall.lexical import LexicalIndex

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = ["the parcel BX-2207 is late", "今天玩成语接龙游戏", "您的订单发货了", "您的訂單發貨了"]


def rows(query, k=4):
    return [row for row, _ in LexicalIndex(TEXTS).rank(query, k)]


# Words (public faults 27 and 34)


@pytest.mark.parametrize(
    "query", ["？！…", "...", "-_/'", "😀", "👨\u200d👩\u200d👧", "🇨🇳", "\u200b", "\0", "\ud83d", "\u0301"]
)
def test_a_query_of_signs_finds_nothing_by_words(query):
    assert rows(query) == []


@pytest.mark.parametrize(("query", "wanted"), [("the is", [0]), ("的", [2, 3]), ("吗", [])])
def test_a_query_of_stop_words_finds_what_has_them_and_no_more(query, wanted):
    assert sorted(rows(query)) == wanted


@pytest.mark.parametrize("query", ["２２０７", "ＢＸ－２２０７", "ｂｘ2207", "PARCEL", "ｐａｒｃｅｌ"])
def test_full_width_forms_and_capitals_find_the_plain_ones(query):
    assert rows(query) == [0]


def test_full_width_and_plain_digits_find_each_other_in_both_directions():
    assert LexicalIndex(["订单２２０７"]).rank("2207", 1)
    assert LexicalIndex(["订单2207"]).rank("２２０７", 1)


@pytest.mark.parametrize("query", ["成语接龙", "语接", "龙", "玩游戏吗"])
def test_a_part_of_a_chinese_sentence_finds_it(query):
    assert rows(query)[0] == 1


@pytest.mark.parametrize(("query", "own"), [("发货", 2), ("發貨", 3)])
def test_traditional_and_simplified_characters_are_different_ones(query, own):
    """A limit, held so that the lessons say it truly: 发 can be 發 or 髮, which takes a dictionary to tell."""
    assert rows(query) == [own]


@pytest.mark.parametrize("question", ["", "？！", "😀", " \n"])
def test_the_index_of_turns_finds_nothing_for_signs_alone_without_a_vector(question):
    index = ConversationIndex([Said("Ann", text, "s1") for text in TEXTS], np.eye(4))
    assert index.rank(question, np.zeros(4), 3) == []


def test_the_index_of_turns_gives_no_nan_for_signs_with_a_vector_or_for_tiny_and_huge_vectors():
    index = ConversationIndex([Said("Ann", text, "s1") for text in TEXTS], np.diag([1e-300, 1.0, 1e300, 0.0]))
    for vector in ([1e300, 0, 0, 0], [5e-324, 0, 0, 0]):
        found = index.rank("？！", vector, 4)
        assert found[0].row == 0
        assert np.isfinite(np.array(found)).all()


def test_half_precision_zeros_have_no_direction_and_its_smallest_number_has_one():
    with pytest.raises(ValueError, match="all zeros"):
        as_unit(np.zeros(3, np.float16))
    assert as_unit(np.array([0, 6e-8, 0], np.float16)).tolist() == [0, 1, 0]


def test_a_number_that_float64_cannot_hold_is_refused_and_not_taken_for_infinity():
    with pytest.raises(ValueError, match="sequence of numbers; got"):
        as_unit([10**400, 1])


# Times (public fault 36)

NO_MOMENTS = [
    datetime(2026, 3, 1),  # noqa: DTZ001
    date(2026, 3, 1),
    time(12, tzinfo=UTC),
    np.datetime64("2026-03-01"),
    pd.Timestamp("2026-03-01"),
    pd.NaT,
    "2026-03-01",
    None,
]


@pytest.mark.parametrize("when", NO_MOMENTS, ids=repr)
def test_what_names_no_moment_is_refused_wherever_times_meet(when):
    for use in (
        lambda: age_in_days(when, NOON),
        lambda: age_in_days(NOON, when),
        lambda: ttl_from_gaps([NOON, when]),
        lambda: Candidate("a", "a", when, 0.5),
    ):
        with pytest.raises(ValueError, match="must be an aware datetime such as"):
            use()


def test_an_age_across_the_change_of_the_clocks_counts_hours_and_not_the_face_of_the_clock():
    berlin = ZoneInfo("Europe/Berlin")
    before, after = datetime(2026, 10, 24, 12, tzinfo=berlin), datetime(2026, 10, 25, 12, tzinfo=berlin)
    assert age_in_days(before, after) == 25 / 24
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    assert age_in_days(first, second) == 1 / 24
    assert ttl_from_gaps([second, first]) == 1.5 * 3_600


def test_an_aware_pandas_time_counts_like_any_other():
    shanghai = pd.Timestamp("2026-03-01 20:00", tz="Asia/Shanghai")
    assert age_in_days(shanghai, NOON + timedelta(days=2)) == 2.0


# Models (public fault 50)

WITHOUT_A_NETWORK = """
import socket

try:
    socket.getaddrinfo("example.org", 443)
except OSError as error:
    print(error)

from tri_memory.embedding import load_embedder
from tri_memory.recall.calibration import calibrate
from tri_memory.recall.lexical import LexicalIndex

for name in ("use", "hashing"):
    embedder = load_embedder(name)
    print(name, calibrate([("tea", "tea", True), ("tea", "lift", False)], embedder).embedder == embedder.name)
print(LexicalIndex(["她喜欢喝绿茶"]).rank("绿茶", 1)[0][0])
"""


def test_the_default_embedder_calibration_and_bm25_need_no_network_and_no_home(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    env |= {"PYTHONPATH": str(FOLDER), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_NETWORK], env=env, capture_output=True, text=True)
    refused, *results = done.stdout.splitlines()
    assert "the network is off in this run" in refused, done.stderr
    assert results == ["use True", "hashing True", "0"], done.stderr
