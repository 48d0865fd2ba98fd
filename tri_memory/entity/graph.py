"""Which case belongs to which device and which person: a graph of each user's own, out of what their turns name.

What is named in one turn hangs together, and everything hangs on the user. A graph of its own for each user, so that
there is no path to another user's node, however many name the same device. What it does not do: outlive the process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

import networkx as nx

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc, require_text
from tri_memory.entity.extract import Entity
from tri_memory.entity.records import Forgotten
from tri_memory.entity.rule import Kind, require_kind

MOST_TOGETHER = 20  # entities of one turn; a longer list doesn't say what belongs to what, and its pairs are too many


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A person, device or case of one user: the kind and the normalised value of an `Entity`."""

    kind: Kind
    value: str

    def __post_init__(self) -> None:
        require_kind(self.kind)
        if self.kind == "PREFERENCE":
            raise ValueError("a node is a person, a device or a case; a PREFERENCE belongs in a preference store")
        require_text("value", self.value)


@dataclass(frozen=True, slots=True)
class Link:
    """An edge as seen from one of its ends: `node` is the other. `first_at` and `last_at` are when a turn named both,
    aware, in UTC; `confidence`, in (0, 1], is that of the surest turn, and there of the less sure of the two."""

    node: Node
    first_at: datetime
    last_at: datetime
    confidence: float


class EntityGraph:
    """Persons, devices and cases, and since when they belong together. Safe for several threads.

    Adding a turn again changes nothing, and the order in which turns are added doesn't matter.

    >>> from tri_memory.entity.extract import extract
    >>> graph, monday = EntityGraph(), datetime.fromisoformat("2026-03-02T09:00+00:00")
    >>> graph.add(extract("PUMP-17 whines again. Is that case MC-3061?"), monday, user_id="ann")
    3
    >>> [case.value for case in graph.cases_of(user_id="ann")]
    ['MC-3061']
    >>> [link.node.value for link in graph.neighbours(Node("DEVICE_ID", "PUMP-17"), user_id="ann")]
    ['MC-3061', 'ann']
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._graphs: dict[str, nx.Graph] = {}
        self._forgotten_at: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def add(self, entities: Iterable[Entity], at: datetime, *, user_id: str) -> int:
        """Link what one turn of this user named at that time; how many edges that touched.

        Edges run between nodes of different kinds, and from the user to every node. Preferences are passed over. Where
        a turn names more than 20, each is linked to the user only. ValueError for a blank user and a naive time;
        Forgotten, and nothing is added, where it was said before the user was forgotten.
        """
        user, at = user_node(user_id), as_utc("at", at)
        sure: dict[Node, float] = {}
        for entity in entities:
            if entity.kind != "PREFERENCE":
                node = Node(entity.kind, entity.value)
                sure[node] = max(entity.confidence, sure.get(node, 0.0))
        sure.pop(user, None)
        pairs = [(user, node) for node in sure]
        if len(sure) <= MOST_TOGETHER:
            pairs += [(one, other) for one, other in combinations(sure, 2) if one.kind != other.kind]
        with self._lock:
            if user_id in self._forgotten_at and at <= self._forgotten_at[user_id]:
                raise Forgotten("this was said before its user was forgotten, so it is not added; drop the job")
            if pairs:
                graph = self._graphs.setdefault(user_id, nx.Graph())
                for one, other in pairs:
                    _link(graph, one, other, at, min(sure.get(one, 1.0), sure[other]))
        return len(pairs)

    def neighbours(self, entity: Entity | Node, since: datetime | None = None, *, user_id: str) -> list[Link]:
        """What this user's turns named together with `entity` at that time or later, the latest first; of equals by
        kind and value. [] where this user never named it."""
        user_node(user_id)
        since = None if since is None else as_utc("since", since)
        node = _node(entity)
        with self._lock:
            edges = dict(self._graphs[user_id].adj.get(node, {})) if user_id in self._graphs else {}
            links = [
                Link(other, edge["first_at"], edge["last_at"], edge["confidence"]) for other, edge in edges.items()
            ]
        links = [link for link in links if since is None or link.last_at >= since]
        return sorted(sorted(links, key=lambda link: link.node), key=lambda link: link.last_at, reverse=True)

    def cases_of(
        self, person: Entity | Node | None = None, since: datetime | None = None, *, user_id: str
    ) -> list[Node]:
        """The cases that belong to a person, by default to the user, or to a device; the last named first."""
        node = user_node(user_id) if person is None else person
        return [link.node for link in self.neighbours(node, since, user_id=user_id) if link.node.kind == "CASE_ID"]

    def of(self, user_id: str) -> nx.Graph:
        """A copy of one user's graph, to draw or to compute with: nodes `Node`, edges with `first_at`, `last_at`,
        `confidence`. Empty for an unknown user."""
        user_node(user_id)
        with self._lock:
            return self._graphs.get(user_id, nx.Graph()).copy()

    def forget(self, user_id: str) -> int:
        """Remove everything of this user; how many nodes there were, the user's own not counted. What was said until
        now, by the graph's clock, can't be added any more: a slow save brings nothing back."""
        user_node(user_id)
        with self._lock:
            self._forgotten_at[user_id] = as_utc("the clock's time", self._clock())
            graph = self._graphs.pop(user_id, None)
        return 0 if graph is None else len(graph) - 1

    def purge(self, before: datetime) -> int:
        """Drop the note that a user was forgotten before that time; how many notes that were. What they said before
        `forget` could then be added again: purge later than the longest time that a queue keeps a job."""
        before = as_utc("before", before)
        with self._lock:
            old = [user_id for user_id, at in self._forgotten_at.items() if at < before]
            for user_id in old:
                del self._forgotten_at[user_id]
        return len(old)


def user_node(user_id: str) -> Node:
    """The node that the user is; ValueError for a blank user."""
    return Node("PERSON_ID", require_text("user_id", user_id))


def _node(entity: Entity | Node) -> Node:
    if isinstance(entity, Node):
        return entity
    if isinstance(entity, Entity):
        return Node(entity.kind, entity.value)
    raise ValueError(f"entity must be an Entity or a Node; got a {type(entity).__name__}")


def _link(graph: nx.Graph, one: Node, other: Node, at: datetime, confidence: float) -> None:
    if graph.has_edge(one, other):
        edge = graph.edges[one, other]
        edge["first_at"], edge["last_at"] = min(edge["first_at"], at), max(edge["last_at"], at)
        edge["confidence"] = max(edge["confidence"], confidence)
    else:
        graph.add_edge(one, other, first_at=at, last_at=at, confidence=confidence)
