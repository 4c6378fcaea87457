"""The operations that the executor requires of a device: memory, kernels, matrix products, graphs, and waiting.

What is asked runs in the order in which it is asked, on the stream that it is given or that is current; only `to_host`
and `synchronize` wait for it. Launches and products can be captured: then they are noted, not run, and nothing else may
be asked meanwhile. Arrays are of the driver's class, CuPy's where the device is a GPU (`gpu.py`), and have the
NumPy attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from fnad.config import PrecisionName
from fnad.ir.types import Dtype, Shape
from fnad.kernel.launches import Launch

Array: TypeAlias = "np.ndarray[Any, Any]"
DeviceArray: TypeAlias = Any


class Operand(NamedTuple):
    """A matrix in the memory of an array: element (r, c) is at offset + r · row_stride + c · column_stride.

    One of the strides is 1.
    """

    array: DeviceArray
    offset: int
    row_stride: int
    column_stride: int


class Scale(NamedTuple):
    """The factors of a product, and of what is there, which is not read if that is 0."""

    alpha: float
    beta: float


class Driver(Protocol):
    """A device."""

    arch: str
    """The architecture that kernels are compiled for: "sm_90"."""

    description: str
    """The name of the device, for people."""

    multiprocessors: int
    """The number of its multiprocessors, each of which runs a block at least."""

    array_type: type
    """The class of its arrays."""

    failures: tuple[type[Exception], ...]
    """The exceptions that CUDA raises."""

    def check_current(self) -> None:
        """Raise `PlacementError` where another device has become the current one."""
        ...

    def adopt(self, value: Any) -> DeviceArray:
        """An array of any library, as one of the driver's in the same memory; work on it so far is waited for."""
        ...

    def to_device(self, array: Array) -> DeviceArray:
        """A copy of a NumPy array."""
        ...

    def to_host(self, value: Any) -> Array:
        """A copy as a NumPy array, when all that was asked before is done."""
        ...

    def empty(self, shape: Shape, dtype: Dtype) -> DeviceArray:
        """A new array of any content; raises `DeviceMemoryError` where there is no room for it."""
        ...

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copy the elements of one array to another one of as many elements."""
        ...

    def address(self, array: DeviceArray) -> int:
        """The address of an array in the memory of the device."""
        ...

    def stream(self) -> int:
        """The current stream."""
        ...

    def load(self, launches: Sequence[Launch]) -> list[Any]:
        """The kernels of launches, compiled and ready to be launched."""
        ...

    def launch(self, loaded: Any, blocks: int, threads: int, stream: int, parameters: int) -> None:
        """Run a kernel on so many blocks of threads.

        At the address `parameters` are as many addresses as it has parameters, each of where an array's address stands.
        """
        ...

    def products(
        self, out: Operand, a: Operand, b: Operand, size: tuple[int, int, int], count: int, steps: Sequence[int],
        scale: Scale, precision: PrecisionName, stream: int,
    ) -> None:  # fmt: skip
        """out[m, n] = alpha · a[m, k] · b[k, n] + beta · out so many times, where (m, k, n) is the size.

        Each of the matrices begins a step of its own further on than that of the time before. The precision is that of
        single precision; others have their own.
        """
        ...

    def capture(self, run: Callable[[int], None]) -> Any:
        """A graph of what is launched on the stream that `run` is called with, with the addresses as they are now."""
        ...

    def replay(self, graph: Any, stream: int) -> None:
        """Run what a graph consists of."""
        ...

    def evaluate(self, function: Callable[..., Any], values: Sequence[DeviceArray]) -> tuple[DeviceArray, ...]:
        """The results of a NumPy function on arrays of the driver's; raises what the function raises."""
        ...

    def synchronize(self) -> None:
        """Wait until all that was asked is done."""
        ...

    def owns(self, array: DeviceArray) -> bool:
        """True if nobody else has the memory of an array, so that it may be given away."""
        ...

    def hold(self, arrays: Sequence[DeviceArray]) -> None:
        """Keep arrays of other libraries, which know nothing of the stream, until all that was asked before is done."""
        ...


_drivers: list[Driver] = []


def current() -> Driver:
    """The driver of this process; raises `DeviceError` where there is no GPU, or a package is missing."""
    if not _drivers:
        _drivers.append(import_module("fnad.backends.cuda.gpu").open_gpu())
    return _drivers[-1]


@contextmanager
def using(driver: Driver) -> Generator[Driver]:
    """Have another driver run programs in this block."""
    _drivers.append(driver)
    try:
        yield driver
    finally:
        _drivers.remove(driver)
