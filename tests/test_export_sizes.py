"""Programs for all sizes of an axis: each form against a call of the function, for sizes 0, 1 and later ones."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
import fnad.api.functions.save_load
from fnad.errors import ArgumentTypeError, ExportError
from fnad.ir.size import EXAMPLE, Scope, at_size
from fnad.tree import leaves

S = fnad.ShapeDtypeStruct
SIZES = (0, 1, 2, 3, 5, 17, 300)


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
GCC = shutil.which("gcc")
FLAGS = ["-std=c99", "-O1", "-fwrapv", "-fopenmp-simd", "-Wall", "-Werror", "-Wno-unused"]


@cache
def exported(name: str) -> Any:
    case = CASES[name]
    return fnad.export(case.function, *[S(shape, case.dtype) for shape in case.shapes])


def arguments(case: Case, n: int) -> list[np.ndarray]:
    random = np.random.default_rng(n)
    drawn = [3 * random.normal(size=[n if size == "n" else size for size in shape]) for shape in case.shapes]
    return [x.astype(case.dtype) for x in drawn]


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
            assert call(n, *[x.ctypes.data for x in (*given, *made)][: len(call.argtypes) - 1]) == -2  # type: ignore[attr-defined]
            continue
        expected = expected_of(case, n)
        made = [np.empty_like(x) for x in expected]
        assert call(n, *[x.ctypes.data for x in (*given, *made)]) == 0
        check(made, expected, case, n)


@pytest.mark.parametrize("name", CASES)
def test_native_code(name: str) -> None:
    check_by_address(exported(name).cfunc().call, CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_the_same_from_a_file(name: str, tmp_path: Path) -> None:
    found = exported(name)
    fnad.save(tmp_path / "file", found)
    loaded = fnad.load(tmp_path / "file")
    assert str(loaded.program) == str(found.program)
    assert list(loaded.sizes.small) == list(found.sizes.small)
    assert loaded.sizes[1:3] == found.sizes[1:3]
    if name in ("moments", "gradient of rosenbrock", "a reciprocal"):
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
            with pytest.raises(ValueError, match=r"has no program for this n|negative dimensions"):
                namespace[found.name](*given)
            with pytest.raises(ArgumentTypeError, match="other types"):
                found(*given)
            continue
        expected = expected_of(case, n)
        with np.errstate(all="ignore"):
            result = namespace[found.name](*given)
        check(list(result) if len(expected) > 1 else [result], expected, case, n)
        check(leaves(found(*given)), expected, case, n)


@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_c_sources(tmp_path: Path) -> None:
    sources: list[str] = []
    for n, name in enumerate(CASES):
        found = exported(name)
        text = found.c_source().replace(f"{found.name}(", f"program{n}(").replace(f"{found.name}_", f"program{n}_")
        (tmp_path / f"program{n}.c").write_text(text)
        sources.append(str(tmp_path / f"program{n}.c"))
    library = tmp_path / "programs.so"
    subprocess.run([str(GCC), *FLAGS, "-shared", "-fPIC", *sources, "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    for n, (name, case) in enumerate(CASES.items()):
        function = loaded[f"program{n}"]
        count = len(exported(name).in_avals) + len(exported(name).program.outputs)
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64, *[ctypes.c_void_p] * count]
        check_by_address(function, case)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gradient of rosenbrock", "moments", "extrema", "products"])
def test_numba(name: str) -> None:
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
    "len": (lambda: fnad.export(lambda x: x[len(x) - 1], S(("n",), float)), "size n is used as a number.*\n.*lambda"),
    "a Python loop": (lambda: fnad.export(loops, S(("n",), float)), "size n is used as a number.*\n.*in loops"),
    "half": (lambda: fnad.export(lambda x: x[::2], S(("n",), float)), r"remainder of the size n\+1.*\n.*x\[::2\]"),
    "an identity": (
        lambda: fnad.export(lambda x: x + np.eye(x.shape[0]), S(("n", "n"), float)),
        "size n is used as a number.*\n.*np.eye",
    ),
    "linear algebra": (
        lambda: fnad.export(np.linalg.inv, S(("n", "n"), float)).c_source(),
        "no code without Python: inv at",
    ),
    "BLAS": (lambda: exported("products").c_source(blas=True), "blas=True for given ones"),
    "one size": (lambda: fnad.export(lambda x: x * (x.shape[0] == EXAMPLE), S(("n",), float)), "for one size alone"),
    "a narrow integer": (lambda: fnad.export(lambda x: x * x.shape[0], S(("n",), "i1")), "size n is used as a number"),
    "two names": (lambda: fnad.export(np.dot, S(("n", "m"), float), S(("m",), float)), "sizes n, m are open"),
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
    found = fnad.export(lambda x: np.squeeze(x) * 2, S(("n", 3), float)).cfunc()
    x, made = np.ones((1, 3)), np.zeros((1, 3))
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
    """Within the interval of a scope, comparisons, quotients and slices are those of the numbers."""
    random = np.random.default_rng(seed)
    for _ in range(100):
        scope = Scope("n")
        n = scope.size
        a, b, c, d = map(int, random.integers(-6, 7, size=4))
        left, right = a * n * n + b * n, c * n + d
        decided = (left < right, left <= right, left == right, left != right)
        part = slice(int(random.integers(-4, 5)), n + int(random.integers(-4, 5)))
        start, stop, _ = fnad.ir.size.slice_bounds(part, n)
        try:
            quotient = divmod(right + 7, n)
        except ExportError:
            quotient = None
        for number in {scope.low, scope.low + 1, scope.low + 17, min(scope.high, 10**6)}:
            x, y = at_size(left, number), at_size(right, number)
            if scope.low <= number <= scope.high:
                assert decided == (x < y, x <= y, x == y, x != y)
                given = slice(part.start, at_size(part.stop, number)).indices(number)[:2]
                assert (at_size(start, number), at_size(stop, number)) == given
                if quotient is not None:
                    assert tuple(at_size(q, number) for q in quotient) == divmod(y + 7, number)
