"""Numerical code as it is written in plain NumPy, differentiated as it stands: loops, buffers, views, chosen indices.

The gradients of each piece in `examples/numpy_code` are compared with those of NumPy alone: by the complex step where
the code is holomorphic, else by differences. Reverse and forward mode, in the interpreter or compiled, which is drawn.
Two that are drawn are run on a simulated device, too.
"""

from __future__ import annotations

import importlib.util
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fnad import config, grad, jit, jvp, to_host, value_and_grad
from tests.gpu import simulated
from tests.together import some_of

FOLDER = Path(__file__).parents[1] / "examples" / "numpy_code"
Function = Callable[..., Any]
Gradient = Callable[[Function, tuple[Any, ...]], list[Any]]


def load(name: str, source: str | None = None) -> ModuleType:
    """Return one of the pieces as a module of its own, from other source if that is given."""
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source or path.read_text(), path, "exec"), vars(module))
    return module


# ---- derivatives by NumPy alone --------------------------------------------------------------------------------------


def elementwise(slope: Callable[[Function], Any], f: Function, xs: tuple[Any, ...], dtype: type) -> list[Any]:
    """Return the gradient; `slope` takes a function of a shift of one element."""
    gradients: list[Any] = []
    for k, x in enumerate(xs):
        gradient = np.zeros(np.shape(x))
        for i in np.ndindex(gradient.shape):

            def at(shift: Any, k: int = k, x: Any = x, i: tuple[int, ...] = i) -> Any:
                moved = np.array(x, dtype)
                moved[i] += shift
                rest = [np.array(other, dtype)[()] for other in xs]
                return f(*rest[:k], moved[()], *rest[k + 1 :])

            gradient[i] = slope(at)
        gradients.append(gradient)
    return gradients


def complex_step(f: Function, xs: tuple[Any, ...]) -> list[Any]:
    """Return the gradient by Im f(x + ih) / h, exact to rounding."""
    return elementwise(lambda at: np.imag(at(1e-30j)) / 1e-30, f, xs, complex)


def differences(h: float) -> Gradient:
    """Return the gradient by central differences of fourth order with steps h and 2h."""

    def slope(at: Function) -> Any:
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    return lambda f, xs: elementwise(slope, f, xs, float)


# ---- the ten pieces --------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A function of floats, where it is differentiated, by what the truth is found, and how near to it to come."""

    f: Function
    xs: tuple[Any, ...]
    truth: Gradient = complex_step
    rtol: float = 1e-12


def cavity_flow(m: ModuleType) -> Case:
    u, v, _ = m.cavity(np.sin(np.linspace(0.0, 3.0, 6)), 0.1, steps=2, sweeps=2)
    wanted = np.stack([u, v])
    f = lambda lid, viscosity: m.misfit(lid, viscosity, wanted, steps=2, sweeps=2)  # noqa: E731
    return Case(f, (np.linspace(0.3, 0.8, 6), 0.12), differences(1e-4), 1e-9)


def n_body(m: ModuleType) -> Case:
    target = np.array([0.2, 1.2])

    def f(throw: Any, *system: Any) -> Any:
        path, drift = m.launch(throw, *system, steps=2)
        return np.sum((path[-1] - target) ** 2) + drift

    return Case(f, (np.array([0.5, 0.4]), *m.system()))


def kalman_filter(m: ModuleType) -> Case:
    track = m.example_track(5)
    f = lambda log_noise, start: m.surprise(log_noise, start, track)  # noqa: E731
    return Case(f, (np.array([0.1, -0.2]), np.array([0.0, 0.1, 2.0, 0.1])), differences(1e-3), 1e-8)


def gaussian_process(m: ModuleType) -> Case:
    def f(lengths: Any, heights: Any, noise: Any, x: Any, y: Any) -> Any:
        parameters = {"lengths": lengths, "heights": heights, "noise": noise}
        return m.evidence(parameters, x, y) - m.leave_one_out(parameters, x, y)

    return Case(f, (*m.start().values(), *m.example_data(5)), differences(1e-3), 1e-8)


def lu_pivoting(m: ModuleType) -> Case:
    matrix, right, wanted = m.example_system(4)
    f = lambda matrix, right: m.residual(matrix, right, wanted) + m.determinant(matrix)  # noqa: E731
    return Case(f, (matrix, right))


def ray_spheres(m: ModuleType) -> Case:
    lamp, scene = np.array([2.0, 4.0, -3.0]), m.example_scene()
    picture = m.render(scene, lamp, 12, 8)

    def f(centre: Any, radius: Any, albedo: Any, lamp: Any) -> Any:
        return m.mismatch({"centre": centre, "radius": radius, "albedo": albedo}, lamp, picture)

    xs = (scene["centre"] + 0.01, 0.98 * scene["radius"], np.full(3, 0.5), lamp + 0.1)
    return Case(f, xs, differences(1e-6), 1e-7)  # no outline of a sphere or a shadow crosses a pixel within the step


def heat_thomas(m: ModuleType) -> Case:
    conductivity = np.linspace(0.5, 0.8, 5)
    record = m.conduct(conductivity, np.zeros(6), 1.0, 0.05, 2)
    f = lambda conductivity, initial, warm_end: m.misfit(conductivity, initial, warm_end, record)  # noqa: E731
    return Case(f, (conductivity + 0.1, np.linspace(0.0, 1.0, 6) ** 2, 1.2))


def wave_inversion(m: ModuleType) -> Case:
    speed, dt, source_at = m.true_speed(8), 0.1, 2
    _, record, _ = m.propagate(speed, dt, 6, source_at)

    def f(speed: Any) -> Any:
        now, _, energy = m.propagate(speed, dt, 6, source_at)
        return m.misfit(speed, record, dt, source_at) + 100 * np.sum(now**2) + energy[-1]

    return Case(f, (np.ones(8),), differences(1e-3), 1e-8)


def k_means(m: ModuleType) -> Case:
    points = m.example_points(12)
    f = lambda points, weights: m.quality(points, weights, 3, steps=2)  # noqa: E731
    return Case(f, (points, np.linspace(0.5, 1.5, 12)), differences(1e-3), 1e-8)


def image_warp(m: ModuleType) -> Case:
    image = m.example_image(8)
    target = m.warp(image, np.array([0.1, 0.05, 0.0, 0.4, -0.3]))
    return Case(m.difference, (np.array([0.03, 0.02, 0.01, 0.2, -0.1]), image, target), differences(1e-4), 1e-8)


CASES: dict[str, Callable[[ModuleType], Case]] = {
    case.__name__: case
    for case in (
        cavity_flow,
        gaussian_process,
        heat_thomas,
        image_warp,
        k_means,
        kalman_filter,
        lu_pivoting,
        n_body,
        ray_spheres,
        wave_inversion,
    )
}

PRINTED: dict[str, tuple[str, float, float]] = {
    "cavity_flow": ("misfit", 0.0, 1e-12),
    "gaussian_process": ("evidence", -10.0, 10.0),
    "heat_thomas": ("at the start,", 0.0, 1e-5),
    "image_warp": ("difference", 0.0, 1e-4),
    "k_means": ("objective", 0.0, 0.3),
    "kalman_filter": ("-log L", 0.0, 30.0),
    "lu_pivoting": ("condition", 1.0, 6.0),
    "n_body": ("misses by", 0.0, 0.02),
    "ray_spheres": ("mismatch", 0.0, 1e-4),
    "wave_inversion": ("misfit", 0.0, 1e-3),
}
"""A label that the piece prints, and the bounds of the last number after it."""

pieces = pytest.mark.parametrize("name", CASES)


def test_every_piece_is_here() -> None:
    assert set(CASES) == set(PRINTED) == {path.stem for path in FOLDER.glob("*.py")}


@pieces
def test_fifty_lines_or_more(name: str) -> None:
    _, _, code = (FOLDER / f"{name}.py").read_text().split('"""', 2)
    assert len([line for line in code.splitlines() if line.strip()]) >= 50


@pytest.mark.slow
@pieces
def test_gradients_of_numpy_code_are_true(name: str) -> None:
    case = CASES[name](load(name))
    gradient = case.truth(case.f, case.xs)
    directions = tuple(np.cos(1.0 + np.arange(np.size(x))).reshape(np.shape(x))[()] for x in case.xs)
    along = sum(np.sum(g * dx) for g, dx in zip(gradient, directions, strict=True))
    largest = max(np.max(np.abs(g)) for g in gradient)
    reached = sum(np.sum(np.abs(g * dx)) for g, dx in zip(gradient, directions, strict=True))

    def derivatives(*xs: Any) -> Any:
        return value_and_grad(case.f, tuple(range(len(xs))))(*xs), jvp(case.f, xs, directions)

    def check(f: Function) -> None:
        (value, parts), (primal, tangent) = f(*case.xs)
        assert_allclose([value, primal], case.f(*case.xs), rtol=1e-12)
        for part, expected in zip(parts, gradient, strict=True):
            assert_allclose(part, expected, rtol=case.rtol, atol=case.rtol * largest)
        assert_allclose(tangent, along, rtol=case.rtol, atol=case.rtol * reached)

    executor = random.Random(name).choice(["interpreter", "compiled"])
    with config.override(executor=executor):
        check(derivatives if executor == "interpreter" else jit(derivatives))


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of([*CASES], "device"))
def test_on_the_threads_of_a_device(name: str) -> None:
    case = CASES[name](load(name))
    derivatives = jit(value_and_grad(case.f, tuple(range(len(case.xs)))))
    with config.override(executor="interpreter"):
        value, gradient = derivatives(*case.xs)
    with simulated(), config.override(device="cuda", executor="compiled"):
        found, parts = to_host(derivatives(*case.xs))
    assert_allclose(found, value, rtol=1e-12)
    largest = max(np.max(np.abs(g)) for g in gradient)
    for part, expected in zip(parts, gradient, strict=True):
        assert_allclose(part, expected, rtol=1e-10, atol=1e-12 * largest)


@pieces
def test_one_import_makes_no_difference_to_numpy(name: str) -> None:
    case = CASES[name](load(name))
    source = (FOLDER / f"{name}.py").read_text()
    plain = CASES[name](load(name, source.replace("import fnad.numpy as np", "import numpy as np")))
    assert case.f(*case.xs) == plain.f(*plain.xs)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of([*CASES], "prints", 5))
def test_what_it_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(name).main()
    label, low, high = PRINTED[name]
    found = re.findall(re.escape(label) + r"\s*(-?\d+\.?\d*(?:e[+-]?\d+)?)", capsys.readouterr().out)
    assert low <= float(found[-1]) <= high


# ---- arguments that are not differentiated ---------------------------------------------------------------------------


def ways(f: Function) -> list[Function]:
    return [grad(f), jit(grad(f)), grad(jit(f)), lambda *args: value_and_grad(f)(*args)[1]]


def test_a_copy_of_an_argument_takes_a_traced_value() -> None:
    def f(x: float, start: Any) -> Any:
        u = start.copy()
        for i in range(1, len(u)):
            u[i] = u[i - 1] * x
        return u.sum()

    start = np.array([2.0, 5.0, 7.0])
    for gradient in ways(f):
        assert gradient(3.0, start) == 2 * (1 + 2 * 3)
    np.testing.assert_array_equal(start, [2.0, 5.0, 7.0])


def test_an_argument_is_written_to() -> None:
    def f(x: float, u: Any) -> Any:
        u[0] = 1.0
        u[1:] *= x
        u[1] += x
        return (u**2).sum()

    u = np.array([2.0, 5.0, 7.0])
    for gradient in ways(f):
        assert gradient(3.0, u) == 2 * (18 * 6 + 21 * 7)
    np.testing.assert_array_equal(u, [2.0, 5.0, 7.0])


def test_a_table_is_read_at_a_traced_index() -> None:
    def f(x: Any, table: Any) -> Any:
        i = np.floor(x).astype(int)
        return np.sum(table["value"][i] + table["slope"][i] * (x - i))

    table = {"value": np.array([0.0, 1.0, 4.0, 9.0]), "slope": np.array([1.0, 3.0, 5.0, 7.0])}
    for gradient in ways(f):
        np.testing.assert_array_equal(gradient(np.array([0.5, 2.25]), table), [1.0, 5.0])


def test_a_function_may_decide_on_its_other_arguments() -> None:
    def f(x: float, data: Any) -> Any:
        return sum(x**2 * value for value in data if value > 0)

    assert grad(f)(3.0, np.array([1.0, -1.0, 2.0])) == 18
