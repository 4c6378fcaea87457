"""What the driver of a GPU tells CUDA: the arguments of cuBLAS and of launches, read as CUDA would read them."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections import deque
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.backends.cuda import driver, kept, ptx
from fnad.backends.cuda.driver import Operand, Scale
from fnad.backends.cuda.frame import Frame
from fnad.backends.cuda.gpu import Gpu, LoadedKernel
from fnad.config import PrecisionName
from fnad.errors import CacheWarning, DeviceError, DeviceMemoryError, LoweringError, PlacementError
from fnad.kernel.launches import Launch
from fnad.kernel.statements import Comment, Constant, Kernel, Load, Name, Store, apply, integer
from fnad.scalar.operation import Pointer
from fnad.scalar.operations import MULTIPLY
from tests.gpu import matrix

DTYPES = ("f4", "f8", "c8", "c16")


class Array:
    """An array with its address where CuPy's has it."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory, self.dtype = memory, memory.dtype
        self.data = SimpleNamespace(ptr=memory.ctypes.data)


def at(address: int, dtype: Any, count: int) -> np.ndarray:
    kind = ctypes.c_byte * (count * np.dtype(dtype).itemsize)
    return np.frombuffer(kind.from_address(address), dtype)


def by_columns(address: int, dtype: Any, rows: int, columns: int, leading: int) -> np.ndarray:
    """The matrix that Fortran has at an address."""
    flat = at(address, dtype, leading * (columns - 1) + rows if columns else 0)
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (flat.itemsize, leading * flat.itemsize))


def gemm(dtype: Any) -> Any:
    """A cuBLAS function as its manual has it."""

    def call(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> None:
        assert lda >= max(1, (k if ta else m))
        assert ldb >= max(1, (n if tb else k))
        assert ldc >= max(1, m)
        left = by_columns(a, dtype, k, m, lda).T if ta else by_columns(a, dtype, m, k, lda)
        right = by_columns(b, dtype, n, k, ldb).T if tb else by_columns(b, dtype, k, n, ldb)
        into, scale, kept = by_columns(c, dtype, m, n, ldc), at(alpha, dtype, 1)[0], at(beta, dtype, 1)[0]
        into[...] = scale * (left @ right) + (kept * into if kept else 0)

    return call


def batched(dtype: Any) -> Any:
    def call(handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count) -> None:
        size = np.dtype(dtype).itemsize
        for i in range(count):
            moved = a + i * sa * size, lda, b + i * sb * size, ldb
            gemm(dtype)(handle, ta, tb, m, n, k, alpha, *moved, beta, c + i * sc * size, ldc)

    return call


KINDS = {0: "f4", 4: "c8"}
"""CUDA's numbers of the dtypes that cuBLAS multiplies in TF32."""


def fast_gemm(handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, way, algorithm) -> None:
    assert (way, algorithm, at, bt) == (77, -1, ct, ct)
    gemm(KINDS[ct])(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)


def fast_batched(
    handle, ta, tb, m, n, k, alpha, a, at, lda, sa, b, bt, ldb, sb, beta, c, ct, ldc, sc, count, way, algorithm
) -> None:
    assert (way, algorithm, at, bt) == (77, -1, ct, ct)
    batched(KINDS[ct])(handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count)


LETTERS = dict(zip("SDCZ", DTYPES, strict=True))


def set_stream(handle: int, stream: int) -> int:
    assert (handle, stream) == (7, 5)
    return 0


class Cublas:
    """The functions of the library, which take what ctypes makes of their arguments."""

    def __init__(self) -> None:
        functions = {"SetStream_v2": set_stream}
        functions |= {f"{letter}gemm_v2": gemm(dtype) for letter, dtype in LETTERS.items()}
        functions |= {f"{letter}gemmStridedBatched": batched(dtype) for letter, dtype in LETTERS.items()}
        functions |= {"GemmEx": fast_gemm, "GemmStridedBatchedEx": fast_batched}
        for name, function in functions.items():
            setattr(self, f"cublas{name}", Converting(function))


class Converting:
    """A function of C: each argument as its type has it."""

    argtypes: tuple[Any, ...] = ()

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> int:
        given = [kind(x).value for kind, x in zip(self.argtypes, arguments, strict=True)]
        return self.function(*given) or 0


@pytest.fixture
def gpu() -> Gpu:
    made = object.__new__(Gpu)
    made._library, made._functions, made._factors = Cublas(), {}, {}
    made._device, made._current, made._thread = 0, lambda: 0, threading.local()
    made._cupy = SimpleNamespace(
        cuda=SimpleNamespace(
            device=SimpleNamespace(get_cublas_handle=lambda: 7),
            get_current_stream=lambda: SimpleNamespace(ptr=5),
            runtime=SimpleNamespace(memGetInfo=lambda: (5, 9)),
        )
    )
    return made


@pytest.mark.parametrize("precision", ["float32", "tensorfloat32"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_those_of_the_matrices(gpu: Gpu, dtype: str, precision: PrecisionName) -> None:
    drawn = np.random.default_rng(0)
    for m, k, n in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (1, 1, 5)):
        for layout in range(8):
            for count in (1, 3):
                columns = [bool(layout & bit) for bit in (1, 2, 4)]
                for scale in (Scale(1, 0), Scale(-0.5, 1), Scale(3, 0.25)):
                    check(gpu, drawn, np.dtype(dtype), (m, k, n), columns, count, scale, precision)
    in_tf32 = precision == "tensorfloat32" and dtype in KINDS.values()
    letter = next(name for name, known in LETTERS.items() if known == dtype)
    wanted = {"GemmEx", "GemmStridedBatchedEx"} if in_tf32 else {f"{letter}gemm_v2", f"{letter}gemmStridedBatched"}
    assert {*gpu._functions} == {*wanted, "SetStream_v2"}


def check(
    gpu: Gpu, drawn: Any, dtype: Any, size: tuple[int, int, int], columns: list[bool], count: int,
    scale: Scale, precision: PrecisionName,
) -> None:  # fmt: skip
    m, k, n = size
    operands, steps = [], []
    for (rows, width), by_column in zip(((m, n), (m, k), (k, n)), columns, strict=True):
        leading = (rows if by_column else width) + 2
        steps.append(leading * (width if by_column else rows) + 3)
        memory = np.full(steps[-1] * count + 9, np.nan, dtype)  # what is not read may be anything
        if operands or scale.beta:
            memory[:] = drawn.standard_normal(memory.shape)
        strides = (1, leading) if by_column else (leading, 1)
        operands.append(Operand(Array(memory), 2, *strides))
    matrices = []
    for i in range(count):
        moved = [x._replace(offset=x.offset + i * step) for x, step in zip(operands, steps, strict=True)]
        c, a, b = (matrix(x, *s) for x, s in zip(moved, ((m, n), (m, k), (k, n)), strict=True))
        matrices.append((c, scale.alpha * (a @ b) + (scale.beta * c if scale.beta else 0)))
    gpu.products(*operands, size, count, steps, scale, precision, 5)
    for c, wanted in matrices:
        assert_allclose(c, wanted, rtol=1e-5, atol=1e-6)


def test_matrices_too_large_for_cublas_are_refused(gpu: Gpu) -> None:
    x = Operand(Array(np.zeros(4)), 0, 2**31, 1)
    with pytest.raises(LoweringError, match="more than 2147483647 rows"):
        gpu.products(x, x, x, (2**31, 1, 1), 1, (0, 0, 0), Scale(1, 0), "float32", 5)


def test_a_launch_gives_the_addresses_of_its_arrays(gpu: Gpu) -> None:
    arrays = [Array(np.zeros(4)), Array(np.zeros(4, np.int32)), Array(np.zeros(3))]
    found = []

    def launch(function: int, *rest: int) -> None:
        *grid, stream, parameters, extra = rest
        places = at(parameters, np.uint64, 2)
        found.append((function, grid, stream, [int(at(int(p), np.uint64, 1)[0]) for p in places], extra))

    gpu._launch = launch
    frame = Frame(gpu, [None, *arrays[1:]], 0, [[2, 0]])
    frame.give(arrays[:1])
    gpu.launch(LoadedKernel(11, None), 3, 64, 5, frame.parameters[0])
    assert found == [(11, [3, 1, 1, 64, 1, 1, 0], 5, [arrays[2].data.ptr, arrays[0].data.ptr], 0)]


class Stream:
    """CuPy's stream, as far as it captures."""

    ptr = 8

    def __init__(self, calls: list[str], **options: bool) -> None:
        self.calls = calls

    def __enter__(self) -> None:
        self.calls.append("enter")

    def __exit__(self, *error: object) -> None:
        self.calls.append("exit")

    def begin_capture(self) -> None:
        self.calls.append("begin")

    def end_capture(self) -> Any:
        self.calls.append("end")
        return SimpleNamespace(graphExec=21)


def test_a_capture_is_on_a_stream_of_its_own_and_ends_in_any_case(gpu: Gpu) -> None:
    calls: list[Any] = []
    gpu._cupy.cuda.Stream, gpu.failures = partial(Stream, calls), (ZeroDivisionError,)
    gpu._replay = lambda *arguments: calls.append(arguments)
    gpu.replay(gpu.capture(calls.append), 5)
    assert calls == ["enter", "begin", 8, "end", "exit", (21, 5)]
    for error in (KeyboardInterrupt, ZeroDivisionError):
        calls.clear()

        def interrupted(stream: int, error: type[BaseException] = error) -> None:
            raise error

        with pytest.raises(error):
            gpu.capture(interrupted)
        assert calls == ["enter", "begin", "end", "exit"]


def test_too_little_memory_is_told_with_sizes(gpu: Gpu) -> None:
    class OutOfMemoryError(Exception): ...

    def empty(*args: Any) -> None:
        raise OutOfMemoryError("the pool is full")

    gpu._cupy.empty = empty
    gpu._cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    gpu._cupy.cuda.runtime = SimpleNamespace(memGetInfo=lambda: (5, 9))
    with pytest.raises(DeviceMemoryError, match=r"^800 bytes for float64\[10, 10\] .*\n.*: 5 of 9 bytes are free"):
        gpu.empty((10, 10), np.dtype(float))


class CUDARuntimeError(RuntimeError):
    """CuPy's class for what CUDA's runtime reports."""


@pytest.mark.parametrize(
    "reason",
    [
        "cudaErrorNoDevice: no CUDA-capable device is detected",
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
    ],
)
def test_no_driver_or_one_too_old_is_told_and_the_cpu_goes_on(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    def failing() -> None:
        raise CUDARuntimeError(reason)

    cuda = SimpleNamespace(Device=failing, runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError))
    cupy = ModuleType("cupy")
    cupy.__dict__["cuda"] = cuda
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(driver, "_drivers", [])
    f = fnad.jit(lambda x: x * 2, device="cuda")
    for _ in range(2):
        with pytest.raises(DeviceError, match=f"no GPU can be used: {reason}; CUDA driver: .*\n.*`fnad doctor`"):
            f(np.ones(3))
    assert_allclose(fnad.jit(lambda x: x * 2)(np.ones(3)), 2)


def test_why_cupy_cannot_be_imported_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(
        "try:\n    import cuda_pathfinder_that_is_not_here\n"
        "except ImportError as error:\n    raise ImportError('=' * 64 + '\\nFailed to import CuPy.\\n') from error\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(driver, "_drivers", [])
    with pytest.raises(DeviceError) as found:
        fnad.to_device(np.ones(3))
    wanted = (
        "CUDA needs CuPy, which cannot be imported: No module named 'cuda_pathfinder_that_is_not_here'\n  pip install"
    )
    assert str(found.value).startswith(wanted)


def test_kernels_that_a_driver_does_not_take_are_an_error(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        def load(self, ptx: bytes) -> None:
            raise CUDARuntimeError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION")

    monkeypatch.setattr("fnad.backends.cuda.gpu.kept_ptx", lambda *_: b"")
    gpu.arch, gpu.failures = "sm_90", (CUDARuntimeError,)
    gpu._cupy.cuda.function = SimpleNamespace(Module=Module)
    with pytest.raises(DeviceError, match="the driver does not take kernels for sm_90: CUDA_ERROR_UNSUPPORTED_PTX"):
        gpu.load([Launch(Kernel("kernel", (), []), 1, 1)])


def test_an_architecture_that_the_compiler_does_not_know_is_refused(gpu: Gpu) -> None:
    gpu.arch = "sm_61"
    gpu.failures, gpu._cupy.cuda.function = (), SimpleNamespace(Module=lambda: SimpleNamespace(load=None))
    with pytest.raises(LoweringError, match="'sm_61' is no architecture of a GPU of NVIDIA"):
        gpu.load([Launch(Kernel("kernel", (), []), 1, 1)])


def test_memory_of_another_context_is_refused(gpu: Gpu) -> None:
    def asarray(value: Any) -> None:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")

    gpu._cupy.asarray, gpu.array_type = asarray, Array
    with pytest.raises(PlacementError, match="does not give its memory: cudaErrorInvalidValue"):
        gpu.adopt(SimpleNamespace(__cuda_array_interface__={}))


@pytest.mark.parametrize("error", [BufferError, RuntimeError, TypeError, ValueError])
def test_what_dlpack_cannot_say_is_asked_by_the_other_interface(gpu: Gpu, error: type[Exception]) -> None:
    def refuse(value: Any) -> None:
        raise error("no")

    class Tensor:
        __dlpack__ = __dlpack_device__ = detach = None

    gpu._cupy.from_dlpack, gpu._cupy.asarray, gpu.array_type = refuse, lambda value: "shared", Array
    assert gpu._shared(Tensor()) == "shared"
    if error is not BufferError:
        gpu._cupy.asarray = refuse
        with pytest.raises(PlacementError, match=r"does not give its memory: no\n.*x.detach\(\)"):
            gpu._shared(Tensor())
        with pytest.raises(PlacementError, match=r"does not give its memory: no\n.*give a copy"):
            gpu._shared(SimpleNamespace(__cuda_array_interface__={}))


@pytest.mark.parametrize(("kind", "is_copied"), [(0, False), (1, True), (3, True)])
def test_pinned_and_managed_memory_is_copied_before_a_call_returns(gpu: Gpu, kind: int, is_copied: bool) -> None:
    given, found = np.arange(6.0).reshape(2, 3), list[np.ndarray]()
    gpu._cupy.empty = lambda shape, dtype: SimpleNamespace(set=found.append)
    gpu._cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    gpu._cupy.cuda.runtime = SimpleNamespace(pointerGetAttributes=lambda address: SimpleNamespace(type=kind))
    gpu.to_device(given)
    assert np.shares_memory(found[0], given) is not is_copied
    assert np.array_equal(found[0], given)


class Memory:
    """Memory of CuPy's own."""


class Event:
    """CUDA's event, done when it is said to be."""

    made: ClassVar[list[Event]] = []

    def __init__(self, *, disable_timing: bool) -> None:
        self.done, self.is_recorded = False, False
        self.made.append(self)

    def record(self) -> None:
        self.is_recorded = True


def test_memory_of_other_libraries_is_neither_given_away_nor_let_go_too_early(gpu: Gpu) -> None:
    class DLPackMemory: ...

    class View:
        base = None

        def __init__(self, memory: Any) -> None:
            self.data = SimpleNamespace(mem=memory)

    gpu._own_memory, gpu._lent, gpu._cupy.cuda.Event = (Memory,), deque(), Event
    Event.made.clear()
    own, lent, other = View(Memory()), View(DLPackMemory()), View(DLPackMemory())
    assert gpu.owns(own)
    assert not gpu.owns(lent)
    gpu.hold([own])
    assert not Event.made
    is_alive = weakref.ref(lent)
    gpu.hold([own, lent])
    del lent
    gpu.hold([other])
    assert is_alive()
    assert all(event.is_recorded for event in Event.made)
    Event.made[0].done = True
    gpu.hold([])
    assert not is_alive()
    assert len(gpu._lent) == 1


def test_another_current_device_is_refused(gpu: Gpu) -> None:
    gpu._current = lambda: 1
    with pytest.raises(PlacementError, match="programs run on cuda:0, and the current device is cuda:1"):
        gpu.check_current()


def test_each_thread_has_a_context_before_it_launches(gpu: Gpu) -> None:
    """The runtime makes one current at the first call that needs it. A launch, by the driver, does not."""
    asked: list[int] = []
    gpu._cupy.cuda.runtime.memGetInfo = lambda: asked.append(threading.get_ident()) or (5, 9)
    for _ in range(2):
        gpu.check_current()
    thread = threading.Thread(target=gpu.check_current)
    thread.start()
    thread.join()
    assert asked == [threading.get_ident(), asked[1]]
    assert asked[1] != asked[0]


def test_a_library_without_room_is_told(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfMemoryError(Exception): ...

    def solve(*arrays: Any) -> None:
        raise OutOfMemoryError("allocating 800 bytes")

    cupyx = ModuleType("cupyx")
    cupyx.__dict__["errstate"] = lambda **_: nullcontext()
    monkeypatch.setitem(sys.modules, "cupyx", cupyx)
    gpu._cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    with pytest.raises(DeviceMemoryError, match=r"no room: allocating 800 bytes\n.*: 5 of 9 bytes are free"):
        gpu.evaluate(solve, [])


def test_kernels_are_assembled_once_for_all_processes(
    gpu: Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[bytes] = []

    class Module:
        def load(self, text: bytes) -> None:
            loaded.append(text)

        def get_function(self, name: str) -> Any:
            assert f".entry {name}(".encode() in loaded[-1]
            return SimpleNamespace(ptr=11)

    def kernels(scale: float, name: str = "kernel", threads: int = 32) -> list[Launch]:
        x, out = (Name(n, Pointer(np.dtype(float))) for n in ("x", "out"))
        value = apply(MULTIPLY, Load(x, integer(0)), Constant(np.float64(scale)))
        kernel = Kernel(name, (x, out), [Comment("a line"), Store(out, integer(0), value)])
        return [Launch(kernel, 1, threads)]

    made: list[str] = []
    assemble = ptx.ptx_of_all
    monkeypatch.setattr(ptx, "ptx_of_all", lambda k, arch: made.append(arch) or assemble(k, arch))
    gpu._cupy.cuda.function = SimpleNamespace(Module=Module)
    gpu.arch = "sm_90"
    with fnad.config.override(disk_cache=str(tmp_path / "cache")):
        for given in (kernels(2.0), kernels(2.0), kernels(3.0), kernels(2.0, "other"), kernels(3.0)):
            gpu.load(given)
        gpu.load(kernels(2.0, threads=512))
        assert b".maxntid 512" in loaded.pop()
        assert made.pop() == "sm_90"
        gpu.arch = "sm_80"
        gpu.load(kernels(2.0))
        assert made == ["sm_90"] * 3 + ["sm_80"]
        assert loaded[0] == loaded[1] != loaded[2] == loaded[4]
        entry = kept.disk.current()._path(kept.key_of(kernels(2.0), "sm_80"))
        entry.write_bytes(entry.read_bytes()[:-1])
        with pytest.warns(CacheWarning, match="is damaged"):
            gpu.load(kernels(2.0))
    with fnad.config.override(disk_cache=False):
        gpu.load(kernels(2.0))
    assert made[4:] == ["sm_80"] * 2
    assert loaded[-1] == loaded[-2] == loaded[-3]
