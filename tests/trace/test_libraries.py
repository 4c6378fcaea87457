"""Libraries are told from the user's code wherever each of them is installed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy

import fnad
from fnad.trace.libraries import is_library, is_machinery, is_testing, package_of

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, scipy.cluster.hierarchy
assert scipy.__file__.startswith({folder!r})
import fnad
points = np.arange(6.0).reshape(3, 2) ** 2
def f(x):
    u = np.zeros(3)
    u[0] = x
    return np.sum(u) * scipy.cluster.hierarchy.linkage(points)[0, 2]
print(fnad.jit(f)(2.0), fnad.grad(f)(2.0), f(2.0), f(1.0))
"""


def test_packages_may_be_in_folders_of_their_own(tmp_path):
    folder, program = tmp_path / "packages", tmp_path / "program.py"
    folder.mkdir()
    (folder / "scipy").symlink_to(Path(scipy.__file__).parent)
    program.write_text(PROGRAM.format(folder=str(folder)))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert not ran.stderr
    value, gradient, expected, derivative = map(float, ran.stdout.split())
    np.testing.assert_allclose([value, gradient], [expected, derivative])


def test_whose_code_a_file_is():
    assert is_machinery(np.__file__)
    assert is_machinery(scipy.__file__)
    assert not is_library(__file__)
    assert is_testing(sys.modules["_pytest"].__file__)
    assert is_library(sys.modules["pathlib"].__file__)
    assert package_of(scipy.__file__) == "scipy"
    assert package_of(__file__) is None


MODULE = """
import numpy as np

scale = 2.0

class Model:
    gain = 3.0

    def __init__(self):
        self.weight = 1.5

    def __call__(self, x):
        return np.sum(x) * self.weight * self.gain * scale

model = Model()

def loss(x):
    return model(x)
"""


@pytest.mark.parametrize(
    "name", ["model", "numpy", "statistics", "time", "random_walk", "namedtuple_walk", "scipy_walk"]
)
def test_a_module_of_the_users_may_have_any_name(name, tmp_path):
    """Names that begin like those of a library are the user's, and so is code that `exec` runs under such a name."""
    (tmp_path / "model.py").write_text(MODULE)
    module = {"__name__": name}
    exec(compile(MODULE, tmp_path / "model.py", "exec"), module)
    compiled, gradient, x, calls = fnad.jit(module["loss"]), fnad.grad(module["loss"]), np.ones(2), 3
    for change in (
        lambda: None,
        lambda: setattr(module["model"], "weight", 2.0),
        lambda: setattr(module["Model"], "gain", 5.0),
        lambda: module.update(scale=7.0),
    ):
        change()
        expected = module["loss"](x)
        for _ in range(calls):
            np.testing.assert_allclose([compiled(x), 2 * gradient(x)[0]], expected)
    assert len(compiled.paths()) == 4
    assert [path.runs for path in compiled.paths()] == [calls] * 4
