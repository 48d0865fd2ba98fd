"""Who did what when to whom: a log that only grows, in which a change can be seen, and which holds no content.

Each entry holds the SHA-256 of the one before it, so that an entry that was changed, taken out, put in or moved breaks
the chain. What a chain alone does not show is a cut at its end: keep `head` somewhere else, and give it to `verify`.
Whoever may write the file can write a whole new chain, unless the log has a key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc, require_text, shown

try:
    import fcntl
except ImportError:  # Windows: there a file has one writer
    fcntl = None  # type: ignore[assignment]

START = "0" * 64
ACTION = re.compile(r"[a-z][a-z_]{0,39}")
WHOM = re.compile(r"user_[a-z2-7]{26}")


class Tampered(RuntimeError):
    """The log was changed; the message says from which entry on it can't be trusted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`whom` is a pseudonym, `counts` says how many entries of which store; `digest` covers all else."""

    number: int
    at: str
    who: str
    what: str
    whom: str
    counts: dict[str, int]
    previous: str
    digest: str

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class AuditLog:
    """In memory, or in a JSONL file, on the disk before `add` returns. One process writes at a time: on Linux and macOS
    others wait.

    `key`, of 32 bytes or more, makes the digests HMACs, which nobody without it can forge. A torn last line, as a crash
    leaves it, is no entry and is cut off by the next `add`. Raises Tampered where the file does not hold together.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, key: bytes | None = None, clock: Clock = system_clock
    ) -> None:
        if key is not None and len(key) < 32:
            raise ValueError(f"key must have at least 32 bytes; got {len(key)}: secrets.token_bytes(32) makes one")
        self._path, self._key, self._clock = None if path is None else Path(path), key, clock
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self.verify()

    def add(self, *, who: str, what: str, whom: str, counts: dict[str, int] | None = None) -> Entry:
        """Append. `who` acted, a service or an operator; `what` is a word such as `forget`; `whom` a pseudonym of
        `Pseudonyms.of_user`. ValueError for anything that could be a raw id or a content."""
        if not (isinstance(what, str) and ACTION.fullmatch(what)):
            raise ValueError(f"what must be a word of a-z and _, such as forget; got {shown(what)}")
        if not (isinstance(whom, str) and WHOM.fullmatch(whom)):
            raise ValueError("whom must be a pseudonym of Pseudonyms.of_user; an id has no place in this log")
        plain = {require_text("a name of counts", name): int(count) for name, count in (counts or {}).items()}
        with self._lock, self._opened() as file:
            entries = self._read(file)
            last = entries[-1] if entries else None
            at = as_utc("the clock's time", self._clock()).isoformat()
            bare = Entry(
                last.number + 1 if last else 1,
                at,
                require_text("who", who),
                what,
                whom,
                plain,
                last.digest if last else START,
                "",
            )
            entry = Entry(**{**asdict(bare), "digest": self._digest(bare)})
            self._write(file, entry)
        return entry

    def entries(self) -> list[Entry]:
        """All, oldest first; Tampered where they don't hold together."""
        with self._lock, self._opened() as file:
            return self._read(file)

    def verify(self, head: str | None = None) -> int:
        """How many entries there are. Tampered where one was changed, or where `head`, the digest of an entry that was
        written down elsewhere, is not in the log any more."""
        entries = self.entries()
        if head is not None and head not in {START, *(entry.digest for entry in entries)}:
            raise Tampered("the log was cut: the entry with the digest that was kept elsewhere is missing")
        return len(entries)

    @property
    def head(self) -> str:
        """The digest of the last entry, which stands for all before it."""
        entries = self.entries()
        return entries[-1].digest if entries else START

    def __len__(self) -> int:
        return len(self.entries())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def _digest(self, entry: Entry) -> str:
        text = Entry(**{**asdict(entry), "digest": ""}).to_json().encode()
        if self._key is None:
            return hashlib.sha256(text).hexdigest()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def _opened(self) -> _Opened:
        return _Opened(self._path)

    def _read(self, file: int | None) -> list[Entry]:
        """From the file, whose torn last line is passed over; the entries in memory where there is no file."""
        lines = [entry.to_json().encode() for entry in self._entries] if file is None else _lines(file)
        entries, previous = [], START
        for number, line in enumerate(lines, 1):
            try:
                entry = Entry(**json.loads(line))
                whole = entry.number == number and entry.previous == previous
                whole = whole and hmac.compare_digest(entry.digest, self._digest(entry))
            except (ValueError, TypeError):
                whole = False
            if not whole:
                raise Tampered(f"entry {number} of {self._path or 'the log'} is not what was written")
            entries.append(entry)
            previous = entry.digest
        return entries

    def _write(self, file: int | None, entry: Entry) -> None:
        if file is None:
            self._entries.append(entry)
            return
        os.ftruncate(file, sum(len(line) + 1 for line in _lines(file)))
        os.lseek(file, 0, os.SEEK_END)
        line = entry.to_json().encode() + b"\n"
        while line:
            line = line[os.write(file, line) :]
        os.fsync(file)


class _Opened:
    """The file, locked while it is open; None where the log is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._file = path, -1

    def __enter__(self) -> int | None:
        if self._path is None:
            return None
        is_new = not self._path.exists()
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if is_new:  # the name of the file has to outlast a crash as well
                folder = os.open(self._path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            os.close(self._file)


def _lines(file: int) -> list[bytes]:
    """The whole lines; what stands behind the last line break was torn off by a crash."""
    os.lseek(file, 0, os.SEEK_SET)
    parts = []
    while part := os.read(file, 1 << 20):
        parts.append(part)
    return b"".join(parts).split(b"\n")[:-1]
