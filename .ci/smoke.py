"""What an installation must do: it is the wheel's, it compiles, its command works, its page stands alone."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import fnad

EXAMPLE = Path(__file__).parents[1] / "examples" / "exp_sin.py"


def f(x):
    return np.sum(np.exp(x) * np.sin(x))


x = np.linspace(0.0, 1.0, 5)
expected = np.exp(x) * (np.sin(x) + np.cos(x))
assert Path(fnad.__file__).is_relative_to(sys.prefix), f"{fnad.__file__} is not what was installed"
np.testing.assert_allclose(fnad.grad(f)(x), expected, rtol=1e-14)
with fnad.config.override(executor="compiled"):
    np.testing.assert_allclose(fnad.jit(fnad.grad(f))(x), expected, rtol=1e-14)

command = [Path(sys.executable).with_name("fnad"), "dump", f"{EXAMPLE}:total", "--args", "f64[5]", "--stage", "source"]
source = subprocess.run(command, check=True, capture_output=True, text=True).stdout
assert "for i0 in range(5):" in source, source

page = importlib.metadata.metadata("fnad")["Description"]
assert "## What it is" in page, "the README is missing"
relative = re.findall(r"\]\((?!https?:|#)[^)]*\)", page)
assert not relative, f"links that lead nowhere on a package index: {relative}"

versions = [f"{name} {importlib.metadata.version(name)}" for name in ("fnad", "numpy", "numba", "scipy", "optree")]
print("smoke test passed:", "Python", sys.version.split()[0], *versions)
