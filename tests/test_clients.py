"""Programs of others on fnad, and bridges to other libraries, where these are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fnad

ROOT = Path(__file__).parents[1]
CLIENTS = ROOT / "examples" / "clients"


def run(name: str, *arguments: str) -> str:
    """Run a client in a process of its own; return what it prints."""
    command = [sys.executable, str(CLIENTS / name), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_lifelines_fits_what_it_fits_with_autograd() -> None:
    pytest.importorskip("lifelines")
    pytest.importorskip("autograd")
    printed = run("lifelines_fits.py", "--rounds", "1", "exponential", "log-normal", "spline", "Weibull regression")
    differences = [float(line.split()[-1]) for line in printed.splitlines()[1:-1]]
    assert len(differences) == 4
    assert max(differences) < 1e-6


@pytest.mark.slow
def test_the_shim_has_autograds_operators_and_rules(tmp_path: Path) -> None:
    """A rule stated by `defvjp` is followed to second order; what is differentiated may be integers.

    An unchanged function is traced no more.
    """
    script = tmp_path / "script.py"
    script.write_text("""
import autograd.numpy as np
from autograd import elementwise_grad, grad, hessian, value_and_grad
from autograd.extend import defvjp, primitive
from autograd.misc import flatten
from autograd.scipy.special import expit

@primitive
def cube(x, y):
    return x**3 * y

defvjp(cube, lambda ans, x, y: lambda g: 30.0 * g * x**2 * y, None)

print(grad(cube)(2.0, 5.0), grad(cube, argnum=1)(2.0, 5.0), hessian(cube)(2.0, 5.0), grad(grad(cube))(2.0, 5.0))
print(elementwise_grad(expit)(np.array([0, 1])), value_and_grad(lambda x, names: x * len(names))(2.0, {"a", "b"}))
flat, back = flatten({"b": np.eye(2), "a": [1.0, (2.0,)]})
print(flat, back(flat)["a"], grad(lambda v: back(v)["b"].sum() * back(v)["a"][0])(flat))
print(grad(lambda x: x * grad(lambda y: y**2 * x)(x))(2.0))  # 2 x**3

from fnad.api.staging import stage

traces, trace = [], stage.trace_function
stage.trace_function = lambda *args, **kwargs: traces.append(args) or trace(*args, **kwargs)

def loss(x, data):
    return np.sum(elementwise_grad(lambda y: y**3)(x - data)) * grad(lambda y: y * x[1])(x[0])

for transform in (value_and_grad, grad):
    counts, data, derivative = [], np.arange(3.0), transform(loss)
    for i in range(9):
        traces.clear()
        derivative(np.ones(3) * i, data)
        counts.append(len(traces))
    print(counts[2:])
""")
    wanted = f"""600.0 0.0 600.0 600.0
[0.25       0.19661193] (np.float64(4.0), np.float64(2.0))
[1. 2. 1. 0. 0. 1.] [np.float64(1.0), (np.float64(2.0),)] [2. 0. 1. 1. 1. 1.]
24.0
{[0] * 7}
{[0] * 7}
"""
    assert run("autograd_shim.py", str(script)) == wanted
    assert run("autograd_shim.py", "--jit", str(script)) == wanted


@pytest.mark.slow
def test_pymanopt_finds_what_linear_algebra_knows() -> None:
    pytest.importorskip("pymanopt")
    errors = re.findall(r"error (\S+)", run("pymanopt_fnad.py"))
    assert len(errors) == 6
    assert max(map(float, errors)) < 1e-10


@pytest.mark.slow
def test_line_shapes_of_lmfit_are_right() -> None:
    pytest.importorskip("lmfit")
    printed = run("foreign_code.py", "lmfit")
    assert ", 0 `WRONG`" in printed
    right, of = (int(re.findall(pattern, printed)[-1]) for pattern in (r"(\d+) right without", r"(\d+) functions"))
    assert right >= 0.9 * of


def test_what_libraries_ask_of_arguments() -> None:
    def asked(x):
        y = x * 1.0
        assert np.may_share_memory(y, y[1:])
        assert not np.may_share_memory(x, y)
        assert not np.may_share_memory(y, np.ones(3))
        assert x.device == y.device == "cpu"
        assert x.__array_namespace__() is np
        return np.sum(y)

    assert fnad.grad(asked)(np.ones(3)).tolist() == fnad.grad(fnad.jit(asked))(np.ones(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax", "pytensor", "pymc", "numpyro"])
def test_bridges_have_the_derivatives_of_fnad(library: str) -> None:
    pytest.importorskip(library)
    assert f"{library}: the derivatives agree" in run("bridges.py", library)
