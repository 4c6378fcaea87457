"""Compiled programs on arrays: every primitive against the interpreter, and what callers may rely on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fnad import jit
from fnad.backends.cpu.executor import compile_plan, compile_program
from fnad.errors import OutOfRangeError
from fnad.ir.axes import Stacked
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, ArgFold, Concatenation, Contraction, Cumulative, Fold, Scalar
from fnad.ir.types import F32, F64, I64, Aval, aval_of
from fnad.ir.walk import all_equations
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from fnad.ops.arithmetic import mul, strong_div
from fnad.ops.comparison import bitwise_xor
from fnad.ops.contraction import dot_general
from fnad.ops.elementary import exp, sin, sqrt
from fnad.ops.indexing import dynamic_slice, gather
from fnad.ops.reduction import reduce_prod
from fnad.ops.shape import concatenate, reduce_sum
from fnad.testing import assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import BY_NAME
from tests.catalogue.test_extremes import OF_ARRAYS, OF_SCIPY, is_elementwise, limits
from tests.targets import OF_LARGE_ARRAYS
from tests.together import drawn, in_groups, some_of

BY_SIZE = ArgFold | Concatenation | Contraction | Cumulative | Fold
"""The kinds of lowering that depend on the sizes of arrays."""


def applied_to(primitive, samples):
    """Return one program that applies a primitive to samples, and the arguments."""
    given = [np.asarray(operand) for sample in samples for operand in sample.operands]

    def apply(*symbols):
        operands = iter(symbols)
        for sample in samples:
            results = primitive(*[next(operands) for _ in sample.operands], **sample.params, regions=sample.regions)
            yield from results if isinstance(results, tuple) else (results,)

    return trace(lambda *symbols: list(apply(*symbols)), *map(aval_of, given), name=primitive.name), given


def all_samples(primitive):
    """Return one program that applies a primitive to all its samples, and the arguments."""
    return applied_to(primitive, list(primitive.samples()))


SWEPT = {id(case) for case in OF_ARRAYS if not isinstance(case.primitive.axes, Stacked)}
"""The cases without regions whose native code `tests/catalogue/test_extremes.py` runs on more operands, as it does
elementwise ones."""

SAMPLES = {
    name: [c.sample for c in cases if not (is_elementwise(c) or id(c) in SWEPT)] for name, cases in BY_NAME.items()
}


@pytest.mark.slow
@in_groups("name", sorted(name for name, samples in SAMPLES.items() if samples))
def test_every_primitive_compiled_is_interpreted(name):
    program, given = applied_to(PRIMITIVES[name], some_of(SAMPLES[name], name, 2))
    assert_interpreted(compile_program(program), program, given)


@pytest.mark.parametrize("name", sorted(p.name for p in PRIMITIVES.values() if isinstance(p.lower, BY_SIZE)))
def test_every_primitive_compiled_as_large_arrays_are_is_interpreted(name):
    program, given = applied_to(PRIMITIVES[name], some_of(list(PRIMITIVES[name].samples()), name, 5))
    assert_interpreted(compile_plan(Plan(lower(program, OF_LARGE_ARRAYS), OF_LARGE_ARRAYS)), program, given)


PARTS = {"exp_high", "exp_low", "muladd"}
"""Parts of softmax, for the operands that it gives them; how they round is seen in their sum alone."""


def templates():
    """Return scalar expressions whose extreme operands `tests/catalogue/test_extremes.py` leaves out, by their names.

    These are the complex ones, of which inf and nan are compared part by part, and those that the interpreter takes
    from SciPy. Each has its samples, one for the same kinds of numbers and parameters, in a precision that is drawn.
    """
    found = {}
    for primitive in PRIMITIVES.values():
        if not isinstance(primitive.lower, Scalar) or primitive.name in {"cotangent_tap", *PARTS}:
            continue
        if str(primitive.lower.template).startswith(("scipy_", "random_", "philox")):
            continue
        for sample in primitive.samples():
            kinds = "".join(np.asarray(operand).dtype.kind for operand in sample.operands)
            if primitive.name in OF_SCIPY or "c" in kinds:
                found.setdefault(primitive.name, []).append((f"{kinds} {sample.params}", sample))
    return {
        name: [sample for _, sample in drawn(samples, lambda pair, name=name: f"{name} {pair[0]}")]
        for name, samples in found.items()
    }


TEMPLATES = templates()


def extremes(dtype, arity):
    if dtype.kind != "c":
        return limits(dtype)
    parts = [0.0, -0.0, 1.0, -2.0, 1e-9, 40.0, np.inf, np.nan][: 8 if arity == 1 else 5]
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


@pytest.mark.slow
@in_groups("name", TEMPLATES)
def test_a_template_has_the_interpreted_values_of_extreme_complex_operands(name):
    primitive = PRIMITIVES[name]
    for sample in TEMPLATES[name]:
        columns = [extremes(np.asarray(operand).dtype, len(sample.operands)) for operand in sample.operands]
        given = [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*columns)]
        program = trace(lambda *xs, params=sample.params: [primitive(*xs, **params)], *map(aval_of, given))
        with np.errstate(all="ignore"):
            (expected,), (found,) = interpret(program, given), compile_program(program)(given)
            assert_same(found, expected)


def assert_same(found, expected, units=64):
    """Compare numbers to rounding, complex ones by their sizes, and infinities, nan and the signs of zero."""
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    part = expected.real.dtype
    a, b = (x.view(part).reshape(len(x), -1) for x in (found, expected))
    limits, size = np.finfo(part), np.max(np.abs(b), axis=1, keepdims=True, initial=0.0, where=np.isfinite(b))
    near = np.abs(a - b) <= units * limits.eps * size + 4 * limits.smallest_subnormal
    zeros = (a == 0) & (b == 0)
    same = np.where(zeros, np.signbit(a) == np.signbit(b), near | (a == b) | np.isnan(a) & np.isnan(b))
    assert same.all(), f"{a[~same.all(axis=1)][:4]} for {b[~same.all(axis=1)][:4]}"


def assert_interpreted(run, program, given):
    """Compare with the interpreter, to the rounding of the least precise numbers in the program."""
    made = [variable for equation in all_equations(program) for variable in equation.results]
    allowed = max(tolerance(variable.aval.dtype) for variable in (*program.inputs, *made))
    for found, expected in zip(run(given), interpret(program, given), strict=True):
        assert found.dtype == np.asarray(expected).dtype
        assert_close(found, expected, allowed)


@pytest.mark.parametrize(
    "make",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1][::-1],
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
    ],
    ids=["fortran", "strided", "reversed twice", "unaligned"],
)
def test_any_layout_is_read_right(make):
    x = np.arange(12.0).reshape(3, 4)
    run = compile_program(trace(lambda x: [mul(x, x)], Aval(F64, (3, 4)), name="f"))
    np.testing.assert_array_equal(run([make(x)])[0], x * x)


def test_results_are_fresh_and_arguments_untouched():
    run = compile_program(trace(lambda x: [x, mul(x, x), mul(x, x)], Aval(F64, (3,)), name="f"))
    x = np.ones(3)
    first = run([x])
    for array in first:
        array.fill(7)
    second = run([x])
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(second, np.ones((3, 3)))
    assert not any(np.shares_memory(a, b) for a in first for b in second)


def test_an_index_out_of_range_is_an_error_and_the_next_call_is_clean():
    run = compile_program(trace(lambda x, i: [gather(x, i)], Aval(F64, (3,)), Aval(I64, (2,)), name="f"))
    x = np.arange(3.0)
    np.testing.assert_array_equal(run([x, np.array([-3, 2])])[0], [0, 2])
    for index in (3, -4):
        with pytest.raises(OutOfRangeError):
            run([x, np.array([0, index])])
    np.testing.assert_array_equal(run([x, np.array([0, 1])])[0], [0, 1])


def test_a_box_that_does_not_fit_is_an_error():
    run = compile_program(
        trace(lambda x, i: [dynamic_slice(x, i, sizes=(2,))], Aval(F64, (4,)), Aval(I64, ()), name="f")
    )
    np.testing.assert_array_equal(run([np.arange(4.0), np.array(-2)])[0], [2, 3])
    for start in (3, -1, -5):
        with pytest.raises(OutOfRangeError):
            run([np.arange(4.0), np.array(start)])


def test_threads_do_not_share_temporaries():
    def f(x):
        y = dot_general(exp(x), x, contract=((1,), (0,)), batch=((), ()))
        return [reduce_sum(sin(y), axes=(0, 1))]

    run = compile_program(trace(f, Aval(F64, (60, 60)), name="f"))
    arguments = [np.full((60, 60), v) for v in np.linspace(0, 1, 16)]
    expected = [run([x])[0] for x in arguments]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: run([x])[0], arguments * 5))
    np.testing.assert_array_equal(found, expected * 5)


@pytest.mark.parametrize(("dtype", "n"), [(np.float64, 1_000_003), (np.float32, 1_000_003), (np.float32, 2**25)])
def test_sums_are_at_least_as_accurate_as_pairwise(dtype, n):
    x = np.full(n, 0.1, dtype)
    run = compile_program(trace(lambda x: [reduce_sum(x, axes=(0,))], aval_of(x), name="f"))
    exact = float(np.longdouble(x[0]) * n)
    assert abs(run([x])[0] - exact) <= max(abs(np.sum(x) - exact), 2 * np.spacing(dtype(exact)))


def wrapping(x):
    counts = x * 0
    counts[np.array([0, 1, 0])] += x[:3]
    np.add.at(counts, np.array([2, 2, 2]), x[:3])
    folds = [f(x, dtype=x.dtype) for f in (np.sum, np.prod, np.cumsum, np.cumprod)]
    return [x * x + x, x - 2 * x, -x, x @ x, np.outer(x, x), x**3, np.abs(x), x // 3 * x, counts, *folds]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_wrap_in_their_own_width(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.max, info.max // 2 + 3, info.min, info.min + 1, 7, 100, 99], dtype)
    with np.errstate(all="ignore"):
        expected = wrapping(x)
    for found, wanted in zip(jit(wrapping)(x), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_the_element_of_a_fold_is_computed_before_it_is_combined():
    x, y = np.array([5, 6, 7]), np.array([1, 2, 4])
    fold = trace(lambda x, y: [reduce_prod(bitwise_xor(x, y), axes=(0,))], aval_of(x), aval_of(y), name="f")
    assert compile_program(fold)([x, y])[0] == np.prod(x ^ y)


def test_operands_are_computed_before_what_takes_them():
    x, y = np.array([1.0, 2.0]), np.array([0.5, 3.0])
    run = compile_program(trace(lambda x, y: [strong_div(x, x / y)], aval_of(x), aval_of(y), name="f"))
    np.testing.assert_allclose(run([x, y])[0], x / (x / y), rtol=1e-15)


@pytest.mark.slow
def test_a_concatenation_of_many_pieces_stores_each_at_its_place():
    xs = [np.full(n % 3, float(n)) for n in range(150)]
    run = compile_program(trace(lambda *xs: [concatenate(*map(exp, xs), axis=0)], *map(aval_of, xs), name="f"))
    np.testing.assert_allclose(run(xs)[0], np.exp(np.concatenate(xs)), rtol=1e-14)


def test_a_sum_with_infinity_is_infinite():
    x = np.ones(5000)
    x[17] = np.inf
    run = compile_program(trace(lambda x: [reduce_sum(x, axes=(0,))], aval_of(x), name="f"))
    assert run([x])[0] == np.inf


def test_emitted_source_runs_as_plain_python(monkeypatch):
    def f(x):
        y = dot_general(x, x, contract=((1,), (0,)), batch=((), ()))
        return [reduce_sum(mul(sin(y), y), axes=(0, 1))]

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    x = np.arange(100.0).reshape(10, 10) / 100
    run = compile_program(trace(f, Aval(F64, (10, 10)), name="f"))
    assert run.llvm() == ""
    np.testing.assert_allclose(run([x])[0], np.sum(np.sin(x @ x) * (x @ x)), rtol=1e-13)


def test_elementwise_arithmetic_rounds_as_it_is_written():
    """No reassociation, contraction or reciprocals: Dekker's splitting and 0.5 / sqrt(0) come out as in NumPy."""
    x = np.random.default_rng(0).random((2, 1000))

    def error_of_product(x, y):
        high = x * 134217729.0 - (x * 134217729.0 - x)
        return [x * y - high * y, x - high, 0.5 / sqrt(x - x)]

    for dtype in (F64, F32):
        given = list(x.astype(dtype))
        program = trace(error_of_product, *map(aval_of, given), name="f")
        for found, expected in zip(compile_program(program)(given), interpret(program, given), strict=True):
            np.testing.assert_array_equal(found, expected)
