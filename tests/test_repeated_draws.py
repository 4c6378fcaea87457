"""A trace is used again after the same random draws: numbers and states are those of a plain run."""

from __future__ import annotations

import copy
import functools
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import norm

import fnad
from fnad.api.running import reused_traces

Function = Callable[..., Any]

X = np.array([0.3, -0.7, 1.1])
SPREAD = np.array([0.5, 1.0, 2.0])
START = np.random.default_rng(3).bit_generator.state
CALLS = 7
MAKERS = {"generator": np.random.default_rng, "state": np.random.RandomState}


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with fnad.config.override(executor="interpreter"):
        yield


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts the runs of functions."""
    counter = Mock(wraps=reused_traces.stage_in)
    monkeypatch.setattr(reused_traces, "stage_in", counter)
    monkeypatch.setattr(sys, "gettrace", lambda: None)  # coverage is no debugger
    return counter


def state(rng: Any) -> bytes:
    return pickle.dumps(pickle.loads(pickle.dumps(rng)))


def runs_of(f: Function, make: Function, traces: Mock, others: Function = lambda i: ()) -> int:
    """Compare gradients with those of a transform that is new at each call; return how often the function ran."""
    ours, plain, count = make(), make(), 0
    value = expected = (np.nan, None)
    gradient = fnad.value_and_grad(lambda x, *args: f(x, ours, *args))
    for i in range(CALLS):
        before = traces.call_count
        value, slope = gradient(X + 0.1 * i, *others(i))
        count += traces.call_count - before
        expected = fnad.value_and_grad(lambda x, *args: f(x, plain, *args))(X + 0.1 * i, *others(i))
        np.testing.assert_allclose(value, expected[0], rtol=1e-14)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-14)
        assert state(ours) == state(plain)
    numbers = make()
    for i in range(CALLS):
        value = f(X + 0.1 * i, numbers, *others(i))
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    return count


def helper(x: Any, rng: Any) -> Any:
    return x * rng.uniform(0.5, 1.5, 3)


def looped(x: Any, rng: Any) -> Any:
    total = 0.0
    for _ in range(4):
        total = total + np.sum(np.tanh(x * rng.normal(size=3))) * rng.normal()
    return total


def filled(x: Any, rng: Any) -> Any:
    u = np.zeros(3)
    for i in range(3):
        u[i] = x[i] * rng.normal()
    return np.sum(u**2)


def write(u: Any, x: Any) -> None:
    u[0] = x[0] * u[1]


def second_run(x: Any, rng: Any) -> Any:
    u = np.ones(3)
    u *= rng.normal(size=3)
    write(u, x)
    return np.sum(u)


def overwritten(x: Any, rng: Any) -> Any:
    noise = rng.normal(size=3)
    noise[0] = 5.0
    noise *= 2.0
    noise.sort()
    return np.sum(noise * x)


def scaled_by_what_changes(x: Any, rng: Any) -> Any:
    scale = np.array([1.0, 2.0, 3.0])
    noise = rng.normal(0.0, scale)
    scale[0] = 100.0
    return np.sum(noise * scale * x)


def ordinary(x: Any, rng: Any) -> Any:
    noise = np.asarray(rng.normal(size=(3, 3)))
    return np.sum(np.linalg.qr(noise)[0] @ x) + float(np.max(noise)) * x[0]


REPEATED: dict[str, Function] = {
    "array": lambda x, rng: np.sum(np.exp(x * rng.normal(size=3))),
    "number": lambda x, rng: np.sum(np.sin(x * rng.normal())),
    "function": lambda x, rng: np.sum(helper(x, rng)),
    "unused": lambda x, rng: (rng.normal(size=5), np.sum(x**2))[1],
    "loop": looped,
    "filled": filled,
    "second run": second_run,
    "overwritten": overwritten,
    "an argument that changes": scaled_by_what_changes,
    "ordinary": ordinary,
    "float": lambda x, rng: np.sum(x * float(rng.normal(size=()))),
    "dropout": lambda x, rng: np.sum(np.exp(x) * (rng.uniform(size=3) < 0.7) / 0.7),
    "mask": lambda x, rng: np.sum(x[rng.uniform(size=3) < 0.5] ** 2),
    "rows": lambda x, rng: np.sum((np.linspace(-1.0, 1.0, 60).reshape(20, 3)[rng.permutation(20)[:6]] @ x) ** 2),
    "choice": lambda x, rng: np.sum(x[rng.permutation(3)] * SPREAD) + np.sum(x * rng.choice(SPREAD, size=3)),
    "checkpoint": lambda x, rng: fnad.checkpoint(lambda x: np.sum(np.sin(x * rng.normal(size=3))))(x),
    "vmap": lambda x, rng: np.sum(fnad.vmap(lambda v: v**2 * rng.normal())(x)),
    "covariance": lambda x, rng: np.sum(x * rng.multivariate_normal(np.zeros(3), np.eye(3))),
    "name": lambda x, rng: np.sum(x * getattr(rng, "nor" + "mal")(size=3)),
    "identity": lambda x, rng: np.sum(x * rng.normal(size=3)) * (2.0 if rng == rng else 3.0),
    "many numbers": lambda x, rng: np.sum(x) * np.mean(rng.normal(size=40_000)),
    "distribution": lambda x, rng: np.sum(norm.logpdf(x * rng.normal(size=3), 0.0, 1.3)),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", REPEATED)
def test_a_function_that_draws_runs_three_times(name: str, maker: str, traces: Mock) -> None:
    assert runs_of(REPEATED[name], lambda: MAKERS[maker](7), traces) == 3


RUN: dict[str, Function] = {
    "branch": lambda x, rng: np.sum(x**2) if rng.normal() > 0.3 else np.sum(x**3),
    "branch on an element": lambda x, rng: np.sum(x**2) * (2.0 if rng.normal(size=2)[0] > 0.0 else 3.0),
    "shape": lambda x, rng: np.sum(np.ones((int(rng.permutation(4)[0]) + 1, 1)) * x),
    "count": lambda x, rng: sum(np.sum(x**2) for _ in range(int(rng.uniform(1, 4)))),
    "size that is drawn": lambda x, rng: np.sum(x) * np.sum(rng.normal(size=int(rng.uniform(1, 4)))),
    "parameter that is drawn": lambda x, rng: np.sum(x * rng.normal(rng.normal(size=3))),
    "text": lambda x, rng: np.sum(x) * float(f"{rng.normal():.3f}"),
    "key": lambda x, rng: np.sum(x) * next(iter({rng.normal(): 1.0})),
    "caught": lambda x, rng: np.sum(x) * positive(rng),
    "bytes": lambda x, rng: np.sum(x) * rng.bytes(3)[0],
    "choice of a list": lambda x, rng: np.sum(x) * rng.choice([1.0, 2.0]),
    "copy": lambda x, rng: np.sum(x * copy.deepcopy(rng).normal(size=3)) * rng.normal(),
    "pickle": lambda x, rng: np.sum(x * pickle.loads(pickle.dumps(rng)).normal(size=3)) * rng.normal(),
    "method of its class": lambda x, rng: np.sum(x * type(rng).normal(rng, size=3)) * rng.normal(),
    "shuffle": lambda x, rng: (rng.shuffle(order := np.arange(3)), np.sum(x[order] * SPREAD))[1],
    "shuffle of traced values": lambda x, rng: (rng.shuffle(y := x * SPREAD), np.sum(y * SPREAD))[1],
    "library": lambda x, rng: np.sum(x * norm.rvs(size=3, random_state=rng)) * rng.normal(),
    "one made inside": lambda x, rng: np.sum(x * np.random.default_rng(5).normal(size=3)) * rng.normal(),
    "one of the old kind": lambda x, rng: np.sum(x * np.random.RandomState(5).randn(3)) * rng.normal(),
}
OF_GENERATOR: dict[str, Function] = {
    "integers": lambda x, rng: np.sum(np.ones((rng.integers(1, 5), 1)) * x),
    "state": lambda x, rng: np.sum(x * rng.normal(size=3)) * (rng.bit_generator.state["state"]["state"] % 7),
    "set state": lambda x, rng: (setattr(rng.bit_generator, "state", START), np.sum(x * rng.normal(size=3)))[1],
    "raw": lambda x, rng: np.sum(x) * (rng.bit_generator.random_raw() % 11),
    "another on its bits": lambda x, rng: np.sum(x * np.random.Generator(rng.bit_generator).normal(size=3)),
    "spawn": lambda x, rng: np.sum(x * rng.spawn(1)[0].normal(size=3)) * rng.normal(),
    "spawn of its class": lambda x, rng: np.sum(x * type(rng).spawn(rng, 1)[0].normal(size=3)) * rng.normal(),
    "permuted in place": lambda x, rng: np.sum(x * rng.permuted(u := np.arange(3.0), out=u) * rng.normal()),
    "out": lambda x, rng: (rng.standard_normal(out=(u := np.zeros(3))), np.sum(x * u))[1],
}


def positive(rng: Any) -> float:
    try:
        if rng.normal() < 0.0:
            raise ValueError  # noqa: TRY301
    except ValueError:
        return 1.0
    return 2.0 + rng.normal()


@pytest.mark.parametrize("name", [*RUN, *OF_GENERATOR])
def test_what_is_more_than_a_draw_runs_at_each_call(name: str, traces: Mock) -> None:
    assert runs_of((RUN | OF_GENERATOR)[name], lambda: np.random.default_rng(7), traces) >= CALLS
    if name in RUN:
        assert runs_of(RUN[name], lambda: np.random.RandomState(7), traces) >= CALLS


class Model:
    """Draws in a method, from one generator, a partial function and a bound method of another."""

    def __init__(self, seed: int) -> None:
        self.rng, other = np.random.default_rng(seed), np.random.RandomState(seed)
        self.draw, self.table, self.scale = other.normal, {"noise": functools.partial(other.randn, 3)}, 2.0

    def loss(self, x: Any) -> Any:
        noise = self.rng.normal(size=3) + self.table["noise"]()
        return np.sum(np.sin(x * noise) * self.draw()) * self.scale


def test_the_order_of_several_generators_and_what_else_is_read(traces: Mock) -> None:
    def f(x: Any, model: Any) -> Any:
        first = model.loss(x) * np.exp(model.rng.normal())
        return first + model.loss(x * model.draw(size=3))

    assert runs_of(f, lambda: Model(3), traces) == 3
    ours, plain = Model(5), Model(5)
    gradient = fnad.grad(lambda x: f(x, ours))
    for i in range(12):
        if i % 5 == 4:
            ours.scale = plain.scale = float(i)
        if i == 7:
            ours.rng, plain.rng = np.random.default_rng(1), np.random.default_rng(1)
        np.testing.assert_array_equal(gradient(X), fnad.grad(lambda x: f(x, plain))(X))
        assert state(ours.rng) == state(plain.rng)


def test_generators_that_all_share(traces: Mock) -> None:
    def f(x: Any) -> Any:
        return np.sum(x * np.random.normal(size=3)) + np.random.rand() * x[0]  # noqa: NPY002

    gradient = fnad.grad(f)
    np.random.seed(3)  # noqa: NPY002
    found = [gradient(X) for _ in range(CALLS)]
    assert traces.call_count == 3
    plain = np.random.RandomState(3)
    for slope in found:
        np.testing.assert_array_equal(slope, plain.normal(size=3) + plain.rand() * np.array([1.0, 0.0, 0.0]))


def test_a_generator_that_is_an_argument(traces: Mock) -> None:
    rng, plain = np.random.default_rng(1), np.random.default_rng(1)
    gradient = fnad.grad(lambda x, rng: np.sum(x * rng.normal(size=3)))
    for i in range(CALLS):
        np.testing.assert_array_equal(gradient(X, rng), plain.normal(size=3))
        np.testing.assert_array_equal(gradient(X, np.random.default_rng(i)), np.random.default_rng(i).normal(size=3))


@pytest.mark.parametrize("transform", [fnad.jacfwd, fnad.jacrev, fnad.hessian, fnad.laplacian, fnad.vmap])
def test_other_transforms(transform: Function) -> None:
    ours, plain = np.random.default_rng(1), np.random.default_rng(1)

    def f(x: Any, rng: Any) -> Any:
        return np.sum(np.sin(x * rng.normal(size=3)) * rng.normal())

    computed = transform(lambda x: f(x, ours))
    x = np.stack([X, 2.0 * X]) if transform is fnad.vmap else X
    for _ in range(CALLS):
        np.testing.assert_allclose(computed(x), transform(lambda x: f(x, plain))(x), rtol=1e-14)
        assert state(ours) == state(plain)


def test_draws_beside_the_result_are_as_a_run_returns_them() -> None:
    for draw in (
        lambda rng: rng.normal(size=3),
        lambda rng: rng.normal(),
        lambda rng: {"a": 2 * rng.integers(9, size=2)},
    ):
        ours, plain = np.random.default_rng(1), np.random.default_rng(1)
        gradient = fnad.grad(lambda x, ours=ours, draw=draw: (np.sum(x**2), draw(ours)), has_aux=True)
        for _ in range(CALLS):
            found, expected = gradient(X)[1], draw(plain)
            np.testing.assert_equal(found, expected)
            assert type(found) is type(expected)


def test_what_a_run_with_traced_draws_has_stored_is_undone() -> None:
    """The function stores a draw at the third call, where draws are traced."""
    kept, calls = list[Any](), SimpleNamespace(number=0)
    ours, plain = np.random.default_rng(1), np.random.default_rng(1)

    def f(x: Any, number: int) -> Any:
        noise = ours.normal(size=3)
        if number in (2, 5):
            kept.append(noise)
            calls.last = noise
        return np.sum(x * noise)

    gradient = fnad.grad(f)
    for i in range(CALLS):
        noise = plain.normal(size=3)
        np.testing.assert_array_equal(gradient(X, i), noise)
        if i in (2, 5):
            np.testing.assert_array_equal(kept[-1], noise)
            np.testing.assert_array_equal(calls.last, noise)
    assert len(kept) == 2


def test_what_is_shown_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)

    def f(x: Any, number: int) -> Any:
        noise = rng.normal(size=3)
        if number >= 2:
            print(number)
        return np.sum(x * noise)

    gradient = fnad.grad(f)
    for i in range(5):
        gradient(X, i)
    assert capsys.readouterr().out == "2\n3\n4\n"


def test_an_error_behind_a_draw_leaves_the_state_of_one_run() -> None:
    ours, plain, limits = np.random.default_rng(1), np.random.default_rng(1), SimpleNamespace(top=9.0)

    def f(x: Any) -> Any:
        noise = ours.normal(size=3)
        if limits.top < 0.0:
            raise ValueError(limits.top)
        return np.sum(x * noise) * ours.normal()

    gradient = fnad.grad(f)
    for i in range(9):
        limits.top = -1.0 if i in (2, 6) else 9.0
        noise = plain.normal(size=3)
        if limits.top < 0.0:
            with pytest.raises(ValueError, match="-1"):
                gradient(X)
        else:
            np.testing.assert_allclose(gradient(X), noise * plain.normal(), rtol=1e-15)
        assert state(ours) == state(plain)


def test_threads_share_a_generator() -> None:
    rng, found = np.random.default_rng(1), list[Any]()
    gradient = fnad.grad(lambda x: np.sum(x * rng.normal()))

    def run() -> None:
        for _ in range(50):
            found.append(float(gradient(X)[0]))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plain = np.random.default_rng(1)
    assert sorted(found) == sorted(plain.normal() for _ in range(150)) or len(set(found)) == 150


# ---- under jit -------------------------------------------------------------------------------------------------------


def traces_of_jit(f: Function, make: Function, caplog: pytest.LogCaptureFixture) -> int:
    """Compare calls of a compiled function with plain ones; return how often it was traced to the end."""
    ours, plain = make(), make()

    def drawing(x: Any) -> Any:
        return f(x, ours)

    compiled = fnad.jit(drawing)
    caplog.clear()
    for i in range(CALLS):
        found, expected = compiled(X + 0.1 * i), f(X + 0.1 * i, plain)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert np.shape(found) == np.shape(expected)
        assert state(ours) == state(plain)
    return sum("traced drawing" in record.message for record in caplog.records)


@pytest.fixture
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "fnad")


@pytest.mark.usefixtures("_logged")
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", REPEATED)
def test_a_compiled_function_that_draws_is_traced_twice(
    name: str, maker: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert traces_of_jit(REPEATED[name], lambda: MAKERS[maker](7), caplog) == 2


@pytest.mark.usefixtures("_logged")
@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("name", [name for name in RUN | OF_GENERATOR if name != "set state"])
def test_a_compiled_function_that_does_more_than_draw_is_traced_at_each_call(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert traces_of_jit((RUN | OF_GENERATOR)[name], lambda: np.random.default_rng(7), caplog) >= CALLS
    if name in RUN:
        assert traces_of_jit(RUN[name], lambda: np.random.RandomState(7), caplog) >= CALLS


def test_draws_of_compiled_code_are_those_of_a_plain_run() -> None:
    """Native code runs, for arrays, numbers and what is drawn as a result; other reads are compared as ever."""
    ours, plain = Model(3), Model(3)

    def f(x: Any, model: Model) -> Any:
        return model.loss(x), model.rng.normal(size=2), model.draw()

    with fnad.config.override(executor="compiled"):
        compiled = fnad.jit(lambda x: f(x, ours))
        for i in range(40):
            if i % 7 == 6:
                ours.scale = plain.scale = float(i % 3)
            if i == 30:
                ours.rng, plain.rng = np.random.default_rng(1), np.random.default_rng(1)
            found, expected = compiled(X + 0.1 * i), f(X + 0.1 * i, plain)
            for ours_, plain_ in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours_, plain_, rtol=1e-14)
            assert state(ours.rng) == state(plain.rng)
    assert len({path.runs for path in compiled.paths()}) > 1


def test_a_training_step_of_a_method_under_jit_draws_at_each_call() -> None:
    class Net:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(2)

        @fnad.jit
        def step(self, w: Any) -> Any:
            def loss(w: Any) -> Any:
                return np.sum(np.tanh(w * (self.rng.uniform(size=3) < 0.5)))

            return w - 0.1 * fnad.grad(loss)(w)

    net, plain = Net(), np.random.default_rng(2)
    w = expected = X
    for _ in range(9):
        kept = plain.uniform(size=3) < 0.5
        expected = expected - 0.1 * kept / np.cosh(expected * kept) ** 2
        w = net.step(w)
        np.testing.assert_allclose(w, expected, rtol=1e-13)


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_what_a_compiled_function_has_changed_besides_is_undone() -> None:
    ours, plain, calls = np.random.default_rng(1), np.random.default_rng(1), list[int]()

    def f(x: Any) -> Any:
        noise = ours.normal(size=3)
        calls.append(len(calls))
        return np.sum(x * noise)

    compiled = fnad.jit(f)
    for i in range(5):
        np.testing.assert_allclose(compiled(X), np.sum(X * plain.normal(size=3)), rtol=1e-14)
        assert state(ours) == state(plain)
        assert calls == list(range(i + 1))


# ---- integers that vary ----------------------------------------------------------------------------------------------


def test_a_step_that_nothing_uses_may_be_any(traces: Mock) -> None:
    def f(x: Any, rng: Any, step: int) -> Any:
        return helper_of_step(x, step) * rng.normal()

    def helper_of_step(x: Any, step: int) -> Any:
        parts = {"step": [step]}
        return np.sum(x**2) if parts else step

    assert runs_of(f, lambda: np.random.default_rng(1), traces, lambda i: (i,)) == 3
    gradient = fnad.grad(lambda x, step, scale=1: np.sum(x) * scale)
    before = traces.call_count
    for i in range(CALLS):
        np.testing.assert_array_equal(gradient(X, i, scale=1 + i // 5), np.ones(3) * (1 + i // 5))
    assert traces.call_count == before + 6  # with a run in vain where both vary
    for other in (True, 2.0, "a", None):
        np.testing.assert_array_equal(gradient(X, other, scale=1), np.ones(3))


STEPS: dict[str, Function] = {
    "factor": lambda x, rng, step: np.sum(x) * step * rng.normal(),
    "branch": lambda x, rng, step: np.sum(x) * (rng.normal() if step % 2 else 2.0),
    "size": lambda x, rng, step: np.sum(x) * np.sum(rng.normal(size=step + 1)),
    "text": lambda x, rng, step: np.sum(x) * len(f"{10**step}") * rng.normal(),
    "class": lambda x, rng, step: np.sum(x) * (3.0 if isinstance(step, int) and type(step) is int else rng.normal()),
    "seed": lambda x, rng, step: np.sum(x * np.random.default_rng(step).normal(size=3)) * rng.normal(),
    "key": lambda x, rng, step: np.sum(x) * {i: i for i in range(9)}[step] * rng.normal(),
    "exponent": lambda x, rng, step: np.sum(x**step) * rng.normal(),
    "index": lambda x, rng, step: x[step % 3] * rng.normal(),
    "identity": lambda x, rng, step: np.sum(x) * (1.0 if step is None else rng.normal()),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_is_used_is_the_one_of_the_call(name: str, traces: Mock) -> None:
    runs_of(STEPS[name], lambda: np.random.default_rng(1), traces, lambda i: (i,))


def test_an_integer_that_alternates_has_a_trace_of_each_value(traces: Mock) -> None:
    gradient = fnad.grad(lambda x, n: np.sum(x**n))
    for i in range(12):
        np.testing.assert_allclose(gradient(X, 2 + i % 2), 2 * X if i % 2 == 0 else 3 * X**2)
    assert traces.call_count == 4  # one for each value, after the first call and one in vain


def test_what_is_differentiated_beside_floats_varies_too(traces: Mock) -> None:
    gradient = fnad.grad(lambda p: np.sum(p["x"] ** 2) * p["n"])
    for i in range(CALLS):
        np.testing.assert_allclose(gradient({"x": X, "n": i})["x"], 2 * X * i)


# ---- objects of SciPy ------------------------------------------------------------------------------------------------


def test_objects_of_scipy_are_compared(traces: Mock) -> None:
    from scipy.interpolate import CubicSpline  # noqa: PLC0415

    spline, shape = CubicSpline(np.arange(4.0), np.array([0.0, 1.0, 0.0, 2.0])), norm(0.0, 2.0)
    gradient = fnad.grad(lambda x: np.sum(spline(x)) + np.sum(shape.logpdf(x)))
    for i in range(9):
        if i == 4:
            spline.c[:] *= 2.0
        if i == 6:
            shape.args = (0.0, 3.0)
        expected = spline.derivative()(X) - X / shape.args[1] ** 2
        np.testing.assert_allclose(gradient(X), expected, rtol=1e-12)
    assert traces.call_count == 4
