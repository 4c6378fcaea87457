"""The memory of a run on a device, and the graphs of what was launched on it.

A kernel takes addresses, each by the address of the place where it stands. All of them stand in one array of the frame,
so each launch takes the same arguments at each call. What is launched with the same addresses again is replayed as a
graph, which is one call. A frame is kept for the next call on the same stream, whose work comes after that of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from ctypes import addressof, c_uint64
from typing import Any, TypeAlias

import numpy as np

from fnad.backends.cuda.driver import DeviceArray, Driver
from fnad.config import PrecisionName

Run: TypeAlias = "Callable[[Frame], None]"

GRAPHS = 8
"""The most graphs of a frame for each stretch of a program that is one."""

REPAID = 16
"""The replays after which a graph has cost less than what it saves."""


class Frame:
    """The arrays of a program by their positions, the counters of loops that the host runs, and where kernels look."""

    def __init__(
        self, device: Driver, arrays: Sequence[DeviceArray], depth: int, taken: Sequence[Sequence[int]],
        stretches: int = 1,
    ) -> None:  # fmt: skip
        self._device, self._most_graphs = device, GRAPHS * stretches
        self.arrays: list[Any] = [None] * len(arrays)
        self._addresses = (c_uint64 * len(arrays))()
        for position, array in enumerate(arrays):
            if array is not None:
                self.place(position, array)
        self.counters = [0] * depth
        self.rows: dict[int, int] = {}
        self.stream = 0
        self.precision: PrecisionName = "float32"
        self.given: tuple[int, ...] = ()
        self.lent: list[DeviceArray] = []
        start = addressof(self._addresses)
        self._tables = [(c_uint64 * len(p))(*[start + 8 * position for position in p]) for p in taken]
        self.parameters = [addressof(table) for table in self._tables]
        self.is_captured = False
        self._graphs: dict[Hashable, Any] = {}
        self._numbers: dict[int, tuple[bytes, DeviceArray]] = {}
        self._seen: set[Hashable] = set()
        self._captured = self._replayed = 0

    def place(self, position: int, array: DeviceArray) -> None:
        """Have kernels find an array at a position."""
        self.arrays[position] = array
        self._addresses[position] = self._device.address(array)

    def copied(self, position: int, number: np.ndarray[Any, Any]) -> DeviceArray:
        """A number on the device, which is copied again if it is another one than at the call before."""
        content = number.tobytes()
        known, array = self._numbers.get(position, (None, None))
        if known != content:
            array = self._device.to_device(number)
            self._numbers[position] = content, array
        return array

    def drop(self, position: int) -> None:
        """Give back the array at a position."""
        self.arrays[position], self._addresses[position] = None, 0

    def give(self, arrays: Sequence[DeviceArray]) -> None:
        """Put what a call brings at the first positions."""
        self.given = given = tuple(map(self._device.address, arrays))
        self.arrays[: len(given)] = arrays
        self._addresses[: len(given)] = given

    def take_back(self) -> None:
        """Hold on to the arrays of the call no longer than its work does."""
        self._device.hold(self.lent)
        self.lent.clear()
        self.arrays[: len(self.given)] = [None] * len(self.given)

    # ---- graphs --------------------------------------------------------------------------------------------------

    @property
    def call(self) -> Hashable:
        """The values of a call on which a graph depends."""
        return self.precision, self.given

    def graph_again(self, run: Run, *others: int) -> Any:
        """The graph of a run with the arrays of the call and at other addresses, if they have been there before."""
        key = run, self.call, *others
        graph = self._graphs.get(key)
        if graph is None and self._is_worth(key):
            graph = self.captured(key, run)
        self._replayed += graph is not None
        return graph

    def _is_worth(self, key: Hashable) -> bool:
        """True if to make a graph: of arrays that come again, and as long as those made before are replayed."""
        is_known = key in self._seen
        if len(self._seen) > self._most_graphs * REPAID:
            self._seen.clear()
        self._seen.add(key)
        return is_known and self._captured < self._most_graphs + self._replayed // REPAID

    def captured(self, key: Hashable, run: Run) -> Any:
        """The graph under a key, made of a run if it is not there: nothing runs yet."""
        graph = self._graphs.get(key)
        if graph is None:
            while len(self._graphs) >= self._most_graphs:
                del self._graphs[next(iter(self._graphs))]
            graph = self._graphs[key] = self._device.capture(lambda stream: self._on(stream, run))
            self._captured += 1
        return graph

    def _on(self, stream: int, run: Run) -> None:
        """Run on a stream that notes what it is asked."""
        own, self.stream, self.is_captured = self.stream, stream, True
        try:
            run(self)
        finally:
            self.stream, self.is_captured = own, False
