"""SciPy's functions in compiled loops: the values of the ufuncs to the bit, and loops that stay native."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special

from fnad.backends.cpu import scipy_special
from fnad.backends.cpu.compiler import NativeFunction
from fnad.backends.cpu.executor import compile_program, plan
from fnad.backends.llvm.formulas.catalogue import SPECIAL, SPECIAL_F32, WITHIN, WITHIN_F32
from fnad.control.scan import scan
from fnad.ir.builder import trace
from fnad.ir.primitive import Primitive, Scalar
from fnad.ir.program import Program
from fnad.ir.types import Aval, aval_of
from fnad.kernel.python_source import namespace
from fnad.kernel.steps import Chunk
from fnad.numpy.scipy_ufuncs import UFUNCS
from fnad.ops.arithmetic import add, mul
from fnad.ops.autodiff import stop_gradient
from fnad.ops.bessel import jv
from fnad.ops.elementary import exp
from fnad.ops.gamma import gammaln
from fnad.ops.integrals import si
from fnad.scalar.operation import INDEX, OperandError, real_dtype
from fnad.scalar.scipy_ufunc import UfuncOperation, ufunc_operation
from fnad.testing import marks
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from tests.kernel_text import compile_source

Array = np.ndarray[Any, Any]

EDGES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -1.5, 3.0, 10.0, -7.0, 170.5, 1e-8, 5e-324, np.inf, -np.inf, np.nan)
F64 = np.dtype(np.float64)
FORMULAS = {8: SPECIAL | WITHIN, 4: SPECIAL | WITHIN | SPECIAL_F32 | WITHIN_F32, 2: SPECIAL}
"""The functions that a formula computes, not the ufunc, by the bytes of their operands."""
DEGREES = (0, 1, 2, 3, 7, 40, -1, -5)


class Function(NamedTuple):
    """A primitive that is a result of a ufunc, and its operation."""

    primitive: Primitive
    operation: UfuncOperation

    @property
    def name(self) -> str:
        return self.primitive.name

    @property
    def ufunc(self) -> str:
        return self.operation.ufunc

    @property
    def symbol(self) -> str:
        return self.operation.name

    @property
    def plain(self) -> Callable[..., Any]:
        return self.operation.plain

    def dtypes(self, last: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the operands where the last one has this dtype."""
        return (*(INDEX if letter == "i" else real_dtype(last) for letter in self.signature[:-1]), last)

    @property
    def signature(self) -> str:
        """A letter an operand: i, or f for one that may be complex where it is the last."""
        return "".join("i" if x.dtype.kind == "i" else "f" for x in next(iter(self.primitive.samples())).operands)


def functions() -> Iterator[Function]:
    for ufunc in UFUNCS.values():
        for primitive in ufunc.primitives:
            if isinstance(primitive.lower, Scalar):
                name = primitive.lower.expression({}).partition("(")[0]
                operation = ufunc_operation(name)
                assert operation is not None
                yield Function(primitive, operation)


SPECIAL = {function.name: function for function in functions()}
INSTALLED = [f for f in SPECIAL.values() if f.ufunc.startswith("_") or hasattr(scipy.special, f.ufunc)]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Special values make NumPy warn, orders that are no integers SciPy."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def dtypes_of(function: Function) -> list[np.dtype[Any]]:
    """Return the dtypes that the last operand of a function may have."""
    return list({sample.operands[-1].dtype: None for sample in function.primitive.samples()})


def groups() -> dict[tuple[str, str], list[Function]]:
    """Return the functions by what their operands are."""
    found: dict[tuple[str, str], list[Function]] = {}
    for function in INSTALLED:
        for dtype in dtypes_of(function) if function.name != "hyperu" else ():
            if dtype.kind == "c" or function.symbol.removeprefix("scipy_") not in FORMULAS[dtype.itemsize]:
                found.setdefault((function.signature, dtype.str[1:]), []).append(function)
    return found


def points(dtypes: Sequence[np.dtype[Any]], edges: Sequence[float] = EDGES) -> list[Array]:
    """Return operands: smooth points, points far out, and combinations of edges."""
    rng = np.random.default_rng(0)

    def column(dtype: np.dtype[Any]) -> Array:
        if dtype.kind == "i":
            return rng.choice(DEGREES, 500).astype(dtype)
        at_edges = rng.choice(edges, 380)
        real = np.concatenate([rng.uniform(0.05, 0.95, 60), 4 * rng.normal(size=60), at_edges])
        if dtype.kind == "f":
            return real.astype(dtype)
        imaginary = np.concatenate([4 * rng.normal(size=120), rng.choice(edges, 380)])
        return np.stack([real, imaginary], 1).copy().view(complex)[:, 0].astype(dtype)

    if len(dtypes) <= 2 and dtypes[-1].kind == "f" and dtypes[0].kind == "f":
        every = np.array(list(product(edges, repeat=len(dtypes)))).T
        return [np.concatenate([column(d), e.astype(d)]) for d, e in zip(dtypes, every, strict=True)]
    return [column(dtype) for dtype in dtypes]


def compiled(functions: list[Function], operands: list[Array], result: np.dtype[Any]) -> NativeFunction:
    """Compile one loop that computes every function."""
    names = [f"x{n}" for n in range(len(operands))]
    outs = [f"y{n}" for n in range(len(functions))]
    values = ", ".join(f"{name}[i]" for name in names)
    lines = [f"        {out}[i] = {f.symbol}({values})" for out, f in zip(outs, functions, strict=True)]
    head = f"def program({', '.join(names + outs)}):\n    for i in range(0, {operands[0].size}):\n"
    dtypes = [*(operand.dtype for operand in operands), *[result] * len(outs)]
    return compile_source(head + "\n".join(lines), "program", dtypes)


def assert_same(found: Array, expected: Array, name: str) -> None:
    """Compare to the bit, but for the signs of nans."""
    part = np.dtype(f"f{found.dtype.itemsize // (2 if found.dtype.kind == 'c' else 1)}")
    a, b = found.view(part), expected.view(part)
    np.testing.assert_array_equal(a, b, err_msg=name)
    numbers = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers], err_msg=name)


def check(functions: list[Function], dtype: np.dtype[Any], edges: Sequence[float] = EDGES) -> None:
    operands = points(functions[0].dtypes(dtype), edges)
    program = compiled(functions, operands, dtype)
    results = [np.empty(operands[0].size, dtype) for _ in functions]
    program.call(*operands, *results)
    for function, found in zip(functions, results, strict=True):
        assert_same(found, np.asarray(function.plain(*operands)), function.name)


@pytest.mark.parametrize(("signature", "dtype"), groups())
def test_every_function_is_its_ufunc(signature: str, dtype: str) -> None:
    check(groups()[signature, dtype], np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_hyperu_is_its_ufunc(dtype: str) -> None:
    """SciPy 1.16 never returns from infinite parameters."""
    check([SPECIAL["hyperu"]], np.dtype(dtype), [edge for edge in EDGES if np.isfinite(edge)])


def test_the_loop_of_a_ufunc_takes_the_place_of_what_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    scipy_special.entry_point.cache_clear()
    monkeypatch.setattr(scipy_special, "capsules", dict)
    try:
        for signature in ("f", "ff", "if"):
            functions = groups()[signature, "f8"]
            program = compiled(functions[:1], points(functions[0].dtypes(F64)), F64)
            assert "_loop" in program.llvm()
            check(functions, F64)
    finally:
        scipy_special.entry_point.cache_clear()


def test_most_functions_of_f64_are_entry_points() -> None:
    loops = {f.ufunc for f in INSTALLED if scipy_special.entry_point(f.ufunc, f.dtypes(F64)) is None}
    several = {f.ufunc for f in INSTALLED if len(UFUNCS[f.ufunc].primitives) > 1}
    complex_alone = {"wofz", "hankel1", "hankel2", "hankel1e", "hankel2e"}
    assert loops == several | complex_alone | {"_zeta", "_riemann_zeta"}


def test_an_operation_is_what_is_declared() -> None:
    for function in INSTALLED:
        for sample in function.primitive.samples():
            assert function.operation.result(*(x.dtype for x in sample.operands)) == sample.operands[-1].dtype
            evaluated = np.asarray(function.primitive.evaluate(*sample.operands))
            assert_same(np.asarray(function.plain(*sample.operands)), evaluated, function.name)


def test_the_name_of_an_operation_is_its_ufunc() -> None:
    for name, ufunc, output in (
        ("scipy_jv", "jv", None),
        ("scipy__zeta", "_zeta", None),
        ("scipy_itj0y0_1", "itj0y0", 1),
    ):
        operation = ufunc_operation(name)
        assert operation is not None
        assert (operation.name, operation.ufunc, operation.output) == (name, ufunc, output)
    assert ufunc_operation("jv") is None


def test_operands_of_other_dtypes() -> None:
    with pytest.raises(OperandError, match="scipy_jv does not take operands of float64, float32"):
        compiled([SPECIAL["jv"]], [np.ones(3), np.ones(3, "f4")], np.dtype("f8"))


# ---- in programs -------------------------------------------------------------------------------------------------

SCALAR = Aval(F64)


def body(c: Any, x: Any) -> Any:
    """A step with an entry point, an order, and the loop of a ufunc."""
    return [gammaln(add(mul(c, c), exp(si(c)))), jv(stop_gradient(x), c)]


def scan_program() -> tuple[Program, list[Array]]:
    arrays = [np.asarray(0.3), np.linspace(0.1, 2.0, 7)]
    region = trace(body, SCALAR, SCALAR, name="body")
    params = {"consts": 0, "carry": 1, "length": 7, "reverse": False}
    program = trace(lambda *v: list(scan(*v, **params, regions=(region,))), *map(aval_of, arrays), name="f")
    return program, arrays


def test_a_scan_is_one_native_loop() -> None:
    program, arrays = scan_program()
    run = compile_program(program)
    (step,) = run.plan.steps
    assert isinstance(step, Chunk)
    for found, expected in zip(run(arrays), interpret(program, arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_derivative_of_a_scan_is_native() -> None:
    program, arrays = scan_program()
    both = joint(program, marks(program))
    run = compile_program(both)
    assert all(isinstance(step, Chunk) for step in run.plan.steps)
    given = [*arrays, np.ones(()), np.ones(7)]
    for found, expected in zip(run(given), interpret(both, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_elementwise_functions_and_their_derivatives_share_a_loop() -> None:
    program = trace(lambda x: [mul(gammaln(x), exp(x))], Aval(F64, (5,)), name="f")
    assert "for" in (source := plan(joint(program, marks(program))).source)
    assert source.count("for ") == 1
    assert source.count("scipy_gammaln(") == 1
    assert source.count("scipy_psi(") == 1


def test_printed_source_runs_in_python() -> None:
    source = "def program(x, out):\n    for i in range(0, 3):\n        out[i] = scipy_jv(f64(0.5), scipy_i0(x[i]))\n"
    words, x, out = namespace(source), np.array([0.5, 1.5, 30.0]), np.empty(3)
    exec(source, words)
    words["program"](x, out)  # type: ignore[operator]
    np.testing.assert_array_equal(out, scipy.special.jv(0.5, scipy.special.i0(x)))


def test_scipys_functions_run_in_several_threads_at_once() -> None:
    x = np.linspace(0.1, 4.0, 20_000)
    functions = [SPECIAL["gamma"], SPECIAL["si"]]
    program = compiled(functions, [x], F64)
    outs = [[np.empty(x.size) for _ in functions] for _ in range(4)]
    threads = [threading.Thread(target=program.call, args=(x, *out)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        for function, found in zip(functions, out, strict=True):
            assert_same(found, np.asarray(function.plain(x)), function.name)


def test_an_error_that_scipy_is_asked_for_is_raised() -> None:
    x, out = np.array([0.0], "f4"), np.empty(1, "f4")
    program = compiled([SPECIAL["k0"]], [x], x.dtype)
    with scipy.special.errstate(all="raise"), pytest.raises(scipy.special.SpecialFunctionError, match="singularity"):
        program.call(x, out)
    program.call(x, out)
    assert out[0] == np.inf
