"""Type checkers read fnad's names and signatures: mypy and pyright reject the lines marked `# no`, and no others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

USE = """\
from typing import Any
import fnad
import numpy as np

def loss(w: np.ndarray[Any, Any], x: float, *, square: bool = False) -> float:
    return float(np.sum(w * x))

w = np.ones(3)
for transform in (fnad.grad, fnad.value_and_grad, fnad.jacfwd, fnad.jacrev, fnad.jacobian, fnad.hessian):
    transform(loss)(w, 1.0, square=True)
fnad.grad(loss)(w)  # no
fnad.grad(loss)(w, 1.0, sqare=True)  # no
fnad.value_and_grad(loss)(w)  # no
fnad.jacobian(loss)(w, "1")  # no
fnad.jit(loss)(w)  # no
fnad.jit(loss, static_argnames="square")(w, 1.0, square=True).real
fnad.jit(loss)(w, 1.0).inag  # no
fnad.jit(fnad.grad(loss, argnums=(0, 1)))(w, 1.0)
fnad.jit(fnad.grad(loss))(w)  # no
fnad.jit(loss).lower(w, 1.0).compile()
fnad.jit(loss).loewr(w, 1.0)  # no
fnad.jit(np.sin)(1.0), fnad.grad(np.sin)(1.0), fnad.jit(lambda x: x + 1)(1.0)
fnad.vmap(loss, in_axes=(0, None))(np.ones((2, 3)), np.ones(2))
fnad.vmap(loss, in_axis=0)  # no
fnad.grad(loss, argnum=1)  # no
fnad.sparse_hessian(loss)(w, 1.0), fnad.sparse_hessian(loss).sparsity(w, 1.0)

@fnad.grad(argnums=1)
def slope(x: float, y: float) -> float:
    return x * y

slope(1.0, 2.0)
slope(1.0)  # no

class Model:
    @fnad.jit
    def value(self, x: float) -> float:
        return x

    @fnad.grad
    def slope(self, x: float) -> float:
        return x

    @staticmethod
    @fnad.jit(static_argnums=1)
    def power(x: float, n: int) -> float:
        return x**n

Model().value(1.0), Model().slope(1.0), Model.power(1.0, 2)
Model().slope()  # no
fnad.gard(loss)  # no
fnad.config.set_default(threads=1)
fnad.config.set_defalt(threads=1)  # no
fnad.optim.adam(1e-3), fnad.nn.relu(w), fnad.random.key(0), fnad.tree.leaves(w)
fnad.scipy.special.erf(w), fnad.numpy.sin(w)
fnad.optim.adamm(1e-3)  # no
fnad.nn.rulu(w)  # no
fnad.random.kye(0)  # no
fnad.tree.leafs(w)  # no
fnad.scipy.specail  # no
"""
INTERNAL = ("backends", "control", "ir", "kernel", "lower", "numpy", "ops", "scalar", "trace", "transforms")
SKIPPED = f"[mypy]\n[mypy-scipy.*,{','.join(f'fnad.{name}.*' for name in INTERNAL)}]\nfollow_imports = skip\n"
"""What mypy does not read, for it would take ten times as long; pyright reads it."""

CHECKERS = {"mypy": ["--no-incremental", "--cache-dir=/dev/null"], "pyright": ["--pythonpath", sys.executable]}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_reject_what_is_wrong_and_only_that(checker: str, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    use = tmp_path / "use.py"
    use.write_text(USE)
    (tmp_path / "mypy.ini").write_text(SKIPPED)
    command = [sys.executable, "-m", checker, *CHECKERS[checker], str(use)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    rejected = {int(line) for line in re.findall(r"use\.py:(\d+):.*error", done.stdout)}
    wrong = {n for n, line in enumerate(USE.splitlines(), 1) if line.endswith("# no")}
    assert rejected == wrong, done.stdout + done.stderr
