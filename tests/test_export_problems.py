"""The problems of the benchmarks, small, in each form in which a program leaves the process, against `jit`."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

import fnad
from benchmarks.problems import (
    ba,
    checkpoint,
    closures,
    deciding_loops,
    eager,
    elementwise,
    fused,
    gmm,
    jacobians,
    kalman,
    kmeans,
    layers,
    llsq,
    lorenz,
    lse,
    lstm,
    matrices,
    mlp,
    ode,
    odeint,
    python_loops,
    rnn,
    sparse,
    threads,
    vmapped,
)
from fnad.config import override
from fnad.errors import ExportError
from fnad.tree import leaves
from tests.together import some_of

Call = tuple[Callable[..., Any], tuple[Any, ...]]
RNG = np.random.default_rng(3)
draw = RNG.standard_normal
SCAN, LABELS = fnad.scan, RNG.integers(0, 4, 6)
SEEN = RNG.integers(0, 3, 8), RNG.integers(0, 5, 8), draw((8, 2))
PARAMETERS = {name: x[tuple(slice(5) for _ in x.shape)] for name, x in rnn.inputs(float)[0].items()}
PARAMETERS["U"] = PARAMETERS["U"][:3]
LAYERS = {"W1": draw((6, 5)), "b1": draw(5), "W2": draw((5, 3)), "b2": draw(3)}


def slopes(f: Callable[..., Any], *args: Any, count: int = 1) -> Call:
    """The value and the gradient of a function in the first arguments."""
    return fnad.value_and_grad(f, tuple(range(count))), args


def means_step(points: Any, centres: Any) -> Any:
    gradient = fnad.grad(partial(kmeans.cost, np, points))
    slope, curvature = fnad.jvp(gradient, (centres,), (np.ones_like(centres),))
    return slope / curvature


PROBLEMS: dict[str, Call] = {
    "ba": (partial(ba.nonzeros, np, fnad), (1 + 0.1 * draw((3, 11)), 1 + 0.1 * draw((5, 3)), 1 + 0.1 * draw(8), *SEEN)),
    "checkpoint": slopes(
        fnad.checkpoint(lambda k, s: SCAN(lambda s, _: (s - 0.1 * k * np.sin(s), None), s, None, length=9)[0].sum()),
        checkpoint.STIFFNESS,
        checkpoint.STATE,
    ),
    "closures": slopes(closures.closure(np, 1.5), closures.X),
    "deciding loops by scan": slopes(partial(deciding_loops.three_ways_by_scan, fnad), draw(9), 0.5),
    "Metropolis by scan": slopes(partial(deciding_loops.metropolis_by_scan, fnad), 0.5, draw(9), RNG.random(9)),
    "options": slopes(partial(elementwise.black_scholes, np), *(1 + RNG.random((5, 6))), count=4),
    "rosenbrock": slopes(partial(elementwise.rosenbrock, np), draw(10)),
    "fused": slopes(partial(fused.f, np), draw(50)),
    "fused, f32": slopes(partial(fused.f, np), draw(50).astype("f4")),
    "gmm": slopes(partial(gmm.log_posterior, np), draw(4), draw((4, 3)), 0.3 * draw((4, 6)), draw((7, 3)), count=3),
    "hessian of a logistic regression": (
        fnad.hessian(partial(jacobians.logistic, np, draw((9, 4)), np.sign(draw(9)))),
        (draw(4),),
    ),
    "hessian of rosenbrock": (fnad.hessian(partial(jacobians.rosenbrock, np)), (draw(6),)),
    "wide jacobian": (fnad.jacobian(partial(jacobians.layer, np, draw((3, 7)))), (draw(7),)),
    "tall jacobian": (fnad.jacobian(partial(jacobians.layer, np, draw((7, 3)))), (draw(3),)),
    "kmeans": (means_step, (draw((20, 3)), draw((4, 3)))),
    "cross-entropy": slopes(partial(layers.cross_entropy, np), draw((6, 4)), LABELS),
    "layer norm": slopes(partial(layers.layer_norm, np), draw((4, 8)), draw(8), draw(8), draw((4, 8)), count=3),
    "convolution": slopes(partial(layers.convolution, np), draw((2, 1, 3, 3)), draw((2, 1, 6, 6))),
    "Horner's rule": slopes(partial(llsq.by_horner, np), draw(5), draw(9), draw(9)),
    "powers": slopes(partial(llsq.by_powers, np), draw(5), draw(9), draw(9)),
    "lorenz": slopes(partial(lorenz.height, np, SCAN, steps=20), lorenz.PARAMETERS, lorenz.START),
    "lse": slopes(partial(lse.logsumexp, np), draw(40)),
    "lstm": slopes(
        partial(lstm.loss, np), draw((2, 2, 4, 14)), draw((3, 14)), draw((2, 2, 14)), draw((6, 14)), count=2
    ),
    "mlp": slopes(mlp.loss, LAYERS, draw((4, 6)), np.eye(3)[[0, 2, 1, 0]]),
    "mlp, f32": slopes(
        mlp.loss, {name: x.astype("f4") for name, x in LAYERS.items()}, draw((4, 6)).astype("f4"), np.eye(4, 3, 0, "f4")
    ),
    "ode": slopes(partial(ode.last, np), draw(4), np.zeros(9)),
    "heat in a loop": slopes(partial(python_loops.heat, steps=5), draw(9), 0.1),
    "recurrence in a loop": slopes(python_loops.recurrence, 0.5, draw(9)),
    "rnn": slopes(partial(rnn.loss, np, SCAN), PARAMETERS, draw((8, 3)), draw(8)),
    "sparse": (lambda u: fnad.jvp(partial(sparse.tridiagonal, np.exp), (u,), (u,)), (draw(9),)),
    "softmax": slopes(lambda x: np.sum(threads.softmax(x) ** 2), draw((3, 5))),
    "heat in a square": slopes(lambda u: np.sum(threads.heat(u) ** 2), draw((6, 6))),
    "layers": slopes(threads.layers, draw((4, 4)), draw((4, 4)), count=2),
    "gradients of a network": (
        fnad.vmap(fnad.grad(partial(vmapped.network, np)), in_axes=(None, 0)),
        ((draw((4, 3)), draw(4), draw(4)), draw((5, 3))),
    ),
    "gradients of a scalar": (fnad.vmap(fnad.grad(partial(vmapped.scalar, np)), in_axes=(None, 0)), (draw(5), draw(6))),
    "roots": (fnad.vmap(partial(vmapped.root, fnad.while_loop)), (np.exp(draw(6)),)),
    "odeint": (partial(odeint.misfit, np, fnad.odeint), (odeint.PARAMETERS, odeint.START, odeint.TIMES[:9])),
    "survival": slopes(eager.weibull_survival(np), 0.1 * draw(2)),
    "ode step": slopes(eager.ode_step(np), draw(2)),
}
BLAS = {
    "kalman": (partial(kalman.log_likelihood, np, SCAN), kalman.given()),
    "gaussian process": (eager.gaussian_process(np), (0.1 * draw(3),)),
    "QR": (partial(matrices.by_qr, np, scipy.linalg), (draw((4, 4)),)),
    "Cholesky and a solution": (partial(matrices.by_triangles, np, scipy.linalg), (draw((4, 4)),)),
}
"""Problems with linear algebra, which leave as C that calls LAPACK."""

REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "deciding loops": (deciding_loops.three_ways, (draw(9), 0.5), r"decides by values: .*deciding_loops\.py"),
    "eigenvalues": (partial(matrices.by_eigenvalues, np, scipy.linalg), (draw((4, 4)),), r"without Python: eig.* at "),
    "gradient of roots": (
        fnad.grad(partial(vmapped.root, fnad.while_loop)),
        (2.0,),
        "saves the steps of a loop of unknown length",
    ),
}
GCC = shutil.which("gcc")
FLAGS = ["-std=c99", "-O0", "-fwrapv", "-fopenmp-simd", "-Wall", "-Werror", "-Wno-unused"]


@cache
def exported(name: str) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """A program, its arguments and its results under `jit`, as arrays."""
    f, args = PROBLEMS[name]
    with override(executor="interpreter"):
        expected = [np.asarray(leaf) for leaf in leaves(fnad.jit(f)(*args))]
    found = fnad.export(f, *args)
    given = [np.ascontiguousarray(leaf, aval.dtype) for leaf, aval in zip(leaves(args), found.in_avals, strict=True)]
    return found, given, expected


def check(found: Any, expected: list[np.ndarray], name: str) -> None:
    for x, y in zip(found, expected, strict=True):
        tolerance = 1e-4 if y.dtype == np.float32 else 1e-9
        assert_allclose(np.asarray(x), y, rtol=tolerance, atol=tolerance, err_msg=name)


def check_by_address(function: Any, name: str) -> None:
    _, given, expected = exported(name)
    made = [np.empty(x.shape, x.dtype) for x in expected]
    assert function(*[x.ctypes.data for x in (*given, *made)]) == 0
    check(made, expected, name)


IN_C = {*some_of([*PROBLEMS], "C", 28)} if GCC else set[str]()
"""The problems of which not native code is run, but C."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_native_code_the_python_module_and_a_file(name: str, tmp_path: Path) -> None:
    found, given, expected = exported(name)
    if name not in IN_C:
        check_by_address(found.cfunc().call, name)
    space: dict[str, Any] = {}
    exec(
        found.python_source().replace("from numba import njit", "njit = lambda f=None, **_: f or (lambda f: f)"), space
    )
    with np.errstate(all="ignore"):
        result = space[found.name](*[x[()] for x in given])
    check(result if len(expected) > 1 else [result], expected, name)
    fnad.save(tmp_path / "file", found)
    with override(executor="interpreter"):
        check(leaves(fnad.load(tmp_path / "file")(*PROBLEMS[name][1])), expected, name)


@pytest.mark.slow
@pytest.mark.skipif(GCC is None, reason="there is no gcc")
@pytest.mark.parametrize("form", ["c", "o"])
def test_sources_and_objects(form: str, tmp_path: Path) -> None:
    files: list[str] = []
    chosen = [name for name in PROBLEMS if name in IN_C] if form == "c" else some_of([*PROBLEMS], "objects", 3)
    for n, name in enumerate(chosen):
        found = exported(name)[0]
        program = copy(found)
        program.name = f"program{n}"
        (program.c if form == "c" else program.object)(tmp_path / f"program{n}")
        files.append(str(tmp_path / f"program{n}.{form}"))
    library = tmp_path / "programs.so"
    options = FLAGS if form == "c" else []
    subprocess.run([str(GCC), *options, "-shared", "-fPIC", *files, "-o", str(library), "-lmvec", "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    for n, name in enumerate(chosen):
        _, given, expected = exported(name)
        function = loaded[f"program{n}"]
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p] * (len(given) + len(expected))
        check_by_address(function, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(["gmm", "lorenz", "kmeans", "options"], "Numba", 2))
def test_problems_exported_to_numba_compute_as_the_function(name: str) -> None:
    found, _, expected = exported(name)
    check(leaves(found.njit()(*PROBLEMS[name][1])), expected, name)


@pytest.mark.parametrize("name", BLAS)
def test_linear_algebra_leaves_as_c_with_lapack(name: str) -> None:
    f, args = BLAS[name]
    found = fnad.export(f, *args)
    assert "LAPACKE_" in found.c_source(blas=True)
    with pytest.raises(ExportError, match=r"no code without Python(.|\n)*blas=True"):
        found.cfunc()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_leave_says_why(name: str) -> None:
    f, args, words = REFUSED[name]
    with pytest.raises(ExportError, match=words):
        fnad.export(f, *args).cfunc()
