import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tri_memory.recall.decay import (
    PRESETS,
    StepState,
    Use,
    age_in_days,
    decay_rate,
    ebbinghaus,
    half_life,
    is_archived,
    step,
    ttl_from_gaps,
)

ages = st.floats(0, 4_000)
whole = st.integers(0, 400)  # days, so that adding them is exact
spans = st.floats(0.01, 1_000)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@st.composite
def remembered(draw):
    """(age, uses) of a memory, in whole days."""
    age = draw(whole)
    return age, draw(st.lists(st.builds(Use, st.integers(0, age), st.booleans()), max_size=8))


def later(uses, days):
    return [use._replace(age=use.age + days) for use in uses]


def ebbinghaus_20(age, uses=()):
    return ebbinghaus(age, uses, strength=20.0)


WITH_USES = pytest.mark.parametrize("law", [step, ebbinghaus_20])


# What the laws have in common


@pytest.mark.parametrize("law", [step, ebbinghaus_20, lambda age: half_life(age, 7)])
def test_a_new_memory_weighs_1(law):
    assert law(0) == 1.0


@given(ages, ages, spans)
def test_an_older_memory_never_weighs_more(one, other, span):
    young, old = sorted((one, other))
    assert 1 >= half_life(young, span) >= half_life(old, span) >= 0
    assert 1 >= ebbinghaus(young, strength=span) >= ebbinghaus(old, strength=span) >= 0
    assert 1 >= step(young) >= step(old) >= 0.3


@WITH_USES
@given(remembered(), whole)
def test_time_that_passes_without_a_use_never_adds_weight(law, memory, days):
    age, uses = memory
    assert law(age + days, later(uses, days)) <= law(age, uses)


@WITH_USES
@given(remembered(), st.data(), whole)
def test_one_more_use_never_lowers_the_weight_neither_now_nor_later(law, memory, data, days):
    age, uses = memory
    more = [*uses, Use(data.draw(st.integers(0, age)))]
    assert law(age + days, later(more, days)) >= law(age + days, later(uses, days))


@given(remembered(), whole.filter(bool))
def test_one_more_use_never_makes_forgetting_faster(memory, days):
    """Of what is left, at least as large a part is left after the same time."""
    age, uses = memory
    used = [*uses, Use(0)]
    part_without = ebbinghaus_20(age + days, later(uses, days)) / ebbinghaus_20(age, uses)
    part_with = ebbinghaus_20(age + days, later(used, days)) / ebbinghaus_20(age, used)
    assert part_with > part_without


@WITH_USES
@given(remembered())
def test_what_the_system_injected_itself_counts_for_nothing(law, memory):
    age, uses = memory
    own = [use for use in uses if not use.injected]
    assert law(age, uses) == law(age, own)


@WITH_USES
@given(remembered(), st.randoms(use_true_random=False))
def test_the_order_in_which_uses_are_listed_changes_nothing(law, memory, random):
    age, uses = memory
    assert law(age, random.sample(uses, len(uses))) == law(age, uses)


@WITH_USES
def test_a_use_older_than_the_memory_is_refused(law):
    with pytest.raises(ValueError, match=r"a use 11\.0 days ago is older than the memory itself, which is 10"):
        law(10, [Use(2), Use(11)])


@WITH_USES
@pytest.mark.parametrize("age", [-1, math.nan, math.inf, True, "3", None])
def test_a_use_whose_age_is_no_number_of_days_is_refused(law, age):
    with pytest.raises(ValueError, match="the age of a use must be a number of days from 0 up; got"):
        law(10, [Use(age)])


@pytest.mark.parametrize("law", [step, ebbinghaus_20, lambda age: half_life(age, 7), PRESETS["service"].weight])
@pytest.mark.parametrize("age", [-0.1, math.nan, math.inf, True, "3", None, NOW])
def test_an_age_that_is_no_number_of_days_is_refused(law, age):
    with pytest.raises(ValueError, match="age must be a number of days from 0 up; got"):
        law(age)


@pytest.mark.parametrize("days", [0, -1, math.nan, math.inf, True, "7", None])
def test_a_half_life_or_a_strength_that_is_not_above_0_is_refused(days):
    with pytest.raises(ValueError, match="days must be a number of days above 0; got"):
        half_life(1, days)
    with pytest.raises(ValueError, match="strength must be a number of days above 0; got"):
        ebbinghaus(1, strength=days)


def test_numbers_of_numpy_are_numbers():
    assert half_life(np.int64(14), np.float32(7)) == 0.25
    assert step(np.int32(31)) == 0.8


# Half-life


def test_half_is_left_after_one_half_life_and_a_quarter_after_two():
    assert [half_life(age, 7) for age in (7, 14, 21)] == [0.5, 0.25, 0.125]


def test_what_is_too_small_for_a_float_is_0():
    assert half_life(1e300, 1e-300) == 0.0
    assert ebbinghaus(1e300, strength=1e-300) == 0.0


# Ebbinghaus


def test_without_a_use_it_is_the_exponential_of_age_over_strength():
    assert ebbinghaus(20, strength=20) == pytest.approx(math.exp(-1))
    assert ebbinghaus(2) == pytest.approx(math.exp(-2))


def test_a_use_restarts_the_curve_and_each_one_adds_a_strength():
    assert ebbinghaus(40, [Use(10)], 20) == pytest.approx(math.exp(-10 / 40))
    assert ebbinghaus(40, [Use(30), Use(10)], 20) == pytest.approx(math.exp(-10 / 60))


# The step rule


@pytest.mark.parametrize(
    ("age", "uses", "weight"),
    [
        (29.99, [], 1.0),
        (30, [], 0.8),
        (59, [], 0.8),
        (60, [], 0.6),
        (90, [], 0.4),
        (120, [], 0.3),
        (4_000, [], 0.3),
        (0, [0, 0, 0], 1.0),
        (60, [0, 0, 0, 0], 1.0),
        (60, [0, 0, 0, 0, 0, 0], 1.0),
        (30, [0], 0.9),  # the month first, then the use
        (30, [1], 0.8),  # the use first, of which nothing is left above 1.0
        (90, [1], 0.5),
        (90, [45], 0.5),
        (90, [75, 45, 15], 0.6),  # 1.0, 0.8 and 0.9, 0.7 and 0.8, 0.6
        (400, [0], 0.4),
        (400, [0, 0], 0.5),
    ],
)
def test_the_step_rule_as_one_would_reckon_it_with_a_pencil(age, uses, weight):
    assert step(age, [Use(each) for each in uses]) == weight


@given(remembered())
def test_the_weight_is_a_tenth_between_the_floor_and_1(memory):
    weight = step(*memory)
    assert 0.3 <= weight <= 1.0
    assert weight == round(weight, 1)


@given(remembered(), st.data())
def test_day_by_day_gives_the_same_as_the_rule_over_the_whole_time(memory, data):
    age, uses = memory
    tenths = 10
    for day in range(age + 1):
        if day and day % 30 == 0:
            tenths = max(3, tenths - 2)
        tenths = min(10, tenths + sum(use == Use(age - day) for use in uses))
    assert step(age, uses) == tenths / 10


def test_below_a_half_is_archived_and_a_half_is_not_also_where_floats_would_miss_it():
    assert 1.0 - 0.2 - 0.2 - 0.2 + 0.1 != 0.5
    assert not is_archived(step(90, [Use(0)]))
    assert is_archived(step(90))
    assert [is_archived(weight) for weight in (0.3, 0.4, 0.5, 1.0)] == [True, True, False, False]


# The step rule in two numbers


@st.composite
def used_now_and_then(draw):
    """(age, the ages of the memory at its uses in order of time), in whole days."""
    age = draw(whole)
    return age, sorted(draw(st.lists(st.integers(0, age), max_size=8)))


def folded(used_at):
    state = StepState()
    for age in used_at:
        state = state.used(age)
    return state


@given(used_now_and_then(), whole)
def test_two_numbers_are_all_the_step_rule_needs_to_know(memory, days):
    age, used_at = memory
    uses = [Use(age + days - each) for each in used_at]
    assert folded(used_at).weight(age + days) == step(age + days, uses)


@given(used_now_and_then(), whole)
def test_a_clock_that_jumps_back_neither_adds_nor_takes_weight(memory, back):
    state = folded(memory[1])
    earlier = max(0, state.months * 30 - back)
    assert state.weight(earlier) == state.tenths / 10
    assert state.used(earlier) == StepState(min(10, state.tenths + 1), state.months)


@given(used_now_and_then())
def test_how_long_it_lasts_is_the_first_day_on_which_it_would_be_archived(memory):
    state = folded(memory[1])
    end = state.months * 30 + state.lasts()
    assert is_archived(state.weight(end))
    assert state.lasts() == 0 or not is_archived(state.weight(end - 1))


def test_what_has_4_tenths_left_does_not_last_and_a_new_memory_lasts_90_days():
    assert [StepState(tenths, 7).lasts() for tenths in range(3, 11)] == [0, 0, 30, 30, 60, 60, 90, 90]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((2, 0), "tenths must be a whole number of at least 3; got 2"),
        ((11, 0), "tenths must be at most 10; got 11"),
        ((9.5, 0), "tenths must be a whole number of at least 3; got 9.5"),
        ((True, 0), "tenths must be a whole number"),
        ((10, -1), "months must be a whole number of at least 0; got -1"),
        ((10, 0.5), "months must be a whole number"),
    ],
)
def test_a_state_that_the_rule_never_reaches_is_refused(state, message):
    with pytest.raises(ValueError, match=message):
        StepState(*state)


@pytest.mark.parametrize("age", [-1, math.nan, math.inf, True, "3", None])
def test_a_state_is_asked_about_an_age_in_days(age):
    for ask in (StepState().used, StepState().weight):
        with pytest.raises(ValueError, match="age must be a number of days from 0 up; got"):
            ask(age)


# Ages and rates


def test_an_age_is_counted_in_days_across_zones():
    elsewhere = timezone(timedelta(hours=8))
    assert age_in_days(datetime(2026, 2, 28, 8, tzinfo=elsewhere), NOW) == 1.5


def test_a_clock_that_jumped_back_gives_age_0():
    assert age_in_days(NOW, NOW - timedelta(hours=5)) == 0.0


@pytest.mark.parametrize("place", [0, 1])
def test_a_naive_time_is_refused(place):
    times = [NOW, NOW]
    times[place] = datetime(2026, 3, 1)  # noqa: DTZ001
    with pytest.raises(ValueError, match="must be an aware datetime"):
        age_in_days(*times)


@given(st.floats(0.1, 4_000), st.floats(0.001, 0.999))
@example(180, 0.9)
def test_the_decay_rate_keeps_what_was_required(period, retention):
    rate = decay_rate(period, retention)
    assert math.exp(-rate * period) == pytest.approx(retention)
    assert half_life(period, math.log(2) / rate) == pytest.approx(retention)


@given(st.floats(0.1, 4_000), st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_who_wants_more_left_gets_a_slower_decay(period, one, other):
    assume(abs(one - other) > 1e-6)
    less, more = sorted((one, other))
    assert decay_rate(period, more) < decay_rate(period, less)


@pytest.mark.parametrize("retention", [0, 1, -0.5, 1.5, math.nan, True, "0.5"])
def test_a_retention_outside_0_to_1_is_refused(retention):
    with pytest.raises(ValueError, match="retention must be a number between 0 and 1"):
        decay_rate(180, retention)


# Presets


def test_the_presets_are_the_ones_of_the_table():
    rows = {name: (p.ttl_s, p.half_life_days, p.threshold) for name, p in PRESETS.items()}
    assert rows == {"task": (1_800, None, 0.8), "service": (7_200, 7, 0.5), "companion": (86_400, 30, 0.3)}


def test_an_episode_of_a_task_never_fades_the_others_by_half_life():
    assert PRESETS["task"].weight(1_000) == 1.0
    assert PRESETS["service"].weight(7) == 0.5
    assert PRESETS["companion"].weight(7) == half_life(7, 30)


def test_nobody_changes_a_preset_for_everybody():
    with pytest.raises(TypeError):
        PRESETS["task"] = PRESETS["service"]
    with pytest.raises(AttributeError):
        PRESETS["task"].ttl_s = 1


# Time to live


def times(*seconds):
    return [NOW + timedelta(seconds=each) for each in seconds]


def test_the_ttl_is_one_and_a_half_times_the_median_gap():
    assert ttl_from_gaps(times(0, 60, 160, 1_000)) == 150.0  # gaps of 60, 100, 840
    assert ttl_from_gaps(times(0, 60, 160)) == 120.0  # gaps of 60, 100
    assert ttl_from_gaps(times(0, 0.5)) == 0.75


def test_one_long_night_does_not_stretch_the_ttl():
    chat = times(0, 60, 120, 180, 240)
    assert ttl_from_gaps([*chat, *times(90_000)]) == ttl_from_gaps(chat) == 90.0


@given(st.lists(st.integers(0, 10**6), min_size=2, unique=True), st.randoms(use_true_random=False))
def test_the_order_of_the_timestamps_changes_nothing(seconds, random):
    stamps = times(*seconds)
    assert ttl_from_gaps(random.sample(stamps, len(stamps))) == ttl_from_gaps(sorted(stamps))


@given(st.lists(st.integers(1, 10**6), min_size=1))
def test_at_least_half_of_the_gaps_are_bridged(gaps):
    seconds = [sum(gaps[:i]) for i in range(len(gaps) + 1)]
    ttl = ttl_from_gaps(times(*seconds))
    assert sum(gap <= ttl / 1.5 for gap in gaps) * 2 >= len(gaps)


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        ([], "needs two timestamps; got 0"),
        ([NOW], "needs two timestamps; got 1"),
        ([NOW, NOW, NOW], "median gap of these 3 timestamps is 0 s"),
        ([NOW, datetime(2026, 3, 2)], "aware datetime"),  # noqa: DTZ001
        ([NOW, 5], "aware datetime"),
    ],
)
def test_where_there_is_no_gap_to_go_by_it_says_so(stamps, message):
    with pytest.raises(ValueError, match=message):
        ttl_from_gaps(stamps)
