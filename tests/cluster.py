"""A Redis Cluster of three embedded servers, for tests about slots."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import redis

from tri_memory.engines.embedded_valkey import EmbeddedValkey
from tri_memory.engines.patience import Limit
from tri_memory.engines.port import free_port

SLOTS = 16384
NODES = 3


@contextmanager
def three_nodes(limit_s: float = 60) -> Iterator[str]:
    """Three servers that share all slots; the URL of the first, from which a cluster client finds the others.

    TimeoutError, saying how far it got, where the cluster isn't whole after `limit_s` seconds.
    """
    limit = Limit(limit_s)
    with ExitStack() as stack:
        password = secrets.token_urlsafe(16)
        nodes = [_node(stack, password, limit) for _ in range(NODES)]
        clients = [stack.enter_context(_client(node.url)) for node, _ in nodes]
        for place, client in enumerate(clients):
            first, last = SLOTS * place // NODES, SLOTS * (place + 1) // NODES - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            # Each gets a number of its own at once; without it the nodes would have to settle a quarrel first.
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
        for node, bus_port in nodes[1:]:
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, bus_port)
        while not all(map(_is_whole, clients)):
            if limit.left() <= 0:
                raise TimeoutError(f"the cluster is not whole after {limit_s:.0f} s: {_info(clients[0])}")
            time.sleep(0.05)
        yield nodes[0][0].url


def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=5, decode_responses=True)


def _node(stack: ExitStack, password: str, limit: Limit) -> tuple[EmbeddedValkey, int]:
    bus_port = free_port()  # by default it is the port + 10000, which a random port may not have
    settings = ("cluster-enabled yes", f"cluster-port {bus_port}", "cluster-node-timeout 5000")
    node = EmbeddedValkey(*settings, password=password)
    stack.callback(node.stop)
    node.start(limit)
    return node, bus_port


def _info(client: redis.Redis) -> dict[str, Any]:
    found = client.execute_command("CLUSTER", "INFO")
    return found if isinstance(found, dict) else dict(line.split(":", 1) for line in found.split())


def _is_whole(client: redis.Redis) -> bool:
    info = _info(client)
    return info["cluster_state"] == "ok" and int(info["cluster_size"]) == NODES
