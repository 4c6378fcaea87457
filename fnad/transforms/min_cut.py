"""The minimum cut of a network, found with a maximum flow by Dinic's algorithm.

E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation" (1970): flow is
added along shortest paths, all those of one length at a time, until no path is left. Capacities are integers of any
size, so nothing is rounded and nothing overflows.
"""

from __future__ import annotations

from collections.abc import Sequence

SOURCE, SINK = 0, 1


class Network:
    """Nodes are numbers; edge e and its reverse are e and e ^ 1, and `_left` is the capacity that is left of each."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._ends: list[int] = []
        self._left: list[int] = []

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def join(self, start: int, end: int, capacity: int) -> None:
        """Add an edge."""
        for node, other, left in ((start, end, capacity), (end, start, 0)):
            self._edges[node].append(len(self._ends))
            self._ends.append(other)
            self._left.append(left)

    def source_side(self) -> list[bool]:
        """Which nodes a minimum cut leaves with the source: the fewest, where there are several such cuts."""
        while (levels := self._levels())[SINK] >= 0:
            self._block(levels)
        return [level >= 0 for level in levels]

    def _levels(self) -> list[int]:
        """The number of edges with capacity left from the source to each node; -1 if there is no way."""
        levels = [-1] * len(self._edges)
        levels[SOURCE] = 0
        nodes = [SOURCE]
        for node in nodes:  # which grows
            for edge in self._edges[node]:
                end = self._ends[edge]
                if self._left[edge] and levels[end] < 0:
                    levels[end] = levels[node] + 1
                    nodes.append(end)
        return levels

    def _block(self, levels: Sequence[int]) -> None:
        """Add flow until each shortest path has a full edge."""
        ends, left = self._ends, self._left
        pending = [list(reversed(edges)) for edges in self._edges]  # of each node, the edges that may lead on
        path: list[int] = []
        node = SOURCE
        while True:
            if node == SINK:
                flow = min(left[edge] for edge in path)
                for edge in path:
                    left[edge] -= flow
                    left[edge ^ 1] += flow
                del path[next(i for i, edge in enumerate(path) if not left[edge]) :]
                node = ends[path[-1]] if path else SOURCE
            edges = pending[node]
            while edges and not (left[edges[-1]] and levels[ends[edges[-1]]] == levels[node] + 1):
                edges.pop()
            if edges:
                path.append(edges[-1])
                node = ends[edges[-1]]
            elif path:
                node = ends[path.pop() ^ 1]
                pending[node].pop()
            else:
                return
