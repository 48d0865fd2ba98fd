"""What a store has written into Redis, read back from the server, and the hash slot that a cluster would put it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

NODES = 3


def table(raw: redis.Redis, prefix: str) -> pd.DataFrame:
    """Every key that begins with `prefix`: its type, what it holds, the seconds it has left, its hash slot."""
    keys = sorted(raw.scan_iter(f"{prefix}*", count=1_000))
    rows = [(key[len(prefix) :], *_seen(raw, key), raw.ttl(key), slot(key)) for key in keys]
    return pd.DataFrame(rows, columns=["key, behind the prefix", "type", "holds", "TTL (s)", "slot"])


def _seen(raw: redis.Redis, key: str) -> tuple[str, str]:
    client: Any = raw
    kind = client.type(key)
    if kind == "list":
        return kind, f"{client.llen(key)} turns as JSON"
    if kind == "hash":
        return kind, ", ".join(sorted(name for name in client.hkeys(key)))
    if kind == "zset" and key.endswith(":seen"):
        return kind, f"{client.zcard(key)} appends"
    if kind == "zset":
        newest = client.zrange(key, 0, 0, desc=True)
        return kind, f"{client.zcard(key)} ids, on top {newest[0]}"
    return kind, ""


def slot(key: str) -> int:
    """Which of the 16,384 hash slots a cluster puts this key in: CRC16 of the text in the first pair of braces, or of
    the whole key where there is no text in braces."""
    return key_slot(key.encode())


def node(key: str, nodes: int = NODES) -> int:
    """Which node has that slot, 1 to `nodes`, where the slots are shared out evenly and in order."""
    return slot(key) * nodes // REDIS_CLUSTER_HASH_SLOTS + 1


def spread(session_ids: Sequence[str], nodes: int = NODES) -> pd.DataFrame:
    """By design of the key names: on how many nodes the three keys of a session stand, and sessions per node."""
    designs = {
        "sess:id": lambda i: (f"sess:{i}", f"sess:{i}:meta", f"sess:{i}:lock"),
        "{sess}:id": lambda i: (f"{{sess}}:{i}", f"{{sess}}:{i}:meta", f"{{sess}}:{i}:lock"),
        "sess:{id}": lambda i: (f"sess:{{{i}}}", f"sess:{{{i}}}:meta", f"sess:{{{i}}}:lock"),
    }
    rows = []
    for name, keys_of in designs.items():
        slots = [{slot(key) for key in keys_of(session_id)} for session_id in session_ids]
        homes = [node(keys_of(session_id)[0], nodes) for session_id in session_ids]
        whole = sum(len(of_one) == 1 for of_one in slots)
        rows.append((name, f"{whole} of {len(session_ids)}", *(homes.count(n + 1) for n in range(nodes))))
    columns = ["key names", "sessions whose keys share a slot", *(f"sessions on node {n + 1}" for n in range(nodes))]
    return pd.DataFrame(rows, columns=columns)
