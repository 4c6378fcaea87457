"""Native code that programs of several sizes share: how much is compiled, and that results are those of the size."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import given, settings

import fnad
from fnad.backends.cpu import families
from fnad.backends.cpu.executor import compile_program
from fnad.ir.primitive import PRIMITIVES, ArgFold, Contraction, Cumulative, Fold, Gather, ScanLoop, Scatter, WhileLoop
from fnad.kernel.generalize import Group, Pattern
from fnad.kernel.python_source import plain_text
from fnad.kernel.statements import Kernel
from fnad.testing import assert_close
from fnad.testing.numbers import tolerance
from tests.backends.test_executor import all_samples, assert_interpreted
from tests.random_programs import Example, examples
from tests.together import together

WITH_LOOPS = ArgFold | Contraction | Cumulative | Fold | Gather | ScanLoop | Scatter | WhileLoop

RNG = np.random.default_rng(0)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that are compiled from now on, whatever other tests have compiled."""
    found: list[Kernel] = []
    monkeypatch.setattr(families, "_FAMILIES", WeakValueDictionary())
    compile_kernel = families.compile_kernel

    def count(kernel: Kernel, text: str = "") -> Any:
        found.append(kernel)
        return compile_kernel(kernel, text)

    monkeypatch.setattr(families, "compile_kernel", count)
    return found


def agree(f: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Callable[..., Any]:
    """Call a function natively with each of these arguments, compare with the interpreter, and return it compiled."""
    native = fnad.jit(f)
    with together() as check:
        for args in calls:
            with check([np.shape(leaf) for leaf in fnad.tree.leaves(args)]):
                agrees(native, f, args)
    return native


def agrees(native: Callable[..., Any], f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with fnad.config.override(executor="compiled"):
        found = native(*args)
    with fnad.config.override(executor="interpreter"):
        expected = fnad.jit(f)(*args)
    for ours, known in zip(fnad.tree.leaves(found), fnad.tree.leaves(expected), strict=True):
        assert np.asarray(ours).dtype == np.asarray(known).dtype
        assert_close(ours, known, 16 * tolerance(np.asarray(known).dtype), scale=1.0)


# ---- how much is compiled --------------------------------------------------------------------------------------------


def loss(w: Any, v: Any, x: Any, y: Any) -> Any:
    logits = np.tanh(x @ w) @ v
    logits = logits - np.max(logits, axis=1, keepdims=True)
    return np.mean(np.sum(y * (np.log(np.sum(np.exp(logits), axis=1, keepdims=True)) - logits), axis=1))


def batch(n: int, dtype: str = "f4") -> tuple[Any, ...]:
    """Weights, which are always the same, and so many rows."""
    w, v = (np.random.default_rng(1).standard_normal(shape).astype(dtype) for shape in ((12, 16), (16, 10)))
    return w, v, RNG.standard_normal((n, 12)).astype(dtype), np.eye(10, dtype=dtype)[np.arange(n) % 10]


@pytest.mark.slow
def test_from_the_third_size_on_nothing_is_compiled(compiled: list[Kernel]) -> None:
    gradient = fnad.grad(loss, (0, 1))
    native = agree(gradient, map(batch, (20, 21, 22)))
    assert len(compiled) == 3
    for n in (23, 24, 31, 32, 33, 20, 120):  # from 128 rows on loops over narrow rows run by tiles
        agrees(native, gradient, batch(n))
    assert len(compiled) == 3


@pytest.mark.slow
def test_loops_split_at_the_borders_share_it(compiled: list[Kernel]) -> None:
    def border(x: Any) -> Any:
        return np.sum(np.sin(x[2:, 1:-1] * x[:-2, 1:-1] + np.pad(x, 3)[4:-4, 4:-4] * x[1:-1, 2:]))

    agree(
        fnad.value_and_grad(border),
        [(RNG.standard_normal((n, m)),) for n, m in ((20, 151), (21, 155), (22, 158), (23, 159), (24, 160))],
    )
    assert len(compiled) <= 3


@pytest.mark.slow
def test_loops_on_several_threads_share_it(compiled: list[Kernel]) -> None:
    def total(x: Any, i: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(-x)) + np.max(x) + np.sum(x[i])

    calls = [(RNG.uniform(size=n), RNG.integers(0, n, 1000)) for n in (300_001, 350_005, 410_003, 320_001, 380_007)]
    with fnad.config.override(threads=2):
        agree(fnad.value_and_grad(total), calls)
    assert len(compiled) == 3
    assert "prange" in plain_text(compiled[-1])
    assert "numbers_i64" in plain_text(compiled[-1])


@pytest.mark.slow
def test_layers_that_are_alike_share_it(compiled: list[Kernel]) -> None:
    """Two have code of their own; from the third on it is that of all."""

    def deep(layers: Any, x: Any) -> Any:
        for layer in layers:
            centred = x - np.mean(x, axis=-1, keepdims=True)
            normal = centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
            scores = np.exp(normal @ layer["w"] @ np.swapaxes(normal, -1, -2))
            x = x + np.tanh((scores / np.sum(scores, axis=-1, keepdims=True)) @ x @ layer["v"])
        return np.mean(x**2)

    def layers(count: int) -> Any:
        return [{name: RNG.standard_normal((16, 16)) / 4 for name in "wv"} for _ in range(count)]

    agree(fnad.grad(deep), [(layers(9), RNG.standard_normal((4, 8, 16)))])
    assert len(compiled) <= 6


def test_constants_are_numbers_too(compiled: list[Kernel]) -> None:
    """New functions run the code of those before; one that differs in more of its constants is generalized."""
    kept = []
    for slope, offset in ((1.5, 4.0), (2.5, 4.0), (3.5, 4.0), (4.5, 4.0), (np.inf, 4.0), (5.5, 5.0), (6.5, np.nan)):
        f = lambda x, slope=slope, offset=offset: np.sin(x * slope + offset) * x  # noqa: E731
        kept.append(agree(f, [(np.linspace(-1.0, 1.0, 5),)]))
    assert [len(kernel.parameters) for kernel in compiled] == [3, 3, 4, 4]
    assert "f64_3 = numbers_f64[1]" in plain_text(compiled[-1])


@pytest.mark.slow
def test_several_threads_share_it(compiled: list[Kernel]) -> None:
    gradient = fnad.grad(loss, (0, 1))
    native = fnad.jit(gradient)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: agrees(native, gradient, batch(n)), [*range(40, 48), *range(40, 48)]))
    assert len(compiled) == 3


def test_code_goes_with_the_last_program_that_runs_it() -> None:
    fnad.clear_cache()
    gc.collect()
    before = len(families._FAMILIES)
    f = fnad.jit(lambda x: np.sin(x) * 3.25 + np.sum(x))
    with fnad.config.override(executor="compiled"):
        for n in (11, 12, 13, 14):
            f(np.ones(n))
    assert len(families._FAMILIES) == before + 1
    del f
    fnad.clear_cache()
    gc.collect()
    assert len(families._FAMILIES) == before


# ---- what it computes ------------------------------------------------------------------------------------------------


def many_things(x: Any, a: Any, i: Any) -> tuple[Any, ...]:
    """What depends on the sizes n and m of x[n], a[n,m] and i[m], integers below n."""
    n, m = a.shape
    e = np.exp(a - np.max(a, axis=1, keepdims=True))
    u = x.copy()
    u[1:-1] += 0.25 * (x[2:] - 2.0 * x[1:-1] + x[:-2])
    pairs = x[:, None] - x[None, :]
    return (
        e / np.sum(e, axis=1, keepdims=True),
        np.mean(x), np.var(a, axis=0), np.sum(a, axis=0), np.prod(a[:, :1]), u,
        np.cumsum(a, axis=0), np.cumsum(x), np.argmax(a, axis=0), np.argmin(a, axis=1),
        x[i] * 2.0, a.T.reshape(n, m) + a, np.concatenate([x, x[::-1], x[:1]]), np.pad(a, 1), np.repeat(x, 2),
        np.sum(np.exp(-pairs * pairs), axis=1), a.T @ a, a @ np.ones(m), np.diff(x), np.flip(a, 1) - a[::-1],
        np.where(np.arange(n) < m, x, 0.0), np.linspace(0.0, 1.0, 7) * x[-1], np.outer(x, x[:m]),
    )  # fmt: skip


def arrays(n: int, m: int) -> tuple[Any, ...]:
    return RNG.uniform(0.5, 1.5, n), RNG.uniform(-1.0, 1.0, (n, m)), RNG.integers(0, n, m)


@pytest.mark.slow
def test_every_size_is_right(compiled: list[Kernel]) -> None:
    """One axis, the other, both, equal ones, short rows and long ones, those of which sums are in blocks."""
    several = (
        (30, 21),
        (31, 21),
        (32, 22),
        (23, 23),
        (2, 1),
        (300, 256),
        (33, 22),
    )
    native = agree(many_things, [arrays(*size) for size in several])
    before = len(compiled)
    for size in ((34, 23), (36, 22)):
        agrees(native, many_things, arrays(*size))
    assert len(compiled) == before


@pytest.mark.slow
def test_gradients_of_every_size_are_right() -> None:
    def total(x: Any, a: Any, i: Any) -> Any:
        return sum(np.sum(np.sin(y)) for y in many_things(x, a, i) if y.dtype == x.dtype)

    agree(fnad.grad(total, (0, 1)), (arrays(*size) for size in ((30, 21), (31, 22), (33, 22), (22, 21))))


@pytest.mark.slow
def test_empty_and_single_rows_are_other_programs() -> None:
    def f(x: Any) -> Any:
        return np.sum(x, axis=0), x * 2 + 1, x - x[:1], x.T @ x

    for dtype in ("f4", "f8", "c16"):
        agree(f, [(RNG.standard_normal((n, 9)).astype(dtype),) for n in (1, 2, 3, 4, 5, 0)])


@pytest.mark.slow
def test_loops_of_every_length_are_right(compiled: list[Kernel]) -> None:
    def recurrence(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = np.tanh(w @ h + x)
            return h, h[0]

        h, firsts = fnad.scan(step, xs[0] * 0.0, xs)
        return np.sum(h) + np.sum(firsts**2)

    def newton(a: Any) -> Any:
        return fnad.while_loop(lambda x: np.max(np.abs(x * x - a)) > 1e-9, lambda x: 0.5 * (x + a / x), a)

    w = RNG.standard_normal((9, 9)) / 9
    agree(fnad.value_and_grad(recurrence, (0, 1)), ((w, RNG.standard_normal((n, 9))) for n in (10, 12, 14, 50, 11, 1)))
    agree(newton, ((RNG.uniform(1.0, 2.0, n),) for n in (20, 22, 24, 50, 21)))
    assert len(compiled) <= 8


def test_faults_and_guards_are_those_of_the_size() -> None:
    @fnad.jit
    def pick(x: Any, i: Any) -> Any:
        return np.sum(x[i]) if x[0] > 0 else x[i] * 2.0

    with fnad.config.override(executor="compiled"):
        for n in (12, 13, 14, 15, 16):
            x = RNG.uniform(1.0, 2.0, n)
            np.testing.assert_allclose(pick(x, np.array([n - 1, -n])), x[-1] + x[0], rtol=1e-15)
            np.testing.assert_array_equal(pick(-x, np.array([n - 1, -n])), [-2 * x[-1], -2 * x[0]])
            with pytest.raises(fnad.errors.OutOfRangeError):
                pick(x, np.array([n, 0]))


# ---- all numbers as arguments ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def most_general() -> Any:
    """Have every number of a kernel that may be a parameter be one."""

    def joined(pattern: Pattern, numbers: Any) -> Pattern:
        return replace(pattern, groups=tuple(Group((place,), None) for place in range(len(numbers))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "ALONE", 0)
        patch.setattr(Pattern, "joined", joined)
        yield


@pytest.mark.parametrize("name", sorted(p.name for p in PRIMITIVES.values() if isinstance(p.lower, WITH_LOOPS)))
def test_every_primitive_is_interpreted(name: str, most_general: None) -> None:
    program, given = all_samples(PRIMITIVES[name])
    assert_interpreted(compile_program(program), program, given)


@pytest.mark.slow
@given(examples(most=8))
@settings(max_examples=15)
def test_random_programs_are_interpreted(most_general: None, example: Example) -> None:
    assert_interpreted(compile_program(example.program), example.program, example.arguments)
