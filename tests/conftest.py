"""Fixtures: golden files, and the ways to run a program; and how hypothesis draws.

A text is compared with the golden file of its name under `tests/golden`; `pytest --update-golden` writes the files
anew, and the difference then stands in version control, to be read.

Hypothesis draws the same examples in every run, so that a change alone can make a test fail; others are drawn by
`--hypothesis-profile=fresh --hypothesis-seed=N`.

A machine with a GPU may have pytest and none of the other packages for tests, which `test_gpu.py` does without.

With `FNAD_TEST_NARROW=1` native code is that of a processor whose vectors have 16 bytes, without a library of functions
of vectors, as on ARM64 and where there is no glibc.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # one process a core, whose BLAS threads would only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it when it is imported

if "FNAD_TEST_NARROW" in os.environ:
    llvm.get_host_cpu_name = lambda: "x86-64"
    llvm.get_host_cpu_features = lambda: llvm.FeatureMap({"sse4.1": True})

    def load(name: str, load_any: Callable[[str], None] = llvm.load_library_permanently) -> None:
        if "mvec" in name:
            raise RuntimeError(name)
        load_any(name)

    llvm.load_library_permanently = load

if sys.dont_write_bytecode:  # each process of a test would compile all that it imports
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

os.environ["FNAD_CACHE_DIR"] = ""  # what a test compiles it compiles itself, in processes of its own too

from fnad import config
from fnad.api.functions.jit import Compiled
from fnad.backends import tiers
from fnad.backends.background import Background
from fnad.backends.cpu import families
from fnad.testing import EXECUTORS, Run
from tests import together
from tests.plain_code import compile_plainly

gc.set_threshold(10_000, 20, 100)

GOLDEN = Path(__file__).parent / "golden"

collect_ignore = ["distributed_program.py"]  # it is started under MPI

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass
else:
    settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("fresh", settings.get_profile("fixed"), derandomize=False, database=None, print_blob=True)
    settings.load_profile("fixed")

OPTIONS = {"xdist": ("--numprocesses", "--dist"), "timeout": ("--timeout",)}
"""What is asked of plugins, by their names; without them it is accepted and does nothing."""

SETTINGS = {"timeout": ("timeout", "timeout_method")}
"""The same in pyproject.toml."""


def pytest_configure(config: pytest.Config) -> None:
    """Set what sweeps draw by, and make groups of one case with `--quick`.

    On ARM64 leave out warnings of OpenBLAS at small finite matrices.
    """
    together.DRAW = config.getoption("--draw")
    if config.getoption("--quick"):
        together.SIZE = 1
    if platform.machine() in ("aarch64", "arm64"):
        config.addinivalue_line("filterwarnings", "ignore:.* encountered in (matmul|det):RuntimeWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One process where files are named, for workers would take longer to start; else one a core."""
    return 0 if all(".py" in argument for argument in config.args) else None


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    for plugin, options in OPTIONS.items():
        if not pluginmanager.hasplugin(plugin):
            for name in options:
                parser.addoption(name, help=f"nothing without pytest-{plugin}")
            for name in SETTINGS.get(plugin, ()):
                parser.addini(name, help=f"nothing without pytest-{plugin}")
    parser.addoption("--update-golden", action="store_true", help="write the golden files from what the tests produce")
    parser.addoption("--draw", default="", help="draw other cases of sweeps, by a word; with `all` make every case")
    parser.addoption("--quick", action="store_true", help="run the first case of every test that is not marked slow")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no other case than the first of each test with `--quick`."""
    if metafunc.config.getoption("--quick"):
        parametrize = metafunc.parametrize

        def first(names: Any, values: Iterable[Any], *args: Any, ids: Any = None, **options: Any) -> None:
            ids = [*ids][:1] if ids is not None and not callable(ids) else ids
            parametrize(names, [*values][:1], *args, ids=ids, **options)

        metafunc.parametrize = first


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        firsts = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        chosen = {item for item in firsts.values() if not item.get_closest_marker("slow")}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def pytest_collection_finish() -> None:
    leave_out()


def leave_out() -> None:
    """Leave what there is out of all later garbage collections; one of all the tests takes half a second."""
    # Hypothesis looks for what refers to its generator, which is not found any more once it is left out.
    with suppress(ImportError), import_module("hypothesis.internal.entropy").deterministic_PRNG():
        pass
    gc.collect()
    gc.freeze()


IN_BACKGROUND, IS_HEAVY = Background.compile, tiers.TieredProgram.is_heavy


@pytest.fixture(autouse=True, scope="session")
def _tiers_without_time() -> Iterator[None]:
    """Let no program become hot by the clock: it would be compiled here and interpreted there, as the load is.

    Functions under `jit` are compiled at their first call, so that one call shows what native code does. No call goes
    on while the background compiles, for the same reason.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Background, "compile", lambda self, program: program.compile_in_background())
        patch.setattr(tiers, "perf_counter", lambda: 0.0)
        patch.setattr(tiers.TieredProgram, "is_heavy", True)
        yield


@pytest.fixture
def compiled_in_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs be compiled in the background, and none at its first call."""
    monkeypatch.setattr(Background, "compile", IN_BACKGROUND)
    monkeypatch.setattr(tiers.TieredProgram, "is_heavy", False)


@pytest.fixture
def by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs be compiled at their first call if they are heavy."""
    monkeypatch.setattr(tiers.TieredProgram, "is_heavy", IS_HEAVY)


@pytest.fixture
def by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs become hot by the time that they took."""
    monkeypatch.setattr(tiers, "perf_counter", perf_counter)


OPTIMISED = {
    *("backends", "cli", "exports", "kernel", "ops", "random"),
    *("test_closed_forms.py", "test_disk.py", "test_export.py", "test_extremes.py", "test_forks.py", "test_log.py"),
    *("test_profile.py", "test_random_programs.py", "test_tiers.py"),
}
"""Folders and files of tests whose programs LLVM optimises; others check rules, and it would take half of the time."""

PLAIN = {
    *("test_asymptotic.py", "test_control.py", "test_draws.py", "test_families.py", "test_fourier.py"),
    *("test_linalg.py", "test_pool.py", "test_positions.py", "test_random_rows.py", "test_sorting.py"),
    *("test_tails.py", "test_threads.py", "test_zero_size.py"),
}
"""Files in these folders whose programs are not optimised: they check fnad's loops and formulas, or calls of LAPACK."""

PLAIN_FAMILIES: WeakValueDictionary[str, families.Family] = WeakValueDictionary()
"""The code that the other tests have compiled, which these do not take."""


@pytest.fixture(autouse=True, scope="module")
def _compiled_plainly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile the programs of most tests without LLVM's passes."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name in PLAIN or OPTIMISED.isdisjoint((request.path.name, request.path.parent.name)):
            patch.setattr(families, "compile_kernel", compile_plainly)
            patch.setattr(families, "_FAMILIES", PLAIN_FAMILIES)
        yield


@pytest.fixture(autouse=True, scope="session")
def _compiled_anew() -> Iterator[None]:
    """Compile a function anew at each `jit(f)`: tests change how it is compiled, and several have one function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "is_shared", False)
        yield


INTERPRETED = {"control", "nn", "numpy", "optim", "scipy", "trace", "test_user_arguments.py", "test_user_tracing.py"}
"""Folders and files whose programs are interpreted unless a test sets the executor.

They test the front end and control flow, of which `tests/backends/test_control.py` checks what is compiled, and SciPy
by its own names, of which single tests set the executor.
"""


@pytest.fixture(autouse=True, scope="module")
def _interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile nothing that need not be compiled."""
    is_compiled = INTERPRETED.isdisjoint((request.path.name, request.path.parent.name))
    with nullcontext() if is_compiled else config.override(executor="interpreter"):
        yield


@pytest.fixture(autouse=True, scope="module")
def _few_objects() -> None:
    """Leave out of garbage collections what earlier tests have made."""
    leave_out()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return `check(name, text)`, which compares a text with `tests/golden/<name>.txt`."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            file.write_text(text.rstrip("\n") + "\n")
        assert file.exists(), f"there is no {file.name}: write it by pytest --update-golden"
        assert text.rstrip("\n") == file.read_text().rstrip("\n")

    return check


@pytest.fixture(params=EXECUTORS)
def run(request: pytest.FixtureRequest) -> Run:
    """Return `run(program, arrays)`, one of the ways to run a program after the other."""
    return EXECUTORS[request.param]
