"""Every parameter of NumPy's functions is one of the rule's, and has a say; or it is listed here with the reason."""

import dis
import inspect

import numpy as np
import pytest

import fnad
from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.numpy.bodies import Body
from fnad.numpy.registry import WITHOUT_EFFECT
from tests.numpy.against_numpy import check, check_error, sample, traced
from tests.numpy.coverage import MODULES, public, rule_of
from tests.together import in_groups

REFUSED = {
    "array": {"ndmax": "NumPy's limit on nesting is one for arrays of objects"},
    **{name: {"arys": "*arys, under another name"} for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
}
"""Parameters that a rule does not have: a call that gives one is an error that names it."""

NO_SAY = {
    "einsum": {"optimize": "every contraction takes the best path"},
    "einsum_path": {"einsum_call": "NumPy's own use"},
}
"""Parameters that change nothing in the result."""

FUNCTIONS = [
    (module, name)
    for module in ("numpy", "numpy.linalg", "numpy.fft")
    for name in public(MODULES[module])
    if rule_of(module, name) is not None
    and not isinstance(getattr(MODULES[module], name), np.ufunc)
    and not isinstance(rule_of(module, name), Body)
]


def parameters(function):
    """Return the parameters of a function by name."""
    return inspect.signature(function).parameters


@in_groups(("module", "name"), FUNCTIONS)
def test_rules_have_every_parameter_of_numpy_and_read_it(module, name):
    theirs, rule = parameters(getattr(MODULES[module], name)), inspect.unwrap(rule_of(module, name))
    own = parameters(rule)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in own.values()):
        return
    lacking = theirs.keys() - own.keys() - WITHOUT_EFFECT - {"args", "kwargs"}
    assert lacking == REFUSED.get(name, {}).keys()
    loads = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")
    loaded = (step.argval for step in dis.get_instructions(rule) if step.opname.startswith(loads))
    read = {name for names in loaded for name in (names if isinstance(names, tuple) else (names,))}  # 3.13 loads pairs
    assert (own.keys() & theirs.keys()) - read - WITHOUT_EFFECT == NO_SAY.get(name, {}).keys()


@in_groups(("module", "name"), FUNCTIONS)
def test_defaults_are_numpys(module, name):
    theirs, own = (parameters(f) for f in (getattr(MODULES[module], name), rule_of(module, name)))
    for parameter in (theirs.keys() & own.keys()) - WITHOUT_EFFECT:
        ours, numpys = own[parameter].default, theirs[parameter].default
        if numpys is not np._NoValue and ours is not inspect.Parameter.empty:  # pyright: ignore[reportAttributeAccessIssue]
            assert ours == numpys or (ours, numpys) in (("same_kind", "same_kind"), (float, None), (None, float))


def test_an_option_without_a_rule_is_named():
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.array has no rule for the option ndmax="):
        traced(lambda x: np.array(x, ndmax=3), np.ones(2))


X, N = sample((4, 5), "f64"), sample((4, 5), "f64")
W, V = sample((4, 5), "i64", 1) + 1.0, np.array([1.0, 2.0, 0.0, 3.0, 1.0])
N[1, 2], N[0, 0] = np.nan, np.nan
M = X.mean(1, keepdims=True)
INVERTED = {"method": "inverted_cdf"}
WEIGHTED = {
    "all": lambda x, w, v: np.quantile(x, [0.1, 0.5, 1.0], weights=w, **INVERTED),
    "rows": lambda x, w, v: (
        np.quantile(x, 0.3, 1, weights=w, **INVERTED),
        np.percentile(x, 0, 1, weights=v, **INVERTED),
    ),
    "keepdims": lambda x, w, v: np.quantile(x, [0.3, 1.0], axis=0, keepdims=True, weights=w, **INVERTED),
    "both axes": lambda x, w, v: np.percentile(x, [30], axis=(0, 1), weights=w, **INVERTED),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_quantiles_and_their_gradients_are_numpys(name):
    check(WEIGHTED[name], X, W, V)
    gradient = fnad.grad(lambda x: sum(np.sum(part) for part in np.atleast_1d(WEIGHTED[name](x, W, V)[0])))(X)
    steps = [(WEIGHTED[name](X + h, W, V)[0] - WEIGHTED[name](X - h, W, V)[0]).sum() / 2e-7 for h in basis(X)]
    np.testing.assert_allclose(gradient.ravel(), steps, atol=1e-6)


def basis(x):
    """Return small steps along each element."""
    return 1e-7 * np.eye(x.size).reshape(x.size, *x.shape)


@pytest.mark.parametrize("axis", [0, 1])
def test_weighted_quantiles_without_nan(axis):
    check(lambda x, w: np.nanquantile(x, [0.2, 0.9], axis=axis, weights=w, **INVERTED), N, W)
    check(lambda x, w: np.nanpercentile(x, 30, axis=axis, keepdims=True, weights=w, **INVERTED), N, W)


def test_weights_that_numpy_refuses():
    check_error(lambda x: np.quantile(x, 0.5, weights=W), X)
    check_error(lambda x: np.quantile(x, 0.5, weights=V, **INVERTED), X)
    check_error(lambda x: np.quantile(x, 0.5, axis=0, weights=V, **INVERTED), X)
    check_error(lambda x: np.quantile(x, 0.5, weights=-W, **INVERTED), X)


def test_a_mean_that_is_given():
    check(lambda x, m: (np.var(x, 1, mean=m), np.std(x, axis=1, mean=m, keepdims=True, ddof=1)), X, M)
    check(lambda x, m: (np.nanvar(x, 1, mean=m), np.nanstd(x, axis=1, mean=m)), N, M)
    check(lambda x: (np.std(x, correction=1), np.var(x, correction=1)), X)
    check_error(lambda x: np.var(x, ddof=1, correction=1), X)
    np.testing.assert_allclose(
        fnad.grad(lambda x, m: np.var(x, 1, mean=m).sum(), 1)(X, M + 1), -2 * (X - M - 1).mean(1, keepdims=True)
    )


def test_joins_cast_or_refuse_as_numpy():
    check(lambda x: (np.concatenate([x, x], dtype=int, casting="unsafe"), np.stack([x, x], dtype="f")), X)
    for join in (np.concatenate, np.stack, np.hstack, np.vstack):
        check_error(lambda x, join=join: join([x, x], dtype=int), X)
        check_error(lambda x, join=join: join([x, x], dtype="f", casting="safe"), X)


def test_a_copy_that_is_not_to_be_made():
    def written(x):
        y = x / 0
        return np.nan_to_num(y, copy=False, posinf=3), y

    check(written, np.array([1.0, 0.0]))
    check(written, np.array([1.0 + 1j, 0.0]))


def test_casting_of_ufuncs_and_clip():
    x = np.array([0.1, 0.5, 2.0])
    for f in (
        lambda x: np.maximum(x, 0.3, casting="no"),
        lambda x: np.clip(x, 0.2, 1.0, casting="no"),
        lambda x: np.clip(x, min=0.2, casting="equiv"),
        lambda x: x.clip(0.2, 1.0, casting="safe"),
        lambda x: np.add(x, 1.5, dtype=int, casting="unsafe"),
    ):
        np.testing.assert_array_equal(fnad.jit(f)(x), f(x), strict=True)
    for f in (lambda x: np.add(x, np.float32(1), casting="no"), lambda x: np.clip(x, np.float32(0), 1, casting="no")):
        with pytest.raises(DtypeError, match=r"Cannot cast ufunc .* with casting rule 'no'"):
            fnad.jit(f)(x)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i8", "f4", "f8", "c8"])
def test_the_dtype_of_a_ufunc_is_that_of_its_loop_for_python_numbers_too(dtype):
    for ufunc in (np.add, np.power, np.arctan2, np.maximum, np.negative, np.sqrt, np.equal, np.isnan):
        for x in (2, True, 2.5, 1 + 2j, np.array([1.0, 4.0])):

            def f(x, ufunc=ufunc):
                return ufunc(*[x] * ufunc.nin, dtype=dtype)

            try:
                expected = f(x)
            except TypeError:
                with pytest.raises(TypeError):
                    fnad.jit(f)(x)
            else:
                found = fnad.jit(f)(x)
                np.testing.assert_allclose(found, expected, rtol=1e-6)
                assert found.dtype == expected.dtype


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_a_result_is_cast_to_its_out_as_the_option_casting_allows(casting):
    for given, wanted in [("f4", "f8"), ("f8", "f4"), ("f8", "i4"), ("c16", "f8"), ("i8", "i2"), ("?", "u1")]:
        x = np.array([1, 2, 0]).astype(given)

        def doubled(x, dtype=wanted):
            return np.add(x, x, out=np.zeros_like(x, dtype=dtype), casting=casting)

        if np.can_cast(given, wanted, casting):
            np.testing.assert_array_equal(fnad.jit(doubled)(x), doubled(x), strict=True)
        else:
            with pytest.raises(DtypeError, match=f"with casting rule '{casting}'"):
                fnad.jit(doubled)(x)


def test_the_results_of_a_ufunc_that_have_an_out_are_stored_in_it():
    def f(x):
        whole, rest = np.zeros_like(x), np.zeros_like(x)
        found = [*np.divmod(x, 0.3, out=(None, rest)), *np.divmod(x, 0.4, out=(whole, None)), *np.modf(x, None, rest)]
        return [*found, whole, rest]

    for found, expected in zip(fnad.jit(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_complex_numbers_that_are_nearly_real():
    """A path each, since the dtype depends on the values."""

    def f(z):
        return np.real_if_close(z, tol=100)

    jitted = fnad.jit(f)
    for z in (np.array([1.0 + 1e-15j, 2.0]), np.array([1.0 + 1j, 2.0]), np.array([3.0 + 0j, 2.0]), np.array([0j])[:0]):
        np.testing.assert_array_equal(jitted(z), f(z), strict=True)
    assert fnad.grad(lambda x: np.sum(f(x * 1j * -1j) ** 2))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


ONE = np.array(1)
AXES = (np.sum, np.std, np.median, np.cumsum, np.sort, np.flip, np.argmax, np.expand_dims, np.linalg.norm, np.roll)


@pytest.mark.parametrize("function", AXES)
def test_an_axis_may_be_an_array_without_dimensions(function):
    given = {np.roll: {"shift": ONE}}.get(function, {})
    check(lambda x: function(x, axis=ONE, **given), sample((2, 3), "f64"))


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_axes_are_integers_of_any_kind(kind):
    check(lambda x: x.transpose(kind(0)), sample((6,), "f64"))
    check(lambda x: (np.sum(x[0], axis=kind(0)), np.squeeze(x[1], axis=kind(0))), sample((6,), "f64"))


def test_the_method_transpose_takes_all_axes_or_none():
    check(lambda x: (x.transpose(), x.transpose(None), x.transpose(1, 0), x.transpose((1, 0))), sample((2, 3), "f64"))
    check_error(lambda x: x.transpose(()), sample((2, 3), "f64"))


@pytest.mark.parametrize("order", ["c", "f", None, "C", "F", "Z"])
def test_an_order_of_elements_is_named_in_either_case_or_not_at_all(order):
    calls = (
        lambda x: (x.reshape((3, 2), order=order), np.reshape(x, (2, -1), order=order)),
        lambda x: (np.ravel(x.reshape(2, 3), order), x.reshape(2, 3).flatten(order)),
        lambda x: x[np.ravel_multi_index((1, 1), (2, 3), order=order)],
        lambda x: np.unravel_index(x.astype(int), (2, 3), order=order),
    )
    for call in calls:
        if order == "Z":
            check_error(call, np.arange(6.0))
        else:
            check(call, np.arange(6.0))
