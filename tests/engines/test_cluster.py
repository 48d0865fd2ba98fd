"""The test cluster is one: three nodes, all slots, and commands go to the node that has the key."""

from __future__ import annotations

import pytest
import redis

from tests.cluster import SLOTS, three_nodes
from tests.engines.census import eventually, folders, own_place, processes


def test_three_nodes_share_all_slots(redis_cluster: str) -> None:
    client = redis.RedisCluster.from_url(redis_cluster)
    assert len(client.get_primaries()) == 3
    covered = sum(last - first + 1 for first, last in client.cluster_slots())
    assert covered == SLOTS
    for number in range(60):
        client.set(f"key-{number}", number)
    sizes = client.dbsize(target_nodes="primaries")
    assert client.get("key-59") == b"59"
    assert sizes >= 60
    client.close()


def test_a_wrong_node_says_where_the_key_is(redis_cluster: str) -> None:
    with redis.Redis.from_url(redis_cluster) as one:
        moved = [key for key in "abcdef" if refuses(one, key)]
    assert 0 < len(moved) < 6


def test_nothing_is_left_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_place() as place:
        monkeypatch.setattr("tempfile.tempdir", str(place))
        with three_nodes():
            assert len(processes(place)) == 6
        eventually(lambda: processes(place), "processes")
        assert folders(place) == set()


def refuses(client: redis.Redis, key: str) -> bool:
    try:
        client.set(key, 1)
    except redis.exceptions.MovedError:
        return True
    return False
