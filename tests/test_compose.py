"""compose.yaml starts what the engines would start, and only this machine can reach it."""

from __future__ import annotations

from pathlib import Path

import yaml

from tri_memory.engines.kind import POSTGRES, REDIS

COMPOSE = Path(__file__).parents[1] / "compose.yaml"


def test_the_servers_are_those_of_the_engines_with_the_data_on_volumes():
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    services = compose["services"]
    assert {name: service["image"] for name, service in services.items()} == {
        "redis": REDIS.image,
        "postgres": POSTGRES.image,
    }
    assert {service["volumes"][0].partition(":")[0] for service in services.values()} == set(compose["volumes"])
    assert "--appendonly yes" in services["redis"]["command"]


def test_the_ports_are_open_to_this_machine_only_and_the_head_names_the_two_urls():
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    for service, kind in ((services["redis"], REDIS), (services["postgres"], POSTGRES)):
        assert [port.rpartition(":")[2] for port in service["ports"]] == [str(kind.port)]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert f"{kind.variable}=" in COMPOSE.read_text(encoding="utf-8").partition("services:")[0]
