"""What `fnad dump` and `fnad ops` differentiate is what `vjp`, `jvp` and `grad` run."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.api.staging.inlining import traced
from fnad.backends import tiers
from fnad.cli import main
from fnad.cli.dump import MODES, Request, dump
from fnad.cli.load import load_target
from fnad.ir.parser import parse_program
from fnad.ir.types import aval_of, is_inexact
from fnad.numpy.operands import as_symbol
from fnad.testing import direction, marks
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import CASES, Case, has_derivative, over

MODEL = Path(__file__).with_name("model.py")
ONE_EACH = {case.primitive.name: case for case in reversed(CASES) if has_derivative(case) and not case.sample.regions}


def as_function(case: Case, operands: Any) -> Any:
    """Return the function of the inexact operands that applies the primitive, and returns its inexact results."""

    def f(*given: Any) -> Any:
        left = iter(given)
        symbols = [next(left).symbol if is_inexact(x.dtype) else as_symbol(x) for x in operands]
        results = case.applied(symbols)
        return tuple(traced(result) for result in results if is_inexact(result.dtype))

    return f


@over(ONE_EACH.values())
def test_dumped_derivative_is_the_one_that_runs(case: Case) -> None:
    operands = [np.asarray(x) for x in case.operands]
    inexact = [x for x in operands if is_inexact(x.dtype)]
    program = case.program()
    avals = [aval for aval in program.out_avals if is_inexact(aval.dtype)]
    dxs = [direction(aval, i) for i, aval in enumerate(map(aval_of, inexact))]
    cts = [direction(aval, 20 + i) for i, aval in enumerate(avals)]
    f, count = as_function(case, operands), len(program.outputs)
    with np.errstate(all="ignore"):
        pulled = fnad.vjp(f, *inexact)[1](tuple(cts))
        pushed = fnad.jvp(f, tuple(inexact), tuple(dxs))[1]
        for found, mode, given in ((pulled, "vjp", cts), (pushed, "jvp", dxs)):
            first, *pullback = MODES[mode](marks(program), count).derive(program)
            dumped = interpret(first, operands if pullback else [*operands, *given])[count:]
            if pullback:
                dumped = interpret(*pullback, [*dumped, *given])
            for mine, other in zip(found, dumped, strict=True):
                np.testing.assert_array_equal(mine, other)


ROSENBROCK = """
import numpy as np

def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
"""


@pytest.mark.parametrize("mode", ["grad", "value_and_grad", "jvp", "vjp"])
def test_what_is_dumped_is_what_a_call_finds_in_the_store(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rosenbrock.py"
    file.write_text(ROSENBROCK)
    request = Request(f"{file}:rosenbrock", "f64[4]", mode, None, "asm")
    fnad.clear_cache()
    gc.collect()
    before = fnad.cache_info().programs  # of functions of other tests that still live
    assert "ret" in dump(request)
    programs = 2 if mode == "vjp" else 1
    made = fnad.cache_info()
    assert (made.programs - before, made.compiled) == (programs, programs)
    f, x = load_target(f"{file}:rosenbrock").function, np.linspace(0.5, 2.0, 4)
    monkeypatch.setattr(tiers, "simplify", None)  # all is there
    run = getattr(fnad, mode)
    if mode == "vjp":
        value, pullback = fnad.vjp(f, x)
        found = [value, *pullback(1.0)]
    else:
        found = run(f, (x,), (x,)) if mode == "jvp" else run(f)(x)
    assert fnad.cache_info()[:2] == made[:2]
    assert np.all(np.isfinite(np.hstack(found)))


SPECTRAL = """
import numpy as np

def exponential(a):
    w, v = np.linalg.eigh(a)
    return np.sum((v * np.exp(w)) @ v.T)
"""


@pytest.mark.parametrize("stage", ["transformed", "simplified"])
def test_dumped_gradient_of_a_function_of_eigenvectors(stage: str, tmp_path: Path) -> None:
    """At equal eigenvalues it is not the one through the vectors, which is nan."""
    file = tmp_path / "spectral.py"
    file.write_text(SPECTRAL)
    dumped = dump(Request(f"{file}:exponential", "f64[2,2]", "grad", None, stage))
    (found,) = interpret(parse_program(dumped), [np.eye(2)])
    np.testing.assert_allclose(found, [[np.e, 0], [2 * np.e, np.e]], rtol=1e-15)


def exported(tmp_path: Path, types: str, *options: str) -> Any:
    """The function that `fnad export --python` writes of the layer of the tests' model, as plain Python."""
    path = tmp_path / "layer.py"
    command = ["export", f"{MODEL}:layer", "--args", types, *options, "--python", "-o", str(path), "--force"]
    assert main(command) == 0
    space: dict[str, Any] = {}
    exec(path.read_text().replace("from numba import njit", "njit = lambda f=None, **_: f or (lambda f: f)"), space)
    return space[f"layer_{options[0].removeprefix('--')}"]


def test_c_that_calls_lapack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text("import numpy as np\ndef f(a): return np.linalg.solve(a, a)\n")
    command = ["export", f"{tmp_path}/model.py:f", "--args", "f64[9,9]", "-o", f"{tmp_path}/f", "--blas"]
    assert main([*command, "--object"]) == 2
    assert capsys.readouterr().err == "fnad: --blas is for C sources: give --c\n"
    assert main([*command, "--c"]) == 0
    assert "LAPACKE_dgesv_work" in (tmp_path / "f.c").read_text()


@pytest.mark.parametrize(
    "types", ["""f64[3], {"W": f64[3,2], "b": f64[2]}""", """f64[n], {"W": f64[n,m], "b": f64[m]}"""]
)
def test_exported_derivatives_are_those_of_complex_steps(
    types: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)
    x, w, b, dx, dw, db = (rng.normal(size=shape) for shape in ((3,), (3, 2), (2,)) * 2)
    ct = rng.normal(size=2)

    def slope(*directions: Any) -> Any:
        stepped = [z + 1e-30j * d for z, d in zip((x, w, b), directions, strict=True)]
        return np.imag(np.tanh(stepped[0] @ stepped[1] + stepped[2])) / 1e-30

    value, tangent = exported(tmp_path, types, "--jvp")(x, w, b, dx, dw, db)
    assert_allclose(value, np.tanh(x @ w + b), rtol=1e-14)
    assert_allclose(tangent, slope(dx, dw, db), rtol=1e-13)
    assert_allclose(
        exported(tmp_path, types, "--jvp", "--argnums", "-1")(x, w, b, dw, db)[1], slope(0, dw, db), rtol=1e-13
    )
    value, *cotangents = exported(tmp_path, types, "--vjp")(x, w, b, ct)
    pairs = zip(cotangents, (dx, dw, db), strict=True)
    assert_allclose(sum(np.sum(c * d) for c, d in pairs), ct @ slope(dx, dw, db), rtol=1e-13)
    jacobian = exported(tmp_path, types, "--jacobian")(x, w, b)
    assert_allclose(jacobian @ dx, slope(dx, 0, 0), rtol=1e-13)
    sizes = "int64_t n, int64_t m, " * ("n" in types)
    given = "const double *x, const double *w_W, const double *w_b, const double *ct,"
    assert f"int64_t layer_vjp({sizes}{given}" in capsys.readouterr().out


def test_other_commands_take_no_names_of_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", f"{MODEL}:loss", "--args", "f64[n]"]) == 2
    assert "--args has a size without a number, which fnad export alone takes" in capsys.readouterr().err
    assert main(["export", f"{MODEL}:loss", "--args", "f64[double]", "--c", "-o", "x"]) == 2
    assert "'double' cannot name a size" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--jvp", "--argnums", "2"], "--argnums names argument 2 of 2"),
        (["--vjp", "--argnums", "0,-2"], "--argnums names an argument twice"),
        (["--grad", "--argnums", "7"], "--argnums names argument 7 of 2"),
        (["--argnums", "0"], "add a derivative"),
    ],
)
def test_arguments_that_are_not_there_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["export", f"{MODEL}:layer", "--values", "np.ones(3), {'W': np.ones((3, 2)), 'b': np.ones(2)}"]
    assert main([*call, *options, "--c", "-o", str(tmp_path / "layer.c")]) == 2
    assert words in capsys.readouterr().err
