"""The functions of `examples/` on the threads of a device, at small sizes: what they give is what the CPU gives.

Where an example prints from within a loop, by a callback, it prints the same. Left out is what SciPy, a plot or the
clients of other packages do.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import random
from fnad.backends.cuda import driver, executor
from tests.cuda.test_executor import assert_close
from tests.edge_cases.ways import DEVICE, device
from tests.gpu import SMALL, Simulated

EXAMPLES = Path(__file__).parents[2] / "examples"
DRAWN = np.random.default_rng(0)
IMAGES, LABELS = DRAWN.random((20, 64)).astype(np.float32), DRAWN.integers(0, 10, 20)
KEY = random.key(0)


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device of few threads, which small arrays keep busy; or that which the tests are asked for."""
    if not DEVICE:
        monkeypatch.setattr(executor, "CUDA", SMALL)
    with device() if DEVICE else driver.using(Simulated(warp=SMALL.grid.warp)):
        yield


def example(name: str, **sizes: Any) -> Any:
    """The module of an example, with other values of its constants."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as missing:  # a machine with a GPU may have the dependencies alone
        if missing.name not in ("matplotlib", "sklearn"):
            raise
        pytest.skip(f"the example needs {missing.name}")
    for constant, value in sizes.items():
        assert hasattr(module, constant), constant
        setattr(module, constant, value)
    return module


def check(f: Any, *args: Any) -> None:
    with fnad.config.override(executor="interpreter"):
        wanted = fnad.jit(f)(*args)
    found = fnad.to_host(fnad.jit(f, device="cuda")(*fnad.to_device(args)))
    for a, b in zip(fnad.tree.leaves(found), fnad.tree.leaves(wanted), strict=True):
        assert (a.dtype, np.shape(a)) == (np.asarray(b).dtype, np.shape(b))
        assert_close(a, b)


def test_exp_sin_on_the_device_is_that_of_the_host() -> None:
    module = example("exp_sin")
    check(lambda x: (fnad.grad(module.f)(x[0]), fnad.grad(fnad.grad(module.f))(x[1])), np.linspace(0.5, 3, 7))
    check(fnad.grad(module.total), np.linspace(0, 3, 7))


def test_vector_output_on_the_device_is_that_of_the_host() -> None:
    module = example("vector_output")
    check(lambda x, weights: (module.f(x), fnad.vjp(module.f, x)[1](weights)), module.x, module.weights)


def test_linear_regression_on_the_device_is_that_of_the_host() -> None:
    module = example("linear_regression")

    def step(model: Any, _: Any) -> Any:
        value, gradient = fnad.value_and_grad(module.loss)(model, module.x[:20], module.y[:20])
        return fnad.tree.map(lambda p, g: p - 0.1 * g, model, gradient), value

    check(lambda model: fnad.scan(step, model, None, length=3), {"weight": np.zeros(3), "bias": np.float64(0)})


@pytest.mark.slow
def test_python_control_flow() -> None:
    """Python decides by values of the device, a path at a time."""
    module = example("python_control_flow")
    for a in (2.0, 9.0, 2.5):
        check(module.slope, a)
    check(module.curvature, 9.0)
    check(fnad.grad(lambda xs: sum(module.huber(x) for x in xs)), np.array([-3.0, 0.5, 2.0]))


@pytest.mark.slow
def test_logistic_regression_on_the_device_is_that_of_the_host() -> None:
    module = example("logistic_regression", train=slice(0, 20))
    check(fnad.value_and_grad(module.loss), DRAWN.standard_normal(31))


@pytest.mark.slow
def test_digits_on_the_device_are_those_of_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    module = example("digits", SIZES=(64, 6, 10), BATCH=5)
    check(module.training(IMAGES[:10], LABELS[:10], IMAGES[16:], LABELS[16:], 2), KEY)
    check_printed_twice(capfd)


@pytest.mark.slow
def test_cnn_on_the_device_is_that_of_the_host() -> None:
    module = example("cnn", CHANNELS=(1, 2, 3), DENSE=12)
    params = module.initial_parameters(DRAWN)
    check(fnad.value_and_grad(module.loss), params, IMAGES[:1].reshape(1, 8, 8), LABELS[:1])


@pytest.mark.slow
def test_char_rnn_on_the_device_is_that_of_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    module = example("char_rnn", UNITS=3, BATCH=2, LENGTH=3, HELD_OUT=0.3)
    check(module.training(DRAWN.integers(0, 4, 12), 4, 5), KEY)
    check_printed_twice(capfd)


@pytest.mark.slow
def test_eight_schools_on_the_device_are_those_of_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    module = example("eight_schools", STEPS=2)
    check(lambda key: module.chain(key, 1, 3), KEY)
    check_printed_twice(capfd)


@pytest.mark.slow
def test_neural_ode_on_the_device_is_that_of_the_host() -> None:
    module = example("neural_ode")

    def total(rates: Any) -> Any:
        params = {"model": rates, "start": module.LOGARITHMS[0]}
        return np.sum(module.path(module.lotka_volterra, params, module.YEARS[:2]))

    check(fnad.value_and_grad(total), np.log([0.5, 0.02, 0.8, 0.02]))


@pytest.mark.slow
def test_burgers_on_the_device_is_that_of_the_host(capfd: pytest.CaptureFixture[str]) -> None:
    module = example("burgers", SIZES=(2, 4, 1), POINTS=4)
    check(module.training(2), KEY)
    check_printed_twice(capfd)


def check_printed_twice(capfd: pytest.CaptureFixture[str]) -> None:
    """Assert that the CPU and the device have printed the same."""
    lines = capfd.readouterr().out.splitlines()
    assert lines
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
