"""Programs for all sizes of an axis: each form against a call of the function, for sizes 0, 1 and later ones."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
import fnad.api.functions.save_load
from fnad.config import override
from fnad.errors import ArgumentTypeError, ExportError
from fnad.ir.size import EXAMPLE, SizeScope, at_sizes, slice_bounds
from fnad.tree import leaves
from tests.together import some_of

S = fnad.ShapeDtypeStruct
SIZES = (0, 1, 2, 3, 5, 17, 300)
OTHERS = {0: 3, 1: 1, 2: 4, 3: 0, 5: 5, 17: 1, 300: 7}
"""The size m of the other axis, by n."""


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w) ** 2)


def recurrence(x: Any) -> Any:
    return fnad.scan(lambda c, a: (np.sin(c) + a, c**2), 0.0, x)


def counted(x: Any) -> Any:
    return fnad.fori_loop(0, x.shape[0], lambda i, s: 0.5 * s + x[i] ** 2, 0.0)


def shifted(x: Any) -> Any:
    y = np.zeros(x.shape[0])
    y[1:] = x[:-1]
    y[0] = x[-1]
    return y


def halves(x: Any) -> Any:
    count = len(x)
    weights = np.ones(count) / count
    late = np.zeros((count, count)) + np.arange(count - 1, -1, -1) * math.sqrt(count)
    return weights * np.linspace(0, 1, len(x)), late, np.arange(1, len(x) + 1), float(len(x)), max(len(x) - 1, 1)


def heat(u: Any) -> Any:
    new = np.zeros_like(u)
    new[1:-1] = (u[2:] - 2 * u[1:-1] + u[:-2]) * (len(u) - 1) ** 2
    return new


def squares(w: Any, x: Any, y: Any) -> Any:
    return np.sum((x @ w - y) ** 2) / (2 * len(y))


def logistic(w: Any, x: Any, y: Any) -> Any:
    return np.mean(np.log1p(np.exp(-y * (x @ w)))) + np.log1p(len(w)) * w @ w


def classes(w: Any, b: Any, x: Any) -> Any:
    z = np.maximum(x, 0) @ w + b
    z = z - z.max(axis=1, keepdims=True)
    chances = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -chances[np.arange(len(x)), np.arange(len(x)) % 4].mean()


class Case(NamedTuple):
    """A function, the shapes of its arguments, and the sizes that it has no result for."""

    function: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]
    refused: tuple[int, ...] = ()
    dtype: Any = float


ROW: Any = (("n",),)
ROWS: Any = (("n", 3),)
CASES: dict[str, Case] = {
    "elementwise": Case(lambda x: (np.sin(x) * 2 + 1, x / (1 + x**2), -x), ROWS),
    "single precision": Case(lambda x: (np.exp(x) * x.shape[0], np.sum(x) / 3), ROW, dtype="f4"),
    "integers": Case(lambda x: (x // 3, np.cumsum(x), x & 6), ROW, dtype=int),
    "complex": Case(lambda x: (x * np.conj(x), np.abs(x)), ROW, dtype=complex),
    "two arguments": Case(lambda x, y: (x + y, x * y[::-1]), (("n",), ("n",))),
    "broadcast": Case(lambda x, y: x[:, None] * y, (("n",), (4,))),
    "outer product": Case(np.outer, (("n",), ("n",))),
    "long sum": Case(lambda x: np.sum(x**2), ROW),
    "sums": Case(lambda x: (np.sum(x, 0), np.sum(x, 1), np.prod(x, 0), np.any(x > 1)), ROWS),
    "moments": Case(lambda x: (np.mean(x), np.var(x, axis=0), np.std(x)), ROWS),
    "extrema": Case(lambda x: (np.max(x, axis=0), np.argmax(x, axis=0), np.min(x)), ROWS, (0,)),
    "softmax": Case(softmax, ROWS),
    "softmax along the axis": Case(softmax, ((4, "n"),), (0,)),
    "transposed": Case(lambda x: (x.T.copy(), x.reshape(-1), x[::-1]), ROWS),
    "reshaped": Case(lambda x: x.reshape(-1, 2).sum(axis=1), (("n", 4),)),
    "joined": Case(lambda x: (np.concatenate([x, 2 * x]), np.pad(x, 1), np.tile(x, 2), np.repeat(x, 2)), ROW),
    "rolled": Case(lambda x: np.roll(x, 1), ROW),
    "differences": Case(np.diff, ROW, (0,)),
    "written": Case(shifted, ROW, (0,)),
    "elements": Case(lambda x: x[0] + x[-1] * x[x.shape[0] - 1], ROW, (0,)),
    "counted": Case(lambda x: x * np.arange(x.shape[0]) + x.shape[0] * (3 - x.shape[0]), ROW),
    "a reciprocal": Case(lambda x: x * (1 / x.shape[0]) + np.sqrt(x.shape[0]), ROW, (0,)),
    "a logarithm": Case(lambda x: x * np.log(len(x)), ROW),
    "a line": Case(lambda x: x * np.linspace(0.0, 1.0, x.shape[0]), ROW),
    "products": Case(lambda x, w: (x @ w, np.einsum("ij,ij->i", x, x)), (("n", 3), (3, 2))),
    "a long contraction": Case(lambda x, y: x @ y, ((3, "n"), ("n", 2))),
    "norms": Case(lambda x: np.linalg.norm(x, axis=1), ROWS),
    "where": Case(lambda x: np.where(x > 0, x, 0.1 * x), ROW),
    "captured array": Case(lambda x: x * np.array([1.0, 2.0, 3.0]), ROWS),
    "scan": Case(recurrence, ROW),
    "fori_loop": Case(counted, ROW, (0,)),
    "gradient of rosenbrock": Case(fnad.value_and_grad(rosenbrock), ROW),
    "gradient of a layer": Case(fnad.value_and_grad(layer, argnums=(0, 1)), ((3, 2), ("n", 3))),
    "gradient of cross-entropy": Case(fnad.value_and_grad(lambda x: -np.sum(np.log(softmax(x))[:, 0])), ROWS),
    "gradient of a maximum": Case(fnad.grad(np.max), ROW, (0,)),
    "gradient of a running sum": Case(fnad.grad(lambda x: np.sum(np.cumsum(x) ** 2)), ROW),
    "gradient of a scan": Case(fnad.grad(lambda x: np.sum(recurrence(x)[1])), ROW),
    "gradient of fori_loop": Case(fnad.value_and_grad(counted), ROW, (0,)),
    "jvp": Case(lambda x, t: fnad.jvp(rosenbrock, (x,), (t,)), (("n",), ("n",))),
    "vmap of a gradient": Case(fnad.vmap(fnad.value_and_grad(lambda r: np.sum(np.exp(np.sin(r))))), ROWS),
    "vmap of a jacobian": Case(fnad.vmap(fnad.jacobian(lambda r: np.sin(r) * r[0])), ROWS),
}


def as_operands(x: Any) -> Any:
    n = len(x)
    chosen = fnad.cond(np.sum(x) > 0, lambda m: m * 2.0, lambda m: m + 0.5, n)
    steps, _ = fnad.scan(lambda count, row: (count + 1, row), n, x)
    halved = fnad.while_loop(lambda m: m > 1, lambda m: m // 2, n)
    return (
        chosen,
        steps,
        halved,
        fnad.checkpoint(lambda x, m: np.sum(x) * m)(x, n),
        fnad.vmap(np.multiply, (0, None))(x, n),
    )


TABLE: Any = (("n", "m"),)
LINEAR: Any = (("m",), ("n", "m"), ("n",))
CASES |= {
    "lengths": Case(halves, ROW),
    "lengths as operands": Case(as_operands, ROW),
    "differences in space": Case(heat, ROW),
    "identity": Case(lambda x: (x + np.eye(len(x)), np.tril(x), np.triu(x, 1), np.trace(x)), (("n", "n"),)),
    "covariance": Case(lambda x: np.cov(x, rowvar=False) * np.prod(x.shape), ROWS),
    "log likelihood": Case(
        fnad.hessian(lambda p, x: len(x) * np.log(p[1]) + np.sum((x - p[0]) ** 2) / p[1] ** 2), ((2,), ("n",))
    ),
    "regression": Case(fnad.value_and_grad(squares), ((3,), ("n", 3), ("n",))),
    "gradient of classes": Case(fnad.value_and_grad(classes, argnums=(0, 1)), ((3, 4), (4,), ("n", 3))),
    "hessian": Case(fnad.hessian(rosenbrock), ROW),
    "jacobian": Case(fnad.jacobian(lambda x: np.sin(x) * x[::-1]), ROW),
    "matrix by vector": Case(np.matmul, (("n", "m"), ("m",))),
    "a product of three sizes": Case(np.matmul, (("n", "m"), ("m", "k"))),
    "of two axes": Case(lambda x: (x.T * x.shape[1], x.sum(0), x.sum(1), x.reshape(-1), np.sum(x) * x.size), TABLE),
    "of two vectors": Case(lambda x, y: (np.outer(x, y), np.concatenate([y, x]), x[:, None] - y), (("n",), ("m",))),
    "standard scores": Case(lambda x: (x - x.mean(axis=0)) / (1 + x.std(axis=0)), TABLE),
    "gradient in two sizes": Case(fnad.value_and_grad(squares), LINEAR),
    "hessian in two sizes": Case(fnad.hessian(logistic), LINEAR),
}
GCC = shutil.which("gcc")
FLAGS = ["-std=c99", "-O0", "-fwrapv", "-fopenmp-simd", "-Wall", "-Werror", "-Wno-unused"]


@cache
def exported(name: str) -> Any:
    case = CASES[name]
    return fnad.export(case.function, *[S(shape, case.dtype) for shape in case.shapes])


def arguments(case: Case, n: int) -> list[np.ndarray]:
    random, sizes = np.random.default_rng(n), {"n": n, "m": OTHERS[n], "k": 2}
    drawn = [3 * random.normal(size=[sizes.get(size, size) for size in shape]) for shape in case.shapes]
    return [x.astype(case.dtype) for x in drawn]


def sizes_of(case: Case, n: int) -> list[int]:
    names = dict.fromkeys(size for shape in case.shapes for size in shape if isinstance(size, str))
    return [{"n": n, "m": OTHERS[n], "k": 2}[name] for name in names]


def expected_of(case: Case, n: int) -> list[np.ndarray]:
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [np.asarray(leaf) for leaf in leaves(case.function(*arguments(case, n)))]


def check(found: list[Any], expected: list[np.ndarray], case: Case, n: int) -> None:
    tolerance = 3e-6 if case.dtype == "f4" else 1e-12
    for x, y in zip(found, expected, strict=True):
        array = np.asarray(x)
        assert (array.shape, array.dtype) == (y.shape, y.dtype)
        assert_allclose(array, y, rtol=tolerance, atol=tolerance, err_msg=f"n = {n}")


def check_by_address(call: Callable[..., int], case: Case) -> None:
    for n in SIZES:
        given = arguments(case, n)
        if n in case.refused:
            made = [np.empty(99) for _ in range(9)]
            sizes = sizes_of(case, n)
            places = [x.ctypes.data for x in (*given, *made)][: len(call.argtypes) - len(sizes)]  # type: ignore[attr-defined]
            assert call(*sizes, *places) == -2
            continue
        expected = expected_of(case, n)
        made = [np.empty(x.shape, x.dtype) for x in expected]
        assert call(*sizes_of(case, n), *[x.ctypes.data for x in (*given, *made)]) == 0
        check(made, expected, case, n)


NATIVE = set(some_of([*CASES], "native", 12)) if GCC else {*CASES}
"""The cases that fnad compiles; gcc compiles the others."""


@pytest.mark.parametrize("name", [name for name in CASES if name in NATIVE])
def test_native_exports_of_any_size_compute_as_the_function(name: str) -> None:
    check_by_address(exported(name).cfunc().call, CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_the_same_from_a_file(name: str, tmp_path: Path) -> None:
    found = exported(name)
    fnad.save(tmp_path / "file", found)
    loaded = fnad.load(tmp_path / "file")
    assert str(loaded.program) == str(found.program)
    assert [way[2:3] + way[4:] for way in loaded.sizes.ways] == [way[2:3] + way[4:] for way in found.sizes.ways]
    if name in ("moments", "a reciprocal"):
        check_by_address(loaded.cfunc().call, CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_the_python_module_and_calls(name: str) -> None:
    case, found = CASES[name], exported(name)
    namespace: dict[str, Any] = {}
    text = found.python_source().replace("from numba import njit", "njit = lambda f=None, **_: f or (lambda f: f)")
    exec(text, namespace)
    for n in (0, 1, 2, 5, 17):
        given = arguments(case, n)
        if n in case.refused:
            with pytest.raises(ValueError, match=r"has no program for this|negative dimensions"):
                namespace[found.name](*given)
            with pytest.raises(ArgumentTypeError, match="has no program for this"):
                found(*given)
            continue
        expected = expected_of(case, n)
        with np.errstate(all="ignore"):
            result = namespace[found.name](*given)
        check(list(result) if len(expected) > 1 else [result], expected, case, n)
        with override(executor="interpreter"):
            check(leaves(found(*given)), expected, case, n)


@pytest.mark.slow
@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_c_exports_of_any_size_compute_as_the_function(tmp_path: Path) -> None:
    sources: list[str] = []
    cases = {name: case for name, case in CASES.items() if name not in NATIVE}
    for n, name in enumerate(cases):
        found = exported(name)
        text = found.c_source().replace(f"{found.name}(", f"program{n}(").replace(f"{found.name}_", f"program{n}_")
        (tmp_path / f"program{n}.c").write_text(text)
        sources.append(str(tmp_path / f"program{n}.c"))
    library = tmp_path / "programs.so"
    subprocess.run([str(GCC), *FLAGS, "-shared", "-fPIC", *sources, "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    for n, (name, case) in enumerate(cases.items()):
        function = loaded[f"program{n}"]
        count = len(exported(name).in_avals) + len(exported(name).program.outputs)
        sizes = [ctypes.c_int64] * len(sizes_of(case, 1))
        function.restype, function.argtypes = ctypes.c_int64, [*sizes, *[ctypes.c_void_p] * count]
        check_by_address(function, case)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["extrema", *some_of(["gradient of rosenbrock", "moments", "products"], "Numba")])
def test_numba_exports_of_any_size_compute_as_the_function(name: str) -> None:
    case, function = CASES[name], exported(name).njit()
    for n in SIZES:
        if n in case.refused:
            with pytest.raises(ValueError, match="has no program for this n: it is for 2 and more, 1"):
                function(*arguments(case, n))
        else:
            check(leaves(function(*arguments(case, n))), expected_of(case, n), case, n)


@pytest.mark.slow
def test_shapes_that_do_not_fit_are_errors_in_numba() -> None:
    two, rows = exported("two arguments").njit(), exported("elementwise").njit()
    with pytest.raises(ValueError, match=r"y does not have the shape \(n,\)"):
        two(np.ones(5), np.ones(4))
    with pytest.raises(ValueError, match=r"x does not have the shape \(n, 3\)"):
        rows(np.ones((5, 4)))
    into = exported("where").njit_into()
    with pytest.raises(ValueError, match="out does not have the shape"):
        into(np.ones(5), np.ones(4))


def test_a_file_can_be_differentiated_for_a_size(tmp_path: Path) -> None:
    fnad.save(tmp_path / "file", fnad.export(rosenbrock, S(("n",), float)))
    x = np.array([0.5, -1.0, 2.0])
    assert_array_equal(fnad.grad(fnad.load(tmp_path / "file"))(x), fnad.grad(rosenbrock)(x))


def loops(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a loop over the axis": (
        lambda: fnad.export(lambda x: sum([a * a for a in x]), S(("n",), float)),
        "size n is used as a number(.|\n)*lambda(.|\n)*by fnad.scan",
    ),
    "a Python loop": (lambda: fnad.export(loops, S(("n",), float)), "size n is used as a number.*\n.*in loops"),
    "half": (lambda: fnad.export(lambda x: x[::2], S(("n",), float)), r"remainder of the size n\+1.*\n.*x\[::2\]"),
    "a part of a part": (
        lambda: fnad.export(lambda x: np.pad(x, 2, "edge"), S(("n",), float)),
        "size n is used as a number.*\n.*np.pad",
    ),
    "linear algebra": (
        lambda: fnad.export(np.linalg.inv, S(("n", "n"), float)).c_source(),
        "no code without Python: inv at",
    ),
    "BLAS": (lambda: exported("products").c_source(blas=True), "blas=True for given ones"),
    "one size": (lambda: fnad.export(lambda x: x * (x.shape[0] == EXAMPLE), S(("n",), float)), "for one size alone"),
    "a narrow integer": (lambda: fnad.export(lambda x: x * x.shape[0], S(("n",), "i1")), "size n is used as a number"),
    "two sizes": (
        lambda: fnad.export(lambda x, y: x if len(x) < len(y) else -x, S(("n",), float), S(("m",), float)),
        "sizes n and m are compared, which has not one result",
    ),
    "equal sizes": (
        lambda: fnad.export(lambda x: x if x.shape == x.shape[::-1] else -x, S(("n", "m"), float)),
        "sizes n and m are compared(.|\n)*the same name",
    ),
    "many sizes": (lambda: fnad.export(np.sum, S(tuple("abcdefghi"), float)), "9 sizes are open"),
    "no axis of the size": (lambda: fnad.export(np.sum, S((2, 3), float), where=S(("x y",), bool)), "cannot name"),
    "the name of an argument": (lambda: fnad.export(lambda n: n, S(("n",), float)), "is an argument of"),
    "a word of C": (lambda: fnad.export(np.sum, S(("for",), float)), "'for' cannot name a size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_for_all_sizes_is_an_error(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ExportError, match=words):
        call()


def test_a_small_size_that_calls_python_is_not_saved(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return fnad.callback(np.sin, x, result=x) if x.shape[0] < 4 else np.sin(x)

    with pytest.raises(ExportError, match="calls functions of this process"):
        fnad.save(tmp_path / "file", fnad.export(f, S(("n",), float)))


def test_other_functions_take_no_names_of_sizes() -> None:
    with pytest.raises(ArgumentTypeError, match="has a size without a number"):
        fnad.eval_shape(np.sin, S(("n",), float))


def test_results_of_a_small_size_have_the_types_of_the_others() -> None:
    """A size whose results have other shapes has no program."""
    exported = fnad.export(lambda x: np.squeeze(x) * 2, S(("n", 3), float))
    found, x, made = exported.cfunc(), np.ones((1, 3)), np.zeros((1, 3))
    with pytest.raises(ArgumentTypeError, match="has no program for this n: it is for 2 and more, 0"):
        exported(x)
    assert found.call(1, x.ctypes.data, made.ctypes.data) == -2
    assert found.call(-1, x.ctypes.data, made.ctypes.data) == -2


def test_faults_of_all_variants_have_numbers_of_their_own() -> None:
    found = fnad.export(lambda x, i: x[i], S(("n",), float), 3)
    made = np.empty(())
    for n in (1, 5):
        x = np.arange(float(n))
        status = found.cfunc().call(n, x.ctypes.data, np.array(9).ctypes.data, made.ctypes.data)
        assert "an index is out of range" in found.c_header().split(f"{status}: ")[1].split("\n")[0]


@pytest.mark.parametrize("seed", range(4))
def test_decisions_of_sizes_are_those_of_numbers(seed: int) -> None:
    """Within the intervals of a scope, comparisons, quotients and slices are those of the numbers."""
    random = np.random.default_rng(seed)
    decided = 0
    for _ in range(150):
        scope = SizeScope(("n", "m"))
        n, m = scope.sizes["n"], scope.sizes["m"]
        a, b, c, d, e = map(int, random.integers(-6, 7, size=5))
        m = m if seed % 2 else n
        left, right = a * n * m + b * n, c * m + d + e * n
        part = slice(int(random.integers(-4, 5)), n + int(random.integers(-4, 5)))
        made: dict[str, Any] = {}
        for name, decide in DECISIONS.items():
            with suppress(ExportError):
                made[name] = decide(left, right, part, n, m)
        if scope.is_for_one:  # a comparison without a result
            continue
        decided += len(made)
        points = [(max(low, 0) + int(random.integers(0, 20)) for low, _ in scope.intervals.values()) for _ in range(5)]
        for point in [{"n": low, "m": low2} for (low, _), (low2, _) in [tuple(scope.intervals.values())]] + [
            dict(zip(("n", "m"), point, strict=True)) for point in points
        ]:
            if not all(low <= point[name] <= high for name, (low, high) in scope.intervals.items()):
                continue
            x, y, own, other = (at_sizes(size, point) for size in (left, right, n, m))
            for name, found in made.items():
                given = slice(part.start, at_sizes(part.stop, point))
                numbers = tuple(at_sizes(size, point) for size in found) if isinstance(found, tuple) else found
                assert numbers == DECISIONS[name](x, y, given, own, other), (name, left, right, point)
    assert decided > 25


def test_a_remainder_that_is_negative_in_the_narrowed_intervals_is_refused() -> None:
    """The comparison with the divisor is for n > 100, where the remainder has a sign."""
    n, m = SizeScope(("n", "m")).sizes.values()
    remainder = 50 * m - n * m - 1
    with pytest.raises(ExportError, match="is not a polynomial"):
        divmod(remainder, n * n - 10_000 + remainder)


DECISIONS: dict[str, Callable[..., Any]] = {
    "less": lambda x, y, part, n, m: (x < y, x <= y, x == y, x != y, x > 2.5),
    "quotient": lambda x, y, part, n, m: divmod(y + 7, m),
    "product": lambda x, y, part, n, m: divmod(x + 3, n),
    "slice": lambda x, y, part, n, m: slice_bounds(part, n)[:2],
    "sum": lambda x, y, part, n, m: (x + y, x - 2 * y, n * m * 3 - 1, (n - m) ** 2),
}
