"""`fnad.testing.check` passes what is right, at kinks too, and names what is wrong: operation, line and step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import NonDifferentiableArgumentError
from fnad.ir.builder import trace
from fnad.ir.primitive import Linear, Partials, Primitive, Scalar
from fnad.ir.types import DTYPES, Aval
from fnad.ops.constructors import elementwise_samples
from fnad.ops.elementary import cos, sin
from fnad.testing import Report, check, check_grads, wrong_equation
from fnad.testing.blame import first_prefix
from fnad.testing.check import CheckedPoint, points_of
from fnad.testing.gradients import as_vectors, staged_at
from fnad.testing.truth import Truth, derivative
from fnad.transforms.interpret import interpret
from tests.together import together

X = np.array([0.5, -1.2, 2.0])


@fnad.custom_jvp
def slope(x: Any) -> Any:
    return np.sin(x)


@slope.defjvp
def slope_jvp(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), -np.cos(primals[0]) * tangents[0]


@fnad.custom_vjp
def wave(x: Any) -> Any:
    return np.sin(x)


def wave_back(x: Any, ct: Any) -> Any:
    return (-np.cos(x) * ct,)


wave.defvjp(lambda x: (np.sin(x), x), wave_back)


def in_scan(x: Any) -> Any:
    def step(c: Any, t: Any) -> Any:
        return c * 0.9 + t, fnad.cond(t > 0.5, lambda c: slope(c) * 2.0, np.cos, c)

    return np.sum(fnad.scan(step, x, np.arange(3.0))[1])


def in_cond(x: Any) -> Any:
    return fnad.cond(x > 0.0, lambda x: np.exp(x) * wave(x), lambda x: x, x)


def at_two_points(f: Callable[..., Any], *args: Any) -> Report:
    """The report of `check` on two of its points, which takes a third of the time."""
    g, xs = as_vectors(f, args, {})
    points = [(name, at) for name, at in points_of(xs) if name in {"given", "ties"}]
    return Report(f.__name__, tuple(row for name, at in points for row in CheckedPoint(g, name, at).rows()))


@pytest.fixture(scope="module")
def of_scan() -> Report:
    return at_two_points(in_scan, 0.3)


@pytest.mark.slow
def test_a_wrong_rule_in_a_loop_is_blamed_by_name_line_and_step(of_scan: Any) -> None:
    (blame,) = of_scan.blamed
    assert not of_scan.is_right
    assert blame.primitive == "custom_jvp slope"
    assert str(blame.source).endswith("return np.sin(primals[0]), -np.cos(primals[0]) * tangents[0]")
    assert [step.number for step in blame.steps] == [1]


def test_the_report_is_a_table(of_scan: Any) -> None:
    head, *rows, end, blamed, step, line = str(of_scan).splitlines()
    assert head.split() == ["given", "ties"]
    assert [row.partition("  ")[0] for row in rows] == [
        "traced / plain NumPy",
        "forward / difference",
        "reverse / forward",
        "forward² / difference",
        "reverse forward / forward²",
        "vmap / loop",
        "compiled / interpreter",
        "f32 / f64",
    ]
    assert rows[1].count("FAILED") == 2
    assert "FAILED" not in rows[2]
    assert end.startswith("in_scan: ")
    assert end.endswith(" comparisons failed")
    assert blamed.startswith("to blame: custom_jvp slope: its derivative along a direction is ")
    assert step.startswith("  in step 1 of scan at test_check.py:")
    assert line.startswith("  at test_check.py:")


def blamed(f: Callable[..., Any], *xs: Any) -> str | None:
    """The name and line of what is to blame for the first derivative at a point, without the table."""
    point = CheckedPoint(lambda *xs: np.ravel(f(*xs)), "given", [np.asarray(x) for x in xs])
    rows = [row for row in point.rows() if not row.is_right]
    blame = rows[0].blame
    return None if blame is None else f"{blame.primitive} at {str(blame.source).partition(':  ')[2]}"


@pytest.mark.slow
def test_a_wrong_rule_in_a_branch() -> None:
    assert blamed(in_cond, 0.7) == "custom_vjp wave at return (-np.cos(x) * ct,)"


def test_a_derivative_that_is_stopped() -> None:
    def held(x: Any) -> Any:
        return x * fnad.stop_gradient(np.sin(x))

    assert blamed(held, 0.7) == "stop_gradient at return x * fnad.stop_gradient(np.sin(x))"


def test_a_derivative_that_is_not_finite_where_the_function_is_smooth() -> None:
    def root(x: Any) -> Any:
        return np.sqrt(x**4)

    assert blamed(root, 0.0) == "div at return np.sqrt(x**4)"


def test_f32_that_is_too_short() -> None:
    assert blamed(lambda x: (x + 1e7) * 1e-3 * np.cos(x * 1e6), 0.7) is not None


@pytest.mark.slow
def test_what_is_right_passes_at_kinks_and_where_differences_leave_the_domain() -> None:
    spd = np.diag([2.0, 3.0, 1.5]) + 0.1
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "kinks": (lambda x: np.abs(x) + np.clip(x, -1.0, 1.0) + np.max(x) + np.median(x) + np.linalg.norm(x), (X,)),
        "domain": (np.linalg.cholesky, (spd,)),
        "branch": (lambda x: x * x if x > 0 else -x, (0.5,)),
        "complex": (lambda z: np.sum(np.abs(z) ** 2) + np.real(z[0] ** 2), (X + 1j,)),
        "tree": (lambda w, n, scale: np.tanh(w["a"]) * n * scale, ({"a": X}, 2, 1.5)),
        "f32": (lambda x: np.sum(np.tanh(x) ** 2), (X.astype("f4"),)),
    }
    with together() as checks:
        for name, (f, args) in cases.items():
            with checks(name):
                report = at_two_points(f, *args)
                assert report.is_right, str(report)
                assert sum(not row.skipped for row in report.rows) > 7


def test_all_points_are_checked() -> None:
    report = check(np.sin, 0.5)
    assert report.is_right
    assert report.blamed == ()
    assert str(report).splitlines()[-1] == "sin: all 52 comparisons agree"
    points = ["given", "random 1", "random 2", "zeros", "ties", "small", "large"]
    assert list(dict.fromkeys(row.point for row in report.rows)) == points


@pytest.mark.slow
def test_a_report_says_where_no_derivative_could_be_compared() -> None:
    report = check(lambda x: np.log(x) - 1, -0.5)
    assert report.is_right
    said = "no derivative was compared with differences: give a point where the function is smooth and finite"
    assert str(report).splitlines()[-1] == said
    assert said not in str(check(np.log, 0.5))


def test_integers_have_nothing_to_check() -> None:
    with pytest.raises(NonDifferentiableArgumentError):
        check(lambda n: n, 3)


def test_functions_that_stack_traced_numbers_are_checked() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.array([x[0] * x[1], math.exp(x[0]), float(x[1])]))

    check_grads(f, (X,), order=2)
    assert check(f, X).is_right


def test_check_grads_names_what_is_to_blame() -> None:
    with pytest.raises(AssertionError) as caught:
        check_grads(in_cond, (0.7,), 1)
    assert caught.value.__notes__[0].startswith("to blame is custom_vjp wave")


# ---- programs --------------------------------------------------------------------------------------------------------


def primitive(derivative: Linear | Partials, lower: str = "sin({0})") -> Primitive:
    """A sine, unregistered, with this derivative and this scalar expression."""
    x = DTYPES["f64"]
    return Primitive(
        "my_sin",
        lambda x: x,
        np.sin,
        derivative,
        Scalar(lower),
        lambda: elementwise_samples(frozenset({x}), ((0.1, 0.9),), ()),
        "The sine.",
    )


ROW = Aval(DTYPES["f64"], (3,))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (Partials((lambda y, x: -cos(x),)), "its derivative along a direction is "),
        (Linear(lambda ct, x: (ct,)), "its derivative along a direction is "),
    ],
)
def test_the_first_wrong_equation_of_a_program(wrong: Linear | Partials, what: str) -> None:
    bad = primitive(wrong)
    program = trace(lambda x: [sin(bad(cos(x)))], ROW)
    blame = wrong_equation(program, [X])
    assert blame is not None
    assert blame.primitive == "my_sin"
    assert blame.what.startswith(what)
    assert wrong_equation(trace(lambda x: [sin(cos(x))], ROW), [X]) is None


def test_a_reverse_rule_that_is_not_the_transpose() -> None:
    double = primitive(Linear(lambda ct, x: (ct * 3.0,)))
    object.__setattr__(double, "evaluate", lambda x: 2.0 * x)
    blame = wrong_equation(trace(lambda x: [sin(double(cos(x)))], ROW), [X])
    assert blame is not None
    assert (blame.primitive, blame.what.partition(" is ")[0]) == ("my_sin", "paired with a cotangent, reverse mode")


def test_bisection_finds_the_first_equation_that_differs() -> None:
    program = trace(lambda x: [sin(cos(sin(cos(x) * 2.0)))], ROW)
    for number, equation in enumerate(program.equations):
        tried: list[int] = []

        def differ(prefix: Any, number: int = number, tried: list[int] = tried) -> bool:
            tried.append(len(prefix.equations))
            assert len(interpret(prefix, [X])) == len(prefix.equations)
            return len(prefix.equations) > number

        blame = first_prefix(program, differ, "differs")
        assert blame is not None
        assert blame.equation is equation
        assert len(tried) <= 4
    assert first_prefix(program, lambda _: False, "differs") is None


def test_the_truth_knows_its_limits() -> None:
    at, along = [np.array(0.5)], [np.array(1.0)]
    exact = derivative(lambda x: np.atleast_1d(np.exp(x)), at, along)
    assert isinstance(exact, Truth)
    assert exact.method == "complex step"
    assert abs(exact.value[0] - np.exp(0.5)) < 1e-15
    assert derivative(lambda x: np.atleast_1d(np.abs(x - 0.5)), at, along) == "not smooth"
    assert derivative(lambda x: np.atleast_1d(np.sqrt(x - 0.5)), at, along) == "not finite"
    assert derivative(lambda x: np.atleast_1d(np.floor(x * 2.0)), at, along) == "not smooth"
    by_difference = derivative(lambda x: np.atleast_1d(np.abs(x)), at, along)
    assert isinstance(by_difference, Truth)
    assert by_difference.method == "difference"


@pytest.mark.slow
def test_a_callback_that_announces_a_dtype_is_checked_in_it() -> None:
    @fnad.custom_vjp
    def host_sin(x: Any) -> Any:
        return fnad.callback(np.sin, x, result=fnad.ShapeDtypeStruct((3,), float))

    host_sin.defvjp(lambda x: (host_sin(x), x), lambda x, ct: (ct * np.cos(x),))
    report = at_two_points(lambda x: np.sum(host_sin(x) * x), np.array([0.3, 0.7, 1.1]))
    assert report.is_right
    assert {row.skipped for row in report.rows if row.compared == "f32"} == {"raises CustomRuleError"}


def test_a_reverse_loop_over_a_stack_of_unknown_length_is_not_blamed() -> None:
    def f(x: Any) -> Any:
        return fnad.while_loop(lambda c: c < 9.0, lambda c: c * c * 1.5, x)

    assert wrong_equation(*staged_at(fnad.grad(f), [np.array(1.1)])) is None
