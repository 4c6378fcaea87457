"""A device for tests without a GPU: memory is NumPy's, kernels run thread by thread on the host, calls are recorded.

Its arrays are as distant as those of a GPU: NumPy can neither convert nor compute with them.
"""

from __future__ import annotations

import ctypes
import random
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg
import scipy.signal

from fnad.backends.cuda import driver
from fnad.backends.cuda.driver import Operand, Scale
from fnad.backends.cuda.executor import DeviceExecutor
from fnad.backends.cuda.target import CUDA
from fnad.errors import PlacementError
from fnad.ir.content import Content, content_key
from fnad.ir.program import Program
from fnad.kernel.launches import DevicePlan, Launch
from fnad.kernel.statements import Kernel
from fnad.lower.lowering import lower
from fnad.lower.target import Grid
from tests.cuda import harness

SMALL = replace(CUDA, grid=Grid(threads=8, blocks=3, warp=4))
"""A device of few threads, which small arrays keep busy."""

CAPTURING = 99
"""The stream on which launches are noted."""


class Distant:
    """An array in the memory of the device; `memory` is that, of another library if it `is_lent`."""

    is_lent = False

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


class Taken(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that takes NumPy's functions over, as CuPy's do, and that no other function can make NumPy's of."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    dtype = property(lambda self: self.memory.dtype)
    shape = property(lambda self: self.memory.shape)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return given(getattr(ufunc, method)(*taken(inputs), **taken(options)))

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        if unknown := options.keys() - set(CUPYS.get(function, " ".join(options)).split()):
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {min(unknown)!r}")
        return given(function(*taken(inputs), **taken(options)))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getitem__(self, key: Any) -> Any:
        return Taken(self.memory[taken(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray):
            raise TypeError("Unsupported type: an array of NumPy's is not assigned.")
        self.memory[taken(key)] = taken(value)

    def __bool__(self) -> bool:
        return bool(self.memory)

    def __int__(self) -> int:
        return int(self.memory)

    def __getattr__(self, name: str) -> Any:
        if name not in ("astype", "reshape", "copy", "view", "max", "all", "any", "T", "real", "imag"):
            raise AttributeError(f"no array of CuPy's is asked for {name} here")
        found = getattr(self.memory, name)
        return through(found) if callable(found) else Taken(found)


Taken.__module__ = "cupy"


def taken(value: Any) -> Any:
    """A value with NumPy's arrays in the place of those."""
    if isinstance(value, tuple | list):
        return type(value)(map(taken, value)) if type(value) in (tuple, list) else value
    if isinstance(value, dict):
        return {name: taken(x) for name, x in value.items()}
    return value.memory if isinstance(value, Taken) else value


def given(value: Any) -> Any:
    """A result with those in the place of NumPy's arrays."""
    if isinstance(value, tuple | list):
        return tuple(map(given, value))
    return Taken(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def through(function: Any) -> Any:
    """A function of SciPy's or a method as CuPy's."""
    return lambda *inputs, **options: given(function(*taken(inputs), **taken(options)))


CUPYS = {
    np.argsort: "axis kind", np.searchsorted: "side sorter", np.linalg.cholesky: "", np.linalg.qr: "mode",
    np.linalg.svd: "full_matrices compute_uv", np.linalg.eigh: "UPLO", np.linalg.eigvalsh: "UPLO",
    np.linalg.pinv: "rcond", np.linalg.lstsq: "rcond", **dict.fromkeys((np.fft.fft, np.fft.rfft), "n axis norm"),
}  # fmt: skip
"""The options that CuPy's functions have, in its version 14."""

CUPYX = {
    "cupyx.scipy.linalg": SimpleNamespace(
        lu_factor=through(scipy.linalg.lu_factor), solve_triangular=through(scipy.linalg.solve_triangular)
    ),
    "cupyx.scipy.signal": SimpleNamespace(convolve=through(scipy.signal.convolve)),
}
"""The modules of CuPy's that have SciPy's functions, as far as programs use them."""


class CudaError(Exception):
    """What CUDA would raise."""


class Graph:
    """What was launched while it was captured; it holds on to no memory, as CUDA's do not."""

    def __init__(self, nodes: list[Callable[[], None]]) -> None:
        self.nodes = nodes


class Simulated:
    """A device whose calls are recorded, and which forbids what CUDA does.

    A launch is of addresses, at which there must be arrays that are still in use when it runs, if it was captured each
    time. While something is captured, nothing may be asked that waits for the device or takes memory.
    """

    arch = "sm_90"
    description = "a simulated device"
    multiprocessors = 4
    array_type = Distant
    failures = (CudaError,)

    def __init__(self, seed: int = 0, warp: int = 32) -> None:
        self.calls: list[str] = []
        self.scales: list[Scale] = []
        self.held: list[Distant] = []
        self.current = 0
        self.memory: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}
        self.pool: dict[int, list[bytearray]] = {}
        self.captured: list[Callable[[], None]] | None = None
        self.schedule, self.warp = random.Random(seed), warp

    def check_current(self) -> None:
        pass

    def adopt(self, value: Any) -> Distant:
        self.asked("adopt")
        if value.number != 0:
            what = f"is in the memory of cuda:{value.number}, and programs run on cuda:0"
            raise PlacementError(what, remedy="copy it: fnad.to_device(fnad.to_host(x))")
        if type(value) is Distant:
            return value
        shared = Distant(value.memory.view())
        shared.is_lent = True
        return shared

    def asked(self, name: str) -> None:
        self.calls.append(name)
        if self.captured is not None and name not in ("adopt", "launch", "products"):
            raise CudaError(f"operation not permitted when stream is capturing: {name}")

    def to_device(self, array: np.ndarray) -> Distant:
        self.asked("to_device")
        return Distant(np.array(array, order="C"))

    def to_host(self, value: Any) -> np.ndarray:
        self.asked("to_host")
        return value.memory.copy()

    def empty(self, shape: Any, dtype: Any) -> Distant:
        self.asked("empty")
        count = int(np.prod(shape))
        if not count:
            return Distant(np.empty(shape, dtype))
        free = self.pool.setdefault(count * np.dtype(dtype).itemsize, [])
        memory = free.pop() if free else bytearray(count * np.dtype(dtype).itemsize)
        memory[:] = b"\xa5" * len(memory)  # what is read before it is written shows
        flat = np.frombuffer(memory, dtype)
        weakref.finalize(flat, free.append, memory)
        return Distant(flat.reshape(shape))

    def copy(self, source: Distant, target: Distant) -> None:
        self.asked("copy")
        target.memory[...] = source.memory.reshape(target.shape)

    def address(self, array: Distant) -> int:
        address, owner = array.memory.ctypes.data, array.memory
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self.memory[address] = weakref.ref(owner), array.memory.size
        return address

    def stream(self) -> int:
        return self.current

    def load(self, launches: Sequence[Launch]) -> list[Kernel]:
        self.asked("load")
        return [launch.kernel for launch in launches]

    def launch(self, loaded: Kernel, blocks: int, threads: int, stream: int, parameters: int) -> None:
        self.asked("launch")
        assert stream == (self.current if self.captured is None else CAPTURING)
        count = len(loaded.parameters)
        places = (ctypes.c_uint64 * count).from_address(parameters)
        addresses = [ctypes.c_uint64.from_address(place).value for place in places]
        self.run_or_note(lambda: self.run_kernel(Launch(loaded, blocks, threads), addresses))

    def run_kernel(self, launch: Launch, addresses: Sequence[int]) -> None:
        arrays = [self.at(a, p.kind.dtype) for p, a in zip(launch.kernel.parameters, addresses, strict=True)]
        harness.run(launch, arrays, self.schedule, self.warp)

    def at(self, address: int, dtype: Any) -> np.ndarray:
        """The array at an address, which must still be in use."""
        if not address:
            return np.empty(0, dtype)
        reference, size = self.memory[address]
        owner = reference()
        if owner is None:
            raise CudaError(f"an illegal memory access: the array at {address} is freed")
        if not size:
            return np.empty(0, dtype)
        memory = (ctypes.c_ubyte * (size * dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype)

    def run_or_note(self, node: Callable[[], None]) -> None:
        if self.captured is None:
            node()
        else:
            self.captured.append(node)

    def capture(self, run: Callable[[int], None]) -> Graph:
        assert self.captured is None
        self.asked("capture")
        self.captured = []
        try:
            run(CAPTURING)
            return Graph(self.captured)
        finally:
            self.captured = None

    def replay(self, graph: Graph, stream: int) -> None:
        self.asked("replay")
        assert stream == self.current
        for node in graph.nodes:
            node()

    def synchronize(self) -> None:
        self.asked("synchronize")

    def hold(self, arrays: Sequence[Distant]) -> None:
        self.held += [array for array in arrays if array.is_lent]

    def owns(self, array: Distant) -> bool:
        return type(array) is Distant and array.memory.flags.owndata

    def products(
        self, out: Operand, a: Operand, b: Operand, size: tuple[int, int, int], count: int, steps: Sequence[int],
        scale: Scale, precision: str, stream: int,
    ) -> None:  # fmt: skip
        self.asked("products")
        self.scales.append(scale)
        assert stream == (self.current if self.captured is None else CAPTURING)
        # a graph has their addresses, but no right to their memory
        given = [(x._replace(array=None), x.array.dtype, self.address(x.array)) for x in (out, a, b)]
        self.run_or_note(lambda: self.multiply(given, size, count, steps, scale, precision))

    def multiply(
        self, given: Any, size: tuple[int, int, int], count: int, steps: Sequence[int], scale: Scale, precision: str
    ) -> None:
        m, k, n = size
        rounded = to_tf32 if precision == "tensorfloat32" else np.asarray
        operands = [x._replace(array=Distant(self.at(address, dtype))) for x, dtype, address in given]
        for i in range(count):
            c, left, right = (x._replace(offset=x.offset + i * step) for x, step in zip(operands, steps, strict=True))
            product = rounded(matrix(left, m, k)) @ rounded(matrix(right, k, n))
            into, (alpha, beta) = matrix(c, m, n), map(c.array.dtype.type, scale)
            into[...] = alpha * product + beta * into if beta else alpha * product

    def evaluate(self, function: Any, values: Sequence[Distant]) -> tuple[Distant, ...]:
        self.asked("evaluate")
        with patch.dict(sys.modules, CUPYX), np.errstate(all="ignore"):  # CuPy gives no warnings
            found = function(*map(Taken, [value.memory for value in values]))
        return tuple(Distant(np.asarray(taken(x))) for x in (found if isinstance(found, tuple) else (found,)))


def to_tf32(x: np.ndarray) -> np.ndarray:
    """Numbers of single precision with ten bits of a fraction; others as they are."""
    if x.dtype not in (np.float32, np.complex64):
        return x
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(x.dtype)


def matrix(x: Operand, rows: int, columns: int) -> np.ndarray:
    flat = x.array.memory.reshape(-1)
    strides = x.row_stride * flat.itemsize, x.column_stride * flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[x.offset :], (rows, columns), strides)


@contextmanager
def simulated() -> Iterator[Simulated]:
    device = Simulated()
    with driver.using(device):
        yield device


# ---- programs on few threads -----------------------------------------------------------------------------------------


class OnThreads:
    """Runs programs on a simulated device of few threads; equal ones are compiled once."""

    def __init__(self) -> None:
        self._made: dict[Content, DeviceExecutor] = {}

    def __call__(self, program: Program, arrays: Sequence[Any]) -> list[Any]:
        key = content_key(program)
        if key not in self._made:
            plan = DevicePlan(lower(program, SMALL), SMALL)
            self._made[key] = DeviceExecutor(plan, Simulated(warp=SMALL.grid.warp))
        return [array.memory for array in self._made[key](list(map(np.asarray, arrays)))]
