"""Arrays of numpy.ma on traced values: data, mask and filled array are numpy.ma's, derivatives are differences."""

from __future__ import annotations

import copy
import operator
from functools import partial

import numpy as np
import pytest
from numpy import ma
from numpy.ma import masked_where as bound_before

import fnad
from fnad.errors import FnadError
from tests.trace.test_opening import differences

X = np.array([[0.0, -1.3, 0.7, 2.2], [1.4, np.nan, -0.2, 0.4], [-0.6, 0.5, 3.1, -2.0]])
Y = np.array([[-1.0, 0.3, 1.9, 0.6], [0.8, -0.1, 0.0, 1.2], [0.4, -1.2, 0.0, 1.6]])
MASK = np.array([[True, False, False, False], [False, False, True, False], [True, False, True, False]])
CONSTANT = ma.array(np.arange(12.0).reshape(3, 4), mask=Y > 1)

UNARY = ("exp", "log", "log10", "sqrt", "tan", "arcsin", "arccosh", "arctanh", "absolute", "negative", "logical_not")
BINARY = ("add", "subtract", "divide", "floor_divide", "remainder", "power", "less", "equal", "logical_and", "hypot")
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "ge")
REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "ptp", "any", "all", "count", "argmin", "argmax")
RUNNING = ("cumsum", "cumprod", "anom")
MASKING = ("masked_greater", "masked_less_equal", "masked_equal", "masked_not_equal", "masked_values")


def m(x):
    return ma.array(x, mask=MASK)


def in_place(x, y):
    found = ma.array(y * 1, mask=MASK.copy())
    found *= y
    found += 2
    found /= x
    found -= ma.array(y, mask=y > 0)
    return found


def written(x, y):
    found = ma.array(y, mask=MASK, copy=True)
    found[0] = ma.masked
    found[1, 0] = x[0, 1]
    found[found > 1] = 0.5
    found[2] = ma.array(y[0], mask=y[0] > 0)
    return found


def under_a_name(x, y):
    return bound_before(y > 0, y)


def into_arrays(x, y):
    found, other = y * 1, y * 1
    found += ma.array(y)
    found *= ma.array(CONSTANT.data)
    other[:] = ma.array(y) * x
    other[1] = ma.array(CONSTANT.data)[2]
    other[0, 1] = m(y)[1, 1]
    return found + other


OF_DATA = {
    "where": lambda a, y: np.where(y > 0, a, y),
    "outer": lambda a, y: np.outer(a[1], y[0]),
    "einsum": lambda a, y: np.einsum("ij,ij->i", a, y),
    "interp": lambda a, y: np.interp(y[0], np.arange(4.0), a[1]),
    "convolve": lambda a, y: np.convolve(a[1], y[0]) + np.correlate(y[0], a[1], "full"),
    "polyval": lambda a, y: np.polyval(a[0], y),
    "cov": lambda a, y: np.cov(a, y) + np.corrcoef(y, a),
    "norm": lambda a, y: np.linalg.norm(a) * np.vdot(a[0], y[0]) + np.inner(y[0], a[1]),
    "broadcast_to": lambda a, y: np.broadcast_to(a, (2, 3, 4)) * y,
}
"""What NumPy makes ordinary arrays of."""

OF_BOTH_KINDS = {
    "dot": lambda a, y: np.dot(a, y.T) + np.dot(y, a.T),
    "matmul": lambda a, y: (a[:, :3] @ y[:, 1:]) + (y[:, 1:] @ a[:, :3]) + np.matmul(a[:, 1:], y[0, :3]),
    "concatenate": lambda a, y: np.concatenate([y, a]),
    "stack": lambda a, y: np.stack([a, y]) + np.stack([y, a]),
    "stacks": lambda a, y: np.vstack([y, a])[1:4] * np.hstack([a, y])[:, 2:6],
    "solve": lambda a, y: np.linalg.solve(a[:, :3] + 5 * np.eye(3), y[:, 1:]) + np.linalg.inv(a[:, 1:] + np.eye(3)),
    "append": lambda a, y: np.append(y, a),
    "diff": lambda a, y: np.diff(a) + np.tile(a, 2)[:, 1:4] + np.sort(a)[:, :3] + np.atleast_2d(a)[:, 1:],
    "undefined": lambda a, y: y / np.concatenate([a, y])[:3],
}
"""What it makes masked arrays of, where nothing is masked."""


LOSING = OF_DATA | OF_BOTH_KINDS


def each(kind, module, names, call):
    """What is computed by each function of a module, under names of a kind."""
    return {kind.format(name): partial(call, getattr(module, name)) for name in names}


FUNCTIONS = {
    **each("ma.{}", ma, UNARY, lambda f, x, y: f(m(x))),
    **each("ma.{} of an array", ma, UNARY, lambda f, x, y: f(x)),
    **each("np.{}", np, UNARY, lambda f, x, y: f(m(x))),
    **each("ma.{} left", ma, BINARY, lambda f, x, y: f(m(x), y)),
    **each("ma.{} right", ma, BINARY, lambda f, x, y: f(y, m(x))),
    **each("np.{} right", np, BINARY, lambda f, x, y: f(y, m(x))),
    **each("{} both", operator, OPERATORS, lambda f, x, y: f(ma.array(y, mask=y < 0), m(x))),
    **each("{} left", operator, OPERATORS, lambda f, x, y: f(m(x), y)),
    **each("{} right", operator, OPERATORS, lambda f, x, y: f(2.0, m(x))),
    **each("{} constant", operator, OPERATORS, lambda f, x, y: f(CONSTANT, y)),
    **each("constant {}", operator, OPERATORS, lambda f, x, y: f(y, CONSTANT)),
    **each("{} of all", ma.MaskedArray, (*REDUCTIONS, *RUNNING), lambda f, x, y: getattr(m(y), f.__name__)()),
    **each("{} 0", ma.MaskedArray, (*REDUCTIONS, *RUNNING), lambda f, x, y: getattr(m(y), f.__name__)(axis=0)),
    **each("{} 1", ma.MaskedArray, (*REDUCTIONS, *RUNNING), lambda f, x, y: getattr(m(y), f.__name__)(axis=1)),
    **each("ma.{} traced", ma, REDUCTIONS, lambda f, x, y: f(ma.masked_where(y > 0.2, y))),
    **each("ma.{} of nothing", ma, REDUCTIONS, lambda f, x, y: f(ma.array(y, mask=y < 9), axis=1)),
    **each("ma.{} of an array", ma, REDUCTIONS, lambda f, x, y: f(ma.array(y), axis=1)),
    **each("np.{}", np, set(REDUCTIONS) - {"count", "ptp"}, lambda f, x, y: f(m(y))),
    **each("ma.{}", ma, MASKING, lambda f, x, y: f(y, 0.0)),
    "masked_inside": lambda x, y: ma.masked_inside(y, -0.5, 0.5),
    "masked_outside": lambda x, y: ma.masked_outside(y, -0.5, 0.5),
    "masked_invalid": lambda x, y: ma.masked_invalid(x),
    "fix_invalid": lambda x, y: ma.fix_invalid(x),
    "a masked condition": lambda x, y: ma.masked_where(ma.array(y > 0, mask=MASK), m(x)),
    "a name bound before": under_a_name,
    "kept": lambda x, y: ma.array(m(y), mask=y > 0),
    "not kept": lambda x, y: ma.array(m(y), mask=y > 0, keep_mask=False),
    "all": lambda x, y: ma.masked_array(y, mask=True),
    "none": lambda x, y: ma.masked_array(y, mask=False),
    "a list": lambda x, y: ma.array([y[0, 0], y[1, 1] * 2], mask=[0, 1]),
    "integers": lambda x, y: y // ma.array([1, 2, 0, 4], mask=[0, 1, 0, 0]),
    "the constant": lambda x, y: y * ma.masked,
    "where": lambda x, y: ma.where(ma.array(y > 0, mask=MASK), x, ma.masked),
    "maximum": lambda x, y: ma.maximum(m(y), y * y),
    "dot": lambda x, y: ma.dot(m(y), m(y).T),
    "concatenate": lambda x, y: ma.concatenate([m(y), x], axis=1),
    "average": lambda x, y: ma.average(m(y), axis=1, weights=np.arange(4.0)),
    "outer": lambda x, y: ma.outer(m(y)[0], y[0]),
    "a row": lambda x, y: m(y)[1],
    "dimensions kept": lambda x, y: m(y).sum(axis=1, keepdims=1) + m(y).count(axis=0, keepdims=True),
    "an element": lambda x, y: m(y)[2, 1],
    "a masked element": lambda x, y: m(y)[0, 0],
    "moved": lambda x, y: ma.swapaxes(ma.expand_dims(m(y).T.reshape(2, 6)[:, ::2], 0), 0, 1),
    "compressed": lambda x, y: m(y).compressed(),
    "compressed by a traced mask": lambda x, y: ma.masked_where(y > 0, y).compressed(),
    "rounded": lambda x, y: (m(y) * 3).round().clip(-2, 2),
    "its own value to fill with": lambda x, y: ma.array(y, mask=MASK, fill_value=-3.0) * 2,
    **{f"np.{name}": lambda x, y, f=f: f(ma.array(y), y) for name, f in LOSING.items()},
    **{f"np.{name} of a constant": lambda x, y, f=f: f(ma.array(CONSTANT.data), y) for name, f in LOSING.items()},
    "np.dot, a traced mask": lambda x, y: np.dot(ma.array(y, mask=y > 9), y.T),
    "into arrays": into_arrays,
    "in place": in_place,
    "written": written,
    "copied": lambda x, y: copy.deepcopy(m(y)) + m(y).copy(),
    "a class": lambda x, y: y * isinstance(m(y), ma.MaskedArray) * isinstance(m(y), np.ndarray),
}


def parts(found):
    """Data, mask and what is filled; nothing of the constant `masked`."""
    if found is ma.masked:
        return ()
    if not isinstance(found, ma.MaskedArray):
        return (found,)
    return found.data, ma.getmaskarray(found), found.filled()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_data_and_mask_are_those_of_numpy():
    """All in one trace, since to compile each takes longer."""
    found = fnad.jit(lambda x, y: {name: parts(f(x, y)) for name, f in FUNCTIONS.items()})(X, Y)
    for name, f in FUNCTIONS.items():
        wanted = parts(f(X.copy(), Y.copy()))
        wanted = wanted[:1] if len(found[name]) == 1 else wanted  # of no dimensions: NumPy has an array sometimes
        assert len(found[name]) == len(wanted), name
        for one, other in zip(found[name], wanted, strict=True):
            assert one.dtype == np.asarray(other).dtype, name
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15, err_msg=name)


POINT = np.array([0.5, 1.5, -0.7, 2.5, 0.3])
FEW = np.array([True, False, False, False, True])
WEIGHTS = np.array([1.0, 2.0, 0.5, 0.3, 0.9])


def masked_later(x):
    found = ma.array(x * 1)
    found.mask = x > 2
    found[x < 0] = ma.masked
    return (found * x).mean()


def shared(x):
    values = x * 1
    found = ma.array(values)
    found[0] = 3.0
    found *= x
    return values.sum()


LOSSES = {
    "a mask at hand": lambda x: (ma.array(x, mask=FEW) ** 2).sum(),
    "a traced mask": lambda x: ma.masked_where(x > 1, x * x).mean(),
    "a domain": lambda x: (ma.log(x) * ma.sqrt(x)).sum(),
    "what is not finite": lambda x: ma.masked_invalid(np.log(x)).std(ddof=1),
    "a quotient": lambda x: (x / ma.masked_less(x, 1)).sum() + ma.divide(x, x - 0.51).max(),
    "a variance": lambda x: ma.masked_greater(x, 2).var(),
    "an average": lambda x: ma.average(ma.masked_less(x, 0), weights=WEIGHTS),
    "products": lambda x: ma.dot(ma.array(x, mask=FEW), x) * ma.array(x, mask=FEW).prod(),
    "elements one by one": lambda x: sum(v * v for v in ma.array(x, mask=x < 0) if v is not ma.masked),
    "data": lambda x: np.sum((ma.array(x, mask=x > 2) * x).data * x),
    "filled": lambda x: np.sum((ma.array(x, mask=x > 2) ** 3).filled(2.0) * x),
    "compressed": lambda x: np.sum(np.exp(ma.array(x, mask=x > 2).compressed())),
    "masked later": masked_later,
    "shared memory": shared,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_masked_losses_are_differences(name):
    f = LOSSES[name]
    value, gradient = fnad.value_and_grad(f)(POINT.copy())
    np.testing.assert_allclose(value, f(POINT.copy()), rtol=1e-13)
    np.testing.assert_allclose(gradient, differences(f, POINT), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_traced_number_beside_a_masked_array(name, kind):
    function, data = getattr(operator, name), ma.array(WEIGHTS, mask=FEW)
    for f in (lambda x: function(x, data), lambda x: function(data, x)):
        for found, wanted in zip(fnad.jit(lambda x, f=f: parts(f(x)))(kind(1.5)), parts(f(1.5)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_of_what_is_masked_the_derivative_is_0():
    found = fnad.grad(lambda x: (ma.log(x) + ma.sqrt(x)).sum())(np.array([-1.0, 0.0, 4.0]))
    np.testing.assert_array_equal(found, [0, 0, 0.5])


def test_what_is_left_decides_on_a_path():
    f = lambda x: ma.masked_greater(x, 1).sum() if ma.masked_greater(x, 1).count() else x[0]  # noqa: E731
    compiled = fnad.jit(f)
    for x in (POINT, -POINT, POINT + 9, POINT):
        assert compiled(x) == f(x)


def test_a_masked_array_from_outside_is_read_anew():
    data = ma.array(WEIGHTS.copy(), mask=FEW)
    f = lambda x: (data * x).sum()  # noqa: E731
    compiled = fnad.jit(f)
    assert compiled(POINT) == f(POINT)
    data[1] = 7.0
    assert compiled(POINT) == f(POINT)
    data[2] = ma.masked
    assert compiled(POINT) == f(POINT)


def test_rows_of_a_loop_and_of_vmap():
    rows = np.stack([POINT, POINT - 1, POINT + 0.2])
    mean = lambda row: ma.masked_greater(row, 1).mean()  # noqa: E731
    np.testing.assert_allclose(fnad.vmap(mean)(rows), [mean(row) for row in rows])
    total, _ = fnad.scan(lambda c, row: (c + ma.log(row).sum(), None), 0.0, rows)
    np.testing.assert_allclose(total, sum(ma.log(row).sum() for row in rows))


def test_a_number_of_a_loop_is_not_masked():
    """There nobody knows it while tracing, so the program says so when it runs."""
    rows = np.stack([POINT, POINT + 9])
    with pytest.raises(FnadError, match="a number of a masked array of traced values is masked"):
        fnad.scan(lambda c, row: (c + ma.masked_greater(row, 5).sum(), None), 0.0, rows)


class Own(ma.MaskedArray):
    pass


REFUSED = {
    "numpy.ma.MaskedArray.__ipow__": lambda x: operator.ipow(ma.array(x), 2).sum(),
    "numpy.ma.MaskedArray.tolist": lambda x: ma.array(x, mask=FEW).tolist()[1],
    "numpy.linalg.norm": lambda x: np.linalg.norm(ma.array(x, mask=FEW)),
    "numpy.linalg.diagonal": lambda x: np.linalg.diagonal(ma.array(x * x[:, None])).sum(),
    "numpy.copy": lambda x: np.copy(ma.array(x, mask=FEW)).sum(),
    "numpy.add.reduce": lambda x: np.add.reduce(ma.array(x, mask=FEW)),
    "numpy.add": lambda x: np.add(x, ma.array(x, mask=FEW), out=np.zeros(5)).sum(),
    "the option out= of masked reductions": lambda x: ma.array(x, mask=FEW).sum(out=np.zeros(())),
    "hard_mask": lambda x: ma.array(x, mask=FEW, hard_mask=True).sum(),
    "test_masked.Own": lambda x: Own(x, mask=FEW).sum(),
    "asked for an ordinary array": lambda x: ma.array(x, mask=FEW).__array__(),
    "numpy.asanyarray": lambda x: ma.median(ma.array(x, mask=FEW)),
    "numpy.where": lambda x: np.where(x > 0, ma.array(x, mask=FEW), 0.0).sum(),
    "MaskedArray, which follows other rules": lambda x: ma.array(x, mask=FEW),
    "MaskedConstant, which follows other rules": lambda x: ma.array(x, mask=True).sum(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_covered_is_named(what):
    """Nothing loses the mask in silence."""
    with pytest.raises(FnadError, match=rf"(?s){what}.*test_masked.py.*m.data and m.mask, reduce with where="):
        fnad.grad(REFUSED[what])(POINT)
