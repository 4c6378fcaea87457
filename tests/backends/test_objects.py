"""What is known of the memory of objects, asked of each version of CPython that is known, and here with NumPy."""

import pathlib
import subprocess
import sys

import pytest

from tests.pythons import ask

VERSIONS = [(3, minor) for minor in range(11, 16)]
QUESTIONS = pathlib.Path(__file__).with_name("object_questions.py")


@pytest.mark.parametrize("version", VERSIONS, ids="{0[0]}.{0[1]}".format)
def test_each_python_lays_out_its_objects_as_objects_says(version):
    ask(version, QUESTIONS, "numpy")


UNKNOWN = """
import sys
from importlib.util import find_spec, module_from_spec
from types import SimpleNamespace

import llvmlite.binding, numba, numpy as np, optree, scipy.linalg, scipy.special

sys.version_info = (3, 99, 0, "final", 0)
spec = find_spec("fnad.backends.cpu.objects")
objects = sys.modules[spec.name] = module_from_spec(spec)
objects.object = SimpleNamespace(__basicsize__=object.__basicsize__ + 8)  # a longer header
spec.loader.exec_module(objects)
assert not objects.IS_KNOWN

import fnad
from fnad.errors import FnadError

fnad.config.set_default(executor="compiled")
x, square = np.linspace(0.1, 2.0, 6), np.diag([3.0, 4.0, 5.0]) + 0.1
large = np.linspace(0.1, 2.0, 2**19)
FUNCTIONS = {
    "elementwise": (lambda x: np.sum(np.exp(np.sin(x)) * x), x, lambda x: np.exp(np.sin(x)) * (1 + x * np.cos(x))),
    "a large array": (lambda x: np.sum(x * x), large, lambda x: 2 * x),
    "a product": (lambda m: np.sum(m @ m), square, lambda m: m.sum(0)[:, None] + m.sum(1)),
    "an entry point of SciPy's": (lambda x: np.sum(scipy.special.gammaln(x)), x, scipy.special.digamma),
    "a loop of SciPy's": (lambda x: np.sum(scipy.special.zeta(3.5, x + 2)), x, None),
    "an inverse": (lambda m: np.sum(np.linalg.inv(m)), square, None),
    "a determinant": (np.linalg.det, square, lambda m: np.linalg.det(m) * np.linalg.inv(m).T),
    "a loop": (lambda x: fnad.scan(lambda c, y: (c * np.cos(y), c), 1.0, x)[0], x, None),
    "eigenvalues": (lambda m: np.linalg.eigvalsh(m + m.T)[0], square, None),
    "a solution": (lambda m: np.sum(np.linalg.solve(m, np.ones(3))), square, None),
}
for name, (f, x, slope) in FUNCTIONS.items():
    fast = fnad.jit(fnad.value_and_grad(f))
    for _ in range(3):
        value, gradient = fast(x)
        assert np.allclose(value, f(x), rtol=1e-12, atol=0), name
    if slope is None:
        direction = np.cos(np.arange(x.size)).reshape(x.shape)
        found, h = np.sum(gradient * direction), 1e-5
        wanted = (f(x + h * direction) - f(x - h * direction)) / (2 * h)
        assert np.allclose(found, wanted, rtol=1e-7), name
    else:
        assert np.allclose(gradient, slope(x), rtol=1e-10), name
singular = fnad.jit(np.linalg.inv)
for _ in range(3):
    try:
        singular(np.ones((3, 3)))
    except (FnadError, np.linalg.LinAlgError) as error:
        assert "singular" in str(error).lower(), error
    else:
        raise AssertionError
print("right")
"""
"""A process with other memory of objects than any Python has, of a version that nobody knows."""


@pytest.mark.slow
def test_another_python_computes_the_same_through_python(tmp_path):
    ran = subprocess.run([sys.executable, "-c", UNKNOWN], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.stdout == "right\n", ran.stderr
