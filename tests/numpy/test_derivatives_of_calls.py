"""Derivatives of array functions: forward mode against central differences of NumPy's own, reverse against forward,
the second derivatives in the same way, and all of it in native code."""

import warnings
from functools import cache

import numpy as np
import optree
import pytest

from fnad.backends.cpu.executor import compile_plan
from fnad.backends.cpu.target import CPU
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import Scalar
from fnad.ir.types import aval_of, is_inexact
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from fnad.ops.autodiff import stop_gradient
from fnad.testing import assert_close, direction, marks, precision, pushforward, tolerance
from fnad.testing.numbers import check_pullback
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import cotangent_avals, joint
from fnad.transforms.jvp import jvp
from fnad.transforms.pipeline import simplify
from tests.numpy.calls import CASES, EINSUM
from tests.targets import OF_LARGE_ARRAYS
from tests.together import in_groups, some_of, together

EINSUM_CASES = {text: (lambda *xs, text=text: np.einsum(text, *xs), *xs) for text, *xs in EINSUM}


def is_smooth(case):
    """Say whether differences tell the derivatives of a call: on wide and finite numbers, and integers beside them."""
    xs = [np.asarray(x) for x in case[1:]]
    kinds = {x.dtype.kind for x in xs}
    return bool(kinds & set("fc")) and all(x.dtype.kind in "biu" or is_wide(x) for x in xs)


def is_wide(x):
    return x.dtype in (np.float64, np.complex128) and np.isfinite(x).all()


ALL = CASES | EINSUM_CASES
DIFFERENTIABLE = {name: case for name, case in ALL.items() if is_smooth(case)}


def inexact(values):
    return [np.asarray(v) for v in optree.tree_leaves(values) if np.asarray(v).dtype.kind in "fc"]


@cache
def program_of(name):
    """Return the program of a call, and its operands with what it captured, which has no derivative."""
    function, *xs = ALL[name]
    xs = [np.asarray(x) for x in xs]
    with warnings.catch_warnings(action="ignore"):
        traced = trace_function(lambda leaves: optree.tree_leaves(function(*leaves)), list(map(aval_of, xs)), name="f")
    given = [*xs, *traced.captured]

    def of_captured(*inputs):
        constants = [stop_gradient(x) if is_inexact(x.dtype) else x for x in inputs[len(xs) :]]
        return inline(traced.program, [*inputs[: len(xs)], *constants])

    return trace(of_captured, *map(aval_of, given)) if traced.captured else traced.program, given


def directions(program, count, seed):
    """Return a direction for each inexact input: random for the first ones, 0 for what is captured."""
    avals = [aval for aval in program.in_avals if aval.dtype.kind in "fc"]
    return [direction(a, seed + i) if i < count else np.zeros(a.shape, a.dtype) for i, a in enumerate(avals)]


def moved(xs, steps, h):
    """Return operands, the inexact ones moved by h times a step each."""
    remaining = iter(steps)
    return [x + h * next(remaining) if np.asarray(x).dtype.kind in "fc" else x for x in xs]


def quotient(run, h=1e-4):
    """Return differences of a function of a step, which return lists; and the relative error to expect of them."""
    for up, down, far, low in zip(run(h), run(-h), run(2 * h), run(-2 * h), strict=True):
        yield (8 * (up - down) - (far - low)) / (12 * h), precision(up.dtype) / h**2


@in_groups("name", DIFFERENTIABLE)
def test_derivatives_of_calls_are_differences(name):
    function, *xs = DIFFERENTIABLE[name]
    program, operands = program_of(name)
    dxs = directions(program, len(xs), 0)

    def values(h):
        with warnings.catch_warnings(action="ignore"):
            return inexact(function(*moved(xs, dxs, h)))

    found = pushforward(interpret, program, operands, dxs)
    for tangent, (expected, allowed) in zip(found, quotient(values), strict=True):
        assert_close(tangent, expected, allowed, scale=1e-2)
    check_pullback(interpret, program, operands, dxs, found)


def step_of(equation):
    """Return the name of a primitive; elementwise ones, each tested alone, are alike."""
    return "elementwise" if isinstance(equation.primitive.lower, Scalar) else equation.primitive.name


def steps(program):
    """Return the names of the primitives of a program."""
    return {step_of(equation) for equation in program.equations}


def pairs(program):
    """Return which primitives make operands for which."""
    makers = {id(result): step_of(equation) for equation in program.equations for result in equation.results}
    return {(makers.get(id(atom)), step_of(equation)) for equation in program.equations for atom in equation.operands}


def has_news(found, known):
    """True if something found is not among what is known, to which it is added."""
    if found <= known:
        return False
    known.update(found)
    return True


DERIVED = set()
"""The pairs of which this process has taken second derivatives."""


@in_groups("name", DIFFERENTIABLE)
def test_second_derivatives_of_calls_are_differences(name):
    """Forward mode over forward mode against differences of the tangents, reverse over forward against it.

    Of calls in which other rules meet than in those before.
    """
    xs = DIFFERENTIABLE[name][1:]
    program, operands = program_of(name)
    if not has_news(pairs(program), DERIVED):
        return
    tangents, dxs, vs = jvp(program, marks(program)), directions(program, len(xs), 0), directions(program, len(xs), 9)

    def values(h):
        return inexact(interpret(tangents, [*moved(operands, vs, h), *dxs]))

    along = [*vs, *[np.zeros_like(dx) for dx in dxs]]
    found = pushforward(interpret, tangents, [*operands, *dxs], along)
    for tangent, (expected, allowed) in zip(found, quotient(values), strict=True):
        assert_close(tangent, expected, allowed, scale=1e-1)
    check_pullback(interpret, tangents, [*operands, *dxs], along, found, order=2)


# ---- native code -----------------------------------------------------------------------------------------------------

TARGETS = ((CPU, steps, set()), (OF_LARGE_ARRAYS, pairs, set()))
"""The targets, each with what a program has to have, and with what has been compiled for it in this process."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "names",
    [list(ALL)[first : first + 150] for first in range(0, len(ALL), 150)],
    ids=lambda names: f"{names[0]} to {names[-1]}",
)
def test_calls_and_gradients_compiled_are_interpreted(names):
    """Value, and gradient where there is one, in native code against the interpreter.

    LLVM's passes, to which loops are alike, are left out: tests of single primitives and random programs run them.
    Of the calls a third are drawn. Each of their primitives is compiled as of small arrays; each pair that meets in
    one, of which there may be one loop, as of large ones.
    """
    with together() as check:
        for name in some_of(names, names[0], len(names) // 3):
            with check(name):
                program, operands = program_of(name)
                target = next((target for target, parts, known in TARGETS if has_news(parts(program), known)), None)
                if target is None:
                    continue
                whole = simplify(joint(program, marks(program)) if name in DIFFERENTIABLE else program)
                cts = cotangent_avals(program) if name in DIFFERENTIABLE else ()
                args = [*operands, *[direction(aval, seed) for seed, aval in enumerate(cts)]]
                check_compiled(whole, args, target)


def check_compiled(program, args, target):
    run = compile_plan(Plan(lower(program, target), target))
    with np.errstate(all="ignore"):
        pairs = zip(run(args), interpret(program, args), strict=True)
    for found, expected in pairs:
        assert found.dtype == expected.dtype
        assert_close(found, expected, tolerance(expected.dtype, 1), scale=1)
