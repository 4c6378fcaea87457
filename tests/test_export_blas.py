"""C sources that call CBLAS and LAPACKE, compiled with the BLAS of SciPy's wheel, against the interpreter."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.linalg
from numpy.testing import assert_allclose

import fnad
from fnad.config import override
from fnad.errors import ExportError
from fnad.tree import leaves
from tests.together import some_of, together

GCC = shutil.which("gcc")
FLAGS = ["-std=c99", "-O0", "-fwrapv", "-fopenmp-simd", "-Wall", "-Werror", "-Wno-unused"]
OPENBLAS = next(iter(Path(scipy.__file__).parents[1].glob("scipy.libs/libscipy_openblas*")), None)
"""A library whose functions are those of CBLAS and LAPACKE, with `scipy_` before their names."""

LARGE = np.random.default_rng(1).normal(size=(2, 30, 30)) + 20 * np.eye(30)


def adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, 1, 2))


def restored(u: Any, s: Any, v: Any) -> Any:
    count = s.shape[-1]
    return (u[..., :count] * s[:, None]) @ v[:, :count]


FAILING = ("solve", "inv", "cholesky", "lower triangle", "svd", "cofactors")
"""The programs that are given singular matrices and nan, too."""
WITHOUT_GRADIENT = ("cofactors", "sign of slogdet", "complete qr")
PROGRAMS = {
    "product": lambda a: a @ a,
    "product with a transpose": lambda a: np.swapaxes(a, 1, 2) @ a @ a,
    "product with a vector": lambda a: a[0] @ a[1, 0] + a[0].T @ a[1, 1],
    "solve": lambda a: np.linalg.solve(a, np.sin(a[..., :3])),
    "solve with exchanges of rows": lambda a: np.linalg.solve(np.roll(a, 1, axis=1), np.sin(a[..., :3])),
    "inv": np.linalg.inv,
    "cholesky": lambda a: np.linalg.cholesky(a @ adjoint(a)),
    "upper cholesky": lambda a: np.linalg.cholesky(a @ adjoint(a), upper=True),
    "lower triangle": lambda a: scipy.linalg.solve_triangular(a[0], a[1], lower=True),
    "upper triangle": lambda a: scipy.linalg.solve_triangular(a[0], a[1], unit_diagonal=True),
    "eigh": lambda a: np.linalg.eigh(a + adjoint(a))[0],
    "det": lambda a: np.linalg.det(a / 20),
    "cofactors": fnad.grad(lambda a: np.sum(np.linalg.det(a / 20).real)),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "sign of slogdet": lambda a: np.linalg.slogdet(a)[0] * np.linalg.slogdet(-a[:, :29, :29])[0],
    "svd": lambda a: np.linalg.svd(a, compute_uv=False),
    "thin svd of a wide matrix": lambda a: restored(*np.linalg.svd(a[:, :20], full_matrices=False)),
    "full svd of a tall matrix": lambda a: restored(*np.linalg.svd(a[:, :, :20])),
    "qr": lambda a: np.linalg.qr(a)[1],
    "qr of a tall matrix": lambda a: np.linalg.qr(a[:, :, :20])[0],
    "qr of a wide matrix": lambda a: np.linalg.qr(a[:, :20])[0],
    "complete qr": lambda a: np.linalg.qr(a[:, :, :20], mode="complete")[0],
    "eigvalsh": lambda a: np.linalg.eigvalsh(a + adjoint(a), UPLO="U"),
}


def declared(letter: str, name: str, result: str, given: str) -> list[str]:
    called = f"LAPACKE_{letter}{name}" if result == "int" else f"cblas_{letter}{name}"
    return [f"#define {called} scipy_{called}", f"{result} {called}({given});"]


def headers(folder: Path) -> None:
    """Write cblas.h and lapacke.h with the functions that are called."""
    lines: dict[str, list[str]] = {
        "cblas": [
            "enum {CblasRowMajor = 101, CblasNoTrans = 111, CblasTrans, CblasUpper = 121, CblasLower};",
            "enum {CblasNonUnit = 131, CblasUnit, CblasLeft = 141};",
        ],
        "lapacke": ["typedef int lapack_int;", "enum {LAPACK_ROW_MAJOR = 101, LAPACK_COL_MAJOR};"],
    }
    for letter in "sdcz":
        real = "float" if letter in "sc" else "double"
        array, number = (f"{real} *", real) if letter in "sd" else ("void *", "const void *")
        pair = f"{number}, const {array}, int"
        lines["cblas"] += declared(
            letter, "gemm", "void", f"int, int, int, int, int, int, {pair}, const {array}, int, {number}, {array}, int"
        )
        lines["cblas"] += declared(
            letter, "gemv", "void", f"int, int, int, int, {pair}, const {array}, int, {number}, {array}, int"
        )
        lines["cblas"] += declared(letter, "trsm", "void", f"int, int, int, int, int, int, int, {pair}, {array}, int")
        lines["lapacke"] += declared(letter, "gesv_work", "int", f"int, int, int, {array}, int, int *, {array}, int")
        lines["lapacke"] += declared(letter, "potrf_work", "int", f"int, char, int, {array}, int")
        lines["lapacke"] += declared(letter, "getrf_work", "int", f"int, int, int, {array}, int, int *")
        eigen = "heevd" if letter in "cz" else "syevd"
        unitary, ints = "ungqr" if letter in "cz" else "orgqr", "int, int, int"
        lines["lapacke"] += declared(letter, "geqrf", "int", f"{ints}, {array}, int, {array}")
        lines["lapacke"] += declared(letter, unitary, "int", f"{ints}, int, {array}, int, {array}")
        vectors = f"{array}, int, {array}, int"
        lines["lapacke"] += declared(letter, "gesdd", "int", f"int, char, int, int, {array}, int, {real} *, {vectors}")
        lines["lapacke"] += declared(letter, eigen, "int", f"int, char, char, int, {array}, int, {real} *")
    for name, found in lines.items():
        (folder / f"{name}.h").write_text("\n".join([f"#ifndef {name}_h", f"#define {name}_h", *found, "#endif", ""]))


def called(function: Any, given: Any, expected: list[np.ndarray]) -> tuple[int, list[np.ndarray]]:
    made = [np.empty_like(array) for array in expected]
    function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p] * (1 + len(made))
    return function(*[array.ctypes.data for array in (given, *made)]), made


@pytest.mark.slow
@pytest.mark.skipif(GCC is None or OPENBLAS is None, reason="there is no gcc, or no BLAS in SciPy's wheel")
def test_products_and_linear_algebra_with_their_gradients(tmp_path: Path) -> None:
    headers(tmp_path)
    programs: dict[str, tuple[Any, Any, str]] = {}
    for name, f in PROGRAMS.items():
        total = lambda a, f=f: np.sum(abs(f(a)) ** 2)  # noqa: E731
        gradients = [] if name in WITHOUT_GRADIENT else some_of(["f8", "c16"], f"gradient of {name}")
        values = ["c16", *(["f8"] if name in FAILING else some_of(["f8", "f4"], name))]
        for kind, g, dtypes in (("value", f, values), ("gradient", fnad.grad(total), gradients)):
            for dtype in dtypes:
                programs[f"{kind} of {name} in {dtype}"] = g, LARGE.astype(dtype), f"program{len(programs)}"
    for name, (f, a, symbol) in programs.items():
        exported = fnad.export(f, a)
        exported.name = symbol
        exported.c(tmp_path / symbol, blas=True)
        text = (tmp_path / f"{symbol}.c").read_text()
        assert "cblas_" in text or "LAPACKE_" in text, name
    library, sources = str(tmp_path / "programs.so"), [str(path) for path in tmp_path.glob("*.c")]
    linked = ["-shared", "-fPIC", *sources, "-o", library, str(OPENBLAS), "-lm"]
    subprocess.run([str(GCC), *FLAGS, f"-I{tmp_path}", *linked], check=True)
    ctypes.CDLL(str(OPENBLAS))
    loaded = ctypes.CDLL(library)
    with together() as check:
        for name, (f, a, symbol) in programs.items():
            with check(name):
                with override(executor="interpreter"):
                    expected = [np.asarray(leaf) for leaf in leaves(fnad.jit(f)(a))]
                status, found = called(loaded[symbol], a, expected)
                assert status == 0
                for x, y in zip(found, expected, strict=True):
                    tolerance = np.abs(y).max() * (1e-4 if "f4" in name else 1e-11)
                    assert_allclose(x, y, rtol=0, atol=tolerance)
        f, a, symbol = programs["value of cofactors in f8"]
        singular = np.concatenate([a[:, :29], a[:, 28:29]], axis=1)
        with check("cofactors of a singular matrix"):
            expected = np.asarray(fnad.jit(f)(singular))
            assert np.abs(expected).max() > 1e-3
            status, (found,) = called(loaded[symbol], singular, [expected])
            assert status == 0
            assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        with check("svd of nan"):
            f, a, symbol = programs["value of svd in f8"]
            assert called(loaded[symbol], np.nan * a, [np.empty((2, 30))])[0] == 1
        for name in ("solve", "inv", "cholesky", "lower triangle"):
            f, a, symbol = programs[f"value of {name} in f8"]
            with check(f"{name} of a singular matrix"):
                assert called(loaded[symbol], 0 * a, [np.asarray(fnad.jit(f)(a))])[0] == 1


def test_what_has_no_routine_there_is_named() -> None:
    with pytest.raises(ExportError, match="eigvals"):
        fnad.export(np.linalg.eigvals, LARGE).c_source(blas=True)
    with pytest.raises(ExportError, match="solve"):
        fnad.export(lambda a: np.linalg.solve(a, a), LARGE).c_source()
