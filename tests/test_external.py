"""`external`: functions that are not traced, with derivatives that rules state; arrays of other libraries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.api.staging.leaves import leaf_of
from fnad.errors import CallbackError, CustomRuleError

X, XS = 0.7, np.array([0.3, -1.2, 2.0])
ERF = {0: math.erf, 1: lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)}


def erf_vjp(ct: float, x: float) -> tuple[float]:
    return (ct * ERF[1](x),)


def erf_jvp(primals: Any, tangents: Any) -> float:
    return tangents[0] * ERF[1](primals[0])


by_vjp = fnad.external(math.erf, result=0.0, vjp=erf_vjp)
by_jvp = fnad.external(math.erf, result=0.0, jvp=erf_jvp)
by_both = fnad.external(math.erf, result=0.0, vjp=erf_vjp, jvp=erf_jvp)


@fnad.external(result=0.0, vjp=fnad.jit(lambda ct, x: (-2.0 * x * ct * bell(x),)))
def bell(x: float) -> float:
    """exp(-x²), whose rule is traced."""
    return math.exp(-x * x)


def in_scan(f: Any) -> Any:
    return lambda x: fnad.scan(lambda c, _: (f(c), None), x, length=3)[0]


def in_while(f: Any) -> Any:
    return lambda x: fnad.while_loop(lambda c: c[1] < 3, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0]


def in_branch(f: Any) -> Any:
    return lambda x: fnad.cond(x > 0, f, lambda x: x, x)


def test_the_value_is_that_of_the_function() -> None:
    assert by_vjp(X) == fnad.jit(by_vjp)(X) == math.erf(X)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_first_derivatives_are_those_of_the_rules(executor: Any) -> None:
    expected = ERF[1](X)
    with fnad.config.override(executor=executor):
        for f in (by_vjp, by_both):
            assert fnad.grad(f)(X) == fnad.jit(fnad.grad(f))(X) == expected
        for f in (by_jvp, by_both):
            assert fnad.jvp(f, (X,), (2.0,))[1] == 2 * expected
        for wrap in (in_scan, in_while, in_branch, fnad.checkpoint):
            whole = wrap(bell)
            h = 1e-5
            assert_allclose(fnad.grad(whole)(X), (whole(X + h) - whole(X - h)) / (2 * h), rtol=1e-8)


def test_a_rule_that_is_traced_has_derivatives() -> None:
    first, value = fnad.grad(bell), math.exp(-X * X)
    assert_allclose(first(X), -2 * X * value)
    assert_allclose(fnad.grad(first)(X), (4 * X**2 - 2) * value)
    assert_allclose(fnad.grad(fnad.grad(first))(X), (12 * X - 8 * X**3) * value)
    assert_allclose(
        fnad.hessian(lambda x: bell(x[0]) * x[1])(np.array([X, 3.0]))[0], [(12 * X**2 - 6) * value, -2 * X * value]
    )


def test_rules_that_are_functions_with_rules_are_traced_once_for_each_mode() -> None:
    traced: list[int] = []

    def derivative_of_sine(order: int) -> Any:
        if order == 4:
            return fnad.external(np.sin, result=0.0)
        following = derivative_of_sine(order + 1)

        def slope(x: Any) -> Any:
            traced.append(order)
            return following(x)

        return fnad.external(
            lambda x: np.sin(x + order * np.pi / 2),
            result=0.0,
            vjp=fnad.jit(lambda ct, x: (ct * slope(x),)),
            jvp=fnad.jit(lambda primals, tangents: slope(*primals) * tangents[0]),
        )

    f = derivative_of_sine(0)
    assert_allclose(fnad.grad(fnad.grad(fnad.grad(f)))(X), -np.cos(X))
    assert [traced.count(order) for order in range(4)] == [2, 4, 8, 16]
    forward = fnad.jacfwd(fnad.jacfwd(fnad.jacrev(fnad.jacfwd(f))))
    assert_allclose(fnad.vmap(forward)(XS), np.sin(XS))


NOT_KNOWN = {
    "forward mode of a vjp": (lambda: fnad.jvp(by_vjp, (X,), (1.0,)), "derivative of erf_vjp"),
    "reverse mode of a jvp": (lambda: fnad.grad(by_jvp)(X), "derivative of erf_jvp"),
    "second order": (lambda: fnad.grad(fnad.grad(by_vjp))(X), "derivative of erf_vjp"),
    "no rule": (lambda: fnad.grad(fnad.external(math.erf, result=0.0))(X), "derivative of erf"),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_a_derivative_without_a_rule_is_an_error(name: str) -> None:
    call, words = NOT_KNOWN[name]
    with pytest.raises(CustomRuleError, match=words) as error:
        call()
    assert "state it by vjp= for reverse mode, jvp= for forward mode" in str(error.value)


def test_a_derivative_that_is_stopped_needs_no_rule() -> None:
    opaque = fnad.external(math.erf, result=0.0)
    assert fnad.grad(lambda x: x * opaque(fnad.stop_gradient(x)))(X) == math.erf(X)


# ---- pytrees, dtypes, batches ----------------------------------------------------------------------------------------


def scaled(p: dict[str, Any], n: int) -> dict[str, Any]:
    return {"y": p["a"] * np.float64(n), "k": 3}


scale = fnad.external(
    scaled,
    result=lambda p, n: {"y": p["a"], "k": n},
    vjp=lambda ct, p, n: ({"a": ct["y"] * n}, None),
    jvp=lambda primals, tangents: {"y": tangents[0]["a"] * primals[1], "k": 0},
)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_pytrees_in_the_announced_dtypes(dtype: str) -> None:
    a = np.arange(3).astype(dtype)
    result = fnad.jit(lambda a: scale({"a": a}, 2)["y"])(a)
    assert result.dtype == a.dtype
    assert_allclose(result, 2 * a)
    assert_allclose(fnad.jvp(lambda a: scale({"a": a}, 2)["y"], (a,), (a,))[1], 2 * a)
    gradient = fnad.grad(lambda a: np.sum(np.abs(scale({"a": a}, 2)["y"]) ** 2))(a)
    assert gradient.dtype == a.dtype
    assert_allclose(gradient, 8 * np.conj(a))


@pytest.mark.parametrize("is_batched", [False, True])
def test_rows_are_computed_by_the_rule_for_batches_or_one_by_one(is_batched: bool) -> None:
    shapes: list[Any] = []

    def f(x: Any, y: Any) -> Any:
        shapes.append(np.shape(x))
        return x * y

    def vjp(ct: Any, x: Any, y: Any) -> Any:
        return ct * y, ct * x

    product = fnad.external(f, result=lambda x, y: x, vjp=vjp, batch=f if is_batched else None)
    assert_allclose(fnad.vmap(product, in_axes=(0, None))(XS, 2.0), 2 * XS)
    assert shapes == [(3,)] if is_batched else shapes == [()] * 3
    assert_allclose(fnad.vmap(fnad.grad(product), in_axes=(0, None))(XS, 2.0), np.full(3, 2.0))
    by_y = fnad.grad(lambda y: np.sum(fnad.vmap(product, in_axes=(0, None))(XS, y)))(2.0)
    assert_allclose(by_y, XS.sum())
    assert fnad.vmap(product)(XS[:0], XS[:0]).shape == (0,)
    nested = fnad.vmap(fnad.vmap(product, in_axes=(0, None)), in_axes=(None, 0))(XS, XS)
    assert_allclose(nested, np.outer(XS, XS))


def test_equal_calls_are_made_once_and_calls_without_readers_not() -> None:
    calls: list[float] = []

    def f(x: float) -> float:
        calls.append(x)
        return x

    pure = fnad.external(f, result=0.0)

    def program(x: Any) -> Any:
        pure(x + 1.0)
        return pure(x) + pure(x)

    assert fnad.jit(program)(X) == 2 * X
    assert calls == [X]


# ---- wrong rules and results -----------------------------------------------------------------------------------------

WRONG = {
    "another structure": ({"result": (0.0, 0.0)}, CallbackError, "returned another pytree than `result` announces"),
    "another shape": ({"result": np.zeros(2)}, CallbackError, r"announced was float64 of shape \(2,\)"),
    "another kind": ({"result": 1}, CallbackError, "announced was int64"),
    "not a tuple": ({"result": 0.0, "vjp": lambda ct, x: ct}, CustomRuleError, "not a tuple of 1"),
    "too many cotangents": ({"result": 0.0, "vjp": lambda ct, x: (ct, ct)}, CustomRuleError, "not a tuple of 1"),
    "another tree": ({"result": 0.0, "vjp": lambda ct, x: ({"x": ct},)}, CustomRuleError, "where .* belongs"),
    "a cotangent's shape": ({"result": 0.0, "vjp": lambda ct, x: (np.ones(2),)}, CallbackError, "announced was"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_an_error_with_the_line(name: str) -> None:
    options, error, words = WRONG[name]
    f = fnad.external(math.erf, **options)
    with pytest.raises(error, match=words) as raised:
        fnad.grad(f)(X) if "vjp" in options else fnad.jit(f)(X)
    assert "test_external.py" in str(raised.value)


def test_a_rule_is_a_function() -> None:
    with pytest.raises(fnad.errors.ArgumentTypeError):
        fnad.external(math.erf, result=0.0, vjp=3)  # type: ignore[arg-type]


# ---- arrays of other libraries ---------------------------------------------------------------------------------------


class Tensor:
    """An array of another library, whose method has another meaning than that of NumPy."""

    def __init__(self, data: Any) -> None:
        self.data = np.array(data)
        self.shape, self.dtype = self.data.shape, self.data.dtype

    def std(self) -> Any:
        return self.data.std(ddof=1)


class ByInterface(Tensor):
    @property
    def __array_interface__(self) -> Any:
        return self.data.__array_interface__


class ByDLPack(Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


class InterfaceAlone:
    """An array with nothing but its array interface."""

    def __init__(self, data: Any, *, copy: bool = True, **more: Any) -> None:
        self.data = np.array(data) if copy else data
        self.__array_interface__ = {**self.data.__array_interface__, **more}


class DLPackAlone(ByDLPack):
    """An array without a shape or a dtype."""

    def __init__(self, data: Any) -> None:
        self.data = np.array(data)


class Stored(Tensor):
    """Data in a file, which is read when NumPy converts it to an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.data.copy()


class WithLabels(Tensor):
    """An array that defines NumPy's functions for itself."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.data

    def __array_ufunc__(self, *args: Any, **options: Any) -> Any:
        return NotImplemented


class Graph(Tensor):
    """An array that may not be read."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("it requires a gradient: call detach")


P = np.array([0.1, 0.7, 1.9])


def spread(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y) + x.std()


@pytest.mark.parametrize("kind", [ByInterface, InterfaceAlone, ByDLPack, DLPackAlone, Stored])
def test_arguments_may_be_arrays_of_other_libraries(kind: type[Tensor]) -> None:
    x = kind(P)
    slope = np.cos(P) * P + (P - P.mean()) / (3 * P.std())
    assert_allclose(fnad.grad(spread)(x, P), slope, rtol=1e-14)
    assert_allclose(fnad.jit(fnad.grad(spread))(x, kind(P)), slope, rtol=1e-14)
    assert_allclose(fnad.jit(spread)(x, y=kind(P)), spread(P, P), rtol=1e-14)
    assert_allclose(fnad.vjp(lambda p: spread(p["x"], P), {"x": x})[1](1.0)[0]["x"], slope, rtol=1e-14)
    assert_allclose(fnad.jvp(np.sin, (x,), (kind(P),))[1], np.cos(P) * P, rtol=1e-14)
    assert_allclose(fnad.vmap(np.sin)(x), np.sin(P))
    assert_allclose(fnad.jacobian(lambda x, y: x * y)(P, kind(P) if kind is not Stored else P), np.diag(P))
    assert_allclose(fnad.jit(np.sin)(kind(P.astype("f4"))), np.sin(P.astype("f4")), rtol=1e-6)
    write = fnad.jit(lambda x: [x.__setitem__(0, 5.0), np.sum(x)][1])
    assert write(x) == 5.0 + P[1] + P[2]
    assert_allclose(x.data, P)


@pytest.mark.parametrize("kind", [ByInterface, InterfaceAlone, ByDLPack, DLPackAlone])
def test_memory_of_other_libraries_is_not_copied_and_is_read_at_each_call(kind: type[Tensor]) -> None:
    x, total = kind(P), fnad.jit(np.sum)
    assert np.shares_memory(leaf_of(x).value, x.data)
    for value in (1.0, 2.0, 3.0):
        x.data[:] = value
        assert total(x) == 3 * value
    pullback = fnad.vjp(lambda x, y: np.sum(x * y), x, P)[1]
    x.data[:] = 0.0
    assert_allclose(pullback(1.0)[1], [3.0, 3.0, 3.0])


@pytest.mark.parametrize("kind", [ByInterface, InterfaceAlone, ByDLPack, DLPackAlone])
def test_arguments_that_are_not_differentiated_are_arrays_of_numpy(kind: type[Tensor]) -> None:
    def f(x: Any, y: Any) -> Any:
        return x * y.std()

    assert_allclose(fnad.grad(f)(2.0, kind(P)), P.std(), rtol=1e-15)
    assert_allclose(fnad.jit(fnad.grad(f))(2.0, kind(P)), P.std(), rtol=1e-15)


@pytest.mark.parametrize("part", [slice(None), slice(None, None, -2)])
@pytest.mark.parametrize("version", [2, 3])
def test_an_array_interface_alone_may_be_read_only_or_not_contiguous(part: slice, version: int) -> None:
    memory = np.repeat(P, 2)
    memory.flags.writeable = False
    x = InterfaceAlone(memory[part], copy=False, version=version)
    value = leaf_of(x).value
    assert np.shares_memory(value, memory)
    assert not value.flags.writeable
    for call in (fnad.grad(lambda x: np.sum(x**2)), fnad.export(lambda x: 2 * x, x)):
        assert_allclose(call(x), 2 * memory[part])


REFUSED = {
    "labels": (WithLabels(P), "is of type .*WithLabels, not an array or a number"),
    "no array": (Graph(P), "is of type .*Graph, which gives NumPy no array: it requires a gradient: call detach"),
    "dtype": (ByInterface(P.astype("f2")), "has dtype float16"),
    "words": (Stored(np.array(["a"])), "has dtype <U1"),
    "mask": (InterfaceAlone(P, mask=InterfaceAlone(P > 1)), "is of type .*Alone, whose __array_interface__ has a mask"),
    "class": (ByInterface, "is of type type, not an array or a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_of_other_libraries_that_are_refused(name: str) -> None:
    x, words = REFUSED[name]
    for call in (fnad.grad(spread), fnad.jit(spread)):
        with pytest.raises((fnad.errors.ArgumentTypeError, fnad.errors.DtypeError), match=f"x {words}"):
            call(x, P)
