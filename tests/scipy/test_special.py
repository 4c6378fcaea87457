"""scipy.special on traced values beside SciPy itself: the ufuncs through NumPy, the rest through fnad.scipy.special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import fnad
from fnad.errors import DomainError, DtypeError, UnsupportedFunctionError
from fnad.ir.primitive import PRIMITIVES
from fnad.numpy.scipy_ufuncs import COMPOSED, NATIVE, UFUNCS, special_rule
from fnad.scalar.scipy_ufunc import MENDED
from fnad.scipy import special
from fnad.testing import difference, step
from tests.numpy.against_numpy import check, check_error, traced
from tests.together import in_groups

EPS = 2.0**-52
INF, NAN = np.inf, np.nan
PUBLIC = {name: value for name, value in vars(scipy.special).items() if isinstance(value, np.ufunc)}
TRIALS = ("bdtr", "bdtrc", "bdtri")
"""SciPy warns of a number of trials that is a float."""
CALLED = sorted(name for name in UFUNCS if name in PUBLIC and name not in TRIALS)
SCALAR = NATIVE | {
    name: PRIMITIVES[name] for name in COMPOSED if name in PUBLIC and name in PRIMITIVES and name != "round"
}


# ---- ufuncs ----------------------------------------------------------------------------------------------------------


@in_groups("name", CALLED)
def test_ufunc_is_scipys_own_call(name: str):
    """Values are bit for bit SciPy's, at samples and at singular points; to rounding where SciPy's are far off."""
    for sample in UFUNCS[name].primitives[0].samples():
        with np.errstate(all="ignore"):
            expected = PUBLIC[name](*sample.operands)
        found, _ = traced(PUBLIC[name], *sample.operands)
        np.testing.assert_allclose(found, expected, rtol=1e-13 if name in MENDED else 0)
        assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("name", TRIALS)
def test_number_of_trials(name: str):
    check(lambda p: PUBLIC[name](2, 5, p), np.array([0.0, 0.3, 1.0]))
    check(lambda n, p: PUBLIC[name](2, n, p), np.array([2, 5]), np.array([0.3, 0.7]))


@pytest.mark.parametrize("name", SCALAR)
def test_ufuncs_of_scipy_traced_and_compiled_are_scipys(name: str):
    for sample in SCALAR[name].samples():
        if sample.operands[0].dtype.kind == "f" or name.startswith("xlog"):
            with fnad.config.override(executor="compiled"):
                check(PUBLIC[name], *sample.operands)


@pytest.mark.parametrize("name", ["gammaln", "jv", "betainc", "xlogy", "erf", "eval_legendre", "expn"])
def test_operands_are_promoted_and_broadcast(name: str):
    ufunc = PUBLIC[name]
    x = np.array([0.2, 0.7], np.float32)
    first = [2] * (ufunc.nin - 1)
    check(lambda x: ufunc(*first, x), x)
    check(lambda x: ufunc(*[np.array([[1], [2], [3]])] * (ufunc.nin - 1), x), x.astype(np.float64))
    check(lambda n: ufunc(*[n] * (ufunc.nin - 1), np.float64(0.3)), np.array([1, 2]))
    check(lambda x: ufunc(*first, x, out=np.zeros(2) * x), x.astype(np.float64))


def test_results_in_several_parts():
    x = np.array([0.3, 1.2])
    for ufunc in (scipy.special.sici, scipy.special.fresnel, scipy.special.airy, scipy.special.kelvin):
        check(ufunc, x)
    check(scipy.special.ellipj, x, np.array([0.2, 0.8]))
    sn, cn, dn = fnad.jvp(lambda u: scipy.special.ellipj(u, 0.4)[:3], (1.3,), (1.0,))[1]
    s, c, d, _ = scipy.special.ellipj(1.3, 0.4)
    np.testing.assert_allclose([sn, cn, dn], [c * d, -s * d, -0.4 * s * c], rtol=1e-14)


def test_ufuncs_of_complex_arguments_are_scipys():
    z = np.array([0.3 + 0.2j, -1.2 - 0.7j, 2.0 + 1.0j])
    for name in ("erf", "erfcx", "dawsn", "wofz", "exp1", "spence", "log_ndtr", "wrightomega", "xlogy"):
        ufunc = PUBLIC[name]
        check(ufunc, *[z] * ufunc.nin)
    for name in ("jv", "kve", "hankel1", "hankel2e", "hyp0f1"):
        check(lambda z, name=name: PUBLIC[name](1.5, z), z)
    derivative = fnad.jvp(lambda z: scipy.special.hankel1(1.5, z), (z,), (np.ones(3, complex),))[1]
    expected = (scipy.special.hankel1(0.5, z) - scipy.special.hankel1(2.5, z)) / 2
    np.testing.assert_allclose(derivative, expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["betainc", "expit", "ellipk"])
def test_complex_arguments_that_are_refused(name: str):
    ufunc = PUBLIC[name]
    with pytest.raises((DtypeError, TypeError)):
        traced(lambda z: ufunc(*[z] * ufunc.nin), np.array([0.3 + 0.2j]))


def test_lambertw_on_each_branch_is_scipys_with_its_slope():
    x = np.array([0.3, 1.0, -0.2])
    check(scipy.special.lambertw, x)
    check(lambda x: scipy.special.lambertw(x, -1), x)
    w = scipy.special.lambertw(x).real
    found = fnad.grad(lambda x: np.sum(scipy.special.lambertw(x).real))(x)
    np.testing.assert_allclose(found, w / (x * (1 + w)), rtol=1e-13)


def test_zeta_is_scipys_with_a_slope_in_q_alone():
    q = np.array([0.5, 2.0])
    check(lambda q: scipy.special.zeta(3.0, q), q)
    check(scipy.special.zeta, np.array([2.0, 3.5]))
    found = fnad.grad(lambda q: np.sum(scipy.special.zeta(3.0, q)))(q)
    np.testing.assert_allclose(found, -3 * scipy.special.zeta(4.0, q), rtol=1e-14)
    with pytest.raises(UnsupportedFunctionError, match="derivative of zeta with respect to s"):
        fnad.grad(lambda s: scipy.special.zeta(s, 2.0))(3.0)


def test_derivatives_of_bessel_functions_that_scipy_composes():
    for function in (scipy.special.jvp, scipy.special.yvp, scipy.special.ivp, scipy.special.kvp):
        check(lambda z, function=function: function(1.5, z, 2), np.array([0.7, 2.0]))


def test_no_formula_is_an_error_with_the_users_line():
    def order(v: Any) -> Any:
        return scipy.special.jv(v, 2.0)

    with pytest.raises(UnsupportedFunctionError) as raised:
        fnad.grad(order)(0.5)
    first, place, _ = str(raised.value).splitlines()
    assert first == "there is no formula for the derivative of jv with respect to v"
    assert "test_special.py" in place
    assert "return scipy.special.jv(v, 2.0)" in place
    assert fnad.grad(lambda v, x: scipy.special.jv(v, x), argnums=1)(0.5, 2.0) == pytest.approx(
        scipy.special.jvp(0.5, 2.0)
    )


def test_an_order_that_is_no_integer():
    with pytest.raises(UnsupportedFunctionError, match="eval_legendre has no rule for an order that is no integer"):
        traced(scipy.special.eval_legendre, np.array([1.5]), np.array([0.3]))


def test_a_ufunc_without_a_rule():
    with pytest.raises(UnsupportedFunctionError, match="tklmbda has no rule"):
        traced(scipy.special.tklmbda, np.array([0.3]), np.array([0.3]))
    assert special_rule(np.frompyfunc(lambda x: x, 1, 1)) is None


# ---- functions that SciPy computes in Python -------------------------------------------------------------------------

N = np.array([0.0, 1.0, 2.5, 5.0, 7.0])
X = np.array([0.1, 0.7, 3.0])
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "polygamma": (lambda x: special.polygamma(2, x), (X,)),
    "polygamma of orders": (lambda x: special.polygamma(np.array([[0], [1], [3]]), x), (X,)),
    "polygamma of f32": (lambda x: special.polygamma(1, x), (X.astype(np.float32),)),
    "multigammaln": (lambda a: special.multigammaln(a, 3), (X + 1,)),
    "multigammaln of f32": (lambda a: special.multigammaln(a, 2), (X.astype(np.float32) + 1,)),
    "factorial": (special.factorial, (N,)),
    "factorial of negative numbers": (special.factorial, (np.array([-1.0, -0.5, NAN]),)),
    "factorial of integers": (special.factorial, (np.arange(-1, 5),)),
    "comb": (special.comb, (N[2:] + 1, X)),
    "comb outside": (special.comb, (np.array([2.0, -1.0, 3.0, NAN]), np.array([3.0, 0.5, -1.0, 1.0]))),
    "comb with repetition": (lambda n, k: special.comb(n, k, repetition=True), (X + 1, X)),
    "comb of integers": (special.comb, (np.arange(5), np.array(2))),
    "perm": (special.perm, (N[2:] + 1, X)),
    "perm outside": (special.perm, (np.array([2.0, -1.0, 3.0]), np.array([3.0, 0.5, -1.0]))),
    "softplus": (special.softplus, (np.array([-800.0, 0.0, 2.0, 800.0]),)),
    **{
        f"{name}{' slope' * slope}": (
            lambda z, name=name, slope=slope: getattr(special, name)(np.array([[0], [1], [3]]), z, slope),
            (np.array([0.3, 2.0, 7.0]),),
        )
        for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")
        for slope in (False, True)
    },
    "spherical_jn of negative numbers": (lambda z: special.spherical_jn(2, z), (np.array([-2.0, -0.1, 0.0, INF]),)),
    "spherical_kn of complex numbers": (lambda z: special.spherical_kn(2, z), (np.array([-2.0 + 1j, 0.1j]),)),
    "logsumexp with sign": (lambda x: special.logsumexp(x, b=np.array([1.0, -2.0, 0.5]), return_sign=True), (X,)),
    "logsumexp of weights": (
        lambda b: special.logsumexp(np.array([1.0, 2.0, 900.0]), b=b),
        (np.array([1.0, 2.0, 0.0]),),
    ),
    "logsumexp along an axis": (lambda x: special.logsumexp(x, axis=1, keepdims=True), (np.outer(X, N),)),
    "softmax": (lambda x: special.softmax(x, axis=0), (np.outer(X, N),)),
    "log_softmax": (lambda x: special.log_softmax(x, axis=0), (np.outer(X, N),)),
}


@in_groups("name", FUNCTIONS)
def test_functions_of_scipy_special_traced_are_scipys(name: str):
    function, operands = FUNCTIONS[name]
    if name.startswith("factorial of neg") or np.ndim(function(*operands)) == 0 or "with sign" in name:
        compare_values(function, *operands)
    else:
        check(function, *operands)


def compare_values(function: Callable[..., Any], *operands: Any) -> None:
    found, expected = np.asarray(traced(function, *operands)[0]), np.asarray(function(*operands))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


SMOOTH = {
    name: case
    for name, case in FUNCTIONS.items()
    if all(x.dtype == np.float64 for x in case[1]) and not any(word in name for word in ("outside", "negative"))
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivative_of_a_function(name: str):
    """Forward mode against differences, reverse against forward, in a direction that no operand is an integer in."""
    function, operands = SMOOTH[name]
    if name == "comb" or name == "perm":
        operands = (np.array([2.3, 4.1, 7.7]), X * 0.7)
    elif name == "factorial":
        operands = (N + 0.25,)
    elif name == "logsumexp of weights":
        operands = (np.array([1.0, 2.0, 0.5]),)

    def first(*xs: Any) -> Any:
        y = function(*xs)
        return y[0] if isinstance(y, tuple) else y

    directions = [np.cos(np.arange(x.size) + i).reshape(x.shape) for i, x in enumerate(operands)]
    h, error = step(EPS, 1)
    expected = difference(lambda *xs: np.asarray(first(*xs)), operands, directions, h)
    value, found = fnad.jvp(first, operands, tuple(directions))
    scale = float(np.max(np.abs(value)))
    np.testing.assert_allclose(found, np.asarray(expected, float), rtol=10 * error, atol=10 * error * scale)
    ct = np.sin(1 + np.arange(np.size(value))).reshape(np.shape(value))
    pulled = fnad.vjp(first, *operands)[1](ct)
    left, right = np.sum(ct * found), sum(np.sum(p * d) for p, d in zip(pulled, directions, strict=True))
    np.testing.assert_allclose(right, left, rtol=1e-11)


def test_what_is_refused():
    for call in (special.factorial, lambda n: special.comb(n, 2), lambda n: special.perm(n, 2)):
        traced(call, 5)
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.special\.comb has no rule for the option exact="):
        traced(lambda n: special.comb(n, 2, exact=True), 5)
    with pytest.raises(UnsupportedFunctionError, match=r"scipy\.special\.factorial has no rule for the option extend="):
        traced(lambda n: special.factorial(n, extend="complex"), 5.0)
    with pytest.raises(UnsupportedFunctionError, match="order that is no integer"):
        traced(special.spherical_jn, 1.5, 2.0)
    with pytest.raises(DtypeError, match="sums of exponentials have no rule for complex128"):
        traced(special.softmax, np.array([1.0 + 1j]))
    with pytest.raises(DtypeError, match="return_sign has no rule for complex128"):
        traced(lambda x: special.logsumexp(x, return_sign=True), np.array([1.0 + 1j]))


def test_logarithms_of_complex_sums():
    x, weights = np.array([1.0 + 2j, 3.0 - 1j, 1000.0 + 0.5j, 999.5 - 3j]), np.array([1.0, -2.0, 0.5, 0.3])
    for call in (
        special.logsumexp,
        lambda x: special.logsumexp(x, b=weights),
        lambda x: special.logsumexp(x.reshape(2, 2), axis=0, keepdims=True),
        lambda x: special.logsumexp(x * 0 - np.inf),
    ):
        np.testing.assert_allclose(fnad.jit(call)(x), call(x), rtol=1e-14)
    of_real = fnad.grad(lambda t: special.logsumexp(np.array([1.0, 0.5]) * t + np.array([0.0, np.pi * 1j])).real)
    np.testing.assert_allclose(of_real(2.0), (np.e**2 - 0.5 * np.e) / (np.e**2 - np.e), rtol=1e-14)


@pytest.mark.peers
def test_multigammaln_outside_its_domain():
    check_error(lambda a: special.multigammaln(a, 3), np.array([0.9]))
    with pytest.raises(DomainError, match=r"condition a > 0.5 \* \(d-1\) \(1.0\) not met"):
        fnad.grad(lambda a: special.multigammaln(a, 3))(1.0)


def test_what_has_no_rule_here_is_scipys():
    assert special.diric(0.3, 3) == scipy.special.diric(0.3, 3)
    assert special.gammaln is scipy.special.gammaln
    with pytest.raises(AttributeError):
        special.nothing  # noqa: B018


# ---- compiled --------------------------------------------------------------------------------------------------------

COMPILED: dict[str, Callable[..., Any]] = {
    "native": lambda x: scipy.special.ndtr(x) * scipy.special.entr(x) + scipy.special.logit(x),
    "penalties": lambda x: (
        scipy.special.huber(0.5, x) + scipy.special.pseudo_huber(x, 0.3) + scipy.special.kl_div(x, 0.2)
    ),
    "gamma family": lambda x: scipy.special.gammaln(x) * np.sin(x) + scipy.special.betainc(2.0, x.shape[0], x),
    "bessel": lambda x: scipy.special.jv(1.5, x) / scipy.special.k1e(x) + np.exp(scipy.special.airy(x)[2]),
    "orders": lambda x: scipy.special.eval_legendre(np.arange(3), x) + special.spherical_jn(2, x),
    "require": lambda x: special.multigammaln(x + 1, 2),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_as_interpreted(name: str):
    x = np.array([0.2, 0.5, 0.9])

    def total(x: Any) -> Any:
        return np.sum(COMPILED[name](x))

    results = []
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            results.append((fnad.value_and_grad(total)(x), fnad.grad(lambda x: np.sum(fnad.grad(total)(x) ** 2))(x)))
    (interpreted, second), (compiled, second_compiled) = results
    np.testing.assert_allclose(compiled[0], interpreted[0], rtol=1e-14)
    np.testing.assert_allclose(compiled[1], interpreted[1], rtol=1e-13)
    np.testing.assert_allclose(second_compiled, second, rtol=1e-12)


@pytest.mark.parametrize("f", [scipy.special.softmax, scipy.special.log_softmax])
def test_softmax_of_rows_without_elements_is_an_error(f: Any) -> None:
    for shape, axis in (((4, 0), 1), ((0, 3), None), ((0,), -1)):
        for call in (f, fnad.jit(f), fnad.grad(lambda x, axis: np.sum(f(x, axis=axis)))):
            with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
                call(np.ones(shape), axis=axis)
    assert fnad.jit(f)(np.ones((0, 4)), axis=1).shape == (0, 4)
    with pytest.raises(fnad.errors.ArgumentTypeError, match="has no program for this n"):
        fnad.export(lambda x: f(x, axis=1), fnad.ShapeDtypeStruct((4, "n"), float))(np.ones((4, 0)))
