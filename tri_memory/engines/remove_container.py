"""`python remove_container.py NAME`: what the watchman of a container runs when its owner is gone."""

from __future__ import annotations

import sys
import time

PATIENCE_S = 3.0  # the owner may have gone while Docker was still making the container
PAUSE_S = 0.3


def remove(name: str) -> None:
    """Remove the container and its anonymous volumes, running or not; no error where there is none."""
    from docker.errors import APIError, NotFound
    from testcontainers.core.docker_client import DockerClient

    containers = DockerClient().client.containers
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        try:
            containers.get(name).remove(force=True, v=True)
        except NotFound:
            time.sleep(PAUSE_S)
        except APIError:  # somebody is removing it already
            return
        else:
            return


if __name__ == "__main__":
    remove(sys.argv[1])
