"""A device for tests without a GPU: memory is NumPy's, kernels run thread by thread on the host, calls are recorded.

Its arrays are as distant as those of a GPU: NumPy can neither convert nor compute with them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fnad.backends.cuda import driver
from fnad.backends.cuda.driver import Operand
from fnad.errors import PlacementError
from fnad.kernel.launches import Launch
from fnad.kernel.statements import Kernel
from tests.cuda import harness


class Distant:
    """An array in the memory of the device; `memory` is that."""

    def __init__(self, memory: np.ndarray, number: int = 0) -> None:
        self.memory, self.number = memory, number

    dtype = property(lambda self: self.memory.dtype)
    shape = property(lambda self: self.memory.shape)
    strides = property(lambda self: self.memory.strides)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    nbytes = property(lambda self: self.memory.nbytes)
    flags = property(lambda self: self.memory.flags)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.memory.__array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getitem__(self, key: Any) -> Distant:
        return Distant(self.memory[key] if self.ndim else self.memory, self.number)

    def reshape(self, *shape: Any) -> Distant:
        return Distant(self.memory.reshape(*shape), self.number)

    def __repr__(self) -> str:
        return f"Distant({self.memory!r})"


class OtherLibrarys(Distant):
    """An array of another library in the same memory."""


class CudaError(Exception):
    """What CUDA would raise."""


class Simulated:
    """A device whose calls are recorded."""

    arch = "sm_90"
    description = "a simulated device"
    array_type = Distant
    failures = (CudaError,)

    def __init__(self, seed: int = 0, warp: int = 32) -> None:
        self.calls: list[str] = []
        self.schedule, self.warp = random.Random(seed), warp

    def check_current(self) -> None:
        pass

    def adopt(self, value: Any) -> Distant:
        self.calls.append("adopt")
        if value.number != 0:
            what = f"is in the memory of cuda:{value.number}, and programs run on cuda:0"
            raise PlacementError(what, remedy="copy it: fnad.to_device(fnad.to_host(x))")
        return value if type(value) is Distant else Distant(value.memory.view())

    def to_device(self, array: np.ndarray) -> Distant:
        self.calls.append("to_device")
        return Distant(np.array(array, order="C"))

    def to_host(self, value: Any) -> np.ndarray:
        self.calls.append("to_host")
        return value.memory.copy()

    def empty(self, shape: Any, dtype: Any) -> Distant:
        self.calls.append("empty")
        made = np.empty(shape, dtype)
        made.reshape(-1).view(np.uint8)[:] = 0xA5  # what is read before it is written shows
        return Distant(made)

    def copy(self, source: Distant, target: Distant) -> None:
        target.memory[...] = source.memory.reshape(target.shape)

    def fill(self, array: Distant, number: Any) -> None:
        array.memory.fill(number)

    def load(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        self.calls.append("load")
        return list(kernels)

    def launch(self, loaded: Kernel, blocks: int, threads: int, arrays: Sequence[Distant]) -> None:
        self.calls.append("launch")
        harness.run(Launch(loaded, blocks, threads), [array.memory for array in arrays], self.schedule, self.warp)

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def address(self, array: Distant) -> int:
        return array.memory.ctypes.data

    def owns(self, array: Distant) -> bool:
        return type(array) is Distant and array.memory.flags.owndata

    def products(
        self, out: Operand, a: Operand, b: Operand, size: tuple[int, int, int], count: int, steps: Sequence[int]
    ) -> None:
        self.calls.append("products")
        m, k, n = size
        for i in range(count):
            c, left, right = (
                x._replace(offset=x.offset + i * step) for x, step in zip((out, a, b), steps, strict=True)
            )
            matrix(c, m, n)[...] = matrix(left, m, k) @ matrix(right, k, n)

    def evaluate(self, function: Any, values: Sequence[Distant]) -> tuple[Distant, ...]:
        self.calls.append("evaluate")
        found = function(*[value.memory for value in values])
        return tuple(map(Distant, found if isinstance(found, tuple) else (found,)))


def matrix(x: Operand, rows: int, columns: int) -> np.ndarray:
    flat = x.array.memory.reshape(-1)
    strides = x.row_stride * flat.itemsize, x.column_stride * flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[x.offset :], (rows, columns), strides)


@contextmanager
def simulated() -> Iterator[Simulated]:
    device = Simulated()
    with driver.using(device):
        yield device
