"""`import fnad` stays light: what compiles, solves, plots, parses or finds files is loaded when it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("optree", "numba", "llvmlite", "scipy", "matplotlib", "jax", "torch")
SLOW = (
    *("asyncio", "decimal", "difflib", "fractions", "json", "logging", "pathlib", "random", "statistics", "string"),
    *("subprocess", "tempfile", "urllib"),
)


LATER = (
    *("fnad.api.functions.explain", "fnad.control.ode", "fnad.control.reroll", "fnad.control.scan"),
    *("fnad.ops.bessel", "fnad.ops.catalogue", "fnad.transforms.cancellation", "fnad.transforms.nonfinite"),
    *("fnad.numpy.scipy_ufuncs", "fnad.transforms.spectral", "fnad.transforms.split"),
)
STEPS = {
    "import fnad; fnad.grad; fnad.numpy": HEAVY + SLOW,
    "fnad.grad(lambda x: numpy.sum(numpy.sin(x) * x))(numpy.ones(3))": LATER,
    "fnad.sparse_jacobian(lambda u: u[1:] * u[:-1])(numpy.arange(9.0))": ("numba",),
}
"""Statements, one after the other, and the modules that they and those before do not load."""


def loaded(*statements: str) -> list[set[str]]:
    """Return the modules that are loaded beyond NumPy's after each of some statements."""
    program = "import sys, numpy\nbefore = set(sys.modules)\n"
    program += "".join(f"{statement}\nprint(*set(sys.modules) - before)\n" for statement in statements)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_programs_load_nothing_heavy_or_slow_that_they_do_not_need() -> None:
    for found, (statement, unwanted) in zip(loaded(*STEPS), STEPS.items(), strict=True):
        assert found.isdisjoint(unwanted), statement


def test_the_command_loads_nothing_heavy() -> None:
    assert loaded("import fnad.cli.command")[0].isdisjoint(HEAVY)


def test_without_a_transform_only_settings_and_the_store_are_loaded() -> None:
    program = """
import sys, fnad
print(*sorted(name for name in sys.modules if name.startswith("fnad.")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    light = ("blocks", "codes", "config", "errors", "forks", "signals", "store", "tracebacks")
    light += ("upward", "version")
    assert done.stdout.split() == [f"fnad.{name}" for name in light]


def test_what_lower_layers_call_upwards_is_there_once_something_is_traced() -> None:
    program = """
import numpy, fnad
from fnad.upward import UPWARD, Upward
fnad.grad(numpy.sum)(numpy.ones(3))
print(*sorted(set(Upward.__annotations__) - set(vars(UPWARD))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_is_imported_later_is_there() -> None:
    """By name in formulas and texts, all of it where all is asked for; several threads may ask at once."""
    program = """
import threading, numpy, fnad
from fnad.ir.primitive import PRIMITIVES
assert "jv" not in PRIMITIVES.declared
assert dir(fnad) == fnad.__all__
found = []
ask = lambda: found.append((PRIMITIVES["jv"].name, len(PRIMITIVES)))
threads = [threading.Thread(target=ask) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert found == 4 * [("jv", len(PRIMITIVES))], found
assert "while_loop" in PRIMITIVES and "nothing" not in PRIMITIVES
for name in fnad.__all__: getattr(fnad, name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_makes_nothing_for_functions_not_met() -> None:
    program = """
import fnad
fnad.grad
from fnad.trace.stand_ins import MADE, standing_for
assert not MADE
assert standing_for(float) is standing_for(float) is not float and [*MADE] == [id(float)]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_functions_of_statistics_are_met_where_the_traced_function_imports_them(tmp_path: Path) -> None:
    program = """
import sys, numpy, fnad
def f(x, y):
    import statistics
    return statistics.stdev([x, y]) * 2.0
def g(x, y):
    from statistics import fmean
    return fmean([x, y * y])
for transform in (lambda f: f, fnad.jit):
    assert numpy.allclose(transform(fnad.grad(f, (0, 1)))(1.0, 4.0), [-2 ** 0.5, 2 ** 0.5])
    assert transform(fnad.grad(g, (0, 1)))(1.0, 4.0) == (0.5, 4.0)
"""
    (tmp_path / "program.py").write_text(program)
    subprocess.run([sys.executable, tmp_path / "program.py"], check=True)


@pytest.mark.slow
def test_numpys_classes_are_there_before_anything_is_traced() -> None:
    program = """
import fnad.numpy as jnp
assert jnp.float32(1).dtype == jnp.dtype(jnp.float32)
assert list(jnp.vectorize(lambda x: x + 1)([1, 2])) == [2, 3]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_module_of_the_users_may_have_the_name_of_one_of_pythons(tmp_path: Path) -> None:
    (tmp_path / "statistics.py").write_text("def mean(x): return 3.0 * x")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import statistics, fnad
assert fnad.grad(lambda x: statistics.mean(x))(1.0) == 3.0
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_garbage_is_collected_as_before() -> None:
    """What the user has frozen stays so, and a collector that is off."""
    program = """
import gc, os, sys, numpy
for before in (lambda: None, gc.freeze, gc.disable):
    if not os.fork():
        before()
        state = gc.isenabled(), gc.get_freeze_count() > 0
        import fnad
        fnad.grad, fnad.numpy
        os._exit(state != (gc.isenabled(), gc.get_freeze_count() > 0))
    assert os.wait()[1] == 0, before
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
