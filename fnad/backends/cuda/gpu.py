"""An NVIDIA GPU as a driver: CuPy's memory pool, streams, modules and cuBLAS.

Everything runs on CuPy's current stream and device, so that it is in order with what the user asks of CuPy.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from fnad.backends.cuda import offers
from fnad.backends.cuda.driver import Array, DeviceArray, Operand, Scale
from fnad.backends.cuda.kept import kept_ptx
from fnad.config import PrecisionName
from fnad.errors import DeviceError, DeviceMemoryError, LoweringError, PlacementError
from fnad.forks import cached_property
from fnad.ir.types import Dtype, Shape
from fnad.kernel.launches import Launch

PACKAGES = "pip install 'fnad[cuda]' brings all packages that it takes"
SEE = (
    "it takes a GPU of NVIDIA's and its driver, for CuPy's version of CUDA or later: `fnad doctor` shows what is there"
)
GEMM = {"f": "Sgemm", "d": "Dgemm", "F": "Cgemm", "D": "Zgemm"}
"""cuBLAS's matrix products, by the letters of dtypes."""

TYPES = {"f": 0, "F": 4}
"""CUDA's numbers of the dtypes whose products may be in TF32."""

FAST_TF32, DEFAULT_ALGORITHM = 77, -1
"""cuBLAS's numbers of a way to compute, and of an algorithm that it chooses."""

INT, LONG, POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
SIZES = (POINTER, *[INT] * 5, POINTER)
TYPED, LONG_TYPED = (POINTER, INT, INT), (POINTER, INT, INT, LONG)
ARGUMENTS = {
    "gemm_v2": (*SIZES, *[POINTER, INT] * 2, POINTER, POINTER, INT),
    "gemmStridedBatched": (*SIZES, *[POINTER, INT, LONG] * 2, POINTER, POINTER, INT, LONG, INT),
    "GemmEx": (*SIZES, *TYPED * 2, POINTER, *TYPED, INT, INT),
    "GemmStridedBatchedEx": (*SIZES, *LONG_TYPED * 2, POINTER, *LONG_TYPED, INT, INT, INT),
    "SetStream_v2": (POINTER, POINTER),
}
"""The types of the arguments of cuBLAS's functions, without the letters of dtypes."""

NO_TRANSPOSITION, TRANSPOSITION = 0, 1

UNREGISTERED = 0
"""CUDA's number for memory of the host that it knows nothing of."""

OWN_MEMORY = ("PooledMemory", "Memory", "MemoryAsync", "ManagedMemory")
"""CuPy's classes of memory that it has allocated, not been given by another library."""

REFUSALS = (RuntimeError, TypeError, ValueError)
"""The exceptions that libraries raise if an array cannot be shared."""

DETACH = "give x.detach() of it"
CONVERT = "give a copy, as a NumPy array or one that this process has made on the device"

LARGEST = 2**31 - 1
"""The largest number that cuBLAS takes by these functions."""


class LoadedKernel(NamedTuple):
    """A kernel in the memory of the device; the module lives as long as this does."""

    function: Any
    module: Any


def open_gpu() -> Gpu:
    """The GPU that CuPy has chosen; raises `DeviceError` where there is none to be had."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        reason = error.__cause__ or error  # CuPy's own error is a page of text about its cause
        raise DeviceError(f"CUDA needs CuPy, which cannot be imported: {reason}", remedy=PACKAGES) from None
    try:
        capability = cupy.cuda.Device().compute_capability
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"no GPU can be used: {error}; CUDA driver: {offers.driver()}", remedy=SEE) from None
    return Gpu(cupy, f"sm_{capability}")


class Gpu:
    """A GPU, through CuPy."""

    def __init__(self, cupy: Any, arch: str) -> None:
        self.arch, self.array_type = arch, cupy.ndarray
        self._cupy = cupy
        self._device = int(cupy.cuda.Device().id)
        properties = cupy.cuda.runtime.getDeviceProperties(self._device)
        size, version = properties["totalGlobalMem"] / 2**30, cupy.cuda.runtime.driverGetVersion()
        name, self.multiprocessors = properties["name"].decode(), properties.get("multiProcessorCount", 1)
        self.description = f"{name}, {size:.0f} GiB, {arch}, driver for CUDA {version // 1000}.{version % 1000 // 10}"
        self._functions: dict[str, Callable[..., None]] = {}
        self._factors: dict[tuple[str, float], Array] = {}
        self._own_memory = tuple(getattr(cupy.cuda.memory, name) for name in OWN_MEMORY)
        self._lent: deque[tuple[Any, list[DeviceArray]]] = deque()
        driver = import_module("cupy_backends.cuda.api.driver")
        self._launch, self._current = driver.launchKernel, cupy.cuda.runtime.getDevice
        self._thread = threading.local()
        self._replay, self._stream = cupy.cuda.runtime.graphLaunch, cupy.cuda.get_current_stream
        self.failures = (cupy.cuda.runtime.CUDARuntimeError, driver.CUDADriverError)

    def check_current(self) -> None:
        if (number := self._current()) != self._device:
            raise PlacementError(
                f"programs run on cuda:{self._device}, and the current device is cuda:{number}",
                remedy=f"call them under cupy.cuda.Device({self._device}): a process has one device for programs",
            )
        if not hasattr(self._thread, "has_context"):
            # A launch takes the context of its thread, which it has from a call of the runtime that needs one.
            self._cupy.cuda.runtime.memGetInfo()
            self._thread.has_context = True

    def adopt(self, value: Any) -> DeviceArray:
        array = value if type(value) is self.array_type else self._shared(value)
        if array.device.id != self._device:
            raise PlacementError(
                f"is in the memory of cuda:{array.device.id}, and programs run on cuda:{self._device}",
                remedy=f"copy it: fnad.to_device(fnad.to_host(x)), under cupy.cuda.Device({self._device})",
            )
        return array

    def _shared(self, value: Any) -> DeviceArray:
        """A view of another library's array, by DLPack, which has the libraries agree on the order of their work."""
        if hasattr(type(value), "__dlpack__"):
            with suppress(BufferError, *REFUSALS):  # what DLPack cannot say, such as a tensor with a record
                return self._cupy.from_dlpack(value)
        try:
            return self._cupy.asarray(value)
        except REFUSALS as error:
            remedy = DETACH if hasattr(value, "detach") else CONVERT
            raise PlacementError(f"does not give its memory: {error}", remedy=remedy) from None

    def to_device(self, array: Array) -> DeviceArray:
        made = self.empty(array.shape, array.dtype)
        source = np.ascontiguousarray(array).reshape(array.shape)
        made.set(source.copy() if self._is_read_later(source) else source)
        return made

    def _is_read_later(self, array: Array) -> bool:
        """True if a copy of an array would be made when the stream is there, by which time it may have other contents.

        That is so of memory that CUDA knows, pinned or managed; of other memory it has copied when it returns.
        """
        return bool(array.size) and self._cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type != UNREGISTERED

    def to_host(self, value: Any) -> Array:
        return self._cupy.asnumpy(self._shared(value) if type(value) is not self.array_type else value)

    def empty(self, shape: Shape, dtype: Dtype) -> DeviceArray:
        try:
            return self._cupy.empty(shape, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(
                f"{np.prod(shape, dtype=object) * dtype.itemsize} bytes for {dtype}{list(shape)} are not free: {error}",
                remedy=self._remedy(),
            ) from None

    def _remedy(self) -> str:
        free, total = self._cupy.cuda.runtime.memGetInfo()
        return f"use smaller batches, or fnad.checkpoint: {free} of {total} bytes are free on the GPU"

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        self._cupy.copyto(target, source.reshape(target.shape))

    def address(self, array: DeviceArray) -> int:
        return array.data.ptr

    def stream(self) -> int:
        return self._stream().ptr

    def load(self, launches: Sequence[Launch]) -> list[LoadedKernel]:
        if not launches:
            return []
        self.check_current()
        module = self._cupy.cuda.function.Module()
        try:
            module.load(kept_ptx(launches, self.arch))
        except self.failures as error:  # of a driver that is older than what the kernels are written for
            raise DeviceError(f"the driver does not take kernels for {self.arch}: {error}", remedy=SEE) from None
        return [LoadedKernel(module.get_function(launch.kernel.name).ptr, module) for launch in launches]

    def launch(self, loaded: LoadedKernel, blocks: int, threads: int, stream: int, parameters: int) -> None:
        self._launch(loaded.function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, 0)

    def capture(self, run: Callable[[int], None]) -> Any:
        # on a stream of its own: the default one cannot be captured
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                run(stream.ptr)
            except BaseException:
                with suppress(*self.failures):
                    stream.end_capture()
                raise
            return stream.end_capture()

    def replay(self, graph: Any, stream: int) -> None:
        self._replay(graph.graphExec, stream)

    def products(
        self, out: Operand, a: Operand, b: Operand, size: tuple[int, int, int], count: int, steps: Sequence[int],
        scale: Scale, precision: PrecisionName, stream: int,
    ) -> None:  # fmt: skip
        (m, k, n), (out_step, a_step, b_step) = size, steps
        if out.row_stride != 1:  # cuBLAS stores by columns: a product by rows is the transposed one by columns
            out, a, b, m, n = transposed(out), transposed(b), transposed(a), n, m
            a_step, b_step = b_step, a_step
        letter = out.array.dtype.char
        alpha, beta = (self._factor(letter, factor) for factor in scale)
        ta, lda = _layout(a, m, k)
        tb, ldb = _layout(b, k, n)
        ldc = max(out.column_stride, m)
        if max(m, k, n, lda, ldb, ldc, count) > LARGEST:
            raise LoweringError(f"cuBLAS has no products of matrices of more than {LARGEST} rows or columns")
        handle = self._handle(stream)
        is_fast = precision == "tensorfloat32" and letter in TYPES
        kind, ending = ((TYPES[letter],), (FAST_TF32, DEFAULT_ALGORITHM)) if is_fast else ((), ())
        lines = (a, lda, a_step), (b, ldb, b_step), (out, ldc, out_step)
        left, right, result = ((_address(x), *kind, ld, *((step,) if count > 1 else ())) for x, ld, step in lines)
        multiply = self._cublas(_name_of_product(letter, is_fast=is_fast, is_batch=count > 1))
        counts = (count,) if count > 1 else ()
        multiply(handle, ta, tb, m, n, k, alpha, *left, *right, beta, *result, *counts, *ending)

    def _factor(self, letter: str, factor: float) -> int:
        """The address of a factor, as a number of a dtype, which cuBLAS reads when it is called."""
        key = letter, factor
        if key not in self._factors:
            self._factors[key] = np.array([factor], letter)
        return self._factors[key].ctypes.data

    def _handle(self, stream: int) -> int:
        """CuPy's handle of cuBLAS, for a stream."""
        handle = self._cupy.cuda.device.get_cublas_handle()
        self._cublas("SetStream_v2")(handle, stream)
        return handle

    def _cublas(self, name: str) -> Callable[..., None]:
        """A function of cuBLAS; CuPy's own refuse to be captured."""
        if name not in self._functions:
            self._functions[name] = checked(getattr(self._library, f"cublas{name}"), name)
        return self._functions[name]

    @cached_property
    def _library(self) -> Any:
        """The cuBLAS that CuPy is linked to."""
        try:
            return ctypes.CDLL(import_module("cupy_backends.cuda.libs").cublas.__file__)
        except (ImportError, OSError) as error:
            raise DeviceError(f"matrix products need cuBLAS: {error}", remedy=PACKAGES) from None

    def evaluate(self, function: Callable[..., Any], values: Sequence[DeviceArray]) -> tuple[DeviceArray, ...]:
        with import_module("cupyx").errstate(linalg="raise"):
            try:
                found = function(*values)  # NumPy's functions hand CuPy arrays over to it
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                raise DeviceMemoryError(f"a library has no room: {error}", remedy=self._remedy()) from None
            except ImportError as error:
                raise DeviceError(f"CuPy lacks a library for this: {error}", remedy=PACKAGES) from None
            except (TypeError, NotImplementedError) as error:
                raise LoweringError(f"CuPy cannot do this: {error}") from None
        return tuple(map(self._cupy.asarray, found if isinstance(found, tuple) else (found,)))

    def synchronize(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def owns(self, array: DeviceArray) -> bool:
        return array.base is None and isinstance(array.data.mem, self._own_memory)

    def hold(self, arrays: Sequence[DeviceArray]) -> None:
        lent = [array for array in arrays if not isinstance(array.data.mem, self._own_memory)]
        if lent:
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record()
            self._lent.append((event, lent))
        while self._lent and self._lent[0][0].done:
            with suppress(IndexError):  # another thread has taken the last one
                self._lent.popleft()


def checked(function: Any, name: str) -> Callable[..., None]:
    """A function of cuBLAS that raises `DeviceError` where it fails."""
    function.argtypes = ARGUMENTS.get(name) or ARGUMENTS[name[1:]]

    def call(*arguments: Any) -> None:
        if status := function(*arguments):
            raise DeviceError(f"cublas{name} fails with status {status}")

    return call


def _name_of_product(letter: str, *, is_fast: bool, is_batch: bool) -> str:
    """The function for products of a dtype, without cuBLAS's prefix."""
    batch = "StridedBatched" * is_batch
    return f"Gemm{batch}Ex" if is_fast else f"{GEMM[letter]}{batch or '_v2'}"


def transposed(x: Operand) -> Operand:
    """The transposed matrix in the same memory."""
    return Operand(x.array, x.offset, x.column_stride, x.row_stride)


def _layout(x: Operand, rows: int, columns: int) -> tuple[int, int]:
    """True if a matrix is stored by rows, which for cuBLAS is transposed, and the distance of its lines."""
    if x.row_stride == 1:
        return NO_TRANSPOSITION, max(x.column_stride, rows)
    return TRANSPOSITION, max(x.row_stride, columns)


def _address(x: Operand) -> int:
    return x.array.data.ptr + x.offset * x.array.dtype.itemsize
