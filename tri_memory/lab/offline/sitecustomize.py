"""On a process's PYTHONPATH this takes the network away: whatever is not this machine can't be resolved or reached.

It holds for Python's own sockets. Code that wants to get round it can, so it is no wall against an attacker.
"""

import socket
from collections.abc import Callable
from typing import Any

_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")
_connect, _connect_ex, _getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo


def _refuse(host: object) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if not name.startswith(_LOOPBACK):
        raise OSError(f"the network is off in this run; somebody tried to reach {name}")


def _guarded(method: Callable[..., Any]) -> Any:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse(address[0])
        return method(self, address)

    return connect


def _guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
    _refuse(host)
    return _getaddrinfo(host, *args, **kwargs)


socket.socket.connect = _guarded(_connect)  # type: ignore[method-assign]
socket.socket.connect_ex = _guarded(_connect_ex)  # type: ignore[method-assign]
socket.getaddrinfo = _guarded_getaddrinfo
