"""Programs that leave the process: native code by address, object files, C, Python and Numba, against `jit`."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, ndimage

import fnad
import fnad.api.functions.save_load
from fnad.cli import main
from fnad.config import override
from fnad.errors import ExportError
from fnad.tree import leaves
from tests.together import drawn, in_groups, some_of

RNG = np.random.default_rng(1)
X, Y, M = RNG.normal(size=5), RNG.uniform(0.5, 2.0, 5), RNG.normal(size=(4, 3))
Z = X + 1j * Y
I = np.array([3, -7, 0, 100, -128])  # noqa: E741
V = RNG.normal(size=3)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def loss(w: Any, x: Any) -> Any:
    return np.sum(np.tanh(w @ x) ** 2)


def softmax_loss(w: Any, x: Any) -> Any:
    z = w @ x
    return np.log(np.sum(np.exp(z - np.max(z)))) - z[0]


def cross_entropy(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return -np.sum(np.log(e / np.sum(e, axis=-1, keepdims=True))[:, 0])


def newton(a: Any) -> Any:
    return fnad.while_loop(lambda c: abs(c[0] * c[0] - a) > 1e-12, lambda c: ((c[0] + a / c[0]) / 2, c[1] + 1), (a, 0))


def pendulum(x: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        q, p = state
        p = p - 0.1 * np.sin(q)
        return (q + 0.1 * p, p), q

    return fnad.scan(step, (x[0], x[1]), length=20)[1]


def branches(x: Any) -> Any:
    return fnad.cond(x[0] > 0, lambda x: np.sin(x), lambda x: x**3, x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x, y: (x + y, x - y, x * y, x / y, -x, x**3), (X, Y)),
    "exponentials": (lambda x: (np.exp(x), np.exp2(x), np.expm1(x), np.sinh(x), np.cosh(x), np.tanh(x)), (X,)),
    "logarithms": (lambda y: (np.log(y), np.log2(y), np.log10(y), np.log1p(y), np.sqrt(y), np.cbrt(y)), (Y,)),
    "trigonometry": (lambda x: (np.sin(x), np.cos(x), np.tan(x), np.arctan(x), np.arcsin(np.tanh(x))), (X,)),
    "two operands": (lambda x, y: (np.arctan2(x, y), np.hypot(x, y), y**x, np.copysign(y, x)), (X, Y)),
    "rounding": (lambda x: (np.floor(x), np.ceil(x), np.trunc(x), np.rint(x), np.sign(x), np.abs(x)), (3 * X,)),
    "division of floats": (lambda x, y: (x // y, x % y, np.fmod(x, y)), (5 * X, Y)),
    "division of integers": (lambda i: (i // 3, i % 3, i // -4, i % -4, np.fmod(i, 3)), (I,)),
    "bits": (lambda i: (i & 6, i | 6, i ^ 6, ~i, i << 2, i >> 2), (I,)),
    "narrow integers": (lambda i: (i + i, i * i, -i, abs(i)), (I.astype("i1"),)),
    "unsigned integers": (lambda i: (i // 3, i % 3, i + 200, i * i), (np.array([0, 7, 255], "u1"),)),
    "comparisons": (lambda x, y: (x < y, x >= y, x == y, np.isnan(x), np.signbit(x)), (X, np.abs(X))),
    "choice": (lambda x, y: (np.where(x > 0, x, y), np.minimum(x, y), np.maximum(x, y), np.fmax(x, y)), (X, Y)),
    "casts": (lambda x: (x.astype("f4"), x.astype("i4"), x.astype(bool), x.astype(complex)), (3 * X,)),
    "complex": (lambda z: (z * z, z / (z + 1), np.conj(z), z.real, z.imag, np.exp(z), np.sqrt(z), np.abs(z)), (Z,)),
    "single precision": (lambda x: (np.exp(x), np.sum(x), np.tanh(x) * 2, x / 3), (X.astype("f4"),)),
    "single complex": (lambda z: (z * z, np.abs(z), z.real), (Z.astype("c8"),)),
    "bools": (lambda b: (~b, b & b, np.any(b), np.sum(b)), (X > 0,)),
    "sums": (lambda m: (np.sum(m), np.sum(m, 0), np.mean(m, 1), np.prod(m), np.var(m)), (M,)),
    "long sum": (lambda x: np.sum(x), (RNG.normal(size=1000),)),
    "extrema": (lambda m: (np.max(m), np.min(m, 0), np.argmax(m, 1), np.cumsum(m, 1)), (M,)),
    "shapes": (lambda m: (m.T, m.reshape(2, 6), m[::-1, 1:], np.concatenate([m, m]), np.pad(m, 1)), (M,)),
    "indexing": (lambda m, i: (m[i], m[i, 0], m[::2]), (M, np.array([2, 0, -1]))),
    "products": (lambda m, v: (m @ v, m.T @ m, np.outer(v, v), v @ v), (M, V)),
    "sorting by where": (lambda x: np.where(np.isfinite(x), x, 0.0), (np.array([1.0, np.nan, -np.inf, np.inf]),)),
    "captured array": (lambda x: x * np.array([1.0, -0.0, 3.0, np.inf, 1e-300]), (X,)),
    "number": (lambda x: x * 2.0, (0.5,)),
    "pytrees": (lambda p: {"a": p["w"] * 2, "b": (p["v"], p["w"].sum())}, ({"w": M, "v": 2.0},)),
    "no elements": (lambda x: (x * 2, np.sum(x)), (np.zeros(0),)),
    "one element": (lambda x: (x * 2, np.sum(x)), (np.ones(1),)),
    "scan": (pendulum, (np.array([0.3, 0.1]),)),
    "while": (newton, (2.0,)),
    "branches": (branches, (X,)),
    "gradient of rosenbrock": (fnad.value_and_grad(rosenbrock), (X,)),
    "hessian of rosenbrock": (fnad.hessian(rosenbrock), (X,)),
    "gradient of a layer": (fnad.value_and_grad(loss), (M, V)),
    "gradient of cross-entropy": (fnad.grad(softmax_loss), (M, V)),
    "jacobian of a layer": (fnad.jacobian(lambda x: np.tanh(M @ x)), (V,)),
    "jvp of a while loop": (lambda a: fnad.jvp(lambda a: newton(a)[0], (a,), (1.0,)), (2.0,)),
    "gradient of a scan": (fnad.grad(lambda x: np.sum(pendulum(x) ** 2)), (np.array([0.3, 0.1]),)),
    "gradient of a running sum of one": (fnad.grad(lambda x: np.sum(np.cumsum(x) ** 2)), (np.ones(1),)),
    "gradient of probabilities": (fnad.value_and_grad(cross_entropy), (M,)),
    "gradient of branches": (fnad.grad(lambda x: np.sum(branches(x))), (X,)),
    "vmap": (fnad.vmap(lambda x: np.sum(np.sin(x))), (M,)),
    "third derivative": (fnad.vmap(fnad.grad(fnad.grad(fnad.grad(lambda x: np.exp(np.sin(x)))))), (X,)),
}

GCC = shutil.which("gcc")
FLAGS = ["-std=c99", "-O1", "-fwrapv", "-fopenmp-simd", "-Wall", "-Werror", "-Wno-unused"]


@cache
def results(name: str) -> list[np.ndarray]:
    """The results of a program under `jit`, as arrays; compiled code is what is compared with them."""
    f, args = PROGRAMS[name]
    with override(executor="interpreter"):
        return [np.asarray(leaf) for leaf in leaves(fnad.jit(f)(*args))]


def exported(name: str) -> tuple[fnad.api.functions.export.Exported, list[np.ndarray], list[np.ndarray]]:
    """A program, its arguments and its results, as arrays."""
    f, args = PROGRAMS[name]
    expected = results(name)
    found = fnad.export(f, *args)
    given = [np.ascontiguousarray(leaf, aval.dtype) for leaf, aval in zip(leaves(args), found.in_avals, strict=True)]
    return found, given, expected


def called(function: Any, given: list[np.ndarray], expected: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a C function."""
    made = [np.empty_like(array) for array in expected]
    assert function(*[array.ctypes.data for array in (*given, *made)]) == 0
    return made


def check(found: list[Any], expected: list[np.ndarray], name: str) -> None:
    for x, y in zip(found, expected, strict=True):
        tolerance = 3e-6 if y.dtype in (np.float32, np.complex64) else 1e-13
        assert_allclose(np.asarray(x), y, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", some_of([*PROGRAMS], "native", 15) if GCC else PROGRAMS)
def test_native_code_by_address(name: str) -> None:
    found, given, expected = exported(name)
    check(called(found.cfunc().call, given, expected), expected, name)


@in_groups("name", PROGRAMS)
def test_the_python_module_as_plain_python(name: str) -> None:
    found, given, expected = exported(name)
    namespace = as_plain_python(found)
    with np.errstate(all="ignore"):
        result = namespace[found.name](*[array[()] for array in given])
    check(list(result) if len(expected) > 1 else [result], expected, name)


@pytest.mark.slow
@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_exported_c_sources_compute_as_the_function(tmp_path: Path) -> None:
    made = [(name, *exported(name)) for name in PROGRAMS]
    for n, (_, found, _, _) in enumerate(made):
        found.name = f"program{n}"
        found.c(tmp_path / f"program{n}.c")
        text = (tmp_path / f"program{n}.c").read_text()
        (tmp_path / f"program{n}.c").write_text(f'#include "program{n}.h"\n{text}')
    library = tmp_path / "programs.so"
    sources = [str(tmp_path / f"program{n}.c") for n in range(len(made))]
    subprocess.run([str(GCC), *FLAGS, "-shared", "-fPIC", *sources, "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    for n, (name, _, given, expected) in enumerate(made):
        function = loaded[f"program{n}"]
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p] * (len(given) + len(expected))
        check(called(function, given, expected), expected, name)


@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_compiled_as_the_guide_says_c_rounds_each_product(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "export.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^gcc (.*) -c ", page, re.MULTILINE)
    x = np.random.default_rng(0).standard_normal((3, 1000))
    found = fnad.export(lambda x, y, z: x * y - z, *x)
    found.name = "f"
    found.c(tmp_path / "f.c")
    subprocess.run([str(GCC), *command.split(), "-shared", "-fPIC", "f.c", "-o", "f.so"], check=True, cwd=tmp_path)
    function = ctypes.CDLL(str(tmp_path / "f.so")).f
    function.argtypes = [ctypes.c_void_p] * 4
    np.testing.assert_array_equal(called(function, [*x], [x[0]]), [x[0] * x[1] - x[2]])


@pytest.mark.parametrize(("shape", "axis", "marks"), [((9, 40), 1, 1), ((40, 9), 0, 0), ((9, 16), 1, 0)])
def test_c_marks_long_sums_of_neighbours_for_vectors(shape: tuple[int, int], axis: int, marks: int) -> None:
    f = fnad.export(lambda x, y: np.moveaxis(x, axis, 1) @ y, np.ones(shape), np.ones(shape[axis]))
    assert f.c_source().count("omp simd reduction") == marks


@pytest.mark.skipif(GCC is None, reason="there is no gcc")
def test_object_files_in_a_c_program(tmp_path: Path) -> None:
    fnad.export(fnad.value_and_grad(rosenbrock), np.ones(3)).object(tmp_path / "rosenbrock.o")
    (tmp_path / "main.c").write_text(
        textwrap.dedent("""\
            #include <stdio.h>
            #include "rosenbrock.h"
            int main(void) {
                double x[3] = {0.5, -1.0, 2.0}, value, gradient[3];
                if (rosenbrock_value_and_grad(x, &value, gradient)) return 1;
                printf("%.17g %.17g %.17g %.17g", value, gradient[0], gradient[1], gradient[2]);
                return 0;
            }
        """)
    )
    command = [str(GCC), "-std=c99", "main.c", "rosenbrock.o", "-o", "main", "-lmvec", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout
    value, gradient = fnad.value_and_grad(rosenbrock)(np.array([0.5, -1.0, 2.0]))
    assert_allclose(np.array(printed.split(), float), [value, *gradient], rtol=1e-14)


# ---- Numba -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_code_of_numba_calls_a_derivative() -> None:
    gradient = fnad.export(fnad.value_and_grad(rosenbrock), X).njit()
    pair = fnad.export(lambda p, q: (p[0] * q, {}, p[1])[::2], (X, 2.0), 3.0).njit()

    @numba.njit
    def descend(x: Any, steps: int) -> Any:
        value = 0.0
        for _ in range(steps):
            value, slope = gradient(x)
            x = x - 1e-4 * slope
        return value, x

    @numba.njit(parallel=True)
    def values(xs: Any) -> Any:
        found = np.empty(len(xs))
        for i in numba.prange(len(xs)):
            found[i] = gradient(xs[i])[0]
        return found

    x, value = X, 0.0
    for _ in range(5):
        value, slope = fnad.value_and_grad(rosenbrock)(x)
        x = x - 1e-4 * slope
    found = descend(X, 5)
    assert_allclose(found[0], value, rtol=1e-13)
    assert_allclose(found[1], x, rtol=1e-13)
    rows = RNG.normal(size=(20, 5))
    assert_allclose(values(np.asfortranarray(rows)), [rosenbrock(row) for row in rows], rtol=1e-13)
    product, number = pair((X, 2.0), 3)
    assert_allclose(product, 3 * X)
    assert number == 2.0
    value, into = np.empty(()), np.empty(5)
    fnad.export(fnad.value_and_grad(rosenbrock), X).njit_into()(X, value, into)
    assert_allclose(value, rosenbrock(X))
    assert_allclose(into, fnad.grad(rosenbrock)(X))
    with pytest.raises(ValueError, match=r"does not have the shape \(5,\)"):
        descend(np.ones(4), 1)
    with pytest.raises(numba.TypingError, match=r"x of rosenbrock_value_and_grad is f64\[5\]"):
        gradient(np.ones(5, int))


@pytest.mark.slow
def test_the_module_for_numba_code_is_found_changed_by_cached_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(power: int, *options: str) -> str:
        (tmp_path / "source.py").write_text(f"def f(x): return (x ** {power}).sum()")
        call = ["export", f"{tmp_path}/source.py:f", "--args", "f64[n]", "--grad", "--njit"]
        assert main([*call, "-o", f"{tmp_path}/model.py", *options]) == 0
        assert capsys.readouterr().out.split()[-1].endswith(".json")
        (tmp_path / "client.py").write_text(USER)
        done = subprocess.run([sys.executable, "client.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run(2) == "5.0 7.0 0"
    assert run(3, "--force") == "13.0 28.0 1"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
@pytest.mark.parametrize("given", [[1.0, 2.0], (1.0, 2.0), 1.0, None, np.ones(2, "f4"), np.ones((2, 2))])
def test_numba_code_is_refused_what_is_not_an_array_of_the_exported_type(given: Any) -> None:
    function = fnad.export(rosenbrock, np.ones(2)).njit()
    with pytest.raises(numba.TypingError, match=r"x of rosenbrock is f64\[2\], not"):
        function(given)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = fnad.export(rosenbrock, np.ones(2))
    for write in (found.c, found.object, found.python, lambda file: fnad.save(file, found)):
        with pytest.raises(ExportError, match=r"no is not a folder(.|\n)*create it, or give another path"):
            write(tmp_path / "no" / "f")


USER = """\
import numba, numpy as np
from model import f_grad

@numba.njit(cache=True)
def user(x):
    return f_grad(x) + 1.0

print(*user(np.array([2.0, 3.0])), sum(user.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_an_error_of_the_program_is_a_number_in_c_and_an_exception_in_python_and_numba() -> None:
    found = fnad.export(lambda x, i: x[i], X, 3)
    assert "1: an index is out of range" in found.c_header()
    made = np.empty(())
    assert found.cfunc().call(X.ctypes.data, np.array(7).ctypes.data, made.ctypes.data) == 1
    namespace = as_plain_python(found)
    with pytest.raises(ValueError, match="an index is out of range"):
        namespace[found.name](X, 7)
    with pytest.raises(ValueError, match="ended in an error"):
        found.njit()(X, 7)


def test_scipys_integrators_call_it_without_python() -> None:
    by_a = fnad.export(fnad.grad(lambda x, a: np.exp(-a * x * x) * np.cos(x), argnums=1), 1.0, 0.5)
    found, _ = integrate.quad(by_a.low_level(), 0, 3, args=(0.7,))
    expected, _ = integrate.quad(lambda x: -x * x * np.exp(-0.7 * x * x) * np.cos(x), 0, 3)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [9, "n"])
def test_filters_of_images_call_it_without_python(size: Any) -> None:
    def f(window: Any) -> Any:
        return np.sum(window**2) - np.max(window)

    image = np.random.default_rng(0).normal(size=(9, 7))
    filter_ = fnad.export(f, fnad.ShapeDtypeStruct((size,), float)).low_level()
    assert_allclose(ndimage.generic_filter(image, filter_, 3), ndimage.generic_filter(image, f, 3), rtol=1e-14)
    if size == 9:
        with pytest.raises(RuntimeError, match="filter function"):
            ndimage.generic_filter(image, filter_, 5)


def reversed_and_summed(x: Any) -> Any:
    return x[::-1] * 2, np.cumsum(x)


def as_plain_python(found: Any) -> dict[str, Any]:
    """The names of the Python module of a program, which runs without Numba."""
    namespace: dict[str, Any] = {}
    exec(
        found.python_source().replace("from numba import njit", "njit = lambda f=None, **_: f or (lambda f: f)"),
        namespace,
    )
    return namespace


def as_numba(found: Any) -> dict[str, Any]:
    """The names of the Python module of a program, which Numba compiles."""
    namespace: dict[str, Any] = {}
    exec(found.python_source(), namespace)
    return namespace


INTO: dict[str, Callable[[Any], Any]] = {
    "njit_into": lambda found: found.njit_into(),
    "Python": lambda found: as_plain_python(found)[f"{found.name}_into"],
    "the module in Numba": lambda found: as_numba(found)[f"{found.name}_into"],
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["Python", *some_of([name for name in INTO if name != "Python"], "into")])
def test_results_are_written_into_memory_that_is_theirs(form: str) -> None:
    into = INTO[form](fnad.export(reversed_and_summed, np.arange(4.0)))
    memory, other = np.arange(8.0), np.empty(4)
    for x, out in ((memory[:4], memory[:4]), (memory[1:5], memory[:4]), (memory[::2], memory[4:])):
        expected = reversed_and_summed(x)
        into(x, out, other)
        assert_allclose((out, other), expected)
        memory[:] = range(8)
    fixed = np.empty(4)
    fixed.flags.writeable = False
    into(fixed, other, np.empty(4))
    for first, second in ((other, other), (memory[2:6], memory[:4]), (memory[::2], other), (fixed, other)):
        with pytest.raises((ValueError, numba.TypingError), match=r"share memory|contiguous|read-?only|mutate"):
            into(np.arange(4.0), first, second)


BY_CALL: dict[str, Callable[[Any], Any]] = {
    "njit": lambda found: found.njit(),
    "the module in Numba": lambda found: as_numba(found)[found.name],
}
LOSSY = [
    *((np.int64(3), 2.5, "njit"), (np.int8(3), 300, "njit")),
    *((np.uint8(1), -1, "the module in Numba"), (np.True_, 2, "the module in Numba")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("example", "value", "form"), drawn(LOSSY, itemgetter(2)))
def test_a_number_that_its_type_does_not_have_is_an_error(example: Any, value: Any, form: str) -> None:
    function = BY_CALL[form](fnad.export(lambda i: i + i, example))
    assert function(example) == example + example
    with pytest.raises(ValueError, match=r"i was exported as .*, which does not have this value"):
        function(value)


# ---- refusals --------------------------------------------------------------------------------------------------------


def decides(x: Any) -> Any:
    return x if x > 0 else -x


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a decision by values": (lambda: fnad.export(decides, 1.0), "decides by values: .*test_export.py"),
    "a callback": (
        lambda: fnad.export(lambda x: fnad.callback(np.sin, x, result=x), X).c_source(),
        "Python: callback at test_exp",
    ),
    "a solver": (
        lambda: fnad.export(np.linalg.solve, np.eye(3), V).c_source(),
        "Python: (solve|lu) at test_exp",
    ),
    "a large array from outside": (lambda: fnad.export(lambda x: x + LARGE, 1.0).c_source(), "100000 elements"),
    "the steps of a loop": (lambda: fnad.export(fnad.grad(lambda a: newton(a)[0]), 2.0).c_source(), "unknown length"),
    "numbers for an integrator": (lambda: fnad.export(np.sin, X).low_level(), "does not take numbers"),
    "a dict in Numba": (lambda: fnad.export(lambda p: p["x"], {"x": X}).njit(), "Numba takes no dict"),
    "a dict from Numba": (lambda: fnad.export(lambda x: {"x": x}, X).njit(), "Numba returns no dict"),
}
LARGE = np.ones(100_000)


def test_arrays_from_outside_are_those_at_the_export() -> None:
    outer = np.ones(3)
    found = fnad.export(lambda x: x * outer, np.ones(3))
    outer[0] = 5.0
    namespace = as_plain_python(found)
    assert found(np.ones(3)).tolist() == namespace[found.name](np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert fnad.export(lambda x: x * outer, np.ones(3))(np.ones(3)).tolist() == [5.0, 1.0, 1.0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_leave_is_an_error(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ExportError, match=words):
        call()


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    found = fnad.export(np.sin, X)
    assert [path.name for path in found.c(tmp_path / "sine")] == ["sine.c", "sine.h"]
    with pytest.raises(ExportError, match=r"sine\.c exists"):
        found.c(tmp_path / "sine.c")
    found.c(tmp_path / "sine.c", force=True)
    assert [path.name for path in found.object(tmp_path / "sine.o", force=True)] == ["sine.o", "sine.h"]
    assert [path.name for path in found.python(tmp_path / "sine.py")] == ["sine.py"]


@pytest.mark.slow
def test_names_of_parameters_do_not_meet_those_of_the_code() -> None:
    def f(x1: Any, x0: Any, out: Any, double: Any, status: Any, np: Any) -> Any:
        return x1 - 2 * x0 + 4 * out - 8 * double + 16 * status - 32 * np

    numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    found = fnad.export(f, *numbers)
    assert found.njit()(*numbers) == f(*numbers)
    made = np.empty(())
    assert found.cfunc().call(*[np.array(x).ctypes.data for x in numbers], made.ctypes.data) == 0
    assert "double_" in found.prototype


# ---- in files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_from_a_file(name: str, tmp_path: Path) -> None:
    f, args = PROGRAMS[name]
    found = fnad.export(f, *args)
    fnad.save(tmp_path / "program", found)
    loaded = fnad.load(tmp_path / "program")
    assert (loaded.name, loaded.names, loaded.structure) == (found.name, found.names, found.structure)
    with override(executor="interpreter"):
        results = [fnad.tree.flatten(call(*args)) for call in (found, loaded)]
    assert results[0][1] == results[1][1]
    for x, y in zip(results[0][0], results[1][0], strict=True):
        assert (type(x), x.dtype) == (type(y), y.dtype)
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_a_file_is_read_in_a_process_without_the_function(tmp_path: Path) -> None:
    fnad.save(tmp_path / "layer.json", fnad.export(fnad.value_and_grad(loss), M, V))
    np.savez(tmp_path / "arguments.npz", w=M, x=V)
    code = "import fnad, numpy as np; print(fnad.load('layer.json')(*np.load('arguments.npz').values())[0])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert_allclose(float(done.stdout), loss(M, V), rtol=1e-14)


def test_an_exported_program_can_be_differentiated_and_takes_its_types_alone() -> None:
    found = fnad.export(rosenbrock, X)
    assert_allclose(fnad.grad(found)(X), fnad.grad(rosenbrock)(X), rtol=1e-14)
    assert_allclose(fnad.vmap(found)(np.stack([X, Y])), [rosenbrock(X), rosenbrock(Y)], rtol=1e-14)
    with pytest.raises(fnad.errors.ArgumentTypeError, match="exported for other types"):
        found(X[:3])


@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_was_changed_is_an_error(seed: int, tmp_path: Path) -> None:
    file, rng = tmp_path / "program", np.random.default_rng(seed)
    fnad.save(file, fnad.export(fnad.value_and_grad(softmax_loss), M, V))
    text = file.read_bytes()
    for _ in range(40):
        at, length = int(rng.integers(len(text))), int(rng.integers(1, 12))
        changed = bytes(rng.integers(0, 128, length, dtype="u1"))
        file.write_bytes(rng.choice([text[:at], text[:at] + changed + text[at + length :], text[:at] + text[at + 5 :]]))
        with pytest.raises(ExportError, match=r"is not a program that fnad\.save wrote"):
            fnad.load(file)


def edited(content: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The content of a file with one value replaced by another one, and the digest of the new content."""
    key = str(rng.choice([key for key in content if key != "digest"]))
    if key == "program" and rng.random() < 0.8:
        lines = list(content[key])
        line = int(rng.integers(len(lines)))
        words = lines[line].split(" ")
        words[int(rng.integers(len(words)))] = str(
            rng.choice(["a", "add(a,", "f64[99999999999]", "=", "sum", "(", "1e999:f64"])
        )
        changed = {**content, key: [*lines[:line], " ".join(words), *lines[line + 1 :]]}
    else:
        junk = [None, 3, -1.5, "x", [], {}, ["tuple"], ["dict", 1], [[0]], "leaf", True, [{"dtype": "f64"}], 10**40]
        changed = {**content, key: junk[int(rng.integers(len(junk)))]}
    changed.pop("digest")
    return {**changed, "digest": fnad.api.functions.save_load._digest(changed)}


@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_someone_made_is_a_program_or_an_error(seed: int, tmp_path: Path) -> None:
    file, rng = tmp_path / "program", np.random.default_rng(seed)
    for_all_sizes = fnad.export(fnad.value_and_grad(rosenbrock), fnad.ShapeDtypeStruct(("n",), float))
    fnad.save(file, for_all_sizes if seed % 2 else fnad.export(fnad.value_and_grad(softmax_loss), M, V))
    content = json.loads(file.read_text())
    for _ in range(60):
        file.write_text(json.dumps(edited(content, rng)))
        try:
            assert isinstance(fnad.load(file), fnad.api.functions.export.Exported)
        except ExportError as error:
            assert "is not a program that fnad.save wrote" in str(error)  # noqa: PT017


def test_a_file_of_a_later_version_says_so(tmp_path: Path) -> None:
    fnad.save(tmp_path / "program", fnad.export(np.sin, X))
    content = {**json.loads((tmp_path / "program").read_text()), "format": 99, "fnad": "9.0"}
    (tmp_path / "program").write_text(json.dumps(content))
    with pytest.raises(ExportError, match=r"fnad 9\.0 wrote it, which is later"):
        fnad.load(tmp_path / "program")


class Point(NamedTuple):
    x: Any


UNSAVED = {
    "a callback": (lambda x: fnad.callback(np.sin, x, result=x), "calls functions of this process"),
    "a class": (Point, "a file has no Point"),
}


@pytest.mark.parametrize("name", UNSAVED)
def test_what_has_no_text_is_not_saved(name: str, tmp_path: Path) -> None:
    f, words = UNSAVED[name]
    with pytest.raises(ExportError, match=words):
        fnad.save(tmp_path / "program", fnad.export(f, X))
    (tmp_path / "program").write_text("")
    with pytest.raises(ExportError, match="program exists"):
        fnad.save(tmp_path / "program", fnad.export(np.sin, X))
