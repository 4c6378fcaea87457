"""What crosses a split: the least total of prices and costs, by brute force too; the same derivatives, to the bit."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

import fnad
from fnad.api.running import derivations
from fnad.backends.cpu.executor import compile_program
from fnad.backends.cpu.target import CPU
from fnad.ir.builder import trace
from fnad.ir.primitive import LOAD
from fnad.ir.program import Program, Var
from fnad.ir.types import F32, F64, Aval
from fnad.ir.verifier import verify
from fnad.ops.arithmetic import add, div, mul, neg
from fnad.ops.conversion import convert
from fnad.ops.elementary import exp, tanh
from fnad.ops.shape import reduce_sum, reverse
from fnad.trace.tracing import trace_function
from fnad.transforms.differentiation import joint
from fnad.transforms.min_cut import SINK, SOURCE, Network
from fnad.transforms.residuals import LONGEST, chosen, price_of
from fnad.transforms.split import partition
from tests.together import in_groups

SEEDS = range(40)


# ---- the minimum cut -------------------------------------------------------------------------------------------------


def random_network(seed):
    random = Random(seed)
    nodes = range(random.randint(2, 8))
    pairs = [(a, b) for a in nodes for b in nodes if a != b and random.random() < 0.5]
    return len(nodes), [(*pair, random.choice([0, 1, 2, 5, 10**30])) for pair in pairs]


def cuts(count, edges):
    """Each set of nodes with the source, and what its cut costs."""
    for rest in product([False, True], repeat=count - 2):
        sides = [True, False, *rest]
        yield sides, sum(capacity for a, b, capacity in edges if sides[a] and not sides[b])


@in_groups("seed", SEEDS)
def test_no_cut_costs_less_and_none_as_little_has_fewer_nodes_with_the_source(seed):
    count, edges = random_network(seed)
    network = Network()
    assert [network.node() for _ in range(count - 2)] == list(range(2, count))
    for edge in edges:
        network.join(*edge)
    found = network.source_side()
    least = min(cost for _, cost in cuts(count, edges))
    ties = [sides for sides, cost in cuts(count, edges) if cost == least]
    assert (found[SOURCE], found[SINK]) == (True, False)
    assert found == [all(sides[i] for sides in ties) for i in range(count)]


# ---- the choice ------------------------------------------------------------------------------------------------------

COSTS = {"add": 1, "mul": 1, "div": 4, "convert": 1, "reverse": 0, "exp": 20, "tanh": 25, "reduce_sum": None}


def random_joint(seed):
    """A program (x, y, ct…) -> (z, ct v…) with some values v of the first part."""
    random = Random(seed)
    count = random.randint(4, 9)

    def parts(*args):
        values, cts = list(args[:2]), args[2:]
        for _ in range(count):
            x, y = random.choice(values), random.choice(values[-4:])
            if x.aval != y.aval:
                x = convert(x, dtype=y.dtype) if x.shape == y.shape else y
            make = random.choice([add, mul, div, exp, tanh, convert, reverse, reduce_sum])
            if make in (exp, tanh):
                values.append(make(y))
            elif make is convert:
                values.append(convert(y, dtype=F32 if y.dtype == F64 else F64))
            elif make is reverse:
                values.append(reverse(y, axes=tuple(range(len(y.shape)))))
            elif make is reduce_sum:
                values.append(reduce_sum(y, axes=(0,)) if y.shape else y * 2)
            else:
                values.append(make(x, y))
        read = random.sample(values, random.randint(1, 3))
        found = [mul(next(ct for ct in cts if ct.aval == value.aval), value) for value in read]
        return [values[-1], *found]

    avals = [Aval(dtype, shape) for dtype in (F64, F32) for shape in ((3,), ())]
    return trace(parts, Aval(F64, (3,)), Aval(F32, (3,)), *avals, name="f")


def has_buffer(program, var):
    """Whether it would be stored again: several read it, one of them elsewhere."""
    readers = [equation for equation in program.equations for atom in {*equation.operands} if atom is var]
    return len(readers) > 1 and any(reader.primitive is reverse for reader in readers)


def total(program, saved, needed):
    """What it costs to save these values and make the needed ones from them; None where that is impossible."""
    makers = {var: equation for equation in program.equations for var in equation.results}
    again, cost, pending = set(), sum(4 * LOAD * var.aval.nbytes for var in saved), list(needed)
    while pending:
        var = pending.pop()
        equation = makers.get(var)
        if var in saved or equation in again:
            continue
        work = None if equation is None else COSTS[equation.primitive.name]
        if work is None:
            return None
        again.add(equation)
        values = equation.results if equation.primitive is reverse else (*equation.results, *equation.operands)
        cost += work * max(value.aval.nbytes for value in values)
        if equation.primitive is not reverse and has_buffer(program, var):
            cost += 2 * LOAD * var.aval.nbytes
        pending += [atom for atom in equation.operands if isinstance(atom, Var)]
    return cost


def early(program):
    """The values that follow from no ct."""
    late = set(program.inputs[2:])
    values = list(program.inputs[:2])
    for equation in program.equations:
        if late.isdisjoint(equation.operands):
            values += equation.results
        else:
            late.update(equation.results)
    return values


@in_groups("seed", SEEDS)
def test_no_choice_has_a_smaller_total(seed):
    program = random_joint(seed)
    parts = partition(program, 2, 1)
    verify(parts.forward)
    verify(parts.backward)
    values = early(program)
    needed = {atom for e in program.equations for atom in e.operands if not {*values}.issuperset(e.results)}
    needed &= {*values}
    totals = {
        tuple(saved): total(program, saved, needed)
        for flags in product([False, True], repeat=len(values))
        for saved in [[value for value, flag in zip(values, flags, strict=True) if flag]]
    }
    found = (*[program.inputs[i] for i in parts.inputs], *parts.forward.outputs[1:])
    least = min(cost for cost in totals.values() if cost is not None)
    assert totals[found] == least
    bytes_of = {saved: sum(v.aval.nbytes for v in saved) for saved, cost in totals.items() if cost == least}
    assert bytes_of[found] == min(bytes_of.values())


def test_the_costs_are_the_targets_and_the_primitives():
    assert CPU.costs.load == LOAD
    assert price_of(Var(Aval(F32, (5,)))) == 4 * LOAD * 20


# ---- functions of users' ---------------------------------------------------------------------------------------------


def saved(f, *args):
    return [(str(each.aval), each.name) for each in residuals(f, *args)]


def residuals(f, *args):
    return fnad.explain(f, *args, memory=True).residuals or ()


X, M = np.linspace(0.1, 2.0, 6), np.ones((6, 6))


def test_a_result_serves_its_own_derivative():
    assert [each.name for each in residuals(lambda x: np.exp(x), X)] == [""]
    assert [str(each.aval) for each in residuals(lambda x: np.exp(x) ** 2, X)] == ["f64[6]"]


def test_arithmetic_and_views_are_computed_again_from_the_argument():
    def flux(u):
        left, right = u[:-1], u[1:]
        return np.sum((right - left) ** 2 / (1 + left * right) + np.maximum(left, right) ** 3)

    assert saved(flux, X) == [("f64[6]", "u")]


def test_masks_are_saved_rather_than_what_is_compared():
    def relu(w, x):
        return np.sum(np.maximum(w @ x, 0.0))

    assert [str(each.aval) for each in residuals(relu, M, X)].count("bool[6]") >= 1
    assert sum(each.nbytes for each in residuals(relu, M, X)) < M.nbytes + 2 * X.nbytes


def derived(f, *avals):
    """The two programs of `vjp` of a function of arrays."""
    program = trace_function(lambda leaves: [f(*leaves)], avals, name="f").program
    return derivations.vjp([i < len(avals) for i in range(len(program.inputs))], 1).derive(program)


def test_constants_are_not_saved():
    def f(x):
        body = lambda s, row: (s * row + 1.0, np.where(row > 0.5, s, 0.0))  # noqa: E731
        return np.sum(fnad.scan(body, np.zeros(6), np.stack([x, x]))[1])

    forward, _ = derived(f, Aval(F64, (6,)))
    follows = set(forward.inputs)
    for equation in forward.equations:
        if not follows.isdisjoint(equation.operands):
            follows.update(equation.results)
    assert follows.issuperset(forward.outputs[1:])


def test_products_draws_and_effects_do_not_run_again():
    calls = []

    def f(key, w, x):
        y = w @ x
        fnad.callback(lambda y: calls.append(1), y)
        noise = fnad.random.normal(key, (6,))
        return np.sum((y * noise) ** 3)

    _, pullback = fnad.vjp(lambda w, x: f(fnad.random.key(3), w, x), M, X)
    pullback(1.0)
    pullback(1.0)
    assert calls == [1]
    _, backward = derived(lambda w, x: f(fnad.random.key(3), w, x), Aval(F64, M.shape), Aval(F64, X.shape))
    names = {equation.primitive.name for equation in backward.equations}
    assert names.isdisjoint({"callback", "philox", "random_normal"})
    assert sum(equation.primitive.name == "dot_general" for equation in backward.equations) <= 2


def choice(make, count=1):
    """The equations of a chain that starts at an argument, and those saved and run again where its end is needed."""
    program = trace(lambda x: [reduce(lambda y, _: make(y), range(count), x)], Aval(F64, (6,)), name="f")
    price = lambda var: 0 if var in program.inputs else price_of(var)  # noqa: E731
    saved, again = chosen(program.equations, Program("second", program.outputs, (), program.outputs), price)
    return program.equations, saved, again


@pytest.mark.parametrize("in_region", [False, True])
def test_what_has_an_effect_never_runs_again_however_cheap(in_region):
    """It costs more than all else together, also where it is in a region, so that the result is saved."""

    def made(effect):
        primitive = replace(neg, name="negated", effect=effect)
        if not in_region:
            return primitive
        region = trace(lambda x: [primitive(x)], Aval(F64, (6,)), name="region")
        around = replace(primitive, effect=False, infer=lambda x, *, regions: x)
        return lambda x: around(x, regions=(region,))

    (equation,), saved, again = choice(made(effect=False))
    assert (saved, again) == ([], {equation})
    (equation,), saved, again = choice(made(effect=True))
    assert (saved, again) == ([*equation.results], set())


@pytest.mark.parametrize("count", [1, LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST + 5])
def test_no_chain_of_more_than_the_longest_runs_again(count):
    equations, saved, again = choice(lambda x: reverse(x, axes=(0,)), count)  # which costs nothing
    ends = [position for position, equation in enumerate(equations) if equation not in again]
    starts = [-1, *ends, count]
    assert max(end - start - 1 for start, end in pairwise(starts)) < LONGEST
    assert [equations[position].results[0] for position in ends if equations[position].results[0] in saved] == saved
    assert len(saved) == (count >= LONGEST)


def test_checkpoint_saves_inputs_alone_with_the_same_gradient():
    def f(x):
        return np.sum(np.exp(np.sin(x)) * np.tanh(x))

    assert len(residuals(f, X)) > 1
    assert saved(fnad.checkpoint(f), X) == [("f64[6]", "x")]
    assert fnad.vjp(f, X)[1](1.0)[0].tobytes() == fnad.vjp(fnad.checkpoint(f), X)[1](1.0)[0].tobytes()


# ---- derivatives -----------------------------------------------------------------------------------------------------


def steps(u, k):
    for _ in range(3):
        flux = k * (u[1:] - u[:-1]) / (1 + u[1:] * u[:-1])
        u = np.concatenate([u[:1], u[1:-1] + flux[1:] - flux[:-1], u[-1:]])
    return np.sum(u**3 * np.exp(-u))


def scanned(u, k):
    def step(s, x):
        return np.tanh(s * k + x * s), s * x / (1 + s * s)

    s, ys = fnad.scan(step, u, np.linspace(0.2, 1.0, 24).reshape(4, 6))
    return np.sum(s * ys)


def gathered(u, k):
    order = np.array([3, 1, 1, 5, 0])
    return np.sum(u[order] * u[::-1][:5] * np.sqrt(k * u[order]) + np.outer(u, u)[0, :5])


@pytest.mark.parametrize("f", [steps, gathered, scanned])
@pytest.mark.parametrize("run", ["interpreter", "compiled"])
def test_pullbacks_and_pushforwards_are_the_derivative(f, run):
    in_python = f if f is not scanned else scanned_in_python
    dx, h = np.cos(3 * X), 1e-200
    slope = np.imag(in_python(X + 1j * h * dx, 0.3)) / h
    gradient = np.array([np.imag(in_python(X + 1j * h * e, 0.3)) / h for e in np.eye(6)])
    with fnad.config.override(executor=run):
        _, pullback = fnad.vjp(lambda x: f(x, 0.3), X)
        _, push = fnad.linearize(lambda x: f(x, 0.3), X)
        for _ in range(2):
            np.testing.assert_allclose(pullback(1.0)[0], gradient, rtol=1e-12)
            np.testing.assert_allclose(push(dx), slope, rtol=1e-12)


def scanned_in_python(u, k):
    ys = []
    for x in np.linspace(0.2, 1.0, 24).reshape(4, 6):
        ys.append(u * x / (1 + u * u))
        u = np.tanh(u * k + x * u)
    return np.sum(u * np.array(ys))


def test_what_runs_again_gives_the_same_bits_but_for_the_order_of_sums():
    size = 1003  # not a multiple of a vector
    values = [np.random.default_rng(2).uniform(0.5, 1.5, size), np.float64(0.3), np.float64(1.0)]
    program = trace_function(lambda leaves: [steps(*leaves)], [Aval(F64, (size,)), Aval(F64)], name="f").program
    whole = joint(program, [True, True], 1)
    found, counts = [], []
    for price in (price_of, lambda _: 0):
        forward, backward, given, residuals = partition(whole, 2, 1, price)
        _, *residual = compile_program(forward)(values[:2])
        found.append(compile_program(backward)([*[values[i] for i in given], *residual, values[2]]))
        counts.append(residuals)
    assert counts[0] < counts[1] / 2
    (again, summed), (saved, summed_saved) = found
    assert again.tobytes() == saved.tobytes()
    np.testing.assert_array_max_ulp(summed, summed_saved, 2)
