"""The graph of one person of the kit, out of what the turns name, and its picture."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import chain

import networkx as nx
from matplotlib.figure import Figure

from tri_memory.entity.extract import extract
from tri_memory.entity.graph import EntityGraph, Node, user_node
from tri_memory.lab import datasets
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, axes

LOOKS = {"PERSON_ID": ("person", BLUE, "o"), "DEVICE_ID": ("device", GREEN, "s"), "CASE_ID": ("case", ORANGE, "D")}

_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}


def of_the_kit(*users: str, together: str = "turn") -> EntityGraph:
    """A graph of these people: what one turn names hangs together, or what one visit names (`together="visit"`).
    Turns are a minute apart."""
    graph = EntityGraph()
    for user in users:
        for visit in datasets.load(user[:2]).of(user):
            named = [extract(turn.content) for turn in visit.turns]
            for minute, entities in enumerate(named if together == "turn" else [list(chain.from_iterable(named))]):
                graph.add(entities, visit.started_at + timedelta(minutes=minute), user_id=user)
    return graph


def links(graph: EntityGraph, user: str) -> int:
    """Edges that don't end at the user."""
    return sum(user_node(user) not in edge for edge in graph.of(user).edges)


def draw(graph: EntityGraph, user: str) -> Figure:
    """The user in the middle; a form and a colour a kind; thick lines between things named in one turn."""
    its = graph.of(user)
    middle = user_node(user)
    figure, ax = axes(9.4, 5.2, title=f"What {user} named, and what was named together")
    others = sorted((node for node in its if node != middle), key=lambda node: (_group(its, middle, node), node))
    places = {middle: (0.0, 0.0)}
    for i, node in enumerate(others):
        turn = 2 * math.pi * i / len(others)
        places[node] = (math.cos(turn), math.sin(turn))
    for one, other in its.edges:
        apart = middle in (one, other)
        (x, y), (u, v) = places[one], places[other]
        ax.plot([x, u], [y, v], color=GREY, linewidth=1.2 if apart else 3.4, linestyle=":" if apart else "-", zorder=1)
    for kind, (name, colour, marker) in LOOKS.items():
        at = [place for node, place in places.items() if node.kind == kind]
        ax.scatter([x for x, _ in at], [y for _, y in at], s=300, c=colour, marker=marker, label=name, zorder=2)
    for node, (x, y) in places.items():
        text = node.value if node != middle else "the user"
        ax.annotate(text, (x, y), xytext=(0, 15), textcoords="offset points", ha="center", zorder=3, bbox=_WHITE)
    ax.set(xlim=(-1.45, 1.45), ylim=(-1.25, 1.35))
    ax.axis("off")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right upper", markerscale=0.6)
    return figure


def _group(its: nx.Graph, middle: Node, node: Node) -> Node:
    """The least node of those that hang together without the user, so that they stand side by side."""
    rest = its.subgraph(set(its) - {middle})
    return min(nx.node_connected_component(rest, node))
