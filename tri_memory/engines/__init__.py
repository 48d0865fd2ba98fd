"""Where a real Redis or PostgreSQL comes from: a URL, a container, or a server in a wheel.

Importing this room imports no client and no Docker library; those are needed when an engine starts.
"""

from tri_memory.engines.choices import Way, describe
from tri_memory.engines.engine import Engine, postgres, redis

__all__ = ["Engine", "Way", "describe", "postgres", "redis"]
