"""Whole programs on a device: what `jit` and the transforms give there is what the interpreter gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.api.functions.jit import Compiled
from fnad.backends.cuda import tools
from fnad.backends.cuda.ptx import ptx_of
from fnad.backends.cuda.target import CUDA
from fnad.errors import DeviceError, LoopLimitError, LoweringError, OutOfRangeError, PlacementError, SettingError
from fnad.ir.parser import parse_program
from fnad.kernel.launches import DevicePlan
from fnad.lower.lowering import lower
from tests.cuda.harness import Block, Watched
from tests.cuda.test_ptx import has_libdevice
from tests.gpu import CudaError, Distant, OtherLibrarys, Simulated, simulated
from tests.together import together


def assert_close(found: Any, wanted: Any) -> None:
    single = np.asarray(wanted).dtype in (np.float32, np.complex64)
    assert_allclose(found, wanted, rtol=1e-5 if single else 1e-12, atol=1e-6 if single else 1e-12)


DRAWN = np.random.default_rng(0)
X = DRAWN.standard_normal((5, 7))
SQUARES = DRAWN.standard_normal((3, 4, 4)) + 4 * np.eye(4)
P = {"W": DRAWN.standard_normal((20, 24)), "b": DRAWN.standard_normal(24), "V": DRAWN.standard_normal((24, 3))}
DATA = DRAWN.standard_normal((25, 20))


@pytest.fixture
def device() -> Iterator[Simulated]:
    with simulated() as device:
        yield device


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def mlp(p: Any, x: Any) -> Any:
    return np.mean((np.tanh(x @ p["W"] + p["b"]) @ p["V"]) ** 2)


def recurrent(x: Any) -> Any:
    return fnad.scan(lambda c, a: (np.tanh(0.5 * c + a), c * a), 0.0 * x[0], x)


def in_loop(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return np.tanh(c @ x[i]) + i

    return fnad.fori_loop(0, 3, step, np.ones((30, 20, 20))[0])


def halved(x: Any) -> Any:
    return fnad.while_loop(lambda c: np.sum(c) > 1.0, lambda c: c / 2, np.abs(x))


def chosen(x: Any) -> Any:
    return fnad.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: np.cumsum(x, axis=1), x)


def of_each_kind(x: Any) -> Any:
    return {
        "sum": np.sum(x * x),
        "columns": np.sum(x, axis=0),
        "position": np.argmax(x, axis=1),
        "sorted": np.sort(x, axis=1),
        "taken": x[:, [3, 0, 3]],
        "of integers": (x > 0).astype(int) @ (x > 0).astype(int).T,
        "complex": np.abs(x * 1j + 1),
    }


CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "elementwise": (lambda x: np.tanh(x) * 2 + x, (X,)),
    "of each kind": (of_each_kind, (X,)),
    "f32": (lambda x: softmax(x) @ x.T, (X.astype(np.float32),)),
    "softmax": (fnad.value_and_grad(lambda x: np.sum(softmax(x)[:, 0] ** 2)), (X,)),
    "products": (lambda x: x @ x.T, (DATA,)),
    "stacked products": (lambda x: x @ np.swapaxes(x, -1, -2), (DRAWN.standard_normal((2, 3, 20, 15)),)),
    "network": (fnad.value_and_grad(mlp), (P, DATA)),
    "recurrence": (fnad.value_and_grad(lambda x: np.sum(recurrent(x)[1] ** 2)), (X,)),
    "products in a loop": (in_loop, (DRAWN.standard_normal((3, 20, 20)) / 9,)),
    "unknown length": (halved, (X,)),
    "branch": (chosen, (X,)),
    "the other branch": (chosen, (np.abs(X),)),
    "mapped": (fnad.vmap(fnad.grad(lambda x: np.sum(np.sin(x) * x))), (X,)),
    "transposed argument": (lambda x: x * 2 + 1, (X.T,)),
    "every other": (lambda x: x * 2 + 1, (X[:, ::2],)),
    "empty": (lambda x: (np.sum(x), x + 1, x @ np.ones((7, 2)), np.ones((3, 0)) @ x), (X[:0],)),
    "an argument itself": (lambda x: (x, x, np.float64(2.0), 3), (X,)),
    "library": (lambda a: (np.linalg.cholesky(a @ np.swapaxes(a, 1, 2)), np.linalg.det(a), np.fft.fft(a)), (SQUARES,)),
    "triangular": (lambda a: scipy.linalg.solve_triangular(a[0], a[1], lower=True), (SQUARES,)),
    "factors": (lambda a: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a[0]), a[1]), (SQUARES,)),
    "least squares": (lambda x: np.linalg.lstsq(x.T, x[0])[0], (X,)),
    "exponential": (lambda a: scipy.linalg.expm(a[0] / 9), (SQUARES,)),
    "convolution": (lambda x: np.convolve(x[0], x[1]), (X,)),
    "library in a loop": (lambda a: fnad.scan(lambda c, m: (np.linalg.solve(m, c), c), np.ones(4), a), (SQUARES,)),
    "powers and divisors": (
        lambda i, x: (np.power(i, np.abs(i)), i ** (i * i), np.gcd(i, 6), np.bitwise_count(i), np.nextafter(x, 0)),
        (np.arange(-3, 4), X[0]),
    ),
    "draws": (lambda key: fnad.random.normal(key, (40,)), (fnad.random.key(3),)),
    "callback in a loop": (lambda x: fnad.map(lambda row: fnad.callback(np.sort, row, result=np.zeros(7)), x), (X,)),
    "callback": (lambda x: fnad.callback(np.cumsum, x, result=np.zeros(35)) * 2, (X,)),
}


@pytest.mark.slow
def test_calls_give_what_the_interpreter_gives(device: Simulated) -> None:
    with together() as check:
        for name, (f, args) in CALLS.items():
            with check(name):
                wanted = f(*args)
                found = fnad.jit(f, device="cuda")(*fnad.to_device(args) if "argument" not in name else args)
                for a, b in zip(fnad.tree.leaves(found), fnad.tree.leaves(wanted), strict=True):
                    assert isinstance(a, Distant)
                    assert (a.dtype, a.shape) == (np.asarray(b).dtype, np.shape(b))
                    assert_close(fnad.to_host(a), b)


DRAWS: dict[str, Any] = {
    "bits": lambda key: fnad.random.bits(key, (65,)),
    "uniform": lambda key: fnad.random.uniform(key, (65,)),
    "uniform in single precision": lambda key: fnad.random.uniform(key, (65,), np.float32),
    "integers": lambda key: fnad.random.randint(key, (65,), -3, 1000),
    "coins": lambda key: fnad.random.bernoulli(key, 0.3, (65,)),
    "order": lambda key: fnad.random.permutation(key, 65),
    "keys": lambda key: fnad.random.split(fnad.random.fold_in(key, 4), 3),
}
"""Draws that no function of libm rounds."""


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_cpu_to_the_bit(device: Simulated, name: str) -> None:
    key = fnad.random.key(3)
    assert_array_equal(fnad.to_host(fnad.jit(DRAWS[name], device="cuda")(key)), DRAWS[name](key), strict=True)


def test_transforms_without_jit(device: Simulated) -> None:
    value, pull = fnad.vjp(lambda x: np.sin(x) * x, X)
    gradient = fnad.grad(mlp)(P, DATA)
    with fnad.device("cuda"):
        found, pull_there = fnad.vjp(lambda x: np.sin(x) * x, fnad.to_device(X))
        assert_close(fnad.to_host(pull_there(found)[0]), pull(value)[0])
        assert_close(fnad.to_host(fnad.grad(mlp)(P, fnad.to_device(DATA))["W"]), gradient["W"])


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["", "carry", "sqrt", "binomial"])
def test_checkpointed_loops_on_the_device_have_the_gradient_of_the_host(device: Simulated, policy: str) -> None:
    """The steps of a loop that a policy does not save, or none of them, are computed again there."""

    def total(x: Any, wrap: Any = lambda f: f) -> Any:
        last, rows = wrap(recurrent)(x)
        return np.sum(rows**2) + np.sum(last)

    options = {"policy": policy} if policy else {}
    gradient = fnad.grad(lambda x: total(x, lambda f: fnad.checkpoint(f, **options)))
    found = fnad.to_host(fnad.jit(gradient, device="cuda")(fnad.to_device(X)))
    assert_close(found, gradient(X))
    assert_close(found, fnad.grad(total)(X))


@pytest.mark.slow
def test_results_stay_there_between_calls(device: Simulated) -> None:
    step = fnad.jit(lambda p, x: fnad.tree.map(lambda p, g: p - 0.1 * g, p, fnad.grad(mlp)(p, x)), device="cuda")
    p, x = fnad.to_device((P, DATA))
    p = step(p, x)
    device.calls.clear()
    for _ in range(3):
        p = step(p, x)
    assert not {"to_host", "to_device", "load", "synchronize"} & {*device.calls}
    q = P
    for _ in range(4):
        q = fnad.tree.map(lambda p, g: p - 0.1 * g, q, fnad.grad(mlp)(q, DATA))
    assert_close(fnad.to_host(p)["W"], q["W"])


def test_what_is_given_away_is_written_to_if_nobody_else_has_it(device: Simulated) -> None:
    double = fnad.jit(lambda x: x * 2.0, donate_argnums=0, device="cuda")
    x = fnad.to_device(X)
    assert double(x).memory is x.memory
    assert_array_equal(x.memory, 2 * X)
    for shared in (OtherLibrarys(X.copy()), X.copy()):
        assert_array_equal(fnad.to_host(double(shared)), 2 * X)
        assert_array_equal(getattr(shared, "memory", shared), X)


def test_what_another_argument_shows_is_not_written_over(device: Simulated) -> None:
    f = fnad.jit(lambda x, y: x * 2.0 + y[::-1], donate_argnums=0, device="cuda")
    x = np.arange(8.0)
    for library in (Distant, OtherLibrarys):
        given = fnad.to_device(x)
        assert_array_equal(fnad.to_host(f(given, library(given.memory[:]))), 2 * x + x[::-1])
        assert f(given, fnad.to_device(x)).memory is given.memory


def test_arrays_of_other_libraries_are_held_until_they_are_read(device: Simulated) -> None:
    f = fnad.jit(lambda x, y: x + y, device="cuda")
    other, turned = OtherLibrarys(X), OtherLibrarys(X.T)
    for _ in range(2):
        device.held.clear()
        assert_array_equal(fnad.to_host(f(other, X)), X + X)
        assert [held.memory.ctypes.data for held in device.held] == [X.ctypes.data]
    device.held.clear()
    assert_array_equal(fnad.to_host(f(turned, X.T)), X.T + X.T)
    assert [held.memory.ctypes.data for held in device.held] == [X.ctypes.data]


def test_an_array_that_begins_between_vectors_is_copied(device: Simulated) -> None:
    double = fnad.jit(lambda x: x * 2.0, device="cuda")
    x = fnad.to_device(np.arange(9.0, dtype=np.float32))
    double(x)
    for start, copies in ((0, 0), (1, 1), (4, 0), (7, 1)):
        device.calls.clear()
        part = OtherLibrarys(x.memory[start:8])
        assert_array_equal(fnad.to_host(fnad.jit(lambda x: x * 2.0, device="cuda")(part)), 2 * np.arange(start, 8.0))
        assert device.calls.count("empty") == 1 + copies


def test_what_fails_on_the_device_is_an_error_and_the_next_call_is_right(device: Simulated) -> None:
    take = fnad.jit(lambda x, i: fnad.numpy.asarray(x)[i] * 2, device="cuda")
    at = np.arange(3)
    assert_array_equal(fnad.to_host(take(X[0], at)), 2 * X[0, :3])
    with pytest.raises(OutOfRangeError, match="out of bounds for axis 0"):
        take(X[0], at + 6)
    assert_array_equal(fnad.to_host(take(X[0], at)), 2 * X[0, :3])
    endless = fnad.jit(lambda x: fnad.while_loop(lambda c: c > -1, lambda c: c + 1.0, x, max_steps=5), device="cuda")
    with pytest.raises(LoopLimitError):
        endless(1.0)


def test_arrays_of_the_device_in_any_order(device: Simulated) -> None:
    f = fnad.jit(lambda x: np.cumsum(x, axis=0) * 2, device="cuda")
    for view in (X.T, X[::2], X[:, ::-1], X[:0], X[..., :1], np.broadcast_to(X[0], (3, 7)), X[2:3, 4:5]):
        assert_close(fnad.to_host(f(Distant(view))), np.cumsum(view, axis=0) * 2)


def test_an_interrupt_between_launches_leaves_nothing_behind(device: Simulated) -> None:
    interrupts: list[type[BaseException]] = []

    def at_the_host(x: Any) -> Any:
        if interrupts:
            raise interrupts.pop()
        return np.sort(x)

    def f(x: Any) -> Any:
        rows = fnad.map(lambda row: fnad.callback(at_the_host, np.sin(row), result=np.zeros(7)) + 1, x)
        return rows, np.sort(x * 2, axis=0)

    run = fnad.jit(f, device="cuda")
    whole = fnad.to_host(run(X))
    interrupts.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run(X)
    for found, wanted in zip(fnad.to_host(run(X)), whole, strict=True):
        assert_array_equal(found, wanted)


class Sparse:
    """An array of i8 with some of its elements."""

    dtype = np.dtype(np.int8)

    def __init__(self, size: int) -> None:
        self.size, self.elements = size, dict[int, Any]()

    def __getitem__(self, n: int) -> Any:
        return self.elements[n]

    def __setitem__(self, n: int, value: Any) -> None:
        self.elements[n] = value


def test_an_array_of_more_elements_than_32_bits_count() -> None:
    count = 3 * 10**9
    program = parse_program(f"f(a: i8[{count}]) -> i8[{count}] {{\n  b: i8[{count}] = mul(a, a)\n  return b\n}}")
    (launch,) = DevicePlan(lower(program, CUDA), CUDA).launches.values()
    x, out = Sparse(count), Sparse(count)
    first, step = (launch.blocks - 1) * launch.threads * 4, launch.blocks * launch.threads * 4
    x.elements = {n + k: np.int8(3) for n in range(first, count, step) for k in range(4)}  # of the last block's first
    list(
        Block(replace(launch, threads=1), launch.blocks - 1, 32).run([Watched("x", x), Watched("out", out)], Random(0))
    )
    assert max(out.elements) > 2**31
    assert out.elements == dict.fromkeys(x.elements, 9)
    if has_libdevice():
        text = ptx_of(launch)
        assert re.search(r"setp\.\w+\.[su]64", text)
        assert not re.search(r"(add|mad)\\.[\\w.]*[su]32", text)


def test_python_decides_on_the_device(device: Simulated) -> None:
    f = fnad.jit(lambda x: x * 2 if x[0, 0] > 0 else x * 3, device="cuda")
    for x in (X, -X, X, -X):
        assert_close(fnad.to_host(f(fnad.to_device(x))), x * (2 if x[0, 0] > 0 else 3))


def test_what_the_device_lacks_is_named_with_the_way_out(device: Simulated) -> None:
    f = fnad.jit(lambda a: np.trace(scipy.linalg.sqrtm(a @ a)).real, device="cuda")
    with pytest.raises(
        LoweringError, match=r"sqrtm is left to the interpreter: cuda has no routine for it\n.*executor="
    ):
        f(SQUARES[0])
    with fnad.config.override(executor="interpreter"):
        assert_close(fnad.to_host(f(SQUARES[0])), np.trace(scipy.linalg.sqrtm(SQUARES[0] @ SQUARES[0])).real)


def test_a_function_of_scipy_that_the_device_lacks_has_its_name(device: Simulated) -> None:
    total = lambda x: np.sum(scipy.special.k0(x))  # noqa: E731
    for f, name in ((total, "k0"), (fnad.grad(total), "k1")):
        with pytest.raises(LoweringError, match=rf"cuda has no instructions for scipy\.special\.{name}\n.*executor="):
            fnad.jit(f, device="cuda")(np.abs(X) + 1)
        with fnad.device("cuda"):
            assert f"none: cuda has no instructions for scipy.special.{name}" in str(fnad.explain(f, np.abs(X) + 1))
    assert_array_equal(fnad.to_host(fnad.jit(lambda x: x + 1, device="cuda")(X)), X + 1)


def test_a_program_compiled_ahead(device: Simulated) -> None:
    compiled = fnad.jit(np.sin, device="cuda").lower(X).compile()
    device.calls.clear()
    assert_close(fnad.to_host(compiled(fnad.to_device(X))), np.sin(X))
    assert "load" not in device.calls
    assert "launch" in device.calls


def test_a_call_like_the_one_before_is_not_looked_up(device: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = fnad.jit(lambda x, n: x * n, device="cuda"), fnad.to_device(X)
    for _ in range(2):
        f(x, 2.0)
    monkeypatch.setattr(Compiled, "_call", None)
    assert_array_equal(fnad.to_host(f(x, 3.0)), 3 * X)
    with pytest.raises(PlacementError, match=r"an argument is in the memory of cuda:1, and programs run on cuda:0"):
        f(Distant(X, 1), 3.0)


def test_what_cuda_raises_is_an_error_of_the_device(device: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> None:
        raise CudaError("illegal address")

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    f = fnad.jit(lambda x: x + 1, device="cuda")
    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "run_kernel", failing)
        with pytest.raises(DeviceError, match="fails on the GPU: illegal address"):
            f(X)
        patch.setattr(Simulated, "run_kernel", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(X)
    assert_array_equal(fnad.to_host(f(X)), X + 1)


# ---- to be seen ------------------------------------------------------------------------------------------------------


def test_stages_of_a_program_on_a_device() -> None:
    lowered = fnad.jit(lambda x: np.sum(x * x), device="cuda").lower(X)
    assert "blocks of" in lowered.as_text("source")
    with pytest.raises(SettingError, match="give 'source', 'ptx' or 'sass'"):
        lowered.as_text("llvm")
    with pytest.raises(SettingError, match="'ptx' is one of programs on a GPU"):
        fnad.jit(np.sin).lower(X).as_text("ptx")
    if has_libdevice():
        assert ".visible .entry launch0" in lowered.as_text("ptx")


def test_machine_code_without_nvidias_programs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools, "files_of", lambda *_: iter(()))
    with pytest.raises(LoweringError, match="takes NVIDIA's nvdisasm"):
        tools.program("no-such-package", "nvdisasm")


def test_nvidias_files_are_those_of_a_package_of_a_toolkit_or_of_triton(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The compiler may be a script in a folder of programs; then the toolkit is in its usual folder."""
    folders = ("package", "cuda/lib", "usual/lib", "triton")
    compiler, places = tmp_path / "cuda/bin/nvcc", [tmp_path / name / "file" for name in folders]
    brought = {"package": places[:1], "triton": places[3:]}
    monkeypatch.setattr(tools, "TOOLKIT", str(tmp_path / "usual"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(compiler.parent))
    monkeypatch.setattr(tools, "files_of", lambda package, name: iter(brought[package]))
    for place in (compiler, *places):
        place.parent.mkdir(parents=True)
        place.touch(0o755)
    for place in places:
        assert tools.file_of("package", "file", "lib") == place
        place.unlink()
    assert tools.file_of("package", "file", "lib") is None


def test_launches_are_explained() -> None:
    with fnad.device("cuda"):
        text = str(fnad.explain(lambda x: np.sum(np.sin(x)), X))
    assert "launch0: 1 x " in text
    assert "280 bytes read, 8 written" in text
    assert re.search(r"\d+ registers, .*occupancy \d+% of sm_90|registers and occupancy are not known: ", text)
    assert str(fnad.explain(fnad.jit(lambda x: np.sum(np.sin(x)), device="cuda"), X)) == text
    moments = [*(fnad.explain(fnad.jit(lambda x: np.sum(np.sin(x)), device="cuda"), X, memory=True).timeline or ())]
    assert [moment.in_pullback for moment in moments] == [False, True]
    assert moments[-1].results == np.asarray(X).nbytes + 8
    assert "launches" not in str(fnad.explain(lambda x: np.sum(np.sin(x)), X))


def test_products_are_explained() -> None:
    def f(w: Any, a: Any) -> Any:
        w = fnad.fori_loop(0, 3, lambda i, w: w - 0.5 * (a[0].T @ a[1]) @ w, w)
        return fnad.fori_loop(0, 3, lambda i, w: w + a[i] @ a[0], w), a @ a

    with fnad.device("cuda"):
        text = str(fnad.explain(f, np.ones((20, 20)), np.ones((3, 20, 20))))
    found = re.findall(
        r"  products by cuBLAS: (\d+) of \[20,20\] · \[20,20\], ([\d,]+) bytes read, ([\d,]+) written", text
    )
    # what is added to another one reads that, too; a stack is three
    assert sorted(found) == [
        ("1", "6,400", "3,200"), ("1", "6,400", "3,200"), ("1", "9,600", "3,200"), ("3", "19,200", "9,600"),
    ]  # fmt: skip
