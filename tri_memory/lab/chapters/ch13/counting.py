"""What a plain hash of a short number hides: nothing, from whoever counts through all numbers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

CASES = [f"BX-{number:04}" for number in range(10_000)]
MOBILES = 10**8  # numbers that begin with 138
SALT = "salt of en-shop-01"  # stands beside the hash, as salts do

Name = Callable[[str], str]


@dataclass(frozen=True)
class Counted:
    """`found` is the number behind the name, or None; `tried` numbers took `seconds`."""

    found: str | None
    tried: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.tried / self.seconds

    def __str__(self) -> str:
        what = f"it is {self.found}" if self.found else "no number fits"
        return f"{what:18} {self.tried:9,} tried in {self.seconds:.3f} s"


def plain(raw: str) -> str:
    """The usual idea: SHA-256, which nobody can invert."""
    return hashlib.sha256(raw.encode()).hexdigest()


def salted(raw: str, salt: str = SALT) -> str:
    """With a salt for each user, which is no secret."""
    return hashlib.sha256(f"{salt}{raw}".encode()).hexdigest()


def mobiles(begin: str) -> Iterator[str]:
    """All eleven digits that begin so: with three digits a network, with seven an area of it."""
    open_digits = 11 - len(begin)
    return (f"{begin}{number:0{open_digits}}" for number in range(10**open_digits))


def count_through(stored: str, numbers: Iterable[str], name: Name) -> Counted:
    """Name each number, and stop at the one whose name is `stored`."""
    started, tried, found = time.perf_counter(), 0, None
    for number in numbers:
        tried += 1
        if name(number) == stored:
            found = number
            break
    return Counted(found, tried, max(time.perf_counter() - started, 1e-9))


def all_mobiles_s(counted: Counted) -> float:
    """Seconds to try every number that begins with 138, at the rate of `counted`, on one core."""
    return MOBILES / counted.per_second
