"""How a memory fades: three laws, from an age in days to a weight between 0 and 1.

Half-life counts age alone. Ebbinghaus's curve gets flatter with each recall. The step rule is what a support team can
check with a pencil. None of them deletes anything; a low weight only ranks lower, or archives.
Sources: Ebbinghaus (1885), Über das Gedächtnis, for the curve; Zhong et al. (2023), MemoryBank, arXiv:2305.10250, for
the strength that grows by one at each recall. Not modelled: that recalls far apart help more than ten in a minute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise
from numbers import Real
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from tri_memory.contracts import as_utc, require_count, shown

MONTH = 30.0  # days
ARCHIVE_BELOW = 0.5
LEAST_TENTHS, MOST_TENTHS = 3, 10  # of the step rule


class Use(NamedTuple):
    """A memory was recalled `age` days ago. What the system put into a prompt unasked is `injected`, and no use."""

    age: float
    injected: bool = False


def age_in_days(then: datetime, now: datetime) -> float:
    """Days from `then` to `now`, both aware (ValueError otherwise); 0 where the clock has jumped back."""
    return max(0.0, (as_utc("now", now) - as_utc("then", then)).total_seconds() / 86_400)


def half_life(age: float, days: float) -> float:
    """Half as much after each `days`: 0.5 ** (age / days), in (0, 1], 0.0 where that is too small for a float.

    Raises ValueError for an age below 0 and for `days` not above 0.
    """
    return float(0.5 ** (_require_age(age) / _require_days("days", days)))


def ebbinghaus(age: float, uses: Iterable[Use] = (), strength: float = 1.0) -> float:
    """Retention exp(-t / S): t is the days since the last use (or since it was stored, `age` days ago), and the
    strength S is `strength` days at first and as much more with each use.

    A use restarts the curve and flattens it, so that one more use never lowers the retention, now or later.
    Raises ValueError for a use that is older than the memory, and as `half_life` does.
    """
    used = _use_ages(age, uses)
    since = min(used, default=age)
    return math.exp(-since / (_require_days("strength", strength) * (1 + len(used))))


def step(age: float, uses: Iterable[Use] = ()) -> float:
    """1.0 when stored, 0.2 less each full month of 30 days but not below 0.3, 0.1 more each use but not above 1.0.

    In order of time; a use at the very end of a month counts after it. Raises ValueError as `ebbinghaus` does.

    >>> [step(0), step(30), step(90), step(365), step(90, [Use(1)]), step(90, [Use(1, injected=True)])]
    [1.0, 0.8, 0.4, 0.3, 0.5, 0.4]
    """
    state = StepState()
    for use in sorted(_use_ages(age, uses), reverse=True):
        state = state.used(age - use)
    return state.weight(age)


@dataclass(frozen=True, slots=True)
class StepState:
    """All that the step rule needs to know of a memory: what it weighed after its last use, in tenths, and how many
    full months had been taken off by then. A store keeps these two numbers instead of a list of all uses.

    Ages are days since the memory was stored. One below the months that are taken off already, as a clock that jumped
    back gives, takes nothing off and gives nothing back. Raises ValueError for tenths outside 3 to 10, months below 0.

    >>> StepState().used(45)
    StepState(tenths=9, months=1)
    >>> StepState().used(45).weight(90)
    0.5
    """

    tenths: int = MOST_TENTHS  # whole, since 1.0 - 0.2 * 3 + 0.1 is not 0.5 and the archive begins there
    months: int = 0

    def __post_init__(self) -> None:
        require_count("months", self.months)
        if require_count("tenths", self.tenths, least=LEAST_TENTHS) > MOST_TENTHS:
            raise ValueError(f"tenths must be at most {MOST_TENTHS}; got {self.tenths}")

    def used(self, age: float) -> StepState:
        """The state after one more use at this age, which was not injected."""
        months = self._months(age)
        return StepState(min(MOST_TENTHS, self._faded(months) + 1), months)

    def weight(self, age: float) -> float:
        """What it weighs at this age, if it was not used since: 0.3 to 1.0."""
        return self._faded(self._months(age)) / 10

    def lasts(self) -> int:
        """For how many days after the months taken off it stays out of the archive, if it is not used; 0: not at all.

        >>> [StepState().lasts(), StepState(5).lasts(), StepState(4).lasts()]
        [90, 30, 0]
        """
        return next(int(passed * MONTH) for passed in count() if is_archived(self._faded(self.months + passed) / 10))

    def _months(self, age: float) -> int:
        return max(self.months, int(_require_age(age) // MONTH))

    def _faded(self, months: int) -> int:
        return max(LEAST_TENTHS, self.tenths - 2 * (months - self.months))


def is_archived(weight: float) -> bool:
    """Whether the step rule archives what has this weight: kept for audit, not recalled."""
    return weight < ARCHIVE_BELOW


def decay_rate(period: float, retention: float) -> float:
    """The rate r a day with which exp(-r * days) is still `retention` after `period` days; ln(2) / r is its half-life.

    Raises ValueError unless 0 < retention < 1 and period > 0.
    """
    if not (_is_number(retention) and 0 < retention < 1):
        raise ValueError(f"retention must be a number between 0 and 1, such as 0.5; got {shown(retention)}")
    return -math.log(retention) / _require_days("period", period)


@dataclass(frozen=True, slots=True)
class Preset:
    """How long each part of memory lasts for one kind of agent.

    `ttl_s` is the session's time to live in seconds; `half_life_days` is None where an episode never fades; `threshold`
    is a cosine, a first guess to start from: `calibration.calibrate` finds the one that fits an embedder.
    """

    ttl_s: float
    half_life_days: float | None
    threshold: float

    def weight(self, age: float) -> float:
        """What an episode of `age` days weighs, in [0, 1]."""
        return 1.0 if self.half_life_days is None else half_life(age, self.half_life_days)


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "task": Preset(ttl_s=30 * 60, half_life_days=None, threshold=0.8),
        "service": Preset(ttl_s=2 * 3_600, half_life_days=7, threshold=0.5),
        "companion": Preset(ttl_s=24 * 3_600, half_life_days=30, threshold=0.3),
    }
)


def ttl_from_gaps(timestamps: Iterable[datetime]) -> float:
    """A time to live in seconds: 1.5 times the median gap between neighbouring times, which are aware, in any order.

    Half of the gaps are at most two thirds of it; how many of the rest it bridges depends on their spread. Raises
    ValueError for a naive time, for fewer than two, and where the median gap is 0.
    """
    times = sorted(as_utc("a timestamp", each) for each in timestamps)
    if len(times) < 2:
        raise ValueError(f"a gap needs two timestamps; got {len(times)}")
    middle = median((after - before).total_seconds() for before, after in pairwise(times))
    if middle == 0:
        raise ValueError(f"the median gap of these {len(times)} timestamps is 0 s, which gives no time to live")
    return 1.5 * middle


def _use_ages(age: float, uses: Iterable[Use]) -> list[float]:
    """The ages of the uses that count."""
    _require_age(age)
    ages = [_require_age(use.age, "the age of a use") for use in uses if not use.injected]
    if ages and max(ages) > age:
        raise ValueError(f"a use {shown(max(ages))} days ago is older than the memory itself, which is {shown(age)}")
    return ages


def _require_age(age: Any, name: str = "age") -> float:
    if not (_is_number(age) and 0 <= age < math.inf):
        raise ValueError(f"{name} must be a number of days from 0 up; got {shown(age)}; age_in_days gives it")
    return float(age)


def _require_days(name: str, days: Any) -> float:
    if not (_is_number(days) and 0 < days < math.inf):
        raise ValueError(f"{name} must be a number of days above 0; got {shown(days)}")
    return float(days)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
