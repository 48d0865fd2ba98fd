"""A log in which a change can be seen, that survives a crash, and that holds no content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tri_memory.clock import ManualClock
from tri_memory.privacy.audit import AuditLog, Tampered
from tri_memory.privacy.pseudonyms import Pseudonyms

ANN = Pseudonyms("0123456789abcdef" * 2).of_user("ann")
ENTRY = {"who": "desk", "what": "forget", "whom": ANN}


@pytest.fixture(params=["memory", "file"])
def log(request, tmp_path) -> AuditLog:
    return AuditLog(None if request.param == "memory" else tmp_path / "audit.jsonl", clock=ManualClock())


def test_entries_come_in_order_each_with_the_digest_of_the_one_before(log):
    assert log.head == "0" * 64
    written = [log.add(**ENTRY, counts={"sessions": number}) for number in range(3)]

    assert log.entries() == written
    assert [entry.number for entry in log] == [1, 2, 3]
    assert [entry.previous for entry in log] == ["0" * 64, written[0].digest, written[1].digest]
    assert written[0].at == "2026-01-01T00:00:00+00:00"
    assert (log.verify(log.head), len(log)) == (3, 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"whom": "ann"}, "must be a pseudonym"),
        ({"whom": None}, "must be a pseudonym"),
        ({"what": "forgot ann, who said hello"}, "must be a word"),
        ({"what": ""}, "must be a word"),
        ({"who": " "}, "who must be"),
        ({"counts": {"sessions": "my order"}}, "invalid literal"),
        ({"counts": {" ": 1}}, "name of counts"),
    ],
)
def test_what_could_be_an_id_or_a_content_is_refused_and_nothing_is_written(log, wrong, words):
    with pytest.raises(ValueError, match=words):
        log.add(**{**ENTRY, **wrong})
    assert len(log) == 0


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "audit.jsonl"
    for number in range(4):
        AuditLog(path).add(**ENTRY, counts={"sessions": number})
    return path


def changed(line: bytes, **what) -> bytes:
    return json.dumps({**json.loads(line), **what}, separators=(",", ":"), sort_keys=True).encode()


TAMPERING = {
    "a count": lambda lines: [lines[0], changed(lines[1], counts={"sessions": 7}), *lines[2:]],
    "the actor": lambda lines: [changed(lines[0], who="nobody"), *lines[1:]],
    "the time": lambda lines: [*lines[:3], changed(lines[3], at="2020-01-01T00:00:00+00:00")],
    "one taken out": lambda lines: [lines[0], *lines[2:]],
    "the first taken out": lambda lines: lines[1:],
    "two exchanged": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "one doubled": lambda lines: [*lines, lines[3]],
    "a blank line": lambda lines: [*lines[:2], b"", *lines[2:]],
    "no JSON": lambda lines: [b"hello", *lines],
    "one field more": lambda lines: [changed(lines[0], note="ann"), *lines[1:]],
}


@pytest.mark.parametrize("how", TAMPERING)
def test_any_change_is_seen_by_whoever_opens_the_log_and_nothing_is_added_to_it(path, how):
    log = AuditLog(path)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*TAMPERING[how](lines), b""]))
    before = path.read_bytes()

    with pytest.raises(Tampered, match="is not what was written"):
        AuditLog(path)
    with pytest.raises(Tampered):
        log.add(**ENTRY)
    assert path.read_bytes() == before


def test_a_cut_at_the_end_is_seen_by_who_kept_the_head_elsewhere(path):
    head = AuditLog(path).head
    path.write_bytes(b"\n".join([*path.read_bytes().splitlines()[:3], b""]))

    assert AuditLog(path).verify() == 3
    with pytest.raises(Tampered, match="was cut"):
        AuditLog(path).verify(head)


@pytest.mark.parametrize("torn", [b"{", b'{"at":"2026', b"\xff\xfe", b'{"number":5}'])
def test_a_torn_last_line_is_passed_over_and_the_next_entry_takes_its_place(path, torn):
    with path.open("ab") as file:
        file.write(torn)
    log = AuditLog(path)
    assert len(log) == 4
    log.add(**ENTRY)

    assert AuditLog(path).verify() == 5
    assert path.read_bytes().count(b"\n") == 5
    assert torn + b"{" not in path.read_bytes()


def test_with_a_key_nobody_else_can_forge_a_chain(tmp_path):
    path, key = tmp_path / "audit.jsonl", b"k" * 32
    AuditLog(path).add(**ENTRY)  # a whole chain, by somebody without the key
    with pytest.raises(Tampered):
        AuditLog(path, key=key)
    path.unlink()
    AuditLog(path, key=key).add(**ENTRY)
    assert AuditLog(path, key=key).verify() == 1
    with pytest.raises(Tampered):
        AuditLog(path, key=b"j" * 32)
    with pytest.raises(ValueError, match="32 bytes"):
        AuditLog(path, key=b"short")


def test_each_entry_is_on_the_disk_before_add_returns(path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_size), real(file))[1])
    AuditLog(path).add(**ENTRY)

    assert synced == [path.stat().st_size]


def test_threads_and_processes_that_write_at_once_make_one_chain(tmp_path):
    path = tmp_path / "audit.jsonl"
    code = (
        "import sys\nfrom tri_memory.privacy.audit import AuditLog\n"
        f"log = AuditLog(sys.argv[1])\nfor _ in range(10): log.add(**{ENTRY!r})\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    log = AuditLog(path)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: log.add(**ENTRY), range(20)))
    assert [process.wait(60) for process in processes] == [0, 0]

    assert AuditLog(path).verify() == 40


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such rights on a file")
def test_nobody_else_may_read_the_file(path):
    assert path.stat().st_mode & 0o777 == 0o600
